"""Command lines as they can be typed: what the hints of errors name."""

from __future__ import annotations

import shlex


def command_line(
    words: str,
    *,
    store: str | None = None,
    tenant: str | None = None,
    workflow: str | None = None,
    view: str | None = None,
) -> str:
    """Return the line of a command: its verb, the options that say where, then the rest of the words.

    Args:
        words: the verb and what follows it, such as "cases --all".
        store, tenant, workflow, view: None where the command takes it from elsewhere.
    """
    given = {"store": store, "tenant": tenant, "workflow": workflow, "view": view}
    where = "".join(f" --{name} {shlex.quote(value)}" for name, value in given.items() if value is not None)
    verb, _, rest = words.partition(" ")
    return f"strandline {verb}{where} {rest}".rstrip()
