"""Workflows and tenants don't touch."""

from __future__ import annotations

import pytest

from strandline.model.ids import Scope
from strandline.ports import Store
from strandline.testing.conformance.base import StoreLaws
from strandline.testing.conformance.stage import SCOPE, append, dump, give_up, populate

Names = tuple[str, str]  # tenant and workflow
LOOK_ALIKES: dict[str, tuple[Names, Names]] = {
    "another workflow": (("acme", "a"), ("acme", "b")),
    "another tenant": (("acme", "a"), ("umbrella", "a")),
    "names that join alike": (("acme/eu", "west"), ("acme", "eu/west")),
    "names that swap": (("acme", "umbrella"), ("umbrella", "acme")),
    "slash and underscore": (("acme/eu", "a"), ("acme_eu", "a")),
    "underscore, a wildcard": (("acme_eu", "a"), ("acme-eu", "a")),
    "percent, a wildcard": (("acme%", "a"), ("acme", "a")),
    "case": (("acme", "Release"), ("acme", "release")),
    "case of a tenant": (("Acme", "a"), ("acme", "a")),
    "case beyond ASCII": (("ÉCLAIR", "a"), ("éclair", "a")),
    "composed and decomposed": (
        ("caf\N{LATIN SMALL LETTER E WITH ACUTE}", "a"),
        ("cafe\N{COMBINING ACUTE ACCENT}", "a"),
    ),
    "full width": (("ＡＣＭＥ", "a"), ("ACME", "a")),
    "look-alike letters": (("acme", "a"), ("аcme", "a")),
    "numbers": (("1", "1"), ("1.0", "1")),
    "quotes": (("o'hara", "a"), ("o''hara", "a")),
    "a prefix": (("acme", "release-4"), ("acme", "release-42")),
    "words of a database": (("NULL", "a"), ("null", "a")),
}


def scope(names: Names) -> Scope:
    """Return the scope of a tenant and a workflow."""
    return Scope(tenant=names[0], workflow=names[1])


class IsolationLaws(StoreLaws):
    """Laws about who sees whose data."""

    @pytest.mark.parametrize("pair", LOOK_ALIKES.values(), ids=LOOK_ALIKES.keys())
    def test_neighbours_do_not_see_each_other(self, store: Store, pair: tuple[Names, Names]) -> None:
        """I21: each has its own rows in every facet, also under the same keys, ids and numbers."""
        one, other = scope(pair[0]), scope(pair[1])
        with store.write(one) as tx:
            populate(tx, "same")
            first = dump(tx)
        with store.read(other) as tx:
            assert tx.log.count() == 0
            assert tx.log.by_keys(["same-1"]) == {}
            assert tx.refs.find(["same handle"]) == {}
            assert tx.jobs.attempts("samecandidate-1") == []
            assert tx.summaries.get(1) is None
            assert tx.summaries.by_id("sameattempt-1") is None
        with store.write(other) as tx:
            populate(tx, "same")
            assert dump(tx) == first
            populate(tx, "more")
            second = dump(tx)
        with store.read(one) as tx:
            assert dump(tx) == first
        with store.read(other) as tx:
            assert dump(tx) == second
        assert set(store.scopes()) == {one, other}

    def test_the_same_numbers_hold_other_content(self, store: Store) -> None:
        """I21: event 1, reference 1, summary 1 and entry 1 of two workflows are told apart by their content."""
        other = Scope(tenant="umbrella", workflow=SCOPE.workflow)
        with store.write(SCOPE) as tx:
            populate(tx, "ours")
            ours = dump(tx)
        with store.write(other) as tx:
            populate(tx, "theirs")
            theirs = dump(tx)
        for part in ("events", "texts", "facts", "candidates", "attempts", "summaries", "foreign", "checkpoints"):
            assert ours[part] != theirs[part]
        with store.read(SCOPE) as tx:
            assert dump(tx) == ours
            assert tx.refs.texts([1]) == {1: "ours handle"}
        with store.read(other) as tx:
            assert dump(tx) == theirs
            assert tx.refs.texts([1]) == {1: "theirs handle"}

    def test_a_rollback_leaves_the_neighbour_alone(self, store: Store) -> None:
        """I21: and a neighbour's history is not counted."""
        other = Scope(tenant=SCOPE.tenant, workflow="another")
        with store.write(other) as tx:
            populate(tx, "same")
            before = dump(tx)
        with pytest.raises(RuntimeError):
            give_up(store, SCOPE, "same")
        with store.read(other) as tx:
            assert dump(tx) == before
        with store.read(SCOPE) as tx:
            assert tx.log.count() == 0
        assert store.scopes() == [other]

    def test_scopes_of_a_tenant_are_its_own(self, store: Store) -> None:
        """I21: a tenant is named exactly; one that is not there has none."""
        scopes = {scope(names) for pair in LOOK_ALIKES.values() for names in pair}
        for each in scopes:
            with store.write(each) as tx:
                append(tx)
        assert set(store.scopes()) == scopes
        assert len(store.scopes()) == len(scopes)
        for tenant in {each.tenant for each in scopes}:
            assert set(store.scopes(tenant)) == {each for each in scopes if each.tenant == tenant}
        assert store.scopes("nobody") == []
        assert store.scopes("") == []
        assert store.scopes("%") == []
