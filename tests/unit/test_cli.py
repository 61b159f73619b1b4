"""The command line's contracts: the JSON that others rely on, exit codes, and what people read.

In process, with typer's runner; streams, signals and pipes are in tests/integration/test_cli_process.py.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

import strandline
from strandline import errors
from strandline.cli.app import app
from strandline.cli.failures import describe, exit_code
from strandline.cli.output import count, facts_of, fitted, plain, printable, span, table_of, to_json
from strandline.cli.recover import why_replayed
from strandline.model.candidate import Attempt, AttemptState
from strandline.model.lineage import LineageEntry, LineageKind
from strandline.model.outcome import CompactionOutcome, CompactionResult
from strandline.stores.sqlite.store import SqliteStore

DEMO = Path(__file__).parents[2] / "demo" / "transcripts" / "api-tests.jsonl"
Run = Callable[..., Result]


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


@pytest.fixture
def run(store: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("STRANDLINE_DEBUG", raising=False)
    monkeypatch.setenv("STRANDLINE_STORE", str(store))

    def invoke(*args: object, stdin: str | bytes | None = None) -> Result:
        return CliRunner().invoke(app, [str(arg) for arg in args], input=stdin)

    return invoke


@pytest.fixture
def answer(run: Run) -> Callable[..., dict[str, Any]]:
    """Run with --json; stdout must be one JSON object on one line, and the exit code the one expected."""

    def invoke(*args: object, code: int = 0, stdin: str | bytes | None = None) -> dict[str, Any]:
        first, *rest = args
        result = run(first, "--json", *rest, stdin=stdin)
        assert result.exit_code == code, result.output[:500]
        assert result.stdout.count("\n") == 1
        value = json.loads(result.stdout)
        assert isinstance(value, dict)
        assert ("error" in value) == (code != 0)
        return value

    return invoke


@pytest.fixture
def compacted(answer: Callable[..., dict[str, Any]]) -> dict[str, Any]:
    return answer("compact", DEMO, "--budget", 6000)


# ---------------------------------------------------------------------------------------------- JSON


def test_compact_prints_what_others_rely_on(compacted: dict[str, Any]) -> None:
    assert set(compacted) >= {
        *("tenant", "workflow", "view", "revision", "generation", "watermark", "lineage_seq", "depth"),
        *("tokens_before", "tokens_after", "token_counter", "refs_seen", "refs_verbatim", "refs_dropped"),
        *("refs_unaccounted", "events_imported", "duration_ms", "phases_ms", "summary_id", "outcome"),
        *("summary_tokens", "tail_tokens", "reason"),
    }
    assert (compacted["tenant"], compacted["workflow"], compacted["view"]) == ("default", "api-tests", "main")
    assert (compacted["outcome"], compacted["generation"], compacted["reason"]) == ("activated", 1, "")
    assert compacted["events_imported"] == compacted["revision"]
    assert compacted["tokens_after"] == compacted["summary_tokens"] + compacted["tail_tokens"] <= 6000
    assert compacted["refs_seen"] == compacted["refs_verbatim"] + compacted["refs_dropped"]
    assert compacted["refs_unaccounted"] == 0
    assert isinstance(compacted["summary_id"], str)
    assert "import" in compacted["phases_ms"]
    assert compacted["duration_ms"] >= sum(compacted["phases_ms"].values()) * 0.99


def test_compact_without_a_file_compacts_what_the_store_holds(answer: Any, compacted: dict[str, Any]) -> None:
    again = answer("compact", "--budget", 6000)
    assert (again["outcome"], again["events_imported"], again["generation"]) == ("nothing_to_do", 0, 1)
    assert "import" not in again["phases_ms"]
    assert again["reason"]


def test_nothing_to_do_prints_the_reason_and_the_size_alone(run: Run, compacted: dict[str, Any]) -> None:
    heading, *facts = run("compact", "--budget", 6000).stdout.splitlines()
    assert heading == "default/api-tests: nothing to do"
    assert [fact.split()[0] for fact in facts] == ["reason", "context"]
    assert f"{compacted['tokens_after']:,} tokens" in facts[1]


def test_compact_with_a_known_file_imports_nothing_anew(answer: Any, compacted: dict[str, Any]) -> None:
    assert answer("compact", DEMO, "--budget", 6000)["events_imported"] == 0


@pytest.mark.parametrize(
    ("result", "code"),
    [("rejected", 5), ("quarantined", 5), ("dead_letter", 5), ("conflict", 6)],
)
def test_a_compaction_that_fails_prints_outcome_and_error(
    answer: Any, run: Run, compacted: dict[str, Any], monkeypatch: pytest.MonkeyPatch, result: str, code: int
) -> None:
    attempt = Attempt(attempt_id="a.1", candidate_id="a", number=1, fence=1, state=AttemptState.FAILED, started_us=0)
    counts: dict[str, Any] = dict.fromkeys(("revision", "generation", "watermark", "lineage_seq", "depth"), 0)
    counts |= dict.fromkeys(("tokens_before", "summary_tokens", "tail_tokens", "refs_seen"), 0)
    counts |= dict.fromkeys(("refs_verbatim", "refs_dropped", "refs_unaccounted"), 0)
    outcome = CompactionOutcome(
        outcome=CompactionResult(result),
        view="main",
        token_counter="t",
        summary=None,
        attempts=(attempt,),
        reason="it says so",
        **counts,
    )
    case_id = answer("report-regression", 1, "--by", "ada", "--why", "x")["case"]["case_id"]
    outcome = replace(outcome, case_id=case_id if result == "dead_letter" else None)
    monkeypatch.setattr(strandline.Workflow, "compact", lambda self, *args, **options: outcome)
    value = answer("compact", code=code)
    assert value["case_kind"] == ("regression" if result == "dead_letter" else None)
    assert (value["outcome"], value["reason"]) == (result, "it says so")
    assert "it says so" in value["error"]["message"]
    assert value["error"]["hint"]
    human = run("compact")
    assert human.exit_code == code
    assert "error: the compaction ended as" in human.stderr


def test_context_prints_parts_with_their_provenance(answer: Any, compacted: dict[str, Any]) -> None:
    value = answer("context", "--budget", 6000)
    assert set(value) >= {"revision", "generation", "watermark", "tokens", "budget", "parts", "omitted"}
    assert value["tokens"] <= value["budget"] == 6000
    assert value["tokens"] == sum(part["tokens"] for part in value["parts"])
    assert all({"kind", "from_seq", "through_seq", "tokens", "text"} <= set(part) for part in value["parts"])
    assert value["parts"][0]["from_seq"] == 1
    assert value["parts"][-1]["through_seq"] == value["revision"]
    assert value["omitted"] == []


def test_context_names_what_it_leaves_out(answer: Any, compacted: dict[str, Any]) -> None:
    value = answer("context", "--budget", 4500)
    assert value["omitted"]
    assert all({"kind", "from_seq", "through_seq", "tokens", "reason"} <= set(left) for left in value["omitted"])


@pytest.mark.parametrize("form", ["openai", "anthropic"])
def test_context_as_messages_of_a_provider(answer: Any, run: Run, compacted: dict[str, Any], form: str) -> None:
    messages = answer("context", "--format", form)["messages"]
    assert json.loads(run("context", "--format", form).stdout) == messages
    assert {"role", "content"} <= set(messages[0])


def test_context_as_text_is_the_context_alone(answer: Any, run: Run, compacted: dict[str, Any]) -> None:
    parts = answer("context")["parts"]
    result = run("context")
    assert result.stdout == "\n\n".join(part["text"] for part in parts).replace("\r\n", "\n") + "\n"
    assert result.stderr.startswith("note: basis 1@180, ")


def test_checkpoint_then_restore_gives_the_state_back(answer: Any, compacted: dict[str, Any]) -> None:
    state = {"step": 3, "big": 12345678901234567890123, "text": "…"}
    made = answer("checkpoint", "--turn", 17, "--state", json.dumps(state))
    assert made["basis"] == {"view": "main", "generation": 1, "revision": made["revision"]}
    assert (made["lineage_seq"], made["turn"], made["name"]) == (2, 17, "main")
    assert len(bytes.fromhex(made["digest"])) == 32
    found = answer("recover")
    assert (found["kind"], found["lineage_seq"], found["generation"]) == ("restore", 3, 1)
    assert (found["revision"], found["state"], found["turn"]) == (made["revision"], state, 17)
    assert found["context"]["parts"]


def test_recover_replays_where_a_compaction_came_after_the_checkpoint(answer: Any, compacted: dict[str, Any]) -> None:
    answer("checkpoint", "--turn", 1, "--state", "[1]", "--name", "bot")
    assert answer("compact", "--budget", 4000)["generation"] == 2
    found = answer("recover", "--name", "bot", "--dry-run")
    assert (found["kind"], found["state"], found["lineage_seq"], found["prior_state"]) == ("replay", None, None, None)
    found = answer("recover", "--name", "bot", "--prior-state")
    assert (found["kind"], found["generation"], found["state"]) == ("replay", 2, None)
    assert found["prior_state"] == {"turn": 1, "lineage_seq": 2, "state": [1], "stale": True, "external": None}


def test_recover_prints_the_state_on_stdout_and_explains_on_stderr(
    answer: Any, run: Run, compacted: dict[str, Any]
) -> None:
    replayed = run("recover")
    assert replayed.stdout == ""
    assert "there is no checkpoint 'main'\n" in replayed.stderr
    assert "`strandline context`" in replayed.stderr
    answer("checkpoint", "--turn", 7, "--state", '{"at": "review"}')
    restored = run("recover")
    assert json.loads(restored.stdout) == {"at": "review"}
    assert "checkpoint 'main' of turn 7 restored" in restored.stderr
    assert "no checkpoint 'bot', only 'main'" in run("recover", "--name", "bot", "--dry-run").stderr
    moved = answer("compact", "--budget", 4000)["lineage_seq"]
    replayed = run("recover", "--prior-state")
    assert f"a compaction (lineage {moved}) moved the pointer" in replayed.stderr
    assert "(turn 7, lineage 3)" in replayed.stderr
    stale = json.loads(replayed.stdout)
    assert (stale["stale"], stale["turn"], stale["state"]) == (True, 7, {"at": "review"})


def test_recover_says_which_checkpoint_a_later_restore_left_behind() -> None:
    def entry(seq: int, kind: LineageKind, **given: Any) -> LineageEntry:
        return LineageEntry(lineage_seq=seq, kind=kind, op_key=str(seq), revision=1, at_us=0, **given)

    made = [entry(seq, LineageKind.CHECKPOINT, name="main", detail={"turn": seq}) for seq in (1, 2)]
    restored = entry(3, LineageKind.RESTORE, name="main", restored_seq=1)
    said = why_replayed([*made, restored], "main")
    assert said == "the newest checkpoint (turn 2, lineage 2) was left behind by a later restore of an earlier one"


def test_recover_says_in_good_english_that_an_erasure_moved_the_pointer() -> None:
    made = LineageEntry(lineage_seq=1, kind=LineageKind.CHECKPOINT, op_key="1", revision=1, at_us=0, name="main")
    erasure = LineageEntry(lineage_seq=2, kind=LineageKind.ERASURE, op_key="2", revision=1, at_us=0)
    assert why_replayed([made, erasure], "main").startswith("an erasure (lineage 2) moved the pointer")


def test_recover_says_which_checkpoint_an_answer_passed_over() -> None:
    def entry(seq: int, kind: LineageKind, **given: Any) -> LineageEntry:
        return LineageEntry(lineage_seq=seq, kind=kind, op_key=str(seq), revision=1, at_us=0, **given)

    made = [entry(seq, LineageKind.CHECKPOINT, name="main", detail={"turn": seq}) for seq in (1, 2)]
    over = entry(3, LineageKind.ANSWER, by="ann", detail={"kind": "checkpoint_digest", "passed_over": 2})
    said = why_replayed([*made, over], "main")
    assert said == (
        "the newest checkpoint (turn 2, lineage 2) is passed over: ann answered so (lineage 3, checkpoint_digest)"
    )


def test_recover_prints_open_calls_and_what_to_do(answer: Any, run: Run) -> None:
    call = '{"kind": "tool_call", "call_id": "c1\\u001b[2J", "tool": "deploy", "input": {}}\n'
    answer("append", "-", "--workflow", "w", stdin=call)
    shown = run("recover")
    assert shown.stdout == ""
    assert "open call  c1\\x1b[2J: tool deploy, event 1\n" in shown.stderr
    assert all(said in shown.stderr for said in ("hint: ", "`strandline append -`", "tool_result", "abandoned"))
    answer("append", "-", stdin='{"kind": "abandoned", "call_id": "c1\\u001b[2J"}')
    assert "open call" not in run("recover").stderr


def test_recover_with_a_context_free_state(answer: Any, compacted: dict[str, Any]) -> None:
    answer("checkpoint", "--turn", 9, "--state", '{"at": "review"}', "--context-free")
    answer("compact", "--budget", 4000)
    found = answer("recover")
    assert (found["kind"], found["state"], found["turn"]) == ("replay", {"at": "review"}, 9)


def test_recover_refused_says_what_is_missing(answer: Any, run: Run, compacted: dict[str, Any]) -> None:
    answer("checkpoint", "--turn", 17, "--state", "{}")
    known = json.dumps(answer("context"))
    gone = next(entry for entry in answer("manifest")["dropped"] if entry["ref"] not in known)
    error = answer("recover", "--needs", gone["ref"], code=3)["error"]
    assert set(error) >= {"type", "message", "hint", "reason", "case_id", "missing_refs"}
    assert error["type"] == "SummaryReconciliationError"
    assert (error["summary_generation"], error["checkpoint_turn"], error["missing_ref"]) == (1, 17, gone["ref"])
    assert error["last_known"].keys() == {"seq", "generation_dropped", "event_kind"}
    assert (error["last_known"]["seq"], error["last_known"]["generation_dropped"]) == (gone["last_seq"], 1)
    assert answer("cases")["cases"][0]["case_id"] == error["case_id"]
    human = run("recover", "--needs", gone["ref"])
    assert human.exit_code == 3
    assert human.stdout == ""
    for said in ("summary generation: 1", "checkpoint turn: 17", f"missing ref: {gone['ref']}"):
        assert said in human.stderr
    assert f"last known: event {gone['last_seq']}, a {error['last_known']['event_kind']}" in human.stderr
    unknown = run("recover", "--needs", "never-seen-7").stderr
    assert "no event holds it" in unknown
    assert "append it as an event" in unknown
    assert not re.search("recall|pin", unknown, re.IGNORECASE)


@pytest.mark.parametrize("ref", ["OPS-4471-of-the-eastern-harbour-1998", "-dash-ref-1", "it's ref-1"])
def test_the_hint_of_a_refusal_is_the_way_out_as_it_stands(answer: Any, run: Run, tmp_path: Path, ref: str) -> None:
    where = ("--store", tmp_path / "a store.db", "--tenant", "acme", "--workflow", "w")
    run("append", *where, "--text", "see it", "--ref", ref)
    events = [{"kind": "note", "text": f"see run-{n}", "refs": [f"run-{n}", f"left-{n}"]} for n in range(400)]
    lines = "".join(json.dumps(event) + "\n" for event in events)
    answer("append", "-", *where, stdin=lines)
    answer("compact", *where, "--budget", 800)
    hint = answer("recover", *where, "--needs", ref, code=3)["error"]["hint"]
    recall, exact, _, pin = (shlex.split(command) for command in re.findall("`strandline (.*?)`", hint))
    assert [hit["seq"] for hit in answer(recall[0], *recall[1:])["hits"]] == [1]
    assert answer(*exact)["case"]["answer"] == "replay_from_exact"
    assert answer("recover", *where, "--needs", ref)["kind"] == "replay"
    assert answer(*pin)["added"] == 1
    answer("append", *where, "--kind", "unpin", f"--ref={ref}", "--text", "done")


def test_the_way_out_names_only_what_is_not_usual(answer: Any, run: Run, compacted: dict[str, Any]) -> None:
    known = json.dumps(answer("context"))
    gone = next(entry["ref"] for entry in answer("manifest")["dropped"] if entry["ref"] not in known)
    hint = answer("recover", "--needs", gone, code=3)["error"]["hint"]
    assert f"`strandline recall --workflow api-tests -- {gone}`" in hint
    assert f"`strandline append --workflow api-tests --kind pin --ref {gone}`" in hint
    assert re.search("`strandline reconcile --workflow api-tests [0-9a-f]{32} replay-from-exact --by", hint)
    assert "reconcile" not in answer("recover", "--needs", gone[:-1] + "-x", "--dry-run", code=3)["error"]["hint"]


@pytest.fixture
def open_question(answer: Any, compacted: dict[str, Any]) -> dict[str, Any]:
    """Let a recovery be refused, and return its error."""
    known = json.dumps(answer("context"))
    gone = next(entry["ref"] for entry in answer("manifest")["dropped"] if entry["ref"] not in known)
    error: dict[str, Any] = answer("recover", "--needs", gone, code=3)["error"]
    return error


def test_compact_and_context_name_the_case_that_recover_opened(
    answer: Any, run: Run, open_question: dict[str, Any]
) -> None:
    """I11: exit 3 with the same case_id; a context can still be read, and says so."""
    error = answer("compact", "--budget", 2000, code=3)["error"]
    assert (error["type"], error["case_id"]) == ("UnreconciledSummaryError", open_question["case_id"])
    assert "`strandline cases --workflow api-tests`" in error["hint"]
    assert answer("context")["case_id"] == open_question["case_id"]
    assert "stands under the open case" in run("context").stderr + run("context").stdout


def test_cases_of_a_tenant_of_several_workflows_are_listed_together(
    answer: Any, run: Run, open_question: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """C21: who is woken at night need not know in which of them it is."""
    monkeypatch.setenv("COLUMNS", "120")
    answer("append", "--workflow", "another", "--kind", "note", "--text", "nothing to ask")
    (case,) = answer("cases")["cases"]
    assert (case["workflow"], case["case_id"]) == ("api-tests", open_question["case_id"])
    shown = run("cases")
    assert re.search(r"^workflow +case +what", shown.stdout, re.MULTILINE)
    assert f"api-tests  {case['case_id']}" in shown.stdout
    hint = re.search("Answer one: `strandline (.*?)`", shown.stderr)
    assert hint
    assert "--workflow WORKFLOW" in hint[1]
    assert answer("cases", "--workflow", "another")["cases"] == []


def test_cases_lists_and_reconcile_answers(answer: Any, run: Run, open_question: dict[str, Any]) -> None:
    case_id, ref = open_question["case_id"], open_question["missing_ref"]
    (case,) = answer("cases")["cases"]
    assert (case["case_id"], case["state"], case["missing_refs"]) == (case_id, "open", [ref])
    assert (case["blocking"], case["escalated"], case["logged"]) == (True, False, True)
    shown = run("cases")
    assert f"{case_id}  missing_dependency  open, blocks" in shown.stdout
    assert ref in shown.stdout
    assert "for missing_dependency: replay-from-exact, accept-divergence OLD NEW, replay-from-ch" in shown.stderr
    said = ("--by", "ann", "--why", "still so")
    done = answer("reconcile", case_id, "replay-from-exact", *said)["case"]
    assert (done["state"], done["answer"], done["by"], done["why"]) == (
        "answered",
        "replay_from_exact",
        "ann",
        "still so",
    )
    shown = run("reconcile", case_id, "replay-from-exact", *said)
    assert re.search(r"done +pinned, by event \d+\n", shown.stdout)
    again = re.search("Recover again: `strandline (.*?)`", shown.stderr)
    assert again
    assert answer(*shlex.split(again[1]))["kind"] == "replay"
    assert answer("cases")["cases"] == []
    assert [found["case_id"] for found in answer("cases", "--all")["cases"]] == [case_id]
    error = answer("reconcile", case_id, "abandon", *said, code=6)["error"]
    assert (error["type"], error["answer"], error["by"]) == ("CaseAnsweredError", "replay_from_exact", "ann")
    assert "replay_from_exact by ann" in run("cases", "--all").stdout


def test_an_accepted_divergence_is_shown(answer: Any, run: Run, open_question: dict[str, Any]) -> None:
    ref = open_question["missing_ref"]
    answer("append", "--text", "made anew", "--ref", "bucket-new1")
    said = ("--by", "ann", "--why", "made anew")
    answer("reconcile", open_question["case_id"], "accept-divergence", ref, "bucket-new1", *said)
    assert answer("recover", "--needs", ref)["divergences"] == {ref: "bucket-new1"}
    assert answer("context", "--needs", ref)["divergences"] == {ref: "bucket-new1"}
    assert answer("recall", "--", ref)["hits"][0]["instead"] == "bucket-new1"
    assert f"bucket-new1, accepted in the place of {ref}" in run("recover", "--needs", ref).stderr
    assert f"bucket-new1 was accepted in the place of {ref}" in run("recall", "--", ref).stdout


def test_a_divergence_of_one_of_two_names_the_case_of_the_other(
    answer: Any, run: Run, open_question: dict[str, Any]
) -> None:
    known = json.dumps(answer("context"))
    gone = [entry["ref"] for entry in answer("manifest")["dropped"] if entry["ref"] not in known]
    other = next(ref for ref in gone if ref != open_question["missing_ref"])
    both = answer("recover", "--needs", open_question["missing_ref"], f"--needs={other}", code=3)["error"]
    assert both["missing_refs"] == [open_question["missing_ref"], other]
    answer("append", "--text", "made anew", "--ref", "bucket-new1")
    said = ("--by", "ann", "--why", "made anew")
    words = ("accept-divergence", open_question["missing_ref"], "bucket-new1")
    shown = run("reconcile", both["case_id"], *words, *said)
    left = next(case for case in answer("cases")["cases"] if case["missing_refs"] == [other])
    assert f"asked by case {left['case_id']}" in shown.stdout
    assert f"Answer the case {left['case_id']}, too." in shown.stderr


def test_recover_by_a_policy(answer: Any, open_question: dict[str, Any]) -> None:
    ref = open_question["missing_ref"]
    assert answer("recover", "--needs", ref, "--policy", "replay-when-logged")["kind"] == "replay"
    (case,) = answer("cases", "--all")["cases"]
    assert (case["case_id"], case["by"]) == (open_question["case_id"], "policy:replay-when-logged")


@pytest.mark.parametrize(
    ("words", "said", "code"),
    [
        (["again"], "'again' is no answer; these are: replay-from-exact, ", 2),
        (["accept-divergence", "a-1"], "takes 2 words behind it, not 1", 2),
        (["abandon", "now"], "takes 0 words behind it, not 1", 2),
        (["replay-from-checkpoint", "x"], "no lineage_seq", 2),
        (["replay-from-checkpoint", "1"], "is no checkpoint", 1),
        (["effect-done", "{"], "is no JSON", 2),
        (
            ["effect-done", "1"],
            "is no answer to a case of kind missing_dependency; these are: ReplayFromExact (replay-",
            1,
        ),
    ],
    ids=str,
)
def test_an_answer_that_can_not_be_is_refused(
    answer: Any, open_question: dict[str, Any], words: list[str], said: str, code: int
) -> None:
    """Words that are no answer are a usage error; an answer that does not fit the case is none."""
    error = answer("reconcile", open_question["case_id"], *words, "--by", "ann", "--why", "x", code=code)["error"]
    assert (said in error["message"], error["type"]) == (True, "UsageError" if code == 2 else "InvalidInputError")
    assert answer("cases")["cases"][0]["state"] == "open"
    assert answer("reconcile", "nobody", "abandon", "--by", "ann", "--why", "x", code=1)["error"]["hint"]


def test_a_checkpoint_of_another_generation_is_refused(answer: Any, compacted: dict[str, Any]) -> None:
    error = answer("checkpoint", "--turn", 1, "--state", "{}", "--basis", "0@180", code=4)["error"]
    assert (error["type"], error["basis_generation"], error["generation"]) == ("CompactionLineageError", 0, 1)


def test_recall_prints_verbatim_events(answer: Any, run: Run, compacted: dict[str, Any]) -> None:
    hits = answer("recall", "oauth-scope")["hits"]
    assert all({"seq", "kind", "actor", "text"} <= set(hit) for hit in hits)
    assert [hit["seq"] for hit in hits] == sorted((hit["seq"] for hit in hits), reverse=True)
    assert len(answer("recall", "oauth-scope", "--limit", 1)["hits"]) == 1
    assert f"[{hits[0]['seq']}] {hits[0]['actor']}/{hits[0]['kind']}" in run("recall", "oauth-scope").stdout
    assert answer("recall", "never-seen-7")["hits"] == []


@pytest.mark.parametrize("ref", ["--json", "-dash-ref-1"])
def test_recall_takes_a_ref_that_begins_with_a_dash(answer: Any, run: Run, ref: str) -> None:
    run("append", "--workflow", "w", "--text", "see it", "--ref", ref)
    assert [hit["seq"] for hit in answer("recall", "--", ref)["hits"]] == [1]
    assert run("recall", "--", ref).stdout.startswith("default/w: 1 event")


def test_recall_of_an_option_says_how_to_name_a_ref_with_a_dash(answer: Any, run: Run) -> None:
    for ref in ("--bogus", "-dash-ref-1"):
        assert answer("recall", ref, code=2)["error"]["hint"].startswith("Put -- before a reference")
        assert " recall -- REF`" in run("recall", ref).stderr
    assert "--" not in answer("lineage", "--bogus", code=2)["error"]["hint"].replace("--help", "")


def test_recall_shows_people_an_excerpt_of_a_long_event(run: Run) -> None:
    run("append", "--workflow", "w", "--text", f"{'x ' * 3000} bucket-7f3a {'y ' * 3000}")
    shown = run("recall", "bucket-7f3a").stdout
    assert "bucket-7f3a" in shown
    assert len(shown) < 1_500
    assert "12,013 characters" in shown


def test_manifest_lists_what_was_dropped(answer: Any, run: Run, compacted: dict[str, Any]) -> None:
    value = answer("manifest")
    assert value["generation"] == 1
    assert len(value["dropped"]) == compacted["refs_dropped"]
    assert all(set(entry) == {"ref", "last_seq", "generation_dropped", "reason"} for entry in value["dropped"])
    lines = run("manifest").stdout.splitlines()
    assert len(lines) == 2 + len(value["dropped"])


def test_lineage_lists_every_entry(answer: Any, run: Run, compacted: dict[str, Any]) -> None:
    answer("checkpoint", "--turn", 1, "--state", "{}")
    answer("recover")
    entries = answer("lineage")["entries"]
    assert [entry["lineage_seq"] for entry in entries] == [1, 2, 3]
    assert [entry["kind"] for entry in entries] == ["compaction", "checkpoint", "restore"]
    assert [len(bytes.fromhex(entry["digest"])) for entry in entries[:2]] == [32, 32]
    assert len(run("lineage").stdout.splitlines()) == 2 + 3


def test_verify_counts_what_it_proved(answer: Any, run: Run, compacted: dict[str, Any]) -> None:
    run("append", "--workflow", "other", "--text", "hi")
    whole = answer("verify")
    assert whole == {"ok": True, "workflows": 2, "events": compacted["revision"] + 1, "states": 0, "problems": []}
    assert answer("verify", "--workflow", "other")["events"] == 1


def test_verify_names_problems(
    answer: Any, run: Run, compacted: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    from strandline.model.outcome import Problem, VerifyReport

    problem = Problem(workflow="default/api-tests", place="event 7", reason="the body does not match its digest")
    found = VerifyReport(workflows=1, events=180, problems=(problem,))
    monkeypatch.setattr(strandline.Strandline, "verify", lambda self, progress: found)
    value = answer("verify", code=8)
    assert (value["ok"], value["problems"]) == (False, [plain(problem)])
    assert value["error"]["place"] == "event 7"
    human = run("verify")
    assert human.exit_code == 8
    assert "event 7" in human.stdout
    assert "hint: " in human.stderr


def test_import_reports_what_became_of_the_file(answer: Any, run: Run) -> None:
    value = answer("import", DEMO)
    assert value["events_imported"] == value["revision"] == value["lines"]
    assert (value["format"], value["events_known"], value["lines_skipped"]) == ("jsonl", 0, {})
    assert answer("import", DEMO)["events_known"] == value["revision"]
    assert "known already" in run("import", DEMO).stdout


def test_an_import_error_has_line_byte_and_reason(answer: Any, tmp_path: Path) -> None:
    torn = tmp_path / "torn.jsonl"
    torn.write_text('{"kind": "note", "text": "a"}\n{"kind": "no')
    error = answer("import", torn, code=1)["error"]
    assert (error["type"], error["line"]) == ("ImportFormatError", 2)
    assert isinstance(error["byte"], int)
    assert error["reason"]


CHAT = '{"messages": [{"role": "user", "content": "a"}], "n": 1}\n{"messages": [{"role": "user", "content": "b"}]}\n'


def test_import_from_stdin(answer: Any) -> None:
    value = answer("import", "-", stdin=CHAT)
    assert (value["workflow"], value["format"], value["events_imported"]) == ("stdin", "openai", 4)
    assert answer("import", "-", "--workflow", "w", stdin=CHAT)["workflow"] == "w"
    assert answer("compact", "-", stdin=CHAT + CHAT)["events_imported"] == 4


@pytest.mark.parametrize("command", ["import", "compact"])
def test_an_empty_stdin_is_warned_of(run: Run, command: str) -> None:
    said = run(command, "-", "--workflow", "w", stdin=b"")
    assert said.exit_code == 0
    assert "warning: stdin held nothing" in said.stderr


def test_stdin_is_limited(answer: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from strandline.cli import spool

    monkeypatch.setattr(spool, "IMPORT_STDIN_BYTES_MAX", 10)
    error = answer("import", "-", stdin=CHAT, code=1)["error"]
    assert error["message"] == "more than 10 bytes on stdin; give a file"


def test_import_splits_conversations(answer: Any, run: Run, tmp_path: Path) -> None:
    file = tmp_path / "chat.jsonl"
    file.write_text(CHAT)
    value = answer("import", file, "--split")
    assert value["tenant"] == "default"
    assert "workflow" not in value
    assert (value["events_imported"], value["left_out_count"]) == (4, 0)
    assert [(each["workflow"], each["revision"]) for each in value["workflows"]] == [("chat-1", 2), ("chat-2", 2)]
    human = run("import", file, "--split", "--workflow", "w").stdout
    assert "2: w-1 to w-2" in human


def test_a_salvage_is_offered_where_it_helps_and_only_there(answer: Any, tmp_path: Path) -> None:
    torn, plain = tmp_path / "torn.jsonl", tmp_path / "plain.txt"
    torn.write_text('{"kind": "note", "text": "a"}\n{"kind": "no')
    plain.write_text("hello\n")

    def hint(*args: object) -> str:
        error = answer(*args, code=1)["error"]
        assert "imported" not in error["message"]
        return str(error["hint"])

    assert "with `--salvage`" in hint("import", torn)
    assert "`strandline import FILE --salvage`" in hint("compact", torn)
    for args in (("compare", torn), ("refs", torn), ("append", torn), ("import", plain, "--salvage")):
        assert hint(*args) == errors.ImportFormatError.hint
    for command in ("import", "compact", "compare", "append"):
        assert "salvage" not in hint(command, plain)


def test_import_salvages_and_lists_what_it_left_out(answer: Any, run: Run, tmp_path: Path) -> None:
    file = tmp_path / "torn.jsonl"
    file.write_text('{"kind": "note", "text": "a"}\n{"kind": "no')
    assert "--salvage" in answer("import", file, code=1)["error"]["hint"]
    value = answer("import", file, "--salvage")
    assert (value["events_imported"], value["left_out_count"]) == (2, 1)
    left_out = value["left_out"][0]
    assert (left_out["line"], left_out["byte"], left_out["size_bytes"]) == (2, 30, 12)
    human = run("import", file, "--salvage").stdout
    assert re.search(r"left out +1 record", human)
    assert re.search(r"line 2 +byte 30 +12 +the record is torn", human)


def test_an_import_that_does_not_continue_says_where(answer: Any, tmp_path: Path) -> None:
    file = tmp_path / "chat.jsonl"
    file.write_text(CHAT)
    answer("import", file)
    file.write_text(CHAT.replace('"b"', '"c"'))
    error = answer("import", file, code=6)["error"]
    assert (error["type"], error["line"], error["seq"]) == ("IdempotencyConflictError", 2, 4)


# ---------------------------------------------------------------------------------------------- append


def test_append_takes_messages_of_openai(answer: Any) -> None:
    call = '[{"role": "assistant", "tool_calls": [{"id": "c1", "function": {"name": "t", "arguments": "{}"}}]}]'
    answer("append", "-", "--workflow", "w", stdin=call)
    assert answer("append", "-", stdin='{"role": "tool", "tool_call_id": "c1", "content": "r"}')["seqs"] == [2]
    error = answer("append", "-", stdin=CHAT, code=1)["error"]
    assert "several conversations" in error["message"]


def test_append_from_options(answer: Any) -> None:
    first = answer("append", "--workflow", "w", "--text", "hi", "--key", "k", "--actor", "ana")
    assert (first["seqs"], first["revision"], first["added"]) == ([1], 1, 1)
    assert answer("append", "--text", "hi", "--key", "k", "--actor", "ana")["added"] == 0
    answer("append", "--kind", "issue", "--subject", "oauth", "--text", "too wide", "--ref", "HB-427")
    answer("append", "--kind", "approval", "--subject", "sec", "--text", "ok", "--granter", "ana")
    kinds = [part["event_kind"] for part in answer("context")["parts"]]
    assert kinds == ["message", "issue", "approval"]
    assert answer("recall", "HB-427")["hits"][0]["declared"]


def test_append_from_a_file_takes_its_name_and_repeats_events_without_a_key(answer: Any, tmp_path: Path) -> None:
    file = tmp_path / "events.jsonl"
    file.write_text('{"kind": "note", "text": "a"}\n{"kind": "note", "text": "b"}\n')
    assert answer("append", file)["workflow"] == "events"
    assert answer("append", file)["seqs"] == [3, 4]


def test_append_from_stdin_may_cite_calls_of_the_log(answer: Any) -> None:
    call = '{"kind": "tool_call", "call_id": "c1", "tool": "t", "input": {}}\n'
    answer("append", "-", "--workflow", "w", stdin=call)
    result = '{"kind": "tool_result", "call_id": "c1", "content": "bucket-7f3a"}'
    assert answer("append", "-", stdin=result)["seqs"] == [2]


def test_append_is_all_or_none(answer: Any) -> None:
    lines = '{"kind": "note", "text": "a"}\n{"kind": "note"}\n'
    error = answer("append", "-", "--workflow", "w", stdin=lines, code=1)["error"]
    assert (error["type"], error["line"]) == ("ImportFormatError", 2)
    assert answer("append", "--workflow", "w", "--text", "b")["seqs"] == [1]


def test_append_conflicts(answer: Any) -> None:
    answer("append", "--workflow", "w", "--text", "a", "--key", "k")
    error = answer("append", "--text", "b", "--key", "k", code=6)["error"]
    assert (error["type"], error["key"], error["seq"]) == ("IdempotencyConflictError", "k", 1)
    error = answer("append", "--text", "b", "--expected-revision", 0, code=6)["error"]
    assert (error["type"], error["expected"], error["actual"]) == ("StaleRevisionError", 0, 1)


@pytest.mark.parametrize(
    ("args", "code", "said"),
    [
        ((), 2, "give a file"),
        (("-", "--text", "a"), 2, "give a file"),
        (("--kind", "issue", "--text", "a"), 2, "subject"),
        (("--kind", "constraint", "--subject", "a"), 2, "text"),
        (("--kind", "nonsense", "--text", "a"), 2, "nonsense"),
        (("--text", "  "), 2, "white space"),
        (("--role", "boss", "--text", "a"), 2, "boss"),
        (("--text", "a", "--ref", ""), 2, "empty"),
        (("--text", "a", "--key", "k" * 1000), 2, "characters"),
        (("--kind", "pin"), 2, "'ref'"),
        (("--kind", "pin", "--ref", "job-1", "--ref", "job-2"), 2, "one reference, not 2"),
        (("--kind", "pin", "--ref", "job-1"), 1, "no earlier event holds"),
        (("-",), 1, "no event"),
    ],
)
def test_append_refuses(answer: Any, args: tuple[str, ...], code: int, said: str) -> None:
    assert said in answer("append", "--workflow", "w", *args, code=code, stdin="")["error"]["message"]


# ---------------------------------------------------------------------------------------------- store and workflow


@pytest.mark.parametrize(
    "args",
    [
        ("compact",),
        ("context",),
        ("checkpoint", "--turn", 1, "--state", "{}"),
        ("recover",),
        ("recall", "x"),
        ("manifest",),
        ("lineage",),
        ("verify",),
    ],
)
def test_a_store_that_is_not_there_is_not_made(answer: Any, store: Path, args: tuple[object, ...]) -> None:
    error = answer(*args, "--workflow", "w", code=7)["error"]
    assert error["type"] == "StoreUnavailableError"
    assert error["hint"] == "`strandline import FILE` or `append` makes it; or name another with --store."
    assert not store.exists()


def test_an_empty_file_is_an_empty_store(answer: Any, run: Run, store: Path) -> None:
    store.touch()
    assert answer("verify") == {"ok": True, "workflows": 0, "events": 0, "states": 0, "problems": []}
    assert answer("context", "--workflow", "w", code=1)["error"]["message"].endswith("; the store is empty")


@pytest.mark.parametrize(
    "args", [("recall", "x"), ("context",), ("manifest",), ("lineage",), ("verify",), ("compact",)]
)
def test_a_workflow_that_is_not_there_is_an_error_that_names_those_that_are(answer: Any, run: Run, args: Any) -> None:
    run("append", "--workflow", "one", "--text", "a")
    run("append", "--workflow", "two", "--text", "a")
    error = answer(*args, "--workflow", "noe", code=1)["error"]
    assert error["type"] == "TenantScopeError"
    assert error["message"] == "tenant 'default' holds no workflow 'noe'; it holds 'one', 'two'"
    assert "--workflow" in error["hint"]


def test_a_checkpoint_and_a_recovery_may_be_the_first_of_a_workflow(answer: Any, run: Run) -> None:
    run("append", "--workflow", "one", "--text", "a")
    assert answer("recover", "--workflow", "new", code=3)["error"]["reason"] == "nothing_recorded"
    done = run("checkpoint", "--workflow", "new", "--turn", 1, "--state", "{}")
    assert (done.exit_code, "it is taken as empty" in done.stderr) == (0, True)


def test_the_workflow_must_be_named_where_there_is_a_choice(answer: Any, run: Run, store: Path) -> None:
    store.touch()
    error = answer("context", code=2)["error"]
    assert error["message"].endswith("tenant 'default' holds no workflow; the store is empty")
    assert "import FILE" in error["hint"]
    run("append", "--workflow", "one", "--text", "a")
    assert answer("context")["workflow"] == "one"
    run("append", "--workflow", "two", "--text", "a")
    run("append", "--tenant", "else", "--workflow", "three", "--text", "a")
    error = answer("context", code=2)["error"]
    assert error["type"] == "UsageError"
    assert "'one', 'two'" in error["message"]
    assert "three" not in error["message"]
    assert answer("context", "--tenant", "else")["workflow"] == "three"


def test_a_tenant_without_workflows_names_the_tenants_that_there_are(answer: Any, run: Run) -> None:
    run("append", "--tenant", "acme", "--workflow", "w", "--text", "a")
    said = "tenant 'default' holds no workflow; the store has tenants: 'acme'"
    assert answer("context", code=2)["error"]["message"].endswith(said)
    assert "the store has tenants: 'acme'" in run("context", "--workflow", "w").stderr
    for number in range(30):
        run("append", "--tenant", f"t{number:02}", "--workflow", "w", "--text", "a")
    assert answer("context", code=2)["error"]["message"].endswith("'t18' and 11 more")


def test_who_may_not_see_other_tenants_is_not_told_that_the_store_is_empty(
    answer: Any, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """I21: as an agents' user on PostgreSQL; and no other tenant is named."""

    def refuse(self: SqliteStore, tenant: str | None = None) -> Any:
        if tenant is None:
            raise strandline.StoreUnavailableError("it may not")
        return seen(self, tenant)

    run("append", "--tenant", "acme", "--workflow", "w", "--text", "a")
    seen = SqliteStore.scopes
    monkeypatch.setattr(SqliteStore, "scopes", refuse)
    for words, code, said in (
        ((), 2, "tenant 'default' holds no workflow; what other tenants hold is not shown"),
        (
            ("--workflow", "w"),
            1,
            "tenant 'default' holds no workflow 'w'; it holds none; what other tenants hold is not shown",
        ),
    ):
        assert answer("context", *words, code=code)["error"]["message"].endswith(said)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--tenant", ""), "'--tenant': a tenant needs a name"),
        (("--workflow", ""), "'--workflow': a workflow needs a name"),
        (("--workflow", " w"), "'--workflow': workflow name ' w' has spaces"),
        (("--workflow", "w" * 201), "at most 200"),
    ],
)
def test_scope_errors_come_before_anything_is_made(
    answer: Any, store: Path, options: tuple[str, ...], said: str
) -> None:
    error = answer("import", DEMO, *options, code=2)["error"]
    assert error["type"] == "UsageError"
    assert said in error["message"]
    assert "view" not in error["hint"]
    view = answer("import", DEMO, "--view", "publisher", code=1)["error"]
    assert (view["type"], "no view 'publisher'" in view["message"]) == ("TenantScopeError", True)
    assert not store.exists()


