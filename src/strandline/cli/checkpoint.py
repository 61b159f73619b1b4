"""`strandline checkpoint`: keep an agent's exact state (I14)."""

from __future__ import annotations

import json
import re
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from strandline.cli.command import Answer, CheckpointName, Target, as_usage, number
from strandline.cli.external import digest_of
from strandline.cli.output import count, pick, plain

if TYPE_CHECKING:
    from strandline import Basis

Turn = Annotated[int, typer.Option(metavar="N", parser=number(0), help="The agent's own count of turns.")]
_STATE_HELP: Final = "Any JSON value; @FILE reads a file, @- stdin."
State = Annotated[str | None, typer.Option(metavar="JSON|@FILE", help=_STATE_HELP)]
_EXTERNAL_HELP: Final = "Instead of --state: the state is this file, and stays there unchanged. Its digest is kept."
External = Annotated[Path | None, typer.Option(metavar="FILE", help=_EXTERNAL_HELP)]
_BASIS_HELP: Final = (
    "The context that the state was made from, as `context` prints it.  [default: generation and revision now]"
)
BasisOption = Annotated[str | None, typer.Option(metavar="GENERATION@REVISION", help=_BASIS_HELP)]
ContextFree = Annotated[bool, typer.Option("--context-free", help="The state holds no context; it needs no basis.")]
_BASIS: Final = re.compile(r"(\d{1,18})@(\d{1,18})", re.ASCII)
_FIELDS: Final = "name lineage_seq turn revision context_free in_flight views digest external"
_TORN: Final = "a compaction is in flight, so the file may hold half of it: it will not be restored; register it again"


def checkpoint(
    target: Target,
    turn: Turn,
    state: State = None,
    external: External = None,
    name: CheckpointName = None,
    basis: BasisOption = None,
    context_free: ContextFree = False,
) -> Answer:
    """Keep an agent's exact state."""
    name = target.view if name is None else name
    if context_free and basis is not None:
        raise typer.BadParameter("give a basis or --context-free, not both", param_hint="--basis")
    made_from = _parse_basis(basis, target.view) if basis is not None else None
    if (state is None) == (external is None):
        raise typer.BadParameter("give --state or --external, one of them", param_hint="--state")
    value = _value_of(state) if state is not None else None
    with as_usage("--external"):
        address, digest = digest_of(external) if external is not None else ("", "")
    with target.open(may_be_new=True) as workflow:
        if made_from is None and not context_free:
            made_from = workflow.basis()
        if external is None:
            made = workflow.checkpoint(value, turn, basis=made_from, name=name, context_free=context_free)
        else:
            made = workflow.register_checkpoint(
                address, digest, turn, basis=made_from, name=name, context_free=context_free
            )
    return Answer(
        value={**pick(made, _FIELDS), "basis": plain(made_from)},
        heading=f"checkpoint {made.name!r} of turn {made.turn} {'kept' if external is None else 'registered'}",
        facts=[
            ("lineage", made.lineage_seq),
            ("basis", f"{made_from.generation}@{made_from.revision}" if made_from else "context-free"),
            ("state", address or count(len(made.state), "byte")),
            ("digest", digest),
            ("warning", _TORN if external is not None and made.in_flight else ""),
        ],
    )


def _value_of(state: str) -> object:
    from strandline.codec import encode_json

    literal = not state.startswith("@")
    with as_usage("--state") if literal else nullcontext():
        value = _read_state(state)
        encode_json(value)
    return value


def _parse_basis(text: str, view: str) -> Basis:
    from strandline import Basis

    found = _BASIS.fullmatch(text)
    if found is None:
        raise typer.BadParameter(f"{text!r} is not GENERATION@REVISION, such as 3@175", param_hint="--basis")
    return Basis(view=view, generation=int(found[1]), revision=int(found[2]))


def _read_state(given: str) -> object:
    from strandline import InvalidInputError

    source, data = "--state", given.encode(errors="surrogateescape")
    try:
        if given.startswith("@"):
            source = "stdin" if given == "@-" else given[1:]
            data = sys.stdin.buffer.read() if given == "@-" else Path(source).read_bytes()
        state: object = json.loads(data.decode("utf-8-sig"))
    except json.JSONDecodeError as error:
        reason = f"not JSON: {error.msg} at line {error.lineno}, column {error.colno}"
    except UnicodeDecodeError as error:
        reason = f"not UTF-8: {error.reason} at byte {error.start}"
    except (OSError, ValueError, RecursionError) as error:  # no file, too many digits, nested too deep
        reason = str(error)
    else:
        return state
    where = f"the state in {source!r}: " if source != "--state" else ""
    raise InvalidInputError(f"{where}{reason}; nothing was written")
