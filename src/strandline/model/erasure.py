"""Erasure: what may stand in its way, what was erased, and the proof of it (SPEC C31)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from strandline.model.event import EventKind


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """Somebody outside who reads the log in order: an export, an audit, an indexer. What lies behind `seq` he still
    needs, until he has finished.
    """

    name: str
    seq: int  # the last event that he has read
    finished: bool
    seen_us: int  # when he last said so


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """A legal hold: while it stands nothing that it covers is erased, whoever asks."""

    name: str
    workflow: str | None  # None: every workflow of the tenant
    by: str
    why: str
    set_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ErasureOrder:
    """What is to be erased: the events that meet any of these."""

    events: tuple[int, ...] = ()
    refs: tuple[str, ...] = ()  # events that hold one, sighted or verbatim
    actor: str | None = None  # events by him
    person: str | None = None  # events by him, granted by him, or with his name verbatim
    everything: bool = False  # every event of the workflow itself; a fork's shared past is its parent's
    by: str
    why: str
    force: bool = False  # also what a reader that has not finished still needs; a hold stops it all the same


@dataclass(frozen=True, slots=True, kw_only=True)
class FileScan:
    """What was found of it in the files of the store, after they were written anew."""

    files: Mapping[str, int]  # bytes of each that were read
    searched_for: int  # strings of bytes: salts, references, phrases
    found: int  # places; 0 is the proof
    note: str = ""  # what this does not prove


@dataclass(frozen=True, slots=True, kw_only=True)
class Erased:
    """What an erasure answers: what was erased, where it also stood, and the proof that it is gone (C31)."""

    workflow: str
    events: tuple[int, ...]  # of the workflow's log, at most ERASURE_LISTED_MAX
    event_count: int
    refs: int  # references that no event holds any more: their texts are gone
    lineage_seq: int  # of the last entry that records it; 0: there was nothing to erase
    generations: Mapping[str, int] = field(default_factory=dict)  # of each view that read it: the new one
    forks: tuple[str, ...] = ()  # relatives that it reached
    also: Mapping[str, int] = field(default_factory=dict)  # how many of which rows held it, or were made from it
    outside: tuple[str, ...] = ()  # addresses of states that live elsewhere, made while it was there: look at them
    repeated_in: tuple[str, ...] = ()  # events that were not erased and repeat some of it, at most ERASURE_LISTED_MAX
    repeated_count: int = 0
    left_in: tuple[str, ...] = ()  # where the rows of the store still hold it: what is never erased, such as a name
    scan: FileScan | None = None  # None: it was not asked for


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionRule:
    """A rule of a tenant: events that are older are kept no longer."""

    name: str
    older_than_s: float
    kinds: tuple[EventKind, ...] = ()  # (): of every kind
    workflows: tuple[str, ...] = ()  # (): of every workflow
    by: str
    why: str
    set_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Retained:
    """What was done about one workflow of a tenant."""

    workflow: str
    due: int  # events that are to be erased
    erased: Erased | None = None  # None: it was not done
    refused: str = ""  # why not: a hold, a reader, a damaged record
