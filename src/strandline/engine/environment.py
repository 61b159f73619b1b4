"""What every verb works with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from strandline.model.ids import Scope
from strandline.ports import Clock, Entropy, Hook, Store, TokenCounter


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """The ports, and the workflow that the verb is about."""

    store: Store
    clock: Clock
    entropy: Entropy
    counter: TokenCounter
    scope: Scope
    hooks: tuple[Hook, ...] = ()

    def emit(self, name: str, details: Mapping[str, object]) -> None:
        """Tell the hooks, after the commit. A hook that raises changes nothing (DESIGN §2)."""
        for hook in self.hooks:
            try:
                hook.emit(name, details)
            except Exception:  # noqa: BLE001  what watches the memory must not be able to harm it
                continue
