"""Changes of the manifest as bytes: of each the reference, what changed and why, and its last-known event."""

from __future__ import annotations

from collections.abc import Sequence

from strandline.codec import decode_varints, encode_varints
from strandline.model.summary import DroppedRef
from strandline.stores.sql.rows import DROP_CODES, DROP_REASONS


def encode_changes(changes: Sequence[DroppedRef]) -> bytes:
    """Encode changes as varints, by ref_id: the step in ref_id, 2·reason + dropped, the step in seq (zigzag)."""
    numbers: list[int] = []
    ref_id = seq = 0
    for change in sorted(changes, key=lambda change: change.ref_id):
        step = change.last_seq - seq
        numbers += (
            change.ref_id - ref_id,
            DROP_CODES[change.reason] << 1 | change.dropped,
            step << 1 if step >= 0 else -step * 2 - 1,
        )
        ref_id, seq = change.ref_id, change.last_seq
    return encode_varints(numbers)


def decode_changes(data: bytes) -> list[DroppedRef]:
    """Decode changes."""
    changes = []
    ref_id = seq = 0
    numbers = iter(decode_varints(data))
    for step, what, seq_step in zip(numbers, numbers, numbers, strict=True):
        ref_id += step
        seq += seq_step >> 1 if not seq_step & 1 else -((seq_step + 1) >> 1)
        reason = DROP_REASONS[what >> 1]
        changes.append(DroppedRef(ref_id=ref_id, dropped=bool(what & 1), last_seq=seq, reason=reason))
    return changes
