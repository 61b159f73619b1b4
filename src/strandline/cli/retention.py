"""`strandline retention`, `retain`, `hold` and `reader`: what is kept, how long, and what stands in the way (C31)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Final

import typer

from strandline.cli.command import Answer, Target, command, named, number
from strandline.cli.erase import Force, NoScan, Why, answer_of
from strandline.cli.output import count, plain, table_of, when
from strandline.cli.revert import By

if TYPE_CHECKING:
    from strandline import Hold, RetentionRule

_UNITS: Final = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}
_SECONDS: Final = 86_400

rules = typer.Typer(
    help="Retention rules of the tenant: which events are kept for how long. `retain` carries them out.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
holds = typer.Typer(
    help="Legal holds: what is under one is not erased, whoever asks.", no_args_is_help=True, rich_markup_mode=None
)
readers = typer.Typer(
    help="Readers of the log outside: what one has not read yet is not erased.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


def _age(text: str) -> float:
    found = re.fullmatch(r"(\d+)([smhd])", text)
    if found is None:
        raise typer.BadParameter(f"{text!r} is no age such as 90d, 12h, 30m or 45s")
    return float(int(found[1]) * _UNITS[found[2]])


Rule = Annotated[str, typer.Argument(metavar="NAME", parser=named("rule"), help="The rule.")]
HoldName = Annotated[str, typer.Argument(metavar="NAME", parser=named("hold"), help="The hold.")]
ReaderName = Annotated[str, typer.Argument(metavar="NAME", parser=named("reader"), help="The reader.")]
Seq = Annotated[int, typer.Argument(metavar="SEQ", parser=number(0), help="The last event that it has read.")]
OlderThan = Annotated[float, typer.Option(metavar="AGE", parser=_age, help="Such as 90d, 12h, 30m, 45s.")]
Kinds = Annotated[list[str] | None, typer.Option("--kind", metavar="KIND", help="Events of this kind. Repeatable.")]
Workflows = Annotated[list[str] | None, typer.Option("--only", metavar="NAME", help="In this workflow. Repeatable.")]
Whole = Annotated[bool, typer.Option("--whole-tenant", help="Of the tenant: every workflow, those to come too.")]
Apply = Annotated[bool, typer.Option("--apply", help="Erase it; without, it is only counted.")]
Finished = Annotated[bool, typer.Option("--finished", help="It needs no more.")]
MaybeBy = Annotated[str, typer.Option("--by", metavar="WHO", help="Who decides; needed with --apply.")]
MaybeWhy = Annotated[str, typer.Option("--why", metavar="TEXT", help="Why; it is kept for ever, so it names nobody.")]


def retain(
    target: Target,
    apply: Apply = False,
    by: MaybeBy = "",
    why: MaybeWhy = "",
    force: Force = False,
    no_scan: NoScan = False,
) -> Answer:
    """Count what the tenant's retention rules keep no longer, and with --apply erase it.

    What states a fact in force, or an open call, is kept as long as it does.
    """
    if apply and not by.strip():
        raise typer.BadParameter("say who decides", param_hint="--by")
    with target.open_store() as db:
        found = db.tenant(target.tenant).retain(apply=apply, by=by, why=why, force=force, scan=not no_scan)
    if apply:
        return answer_of(target, found, "erased")
    due = sum(one.due for one in found)
    answer = answer_of(target, found, "due")
    heading = f"{count(due, 'event')} of {count(len(found), 'workflow')} are kept no longer; nothing was erased"
    return Answer(value=answer.value, heading=heading, text=answer.text, error=answer.error, code=answer.code)


def set_rule(
    target: Target,
    name: Rule,
    older_than: OlderThan,
    by: By,
    why: Why,
    kind: Kinds = None,
    only: Workflows = None,
) -> Answer:
    """Set a rule, or replace the one of this name. Nothing is erased by that."""
    with target.open_store() as db:
        rule = db.tenant(target.tenant).set_retention(
            name, older_than_s=older_than, kinds=kind or (), workflows=only or (), by=by, why=why
        )
    return Answer(value={"rule": plain(rule)}, heading=f"rule {name!r}: {_said(rule)}")


def drop_rule(target: Target, name: Rule, by: By, why: Why) -> Answer:
    """Drop a rule."""
    with target.open_store() as db:
        rule = db.tenant(target.tenant).drop_retention(name, by=by, why=why)
    return Answer(value={"rule": plain(rule)}, heading=f"rule {name!r} is dropped")


def list_rules(target: Target) -> Answer:
    """Print the rules of the tenant."""
    with target.open_store() as db:
        found = db.tenant(target.tenant).retention()
    rows = [(rule.name, _said(rule), rule.by, when(rule.set_us)) for rule in found]
    return Answer(
        value={"rules": [plain(rule) for rule in found]},
        heading=count(len(found), "rule"),
        text=table_of([("rule", "keeps", "by", "set (UTC)"), *rows]) if rows else "",
    )


def _said(rule: RetentionRule) -> str:
    age = f"{rule.older_than_s / _SECONDS:g} days"
    kinds = f"{', '.join(rule.kinds)} events" if rule.kinds else "all events"
    return f"{kinds} of {', '.join(rule.workflows) if rule.workflows else 'every workflow'} for {age}"


def set_hold(target: Target, name: HoldName, by: By, why: Why, whole_tenant: Whole = False) -> Answer:
    """Set a hold on the workflow, or on the whole tenant."""
    if whole_tenant:
        with target.open_store() as db:
            hold = db.tenant(target.tenant).hold(name, by=by, why=why)
    else:
        with target.open() as workflow:
            hold = workflow.hold(name, by=by, why=why)
    return Answer(value={"hold": plain(hold)}, heading=f"hold {name!r} stands; {_covers(hold)}")


def lift_hold(target: Target, name: HoldName, by: By, why: Why, whole_tenant: Whole = False) -> Answer:
    """Lift a hold."""
    if whole_tenant:
        with target.open_store() as db:
            hold = db.tenant(target.tenant).lift_hold(name, by=by, why=why)
    else:
        with target.open() as workflow:
            hold = workflow.lift_hold(name, by=by, why=why)
    return Answer(value={"hold": plain(hold)}, heading=f"hold {name!r} is lifted")


def list_holds(target: Target) -> Answer:
    """Print the holds that cover the workflow, its tenant's too."""
    with target.open() as workflow:
        found = workflow.holds()
    rows = [(hold.name, _covers(hold), hold.by, when(hold.set_us), hold.why) for hold in found]
    return Answer(
        value={"holds": [plain(hold) for hold in found]},
        heading=count(len(found), "hold"),
        text=table_of([("hold", "covers", "by", "set (UTC)", "why"), *rows]) if rows else "",
    )


