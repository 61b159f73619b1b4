"""Law (I21, C18): a view reads its audiences and nothing else, has a summary and a budget of its own, and begins anew
when its audiences change.

Each path by which something of another audience could reach a reader is asked here once, on both stores; that there is
no other is sought by `test_view_leaks`.
"""

import asyncio
from dataclasses import replace

import pytest

import strandline
from strandline import limits
from strandline.limits import OPEN_CALL_S_MAX, UNKNOWN_CALL_ANCHORS_MAX
from strandline.model.case import CaseKind
from strandline.model.lineage import LineageKind
from strandline.rules.manifest import change_manifest
from strandline.testing import VirtualClock
from tests.unit.test_engine_stage import (
    WHOLE,
    lease_of,
    log_of,
    new_workflow,
    open_store,
    quiet,
    standing,
    talk,
    transaction,
)

WHO = {"by": "ada", "why": "it had to be"}
BUDGET = 400
SECRET = "vault-4411"


@pytest.fixture
def wf(db):
    wf = new_workflow(db)
    yield wf
    assert lease_of(db, wf) is None
    assert wf.verify().problems == ()


@pytest.fixture
def pub(wf):
    """A view that reads what is said to `release`; not what is said to `staff`."""
    wf.define_view("publisher", audiences=["release"], budget=BUDGET)
    return wf.view("publisher")


def staff(text: str, **more) -> strandline.NewEvent:
    return strandline.note(text, audience="staff", **more)


def release(turns: int, start: int = 1) -> list[strandline.NewEvent]:
    return [
        strandline.message("user", f"Note {n} on build-{n:04d} with some more words.", audience="release", actor="rel")
        for n in range(start, start + turns)
    ]


def crowd(audience: str) -> list[strandline.NewEvent]:
    """Return events that declare so many references that the ledger has no room for one that was only mentioned."""
    refs = [[f"crowd-{n}-{i}" for i in range(20)] for n in range(6)]
    return [strandline.note("They crowd it out.", audience=audience, refs=some) for some in refs]


def anchors(view) -> set[str]:
    return {anchor.text for anchor in view.compact(BUDGET, quiet).summary.anchors}


# ---------------------------------------------------------------------------------------------- definition


def test_a_view_reads_its_audiences_and_what_is_for_everyone(wf, pub):
    wf.append([strandline.note("for all"), strandline.note("for the release", audience="release"), staff(SECRET)])
    assert [event.text for event in pub.events()] == ["for all", "for the release"]
    assert [part.text for part in pub.context().parts] == ["[note] for all", "[note] for the release"]
    assert len(wf.context().parts) == 3
    assert (pub.recall(SECRET), len(wf.recall(SECRET))) == ([], 1)


def test_a_definition_says_what_it_made_and_the_same_again_changes_nothing(wf):
    made = wf.define_view("publisher", audiences={"all", "release"}, budget=BUDGET)
    assert made == strandline.View(
        name="publisher",
        audiences=frozenset({"release"}),
        budget=BUDGET,
        audience_version=1,
        generation=0,
        watermark=0,
    )
    before = wf.lineage()
    assert [(entry.kind, entry.view, entry.generation) for entry in before] == [(LineageKind.DEFINE, "publisher", 0)]
    assert wf.define_view("publisher", audiences=["release"], budget=BUDGET) == made
    assert wf.define_view("publisher", audiences=["release"], budget=9_000).budget == 9_000
    assert wf.lineage() == before
    assert [view.name for view in wf.views()] == ["main", "publisher"]
    assert [view.name for view in wf.view("publisher").views()] == ["publisher"]
    assert wf.view("publisher").view_name == "publisher"
    assert "publisher" in repr(wf.view("publisher"))


def test_each_view_has_a_summary_and_a_budget_of_its_own(wf, pub):
    wf.append([*release(30), *[staff(f"hidden {n} {SECRET}") for n in range(10)], *release(10, 50)])
    assert pub.compact(None, quiet).generation == 1
    assert (pub.context().budget, wf.context().generation) == (BUDGET, 0)
    assert wf.compact(800, quiet).generation == 1
    assert wf.define_view("main", budget=5_000).budget == 5_000
    assert wf.context().budget == 5_000
    assert SECRET not in pub.context(WHOLE).text


def test_main_reads_everything_always(wf):
    """Operators, verify and recovery need one view that sees all: nobody may lose events by the default one."""
    with pytest.raises(strandline.InvalidInputError, match="reads everything"):
        wf.define_view("main", audiences=["release"])
    assert wf.views()[0].audiences is None


