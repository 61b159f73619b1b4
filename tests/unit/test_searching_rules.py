"""Law (C4): what a search asks for, and where it stands: words as they are written, folded; the index names every event
that may hold them.
"""

from __future__ import annotations

import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.errors import InvalidInputError
from strandline.limits import (
    SEARCH_CHARS_MAX,
    SEARCH_EVENT_WORDS_MAX,
    SEARCH_EXCERPT_CHARS,
    SEARCH_INDEXED_CHARS_MAX,
    SEARCH_TERMS_MAX,
    SEARCH_WORD_CHARS_MAX,
)
from strandline.rules.searching import ANY_WORD, events_of, find, fold, in_all, in_any, parse, united, words_of
from tests.unit.test_engine_stage import bounded

# What parts, joins, folds and confuses: cases, digits, marks, ligatures, emoji, Han, kana, Thai, Hangul, signs.
LETTERS = "aAbß_09٣ſİıéE\u0301\u0323ﬁ½①Ⅳｱﾞ数据かกำ한ㅎΣςǅ🎉👩\u200d💻.-/:'*\"\\ \n\t\u00a0\u3000\0"
texts = st.text(alphabet=st.sampled_from(LETTERS), max_size=30) | st.text(max_size=20)


def at(query: str, text: str) -> list[str] | None:
    """Return what is marked in the excerpt; None: no hit."""
    found = find(parse(query), text)
    return None if found is None else [found.excerpt[start:end] for start, end in found.matches]


FOUND = [
    ("bucket", "made bucket-7f3a now", ["bucket"]),
    ("7F3A", "made bucket-7f3a now", ["7f3a"]),
    ("bucket-7f3a", "made bucket-7f3a now", ["bucket-7f3a"]),
    ("(bucket-7f3a),", "made bucket-7f3a now", ["bucket-7f3a"]),
    ("data", "/srv/data/out.txt", ["data"]),
    ("/srv/data", "in /srv/data/out.txt", ["srv/data"]),
    ("out.txt", "/srv/data/out.txt", ["out.txt"]),
    ('"OAuth  scope"', "the oauth\nscope of it", ["oauth\nscope"]),
    ("scope oauth", "the oauth, then scope", ["oauth", "scope"]),
    ("buck*", "buckets and bucket_7", ["buck", "buck"]),
    ('"two wor"*', "of two words", ["two wor"]),
    ("--force", "use --force here", ["force"]),
    ('"--force"', "use --force here", ["--force"]),
    ("C++", "in C++ only", ["C"]),
    ('"C++"', "in C++ only", ["C++"]),
    ("&&", "a && b", ["&&"]),
    ("straße", "STRASSE", ["STRASSE"]),
    ("ﬁne", "fine", ["fine"]),
    ("fine", "a ﬁne day", ["ﬁne"]),
    ("café", "CAFE\N{COMBINING ACUTE ACCENT}", ["CAFE\N{COMBINING ACUTE ACCENT}"]),
    ("连接", "数据库连接失败", ["连接"]),
    ("カタ", "ｶﾀｶﾅ", ["ｶﾀ"]),
    ("ガ", "ｶﾞ", ["ｶﾞ"]),
    ("½", "take 1\N{FRACTION SLASH}2", ["1\N{FRACTION SLASH}2"]),
    ("٣", "٣ ٤", ["٣"]),
    ("🎉", "done 🎉!", ["🎉"]),
    ("a\0b", "x a\0b y", ["a\0b"]),
]
MISSED = [
    ("buck", "made bucket-7f3a now"),
    ("ucket", "made bucket-7f3a now"),
    ("bucket-7f", "made bucket-7f3a now"),
    ("$500", "$5000"),
    ("create", "create_bucket"),
    ("cafe", "café"),
    ("oauth scope", "the oauth"),
    ('"oauth scope"', "oauth, scope"),
    ('"C++"', "C"),
    ("bucket.7f3a", "bucket-7f3a"),
    (".*", "ab"),
]


@pytest.mark.parametrize(("query", "text", "marked"), FOUND)
def test_it_stands_there(query: str, text: str, marked: list[str]) -> None:
    assert at(query, text) == marked


@pytest.mark.parametrize(("query", "text"), MISSED)
def test_it_does_not_stand_there(query: str, text: str) -> None:
    assert at(query, text) is None


REFUSED = [
    ("", "needs words"),
    (" \t\n\u3000", "needs words"),
    ('""', "for nothing"),
    ('" "', "for nothing"),
    ("*", "for nothing"),
    ('""*', "for nothing"),
    ('the "end', "character 5 of the search has no end"),
    ("x" * (SEARCH_CHARS_MAX + 1), f"at most {SEARCH_CHARS_MAX:,}"),
    ("x" * 1024 * 1024, f"at most {SEARCH_CHARS_MAX:,}"),
    (" ".join(map(str, range(SEARCH_TERMS_MAX + 1))), f"at most {SEARCH_TERMS_MAX}"),
]


