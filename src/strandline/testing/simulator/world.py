"""The world outside: where effects really happen, and are counted (I18)."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from strandline.errors import EffectFailedError
from strandline.model.case import EffectCantTell, EffectDone, EffectNeverHappened, ProbeAnswer


@dataclass(slots=True)
class Outside:
    """What happened. Who asks whether an effect happened, and is told `never`, is told the truth: what was asked for
    before and has not happened is refused from then on, as by a service that closes an idempotency key.
    """

    happened: Counter[str] = field(default_factory=Counter)
    promised: Counter[str] = field(default_factory=Counter)  # how often it was said that it never will

    def happen(self, key: str, promises: int) -> dict[str, str]:
        """Let an effect happen that was asked for when so many promises had been made.

        Raises:
            EffectFailedError: it was promised since that it never will.
        """
        if self.promised[key] > promises:
            raise EffectFailedError("what was asked for was called off")
        self.happened[key] += 1
        return {"id": "done"}

    def look(self, key: str, *, knows: bool) -> ProbeAnswer:
        """Say whether it happened; a probe that does not know can't tell."""
        if not knows:
            return EffectCantTell()
        if self.happened[key]:
            return EffectDone({"id": "done"})
        self.promised[key] += 1
        return EffectNeverHappened()
