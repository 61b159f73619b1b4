"""What a sentence states, in one form: who does what to whom, under which conditions, how binding, and when.

Two sentences *say the same* when their forms are equal. It is proved word by word, never guessed from likeness: each
content word, value, comparison, condition and negation of one has its counterpart in the other, in the same role, and
nothing is left over on either side. Only what can't change the meaning is put aside: articles, pronouns, openers ("the
user said that"), synonyms of a short list, spellings of a value, the order of phrases with a preposition, and the
passive voice. So a new hedge, exception or permission, a lost scope word, swapped names, another tense, or "should"
for "must" makes the forms differ without a rule of its own.

English only. A sentence that is not understood has a form of its own, which equals itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from strandline.rules.statement_words import (
    ADVERBS,
    AGENTS,
    BE,
    BE_NOW,
    BE_THEN,
    CAN_NOT,
    CLAUSES,
    COMPARISONS,
    DO,
    FORCE_PHRASES,
    FUTURE_PHRASES,
    HARMLESS,
    HAVE,
    LEAD_INS,
    MAY,
    MUST,
    MUST_NOT,
    NEGATED,
    OPENERS,
    ORDERS,
    PARTICIPLES,
    PERMITTING,
    PREPOSITIONS,
    STATES,
    is_past,
)
from strandline.rules.synonyms import IRREGULAR, SAME_PHRASES, SYNONYMS
from strandline.rules.values import BREAK, VALUE, WORD, Token, tokens
from strandline.rules.wording import stem

FORMS_KEPT_MAX: Final = 4_096  # of sentences that are compared with many facts
NOT: Final = "¬"  # no word has this stem, as "noted" has "not"

NOW: Final = "now"
THEN: Final = "then"
SINCE: Final = "since"  # has been
BEFORE_THEN: Final = "before then"  # had been
COMING: Final = "coming"
UNDER_WAY: Final = "under way"

_DONE: Final = frozenset({THEN, SINCE})

Phrase = tuple[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """The form of one sentence."""

    force: tuple[str, ...]  # must, must not, may …, in the order of the sentence; () of what is simply stated
    times: frozenset[str]
    passive: str  # the verb of a passive voice; "" in the active
    core: tuple[str, ...]  # what stands in no phrase, in order
    phrases: tuple[Phrase, ...]  # each preposition or condition with what it governs; by name, then as they stand
    values: frozenset[str]
    stems: frozenset[str]  # of all content words
    words: frozenset[str]  # as they stand, in lower case: hedges and guards are looked for among them
    ordered: bool = False  # it begins with a verb that orders

    @property
    def negations(self) -> int:
        """How often it negates."""
        inside = sum(part.count(NOT) + name.startswith(f"{NOT} ") for name, part in self.phrases)
        return self.core.count(NOT) + inside + sum(force in _NEGATING for force in self.force)

    @property
    def empty(self) -> bool:
        """Whether nothing is stated."""
        return not self.stems and not self.values


_NEGATING: Final = frozenset(NEGATED.values())


def says_the_same(fact: Statement, said: Statement) -> bool:
    """Tell whether `said` states what `fact` states, neither less nor more. What can't be told is no.

    "Must" may stand for a bare order, and "can't" for "must not"; not the other way round.
    """
    if fact.empty or not _as_binding(fact, said) or not _as_timed(fact, said):
        return False
    if fact.phrases == said.phrases and bool(fact.passive) == bool(said.passive):
        return _same_core(fact, said)
    if fact.passive and not said.passive:
        return _voices_agree(active=said, passive=fact)
    if said.passive and not fact.passive:
        return _voices_agree(active=fact, passive=said)
    return False


def _as_binding(fact: Statement, said: Statement) -> bool:
    if fact.force == said.force:
        return bool(fact.force) or fact.ordered == said.ordered
    if fact.ordered and not fact.force:
        return said.force == (MUST,)
    return fact.force == (MUST_NOT,) and said.force == (CAN_NOT,)


def _as_timed(fact: Statement, said: Statement) -> bool:
    """What was done has been done; but what was not done then, may have been done since."""
    if fact.times == said.times:
        return True
    return len(fact.times) == len(said.times) == 1 and fact.times | said.times <= _DONE and not fact.negations


def _same_core(fact: Statement, said: Statement) -> bool:
    core = said.core
    if core != fact.core and _is_order(fact) and core[:1] and core[0] in AGENTS and not AGENTS & fact.stems:
        core = core[1:]  # "the agent must never …", of a rule that is addressed to nobody in particular
    return core == fact.core


def _is_order(statement: Statement) -> bool:
    return statement.ordered or statement.force in ((MUST,), (MUST_NOT,))


def _voices_agree(*, active: Statement, passive: Statement) -> bool:
    """Compare "Dana approved the plan" with "the plan was approved by Dana": the same verb, agent and object.

    Without "by", the active sentence must be an order, which begins with its verb.
    """
    verb, phrases = passive.passive, list(passive.phrases)
    agent: tuple[str, ...] = ()
    if passive.core.count(verb) != 1 or active.core.count(verb) != 1:
        return False
    acted_on = tuple(word for word in passive.core if word != verb)
    by = [phrase for phrase in phrases if phrase[0] == "by"]
    if len(by) == 1 and by[0] not in active.phrases:
        phrases.remove(by[0])
        agent = by[0][1]
    at = active.core.index(verb)
    subject, rest = active.core[:at], active.core[at + 1 :]
    if not agent and subject and subject[0] in AGENTS and len(subject) == 1 and _is_order(active):
        subject = ()
    return subject == agent and rest == acted_on and tuple(phrases) == active.phrases


@lru_cache(maxsize=FORMS_KEPT_MAX)
def statement(sentence: str) -> Statement:
    """Return the form of a plain one-line sentence."""
    return _Reading(_marked(opened(tokens(sentence.replace("~~", " ").strip().rstrip(".!"))))).form()


def opened(found: list[Token]) -> list[Token]:
    """Leave out what only opens a sentence; nothing is left of what does nothing else."""
    at = 0
    while at < len(found):
        if found[at].kind == BREAK:
            at += 1
            continue
        size = _phrase_at(found, at, LEAD_INS) or _opener_at(found, at)
        if not size:
            break
        at += size
    return found[at:]


def _opener_at(found: list[Token], at: int) -> int:
    """Return the length of an opener; a bare noun ("rule", "user") is one only before a colon or a comma."""
    size = _phrase_at(found, at, OPENERS)
    if not size:
        return 0
    last = found[at + size - 1].text
    after = found[at + size] if at + size < len(found) else None
    opens = last in ("that", "to", "is", "remember", "note", "also", "and", "so", "mind")
    return size if opens or (after is not None and after.kind == BREAK) else 0


def _phrase_at(found: Sequence[Token], at: int, phrases: Sequence[tuple[str, ...]]) -> int:
    first = found[at].text
    for phrase in phrases:
        if phrase[0] == first and _stands(found, at, phrase):
            return len(phrase)
    return 0


def _stands(found: Sequence[Token], at: int, phrase: tuple[str, ...]) -> bool:
    return len(found) - at >= len(phrase) and all(
        token.kind != BREAK and token.text == word for token, word in zip(found[at:], phrase, strict=False)
    )


FORCE: Final = "force"
TIME: Final = "time"


def _by_first(phrases: Sequence[tuple[str, ...]]) -> dict[str, list[tuple[str, ...]]]:
    """Return the phrases by their first word, the longest first."""
    index: dict[str, list[tuple[str, ...]]] = {}
    for phrase in sorted(phrases, key=len, reverse=True):
        index.setdefault(phrase[0], []).append(phrase)
    return index


_INDEX: Final = _by_first([*FORCE_PHRASES, *FUTURE_PHRASES, *COMPARISONS, *SAME_PHRASES])


def _marked(found: list[Token]) -> list[Token]:
    """Replace the phrases of the tables: force and future by a mark, the others by their one spelling."""
    marked: list[Token] = []
    at = 0
    while at < len(found):
        phrase = next((p for p in _INDEX.get(found[at].text, ()) if _stands(found, at, p)), None)
        if phrase is None or (phrase in COMPARISONS and not _before_value(found, at + len(phrase))):
            marked.append(found[at])
            at += 1
            continue
        if phrase in FORCE_PHRASES:
            marked.append(Token(FORCE_PHRASES[phrase], FORCE))
        elif phrase in FUTURE_PHRASES:
            marked.append(Token(COMING, TIME))
        elif phrase in COMPARISONS:
            marked.append(Token(COMPARISONS[phrase], VALUE))
        else:
            marked.extend(Token(word, WORD) for word in SAME_PHRASES[phrase])
        at += len(phrase)
    return marked


def _before_value(found: Sequence[Token], at: int) -> bool:
    return at < len(found) and (found[at].kind == VALUE or found[at].text in ("one", "a", "an"))


@dataclass(slots=True)
class _Reading:
    """Reads marked tokens from left to right."""

    marked: list[Token]
    force: list[str] = field(default_factory=list)
    times: set[str] = field(default_factory=set)
    passive: str = ""
    core: list[str] = field(default_factory=list)
    phrases: list[tuple[str, list[str]]] = field(default_factory=list)
    places: list[int] = field(default_factory=list)  # of the phrases: how much of the core stands before each
    words: set[str] = field(default_factory=set)
    inside: bool = False  # a phrase is being filled
    fresh: bool = True  # at the start of the sentence, or of what follows a break
    opening_no: bool = False
    past: bool = False
    after_determiner: bool = False
    ordered: bool = False

    def form(self) -> Statement:
        """Return the form of the sentence."""
        for at, token in enumerate(self.marked):
            take: Callable[[int, Token], None] = {
                FORCE: self._take_force,
                TIME: self._take_time,
                BREAK: self._take_break,
                VALUE: self._take_value,
            }.get(token.kind, self._take_word)
            take(at, token)
        if self.past and not self.times and not self.force:
            self.times.add(THEN)
        if self.opening_no:
            self._settle_no()
        flat = [*self.core, *(word for _, part in self.phrases for word in part)]
        values = frozenset(token.text for token in self.marked if token.kind == VALUE)
        return Statement(
            force=tuple(self.force),
            times=frozenset(self.times),
            passive=self.passive,
            core=tuple(self.core),
            phrases=self._ordered_phrases(),
            values=values - {"≥", "≤", ">", "<"},
            stems=frozenset(flat) - values - {NOT, "and", "or"},
            words=frozenset(self.words),
            ordered=self.ordered and not self.times and not self.passive,
        )

    def _ordered_phrases(self) -> tuple[Phrase, ...]:
        """Sort by name alone: of two with one name, which comes first says which goes with what.

        Beside "and" and "or" each keeps its place, for it goes with one side of them.
        """
        compound = bool({"and", "or"} & set(self.core)) or len(self.force) > 1
        named = [
            (f"{name} at {place}" if compound else name, tuple(part))
            for (name, part), place in zip(self.phrases, self.places, strict=True)
        ]
        return tuple(sorted(named, key=lambda phrase: phrase[0]))

    def _governed(self, mark: str) -> bool:
        """Note force, time and negation of a condition as part of it: they are not those of the sentence."""
        if self.inside and self.phrases[-1][0].removeprefix(f"{NOT} ") in CLAUSES:
            self.phrases[-1][1].append(mark)
            return True
        self.inside = False
        return False

    def _settle_no(self) -> None:
        if (not self.times and not self.force) or (self.force and set(self.force) <= PERMITTING):
            self.force = [MUST_NOT]
        else:
            self.core.insert(0, NOT)

    def _take_force(self, at: int, token: Token) -> None:
        if self._governed(token.text):
            return
        previous = self.force[-1] if self.force else ""
        if previous == MUST_NOT and not self.core and token.text in (MAY, MUST, CAN_NOT, "can", "should"):
            return  # "under no circumstances may you …"
        if token.text == MUST_NOT and previous == MUST and self._just_before(at) == FORCE:
            self.force[-1] = MUST_NOT  # "must under no circumstances …"
        elif token.text != previous:
            self.force.append(token.text)

    def _just_before(self, at: int) -> str:
        return self.marked[at - 1].kind if at else ""

    def _take_time(self, at: int, token: Token) -> None:
        if not self._governed(token.text):
            self.times.add(token.text)
        self.fresh = False

    def _take_break(self, at: int, token: Token) -> None:
        self.inside = False
        if token.text == ":" and self.core and not self.times:
            self.times.add(NOW)  # "Status: pending"
        self.fresh = True

    def _take_value(self, at: int, token: Token) -> None:
        self._put(token.text)

    def _take_word(self, at: int, token: Token) -> None:
        word = token.text
        self.words.add(word)
        if word == "not":
            self._negate(at)
        elif word == "never":
            self._never(at)
        elif word == "no" and self.fresh and not self.core:
            self.opening_no = True
        elif word in ("no", "none", "nobody", "nothing", "neither", "nor", "without"):
            self._put(NOT) if word != "without" else self._open(word)
        elif word in BE:
            self._be(at, word)
        elif word in HAVE and self._verb_after(at):
            self._time(SINCE)
        elif word == "had" and self._verb_after(at):
            self._time(BEFORE_THEN)
        elif word == "did":
            self._time(THEN)
        elif word in DO:
            self.inside = self.inside and self.phrases[-1][0].removeprefix(f"{NOT} ") in CLAUSES
        elif word in HARMLESS:
            self.after_determiner = word not in ADVERBS
            return
        elif word in PREPOSITIONS:
            self._open(word)
        else:
            self._content(word)
        self.after_determiner = False

    def _negate(self, at: int) -> None:
        before = self.marked[at - 1] if at else None
        if before is not None and before.kind == FORCE and self.force and self.force[-1] in NEGATED:
            self.force[-1] = NEGATED[self.force[-1]]
        elif before is not None and before.text in ("do", "please") and self.fresh and not self.core:
            self.force.append(MUST_NOT)
        else:
            self._put(NOT)

    def _never(self, at: int) -> None:
        before = self.marked[at - 1] if at else None
        if before is not None and before.kind == FORCE and self.force and self.force[-1] in NEGATED:
            self.force[-1] = NEGATED[self.force[-1]]
        elif self.fresh and not self.core and not self.times:
            self.inside = False
            if self.force[-1:] != [MUST_NOT]:
                self.force.append(MUST_NOT)
        elif before is None or before.text != "not":
            self._put(NOT)

    def _time(self, mark: str) -> None:
        if not self._governed(mark):
            self.times.add(mark)

    def _be(self, at: int, word: str) -> None:
        verb = self._verb_after(at)
        if self._governed(NOW if word in BE_NOW else word):
            return
        if word in BE_NOW:
            self.times.add(NOW)
        elif word in BE_THEN:
            self.times.add(THEN)
        if word == "being" or (verb.endswith("ing") and verb not in STATES):
            self.times.add(UNDER_WAY)
        if verb and not verb.endswith("ing"):
            self.passive = concept(verb)
        self.fresh = False

    def _verb_after(self, at: int) -> str:
        """Return the participle that an auxiliary goes with: behind adverbs and "not", if it is one."""
        for token in self.marked[at + 1 : at + 5]:
            if token.kind == WORD and (token.text in ADVERBS or token.text in ("not", "never", "yet", "been", "being")):
                continue
            if token.kind == WORD and (is_past(token.text) or token.text in PARTICIPLES or token.text.endswith("ing")):
                return token.text
            break
        return ""

    def _open(self, name: str) -> None:
        """Begin a phrase; one that governs nothing yet is part of the next ("from within")."""
        holder = self.phrases[-1][1] if self.inside else self.core
        if holder and holder[-1] == NOT:  # "to one, not to the other"
            holder.pop()
            name = f"{NOT} {name}"
        self.phrases.append((name, []))
        self.places.append(len(self.core))
        self.inside = True
        self.fresh = False

    def _content(self, word: str) -> None:
        if is_past(word) and not self.after_determiner and not self.ordered and not self.inside:
            self.past = True
        if word in ORDERS and self.fresh and not self.core and not self.after_determiner:
            self.ordered = True
        self._put(concept(word))

    def _put(self, word: str) -> None:
        if self.inside:
            self.phrases[-1][1].append(word)
        else:
            self.core.append(word)
        self.fresh = False


@lru_cache(maxsize=FORMS_KEPT_MAX)
def concept(word: str) -> str:
    """Return what stands for a word and its synonyms."""
    root = stem(IRREGULAR.get(word, word))
    return SYNONYMS.get(root, root)