@pytest.mark.parametrize(
    ("audiences", "said"),
    [
        ("release", "not a str"),
        (b"release", "not a bytes"),
        (None, "not a NoneType"),
        (7, "not a int"),
        ([""], "an audience is a name"),
        ([7], "an audience is a name"),
        (["a" * (limits.NAME_CHARS_MAX + 1)], "an audience is a name"),
        ([f"a{n}" for n in range(limits.VIEW_AUDIENCES_MAX + 1)], "at most"),
    ],
)
def test_a_definition_that_can_not_be_is_refused(wf, audiences, said):
    """SPEC §6: nothing is written."""
    with pytest.raises(strandline.InvalidInputError, match=said):
        wf.define_view("publisher", audiences=audiences)
    assert (wf.lineage(), [view.name for view in wf.views()]) == ([], ["main"])


def test_names_budgets_and_numbers_of_views_are_bounded(wf, monkeypatch):
    with pytest.raises(strandline.TenantScopeError):
        wf.define_view(" x ", audiences=[])
    with pytest.raises(strandline.InvalidInputError, match="budget"):
        wf.define_view("x", audiences=[], budget=1)
    monkeypatch.setattr("strandline.engine.define_view.VIEWS_MAX", 3)
    wf.define_view("a", audiences=[])
    wf.define_view("b", audiences=[])
    with pytest.raises(strandline.InvalidInputError, match="3 views"):
        wf.define_view("c", audiences=[])
    wf.define_view("b", audiences=["x"])


@pytest.mark.parametrize(
    "verb",
    [
        lambda view: view.context(),
        lambda view: view.compact(),
        lambda view: view.events(),
        lambda view: view.recall("x"),
        lambda view: view.manifest(),
        lambda view: view.lineage(),
        lambda view: view.cases(),
        lambda view: view.effects(),
        lambda view: view.permits(),
        lambda view: view.views(),
        lambda view: view.recover(),
        lambda view: view.checkpoint({}, 1, context_free=True),
        lambda view: view.guard("go", [strandline.no_open_issue()]),
        lambda view: view.effect("k", "t", {}, lambda: None),
        lambda view: view.rewind(1, **WHO),
        lambda view: view.fork(None, "f", **WHO),
    ],
)
def test_a_view_that_was_never_defined_is_refused_by_each_verb(wf, verb):
    wf.append(talk(1))
    revision = wf.basis()
    with pytest.raises(strandline.TenantScopeError, match="no view 'nobody'"):
        verb(wf.view("nobody"))
    assert wf.basis() == revision


def test_through_a_narrow_view_no_other_is_opened_or_defined(pub):
    for ask in (lambda: pub.view("main"), lambda: pub.define_view("publisher", audiences=["staff"])):
        with pytest.raises(strandline.InvalidInputError, match="'publisher' can't"):
            ask()
    assert pub.view("publisher").view_name == "publisher"


def test_the_same_by_await(tmp_path):
    async def run() -> None:
        async with strandline.aopen(tmp_path / "a.db") as db:
            wf = db.tenant("acme").workflow("run")
            await wf.define_view("publisher", audiences=["release"], budget=BUDGET)
            pub = wf.view("publisher")
            await wf.append([*release(3), staff(SECRET)])
            assert (await pub.recall(SECRET), pub.view_name) == ([], "publisher")
            assert [view.name for view in await wf.views()] == ["main", "publisher"]

    asyncio.run(run())


# ---------------------------------------------------------------------------------------------- other audiences


@pytest.fixture
def narrowed(wf):
    """A view that read what is said to the staff, checkpointed thrice, and does not read it any more."""
    wf.define_view("publisher", audiences=["release", "staff"], budget=BUDGET)
    pub = wf.view("publisher")
    wf.append([*[staff(f"{SECRET} {n} in some words") for n in range(20)], *release(20)])
    assert pub.compact(None, quiet).outcome == "activated"
    kept = [
        pub.checkpoint({"of": "basis", "it": SECRET}, 1, basis=pub.context()),
        pub.checkpoint({"of": "none", "it": SECRET}, 2, context_free=True),
    ]
    old = pub.basis()
    wf.define_view("publisher", audiences=["release"], budget=BUDGET)
    return pub, kept, old


def test_with_other_audiences_a_view_begins_anew(wf, narrowed):
    """I21, I13: with the content of generation 0, under a number that was never used."""
    pub, _, _ = narrowed
    (now,) = pub.views()
    assert (now.audience_version, now.generation, now.watermark) == (2, 2, 0)
    assert SECRET not in repr(pub.context(WHOLE))
    assert list(pub.manifest()) == []
    entry = wf.lineage()[-1]
    assert (entry.kind, entry.generation, entry.detail["summary_no"]) == (LineageKind.DEFINE, 2, 0)
    assert pub.compact(None, quiet).generation == 3
    assert SECRET not in repr(pub.compact(None, quiet))


@pytest.mark.parametrize("generation", [0, 1])
def test_no_revert_brings_an_older_summary_back(wf, narrowed, generation):
    pub, _, _ = narrowed
    pub.compact(None, quiet)
    for verb in (pub.revert, pub.report_regression):
        with pytest.raises(strandline.InvalidInputError, match="other audiences") as refused:
            verb(generation, **WHO)
    assert "generation 2" in refused.value.hint
    assert pub.revert(2, **WHO).watermark == 0


