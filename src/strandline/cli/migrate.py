"""`strandline migrate`: bring a store up to date, also with what waits for the last process of an older version."""

from __future__ import annotations

from typing import Annotated

import typer

from strandline.cli.command import Answer, Target, as_usage

_FIRST = "0001 "
Post = Annotated[bool, typer.Option("--post", help="Also what no process of an older version can live with.")]


def migrate(target: Target, post: Post = False) -> Answer:
    """Bring the store's schema up to date, and on PostgreSQL make it where it is missing.

    Every command does so by itself where its user may, but for what --post asks for.
    """
    from strandline.client.opening import migrate_store

    if target.workflow is not None:
        raise typer.BadParameter("migrate is about the whole store", param_hint="--workflow")
    with as_usage("--store"):
        applied = migrate_store(target.store, post=post)
    value = {"store": target.shown, "ok": True, "applied": applied}
    said = f"up to date; applied: {', '.join(applied)}" if applied else "up to date"
    if applied and applied[0].startswith(_FIRST):
        said = f"made; applied: {', '.join(applied)}"
    return Answer(value=value, heading=f"{target.shown}: {said}")
