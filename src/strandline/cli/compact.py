"""`strandline compact`: cover older events by a validated summary, after an import where a file is given."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from strandline.cli.command import Answer, Budget, Target, number
from strandline.cli.failures import AGAIN, CONFLICT, REJECTED
from strandline.cli.import_transcript import check_file, hinted, import_file
from strandline.cli.output import count, pick, plain, span, when
from strandline.cli.progress import progress
from strandline.cli.shares import SharesOption
from strandline.cli.spool import spooled
from strandline.cli.summarizer import DEFAULT, Chosen, NoFallback, summarizer_of
from strandline.model.due import PRIORITY_MAX, PRIORITY_USUAL

if TYPE_CHECKING:
    from strandline import CompactionOutcome, DueCompaction, Shares

File = Annotated[
    Path | None, typer.Argument(metavar="FILE", help="A transcript to import first; - is stdin.", show_default=False)
]
Strict = Annotated[bool, typer.Option("--strict", help="Refuse if any event was appended meanwhile.")]
Through = Annotated[int | None, typer.Option(metavar="SEQ", parser=number(1), help="The last event to cover.")]
WhenTokens = Annotated[int | None, typer.Option(metavar="N", parser=number(0), help="Do nothing below this size.")]
Later = Annotated[bool, typer.Option("--later", help="Ask for it in the background; `run-due` or a worker runs it.")]
Delay = Annotated[float | None, typer.Option("--delay", metavar="SECONDS", help="With --later: not before.")]
Priority = Annotated[
    int | None,
    typer.Option(metavar="N", parser=number(0, PRIORITY_MAX), help="With --later: 0 to 9, 9 is first.  [default: 5]"),
]
_SALVAGE_HINT: Final = (
    "Nothing was imported. Repair or cut the file at the place named; or import it with `strandline import FILE "
    "--salvage`, which leaves out what is damaged, and compact without FILE."
)
_CODES: Final = {"conflict": CONFLICT, "postponed": AGAIN}
_FIELDS: Final = (
    "outcome reason view revision generation watermark lineage_seq depth tokens_before tokens_after summary_tokens"
    " tail_tokens token_counter refs_seen refs_verbatim refs_dropped refs_unaccounted summary_id case_id"
)


def compact(
    target: Target,
    file: File = None,
    budget: Budget = None,
    summarizer: Chosen = DEFAULT,
    strict: Strict = False,
    through: Through = None,
    when_tokens: WhenTokens = None,
    shares: SharesOption = None,
    no_fallback: NoFallback = False,
    later: Later = False,
    delay_s: Delay = None,
    priority: Priority = None,
) -> Answer:
    """Compact; with FILE, import it and compact in one go."""
    if later:
        _check_later(through, shares, no_fallback)
    elif delay_s is not None or priority is not None:
        raise typer.BadParameter("they say when it is run in the background", param_hint="--delay / --priority")
    drafting = None if later else summarizer_of(summarizer)  # of what is run later, `run-due` says it
    begun = opened = imported = time.perf_counter()
    events_imported = 0
    with contextlib.ExitStack() as stack:
        path = None if file is None else stack.enter_context(spooled(file))
        if path is not None:
            check_file(path)
        workflow = stack.enter_context(target.open(create=path is not None, file=path))
        opened = imported = time.perf_counter()
        if path is not None:
            with hinted(_SALVAGE_HINT):
                events_imported = import_file(workflow, path).events_imported
            imported = time.perf_counter()
        if later:
            first = PRIORITY_USUAL if priority is None else priority
            asked = workflow.compact_later(
                budget, when_tokens=when_tokens, strict=strict, delay_s=delay_s or 0.0, priority=first
            )
            return _asked(target, asked, events_imported)
        with progress(f"compacting {workflow.name}"):
            done = workflow.compact(
                budget,
                drafting,
                strict=strict,
                through=through,
                when_tokens=when_tokens,
                shares=shares,
                fallback=not no_fallback,
            )
        case_kind = workflow.case(done.case_id).kind if done.case_id is not None else None
    duration_ms = _ms(begun, time.perf_counter())
    phases_ms = {"open": _ms(begun, opened)} | ({"import": _ms(opened, imported)} if file is not None else {})
    value = pick(done, _FIELDS)
    value |= {"events_imported": events_imported, "attempts": len(done.attempts), "case_kind": case_kind}
    value |= {"duration_ms": duration_ms, "phases_ms": {**phases_ms, **done.phases_ms}}
    ended = done.outcome.replace("_", " ")
    failed = done.outcome not in ("activated", "nothing_to_do")
    error: dict[str, object] = {
        "type": "CompactionOutcome",
        "message": f"the compaction ended as {ended}: {done.reason}",
        "hint": "Nothing was lost: the summary before it stands, and so does the whole log."
        + (f" What to do about it is a case: `{target.command('cases')}`." if done.case_id is not None else ""),
    }
    imported_fact = ("imported", count(events_imported, "event") if events_imported else "")
    return Answer(
        value=value,
        heading=f"generation {done.generation} activated" if done.outcome == "activated" else ended,
        facts=[("reason", done.reason), ("case", done.case_id), imported_fact, *_facts(done, duration_ms)],
        error=error if failed else {},
        code=_CODES.get(done.outcome, REJECTED) if failed else 0,
    )


def _check_later(through: int | None, shares: Shares | None, no_fallback: bool) -> None:
    if through is not None:
        raise typer.BadParameter("in the background it covers what the budget demands", param_hint="--through")
    if shares is not None:
        raise typer.BadParameter("in the background the budget has its usual shares", param_hint="--shares")
    if no_fallback:
        raise typer.BadParameter("who runs it says so: `run-due`, `worker`", param_hint="--no-fallback")


def _asked(target: Target, asked: DueCompaction, events_imported: int) -> Answer:
    return Answer(
        value={"due": plain(asked), "events_imported": events_imported},
        heading="due" if asked.worker is None else "due again after the run that goes on",
        facts=[
            ("due", f"{when(asked.due_us)} UTC" if asked.due_us is not None else ""),
            ("asked for", f"at revision {asked.revision:,}"),
            ("priority", asked.priority),
            ("imported", count(events_imported, "event") if events_imported else ""),
        ],
        hint=f"`{target.command('due')}` lists what is due; `strandline run-due` on the same store runs it.",
    )


def _facts(done: CompactionOutcome, duration_ms: float) -> list[tuple[str, object]]:
    if done.outcome == "nothing_to_do":
        return [("context", f"{count(done.tokens_after, 'token')} ({done.token_counter})")]
    return [
        ("tokens", f"{done.tokens_before:,} before, {done.tokens_after:,} now ({done.token_counter})"),
        ("summary", f"events {span(1, done.watermark)}, {count(done.summary_tokens, 'token')}"),
        ("tail", f"events {span(done.watermark + 1, done.revision)}, {count(done.tail_tokens, 'token')}"),
        ("references", f"{done.refs_seen:,} seen, {done.refs_verbatim:,} of them verbatim in the summary"),
        ("manifest", f"{done.refs_dropped:,} dropped, {done.refs_unaccounted:,} unaccounted for"),
        ("depth", count(done.depth, "lossy pass", "lossy passes")),
        ("time", f"{duration_ms:,.0f} ms"),
    ]


def _ms(begun: float, ended: float) -> float:
    return round((ended - begun) * 1_000, 3)
