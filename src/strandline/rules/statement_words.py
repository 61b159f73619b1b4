"""The words by which a statement binds, hedges, excepts, lifts or reports. English; what `rules.statements` reads with.

A phrase is written as it stands behind `rules.values.tokens`: lower case, contractions in full.
"""

from __future__ import annotations

from typing import Final

from strandline.rules.synonyms import IRREGULAR
from strandline.rules.wording import stem, word_set

MUST: Final = "must"
MUST_NOT: Final = "must not"
SHOULD: Final = "should"
SHOULD_NOT: Final = "should not"
MAY: Final = "may"
MAY_NOT: Final = "may not"
CAN: Final = "can"
CAN_NOT: Final = "can not"
NOT_NEEDED: Final = "need not"
NEGATED: Final = {MUST: MUST_NOT, SHOULD: SHOULD_NOT, MAY: MAY_NOT, CAN: CAN_NOT}
BINDING: Final = frozenset({MUST, MUST_NOT})
PERMITTING: Final = frozenset({MAY, CAN, NOT_NEEDED})
NEGATIVE: Final = frozenset({MUST_NOT, SHOULD_NOT, MAY_NOT, CAN_NOT})

_BE: Final = ("is", "are", "be", "been", "remain", "remains", "stays")


def _phrases(text: str) -> list[tuple[str, ...]]:
    return [tuple(phrase.split()) for phrase in text.split(" | ")]


def _with_be(text: str) -> list[tuple[str, ...]]:
    adverbs = ((), ("strictly",), ("absolutely",), ("explicitly",), ("still",), ("also",))
    return [(be, *adverb, *phrase) for be in _BE for adverb in adverbs for phrase in _phrases(text)]


FORCE_PHRASES: Final[dict[tuple[str, ...], str]] = {
    **dict.fromkeys(_phrases("must | has to | have to | needs to | need to | shall | has got to | have got to"), MUST),
    **dict.fromkeys(_with_be("required to | obliged to | to | supposed to always"), MUST),
    **dict.fromkeys(_with_be("required | mandatory | obligatory | compulsory | a must"), MUST),
    **dict.fromkeys(_phrases("make sure to | make sure that | make sure | ensure that | ensure | be sure to"), MUST),
    **dict.fromkeys(_phrases("it is mandatory to | it is required to | always | at all times | in every case"), MUST),
    **dict.fromkeys(_phrases("under all circumstances | in all cases | without fail | invariably"), MUST),
    **dict.fromkeys(_with_be("forbidden to | prohibited from | banned from | not allowed to"), MUST_NOT),
    **dict.fromkeys(_with_be("forbidden | prohibited | banned | disallowed | off limits | not permitted"), MUST_NOT),
    **dict.fromkeys(_with_be("not allowed | never allowed | never permitted | a no go | out of bounds"), MUST_NOT),
    **dict.fromkeys(_phrases("it is forbidden to | it is prohibited to | it is not allowed to"), MUST_NOT),
    **dict.fromkeys(_phrases("under no circumstances | on no account | in no case | at no time"), MUST_NOT),
    **dict.fromkeys(_phrases("no one may | nobody may | no one must | nobody must | no one is allowed to"), MUST_NOT),
    **dict.fromkeys(_phrases("nobody is allowed to | no one can | nobody can | refrain from | not ever"), MUST_NOT),
    **dict.fromkeys(_phrases("should | ought to | is recommended to | are recommended to | is supposed to"), SHOULD),
    **dict.fromkeys(_phrases("are supposed to | is expected to | are expected to | had better"), SHOULD),
    **dict.fromkeys(_with_be("recommended | advisable | encouraged | preferred"), SHOULD),
    **dict.fromkeys(_with_be("discouraged | not recommended | inadvisable"), SHOULD_NOT),
    **dict.fromkeys(_phrases("no one should | nobody should"), SHOULD_NOT),
    **dict.fromkeys(_phrases("may | might"), MAY),
    **dict.fromkeys(_with_be("allowed to | permitted to | free to | ok to | okay to | fine to | welcome to"), MAY),
    **dict.fromkeys(_with_be("allowed | permitted | ok | okay | fine | acceptable | optional | possible"), MAY),
    **dict.fromkeys(_phrases("it is ok to | it is okay to | it is fine to | feel free to"), MAY),
    **dict.fromkeys(_phrases("can | could"), CAN),
    **dict.fromkeys(_phrases("need not | does not need to | do not need to | does not have to"), NOT_NEEDED),
    **dict.fromkeys(_phrases("do not have to | no need to | need not to"), NOT_NEEDED),
    **dict.fromkeys(
        _with_be("not required to | not required | not needed | not necessary | not mandatory"), NOT_NEEDED
    ),
}

