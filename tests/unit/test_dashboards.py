"""Law (C27): the dashboard and the rules that come with the package ask for metrics that there are, by their labels,
and every metric is on the dashboard.
"""

import json
import re
from importlib import resources
from pathlib import Path

import pytest

from strandline.limits import CASE_ESCALATES_S
from strandline.ports.occurrences import OCCURRENCES
from strandline.telemetry import names
from strandline.telemetry.names import METRICS, MetricKind

PAGE = Path(__file__).parents[2] / "docs" / "observability.md"
FOLDER = resources.files("strandline.telemetry") / "dashboards"
DASHBOARD = json.loads((FOLDER / "grafana.json").read_text(encoding="utf-8"))
RULES = (FOLDER / "alerts.yml").read_text(encoding="utf-8")
FAMILIES = {metric.prometheus: metric for metric in METRICS}
ASKED = re.compile(r"\b(strandline_\w+)(?:\{([^}]*)\})?")
GROUPED = re.compile(r"(?:by|ignoring|on) ?\(([^)]*)\)")
WORDS_OF_PROMQL = {"le"}


def expressions() -> list[str]:
    targets = [target["expr"] for panel in DASHBOARD["panels"] for target in panel.get("targets", ())]
    return [*targets, *(rule["expr"] for rule in rules())]


def rules() -> list[dict[str, str]]:
    """Read the rules: one list of flat mappings, whose values stand on one line. Nothing else may be in the file."""
    found: list[dict[str, str]] = []
    lines = [line for line in RULES.splitlines() if line.strip() and not line.startswith("#")]
    assert lines[:3] == ["groups:", "  - name: strandline", "    rules:"]
    for line in lines[3:]:
        match = re.fullmatch(r"(      - |        |          )(\w+):(?: (.+))?", line)
        assert match is not None, line
        indent, key, value = match.groups()
        if indent == "      - ":
            found.append({})
        assert key not in found[-1], line
        if value is None:
            assert key in ("labels", "annotations"), line
        else:
            found[-1][key] = value
            quoted = value.startswith('"')
            assert value.endswith('"') == quoted, line
            assert quoted or (": " not in value and " #" not in value), line
            assert quoted == (len(indent) == 10 and key != "severity"), line
    return found


def family_of(name: str) -> names.Metric:
    base = re.sub(r"_(bucket|sum|count)$", "", name)
    metric = FAMILIES.get(name) or FAMILIES[base]
    if name not in FAMILIES:
        assert metric.kind is MetricKind.HISTOGRAM, name
    return metric


@pytest.mark.parametrize("expression", expressions())
def test_an_expression_asks_for_metrics_that_there_are(expression):
    """With labels that they have, and with balanced brackets."""
    asked = ASKED.findall(expression)
    assert asked
    labels = set(WORDS_OF_PROMQL)
    for name, selector in asked:
        metric = family_of(name)
        own = {names.TENANT, *metric.labels}
        labels |= own
        assert {part.split("=")[0].strip("!~ ") for part in selector.split(",") if part} <= own, name
        assert ("rate(" in expression or "increase(" in expression) or metric.kind is not MetricKind.HISTOGRAM
    for group in GROUPED.findall(expression):
        assert {word.strip() for word in group.split(",")} <= labels, expression
    for opening, closing in ("()", "{}", "[]"):
        assert expression.count(opening) == expression.count(closing)


def test_every_metric_is_on_the_dashboard():
    targets = [target["expr"] for panel in DASHBOARD["panels"] for target in panel.get("targets", ())]
    shown = {family_of(name).name for expression in targets for name, _ in ASKED.findall(expression)}
    assert shown == {metric.name for metric in METRICS}


def test_the_dashboard_can_be_imported():
    """Ids are unique, panels lie beside each other, and everything asks the data source that is chosen."""
    panels = DASHBOARD["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    taken = set()
    for panel in panels:
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not taken & cells, panel["title"]
        taken |= cells
        assert place["x"] + place["w"] <= 24
        for target in panel.get("targets", ()):
            assert target["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
    variables = {variable["name"] for variable in DASHBOARD["templating"]["list"]}
    assert variables == {"datasource", "tenant"}
    assert {"$" + name for name in re.findall(r"\$(\w+)", json.dumps(panels))} <= {"$tenant", "$__rate_interval"} | {
        "$datasource"
    }


def test_each_rule_says_what_is_wrong_and_what_to_do():
    found = rules()
    assert len({rule["alert"] for rule in found}) == len(found)
    for rule in found:
        assert rule.keys() - {"for"} == {"alert", "expr", "severity", "summary", "action"}
        assert rule["severity"] in ("critical", "warning")
        assert re.fullmatch(r"Strandline[A-Z]\w+", rule["alert"])
        assert re.fullmatch(r"\d+[smh]", rule.get("for", "5m"))
        labels = {label for name, _ in ASKED.findall(rule["expr"]) for label in family_of(name).labels}
        assert set(re.findall(r"\$labels\.(\w+)", rule["summary"])) <= labels | {names.TENANT}


def test_what_must_wake_somebody_has_a_rule():
    """SPEC C27, issue 5: stuck compactions, rising quarantine, open cases, overflow, missing events."""
    asked = {family_of(name) for rule in rules() for name, _ in ASKED.findall(rule["expr"])}
    assert asked >= {
        names.RUNNING_AGE,
        names.LEASES,
        names.DUE_AGE,
        names.CASES_OPENED,
        names.CASES_AGE,
        names.OVERFLOW_ERRORS,
        names.MISSING_EVENT_INCIDENTS,
        names.UP,
    }
    assert f"strandline_cases_open_age_seconds > {CASE_ESCALATES_S:.0f}" in {rule["expr"] for rule in rules()}


def test_names_are_one_per_metric():
    assert len(FAMILIES) == len(METRICS) == len({metric.name for metric in METRICS})
    for metric in METRICS:
        assert re.fullmatch(r"strandline(\.[a-z_]+)+", metric.name)
        assert names.TENANT not in metric.labels
        assert metric.meaning
        assert re.fullmatch(r"s|1|\{[a-z]+\}", metric.unit)


# ---------------------------------------------------------------------------------------------- the page


def test_the_page_says_every_name_as_it_is():
    """Metrics with kind, unit, labels and meaning; spans; occurrences with their details."""
    page = PAGE.read_text(encoding="utf-8")
    rows = set(page.splitlines())
    for metric in METRICS:
        labels = () if metric is names.UP else (names.TENANT, *metric.labels)
        shown = ", ".join(f"`{label}`" for label in labels) or "none"
        kind = f"{metric.kind}, `{metric.unit}`"
        assert f"| `{metric.name}` | `{metric.prometheus}` | {kind} | {shown} | {metric.meaning} |" in rows
    for span, meaning in names.SPANS.items():
        assert f"| `strandline.{span}` | {meaning} |" in rows
    for name, kind in OCCURRENCES.items():
        details = ", ".join(f"`{word}`" for word in kind.__annotations__)
        assert any(row.startswith(f"| `{name}` | {details} | ") for row in rows), name
    named = set(re.findall(r"`(strandline\.[a-z_.]+)`", page)) - {"strandline.telemetry", "strandline."}
    assert named == {metric.name for metric in METRICS} | {f"strandline.{span}" for span in names.SPANS}
