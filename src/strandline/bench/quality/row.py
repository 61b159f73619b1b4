"""One line of the table: what was measured, on what, and whether the mark was reached."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A measured figure beside its mark.

    `value` is in `unit` (a percentage as a number of 0..100); None where it could not be measured, with the `reason`.
    """

    id: str
    measure: str
    data: str
    mark: float
    value: float | None = None
    at_most: bool = False  # the mark is an upper bound
    unit: str = "%"
    reason: str = ""

    @property
    def reached(self) -> bool | None:
        """Whether the value is on the right side of the mark; None: nothing was measured."""
        if self.value is None:
            return None
        return self.value <= self.mark if self.at_most else self.value >= self.mark

    @property
    def value_text(self) -> str:
        """The value with its unit, as a table shows it."""
        return "–" if self.value is None else f"{self.value:.4g} {self.unit}".rstrip()

    @property
    def mark_text(self) -> str:
        """The mark with its sign and unit, as a table shows it."""
        return f"{'≤' if self.at_most else '≥'} {self.mark:g} {self.unit}".rstrip()

    def measured(self, value: float | None, reason: str = "") -> Row:
        """Return the row with its figure; None, with the reason, where there is none."""
        return replace(self, value=value, reason=reason)
