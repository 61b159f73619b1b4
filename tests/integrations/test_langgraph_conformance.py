"""Law (C34): the saver passes LangGraph's public suite in full: each capability is there, and passes."""

import pytest

from bench.conformance import Bridged, is_full, report
from strandline.integrations.langgraph import StrandlineSaver


@pytest.mark.parametrize("saver", [StrandlineSaver, Bridged], ids=["async", "sync"])
def test_the_public_suite_on_sqlite(saver, tmp_path):
    found = report("ours", str(tmp_path / "conformance.db"), saver)
    assert is_full(found), found.to_dict()


@pytest.mark.parametrize("saver", [StrandlineSaver, Bridged], ids=["async", "sync"])
def test_the_public_suite_on_postgres(saver, postgres_url):
    found = report("ours", postgres_url, saver)
    assert is_full(found), found.to_dict()