@pytest.mark.parametrize("name", ["nope.jsonl", ".", ""])
def test_a_file_that_is_none_makes_no_store(answer: Any, store: Path, name: str) -> None:
    for command in ("import", "compact"):
        assert answer(command, name, code=1)["error"]["type"] == "InvalidInputError"
    assert not store.exists()


def test_a_store_of_something_else_is_corrupt_or_unavailable(answer: Any, tmp_path: Path) -> None:
    text = tmp_path / "text.db"
    text.write_text("this is a note, and long enough to be no header of a database" * 20)
    assert f"`strandline verify --store {text}`" in answer("cases", "--store", text, code=8)["error"]["hint"]
    damaged = answer("verify", "--store", text, code=8)
    assert (damaged["ok"], damaged["events"], len(damaged["problems"])) == (False, 0, 1)
    assert damaged["error"]["type"] == "CorruptRecordError"
    assert answer("context", "--store", text, code=8)["error"]["type"] == "CorruptRecordError"
    assert answer("verify", "--store", tmp_path, code=7)["error"]["type"] == "StoreUnavailableError"
    assert answer("import", DEMO, "--store", tmp_path / "no" / "x.db", code=7)
    for command in ("verify", "doctor"):
        assert "--store: a store URL" in answer(command, "--store", "http://x", code=2)["error"]["message"]
    assert answer("import", DEMO, "--store", "", code=2)["error"]["type"] == "UsageError"


