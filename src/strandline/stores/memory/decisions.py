"""The facets of `strandline.ports.decisions` over versioned tables."""

from __future__ import annotations

from collections.abc import Iterator

from strandline.errors import CorruptRecordError
from strandline.model.action import Permit, PermitState
from strandline.model.case import Case, CaseKind, CaseState
from strandline.model.effect import Effect, EffectState
from strandline.stores.memory.detached import ADDED, detached
from strandline.stores.memory.schema import Facet


class MemoryCases(Facet):
    """`ports.CaseFacet` in memory."""

    def add(self, case: Case) -> None:
        if case.state is CaseState.OPEN and self.open_one(case.identity) is not None:
            raise CorruptRecordError(ADDED, place=f"case_file {case.identity!r}")
        self._tables.cases.add(self._moment, case.case_id, detached(case))

    def settle(self, case: Case) -> bool:
        there = self._tables.cases.get(self._moment, case.case_id)
        if there is None or there.state is not CaseState.OPEN:
            return False
        self._tables.cases.put(self._moment, case.case_id, detached(case))
        return True

    def get(self, case_id: str) -> Case | None:
        found = self._tables.cases.get(self._moment, case_id)
        return None if found is None else detached(found)

    def open_one(self, identity: str) -> Case | None:
        same = self._tables.cases.newest(self._moment, "identity", identity, limit=None)
        return next((detached(case) for case in same if case.state is CaseState.OPEN), None)

    def count_of(self, identity: str) -> int:
        return len(self._tables.cases.newest(self._moment, "identity", identity, limit=None))

    def blocking(self, view: str, summary_no: int) -> Case | None:
        cases = self._tables.cases.newest(self._moment, "names", (view, summary_no), limit=None)
        still = [case for case in cases if case.state is CaseState.OPEN]
        return min(map(detached, still), key=lambda case: (case.opened_us, case.case_id), default=None)

    def of_kind(self, kind: CaseKind, state: CaseState) -> list[Case]:
        cases = self._tables.cases.newest(self._moment, "kind", kind, limit=None)
        found = [detached(case) for case in cases if case.state is state]
        return sorted(found, key=lambda case: (case.opened_us, case.case_id))

    def count(self) -> int:
        return len(self._tables.cases.all(self._moment))

    def erase(self, case: Case) -> None:
        self._tables.cases.expect(self._moment, case.case_id)
        self._tables.cases.put(self._moment, case.case_id, detached(case))

    def all(self) -> Iterator[Case]:
        cases = self._tables.cases.all(self._moment)
        return iter(sorted(map(detached, cases), key=lambda case: (case.opened_us, case.case_id)))


class MemoryEffects(Facet):
    """`ports.EffectFacet` in memory."""

    def add(self, effect: Effect) -> None:
        self._tables.effects.add(self._moment, effect.key, effect)

    def settle(self, effect: Effect, *, expected: EffectState, attempt: int) -> bool:
        there = self.get(effect.key)
        if there is None or (there.state, there.attempt) != (expected, attempt):
            return False
        self._tables.effects.put(self._moment, effect.key, effect)
        return True

    def get(self, key: str) -> Effect | None:
        return self._tables.effects.get(self._moment, key)

    def alike(self, fingerprint: str, limit: int) -> list[Effect]:
        return self._alike(fingerprint)[:limit]

    def in_doubt(self, fingerprint: str, limit: int) -> list[Effect]:
        doubtful = (EffectState.INTENDED, EffectState.UNKNOWN)
        return [effect for effect in self._alike(fingerprint) if effect.state in doubtful][:limit]

    def _alike(self, fingerprint: str) -> list[Effect]:
        effects = self._tables.effects.newest(self._moment, "fingerprint", fingerprint, limit=None)
        return sorted(effects, key=lambda effect: (-effect.intended_us, effect.key))

    def all(self) -> Iterator[Effect]:
        effects = self._tables.effects.all(self._moment)
        return iter(sorted(effects, key=lambda effect: (effect.intended_us, effect.key)))

    def count(self) -> int:
        return len(self._tables.effects.all(self._moment))


class MemoryPermits(Facet):
    """`ports.PermitFacet` in memory."""

    def add(self, permit: Permit) -> None:
        self._tables.permits.add(self._moment, permit.permit_id, permit)

    def settle(self, permit: Permit, *, expected: PermitState) -> bool:
        there = self.get(permit.permit_id)
        if there is None or there.state is not expected:
            return False
        self._tables.permits.put(self._moment, permit.permit_id, permit)
        return True

    def get(self, permit_id: str) -> Permit | None:
        return self._tables.permits.get(self._moment, permit_id)

    def use(self, workflow: str, seq: int, permit_id: str) -> bool:
        if self.used(workflow, seq) is not None:
            return False
        self._tables.approval_uses.add(self._moment, (workflow, seq), (workflow, seq, permit_id))
        return True

    def used(self, workflow: str, seq: int) -> str | None:
        row = self._tables.approval_uses.get(self._moment, (workflow, seq))
        return None if row is None else row[2]

    def all(self) -> Iterator[Permit]:
        permits = self._tables.permits.all(self._moment)
        return iter(sorted(permits, key=lambda permit: (permit.decided_us, permit.permit_id)))

    def all_uses(self) -> Iterator[tuple[str, int, str]]:
        return iter(self._tables.approval_uses.all(self._moment))
