"""The words by which a user sets, wishes or lifts a constraint without declaring it. English; all in one place.

Each family is one way to say it. A family that is `anchored` is looked for where a clause begins, behind its openers:
"never push" is a constraint, and "I never push" is a report. Any other one is looked for in the whole sentence.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from strandline.rules.sentence_words import BEFORE, EACH, EVER_SINCE, RULE, YOU, any_of, pattern, word_of


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


# ---------------------------------------------------------------------------------------------- what they are made of


def _cues(text: str) -> tuple[str, ...]:
    return tuple(text.split("|"))


_NO_VERB: Final = word_of(
    "i it this that these those he she they there is are was were be been has have had does did do can could will"
    " would should may might must the a an my your our his her its their let's lets we you not no if when while"
    " what why how who which where to in on at of for with from by yes only also and but or so as some any all"
    " each every both nothing"
)
_BASE: Final = (  # a verb as in a command: no past tense, gerund or third person, and none of mere states
    r"(?!(?:mind|been|was|were|had|did|saw|said|got|went|came|made|took|worked|ever|again|once|before|quite|is"
    r"|has)\b)"
    r"(?!\w*(?:[bcdfgklmnprstvwxyz]|[aeiou][bcdfgklmnprtvwxyz]e)ed\b)"
    r"(?!\w{3,}(?<!br)(?<!str)(?<!spr)ing\b)(?!\w{2,}[^aious'\W]s\b)[a-z][\w'-]*"
)
_COMMAND: Final = (  # a clause that begins with a verb and has no finite one soon after
    rf"(?!{_NO_VERB}\b){_BASE}"
    r"(?! (?:[\w'-]+ ){0,2}(?:needs?|is|are|was|were|has|have|had|does|did|will|can|could|should|would|i|we|they)\b)"
)
_NOT: Final = r"(?:do not|don't|dont|do n't|never)"
_OF_HIMSELF: Final = any_of(  # after "don't": what the user says of himself, or to calm
    word_of(
        "know think need see remember understand care worry bother like want have mind hesitate believe recall feel"
    ),
    word_of("agree love wish mean even really suppose expect forget seem fret panic apologize apologise"),
    r"get (?:me|it|why|how|what)|be (?:silly|sorry|afraid)",
)
_ASK: Final = (
    r"(?:ask|check with|confirm with|consult|tell|notify|inform|warn|ping|wait for|clear it with|run it by)"
    r" (?:me|us|my|our|the|\w+)\b"
)
_FORM: Final = any_of(
    word_of("json yaml xml csv markdown html prose bullets tables euros dollars metric celsius fahrenheit utc"),
    word_of(
        "german french spanish italian portuguese dutch polish russian japanese chinese korean arabic hindi turkish"
    ),
    word_of("swedish danish norwegian finnish czech greek hebrew ukrainian imperative"),
    r"(?:(?:american|british|us|uk|simple|plain) )?english|plain text|bullet points?|full sentences"
    r"|imperial(?: units)?",
    r"(?:lower|upper|title|snake|camel|kebab|pascal)[ _-]?case|(?:present|past) tense|(?:first|third) person",
    r"(?:one|two|three|a few|\d+) (?:short )?(?:sentences?|words?|lines?|paragraphs?)|iso[ -]8601\w*",
)
_SAY: Final = word_of(
    "answer reply respond write speak talk communicate report comment document summarize summarise explain output"
    " format phrase name express quote list state show use"
)
_SAID: Final = word_of(
    "me us it them the all your every any each commit message messages answer answers reply replies response"
    " responses comment comments code doc docs output results date dates time times price prices amount amounts"
    " back only strictly"
)
_PIECES: Final = (
    r"(?:answers?|repl(?:y|ies)|responses?|outputs?|messages?|summar(?:y|ies)|commits?|functions?|lines?|comments?"
    r"|costs?"
    r"|spending|reports?|explanations?|sentences|titles?|changes|diffs?|prs?|pull requests|tests|files?|total)"
)
_BANNED: Final = any_of(
    word_of(
        "forbidden prohibited banned disallowed taboo unacceptable mandatory compulsory obligatory sacrosanct frozen"
    ),
    word_of("confidential read-only off-limits non-negotiable"),
    r"off limits|read only|not (?:allowed|permitted|acceptable|an option|negotiable|to be)|a no-go|out of bounds"
    r"|a must",
    r"a hard (?:limit|requirement|constraint)|capped at|limited to|restricted to|reserved for|internal only",
)
_LIMIT: Final = (
    r"(?:budget|spending|limit|cap|ceiling|maximum|max|minimum|deadline|quota|allowance|threshold|timeout|cut-?off)"
)
_VALUE: Final = (
    r"(?:[$€£]? ?\d|(?:zero|one|two|three|four|five|six|seven|eight|nine|ten|twelve|twenty|fifty|hundred)\b)"
)
_BOUND: Final = any_of(
    r"(?:no|not|never) (?:more|less|fewer|later|earlier|longer|larger|bigger|higher|lower) than",
    r"at (?:the )?(?:most|least)",
    r"(?:must|should|can|may|do|does|to|will|would)(?:n't|not| not| never)? exceed|never exceed",
    r"(?:can't|cannot|don't|doesn't|mustn't|shouldn't|never) (?:go (?:over|above|below)|spend (?:over|more than))",
    r"(?:stays?|keep|kept|remain|total|costs?|spend|pay) (?:\w+ ){0,4}(?:under|below|within|beneath|up to)",
    r"(?:max(?:imum)?|min(?:imum)?)(?: of)?",
)
_I: Final = r"\b(?:i|we)(?:'d| would| do| really| strongly| much| also| actually| always| still| just| definitely){0,3}"
_STRICT: Final = word_of("not never always only stick keep stay avoid refrain remain leave")

# ---------------------------------------------------------------------------------------------- the families

FAMILIES: Final = (
    Family(
        name="prohibition",
        cues=_cues("not|n't|dont|never"),
        pattern=pattern(rf"{_NOT}(?: you)?(?: ever)? (?!{_OF_HIMSELF}\b){_BASE}"),
    ),
    Family(
        name="abstention",
        cues=_cues("avoid|refrain|steer|abstain|hands|away"),
        pattern=pattern(r"(?:avoid|refrain from|steer clear of|abstain from|hands off|stay away from) \S"),
    ),
    Family(
        name="not_to",
        cues=_cues("not to"),
        pattern=pattern(r"(?:try |be sure |take care |be careful |be certain )?not to (?!mention|worry)[a-z]"),
    ),
    Family(
        name="no_thing",
        cues=_cues("no "),
        pattern=pattern(
            r"(?:strictly |absolutely )?no (?:new|more|third[- ]party|external|unnecessary|direct|manual"
            r"|hard-?coded)\b"
            r"(?! (?:questions?|issues?|problems?|errors?|info\w*|time|one))",
            r"(?:strictly |absolutely )?no (?!thing|everything)\w{3,}ing\b(?! (?:is|was|are|to)\b)",
            r"no (?!problem|worr|need|way|thank)(?:[\w'-]+ ){0,5}[\w'-]+(?:!|,? (?:please|whatsoever|allowed)\b)",
            r"there (?:is|are) to be no|there (?:must|shall|should) be no",
        ),
    ),
    Family(
        name="without",
        cues=_cues("without"),
        pattern=pattern(
            r".{0,200}\bwithout (?:first |explicitly )?(?:asking|checking|telling|consulting|informing|confirming"
            r"|notifying)\b",
            r".{0,200}\bwithout (?:(?:my|our|\w+'s|explicit|prior|written|an?|the|any) (?:\w+ )?)?"
            r"(?:ok|okay|approval|permission|consent|confirmation|sign-?off|say-so|review|go-ahead)\b",
        ),
    ),
    Family(
        name="always",
        cues=_cues("always|invariably|only"),
        pattern=pattern(rf"(?:always|invariably|only ever) (?!happy|good)(?:be\b|{_BASE})"),
    ),
    Family(
        name="only",
        cues=_cues("only|exclusively|solely"),
        pattern=pattern(
            rf"(?:only|exclusively|solely) (?!{_NO_VERB}\b|one\b|thing|way|reason|issue|problem|question|\d){_BASE}",
            rf"{_COMMAND} (?:[^,;:]{{0,120}} )?only (?:after|when|once|if|with|from|under|inside|within|via|through"
            rf"|between|on"
            r"|by|as|during|to|in|for|at|the|what|those|files?)\b",
            r"only [^,;:?]{1,80} (?:may|can|should|must|(?:is|are) (?:allowed|permitted|to)) (?!i\b|we\b)",
        ),
    ),
    Family(name="unless", cues=_cues("unless"), pattern=pattern(rf"{_COMMAND} .{{0,200}}\bunless\b")),
    Family(
        name="you_must",
        cues=_cues("you|we |we'|nobody|no one|every|agent|assistant|bot |model|team"),
        pattern=pattern(
            rf"{YOU} (?:must(?:n't)?|shall|shan't|mayn't|shouldn't)\b",
            rf"{YOU} (?:can|should|may|could|will|'ll|would) (?:only|never|always|not)\b",
            rf"{YOU}(?:'re| are) (?:only |strictly |explicitly |never |absolutely )?(?:not )?(?:to (?=[a-z])"
            r"|(?:allowed|permitted|supposed|expected|required|authori[sz]ed|forbidden|prohibited|obliged"
            r"|obligated) )",
            r"(?:nobody|no ?one) (?:may|can|should|could|is to|is allowed to|gets to)\b",
            rf"{YOU} aren't (?:to|allowed|permitted|supposed|authori[sz]ed)\b",
            rf"{YOU} (?:always|never|only) (?!been|was|were|had|get|got)[a-z]",
            rf"{YOU} (?:have|need) to (?:always|never|only|make sure)\b|{YOU}(?:'d| had) better\b",
            r"we (?:don't|do not) (?!have|need|know|want|think|care|see)\w+ .{1,120}\b(?:here|in this (?:repo"
            r"|project|team|company|codebase))\b",
            rf"we (?:don't|do not) (?!{_OF_HIMSELF}\b|do\b|use\b.*\?){_BASE} (?:on|in|to|with) (?:[a-z]+s|prod\w*"
            rf"|main|master)\b",
        ),
    ),
    Family(
        name="must",
        cues=_cues("must|shall|should|only|never|always|stay|remain"),
        pattern=pattern(
            r"(?!(?:there|it|he|she|they|i|something|someone|somebody|these|which|who|what"
            r"|that)\b)[\w\"'`$][^,;:?]{0,120}? "
            r"(?:must(?:n't)?(?! have| be (?:a|an|some|the|my|missing|something|why|wrong|because|due|related|how"
            r"|what|where))"
            r"|shall (?:not )?|should (?:never|only|always)|can (?:only|never) be|(?:needs?|has|have) to (?:always"
            r"|never|only|stay|remain)"
            r"|(?:is|are) (?:never |only |always )to)\b"
        ),
    ),
    Family(
        name="banned",
        cues=_cues(
            "forbid|prohib|banned|disallow|taboo|accept|mandatory|compulsory|obligatory|sacrosanct|frozen"
            "|confidential|read|off|negotia|not |no-go|out of|a must|hard|capped|limited|restricted|reserved|internal"
        ),
        anchored=False,
        pattern=pattern(
            rf"\b(?:is|are|be|stays?|remains?|as|considered)(?: (?:\w+ly|all|also|still|now"
            rf"|always)){{0,3}} {_BANNED}(?![\w-])"
        ),
    ),
    Family(
        name="approval",
        cues=_cues("approv|permission|consent|sign|confirm|ahead|review"),
        anchored=False,
        pattern=pattern(
            r"\b(?:needs?|requires?|must have) (?:my|our|\w+'s|explicit|prior|written|a|an|the"
            r"|at least) (?:[\w-]+ ){0,3}"
            r"(?:approval|permission|consent|sign-?off|confirmation|go-ahead|review(?:er)?s?)\b"
        ),
    ),
    Family(
        name="ever_since",
        cues=_cues(
            "now on|here on|point on|today on|forward|hence|hereafter|future|for the|for all|for every|for this"
            "|time|point|circumstance|case|account|cost|until|unless|matter|whatever|exception|permanently|rule"
            "|default|throughout"
        ),
        anchored=False,
        pattern=pattern(rf"\b{EVER_SINCE}(?!\w)"),
    ),
    Family(name="each", cues=_cues("each|every|all |any "), pattern=pattern(rf"{_COMMAND} .{{0,200}}\b{EACH}")),
    Family(
        name="first",
        cues=_cues("before|first"),
        pattern=pattern(
            rf"{_COMMAND} .{{0,200}}\b{BEFORE}",
            rf"before (?:you )?(?:\w{{3,}}ing|you|each|every|any)\b[^,]{{0,150}}, ?(?:please |always "
            rf"|first )?{_COMMAND}",
            rf"{_ASK}.{{0,60}}\bfirst\b",
        ),
    ),
    Family(
        name="habit",
        cues=_cues("when|time|in case|if you|if we"),
        pattern=pattern(
            r"(?:when(?:ever)?|any ?time|each time|every time|in case|if) (?:you|we)(?:'re|'ve)? "
            r"(?!can\b|can't|cannot|could|would|manage|don't|do not|need (?:me|help|any)|have (?:any|a)|want me"
            r"|think|like)"
            rf"[a-z][^,;]{{0,200}}(?:, ?| - | – | — )(?:then |please |always )?(?!let me know|tell me"
            rf"|feel free){_COMMAND}"
        ),
    ),
    Family(
        name="whenever",
        cues=_cues("whenever|time"),
        anchored=False,
        pattern=pattern(r"\b(?:whenever|every time|each time|any ?time) (?:you|we)\b"),
    ),
    Family(
        name="bear_in_mind",
        cues=_cues("mind|aware|advised|remember|forget|sure|certain|see to it|careful|note"),
        pattern=pattern(
            r"(?:(?:always|do|please|you (?:should|must|need to|have to)|i (?:want|need|would like|'d like) you to"
            r"|let's) ){0,2}"
            r"(?:(?:keep|bear|have) (?:it |this )?in mind|be (?:aware|mindful|advised)|remember"
            r"|don't (?:ever )?forget|never forget"
            r"|do not forget|be (?:sure|certain)|see to it|be careful|note)"
            r"(?: (?:that|to|not|never|always|when|with|the|you|we|our|my|all|no)\b|(?<!note)[:,] ?\w| - )"
        ),
    ),
    Family(
        name="make_sure",
        cues=_cues("make|ensure|see to it"),
        pattern=pattern(
            r"(?:(?:always|do|please|you (?:should|must|need to|have to)|i (?:want|need|would like"
            r"|'d like) you to) ){0,2}"
            r"(?:make (?:absolutely )?(?:sure|certain)|ensure|see to it)(?: that)? (?:to|you|we|nothing|nobody"
            r"|no ?one|no|all|every\w*"
            r"|any\w*|each|they|the|never|not|our|my)\b"
        ),
    ),
    Family(
        name="matters",
        cues=_cues("important|essential|crucial|critical|vital|imperative|mandatory|paramount|necessary"),
        anchored=False,
        pattern=pattern(
            r"\b(?:it(?:'s| is)|it (?:would|will) be) (?:very |really |super |absolutely |extremely |also )?"
            r"(?:important|essential|crucial|critical|vital|imperative|mandatory|paramount|necessary) "
            r"(?:to (?:me|us) |for (?:me|us) )?(?:that (?!i\b)|(?<!me )(?<!us )to (?!me|us|get|have)|you )"
        ),
    ),
    Family(
        name="of_you",
        cues=_cues("you|nobody|no one|every|agent|nothing|all"),
        anchored=False,
        pattern=pattern(
            rf"{_I} (?:want|need|like|ask|prefer|rather|love|hate it if|appreciate it if|be (?:happy|happier|glad"
            rf"|grateful) if)"
            rf"(?: it)?(?: if| that)? (?:you|nobody|no ?one|everyone|the agent|nothing)(?:'d| would"
            rf"| could)? (?:to )?(?:{_STRICT}|"
            r"n't|did ?n[o']t|did not|didn't|don't|do not|wouldn't)\b",
            rf"{_I} (?:expect|require|insist|demand|trust)(?: on| that)? (?:you|nobody|no ?one|everyone|the agent"
            rf"|all|every\w*)\b",
            r"\bit (?:would|'d) be (?:great|nice|good|better|best|ideal|lovely|helpful|wonderful"
            r"|appreciated) if (?:you|we|nobody|no one) "
            rf"(?:could |would |did |can )?(?:n't |please )?(?:{_STRICT}|make sure)\b",
            rf"{_I} (?:want|need|like|ask) you to be (?:careful|strict|aware|mindful)",
        ),
    ),
    Family(
        name="preference",
        cues=_cues("rather|prefer|insist|not|n't|dont|only|hate|willing|open"),
        anchored=False,
        pattern=pattern(
            rf"{_I} (?:rather (?:not|have|you|we|it|keep|use|avoid)|prefer(?! to (?:talk|speak))|insist on)\b",
            rf"{_I} ?(?:don't|do not|dont|won't|will not) (?:ever |really )?(?:want|wish|accept|tolerate|allow)"
            r"(?! to (?:mess|bother|miss|lose|forget|break|be (?:a|rude|that)|know|make a mistake|waste|cause|sound"
            r"|get|go into"
            r"|have to|risk|leave|take|deal|pressure|overlook|impose)\b)\b",
            rf"{_I} (?:can |could |will |would )?only (?:want|accept|fly|use|take|work|support|eat)\b",
            r"\bmy (?:strong )?preference (?:is|would be)\b",
            r"\bi(?:'m| am) (?:only (?:interested in|open to|willing|looking for)|not (?:willing|open|okay|ok"
            r"|comfortable))\b",
            r"\bi(?:'d| would) (?:really )?(?:hate|not like) (?:it if|to see|for)\b",
        ),
    ),
    Family(
        name="favour",
        cues=_cues("prefer|favor|favour"),
        pattern=pattern(r"(?:always )?(?:prefer|favou?r) (?!to\b|not\b)\S"),
    ),
    Family(
        name="form",
        cues=_cues(" in | as | with | using |keep|make|limit|cap|hold|restrict|shorten|use "),
        pattern=pattern(
            rf"(?:always |only )?{_SAY}\b(?: {_SAID}){{0,5}} (?:in|as|with|using) (?:the |a |an |short |only "
            rf"|valid ){{0,3}}{_FORM}\b",
            rf"(?:keep|make|limit|cap|hold|restrict|shorten) (?:(?:the|your|all|each|every|any|my"
            rf"|our) ){{0,2}}(?:\w+ )?{_PIECES} (?:as )?"
            r"(?:short|brief|concise|terse|small|simple|minimal|focused|under|below|to|within|at|above|polite"
            r"|formal|in|backwards?)\b",
            r"use (?:only )?(?:tabs|spaces|\d+ spaces|single quotes|double quotes|british|american|metric|snake"
            r"|camel|type hints)\b",
        ),
    ),
    Family(
        name="keep_so",
        cues=_cues("keep|leave|hold"),
        pattern=pattern(
            r"(?:keep|leave|hold) (?!it as|it alone|going|up the)(?:[\w'./`-]+ ){1,8}?(?:alone|untouched|as[- ]is"
            r"|as (?:it|they) (?:is|was|are)"
            r"|unchanged|out of|private|secret|confidential|intact|(?:backwards?[- ])?compatible|green|clean"
            r"|passing|up to date|in sync"
            r"|stable|consistent|anonymous|offline|under|below|within|to yourself|away from)\b"
        ),
    ),
    Family(
        name="scope",
        cues=_cues(
            "stay|work|remain|operat|keep|limit|restrict|confine|stick|adhere|conform|follow|obey|respect|comply"
            "|abide|hono|nothing|treat|consider|regard"
        ),
        pattern=pattern(
            r"(?:stay|work|remain|operate|keep) (?:strictly |only )?(?:out of|within|inside|away from|off|under"
            r"|below|in the|on the)\b",
            r"(?:limit|restrict|confine) (?:yourself|your|all|any|the|changes|edits|every\w*|access)\b.{0,80}\bto\b",
            r"(?:stick|adhere|conform) (?:strictly |closely )?to\b",
            r"(?:follow|obey|respect|comply with|abide by|honou?r) (?:the|our|my|these|all|existing) (?:\w+ ){0,3}"
            rf"(?:{RULE}|style|guide|standards?|format|pattern|practices?|order|limits?|law|gdpr|spec)",
            r"nothing (?:\w+ ){0,5}(?:without|before|until|unless|outside|except)\b",
            r"(?:treat|consider|regard) .{1,80}\bas\b",
        ),
    ),
    Family(
        name="limit",
        cues=_cues(
            "budget|spend|limit|cap|ceiling|max|min|deadline|quota|allowance|threshold|timeout|cut|than|most"
            "|least|exceed|over|above|below|under|within|up to"
        ),
        anchored=False,
        pattern=pattern(
            rf"\b{_LIMIT}(?: [\w-]+){{0,4}}? (?:is|are|of|must be|stays at|remains|will be|would be|=|at)"
            rf"(?: (?:now|still|about|strictly|exactly|only|set (?:at|to)|max|at most)){{0,3}} {_VALUE}",
            rf"\b{_BOUND} (?:(?:a |the )?(?:total|sum|budget|maximum|limit|fee|price) of )?{_VALUE}",
            rf"\b{_LIMIT}: ?{_VALUE}",
        ),
    ),
    Family(
        name="condition",
        cues=_cues("long as|provided|condition|but only|except"),
        anchored=False,
        pattern=pattern(
            r"\b(?:as long as|so long as|provided(?: that)?|on (?:the )?condition that|but only|except (?:for|when"
            r"|if)) [^?]{0,100}"
            r"(?:\bnot\b|n't|exceed|under|below|within|direct|approved|green|pass\w*|\bno |without)"
        ),
    ),
    Family(
        name="rule",
        cues=_cues(
            "rule|constraint|requirement|restriction|polic|guideline|convention|condition|principle|preference"
            "|order|must-have|stipulation|hard"
        ),
        anchored=False,
        pattern=pattern(
            r"\b(?:my|our|the|one|a|house|hard|golden|project|team|company|standing|another|new|important|key|only"
            r"|strict|firm|few|two|three"
            rf"|some|additional|first|general|basic|ground|main) (?:\w+ )?{RULE}(?: (?:here|for (?:this|the"
            rf"|you)(?: \w+)?|from me"
            r"|to (?:follow|remember|keep))){0,2} ?(?:is\b:? ?(?!that (?:it|we)\b)|are\b|: ?\w|–|—| - )",
            rf"^{RULE} ?(?:#?\d+ ?)?(?:: ?\w| - |–|—)|\b(?:by|per|company|our|house) policy\b",
            rf"\bthat(?:'s| is) (?:a|an|the|my|our) (?:\w+ )?(?:hard |strict )?{RULE}\b|\bhard (?:limit|cap)\b"
            rf"|\bground rules?\b",
        ),
    ),
    Family(
        name="obligation",
        cues=_cues("have|need|want|has|should|ought"),
        sure=False,
        pattern=pattern(rf"{YOU} (?:(?:will |'ll )?(?:also )?(?:have|need|want|has) to|should|ought)\b"),
    ),
    Family(
        name="should",
        cues=_cues("should|need|has|have|ought"),
        sure=False,
        pattern=pattern(
            r"(?!(?:there|it|i|something|someone|which|who|what)\b)[\w\"'`$][^,;:?]{0,100} (?:should|needs? to"
            r"|has to|ought to)\b"
        ),
    ),
    Family(
        name="no",
        cues=_cues("no "),
        sure=False,
        pattern=pattern(r"no (?!problem|worr|thank|idea|need|way)[\w-]+(?: [\w'-]+){0,5}(?=[,;)]|$)"),
    ),
    Family(
        name="lets",
        cues=_cues("let"),
        sure=False,
        pattern=pattern(r"(?:let's|lets|let us) (?:not|never|only|always|keep|stick|avoid|make sure|stay)\b"),
    ),
    Family(
        name="wish",
        cues=_cues("want|need|like|ask|would be|try|ideally|sure|stop"),
        sure=False,
        pattern=pattern(
            rf"{_I} (?:want|need|like|ask) (?:you|the)|it would be (?:nice|great|good|better|best) (?:if|to|not)"
            rf"|(?:try to|ideally|make sure|stop \w+ing)\b"
        ),
    ),
)
ONCE: Final = pattern(  # what is asked for once; it makes any family doubtful
    r"\b(?:for now|this (?:one )?time|just (?:this )?once|for the moment|for this (?:one|commit|step|change)"
    r"|right now|as a one-off|temporarily)\b"
)

RULE_HEADING: Final = pattern(
    rf"(?:\b{RULE}|\b(?:remember|keep in mind|always|never|don'?t|do not|must|must not|only|avoid|forbidden"
    rf"|not allowed|off[- ]limits"
    r"|prohibited|no-?gos?|important|from now on|going forward|at all times|make sure))\b[^:\n]{0,60}:$"
)
