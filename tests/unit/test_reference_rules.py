"""Laws of a user's rules (C3): what a rule finds stands verbatim or is a value that JSON names; no rule finds anything
without being asked; what is switched off is not found; the same rules hold for an event and for a draft (I10).

The rules are tested with a matcher made of `re`; that of users, RE2, has tests of its own where it is installed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import strandline
from strandline import InvalidInputError, ReferenceRules
from strandline.client.patterns import references_with
from strandline.model.reference import ReferenceClass
from strandline.rules.json_paths import JSON_PATH_STEPS_MAX, parse_path, select
from strandline.rules.reference_rules import BUILT_IN, PATTERN_CHARS_MAX, References
from strandline.rules.references import EXTRACTOR, extract, extract_json
from strandline.rules.verbatim import stands_verbatim
from tests.unit.test_references import TEXTS


class ByRe:
    """A matcher; it keeps what it was asked."""

    def __init__(self, pattern: str) -> None:
        self.pattern = re.compile(pattern)
        self.asked: list[str] = []

    def whole(self, tokens: Sequence[str]) -> set[str]:
        self.asked += tokens
        return {token for token in tokens if self.pattern.fullmatch(token)}

    def spans(self, line: str) -> Iterator[tuple[int, int]]:
        return (match.span() for match in self.pattern.finditer(line))


def made(**rules) -> References:
    rules = ReferenceRules(**rules)
    return References(rules, {name: ByRe(pattern) for name, pattern in rules.patterns.items()})


CODE = made(patterns={"code": r"q\d+q?"})


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("q1", ["q1"]),
        ("(q1), [q2] {q3} <q4> \"q5\" 'q6' `q7` q8. q9: q10; q11! q12?", [f"q{n}" for n in range(1, 13)]),
        ("key:q1 key=q2 a,q3,b +q4 q5's -q6 %q7", ["q1", "q2", "q3", "q4", "q5", "q6", "q7"]),
        ("xq1 q1x q1-x x/q1 q1.x $q1 _q1 q1_ é" + "q1", []),
        ("q1:2 and q1", ["q1"]),
        ("q\0q1\0 \ud800q2\udfff", ["q1", "q2"]),
        ("https://x.y/q1?a=q2", ["q2"]),
        ("", []),
    ],
)
def test_a_pattern_finds_whole_tokens(text, found):
    refs = CODE.of_text(text)
    assert [ref for ref, name in refs.items() if name == "code"] == found
    assert all(stands_verbatim(ref, text) for ref in refs)


@settings(deadline=None)
@given(TEXTS)
def test_whatever_a_pattern_allows_stands_verbatim_and_nothing_built_in_is_lost(text):
    refs = made(patterns={"any": r"[^A-Z]+", "two": r"\W?\w\w+"}).of_text(text)
    assert all(stands_verbatim(ref, text) and 0 < len(ref) <= 512 for ref in refs)
    assert extract(text).keys() <= refs.keys()
    for ref in refs:
        ref.encode("utf-8")


@settings(deadline=None)
@given(TEXTS)
def test_without_rules_it_is_the_built_in_extractor(text):
    assert list(BUILT_IN.of_text(text).items()) == list(extract(text).items())
    assert list(BUILT_IN.of_json([text]).items()) == list(extract_json([text]).items())
    assert BUILT_IN.name == EXTRACTOR


def test_a_pattern_is_asked_once_for_each_token_that_is_new():
    matcher = ByRe("q[0-9]+")
    references = References(ReferenceRules(patterns={"code": "q[0-9]+"}), {"code": matcher})
    for _ in range(3):
        assert list(references.of_text("q1 q1 (q1) q1, x")) == ["q1"]
    assert sorted(matcher.asked) == ["q1", "q1,", "x"] or sorted(matcher.asked) == ["q1", "x"]


@pytest.mark.parametrize("piece", ["q1,", "q1 ", "q", ":q1", "q1:", "..q1", "'q1", "é,", "q1\0"])
def test_the_work_of_a_pattern_is_linear(piece):
    """Count what is asked: all of it no longer than a few times the text, and nothing longer than a reference."""
    matcher = ByRe("q[0-9]+")
    references = References(ReferenceRules(patterns={"code": "q[0-9]+"}), {"code": matcher})
    text = piece * (100_000 // len(piece))
    references.of_text(text)
    assert sum(map(len, matcher.asked)) <= 8 * len(text)
    assert max(map(len, matcher.asked), default=0) <= 512


@pytest.mark.parametrize("name", [name.value for name in ReferenceClass])
def test_a_class_that_is_off_is_not_found(name):
    text = (
        "https://e.org/a 123e4567-e89b-12d3-a456-426614174000 2026-11-29 10.0.0.7:5432 v1.2.3 5 ms 9f86d08 #12 ABC-1"
        " a@b.co src/a.py MAX_SIZE job-17 a_b fooBar"
    )
    every = BUILT_IN.of_text(text)
    assert set(every.values()) == {kind.value for kind in ReferenceClass} - {"value"}
    assert made(off={name}).of_text(text) == {ref: kind for ref, kind in every.items() if kind != name}
    assert made(off=[ReferenceClass(name)]).of_json([text, 12345, "ORD"]) == {
        ref: kind for ref, kind in {**every, "12345": "number", "ORD": "value"}.items() if kind != name
    }


def test_a_pattern_may_replace_a_built_in_class():
    rules = made(patterns={"number": r"[0-9]+ml"}, off={"number"})
    assert rules.of_text("5 ms and 7ml") == {"7ml": "number"}


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("$.order.id", [77]),
        ("order.id", [77]),
        ('$["order"]["id"]', [77]),
        ("$.items[*].sku", ["a b", "c"]),
        ("items[1].sku", ["c"]),
        ("items[9].sku", []),
        ("items.sku", []),
        ("order.*", [77, {"id": 5}]),
        ("..id", [77, 5]),
        ("..sku", ["a b", "c"]),
        ("$..items..sku", ["a b", "c"]),
        ("$..[0].sku", ["a b"]),
        ("order.inner.id", [5]),
    ],
)
def test_paths(path, found):
    value = {"order": {"id": 77, "inner": {"id": 5}}, "items": [{"sku": "a b"}, {"sku": "c"}, 3]}
    assert select(parse_path("x", path), value) == found


@pytest.mark.parametrize("path", ["", "$", "a b", "a[b]", "a..", "a[-1]", "a[", '["a]', "$a", "a]", ".", "a[1]b"])
def test_a_path_of_another_form_is_refused(path):
    with pytest.raises(InvalidInputError, match="JSON path 'x'"):
        ReferenceRules(json_paths={"x": path})


def test_values_that_json_names_are_references_as_they_stand():
    rules = made(json_paths={"order": "$.order.id", "sku": "items[*].sku"})
    value = {"order": {"id": 7}, "items": [{"sku": "Blue Shirt, L"}, {"sku": None}, {"sku": ""}, {"sku": "x\ny"}]}
    expected = {"7": "order", "Blue Shirt, L": "sku"}
    assert rules.of_json(value) == expected
    assert rules.of_json({"result": json.dumps(value)}) == expected  # JSON within JSON
    assert rules.of_text(json.dumps(value)) == expected  # a result that is a text
    assert rules.of_text("no JSON {") == {}
    assert made(json_paths={"x": "a"}).of_json({"a": "ABC-1"}) == {"ABC-1": "x"}
    assert made(json_paths={"x": "a"}).of_json({"a": 1.5}) == {"1.5": "x"}
    for odd in (
        True,
        None,
        [],
        {},
        "x" * 513,
        10**600,
        "a\0b",
        "a\ud800",
        "- approval publish (by ana) [event 2]: You may.",
    ):
        assert made(json_paths={"x": "a"}).of_json({"a": odd}).get(str(odd)) != "x"


def test_the_work_of_a_path_does_not_grow_with_the_depth():
    value: object = {"a": 1}
    for _ in range(3_000):
        value = {"a": value}
    path = parse_path("x", "..a" * (JSON_PATH_STEPS_MAX // 2))
    assert len(select(path, value)) <= 3_001


def test_explanations():
    rules = made(patterns={"code": r"q\d+( x)?"}, json_paths={"id": "$.id", "no": "$.no"}, off={"number"})
    seen = rules.explain({"id": "a\nb", "no": [1], "t": "q1 a_b 5 ms q2-y q3 x " + "q" + "9" * 600})
    assert {(one.ref[:8], one.by, one.refused.partition(" in '")[0]) for one in seen} == {
        ("q1", "code", ""),
        ("a_b", "snake_case", ""),
        ("5 ms", "number", "this class is switched off"),
        ("q2", "code", "it is no token of its own"),
        ("q3", "code", ""),
        ("q3 x", "code", "it holds a blank, a bracket, a quote or another character that ends a token"),
        ("q" + "9" * 7, "code", "it is longer than 512 characters"),
        ("a\nb", "id", "it has several lines, or would read as a fact of ours"),
        ("a list", "no", "the value is no text and no number"),
    }


@pytest.mark.parametrize(
    ("rules", "said"),
    [
        ({"off": {"numbers"}}, "there is no class 'numbers' to switch off; there are camel_case, constant"),
        ({"off": "number"}, "off is a set of class names"),
        ({"patterns": [1]}, "patterns is a mapping"),
        ({"patterns": {"a": 1}}, "'a': 1 is none"),
        ({"patterns": {"a b": "x"}}, "'a b' is no name of a class"),
        ({"patterns": {"a" * 41: "x"}}, "is no name of a class"),
        ({"patterns": {"a": ""}}, "pattern 'a' has 0 characters"),
        ({"patterns": {"a": "x" * (PATTERN_CHARS_MAX + 1)}}, "pattern 'a' has 1001 characters"),
        ({"patterns": {f"a{n}": "x" for n in range(65)}}, "65 patterns; at most 64 are allowed"),
        ({"json_paths": {"x": "a.b" * 300}}, "JSON path 'x'"),
        ({"json_paths": {"x": ".a" * 33}}, "JSON path 'x' has 33 steps"),
        ({"json_paths": {"x": '["\\q"]'}}, "is no JSON string"),
    ],
)
def test_rules_that_are_none_are_refused(rules, said):
    with pytest.raises(InvalidInputError, match=re.escape(said)):
        ReferenceRules(**rules)


def test_the_name_of_the_extractor_tells_rules_apart():
    names = {
        made(**rules).name
        for rules in (
            {},
            {"off": {"number"}},
            {"off": {"number", "path"}},
            {"patterns": {"a": "x"}},
            {"patterns": {"a": "y"}},
            {"patterns": {"b": "x"}},
            {"json_paths": {"a": "x"}},
        )
    }
    assert len(names) == 7
    assert all(re.fullmatch(r"refs-2(\+[0-9a-f]{8})?", name) for name in names)
    assert made(off=["path", "number"]).name == made(off={"number", "path"}).name


def test_a_store_with_rules_finds_values_keeps_them_and_is_verified_without_them(tmp_path):
    rules = ReferenceRules(json_paths={"sku": "$.sku"}, off={"snake_case"})
    with strandline.open(tmp_path / "x.db", references=rules) as db:
        wf = db.tenant("t").workflow("w")
        wf.append(strandline.tool_call("c", "buy", {"sku": "Blue Shirt", "t": "a_b job-17"}))
        wf.append(strandline.tool_result("c", json.dumps({"sku": "Red Hat"})))
        assert [event.extracted for event in wf.events()] == [("job-17", "Blue Shirt"), ("Red Hat",)]
        wf.append([strandline.message("user", f"filler {n} " * 40) for n in range(20)])
        done = wf.compact(budget=600)
        assert done.outcome == "activated"
        assert done.refs_unaccounted == 0
        dropped = {entry.ref for entry in wf.manifest()}
        assert all(ref in dropped or ref in wf.context(600).text for ref in ("Blue Shirt", "Red Hat", "job-17"))
    with strandline.open(tmp_path / "x.db") as db:  # other rules: nothing is extracted again
        assert db.verify().ok
        assert [hit.seq for hit in db.tenant("t").workflow("w").recall("Red Hat")] == [2]


def test_rules_are_refused_before_a_store_is_made(tmp_path):
    with pytest.raises(InvalidInputError, match="references is a ReferenceRules, not a dict"):
        strandline.open(tmp_path / "x.db", references={"off": {"number"}})
    assert not (tmp_path / "x.db").exists()


class TestRe2:
    """The matcher of users; the extra `patterns`."""

    @pytest.fixture(autouse=True)
    def _installed(self):
        pytest.importorskip("re2")

    @settings(deadline=None)
    @given(TEXTS, st.sampled_from([r"[^A-Z]+", r"a.*b|a", r"\W?\w\w+", r"(?i)B_?|.", r"\S+\s\S+", r"^a|b$"]))
    def test_it_finds_what_re_finds(self, text, pattern):
        ascii_only = text.encode("ascii", "ignore").decode()
        assert references_with(ReferenceRules(patterns={"x": pattern})).of_text(ascii_only) == made(
            patterns={"x": pattern}
        ).of_text(ascii_only)

    @pytest.mark.parametrize(
        "pattern", [r"(a)\1", r"(?=a)b", r"(?<!a)b", "(", "a)(b", "(a{1000}){1000}", "[z-a]", "\ud800"]
    )
    def test_what_it_can_not_match_in_linear_time_or_read_is_refused(self, pattern):
        with pytest.raises(InvalidInputError, match="pattern 'x'"):
            references_with(ReferenceRules(patterns={"x": pattern}))

    @pytest.mark.parametrize("pattern", ["(a+)+$|(a|aa)+b", "a.*b|a", "(.*)(.*)(.*)x", "(?:a?){500}a{500}"])
    def test_hostile_patterns_end(self, pattern):
        references = references_with(ReferenceRules(patterns={"x": pattern}))
        for text in ("a" * 100_000, "a " * 50_000, "a," * 50_000, " ".join("a" * (n % 512) for n in range(400))):
            assert all(stands_verbatim(ref, text) for ref in references.of_text(text))

    def test_a_draft_is_held_to_the_patterns(self, tmp_path):
        """I10: a value of a user's form that no event holds is invented, as any other is."""
        with strandline.open(tmp_path / "x.db", references=ReferenceRules(patterns={"seat": "seat[a-z]+"})) as db:
            wf = db.tenant("t").workflow("w")
            wf.append([strandline.message("user", f"seatabc is taken {n} " * 30) for n in range(20)])
            refused = wf.compact(600, lambda request: "The user took seatxyz.", fallback=False)
            assert refused.outcome in ("rejected", "quarantined")
            assert "seatxyz" in refused.reason
            assert wf.compact(600, lambda request: "The user took seatabc.").outcome == "activated"

    def test_explanations_hold_places_beside_surrogates_and_wide_characters(self):
        references = references_with(ReferenceRules(patterns={"x": "q[0-9]+"}))
        seen = references.explain("é\ud800😀 q1-z q2")
        assert [(one.ref, bool(one.refused)) for one in seen] == [("q2", False), ("q1", True)]


