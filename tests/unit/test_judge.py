"""Law (C13): a judge may refuse a draft that the rules let pass, and never lets one pass that they refuse; what it is,
belongs to the job. The rules judge any text, also on the command line.

Checked through whole compactions of a store in memory, with judges that are functions, under both drivers.
"""

import asyncio
import json

import pytest

import strandline as sl
from strandline.cli.app import app
from strandline.limits import JUDGED_FACTS_MAX

RULE = "Never deploy on Fridays."


def workflow(db):
    wf = db.tenant("acme").workflow("w")
    wf.append([sl.message("user", f"Row {n} of the parser is done.") for n in range(200)])
    return wf


@pytest.fixture
def wf():
    with sl.open(":memory:") as db:
        yield workflow(db)


def judge_of(function, **rest):
    return sl.CallableJudge(function, name="j", **rest)


def test_a_judge_is_asked_about_what_the_rules_let_pass(wf):
    asked = []
    out = wf.compact(budget=1_000, judge=judge_of(lambda request: asked.append(request) or []))
    assert out.outcome == "activated"
    (request,) = asked
    assert request.draft.text
    assert request.events[0].text == "Row 0 of the parser is done."


def test_what_a_judge_objects_to_is_told_and_quarantined(wf):
    told = []

    def summarize(request):
        told.append(request.violations)
        return "The parser is done."

    judge = judge_of(lambda request: [sl.Objection(reason="too short", sentence=request.draft.text), "dull"])
    out = wf.compact(budget=1_000, summarizer=summarize, judge=judge, fallback=False)
    assert out.outcome == "quarantined"
    assert wf.context(budget=100_000).generation == 0
    assert any("judge_objects: j: too short of 'The parser is done.'" in line for line in told[1])
    assert {violation.rule for violation in out.attempts[0].verdict.violations} == {"judge_objects"}


def test_the_last_resort_is_judged_too(wf):
    out = wf.compact(budget=1_000, judge=judge_of(lambda request: ["no"]))
    assert out.outcome == "quarantined"


def test_a_judge_is_not_asked_about_what_the_rules_refuse(wf):
    asked = []
    judge = judge_of(lambda request: asked.append(request.draft.text) or [])
    wf.compact(budget=1_000, summarizer=lambda request: "See bucket-7f3a91.", judge=judge, fallback=False)
    assert asked == []


def test_with_another_judge_it_is_another_job(wf):
    refused = wf.compact(budget=1_000, judge=judge_of(lambda request: ["no"]))
    again = wf.compact(budget=1_000, judge=judge_of(lambda request: []))
    assert again.outcome == refused.outcome  # the same job: it was refused
    assert wf.compact(budget=1_000, judge=judge_of(lambda request: [], version="2")).outcome == "activated"


@pytest.mark.parametrize("error", [TimeoutError("slow"), ConnectionError("gone")])
def test_a_judge_that_fails_in_passing_is_asked_again(wf, error):
    answers = [error, None]

    def look(request):
        answer = answers.pop(0)
        if answer is not None:
            raise answer
        return []

    assert wf.compact(budget=1_000, judge=judge_of(look)).outcome == "activated"


def test_a_fault_of_a_judge_passes_as_it_is(wf):
    def look(request):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        wf.compact(budget=1_000, judge=judge_of(look))
    assert wf.context(budget=100_000).generation == 0


@pytest.mark.parametrize("answer", [None, "no", [1], 7])
def test_what_is_no_list_of_objections_is_an_error_and_activates_nothing(wf, answer):
    with pytest.raises(sl.InvalidInputError, match="judge 'j' gave"):
        wf.compact(budget=1_000, judge=judge_of(lambda request: answer))
    assert wf.context(budget=100_000).generation == 0


def test_a_judge_may_be_awaited(wf):
    async def look(request):
        await asyncio.sleep(0)
        return ["no"]

    assert wf.compact(budget=1_000, judge=judge_of(look)).outcome == "quarantined"


