"""Bodies of events: what a caller hands in as bytes, those bytes as a reader sees them, and where references are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from strandline.codec.values import decode_json, encode_json, encode_text, leaf_text, show
from strandline.errors import CorruptRecordError
from strandline.model.event import BodyFormat, Event, EventKind, NewEvent, Role

ERASED_TEXT: Final = "[erased]"
_TEXTS: Final = {  # blocks that are a text, and the member that holds it
    "text": "text",
    "input_text": "text",
    "output_text": "text",
    "thinking": "thinking",
    "refusal": "refusal",
}
_ORIGIN: Final = b'"origin":'  # most bodies hold none, and are not decoded to find that out
_SPOKEN: Final = ("text", "transcript")  # members that are text in a block of any other kind


def encode_body(new: NewEvent) -> tuple[BodyFormat, bytes]:
    """Return the format and the bytes of a new event's body."""
    if isinstance(new.body, str):
        return BodyFormat.TEXT, encode_text(new.body, f"the text of a {new.kind}")
    if isinstance(new.body, bytes):
        return BodyFormat.JSON, new.body
    return BodyFormat.JSON, encode_json(new.body)


def read_body(event: Event) -> tuple[str, object]:
    """Return the text of an event as a reader sees it, and the decoded payload where it has one.

    The payload is a call's input, a result's content, or a block that is no text (an image). An erased body reads
    as ERASED_TEXT.

    Raises:
        CorruptRecordError: the bytes are not what their format says.
    """
    if event.body is None:
        return ERASED_TEXT, None
    place = f"body of event {event.seq}"
    if event.format is BodyFormat.TEXT:
        try:
            return event.body.decode(), None
        except UnicodeDecodeError as error:
            raise CorruptRecordError(f"not UTF-8: {error}", place=place) from error
    return _read_block(decode_json(event.body, place))


def read_origin(event: Event) -> str | None:
    """Return the record that whoever appended an event kept beside it; None where there is none, or it was erased.

    Raises:
        CorruptRecordError: the body is not what its format says.
    """
    if event.body is None or event.format is not BodyFormat.JSON or _ORIGIN not in event.body:
        return None
    block = decode_json(event.body, f"body of event {event.seq}")
    origin = block.get("origin") if isinstance(block, dict) else None
    return origin if isinstance(origin, str) else None


def origin_text(origin: str) -> str:
    """Return what the record of a guest says: its values without JSON's escapes, or itself where it is no JSON."""
    try:
        return leaf_text(decode_json(origin.encode()))
    except CorruptRecordError:
        return origin


def new_text(new: NewEvent) -> str:
    """Return the text of an event as a reader will see it.

    Raises:
        CorruptRecordError: its body is no JSON.
    """
    if isinstance(new.body, str):
        return new.body
    body = decode_json(new.body, f"the body of a {new.kind}") if isinstance(new.body, bytes) else new.body
    return _read_block(body)[0]


def _read_block(block: object) -> tuple[str, object]:
    if isinstance(block, str):
        return block, None
    if not isinstance(block, dict):
        return show(block), block
    kind = block.get("type")
    if isinstance(kind, str) and kind in _TEXTS:
        return str(block.get(_TEXTS[kind], "")), None
    if kind == "image_url":
        return _image_text(block), block
    if kind == "tool_use":
        arguments = block.get("input")
        return f"{block.get('name')} {show(arguments)}", arguments
    if kind == "tool_result":
        content = block.get("content", "")
        return _content_text(content), content
    if kind == "artifact":
        return " ".join(part for part in (str(block.get("handle", "")), str(block.get("text", ""))) if part), None
    source = block.get("source")
    if isinstance(source, dict) and source.get("type") == "text":
        return f"[{kind}] {source.get('data', '')}", block  # a document that is written out, not encoded
    spoken = [text for text in map(block.get, _SPOKEN) if isinstance(text, str) and text.strip()]
    return " ".join((f"[{kind}]", *spoken)), block


def _image_text(block: Mapping[str, object]) -> str:
    """Return the text of an image of OpenAI's: with its address, unless the image itself stands in it."""
    image = block.get("image_url")
    address = image.get("url") if isinstance(image, Mapping) else image
    shown = isinstance(address, str) and not address.startswith("data:")
    return f"[image_url] {address}" if shown else "[image_url]"


def _content_text(content: object) -> str:
    """Return the text of a result's content: a string, content blocks, or any JSON."""
    if isinstance(content, str):
        return content
    if isinstance(content, list) and all(isinstance(item, dict) and "type" in item for item in content):
        return "\n".join(_read_block(item)[0] for item in content)
    return show(content)


def reference_source(new: NewEvent, format_: BodyFormat, body: bytes) -> tuple[str, object]:
    """Return what references are extracted from: (text, JSON value), one of them empty.

    A block's own id and type are plumbing, not content: of a call its input counts, of a result its content.
    """
    if format_ is BodyFormat.TEXT:
        return body.decode(), None
    block = new.body if isinstance(new.body, Mapping) else decode_json(body, f"the body of a {new.kind}")
    if isinstance(block, str):
        return block, None
    if not isinstance(block, Mapping):
        return "", block
    kind = block.get("type")
    if kind == "tool_use":
        return "", block.get("input")
    if kind == "tool_result":
        content = block.get("content", "")
        return (content, None) if isinstance(content, str) else ("", _text_leaves(content))
    if kind == "image":
        return "", None  # encoded bytes hold no references
    return _read_block(block)[0], None


def user_text(new: NewEvent, format_: BodyFormat, body: bytes) -> str:
    """Return what a user's message says as a reader sees it, where it is nothing but text; else ""."""
    if new.kind is not EventKind.MESSAGE or new.envelope.role is not Role.USER:
        return ""
    if format_ is BodyFormat.TEXT:
        return body.decode()
    text, payload = _read_block(new.body if isinstance(new.body, Mapping) else decode_json(body, "a user's message"))
    return text if payload is None else ""


def searched_text(event: Event) -> str:
    """Return the text of an event in which words are searched (C4): its subject, its tool, and what it says."""
    return "\n".join(part for part in (event.envelope.subject, event.envelope.tool, spoken_text(event)) if part)


def spoken_text(event: Event) -> str:
    """Return what the body of an event says. Values of JSON stand there as they are, without JSON's escapes; encoded
    images, and what is erased, do not.
    """
    if event.body is None:
        return ""
    text, payload = read_body(event)
    if event.kind is EventKind.TOOL_CALL:
        return leaf_text(payload)
    if event.kind is EventKind.TOOL_RESULT and payload is not None:
        return leaf_text(_text_leaves(payload))
    return text


def _text_leaves(content: object) -> object:
    """Return a result's content without its image data."""
    if isinstance(content, list):
        return [
            item.get("text") if isinstance(item, dict) and "text" in item else item
            for item in content
            if not (isinstance(item, dict) and item.get("type") == "image")
        ]
    return content