# ---------------------------------------------------------------------------------------------- arguments


@pytest.mark.parametrize("budget", ["0", "-1", "63", "x", "1e3", "9" * 30])
@pytest.mark.parametrize("command", ["compact", "context", "recover"])
def test_a_budget_that_can_not_be_is_a_usage_error(answer: Any, command: str, budget: str) -> None:
    error = answer(command, "--budget", budget, code=2)["error"]
    assert error["type"] == "UsageError"
    assert "'--budget'" in error["message"]
    assert command in error["hint"]


@pytest.mark.parametrize(
    "args",
    [
        ("nonsense",),
        ("compact", "--bogus"),
        ("recall",),
        ("checkpoint", "--turn", "1"),
        ("checkpoint", "--state", "{}"),
        ("checkpoint", "--turn", "1", "--state", "{}", "--basis", "3"),
        ("checkpoint", "--turn", "1", "--state", "{}", "--basis", "0@0", "--context-free"),
        ("recall", "x", "--limit", "0"),
        ("context", "--format", "xml"),
        ("compact", "--summarizer", "magic"),
        ("compact", "--through", "0"),
        ("checkpoint", "--turn", "1", "--state", "{}", "--name", ""),
        ("doctor", "--workflow", "w"),
    ],
)
def test_usage_errors(answer: Any, run: Run, args: tuple[str, ...]) -> None:
    assert answer(*args, code=2)["error"]["type"] == "UsageError"
    human = run(*args)
    assert human.exit_code == 2
    assert human.stdout == ""
    assert human.stderr.startswith("error: ")
    assert "\nhint: " in human.stderr


