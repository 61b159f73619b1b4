"""`strandline cases` and `strandline reconcile`: the questions that are open, and their answers (C21)."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Final

import typer

from strandline.cli.command import Answer, Target
from strandline.cli.effects import arguments_of, shown_args
from strandline.cli.output import count, fitted, pick, plain, table_of, when
from strandline.model.ids import DEFAULT_VIEW
from strandline.rules.reconciling import typed

if TYPE_CHECKING:
    from strandline import ActedOn, Case, CaseAnswer, Workflow

All = Annotated[bool, typer.Option("--all", help="The answered ones, too.")]
CaseId = Annotated[str, typer.Argument(metavar="CASE", help="The id of the case, as `cases` prints it.")]
_ANSWERS_HELP: Final = (
    "replay-from-exact, accept-divergence OLD NEW, replay-from-checkpoint ID, abandon, retry, effect-done JSON or "
    "effect-never-happened; not each fits each case."
)
Given = Annotated[list[str], typer.Argument(metavar="ANSWER...", help=_ANSWERS_HELP)]
By = Annotated[str, typer.Option(metavar="WHO", help="Who decides.")]
Why = Annotated[str, typer.Option(metavar="TEXT", help="Why; it is kept.")]
_FROM_RECOVERY: Final = (
    "missing_dependency",
    "generation_mismatch",
    "corrupt_summary",
    "checkpoint_digest",
    "lineage_refusal",
)
CASE_FIELDS: Final = (
    "case_id kind state blocking escalated view generation summary_active compacted_since reason revision opened_us"
    " checkpoint_name checkpoint_seq checkpoint_turn missing_refs last_known logged subject detail answer by why"
    " answered_us answered_seq"
)
_TIME: Final = "opened (UTC)"
_HEAD: Final = ("case", "what", "state", "generation", _TIME, "about")


def cases(target: Target, include_answered: All = False) -> Answer:
    """Print the open cases, the oldest first; of a tenant of several workflows, those of all. --json has all of each.

    None is no failure: the exit code is 0, and `cases` of --json is empty.
    """
    found = [one for workflow in target.each() for one in _found(workflow, include_answered)]
    found.sort(key=lambda one: (one.case.state != "open", one.case.opened_us if one.case.state == "open" else 0))
    opened = [one for one in found if one.case.state == "open"]
    several = target.workflow is None
    rows = [((one.workflow,) if several else ()) + one.row for one in found]
    answered = f", {len(found) - len(opened):,} answered" if include_answered else ""
    return Answer(
        value={
            "cases": [{"workflow": one.workflow, **pick(one.case, CASE_FIELDS), **one.asked} for one in found],
        },
        heading=count(len(opened), "open case") + answered,
        text=fitted(
            (("workflow",) if several else ()) + _HEAD,
            rows,
            cut={"about": 24, "workflow": 14, "what": 18, "state": 25},
            spare=["generation", _TIME],
        ),
        hint=_how_to_answer(target, [one.case for one in opened], several) if opened else "",
    )


@dataclass(frozen=True, slots=True)
class _Found:
    """A case, where it is, and what its effect was asked for."""

    workflow: str
    case: Case
    asked: dict[str, object]

    @property
    def row(self) -> tuple[object, ...]:
        case = self.case
        return case.case_id, case.kind, _state(case), case.generation, when(case.opened_us), _about(case, self.asked)


def _found(workflow: Workflow, include_answered: bool) -> list[_Found]:
    return [_Found(workflow.name, case, _asked(workflow, case)) for case in workflow.cases(include_answered)]


def _how_to_answer(target: Target, opened: Sequence[Case], several: bool) -> str:
    kinds = dict.fromkeys(case.kind for case in opened)
    fitting = "; ".join(f"for {kind}: {typed(kind)}" for kind in kinds)
    words = "reconcile CASE ANSWER --by WHO --why TEXT" + (" --workflow WORKFLOW" if several else "")
    return f"Answer one: `{target.command(words)}`. The ANSWER {fitting}."


def _state(case: Case) -> str:
    if case.state == "open":
        blocks = ", blocks" if case.blocking and case.summary_active else ""
        return ("escalated" if case.escalated else "open") + blocks
    return f"{case.answer} by {case.by}"


def _asked(workflow: Workflow, case: Case) -> dict[str, object]:
    """Return what the effect of a case was asked for: who looks at the other side has to know."""
    return arguments_of(workflow, case.subject) if case.kind == "effect_unknown" else {}


def _about(case: Case, asked: dict[str, object]) -> str:
    said = [
        "" if case.view in (None, DEFAULT_VIEW) else f"view {case.view}",
        ", ".join(case.missing_refs),
        case.subject,
        "" if case.missing_refs or case.reason == case.kind else case.reason,
    ]
    said += [f"{case.detail.get('tool')} {shown_args(asked)}"] if asked else []
    said += [f"checkpoint {case.checkpoint_seq}"] if case.checkpoint_seq is not None else []
    said += ["its generation is active no more"] if case.blocking and _is_left(case) else []
    said += ["a later compaction was activated"] if case.compacted_since else []
    return "; ".join(filter(None, said))


def _is_left(case: Case) -> bool:
    return case.state == "open" and not case.summary_active


def reconcile(target: Target, case: CaseId, answer: Given, by: By, why: Why) -> Answer:
    """Answer a case.

    What the answer does, its entry in the lineage and the answered case are one. The first answer wins.
    """
    with target.open() as workflow:
        done = workflow.reconcile(case, _answer(answer), by=by, why=why)
    return Answer(
        value={"case": pick(done, CASE_FIELDS), "done": plain(done.done), "acted_on": plain(done.acted_on)},
        heading=f"case {done.case_id} answered: {done.answer}",
        facts=[
            ("what", done.kind),
            ("about", _about(done, {})),
            ("lineage", done.answered_seq),
            ("by", done.by),
            ("done", _done(done)),
        ],
        text=acted_on_table(done.acted_on),
        hint=_what_next(target, done),
    )


def _done(case: Case) -> str:
    """Say what an answer did, as its entry of the lineage tells it."""
    did, said = case.done, []
    for name, what in (
        ("pins", "pinned, by event {}"),
        ("to_generation", "went back to the content of generation {}"),
        ("generation", "it is generation {} now"),
        ("acted_on", "things made from the bad one: {}"),
        ("passed_over", "checkpoint {} is passed over"),
        ("to", "went back to event {}"),
        ("branch", "on branch {}"),
        ("event", "the divergence is event {}"),
        ("left_open", "the other references are asked by case {}"),
        ("effect", "the effect is {}"),
        ("candidates", "candidates that are drafted anew: {}"),
        ("due", "due now in the background: {}"),
    ):
        value = did.get(name)
        if value not in (None, "", []):
            said.append(what.format(", ".join(map(str, value)) if isinstance(value, list | tuple) else value))
    return "; ".join(said) or "nothing else was changed"


def _what_next(target: Target, case: Case) -> str:
    if case.answer == "abandon" or case.kind not in _FROM_RECOVERY:
        return "Look at each, undo or redo it." if case.acted_on else ""
    name = f" --name {shlex.quote(case.checkpoint_name)}" if case.checkpoint_name not in (None, "main") else ""
    needs = "".join(f" --needs={shlex.quote(ref)}" for ref in case.missing_refs)
    look = "Look at each, undo or redo it. " if case.acted_on else ""
    if case.done.get("left_open"):
        look += f"Answer the case {case.done['left_open']}, too. "
    through = replace(target, view=case.view or target.view)
    return f"{look}Recover again: `{through.command(f'recover{name}{needs}')}`."


def acted_on_table(acted_on: Sequence[ActedOn]) -> str:
    """Return the table of what was made from a bad summary."""
    rows = [(a.kind, a.name, a.state, a.seq, a.basis.generation, a.actor) for a in acted_on]
    return table_of([("what", "which", "state", "event", "generation", "actor"), *rows]) if rows else ""


def _answer(words: Sequence[str]) -> CaseAnswer:
    """Return the answer that words state."""
    import strandline

    makers: Mapping[str, tuple[int, Callable[..., CaseAnswer]]] = {
        "replay-from-exact": (0, strandline.ReplayFromExact),
        "accept-divergence": (2, strandline.AcceptDivergence),
        "replay-from-checkpoint": (1, lambda seq: strandline.ReplayFromCheckpoint(_number(seq))),
        "abandon": (0, strandline.Abandon),
        "retry": (0, strandline.Retry),
        "effect-done": (1, lambda result: strandline.EffectDone(_json(result))),
        "effect-never-happened": (0, strandline.EffectNeverHappened),
    }
    name, *rest = words
    if name not in makers:
        raise typer.BadParameter(f"{name!r} is no answer; these are: {', '.join(makers)}", param_hint="ANSWER")
    takes, make = makers[name]
    if len(rest) != takes:
        said = f"{name} takes {count(takes, 'word')} behind it, not {len(rest)}"
        raise typer.BadParameter(said, param_hint="ANSWER")
    return make(*rest)


def _number(text: str) -> int:
    if not text.isascii() or not text.isdigit():
        raise typer.BadParameter(f"{text!r} is no lineage_seq of a checkpoint", param_hint="ANSWER")
    return int(text)


def _json(text: str) -> object:
    try:
        return json.loads(text)
    except ValueError as error:
        raise typer.BadParameter(f"{text!r} is no JSON: {error}", param_hint="ANSWER") from None
