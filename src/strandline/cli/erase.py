"""`strandline erase`: take what events said out of the store, and out of all that was made from it (C31)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Final

import typer

from strandline.cli.command import Answer, Target, number
from strandline.cli.output import count, plain, span, table_of
from strandline.cli.revert import By
from strandline.rules.erasure import spans_of

if TYPE_CHECKING:
    from strandline import Erased, FileScan, Retained

_WHY_HELP: Final = "Why; it is kept for ever, so it names nobody."
_FORCE_HELP: Final = "Also what a reader that has not finished still needs. Nothing forces a legal hold."
Why = Annotated[str, typer.Option(metavar="TEXT", help=_WHY_HELP)]
Events = Annotated[list[int] | None, typer.Option("--event", metavar="SEQ", parser=number(1), help="An event.")]
Refs = Annotated[list[str] | None, typer.Option("--ref", metavar="REF", help="Every event that holds it.")]
Actor = Annotated[str | None, typer.Option(metavar="NAME", help="Every event by this actor.")]
Person = Annotated[
    str | None, typer.Option(metavar="NAME", help="Every event by this person, granted by him, or with his name.")
]
Everything = Annotated[bool, typer.Option("--everything", help="Every event; of a fork, those since the fork.")]
AllWorkflows = Annotated[bool, typer.Option("--all-workflows", help="In every workflow of the tenant.")]
Force = Annotated[bool, typer.Option("--force", help=_FORCE_HELP)]
NoScan = Annotated[bool, typer.Option("--no-scan", help="Don't search the files for what was erased.")]


def erase(
    target: Target,
    by: By,
    why: Why,
    event: Events = None,
    ref: Refs = None,
    actor: Actor = None,
    person: Person = None,
    everything: Everything = False,
    all_workflows: AllWorkflows = False,
    force: Force = False,
    no_scan: NoScan = False,
) -> Answer:
    """Erase what events said, and all that was made from it, with proof.

    Envelope, key and digests stay, so `verify` holds. Summaries are re-derived from what remains.
    """
    if not (event or ref or actor or person or everything):
        raise typer.BadParameter("say what: --event, --ref, --actor, --person or --everything")
    if all_workflows and event:
        raise typer.BadParameter("events have numbers within one workflow", param_hint="--event")
    if all_workflows:
        with target.open_store() as db:
            found = db.tenant(target.tenant).erase(
                refs=ref or (), actor=actor, person=person, everything=everything, by=by, why=why, force=force,
                scan=not no_scan,
            )  # fmt: skip
        return answer_of(target, found, "erased")
    with target.open() as workflow:
        erased = workflow.erase(
            events=event or (), refs=ref or (), actor=actor, person=person, everything=everything, by=by, why=why,
            force=force, scan=not no_scan,
        )  # fmt: skip
    return Answer(
        value={"erased": plain(erased)},
        heading=f"{count(erased.event_count, 'event')} erased" if erased.event_count else "there was nothing to erase",
        facts=_facts(erased),
        text="\n".join(_look_at(erased)),
        hint=_hint(erased.scan),
    )


def answer_of(target: Target, found: list[Retained], done: str) -> Answer:
    """Return the answer of what was done in several workflows; no success where it was refused in one."""
    rows = [(one.workflow, one.due, _outcome(one, done)) for one in found]
    refused = sum(bool(one.refused) for one in found)
    error: dict[str, object] = {
        "type": "ErasureRefusedError",
        "message": f"{count(refused, 'workflow')} refused; "
        + "; ".join(one.refused for one in found if one.refused)[:500],
        "hint": "What was done elsewhere stands. Repeat it once nothing is in the way; what is gone is passed over.",
    }
    total = sum(one.erased.event_count for one in found if one.erased)
    heading = f"{count(total, 'event')} {done}" if total or done == "erased" else "nothing was erased"
    return Answer(
        value={"tenant": target.tenant, "workflows": [plain(one) for one in found]},
        heading=heading + (f", {count(refused, 'workflow')} refused" if refused else ""),
        facts=_scans_facts(found),
        text="\n".join([table_of([("workflow", "events", "outcome"), *rows]), *_look_at_each(found)]) if rows else "",
        hint=next((_hint(one.erased.scan) for one in found if one.erased), ""),
        error=error if refused else {},
        code=int(bool(refused)),
    )


def _outcome(one: Retained, done: str) -> str:
    if one.refused:
        return one.refused
    if one.erased and not one.erased.event_count:
        return "no event holds it"
    return f"{done}, lineage {one.erased.lineage_seq}" if one.erased else "due"


def _facts(erased: Erased) -> list[tuple[str, object]]:
    also = ", ".join(f"{rows:,} {table}" for table, rows in sorted(erased.also.items()) if rows)
    moved = ", ".join(f"{view}: {generation}" for view, generation in erased.generations.items())
    return [
        ("events", ", ".join(span(*pair) for pair in spans_of(erased.events))),
        ("references gone", erased.refs),
        ("also in", also),
        ("forks reached", ", ".join(erased.forks)),
        ("generation", moved),
        ("lineage", erased.lineage_seq),
        *_scan_facts(erased.scan),
    ]


def _scan_facts(scan: FileScan | None) -> list[tuple[str, object]]:
    if scan is None or not scan.files:
        return []
    size = sum(scan.files.values())
    found = f"{scan.found:,} places hold it still" if scan.found else "0 places hold it"
    return [("files", f"{size:,} bytes of {', '.join(scan.files)} searched for {scan.searched_for:,} strings: {found}")]


def _scans_facts(found: list[Retained]) -> list[tuple[str, object]]:
    """Return the proofs of several workflows as one: the same files were searched for the strings of each."""
    scans = [one.erased.scan for one in found if one.erased and one.erased.scan]
    if not scans:
        return []
    searched, places = sum(scan.searched_for for scan in scans), sum(scan.found for scan in scans)
    return _scan_facts(replace(scans[-1], searched_for=searched, found=places))


def _look_at_each(found: list[Retained]) -> list[str]:
    return [f"{one.workflow}: {line}" for one in found if one.erased for line in _look_at(one.erased)]


def _look_at(erased: Erased) -> list[str]:
    """Return what the store can't erase by itself, a line each."""
    lines = [f"repeated in {place}, which was not erased" for place in erased.repeated_in]
    more = erased.repeated_count - len(erased.repeated_in)
    lines += [f"and in {more:,} more"] if more > 0 else []
    lines += [f"left in {place}: {_way_out(place)}" for place in erased.left_in]
    return lines + [f"a state made while it was there lives at {address}" for address in erased.outside]


def _way_out(place: str) -> str:
    of_state = place.startswith(("state_node ", "saved_state "))  # the name of a line outlives its states
    return "an erasure leaves it; delete the state that holds it" if of_state else "an erasure leaves it"


def _hint(scan: FileScan | None) -> str:
    return f"Not proved by this: {scan.note}." if scan is not None and scan.note else ""
