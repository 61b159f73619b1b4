"""Views, and the one compare-and-swap."""

from __future__ import annotations

import contextlib
from dataclasses import replace

import pytest

from strandline.model.candidate import AttemptState
from strandline.model.case import CaseState
from strandline.model.view import ViewHead
from strandline.ports import Store, Transaction
from strandline.testing.conformance.base import REFUSALS, StoreLaws
from strandline.testing.conformance.stage import SCOPE, Prepared, append, dump, lease, prepare
from strandline.testing.values import make_attempt, make_case, make_view


def move(tx: Transaction, prepared: Prepared, *, generation: int | None = None, fence: int | None = None) -> bool:
    """Try to activate what was prepared, as an attempt that believes in this generation and fence."""
    return tx.views.move_pointer(
        prepared.moved,
        base_generation=prepared.view.generation if generation is None else generation,
        fence=prepared.view.fence if fence is None else fence,
        attempt_id=prepared.attempt.attempt_id,
    )


class ViewLaws(StoreLaws):
    """Laws of `ViewFacet`."""

    def test_views_come_back_as_they_were_put(self, store: Store) -> None:
        """I21: a view that reads everything, one that reads nothing but what is for all, and one that reads some."""
        views = [
            ViewHead(view_id=1, name="main", budget=8_000),
            ViewHead(view_id=2, name="narrow", audiences=frozenset()),
            ViewHead(
                view_id=3,
                name="Main",
                audiences=frozenset({"release", "sécurité"}),
                audience_version=4,
                budget=None,
                fence=5,
                lease_attempt="attempt-6",
                lease_until_us=7,
            ),
        ]
        with store.write(SCOPE) as tx:
            append(tx)
            for view in reversed(views):
                tx.views.put(view)
            assert tx.views.all() == views
        with store.read(SCOPE) as tx:
            assert tx.views.all() == views
            assert [tx.views.get(view.name) for view in views] == views
            assert tx.views.get("MAIN") is None

    def test_put_replaces_lease_fence_budget_and_audiences(self, store: Store) -> None:
        """I6: a lease is taken and given back by `put`; the pointer stays."""
        with store.write(SCOPE) as tx:
            append(tx)
            prepared = prepare(tx)
            assert move(tx, prepared)
            changed = replace(
                prepared.moved,
                audiences=frozenset({"release"}),
                audience_version=2,
                budget=9_000,
                fence=prepared.view.fence + 1,
                lease_attempt="attempt-9",
                lease_until_us=10,
            )
            tx.views.put(changed)
        with store.read(SCOPE) as tx:
            assert tx.views.all() == [changed]

    @pytest.mark.parametrize("field", ["generation", "summary_no", "watermark", "moved_lineage_seq"])
    def test_put_never_moves_a_pointer_that_is_there(self, store: Store, field: str) -> None:
        """I5: only the compare-and-swap does. A store may refuse such a put, or keep the pointer; it never moves it."""
        with store.write(SCOPE) as tx:
            append(tx)
            tx.views.put(make_view())
        pointer = {"generation": 0, "summary_no": 0, "watermark": 0, "moved_lineage_seq": 0}
        other = ViewHead(
            view_id=1,
            name="main",
            generation=int(field == "generation"),
            summary_no=int(field == "summary_no"),
            watermark=int(field == "watermark"),
            moved_lineage_seq=int(field == "moved_lineage_seq"),
        )
        with contextlib.suppress(*REFUSALS), store.write(SCOPE) as tx:
            tx.views.put(other)
        with store.read(SCOPE) as tx:
            there = tx.views.get("main")
        assert there is not None
        assert {name: getattr(there, name) for name in pointer} == pointer

    def test_the_pointer_moves_when_all_conditions_hold(self, store: Store) -> None:
        """I5, I6: generation and fence are as the attempt knew them, and its draft is VALIDATED."""
        with store.write(SCOPE) as tx:
            append(tx, 3)
            prepared = prepare(tx)
        with store.write(SCOPE) as tx:
            assert move(tx, prepared)
            assert tx.views.get("main") == prepared.moved
        with store.read(SCOPE) as tx:
            assert tx.views.all() == [prepared.moved]

    def test_the_move_replaces_the_whole_row(self, store: Store) -> None:
        """I6: fence, budget and audience version of the new row are kept too, and are read back unharmed."""
        with store.write(SCOPE) as tx:
            append(tx, 3)
            prepared = prepare(tx)
            head = replace(prepared.moved, fence=prepared.view.fence + 3, budget=123, audience_version=7)
            attempt_id = prepared.attempt.attempt_id
            assert tx.views.move_pointer(head, base_generation=0, fence=prepared.view.fence, attempt_id=attempt_id)
        with store.read(SCOPE) as tx:
            assert tx.views.get("main") == head

    def test_a_pointer_moves_once_per_generation(self, store: Store) -> None:
        """I6: of two activations that were built on one generation the second is refused, however late it comes."""
        with store.write(SCOPE) as tx:
            append(tx, 3)
            prepared = prepare(tx)
            assert move(tx, prepared)
        with store.write(SCOPE) as tx:
            before = dump(tx)
            assert not move(tx, prepared)
            assert dump(tx) == before

    @pytest.mark.parametrize(("generation", "fence"), [(1, None), (-1, None), (None, 0), (None, 2)])
    def test_a_wrong_generation_or_fence_is_refused(
        self, store: Store, generation: int | None, fence: int | None
    ) -> None:
        """I6: a stale or fenced attempt changes nothing."""
        with store.write(SCOPE) as tx:
            append(tx, 3)
            prepared = prepare(tx)
        with store.write(SCOPE) as tx:
            before = dump(tx)
            assert not move(tx, prepared, generation=generation, fence=fence)
            assert dump(tx) == before

    def test_a_fence_that_was_raised_meanwhile_refuses(self, store: Store) -> None:
        """I6: a newer lease on the view fences the attempt, though its own row still says VALIDATED."""
        with store.write(SCOPE) as tx:
            append(tx, 3)
            prepared = prepare(tx)
        with store.write(SCOPE) as tx:
            newer = lease(tx)
            assert not move(tx, prepared)
            assert not move(tx, prepared, fence=newer.fence)  # nor by a fence that is not the attempt's
            assert tx.views.get("main") == newer

    @pytest.mark.parametrize("state", [state for state in AttemptState if state is not AttemptState.VALIDATED])
    def test_an_attempt_that_is_not_validated_is_refused(self, store: Store, state: AttemptState) -> None:
        """I5: only a validated draft can become active."""
        with store.write(SCOPE) as tx:
            append(tx, 3)
            prepared = prepare(tx)
            settled = replace(prepared.attempt, state=state)
            assert tx.jobs.settle_attempt(settled, fence=prepared.view.fence, expected=AttemptState.VALIDATED)
        with store.write(SCOPE) as tx:
            before = dump(tx)
            assert not move(tx, prepared)
            assert dump(tx) == before

    def test_another_attempt_does_not_lend_its_verdict(self, store: Store) -> None:
        """I6: *this attempt's* draft is VALIDATED: neither a sibling's nor that of an attempt that is not there."""
        with store.write(SCOPE) as tx:
            append(tx, 3)
            prepared = prepare(tx)
            running = make_attempt("running", prepared.attempt.candidate_id, number=2, fence=prepared.view.fence)
            tx.jobs.add_attempt(running)
            before = dump(tx)
            for attempt_id in (running.attempt_id, "nobody", ""):
                assert not tx.views.move_pointer(
                    prepared.moved, base_generation=0, fence=prepared.view.fence, attempt_id=attempt_id
                )
            assert dump(tx) == before

    def test_a_view_that_is_not_there_has_no_pointer_to_move(self, store: Store) -> None:
        """I6: nothing is made by the swap."""
        with store.write(SCOPE) as tx:
            append(tx, 3)
            prepared = prepare(tx)
            other = replace(prepared.moved, view_id=9, name="other")
            attempt_id = prepared.attempt.attempt_id
            assert not tx.views.move_pointer(other, base_generation=0, fence=1, attempt_id=attempt_id)
            assert tx.views.all() == [prepared.view]

    def test_a_generation_is_never_used_twice(self, store: Store) -> None:
        """SPEC §2: every move of the pointer adds to the generation; one that doesn't is refused."""
        with store.write(SCOPE) as tx:
            append(tx, 3)
            prepared = prepare(tx)
            head = replace(prepared.moved, generation=prepared.view.generation)
            attempt_id = prepared.attempt.attempt_id
            assert not tx.views.move_pointer(head, base_generation=0, fence=1, attempt_id=attempt_id)
            assert tx.views.all() == [prepared.view]

    @pytest.mark.parametrize("generation", [0, 1])
    def test_a_shift_never_uses_a_generation_twice(self, store: Store, generation: int) -> None:
        """SPEC §2, I13: revert and rewind go back to a summary, and never to its number."""
        with store.write(SCOPE) as tx:
            append(tx, 3)
            prepared = prepare(tx)
            assert move(tx, prepared)
            back = replace(prepared.moved, generation=generation, summary_no=0, watermark=0)
            assert not tx.views.shift_pointer(back, base_generation=1)
            assert not tx.views.shift_pointer(replace(back, generation=2), base_generation=0)
            assert tx.views.all() == [prepared.moved]
            assert tx.views.shift_pointer(replace(back, generation=2), base_generation=1)
            assert tx.views.all() == [replace(back, generation=2)]

    def test_an_open_blocking_case_on_the_base_refuses_the_move(self, store: Store) -> None:
        """I6, I11: also when it was opened after the attempt began; once it is answered the same move goes through."""
        with store.write(SCOPE) as tx:
            append(tx, 3)
            prepared = prepare(tx)
            case = make_case("case-1", view=prepared.view.name, summary_no=prepared.view.summary_no)
            tx.cases.add(make_case("case-2", view=case.view, summary_no=case.summary_no + 1))
            tx.cases.add(make_case("case-3", view="other", summary_no=case.summary_no))
            tx.cases.add(case)
        with store.write(SCOPE) as tx:
            before = dump(tx)
            assert not move(tx, prepared)
            assert dump(tx) == before
            assert tx.cases.settle(replace(case, state=CaseState.ANSWERED))
            assert move(tx, prepared)

    def test_views_do_not_fence_each_other(self, store: Store) -> None:
        """DESIGN §5: lease and pointer of one view leave the others as they are."""
        with store.write(SCOPE) as tx:
            append(tx, 3)
            prepared = prepare(tx)
            other = lease(tx, "publisher")
            assert move(tx, prepared)
        with store.read(SCOPE) as tx:
            assert tx.views.all() == [prepared.moved, other]