def test_no_recovery_brings_an_older_state_back(wf, narrowed):
    """I15, I21: neither as the state, nor as a stale one, nor one that is context-free."""
    pub, _, _ = narrowed
    found = pub.recover(prior_state=True)
    assert (found.kind, found.state, found.prior_state, found.turn) == ("replay", None, None, None)
    assert SECRET not in repr(found)
    pub.checkpoint({"of": "now"}, 3, basis=pub.context())
    assert pub.recover().state == {"of": "now"}


def test_no_rewind_brings_an_older_summary_back(wf, narrowed):
    pub, kept, _ = narrowed
    for through in (wf, pub):
        with pytest.raises(strandline.InvalidInputError):
            through.rewind(checkpoint_seq=kept[0].lineage_seq, **WHO)
    with pytest.raises(strandline.InvalidInputError, match="no checkpoint"):
        pub.rewind(checkpoint_seq=kept[1].lineage_seq, **WHO)
    wf.rewind(30, **WHO)
    assert pub.views()[0].watermark == 0
    assert pub.recover(prior_state=True).prior_state is None


def test_an_older_basis_is_refused(narrowed):
    pub, _, old = narrowed
    with pytest.raises(strandline.CompactionLineageError):
        pub.checkpoint({}, 3, basis=old)


def test_a_running_attempt_is_fenced(db, wf):
    """I6: what was drafted for other audiences never becomes active, and neither when they are given back."""
    wf.define_view("publisher", audiences=["staff"], budget=BUDGET)
    pub = wf.view("publisher")
    wf.append([staff(f"{SECRET} {n} in some words") for n in range(30)])

    def meanwhile(request):
        wf.define_view("publisher", audiences=["release"])
        wf.define_view("publisher", audiences=["staff"])
        return quiet(request)

    outcome = pub.compact(None, meanwhile)
    assert (outcome.outcome, outcome.generation, outcome.watermark) == ("conflict", 2, 0)
    with transaction(db, wf) as tx:
        assert [candidate.state for candidate in tx.jobs.all_candidates()] == ["void"]


def test_cases_about_older_summaries_are_closed_and_not_shown(wf):
    """I11: they would block the new one, and name what it may not read."""
    wf.define_view("publisher", audiences=["staff"], budget=BUDGET)
    pub = wf.view("publisher")
    wf.append([staff(f"see {SECRET}"), *crowd("staff"), *[staff(f"{n} and some more words here") for n in range(40)]])
    pub.compact(None, quiet)
    with pytest.raises(strandline.SummaryReconciliationError):
        pub.recover(needs=[SECRET])
    (case,) = pub.cases()
    wf.define_view("publisher", audiences=["release"], budget=BUDGET)
    assert pub.cases(include_answered=True) == []
    with pytest.raises(strandline.InvalidInputError, match="no case"):
        pub.case(case.case_id)
    assert [(c.kind, c.answer, c.by) for c in wf.cases(include_answered=True)] == [
        (CaseKind.MISSING_DEPENDENCY, "abandon", "strandline")
    ]
    wf.append(release(40))
    assert pub.compact(None, quiet).outcome == "activated"


# ---------------------------------------------------------------------------------------------- facts


def test_facts_of_two_audiences_are_two_facts(wf, pub):
    """I10: a constraint is not replaced by one that its readers can't see, and is no anchor of theirs."""
    wf.define_view("staff", audiences=["staff"], budget=BUDGET)
    wf.append(strandline.constraint("deploy", "Never on Fridays.", audience="release"))
    wf.append(strandline.constraint("deploy", "Never at all.", audience="staff"))
    wf.append([*talk(40)])
    assert anchors(pub) == {"Never on Fridays."}
    assert anchors(wf.view("staff")) == {"Never at all."}
    assert anchors(wf) == {"Never on Fridays.", "Never at all."}


def test_an_end_reaches_the_facts_of_its_audience(db, wf):
    """What binds everyone is not lifted in private; what is said to everyone ends it for all."""
    wf.append([strandline.constraint("a", "all"), strandline.constraint("a", "red", audience="red")])
    with pytest.raises(strandline.InvalidInputError, match="for the audience 'blue'"):
        wf.append(strandline.lift_constraint("a", audience="blue"))
    wf.append(strandline.lift_constraint("a", audience="red"))
    assert {fact[4] for fact in standing(db, wf)} == {1}
    wf.append(strandline.constraint("a", "red again", audience="red"))
    wf.append(strandline.lift_constraint("a"))
    assert standing(db, wf) == set()


