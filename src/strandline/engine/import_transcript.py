"""Import: a transcript becomes events of the log, in one transaction (C2)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Final, Protocol

from strandline.codec import keyed_hex, storable
from strandline.engine.append import LogWriter, PreparedEvent, prepare
from strandline.engine.environment import Environment
from strandline.engine.watching import watched
from strandline.errors import IdempotencyConflictError, ImportFormatError, InvalidInputError
from strandline.limits import (
    IMPORT_CHUNK_EVENTS,
    IMPORT_KEPT_BYTES_MAX,
    IMPORT_LEFT_OUT_LISTED_MAX,
    IMPORT_REASON_CHARS_MAX,
)
from strandline.model.event import Envelope, EventKind, NewEvent
from strandline.model.outcome import ForeignSummary
from strandline.model.transcript import (
    IMPORT_ACTOR,
    ForeignText,
    ImportReport,
    ImportStart,
    LeftOut,
    SessionRestart,
    TranscriptItem,
)
from strandline.ports import Transaction
from strandline.ports.occurrences import ImportTold
from strandline.rules.reference_rules import References

Progress = Callable[[int], None]
Place = tuple[int, int, int]  # of a record: line from 1, byte from 0, size in bytes
Ready = PreparedEvent | InvalidInputError  # an event, prepared; or why it can't be
Placed = tuple[TranscriptItem, Place, Ready | None]

_FROM_START: Final = ImportStart()
_FORKED_HINT: Final = "Import the file as it was with what follows, or import it into another workflow."


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
    def start(self) -> ImportStart:
        """Where each pass begins."""
        ...

    @property
    def salvage(self) -> bool:
        """Whether what is damaged is left out, instead of raised."""
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
    def place(self) -> Place:
        """Where the newest record of this pass stands."""
        ...

    @property
    def skipped(self) -> Mapping[str, int]:
        """Records that are no events, by type, so far in this pass."""
        ...

    @property
    def left_out(self) -> Sequence[LeftOut]:
        """What is left out so far in this pass, as far as it is listed."""
        ...

    @property
    def left_out_count(self) -> int:
        """How much is left out so far in this pass."""
        ...

    @property
    def unfinished_bytes(self) -> int:
        """The size of a last line that is still being written, in this pass."""
        ...

    def items(self) -> Iterator[TranscriptItem]:
        """Yield the records of the file from where a pass begins."""
        ...


@watched("import")
def import_transcript(env: Environment, transcript: Transcript, progress: Progress | None = None) -> ImportReport:
    """Read the file to prove it whole, then append it. Importing it again adds what is new.

    What a small file states is kept from the first pass; a larger one is read once more, so that memory does not grow
    with it.

    Raises:
        ImportFormatError, InvalidInputError, IdempotencyConflictError: nothing was imported.
    """
    run = _run(env, _proven(env.references, transcript, progress), salvage=transcript.salvage, start=transcript.start)
    if progress is not None:
        progress(transcript.size_bytes)
    return _report(transcript, run)


def import_conversations(
    env_of: Callable[[int], Environment], transcript: Transcript, progress: Progress | None = None
) -> list[ImportReport]:
    """Import each conversation of a file into a workflow of its own, each in one transaction.

    Args:
        env_of: the environment for the conversation of a number; numbers run from 1.
        transcript: opened to be split.
        progress: as for `import_transcript`.

    Raises:
        ImportFormatError, InvalidInputError: nothing was imported, if the file itself is at fault.
        IdempotencyConflictError: the conversations before this one were imported; importing again is safe.
    """
    number = 1

    def conversation(placed: Placed) -> int:
        nonlocal number
        item = placed[0]
        if isinstance(item, SessionRestart) and item.opens is not None:
            number = item.opens
        return number

    proven = groupby(_proven(env_of(number).references, transcript, progress), conversation)
    runs = [_run(env_of(place), items, salvage=transcript.salvage) for place, items in proven]
    if progress is not None:
        progress(transcript.size_bytes)
    return [_report(transcript, run) for run in runs]


def _proven(references: References, transcript: Transcript, progress: Progress | None) -> Iterator[Placed]:
    """Read all of a file, and return what it states.

    Nobody waits for the lock of the workflow meanwhile; the events of a file that is kept are prepared here, too.
    """
    first = _placed(transcript, progress, 0)
    if transcript.size_bytes - transcript.start.byte <= IMPORT_KEPT_BYTES_MAX:
        return iter([(item, place, _ready(item, references)) for item, place, _ in first])
    for _ in first:  # proves a larger file whole, and keeps nothing
        pass
    return _placed(transcript, progress, transcript.bytes_read // 2)


def _placed(transcript: Transcript, progress: Progress | None, done: int) -> Iterator[Placed]:
    """Yield what the file states, with its place; `progress` is told how far both passes have come, in bytes."""
    for count, item in enumerate(transcript.items()):
        yield item, transcript.place, None
        if progress is not None and count % IMPORT_CHUNK_EVENTS == 0:
            progress(done + transcript.bytes_read // 2)


def _ready(item: TranscriptItem, references: References) -> Ready | None:
    return _prepared(item, references) if isinstance(item, NewEvent) else None


def _prepared(event: NewEvent, references: References) -> Ready:
    try:
        return prepare(event, references)
    except InvalidInputError as error:
        return error


def _run(env: Environment, items: Iterable[Placed], *, salvage: bool, start: ImportStart = _FROM_START) -> _Import:
    with env.write(joins=False) as tx:
        run = _Import(env, tx, salvage=salvage, last_seq=start.seq)
        for item, place, ready in items:
            run.take(item, place, ready)
        run.flush()
    env.emit("import", ImportTold(revision=run.revision, added=run.added))
    return run


def _report(transcript: Transcript, run: _Import) -> ImportReport:
    left_out = sorted([*transcript.left_out, *run.left_out], key=lambda left: left.byte)
    return ImportReport(
        workflow=run.workflow,
        format=transcript.format,
        lines=transcript.lines,
        events_imported=run.added,
        events_known=run.known,
        foreign_summaries=run.foreign,
        calls_abandoned=run.abandoned,
        lines_skipped=dict(transcript.skipped),
        revision=run.revision,
        left_out=tuple(left_out[:IMPORT_LEFT_OUT_LISTED_MAX]),
        left_out_count=transcript.left_out_count + len(run.left_out),
        unfinished_bytes=transcript.unfinished_bytes,
    )


def _at(error: InvalidInputError, place: Place) -> ImportFormatError:
    line, byte, _ = place
    return ImportFormatError(error.message, line=line, byte=byte)


class _Import:
    """One import within one transaction: batches of events, and what stands between them."""

    def __init__(self, env: Environment, tx: Transaction, *, salvage: bool, last_seq: int) -> None:
        self._env = env
        self._tx = tx
        self._references = env.references
        self._salvage = salvage
        self._writer = LogWriter(env, tx)
        self._batch: list[PreparedEvent] = []
        self._places: list[Place] = []
        self._last_seq = last_seq  # of the events of the file taken so far
        self._refused: Place | None = None  # the record of which an event can't be stored
        self.workflow = env.scope.workflow
        self.left_out: list[LeftOut] = []  # what reads well, but the log can't take
        self.added = self.known = self.foreign = self.abandoned = 0

    @property
    def revision(self) -> int:
        return self._writer.revision

    def take(self, item: TranscriptItem, place: Place, ready: Ready | None) -> None:
        if isinstance(item, NewEvent):
            if len(self._batch) >= IMPORT_CHUNK_EVENTS and place != self._places[-1]:
                self.flush()  # between two records, so that a record can be left out as a whole
            self._add(item, place, ready)
        elif isinstance(item, SessionRestart):
            self.flush()
            self._restart(item, place)
        else:
            self.flush()
            self._keep_foreign(item)

    def _add(self, event: NewEvent, place: Place, ready: Ready | None = None) -> None:
        if place == self._refused:
            return
        if ready is None:
            ready = _prepared(event, self._references)
        if isinstance(ready, InvalidInputError):
            if not self._salvage:
                raise _at(ready, place) from ready
            first = self._places.index(place) if place in self._places else len(self._places)
            ready = self._note_of(self._batch[first].new if self._batch[first:] else event, place, ready.message)
            del self._batch[first:], self._places[first:]
            self._refused = place
        self._batch.append(ready)
        self._places.append(place)

    def flush(self) -> None:
        if self._salvage:
            self._drop_what_was_left_out()
        while self._batch:
            try:
                appended = self._writer.add_missing(self._batch)
            except IdempotencyConflictError as error:
                raise self._conflict(error) from error
            except InvalidInputError as error:
                if error.position is None:
                    raise
                if not self._salvage:
                    raise _at(error, self._places[error.position]) from error
                self._leave_out(error.position, error.message)
                continue
            self._last_seq = max(self._last_seq, *appended.seqs)
            self.added += appended.added
            self.known += len(self._batch) - appended.added
            self._batch, self._places = [], []

    def _conflict(self, error: IdempotencyConflictError) -> IdempotencyConflictError:
        """Say where in the file something else stands than was imported under that key."""
        index = next(n for n, event in enumerate(self._batch) if event.new.key == error.key)
        line, byte, _ = self._places[index]
        return IdempotencyConflictError(
            f"line {line}, byte {byte}: the file does not continue what was imported: event {error.seq} stands in this "
            "place, with other content; nothing was imported",
            key=error.key,
            seq=error.seq,
            line=line,
            byte=byte,
            hint=_FORKED_HINT,
        )

    # ------------------------------------------------------------------------------------------ salvage

    def _leave_out(self, position: int, reason: str) -> None:
        """Put a note into the place of a record that the log can't take, such as the end of a fact that was left out.

        The register has seen a part of the batch, of which nothing was stored: another writer begins.
        """
        place = self._places[position]
        first = self._places.index(place)
        after = first + self._places.count(place)
        note = self._note_of(self._batch[first].new, place, reason)
        self._batch[first:after], self._places[first:after] = [note], [place]
        self._writer = LogWriter(self._env, self._tx)

    def _note_of(self, event: NewEvent, place: Place, reason: str) -> PreparedEvent:
        """Return the note that stands for a record, of which `event` is the first."""
        line, byte, size_bytes = place
        told = self._list(place, reason)
        body = (
            f"The import left out a record here: line {line}, bytes {byte} to {byte + size_bytes} of the file: {told}"
        )
        note = NewEvent(kind=EventKind.NOTE, body=body, actor=IMPORT_ACTOR, key=self._key_of_gap(event))
        return prepare(note, self._references)

    def _list(self, place: Place, reason: str) -> str:
        line, byte, size_bytes = place
        told = storable(reason, IMPORT_REASON_CHARS_MAX)
        self.left_out.append(LeftOut(line=line, byte=byte, size_bytes=size_bytes, reason=told))
        return told

    def _key_of_gap(self, event: NewEvent) -> str:
        return f"left-out:{keyed_hex(self._env.store.digest_key, (event.key or '').encode())}"

    def _drop_what_was_left_out(self) -> None:
        """Leave out again what an earlier import left out: the log may take it now, but its place is gone."""
        keys = [self._key_of_gap(event.new) for event in self._batch]
        known = self._tx.log.by_keys(keys)
        gone = {place: known[key].seq for key, place in zip(keys, self._places, strict=True) if key in known}
        for place, seq in gone.items():
            self._list(place, f"an earlier import left it out, and says so in event {seq}")
        kept = [pair for pair in zip(self._batch, self._places, strict=True) if pair[1] not in gone]
        self._batch, self._places = [event for event, _ in kept], [place for _, place in kept]
        self._last_seq = max(self._last_seq, *gone.values(), 0)

    # ------------------------------------------------------------------------------------------ between events

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
