"""Law (C13, C14): the same failing request is not made again. What was wrong is told; then the source is shown in
smaller parts; then, where the draft said what the log does not, a summarizer drafts that makes nothing up. Each form is
another candidate, so a worker that takes over goes on where the one before died. Who gets the same fact wrong three
times is told of to somebody.

Checked on both stores, through the door, with a summarizer whose script says what it answers.
"""

import pytest

import strandline
from strandline.limits import HALVINGS_MAX
from strandline.rules.partition import Part, halved_window, partition
from strandline.testing import ScriptedSummarizer
from tests.unit.test_engine_stage import lease_of, new_workflow, open_store, quiet, seen_of, states, talk, transaction

INVENTED = "In bucket-dead99."
WRONG = "The oauth-scope issue was resolved."


@pytest.fixture
def wf(db):
    """A workflow with an open issue and more than its budget holds."""
    wf = new_workflow(db)
    wf.append([strandline.issue("oauth-scope", "The scope admin:org is too wide."), *talk(12)])
    yield wf
    assert lease_of(db, wf) is None
    assert wf.verify().ok


def script(*steps, **options):
    return ScriptedSummarizer(steps, **options)


def recipes(db, wf):
    """Return what drafted each candidate, in how many halvings, and its state."""
    with transaction(db, wf) as tx:
        found = [
            (c.recipe.model.partition("@")[0], c.recipe.partition, c.state.value) for c in tx.jobs.all_candidates()
        ]
    return sorted(found)


# ---------------------------------------------------------------------------------------------- from form to form


@pytest.mark.parametrize("bad", [INVENTED, ""], ids=["semantic", "malformed"])
def test_the_second_attempt_is_told_what_was_wrong(wf, bad):
    summarizer = script(bad, "Work went on.")
    assert wf.compact(400, summarizer).outcome == "activated"
    first, second = summarizer.requests
    assert (first.attempt, first.violations) == (1, ())
    assert second.attempt == 2
    assert len(second.violations) == 1
    assert [event.seq for event in second.events] == [event.seq for event in first.events]


