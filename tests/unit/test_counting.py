"""Law: a counter is an estimate with a name; the default counts UTF-8 bytes, rounded up, and never fails on a text."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.errors import InvalidInputError
from strandline.summarizers import BytesPerToken, CallableCounter, as_counter

ANY_TEXT = st.text(st.characters())  # lone surrogates too


@given(ANY_TEXT, st.floats(0.25, 16))
def test_it_counts_bytes_rounded_up(text: str, bytes_per_token: float) -> None:
    size_bytes = len(text.encode("utf-8", "surrogatepass"))
    assert BytesPerToken(bytes_per_token).count(text) == math.ceil(size_bytes / bytes_per_token)


@given(ANY_TEXT, ANY_TEXT)
def test_a_whole_never_counts_more_than_its_parts(left: str, right: str) -> None:
    counter = BytesPerToken()
    assert counter.count(left + right) <= counter.count(left) + counter.count(right)


def test_the_empty_text_has_no_tokens() -> None:
    assert BytesPerToken().count("") == 0


def test_a_lone_surrogate_counts_three_bytes() -> None:
    assert BytesPerToken().count("\ud800") == 1
    assert BytesPerToken(1).count("\udfffé") == 5


@pytest.mark.parametrize(
    ("bytes_per_token", "name"), [(3.0, "bytes/3"), (3, "bytes/3"), (2.6, "bytes/2.6"), (0.1, "bytes/0.1")]
)
def test_the_name_has_no_trailing_zeros(bytes_per_token: float, name: str) -> None:
    assert BytesPerToken(bytes_per_token).name == name


def test_estimates_that_differ_have_names_that_differ() -> None:
    assert BytesPerToken(3.0000001).name != BytesPerToken(3).name


@pytest.mark.parametrize("wrong", [0, -1, math.nan, math.inf])
def test_it_refuses_what_it_cannot_divide_by(wrong: float) -> None:
    with pytest.raises(InvalidInputError, match="above 0"):
        BytesPerToken(wrong)


def word_counter(text: str) -> int:
    return len(text.split())


class Words:
    name = "words/1"

    def count(self, text: str) -> int:
        return word_counter(text)


def test_as_counter_takes_nothing_a_counter_or_a_named_function() -> None:
    assert as_counter().name == "bytes/3"
    words = Words()
    assert as_counter(words) is words
    counter = as_counter(word_counter)
    assert counter.name.endswith(":word_counter")
    assert counter.count("two words") == 2


@pytest.mark.parametrize("wrong", [4, "bytes/3", [], Words, lambda text: len(text) + 1])
def test_as_counter_refuses_the_rest(wrong: object) -> None:
    with pytest.raises(InvalidInputError):
        as_counter(wrong)


@pytest.mark.parametrize("wrong", [-1, 1.5, None, True, "3"])
def test_a_function_that_does_not_count_is_told(wrong: object) -> None:
    counter = CallableCounter(lambda _: wrong, "wrong/1")  # type: ignore[arg-type, return-value]
    with pytest.raises(InvalidInputError, match="wrong/1"):
        counter.count("text")


@pytest.mark.parametrize("name", ["", "x" * 201, None])
def test_a_function_needs_a_name(name: object) -> None:
    with pytest.raises(InvalidInputError, match="name"):
        CallableCounter(len, name)  # type: ignore[arg-type]
