"""`strandline migrate`: bring a store up to date, also with what waits for the last process of an older version."""

from __future__ import annotations

from typing import Annotated

import typer

from strandline.cli.command import Answer, Target, as_usage

Post = Annotated[bool, typer.Option("--post", help="Also what no process of an older version can live with.")]


def migrate(target: Target, post: Post = False) -> Answer:
    """Bring the store's schema up to date. Every command does so by itself, but for what --post asks for."""
    from strandline.client.opening import migrate_store

    if target.workflow is not None:
        raise typer.BadParameter("migrate is about the whole store", param_hint="--workflow")
    with as_usage("--store"):
        migrate_store(target.store, post=post)
    return Answer(value={"store": target.shown, "ok": True}, heading=f"{target.shown}: up to date")