def _covers(hold: Hold) -> str:
    return "nothing of the tenant is erased" if hold.workflow is None else f"nothing of {hold.workflow!r} is erased"


def read_through(target: Target, name: ReaderName, seq: Seq, finished: Finished = False) -> Answer:
    """Say how far a reader has come; one that is not known is registered."""
    with target.open() as workflow:
        reader = workflow.read_through(name, seq, finished=finished)
    done = ", and has finished" if reader.finished else ""
    return Answer(value={"reader": plain(reader)}, heading=f"reader {name!r} has read through event {seq}{done}")


def list_readers(target: Target) -> Answer:
    """Print the readers of the workflow."""
    with target.open() as workflow:
        found = workflow.readers()
    rows = [(r.name, r.seq, "finished" if r.finished else "reads", when(r.seen_us)) for r in found]
    return Answer(
        value={"readers": [plain(reader) for reader in found]},
        heading=count(len(found), "reader"),
        text=table_of([("reader", "has read through", "state", "said (UTC)"), *rows]) if rows else "",
    )


_TENANT = ("workflow", "view", "refs_config")
_VIEW = ("view", "refs_config")
rules.command("set")(command(set_rule, unused=_TENANT))
rules.command("drop")(command(drop_rule, unused=_TENANT))
rules.command("list")(command(list_rules, unused=_TENANT))
holds.command("set")(command(set_hold, unused=_VIEW))
holds.command("lift")(command(lift_hold, unused=_VIEW))
holds.command("list")(command(list_holds, unused=_VIEW))
readers.command("read-through")(command(read_through, unused=_VIEW))
readers.command("list")(command(list_readers, unused=_VIEW))
