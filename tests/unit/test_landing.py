"""Law (I19): what came of a commit whose answer was not seen is read before anything is said.

Checked on the embedded stores by a store that commits and says that it does not know, or does not commit and says the
same; and that is away, or behind, when it is asked what came of it.
"""

from contextlib import contextmanager

import pytest

import strandline
from strandline.testing import VirtualClock
from tests.unit.test_engine_stage import STORES, log_of, new_workflow, open_store, quiet, seen_of, talk

WHO = {"by": "ann", "why": "it must be"}


class UndoError(Exception):
    """Rolls the transaction back."""


class UnansweringStore:
    """A store that does not say what came of its next commit, and may be away afterwards."""

    def __init__(self, store):
        self._store = store
        self.commits = None  # whether the next commit happens; None: and it says so
        self.away = False  # for writers, from that commit on
        self.meanwhile = None  # done by somebody else, before it is asked what came of it

    def __getattr__(self, name):
        return getattr(self._store, name)

    @contextmanager
    def write(self, scope, *, joins=True):
        commits, self.commits = self.commits, None
        if commits is None and self.away:
            raise strandline.StoreUnavailableError("it only reads")
        try:
            with self._store.write(scope, joins=joins) as tx:
                yield tx
                if commits is False:
                    raise UndoError
        except UndoError:
            pass
        if commits is not None:
            if self.meanwhile is not None:
                self.meanwhile()
            raise strandline.OutcomeUnknownError("cut off")


@pytest.fixture(params=STORES)
def unanswering(request, tmp_path):
    with open_store(request.param, tmp_path) as opened:
        store = UnansweringStore(opened.store)
        db = strandline.Strandline(store, clock=VirtualClock())
        wf = new_workflow(db)
        wf.append(talk(8))
        wf.compact(400, quiet)
        wf.append(talk(2, start=20))
        yield db, wf, store
        store.away = False
        assert wf.verify().ok


def keep(wf):
    return wf.checkpoint({"at": 1}, 1, basis=wf.context())


VERBS = {
    "append": lambda wf: wf.append(strandline.note("it has no key")),
    "checkpoint": keep,
    "recover": lambda wf: wf.recover(),
    "rewind": lambda wf: wf.rewind(10, **WHO),
    "revert": lambda wf: wf.revert(0, **WHO),
    "fork": lambda wf: wf.fork(10, f"{wf.name}-aside", **WHO),
    "define_view": lambda wf: wf.define_view("publisher", audiences={"release"}),
    "erase": lambda wf: wf.erase(events=[1], **WHO),
    "hold": lambda wf: wf.hold("court-12", **WHO),
}


@pytest.mark.parametrize("verb", VERBS)
def test_a_commit_that_landed_is_answered(unanswering, verb):
    """The verb ends as if its answer had been seen: once, with its own result."""
    _, wf, store = unanswering
    before = wf.basis().revision, len(wf.lineage())
    store.commits = True
    VERBS[verb](wf)
    store.commits = None
    after = wf.basis().revision, len(wf.lineage())
    assert after != before or verb == "fork"
    with pytest.raises(strandline.InvalidInputError) if verb in ("rewind", "revert", "fork", "hold") else nothing():
        VERBS[verb](wf)


@contextmanager
def nothing():
    yield


@pytest.mark.parametrize("verb", VERBS)
def test_a_commit_that_did_not_land_is_told_as_such(unanswering, verb):
    """Nothing was written, and the same verb again does it, once."""
    db, wf, store = unanswering
    before, events = seen_of(wf), len(log_of(db, wf))
    store.commits = False
    with pytest.raises(strandline.StoreUnavailableError, match="did not commit, and nothing was written"):
        VERBS[verb](wf)
    assert (seen_of(wf), len(log_of(db, wf))) == (before, events)
    VERBS[verb](wf)


@pytest.mark.parametrize("verb", [verb for verb in VERBS if verb != "define_view"])  # the same again changes nothing
def test_what_another_did_at_the_same_time_is_not_taken_for_its_own(unanswering, verb):
    """Somebody else does the very same within the same microsecond, and his is the one that lands."""
    _, wf, store = unanswering
    store.meanwhile = lambda: VERBS[verb](wf)
    store.commits = False
    with pytest.raises(strandline.StoreUnavailableError, match="did not commit, and nothing was written"):
        VERBS[verb](wf)


def test_others_may_have_written_since(unanswering):
    """The chain value is this batch's own: neither an event behind it nor one in its place is taken for it."""
    db, wf, store = unanswering
    for commits in (True, False):
        store.meanwhile = lambda: wf.append(strandline.note("it has no key"))
        store.commits = commits
        events = len(log_of(db, wf))
        if commits:
            assert wf.append(strandline.note("it has no key")).seqs == (events + 1,)
        else:
            with pytest.raises(strandline.StoreUnavailableError):
                wf.append(strandline.note("it has no key"))
        assert len(log_of(db, wf)) == events + 1 + commits


@pytest.mark.parametrize("commits", [True, False])
def test_a_store_that_only_reads_proves_what_is_there_and_not_what_is_missing(unanswering, commits):
    """A standby may be behind: what it does not show may have happened all the same."""
    _, wf, store = unanswering
    revision, store.commits, store.away = wf.basis().revision, commits, True
    if commits:
        assert wf.append(strandline.note("it has no key")).seqs == (revision + 1,)
    else:
        with pytest.raises(strandline.OutcomeUnknownError, match="cut off"):
            wf.append(strandline.note("it has no key"))


def test_what_leaves_no_trace_of_its_own_is_not_known(unanswering):
    """A permit stands neither in the log nor in the lineage: who asked for it looks for it, or asks again."""
    _, wf, store = unanswering
    wf.append(strandline.approval("ship", "Yes.", granter="ben"))
    store.commits = True
    with pytest.raises(strandline.OutcomeUnknownError):
        wf.guard("ship", [strandline.approved("ship")])
    assert [permit.state.value for permit in wf.permits()] == ["granted"]


def test_an_error_of_the_verb_is_its_own(unanswering):
    """What a verb raises before its commit is not read back."""
    _, wf, _ = unanswering
    with pytest.raises(strandline.InvalidInputError):
        wf.rewind(10_000, **WHO)