@pytest.mark.parametrize(
    ("state", "said"),
    [
        ('{"a": 1,}', "line 1, column 9"),
        ("", "line 1, column 1"),
        ("NaN", "no JSON number"),
        ('"\\ud800"', "surrogate"),
        ("@nope.json", "No such file"),
        ("@.", "directory"),
        ("@latin", "byte 1"),
        ("@deep", "recursion"),
        ("9" * 5000, "digits"),
    ],
)
def test_a_state_that_is_no_json_says_where(answer: Any, run: Run, tmp_path: Path, state: str, said: str) -> None:
    run("append", "--workflow", "w", "--text", "a")
    (tmp_path / "latin").write_bytes(b'"\xff"')
    (tmp_path / "deep").write_text("[" * 100_000 + "]" * 100_000)
    in_file = state.startswith("@")
    error = answer("checkpoint", "--turn", 1, "--state", state, code=1 if in_file else 2)["error"]
    assert error["type"] == ("InvalidInputError" if in_file else "UsageError")
    assert said in error["message"]
    assert answer("lineage")["entries"] == []


def test_the_state_may_come_from_a_file_or_stdin(answer: Any, run: Run, tmp_path: Path) -> None:
    run("append", "--workflow", "w", "--text", "a")
    (tmp_path / "state.json").write_text('{"n": 1}')
    answer("checkpoint", "--turn", 1, "--state", "@state.json")
    assert answer("recover")["state"] == {"n": 1}
    answer("checkpoint", "--turn", 2, "--state", "@-", stdin='{"n": 2}')
    assert answer("recover")["state"] == {"n": 2}


