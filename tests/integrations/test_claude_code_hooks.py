"""Law (C38, I4, I9, I10, I18, I20): hooks of Claude Code, as it calls them: one JSON object on stdin; stdout, stderr
and the exit code are the answer. Payloads have the fields of the documentation, and some that nobody knows.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

import strandline as sl
from strandline.integrations.claude_code.config import EVENTS
from strandline.integrations.claude_code.hook import run
from strandline.limits import HOOK_INPUT_BYTES_MAX

SESSION = "0f1e2d3c"
RULE = "Never push to the branch main."
SUMMARY = f"{RULE}\nWe looked at logs/run-1.txt."
Record = dict[str, object]


class Answer(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def said(self) -> dict[str, object]:
        """What stands in hookSpecificOutput."""
        return json.loads(self.out)["hookSpecificOutput"]


class Project:
    """A folder with a session's file, and a strandline.json."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.file = folder / "session.jsonl"
        self.config = folder / "strandline.json"
        self.configure()

    def configure(self, **settings: object) -> None:
        self.config.write_text(json.dumps({"store": "s.db", **settings}))

    def say(self, *records: Record) -> None:
        with self.file.open("ab") as file:
            file.writelines(json.dumps(record, separators=(",", ":")).encode() + b"\n" for record in records)

    def hook(self, event: str, **fields: object) -> Answer:
        common = {"session_id": SESSION, "transcript_path": str(self.file), "cwd": "/x", "hook_event_name": event}
        unknown = {"prompt_id": "p", "effort": {"level": "high"}, "to_come": [1, None]}
        return self.raw(event, json.dumps({**common, **unknown, **fields}).encode())

    def raw(self, event: str, data: bytes, arguments: Sequence[str] = ()) -> Answer:
        out, err = io.StringIO(), io.StringIO()
        code = run([*(arguments or (event, "--config", str(self.config)))], io.BytesIO(data), out, err)
        return Answer(code, out.getvalue(), err.getvalue())

    def workflow(self) -> Iterator[sl.Workflow]:
        with sl.open(self.folder / "s.db") as db:
            yield db.tenant("default").workflow(SESSION)

    def append(self, *events: sl.NewEvent) -> None:
        for workflow in self.workflow():
            workflow.append(list(events))

    def texts(self) -> list[str]:
        return [event.text for workflow in self.workflow() for event in workflow.events()]


@pytest.fixture
def project(tmp_path: Path) -> Project:
    made = Project(tmp_path)
    made.say(*_turns(0, 3))
    return made


def _record(type: str, uuid: str, content: object, **members: object) -> Record:
    return {"type": type, "uuid": uuid, "sessionId": SESSION, "message": {"content": content}, **members}


def _turns(first: int, last: int) -> list[Record]:
    records = []
    for number in range(first, last):
        call = {"type": "tool_use", "id": f"c{number}", "name": "Bash", "input": {"command": "make"}}
        result = {"type": "tool_result", "tool_use_id": f"c{number}", "content": f"see logs/run-{number}.txt"}
        records += [_record("assistant", f"a{number}", [call]), _record("user", f"r{number}", [result])]
    return records


def _compacted(number: int, text: str = SUMMARY) -> list[Record]:
    boundary = {"type": "system", "subtype": "compact_boundary", "uuid": f"b{number}", "sessionId": SESSION}
    return [
        {**boundary, "compactMetadata": {"trigger": "auto", "preTokens": 9}},
        _record("user", f"sum{number}", text, isCompactSummary=True),
    ]


# ---------------------------------------------------------------------------------------------- a compaction


