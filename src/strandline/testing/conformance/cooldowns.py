"""Cooldowns: a row for each summarizer and workflow, read over the whole tenant."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from strandline.model.cooldown import Cooldown
from strandline.model.ids import Scope
from strandline.ports import Store
from strandline.testing.conformance.base import StoreLaws
from strandline.testing.conformance.stage import SCOPE, append
from strandline.testing.fakes import START_US

ROW: Final = Cooldown(
    summarizer="model", failures=3, failed_us=START_US, answered_us=7, until_us=START_US + 9_000_000, steps=2
)


class CooldownLaws(StoreLaws):
    """Laws of `CooldownFacet`."""

    def test_a_cooldown_comes_back_whole(self, store: Store) -> None:
        """C14: every column is kept, one row for each summarizer; written again, it is another."""
        other = replace(ROW, summarizer="another", failures=1)
        with store.write(SCOPE) as tx:
            append(tx)
            tx.cooldowns.put(ROW)
            tx.cooldowns.put(other)
        again = replace(ROW, failures=0, answered_us=START_US + 5)
        with store.write(SCOPE) as tx:
            assert tx.cooldowns.get("model") == ROW
            tx.cooldowns.put(again)
        with store.read(SCOPE) as tx:
            assert tx.cooldowns.all() == [other, again]
            assert tx.cooldowns.get("nobody") is None

    def test_the_tenants_other_workflows_are_read_and_no_other_tenant(self, store: Store) -> None:
        """C14, I21: the newest first, up to the limit; its own row is not among them."""
        for number, (tenant, workflow) in enumerate((("acme", "a"), ("acme", "b"), ("other", "a"), ("acme", "c"))):
            with store.write(Scope(tenant=tenant, workflow=workflow)) as tx:
                append(tx)
                tx.cooldowns.put(replace(ROW, failed_us=START_US + number))
        with store.read(Scope(tenant="acme", workflow="a")) as tx:
            found = [row.failed_us - START_US for row in tx.cooldowns.others("model", 9)]
            assert found == [3, 1]
            assert len(tx.cooldowns.others("model", 1)) == 1
            assert tx.cooldowns.others("another", 9) == []
