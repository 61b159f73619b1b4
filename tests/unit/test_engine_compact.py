"""Law (I5, I6, I10, C14): only a complete, validated draft becomes active, by its own attempt, on its own base.

Checked on both stores with summarizers that fail, lie and race on cue: whatever they do, what a reader sees is the
generation before or the generation after, and no lease is left behind.
"""

import threading

import pytest

import strandline
from strandline.engine import compact
from strandline.limits import ATTEMPTS_MAX, COOLDOWN_CAP_S, REPLANS_MAX
from strandline.model.candidate import CitedClaim
from strandline.testing import ScriptedSummarizer, VirtualClock
from tests.unit.test_engine_stage import (
    lease_of,
    new_workflow,
    open_store,
    quiet,
    seen_of,
    states,
    talk,
)

Draft, SAY = strandline.Draft, strandline.message
TRANSIENT, MALFORMED = strandline.TransientSummarizerError("busy"), strandline.MalformedDraftError("cut")


@pytest.fixture
def wf(db):
    """A workflow at generation 1, with a tail that is worth compacting, and facts that stand."""
    wf = new_workflow(db)
    wf.append([strandline.issue("oauth-scope", "The scope admin:org is too wide."), *talk(6)])
    wf.compact(400, quiet)
    wf.append(talk(8, start=20))
    yield wf
    assert lease_of(db, wf) is None


# ---------------------------------------------------------------------------------------------- bad drafts

BAD = {
    "timeout": (TRANSIENT, "dead_letter", "transient"),
    "connection": (lambda _: (_ for _ in ()).throw(ConnectionResetError("reset")), "dead_letter", "transient"),
    "malformed": (MALFORMED, "rejected", "malformed"),
    "other summarizer error": (strandline.SummarizerError("odd"), "rejected", "malformed"),
    "empty": ("", "rejected", "malformed"),
    "blank": (" \n\t", "rejected", "malformed"),
    "cut off": (Draft(text="Work went on and", finish="length"), "rejected", "malformed"),
    "filtered": (Draft(text="Work went on.", finish="content_filter"), "rejected", "malformed"),
    "placeholder": ("[summary here]", "rejected", "malformed"),
    "error text": ("Error: 429 Too Many Requests", "rejected", "malformed"),
    "over budget": ("Work went on. " * 500, "rejected", "malformed"),
    "nul": ("Work\0went on.", "rejected", "malformed"),
    "surrogate": ("Work \ud800 went on.", "rejected", "malformed"),
    "invented reference": ("Work went on in bucket-dead99.", "quarantined", "semantic"),
    "invented approval": ("dana approved the publication of the suite.", "quarantined", "semantic"),
    "resolved issue": ("The oauth-scope issue was resolved.", "quarantined", "semantic"),
}


@pytest.mark.parametrize(("step", "result", "failure"), BAD.values(), ids=BAD)
def test_a_bad_draft_never_changes_what_is_read(db, wf, step, result, failure):
    """I5, C14: the class decides how often it is tried, and in which form; the attempts are kept with why."""
    db._clock.advance(COOLDOWN_CAP_S)  # the one of the test before that did not answer has the same name
    before = seen_of(wf)
    script = ScriptedSummarizer([step] * 2 * ATTEMPTS_MAX, name="bad")
    outcome = wf.compact(400, strandline_callable(script), fallback=False)
    assert (outcome.outcome, outcome.generation) == (result, 1)
    assert [attempt.failure for attempt in outcome.attempts] == [failure] * ATTEMPTS_MAX
    assert seen_of(wf) == before
    kept = states(db, wf)[1:]
    if failure == "transient":  # a passing reason ends no job
        assert kept == [("pending", ["failed"] * ATTEMPTS_MAX)]
    else:  # as it was asked for, told what was wrong, and in smaller parts
        assert sorted(kept) == sorted([(result, ["failed", result]), (result, [result])])
    assert wf.verify().ok
    assert wf.compact(400, quiet).generation == 2


