"""The option `--shares`: what a budget is spent on."""

from __future__ import annotations

from typing import Annotated

import typer

from strandline.cli.command import refused
from strandline.errors import InvalidInputError
from strandline.model.candidate import Shares


def parse_shares(text: str) -> Shares:
    """Return the shares that a text such as `0.45/0.20/0.35` names, in the order segments, ledger, tail."""
    parts = text.split("/")
    if len(parts) != 3:
        raise typer.BadParameter(f"{text!r} is not SEGMENTS/LEDGER/TAIL, such as 0.45/0.20/0.35")
    try:
        segments, ledger, tail = map(float, parts)
    except ValueError:
        raise typer.BadParameter(f"{text!r} holds something that is no number") from None
    try:
        return Shares(segments=segments, ledger=ledger, tail=tail)
    except InvalidInputError as error:
        raise refused(error) from error


SharesOption = Annotated[
    Shares | None,
    typer.Option(
        "--shares",
        metavar="S/L/T",
        parser=parse_shares,
        help="What it is spent on: fractions for segments, ledger and tail.  [default: 0.45/0.2/0.35]",
    ),
]
