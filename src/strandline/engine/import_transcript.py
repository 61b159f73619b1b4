"""Import: a transcript becomes events of the log, in one transaction (C2)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Protocol

from strandline.engine.append import LogWriter, PreparedEvent, prepare
from strandline.engine.environment import Environment
from strandline.errors import ImportFormatError, InvalidInputError
from strandline.limits import IMPORT_CHUNK_EVENTS, IMPORT_KEPT_BYTES_MAX
from strandline.model.event import Envelope, EventKind, NewEvent
from strandline.model.outcome import ForeignSummary
from strandline.model.transcript import ForeignText, ImportReport, SessionRestart, TranscriptItem
from strandline.ports import Transaction

Progress = Callable[[int], None]
Place = tuple[int, int]  # line from 1, byte from 0


class Transcript(Protocol):
    """A file that can be read from the start as often as needed; it raises ImportFormatError where it is damaged."""

    @property
    def format(self) -> str:
        """The name of the format."""
        ...

    @property
    def size_bytes(self) -> int:
        """The size of the file."""
        ...

    @property
    def lines(self) -> int:
        """Lines read so far in this pass."""
        ...

    @property
    def bytes_read(self) -> int:
        """Bytes read so far in this pass."""
        ...

    @property
    def line_byte(self) -> int:
        """Where the newest line of this pass begins."""
        ...

    @property
    def skipped(self) -> Mapping[str, int]:
        """Records that are no events, by type, so far in this pass."""
        ...

    def items(self) -> Iterator[TranscriptItem]:
        """Yield the records of the file from its start."""
        ...


def import_transcript(env: Environment, transcript: Transcript, progress: Progress | None = None) -> ImportReport:
    """Read the file to prove it whole, then append it. Importing it again adds what is new.

    What a small file states is kept from the first pass; a larger one is read once more, so that memory does not grow
    with it.

    Raises:
        ImportFormatError, InvalidInputError, IdempotencyConflictError: nothing was imported.
    """
    first = _placed(transcript, progress, 0)
    kept = list(first) if transcript.size_bytes <= IMPORT_KEPT_BYTES_MAX else None
    for _ in first:  # proves a larger file whole, and keeps nothing
        pass
    with env.store.write(env.scope, joins=False) as tx:
        run = _Import(env, tx)
        for item, place in _placed(transcript, progress, transcript.bytes_read // 2) if kept is None else kept:
            run.take(item, place)
        run.flush()
    if progress is not None:
        progress(transcript.size_bytes)
    report = ImportReport(
        format=transcript.format,
        lines=transcript.lines,
        events_imported=run.added,
        events_known=run.known,
        foreign_summaries=run.foreign,
        calls_abandoned=run.abandoned,
        lines_skipped=dict(transcript.skipped),
        revision=run.revision,
    )
    env.emit("import", {"scope": str(env.scope), "revision": run.revision, "added": run.added})
    return report


def _placed(transcript: Transcript, progress: Progress | None, done: int) -> Iterator[tuple[TranscriptItem, Place]]:
    """Yield what the file states, with its place; `progress` is told how far both passes have come, in bytes."""
    for count, item in enumerate(transcript.items()):
        yield item, (transcript.lines, transcript.line_byte)
        if progress is not None and count % IMPORT_CHUNK_EVENTS == 0:
            progress(done + transcript.bytes_read // 2)


def _at(error: InvalidInputError, place: Place) -> ImportFormatError:
    line, byte = place
    return ImportFormatError(error.message, line=line, byte=byte)


class _Import:
    """One import within one transaction: batches of events, and what stands between them."""

    def __init__(self, env: Environment, tx: Transaction) -> None:
        self._tx = tx
        self._references = env.references
        self._writer = LogWriter(env, tx)
        self._batch: list[PreparedEvent] = []
        self._places: list[Place] = []
        self._last_seq = 0  # of the events of the file taken so far
        self.added = self.known = self.foreign = self.abandoned = 0

    @property
    def revision(self) -> int:
        return self._writer.revision

    def take(self, item: TranscriptItem, place: Place) -> None:
        if isinstance(item, NewEvent):
            self._add(item, place)
            if len(self._batch) >= IMPORT_CHUNK_EVENTS:
                self.flush()
        elif isinstance(item, SessionRestart):
            self.flush()
            self._restart(item, place)
        else:
            self.flush()
            self._keep_foreign(item)

    def _add(self, event: NewEvent, place: Place) -> None:
        try:
            self._batch.append(prepare(event, self._references))
        except InvalidInputError as error:
            raise _at(error, place) from error
        self._places.append(place)

    def flush(self) -> None:
        if not self._batch:
            return
        try:
            appended = self._writer.add_missing(self._batch)
        except InvalidInputError as error:
            if error.position is None:
                raise
            raise _at(error, self._places[error.position]) from error
        self._last_seq = max(self._last_seq, *appended.seqs)
        self.added += appended.added
        self.known += len(self._batch) - appended.added
        self._batch, self._places = [], []

    def _restart(self, item: SessionRestart, place: Place) -> None:
        """After a restart no result can come: what is open is abandoned, and said so in the log (I8).

        When a grown file is imported again, calls that are open now but came after this restart are left alone.
        """
        for call in self._writer.open_calls:
            if call.source_seq > self._last_seq or item.thread not in (None, call.lane):
                continue
            self._add(
                NewEvent(
                    kind=EventKind.ABANDONED,
                    body="the session was restarted before a result came",
                    envelope=Envelope(call_id=call.key.subject, thread=call.lane),
                    audience=call.audience,
                    key=f"{item.key}#abandoned#{call.source_seq}",
                ),
                place,
            )
            self.abandoned += 1
        self.flush()

    def _keep_foreign(self, item: ForeignText) -> None:
        kept = ForeignSummary(key=item.key, through_seq=self._last_seq, text=item.text, detail=item.detail)
        added = self._tx.summaries.add_foreign([kept])
        self._writer.count_foreign(added)
        self.foreign += 1
