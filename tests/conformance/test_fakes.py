"""The fakes do what they say: tests stand on them."""

import pickle

import pytest

from strandline.errors import InvalidInputError, TransientSummarizerError
from strandline.model.candidate import Draft
from strandline.ports import Clock, Entropy, Summarizer, SummaryRequest
from strandline.testing import FixedClock, ScriptedSummarizer, SeededEntropy, VirtualClock


class CountsCharacters:
    name = "characters/1"

    def count(self, text: str) -> int:
        return len(text)


REQUEST = SummaryRequest(from_seq=1, through_seq=2, budget_tokens=10, events=(), counter=CountsCharacters())


def test_a_fixed_clock_stands_still() -> None:
    clock: Clock = FixedClock(wall_us=5)
    clock.sleep_s(3.0)
    assert [clock.now_us(), clock.now_us(), clock.monotonic_s()] == [5, 5, 0.0]


def test_a_virtual_clock_moves_when_it_is_told_to() -> None:
    clock = VirtualClock(wall_us=1_000_000)
    clock.advance(0.25)
    clock.sleep_s(2)
    assert (clock.now_us(), clock.monotonic_s()) == (3_250_000, 2.25)
    clock.jump_to(7)
    assert (clock.now_us(), clock.monotonic_s()) == (7, 2.25)
    with pytest.raises(InvalidInputError):
        clock.advance(-1)
    assert (clock.now_us(), clock.monotonic_s()) == (7, 2.25)


def test_seeded_entropy_repeats_with_its_seed_and_never_within_a_run() -> None:
    entropy: Entropy = SeededEntropy(3)
    drawn = [entropy.salt() for _ in range(1_000)]
    assert {len(salt) for salt in drawn} == {16}
    assert len(set(drawn)) == 1_000
    assert [SeededEntropy(3).salt(), SeededEntropy(4).salt()] == [drawn[0], SeededEntropy(4).salt()]
    assert SeededEntropy(4).salt() != drawn[0]
    fractions = [entropy.fraction() for _ in range(1_000)]
    assert all(0 <= fraction < 1 for fraction in fractions)
    assert len(set(fractions)) == 1_000


def test_seeded_entropy_and_a_fixed_clock_go_to_another_process() -> None:
    entropy = SeededEntropy(3)
    first = entropy.salt()
    assert pickle.loads(pickle.dumps(entropy)).salt() == first
    assert pickle.loads(pickle.dumps(FixedClock(4))) == FixedClock(4)


def test_a_scripted_summarizer_follows_its_script() -> None:
    error = TransientSummarizerError("busy", retry_after_s=1.0)
    draft = Draft(text="cut", finish="length")
    scripted = ScriptedSummarizer(["a text", draft, error, lambda request: Draft(text=str(request.through_seq))])
    assert isinstance(scripted, Summarizer)
    assert scripted.steps_left == 4
    assert scripted.summarize(REQUEST) == Draft(text="a text")
    assert scripted.summarize(REQUEST) is draft
    with pytest.raises(TransientSummarizerError, match="busy"):
        scripted.summarize(REQUEST)
    assert scripted.summarize(REQUEST) == Draft(text="2")
    assert scripted.steps_left == 0
    assert scripted.requests == [REQUEST] * 4
    with pytest.raises(AssertionError, match="call 5"):
        scripted.summarize(REQUEST)
