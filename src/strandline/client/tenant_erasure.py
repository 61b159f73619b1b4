"""What a tenant decides about all of its workflows: erasure, legal holds, retention (C31)."""

from __future__ import annotations

from collections.abc import Sequence

from strandline.engine.environment import Environment
from strandline.engine.holds import lift_hold, list_holds, set_hold
from strandline.engine.retain import RetainOrder, drop_rule, erase_everywhere, list_rules, retain, set_rule
from strandline.model.erasure import ErasureOrder, Hold, Retained, RetentionRule
from strandline.model.event import EventKind
from strandline.summarizers import ExtractiveSummarizer


class TenantErasure:
    """A part of `Tenant`."""

    _rules: Environment  # of the tenant's own rules

    def erase(
        self,
        *,
        refs: Sequence[str] = (),
        actor: str | None = None,
        person: str | None = None,
        everything: bool = False,
        workflows: Sequence[str] = (),
        by: str,
        why: str,
        force: bool = False,
        scan: bool = True,
    ) -> list[Retained]:
        """Erase the same in several workflows: a person, say. Each is a transaction of its own, as `Workflow.erase`.

        Args:
            refs, actor, person, everything, by, why, force, scan: as of `Workflow.erase`.
            workflows: which; (): all of the tenant.

        Returns the workflows that held some of it, or hold it where no erasure reaches (`Erased.left_in`), and those
        that a hold or a reader kept from it, with the reason.

        Raises:
            InvalidInputError: nothing is named, or nobody decides; nothing was erased.
        """
        order = ErasureOrder(
            refs=tuple(refs), actor=actor, person=person, everything=everything, by=by, why=why, force=force
        )
        return erase_everywhere(self._rules, order, workflows, ExtractiveSummarizer(), scan=scan)

    def hold(self, name: str, *, by: str, why: str) -> Hold:
        """Set a legal hold on every workflow of the tenant, those to come too; as `Workflow.hold`."""
        return set_hold(self._rules, name, by=by, why=why)

    def lift_hold(self, name: str, *, by: str, why: str) -> Hold:
        """Lift a legal hold of the tenant; as `Workflow.lift_hold`."""
        return lift_hold(self._rules, name, by=by, why=why)

    def holds(self) -> list[Hold]:
        """Return the legal holds of the tenant, without those of single workflows."""
        return list_holds(self._rules)

    def set_retention(
        self,
        name: str,
        *,
        older_than_s: float,
        kinds: Sequence[EventKind | str] = (),
        workflows: Sequence[str] = (),
        by: str,
        why: str,
    ) -> RetentionRule:
        """Set a rule for how long events are kept, or replace the one of this name. `retain` carries it out.

        Args:
            name: of the rule.
            older_than_s: seconds since it was appended, by the store's clock, after which an event is kept no longer.
            kinds: of which events; (): of all.
            workflows: of which workflows; (): of all, those to come too.
            by: who decides.
            why: for the tenant's lineage.

        Raises:
            InvalidInputError: an age or a kind that is none, or nobody decides; nothing was written.
        """
        return set_rule(self._rules, name, older_than_s=older_than_s, kinds=kinds, workflows=workflows, by=by, why=why)

    def drop_retention(self, name: str, *, by: str, why: str) -> RetentionRule:
        """Drop a retention rule, and return it.

        Raises:
            InvalidInputError: there is none of this name, or nobody decides; nothing was written.
        """
        return drop_rule(self._rules, name, by=by, why=why)

    def retention(self) -> list[RetentionRule]:
        """Return the retention rules."""
        return list_rules(self._rules)

    def retain(
        self, *, apply: bool = False, by: str = "", why: str = "", force: bool = False, scan: bool = True
    ) -> list[Retained]:
        """Count what the retention rules keep no longer; with `apply`, erase it.

        What states a fact in force, or an open call, is kept as long as it does.

        Args:
            apply: erase it, a transaction for each workflow.
            by, why: who decides, and why; they are needed to apply.
            force, scan: as of `Workflow.erase`.

        Returns the workflows that hold some of it: how much, what was erased, or why it was not.

        Raises:
            InvalidInputError: nobody decides; nothing was erased.
        """
        order = RetainOrder(apply=apply, by=by, why=why, force=force, scan=scan)
        return retain(self._rules, order, ExtractiveSummarizer())
