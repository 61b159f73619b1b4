"""`strandline metrics`: what the store says of itself, for people, as JSON, or for Prometheus (C27)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Final

import typer

from strandline.cli.command import DEFAULT_STORE, Answer, AsJson, StorePath, Target, named, show
from strandline.cli.output import at, count, emit, facts_of, fitted, plain
from strandline.errors import TenantScopeError

if TYPE_CHECKING:
    from strandline import Figures

_TENANT_HELP: Final = "Only this tenant.  [default: all]"
Tenant = Annotated[str | None, typer.Option("--tenant", metavar="NAME", parser=named("tenant"), help=_TENANT_HELP)]
_PROMETHEUS_HELP: Final = "Print the text format of Prometheus; it needs the extra `prometheus`."
Prometheus = Annotated[bool, typer.Option("--prometheus", help=_PROMETHEUS_HELP)]
_SPARE: Final = ("recoveries", "stale")
_HEAD: Final = (
    "tenant",
    "workflows",
    "events",
    "attempts",
    "failed",
    "stale",
    "due",
    "open cases",
    "oldest",
    "recoveries",
)


def metrics(
    store: StorePath = DEFAULT_STORE, tenant: Tenant = None, prometheus: Prometheus = False, as_json: AsJson = False
) -> None:
    """Print counts and ages out of the store's rows: of all tenants, or of one. Nothing is written.

    They are those that Prometheus and OpenTelemetry get, so that a restart of whoever counts loses none.
    """
    if prometheus and as_json:
        raise typer.BadParameter("give one of --json and --prometheus", param_hint="--prometheus")
    with Target(store=store).open_store() as db:
        if tenant is not None and not db.tenant(tenant).workflows():
            raise TenantScopeError(
                f"the store has no tenant {tenant!r}", hint="`strandline metrics` without --tenant lists those it has."
            )
        if prometheus:
            from strandline.telemetry.prometheus import as_text

            emit(as_text(db.figures if tenant is None else db.tenant(tenant).figures).rstrip("\n"))
            return
        found = db.store.figures(tenant, db._clock.now_us())
    one = found.tenants[0] if len(found.tenants) == 1 else None
    rows = [_row(figures) for figures in found.tenants]
    total = sum(figures.workflows for figures in found.tenants)
    show(
        Answer(
            value={"at": at(found.at_us), "tenants": [_value(figures) for figures in found.tenants]},
            heading=f"tenant {one.tenant}" if one else f"{count(len(rows), 'tenant')}, {count(total, 'workflow')}",
            text=facts_of(_facts(one)) if one else fitted(_HEAD, rows, cut={"tenant": 30}, spare=_SPARE),
        ),
        as_json=as_json,
    )


def _value(figures: Figures) -> dict[str, object]:
    value = plain(figures)
    return {**value, "attempts_started": figures.attempts_started} if isinstance(value, dict) else {}


def _row(figures: Figures) -> tuple[object, ...]:
    return (
        figures.tenant,
        figures.workflows,
        figures.events,
        figures.attempts_started,
        sum(figures.failures.values()),
        figures.stale,
        figures.due.get("due", 0),
        sum(figures.cases_open.values()),
        _age(max(figures.cases_age_s.values(), default=0)),
        sum(figures.lineage.get(kind, 0) for kind in ("restore", "replay")),
    )


def _facts(figures: Figures) -> list[tuple[str, object]]:
    failed, started = sum(figures.failures.values()), figures.attempts_started
    share = f" ({failed / started:.1%} of {started:,})" if failed else ""
    open_cases = ", ".join(
        f"{kind} {number:,} (oldest {_age(figures.cases_age_s.get(kind, 0))})"
        for kind, number in sorted(figures.cases_open.items())
    )
    manifests = f"{figures.manifest_refs:,} refs, the largest {figures.manifest_refs_max:,}"
    segments = f"{figures.segment_tokens:,} tokens, from {figures.source_tokens:,} tokens of events"
    return [
        ("workflows", figures.workflows),
        ("events", figures.events),
        ("candidates", figures.candidates),
        ("attempts", _words(figures.attempts)),
        ("retries", figures.retries),
        ("failed, by class", _words(figures.failures) + share),
        ("stale", figures.stale),
        ("oldest running", _age(figures.running_age_s)),
        ("leases", _words(figures.leases)),
        ("due", _words(figures.due)),
        ("longest due", _age(figures.due_age_s)),
        ("lineage", _words(figures.lineage)),
        ("open cases", open_cases),
        ("cases opened", _words(figures.cases_opened)),
        ("active summaries", figures.summaries),
        ("their tokens", figures.summary_tokens),
        ("their depth", figures.depth_max),
        ("their manifests", manifests if figures.summaries else ""),
        ("segments", segments if figures.segment_tokens else ""),
    ]


def _words(numbers: Mapping[str, int]) -> str:
    return ", ".join(f"{word} {number:,}" for word, number in sorted(numbers.items()))


def _age(seconds: float) -> str:
    """Return an age as people say it; none is empty."""
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.0f} s" if seconds else ""
