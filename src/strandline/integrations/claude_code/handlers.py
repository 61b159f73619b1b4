"""What each hook does, and what it answers."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from strandline import Carried
from strandline.integrations.claude_code.config import HookConfig
from strandline.integrations.claude_code.guards import applying, decide
from strandline.integrations.claude_code.session import CHECKPOINTS, Session, told
from strandline.limits import HOOK_CONTEXT_CHARS_MAX

_KEEP: Final = "Keep these facts word for word in the summary, and claim no approval beside them:"
_BEFORE: Final = "From the log of this session, word for word; where a summary says otherwise, this holds."
_FROM_LOG: Final = "More of it: `strandline recall {where} -- REF`, `strandline events {where} N`."
_TORN: Final = "The session's file is damaged, so the history above may be cut short. The log has all that is whole."


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What a hook answers on stdout: an object, or plain text; neither: nothing."""

    value: Mapping[str, object] | None = None
    text: str = ""


SILENCE: Final = Reply()
TOLD_MAX: Final = 3  # sentences of a summary that the user is shown


def pre_compact(session: Session, config: HookConfig) -> Reply:
    """Import all, and keep a checkpoint of what is there. Facts in force are asked to be kept word for word."""
    report = session.import_new()
    if report is None:
        return SILENCE
    if report.foreign_summaries:
        session.judge_newest()
    revision = session.workflow.basis().revision
    state = {
        "session": session.payload.session_id,
        "file": session.payload.transcript_path,
        "lines": report.lines,
        "trigger": session.payload.trigger,
    }
    session.workflow.checkpoint(state, revision, name=CHECKPOINTS, context_free=True)
    facts = session.workflow.carried(config.budget).facts_text
    return Reply(text=f"{_KEEP}\n{facts}") if facts else SILENCE


def post_compact(session: Session, config: HookConfig) -> Reply:  # noqa: ARG001  as every handler
    """Judge the summary that was made, keep its manifest, and tell the user where it may not be trusted."""
    session.import_new()
    summary = session.payload.compact_summary
    if summary is None:
        session.notes.append("Claude Code hands out no summary here; it is judged once it stands in the session's file")
        return SILENCE
    judgement = session.judge(summary)
    if judgement.case_id is None:
        return SILENCE
    said = "".join(f"\n- {one.detail}" for one in judgement.violations[:TOLD_MAX] if one.rule in str(judgement.reasons))
    return Reply(value={"systemMessage": f"strandline: {told(judgement.reasons)} (case {judgement.case_id}){said}"})


def session_start(session: Session, config: HookConfig) -> Reply:
    """Put back what a summary dropped and is mandatory, with a ledger of references."""
    report = session.import_new()
    if report is not None and report.foreign_summaries:
        session.judge_newest()
    if not session.workflow.basis().revision:
        return SILENCE
    beside = ""
    if session.payload.source == "resume":  # then the newest summary stands before the model; after "compact" it is not
        beside = next((foreign.text for foreign in session.workflow.foreign_summaries()[-1:]), "")  # yet in the file
    carried = session.workflow.carried(config.budget, beside=beside)
    torn = report is not None and report.left_out_count > 0
    text = _carried_text(_where(config, session.workflow.name), carried, torn=torn)
    if len(text) > HOOK_CONTEXT_CHARS_MAX:
        session.notes.append(
            f"what must be carried takes {len(text):,} characters; Claude Code shows {HOOK_CONTEXT_CHARS_MAX:,} at "
            "once, and names a file for the rest. Lift constraints and close issues that hold no longer"
        )
    return _context("SessionStart", text) if text else SILENCE


def user_prompt_submit(session: Session, config: HookConfig) -> Reply:  # noqa: ARG001  as every handler
    """Import what is new; remind of a summary that may not be trusted, as long as nobody answered its case."""
    _catch_up(session)
    case = session.open_case()
    if case is None:
        return SILENCE
    why = told(case.detail.get("reasons", ""))
    return _context("UserPromptSubmit", f"strandline: {why}. Act on what the log says (case {case.case_id} is open).")


def stop(session: Session, config: HookConfig) -> Reply:  # noqa: ARG001  as every handler
    """Import what is new."""
    _catch_up(session)
    return SILENCE


def pre_tool_use(session: Session, config: HookConfig) -> Reply:
    """Let a call through, or not. Silence leaves it to Claude Code's own permissions."""
    rules = applying(config.guards, session.payload)
    refused = decide(session.workflow, rules, session.payload) if rules else None
    if refused is None:
        return SILENCE
    return decision(refused.decision, refused.reason)


def decision(what: str, reason: str) -> Reply:
    """Return the answer that denies a call, or asks the user."""
    why = f"strandline: {reason}"
    said = {"hookEventName": "PreToolUse", "permissionDecision": what, "permissionDecisionReason": why}
    return Reply(value={"hookSpecificOutput": said})


HANDLERS: Final[Mapping[str, Callable[[Session, HookConfig], Reply]]] = {
    "PreCompact": pre_compact,
    "PostCompact": post_compact,
    "SessionStart": session_start,
    "UserPromptSubmit": user_prompt_submit,
    "Stop": stop,
    "PreToolUse": pre_tool_use,
}


def _catch_up(session: Session) -> None:
    report = session.import_new()
    if report is not None and report.foreign_summaries:
        session.judge_newest()


def _context(event: str, text: str) -> Reply:
    return Reply(value={"hookSpecificOutput": {"hookEventName": event, "additionalContext": text}})


def _where(config: HookConfig, workflow: str) -> str:
    """Return the options that name the log; a URL is left out, for it may hold a password."""
    store = [] if "://" in config.store else ["--store", config.store]
    return shlex.join([*store, "--tenant", config.tenant, "--workflow", workflow])


def _carried_text(where: str, carried: Carried, *, torn: bool) -> str:
    calls = [f"- {call.call_id} (tool {call.tool}) [event {call.seq}]" for call in carried.open_calls]
    parts = [
        _TORN if torn else "",
        carried.facts_text,
        "\n".join(["Calls without a result so far:", *calls]) if calls else "",
        carried.ledger_text,
    ]
    said = [part for part in parts if part]
    return "\n\n".join([_BEFORE, *said, _FROM_LOG.format(where=where)]) if said else ""
