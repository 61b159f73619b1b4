"""Erasure: what the facets take away, what stays, and readers (C31)."""

from __future__ import annotations

import contextlib
from dataclasses import replace

from strandline.model.candidate import Verdict
from strandline.model.case import CaseKind, CaseState
from strandline.model.erasure import Reader
from strandline.model.lineage import LineageKind
from strandline.ports import Store
from strandline.testing.conformance.base import REFUSALS, StoreLaws
from strandline.testing.conformance.stage import FAR, SCOPE, activate, append, dump, intern, populate, prepare, record
from strandline.testing.values import make_case, make_checkpoint, make_digest, make_foreign


class ErasureLaws(StoreLaws):
    """Laws of what an erasure does through each facet."""

    def test_an_erased_event_keeps_all_but_body_and_salt(self, store: Store) -> None:
        """I1: seq, key, record and chain stay; the digest stands in place of the body."""
        with store.write(SCOPE) as tx:
            before = append(tx, 3)
            tx.log.erase({2: make_digest("body of 2")})
        with store.read(SCOPE) as tx:
            first, second, third = tx.log.read(1, 3)
            assert (first, third) == (before[0], before[2])
            assert second == before[1]._replace(body=None, salt=None, body_digest=make_digest("body of 2"))
            assert tx.log.by_keys([second.key or ""]) == {second.key: second}
            assert tx.log.count() == 3

    def test_an_erased_reference_is_found_no_more(self, store: Store) -> None:
        """C31: its number stays, and is none of another text; a text that comes again gets another number."""
        with store.write(SCOPE) as tx:
            append(tx, 2)
            known = intern(tx, "alpha", "beta", "gamma")
            tx.refs.erase([known["beta"], known["gamma"]])
            assert tx.refs.texts(known.values()) == {known["alpha"]: "alpha"}
        with store.write(SCOPE) as tx:
            assert tx.refs.find(["alpha", "beta", "gamma"]) == {"alpha": known["alpha"]}
            assert list(tx.refs.all_texts()) == [(1, "alpha"), (2, None), (3, None)]
            tx.refs.check_keys()
            again = intern(tx, "beta")["beta"]
            assert again == 4
            tx.refs.erase([known["beta"]])  # again: nothing happens
        with store.read(SCOPE) as tx:
            assert tx.refs.find(["beta"]) == {"beta": again}
            tx.refs.check_keys()

    def test_erased_texts_are_gone_from_every_summary_that_shares_them(self, store: Store) -> None:
        """C31: digests, ids and counts stay; what is not erased stays as it was."""
        with store.write(SCOPE) as tx:
            append(tx, 3)
            first = activate(tx, mark="one")
            append(tx, 2, "more")
            second = prepare(tx, mark="two").summary
            tx.summaries.erase([1], [first.segments[0].head.segment_id])
        with store.read(SCOPE) as tx:
            erased, kept = tx.summaries.get(1), tx.summaries.get(2)
            assert erased is not None
            assert kept == second
            assert erased.erased
            assert not second.erased
            nothing = replace(first.segments[0], text="", salt=b"")
            assert erased == replace(
                first, anchors=(), ledger=(), anchors_text="", ledger_text="", salt=b"", segments=(nothing,)
            )
            assert tx.summaries.get(1, texts_only=True) == replace(erased, ref_ids=(), segments=(nothing,))
            assert tx.summaries.by_id(first.summary_id) == erased

    def test_an_erased_foreign_summary_keeps_its_place(self, store: Store) -> None:
        """C31: the others keep their texts."""
        with store.write(SCOPE) as tx:
            append(tx, 2)
            tx.summaries.add_foreign([make_foreign("a", 1), make_foreign("b", 2)])
            tx.summaries.erase_foreign(["a"])
        with store.read(SCOPE) as tx:
            first, second = tx.summaries.foreign()
            assert first == replace(make_foreign("a", 1), text="", erased=True)
            assert second == make_foreign("b", 2)

    def test_an_erased_attempt_says_less(self, store: Store) -> None:
        """C31: its drafts are gone, and the digest of them stays."""
        with store.write(SCOPE) as tx:
            append(tx, 2)
            attempt = prepare(tx).attempt
            less = replace(attempt, drafts=(), verdict=Verdict(), failure_text="[erased]")
            tx.jobs.erase(less)
            assert tx.jobs.attempts(attempt.candidate_id) == [less]

    def test_an_erased_checkpoint_keeps_its_digests(self, store: Store) -> None:
        """I14, C31: it is there, without state."""
        with store.write(SCOPE) as tx:
            append(tx, 1)
            taken = record(tx, LineageKind.CHECKPOINT, name="main")
            made = make_checkpoint(taken.lineage_seq, state=b'{"secret":1}')
            tx.checkpoints.add(made)
            tx.checkpoints.erase(taken.lineage_seq, make_digest("state"))
        with store.read(SCOPE) as tx:
            erased = replace(made, state=b"", salt=b"", state_digest=make_digest("state"))
            assert tx.checkpoints.get(taken.lineage_seq) == erased
            assert list(tx.checkpoints.all()) == [erased]
            assert erased.erased

    def test_an_erased_case_says_less_and_is_as_open_as_it_was(self, store: Store) -> None:
        """C31: also one that is answered."""
        with store.write(SCOPE) as tx:
            case = make_case("c1", kind=CaseKind.LINEAGE_REFUSAL)
            tx.cases.add(case)
            tx.cases.erase(replace(case, detail={}, reason="[erased]"))
        with store.read(SCOPE) as tx:
            assert tx.cases.get("c1") == replace(case, detail={}, reason="[erased]")
            assert [found.case_id for found in tx.cases.of_kind(CaseKind.LINEAGE_REFUSAL, CaseState.OPEN)] == ["c1"]

    def test_an_erasure_that_is_given_up_takes_nothing_away(self, store: Store) -> None:
        """I1: through every facet."""
        with store.write(SCOPE) as tx:
            populate(tx, "mark")
        with store.read(SCOPE) as tx:
            before = dump(tx)
            summary_no = tx.log.head().summary_no
            summary = tx.summaries.get(summary_no)
            checkpoint = next(tx.checkpoints.all())
        assert summary is not None
        with contextlib.suppress(RuntimeError), store.write(SCOPE) as tx:
            tx.log.erase({1: make_digest("x")})
            tx.refs.erase([1, 2])
            tx.summaries.erase([summary_no], [summary.segments[0].head.segment_id])
            tx.summaries.erase_foreign(["mark foreign"])
            tx.checkpoints.erase(checkpoint.lineage_seq, make_digest("x"))
            tx.readers.put(Reader(name="audit", seq=1, finished=False, seen_us=1))
            raise RuntimeError
        with store.read(SCOPE) as tx:
            assert dump(tx) == before
            assert tx.readers.all() == []

    def test_a_reader_is_where_it_said(self, store: Store) -> None:
        """C31: one row each, replaced as it goes on, of its own workflow."""
        with store.write(SCOPE) as tx:
            append(tx, 3)
            tx.readers.put(Reader(name="export", seq=0, finished=False, seen_us=1))
            tx.readers.put(Reader(name="audit", seq=2, finished=False, seen_us=2))
            tx.readers.put(Reader(name="export", seq=3, finished=True, seen_us=3))
        with store.read(SCOPE) as tx:
            export = Reader(name="export", seq=3, finished=True, seen_us=3)
            assert tx.readers.all() == [Reader(name="audit", seq=2, finished=False, seen_us=2), export]
            assert tx.readers.get("export") == export
            assert tx.readers.get("nobody") is None
        with store.read(replace(SCOPE, workflow="another")) as tx:
            assert tx.readers.all() == []

    def test_a_reading_transaction_erases_nothing(self, store: Store) -> None:
        """I1."""
        with store.write(SCOPE) as tx:
            append(tx, 1)
        with contextlib.suppress(*REFUSALS), store.read(SCOPE) as tx:
            tx.log.erase({1: make_digest("x")})
        with store.read(SCOPE) as tx:
            assert next(tx.log.read(1, 1)).body is not None

    def test_entries_of_some_kinds(self, store: Store) -> None:
        """C31: holds are found among all else, in order."""
        with store.write(SCOPE) as tx:
            append(tx, 1)
            record(tx, LineageKind.HOLD, "hold:1")
            record(tx, LineageKind.FENCE, "fence:1")
            record(tx, LineageKind.RELEASE, "release:1")
            record(tx, LineageKind.HOLD, "hold:2")
        with store.read(SCOPE) as tx:
            found = tx.lineage.of_kinds((LineageKind.RELEASE, LineageKind.HOLD))
            assert [entry.op_key for entry in found] == ["hold:1", "release:1", "hold:2"]
            assert tx.lineage.of_kinds(()) == []

    def test_the_forks_of_a_workflow(self, store: Store) -> None:
        """C22: its own, of its own tenant, and not theirs."""
        parents = {"a": "base", "b": "base", "c": "a", "d": None}
        with store.write(replace(SCOPE, workflow="base")) as tx:
            append(tx, 1)
        for name, parent in parents.items():
            with store.write(replace(SCOPE, workflow=name)) as tx:
                append(tx, 1)
                tx.log.set_head(replace(tx.log.head(), parent=parent))
        with store.write(replace(SCOPE, tenant="other", workflow="e")) as tx:
            tx.log.set_head(replace(tx.log.head(), parent="base"))
        with store.read(replace(SCOPE, workflow="base")) as tx:
            assert tx.lineage.forks() == ["a", "b"]
            assert tx.relative("a").lineage.forks() == ["c"]
            assert tx.relative("c").lineage.forks() == []
            assert list(tx.log.read(1, FAR)) != []