def test_a_session_through_a_compaction(project: Project) -> None:
    """PreCompact, SessionStart and PostCompact in the order in which Claude Code calls them, then the next prompt."""
    project.hook("SessionStart", source="startup")
    project.append(sl.constraint("push", RULE, actor="lead"), sl.issue("scope", "The token may write."))
    project.say(_record("user", "u9", "go on"))
    before = project.hook("PreCompact", trigger="auto", custom_instructions=None)
    assert before.code == 0
    assert RULE in before.out  # Claude Code adds it to the instructions of the compaction
    after = project.hook("SessionStart", source="compact", model="m")
    assert after.said["hookEventName"] == "SessionStart"
    put_back = str(after.said["additionalContext"])
    assert RULE in put_back
    assert "The token may write." in put_back
    assert "logs/run-2.txt" in put_back
    judged = project.hook("PostCompact", trigger="auto", compact_summary=SUMMARY)
    assert json.loads(judged.out).keys() == {"systemMessage"}  # with anything else the answer is thrown away
    assert "issue scope: dropped" in judged.out
    for workflow in project.workflow():
        (case,) = workflow.cases()
        assert (case.kind, case.detail["reasons"]) == (sl.CaseKind.FOREIGN_SUMMARY, ["issue scope: dropped"])
        names = [entry.name for entry in workflow.lineage()]
        assert names == ["claude-code", "claude-code-summary"]
        kept = workflow.recover(name="claude-code-summary", dry_run=True).state
        assert isinstance(kept, dict)
        seen = {ref for event in workflow.events() for ref in (*event.declared, *event.extracted)}
        dropped = {ref for ref, _ in kept["dropped"]}
        assert kept["refs_seen"] == len(seen)
        assert "logs/run-2.txt" in dropped  # I9: verbatim in the summary, or in the manifest
        assert "logs/run-1.txt" not in dropped
        assert kept["dropped_count"] == len(dropped)
    project.say(*_compacted(1), _record("user", "u10", "and now?"))
    told = project.hook("UserPromptSubmit", prompt="and now?")
    assert "issue scope: dropped" in str(told.said["additionalContext"])
    for workflow in project.workflow():
        assert len(workflow.cases()) == 1  # the same summary, now in the file, is not judged twice
        assert len(workflow.lineage()) == 2
        workflow.reconcile(workflow.cases()[0], sl.Abandon(), by="ann", why="seen")
    assert project.hook("UserPromptSubmit", prompt="next").out == ""


def test_where_the_summary_is_not_handed_out_it_is_judged_from_the_file(project: Project) -> None:
    """Before 2.1.76 there is no PostCompact."""
    project.hook("Stop", stop_hook_active=False)
    project.append(sl.constraint("push", RULE, actor="lead"))
    project.say(_record("user", "u9", "go on"), *_compacted(1, "Nothing of note. Ann approved the push."))
    told = project.hook("UserPromptSubmit", prompt="x")
    assert "constraint push: dropped" in told.out
    assert "invented_approval" in told.out
    assert project.hook("PostCompact", trigger="auto").code == 0


def test_a_summary_is_judged_once_also_where_its_boundary_closes_a_call(project: Project) -> None:
    """I8: at the boundary an open call is abandoned, so the summary in the file speaks for one event more."""
    call = {"type": "tool_use", "id": "c9", "name": "Agent", "input": {"prompt": "look"}}
    project.say(_record("assistant", "a9", [call]))
    for number in (1, 2):
        project.hook("PreCompact", trigger="auto")
        project.hook("PostCompact", trigger="auto", compact_summary=SUMMARY)
        project.say(*_compacted(number))
        for _ in range(2):
            project.hook("Stop")
    for workflow in project.workflow():
        names = [entry.name for entry in workflow.lineage()]
        assert names.count("claude-code-summary") == len(workflow.foreign_summaries()) == 2


def test_an_invented_approval_is_said_with_its_sentence(project: Project) -> None:
    project.hook("PreCompact", trigger="manual")
    answer = project.hook(
        "PostCompact", trigger="manual", compact_summary="The user approved the release of version 2."
    )
    assert "The user approved the release" in json.loads(answer.out)["systemMessage"]


def test_a_faithful_summary_is_met_with_silence(project: Project) -> None:
    project.hook("PreCompact", trigger="auto")
    assert project.hook("PostCompact", trigger="auto", compact_summary="We ran make three times.") == (0, "", "")


def test_a_resumed_session_is_told_what_its_summary_lacks(project: Project) -> None:
    project.say(*_compacted(1), *_turns(3, 4))
    answer = project.hook("SessionStart", source="resume")
    context = str(answer.said["additionalContext"])
    assert "logs/run-2.txt" in context
    assert "logs/run-1.txt" not in context  # it stands in the summary, which the model has


def test_open_calls_are_put_back(project: Project) -> None:
    call = {"type": "tool_use", "id": "c9", "name": "Agent", "input": {"prompt": "look"}}
    project.say(_record("assistant", "a9", [call]))
    assert "- c9 (tool Agent)" in str(project.hook("SessionStart", source="compact").said["additionalContext"])


def test_a_session_without_anything_is_left_alone(tmp_path: Path) -> None:
    project = Project(tmp_path)
    for event in EVENTS:
        assert project.hook(event, source="startup", trigger="auto", tool_name="Bash", tool_use_id="t").out == ""


def test_one_workflow_for_all_sessions(project: Project) -> None:
    """Facts that are declared for the project hold in each session, from its start."""
    project.configure(workflow="project")
    with sl.open(project.folder / "s.db") as db:
        db.tenant("default").workflow("project").append(sl.constraint("push", RULE))
    assert RULE in project.hook("SessionStart", source="startup").out