def test_under_an_event_loop_it_is_the_same():
    async def look(request):
        return ["no"]

    async def main():
        async with sl.aopen(":memory:") as db:
            wf = db.tenant("acme").workflow("w")
            await wf.append([sl.message("user", f"Row {n} of the parser is done.") for n in range(200)])
            refused = await wf.compact(budget=1_000, judge=judge_of(look))
            passed = await wf.compact(budget=1_000, judge=judge_of(lambda request: [], version="2"))
            return refused.outcome, passed.outcome

    assert asyncio.run(main()) == ("quarantined", "activated")


@pytest.mark.parametrize("thing", ["j", 7, sl.CallableJudge, lambda request: []])
def test_what_is_no_judge_is_refused(wf, thing):
    with pytest.raises(sl.InvalidInputError, match="judge"):
        wf.compact(budget=1_000, judge=thing)


def test_a_verdict_says_what_became_of_the_facts(wf):
    wf.append(sl.constraint("friday", RULE))
    wf.append([sl.message("user", "The docs are next.") for _ in range(200)])
    out = wf.compact(budget=1_000, summarizer=lambda request: "The parser is done. Deploys on Fridays are forbidden.")
    (claim,) = out.attempts[-1].verdict.claims
    assert (claim.status, claim.fact) == (sl.ClaimStatus.PARAPHRASED, "constraint friday")
    out = wf.compact(budget=900, summarizer=lambda request: "Deploys on Fridays are fine.", fallback=False)
    assert out.outcome == "quarantined"
    assert out.attempts[-1].verdict.violations[0].fact == "constraint friday"


# ------------------------------------------------------------------------------------------------ by itself


def test_the_rules_judge_any_text():
    judgement = sl.judge([RULE, sl.constraint("cap", "The cap is $500.")], "Deploys on Fridays are forbidden.")
    assert [claim.status for claim in judgement.claims] == [sl.ClaimStatus.PARAPHRASED, sl.ClaimStatus.DROPPED]
    assert not judgement.accepted


@pytest.mark.parametrize(
    ("facts", "summary", "tail"),
    [
        (RULE, "x", []),
        ([RULE], "x", "y"),
        ([7], "x", []),
        ([" "], "x", []),
        ([RULE], None, []),
        ([RULE], "x", [b"y"]),
        ([RULE], "x" * 5_000_000, []),
        ([RULE] * (JUDGED_FACTS_MAX + 1), "x", []),
        ([sl.tool_call("c1", "t", {})], "x", []),
    ],
)
def test_what_is_no_fact_and_no_text_is_refused(facts, summary, tail):
    with pytest.raises(sl.InvalidInputError):
        sl.judge(facts, summary, tail)


def run(arguments, capsys):
    with pytest.raises(SystemExit) as exited:
        app(arguments, prog_name="strandline")
    return exited.value.code, capsys.readouterr()


def test_check_on_the_command_line(tmp_path, capsys):
    summary, facts, tail = tmp_path / "s.md", tmp_path / "f.txt", tmp_path / "t.txt"
    summary.write_text("Deploys on Fridays are forbidden.\n")
    facts.write_text(f"{RULE}\n\nThe cap is $500.\n")
    tail.write_text("The cap is $500.\n")
    code, told = run(["check", str(summary), "--facts", str(facts), "--tail", str(tail), "--json"], capsys)
    assert code == 0
    assert [claim["status"] for claim in json.loads(told.out)["claims"]] == ["paraphrased", "preserved"]
    code, told = run(["check", str(summary), "--facts", str(facts)], capsys)
    assert code == 5
    assert "dropped" in told.out
    code, told = run(["check", str(summary), "--fact", "The cap is $500.", "--json"], capsys)
    assert (code, json.loads(told.out)["error"]["type"]) == (5, "Judgement")
    for arguments in ([str(summary)], [str(tmp_path / "none"), "--fact", RULE]):
        code, told = run(["check", *arguments, "--json"], capsys)
        assert (code, json.loads(told.out)["error"]["type"]) == (1, "InvalidInputError")
