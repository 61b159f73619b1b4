"""HTML by construction: text is escaped unless this module made it."""

from __future__ import annotations

from html import escape
from typing import Final

from demo.visible import visible

_VOID: Final = frozenset({"br", "meta", "line", "rect", "path"})


class Markup(str):
    """Text that is markup already. Only `tag`, `join` and `trusted` make it."""

    __slots__ = ()


def tag(name: str, /, *children: object, **attributes: object) -> Markup:
    """Return one element. Children that are no Markup are escaped, and so is every attribute.

    `class_="x"` is written class="x", `aria_label` aria-label; an attribute that is None is left out, True stands bare.
    """
    written = "".join(_attribute(key, value) for key, value in attributes.items() if value is not None)
    if name in _VOID and not children:
        return Markup(f"<{name}{written}>" if name in ("br", "meta") else f"<{name}{written}/>")
    return Markup(f"<{name}{written}>{join(*children)}</{name}>")


def join(*children: object) -> Markup:
    """Return the children one after the other, each escaped unless it is Markup."""
    return Markup("".join(child if isinstance(child, Markup) else _text(child) for child in children))


def trusted(text: str) -> Markup:
    """Declare text of this repository (a style sheet, a script) to be markup. Never data."""
    return Markup(text)


def _text(child: object) -> str:
    return "" if child is None else escape(visible(child))


def _attribute(key: str, value: object) -> str:
    name = key.rstrip("_").replace("_", "-")
    return f" {name}" if value is True else f' {name}="{escape(visible(value))}"'
