"""Both stores, for every test that asks for `db`: the backend is a parameter."""

import pytest

from tests.unit.test_engine_stage import STORES, open_store


@pytest.fixture(scope="module", params=STORES)
def db(request, tmp_path_factory):
    with open_store(request.param, tmp_path_factory.mktemp("stores")) as db:
        yield db