def test_a_budget_below_the_mandatory_facts_is_an_error(answer: Any) -> None:
    error = answer("compact", DEMO, "--budget", 64, code=1)["error"]
    assert (error["type"], error["budget"]) == ("ContextOverflowError", 64)
    assert error["needed"] > 64


# ---------------------------------------------------------------------------------------------- failures


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.SummaryReconciliationError("m", summary_generation=1, checkpoint_turn=None, reason="r"), 3),
        (errors.UnreconciledSummaryError("m", case_id="c"), 3),
        (errors.CompactionLineageError("m"), 4),
        (errors.EffectUnknownError("m", key="k", case_id="c"), 3),
        (errors.CaseAnsweredError("m", case_id="c", answer="abandon", by="ann"), 6),
        (errors.MalformedDraftError(), 5),
        (errors.TransientSummarizerError(), 75),
        (errors.IdempotencyConflictError("m", key="k", seq=1), 6),
        (errors.StaleRevisionError(expected=1, actual=2), 6),
        (errors.StoreUnavailableError(), 7),
        (errors.SchemaVersionError(found=2, known=1), 7),
        (errors.CorruptRecordError("r", place="p"), 8),
        (errors.OutcomeUnknownError(), 75),
        (errors.ContextOverflowError("m", needed=2, budget=1), 1),
        (errors.InvalidInputError(), 1),
        (errors.TenantScopeError(), 1),
        (errors.ActionDeniedError(), 1),
        (errors.StrandlineError(), 1),
        (RuntimeError("x"), 1),
        (KeyboardInterrupt(), 130),
    ],
)
def test_every_error_has_its_code_and_its_attributes(error: BaseException, code: int) -> None:
    assert exit_code(error) == code
    described = describe(error)
    assert {"type", "message", "hint", *getattr(error, "fields", ())} == set(described)
    assert described["type"] == type(error).__name__
    json.dumps(described)