def strandline_callable(script):
    """Return the script as a plain function, so that errors are mapped as a caller's function's are."""

    def bad(request):
        return script.summarize(request)

    return bad


@pytest.mark.parametrize("bad", ["", MALFORMED, TRANSIENT], ids=["empty", "malformed", "transient"])
def test_another_try_is_told_what_was_wrong(db, wf, bad):
    """C14: a malformed draft's violations go into the next request; a good draft then activates, in its own attempt."""
    script = ScriptedSummarizer([bad, "Work went on quietly."])
    outcome = wf.compact(400, script)
    assert (outcome.outcome, outcome.generation) == ("activated", 2)
    assert [attempt.state.value for attempt in outcome.attempts] == ["running", "validated"]
    assert bool(script.requests[1].violations) == (bad is not TRANSIENT)
    assert states(db, wf)[1] == ("active", ["failed", "activated"])


def test_what_ended_is_not_tried_again_until_something_changes(wf):
    """C14: the same failing transformation is not repeated blindly; a new event makes another job."""
    script = ScriptedSummarizer([*["In bucket-dead99."] * ATTEMPTS_MAX, "Work went on."])
    ended = wf.compact(400, script, fallback=False)
    assert ended.outcome == "quarantined"
    again = wf.compact(400, script, fallback=False)
    assert (again.outcome, again.case_id, script.steps_left) == ("quarantined", ended.case_id, 1)
    assert "until" in again.reason
    wf.append(talk(4, start=90))
    assert wf.compact(400, script, fallback=False).outcome == "activated"


def test_a_dead_letter_may_be_sent_again_by_hand(wf):
    """C14: what failed for a passing reason is no bad transformation: once the reason passed, `compact` goes on."""
    script = ScriptedSummarizer([TRANSIENT] * ATTEMPTS_MAX + ["Work went on."])
    assert wf.compact(400, script).outcome == "dead_letter"
    assert wf.compact(400, script).outcome == "activated"


def test_a_draft_that_does_not_come_is_not_waited_for(wf):
    """C14, I22: after its deadline the draft is nobody's, however late it comes."""
    gate, before = threading.Event(), seen_of(wf)

    def stalls(request):
        gate.wait(30)
        return "Too late."

    try:
        outcome = wf.compact(400, stalls, deadline_s=0.01)
    finally:
        gate.set()
    assert outcome.outcome == "dead_letter"
    assert seen_of(wf) == before


@pytest.mark.parametrize(
    "error", [KeyError("choices"), ZeroDivisionError(), KeyboardInterrupt(), SystemExit(1)], ids=repr
)
def test_a_programming_error_reaches_its_author(db, wf, error):
    """C14: it propagates as it is, the lease is given back, and the next compaction does not wait."""
    before = seen_of(wf)

    def broken(request):
        raise error

    with pytest.raises(type(error)):
        wf.compact(400, broken)
    assert lease_of(db, wf) is None
    assert states(db, wf)[1] == ("pending", ["failed"])
    assert seen_of(wf) == before
    assert wf.compact(400, quiet).outcome == "activated"


def test_an_error_that_can_not_be_written_down_reaches_its_author_too(db, wf):
    """C14: a message that UTF-8 can't hold does not hide the error, nor keep the lease."""

    def broken(request):
        raise LookupError("\ud800")

    with pytest.raises((LookupError, UnicodeError)) as caught:
        wf.compact(400, broken)
    assert caught.type is LookupError
    assert lease_of(db, wf) is None


@pytest.mark.parametrize("answer", [None, 3, b"text", ["text"]], ids=repr)
def test_an_answer_of_another_type_is_no_draft(wf, answer):
    """C14: malformed, told to the summarizer, and bounded."""
    before = seen_of(wf)
    assert wf.compact(400, lambda request: answer).outcome == "rejected"
    assert seen_of(wf) == before


CLAIM = CitedClaim(text="Work went on.", seqs=(1,))


