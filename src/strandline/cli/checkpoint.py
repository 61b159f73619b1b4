"""`strandline checkpoint`: keep an agent's exact state (I14)."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from strandline.cli.options import (
    CHECKPOINT,
    COUNT_MAX,
    STORE,
    TENANT,
    VIEW,
    CheckpointName,
    Json,
    Store,
    TenantName,
    ViewName,
    WorkflowName,
)
from strandline.cli.output import Facts, Heading, show
from strandline.cli.target import Target

if TYPE_CHECKING:
    from strandline import Basis

Turn = Annotated[int, typer.Option("--turn", metavar="N", min=0, max=COUNT_MAX, help="The agent's own count of turns.")]
State = Annotated[
    str, typer.Option("--state", metavar="JSON|@FILE", help="The state: any JSON value; @FILE reads it, @- from stdin.")
]
BasisOption = Annotated[
    str | None,
    typer.Option(
        "--basis",
        metavar="GENERATION@REVISION",
        show_default="the present ones",
        help="The context that the state was made from.",
    ),
]
ContextFree = Annotated[
    bool, typer.Option("--context-free", help="The state holds control flow and references only; it needs no basis.")
]
_BASIS: Final = re.compile(r"(\d{1,18})@(\d{1,18})", re.ASCII)


def checkpoint(
    turn: Turn,
    state: State,
    name: CheckpointName = CHECKPOINT,
    basis: BasisOption = None,
    context_free: ContextFree = False,
    store: Store = STORE,
    tenant: TenantName = TENANT,
    workflow: WorkflowName = None,
    view: ViewName = VIEW,
    as_json: Json = False,
) -> None:
    """Keep an agent's exact state, with its place in the lineage."""
    if context_free and basis is not None:
        raise typer.BadParameter("--context-free needs no basis; give one of the two", param_hint="--basis")
    made_from = _parse_basis(basis, view)
    value_of_state = _read_state(state)
    target = Target(store=store, tenant=tenant, workflow=workflow, view=view)
    with target.open() as opened:
        if made_from is None and not context_free:
            made_from = opened.context(COUNT_MAX).basis
        made = opened.checkpoint(value_of_state, turn, basis=made_from, name=name, context_free=context_free)
        workflow = opened.name
    value = {
        "tenant": tenant,
        "workflow": workflow,
        "name": made.name,
        "lineage_seq": made.lineage_seq,
        "turn": made.turn,
        "revision": made.revision,
        "context_free": made.context_free,
        "basis": made_from,
        "in_flight": made.in_flight,
        "views": made.views,
        "digest": made.digest,
    }
    facts = [
        ("lineage", made.lineage_seq),
        ("revision", made.revision),
        ("basis", f"generation {made_from.generation}, revision {made_from.revision}" if made_from else "context-free"),
        ("state", f"{len(made.state):,} bytes"),
    ]
    heading = Heading(f"{tenant}/{workflow}: checkpoint {made.name!r} of turn {made.turn} kept")
    show(value, [heading, Facts(facts)], as_json=as_json)


def _parse_basis(text: str | None, view: str) -> Basis | None:
    from strandline.model.event import Basis

    if text is None:
        return None
    found = _BASIS.fullmatch(text)
    if found is None:
        raise typer.BadParameter(f"{text!r} is not GENERATION@REVISION, such as 3@175", param_hint="--basis")
    return Basis(view=view, generation=int(found[1]), revision=int(found[2]))


def _read_state(given: str) -> object:
    from strandline.errors import InvalidInputError

    source, data = "--state", given.encode(errors="surrogateescape")
    if given.startswith("@"):
        source = "stdin" if given == "@-" else given[1:]
        try:
            data = sys.stdin.buffer.read() if given == "@-" else Path(source).read_bytes()
        except (OSError, ValueError) as error:
            raise InvalidInputError(f"the state in {source!r} can't be read: {error}") from error
    try:
        value: object = json.loads(data.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise InvalidInputError(
            f"the state in {source!r} is not UTF-8: {error.reason} at byte {error.start}"
        ) from error
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise InvalidInputError(f"the state in {source!r} is not JSON: {error.msg} at {where}") from error
    except RecursionError as error:
        raise InvalidInputError(f"the state in {source!r} is nested too deep") from error
    except ValueError as error:  # an integer of more digits than Python reads
        raise InvalidInputError(f"the state in {source!r} can't be kept: {error}") from error
    return value
