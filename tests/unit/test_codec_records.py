"""Law (I1, I4): a record comes back as it was written, says what it says in few bytes, and nothing else decodes as one.

Checked by round trips over generated events, by every single flipped bit of one, and by the shape of the wire form.
"""

import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

import strandline
from strandline.codec import (
    EMPTY_CHAIN,
    body_digest,
    chain_event,
    decode_sightings,
    decode_varints,
    encode_record,
    encode_varints,
    fold,
    open_event,
    unfold,
)
from strandline.codec.packing import compress, decompress
from strandline.limits import UNPACKED_BYTES_MAX
from strandline.model.event import Basis, BodyFormat, Envelope, EventKind, Role, Sighting, StoredEvent

SALT = bytes(range(16))
text = st.none() | st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
numbers = st.integers(0, 2**62)
envelopes = st.builds(
    Envelope,
    role=st.none() | st.sampled_from(Role),
    thread=text,
    call_id=text,
    tool=text,
    is_error=st.booleans(),
    late=st.booleans(),
    subject=text,
    granter=text,
    scope=text,
    expires_us=st.none() | numbers,
    source_at=text,
    parent=text,
    message_id=text,
)
records = st.fixed_dictionaries(
    {
        "kind": st.sampled_from(EventKind),
        "at_us": numbers,
        "format": st.sampled_from(BodyFormat),
        "sightings": st.lists(st.builds(Sighting, ref_id=st.integers(1, 2**40), declared=st.booleans()), max_size=5),
        "actor": st.text(st.characters(exclude_categories=["Cs"]), max_size=20),
        "audience": st.sampled_from(["all", "release", "x"]),
        "envelope": envelopes,
        "branch": st.integers(0, 2**40),
        "call_seq": st.none() | st.integers(1, 2**62),
        "basis": st.none() | st.builds(Basis, view=st.just("main"), generation=numbers, revision=numbers),
    }
)


def stored(record: bytes, body: bytes = b"body", key: str | None = "k", seq: int = 7) -> StoredEvent:
    chain = chain_event(EMPTY_CHAIN, seq, key, record, body_digest(SALT, body))
    return StoredEvent(seq, key, record, body, SALT, None, chain)


@given(records)
def test_an_event_comes_back_whole(fields):
    """I1: every kind, every field of the envelope, the basis and the sightings."""
    event = open_event(stored(encode_record(**fields)), EMPTY_CHAIN, "w")
    for name in ("kind", "at_us", "format", "actor", "audience", "envelope", "branch", "call_seq", "basis"):
        assert getattr(event, name) == fields[name]
    assert decode_sightings(event.sightings) == tuple(fields["sightings"])
    assert (event.seq, event.key, event.body, event.salt) == (7, "k", b"body", SALT)


times = st.datetimes().map(lambda at: at.isoformat(timespec="milliseconds") + "Z") | st.sampled_from(
    [
        "2026-01-31T12:00:00.000Z",
        "2026-02-30T12:00:00.000Z",
        "2026-01-31t12:00:00.000Z",
        "0000-01-01T00:00:00.000Z",
        "2026-01-31T24:00:00.000Z",
        "2026-01-31T12:00:60.000Z",
        "2026-01-31_12:00:00.000Z",
        "2026-W05-6T12:00:00.00Z",
    ]
)


@given(times)
def test_a_time_comes_back_as_it_stood(source_at):
    """I1: packed or not, to the character."""
    record = simple(envelope=Envelope(source_at=source_at))
    assert open_event(stored(record), EMPTY_CHAIN, "w").envelope.source_at == source_at


def test_a_usual_time_takes_few_bytes():
    assert len(simple(envelope=Envelope(source_at="2026-01-31T12:00:00.123Z"))) <= len(simple()) + 14


def simple(**fields: object) -> bytes:
    given_ = {"kind": EventKind.MESSAGE, "at_us": 10**15, "format": BodyFormat.TEXT, "sightings": (), "actor": "a"}
    return encode_record(**{**given_, "audience": "all", "envelope": Envelope(), **fields})  # type: ignore[arg-type]


def test_what_is_not_said_takes_no_room():
    """A plain message is told in a few bytes: fields that say nothing are left off the end."""
    assert len(simple()) <= 20