def test_a_revocation_ends_every_grant_whoever_reads_it(db, wf):
    wf.append([strandline.approval("ship", "y", granter="ann", audience=name) for name in ("all", "red", "blue")])
    wf.append(strandline.approval("ship", "y", granter="ann", audience="red"))
    assert len(standing(db, wf)) == 3
    wf.append(strandline.revoke("ship", audience="staff"))
    assert {(fact[0], fact[4]) for fact in standing(db, wf)} == {("revocation", 5)}


def test_pins_are_kept_by_audience(db, wf, pub):
    wf.append([strandline.note("door-77"), strandline.pin("door-77"), strandline.pin("door-77", audience="staff")])
    wf.append(strandline.unpin("door-77", audience="staff"))
    assert {fact[4] for fact in standing(db, wf)} == {2}
    wf.append(talk(40))
    assert len(anchors(pub)) == 1


def test_a_rewind_lifts_again_what_was_lifted_of_each_audience(db, wf):
    """C22: also where one lift for everyone ended several."""
    wf.append([strandline.constraint("a", "all"), strandline.constraint("a", "red", audience="red")])
    wf.append(strandline.lift_constraint("a", audience="red"))
    wf.append(strandline.lift_constraint("a"))
    done = wf.rewind(2, **WHO)
    assert [old for _, old in done.restated] == [3, 4]
    assert standing(db, wf) == set()


def test_an_answer_that_names_its_audience_answers_a_call_of_it(db, wf):
    """Two agents may give their calls the same id."""
    wf.append([strandline.tool_call("c", "scan", {}, audience=name) for name in ("red", "blue")])
    wf.append(strandline.tool_result("c", "of red", audience="red"))
    wf.append(strandline.tool_result("c", "of blue"))
    assert [(event.audience, event.call_seq) for event in log_of(db, wf)[2:]] == [("red", 1), ("blue", 2)]


def test_an_empty_audience_is_refused(wf):
    """It would be everyone's."""
    event = strandline.NewEvent(kind=strandline.EventKind.NOTE, body="x", audience="")
    with pytest.raises(strandline.InvalidInputError, match="empty audience"):
        wf.append(event)


# ---------------------------------------------------------------------------------------------- calls and watermark


def test_a_hidden_open_call_holds_no_watermark_and_is_not_named(wf, pub):
    """I8, I21: one that the view reads does, and is."""
    wf.append([strandline.tool_call("hush", "vault", {}, audience="staff"), *release(40)])
    assert pub.context(WHOLE).open_calls == ()
    assert pub.compact(None, quiet).watermark > 1
    wf.append([strandline.tool_call("seen", "build", {}, audience="release"), *release(40, 100)])
    with pytest.raises(strandline.ContextOverflowError, match="'seen'"):
        pub.compact(None, quiet)


def test_the_watermark_may_stand_at_an_event_that_is_not_read(wf, pub):
    wf.append([*release(5), staff(SECRET)])
    assert pub.compact(None, quiet, through=6).watermark == 6
    wf.append(staff(SECRET))
    nothing = pub.compact(None, quiet, through=7)
    assert (nothing.outcome, nothing.reason) == ("nothing_to_do", "it reads no event that is not covered yet")


def test_an_overdue_call_is_closed_by_a_view_that_reads_it(tmp_path):
    """I8: its case names it, so it is not opened for one that does not."""
    clock = VirtualClock()
    with open_store("memory", tmp_path, clock=clock) as db:
        wf = new_workflow(db)
        wf.define_view("publisher", audiences=["release"], budget=BUDGET)
        pub = wf.view("publisher")
        wf.append([strandline.tool_call("c", "vault", {}, audience="staff"), strandline.tool_call("c", "build", {})])
        clock.advance(OPEN_CALL_S_MAX + 1)
        wf.append(release(3))
        pub.compact(None, quiet)
        assert [case.detail["call_seq"] for case in pub.cases()] == [2]
        assert [event.call_seq for event in log_of(db, wf) if event.kind == "abandoned"] == [2]
        wf.compact(None, quiet)
        assert {case.detail["call_seq"] for case in wf.cases()} == {1, 2}
        assert len(pub.cases()) == 1
        assert [event.audience for event in log_of(db, wf) if event.kind == "abandoned"] == ["all", "staff"]


def test_hidden_calls_of_unknown_outcome_take_no_place_among_the_anchors(wf, pub):
    """I8: the newest of those that the view reads are its anchors, and are counted when it is planned."""
    many = range(UNKNOWN_CALL_ANCHORS_MAX)
    wf.append([strandline.tool_call(f"seen-{n}", "build", {}, audience="release") for n in many])
    wf.append([strandline.abandoned(f"seen-{n}") for n in many])
    wf.append([strandline.tool_call(f"hush-{n}", "vault", {}, audience="staff") for n in many])
    wf.append([strandline.abandoned(f"hush-{n}") for n in many])
    wf.append(release(40))
    outcome = pub.compact(1_200, quiet)
    assert {anchor.key.subject for anchor in outcome.summary.anchors} == {f"seen-{n}" for n in many}
    assert outcome.tokens_after <= 1_200