FUTURE_PHRASES: Final = frozenset(
    _phrases(
        "will | is going to | are going to | plans to | plan to | is planned to | are planned to | is scheduled to"
        " | are scheduled to | is about to | are about to | intends to | intend to | is due to | are due to | would"
        " | is set to | are set to"
    )
)

COMPARISONS: Final[dict[tuple[str, ...], str]] = {
    **dict.fromkeys(_phrases("at least | no less than | no fewer than | not less than | a minimum of"), "≥"),
    **dict.fromkeys(_phrases("at most | no more than | not more than | up to | a maximum of | at the most"), "≤"),
    **dict.fromkeys(_phrases("more than | greater than | above | over"), ">"),
    **dict.fromkeys(_phrases("less than | fewer than | below | under"), "<"),
}

PARTICIPLES: Final = frozenset(
    [
        "run",
        "sent",
        "written",
        "built",
        "made",
        "given",
        "begun",
        "taken",
        "gone",
        "seen",
        "found",
        "left",
        "kept",
        "lost",
        "paid",
        "sold",
        "told",
        "held",
        "led",
        "met",
        "bought",
        "brought",
        "thought",
        "said",
        "spoken",
        "chosen",
        "broken",
        "known",
        "grown",
        "thrown",
        "withdrawn",
        "won",
        "spent",
        "understood",
        "shown",
        "done",
        "set",
        "put",
        "cut",
        "hit",
        "read",
        "split",
        "reset",
        "shut",
        "let",
        "cast",
        "broadcast",
        "overwritten",
        "rewritten",
        "rebuilt",
    ]
)
_NOT_PAST: Final = word_set(
    "need needed speed seed feed embed shed red bed hundred indeed exceed proceed succeed bleed"
)
ADVERBS: Final = word_set(
    "also still already now strictly explicitly absolutely definitely clearly firmly simply fully"
)
"""Between an auxiliary and its verb, and of no weight by themselves. "Only", "just", "usually" are not among them."""

HARMLESS: Final = (
    word_set(
        "the a an of this that these those its their his her our your my you we i us it they he she there which"
        " who whom"
        " please ever whatsoever so very i.e namely own such"
    )
    | ADVERBS
)
"""Words that may come and go without a change of what is said."""

AGENTS: Final = word_set("agent agents assistant team everyone everybody anyone")
"""Whom a rule of this memory binds anyway: an order to nobody in particular may name them."""

