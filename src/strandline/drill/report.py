"""What an incident comes to: what went wrong without protection, and checks of what is promised with it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field


def run_of(numbers: Sequence[int]) -> str:
    """Return numbers that follow each other as their first and last, others one by one."""
    if len(numbers) > 1 and list(numbers) == list(range(numbers[0], numbers[-1] + 1)):
        return f"{numbers[0]}–{numbers[-1]}"
    return ", ".join(map(str, numbers)) or "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One promise: what was expected and what was got, both as JSON values."""

    name: str
    expected: object
    got: object

    @property
    def ok(self) -> bool:
        """Whether it was kept."""
        return self.got == self.expected and type(self.got) is type(self.expected)

    def as_object(self) -> dict[str, object]:
        """Return it as JSON."""
        return {"name": self.name, "expected": self.expected, "got": self.got, "ok": self.ok}


@dataclass(slots=True, kw_only=True)
class Incident:
    """One incident as it ran."""

    name: str
    naive: dict[str, object] = field(default_factory=dict)
    checks: list[Check] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """Whether every promise was kept, and the corruption was seen where there is no protection."""
        return self.naive.get("corrupted") is True and bool(self.checks) and all(check.ok for check in self.checks)

    def as_object(self) -> dict[str, object]:
        """Return it as JSON."""
        return {"name": self.name, "naive": self.naive, "checks": [check.as_object() for check in self.checks]}
