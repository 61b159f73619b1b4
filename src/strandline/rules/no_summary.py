"""What a summarizer hands back instead of a summary: placeholders, refusals, complaints, error texts.

Each is told by the *whole* draft. A summary that mentions an error or quotes a refusal is a summary: such a draft has
more to say than its first line, or opens with something else.
"""

from __future__ import annotations

import json
import re
from typing import Final

from strandline.rules.wording import LABEL

APOLOGY_CHARS_MAX: Final = 800  # a longer text that begins like a refusal or a complaint goes on with something
ERROR_CHARS_MAX: Final = 600
ERROR_JSON_CHARS_MAX: Final = 16_384
PLACEHOLDER_CHARS_MAX: Final = 4_096

_TAG: Final = re.compile(r"</?(?:summary|analysis|output|response|result|text)>", re.IGNORECASE)
_PLACEHOLDER: Final = re.compile(
    r"""[\W_]*(?:
        (?:the\ |your\ |a\ |conversation\ |insert\ |add\ |put\ |write\ )*summary(?:\ (?:text|content))?
            (?:\ (?:goes|will\ go|to\ go|comes|here|of\ the\ conversation|pending|unavailable|not\ available|tbd))*
        | (?:insert|add|put|write|your)\ (?:\w+\ ){0,4}(?:text|content|here)
        | no\ summary(?:\ (?:available|provided|generated|possible))?
        | todo(?:\W{0,3}[:–—-][^\n]{0,100})? | tbd | fixme | n/?a | none | null | nil | nan | undefined | empty | string
        | (?:the\ )?(?:previous\ |prior\ )?conversation\ (?:was|is)\ too\ long(?:\ to\ (?:be\ )?summari[sz]ed?)?
        | text | true | false | placeholder(?:\ \w+)? | lorem\ ipsum[^\n]{0,2000} | ok(?:ay)? | done | sure | test
        | (?:(?:sure|certainly|of\ course|ok|okay|absolutely)\W{1,4})?(?:here(?:'s|\ is)|below\ is)\ [^\n]{0,40}summary
            [^\n]{0,80}[:.]
    )[\W_]*""",
    re.IGNORECASE | re.VERBOSE,
)
_REFUSAL: Final = re.compile(
    r"""\W*(?:
        (?:i'?m|i\ am|we\ are|we're)\ (?:(?:very|so|really)\ )?(?:sorry|afraid\ i|(?:unable|not\ able)\ to\ (?:help
            |assist|comply|summari[sz]|provide|fulfil|generat|creat|produc|process|do|complete|answer|discuss))
        | (?:sorry|apologies|unfortunately)\W{1,3}(?:but\ )?i\b | i\ apologi[sz]e
        | i\ (?:can(?:no|')t|can\ not|could\ not|couldn't|won't|will\ not|must\ decline)\b(?:\W*$
            |[^.\n]{0,40}\b(?:help|assist|comply|summari[sz]|provide|fulfil|generat|creat|produc|process|do\ that
            |complete|answer|discuss))
        | as\ an?\ (?:ai|large\ language|language)\b
    )""",
    re.IGNORECASE | re.VERBOSE,
)
_NOTHING: Final = re.compile(
    r"""\W*(?:
        i\ (?:do\ not|don't|did\ not|didn't|can't|cannot)\ (?:see|have|find)\ (?:any|an|a|the|enough)\b[^.\n]{0,40}
            \b(?:events?|conversations?|messages?|content|text|transcript|history|input|context|summari[sz]e)
        | there\ (?:is|are|was|were|doesn't\ appear\ to\ be|appears?\ to\ be|seems?\ to\ be)\ (?:no|nothing|not\ any)\b
            [^.\n]{0,80}\b(?:to\ summari[sz]e|provided|given|to\ work\ with)
        | no\ (?:\w+\ ){0,2}(?:events?|conversation|messages?|content|text|input|transcript|history)\b[^.\n]{0,40}
            \b(?:to\ summari[sz]e|provided|given|available)
        | nothing\ to\ summari[sz]e
        | (?:it\ (?:looks|seems|appears)\ (?:like|that|as)\W)?\ ?(?:you\ (?:haven't|have\ not|didn't|did\ not)
            |the\ (?:conversation|transcript|input|text|message)\ (?:is|was|appears?\ to\ be|seems?\ to\ be)\ empty)
        | (?:please|could\ you|can\ you)\ (?:\w+\ )?(?:provide|share|paste|send|give)\b
    )""",
    re.IGNORECASE | re.VERBOSE,
)
_ERROR: Final = re.compile(
    r"""\W*(?:
        (?:(?:fatal|api|internal|server|runtime|unexpected)\ )*(?:error|exception|failure)\ ?(?:\#?\d+\ ?)?[:=–—-]
        | [\w.]{1,100}(?:error|exception|timeout)\ ?(?:\(|:|$)
        | (?:error|failure)\ (?:while\ )?(?:generating|creating|producing)\ (?:a\ |the\ )?summary\b
        | failed\ to\ (?:generate|create|produce)\ (?:a\ |the\ )?summary\b
        | errors?\W*$ | traceback\ \(most\ recent
        | (?:http[\w/. ]{0,10}\ |status(?:\ code)?\W{1,2})?[45]\d\d\W{0,3}(?:$|too\ many|internal|bad|service|gateway
            |unauthorized|forbidden|not\ found|payment|request|server|client|error|rate|unprocessable
            |conflict|overloaded)
        | (?:\w+\ ){0,3}rate[\ -]?limit(?:ed|s)?\ ?(?:exceeded|reached|error|hit)?\W{0,3}(?:$|please|retry|try|for|per)
        | too\ many\ requests | (?:\w+\ ){0,4}quota\ (?:\w+\ )?(?:exceeded|exhausted)
        | (?:the\ )?(?:request|operation|connection|read|gateway|model|call)\ (?:has\ |was\ )?(?:timed\ out|time-?out
            |refused|reset|aborted|cancell?ed|error|failed)
        | time(?:d\ ?)?-?out\W*$ | internal\ server\ error | (?:the\ )?(?:service|server|model|engine)\ (?:is\ )?
            (?:\w+\ )?(?:unavailable|overloaded) | bad\ gateway | overloaded
        | (?:maximum\ )?context\ (?:length|window)\ (?:\w+\ )?exceeded | this\ model's\ maximum\ context
        | (?:invalid|incorrect|missing)\ api\ key | an?\ (?:\w+\ )?error\ (?:has\ )?occurred
        | something\ went\ wrong | <!doctype\ html | <html
    )""",
    re.IGNORECASE | re.VERBOSE,
)
_ERROR_KEYS: Final = frozenset({"error", "errors", "error_code", "error_message", "exception"})


