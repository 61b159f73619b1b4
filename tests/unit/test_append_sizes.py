"""Law (I22): how large an event is found out in a bounded number of steps, also of one that holds itself."""

from dataclasses import replace

import pytest

import strandline
from strandline.engine.append import prepare
from strandline.limits import EVENT_BYTES_MAX, JSON_DEPTH_MAX


class Looked(dict):
    """Counts how often it is looked into."""

    times = 0

    def values(self):
        self.times += 1
        return super().values()


def event(body, **changes):
    return replace(strandline.message("user", "x"), body=body, **changes)


def test_a_body_that_holds_itself_is_refused_for_its_depth_after_as_many_looks():
    body = Looked()
    body["again"] = body
    with pytest.raises(strandline.InvalidInputError, match="nested deeper"):
        prepare(event(body))
    assert body.times <= 2 * JSON_DEPTH_MAX


def test_many_small_values_are_refused_by_their_number():
    with pytest.raises(strandline.InvalidInputError, match="at least"):
        prepare(event({"values": [1] * (EVENT_BYTES_MAX + 1)}))


@pytest.mark.parametrize("refs", [5, ([],)])
def test_declared_references_that_are_none_are_refused(refs):
    with pytest.raises(strandline.InvalidInputError, match="declared references"):
        prepare(event("x", refs=refs))
