-- Times are microseconds since 1970 (_us). Every table's key starts with tenant_id. Digests: codec.py.
-- A mutable row carries row_digest, keyed with store_meta.digest_key, over all its other columns.

CREATE TABLE store_meta (
    name  TEXT PRIMARY KEY NOT NULL,         -- 'digest_key': 32 random bytes, made once
    value BLOB NOT NULL
) STRICT;

CREATE TABLE tenant (
    tenant_id  INTEGER PRIMARY KEY,
    name       TEXT NOT NULL UNIQUE CHECK (name <> ''),
    created_us INTEGER NOT NULL
) STRICT;

-- Head, lock and counters of one workflow: the first statement of every writing transaction locks this row.
CREATE TABLE workflow (
    tenant_id     INTEGER NOT NULL REFERENCES tenant,
    workflow_id   INTEGER PRIMARY KEY,
    name          TEXT NOT NULL CHECK (name <> ''),
    revision      INTEGER NOT NULL,          -- seq of the last committed event
    chain         BLOB NOT NULL,             -- chain value of that event
    lineage_seq   INTEGER NOT NULL,
    lineage_chain BLOB NOT NULL,
    branch        INTEGER NOT NULL,          -- raised by a rewind
    summary_no    INTEGER NOT NULL,          -- highest number given to a summary
    ref_id        INTEGER NOT NULL,          -- highest number given to a reference
    live_events   INTEGER NOT NULL,
    row_digest    BLOB NOT NULL,
    UNIQUE (tenant_id, name)
) STRICT;