@pytest.mark.parametrize(
    "claims",
    [None, ("a claim",), (CitedClaim(text=1, seqs=(1,)),), (CitedClaim(text="a", seqs=("1",)),), (CLAIM,) * 2_001],
    ids=["none", "text", "number", "words", "too-many"],
)
def test_claims_of_another_form_are_no_draft(db, wf, claims):
    """C14, I22: whoever wrote the summarizer, what it cites is untrusted, and bounded."""
    before = seen_of(wf)
    assert wf.compact(400, lambda request: Draft(text="Work went on.", claims=claims)).outcome == "rejected"
    assert seen_of(wf) == before
    assert lease_of(db, wf) is None


def test_what_a_summarizer_calls_its_model_can_be_kept(wf):
    """C14: whatever it is."""
    assert wf.compact(400, lambda request: Draft(text="Work went on.", model="\ud800\0" * 9)).outcome == "activated"


def test_a_hook_that_raises_harms_nothing(tmp_path):
    """DESIGN §2: hooks are told after the commit, and what they raise is ignored."""

    class Hook:
        def __init__(self):
            self.told = []

        def emit(self, name, details):
            self.told.append(name)
            raise RuntimeError("broken hook")

    hook = Hook()
    with open_store("sqlite", tmp_path, hooks=[hook]) as db:
        wf = new_workflow(db)
        wf.append(talk(8))
        assert wf.compact(400, quiet).outcome == "activated"
        wf.checkpoint({}, 1, basis=wf.context())
    assert hook.told == [
        *("append", "operation"),
        *("attempt", "compaction", "operation"),
        *("context", "operation"),
        *("checkpoint", "operation"),
    ]


# ---------------------------------------------------------------------------------------------- races


@pytest.mark.parametrize("same_job", [True, False], ids=["the same job", "another summarizer"])
def test_a_late_attempt_is_refused(db, wf, same_job):
    """I6: while it drafts another compaction activates; nothing of the late one is visible."""
    seen = []

    def race(request):
        seen.append(wf.compact(400, script if same_job else quiet))
        seen.append(seen_of(wf))
        return Draft(text="The late one.")

    script = ScriptedSummarizer([race, "Work went on."])
    outcome = wf.compact(400, script)
    assert [seen[0].outcome, seen[0].generation] == ["activated", 2]
    assert (outcome.outcome, outcome.generation) == ("conflict", 2)
    assert seen_of(wf) == seen[1]
    assert "The late one" not in wf.context().text
    assert outcome.summary_id == seen[0].summary_id
    assert wf.verify().ok


def test_an_attempt_that_was_overtaken_behind_its_last_read_stores_nothing(db, wf, monkeypatch):
    """I6: its draft was judged, and its fence is looked at again where it is stored."""
    store, seen = compact.store_validated, []

    def overtaken(*arguments):
        monkeypatch.setattr(compact, "store_validated", store)
        seen.append(wf.compact(400, quiet))
        seen.append(seen_of(wf))
        return store(*arguments)

    monkeypatch.setattr(compact, "store_validated", overtaken)
    outcome = wf.compact(400, ScriptedSummarizer(["The late one."]))
    assert (seen[0].outcome, seen[0].generation) == ("activated", 2)
    assert (outcome.outcome, outcome.generation) == ("conflict", 2)
    assert seen_of(wf) == seen[1]
    assert wf.verify().problems == ()


@pytest.mark.parametrize("step", ["In bucket-dead99.", "", TRANSIENT], ids=["semantic", "malformed", "transient"])
def test_a_late_failure_changes_nothing_of_what_another_attempt_stored(db, wf, step):
    """I6: attempts of one job: the fenced one fails after the other activated, and the candidate stays active."""
    seen = []

    def race(request):
        wf.compact(400, script)
        seen.append(seen_of(wf))
        if isinstance(step, BaseException):
            raise step
        return Draft(text=step)

    script = ScriptedSummarizer([race, "Work went on."])
    outcome = wf.compact(400, script)
    assert outcome.generation == 2
    assert seen_of(wf) == seen[0]
    assert states(db, wf)[1] == ("active", ["fenced", "activated"])


