"""Laws: every reference that is extracted from a text stands verbatim in it; alone, it is extracted again with the same
class; the references come in the order in which they first appear; no text makes the work grow faster than its length.

The classes are checked by the table of `docs/references.md` and by examples on both sides of each; the laws by
properties over texts made of separators and edges; linearity by counting the spans that are judged and their length.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from strandline.limits import REFERENCE_CHARS_MAX
from strandline.model.reference import ReferenceClass
from strandline.rules import references
from strandline.rules.reference_classes import classify
from strandline.rules.reference_rules import BUILT_IN
from strandline.rules.references import (
    EMBEDDED_JSON_CHARS_MAX,
    EMBEDDED_JSON_DEPTH_MAX,
    EXTRACTOR,
    SCAN_TOKENS,
    SHORT_TEXT_CHARS_MAX,
    SHORT_TEXTS_MAX,
    TOKEN_MEMO_CHARS_MAX,
    TOKEN_MEMO_TOKENS_MAX,
    extract,
    extract_json,
)
from strandline.rules.verbatim import stands_verbatim

PAGE = (Path(__file__).parents[2] / "docs" / "references.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| `(\w+)` \| .* \| `(.*)` \| (.*) \|$", PAGE, re.MULTILINE)
FURTHER = re.findall(r"`([^`]+)` is\s+an? `(\w+)`", PAGE)

PIECES = st.sampled_from(
    [
        *"aB1_ ./\\@~-,:$€%#+'\"()[]{}<>|\n\0\ud800éß٣→",
        *(
            "foo_bar",
            "fooBar",
            "12",
            "24,000",
            " tokens",
            " s",
            "5",
            "ms",
            "://",
            "https",
            "http://x.y/z",
            "/a/b",
            "C:\\x",
        ),
        *(
            "a.py",
            "#12",
            "v1.2.3",
            "1.2.3.4",
            ":80",
            "9f86d08",
            "@x.com",
            "ABC-1",
            "..",
            "--",
            "2026-11-29",
            "12:30:45",
            "%",
        ),
    ]
)
TEXTS = st.lists(PIECES, max_size=14).map("".join)


def test_every_class_has_a_row_in_the_page():
    assert {name for name, _, _ in ROWS} == {name.value for name in ReferenceClass if name is not ReferenceClass.VALUE}


@pytest.mark.parametrize(
    ("ref", "name"), [(ref, name) for name, ref, _ in ROWS] + FURTHER, ids=lambda value: str(value).replace("\\", "|")
)
def test_the_examples_of_the_page_are_found(ref, name):
    assert extract(ref) == {ref: ReferenceClass(name)}
    assert extract(f"So (see `{ref}`), it was {ref}.") == {ref: ReferenceClass(name)}


@pytest.mark.parametrize(
    "text", [text for name, _, cell in ROWS for text in re.findall(r"`([^`]+)`", cell) if f"is a `{name}`" not in cell]
)
def test_the_counter_examples_of_the_page_are_not_found_with_their_class(text):
    rows = {name for name, _, cell in ROWS if f"`{text}`" in cell}
    assert not rows & {found.value for ref, found in extract(text).items() if ref == text}


@pytest.mark.parametrize(
    ("text", "refs"),
    [
        ("main.go:42: undefined", {"main.go": "path"}),
        ("/srv/app/foo_test.py:42:7", {"/srv/app/foo_test.py": "path"}),
        ("/a/b.go-12-", {}),
        ("see ./x/y.py, ../z and ~/notes.md", {"./x/y.py": "path", "../z": "path", "~/notes.md": "path"}),
        (r"C:\Users\me\a.txt and \\server\share", {r"C:\Users\me\a.txt": "path", r"\\server\share": "path"}),
        ("cat /etc/hosts > /tmp", {"/etc/hosts": "path", "/tmp": "path"}),
        ("</tool_use_error></div>", {"tool_use_error": "snake_case"}),
        ("and/or, I/O, 24/7, n/a, TCP/IP, read/write", {}),
        (".env and .gitignore", {".env": "path", ".gitignore": "path"}),
        ("go.mod, console.log(x), e.g. this", {"go.mod": "path"}),
        ("@scope/pkg and @scope/pkg@1.2.3", {"@scope/pkg": "path", "@scope/pkg@1.2.3": "path"}),
        ("pkg@1.2.3 pkg==2.0.1 ^3.4.5", {"pkg@1.2.3": "version", "2.0.1": "version", "3.4.5": "version"}),
        ("[x](https://e.org/a_(b)), <https://e.org/c>.", {"https://e.org/a_(b)": "url", "https://e.org/c": "url"}),
        ("(https://e.org/a).", {"https://e.org/a": "url"}),
        ("git+ssh://git@h/x.git; x", {"git+ssh://git@h/x.git": "url"}),
        ("https://e.org/?a=5 ms", {"https://e.org/?a=5": "url", "5 ms": "number"}),
        ("took 4 s, 500ms or 1h30m", {"4 s": "number", "500ms": "number", "1h30m": "number"}),
        ("$1,200.50 is 12.5%", {"$1,200.50": "number", "12.5%": "number"}),
        ("200k tokens; 24,000 tokens.", {"200k tokens": "number", "24,000 tokens": "number"}),
        ("5  ms, 5\nms, 5 msx, 5 s/foo, x5 s, 1-5 minutes, $5 s", {"$5": "number"}),
        ("it's 3 files, 42 lines, 1,234 and 7", {}),
        ("sha256:9f86d081884c7d65 0x7fff5fbff8c0", {"sha256:9f86d081884c7d65": "hash", "0x7fff5fbff8c0": "hash"}),
        ("abc1234..def5678", {"abc1234": "hash", "def5678": "hash"}),
        ("0" * 32 + " " + "a" * 32 + " " + "a" * 31, {"0" * 32: "hash", "a" * 32: "hash"}),
        ("#12 and repo#13 x/y#14", {"#12": "issue", "repo#13": "issue", "x/y#14": "issue"}),
        ("at 12:30:45Z on 2026-11-29", {"12:30:45Z": "timestamp", "2026-11-29": "timestamp"}),
        ("127.0.0.1 localhost:8080", {"127.0.0.1": "host", "localhost:8080": "host"}),
        ("mia_li_3668, HAT069: p-4", {"mia_li_3668": "handle", "HAT069": "handle"}),
        ("{'foo_bar':1,'baz_qux':2}", {"foo_bar": "snake_case", "baz_qux": "snake_case"}),
        ("self.foo_bar.append(fooBar)", {"self.foo_bar.append": "snake_case", "fooBar": "camel_case"}),
        ("std::get_it", {"get_it": "snake_case"}),
        ("HTTPServer parseJSON URLs IDs PRs GitHub iOS", {"HTTPServer": "camel_case", "parseJSON": "camel_case"}),
        ("MAX_SIZE __init__ _x **bold_text** _it_", {"MAX_SIZE": "constant", "bold_text": "snake_case"}),
        ("+foo_bar\n-fooBar\n  12→bar_baz", {"foo_bar": "snake_case", "fooBar": "camel_case", "bar_baz": "snake_case"}),
        (r"say \nfoo_bar", {}),
        ("a_b\0c_d\ud800e_f\udfffg_h\u202ei_j", dict.fromkeys(["a_b", "c_d", "e_f", "g_h", "i_j"], "snake_case")),
        ("", {}),
        ("The quick brown fox isn't (always) well-known; Yes! No? 1 2 3.", {}),
        ("if (x == y && z[0]) { return !a; } // done", {}),
    ],
)  # fmt: skip
def test_examples(text, refs):
    assert extract(text) == {ref: ReferenceClass(name) for ref, name in refs.items()}


@settings(deadline=None)
@given(st.one_of(TEXTS, st.text(max_size=40)))
@example("10%https://x.y/z")
@example("https://x.y/a.€500")
@example("5 tokens./a/b")
@example("foo-https://x.y")
@example("/a/-5 ms")
@example("éhttps://x.y/z")
@example("1,5 s")
@example("src/- -/a/b")
def test_what_is_extracted_stands_in_the_text(text):
    for ref in extract(text):
        assert stands_verbatim(ref, text)
        assert 0 < len(ref) <= REFERENCE_CHARS_MAX
        assert "\0" not in ref
        ref.encode("utf-8")


@settings(deadline=None)
@given(st.one_of(TEXTS, st.text(max_size=40)))
def test_a_reference_alone_is_extracted_again_with_its_class(text):
    for ref, name in extract(text).items():
        assert extract(ref) == {ref: name}
        assert classify(ref) is name


@settings(deadline=None)
@given(TEXTS)
def test_the_memo_changes_nothing(text):
    remembered = extract(text)
    references.forget()
    fresh = extract(text)
    assert list(fresh.items()) == list(remembered.items())


@settings(deadline=None)
@given(st.lists(TEXTS.map(lambda text: text.strip()), max_size=4))
def test_lines_are_independent_and_in_order(lines):
    expected: dict[str, ReferenceClass] = {}
    for line in lines:
        for ref, name in extract(line).items():
            expected.setdefault(ref, name)
    assert list(extract("\n".join(lines)).items()) == list(expected.items())


def test_the_order_is_that_of_first_appearance():
    text = "z_z then 5 ms, https://b.c/d, a_a,k_k;#7 24,000 tokens x_x z_z 5 ms"
    found = list(extract(text))
    assert found == ["z_z", "5 ms", "https://b.c/d", "a_a", "k_k", "#7", "24,000 tokens", "x_x"]
    assert found == sorted(found, key=text.index)


@pytest.mark.parametrize(
    "make", [lambda n: "/a" * (n // 2), lambda n: "a_" + "b" * (n - 2), lambda n: "https://" + "x" * (n - 8)]
)
def test_the_longest_reference(make):  # fmt: skip
    longest, longer = make(REFERENCE_CHARS_MAX), make(REFERENCE_CHARS_MAX + 2)
    if longest.startswith("/"):  # a path has at most 65 parts
        longest, longer = "/" + "p" * 254 + "/" + "p" * 254 + "/x", "/" + "p" * 254 + "/" + "p" * 254 + "/xyz"
    assert len(longest) == REFERENCE_CHARS_MAX
    assert longest in extract(f"see {longest}, ok")
    assert extract(longer) == {}


class TestJson:
    def test_leaves_integers_and_keys(self):
        value = {
            "name_of_key": "see /a/b.py",
            "[12345]": "",
            "bucket-7f3a": [1, 99, 1000, -12345, True, None, 12345.5, "10082"],
            "nested": {"deep": ["a_b", {"x": "ABC-1"}]},
        }
        assert extract_json(value) == {
            "/a/b.py": ReferenceClass.PATH,
            "bucket-7f3a": ReferenceClass.HANDLE,
            "1000": ReferenceClass.NUMBER,
            "-12345": ReferenceClass.NUMBER,
            "10082": ReferenceClass.NUMBER,
            "a_b": ReferenceClass.SNAKE_CASE,
            "ABC-1": ReferenceClass.TICKET,
        }
        assert list(extract_json(value)) == ["/a/b.py", "bucket-7f3a", "1000", "-12345", "10082", "a_b", "ABC-1"]

    def test_a_text_is_a_leaf(self):
        assert extract_json("foo_bar") == extract("foo_bar")
        assert extract_json(7) == extract_json(None) == extract_json(True) == extract_json(1e9) == {}

    def test_a_plain_word_is_a_value_and_what_has_a_form_keeps_its_class(self):
        value = {
            "origin": "JFK",
            "name": ["Mia", "d'Arc", "a b", "", "ab"],
            "to": "a_b",
            "time": "06:00:00",
            "w": "x" * 61,
        }
        assert extract_json(value) == {
            "JFK": ReferenceClass.VALUE,
            "Mia": ReferenceClass.VALUE,
            "a_b": ReferenceClass.SNAKE_CASE,
            "06:00:00": ReferenceClass.TIMESTAMP,
        }
        assert extract("JFK, Mia") == {}

    @given(st.text("abcdefghijklmnopqrstuvwxyz", min_size=3, max_size=31))
    def test_a_word_of_small_letters_has_no_other_form(self, word):
        assert extract(word) == {}
        assert extract_json([word, word]) == {word: ReferenceClass.VALUE}

    def test_json_in_a_string_is_walked(self):
        assert extract_json(json.dumps({"some_key": "v_1, x_y", "n": 5000})) == {
            "x_y": ReferenceClass.SNAKE_CASE,
            "5000": ReferenceClass.NUMBER,
        }
        assert extract_json("{not json a_b") == {"a_b": ReferenceClass.SNAKE_CASE}

    def test_json_in_a_string_has_limits(self):
        value: object = {"some_key": 12345}
        for _ in range(EMBEDDED_JSON_DEPTH_MAX):
            value = [json.dumps(value)]
        assert extract_json(value) == {"12345": ReferenceClass.NUMBER}
        assert "some_key" in "".join(extract_json([json.dumps(value)]))
        wide = json.dumps({"some_key": "x" * EMBEDDED_JSON_CHARS_MAX})
        assert list(extract_json(wide)) == ["some_key"]

    def test_depth_and_size_of_integers_have_no_effect_on_the_stack(self):
        value: object = "a_b"
        for _ in range(100_000):
            value = [value]
        assert list(extract_json(value)) == ["a_b"]
        while isinstance(value, list):
            value = value.pop()
        assert extract_json("[" * 100_000) == {}
        assert extract_json(10**600) == {}
        assert len(next(iter(extract_json(10**510)))) == 511

    @settings(deadline=None)
    @given(
        st.recursive(
            st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), TEXTS),
            lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
            max_leaves=8,
        )
    )
    def test_any_value_is_walked(self, value):
        for ref, name in extract_json(value).items():
            assert 0 < len(ref) <= REFERENCE_CHARS_MAX
            assert classify(ref) is name or re.fullmatch("-?[0-9]{3,}", ref) or name is ReferenceClass.VALUE
            ref.encode("utf-8")


HOSTILE = {
    "letters": "a",
    "commas": "1,",
    "dots": "a.",
    "slashes": "/",
    "path": "a/",
    "hyphens": "-",
    "braces": "{",
    "schemes": "://",
    "addresses": "a://b ",
    "brackets": "a://b(",
    "closing": "a://b)",
    "quantities": "1 s ",
    "digits": "1",
    "prices": "$1",
    "percents": "1%",
    "issues": "#1+",
    "drives": "C:\\",
    "backslashes": "\\",
    "handles": "a1--b:",
    "underscores": "a__",
    "at": "a@",
    "humps": "aB",
    "hex": "a1",
    "dotted": "a_a.",
    "minutes": "1h",
    "surrogates": "a\ud800b_c",
    "nul": "a\0b_c",
    "right to left": "\u0627\u0644\u202ea_b ",
    "spaces": " ",
}


@pytest.mark.parametrize("piece", HOSTILE.values(), ids=HOSTILE)
def test_the_work_is_linear(piece, monkeypatch):
    """Count what is judged: no more spans than characters, none long, so at most a constant amount of work for each."""
    judged: list[int] = []

    def counting(span: str) -> ReferenceClass | None:
        judged.append(len(span))
        return classify(span)

    monkeypatch.setattr(references, "classify", counting)
    text = piece * (100_000 // len(piece))
    references._MEMO.clear()
    found = extract(text)
    assert all(stands_verbatim(ref, text) for ref in found)
    assert sum(min(length, REFERENCE_CHARS_MAX) for length in judged) <= 6 * len(text)


MANY = {
    "tokens": " ".join(f"job-{n}" for n in range(60_000)),
    "one token": ",".join(f"job-{n}" for n in range(60_000)),
    "amounts": ",".join(f"${n}" for n in range(60_000)),
}


@pytest.mark.parametrize("text", MANY.values(), ids=MANY)
def test_the_work_ends_where_too_many_are_found(text, monkeypatch):
    """Count the spans that are judged: as many as are asked for, and those worked through together with the last."""
    judged = 0

    def counting(span: str) -> ReferenceClass | None:
        nonlocal judged
        judged += 1
        return classify(span)

    monkeypatch.setattr(references, "classify", counting)
    references.forget()
    found = extract(text, most=1_000)
    assert len(found) > 1_000
    assert judged <= 2 * (1_000 + SCAN_TOKENS)
    assert list(found) == list(extract(text))[: len(found)]
    assert list(extract_json([text, text], most=1_000)) == list(found)


@settings(deadline=None)
@given(TEXTS, st.integers(0, 12))
def test_a_number_that_is_not_passed_changes_nothing(text, most):
    found = list(extract(text, most=most).items())
    every = list(extract(text).items())
    assert found == every or (len(found) > most and found == every[: len(found)])


@pytest.mark.parametrize("joint", [" ", ","])
def test_figures_that_are_no_reference_are_not_judged(joint, monkeypatch):
    judged: list[str] = []
    monkeypatch.setattr(references, "classify", judged.append)
    references.forget()
    assert extract(joint.join(f"{n},{n}:{n}.~{n}/" for n in range(20_000))) == {}
    assert len(judged) <= 2


def test_a_megabyte_of_anything():
    noise = bytes(n * n // 7 % 256 for n in range(1_000_000))
    for text in (noise.decode("latin-1"), noise.decode("utf-8", "replace"), noise.decode("utf-8", "surrogateescape")):
        for ref in extract(text):
            ref.encode("utf-8")


def test_the_memo_is_bounded():
    references.forget()
    extract("a_" + "b" * TOKEN_MEMO_CHARS_MAX)
    assert len(references._MEMO) == 0
    for start in range(0, 2 * TOKEN_MEMO_TOKENS_MAX, 10_000):
        extract(" ".join(f"job-{n}" for n in range(start, start + 10_000)))
        assert len(references._MEMO) <= TOKEN_MEMO_TOKENS_MAX


def test_the_memo_of_short_texts_is_bounded():
    references.forget()
    extract("a_" + "b" * SHORT_TEXT_CHARS_MAX)
    assert references._of_short.cache_info().currsize == 0
    for number in range(SHORT_TEXTS_MAX + 10):
        extract(f"job {number}")
    assert references._of_short.cache_info().currsize == SHORT_TEXTS_MAX


def test_what_is_remembered_of_a_short_text_is_not_the_callers():
    extract("a_b").clear()
    assert extract("a_b") == {"a_b": ReferenceClass.SNAKE_CASE}


def test_the_extractor_has_a_name():
    assert EXTRACTOR == "refs-2"
    assert f"`{EXTRACTOR}`" in PAGE


def test_a_user_gives_names_inside_of_sentences_and_in_capitals():
    text = "Please fly Mia Smith from SFO to JFK, not via LAX-2. Thanks, Kevin! I said: Economy. OK"
    found = BUILT_IN.of_text(text, said_by_user=True)
    assert [name for name in found if name.isalpha()] == ["Mia", "Smith", "SFO", "JFK", "Kevin", "Economy"]
    assert not [name for name in BUILT_IN.of_text(text) if name.isalpha()], "nobody else gives names"


def test_what_was_pasted_gives_no_names():
    text = "From Mia: " + "to JFK, " * 500
    assert not BUILT_IN.of_text(text, said_by_user=True)
