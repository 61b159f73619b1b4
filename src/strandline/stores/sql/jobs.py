"""The job facet: candidates and attempts."""

from __future__ import annotations

from collections.abc import Iterator

from strandline.codec import fold, pack, unfold, unpack
from strandline.errors import CorruptRecordError
from strandline.model.candidate import (
    Attempt,
    AttemptState,
    Candidate,
    CandidateState,
    CompactionPlan,
    CompactionRecipe,
    Draft,
    FailureClass,
    Verdict,
)
from strandline.stores.sql.session import Row, Session, check_seal, seal


class SqlJobs:
    """`ports.JobFacet` over SQL."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def candidate(self, candidate_id: str) -> Candidate | None:
        rows = self._session.rows("candidate", candidate_id=candidate_id)
        return self._to_candidate(rows[0]) if rows else None

    def all_candidates(self) -> Iterator[Candidate]:
        for row in self._session.stream("all_candidates"):
            yield self._to_candidate(row)

    def add_candidate(self, candidate: Candidate) -> None:
        self._session.send("add_candidate", **self._candidate_row(candidate))

    def set_candidate_state(self, candidate_id: str, state: CandidateState) -> None:
        candidate = self.candidate(candidate_id)
        if candidate is None:
            raise CorruptRecordError("the candidate is missing", place=f"candidate {candidate_id!r}")
        row = self._candidate_row(candidate) | {"state": state.value}
        del row["row_digest"]
        digest = seal(self._session, "candidate", list(row.values()))
        self._session.send("set_candidate_state", candidate_id=candidate_id, state=state.value, row_digest=digest)

    def _candidate_row(self, candidate: Candidate) -> dict[str, object]:
        row: dict[str, object] = {
            "candidate_id": candidate.candidate_id,
            "view": candidate.view,
            "audience_version": candidate.audience_version,
            "plan": pack(candidate.plan),
            "recipe": pack(candidate.recipe),
            "state": candidate.state.value,
            "created_us": candidate.created_us,
            "not_before_us": candidate.not_before_us,
        }
        return row | {"row_digest": seal(self._session, "candidate", list(row.values()))}

    def _to_candidate(self, row: Row) -> Candidate:
        candidate_id, view, audience_version, plan, recipe, state, created_us, not_before_us, _ = row
        check_seal(self._session, "candidate", row, candidate_id)
        place = f"candidate {candidate_id!r}"
        return Candidate(
            candidate_id=candidate_id,
            view=view,
            audience_version=audience_version,
            plan=unpack(plan, CompactionPlan, place),
            recipe=unpack(recipe, CompactionRecipe, place),
            state=CandidateState(state),
            created_us=created_us,
            not_before_us=not_before_us,
        )

    def attempts(self, candidate_id: str) -> list[Attempt]:
        return [self._to_attempt(row) for row in self._session.rows("attempts", candidate_id=candidate_id)]

    def add_attempt(self, attempt: Attempt) -> None:
        self._session.send("add_attempt", **self._attempt_row(attempt))

    def settle_attempt(self, attempt: Attempt, *, fence: int, expected: AttemptState) -> bool:
        row = self._attempt_row(attempt)
        for fixed in ("candidate_id", "number", "started_us"):
            del row[fixed]
        return self._session.run("settle_attempt", **row, owner_fence=fence, expected=expected.value) == 1

    def erase(self, attempt: Attempt) -> None:
        row = self._attempt_row(attempt)
        kept = ("attempt_id", "failure_text", "drafts", "verdict", "row_digest")
        self._session.send("erase_attempt", **{name: row[name] for name in kept})

    def _attempt_row(self, attempt: Attempt) -> dict[str, object]:
        row: dict[str, object] = {
            "attempt_id": attempt.attempt_id,
            "candidate_id": attempt.candidate_id,
            "number": attempt.number,
            "fence": attempt.fence,
            "state": attempt.state.value,
            "started_us": attempt.started_us,
            "ended_us": attempt.ended_us,
            "failure": attempt.failure.value if attempt.failure else None,
            "failure_text": attempt.failure_text,
            "drafts": fold(pack(attempt.drafts)),
            "draft_digest": attempt.draft_digest,
            "verdict": pack(attempt.verdict) if attempt.verdict else None,
            "summary_no": attempt.summary_no,
        }
        return row | {"row_digest": seal(self._session, "attempt", list(row.values()))}

    def _to_attempt(self, row: Row) -> Attempt:
        (attempt_id, candidate_id, number, fence, state, started_us, ended_us, failure, failure_text) = row[:9]
        (drafts, draft_digest, verdict, summary_no, _) = row[9:]
        check_seal(self._session, "attempt", row, attempt_id)
        place = f"attempt {attempt_id!r}"
        return Attempt(
            attempt_id=attempt_id,
            candidate_id=candidate_id,
            number=number,
            fence=fence,
            state=AttemptState(state),
            started_us=started_us,
            ended_us=ended_us,
            failure=FailureClass(failure) if failure else None,
            failure_text=failure_text,
            drafts=unpack(unfold(drafts, place), tuple[Draft, ...], place),
            draft_digest=draft_digest,
            verdict=unpack(verdict, Verdict, place) if verdict else None,
            summary_no=summary_no,
        )
