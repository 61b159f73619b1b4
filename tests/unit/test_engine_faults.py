"""Law (I5, I6, I19, C14): whatever dies or fails around an activation, it has happened once or not at all.

Checked on both stores by a store that fails where a test says so: right before the pointer moves, right after a commit.
"""

from contextlib import contextmanager

import pytest

import strandline
from strandline.engine import compact as compact_module
from strandline.testing import ScriptedSummarizer, SeededEntropy, VirtualClock
from tests.unit.test_engine_stage import STORES, lease_of, new_workflow, open_store, quiet, seen_of, states, talk


class Dies(BaseException):
    """The process dies here."""


class FaultyStore:
    """A store that does something else, once, where a test says so."""

    def __init__(self, store):
        self._store = store
        self.at_pointer = self.after_commit = None

    def __getattr__(self, name):
        return getattr(self._store, name)

    @contextmanager
    def write(self, scope, *, joins=True):
        moved = []
        with self._store.write(scope) as tx:
            move = tx.views.move_pointer

            def move_pointer(*args, **kwargs):
                moved.append(True)
                if self.at_pointer is not None:
                    error, self.at_pointer = self.at_pointer, None
                    raise error
                return move(*args, **kwargs)

            tx.views.move_pointer = move_pointer
            yield tx
        if moved and self.after_commit is not None:
            error, self.after_commit = self.after_commit, None
            raise error


@pytest.fixture(params=STORES)
def faulty(request, tmp_path):
    with open_store(request.param, tmp_path) as opened:
        store = FaultyStore(opened.store)
        db = strandline.Strandline(store, clock=VirtualClock(), entropy=SeededEntropy(7))
        wf = new_workflow(db)
        wf.append(talk(8))
        yield db, wf, store


@pytest.mark.parametrize(
    "error",
    [Dies(), strandline.StoreUnavailableError("disk full"), strandline.OutcomeUnknownError("cut off")],
    ids=lambda error: type(error).__name__,
)
def test_a_validated_draft_is_not_drafted_again(faulty, error):
    """DESIGN §2, C14: what died right before its activation is found by the next compaction, which activates it."""
    db, wf, store = faulty
    script = ScriptedSummarizer(["Work went on."])
    before = seen_of(wf)
    store.at_pointer = error
    with pytest.raises(type(error)):
        wf.compact(400, script)
    assert seen_of(wf) == before
    assert states(db, wf) == [("validated", ["validated"])]
    outcome = wf.compact(400, script)
    assert (outcome.outcome, outcome.generation, script.steps_left) == ("activated", 1, 0)
    assert states(db, wf) == [("active", ["activated"])]
    assert "Work went on." in wf.context().text
    assert lease_of(db, wf) is None
    assert wf.verify().ok


def test_a_validated_draft_is_superseded_when_the_world_moved_on(faulty):
    """I6: another job activates first; the draft that was left behind never becomes active."""
    _, wf, store = faulty
    store.at_pointer = Dies()
    with pytest.raises(Dies):
        wf.compact(400, ScriptedSummarizer(["The one that was left behind."]))
    wf.append(talk(4, start=50))
    assert wf.compact(400, quiet).outcome == "activated"
    wf.append(talk(8, start=70))
    assert wf.compact(400, quiet).outcome == "activated"
    assert "left behind" not in wf.context().text
    assert wf.verify().ok


def test_a_lost_acknowledgement_is_read_back(faulty):
    """I19: the commit landed and was not acknowledged: the pointer is read, and the compaction has happened, once."""
    db, wf, store = faulty
    store.after_commit = strandline.OutcomeUnknownError("cut off")
    outcome = wf.compact(400, ScriptedSummarizer(["Work went on."]))
    assert (outcome.outcome, outcome.generation) == ("activated", 1)
    assert [entry.kind for entry in wf.lineage()] == ["compaction"]
    assert lease_of(db, wf) is None


def test_a_store_that_fails_under_a_draft_changes_nothing(faulty):
    """C14: storage: nothing was activated, and the next compaction need not wait for a lease."""
    _, wf, _ = faulty
    before = seen_of(wf)

    def unplugs(request):
        raise strandline.StoreUnavailableError("gone")

    with pytest.raises(strandline.StoreUnavailableError):
        wf.compact(400, unplugs)
    assert seen_of(wf) == before
    assert wf.compact(400, quiet).outcome == "activated"


@pytest.mark.parametrize("store", STORES)
def test_a_validated_attempt_that_the_tail_has_outgrown_is_drafted_again(store, tmp_path, monkeypatch):
    """C11, I6: what was validated before a crash is resumed only if it still fits the budget with the tail as it is."""
    with open_store(store, tmp_path) as db:
        wf = new_workflow(db)
        wf.append([strandline.message("assistant", f"run {number} {'x ' * 60}") for number in range(40)])

        def dies(*_):
            raise strandline.StoreUnavailableError("the process died here")

        with monkeypatch.context() as patch:
            patch.setattr(compact_module, "activate", dies)
            with pytest.raises(strandline.StoreUnavailableError):
                wf.compact(2_000, through=40)
        wf.append([strandline.message("assistant", f"late {number} {'y ' * 60}") for number in range(18)])
        outcome = wf.compact(2_000, through=40)
        assert (outcome.outcome, outcome.generation) == ("activated", 1)
        assert outcome.tokens_after <= 2_000
        assert wf.context(2_000).rung == "whole"


def test_an_attempt_that_was_fenced_before_its_activation_says_so(db, monkeypatch):
    """I6, I15: a recovery fences what is validated and not yet active; it does not become active after all."""
    wf = new_workflow(db)
    wf.append(talk(8))
    activate = compact_module.activate

    def recovers_first(*arguments):
        wf.recover()
        return activate(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(compact_module, "activate", recovers_first)
        outcome = wf.compact(400, ScriptedSummarizer(["Work went on."]))
    assert (outcome.outcome, outcome.generation) == ("conflict", 0)
    assert [entry.kind for entry in wf.lineage()] == ["replay"]
    assert lease_of(db, wf) is None
