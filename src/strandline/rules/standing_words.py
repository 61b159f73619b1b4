"""The families of wordings by which a user states a constraint without declaring it. English.

Those that command stand in `rules.command_words`. Here are those that are looked for in the whole sentence, and those
that leave it doubtful whether more than this once is meant.
"""

from __future__ import annotations

from typing import Final

from strandline.rules.command_words import COMMANDS
from strandline.rules.sentence_words import EVER_SINCE, RULE, YOU, Family, any_of, cues_of, pattern, word_of

_BANNED: Final = any_of(
    word_of(
        "forbidden prohibited banned disallowed taboo unacceptable mandatory compulsory obligatory sacrosanct frozen"
    ),
    word_of("confidential read-only off-limits non-negotiable"),
    r"off limits|read only|not (?:allowed|permitted|acceptable|an option|negotiable|to be|(?:ok|okay|fine) to)",
    r"a no-go|out of bounds|a must",
    r"a hard (?:limit|requirement|constraint)|capped at|limited to|restricted to|reserved for|internal only",
)
_LIMIT: Final = (
    r"(?:budget|spending|limit|cap|ceiling|maximum|max|minimum|deadline|quota|allowance|threshold|timeout|cut-?off)"
)
_VALUE: Final = (
    r"(?:[$€£]? ?\d|(?:zero|one|two|three|four|five|six|seven|eight|nine|ten|twelve|twenty|fifty|hundred|midnight"
    r"|noon"
    r"|(?:mon|tues|wednes|thurs|fri|satur|sun)day)\b|(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]* \d)"
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


_STATEMENTS: Final = (
    Family(
        name="banned",
        cues=cues_of(
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
        cues=cues_of("approv|permission|consent|sign|confirm|ahead|review"),
        anchored=False,
        pattern=pattern(
            r"\b(?:needs?|requires?|must have) (?:my|our|\w+'s|explicit|prior|written|a|an|the"
            r"|at least) (?:[\w-]+ ){0,3}"
            r"(?:approval|permission|consent|sign-?off|confirmation|go-ahead|review(?:er)?s?)\b"
        ),
    ),
    Family(
        name="ever_since",
        cues=cues_of(
            "always|fail|now on|here on|point on|today on|forward|hence|hereafter|future|for the|for all"
            "|for every|for this|time|point|circumstance|case|account|cost|until|unless|matter|whatever|exception"
            "|permanently|rule|default|throughout"
        ),
        anchored=False,
        pattern=pattern(rf"\b{EVER_SINCE}(?!\w)"),
    ),
    Family(
        name="whenever",
        cues=cues_of("whenever|time"),
        anchored=False,
        pattern=pattern(r"\b(?:whenever|every time|each time|any ?time) (?:you|we)\b"),
    ),
    Family(
        name="matters",
        cues=cues_of("important|essential|crucial|critical|vital|imperative|mandatory|paramount|necessary"),
        anchored=False,
        pattern=pattern(
            r"\b(?:it(?:'s| is)|it (?:would|will) be) (?:very |really |super |absolutely |extremely |also )?"
            r"(?:important|essential|crucial|critical|vital|imperative|mandatory|paramount|necessary) "
            r"(?:to (?:me|us) |for (?:me|us) )?(?:that (?!i\b)|(?<!me )(?<!us )to (?!(?:me|us|get|have)\b)|you )"
        ),
    ),
    Family(
        name="of_you",
        cues=cues_of("you|nobody|no one|every|agent|nothing|all"),
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
            r"\b(?:i|we)(?:'m| am|'re| are|'d| would| must| have to){0,2} (?:like to )?(?:ask|asking|beg|begging"
            r"|urge|urging|order"
            rf"|ordering|instruct|instructing|tell|telling|insist|insisting)(?: that)? you (?:to )?{_STRICT}\b",
            r"\b(?:i|we) (?:must|have to) insist\b",
        ),
    ),
    Family(
        name="preference",
        cues=cues_of("rather|prefer|insist|not|n't|dont|only|hate|willing|open"),
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
        name="limit",
        cues=cues_of(
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
        cues=cues_of("long as|provided|condition|but only|except"),
        anchored=False,
        pattern=pattern(
            r"\b(?:as long as|so long as|provided(?: that)?|on (?:the )?condition that|but only|except (?:for|when"
            r"|if)) [^?]{0,100}"
            r"(?:\bnot\b|n't|exceed|under|below|within|direct|approved|green|pass\w*|\bno |without)"
        ),
    ),
    Family(
        name="rule",
        cues=cues_of(
            "rule|constraint|requirement|restriction|polic|guideline|convention|condition|principle|preference"
            "|order|must-have|stipulation|hard|make|mind|following|this|these|how we|note|instruction"
        ),
        anchored=False,
        pattern=pattern(
            r"\b(?:my|our|the|one|a|house|hard|golden|project|team|company|standing|another|new|important|key|only"
            r"|strict|firm|few|two|three"
            rf"|some|additional|first|general|basic|ground|main) (?:\w+ )?{RULE}(?: (?:here|for (?:this|the"
            rf"|you)(?: \w+)?|from me"
            r"|to (?:follow|remember|keep))){0,2} ?(?:is\b:? ?(?!that (?:it|we)\b)|are\b|: ?\w|–|—| - )",
            rf"^{RULE} ?(?:#?\d+ ?)?(?:: ?\w| - |–|—)|\b(?:by|per|company|our|house) policy\b",
            rf"\b(?:it|that|this)(?:'s| is) (?:a|an|the|my|our) (?:\w+ )?(?:hard |strict )?{RULE}\b|\bhard (?:limit"
            rf"|cap)\b"
            r"|\bground rules?\b|\bmake (?:it|that) a (?:rule|habit|point)\b|\b(?:keep|bear) in mind\b",
            r"\b(?:keep|stick|adhere|hold) to (?:this|these|the following)\b|\bhow we do (?:it|things|this)\b"
            r"|\bthis (?:applies|goes|holds) (?:to|for)\b|\bplease note\b|\bstanding instructions?\b",
        ),
    ),
    Family(
        name="refusal",
        cues=cues_of(
            "forbid|prohibit|ban|disallow|allow|permi|mandat|requir|demand|rule|authority|right|business|promise"
        ),
        anchored=False,
        pattern=pattern(
            r"\b(?:policy|policies|team|law|laws|contract|regulations?|gdpr|legal|client|customer|security"
            r"|compliance|company|boss"
            r"|manager|management|license|licence|regulator|auditors?|rules?|nda) (?:\w+ )?(?:prohibits?|forbids?"
            r"|bans?|disallows?"
            r"|(?:does not|doesn't|do not|don't|won't) (?:allow|permit)|mandates?|requires?|demands?|rules? out)\b",
            r"\b(?:i|we) (?:hereby |strictly |must )?(?:forbid|prohibit|disallow|ban)\b"
            r"|\bpromise (?:me )?(?:that )?you\b",
            rf"\b{YOU}(?: have|'ve) no (?:permission|authority|right|business)\b",
            rf"\b{YOU} (?:do not|don't) have (?:permission|authority|the right|my)\b",
        ),
    ),
    Family(
        name="reason",
        cues=cues_of("reasons|heads"),
        anchored=False,
        pattern=pattern(
            r"\bfor (?:\w+ )?(?:legal|security|compliance|privacy|safety|budget|contractual|regulatory|cost"
            r"|audit) reasons\b",
            r"\bheads[- ]up\b.{0,80}\b(?:can't|cannot|must|may not|never|don't|do not|not allowed|only)\b",
        ),
    ),
    Family(
        name="agreement",
        cues=cues_of("agreed|decided|settled|promised|committed"),
        anchored=False,
        pattern=pattern(
            r"\b(?:we|i)(?:'ve| have| had)? (?:all )?(?:agreed|promised|committed) (?:that|to|not|never|on)\b",
            r"\b(?:we|i)(?:'ve| have| had)? (?:all )?(?:decided|settled) (?:not|never|to (?:never|always|only|not"
            r"|keep|stick|avoid|stay))\b",
        ),
    ),
    Family(
        name="exception",
        cues=cues_of("except|but"),
        anchored=False,
        pattern=pattern(r"\b(?:anything|everything|anyone|everyone|whatever you (?:like|want|need)) (?:except|but)\b"),
    ),
    Family(
        name="for_all",
        cues=cues_of("all|every|each|any|project|repo|team|company|codebase|what you"),
        anchored=False,
        pattern=pattern(
            r"\b(?:all|every|each|any) [^,;:?]{1,60}(?<! you)(?<! we)(?<! i)(?<! they) "
            r"(?:must|requires?|needs? to|has to|have to)\b",
            r"\b(?:everyone|everybody|all|agents|contributors|developers|we|you)(?: here)?"
            r" (?:is|are) (?:expected|required|supposed|obliged) to\b",
            rf"\bin (?:this|our) (?:project|repo\w*|team|company|codebase|house|organi[sz]ation),? {YOU}\b",
            r"\bwhat you (?:must|should|may|can)(?: not|n't| never)\b",
        ),
    ),
)
_DOUBTFUL: Final = (
    Family(
        name="obligation",
        cues=cues_of("have|need|want|has|should|ought"),
        sure=False,
        pattern=pattern(rf"{YOU} (?:(?:will |'ll )?(?:also )?(?:have|need|want|has) to|should|ought)\b"),
    ),
    Family(
        name="should",
        cues=cues_of("should|need|has|have|ought"),
        sure=False,
        pattern=pattern(
            r"(?!(?:there|it|i|something|someone|which|who|what)\b)[\w\"'`$][^,;:?]{0,100} (?:should|needs? to"
            r"|has to|ought to)\b"
        ),
    ),
    Family(
        name="no",
        cues=cues_of("no "),
        sure=False,
        pattern=pattern(r"no (?!problem|worr|thank|idea|need|way)[\w-]+(?: [\w'-]+){0,5}(?=[,;)]|$)"),
    ),
    Family(
        name="lets",
        cues=cues_of("let"),
        sure=False,
        pattern=pattern(r"(?:let's|lets|let us) (?:not|never|only|always|keep|stick|avoid|make sure|stay)\b"),
    ),
    Family(
        name="wish",
        cues=cues_of("want|need|like|ask|would be|try|ideally|sure|stop"),
        sure=False,
        pattern=pattern(
            rf"{_I} (?:want|need|like|ask) (?:you|the)|it would be (?:nice|great|good|better|best) (?:if|to|not)"
            rf"|(?:try to|ideally|make sure|stop \w+ing)\b"
        ),
    ),
)
FAMILIES: Final = (*COMMANDS, *_STATEMENTS, *_DOUBTFUL)
ONCE: Final = pattern(  # what is asked for once
    r"\b(?:for now|this (?:one )?time|just (?:this )?once|for the moment|for this (?:one|commit|step|change)|right now"
    r"|as a one-off|temporarily)\b"
)
HEDGE: Final = pattern(  # what the user is not sure of
    r"\bi (?:think|guess|believe|suppose|assume|wonder)\b|\bit (?:seems|looks) (?:like|as|that)\b"
    r"|\b(?:maybe|perhaps|probably)\b"
)

RULE_HEADING: Final = pattern(
    rf"(?:\b{RULE}|\b(?:remember|keep in mind|always|never|don'?t|do not|must|must not|only|avoid|forbidden"
    rf"|not allowed|off[- ]limits"
    r"|prohibited|no-?gos?|important|from now on|going forward|at all times|make sure))\b[^:\n]{0,60}:$"
)