def test_an_unexpected_exception_has_type_and_message_and_no_traceback(
    answer: Any, run: Run, compacted: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*args: object) -> None:
        raise ZeroDivisionError("by nought")

    monkeypatch.setattr(strandline.Workflow, "lineage", broken)
    assert "by nought" in answer("lineage", code=1)["error"]["message"]
    assert "Traceback" not in run("lineage").stderr
    assert "ZeroDivisionError: by nought" in run("lineage").stderr
    monkeypatch.setenv("STRANDLINE_DEBUG", "1")
    assert "Traceback" in run("lineage").stderr


def test_an_interrupt_is_130(answer: Any, run: Run, compacted: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*args: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(strandline.Workflow, "lineage", interrupted)
    assert answer("lineage", code=130)["error"]["type"] == "KeyboardInterrupt"
    human = run("lineage")
    assert (human.exit_code, human.stderr) == (130, "error: interrupted\n")


# ---------------------------------------------------------------------------------------------- output


def test_help_and_no_command(run: Run) -> None:
    assert run("--help").exit_code == 0
    assert run("-h").stdout == run("--help").stdout
    nothing = run()
    assert (nothing.exit_code, nothing.stderr) == (0, "")
    assert nothing.stdout == run("--help").stdout
    assert run("--bogus").exit_code == 2
    for name in (
        "import",
        "append",
        "compact",
        "context",
        "checkpoint",
        "recover",
        "recall",
        "manifest",
        "lineage",
        "verify",
    ):
        text = run(name, "--help").stdout
        for option in ("--store", "--tenant", "--workflow", "--json"):
            assert option in text
        assert ("--view" in text) == (name not in ("append", "verify"))
        assert ("--refs-config" in text) == (name in ("import", "append", "compact"))
    doctor = run("doctor", "--help").stdout
    assert "--store" in doctor
    assert not any(option in doctor for option in ("--tenant", "--workflow", "--view", "--refs-config"))


def test_options_that_do_nothing_are_taken_all_the_same(answer: Any, run: Run, store: Path) -> None:
    store.touch()
    assert answer("verify", "--view", "main")["ok"]


def test_the_help_says_which_workflow_is_taken(run: Run) -> None:
    def said(command: str) -> str:
        return " ".join(run(command, "--help").stdout.split())

    stem, only = "the file's name without suffix", "the store's only workflow"
    assert f"[default: {stem}]" in said("import")
    assert all(f"[default: {stem}; else {only}]" in said(command) for command in ("append", "compact"))
    for command in ("context", "checkpoint", "recover", "recall", "manifest", "lineage"):
        assert f"[default: {only}]" in said(command)
        assert stem not in said(command)
    assert stem not in said("verify")
    assert "as `context` prints it. [default: generation and revision now]" in said("checkpoint")
    assert "other kinds: FILE or -." in said("append")


_WITHOUT_SUBJECT = ("message", "thinking", "note", "pin", "unpin")


def test_append_makes_the_kinds_that_its_help_names(answer: Any, run: Run) -> None:
    text = " ".join(run("append", "--help").stdout.split())
    kinds = text.split("--kind KIND")[1].split("; other")[0].replace(" or ", ", ").split(", ")
    events = dict.fromkeys(("constraint", "lift_constraint", "issue", "resolve", "approval", "revoke"), "s")
    for kind in map(str.strip, kinds):
        subject = ("--subject", events.get(kind, "x")) if kind not in _WITHOUT_SUBJECT else ()
        granter = ("--granter", "ana") if kind == "approval" else ()
        ref = ("--ref", "job-17") if kind in ("note", "pin", "unpin") else ()
        if kind != "release_artifact":  # it needs an artifact, which a file states
            answer("append", "--workflow", "w", "--kind", kind, "--text", "a", *subject, *granter, *ref)
    shown = [part["event_kind"] for part in answer("context")["parts"]]
    assert shown == [kind.strip() for kind in kinds if kind.strip() != "release_artifact"]
    assert answer("append", "--kind", "artifact", "--subject", "s", "--text", "a", code=2)


def test_the_version(run: Run) -> None:
    assert run("--version").stdout.startswith("strandline 0.")


def test_lone_surrogates_and_control_characters(answer: Any, run: Run, tmp_path: Path) -> None:
    record = {
        "type": "user",
        "uuid": "u1",
        "sessionId": "s",
        "message": {"role": "user", "content": "lone \ud83d, \x1b[31mred, \x9b2J, \u202eback"},
    }
    (tmp_path / "s.jsonl").write_text(json.dumps(record))
    run("import", tmp_path / "s.jsonl")
    assert answer("context")["parts"][0]["text"] == record["message"]["content"]  # type: ignore[index]
    raw = run("context", "--json").stdout
    assert "\\ud83d" in raw
    assert raw.isascii()
    assert run("context").stdout == "lone \\ud83d, \\x1b[31mred, \\x9b2J, \\u202eback\n"


def test_json_keeps_what_utf_8_can_hold() -> None:
    assert to_json({"a": "é→😀"}) == '{"a": "é→😀"}'
    assert json.loads(to_json({"a": "\ud800\x7f"})) == {"a": "\ud800\x7f"}


def test_small_words() -> None:
    assert (count(1, "event"), count(2, "event"), count(1200, "pass", "passes")) == (
        "1 event",
        "2 events",
        "1,200 passes",
    )
    assert (span(1, 3), span(2, 2), span(2, 1)) == ("1–3", "2", "none")
    assert table_of([("a", "n"), ("bb", 7), (None, 70)]) == "a   n\nbb   7\n    70"
    assert facts_of([("x", 1000), ("gone", 0), ("none", None)]) == "  x  1,000"
    assert facts_of([]) == ""
    assert printable("a\r\nb\tc\0") == "a\nb\tc\\x00"
    assert plain({"d": b"\x01", "l": errors.LastKnown(seq=1, generation_dropped=None, event_kind="note")}) == {
        "d": "01",
        "l": {"seq": 1, "generation_dropped": None, "event_kind": "note"},
    }


@pytest.mark.parametrize("columns", [72, 80, 120, None])
def test_tables_fit_the_terminal(
    run: Run, answer: Any, store: Path, monkeypatch: pytest.MonkeyPatch, columns: int | None
) -> None:
    """What is long is cut, what can be spared is left out, ids never; --json has all. No terminal: 120 columns."""
    who = ("--by", "the-reviewer-of-the-release", "--why", "a long reason " * 20)
    run("compact", DEMO, "--budget", 6000)
    case = answer("report-regression", 1, *who)["case"]["case_id"]
    run("revert", 0, *who)
    run("reconcile", case, "replay-from-exact", *who)
    again = answer("report-regression", 1, *who)["case"]["case_id"]
    run("guard", "publish-the-release-of-today", "--resolved", "an issue that nobody opened at all", "--by", "x" * 60)
    with strandline.open(store) as db:
        wf = db.tenant("default").workflow(db.tenant("default").workflows()[0])
        wf.effect("the-key-of-the-bucket-" * 9, "storage.create_bucket.of.the.region", {}, lambda: 1)
    monkeypatch.delenv("COLUMNS", raising=False)
    if columns is not None:
        monkeypatch.setenv("COLUMNS", str(columns))
    for verb in ("lineage", "cases --all", "effects", "permits"):
        _, *table = run(*verb.split()).stdout.splitlines()
        assert len(table) >= 2, verb
        assert max(map(len, table)) <= (columns or 120), verb
        assert ("…" in "".join(table)) or columns in (120, None), verb
    shown = run("cases", "--all").stdout
    assert (case in shown, again in shown, "opened (UTC)" in shown) == (True, True, columns in (120, None))
    assert answer("lineage")["entries"][-1]["why"] == "a long reason " * 20
    assert answer("effects")["effects"][0]["key"] == "the-key-of-the-bucket-" * 9


def test_a_table_is_cut_where_it_may_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    rows = [("a", "x" * 200, 7), ("b", "y", 12)]
    whole = fitted(("id", "said", "n"), rows, cut={"said": 10}, spare=[])
    assert [len(line) for line in whole.splitlines()] == [119, 120, 120]
    assert whole.splitlines()[1].endswith("x…   7")
    assert fitted(("id", "said", "n"), [], cut={}, spare=[]) == ""


def test_revert_goes_back_and_says_so(answer: Any, run: Run, compacted: dict[str, Any]) -> None:
    run("append", "--text", "Then all of it was looked at again. " * 200)
    answer("compact", "--budget", 3000)
    case = answer("report-regression", 2, "--by", "ada", "--why", "it lost the budget")["case"]
    assert {"workflow": "api-tests", **case} == answer("cases")["cases"][0]
    assert case["summary_active"]
    done = answer("revert", 1, "--by", "ada", "--why", "it lost the budget")
    assert (done["generation"], done["to_generation"], done["left"]) == (3, 1, [2])
    assert done["case_id"] == case["case_id"]
    assert (done["watermark"], done["acted_on"], done["acted_on_count"]) == (compacted["watermark"], [], 0)
    assert "by ada, why 'it lost the budget'" in run("lineage").stdout
    entry = answer("lineage")["entries"][-1]
    assert (entry["kind"], entry["generation"], entry["by"]) == ("revert", 3, "ada")
    assert "a revert (lineage 3) moved the pointer" not in run("recover").stderr
    shown = run("revert", 0, "--by", "ada", "--why", "all of it")
    assert "generation 4 has the content of generation 0" in shown.stdout
    assert "none: the context is the whole log" in shown.stdout


def test_revert_lists_what_was_made(answer: Any, run: Run, store: Path, compacted: dict[str, Any]) -> None:
    with strandline.open(store) as db:
        wf = db.tenant("default").workflow(db.tenant("default").workflows()[0])
        wf.append(strandline.artifact("report", "art-1", actor="bot"), basis=wf.context())
    shown = run("revert", 0, "--by", "ada", "--why", "x")
    assert "1 thing, below" in shown.stdout
    assert re.search(r"artifact  report +\d+ +1  bot", shown.stdout)
    assert "close the case: `strandline reconcile --workflow api-tests " in shown.stderr


@pytest.mark.parametrize("verb", ["revert", "report-regression"])
def test_revert_refused(answer: Any, run: Run, compacted: dict[str, Any], verb: str) -> None:
    said = ("--by", "ada", "--why", "x")
    error = answer(verb, 9, *said, code=1)["error"]
    assert ("never was at generation 9" in error["message"], error["type"]) == (True, "InvalidInputError")
    assert run(verb, 9, *said).stderr.startswith("error: view 'main' never was")
    assert run(verb, -1, *said).exit_code == 2
    assert run(verb, 1).exit_code == 2
    assert "by is empty" in answer(verb, 1, "--by", " ", "--why", "x", code=1)["error"]["message"]
    assert [entry["kind"] for entry in answer("lineage")["entries"]] == ["compaction"]


def test_a_checkpoint_that_is_a_file(answer: Any, run: Run, compacted: dict[str, Any], tmp_path: Path) -> None:
    file = tmp_path / "state.json"
    file.write_text('{"at": "review of bucket-77aa"}\n', encoding="utf-8")
    made = answer("checkpoint", "--turn", 7, "--external", "state.json")
    assert made["external"]["address"] == str(file)
    assert made["external"]["digest"].startswith("sha256:")
    assert "checkpoint 'main' of turn 7 registered" in run("checkpoint", "--turn", 7, "--external", file).stdout
    restored = run("recover", "--needs", "bucket-77aa")
    assert restored.stdout.startswith('{"at": "review of bucket-77aa"}\n')
    assert "verified" in restored.stderr
    found = answer("recover")
    assert (found["state"], found["external"]["verified"]) == ('{"at": "review of bucket-77aa"}\n', True)
    unread = run("recover", "--no-load")
    assert unread.stdout == ""
    assert "not loaded" in unread.stderr
    file.write_text("{}", encoding="utf-8")
    error = answer("recover", code=3)["error"]
    assert (error["reason"], error["checkpoint_turn"]) == ("checkpoint_digest", 7)
    assert answer("recover", "--no-load")["external"]["verified"] is False


def test_a_checkpoint_that_is_a_file_of_no_text(answer: Any, run: Run, tmp_path: Path) -> None:
    run("append", "--workflow", "w", "--text", "x")
    (tmp_path / "state.bin").write_bytes(b"\xff\x00")
    (tmp_path / "link").symlink_to("state.bin")
    assert answer("checkpoint", "--turn", 1, "--external", "link")["external"]["address"].endswith("state.bin")
    assert run("recover").stdout == ""
    assert answer("recover")["state"] == {"base64": "/wA="}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ((), "give --state or --external"),
        (("--state", "{}", "--external", "x"), "give --state or --external"),
        (("--external", "nowhere"), "No such file"),
        (("--external", "."), "is no file"),
    ],
)
def test_a_checkpoint_that_is_no_file(answer: Any, run: Run, options: tuple[str, ...], said: str) -> None:
    run("append", "--workflow", "w", "--text", "x")
    assert said in answer("checkpoint", "--turn", 1, *options, code=2)["error"]["message"]
    assert answer("lineage")["entries"] == []