# ---------------------------------------------------------------------------------------------- references


def test_references_are_accounted_for_by_what_the_view_reads(db, wf, pub):
    """I9: hidden events give most numbers, and hold the same references later; `verify` counts again."""
    for turn in range(4):
        wf.append([staff(f"{SECRET} build-{n:04d} /srv/{turn}/{n}.log hidden") for n in range(1, 30)])
        wf.append(release(30, 1 + 20 * turn))
        wf.append([staff(f"once more build-{n:04d}") for n in range(1, 100)])
        outcome = pub.compact(None, quiet)
        assert (outcome.outcome, outcome.refs_unaccounted) == ("activated", 0)
        assert wf.verify().problems == ()
    readable = {event.seq for event in pub.events()}
    assert len(pub.manifest()) > 10
    assert {entry.last_seq for entry in pub.manifest()} <= readable
    assert all(entry.ref.startswith("build-") for entry in pub.manifest())
    covered = [event for event in pub.events() if event.seq <= outcome.watermark]
    assert outcome.refs_seen == len({ref for event in covered for ref in event.extracted})


def test_verify_counts_again_for_a_narrow_view(tmp_path, monkeypatch):
    """I9: a manifest that lacks an entry is found."""

    def one_lost(**arguments):
        change = change_manifest(**arguments)
        lost = next(entry for entry in change.changes if entry.dropped)
        return replace(change, changes=tuple(entry for entry in change.changes if entry is not lost))

    monkeypatch.setattr("strandline.engine.assemble.change_manifest", one_lost)
    with open_store("memory", tmp_path) as db:
        wf = new_workflow(db)
        wf.define_view("publisher", audiences=["release"], budget=BUDGET)
        wf.append([staff("build-9999"), *crowd("release"), *release(60)])
        wf.view("publisher").compact(None, quiet)
        assert any("unaccounted" in problem.reason for problem in wf.verify().problems)


def test_what_only_hidden_events_hold_is_as_unknown_as_what_none_holds(wf, pub):
    """I11, I21: the same error, no sighting, no case; a draft that names it made it up."""
    wf.append([staff(f"see {SECRET} and {SECRET}-b"), *release(40)])
    errors = []
    for need in (SECRET, "vault-9999"):
        for ask in (lambda need=need: pub.context(needs=[need]), lambda need=need: pub.recover(needs=[need])):
            with pytest.raises(strandline.SummaryReconciliationError) as error:
                ask()
            errors.append((str(error.value).replace(need, "?"), error.value.last_known, error.value.case_id))
    assert errors[:2] == errors[2:]
    assert {error[1:] for error in errors} == {(None, None)}
    made_up = pub.compact(None, lambda request: f"{quiet(request)}\nAll is in {SECRET}.", fallback=False)
    assert made_up.outcome == "quarantined"
    assert wf.cases()[0].view == "publisher"


def test_no_epoch_of_a_hidden_divergence_is_told(db, wf, pub):
    """I17: a divergence marks all later events; a view that may not read it is not told."""
    wf.append([staff("old-1111"), staff("new-2222"), *crowd("staff"), *talk(40)])
    wf.compact(BUDGET, quiet)
    with pytest.raises(strandline.SummaryReconciliationError) as error:
        wf.recover(needs=["old-1111"])
    wf.reconcile(error.value.case_id, strandline.AcceptDivergence("old-1111", "new-2222"), **WHO)
    wf.append(release(2))
    assert {event.epoch for event in pub.events()} == {0}
    assert wf.events()[-1].epoch > 0
    assert pub.lineage() == [entry for entry in wf.lineage() if entry.view == "publisher"]


# ---------------------------------------------------------------------------------------------- decisions


def test_cases_of_other_views_are_not_told(wf, pub):
    wf.append([staff(f"see {SECRET}"), *crowd("staff"), *talk(60)])
    wf.compact(BUDGET, quiet)
    with pytest.raises(strandline.SummaryReconciliationError) as error:
        wf.recover(needs=[SECRET])
    case_id = error.value.case_id
    assert (pub.cases(), len(wf.cases())) == ([], 1)
    for ask in (
        lambda: pub.case(case_id),
        lambda: pub.reconcile(case_id, strandline.Abandon(), **WHO),
    ):
        with pytest.raises(strandline.InvalidInputError, match="no case"):
            ask()
    assert wf.reconcile(case_id, strandline.Abandon(), **WHO).answer == "abandon"


def test_a_view_answers_its_own_cases(wf, pub):
    wf.append([strandline.note("see door-77", audience="release"), *crowd("release"), *release(60)])
    pub.compact(None, quiet)
    with pytest.raises(strandline.SummaryReconciliationError) as error:
        pub.recover(needs=["door-77"])
    assert error.value.last_known.seq == 1
    assert pub.reconcile(error.value.case_id, strandline.ReplayFromExact(), **WHO).done["events"] == [1]
    assert pub.recover(needs=["door-77"]).kind == "replay"