def what_it_is_instead(text: str) -> str | None:
    """Return the rule that a plain draft breaks by being no summary at all, or None when it may be one.

    The rules: `no_words`, `placeholder`, `refusal`, `nothing_to_summarize`, `error_text`.
    """
    text = _TAG.sub(" ", text).strip()
    label = LABEL.match(text)
    if label and label[3]:
        return None  # an extract
    if not any(char.isalnum() for char in text):
        return "no_words"
    if len(text) <= ERROR_JSON_CHARS_MAX and text[0] in '{["' and _is_error_json(text):
        return "error_text"
    if _PLACEHOLDER.fullmatch(text[:ERROR_JSON_CHARS_MAX]) and len(text) <= ERROR_JSON_CHARS_MAX:
        return "placeholder"
    if len(text) <= APOLOGY_CHARS_MAX:
        if _NOTHING.match(text):
            return "nothing_to_summarize"
        if _REFUSAL.match(text):
            return "refusal"
    if _is_error_text(text):
        return "error_text"
    return None


def _is_error_text(text: str) -> bool:
    lowered = text[:200].lower()
    if lowered.startswith(("traceback (most recent", "<!doctype html", "<html")):
        return True
    return len(text) <= ERROR_CHARS_MAX and text.count("\n") <= 2 and _ERROR.match(text) is not None


def _is_error_json(text: str) -> bool:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return False
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    if isinstance(value, str):
        return what_it_is_instead(value) is not None if value.strip() else True
    if not isinstance(value, dict) or value.get("summary"):
        return False
    keys = {str(key).lower() for key in value}
    return bool(keys & _ERROR_KEYS) or value.get("type") == "error" or ("message" in keys and "code" in keys)
