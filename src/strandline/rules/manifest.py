"""The drop manifest: what the covered events hold and the summary does not, computed from the log (I9)."""

from __future__ import annotations

from collections.abc import Mapping, Set
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
    added: Mapping[int, int],
    seen_before: Set[int],
    standing: Set[int],
    last_seq: Mapping[int, int],
) -> ManifestChange:
    """Compare what stood in the base summary, and what the newly covered events hold, with what stands now.

    Args:
        base_standing: references that stand verbatim in the base summary.
        base_seen: different references in the events that the base covers.
        base_dropped: entries of the base's manifest.
        added: references of the newly covered events, with the newest seq of each.
        seen_before: those of `added` and `standing` that events covered by the base hold too.
        standing: references of covered events that stand verbatim in the new summary.
        last_seq: the newest covered sighting of each reference that is not in `added`.
    """
    changes = []
    dropped_now = (base_standing | added.keys()) - standing
    for ref_id in sorted(dropped_now):
        reason = DropReason.NOT_IN_SUMMARY if ref_id in added else DropReason.MERGED_AWAY
        seq = added[ref_id] if ref_id in added else last_seq[ref_id]
        changes.append(DroppedRef(ref_id=ref_id, dropped=True, last_seq=seq, reason=reason))
    back = standing - base_standing
    for ref_id in sorted(back):
        seq = added[ref_id] if ref_id in added else last_seq[ref_id]
        changes.append(DroppedRef(ref_id=ref_id, dropped=False, last_seq=seq, reason=DropReason.NOT_IN_SUMMARY))
    # A reference was in the base's manifest when the base covered it and it did not stand there.
    was_dropped = (seen_before & (added.keys() | standing)) - base_standing
    newly_dropped = len(dropped_now) - len(dropped_now & was_dropped)
    readmitted = len(back & was_dropped)
    changes.sort(key=lambda change: change.ref_id)
    return ManifestChange(
        changes=tuple(changes),
        refs_seen=base_seen + len(added.keys() - seen_before),
        dropped_count=base_dropped + newly_dropped - readmitted,
    )