def test_more_facts_than_claude_code_shows_are_never_cut(project: Project) -> None:
    """C11: mandatory facts are not cut; it is said that they are too many."""
    rules = [sl.constraint(f"rule-{n}", f"Rule {n}: " + "never do that. " * 60) for n in range(12)]
    project.append(*rules)
    answer = project.hook("SessionStart", source="compact")
    assert all(f"Rule {n}:" in answer.out for n in range(12))
    assert "Claude Code shows 10,000" in answer.err


# ---------------------------------------------------------------------------------------------- torn lines


@pytest.mark.parametrize("tear", ["at the end", "in the middle", "glued"])
def test_a_torn_summary_line_costs_no_history(project: Project, tear: str) -> None:
    """I4: a session reader that skips such a line loses all before it. Here the log keeps it, and says what is torn."""
    for line in _compacted(1):
        project.say(line)
    data = project.file.read_bytes()
    torn = data[:-20] if tear == "at the end" else data[:-20] + (b"\n" if tear == "in the middle" else b"")
    project.file.write_bytes(torn)
    if tear != "at the end":
        project.say(*_turns(5, 7))
    answer = project.hook("SessionStart", source="resume")
    assert answer.code == 0
    texts = project.texts()
    assert sum("logs/run-" in text for text in texts) == {"at the end": 3, "in the middle": 5, "glued": 4}[tear]
    if tear == "at the end":
        assert answer.err == ""  # it may still be written
        return
    assert "line 8" in answer.err
    assert "It is the summary of a compaction" in answer.err
    assert "damaged" in str(answer.said["additionalContext"])
    assert "logs/run-0.txt" in str(answer.said["additionalContext"])
    assert sum("left out" in text for text in texts) == 1


def test_nul_bytes_in_the_middle_cost_no_other_record(project: Project) -> None:
    with project.file.open("ab") as file:
        file.write(b"\0" * 512 + b"\n")
    project.say(*_turns(3, 5))
    answer = project.hook("PreCompact", trigger="auto")
    assert "a NUL byte" in answer.err
    assert sum("logs/run-" in text for text in project.texts()) == 5


# ---------------------------------------------------------------------------------------------- the guard

PUSH = {"tool": "Bash", "mentions": ["git push"], "action": "push", "approved": ["push"]}


def _call(project: Project, command: str, id: str = "t1", tool: str = "Bash") -> Answer:
    return project.hook("PreToolUse", tool_name=tool, tool_input={"command": command}, tool_use_id=id)


def test_a_call_needs_a_durable_approval(project: Project) -> None:
    """I20: what the summary or a message says approves nothing; an event does, once if it is for single use."""
    project.configure(guards=[PUSH])
    project.say(_record("user", "u9", "The push is approved."))
    project.hook("Stop")
    denied = _call(project, "cd x &&  git   push origin main")
    assert denied.said["permissionDecision"] == "deny"
    assert "'push' is not approved" in str(denied.said["permissionDecisionReason"])
    project.append(sl.approval("push", "Go.", granter="ann", single_use=True))
    assert _call(project, "git push") == (0, "", "")  # Claude Code's own permissions go on
    assert _call(project, "git push") == (0, "", "")  # the same call, asked again
    assert _call(project, "git push", "t2").said["permissionDecision"] == "deny"  # it was used
    assert _call(project, "git status", "t3") == (0, "", "")
    for workflow in project.workflow():
        assert [permit.state for permit in workflow.permits()] == ["denied", "consumed", "denied"]


def test_ask_in_place_of_deny(project: Project) -> None:
    project.configure(guards=[{**PUSH, "otherwise": "ask"}])
    assert _call(project, "git push").said["permissionDecision"] == "ask"


@pytest.mark.parametrize("again", ["ask", "deny"])
def test_what_is_done_once_is_noticed(project: Project, again: str) -> None:
    """I18: the same input under another id, its fields in another order."""
    project.configure(guards=[{"tool": "Deploy", "once": True, "again": again}])
    first = project.hook("PreToolUse", tool_name="Deploy", tool_input={"to": "eu", "v": 2}, tool_use_id="t1")
    same = project.hook("PreToolUse", tool_name="Deploy", tool_input={"v": 2, "to": "eu"}, tool_use_id="t1")
    repeat = project.hook("PreToolUse", tool_name="Deploy", tool_input={"v": 2, "to": "eu"}, tool_use_id="t2")
    other = project.hook("PreToolUse", tool_name="Deploy", tool_input={"v": 3, "to": "eu"}, tool_use_id="t3")
    assert (first, same, other) == ((0, "", ""), (0, "", ""), (0, "", ""))
    assert repeat.said["permissionDecision"] == again
    assert "'t1'" in str(repeat.said["permissionDecisionReason"])