class BeforeFirstWrite:
    """A store that lets something else happen between a plan and its claim."""

    def __init__(self, store, action):
        self._store, self._action = store, action

    def __getattr__(self, name):
        return getattr(self._store, name)

    def write(self, scope, *, joins=True):
        action, self._action = self._action, lambda: None
        action()
        return self._store.write(scope)


def test_a_plan_that_is_stale_when_it_is_claimed_is_made_anew(db, wf):
    """I6: the generation is compared under the lock, before anything is drafted on an old base."""
    seen = []
    store = BeforeFirstWrite(db.store, lambda: seen.append(wf.compact(400, quiet)))
    late = strandline.Strandline(store, clock=VirtualClock()).tenant("acme").workflow(wf.name)
    script = ScriptedSummarizer([])
    outcome = late.compact(400, script)
    assert (seen[0].outcome, seen[0].generation) == ("activated", 2)
    assert (outcome.outcome, outcome.generation, outcome.attempts) == ("nothing_to_do", 2, ())
    assert [state for state, _ in states(db, wf)] == ["superseded", "active"]
    assert wf.verify().ok


def test_a_recovery_fences_what_is_drafting(db, wf):
    """I6, I15: the compaction that was in flight is refused, however late it comes."""
    before = wf.context().generation

    def crash(request):
        wf.recover()
        return "The late one."

    outcome = wf.compact(400, crash)
    assert outcome.outcome == "conflict"
    assert wf.context().generation == before
    assert "The late one" not in wf.context().text


def test_a_rewind_before_the_first_read_is_no_damage(db, wf, monkeypatch):
    """I4, I6: the events that a rewind took off the log are missed by nobody's digests; who drafted is fenced."""
    claim = compact.claim

    def overtaken(*arguments, **options):
        claimed = claim(*arguments, **options)
        wf.rewind(3, by="dana", why="another way")
        return claimed

    with monkeypatch.context() as patched:
        patched.setattr(compact, "claim", overtaken)
        told = []
        outcome = wf.compact(400, ScriptedSummarizer([told.append], name="asked"))
    assert (outcome.outcome, told) == ("conflict", []), "it is told so, and no draft is asked for"
    assert states(db, wf)[-1] == ("void", ["fenced"])
    assert wf.verify().problems == ()


def test_a_fenced_lease_is_written_down(db, wf):
    """I13: taking the view from an attempt that still runs is an entry of the lineage; a released lease is none."""

    def race(request):
        wf.compact(400, quiet)
        return "The late one."

    assert [entry.kind for entry in wf.lineage()] == ["compaction"]
    wf.compact(400, race)
    assert [entry.kind for entry in wf.lineage()] == ["compaction", "fence", "compaction"]


def test_strict_mode_refuses_when_an_event_was_appended_meanwhile(db, wf):
    """I6: each time the plan is made anew, a bounded number of times; the events are kept, and the lease is not."""
    drafts = []

    def appends(request):
        wf.append(SAY("user", f"one more, number {len(drafts)}"))
        drafts.append(request)
        return "Work went on."

    outcome = wf.compact(400, appends, strict=True)
    assert (outcome.outcome, outcome.generation, len(drafts)) == ("conflict", 1, REPLANS_MAX)
    assert outcome.revision == 29 + REPLANS_MAX
    assert lease_of(db, wf) is None
    assert wf.compact(400, quiet, strict=True).outcome == "activated"
    assert "fence" not in [entry.kind for entry in wf.lineage()]


def test_strict_mode_plans_anew_from_the_newest_snapshot(wf):
    """I6, C14: one event meanwhile, and the second plan is on the revision with it."""

    def appends_once(request):
        if wf.context().revision == 29:
            wf.append(SAY("user", "one more"))
        return "Work went on."

    outcome = wf.compact(400, appends_once, strict=True)
    assert (outcome.outcome, outcome.generation, outcome.revision) == ("activated", 2, 30)
    assert outcome.summary.revision == 30