def test_a_state_whose_address_is_no_path_is_left_to_the_caller(answer: Any, run: Run, store: Path) -> None:
    run("append", "--workflow", "w", "--text", "x")
    with strandline.open(store) as db:
        wf = db.tenant("default").workflow("w")
        wf.register_checkpoint("s3://bucket/state", f"sha256:{'0' * 64}", 1, basis=wf.context())
    error = answer("recover", code=1)["error"]
    assert "no absolute path" in error["message"]
    assert "--no-load" in error["hint"]
    assert answer("recover", "--no-load")["external"]["address"] == "s3://bucket/state"


def test_rewind_goes_back_and_says_so(answer: Any, run: Run) -> None:
    for number in range(1, 5):
        run("append", "--text", f"turn {number} of bucket-77a{number}", "--workflow", "w")
    run("append", "--kind", "revoke", "--subject", "ship", "--text", "No.")
    kept = answer("checkpoint", "--turn", 1, "--state", '{"n": 1}')
    run("append", "--text", "one more")
    done = answer("rewind", 3, "--by", "ada", "--why", "a wrong turn")
    assert (done["to_revision"], done["revision"], done["branch"], done["events"]) == (3, 7, 1, 3)
    assert (done["restated"], done["generations"]) == ([[7, 5]], {"main": 1})
    assert "[4] message, abandoned" in run("recall", "bucket-77a4").stdout
    assert [hit["abandoned"] for hit in answer("recall", "bucket-77a1")["hits"]] == [False]
    assert "turn 4" not in run("context").stdout
    assert "by ada, why 'a wrong turn'" in run("lineage").stdout
    said = answer("rewind", "--checkpoint", kept["lineage_seq"], "--by", "ada", "--why", "x", code=1)
    assert "later rewind abandoned" in said["error"]["message"]
    kept = answer("checkpoint", "--turn", 2, "--state", '{"n": 2}')
    run("append", "--text", "on the new branch")
    shown = run("rewind", "--checkpoint", kept["lineage_seq"], "--by", "ada", "--why", "x")
    assert "went back to event 7; branch 2 goes on behind event 8" in shown.stdout
    assert answer("recover")["state"] == {"n": 2}
    assert run("verify").exit_code == 0


