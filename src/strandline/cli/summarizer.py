"""The option that says what drafts: `--summarizer`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Final

import typer

from strandline.cli.command import as_usage

Chosen = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help="What drafts: extractive, openai:MODEL, anthropic:MODEL, or package.module:factory.",
    ),
]
DEFAULT: Final = "extractive"
NoFallback = Annotated[
    bool, typer.Option("--no-fallback", help="Quarantine what the extractive summarizer would draft instead.")
]


def summarizer_of(name: str) -> object:
    """Return the summarizer of a name; modules are looked for in the present folder, too.

    Raises:
        typer.BadParameter: no name of a summarizer.
        InvalidInputError: no such function, or a package is missing.
        SummarizerSetupError: there is no key.
    """
    from strandline.summarizers.named import check_summarizer_name, summarizer_factory

    with as_usage("--summarizer"):
        check_summarizer_name(name)
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    return summarizer_factory(name)()