PREPOSITIONS: Final = word_set(
    "on at in into onto to from by with without before after until till during for via over under above below between"
    " against about per within across toward towards except unless if when whenever while because as than since off"
    " despite beside besides behind inside outside beyond upon once before-end"
)
CLAUSES: Final = word_set(
    "if unless when whenever while because until till once before after since except before-end than as"
)
"""Those of the prepositions that a clause with a verb of its own may follow."""
STATES: Final = word_set("pending outstanding missing waiting awaiting existing remaining failing nothing anything")
"""Words in -ing that say how something is, and no work under way."""
ORDERS: Final = word_set(
    "add allow answer append apply archive ask assign attach back base build bump buy cache call cancel change"
    " charge check"
    " clean close commit compress confirm connect convert copy count create cut delete deploy describe do document drop"
    " email encode encrypt end ensure escalate export fetch file filter fix flag follow format freeze generate get give"
    " handle hash ignore import include index inform install invoke keep label launch leave limit link list load"
    " lock log"
    " make mask merge migrate mock monitor move name notify open order pass pay pin place post prefix prepare"
    " preserve print"
    " process publish pull push put quote read rebase record redact refer refund register reject release remove rename"
    " render replace reply report reproduce reserve resolve respect restart restore restrict retain retry return reuse"
    " revert review rewrite roll rotate round route run sanitize save scan schedule search send serve set share"
    " show sign"
    " skip sort split squash start state stay stick stop store submit switch sync tag take target tell terminate test"
    " throttle tighten treat trim truncate turn update upload use validate verify version wait warn wrap write"
)
"""Verbs with which an order begins. A noun of the same form at the start of a sentence has a subject's verb"
" behind it."""

BE_NOW: Final = word_set("is are am remains remain stays")
BE_THEN: Final = word_set("was were")
BE: Final = BE_NOW | BE_THEN | word_set("be been being")
DO: Final = word_set("do does")
HAVE: Final = word_set("has have")

GUARDS: Final = word_set("except unless if when whenever only until till before-end while once provided")
"""What narrows a statement: a new one weakens it."""
HEDGES: Final = word_set(
    "probably perhaps maybe possibly likely presumably apparently allegedly reportedly supposedly roughly about around"
    " approximately usually normally generally typically mostly often sometimes occasionally preferably ideally"
    " tentative"
    " tentatively try tries tried attempt avoid avoided consider considered aim hope hopes hoped wish wishes"
    " prefer prefers"
    " preferred plan planned suggest suggests suggested propose proposed recommend recommends recommended think"
    " thinks seem"
    " seems believe believes guess unclear unsure optional optionally nearly almost some somewhat temporarily currently"
    " initially expected appears rarely seldom"
)
STATUSES: Final = frozenset(
    stem(word)
    for word in [
        "pending",
        "open",
        "approved",
        "rejected",
        "closed",
        "resolved",
        "done",
        "failed",
        "passed",
        "blocked",
        "cancelled",
        "active",
        "inactive",
        "running",
        "stopped",
        "queued",
        "scheduled",
        "started",
        "finished",
        "completed",
        "draft",
        "final",
        "confirmed",
        "unconfirmed",
        "denied",
        "granted",
        "revoked",
        "enabled",
        "disabled",
        "unresolved",
        "ready",
        "merged",
        "deployed",
        "released",
        "published",
        "awaiting",
        "waiting",
        "paid",
        "unpaid",
        "expired",
        "valid",
        "invalid",
        "locked",
        "unlocked",
        "green",
        "red",
        "critical",
        "low",
        "high",
        "medium",
    ]
)

