"""English wording: sentences, words, and whether a sentence asserts what it mentions. What `rules.claims` reads with.

A summary is prose, and the same word states a fact ("release-42 was approved") or the want of one ("must be approved",
"not approved", "approved?"). `asserted` tells them apart by the words around the mention, within its clause. It errs
towards *not asserted*: a mention is a claim only when nothing near it takes it back.

All work is linear in the text: patterns run on sentences of at most SENTENCE_CHARS_MAX characters, and each mention is
judged by a bounded neighbourhood.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

SENTENCE_CHARS_MAX: Final = 1_000  # a longer one is read in windows
WINDOW_OVERLAP_CHARS: Final = 200  # so that no claim hides in the seam of two windows
SCOPE_CHARS_MAX: Final = 300  # how far to the left of a mention its clause is looked at

_REWRITTEN: Final = {ord("’"): "'", ord("‘"): "'", ord("“"): '"', ord("”"): '"', ord("*"): None, ord("\x00"): None}
_INVISIBLE: Final = dict.fromkeys([0xAD, 0x200B, 0x200C, 0x200D, 0x200E, 0x200F, 0x2060, 0xFEFF])
_TRANSLATION: Final = {**_REWRITTEN, **_INVISIBLE}

LABEL: Final = re.compile(
    r"\s*(?:[-•>] ?)?\[(?:\d{1,12}→)?(\d{1,12})\](?: ?([^\n\[\]]{0,200}?)/([a-z_]{1,30}): ?| (?=\S))"
)
"""How a quoted line begins: `[12] actor/kind: `, `[9→12] actor/kind: ` where event 12 replaces what event 9 said, or
`[13] ` where the line before it names the same actor and kind."""
_SENTENCE_END: Final = re.compile(r"[.!?;][\"')\]]{0,8}\s+")
_BULLET: Final = re.compile(r"[\s>•#+\-–—]{0,40}(?:\d{1,4}[.)]\s|\[ \]\s)?\s*")
_CLAUSE_END: Final = re.compile(
    r"[,;] (?:and|so) |,? (?:but|however|although|though|whereas|while|because|since) |;", re.IGNORECASE
)
_WORD: Final = re.compile(r"[^\W_]+")
_SCOPE_TOKEN: Final = re.compile(r"[\w'-]+|[,:;()—–/\"]")
_VERSION: Final = re.compile(r"v(\d+)")

_IDIOM: Final = re.compile(
    r"\b(?:not (?:only|just|merely)\b|no (?:doubt|further|objections?|concerns?|problems?|one objected)\b"
    r"|without (?:\w+ )?(?:objections?|issues?|conditions?|comments?|changes?|reservations?|further|problems?)\b"
    r"|not to (?=[^,;]*\b(?:is|are|was|were|has|have been)\b)"
    r"|no longer (?=pending|waiting|awaiting|blocked|open|needs?)\b)",
    re.IGNORECASE,
)


def word_set(text: str) -> frozenset[str]:
    """Return the words of a text that is a list of words."""
    return frozenset(text.split())


_NEGATIONS: Final = word_set(
    "not no never none nobody nothing neither nor without cannot hardly barely lacks lacking deny denies denied doubt"
    " doubts doubted refused declined unclear unknown uncertain unsure unconfirmed falsely wrongly mistakenly partially"
    " partly nearly almost half"
)
_WANTS: Final = word_set(
    "need needs require requires want wants hope hopes hoping expect expects await awaits awaiting waiting seek seeks"
    " seeking ask asks asking try trying get getting let request requesting being"
)
_MODALS: Final = word_set("must should will would could may might can shall 'll ought")
_CONDITIONS: Final = word_set("if unless until till once when whenever whether before todo pending needed")
_ADJECTIVES: Final = word_set("when needed pending")  # conditions, unless a past tense follows
_PAST: Final = word_set("was were had has")
_INFINITIVES: Final = word_set("be been get have receive obtain")
_BREAKS: Final = word_set(", : ( — – and or then as")
_HARD_BREAKS: Final = word_set("; ) but however although though because since while whereas")
_LIGHT: Final = word_set(  # words that no clause of its own is made of
    "is are was were be been being has have had do does did get gets got it its this that they he she we i you now"
    " already also then just finally formally fully officially later since thus therefore explicitly again both all"
    " subsequently s yet either"
)
STOPWORDS: Final = _LIGHT | word_set(
    "the a an of for to in on at by with from as and or so but not no any our your their his her my me us them these"
    " those there which who whom whose what when after before until will can may must should would could if than too"
    " very more most some each only per via into onto over under out up off about still one"
)
_SUFFIX: Final = re.compile(r"(?:ments?|ions?|ings?|ers?|ed|es|(?<!s)s|e)$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sentence:
    """One sentence of a draft or a source, plain, in one line.

    `seq` and `kind` are those of the label `[12] actor/kind:` of its line; `before` is the sentence before it.
    """

    text: str
    seq: int | None = None
    kind: str | None = None
    before: str = ""


def plain(text: str) -> str:
    """Return the text without what only looks differ by: compatibility forms, curly quotes, invisible marks, `*`."""
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text)
    return text.translate(_TRANSLATION)


def one_line(text: str) -> str:
    """Return the text with each run of white space made one blank, and without blanks at its ends."""
    return " ".join(text.split())


def sentences(text: str) -> Iterator[Sentence]:
    """Yield the sentences of a plain text; one that is too long comes as windows that overlap."""
    before = ""
    kind: str | None = None  # of the labelled line before
    for line in text.splitlines():
        label = LABEL.match(line)
        kind = (label[3] or kind) if label else None
        seq = int(label[1]) if label else None
        at = label.end() if label else 0
        for piece in _pieces(line, at):
            yield Sentence(text=piece, seq=seq, kind=kind, before=before)
            before = piece


def bare(sentence: str) -> str:
    """Return a sentence as it is compared: one line, lower case, without bullet and closing punctuation."""
    line = one_line(sentence)
    return line[_bullet_end(line) :].rstrip(" .!,;:").casefold()


def words(text: str) -> frozenset[str]:
    """Return the stems of the words that carry meaning; numbers as they are, `v42` as `42`."""
    return frozenset(stem(word) for word in _WORD.findall(text.casefold()) if word not in STOPWORDS)


def stem(word: str) -> str:
    """Return a word (lower case) without its ending, so that `deploys`, `deployed` and `deployment` are one."""
    version = _VERSION.fullmatch(word)
    if version:
        return version[1]
    if len(word) < 4 or not word.isalpha():
        return word
    cut = _SUFFIX.sub("", word)
    if len(cut) > 3 and cut[-1] == cut[-2] and cut[-1] not in "lsz":  # shipped, ship
        cut = cut[:-1]
    cut = cut if len(cut) >= 3 else word.removesuffix("s")
    return f"{cut[:-1]}i" if cut.endswith("y") else cut  # policies, policy


def clause_at(sentence: str, at: int) -> str:
    """Return the part of a sentence around a place, as far as the conjunctions that open a statement of its own."""
    start, end = 0, len(sentence)
    for cut in _CLAUSE_END.finditer(sentence):
        if cut.end() <= at:
            start = cut.end()
        elif cut.start() >= at:
            end = cut.start()
            break
    return sentence[start:end]


def asserted(sentence: str, at: int, *, bare_mention: bool = False) -> bool:
    """Tell whether the mention at this place of a sentence states a fact: not negated, wanted, conditional or asked.

    `bare_mention`: it has no verb of its own ("LGTM", "with approval"), so that words of want reach it directly.
    """
    if sentence.rstrip(" \"')]").endswith("?"):
        return False
    left = _IDIOM.sub(" ", sentence[max(0, at - SCOPE_CHARS_MAX) : at])
    return not _taken_back(_SCOPE_TOKEN.findall(left.lower())[::-1], bare_mention=bare_mention)


def _taken_back(leftwards: list[str], *, bare_mention: bool) -> bool:
    """Walk from the mention to the left, and tell whether a word takes it back.

    A break after words of substance ends the reach of negation and want; conditions reach on to the next hard break.
    """
    passed: set[str] = set()
    substance = soft = False
    for place, word in enumerate(leftwards):
        if word in _HARD_BREAKS and substance:
            return False
        if word in _CONDITIONS and not (word in _ADJECTIVES and passed & _PAST):
            return True
        if not soft and (_negates(word) or _wanted(word, passed, leftwards[:place], bare_mention=bare_mention)):
            return True
        if word in _BREAKS:
            soft = soft or substance
        elif word not in _LIGHT and not word.endswith(("ed", "ly")):
            substance = True
        passed.add(word)
    return False


def _negates(word: str) -> bool:
    return word in _NEGATIONS or word.endswith("n't")


def _wanted(word: str, passed: set[str], since: list[str], *, bare_mention: bool) -> bool:
    near = since[-1] if since else ""
    if word == "to":
        return near in _INFINITIVES or (bare_mention and not near.endswith("ing"))
    if word in _MODALS or word.endswith("'ll"):
        dated = word == "may" and near.isdigit()  # the month
        return not dated and (bare_mention or bool(passed & _INFINITIVES))
    return word in _WANTS and not (passed & _PAST) and near not in ("is", "are")  # "the request is approved"


def _pieces(line: str, at: int) -> Iterator[str]:
    for end in _SENTENCE_END.finditer(line, at):
        yield from _windows(one_line(line[at : end.end()]))
        at = end.end()
    yield from _windows(one_line(line[at:]))


def _windows(sentence: str) -> Iterator[str]:
    sentence = sentence[_bullet_end(sentence) :]
    at = 0
    while len(sentence) - at > SENTENCE_CHARS_MAX:
        cut = sentence.rfind(" ", at + SENTENCE_CHARS_MAX - WINDOW_OVERLAP_CHARS, at + SENTENCE_CHARS_MAX)
        end = cut if cut > 0 else at + SENTENCE_CHARS_MAX
        yield sentence[at:end]
        seam = sentence.find(" ", end - WINDOW_OVERLAP_CHARS, end)
        at = seam + 1 if seam > 0 else end - WINDOW_OVERLAP_CHARS
    if sentence[at:]:
        yield sentence[at:]


def _bullet_end(line: str) -> int:
    bullet = _BULLET.match(line)
    return bullet.end() if bullet else 0
