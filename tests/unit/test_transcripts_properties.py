"""Laws (C2, I4), checked on files that are damaged at random:

1. A file with one byte changed is read or refused with ImportFormatError, and nothing else happens.
2. A file that is cut anywhere is refused, or gives a prefix of its items: a torn record never becomes another one.
3. The offset of malformed JSON is that of the first byte that can't stand there: all before it can go on to a record.
4. Stand-ins for unpaired surrogate escapes change no offset, and give back every slice of a line.
"""

import json
import pathlib
import re
from hashlib import blake2b

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from strandline.errors import ImportFormatError
from strandline.model.transcript import TranscriptItem
from strandline.transcripts import open_transcript
from strandline.transcripts.malformed import explain
from strandline.transcripts.surrogates import StandIns

pytestmark = pytest.mark.long

CLAUDE_CODE = b"\r\n".join(
    [
        b'\xef\xbb\xbf{"type":"summary","leafUuid":"l"}',
        b'{"type":"user","uuid":"u1","parentUuid":null,"timestamp":"t","message":{"content":'
        b'"h\xc3\xa4 \\ud83d\\ude00"}}',
        b'{"type":"assistant","uuid":"u2","message":{"id":"m","content":[{"type":"thinking","thinking":"\\ud83d"},'
        b'{"type":"tool_use","id":"c1","name":"t","input":{"n":[1.5e3,-2,true,null]}}]}}',
        b"",
        b'{"type":"user","uuid":"u3","isMeta":true,"message":{"content":[{"type":"tool_result","tool_use_id":"c1",'
        b'"content":[{"type":"text","text":"ok"}],"is_error":false}]},"toolUseResult":{"x":1}}',
        b'{"type":"system","subtype":"compact_boundary","uuid":"u4","compactMetadata":{"trigger":"auto","preTokens":9}}',
        b'{"type":"user","isCompactSummary":true,"uuid":"u5","message":{"content":"summary"}}',
    ]
)
OWN = b"\n".join(
    [
        b'{"kind":"message","role":"user","text":"h\xc3\xa4 \\u00e4","at":"2026-01-01T00:00:00Z"}',
        b'{"kind":"tool_call","call_id":"c1","tool":"t","input":{"n":[1.5e3,-2,true,null]},"key":"k1"}',
        b'{"kind":"tool_result","call_id":"c1","content":["x"],"is_error":true,"refs":["r-1"]}',
        b'{"kind":"approval","subject":"s","text":"x","granter":"g","expires_at":"2026-01-01T00:00:00+01:00"}',
        b'{"kind":"note","text":"same"}',
        b'{"kind":"note","text":"same"}',
        b"",
    ]
)
CHAT = [
    b'{"role":"user","content":"h\xc3\xa4 \\u00e4"}',
    b'{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function",'
    b'"function":{"name":"t","arguments":"{\\"n\\": [1.5e3]}"}}]}',
    b'{"role":"tool","tool_call_id":"c1","content":"\\ud83d"}',
    b'{"role":"assistant","content":[{"type":"text","text":"a"},{"type":"image_url","image_url":{"url":"u"}}]}',
]
MESSAGES = b"\r\n".join([*CHAT, b'{"choices":[{"message":{"role":"assistant","content":"b"}}]}'])
DOCUMENT = b"[\n" + b",\n ".join([*CHAT, b'{"role":"user","content":"b"}']) + b"\n]\n"
CONVERSATION = b'{"task_id":7,"traj":[' + b", ".join(CHAT[:2]) + b'],"trial":1}'
EPISODES = b"[" + CONVERSATION + b",\n" + CONVERSATION + b"]"
LINES = b"\n".join([CONVERSATION, b'{"messages":[' + CHAT[0] + b"]}"])
FILES = {
    "claude_code": CLAUDE_CODE,
    "jsonl": OWN,
    "openai messages": MESSAGES,
    "openai document": DOCUMENT,
    "openai episodes": EPISODES,
    "openai lines": LINES,
}
WHOLE_AFTER = {  # items, at the ends of records
    "claude_code": {0, 1, 3, 4, 5},
    "jsonl": {0, 1, 2, 3, 4, 5, 6},
    "openai messages": {0, 1, 2, 3, 5},
    "openai document": {0, 6},
    "openai episodes": {0},
    "openai lines": {0, 4},
}
ITEMS = {
    "claude_code": 6,
    "jsonl": 6,
    "openai messages": 6,
    "openai document": 6,
    "openai episodes": 8,
    "openai lines": 7,
}