LEAD_INS: Final = tuple(
    sorted(
        (
            tuple(phrase.split())
            for who in ("user", "customer", "client", "lead", "owner", "operator", "maintainer", "team", "")
            for said in [
                "said that",
                "said to",
                "said",
                "says that",
                "says to",
                "says",
                "stated that",
                "stated",
                "asked us to",
                "asked to",
                "asked that",
                "asks to",
                "insisted that",
                "insisted on",
                "insisted",
                "insists that",
                "insists",
                "demanded that",
                "demands that",
                "instructed",
                "instructed us to",
                "instructed that",
                "instructed the agent to",
                "told us to",
                "told us that",
                "told the agent to",
                "asked the agent to",
                "requires that",
                "required that",
                "made clear that",
                "made it clear that",
                "reminded us to",
                "reminded us that",
                "noted that",
                "confirmed that",
                "wrote",
                "wrote that",
                "stressed that",
                "emphasized that",
                "decided that",
                "ruled that",
                "specified that",
                "reported that",
                "reports that",
                "mentioned that",
                "stipulated that",
            ]
            for phrase in ([f"the {who} {said}", f"{who} {said}"] if who else [f"it was {said}"])
            if who or said.endswith(" that")
        ),
        key=len,
        reverse=True,
    )
)
"""How a summary opens a report of what was said. What stands behind it is the statement."""
OPENERS: Final = tuple(
    sorted(
        _phrases(
            "remember that | remember to | remember | keep in mind that | keep in mind to | keep in mind | note that"
            " | note | important | reminder | rule | constraint | hard rule | hard constraint | fact | as agreed"
            " | as instructed | as requested | as told | as before |"
            " as a rule"
            " | standing rule | standing constraint | requirement | decision | from now on | it holds that | it is"
            " a fact"
            " that | the rule is that | the rule is to | the rule is | the constraint is that | the constraint is"
            " | the constraint is to | one rule | one constraint | it is essential to | it is essential that"
            " | it is important to | it is important that | it is agreed that | it was agreed that | per the user"
            " | according to the user | also | and | so | in addition | furthermore | moreover | by the way"
            " | as the user said | as the user put it | as stated | as noted | in short | in force | still in force"
            " | the user | user | message | note to self | warning | attention | context | background | status | update"
            " | summary | result"
        ),
        key=len,
        reverse=True,
    )
)
"""What may stand before a statement, with or without a colon, and says nothing of its own."""


def is_past(word: str) -> bool:
    """Tell whether a word by itself has the form of a past tense."""
    return word in IRREGULAR or (word.endswith("ed") and len(word) > 4 and word not in _NOT_PAST)


ANTONYMS: Final = {
    one: other
    for pair in ("with without", "before after", "inside outside", "until after", "from to", "≥ ≤", "> <", "≤ >", "≥ <")
    for one, other in (pair.split(), pair.split()[::-1])
}
"""Prepositions and comparisons of which the one in the place of the other turns a statement round."""
LABELS: Final = word_set(
    "rule rules constraint constraints fact facts note notes requirement requirements decision decisions policy"
    " policies"
    " preference preferences instruction instructions directive reminder agreement statement condition conditions limit"
    " goal goals context status user lead owner customer client message said says say wrote writes put stated"
    " states asked"
    " told insisted confirmed noted reported quote quoted verbatim following remember important memory"
    " event setting settings configuration parameters known details info summary progress"
)
"""One of them stands before the colon of what only announces a statement: "Standing constraint 3: …", "Dana"
" wrote: …"."""

TAKES_BACK: Final = word_set(
    "not no never none nobody neither nor without false falsely wrong wrongly untrue incorrect mistaken mistakenly myth"
    " misquoted deny denies denied doubt doubts doubted reject rejects rejected refuse refused decline declined"
    " disagree"
    " disagrees disagreed dispute disputes disputed if unless until till whether except exception exempt only but"
    " however"
    " although though formerly previously originally initially once was were been lifted waived obsolete rescinded"
    " relaxed"
    " superseded repealed outdated overridden overruled void moot ignore ignored ignores disregard disregarded forget"
    " forgot dropped drop drops withdrawn withdrew revoked cancelled canceled expired ended suspended reversed invalid"
    " retracted abandoned discarded removed replaced hypothetical hypothetically imagine imagined suppose supposing"
    " suggested suggests suggest proposed proposes propose proposal considered consider considering discussed debated"
    " wondered joked idea ideas draft example examples maybe perhaps possibly probably might may could would should"
    " supposedly allegedly rumoured rumored unclear unsure uncertain unconfirmed optional optionally temporarily"
    " historically outdated deprecated legacy past instead rather stop stopped stops cease ceased used want wanted"
    " wish wished hoped hope"
)
"""Next to a quoted fact, in one sentence with it, each of these may mean that it does not hold, or only in part."""
