"""What is decided beside the log: cases, effects, permits."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from strandline.model.action import Permit, PermitState
from strandline.model.case import Case, CaseKind, CaseState
from strandline.model.effect import Effect, EffectState


class CaseFacet(Protocol):
    """Open questions for the controller, and their answers (I11)."""

    def add(self, case: Case) -> None:
        """Add a case; its id is new, and no other open one has its identity."""
        ...

    def settle(self, case: Case) -> bool:
        """Replace a case that is OPEN by its answered form; tell whether it was: the first answer wins."""
        ...

    def get(self, case_id: str) -> Case | None:
        """Return the case, or None."""
        ...

    def open_one(self, identity: str) -> Case | None:
        """Return the open case of this identity, or None."""
        ...

    def count_of(self, identity: str) -> int:
        """Return how many cases of this identity there are, open or answered."""
        ...

    def blocking(self, view: str, summary_no: int) -> Case | None:
        """Return the oldest open blocking case that names this summary of the view, or None."""
        ...

    def of_kind(self, kind: CaseKind, state: CaseState) -> list[Case]:
        """Return the cases of this kind and state in the order in which they were opened."""
        ...

    def all(self) -> Iterator[Case]:
        """Yield every case in the order in which they were opened."""
        ...

    def count(self) -> int:
        """Return the number of stored cases."""
        ...

    def erase(self, case: Case) -> None:
        """Replace a case that is there by one that says less (C31)."""
        ...


class EffectFacet(Protocol):
    """The ledger of effects; a family of forks shares that of its root (C22, C23)."""

    def add(self, effect: Effect) -> None:
        """Add an effect; its key is new."""
        ...

    def settle(self, effect: Effect, *, expected: EffectState, attempt: int) -> bool:
        """Replace an effect whose state is `expected` and whose attempt is `attempt`; tell whether it was."""
        ...

    def get(self, key: str) -> Effect | None:
        """Return the effect, or None."""
        ...

    def alike(self, fingerprint: str, limit: int) -> list[Effect]:
        """Return the effects of this fingerprint, the newest intent first."""
        ...

    def in_doubt(self, fingerprint: str, limit: int) -> list[Effect]:
        """Return those of this fingerprint that are INTENDED or UNKNOWN, the newest intent first."""
        ...

    def all(self) -> Iterator[Effect]:
        """Yield every effect by the time of its intent."""
        ...

    def count(self) -> int:
        """Return the number of stored effects."""
        ...


class PermitFacet(Protocol):
    """Decisions about critical actions, and the single-use approvals that were used; shared by a family of forks."""

    def add(self, permit: Permit) -> None:
        """Add a decision; its id is new."""
        ...

    def settle(self, permit: Permit, *, expected: PermitState) -> bool:
        """Replace a decision whose state is `expected`; tell whether it was."""
        ...

    def get(self, permit_id: str) -> Permit | None:
        """Return the decision, or None."""
        ...

    def use(self, workflow: str, seq: int, permit_id: str) -> bool:
        """Use up the approval that this event states; tell whether it was unused until now."""
        ...

    def used(self, workflow: str, seq: int) -> str | None:
        """Return the permit that used up the approval, or None."""
        ...

    def all(self) -> Iterator[Permit]:
        """Yield every decision by the time at which it was made."""
        ...

    def all_uses(self) -> Iterator[tuple[str, int, str]]:
        """Yield every used approval with its permit: workflow, seq, permit_id; for `verify`."""
        ...
