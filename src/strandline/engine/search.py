"""Search: the verbatim events that hold words, with their provenance (C4).

The index names candidates; each is read from the log, checked against digest, chain and audiences, and compared again.
So a damaged index can't make a hit up. What is not indexed yet is looked through, so that none is left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Final

from strandline.codec import encode_text, searched_text
from strandline.engine.environment import Environment, check_whole
from strandline.engine.reading import abandoned_of, find_view, read_log, read_one, visible, with_references
from strandline.engine.search_index import OF_THE_INDEX, extend_index, indexed_ranges, make_index_anew
from strandline.engine.watching import watched
from strandline.errors import CorruptRecordError, InvalidInputError, OutcomeUnknownError, StoreUnavailableError
from strandline.limits import (
    FORK_DEPTH_MAX,
    SEARCH_BEGINNING_ROWS_MAX,
    SEARCH_HITS,
    SEARCH_HITS_MAX,
    SEARCH_PAGE_EVENTS,
)
from strandline.model.event import Event
from strandline.model.outcome import SearchHit
from strandline.ports import Transaction
from strandline.rules.searching import ANY_WORD, Found, Posting, Term, events_of, find, in_all, in_any, parse, united

_ANEW: Final = (
    "Nothing is lost: the index of words is made from the log. `strandline search TEXT --reindex` makes it anew."
)


@watched("search")
def search(
    env: Environment,
    text: str,
    view: str,
    limit: int = SEARCH_HITS,
    before: int | None = None,
    *,
    reindex: bool = False,
) -> list[SearchHit]:
    """Return the events that the view may read and that hold all that is asked for, the newest first.

    Those that a rewind abandoned are among them, and say so.

    Raises:
        InvalidInputError: a query that is none, a limit outside 1..SEARCH_HITS_MAX, or `before` below 1.
        CorruptRecordError: an event, or the index, is not what was written (I4).
    """
    terms = _checked(text, limit, before)
    try:
        if reindex:
            for each in _with_ancestors(env):
                make_index_anew(each)
        # Where it can't be written now, the rest is looked through.
        with suppress(StoreUnavailableError, OutcomeUnknownError), env.phase("search.index"):
            for each in _with_ancestors(env):
                extend_index(each, whole=reindex)
        return _search(env, terms, view, limit, before)
    except CorruptRecordError as error:
        if error.place.startswith(OF_THE_INDEX):
            error.hint = _ANEW
        raise


def _search(env: Environment, terms: Sequence[Term], view: str, limit: int, before: int | None) -> list[SearchHit]:
    with env.read() as tx:
        reader, left = find_view(tx, view, str(env.scope)), abandoned_of(tx)
        revision = tx.log.head().revision
        hits: list[tuple[Event, Found]] = []
        candidates = _candidates(tx, terms, min(revision, (before or revision + 1) - 1), env.scope.workflow)
        for event in visible(reader, candidates):
            found = find(terms, searched_text(event))
            if found is not None:
                hits.append((event, found))
            if len(hits) == limit:
                break
        sources, _ = with_references(tx, [event for event, _ in hits], env.counter)
        return [
            SearchHit(
                event=source._replace(abandoned=source.seq in left),
                at_us=event.at_us,
                excerpt=found.excerpt,
                matches=found.matches,
                cut=found.cut,
            )
            for source, (event, found) in zip(sources, hits, strict=True)
        ]


def _checked(text: str, limit: int, before: int | None) -> tuple[Term, ...]:
    if not isinstance(text, str):
        raise InvalidInputError(f"a search is a text, not {text!r}")
    check_whole("limit", limit)
    check_whole("before", before)
    if not 1 <= limit <= SEARCH_HITS_MAX:
        raise InvalidInputError(f"a limit of {limit} lies outside 1..{SEARCH_HITS_MAX}")
    if before is not None and before < 1:
        raise InvalidInputError(f"events begin at 1, so none is before {before}")
    terms = parse(text)
    encode_text(text, "the search")
    return terms


def _with_ancestors(env: Environment) -> Iterator[Environment]:
    """Yield the workflow, and those from which it was forked: each keeps the index of its own events."""
    for _ in range(FORK_DEPTH_MAX + 1):
        yield env
        with env.store.read(env.scope) as tx:
            parent = tx.log.head().parent
        if parent is None:
            return
        env = replace(env, scope=replace(env.scope, workflow=parent))


def _candidates(tx: Transaction, terms: Sequence[Term], through_seq: int, workflow: str) -> Iterator[Event]:
    """Yield events through_seq..1 that may hold the terms, checked: all of them, where nothing is indexed."""
    for first, last in reversed(indexed_ranges(tx)):
        if through_seq > last:
            yield from _looked_through(tx, last + 1, through_seq, workflow)
        through_seq = min(through_seq, last)
        streams = _streams(tx, terms, through_seq)
        if streams:
            either = in_any(in_all(streams), tx.search.postings(ANY_WORD, through_seq))
            for seq in events_of(either, first, through_seq):
                yield read_one(tx, seq, workflow)
        else:
            yield from _looked_through(tx, first, through_seq, workflow)
        through_seq = min(through_seq, first - 1)
    yield from _looked_through(tx, 1, through_seq, workflow)


def _looked_through(tx: Transaction, from_seq: int, through_seq: int, workflow: str) -> Iterator[Event]:
    """Yield the events through_seq..from_seq, checked, a page at a time."""
    while through_seq >= from_seq:
        first = max(from_seq, through_seq - SEARCH_PAGE_EVENTS + 1)
        yield from reversed(list(read_log(tx, first, through_seq, workflow)))
        through_seq = first - 1


def _streams(tx: Transaction, terms: Sequence[Term], through_seq: int) -> list[Iterator[Posting]]:
    """Return the postings of each word; of a beginning, those of all words with it, where they are not too many."""
    words = dict.fromkeys(word for term in terms for word in term.words)
    streams = [tx.search.postings(word, through_seq) for word in words]
    for beginning in dict.fromkeys(term.beginning for term in terms if term.beginning):
        rows = tx.search.beginning(beginning, SEARCH_BEGINNING_ROWS_MAX + 1)
        if len(rows) <= SEARCH_BEGINNING_ROWS_MAX:
            streams.append(united((first, events) for _, first, events in rows))
    return streams
