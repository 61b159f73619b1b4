"""The words by which a user lifts a constraint, or puts another in its place. English.

Each speaks of something; of which constraint is asked in `rules.superseding`.
"""

from __future__ import annotations

import re
from typing import Final

from strandline.rules.sentence_words import RULE, YOU, any_of, pattern

_LIFTABLE: Final = any_of(
    RULE,
    "limits?|limitations?|bans?|cap|budget|deadline|freeze|embargo",
    "what i (?:said|told you)|my (?:earlier|previous)",
)
OF_A_RULE: Final = pattern(  # it lifts a rule by naming it as one; any other lift turns what is done round
    rf"\b(?:lift|drop|scrap|forget|ignore|disregard|cancel|revoke|remove|suspend|waive|withdraw"
    rf"|rescind)\w*(?: [\w'-]+){{0,6}} {_LIFTABLE}\b",
    rf"\b{_LIFTABLE}\b.{{0,120}}\b(?:lifted|dropped|scrapped|cancell?ed|revoked|removed|suspended|waived|withdrawn"
    r"|rescinded|void|moot"
    r"|obsolete|outdated|off the table|gone)\b",
    r"\b(?:does not|doesn't|do not|don't) (?:apply|hold|matter|count)\b|\byou have my (?:ok|permission|approval)\b",
    r"\bno longer (?:appl\w+|holds?|valid|binding|in (?:force|effect)|required|necessary|needed|forbidden|prohibited"
    r"|banned|off[- ]limits|an? )",
)
LIFTS: Final = pattern(
    rf"\b{YOU} (?:can|may|could|are allowed to|are free to|are welcome to)(?! not| only| never)\b",
    rf"\b{YOU}(?:'re) (?:allowed|free|welcome) to\b|\b{YOU} (?:don't|do not|no longer|needn't) (?:need|have) to\b",
    r"\bno longer\b|\bany ?more\b|\bany longer\b|\bfeel free to\b|\bgo ahead and\b|\bno need to\b|\bstop \w+ing\b",
    r"\b(?:is|are|'s|'re) (?:\w+ )?(?:fine|ok(?:ay)?|allowed|permitted|possible|alright|acceptable"
    r"|good)(?: \w+)?,? (?:now|again|after all)\b",
    r"\b(?:now|again) (?:fine|ok(?:ay)?|allowed|permitted|alright|acceptable)\b",
    r"\bit(?:'s| is) (?:now |again )?(?:fine|ok(?:ay)?|allowed|alright|all right) (?:now |again )?(?:for you )?to\b",
    OF_A_RULE.pattern,
)
SKIPS: Final = re.compile(
    r"\b(?:skip|omit|leave out|forgo|dispense)\w*\b", re.IGNORECASE
)  # as a negation: not to do it
IN_PART: Final = pattern(  # it lifts for a case, for a time, or by another's word: the rule stands, and this beside it
    r"\b(?:if|unless|until|once|provided|as long as|as soon as|in case|except|apart from|only|at most)\b",
    r"\b(?:when|after|while|before) (?:i|we|you|he|she|it|they|the|all|every|that|this)\b",
    r"\b(?:tomorrow|tonight|later|soon|next (?:\w+day|week|month|time|sprint|release)|starting|on \w+day)\b",
    r"\b(?!(?:i|we|which|that|what|and)\b)[a-z][\w.-]* (?:says?|said|tells?|told|claims?|claimed|thinks?|thought|wrote"
    r"|writes)\b",
)
SCOPE: Final = re.compile(
    r"\b(?:of|for|in|on|from|with|within) (?:(?:the|a|an|this|that|my|our) )?(?P<scope>[\w./-]+(?: [\w./-]+)?)",
    re.IGNORECASE,
)
QUOTED: Final = re.compile(r'"[^"]{0,400}"')
NO_LIFT: Final = pattern(  # it forbids, though a word of LIFTS stands in it
    r"\bno longer (?:allowed|permitted|acceptable|ok|fine|possible)\b|\b(?:can't|cannot|can not|mustn't|must not"
    r"|may not|not allowed)\b"
    r".{0,120}\b(?:any ?more|any longer)\b"
)
CHANGES: Final = pattern(  # it takes the place of something that was said
    r"\b(?:instead|rather than|actually|no longer|any ?more|change of plans?|on second thoughts?|correction"
    r"|scratch that|after all"
    r"|is now|are now|now (?:is|use|the)|from now on|going forward)\b",
    r"\b(?:switch|switched|switching|changed?|raised?|lower(?:ed)?|increased?|reduced?|extend(?:ed)?|replaced?"
    r"|revised?|updated?)\b",
    r"\bnew (?:budget|limit|rule|deadline|port|maximum|max|cap|policy|target|preference)\b|\bmake (?:it|that)\b",
)
SWAPPED: Final = pattern(r"\b(?:instead of|rather than|in place of|no longer|not|over|from)\b(?P<old>[^,.;:]{1,80})")
AMOUNT: Final = pattern(  # of which there is one at a time
    r"[$€£%]|\b(?:budget|limit|cap|ceiling|deadline|quota|allowance|threshold|timeout|max|maximum|min|minimum|at most"
    r"|at least|under|below|above|over|within|up to|no more|no less|no fewer|exceed|(?:more|less|fewer|later) than)\b"
)
BESIDE: Final = pattern(r"\b(?:also|too|as well|another|in addition|additionally|furthermore)\b")  # it replaces nothing
NEW_VALUE: Final = re.compile(r"\d|(?<=[a-z,] )[A-Z]")  # a number, or a name within the sentence