@pytest.mark.parametrize("bad", [INVENTED, ""], ids=["semantic", "malformed"])
def test_the_third_attempt_is_in_smaller_parts(db, wf, bad):
    """C14: another candidate, whose parts are half as large and drafted one behind the other, at depth 1 (I12)."""
    summarizer = script(bad, bad, *["Work went on."] * 4)
    outcome = wf.compact(400, summarizer)
    assert (outcome.outcome, outcome.depth) == ("activated", 1)
    whole, parts = summarizer.requests[0], summarizer.requests[2:]
    assert len(parts) >= 2
    assert {request.attempt for request in parts} == {3}
    assert [event.seq for request in parts for event in request.events] == [event.seq for event in whole.events]
    size = sum(event.tokens for event in whole.events)
    assert all(sum(event.tokens for event in request.events) <= -(-size // 2) for request in parts)
    ended = "quarantined" if bad else "rejected"
    assert recipes(db, wf) == [("scripted", 0, ended), ("scripted", 1, "active")]
    assert wf.cases() == []


def test_then_a_summarizer_drafts_that_makes_nothing_up(db, wf):
    """C8, C13: the memory is compacted, and the drafts that failed are kept, never to become active."""
    summarizer = script(*[INVENTED] * 3)
    outcome = wf.compact(400, summarizer)
    assert (outcome.outcome, outcome.generation, summarizer.steps_left) == ("activated", 1, 0)
    assert "'extractive'" in outcome.reason
    assert "bucket-dead99" not in wf.context().text
    assert recipes(db, wf) == [
        ("extractive", 0, "active"),
        ("scripted", 0, "quarantined"),
        ("scripted", 1, "quarantined"),
    ]
    assert [attempt.failure for attempt in outcome.attempts] == [*["semantic"] * 3, None]


def test_a_malformed_draft_is_rejected_after_the_smaller_parts(db, wf):
    """C14: who can't be used says nothing wrong; no other summarizer is asked in its place."""
    before = seen_of(wf)
    assert wf.compact(400, script(*["[summary here]"] * 3)).outcome == "rejected"
    assert recipes(db, wf) == [("scripted", 0, "rejected"), ("scripted", 1, "rejected")]
    assert (seen_of(wf), wf.cases()) == (before, [])


def test_without_a_last_resort_it_is_quarantined_with_one_case(db, wf):
    before = seen_of(wf)
    outcome = wf.compact(400, script(*[INVENTED] * 3), fallback=False)
    (case,) = wf.cases()
    assert (outcome.outcome, outcome.case_id) == ("quarantined", case.case_id)
    assert (case.kind, case.subject) == ("quarantined", outcome.attempts[-1].candidate_id)
    assert seen_of(wf) == before
    again = wf.compact(400, script())
    assert (again.outcome, again.generation) == ("activated", 1), "a last resort that is allowed later is taken"


def test_what_makes_nothing_up_is_asked_once(db, wf, monkeypatch):
    """The summarizer that only computes would give the same draft again."""
    asked = []

    def lies(self, request):
        asked.append(request)
        return strandline.Draft(text=INVENTED)

    monkeypatch.setattr(strandline.ExtractiveSummarizer, "summarize", lies)
    outcome = wf.compact(400)
    assert (outcome.outcome, len(asked)) == ("quarantined", 1)
    assert [case.kind for case in wf.cases()] == ["quarantined"]


def test_what_can_not_be_split_is_not_shown_again(db):
    """The same request once more would be no other form: the next one is taken."""
    wf = new_workflow(db)
    wf.append([strandline.note("word " * 400), *talk(1)])
    summarizer = script(INVENTED, INVENTED)
    outcome = wf.compact(400, summarizer, through=1)
    assert (outcome.outcome, summarizer.steps_left) == ("activated", 0)
    assert recipes(db, wf) == [("extractive", 0, "active"), ("scripted", 0, "quarantined")]


@pytest.mark.parametrize("bad", [INVENTED, ""], ids=["semantic", "malformed"])
def test_what_can_not_be_split_ends_with_its_case(db, bad):
    wf = new_workflow(db)
    wf.append([strandline.note("word " * 400), *talk(1)])
    outcome = wf.compact(400, script(bad, bad), through=1, fallback=False)
    assert outcome.outcome == ("quarantined" if bad else "rejected")
    assert [case.kind for case in wf.cases()] == (["quarantined"] if bad else [])
    again = wf.compact(400, script(), through=1, fallback=False)
    assert (again.outcome, again.case_id) == (outcome.outcome, outcome.case_id)


# ---------------------------------------------------------------------------------------------- too long


def test_a_prompt_that_is_too_long_comes_in_smaller_and_smaller_parts(db, wf):
    """C10: a model whose window nobody told is found out."""
    refused = []

    def takes(request):
        tokens = sum(event.tokens for event in request.events)
        if tokens > 140:
            refused.append(tokens)
            raise strandline.PromptTooLongError(f"{tokens} tokens")
        return quiet(request)

    assert wf.compact(400, takes).outcome == "activated"
    assert refused == sorted(refused, reverse=True)
    forms = recipes(db, wf)
    assert [halvings for _, halvings, _ in forms] == list(range(len(refused) + 1))
    assert [state for _, _, state in forms] == [*["rejected"] * len(refused), "active"]


def test_a_prompt_that_is_always_too_long_is_rejected(wf):
    """I22: HALVINGS_MAX bounds how small the parts become."""
    summarizer = script(*[strandline.PromptTooLongError()] * 20)
    assert wf.compact(400, summarizer).outcome == "rejected"
    assert len(summarizer.requests) <= 1 + HALVINGS_MAX


def test_a_halved_window_splits_the_largest_part():
    sizes = [(seq, 10) for seq in range(1, 9)]
    (whole,) = partition(sizes, prior_tokens=0, window_tokens=None)
    assert whole == Part(1, 8, 80)
    assert [halved_window([whole], halvings) for halvings in range(5)] == [80, 40, 20, 10, 5]
    assert halved_window([Part(0, 0, 0)], 1) == 1
    assert [part.tokens for part in partition(sizes, prior_tokens=0, window_tokens=40)] == [40, 40]


# ---------------------------------------------------------------------------------------------- the same fact


def test_who_gets_the_same_fact_wrong_three_times_is_told_of(db, wf):
    """C14: the case names summarizer and fact, whatever became of the compaction; asked again, it is the same case."""
    outcome = wf.compact(400, script(*[WRONG] * 3))
    (case,) = wf.cases()
    assert (outcome.outcome, outcome.case_id) == ("activated", case.case_id)
    assert (case.kind, case.subject, case.blocking) == ("unfit_summarizer", "scripted@1", False)
    assert case.reason.endswith(": issue oauth-scope")
    wf.append(talk(12, start=30))
    assert wf.compact(400, script(*[WRONG] * 3)).outcome == "activated"
    assert [found.case_id for found in wf.cases()] == [case.case_id]
    wf.reconcile(case, strandline.Abandon(), by="ann", why="another model")
    assert wf.cases() == []


def test_a_quarantined_candidate_names_the_fact(wf):
    outcome = wf.compact(400, script(*[WRONG] * 3), fallback=False)
    (case,) = wf.cases()
    assert (outcome.case_id, case.kind, case.detail) == (case.case_id, "quarantined", {"fact": "issue oauth-scope"})


def test_other_mistakes_are_no_reason_to_wake_somebody(wf):
    assert wf.compact(400, script(WRONG, INVENTED, WRONG)).outcome == "activated"
    assert wf.cases() == []


# ---------------------------------------------------------------------------------------------- who takes over


@pytest.mark.parametrize("died_in", range(4))
def test_who_takes_over_goes_on_where_the_other_died(tmp_path, died_in):
    """C14, C15: candidates that ended are found by their ids; no form is asked for twice."""

    class Died(BaseException):
        pass

    def dies(request):
        raise Died

    steps = [INVENTED, INVENTED, INVENTED]
    for kind in ("sqlite", "memory"):
        folder = tmp_path / kind
        folder.mkdir()
        with open_store(kind, folder) as db:
            wf = new_workflow(db)
            wf.append(talk(12))
            summarizer = script(*steps[:died_in], dies if died_in < 3 else INVENTED, *[INVENTED] * 3)
            if died_in < 3:
                with pytest.raises(Died):
                    wf.compact(400, summarizer)
            asked = len(summarizer.requests)
            outcome = wf.compact(400, summarizer)
            assert outcome.outcome == "activated"
            again = len(summarizer.requests) - asked
            assert again == {0: 3, 1: 3, 2: 1, 3: 3}[died_in], "a form is begun anew, the ones before it are not"
            assert [ended for ended, _ in states(db, wf)].count("active") == 1


def test_a_bad_draft_is_told_behind_a_failure_that_passed(wf):
    """C14: attempts that were not answered do not count as drafts."""
    summarizer = script(strandline.TransientSummarizerError("busy"), INVENTED, "Work went on.")
    assert wf.compact(400, summarizer).outcome == "activated"
    assert [bool(request.violations) for request in summarizer.requests] == [False, False, True]
    assert len(summarizer.requests[2].events) == len(summarizer.requests[0].events)


@pytest.mark.parametrize("fallback", [None, 1, "no"])
def test_a_fallback_is_true_or_false(wf, fallback):
    with pytest.raises(strandline.InvalidInputError):
        wf.compact(400, quiet, fallback=fallback)


# ---------------------------------------------------------------------------------------------- tried again


def test_what_was_quarantined_is_tried_again_when_somebody_says_so(db, wf):
    """C13, C15: in every form, from the first; the drafts that failed are kept."""
    ended = wf.compact(400, script(*[INVENTED] * 3), fallback=False)
    done = wf.reconcile(ended.case_id, strandline.Retry(), by="ann", why="the prompt is mended")
    assert (done.answer, done.done) == ("retry", {"candidates": 2})
    again = wf.compact(400, script("Work went on."), fallback=False)
    assert (again.outcome, again.attempts[-1].number) == ("activated", 3)
    assert [state for _, _, state in recipes(db, wf)] == ["active", "pending"]
    with pytest.raises(strandline.CaseAnsweredError):
        wf.reconcile(ended.case_id, strandline.Abandon(), by="bob", why="too late")


def test_a_dead_letter_is_due_again_when_somebody_says_so(db, wf):
    """C15: at once, with what was asked for, and as often as before."""
    wf.compact_later(400, priority=7)
    (key,) = [key for key in db.sweep() if key.workflow == wf.name]
    ended = db.run_due(key, script(*[INVENTED] * 3), fallback=False)
    assert (ended.result, ended.due_us) == ("failed", None)
    assert wf.reconcile(ended.case_id, strandline.Retry(), by="ann", why="mended").done["due"] is True
    (row,) = wf.due()
    assert (row.budget, row.priority, row.runs) == (400, 7, 0)
    assert db.run_due(key, script("Work went on."), fallback=False).outcome.outcome == "activated"


def test_other_cases_are_not_tried_again(wf):
    wf.compact(400, script(*[WRONG] * 3))
    (case,) = wf.cases()
    with pytest.raises(strandline.InvalidInputError, match="no answer"):
        wf.reconcile(case, strandline.Retry(), by="ann", why="again")
    wf.reconcile(case, strandline.Abandon(), by="ann", why="no")
