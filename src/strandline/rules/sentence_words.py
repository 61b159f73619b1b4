"""How English puts a demand: its clauses, what they begin with, and polite questions.

Blocks for the patterns of `rules.standing_words` and `rules.lifting_words`, which read one short sentence at a time.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """One way to state a constraint."""

    name: str
    cues: tuple[str, ...]  # one of them stands in all that the pattern finds; they are found faster
    pattern: re.Pattern[str]
    anchored: bool = True
    sure: bool = True  # else it may be meant for once only

    def states(self, said: str, starts: Sequence[int]) -> bool:
        """Tell whether a sentence, whose clauses begin at `starts`, states a constraint in this way."""
        if self.anchored:
            return any(self.pattern.match(said, at) for at in starts)
        return self.pattern.search(said) is not None


def cues_of(text: str) -> tuple[str, ...]:
    """Return the cues of a family from a text that is a list of them, parted by `|`."""
    return tuple(text.split("|"))


def any_of(*alternatives: str) -> str:
    """Return a pattern of any of the alternatives."""
    return f"(?:{'|'.join(alternatives)})"


def word_of(text: str) -> str:
    """Return a pattern of any of the words of a text that is a list of words."""
    return any_of(*text.split())


def pattern(*alternatives: str) -> re.Pattern[str]:
    """Compile a pattern of any of the alternatives, in capitals or not."""
    return re.compile("|".join(alternatives), re.IGNORECASE)


EVER_SINCE: Final = any_of(  # from now on, and in all cases
    r"from (?:now|here|this point|today) on(?:wards?| out| in)?",
    r"(?:going|moving) forward(?! with| to)",
    "henceforth",
    "hereafter",
    r"in (?:the )?future(?= *(?:[,.;:!)]|$|please\b|you\b|we\b|don't\b|do not\b|always\b|never\b|only\b|just\b"
    r"|and\b))",
    r"for (?:the (?:rest|remainder|duration) of|all future|every future|this (?:whole|entire))",
    r"at all times",
    r"at (?:no|any) (?:time|point)",
    r"under (?:no|any|all) circumstances?",
    r"in no case|on no account|at (?:any|all) costs?",
    r"until (?:i (?:say|tell|ask)|we (?:say|tell|agree|decide)|told otherwise|further notice)",
    r"unless (?:i|we) (?:say|tell|ask|agree|explicitly|specifically)|unless (?:told|asked|instructed|stated"
    r"|specified)",
    r"no matter (?:what|how|who)|whatever (?:else )?(?:happens|you do)",
    r"(?:without|no) (?:exceptions?|fail)|, always$|permanently|as a (?:general )?rule|by default|in (?:all|any"
    r"|every) cases?",
    r"throughout (?:this|the|our) \w+",
)
_OPENERS: Final = any_of(  # a clause may begin with them before it says what it says
    word_of(
        "please pls plz kindly and but also so ok okay just then or yes yeah yep hey hi oh well btw again actually"
    ),
    word_of(
        "basically important importantly nb fyi ps reminder because since that plus though still now remember note"
    ),
    word_of(
        "seriously really strictly definitely absolutely therefore thus instead otherwise meanwhile ideally lastly"
    ),
    word_of("finally first firstly second secondly third thirdly generally obviously hence"),
    r"by the way|to be clear|for the record|in general|generally speaking|above all|first of all|most importantly",
    r"(?:this is )?(?:very |really )?important|heads[- ]up|just so you know|so you know|for your information",
    r"as (?:a reminder|always|before|ever|usual|agreed|discussed|i said|mentioned)(?: (?:before|earlier|already))?",
    r"(?:my |the |one |the only |our )?(?:only )?(?:more |last |other |hard |firm )?(?:thing|rule|condition|request"
    r"|constraint)"
    r"(?: though)?(?: number \w+)?",
    r"(?:if|where|whenever|wherever) (?:at all )?possible|of course|during (?:this|the) \w+"
    r"|(?:you can )?do whatever you (?:like|want)",
    r"i (?:repeat|mean it|insist|(?:think|guess|believe)(?: that)?)|we agreed(?: that)?|it(?:'s| is) agreed(?: that)?",
    EVER_SINCE,
)
LEAD: Final = pattern(rf"(?:{_OPENERS}(?:[,:;.!]| [–—-]){{0,2}} +)*")
CLAUSE: Final = pattern(
    r"[,;:(–—] ?(?:\d\) )?", r" - ", r" (?P<bare>and|but|or) ", r" (?:so|then|because|that|though) ", r"\.\.\. "
)
SUBJECT: Final = pattern(  # before a bare "and" or "but": what follows has the same subject, and is no command
    r"\b(?:i|we|they|it|he|she|which|that|who|where|is|are|was|were|would|has|had|does|did|may|might)\b"
)
YOU: Final = r"(?:you|we|nobody|no ?one|everyone|everybody|the (?:agent|assistant|bot|model|team)|agents)"
UNIT: Final = word_of(  # of work: what is done before, after or with every one of them is a habit
    "time commit change pr reply response answer message step test run release deploy deployment merge push pull edit"
    " session request task day week hour morning evening night file function class method query migration update report"
)
EACH: Final = any_of(
    r"(?:before|after|prior to|following|upon) (?:each|every|any|all)\b",
    rf"(?:with|on|for|in|at|to)? ?(?:each|every) (?:single |new )?(?:{UNIT}|\w+day)\b",
    rf"(?:with|on|for|in|at|to) (?:all|any) (?:new |future )?{UNIT}s?\b",
)
BEFORE: Final = (
    r"before (?:you |we )?"
    r"(?:\w{3,}ing|you|anything|(?:the|a|an|our) (?:\w+ )?(?:release|merge|push|deploy\w*|commit|review))\b"
)
RULE: Final = (
    r"(?:rules?|constraints?|requirements?|restrictions?|polic(?:y|ies)|guidelines?|conventions?|conditions?"
    r"|principles?"
    r"|preferences?|standing orders?|must-haves?|stipulations?)"
)

# ---------------------------------------------------------------------------------------------- questions

REQUEST: Final = pattern(  # a question that asks for a habit
    r"(?:(?:hey|hi|so|and|also|please|ok|but|btw|by the way|oh|well|one more thing)[,:]? )*"
    r"(?:can|could|would|will|can't|couldn't) (?:you|we)(?: all)?(?: (?:also|please|kindly)){0,2} "
    r"(?P<rest>(?:be so kind as to |make it a (?:rule|habit) to |agree to |promise to |please )?"
    r"(?:(?:always|never|not|only|make sure|ensure|avoid|stick|refrain|remember|be sure|limit|restrict|stay|stop)\b.*"
    rf"|[a-z]+\b.{{0,200}}\b(?:{EVER_SINCE}|{EACH}|only (?:after|when|once|if|with|in|under)|before (?:you|each"
    rf"|every|any)|unless|whenever)\b.*))",
    r"(?:(?:hey|so|and|also|please|ok|but)[,:]? )*(?:would|do) you mind "
    r"(?P<mind>(?:not|only|always|never|keeping|sticking|staying|leaving|avoiding|asking)\b.*)",
)
TAG_QUESTION: Final = pattern(
    r"[,;–—-]? ?(?:ok(?:ay)?|right|alright|all right|yeah|please|got it|understood|deal|(?:is that )?clear|agreed"
    r"|will you|would you"
    r"|can you do that|if you don't mind)\?+$"
)
QUESTION: Final = pattern(
    r"(?:(?:and|but|so|also|hmm+|ok(?:ay)?|wait|question|hey|well|sorry|oh|eh+|or|then)[,:.]* )*"
    r"(?:why|how|what(?! you (?:must|should|may))|where|who|which|whose|is|are|was|were|does|do (?:you|we|i|they)"
    r"|did|has|have (?:you|we|i)|had"
    r"|am i|isn't|aren't"
    r"|doesn't|didn't|wasn't|should (?:i|we|it|this|that)|shall (?:i|we)|could it|would it|can (?:it|i|this|that)"
    r"|may i|any (?:idea|chance))\b"
)
