"""An image holds what was synced, and of the rest exactly the pieces that are said to have arrived."""

import itertools

from tests.crash.images import Moment, Piece, moments
from tests.crash.losses import FEW_PIECES, WAYS, Losses
from tests.crash.tracing import Create, Link, Mark, Rename, Sync, Truncate, Unlink, Write

A = [Create("a"), Sync("."), Write("a", 0, b"old!"), Sync("a")]


def last(*operations) -> Moment:
    return moments(operations, without="-shm")[-1]


def whole(moment: Moment) -> dict[str, bytes]:
    return moment.image(moment.pending)


def subsets(moment: Moment) -> list[dict[str, bytes]]:
    pending = moment.pending
    chosen = itertools.product((False, True), repeat=len(pending))
    return [moment.image(itertools.compress(pending, mask)) for mask in chosen]


def test_what_was_synced_is_there_and_what_was_not_may_be():
    moment = last(*A, Write("a", 0, b"new"), Write("a", 2, b"er"))
    assert subsets(moment) == [{"a": b"old!"}, {"a": b"oler"}, {"a": b"new!"}, {"a": b"neer"}]


def test_a_sync_is_of_one_file():
    moment = last(*A, Create("b"), Sync("."), Write("a", 0, b"new"), Write("b", 0, b"b"), Sync("b"))
    assert subsets(moment) == [{"a": b"old!", "b": b"b"}, {"a": b"new!", "b": b"b"}]


def test_a_name_is_durable_when_its_folder_was_synced():
    assert subsets(last(Create("a"), Write("a", 0, b"x"), Sync("a"))) == [{}, {"a": b"x"}]
    assert subsets(last(*A, Unlink("a"))) == [{"a": b"old!"}, {}]
    assert subsets(last(*A, Unlink("a"), Sync("."))) == [{}]
    assert subsets(last(*A, Rename("a", "b"))) == [{"a": b"old!"}, {"b": b"old!"}]
    assert subsets(last(*A, Link("a", "b"))) == [{"a": b"old!"}, {"a": b"old!", "b": b"old!"}]


def test_a_name_that_is_given_again_is_another_file():
    moment = last(*A, Unlink("a"), Create("a"), Write("a", 0, b"2"))
    assert {image.get("a") for image in subsets(moment)} == {b"old!", None, b"", b"2"}
    assert whole(moment) == {"a": b"2"}
    assert whole(last(*A, Rename("a", "b"), Write("b", 0, b"2"), Create("a"))) == {"b": b"2ld!", "a": b""}


def test_a_size_arrives_by_itself():
    assert subsets(last(*A, Truncate("a", 2))) == [{"a": b"old!"}, {"a": b"ol"}]
    assert whole(last(*A, Truncate("a", 6))) == {"a": b"old!\0\0"}
    moment = last(*A, Truncate("a", 0), Write("a", 2, b"new"))
    assert subsets(moment) == [{"a": b"old!"}, {"a": b"olnew"}, {"a": b""}, {"a": b"\0\0new"}]


def test_where_the_bytes_did_not_arrive_and_the_size_did_anything_stands():
    moment = last(*A, Write("a", 3, b"long"))
    (piece,) = moment.pending
    assert moment.image([piece.fill(b"?!")]) == {"a": b"old!?!?"}
    assert moment.image([piece.first(2)]) == {"a": b"oldlo"}


def test_a_write_is_cut_at_the_borders_of_the_file():
    piece = Piece(1, Write("a", 510, b"abcdef"))
    assert [(part.change.offset, part.change.data) for part in piece.split(512)] == [(510, b"ab"), (512, b"cdef")]
    assert [part.change.data for part in Piece(1, Write("a", 0, bytes(1024))).split(512)] == [bytes(512)] * 2
    assert Piece(1, Truncate("a", 5)).split(512) == [Piece(1, Truncate("a", 5))]


def test_what_is_rebuilt_anyway_is_left_out():
    assert whole(last(*A, Create("a-shm"), Write("a-shm", 0, b"x"))) == {"a": b"old!"}


def test_an_enumeration_has_each_subset_once_and_again_after_each_mark():
    record = [*A, Write("a", 0, b"1"), Write("a", 1, b"2"), Write("a", 2, b"3"), Mark("done"), Sync("a")]
    behind = moments(record, without="-shm")[len(A) :]
    losses = Losses(behind)
    assert losses.enumerated == 1 + 1 + 2 + 4 + 8 + 1
    tried = [losses.of_seed(2 * number) for number in range(losses.enumerated)]
    met = [(loss.moment.position, *(piece.change.offset for piece in loss.arrived)) for loss in tried]
    assert len(set(met)) == len(met)
    assert sorted(met)[-2:] == [(8, 2), (9,)]
    assert len({loss.moment.image(loss.arrived)["a"] for loss in tried}) == 8


def test_a_drawn_loss_is_the_same_again_and_all_ways_are_drawn():
    record = [*A, *(Write("a", at * 700, bytes([at]) * 700) for at in range(FEW_PIECES + 1)), Unlink("a")]
    losses = Losses(moments(record, without="-shm"))
    tried = [losses.of_seed(seed) for seed in range(1, 400, 2)]
    assert tried == [losses.of_seed(seed) for seed in range(1, 400, 2)]
    assert {loss.way for loss in tried} == set(WAYS)
