"""The words by which a draft says that something is approved, resolved, lifted or done. English; all in one place."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from strandline.rules.wording import asserted, stem, word_set

_FILLER: Final = (
    r"(?:(?!(?:no|not|to|yet|never|without|pending|requested|required|needed|awaiting|any)\b)[\w'@.-]{1,40} ){0,4}"
)
_CONSENT: Final = r"(?:approvals?|sign-?offs?|go-?ahead|green[ -]light|thumbs[ -]up|lgtm|blessing|ok|okay|all[ -]clear)"
_PERMISSION: Final = r"(?:permission|consent|authori[sz]ation|clearance|waiver|exception|exemption)"
_GIVEN: Final = (
    r"(?:granted|given|obtained|received|secured|confirmed|issued|recorded|in place|in force|in effect|stands|valid"
    r"|complete[d]?|done|yes|[✅✔✓☑])"
)
_TICK: Final = r"[✅✔✓☑]\ufe0f?|\[[xX]\]"
_START: Final = r"(?<![\w/.`@=-])"
_END: Final = r"(?![\w`=(]|[-/.]\w)"
_COMPOUND: Final = (
    r"(?! (?:workflow|process|gate|flow|polic|mode|request|prompt|step|system|logic|dialog|id|status|queue|rule|button"
    r"|required|needed|pending|check|mechanism|form|criteria|state|setting|hook|screen|is|was|has|will|must|header))"
)
_NOUN: Final = re.compile(r" ([A-Za-z]+)(?![\w-]*[\d_-])")
_NO_NOUNS: Final = word_set(
    "by for and in on as with at to that this it the a an via after because yesterday today now all both everything"
    " last earlier so but without under"
)
_DETERMINERS: Final = word_set(
    "the a an all any only of each every use uses used using these those our your its their newly non"
)
_IDENTIFIER: Final = re.compile(r"\w*(?:\d|\w[-_]\w)\w*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Topic:
    """One sort of claim: how it is worded, and what makes a wording no claim."""

    name: str
    pattern: re.Pattern[str]
    cues: tuple[str, ...]  # one of them stands in all that the pattern finds; they are found faster
    bare: frozenset[str] = frozenset()  # groups of the pattern that have no verb of their own
    after: re.Pattern[str] | None = None  # behind a mention: it is taken back

    def mentions(self, text: str) -> bool:
        """Tell whether the words of the topic occur, asserted or not."""
        return self.cued(text.casefold()) and self.pattern.search(text) is not None

    def cued(self, folded: str) -> bool:
        """Tell whether a text in lower case may mention the topic."""
        return any(cue in folded for cue in self.cues)

    def claims(self, sentence: str) -> Iterator[int]:
        """Yield the places at which the sentence asserts the topic."""
        for found in self.pattern.finditer(sentence):
            kind = found.lastgroup or ""
            at = found.start(kind) if kind else found.start()
            if self.after and self.after.match(sentence, found.end()):
                continue
            if kind == "part" and _describes(sentence, found):
                continue
            if asserted(sentence, at, bare_mention=kind in self.bare):
                yield at

    def says(self, sentence: str) -> bool:
        """Tell whether the sentence asserts the topic anywhere."""
        return next(self.claims(sentence), None) is not None

    def strong(self, sentence: str, at: int) -> bool:
        """Tell whether the wording at this place speaks of limits only, so that no other word has to."""
        found = self.pattern.match(sentence, at)
        return found is not None and (found.lastgroup or "").startswith("strong")


def _describes(sentence: str, found: re.Match[str]) -> bool:
    """Tell whether a participle only describes a thing ("the approved plan", "authorized users") and states nothing."""
    noun = _NOUN.match(sentence, found.end())
    if noun is None or noun[1].lower() in _NO_NOUNS:
        return False
    before = sentence[max(0, found.start() - 40) : found.start()].lower().split()
    if before:
        return before[-1].strip('"(:') in _DETERMINERS
    return not _IDENTIFIER.search(sentence, found.end(), found.end() + 80)


def _compiled(*lines: str) -> re.Pattern[str]:
    return re.compile("|".join(lines), re.IGNORECASE)


APPROVAL: Final = Topic(
    name="approval",
    cues=(
        *("approv", "authori", "sign", "green", "ok", "ratif", "endors", "rubber", "cleared", "lgtm", "permission"),
        *("consent", "clearance", "waiver", "exception", "exemption", "go-ahead", "goahead", "thumbs", "blessing"),
        *("all clear", "all-clear"),
    ),
    pattern=_compiled(
        rf"{_START}(?P<part>(?:pre-?)?approved|authori[sz]ed|signed[ -]off|green-?li(?:t|ghted)|okayed|ok['’]?(?:ed|d)"
        rf"|okay'd|ratified|endorsed|rubber-stamped|countersigned"
        rf"|cleared (?:for|to) (?:release|deploy|production|publish|publication|launch|merge|ship)){_END}",
        rf"{_START}(?:{_CONSENT}|{_PERMISSION})(?: (?:for|of|from|by) (?:[^,;:.]|\.(?=\w)){{1,80}}?)?(?::| -| =|'s)? "
        rf"(?:[\w']{{1,20}} ){{0,3}}(?P<given>{_GIVEN}|(?:never|not)(?: been)? (?:revoked|withdrawn)){_END}",
        rf"(?P<ticked>{_TICK}) {_FILLER}(?:approvals?|sign-?off|approve|sign off){_END}",
        rf"{_START}(?P<got>granted|gave|given|gives|got|obtained|received|secured|provided|issued) {_FILLER}{_CONSENT}"
        rf"{_COMPOUND}{_END}",
        rf"{_START}(?P<permitted>granted|gave|given) {_FILLER}{_PERMISSION}{_COMPOUND}{_END}",
        rf"{_START}(?P<had>has|have|had|with) {_FILLER}(?:approvals?|sign-?off|go-?ahead|green[ -]light)"
        rf"{_COMPOUND}{_END}",
        rf"{_START}(?P<lgtm>lgtm){_END}",
    ),
    bare=frozenset({"had", "lgtm"}),
    after=_compiled(
        r"[\"')]* ?(?:[/|,] ?|,? or )(?:not |un|rejected|denied|pending|declined|refused|draft)",
        r" (?:\w+ ){0,2}(?:if|unless)\b",
        r" (?:is |was |are |still |yet )*(?:pending|required|needed|awaited|missing|outstanding|denied|refused|rejected"
        r"|withheld|requested)\b",
    ),
)

RESOLVED: Final = Topic(
    name="resolved",
    cues=(
        *("solved", "fixed", "closed", "addressed", "remediated", "mitigated", "patched", "cleared", "settled", "done"),
        *("complete", "handled", "corrected", "eliminated", "dealt with", "taken care", "sorted out", "ironed out"),
        *("no longer", "not a", "isn't a", "went away", "is gone", "is moot", "non-issue", "no "),
        *("✅", "✔", "✓", "☑", "[x]"),
    ),
    pattern=_compiled(
        rf"{_START}(?P<done>resolved|fixed|closed|solved|addressed|remediated|mitigated|patched|cleared|settled|done"
        rf"|completed?|handled|corrected|eliminated|dealt with|taken care of|sorted out|ironed out){_END}",
        rf"\b(?P<gone>no longer (?:an? )?(?:issue|open|reproduc\w+|occurs?|problem|blocking|blocker|outstanding|concern"
        rf"|relevant)|(?:not|isn't) an? (?:issue|problem|concern|blocker) any ?more|went away|is gone|is moot"
        rf"|non-issue){_END}",
        rf"(?P<ticked>{_TICK}) ",
        r"\b(?P<none>no (?:(?:open|outstanding|remaining|unresolved|known|other|further) )?"
        r"(?:issues|bugs|problems|blockers|concerns|findings)(?: (?:remain\w*|left|outstanding|open|exist))?)\b",
    ),
)
REOPENED: Final = _compiled(
    r"\b(?:still (?:open|unresolved|blocking|outstanding|failing|present)"
    r"|(?:remains?|is|stays|left) (?:open|unresolved)"
    r"|re-?opened|unresolved|not (?:yet )?(?:resolved|fixed|closed)|recurred|came back)\b",
)
TURNED: Final = _compiled(
    r",? (?:but|however|although|though|and|then)[, ]+(?:(?:it|was|is|has|been|later|then|again|since) )*"
    r"(?:re-?opened|still|remains?|recurred|came back|unresolved)\b"
)
ALL_RESOLVED: Final = _compiled(
    r"\b(?:all|every|both)(?: of)?(?: the)?(?: \w+)? (?:issues?|bugs?|problems?|blockers?|concerns?|findings?)"
    r" (?:is|are|was|were|has been|have been|got|now)\b",
    r"\bno (?:open|outstanding|remaining|unresolved|known) (?:issues|bugs|problems|blockers|concerns|findings)\b",
    r"\bno (?:issues|bugs|problems|blockers|concerns|findings) (?:remain|are left|are open|left|outstanding)",
)

_LIMITS: Final = r"(?:constraints|restrictions|rules|freezes|bans|limits|prohibitions)"
_ALL_GONE: Final = (
    rf"(?:no (?:more |further |remaining )?(?:active |open )?{_LIMITS} (?:remain|apply|are left|are in force|in force"
    rf"|in effect|left)|(?:constraints|restrictions|rules): none|(?:^|(?<=[.:] ))(?:ignore|disregard|forget)"
    rf" (?:all |any |the |these )*(?:previous |earlier |above |prior )?{_LIMITS}"
    rf"|(?:previous|earlier|prior|above|these) {_LIMITS} are (?:now )?(?:obsolete|outdated|void|moot)"
    rf"|{_LIMITS} above are (?:now )?(?:obsolete|outdated|void|moot))"
)
ALL_LIFTED: Final = _compiled(
    rf"\ball(?: of)?(?: the)?(?: \w+)? {_LIMITS} (?:is|are|was|were|have been|got|now)\b",
    rf"\b{_ALL_GONE}\b",
)
LIFTED: Final = Topic(
    name="lifted",
    cues=(
        *("lifted", "waived", "obsolete", "rescinded", "relaxed", "superseded", "repealed", "outdated", "overridden"),
        *(
            "void",
            "moot",
            "no longer",
            "apply",
            "not in ",
            "ignore",
            "disregard",
            "forget",
            ": none",
            "no ",
            "allowed",
            "permitted",
            "removed",
            "dropped",
        ),
        *("disabled", "ended", "cancel", "expired", "withdrawn", "revoked", "suspended", "over"),
    ),
    pattern=_compiled(
        rf"{_START}(?P<strong>lifted|waived|obsolete|rescinded|relaxed|superseded|repealed|outdated|overridden"
        rf"|void(?:ed)?|moot|null and void){_END}",
        r"\b(?P<strong_no>no longer (?:appl\w+|in force|in effect|required|needed|relevant|binding|holds|valid|active"
        r"|forbidden|prohibited|a (?:constraint|requirement|restriction))|(?:does not|doesn't|do not|don't) apply"
        r"|(?:is|are) not in (?:force|effect)|not in (?:force|effect) any ?more"
        r"|(?:can|may) (?:now )?(?:be )?ignored?|(?:now|again) (?:allowed|permitted)"
        r"|(?:allowed|permitted) (?:now|again))\b",
        rf"\b(?P<strong_none>{_ALL_GONE})\b",
        rf"{_START}(?P<weak>removed|dropped|disabled|ended|cancell?ed|expired|withdrawn|revoked|suspended|over){_END}",
    ),
)

SUCCEEDED: Final = Topic(
    name="succeeded",
    cues=(
        *("succe", "complet", "finish", "done", "work", "went through", "execut", "pass", "confirm", "creat", "delet"),
        *("remov", "updat", "deploy", "publish", "sent", "deliver", "post", "writ", "wrote", "upload", "push", "merg"),
        *("releas", "paid", "charg", "book", "transfer", "install", "appli", "migrat", "start", "stop", "insert"),
        *("add", "sav", "built", "ran", "provision", "return", "ok"),
    ),
    pattern=_compiled(
        rf"{_START}(?P<did>succeeded|succeeds|successful(?:ly)?|success|completed|finished|done|worked|went through"
        rf"|executed|passed|confirmed|created|deleted|removed|updated|deployed|published|sent|delivered|posted|written"
        rf"|wrote|uploaded|pushed|merged|released|paid|charged|booked|transferred|installed|applied|migrated|started"
        rf"|stopped|inserted|added|saved|built|ran|provisioned|returned|ok){_END}",
    ),
)

IRREGULAR: Final = {"sent": "send", "wrote": "write", "written": "write", "built": "build", "ran": "run", "paid": "pay"}

REVOKED: Final = _compiled(r"\b(?:revok\w+|withdr[ae]w\w*|rescind\w*|retract\w*|pulled back|took back)\b")

NAMED_BY: Final = re.compile(r"[^.;:]{0,60}?\b(?:by|from) (?:the )?(?P<name>@?[A-Za-z][\w.@-]*(?: [A-Z][\w.-]*)?)")


def _stems(text: str) -> frozenset[str]:
    return frozenset(stem(word) for word in text.split())


NOT_NAMES: Final = _stems(
    "monday tuesday wednesday thursday friday saturday sunday january february march april may june july august"
    " september october november december email mail slack default mistake vote eod"
)
GENERIC_HOLDERS: Final = _stems(
    "user human owner operator team reviewer maintainer customer admin stakeholder client lead manager me us agent"
)
GENERIC_SUBJECTS: Final = _stems("issue bug problem ticket finding constraint rule item task fact id call open c i")
GENERIC_TOOLS: Final = _stems(
    "bash shell sh exec execute run read write edit search grep glob fetch get list task agent tool call command python"
    " file terminal update delete create view think todo"
)
LIMIT_WORDS: Final = _stems(
    "constraint rule restriction freeze ban limit limitation requirement policy embargo prohibition lock moratorium"
    " hold cap guardrail"
)
APPROVAL_WORDS: Final = _stems(
    "approved approval approve authorised authorized authorisation authorization signed sign off signoff lgtm granted"
    " given gave got obtained received secured confirmed issued place force stands valid done permission consent waiver"
    " clearance green light thumbs go ahead status state ok okay greenlit step ratified endorsed recorded pre"
)
