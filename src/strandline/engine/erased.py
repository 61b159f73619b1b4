"""A workflow as it will be once events are erased: what is re-derived is made from this, before anything is (C31)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from strandline.codec import stored_digest
from strandline.model.event import StoredEvent
from strandline.ports import Transaction


class ErasedTransaction:
    """`ports.Transaction` of a workflow that reads as if these events had been erased, and these references."""

    def __init__(self, tx: Transaction, workflow: str, seqs: Collection[int], gone: Collection[int]) -> None:
        self.log = _ErasedLog(tx, workflow, frozenset(seqs))
        self.refs = _ErasedRefs(tx, frozenset(gone))
        self.register = tx.register
        self.search = tx.search
        self.views = tx.views
        self.jobs = tx.jobs
        self.summaries = tx.summaries
        self.lineage = tx.lineage
        self.checkpoints = tx.checkpoints
        self.cases = tx.cases
        self.effects = tx.effects
        self.permits = tx.permits
        self.readers = tx.readers
        self.due = tx.due
        self.cooldowns = tx.cooldowns
        self.states = tx.states
        self.nodes = tx.nodes
        self.relative = tx.relative


class _ErasedLog:
    def __init__(self, tx: Transaction, workflow: str, seqs: frozenset[int]) -> None:
        self._log = tx.log
        self._workflow = workflow
        self._seqs = seqs
        self.head = tx.log.head
        self.set_head = tx.log.set_head
        self.insert = tx.log.insert
        self.by_keys = tx.log.by_keys
        self.key_holders = tx.log.key_holders
        self.count = tx.log.count
        self.abandon = tx.log.abandon
        self.abandoned = tx.log.abandoned
        self.erase = tx.log.erase

    def read(self, from_seq: int, through_seq: int) -> Iterator[StoredEvent]:
        for stored in self._log.read(from_seq, through_seq):
            if stored.seq in self._seqs:
                digest = stored_digest(stored, self._workflow)
                yield stored._replace(body=None, salt=None, body_digest=digest)
            else:
                yield stored


class _ErasedRefs:
    def __init__(self, tx: Transaction, gone: frozenset[int]) -> None:
        self._refs = tx.refs
        self._gone = gone
        self.add = tx.refs.add
        self.sightings = tx.refs.sightings
        self.all_sightings = tx.refs.all_sightings
        self.all_texts = tx.refs.all_texts
        self.check_keys = tx.refs.check_keys
        self.erase = tx.refs.erase

    def texts(self, ref_ids: Iterable[int]) -> dict[int, str]:
        return self._refs.texts(set(ref_ids) - self._gone)

    def find(self, texts: Sequence[str]) -> dict[str, int]:
        return {text: ref_id for text, ref_id in self._refs.find(texts).items() if ref_id not in self._gone}
