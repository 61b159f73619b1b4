"""The part of `verify` that counts the index of words again (C4, C5)."""

from __future__ import annotations

from array import array
from typing import Final

from strandline.codec import searched_text
from strandline.engine.reading import read_log
from strandline.engine.search_index import indexed_ranges
from strandline.engine.verify_log import Notes
from strandline.ports import Transaction
from strandline.rules.searching import words_of

_SUMS: Final = (1 << 64) - 1
_ANEW: Final = "`strandline search TEXT --reindex` makes it anew"


def check_search(tx: Transaction, notes: Notes) -> None:
    """Every indexed event stands in the index under its words, and under no other: counted against the log."""
    own = [span for span in indexed_ranges(tx) if span[0] > tx.log.head().fork_seq]
    first, through = own[0] if own else (1, 0)
    sums = array("Q", bytes(8 * (through + 1 - first)))  # of each event: its words, added up
    stray = 0
    for event in read_log(tx, first, through, notes.scope.workflow):
        sums[event.seq - first] = sum(map(_number, words_of(searched_text(event)))) & _SUMS
    for word, chunk, mask in tx.search.all():
        value = _number(word)
        while mask:
            at = chunk + mask.bit_length() - 1 - first
            mask ^= 1 << mask.bit_length() - 1
            if 0 <= at < len(sums):
                sums[at] = (sums[at] - value) & _SUMS
            else:
                stray += 1
    wrong = [at for at, left in enumerate(sums) if left]
    if wrong:
        reason = f"it has other words than the log for {len(wrong)} events, first event {first + wrong[0]}; {_ANEW}"
        notes.say("search_posting", reason)
    if stray:
        notes.say("search_posting", f"{stray} of its entries name events that are not indexed; {_ANEW}")


def _number(word: str) -> int:
    """Return a number for a word, none of them 0: it is compared within this process only."""
    return hash(f"+{word}")