-- Actors, audiences and views of a workflow: names stand once.
CREATE TABLE name_dict (
    tenant_id   INTEGER NOT NULL,
    workflow_id INTEGER NOT NULL,
    name_id     INTEGER NOT NULL,
    name        TEXT NOT NULL,
    PRIMARY KEY (tenant_id, workflow_id, name_id),
    UNIQUE (tenant_id, workflow_id, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE event (
    tenant_id        INTEGER NOT NULL,
    workflow_id      INTEGER NOT NULL REFERENCES workflow,
    seq              INTEGER NOT NULL,
    branch           INTEGER NOT NULL,
    kind             INTEGER NOT NULL,       -- stores/sql/rows.py: EVENT_KINDS
    actor_id         INTEGER NOT NULL,
    audience_id      INTEGER NOT NULL,
    at_us            INTEGER NOT NULL,
    key              TEXT,
    call_seq         INTEGER,                -- result, abandoned: the call that it speaks of
    basis_view_id    INTEGER,
    basis_generation INTEGER,
    basis_revision   INTEGER,
    envelope         BLOB NOT NULL,          -- kind-specific, never erased
    refs             BLOB NOT NULL,          -- sightings; inside the chain, so that event_ref can be rebuilt
    format           INTEGER NOT NULL,       -- 0 text, 1 JSON
    codec            INTEGER NOT NULL,       -- 0 plain, 1 zlib
    body             BLOB,                   -- NULL once erased
    salt             BLOB,                   -- NULL once erased
    body_digest      BLOB NOT NULL,
    chain            BLOB NOT NULL,
    erased_by        INTEGER,                -- lineage_seq of the erasure
    PRIMARY KEY (tenant_id, workflow_id, seq),
    CHECK ((body IS NULL) = (salt IS NULL)),
    CHECK ((body IS NULL) = (erased_by IS NOT NULL))
) STRICT;
CREATE UNIQUE INDEX event_key ON event (tenant_id, workflow_id, key) WHERE key IS NOT NULL;

CREATE TRIGGER event_is_never_deleted BEFORE DELETE ON event
BEGIN SELECT RAISE(ABORT, 'I1: an event is never deleted'); END;

-- Only an erasure changes an event, and only by taking body and salt away (I1, C31).
CREATE TRIGGER event_is_never_changed BEFORE UPDATE ON event
WHEN NOT (old.erased_by IS NULL AND new.erased_by IS NOT NULL AND new.body IS NULL AND new.salt IS NULL
    AND new.tenant_id = old.tenant_id AND new.workflow_id = old.workflow_id AND new.seq = old.seq
    AND new.branch = old.branch AND new.kind = old.kind AND new.actor_id = old.actor_id
    AND new.audience_id = old.audience_id AND new.at_us = old.at_us AND new.key IS old.key
    AND new.call_seq IS old.call_seq AND new.basis_view_id IS old.basis_view_id
    AND new.basis_generation IS old.basis_generation AND new.basis_revision IS old.basis_revision
    AND new.envelope = old.envelope AND new.refs = old.refs AND new.format = old.format
    AND new.body_digest = old.body_digest AND new.chain = old.chain)
BEGIN SELECT RAISE(ABORT, 'I1: an event is never changed'); END;

-- The one table of reference texts; elsewhere a reference is its number (C31).
CREATE TABLE ref (
    tenant_id   INTEGER NOT NULL,
    workflow_id INTEGER NOT NULL,
    ref_id      INTEGER NOT NULL,            -- 1, 2, … in the workflow
    text        TEXT,                        -- NULL once erased
    row_digest  BLOB NOT NULL,
    PRIMARY KEY (tenant_id, workflow_id, ref_id),
    UNIQUE (tenant_id, workflow_id, text)
) STRICT, WITHOUT ROWID;

-- Index of sightings, derived from event.refs.
CREATE TABLE event_ref (
    tenant_id   INTEGER NOT NULL,
    workflow_id INTEGER NOT NULL,
    ref_id      INTEGER NOT NULL,
    seq         INTEGER NOT NULL,
    declared    INTEGER NOT NULL,
    PRIMARY KEY (tenant_id, workflow_id, ref_id, seq)
) STRICT, WITHOUT ROWID;

-- The register as intervals of seqs; the text stays in the event source_seq.
CREATE TABLE register_fact (
    tenant_id   INTEGER NOT NULL,
    workflow_id INTEGER NOT NULL,
    from_seq    INTEGER NOT NULL,
    ordinal     INTEGER NOT NULL,
    kind        TEXT NOT NULL,
    subject     TEXT NOT NULL,
    holder      TEXT NOT NULL,
    state       TEXT NOT NULL,               -- standing; unknown: a call closed without a result
    source_seq  INTEGER NOT NULL,
    through_seq INTEGER,                     -- NULL: holds now
    lane        TEXT NOT NULL,
    audience    TEXT NOT NULL,
    expires_us  INTEGER,
    row_digest  BLOB NOT NULL,
    PRIMARY KEY (tenant_id, workflow_id, from_seq, ordinal)
) STRICT; -- a rowid table: in one without, the planner takes the key's first columns for the better way in
CREATE INDEX register_standing ON register_fact (tenant_id, workflow_id, from_seq) WHERE through_seq IS NULL;
CREATE INDEX register_subject ON register_fact (tenant_id, workflow_id, subject, kind, from_seq);
CREATE INDEX register_standing_subject ON register_fact (tenant_id, workflow_id, subject, kind)
    WHERE through_seq IS NULL;
CREATE INDEX register_open_call ON register_fact (tenant_id, workflow_id, from_seq)
    WHERE through_seq IS NULL AND kind = 'call' AND state = 'standing';

-- Pointer, fence and lease of a view. Views don't fence each other (DESIGN §5).
CREATE TABLE view_head (
    tenant_id         INTEGER NOT NULL,
    workflow_id       INTEGER NOT NULL,
    view_id           INTEGER NOT NULL,
    name              TEXT NOT NULL CHECK (name <> ''),
    audiences         BLOB NOT NULL,         -- JSON list of names; 'null' reads everything
    audience_version  INTEGER NOT NULL,
    budget            INTEGER,
    generation        INTEGER NOT NULL,      -- moves of the pointer; a number is never used twice
    summary_no        INTEGER NOT NULL,      -- 0: the empty summary
    watermark         INTEGER NOT NULL,
    moved_lineage_seq INTEGER NOT NULL,      -- lineage_seq of the last move
    fence             INTEGER NOT NULL,      -- highest fencing token handed out
    lease_attempt     TEXT,
    lease_until_us    INTEGER NOT NULL,
    row_digest        BLOB NOT NULL,
    PRIMARY KEY (tenant_id, workflow_id, view_id),
    UNIQUE (tenant_id, workflow_id, name)
) STRICT, WITHOUT ROWID;

-- pending -> validated -> active -> superseded | reverted ; pending -> rejected | quarantined when its attempts end ;
-- any but active -> void by an erasure or a rewind
CREATE TABLE candidate (
    tenant_id        INTEGER NOT NULL,
    workflow_id      INTEGER NOT NULL,
    candidate_id     TEXT NOT NULL,          -- keyed digest of the job
    view             TEXT NOT NULL,
    audience_version INTEGER NOT NULL,
    plan             BLOB NOT NULL,          -- base generation, revision, watermark, budget, kept segments, jobs
    recipe           BLOB NOT NULL,          -- algorithm, model, prompt, schema, token counter, strict, partition
    state            TEXT NOT NULL,
    created_us       INTEGER NOT NULL,
    not_before_us    INTEGER NOT NULL,
    row_digest       BLOB NOT NULL,
    PRIMARY KEY (tenant_id, workflow_id, candidate_id)
) STRICT;

-- running -> validated -> activated ; running -> failed | rejected | quarantined | fenced
CREATE TABLE attempt (
    tenant_id    INTEGER NOT NULL,
    workflow_id  INTEGER NOT NULL,
    attempt_id   TEXT NOT NULL,
    candidate_id TEXT NOT NULL,
    number       INTEGER NOT NULL,
    fence        INTEGER NOT NULL,
    state        TEXT NOT NULL,
    started_us   INTEGER NOT NULL,
    ended_us     INTEGER,
    failure      TEXT,                       -- class of C14
    failure_text TEXT,
    drafts       BLOB NOT NULL,              -- written once, by this attempt
    draft_digest BLOB,
    verdict      BLOB,
    summary_no   INTEGER,
    row_digest   BLOB NOT NULL,
    PRIMARY KEY (tenant_id, workflow_id, attempt_id),
    UNIQUE (tenant_id, workflow_id, candidate_id, number),
    FOREIGN KEY (tenant_id, workflow_id, candidate_id) REFERENCES candidate
) STRICT;

CREATE TABLE segment (
    tenant_id     INTEGER NOT NULL,
    workflow_id   INTEGER NOT NULL,
    segment_id    TEXT NOT NULL,
    from_seq      INTEGER NOT NULL,
    through_seq   INTEGER NOT NULL,
    event_count   INTEGER NOT NULL,
    level         INTEGER NOT NULL,
    depth         INTEGER NOT NULL,          -- lossy passes (I12)
    tokens        INTEGER NOT NULL,
    source_tokens INTEGER NOT NULL,          -- tokens of the events that it was made from
    source_digest BLOB NOT NULL,
    text          BLOB,                      -- UTF-8; NULL once erased
    salt          BLOB,
    text_digest   BLOB NOT NULL,
    ref_ids       BLOB NOT NULL,             -- references that stand verbatim in the text
    made_by       TEXT NOT NULL,             -- attempt
    row_digest    BLOB NOT NULL,
    PRIMARY KEY (tenant_id, workflow_id, segment_id),
    CHECK (from_seq <= through_seq)
) STRICT;

CREATE TABLE summary (
    tenant_id       INTEGER NOT NULL,
    workflow_id     INTEGER NOT NULL,
    summary_no      INTEGER NOT NULL,
    summary_id      TEXT NOT NULL,           -- the attempt that made it
    view            TEXT NOT NULL,
    base_no         INTEGER NOT NULL,        -- 0: built on the empty summary
    generation      INTEGER NOT NULL,        -- that it becomes when it is activated
    compactions     INTEGER NOT NULL,
    watermark       INTEGER NOT NULL,
    event_count     INTEGER NOT NULL,
    source_digest   BLOB NOT NULL,
    depth           INTEGER NOT NULL,
    tokens          INTEGER NOT NULL,
    token_counter   TEXT NOT NULL,
    anchors         BLOB,                    -- NULL once erased, with anchors_text, ledger, ledger_text, salt
    ledger          BLOB,
    anchors_text    BLOB,
    ledger_text     BLOB,
    ref_ids         BLOB NOT NULL,
    salt            BLOB,
    text_digest     BLOB NOT NULL,
    refs_seen       INTEGER NOT NULL,
    dropped_count   INTEGER NOT NULL,
    manifest_digest BLOB NOT NULL,
    revision        INTEGER NOT NULL,
    row_digest      BLOB NOT NULL,
    PRIMARY KEY (tenant_id, workflow_id, summary_no),
    UNIQUE (tenant_id, workflow_id, summary_id)
) STRICT;

CREATE TABLE summary_segment (
    tenant_id   INTEGER NOT NULL,
    workflow_id INTEGER NOT NULL,
    summary_no  INTEGER NOT NULL,
    position    INTEGER NOT NULL,
    segment_id  TEXT NOT NULL,
    PRIMARY KEY (tenant_id, workflow_id, summary_no, position),
    FOREIGN KEY (tenant_id, workflow_id, summary_no) REFERENCES summary,
    FOREIGN KEY (tenant_id, workflow_id, segment_id) REFERENCES segment
) STRICT, WITHOUT ROWID;

-- Changes of the manifest against the base summary. The manifest is their fold along the chain of bases.
CREATE TABLE dropped_ref (
    tenant_id   INTEGER NOT NULL,
    workflow_id INTEGER NOT NULL,
    ref_id      INTEGER NOT NULL,
    summary_no  INTEGER NOT NULL,
    dropped     INTEGER NOT NULL,            -- 1 dropped here, 0 stands verbatim again
    last_seq    INTEGER NOT NULL,
    reason      INTEGER NOT NULL,            -- stores/sql/rows.py: DROP_REASONS
    PRIMARY KEY (tenant_id, workflow_id, summary_no, ref_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE lineage (
    tenant_id    INTEGER NOT NULL,
    workflow_id  INTEGER NOT NULL,
    lineage_seq  INTEGER NOT NULL,
    kind         TEXT NOT NULL,
    op_key       TEXT NOT NULL,              -- answers "did my commit land?" (I19)
    revision     INTEGER NOT NULL,
    at_us        INTEGER NOT NULL,
    view         TEXT,
    generation   INTEGER,
    name         TEXT,
    restored_seq INTEGER,
    record       BLOB NOT NULL,              -- digest, by, why, detail
    chain        BLOB NOT NULL,
    PRIMARY KEY (tenant_id, workflow_id, lineage_seq),
    UNIQUE (tenant_id, workflow_id, op_key)
) STRICT;
CREATE INDEX lineage_restore ON lineage (tenant_id, workflow_id, name, lineage_seq) WHERE kind = 'restore';
CREATE INDEX lineage_checkpoint ON lineage (tenant_id, workflow_id, name, lineage_seq) WHERE kind = 'checkpoint';
CREATE INDEX lineage_generation ON lineage (tenant_id, workflow_id, view, generation) WHERE generation IS NOT NULL;

CREATE TABLE checkpoint (
    tenant_id    INTEGER NOT NULL,
    workflow_id  INTEGER NOT NULL,
    lineage_seq  INTEGER NOT NULL,
    name         TEXT NOT NULL,
    turn         INTEGER NOT NULL,
    revision     INTEGER NOT NULL,
    branch       INTEGER NOT NULL,
    context_free INTEGER NOT NULL,
    in_flight    INTEGER NOT NULL,           -- a compaction held a lease when it was taken
    views        BLOB NOT NULL,              -- each view's generation, and the revision of those that are its basis
    codec        INTEGER NOT NULL,
    state        BLOB,                       -- NULL once erased
    salt         BLOB,
    digest       BLOB NOT NULL,              -- over all of it
    erased_by    INTEGER,
    PRIMARY KEY (tenant_id, workflow_id, lineage_seq),
    FOREIGN KEY (tenant_id, workflow_id, lineage_seq) REFERENCES lineage
) STRICT;

CREATE TABLE foreign_summary (
    tenant_id   INTEGER NOT NULL,
    workflow_id INTEGER NOT NULL,
    key         TEXT NOT NULL,
    through_seq INTEGER NOT NULL,
    codec       INTEGER NOT NULL,
    text        BLOB,
    detail      BLOB NOT NULL,
    row_digest  BLOB NOT NULL,
    PRIMARY KEY (tenant_id, workflow_id, key)
) STRICT;
