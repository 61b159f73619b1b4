"""The checks of the protocol, each with a name and the law that it keeps."""

from __future__ import annotations

from typing import Final, NamedTuple


class Guards(NamedTuple):
    """The checks of the protocol. All of them are on; a test switches one off to prove that the search would see it."""

    fence: bool = True  # store and activate ask whether the fence is still theirs (I6)
    base_at_claim: bool = True  # a claim asks whether the generation is still that of the plan (I6)
    base_at_activation: bool = True  # an activation asks it again (I6)
    validation: bool = True  # half a draft is refused (I5)
    calls: bool = True  # a watermark stops before an open call, and parts none from its result (I8)
    cases: bool = True  # a summary under an open blocking case is not compacted (I11)
    basis: bool = True  # a checkpoint asks whether its basis is still the view's generation (I14)
    equal: bool = True  # a checkpoint whose place is equal to that of the last move is refused (I15)
    all_moves: bool = True  # revert and rewind refuse checkpoints from before them, as a compaction does (I15)
    left_past: bool = True  # the checkpoints between X and a restore of X are no targets (I15)
    recovery_fences: bool = True  # recovery fences what is in flight (I15)
    revert_fences: bool = True  # a revert does (C17)
    needs: bool = True  # recovery asks whether the need is there verbatim (I16)
    new_generation: bool = True  # a revert or rewind takes a generation that nobody had (I13)
    rewind_moves: bool = True  # a rewind takes the pointer back behind no abandoned event (C22)
    bad_stays_left: bool = True  # what a revert left as bad is not gone back to (C17)
    snapshot: bool = True  # a context is read in one snapshot (I7)
    pointer: bool = True  # after a lost acknowledgement the pointer is read before anything is said (I19)


ALL_ON: Final = Guards()