def test_strict_mode_through_a_named_event_is_not_planned_anew(wf):
    """I6: a plan on the newer revision would still cover that event only, and leave what came after it unsaid."""

    def appends_once(request):
        if wf.context().revision == 29:
            wf.append(SAY("user", "one more"))
        return "Work went on."

    outcome = wf.compact(400, appends_once, strict=True, through=29)
    assert (outcome.outcome, outcome.generation, outcome.revision) == ("conflict", 1, 30)
    assert wf.compact(400, quiet, strict=True, through=30).watermark == 30


def test_by_default_what_is_appended_meanwhile_is_tail(wf):
    """DESIGN §2: a writer that never rests must not starve a slow summarizer."""

    def appends(request):
        wf.append(SAY("user", "one more, bucket-9999"))
        return "Work went on."

    outcome = wf.compact(400, appends)
    assert (outcome.outcome, outcome.generation) == ("activated", 2)
    assert "bucket-9999" in wf.context().parts[-1].text


# ---------------------------------------------------------------------------------------------- what is planned


def test_nothing_to_do_is_said_and_changes_nothing(db, wf):
    """C7: below the threshold, or when the tail fits its share; no attempt is begun."""
    before = seen_of(wf)
    outcome = wf.compact(400, quiet, when_tokens=1_000_000)
    assert (outcome.outcome, outcome.attempts) == ("nothing_to_do", ())
    assert "1000000" in outcome.reason
    wf.compact(400, quiet)
    assert wf.compact(400, quiet).outcome == "nothing_to_do"
    assert wf.compact(10_000, quiet).outcome == "nothing_to_do"
    assert wf.context().generation == before["generation"] + 1


def test_an_empty_workflow_has_nothing_to_compact(db):
    """C7: and reading it is no error."""
    wf = new_workflow(db)
    assert wf.compact(400, quiet).outcome == "nothing_to_do"
    assert (wf.context().parts, wf.lineage(), list(wf.manifest())) == ((), [], [])


def test_mandatory_facts_over_the_budget_are_an_error_and_no_cut(db):
    """C11: nothing is written."""
    wf = new_workflow(db)
    wf.append([strandline.constraint(f"rule-{n}", "Do not touch the harbour lights. " * 5) for n in range(12)])
    wf.append(talk(8))
    with pytest.raises(strandline.ContextOverflowError) as caught:
        wf.compact(300, quiet)
    assert caught.value.needed > caught.value.budget == 300
    assert wf.context().generation == 0
    assert wf.lineage() == []


def test_mandatory_facts_stand_verbatim_as_of_the_watermark(db):
    """I10: constraints, approvals, revocations, issues, unknown calls, artifacts and pins, each with its event."""
    wf = new_workflow(db)
    wf.append([strandline.constraint("rule", "Never push on Fridays."), strandline.constraint("old", "Lifted later.")])
    wf.append(
        [strandline.approval("ship", "Ship v3.4.0.", granter="ann", scope="eu"), strandline.lift_constraint("old")]
    )
    wf.append([strandline.approval("gone", "Yes.", granter="bob"), strandline.revoke("gone", "No.")])
    wf.append(
        [strandline.issue("scope", "admin:org is too wide.", refs=["bucket-7f3a"]), strandline.pin("bucket-7f3a")]
    )
    wf.append([strandline.artifact("suite", "s3://out/suite-9.tgz"), strandline.tool_call("lost", "publish", {})])
    wf.append([strandline.abandoned("lost"), *talk(10)])
    anchors = wf.compact(700, quiet).summary.anchors_text
    for line in (
        "constraint rule [event 1]: Never push on Fridays.",
        "approval ship (by ann, scope eu) [event 3]: Ship v3.4.0.",
        "revoked gone [event 6]: No.",
        "open issue scope [event 7]: admin:org is too wide.",
        "[event 8]: bucket-7f3a",
        "[event 9]: s3://out/suite-9.tgz",
        "outcome unknown lost (tool publish) [event 10]",
    ):
        assert line in anchors
    assert "Lifted later" not in anchors
    assert "Yes." not in anchors


