"""`strandline doctor`: look at a store and its surroundings, and say what to do; nothing is changed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Final

import typer

from strandline.cli.command import Answer, Target, as_usage
from strandline.cli.failures import CORRUPT, UNAVAILABLE
from strandline.cli.output import count, pick, table_of
from strandline.model.diagnosis import CheckStatus, Trouble

if TYPE_CHECKING:
    from strandline.model.diagnosis import Check

Celery = Annotated[bool, typer.Option("--celery", help="Look at a Celery app and its broker, too.")]
App = Annotated[str | None, typer.Option(metavar="MODULE:APP", help="The Celery app.  [default: what make_app makes]")]
Broker = Annotated[str | None, typer.Option(metavar="URL", help="The broker.  [default: the app's]")]
Deep = Annotated[bool, typer.Option("--deep", help="Read every page, however large the store is.")]
_CODES: Final = {Trouble.CORRUPT: CORRUPT, Trouble.UNAVAILABLE: UNAVAILABLE, Trouble.UNSAFE: 1}  # the worst first
_STYLES: Final = {CheckStatus.OK: "", CheckStatus.WARN: "yellow", CheckStatus.FAIL: "red"}
_TYPES: Final = {Trouble.CORRUPT: "CorruptRecordError", Trouble.UNAVAILABLE: "StoreUnavailableError"}


def doctor(
    target: Target, deep: Deep = False, celery: Celery = False, app: App = None, broker: Broker = None
) -> Answer:
    """Look at the store and what it stands on, and say what to do. Nothing is changed."""
    from strandline.client.diagnosis import diagnose

    if not celery and (app is not None or broker is not None):
        raise typer.BadParameter("belongs to --celery", param_hint="--app" if app is not None else "--broker")

    if target.workflow is not None:
        raise typer.BadParameter("doctor looks at the whole store", param_hint="--workflow")
    with as_usage("--store"):
        checks = diagnose(target.store, deep=deep)
    if celery:
        from strandline.integrations.celery.diagnosis import diagnose_celery

        with as_usage("--celery"):
            checks += diagnose_celery(target.store, app, broker)
    failures = [check for check in checks if check.status is CheckStatus.FAIL]
    warnings = [check for check in checks if check.status is CheckStatus.WARN]
    value: dict[str, object] = {
        "ok": not failures,
        "store": target.shown,
        "checks": [pick(check, "name status value advice measured") for check in checks],
    }
    said = ", ".join(count(len(found), what) for found, what in ((failures, "failure"), (warnings, "warning")) if found)
    if not failures:
        return Answer(value=value, heading=f"{target.shown}: {said or 'all is well'}", lines=report_of(checks))
    worst = next(trouble for trouble in _CODES if any(check.trouble is trouble for check in failures))
    first = next(check for check in failures if check.trouble is worst)
    return Answer(
        value=value,
        heading=f"{target.shown}: {said}",
        lines=report_of(checks),
        error={
            "type": _TYPES.get(worst, "StrandlineError"),
            "message": f"{first.name}: {first.value}",
            "hint": first.advice,
        },
        code=_CODES[worst],
    )


def report_of(checks: Sequence[Check]) -> list[tuple[str, str]]:
    """Return the checks, a line with its style each, with what to do under those that are not well."""
    rows = table_of([(f"  {check.status}", check.name, check.value) for check in checks]).splitlines()
    indent = " " * (2 + max(len(check.status) for check in checks) + 2)
    indent += " " * (max(len(check.name) for check in checks) + 2)
    lines = []
    for row, check in zip(rows, checks, strict=True):
        lines.append((row, _STYLES[check.status]))
        if check.advice:
            lines.append((f"{indent}→ {check.advice}", ""))
    return lines
