"""`strandline copy`: move a store to another place, or from one database to the other (C6)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Final

import typer

from strandline.cli.command import Answer, AsJson, as_usage, show
from strandline.cli.failures import CONFLICT, CORRUPT
from strandline.cli.output import count, fitted, pick
from strandline.cli.progress import progress
from strandline.cli.verify import problems_of

if TYPE_CHECKING:
    from strandline import CopiedHead, CopyReport, VerifyReport

Source = Annotated[str, typer.Argument(metavar="SOURCE", help="The store: a path or a URL.")]
To = Annotated[str, typer.Argument(metavar="TARGET", help="Where it goes: no store, an empty one, or a copy of it.")]
_FINAL_HELP: Final = "Fail (exit code 6) unless the source stood still: for the last copy before it is left."
Final_ = Annotated[bool, typer.Option("--final", help=_FINAL_HELP)]
NoVerify = Annotated[bool, typer.Option("--no-verify", help="Don't prove the target when it is copied.")]
_DIGITS: Final = 12  # of a chain value, for people


def copy(
    source: Source, target: To, final: Final_ = False, no_verify: NoVerify = False, as_json: AsJson = False
) -> None:
    """Copy a store with every seq, digest and lineage entry. Repeat it to go on, or to catch up."""
    import strandline
    from strandline.client.opening import path_of

    for name, url in (("SOURCE", source), ("TARGET", target)):
        with as_usage(name):
            path_of(url)
    with progress("copying") as tell:
        report = strandline.copy_store(source, target, progress=tell)
    verified = None if no_verify else _verify(target)
    of_source = _verify(source) if verified is not None and not verified.ok else None
    value = pick(report, "source target workflows events rows passes settled ok differing heads")
    for name, proved in (("verify", verified), ("verify_source", of_source)):
        value |= {name: pick(proved, "ok workflows events problems")} if proved is not None else {}
    show(
        Answer(
            value=value,
            heading=f"{report.target}: {count(report.workflows, 'workflow')}, {count(report.events, 'event')}"
            + ("; verified" if verified is not None and verified.ok else ""),
            facts=[("rows written", report.rows), ("passes", report.passes)],
            text=_heads(report.heads) + (f"\n\n{problems_of(verified)}" if verified and not verified.ok else ""),
            hint="" if report.settled else "The source was written to meanwhile: run it again to take what is new.",
            **_failure(report, verified, of_source, final=final),  # type: ignore[arg-type]
        ),
        as_json=as_json,
    )


def _verify(store: str) -> VerifyReport:
    import strandline

    with strandline.open(store, create=False) as db, progress(f"verifying {db.store.path}") as tell:
        return db.verify(tell)


def _failure(
    report: CopyReport, verified: VerifyReport | None, of_source: VerifyReport | None, *, final: bool
) -> dict[str, object]:
    """Return error and exit code, the worst first; none: it is done."""
    if not report.ok:
        said = f"{count(report.differing, 'head')} of {report.target} differ from the source's"
        hint = "The target is refused by every command until a copy of it has finished. Delete it and copy anew."
        return {"error": {"type": "CorruptRecordError", "message": said, "hint": hint}, "code": CORRUPT}
    if verified is not None and not verified.ok:
        same = of_source is not None and set(of_source.problems) == set(verified.problems)
        said = f"{count(len(verified.problems), 'problem')} found in {report.target}"
        hint = (
            "The source has the same: rows are copied as they are. Restore it from a backup, then copy anew."
            if same
            else "The source does not have the same: delete the target, and copy anew."
        )
        return {"error": {"type": "CorruptRecordError", "message": said, "hint": hint}, "code": CORRUPT}
    if final and not report.settled:
        said = f"{report.source} was written to while it was copied"
        hint = "End what writes to it, then run this again: it takes what is new."
        return {"error": {"type": "StaleRevisionError", "message": said, "hint": hint}, "code": CONFLICT}
    return {}


def _heads(heads: Sequence[CopiedHead]) -> str:
    rows = [
        (
            head.tenant,
            head.workflow,
            head.source.revision,
            head.source.chain.hex()[:_DIGITS],
            head.source.lineage_seq,
            head.source.lineage_chain.hex()[:_DIGITS],
            "same" if head.same else "missing" if head.target is None else f"differs: event {head.target.revision}",
        )
        for head in heads
    ]
    names = ("tenant", "workflow", "revision", "chain", "lineage", "lineage chain", "target")
    return fitted(names, rows, cut={"workflow": 24, "tenant": 12}, spare=("lineage chain", "chain"))
