"""The lineage gate (I15): a state made under a summary that is not the present one is not simply taken up again.

Under the middleware a state names the context that its last answer was made from. The messages in it are context-free:
what the model sees comes out of the log. So the newest state of a thread passes, whatever became of the summary. An
older one that is asked for by its id, from before a compaction, a revert or an erasure, would go on beside a memory
that knows better: it is refused, or handed over with a warning.
"""

from __future__ import annotations

import logging
import warnings
from typing import Literal

from strandline import Basis, CompactionLineageError, InvalidInputError, Tenant, TenantScopeError
from strandline.integrations.langgraph.place import StateBasis

Restore = Literal["strict", "warn"]

_log = logging.getLogger("strandline.integrations")


class StaleStateWarning(UserWarning):
    """A checkpoint was handed over that the present summary does not stand behind (`restore="warn"`)."""


def check_restore(restore: str) -> Restore:
    """Return what to do about a state that does not pass.

    Raises:
        InvalidInputError: neither "strict" nor "warn".
    """
    if restore == "strict":
        return "strict"
    if restore == "warn":
        return "warn"
    raise InvalidInputError(f'restore={restore!r}; it is "strict" or "warn"')


def pass_gate(tenant: Tenant, basis: StateBasis, state_id: str, restore: Restore, *, newest: bool) -> None:
    """Check a state against the log that it was made from.

    Args:
        tenant: whose workflow the basis names.
        basis: what the state names.
        state_id: of the state.
        restore: "strict" refuses, "warn" warns.
        newest: it is the newest of its thread.

    Raises:
        CompactionLineageError: with "strict", an older state from before the view's pointer moved; or one, also the
            newest, that knows more than the log.
    """
    now = _now(tenant, basis)
    if basis["generation"] > now.generation or basis["recorded"] > now.revision:
        _refuse(
            f"checkpoint {state_id!r} was made at generation {basis['generation']} and revision {basis['recorded']} of"
            f" {basis['workflow']!r}, view {basis['view']!r}, which is at generation {now.generation}, revision"
            f" {now.revision}",
            "The log is another one, or was restored from an older backup than the checkpoints: bring both together.",
            basis,
            now,
            restore,
        )
    elif basis["generation"] < now.generation and newest:
        _log.info(
            "checkpoint %s was made at generation %d, and %d is active: the context comes from the log",
            state_id,
            basis["generation"],
            now.generation,
        )
    elif basis["generation"] < now.generation:
        _refuse(
            f"checkpoint {state_id!r} was made at generation {basis['generation']} of {basis['workflow']!r}, view"
            f" {basis['view']!r}, before {_moves(tenant, basis)}; generation {now.generation} is active",
            "Go on from the newest checkpoint (leave checkpoint_id out), or hand older ones over with a warning:"
            ' restore="warn".',
            basis,
            now,
            restore,
        )


def _now(tenant: Tenant, basis: StateBasis) -> Basis:
    try:
        return tenant.workflow(basis["workflow"]).view(basis["view"]).basis()
    except TenantScopeError:  # there is no such view
        return Basis(view=basis["view"], generation=0, revision=0)


def _moves(tenant: Tenant, basis: StateBasis) -> str:
    """Name what moved the view's pointer since."""
    entries = tenant.workflow(basis["workflow"]).lineage()
    moves = [e.kind.value for e in entries if e.view == basis["view"] and (e.generation or 0) > basis["generation"]]
    return ", ".join(dict.fromkeys(moves)) or "its pointer moved"


def _refuse(said: str, hint: str, basis: StateBasis, now: Basis, restore: Restore) -> None:
    if restore == "warn":
        warnings.warn(f"{said}. {hint}", StaleStateWarning, stacklevel=4)
        return
    error = CompactionLineageError(said, basis_generation=basis["generation"], generation=now.generation)
    error.hint = hint
    raise error