@pytest.fixture(scope="session")
def path(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    return tmp_path_factory.mktemp("transcripts") / "damaged.jsonl"


def items_of(path: pathlib.Path, data: bytes) -> list[TranscriptItem]:
    path.write_bytes(data)
    return list(open_transcript(path, digest=lambda b: blake2b(b, digest_size=8).hexdigest()).items())


def refused_or_read(path: pathlib.Path, data: bytes) -> list[TranscriptItem] | None:
    """Read a file; any exception but ImportFormatError escapes. Its place lies in the file."""
    try:
        return items_of(path, data)
    except ImportFormatError as error:
        place = error.line, error.byte
    assert 0 <= place[1] <= len(data)
    assert place[0] == data[: place[1]].count(b"\n") + 1
    return None


@pytest.mark.parametrize("name", FILES)
def test_the_files_are_whole(path: pathlib.Path, name: str) -> None:
    assert len(items_of(path, FILES[name])) == ITEMS[name]


@pytest.mark.parametrize("name", FILES)
@settings(deadline=None)
@given(at=st.integers(0, 2**16), byte=st.integers(0, 255))
def test_one_changed_byte_is_refused_or_read(path: pathlib.Path, name: str, at: int, byte: int) -> None:
    data = bytearray(FILES[name])
    data[at % len(data)] = byte
    refused_or_read(path, bytes(data))


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("byte", [0, 0x22, 0x7B, 0x0A, 0x5C, 0xFF], ids=hex)
def test_each_byte_changed_to_a_telling_one(path: pathlib.Path, name: str, byte: int) -> None:
    """Exhaustive in the place: NUL and 0xFF are always refused, by their own offset."""
    for at in range(len(FILES[name])):
        data = bytearray(FILES[name])
        data[at] = byte
        if byte in (0, 0xFF):
            with pytest.raises(ImportFormatError) as caught:
                items_of(path, bytes(data))
            if byte == 0 and data[at - 1] < 0x80 and data[min(at + 1, len(data) - 1)] < 0x80:
                assert caught.value.byte == at
        else:
            refused_or_read(path, bytes(data))


@pytest.mark.parametrize("name", FILES)
def test_a_file_cut_anywhere_is_refused_or_gives_a_prefix(path: pathlib.Path, name: str) -> None:
    """Exhaustive."""
    whole = items_of(path, FILES[name])
    lengths = set()
    for cut in range(len(FILES[name])):
        items = refused_or_read(path, FILES[name][:cut])
        if items is not None:
            assert items == whole[: len(items)]
            lengths.add(len(items))
    assert lengths == WHOLE_AFTER[name]


# ---------------------------------------------------------------------------------------------- places

RECORDS = st.recursive(
    st.none() | st.booleans() | st.integers(-99, 99) | st.sampled_from([0.5, -1e30, "é\\\n", "true", "\U0001f600"]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "b\n", "null"]), inner, max_size=3)
    ),
    max_leaves=8,
).map(lambda value: json.dumps({"x": value}).encode())


@settings(deadline=None)
@given(record=RECORDS, at=st.integers(0, 999), byte=st.sampled_from(b'{}[]:,"\\tfnaeu0123.-+ xg\t\r\0'))
@example(record=b'{"x":1}}', at=99, byte=0)
@example(record=b'{"\\q":1}', at=99, byte=0)
@example(record=b'{"x":"\\uG"}', at=99, byte=0)
@example(record=b'{"x":fals}', at=99, byte=0)
def test_the_place_is_the_first_byte_that_cannot_stand_there(record: bytes, at: int, byte: int) -> None:
    data = bytearray(record)
    if at < len(data):
        data[at] = byte
    place = place_of(bytes(data))
    if place is None:
        return
    assert place < len(data)
    before = bytes(data[:place])
    assert place_of(before) is None, "the part before the fault is itself at fault"
    if b"\0" not in data:
        assert place_of(bytes(data[: place + 1]) + b"    ") == place, "the byte named is not at fault"


def place_of(data: bytes) -> int | None:
    """Return the place of the fault; None when the text is a record or can go on to one."""
    try:
        msgspec.json.decode(data, type=dict)
    except msgspec.DecodeError as error:
        reason, at = explain(data, error, ended=True)
        return None if "torn" in reason or "no object" in reason else at
    return None


# ---------------------------------------------------------------------------------------------- stand-ins

ESCAPES = st.lists(
    st.sampled_from(
        [
            b"\\ud83d",
            b"\\uDE00",
            b"\\uD83D",
            b"\\udfff",
            b"\\\\",
            b"ud83d",
            b"\\n",
            b"\\u0041",
            b"\xf3\xb0\x80\x80",
            b"ab",
        ]
    ),
    max_size=12,
).map(b"".join)


@settings(deadline=None)
@given(text=ESCAPES, cut=st.tuples(st.integers(0, 80), st.integers(0, 80)))
def test_stand_ins_change_no_offset_and_give_every_slice_back(text: bytes, cut: tuple[int, int]) -> None:
    line = b'{"x":"' + text + b'"}'
    stand_ins = StandIns.of(line)
    lone = any("\ud800" <= char <= "\udfff" for char in json.loads(line)["x"])
    assert (stand_ins is not None) == lone
    if stand_ins is None:
        return
    assert len(stand_ins.data) == len(line)
    assert stand_ins.restore(stand_ins.data) == line
    decoded = msgspec.json.decode(stand_ins.data)["x"]
    assert stand_ins.stand_in(decoded)
    assert re.match(rb"\\u[dD]", line[stand_ins.first :])
    begin, end = (6 + n for n in sorted(cut))
    whole = [m.span() for m in re.finditer(rb"\\u[0-9a-fA-F]{4}|\\.|.", line, re.DOTALL)]
    if all(not start < edge < stop for edge in (begin, end) for start, stop in whole):
        assert stand_ins.restore(stand_ins.data[begin:end]) == line[begin:end]
