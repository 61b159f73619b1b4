"""What the suite found, capability by capability."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final
from unittest import mock

import pytest

from strandline.ports import AsyncSummarizer, Store, Summarizer
from strandline.testing.conformance import StoreConformance, SummarizerConformance
from strandline.testing.conformance.base import OpenStore
from strandline.testing.conformance.summarizers import FailingSummarizer, MakeSummarizer

REASON_CHARS_MAX: Final = 200


@dataclass(slots=True)
class Law:
    """One capability: the checks of one part of the suite."""

    name: str
    passed: int = 0
    broken: dict[str, str] = field(default_factory=dict)  # by check, what was wrong
    not_asked: dict[str, str] = field(default_factory=dict)  # by check, why

    @property
    def checks(self) -> int:
        """How many checks it has."""
        return self.passed + len(self.broken) + len(self.not_asked)

    @property
    def full(self) -> bool:
        """Whether each was made and passed."""
        return self.passed == self.checks


@dataclass(slots=True)
class Report:
    """What a store or a summarizer keeps. Without laws the suite could not be run, and `failure` says why."""

    subject: str
    laws: list[Law]
    failure: str = ""

    @property
    def full(self) -> bool:
        """Whether it keeps all."""
        return bool(self.laws) and all(law.full for law in self.laws)

    def as_json(self) -> dict[str, object]:
        """Return it as what JSON can say."""
        laws = [
            {
                "capability": law.name,
                "checks": law.checks,
                "passed": law.passed,
                "full": law.full,
                "broken": law.broken,
                "not_asked": law.not_asked,
            }
            for law in self.laws
        ]
        return {"subject": self.subject, "full": self.full, "capabilities": laws, "failure": self.failure}


class Recorder:
    """A pytest plugin that notes what became of each check."""

    def __init__(self) -> None:
        self.laws: dict[str, Law] = {}
        self.failure = ""
        self._of: dict[str, str] = {}

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Note which capability a check belongs to: the class that states it."""
        for item in items:
            law = item.function.__qualname__.partition(".")[0].removesuffix("Laws")  # type: ignore[attr-defined]
            self._of[item.nodeid] = law.lower()

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Note why nothing could be collected."""
        if report.failed:
            self.failure = reason_of(report.longreprtext)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note the outcome of a check: its set-up and its end count, too."""
        law = self.laws.setdefault(self._of[report.nodeid], Law(self._of[report.nodeid]))
        check = report.nodeid.rpartition("::")[2]
        if report.skipped:
            told = report.longrepr
            law.not_asked[check] = str(told[2] if isinstance(told, tuple) else told).removeprefix("Skipped: ")
        elif report.failed:
            if check not in law.broken and report.when == "teardown":
                law.passed -= 1
            law.broken.setdefault(check, reason_of(report.longreprtext))
        elif report.when == "call":
            law.passed += 1


def reason_of(text: str) -> str:
    """Return what an error says: the first of pytest's lines that are marked as such; else what does not hold."""
    lines = text.splitlines()
    said = [line[1:].strip() for line in lines if line.startswith("E ")]
    stood = [line[1:].strip() for line in lines if line.startswith(">")]  # innermost last
    if said[:1] == [AssertionError.__name__] and stood:
        said = [f"does not hold: {stood[-1].removeprefix('assert ')}"]
    return (said or lines[-1:] or ["it failed"])[0][:REASON_CHARS_MAX]


def run(
    factory: Callable[..., object],
    folder: Path,
    *,
    summarizer: bool = False,
    durable: bool = True,
    deterministic: bool = False,
    failing: Callable[..., object] | None = None,
) -> Report:
    """Run the suite on what a factory makes.

    Args:
        factory: of stores, called with a path; of summarizers, called with nothing.
        folder: an empty one.
        summarizer: whether it makes summarizers.
        durable: of a store: whether it keeps its data.
        deterministic: of a summarizer: whether it claims to be.
        failing: of a summarizer: called with a `Trouble`, makes one that is in it, or None.
    """
    suite = _summarizer_suite(factory, deterministic, failing) if summarizer else _store_suite(factory, durable)
    module = folder / "test_conformance.py"
    module.write_text("from strandline.testing.conformance import report\n\nTestSubject = report.suites[__name__]\n")
    (folder / "pytest.ini").write_text("[pytest]\n")
    recorder = Recorder()
    suites[module.stem] = suite
    with mock.patch.dict(os.environ, {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_ADDOPTS": ""}):
        words = [
            "-p",
            "no:terminal",
            "-p",
            "no:cacheprovider",
            "--rootdir",
            str(folder),
            "-c",
            str(folder / "pytest.ini"),
        ]
        pytest.main([*words, "--basetemp", str(folder / "stores"), str(module)], plugins=[recorder])
    subject = f"{factory.__module__}:{getattr(factory, '__qualname__', '?')}"
    return Report(subject, sorted(recorder.laws.values(), key=lambda law: law.name), recorder.failure)


suites: dict[str, type] = {}
"""The suite that a run is about, by the name of its module."""


def _store_suite(factory: Callable[..., object], durable_: bool) -> type:
    class TestSubject(StoreConformance):
        durable = durable_

        @pytest.fixture
        def open_store(self, tmp_path: Path) -> OpenStore:
            return partial(_made, factory, str(tmp_path / "store"))

    return TestSubject


def _made(factory: Callable[..., object], path: str) -> Store:
    made: Store = factory(path)  # type: ignore[assignment]
    return made


def _summarizer_suite(factory: Callable[..., object], claimed: bool, failing: Callable[..., object] | None) -> type:
    class TestSubject(SummarizerConformance):
        deterministic = claimed

        @pytest.fixture
        def make_summarizer(self) -> MakeSummarizer:
            def make() -> Summarizer | AsyncSummarizer:
                made: Summarizer | AsyncSummarizer = factory()  # type: ignore[assignment]
                return made

            return make

        @pytest.fixture
        def failing_summarizer(self) -> FailingSummarizer:
            return failing or (lambda trouble: None)  # type: ignore[return-value]

    return TestSubject


def shown(report: Report) -> str:
    """Return a report as text."""
    if not report.laws:
        return f"{report.subject}: the suite could not be run: {report.failure or 'it has no check'}"
    width = max(len(law.name) for law in report.laws)
    lines = [report.subject]
    for law in report.laws:
        verdict = "FULL" if law.full else "BROKEN" if law.broken else "not all was asked"
        lines.append(f"  {law.name.ljust(width)}  {law.passed:3d} of {law.checks:3d}  {verdict}")
        lines += [f"      {check}: {why}" for check, why in law.broken.items()]
        lines += [f"      {check}: not asked: {why}" for check, why in law.not_asked.items()]
    passed, checks = sum(law.passed for law in report.laws), sum(law.checks for law in report.laws)
    broken = sum(len(law.broken) for law in report.laws)
    end = "it keeps every law" if report.full else f"{broken} broken, {checks - passed - broken} not asked"
    return "\n".join([*lines, f"{passed} of {checks} checks passed: {end}"])
