"""`strandline check`: what became of facts in a summary, by whatever tool (C13). No store is opened."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Final

import typer

from strandline.cli.command import Answer, AsJson, show
from strandline.cli.failures import REJECTED
from strandline.cli.output import count, fitted, pick

File = Annotated[Path, typer.Argument(metavar="SUMMARY", help="A text in UTF-8; - is stdin.")]
FactOption = Annotated[list[str] | None, typer.Option("--fact", metavar="TEXT", help="What must hold. Repeatable.")]
FactsFile = Annotated[Path | None, typer.Option("--facts", metavar="FILE", help="A file of such facts, one a line.")]
Tails = Annotated[
    list[Path] | None, typer.Option("--tail", metavar="FILE", help="A text behind the summary. Repeatable.")
]
_HEAD: Final = ("verdict", "line", "fact", "why")
_CUT: Final = {"fact": 60, "why": 80}


def check(
    summary: File,
    fact: FactOption = None,
    facts: FactsFile = None,
    tail: Tails = None,
    as_json: AsJson = False,
) -> None:
    """Say what became of each fact in a summary: preserved, paraphrased, weakened, mutated, contradicted, dropped.

    Exit code 5: not every fact is certified.
    """
    from strandline.errors import InvalidInputError
    from strandline.validators import judge

    lines = [line.strip() for line in _read(facts).splitlines()] if facts else []
    stated = [*(fact or ()), *(line for line in lines if line)]
    if not stated:
        raise InvalidInputError(
            "no fact is named", hint="Name one with --fact TEXT, or a file of them with --facts FILE."
        )
    judgement = judge(stated, _read(summary), [_read(file) for file in tail or ()])
    refused = judgement.refused
    error: dict[str, object] = {
        "type": "Judgement",
        "message": f"{len(refused)} of {count(len(stated), 'fact')} not certified: "
        + "; ".join(f"{claim.claim!r} {claim.status}" for claim in refused[:10]),
        "hint": "What can't be proved to say the same is not certified. Put the fact into the summary as it stands.",
    }
    rows = [
        (claim.status.value, _place(claim.line, in_tail=claim.in_tail), claim.claim, claim.reason or claim.sentence)
        for claim in judgement.claims
    ]
    show(
        Answer(
            value={
                "accepted": judgement.accepted,
                "claims": [pick(claim, "claim status reason sentence line in_tail") for claim in judgement.claims],
            },
            heading="every fact is certified" if judgement.accepted else "not every fact is certified",
            text=fitted(_HEAD, rows, cut=_CUT, spare=[]),
            error={} if judgement.accepted else error,
            code=0 if judgement.accepted else REJECTED,
        ),
        as_json=as_json,
    )


def _place(line: int | None, *, in_tail: bool) -> str:
    return "" if line is None else f"tail {line}" if in_tail else str(line)


def _read(file: Path) -> str:
    from strandline.errors import InvalidInputError

    try:
        data = sys.stdin.buffer.read() if str(file) == "-" else file.read_bytes()
        return data.decode()
    except OSError as error:
        raise InvalidInputError(f"{str(file)!r} can't be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InvalidInputError(f"{str(file)!r} is no UTF-8: byte {error.start} can't be read") from error
