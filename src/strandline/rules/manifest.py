"""The drop manifest: what the covered events hold and the summary does not, computed from the log (I9)."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Set
from dataclasses import dataclass

from strandline.model.summary import DroppedRef, DropReason


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestChange:
    """The changes against the base summary, and the counts after them."""

    changes: tuple[DroppedRef, ...]
    refs_seen: int
    dropped_count: int


def change_manifest(
    *,
    base_standing: Set[int],
    base_seen: int,
    base_dropped: int,
    added: Iterable[tuple[int, int]],
    seen_before: Container[int],
    standing: Set[int],
    last_seq: Mapping[int, int],
    erased: Container[int] = (),
) -> ManifestChange:
    """Compare what stood in the base summary, and what the newly covered events hold, with what stands now.

    Args:
        base_standing: references that stand verbatim in the base summary.
        base_seen: different references in the events that the base covers.
        base_dropped: entries of the base's manifest.
        added: references of the newly covered events, with the newest seq of each; walked once.
        seen_before: references that events covered by the base hold.
        standing: references of covered events that stand verbatim in the new summary.
        last_seq: the newest covered sighting of each of the standing ones, then and now, that is not in `added`.
        erased: references whose texts were erased: they are accounted for by number and reason.
    """
    changes = []
    seen, dropped = base_seen, base_dropped
    for ref_id, seq in added:
        before = ref_id in seen_before
        was_dropped = before and ref_id not in base_standing  # the base covered it, and it did not stand there
        seen += not before
        if ref_id not in standing:
            changes.append(_left_out(ref_id, seq, DropReason.NOT_IN_SUMMARY, erased))
            dropped += not was_dropped
        elif ref_id not in base_standing:
            changes.append(DroppedRef(ref_id=ref_id, dropped=False, last_seq=seq, reason=DropReason.NOT_IN_SUMMARY))
            dropped -= was_dropped
    for ref_id, seq in last_seq.items():
        if ref_id not in standing:
            changes.append(_left_out(ref_id, seq, DropReason.MERGED_AWAY, erased))
            dropped += 1
        elif ref_id not in base_standing:
            changes.append(DroppedRef(ref_id=ref_id, dropped=False, last_seq=seq, reason=DropReason.NOT_IN_SUMMARY))
            dropped -= ref_id in seen_before
    changes.sort(key=lambda change: change.ref_id)
    return ManifestChange(changes=tuple(changes), refs_seen=seen, dropped_count=dropped)


def _left_out(ref_id: int, last_seq: int, reason: DropReason, erased: Container[int]) -> DroppedRef:
    return DroppedRef(
        ref_id=ref_id, dropped=True, last_seq=last_seq, reason=DropReason.ERASED if ref_id in erased else reason
    )