_REFUSED = ("UsageError", 2), ("InvalidInputError", 1)


@pytest.mark.parametrize(
    ("where", "known"),
    [
        ((9,), True),
        ((3,), True),
        ((2,), True),
        ((-1,), False),
        ((), False),
        ((1, "--checkpoint", 1), False),
        (("--checkpoint", 1), True),
    ],
)
def test_rewind_refused(answer: Any, run: Run, where: tuple[object, ...], known: bool) -> None:
    """What is no event number is a usage error; one to which nobody can go back is refused as input."""
    for number in range(1, 4):
        run("append", "--text", f"turn {number}", "--workflow", "w")
    answer("rewind", 2, "--by", "ada", "--why", "x")
    kind, code = _REFUSED[known]
    assert answer("rewind", *where, "--by", "ada", "--why", "x", code=code)["error"]["type"] == kind
    assert not (known and "Invalid value" in run("rewind", *where, "--by", "ada", "--why", "x").stderr)
    assert len(answer("lineage")["entries"]) == 1


def test_fork_begins_another_workflow(answer: Any, run: Run) -> None:
    for number in range(1, 5):
        run("append", "--text", f"turn {number} of bucket-77a{number}", "--key", f"k{number}", "--workflow", "w")
    forked = answer("fork", "x", "--at", 2, "--by", "ada", "--why", "another way")
    assert (forked["forked"], forked["parent"], forked["revision"], forked["lineage_seq"]) == ("x", "w", 2, 1)
    run("append", "--text", "mine", "--key", "k3", "--workflow", "x")
    assert "mine" in run("context", "--workflow", "x").stdout
    assert "turn 3" not in run("context", "--workflow", "x").stdout
    assert [hit["seq"] for hit in answer("recall", "bucket-77a1", "--workflow", "x")["hits"]] == [1]
    (entry,) = answer("lineage", "--workflow", "x")["entries"]
    assert (entry["kind"], entry["by"], entry["why"]) == ("fork", "ada", "another way")
    hint = re.search(
        "`(--workflow .*?)`", run("fork", "not mine", "--by", "ada", "--why", "x", "--workflow", "w").stderr
    )
    assert hint
    assert answer("context", *shlex.split(hint[1]))["workflow"] == "not mine"
    shown = run("fork", "y", "--by", "ada", "--why", "x", "--workflow", "w")
    assert "'y' begins behind event 4" in shown.stdout
    assert "it shares events 1–4, which are not copied" in shown.stderr
    assert run("verify").exit_code == 0


@pytest.mark.parametrize(
    ("where", "known"),
    [
        (("x", "--at", 5), True),
        (("x", "--at", 0), False),
        (("w",), True),
        (("taken",), True),
        (("",), False),
        ((), False),
        (("x", "--by", " "), True),
    ],
)
def test_fork_refused(answer: Any, run: Run, where: tuple[object, ...], known: bool) -> None:
    run("append", "--text", "turn 1", "--workflow", "w")
    answer("fork", "taken", "--by", "ada", "--why", "x")
    kind, code = _REFUSED[known]
    assert answer("fork", "--workflow", "w", "--by", "ada", "--why", "x", *where, code=code)["error"]["type"] == kind
    assert answer("verify")["workflows"] == 2