def test_facts_behind_the_watermark_stand_in_the_tail_alone(db):
    """I10: a summary speaks for its watermark: what was lifted or set later is told by the events that did it."""
    wf = new_workflow(db)
    wf.append([strandline.constraint("rule", "Never push on Fridays."), *talk(10)])
    wf.append([strandline.lift_constraint("rule"), strandline.constraint("later", "Only two reviewers.")])
    outcome = wf.compact(700, quiet)
    assert outcome.watermark < 22
    assert "constraint rule [event 1]: Never push on Fridays." in outcome.summary.anchors_text
    assert "Only two reviewers." not in outcome.summary.anchors_text
    assert [part.event.kind for part in wf.context().parts if part.from_seq in (22, 23)] == [
        "lift_constraint",
        "constraint",
    ]


# ---------------------------------------------------------------------------------------------- shares


def test_shares_say_what_the_budget_is_spent_on(db, wf):
    """The whole stays within it; what the segments get less, the ledger gets."""
    ours = [strandline.Shares(segments=share, ledger=0.65 - share) for share in (0.2, 0.45)]
    asked: list[int] = []

    def draft(request):
        asked.append(request.budget_tokens)
        return "Work went on."

    for shares in ours:
        assert wf.compact(800, draft, shares=shares).outcome in ("activated", "nothing_to_do")
        wf.append(talk(30, start=100 * len(asked)))
    few, more = asked
    assert few < more


@pytest.mark.parametrize(
    ("shares", "said"),
    [
        ({"segments": 0.0}, "no summary is written without room"),
        ({"ledger": -0.1}, "fraction of the budget"),
        ({"tail": 1.5}, "fraction of the budget"),
        ({"segments": True}, "fraction of the budget"),
        ({"segments": "0.4"}, "fraction of the budget"),
        ({"segments": float("nan")}, "fraction of the budget"),
        ({"segments": 0.5, "ledger": 0.5, "tail": 0.5}, "more than all of it"),
    ],
)
def test_shares_that_no_budget_can_be_spent_by_are_refused(shares, said):
    with pytest.raises(strandline.InvalidInputError, match=said):
        strandline.Shares(**shares)


def test_the_digest_of_a_draft_is_keyed(tmp_path):
    """C31: it outlives the draft in the lineage, so nobody may be able to try texts against it."""
    digests = set()
    for name in ("one", "two"):
        with strandline.open(tmp_path / f"{name}.db") as db:
            wf = db.tenant("acme").workflow("run")
            wf.append([strandline.message("user", f"Line {number}. " + "Words. " * 40) for number in range(20)])
            wf.compact(600, summarizer=lambda request: "The same words.")
            digests.add(wf.lineage()[-1].digest)
    assert len(digests) == 2


def test_what_a_summarizer_says_of_its_failure_can_be_shown():
    with strandline.open(":memory:") as db:
        wf = db.tenant("acme").workflow("w")
        wf.append([strandline.message("assistant", f"Run {n} passed, see logs/run-{n}.txt") for n in range(300)])
        summarizer = ScriptedSummarizer([strandline.MalformedDraftError("half \ud800 a pair \x00")] * 3)
        outcome = wf.compact(budget=1_000, summarizer=summarizer)
        assert outcome.reason == "half \\ud800 a pair \\x00"
        assert summarizer.requests[1].violations == (outcome.reason,)


@pytest.mark.parametrize("error", [TimeoutError("no answer"), ConnectionResetError("gone")])
def test_a_summarizer_that_maps_no_error_is_tried_again(tmp_path, error):
    """C14: an object of one's own that raises what its client raises."""
    with open_store("memory", tmp_path) as db:
        wf = new_workflow(db)
        wf.append([strandline.message("user", f"Line {number}. " + "Words. " * 40) for number in range(20)])
        summarizer = ScriptedSummarizer([error, "Lines were said."])
        outcome = wf.compact(600, summarizer=summarizer)
        assert outcome.outcome == "activated"
        assert [attempt.failure for attempt in outcome.attempts] == ["transient", None]
