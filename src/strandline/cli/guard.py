"""`strandline guard`: may an action be done, by durable facts (C24)?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Final

import typer

from strandline.cli.command import Answer, Target, as_usage, number
from strandline.cli.output import at, plain
from strandline.limits import NEEDS_OF_ACTION_MAX

if TYPE_CHECKING:
    from strandline import ActionNeed, FactVersion

_APPROVED_HELP: Final = (
    "An approval of SUBJECT must be in force, for SCOPE if one is named behind the last @ (so of a@b write a@b@). "
    "Repeatable."
)
Action = Annotated[str, typer.Argument(metavar="ACTION", help="What is to be done.", show_default=False)]
Subjects = list[str] | None
Approved = Annotated[Subjects, typer.Option(metavar="SUBJECT[@SCOPE]", help=_APPROVED_HELP)]
Quorum = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        parser=number(1, NEEDS_OF_ACTION_MAX),
        help="Each --approved needs N different granters.  [default: 1]",
    ),
]
Granters = Annotated[
    Subjects, typer.Option("--granter", metavar="NAME", help="Only they may grant what --approved names. Repeatable.")
]
Author = Annotated[str | None, typer.Option(metavar="NAME", help="Whose own approval does not count.")]
Resolved = Annotated[
    Subjects, typer.Option(metavar="SUBJECT", help="The issue was opened and is resolved. Repeatable.")
]
NoOpenIssue = Annotated[Subjects, typer.Option(metavar="SUBJECT", help="No such issue is open. Repeatable.")]
NoOpenIssues = Annotated[bool, typer.Option("--no-open-issues", help="No issue is open at all.")]
InForce = Annotated[Subjects, typer.Option(metavar="SUBJECT", help="The constraint is in force. Repeatable.")]
NotInForce = Annotated[Subjects, typer.Option(metavar="SUBJECT", help="The constraint is not in force. Repeatable.")]
By = Annotated[str, typer.Option(metavar="NAME", help="Who acts; an approval by the same name does not count.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Decide, and record nothing.")]


def guard(
    target: Target,
    action: Action,
    approved: Approved = None,
    quorum: Quorum = None,
    granters: Granters = None,
    author: Author = None,
    resolved: Resolved = None,
    no_open_issue: NoOpenIssue = None,
    no_open_issues: NoOpenIssues = False,
    in_force: InForce = None,
    not_in_force: NotInForce = None,
    by: By = "",
    dry_run: DryRun = False,
) -> Answer:
    """Decide whether ACTION may be done, and record the decision; exit code 1 if not."""
    import strandline

    if not approved and (quorum is not None or granters or author is not None):
        raise typer.BadParameter("it says whose approval counts; name of what", param_hint="--approved")
    with as_usage():
        needs = [*_approvals(approved or (), quorum or 1, granters, author)]
        needs += [strandline.resolved(subject) for subject in resolved or ()]
        needs += [strandline.no_open_issue(_some(subject)) for subject in no_open_issue or ()]
        needs += [strandline.no_open_issue()] if no_open_issues else []
        needs += [strandline.in_force(subject) for subject in in_force or ()]
        needs += [strandline.not_in_force(subject) for subject in not_in_force or ()]
    if not needs:
        raise typer.BadParameter("say what must hold, such as --approved SUBJECT", param_hint="--approved")
    with target.open() as workflow:
        permit = workflow.guard(action, needs, by=by, dry_run=dry_run)
    return Answer(
        value={"permit": plain(permit)},
        heading=f"{action!r} is permitted",
        facts=[
            ("permit", permit.permit_id or "dry run: nothing was recorded"),
            *((" " if number else "rests on", said) for number, said in enumerate(map(_fact, permit.facts))),
            ("expires", at(permit.expires_us) if permit.expires_us is not None else ""),
        ],
    )


def _approvals(
    asked: Sequence[str], quorum: int, granters: Sequence[str] | None, author: str | None
) -> Iterator[ActionNeed]:
    import strandline

    for text in asked:
        subject, _, scope = text.rpartition("@") if "@" in text else (text, "", "")
        yield strandline.approved(subject, scope=scope or None, quorum=quorum, granters=granters or None, author=author)


def _some(subject: str) -> str:
    if not subject:
        raise typer.BadParameter("name a subject, or give --no-open-issues", param_hint="--no-open-issue")
    return subject


def _fact(fact: FactVersion) -> str:
    if not fact.seq:
        return f"none of {fact.subject!r}" if fact.subject else "no open issue"
    by = f" by {fact.holder!r}" if fact.holder else ""
    return f"{fact.subject!r}{by} [event {fact.seq}]{', single use' if fact.single_use else ''}"