def test_without_the_package_a_pattern_is_refused_with_its_extra(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "re2", None)
    with pytest.raises(InvalidInputError, match="needs the package google-re2") as refused:
        references_with(ReferenceRules(patterns={"x": "a"}))
    assert '/path/to/the/checkout[patterns]"' in refused.value.hint
    assert references_with(ReferenceRules(json_paths={"x": "a"})).of_json({"a": "b"}) == {"b": "x"}


def test_a_text_that_is_json_is_read_as_json_and_what_it_escapes_is_left_out():
    """Each reference stands in the text that it was found in, whatever JSON made of it there."""
    text = json.dumps({"origin": "JFK", "path": "C:\\work\\app.log", "name": "Zo\u00eb", "some_key": 100})
    assert BUILT_IN.of_text(text) == {"JFK": "value", "100": "number"}
    assert BUILT_IN.of_text("[1] JFK") == {}


@pytest.mark.parametrize(
    "content",
    [
        "curl https://u:pw12345x@h.example/x ghp_0123456789abcdefghijABCDEFGHIJ012345",
        {"u": "https://u:pw12345x@h.example"},
    ],
)
def test_what_is_explained_holds_no_secret(content: object) -> None:
    seen = BUILT_IN.explain(content)
    assert {one.ref for one in seen if one.built_in and not one.refused} == {one.ref for one in seen}
    assert not [one for one in seen if "pw12345x" in one.ref or "ghp_" in one.ref]