@pytest.mark.parametrize("part", ["key", "record", "body", "salt", "chain", "seq"])
def test_every_flipped_bit_is_found(part):
    """I4: whichever bit of whichever part."""
    whole = stored(simple(envelope=Envelope(call_id="c", role=Role.USER)))
    value = getattr(whole, part)
    data = value if isinstance(value, bytes) else value.encode() if isinstance(value, str) else value.to_bytes(4, "big")
    for bit in range(8 * len(data)):
        flipped = bytearray(data)
        flipped[bit // 8] ^= 1 << bit % 8
        changed: object = bytes(flipped)
        if part == "key":
            changed = bytes(flipped).decode("latin-1")
        elif part == "seq":
            changed = int.from_bytes(flipped, "big")
        with pytest.raises(strandline.CorruptRecordError):
            open_event(whole._replace(**{part: changed}), EMPTY_CHAIN, "w")


@pytest.mark.parametrize(
    "lacks", [{"body": None}, {"salt": None}, {"body_digest": bytes(32)}, {"body": None, "salt": None}]
)
def test_an_event_that_lacks_a_part_is_found(lacks):
    """I4, C31: body and salt go together, and only with the digest that stands for them."""
    with pytest.raises(strandline.CorruptRecordError, match="a part of the event is missing"):
        open_event(stored(simple())._replace(**lacks), EMPTY_CHAIN, "w")


def test_an_erased_event_still_verifies():
    """I1, C31: its digest stands in the place of body and salt."""
    whole = stored(simple())
    erased = whole._replace(body=None, salt=None, body_digest=body_digest(SALT, b"body"))
    assert open_event(erased, EMPTY_CHAIN, "w").body is None


def test_a_key_is_told_from_no_key():
    """I3, I4: the empty key is a key, and bytes don't wander between key and record."""
    record, digest = simple(), body_digest(SALT, b"")
    chains = {chain_event(EMPTY_CHAIN, 1, key, record, digest) for key in (None, "", "a")}
    assert len(chains) == 3
    assert chain_event(EMPTY_CHAIN, 1, "ab", b"c", digest) != chain_event(EMPTY_CHAIN, 1, "a", b"bc", digest)


@pytest.mark.parametrize("record", [b"", b"\xc0", b"\x90", b"\x91\x01", b"\xff" * 20, simple() + b"\0"])
def test_what_is_no_record_is_told_so(record):
    """I4: also when its chain is good, as another program could have made it."""
    with pytest.raises(strandline.CorruptRecordError, match="not a record") as caught:
        open_event(stored(record), EMPTY_CHAIN, "w")
    assert caught.value.place == "event 7 of 'w'"


@given(st.lists(st.integers(0, 2**64)))
def test_numbers_come_back(given_numbers):
    assert decode_varints(encode_varints(given_numbers)) == given_numbers


@given(st.binary(max_size=2_000), st.binary(max_size=60))
def test_packed_bytes_come_back(data, known):
    """I4: whatever they are, alone and in one column."""
    assert decompress(*compress(data, known), "place", known) == data
    assert unfold(fold(data), "place") == data


def test_packing_takes_less_and_never_more():
    words = b"the function returns the value of the argument, and raises an error without one. " * 9
    assert len(compress(words)[1]) < len(words) / 8
    assert compress(bytes(range(256))) == (0, bytes(range(256)))


@pytest.mark.parametrize("damage", [lambda data: data[:-1], lambda data: data + b"x", lambda data: b"\7" + data[1:]])
def test_damaged_packed_bytes_are_told_so(damage):
    """I4: cut, lengthened, of an unknown codec."""
    data = fold(b"some words that repeat, some words that repeat, some words that repeat")
    assert data[0] == 1
    with pytest.raises(strandline.CorruptRecordError):
        unfold(damage(data), "a column")


def test_packed_bytes_that_hold_too_much_are_told_so():
    """I22: a few damaged bytes can say that a gigabyte follows; no more than UNPACKED_BYTES_MAX is unpacked."""
    deflate = zlib.compressobj(9, zlib.DEFLATED, -15)
    bomb = deflate.compress(bytes(UNPACKED_BYTES_MAX + 1)) + deflate.flush()
    with pytest.raises(strandline.CorruptRecordError, match="too much"):
        decompress(1, bomb, "place")


def test_an_empty_column_is_no_packed_bytes():
    with pytest.raises(strandline.CorruptRecordError):
        unfold(b"", "a column")
