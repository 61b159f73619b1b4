"""Law (C22, I18): forks and their parent share one ledger of effects: what one of them did, none does again, whatever
was forked or rewound; and the result stands in the log of whoever asked for it.
"""

import pytest

import strandline
from strandline import Abandon, EffectDone, EffectUnknownError
from tests.unit.test_effect import World, cases, states
from tests.unit.test_engine_stage import new_workflow, talk


@pytest.fixture
def family(db):
    """A workflow with an effect, two forks of it, and a fork of the first."""
    wf = new_workflow(db)
    wf.append(talk(2))
    wf.effect("before", "t", {"i": 1}, World("before").run)

    def fork(of, name):
        of.fork(of.basis().revision, name, by="ann", why="another way")
        return db.tenant("acme").workflow(name)

    left, right = fork(wf, f"{wf.name}-left"), fork(wf, f"{wf.name}-right")
    members = [wf, left, right, fork(left, f"{wf.name}-left-left")]
    yield members
    for member in members:
        assert member.verify().ok


def kinds_at(wf, outcome):
    return [wf.events(seq, seq)[0].kind for seq in (outcome.call_seq, outcome.result_seq)]


def test_what_one_did_the_others_are_given(family):
    world = World("made")
    for member in family:  # before the forks: it stands in what they share
        revision = member.basis().revision
        assert member.effect("before", "t", {"i": 1}, world.run).result == "before"
        assert member.basis().revision == revision
    assert family[1].effect("k", "t", {"i": 2}, world.run).kind == "ran"
    for member in family:
        outcomes = [member.effect("k", "t", {"i": 2}, world.run) for _ in range(2)]
        assert [outcome.result for outcome in outcomes] == ["made", "made"]
        assert outcomes[0].result_seq == outcomes[1].result_seq
        assert kinds_at(member, outcomes[0]) == ["tool_call", "tool_result"]
        assert member.context().open_calls == ()
    assert world.runs == 1
    assert all(member.effects() == family[0].effects() for member in family)


def test_what_nobody_knows_none_of_them_runs_and_one_answer_is_for_all(family):
    world = World()
    world.error = TimeoutError()
    with pytest.raises(TimeoutError):
        family[3].effect("u", "t", {"i": 3}, world.run)
    for member in family:
        with pytest.raises(EffectUnknownError):
            member.effect("u", "t", {"i": 3}, world.run)
        assert len(cases(member)) == 1
    (case,) = cases(family[2])
    family[2].reconcile(case.case_id, EffectDone("told"), by="ann", why="looked")
    for member in family:
        assert member.effect("u", "t", {"i": 3}, world.run).result == "told"
    (case,) = cases(family[0])
    with pytest.raises(strandline.InvalidInputError, match="not unknown"):
        family[0].reconcile(case.case_id, EffectDone("other"), by="ann", why="looked")
    family[0].reconcile(case.case_id, Abandon(), by="ann", why="known already")
    assert world.runs == 1


def test_a_rewind_in_a_fork_takes_no_effect_back(family):
    world = World("made")
    fork = family[1]
    revision = fork.basis().revision
    fork.effect("k", "t", {"i": 4}, world.run)
    fork.rewind(revision, by="ann", why="wrong way")
    outcome = fork.effect("k", "t", {"i": 4}, world.run)
    assert (outcome.kind, outcome.result, world.runs) == ("replayed", "made", 1)
    assert kinds_at(fork, outcome) == ["tool_call", "tool_result"]
    assert set(states(fork)) == {"before", "k"}


def test_a_repeat_in_a_fork_of_what_it_did_itself_is_noticed(family):
    world = World("made")
    fork = family[2]
    fork.checkpoint({}, 1, basis=fork.context())
    fork.effect("first", "t", {"q": 1}, world.run)
    fork.recover()
    assert fork.effect("second", "t", {"q": 1, "nonce": 7}, world.run).kind == "likely_repeat"
    assert family[1].effect("third", "t", {"q": 1}, world.run).kind == "ran"  # it knows of no recovery
    assert world.runs == 2
