"""Law: a reference stands in a text exactly when some occurrence of it is not continued on either side, by the five
rules of `rules.verbatim`; and the indexed check of many references answers as the check of each one does.

The rules are checked by examples on both sides of each, and against a second, regular-expression form of them.
"""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from strandline.rules.verbatim import stands_at, stands_verbatim, verbatim_subset

DENSE = st.text(alphabet="ab1٣é_./\\@~-,:$€%# \n", max_size=24)
"""Texts in which nearly every place is an edge of something."""

WORDY = st.lists(st.sampled_from(["a", "ab", "1", "12", ".", "-", "/", "~", ",", ":", "$", "%", " ", "a/b", "1,2"]))


@pytest.mark.parametrize(
    ("ref", "text"),
    [
        ("a", "a"),
        ("foo.py", "see foo.py."),
        ("foo.py", "see foo.py... and"),
        ("foo.py", "(foo.py)"),
        ("foo.py", "`foo.py`,bar"),
        ("file.py", "file.py:42"),
        ("file.py", "file.py, 42"),
        ("24,000", "24,000 tokens"),
        ("24,000 tokens", "used 24,000 tokens."),
        ("500", "it took 500, then"),
        ("500", "500:"),
        ("12", "12 %"),
        ("$500", "for $500."),
        ("12%", "(12%)"),
        ("/a/b", "in /a/b/ and"),
        ("a/b", "/a/b"),
        ("foo", "-foo-"),
        ("foo", "foo--bar"),
        ("abc1234", "abc1234..def5678"),
        ("/a/b", 'open("/a/b")'),
        ("src/", "see src/."),
        ("src/", "src/"),
        ("#12", "issue #12,"),
        ("v1.2", "v1.2.3 and v1.2"),
        ("a", "aa a"),
        ("--", "a -- b"),
        ("naïve", "so naïve!"),
        ("x y", "x y"),
    ],
)
def test_it_stands(ref, text):
    assert stands_verbatim(ref, text)
    assert verbatim_subset([ref], text) == {ref}


@pytest.mark.parametrize(
    ("ref", "text"),
    [
        ("", ""),
        ("", "a"),
        ("a", ""),
        ("foo", "foobar"),
        ("foo", "éfoo"),
        ("foo", "foo_bar"),
        ("job-1", "job-12"),
        ("$500", "$5000"),
        ("$500", "US$500"),
        ("#12", "repo#12"),
        ("/a/b", "x/a/b"),
        ("/a/b", "/a/b/c"),
        ("/a/b", "/a/b.py"),
        ("/a/b", "~/a/b"),
        ("/a/b", "../a/b"),
        ("./a", "../a"),
        ("src/", "src/main.py"),
        ("src/", "src/../x"),
        ("src/", "src//x"),
        ("v1.2", "v1.2.3"),
        ("1.2", "v1.2"),
        ("bucket-7f3a", "bucket-7f3a-old"),
        ("7f3a", "bucket-7f3a"),
        ("foo_bar", "self.foo_bar"),
        ("foo", "foo@example"),
        ("foo", "x\\foo"),
        ("example.com", "me@example.com"),
        ("500", "1,500"),
        ("500", "500,000"),
        ("12", "12:30"),
        ("30", "12:30"),
        ("500", "$500"),
        ("500", "€500"),
        ("500", "£500"),
        ("12", "12%"),
        ("12", "12.5%"),
        ("a b", "a  b"),
        ("A", "a"),
    ],
)
def test_it_does_not_stand(ref, text):
    assert not stands_verbatim(ref, text)
    assert verbatim_subset([ref], text) == set()


def restated(ref: str, text: str) -> bool:
    """The five rules once more, as look-arounds."""
    if not ref:
        return False
    left, right = [r"(?<!\w)", r"(?<!\w[./\\@~-])"], [r"(?!\w)", r"(?![./\\@~-]\w)"]
    if ref[0] in "./\\@~-":
        left.append(r"(?<![./\\@~-])")
    if ref[-1] in "./\\@~-":
        right.append(r"(?![/\\@~-]|\.[./\\@~-])")
    if ref[0].isdecimal():
        left += [r"(?<!\d[,:])", r"(?<![$€£])"]
    if ref[-1].isdecimal():
        right += [r"(?![,:]\d)", "(?!%)"]
    return any(
        re.compile("".join([*left, re.escape(ref), *right])).match(text, at) for at in range(len(text) - len(ref) + 1)
    )


@settings(deadline=None)
@given(st.data())
def test_the_rules_restated_as_look_arounds_agree(data):
    text = data.draw(st.one_of(DENSE, WORDY.map("".join)))
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, len(text)))
    ref = text[start:end]
    assert stands_verbatim(ref, text) == restated(ref, text)


@settings(deadline=None)
@given(st.text(max_size=6), st.text(max_size=20))
def test_any_text_may_be_asked_for(ref, text):
    assert stands_verbatim(ref, text) == restated(ref, text)
    assert stands_verbatim(ref, ref) == (ref != "")


@settings(deadline=None)
@given(st.one_of(DENSE, WORDY.map("".join)), st.lists(DENSE, max_size=4), st.data())
@example("a.a.a", ["a", "a.a", "a.a.a", "."], None)
def test_the_index_answers_as_the_check_of_each_does(text, others, data):
    refs = list(others)
    if data is not None and text:
        for _ in range(4):
            start = data.draw(st.integers(0, len(text)))
            refs.append(text[start : data.draw(st.integers(start, len(text)))])
    assert verbatim_subset(refs, text) == {ref for ref in refs if stands_verbatim(ref, text)}


@settings(deadline=None)
@given(DENSE, st.data())
def test_what_is_added_behind_a_space_takes_nothing_away(text, data):
    start = data.draw(st.integers(0, len(text)))
    ref = text[start:]
    if stands_verbatim(ref, text):
        assert stands_verbatim(ref, f"b. {text} b")


def test_the_ends_of_the_text_continue_nothing():
    assert stands_at("a-b", 0, 3)
    assert not stands_at("a-b", 0, 1)
    assert stands_at("a-", 0, 1)


def test_many_references_against_one_text():
    refs = [f"job-{n}" for n in range(20_000)]
    text = " ".join(refs[::7]) + " job-1-b /job-2/x"
    assert verbatim_subset(iter(refs), text) == set(refs[::7])
