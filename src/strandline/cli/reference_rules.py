"""A user's rules for references: from a file, and from options."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import typer

if TYPE_CHECKING:
    from strandline import ReferenceRules

_KEYS: Final = ("patterns", "json_paths", "off", "secrets")
_FORM: Final = "it holds patterns, json_paths and secrets, each a table from names to texts, and off, a list of classes"


def rules_of(
    file: Path | None, patterns: Sequence[str] = (), json_paths: Sequence[str] = (), off: Sequence[str] = ()
) -> ReferenceRules | None:
    """Return the rules of a file, TOML or JSON, with those of options beside them; None: there are none.

    Raises:
        InvalidInputError: the file can't be read, or a rule in it is none.
    """
    import strandline

    held = {} if file is None else _read(file)
    rules = {
        "patterns": _with(held.get("patterns", {}), patterns, "--pattern"),
        "json_paths": _with(held.get("json_paths", {}), json_paths, "--json-path"),
        "off": [*_classes(held.get("off", [])), *off],
        "secrets": held.get("secrets", {}),
    }
    if not any(rules.values()):
        return None
    try:
        return strandline.ReferenceRules(**rules)  # type: ignore[arg-type]  # it checks them itself
    except strandline.InvalidInputError as error:
        if file is not None:
            error.add_note(f"rules of {str(file)!r}")
        raise


def _with(held: object, options: Sequence[str], option: str) -> object:
    if not options:
        return held
    named: dict[str, str] = {}
    for text in options:
        name, sign, rule = text.partition("=")
        if not sign or not name or not rule:
            raise typer.BadParameter(f"{text!r} is not NAME=RULE", param_hint=option)
        if name in named:
            raise typer.BadParameter(f"{name!r} is given twice; join both by | in one pattern", param_hint=option)
        named[name] = rule
    return {**held, **named} if isinstance(held, dict) else held


def _classes(held: object) -> list[str]:
    from strandline.errors import InvalidInputError

    if not isinstance(held, list):
        raise InvalidInputError(f"off is a list of class names, not {held!r}")
    return held


def _read(file: Path) -> dict[str, object]:
    from strandline.errors import InvalidInputError

    try:
        text = file.read_text(encoding="utf-8")
        held = json.loads(text) if file.suffix == ".json" else tomllib.loads(text)
    except OSError as error:
        raise InvalidInputError(f"{str(file)!r} can't be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise InvalidInputError(
            f"{str(file)!r} is no {'JSON' if file.suffix == '.json' else 'TOML'}: {error}"
        ) from error
    unknown = sorted(set(held) - set(_KEYS)) if isinstance(held, dict) else [type(held).__name__]
    if unknown:
        raise InvalidInputError(f"{str(file)!r}: unknown {', '.join(map(repr, unknown))}; {_FORM}")
    return held
