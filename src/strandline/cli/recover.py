"""`strandline recover`: continue from a state that really existed, or stop and say what is missing (I15, I16)."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Final, Literal

import typer

from strandline.cli.command import Answer, Budget, CheckpointName, Needs, Target
from strandline.cli.context import context_object, provenance
from strandline.cli.external import load_file
from strandline.cli.output import count, pick, to_json
from strandline.model.lineage import MOVES, LineageEntry, LineageKind

if TYPE_CHECKING:
    from strandline import Controller, Recovery

DryRun = Annotated[bool, typer.Option("--dry-run", help="Decide, and write nothing.")]
Prior = Annotated[bool, typer.Option("--prior-state", help="On replay, print the newest state too; it is stale.")]
Policy = Annotated[
    Literal["replay-when-logged"] | None,
    typer.Option(metavar="NAME", help="Who answers cases: replay-when-logged takes missing refs from the log."),
]
NoLoad = Annotated[bool, typer.Option("--no-load", help="Leave a state that is a file where it is, unread.")]
_FIELDS: Final = (
    "kind name lineage_seq generation revision turn checkpoint_seq prior_state dry_run divergences external"
)
_ANSWER: Final = (
    "An open call may or may not have had its effect. Look, then append what came of it: `strandline append -` with "
    '{"kind": "tool_result", "call_id": …, "content": …}, or {"kind": "abandoned", "call_id": …} if nobody will know.'
)


def recover(
    target: Target,
    name: CheckpointName = None,
    needs: Needs = None,
    budget: Budget = None,
    dry_run: DryRun = False,
    prior_state: Prior = False,
    policy: Policy = None,
    no_load: NoLoad = False,
) -> Answer:
    """Restore the newest valid checkpoint, or replay.

    Prints the state on stdout, and nothing there if none is restored; what happened and why, on stderr.
    """
    name = target.view if name is None else name
    with target.open(may_be_new=True) as workflow:
        found = workflow.recover(
            needs or (),
            name=name,
            budget=budget,
            controller=_controller(policy),
            dry_run=dry_run,
            prior_state=prior_state,
            load=None if no_load else load_file,
        )
        entries = workflow.lineage() if found.turn is None else []
    restored, why, hints = found.kind == "restore", "", [_ANSWER] if found.open_calls else []
    if restored:
        heading = f"checkpoint {found.name!r} of turn {found.turn} restored"
    elif found.turn is not None:
        heading = f"replayed, with the context-free state {found.name!r} of turn {found.turn}"
        why = "a context-free state goes with whatever summary is active"
    else:
        heading = "replayed from the active summary and its tail; no state is restored"
        why = why_replayed(entries, name)
        hints.append("Go on from what `strandline context` prints.")
    since = sum(part.since_checkpoint for part in found.context.parts)
    return Answer(
        value={**pick(found, _FIELDS), "state": _json_state(found.state), "context": context_object(found.context)},
        heading=heading,
        facts=[
            ("why", why),
            ("lineage", "dry run: nothing was written" if found.dry_run else found.lineage_seq),
            ("checkpoint", f"lineage {found.checkpoint_seq}" if found.checkpoint_seq is not None else ""),
            ("state", _elsewhere(found)),
            ("since then", count(since, "event") + " that the state does not know" if restored else ""),
            *((" " if i else "context", said) for i, said in enumerate(provenance(found.context))),
            *(("instead", f"{new}, accepted in the place of {old}") for old, new in found.divergences.items()),
            *(("open call", f"{call.call_id}: tool {call.tool}, event {call.seq}") for call in found.open_calls),
        ],
        text=_states(found),
        text_alone=True,
        hint=" ".join(hints),
    )


def _controller(policy: str | None) -> Controller | None:
    """Return the controller that a policy is; `recover` answers by it."""
    import strandline

    return None if policy is None else strandline.ReplayWhenLogged()


def _elsewhere(found: Recovery) -> str:
    """Say where a state lives that is a file, and whether it is the one that was registered."""
    if found.external is None:
        return ""
    said = "verified" if found.external.verified else "not loaded: compare its digest before you use it"
    return f"{found.external.address}, {found.external.digest}, {said}"


def _json_state(state: object) -> object:
    """Return a state as JSON can hold it: bytes as their text, or, if they are none, in base64."""
    if not isinstance(state, bytes):
        return state
    try:
        return state.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(state).decode()}


def _states(found: Recovery) -> str:
    """Return the state; on replay the stale one that was asked for, labelled so that nobody takes it for the state."""
    if found.external is not None:
        state = _json_state(found.state)
        return state if isinstance(state, str) else ""  # what is no text is read where it lives
    if found.turn is not None:
        return to_json(found.state, indent=2)
    return to_json(found.prior_state, indent=2) if found.prior_state is not None else ""


def why_replayed(entries: Sequence[LineageEntry], name: str) -> str:
    """Return why no checkpoint of a name was restored."""
    made = [entry for entry in entries if entry.kind is LineageKind.CHECKPOINT]
    newest = next((entry for entry in reversed(made) if entry.name == name), None)
    if newest is None:
        others = sorted({repr(entry.name) for entry in made})
        return f"there is no checkpoint {name!r}" + (f", only {', '.join(others)}" if others else "")
    which = f"the newest checkpoint (turn {newest.detail.get('turn')}, lineage {newest.lineage_seq})"
    for entry in reversed(entries):
        if entry.detail.get("passed_over") == newest.lineage_seq:
            why = f"lineage {entry.lineage_seq}, {entry.detail['kind']}"
            return f"{which} is passed over: {entry.by} answered so ({why})"
    moves = [e for e in entries if e.kind in MOVES and e.lineage_seq > newest.lineage_seq]
    if not moves:
        return f"{which} was left behind by a later restore of an earlier one"
    kind = moves[-1].kind.value
    article = "an" if kind[0] in "aeiou" else "a"
    return f"{article} {kind} (lineage {moves[-1].lineage_seq}) moved the pointer to the summary after {which}"