def test_the_lineage_tells_a_view_of_itself(wf, pub):
    wf.append([*release(40), staff(SECRET)])
    wf.compact(BUDGET, quiet)
    pub.compact(None, quiet)
    wf.checkpoint({}, 1, context_free=True)
    pub.checkpoint({}, 1, context_free=True)
    wf.append(strandline.constraint("a", "x", audience="staff"))
    wf.append(strandline.lift_constraint("a", audience="staff"))
    wf.rewind(40, by="bob of staff", why=f"because of {SECRET}")
    told = pub.lineage()
    assert [entry.kind for entry in told] == ["define", "compaction", "checkpoint", "rewind"]
    assert (told[-1].by, told[-1].why) == (None, None)
    assert not told[-1].detail.keys() & {"events", "restated", "fenced"}
    assert [entry.kind for entry in wf.lineage()].count("rewind") == 2


def test_rewind_and_fork_answer_a_view_with_what_is_its_own(wf, pub):
    wf.append([*release(3), *[staff(f"{n}") for n in range(5)], strandline.revoke("x", audience="staff")])
    forked = pub.fork(None, f"{wf.name}-f", **WHO)
    assert (forked.facts, forked.watermarks) == (0, {"publisher": 0})
    done = pub.rewind(2, **WHO)
    assert (done.events, done.generations, done.restated) == (1, {"publisher": 1}, ())
    assert wf.views()[0].generation == 1


def test_a_revert_lists_what_the_view_may_read(wf, pub):
    """C17: neither listed nor counted is what was made from its summary, and said to others."""
    wf.append(release(40))
    pub.compact(None, quiet)
    basis = pub.basis()
    wf.append([staff("made from it"), strandline.artifact("build", "x", audience="release")], basis=basis)
    done = pub.revert(0, **WHO)
    assert [(found.kind, found.name) for found in done.acted_on] == [("artifact", "build")]
    assert done.acted_on_count == 1


def test_a_basis_of_another_view_is_refused(wf, pub):
    wf.append(release(1))
    for ask in (
        lambda: pub.append(strandline.note("x"), basis=wf.context()),
        lambda: pub.checkpoint({}, 1, basis=wf.basis()),
        lambda: pub.guard("go", [strandline.no_open_issue()], basis=wf.basis()),
    ):
        with pytest.raises(strandline.InvalidInputError, match="given to view 'publisher'"):
            ask()


# ---------------------------------------------------------------------------------------------- checkpoints


def test_a_recovery_takes_checkpoints_of_its_own_view(wf, pub):
    """I15, I21: a state was made from what its view reads; `main` may take those of each."""
    wf.append([*release(2), staff(SECRET)])
    wf.checkpoint({"knows": SECRET}, 1, basis=wf.context(), name="planner")
    wf.checkpoint({"knows": SECRET}, 2, context_free=True)
    for name in ("planner", "main"):
        found = pub.recover(name=name, prior_state=True)
        assert (found.kind, found.state, found.prior_state) == ("replay", None, None)
        assert SECRET not in repr(found)
    mine = pub.checkpoint({"at": "review"}, 3, basis=pub.context())
    assert (mine.name, [seen.view for seen in mine.views]) == ("publisher", ["publisher"])
    assert pub.recover().state == {"at": "review"}
    assert wf.recover(name="publisher").context.view == "publisher"
    assert wf.recover(name="planner").state == {"knows": SECRET}


def test_a_name_of_checkpoints_is_that_of_one_view(wf, pub):
    wf.append(release(1))
    wf.checkpoint({}, 1, context_free=True, name="planner")
    pub.checkpoint({}, 1, context_free=True)
    for ask in (
        lambda: pub.checkpoint({}, 1, basis=pub.basis(), name="planner"),
        lambda: pub.register_checkpoint("x", "sha256:" + "0" * 64, 1, context_free=True, name="planner"),
        lambda: wf.checkpoint({}, 1, basis=wf.basis(), name="publisher"),
    ):
        with pytest.raises(strandline.InvalidInputError, match="kept for another view"):
            ask()


def test_a_rewind_moves_a_main_that_was_never_written_to(wf, pub):
    """C22: its old contexts are no basis any more, also where only another view has a row of its own."""
    wf.append(release(5))
    basis = wf.basis()
    wf.rewind(2, **WHO)
    assert {view.name: view.generation for view in wf.views()} == {"main": 1, "publisher": 1}
    with pytest.raises(strandline.CompactionLineageError):
        wf.checkpoint({}, 1, basis=basis)


