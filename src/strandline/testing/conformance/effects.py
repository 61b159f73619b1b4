"""Laws of the ledger of effects (I18): a key is one row, and a row moves only from the state that it is expected in."""

from __future__ import annotations

import contextlib
from dataclasses import replace

import pytest

from strandline.model.effect import EffectState
from strandline.ports import Store
from strandline.testing.conformance.base import REFUSALS, StoreLaws
from strandline.testing.conformance.stage import SCOPE
from strandline.testing.values import make_effect


class EffectLaws(StoreLaws):
    """Of `ports.EffectFacet`."""

    def test_an_effect_is_what_was_added(self, store: Store) -> None:
        """A row is read back whole; all rows come in the order of their intents."""
        effects = [make_effect("b", intended_us=2), make_effect("a", intended_us=1)]
        with store.write(SCOPE) as tx:
            for effect in effects:
                tx.effects.add(effect)
        with store.read(SCOPE) as tx:
            assert [tx.effects.get(effect.key) for effect in effects] == effects
            assert tx.effects.get("c") is None
            assert list(tx.effects.all()) == effects[::-1]
            assert tx.effects.count() == 2

    def test_a_key_is_one_row(self, store: Store) -> None:
        """Adding a key twice is refused, and the first row stays."""
        with store.write(SCOPE) as tx:
            tx.effects.add(make_effect("a"))
        with pytest.raises(REFUSALS), store.write(SCOPE) as tx:
            tx.effects.add(make_effect("a", attempt=2))
        with store.read(SCOPE) as tx:
            assert tx.effects.get("a") == make_effect("a")

    def test_an_effect_is_settled_only_from_what_is_expected(self, store: Store) -> None:
        """A row is replaced only if state and attempt are as expected (I18)."""
        first = make_effect("a")
        done = replace(first, state=EffectState.DONE, result_seq=2, settled_us=9)
        with store.write(SCOPE) as tx:
            assert not tx.effects.settle(done, expected=EffectState.INTENDED, attempt=1)  # it is not there
            tx.effects.add(first)
            assert not tx.effects.settle(done, expected=EffectState.UNKNOWN, attempt=1)
            assert not tx.effects.settle(done, expected=EffectState.INTENDED, attempt=2)
            assert tx.effects.get("a") == first
            assert tx.effects.settle(done, expected=EffectState.INTENDED, attempt=1)
            assert not tx.effects.settle(first, expected=EffectState.INTENDED, attempt=1)
        with store.read(SCOPE) as tx:
            assert tx.effects.get("a") == done
            assert tx.effects.count() == 1

    def test_effects_of_one_fingerprint_are_found_the_newest_first(self, store: Store) -> None:
        """No more than asked for."""
        with store.write(SCOPE) as tx:
            for number, key in enumerate("cab"):
                tx.effects.add(make_effect(key, fingerprint="same", intended_us=number))
            tx.effects.add(make_effect("d", fingerprint="other"))
        with store.read(SCOPE) as tx:
            assert [effect.key for effect in tx.effects.alike("same", 2)] == ["b", "a"]
            assert tx.effects.alike("none", 2) == []

    def test_effects_in_doubt_are_found_however_many_are_alike(self, store: Store) -> None:
        """INTENDED and UNKNOWN ones only, the newest first, and no more than asked for (I18)."""
        with store.write(SCOPE) as tx:
            for number, state in enumerate(EffectState):
                intended = make_effect(state.value, fingerprint="same", intended_us=number)
                tx.effects.add(replace(intended, state=state))
            tx.effects.add(make_effect("other", fingerprint="other"))
        with store.read(SCOPE) as tx:
            assert [effect.key for effect in tx.effects.in_doubt("same", 9)] == ["unknown", "intended"]
            assert [effect.key for effect in tx.effects.in_doubt("same", 1)] == ["unknown"]
            assert tx.effects.in_doubt("none", 9) == []

    def test_a_rolled_back_effect_is_not_there(self, store: Store) -> None:
        """An intent that was not committed is none."""
        with contextlib.suppress(ZeroDivisionError), store.write(SCOPE) as tx:
            tx.effects.add(make_effect("a"))
            raise ZeroDivisionError
        with store.read(SCOPE) as tx:
            assert (tx.effects.get("a"), tx.effects.count()) == (None, 0)
