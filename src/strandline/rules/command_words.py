"""How a clause commands what binds later turns: families that are looked for where it begins. English.

"Never push" is a constraint, and "I never push" is a report: so each is matched at the beginning of a clause, behind
its openers, and what only looks like a command is excluded by the words that a command can't begin with.
"""

from __future__ import annotations

from typing import Final

from strandline.rules.sentence_words import BEFORE, EACH, RULE, YOU, Family, any_of, cues_of, pattern, word_of

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
    " result report total summary values numbers everything"
)
_PIECES: Final = (
    r"(?:answers?|repl(?:y|ies)|responses?|outputs?|messages?|summar(?:y|ies)|commits?|functions?|lines?|comments?"
    r"|costs?"
    r"|spending|reports?|explanations?|sentences|titles?|changes|diffs?|prs?|pull requests|tests|files?|total)"
)

COMMANDS: Final = (
    Family(
        name="prohibition",
        cues=cues_of("not|n't|dont|never"),
        pattern=pattern(
            rf"{_NOT}(?: you)?(?: ever)? (?!{_OF_HIMSELF}\b){_BASE}", rf"{_NOT} even (?:think|dream) (?:of|about)\b"
        ),
    ),
    Family(
        name="abstention",
        cues=cues_of("avoid|refrain|steer|abstain|hands|away"),
        pattern=pattern(r"(?:avoid|refrain from|steer clear of|abstain from|hands off|stay away from) \S"),
    ),
    Family(
        name="not_to",
        cues=cues_of("not to"),
        pattern=pattern(r"(?:try |be sure |take care |be careful |be certain )?not to (?!mention|worry)[a-z]"),
    ),
    Family(
        name="no_thing",
        cues=cues_of("no "),
        pattern=pattern(
            r"(?:strictly |absolutely )?no (?:new|more|third[- ]party|external|unnecessary|direct|manual"
            r"|hard-?coded)\b"
            r"(?! (?:questions?|issues?|problems?|errors?|info\w*|time|one))",
            r"(?:strictly |absolutely )?no (?!thing|everything)\w{2,}ing\b(?! (?:is|was|are|to)\b)",
            r"no (?!problem|worr|need|way|thank)(?:[\w'-]+ ){0,5}[\w'-]+(?:!|,? (?:please|whatsoever|allowed)\b)",
            r"there (?:is|are) to be no|there (?:must|shall|should) be no",
        ),
    ),
    Family(
        name="without",
        cues=cues_of("without"),
        pattern=pattern(
            r".{0,200}\bwithout (?:first |explicitly )?(?:asking|checking|telling|consulting|informing|confirming"
            r"|notifying|changing|altering|touching|modifying|breaking|deleting|removing|affecting|exceeding)\b",
            r".{0,200}\bwithout (?:(?:my|our|\w+'s|explicit|prior|written|an?|the|any) (?:\w+ )?)?"
            r"(?:ok|okay|approval|permission|consent|confirmation|sign-?off|say-so|review|go-ahead)\b",
        ),
    ),
    Family(
        name="always",
        cues=cues_of("always|invariably|only"),
        pattern=pattern(rf"(?:always|invariably|only ever) (?!happy|good)(?:be\b|{_BASE})"),
    ),
    Family(
        name="only",
        cues=cues_of("only|exclusively|solely"),
        pattern=pattern(
            rf"(?:only|exclusively|solely) (?!{_NO_VERB}\b|one\b|thing|way|reason|issue|problem|question|\d){_BASE}",
            rf"{_COMMAND} (?:[^,;:]{{0,120}} )?only (?:after|when|once|if|with|from|under|inside|within|via|through"
            rf"|between|on"
            r"|by|as|during|to|in|for|at|the|what|those|files?)\b",
            r"only [^,;:?]{1,80} (?:may|can|should|must|(?:is|are) (?:allowed|permitted|to)) (?!i\b|we\b)",
        ),
    ),
    Family(name="unless", cues=cues_of("unless"), pattern=pattern(rf"{_COMMAND} .{{0,200}}\bunless\b")),
    Family(
        name="you_must",
        cues=cues_of("you|we |we'|nobody|no one|every|agent|assistant|bot |model|team"),
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
        cues=cues_of("must|shall|should|only|never|always|stay|remain"),
        pattern=pattern(
            r"(?!(?:there|it|he|she|they|i|something|someone|somebody|these|which|who|what"
            r"|that)\b)[\w\"'`$][^,;:?]{0,120}? "
            r"(?:must(?:n't)?(?! have| be (?:a|an|some|the|my|missing|something|why|wrong|because|due|related|how"
            r"|what|where))"
            r"|shall (?:not )?|should (?:never|only|always)|can (?:only|never) be|(?:needs?|has|have) to (?:always"
            r"|never|only|stay|remain)"
            r"|(?:is|are) (?:never |only |always )to)\b",
            r"must(?:n't| not| never| always| only)? (?!have\b|be (?:a|an|some|the|something)\b)[a-z]",
        ),
    ),
    Family(name="each", cues=cues_of("each|every|all |any "), pattern=pattern(rf"{_COMMAND} .{{0,200}}\b{EACH}")),
    Family(
        name="first",
        cues=cues_of("before|first"),
        pattern=pattern(
            rf"{_COMMAND} .{{0,200}}\b{BEFORE}",
            rf"before (?:you )?(?:\w{{3,}}ing|you|each|every|any)\b[^,]{{0,150}}, ?(?:please |always "
            rf"|first )?{_COMMAND}",
            rf"{_ASK}.{{0,60}}\bfirst\b",
        ),
    ),
    Family(
        name="habit",
        cues=cues_of("when|time|in case|if you|if we"),
        pattern=pattern(
            r"(?:when(?:ever)?|any ?time|each time|every time|in case|if) (?:you|we)(?:'re|'ve)? "
            r"(?!can\b|can't|cannot|could|would|manage|don't|do not|need (?:me|help|any)|have (?:any|a)|want me"
            r"|think(?! you)|like)"
            rf"[a-z][^,;]{{0,200}}(?:, ?| - | – | — )(?:then |please |always )?(?!let me know|tell me"
            rf"|feel free){_COMMAND}"
        ),
    ),
    Family(
        name="bear_in_mind",
        cues=cues_of("mind|aware|advised|remember|forget|sure|certain|see to it|careful|note"),
        pattern=pattern(
            r"(?:(?:always|do|please|you (?:should|must|need to|have to)|i (?:want|need|would like|'d like) you to"
            r"|let's) ){0,2}"
            r"(?:(?:keep|bear|have) (?:it |this )?in mind|be (?:aware|mindful|advised)|remember"
            r"|don't (?:ever )?forget|never forget"
            r"|do not forget|be (?:sure|certain)|see to it|be careful"
            r"|note(?! that (?:some|it|this|there|these|in|for|if)\b))"
            r"(?: (?:that|to|not|never|always|when|with|the|you|we|our|my|all|no)\b|(?<!note)[:,] ?\w| - )"
        ),
    ),
    Family(
        name="make_sure",
        cues=cues_of("make|ensure|see to it"),
        pattern=pattern(
            r"(?:(?:always|do|please|you (?:should|must|need to|have to)|i (?:want|need|would like"
            r"|'d like) you to) ){0,2}"
            r"(?:make (?:absolutely )?(?:sure|certain)|ensure|see to it)(?: that)? (?:to|you|we|nothing|nobody"
            r"|no ?one|no|all|every\w*"
            r"|any\w*|each|they|the|never|not|our|my)\b"
        ),
    ),
    Family(
        name="favour",
        cues=cues_of("prefer|favor|favour"),
        pattern=pattern(r"(?:always )?(?:prefer|favou?r) (?!to\b|not\b)\S"),
    ),
    Family(
        name="form",
        cues=cues_of(" in | as | with | using |keep|make|limit|cap|hold|restrict|shorten|use "),
        pattern=pattern(
            rf"(?:always |only )?{_SAY}\b(?: {_SAID}){{0,5}} (?:in|as|with|using) (?:the |a |an |short |only "
            rf"|valid ){{0,3}}{_FORM}\b",
            rf"(?:always |only )?{_SAY}\b(?: {_SAID}){{0,5}} (?:in|as|with|using) (?:the|an?|this|my"
            rf"|our) (?:[\w-]+ ){{0,4}}"
            r"(?:format|form|style|notation|order|tone|template|structure|layout)\b",
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
        cues=cues_of("keep|leave|hold"),
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
        cues=cues_of(
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
)