def test_a_fork_takes_views_over_and_goes_its_own_way(db, wf, pub):
    wf.append([*release(40), staff(SECRET)])
    pub.compact(None, quiet)
    wf.define_view("publisher", audiences=["staff"], budget=BUDGET)
    wf.define_view("publisher", audiences=["release"], budget=BUDGET)
    pub.compact(None, quiet)
    wf.fork(None, f"{wf.name}-f", **WHO)
    fork = db.tenant("acme").workflow(f"{wf.name}-f")
    theirs = fork.view("publisher")
    assert (theirs.views()[0].audiences, theirs.views()[0].generation) == (frozenset({"release"}), 1)
    assert theirs.recall(SECRET) == []
    fork.define_view("publisher", audiences=["x"])
    assert (theirs.views()[0].audience_version, theirs.views()[0].generation) == (2, 2)
    assert pub.views()[0].audience_version == 3
    with pytest.raises(strandline.InvalidInputError, match="other audiences"):
        theirs.revert(1, **WHO)
    assert fork.verify().problems == ()


# ---------------------------------------------------------------------------------------------- actions


def test_a_guard_decides_on_the_facts_of_every_audience(wf, pub):
    """I20: a hidden issue or revocation denies; I21: and is not told."""
    pub.append(strandline.approval("ship", "yes", granter="ann", audience="release"))
    permit = pub.guard("ship", [strandline.approved("ship"), strandline.no_open_issue()])
    assert [fact.holder for fact in permit.facts if fact.seq] == ["ann"]
    wf.append(strandline.issue("leak", "the vault is open", audience="staff"))
    with pytest.raises(strandline.ActionDeniedError) as denied:
        pub.guard("ship", [strandline.approved("ship"), strandline.no_open_issue()])
    assert denied.value.reasons == ("facts that this view may not read speak against it",)
    with pytest.raises(strandline.ActionDeniedError, match="'leak'"):
        wf.guard("ship", [strandline.no_open_issue()])
    assert {permit.state.value for permit in pub.permits()} == {"granted", "denied"}
    assert "leak" not in repr(pub.permits())
    assert len(wf.permits()) == 3
    with pytest.raises(strandline.ActionDeniedError) as refused:
        pub.effect("ship-1", "ship", {}, lambda: "done", permit=permit)
    assert "leak" not in str(refused.value)
    assert "leak" not in repr(pub.permits())


def test_a_permit_does_not_name_who_granted_it_elsewhere(wf, pub):
    """I20: a hidden approval counts; I21: nobody is told whose it was."""
    wf.append(strandline.approval("ship", "yes", granter="boss", audience="staff"))
    permit = pub.guard("ship", [strandline.approved("ship")])
    assert "boss" not in repr((permit, pub.permits()))
    assert "boss" in repr(wf.permits())
    assert pub.effect("ship-1", "ship", {}, lambda: "done", permit=permit).result == "done"


def test_an_effect_is_told_to_whom_its_call_is_told(db, wf, pub):
    """I21: its call has the audience that it is given, and its result inherits it."""
    done = wf.effect("rotate", "rotate_key", {"vault": SECRET}, lambda: f"new {SECRET}", audience="staff")
    assert {event.audience for event in log_of(db, wf)} == {"staff"}
    assert (pub.effects(), len(wf.effects())) == ([], 1)
    with pytest.raises(strandline.InvalidInputError, match="no effect"):
        pub.effect_args("rotate")
    ran = []
    with pytest.raises(strandline.EffectUnknownError, match="may not read") as refused:
        pub.effect("rotate", "rotate_key", {"vault": SECRET}, lambda: ran.append(1))
    assert (ran, SECRET in str(refused.value)) == ([], False)
    assert wf.effect("rotate", "rotate_key", {"vault": SECRET}, lambda: ran.append(1)).result == done.result


def test_a_likely_repeat_is_not_answered_with_what_is_hidden(db, wf, pub):
    """I18, I21: it is not run again, and not told; to who may read it, it is said again to the same."""
    wf.append([strandline.tool_call("c", "mail", {"to": "x"}, audience="staff"), strandline.tool_result("c", SECRET)])
    wf.recover()
    ran = []
    with pytest.raises(strandline.EffectUnknownError, match="may not read") as refused:
        pub.effect("mail-1", "mail", {"to": "x"}, lambda: ran.append(1))
    assert (ran, SECRET in repr(vars(refused.value))) == ([], False)
    assert wf.effect("mail-1", "mail", {"to": "x"}, lambda: ran.append(1)).result == SECRET
    assert {event.audience for event in log_of(db, wf)} == {"staff"}
    with pytest.raises(strandline.EffectUnknownError, match="may not read"):
        pub.effect("mail-1", "mail", {"to": "x"}, lambda: ran.append(1))


def test_a_copy_of_an_effect_on_another_branch_has_its_audience(db, wf):
    wf.append(talk(1))
    at = wf.basis().revision
    wf.effect("rotate", "rotate_key", {}, lambda: SECRET, audience="staff")
    wf.rewind(at, **WHO)
    assert wf.effect("rotate", "rotate_key", {}, lambda: "again").result == SECRET
    assert {event.audience for event in log_of(db, wf)[at:]} == {"staff"}