def test_each_rule_must_let_it_through(project: Project) -> None:
    project.configure(guards=[PUSH, {"tool": "*", "no_open_issue": ["scope"]}])
    project.append(sl.approval("push", "Go.", granter="ann"), sl.issue("scope", "It may write."))
    assert "'scope'" in str(_call(project, "git push").said["permissionDecisionReason"])
    assert _call(project, "x", tool="Write").said["permissionDecision"] == "deny"
    project.append(sl.resolve("scope", "It reads."))
    assert _call(project, "git push", "t2").out == ""


def test_a_revocation_counts(project: Project) -> None:
    project.configure(guards=[PUSH])
    project.append(sl.approval("push", "Go.", granter="ann"), sl.revoke("push"))
    assert _call(project, "git push").said["permissionDecision"] == "deny"


def test_a_call_that_no_rule_is_about_opens_no_store(project: Project) -> None:
    project.configure(store="nowhere/at/all.db", guards=[PUSH])
    assert _call(project, "ls") == (0, "", "")
    assert _call(project, "git push").code == 2  # failed closed


# ---------------------------------------------------------------------------------------------- what fails


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b'{"session_id": 1}',
        b'{"transcript_path": "x"}',
        b'{"session_id": "a/\\u0000b","tool_name":"Bash","tool_use_id":"t"}',
        b"\xff",
        b'{"session_id":"s","hook_event_name":"Nope"}',
        b'{"session_id":"s","tool_input":' + b"[" * 5_000 + b"]" * 5_000 + b',"tool_name":"Bash","tool_use_id":"t"}',
        b'{"session_id":"s","tool_name":"Bash"}',
    ],
)
def test_a_bad_input_fails_as_configured(project: Project, data: bytes) -> None:
    project.configure(guards=[{"tool": "*", "mentions": ["x", "["], "once": True}, {"tool": "Bash", "once": True}])
    answer = project.raw("PreToolUse", data)
    assert (answer.code, answer.out) == (2, "")
    assert answer.err.startswith("strandline: the hook of PreToolUse failed closed: ")
    assert answer.err.count("\n") == 1
    project.configure(on_failure={"PreToolUse": "open"}, guards=[{"tool": "*", "once": True}])
    assert project.raw("PreToolUse", data).code == 1


def test_an_input_without_end_is_refused(project: Project) -> None:
    assert "more than" in project.raw("Stop", b" " * (HOOK_INPUT_BYTES_MAX + 5)).err


@pytest.mark.parametrize("event", [event for event in EVENTS if event != "PreToolUse"])
def test_a_store_that_can_t_be_opened_fails_open_unless_told_otherwise(project: Project, event: str) -> None:
    project.configure(store="nowhere/at/all.db")
    answer = project.hook(event, source="compact", trigger="auto", compact_summary="x")
    assert (answer.code, answer.out) == (1, "")
    assert "nowhere/at/all.db" in answer.err
    if event in ("PreCompact", "UserPromptSubmit"):
        project.configure(store="nowhere/at/all.db", on_failure={event: "closed"})
        assert project.hook(event, trigger="auto").code == 2


@pytest.mark.parametrize(
    ("arguments", "code"),
    [([], 1), (["Stop"], 1), (["Nope", "--config", "x"], 1), (["PreToolUse", "--old", "x"], 2), (["PreToolUse"], 2)],
)
def test_arguments_of_another_release_fail_as_the_event_does(project: Project, arguments: list[str], code: int) -> None:
    """A usage error has exit code 2 elsewhere; here that would stop the agent."""
    assert project.raw("", b"{}", arguments or ["?"]).code == code


def test_a_broken_configuration_guards_all_the_same(project: Project) -> None:
    project.config.write_text("{")
    assert _call(project, "ls").code == 2
    assert project.hook("Stop").code == 1


def test_a_file_that_was_rewritten_is_refused_and_costs_nothing(project: Project) -> None:
    """I3: a record that was imported says something else now."""
    project.hook("Stop")
    before = project.texts()
    project.file.write_bytes(project.file.read_bytes().replace(b"run-1.txt", b"run-9.txt"))
    with project.file.open("ab") as file:
        file.write(json.dumps(_record("user", "u9", "x")).encode() + b"\n")
    assert project.hook("Stop").code == 0  # what is new is taken
    assert project.texts() == [*before, "x"]
