"""The register as intervals."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pytest

from strandline.model.register import Fact, FactKey, FactKind, FactState
from strandline.ports import Store
from strandline.testing.conformance.base import REFUSALS, StoreLaws
from strandline.testing.conformance.stage import FAR, SCOPE, append
from strandline.testing.values import make_fact


def subjects(facts: Iterable[Fact]) -> list[str]:
    """Return what the facts are about, sorted."""
    return sorted(fact.key.subject for fact in facts)


class RegisterLaws(StoreLaws):
    """Laws of `RegisterFacet`."""

    def test_a_fact_stands_from_its_begin_until_its_end(self, store: Store) -> None:
        """I10: anchors are the facts in force; one that ended is none, and stays in the history."""
        rule, issue = make_fact("rule", 1), make_fact("issue", 2, kind=FactKind.ISSUE)
        with store.write(SCOPE) as tx:
            append(tx, 4)
            tx.register.begin([rule, issue])
            assert subjects(tx.register.as_of(FAR)) == ["issue", "rule"]
        with store.write(SCOPE) as tx:
            ended = replace(rule, through_seq=3)
            tx.register.end([ended])
            assert tx.register.as_of(FAR) == [issue]
        with store.read(SCOPE) as tx:
            assert tx.register.as_of(FAR) == [issue]
            assert list(tx.register.all()) == [ended, issue]

    def test_what_stands_is_found_by_kind_and_subject(self, store: Store) -> None:
        """I8: and the open calls by themselves: a call of unknown outcome is none."""
        rule, other = make_fact("rule", 1), make_fact("other", 2)
        call = make_fact("call", 3, kind=FactKind.CALL)
        unknown = replace(make_fact("lost", 4, kind=FactKind.CALL), state=FactState.UNKNOWN)
        with store.write(SCOPE) as tx:
            append(tx, 4)
            tx.register.begin([rule, other, call, unknown])
            assert tx.register.standing(rule.key.kind, "rule") == [rule]
            assert tx.register.standing(FactKind.CALL, "lost") == [unknown]
            assert tx.register.standing(FactKind.ISSUE, "rule") == []
            assert tx.register.open_calls() == [call]
            tx.register.end([replace(rule, through_seq=4), replace(call, through_seq=4)])
            assert tx.register.standing(rule.key.kind, "rule") == []
            assert tx.register.open_calls() == []

    def test_as_of_gives_what_held_just_after_an_event(self, store: Store) -> None:
        """I10: a summary is current as of its watermark: both ends of a fact's interval belong to it."""
        with store.write(SCOPE) as tx:
            append(tx, 6)
            tx.register.begin([make_fact("early", 1, through_seq=3), make_fact("late", 4), make_fact("moment", 2)])
            tx.register.end([make_fact("moment", 2, through_seq=2)])
        with store.read(SCOPE) as tx:
            held = {seq: subjects(tx.register.as_of(seq)) for seq in range(7)}
        assert held == {
            0: [],
            1: ["early"],
            2: ["early", "moment"],
            3: ["early"],
            4: ["late"],
            5: ["late"],
            6: ["late"],
        }

    def test_newest_is_the_fact_of_this_kind_and_subject_that_began_last(self, store: Store) -> None:
        """I8, I20: whoever holds it, and whether it still holds or not."""
        first = make_fact("deploy", 1, kind=FactKind.APPROVAL, holder="ann", through_seq=2)
        other = make_fact("deploy", 4, kind=FactKind.APPROVAL, holder="bob")
        second = make_fact("deploy", 3, kind=FactKind.APPROVAL, holder="ann", through_seq=4)
        issue = make_fact("deploy", 5, kind=FactKind.ISSUE)
        sibling = make_fact("ship", 6, kind=FactKind.APPROVAL, through_seq=6)
        with store.write(SCOPE) as tx:
            append(tx, 6)
            tx.register.begin([second, other, issue, sibling])
            tx.register.begin([first])
        with store.read(SCOPE) as tx:
            assert tx.register.newest(FactKind.APPROVAL, "deploy") == other
            assert tx.register.newest(FactKind.APPROVAL, "ship") == sibling
            by_seq = [tx.register.newest(FactKind.APPROVAL, "deploy", through) for through in range(7)]
            assert by_seq == [None, first, first, second, other, other, other]
            assert tx.register.newest(FactKind.ISSUE, "deploy") == issue
            assert tx.register.newest(FactKind.ISSUE, "ship") is None
            assert tx.register.newest(FactKind.APPROVAL, "Deploy") is None

    def test_facts_of_one_event_are_told_apart_by_their_ordinal(self, store: Store) -> None:
        """I8: one boundary closes many calls: each becomes a fact of its own, and ends on its own."""
        facts = [make_fact(f"call-{ordinal}", 2, kind=FactKind.CALL, ordinal=ordinal) for ordinal in range(12)]
        with store.write(SCOPE) as tx:
            append(tx, 3)
            tx.register.begin(list(reversed(facts)))
            tx.register.end([replace(facts[10], through_seq=2)])
        with store.read(SCOPE) as tx:
            everything = list(tx.register.all())
            assert [fact.ordinal for fact in everything] == list(range(12))
            assert subjects(tx.register.as_of(FAR)) == subjects(facts[:10] + facts[11:])

    def test_everything_about_a_fact_comes_back(self, store: Store) -> None:
        """I8, I20: state, lane, audience, expiry and source event."""
        fact = Fact(
            key=FactKey(kind=FactKind.CALL, subject="c-1", holder="ann"),
            state=FactState.UNKNOWN,
            source_seq=1,
            from_seq=2,
            ordinal=3,
            through_seq=None,
            lane="thread-7",
            audience="release",
            expires_us=1_750_000_000_000_001,
        )
        with store.write(SCOPE) as tx:
            append(tx, 2)
            tx.register.begin([fact])
        with store.read(SCOPE) as tx:
            assert tx.register.as_of(FAR) == [fact]
            assert tx.register.as_of(2) == [fact]
            assert tx.register.newest(FactKind.CALL, "c-1") == fact

    def test_a_fact_is_never_begun_twice(self, store: Store) -> None:
        """I10: the place (from_seq, ordinal) of a fact that is there is refused to another."""
        fact = make_fact("rule", 1)
        with store.write(SCOPE) as tx:
            append(tx)
            tx.register.begin([fact])
        with pytest.raises(REFUSALS), store.write(SCOPE) as tx:
            tx.register.begin([make_fact("another", 1)])
        with store.read(SCOPE) as tx:
            assert list(tx.register.all()) == [fact]