# ---------------------------------------------------------------------------------------------- the rest


def test_another_tools_summaries_are_not_compared_through_a_narrow_view(pub):
    """They speak of everything."""
    with pytest.raises(strandline.InvalidInputError, match="can't be compared"):
        pub.compare()


def test_a_search_finds_what_the_view_may_read(wf, pub):
    """C4: neither events nor counts of others."""
    wf.append([staff(f"the vault is open {SECRET}"), strandline.note("the vault is closed", audience="release")])
    assert [hit.event.text for hit in pub.search("vault")] == ["the vault is closed"]
    assert (pub.search("open"), len(wf.search("vault"))) == ([], 2)


def test_due_compactions_of_other_views_are_not_told(wf, pub):
    wf.append(release(3))
    wf.compact_later()
    assert pub.due() == []
    pub.compact_later()
    assert ([due.view for due in pub.due()], len(wf.due())) == (["publisher"], 2)


def test_a_narrow_view_is_told_whether_all_is_whole(tmp_path):
    import sqlite3

    with open_store("sqlite", tmp_path) as db:
        wf = new_workflow(db)
        wf.define_view("publisher", audiences=["release"], budget=BUDGET)
        wf.append([*release(40), staff(SECRET)])
        assert wf.view("publisher").verify().ok
    with sqlite3.connect(tmp_path / "store.db") as raw:
        raw.execute("DROP TRIGGER event_is_never_changed")
        raw.execute("UPDATE event SET body = x'00' WHERE seq = 41")
    with open_store("sqlite", tmp_path) as db:
        again = db.tenant("acme").workflow(wf.name)
        (problem,) = again.view("publisher").verify().problems
        assert (problem.place, "through the view `main`" in problem.reason) == ("", True)
        assert any("41" in problem.place for problem in again.verify().problems)


# ---------------------------------------------------------------------------------------------- what others do with it


def granted_to(wf, pub) -> strandline.Permit:
    wf.append([strandline.message("user", "Publish."), strandline.approval("publish", "Yes.", granter="ada")])
    return pub.guard("publish", [strandline.no_open_issue(), strandline.approved("publish")])


def test_a_permit_of_a_view_that_is_refused_to_another_does_not_tell_why(wf, pub):
    permit = granted_to(wf, pub)
    wf.append(strandline.issue(SECRET, "It leaks.", audience="staff"))
    with pytest.raises(strandline.ActionDeniedError, match=SECRET):
        wf.effect(f"hide-{SECRET}", "publish", {}, lambda: 1, permit=permit, audience="staff")
    assert SECRET not in repr(pub.permits())
    assert SECRET in repr(wf.permits())


def test_a_permit_of_a_view_does_not_tell_which_hidden_effect_used_it(wf, pub):
    permit = granted_to(wf, pub)
    wf.effect(f"hide-{SECRET}", "publish", {}, lambda: 1, permit=permit, audience="staff")
    with pytest.raises(strandline.ActionDeniedError, match="the permit was used") as denied:
        pub.effect("mine", "publish", {}, lambda: 2, permit=permit)
    assert SECRET not in f"{denied.value} {denied.value.reasons} {pub.permits()}"
    assert SECRET in repr(wf.permits())


def test_a_permit_of_a_view_tells_which_effect_of_its_own_used_it(wf, pub):
    pub.effect("mine", "publish", {}, lambda: 1, permit=granted_to(wf, pub))
    assert [permit.consumed_by for permit in pub.permits()] == ["mine"]


def test_a_denial_asked_for_a_view_by_who_reads_more_does_not_tell_it_why(wf, pub):
    wf.append(strandline.issue(SECRET, "It leaks.", audience="staff"))
    with pytest.raises(strandline.ActionDeniedError, match=SECRET):
        wf.guard("publish", [strandline.no_open_issue()], basis=pub.context())
    assert [permit.reasons for permit in pub.permits()] == [("facts that this view may not read speak against it",)]


@pytest.mark.parametrize(("by", "name"), [("publisher", "main"), ("main", "publisher")])
def test_no_view_takes_the_name_under_which_another_keeps_its_checkpoints(wf, pub, by, name):
    taker, owner = (pub, wf) if by == "publisher" else (wf, pub)
    wf.append(release(1))
    with pytest.raises(strandline.InvalidInputError, match="are kept for another view"):
        taker.checkpoint({"of": by}, turn=1, context_free=True, name=name)
    owner.checkpoint({"of": name}, turn=1, basis=owner.context())
    assert owner.recover().state == {"of": name}


def test_a_permit_from_before_other_audiences_is_not_used(wf, pub):
    permit = granted_to(wf, pub)
    wf.define_view("publisher", audiences=["staff"])
    for through in (pub, wf):
        with pytest.raises(strandline.ActionDeniedError, match="read other audiences"):
            through.effect("mine", "publish", {}, lambda: 1, permit=permit)
