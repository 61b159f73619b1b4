"""What is kept of a store outside of it, and the proof that the store continues it (ADR 0071)."""

from __future__ import annotations

from strandline.engine.environment import Environment
from strandline.engine.witness import check_witness, take_witness
from strandline.model.ids import Scope
from strandline.model.witness import Witness, WitnessReport

Witnessed = tuple[Environment, list[Scope], str | None]
"""The ports, the workflows that a witness is of, and their tenant; None: all of the store's."""


class WitnessVerbs:
    """A part of `Strandline` and of `Tenant`. A tenant's witness says nothing of others (I21)."""

    def witness(self, *, key: bytes | None = None) -> Witness:
        """Return what the heads of the workflows are, to be kept outside: no record of a store can show that an older
        copy of all of it was put back.

        Args:
            key: sign it with this key (HMAC-SHA256), of at least WITNESS_KEY_BYTES_MIN bytes.

        Raises:
            InvalidInputError: the key is too short.
            CorruptRecordError: the last event or entry of a workflow is damaged: such a store is not witnessed.
        """
        return take_witness(*self._witnessed(), key)

    def check_witness(self, document: str | bytes | Witness, *, key: bytes | None = None) -> WitnessReport:
        """Prove that every witnessed head is still there, as it was or with more behind it.

        Args:
            document: a witness, or the lines of several, in any order. Of a tenant its own heads are looked at.
            key: every witness must be signed with it; None: signatures are not looked at.

        Raises:
            NotContinuedError: a workflow is rolled back, forked off, replaced or missing.
            InvalidInputError: a witness is damaged, or not signed with the key; or none speaks of the tenant.
            CorruptRecordError: what stands at a witnessed place is damaged.
        """
        return check_witness(*self._witnessed(), document, key)

    def _witnessed(self) -> Witnessed:
        raise NotImplementedError