@pytest.mark.parametrize(("query", "why"), REFUSED, ids=range(len(REFUSED)))
def test_what_is_no_query_is_refused(query: str, why: str) -> None:
    with pytest.raises(InvalidInputError, match=re.escape(why)):
        parse(query)


@pytest.mark.parametrize(
    "query", ["NOT", "a AND b", "col:a", "a NEAR(b)", "^a", "{a b}:c", "a + b", "'", "';--", "%", "_"]
)
def test_no_sign_is_an_operator(query: str) -> None:
    """The words of query languages are words: whatever is asked for stands in the text that is the query itself."""
    assert at(query, f"... {query} ...") is not None
    assert at(query, "something else") is None


@bounded(250)
@given(texts, texts, texts, st.booleans())
def test_what_stands_in_a_text_is_found_through_its_words(before: str, asked: str, behind: str, whole: bool) -> None:
    """The index loses nothing: each word of a query that stands in a text is one of the text's words, or begins one."""
    text = before + asked + behind
    query = f'"{asked.replace(chr(34), "")}"' if whole else asked
    try:
        terms = parse(query)
    except InvalidInputError:
        return
    found = find(terms, text)
    words = words_of(text)
    if found is not None:
        for term in terms:
            assert set(term.words) <= words
            assert term.beginning is None or any(word.startswith(term.beginning) for word in words)
        for start, end in found.matches:
            assert 0 <= start <= end <= len(found.excerpt)
        assert found.excerpt in text


@bounded(150)
@given(texts)
def test_every_word_of_a_text_finds_it(text: str) -> None:
    """And each word that it is indexed under, asked for by itself."""
    for word in words_of(text):
        assert find(parse(f'"{word}"'), text) is not None or unicodedata.normalize("NFKC", word) != word


@bounded(150)
@given(texts, st.sampled_from("\0 aZ~"), texts)
def test_a_text_folds_in_parts(before: str, ascii_: str, behind: str) -> None:
    """What begins with ASCII folds by itself: places in the folded text are places in the text."""
    assert fold(before) + fold(ascii_ + behind) == fold(before + ascii_ + behind)


def test_a_place_is_shown_in_whole_words() -> None:
    text = " ".join(f"word{number}" for number in range(2_000))
    found = find(parse("word1234"), text)
    assert found is not None
    assert found.cut == (True, True)
    assert found.excerpt.split() == [word for word in found.excerpt.split(" ") if re.fullmatch(r"word\d+", word)]
    assert found.excerpt in text
    assert len(found.excerpt) <= 2 * SEARCH_EXCERPT_CHARS + len("word1234")
    assert find(parse("word0"), "word0").cut == (False, False)  # type: ignore[union-attr]


def test_the_place_of_a_long_text_in_another_script() -> None:
    """Lengths change on the way: the place is that of the text, not of its folded form."""
    text = "ﬃ ½ Ǆ " * 500 + "then bucket-7f3a" + " ﬃ" * 500
    assert at("bucket-7f3a", text) == ["bucket-7f3a"]


def test_overlapping_places_are_one() -> None:
    assert at('"a b" "b c"', "x a b c y") == ["a b c"]


def test_what_is_too_much_is_indexed_as_any_word() -> None:
    many = " ".join(map(str, range(SEARCH_EVENT_WORDS_MAX)))
    assert len(words_of(many)) == SEARCH_EVENT_WORDS_MAX
    assert words_of(f"{many} more") == {ANY_WORD}
    assert words_of("a " * (SEARCH_INDEXED_CHARS_MAX // 2)) == {"a"}
    assert words_of("a " * (SEARCH_INDEXED_CHARS_MAX // 2) + "a") == {ANY_WORD}


def test_a_long_word_is_found_by_its_beginning() -> None:
    long = "x" * SEARCH_WORD_CHARS_MAX
    assert words_of(f"{long}yz") == {long}
    assert parse(f"{long}ya")[0].words == (long,)
    assert at(f"{long}ya", f"{long}yz") is None


masks = st.dictionaries(st.integers(0, 20).map(lambda n: 1 + 8 * n), st.integers(1, 255), max_size=8)


def newest_first(postings: dict[int, int]) -> list[tuple[int, int]]:
    return sorted(postings.items(), reverse=True)


def seqs(postings: dict[int, int]) -> set[int]:
    return {first + bit for first, mask in postings.items() for bit in range(8) if mask >> bit & 1}


@bounded(100)
@given(st.lists(masks, min_size=1, max_size=4), st.integers(0, 170), st.integers(0, 170))
def test_postings_meet_as_sets_do(streams: list[dict[int, int]], low: int, high: int) -> None:
    def iterators() -> list:
        return [iter(newest_first(stream)) for stream in streams]

    sets = [seqs(stream) for stream in streams]
    joins = (
        (in_all(iterators()), set.intersection(*sets)),
        (in_any(iterators()[0], iterators()[-1]), sets[0] | sets[-1]),
        (united(posting for stream in streams for posting in stream.items()), set.union(*sets)),
    )
    for joined, meant in joins:
        wanted = sorted((seq for seq in meant if low <= seq <= high), reverse=True)
        assert list(events_of(joined, low, high)) == wanted
