"""What goes in comes out: bytes, text and numbers at their edges."""

from __future__ import annotations

from dataclasses import replace

import pytest

from strandline.model.lineage import LineageKind, WorkflowHead
from strandline.ports import Store
from strandline.testing.conformance.base import StoreLaws
from strandline.testing.conformance.stage import FAR, SCOPE, append, record
from strandline.testing.values import make_checkpoint, make_digest, make_event, make_fact, make_view

MEGABYTE = 1024 * 1024
BODIES = {
    "empty": b"",
    "a NUL": b"\0",
    "NULs around": b"\0text\0",
    "every byte": bytes(range(256)),
    "UTF-8": "naïve 東京 🜁 \N{RIGHT-TO-LEFT OVERRIDE} e\N{COMBINING ACUTE ACCENT}".encode(),
    "line ends": b"a\r\nb\rc\n",
    "a number as text": b"1.0",
    "1 MB of one byte": b"x" * MEGABYTE,
    "1 MB without a pattern": b"".join(make_digest(number) for number in range(MEGABYTE // 32)),
}
TEXTS = [
    "",
    " ",
    "\n",
    "é",
    "e\N{COMBINING ACUTE ACCENT}",
    "🜁",
    "'",
    '"; DROP TABLE event; --',
    "%",
    ":name",
    "null",
]


class ValueLaws(StoreLaws):
    """Laws about values: verbatim is the product."""

    @pytest.mark.parametrize("body", BODIES.values(), ids=BODIES.keys())
    def test_a_body_is_kept_byte_for_byte(self, store: Store, body: bytes) -> None:
        """I1, I4: long, empty, binary, text of any script; the salt too."""
        event = make_event(1, body=body)._replace(salt=bytes(8) + bytes(range(248, 256)))
        with store.write(SCOPE) as tx:
            tx.log.insert([event])
        with store.read(SCOPE) as tx:
            assert list(tx.log.read(1, 1)) == [event]

    @pytest.mark.parametrize("record", BODIES.values(), ids=BODIES.keys())
    def test_a_record_is_kept_byte_for_byte(self, store: Store, record: bytes) -> None:
        """I1, I4: the chain runs over it, so the store takes nothing out of it and puts nothing in."""
        event = make_event(1, record=record, body=record)
        with store.write(SCOPE) as tx:
            tx.log.insert([event])
        with store.read(SCOPE) as tx:
            assert list(tx.log.read(1, 1)) == [event]

    @pytest.mark.parametrize("text", TEXTS, ids=ascii)
    def test_text_is_kept_character_for_character(self, store: Store, text: str) -> None:
        """I1: keys, subjects and names; nothing is trimmed, folded, normalized, or read as a command."""
        event = make_event(1, key=text)
        fact = replace(make_fact(text, 1, holder=text), lane=text, audience=text)
        with store.write(SCOPE) as tx:
            tx.log.insert([event])
            tx.register.begin([fact])
        with store.read(SCOPE) as tx:
            assert list(tx.log.read(1, 1)) == [event]
            assert tx.log.by_keys([text]) == {text: event}
            assert tx.register.newest(fact.key.kind, text) == fact

    def test_integers_are_kept_up_to_the_62nd_bit(self, store: Store) -> None:
        """I1, I13: no counter, time or number loses a digit, as it would in a double."""
        big = 2**62 - 1
        head = WorkflowHead(
            revision=big,
            chain=bytes(32),
            lineage_seq=big - 1,
            lineage_chain=bytes(32),
            branch=big - 2,
            summary_no=big - 3,
            ref_id=big - 4,
            live_events=big - 5,
        )
        event = make_event(big)
        fact = replace(make_fact("rule", big - 11), expires_us=big - 12)
        view = replace(make_view(fence=big - 13), lease_until_us=big - 14, budget=big - 15)
        with store.write(SCOPE) as tx:
            tx.log.set_head(head)
            tx.log.insert([event])
            tx.register.begin([fact])
            tx.views.put(view)
            tx.refs.add(["a"], big - 16, [(big - 16, big, True)])
        with store.read(SCOPE) as tx:
            assert tx.log.head() == head
            assert list(tx.log.read(big, FAR)) == [event]
            assert tx.register.as_of(FAR) == [fact]
            assert tx.views.all() == [view]
            assert tx.refs.texts([big - 16]) == {big - 16: "a"}
            assert tx.refs.sightings(big - 16, FAR, 1) == [(big, True)]

    @pytest.mark.parametrize("state", BODIES.values(), ids=BODIES.keys())
    def test_an_agents_state_is_kept_byte_for_byte(self, store: Store, state: bytes) -> None:
        """I14: exact agent state, whatever its bytes."""
        with store.write(SCOPE) as tx:
            append(tx)
            checkpoint = make_checkpoint(record(tx, LineageKind.CHECKPOINT, name="main").lineage_seq, state=state)
            tx.checkpoints.add(checkpoint)
        with store.read(SCOPE) as tx:
            assert tx.checkpoints.get(checkpoint.lineage_seq) == checkpoint
