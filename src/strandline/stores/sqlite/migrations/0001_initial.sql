-- Times are microseconds since 1970 (_us). Every table's key starts with tenant_id. Digests: codec.py.
-- A mutable row carries row_digest, keyed with store_meta.digest_key, over all its other columns.

-- A column whose comment says "folded" begins with the codec of the rest: codec/packing.py.
-- Tables of few rows are WITHOUT ROWID, which spares an index; those with a row per event, fact or checkpoint are not:
-- rows of one to four kilobytes would each leave most of a page empty.

CREATE TABLE store_meta (
    name  TEXT PRIMARY KEY NOT NULL,         -- 'digest_key': 32 random bytes, made once
    value BLOB NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE tenant (
    tenant_id  INTEGER PRIMARY KEY,
    name       TEXT NOT NULL UNIQUE CHECK (name <> '')
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
    facts         INTEGER NOT NULL,          -- rows of register_fact that hold now
    attempts      INTEGER NOT NULL,          -- rows of attempt
    foreign_summaries INTEGER NOT NULL,      -- rows of foreign_summary
    epoch         INTEGER NOT NULL,          -- lineage_seq of the last divergence that was accepted
    cases         INTEGER NOT NULL,          -- rows of case_file, effect, permit, approval_use
    effects       INTEGER NOT NULL,
    permits       INTEGER NOT NULL,
    approval_uses INTEGER NOT NULL,
    due_rows      INTEGER NOT NULL,          -- rows of due_compaction
    readers       INTEGER NOT NULL,          -- rows of reader_watermark
    cooldowns     INTEGER NOT NULL,          -- rows of cooldown
    states        INTEGER NOT NULL,          -- rows of saved_state
    state_positions INTEGER NOT NULL,        -- highest position given to one
    state_lines   INTEGER NOT NULL,          -- rows of state_line
    state_nodes   INTEGER NOT NULL,          -- highest number given to a row of state_node
    state_changes INTEGER NOT NULL,          -- transactions that changed one of these tables
    parent        TEXT,                      -- name of the workflow that this one was forked from
    fork_seq      INTEGER NOT NULL,          -- the last event that it shares with its parent
    fork_ref_id   INTEGER NOT NULL,          -- the highest number of a reference that it shares
    row_digest    BLOB NOT NULL,
    UNIQUE (tenant_id, name)
) STRICT;
CREATE INDEX workflow_parent ON workflow (tenant_id, parent) WHERE parent IS NOT NULL;

CREATE TABLE event (
    tenant_id   INTEGER NOT NULL,
    workflow_id INTEGER NOT NULL REFERENCES workflow,
    seq         INTEGER NOT NULL,
    key         BLOB,                        -- stores/sql/rows.py: pack_key
    record      BLOB NOT NULL,               -- codec/records.py: kind, actor, envelope, sightings, …; never erased
    codec       INTEGER NOT NULL,            -- of the body: 0 plain, 1 deflated
    body        BLOB,                        -- NULL once erased
    salt        BLOB,                        -- NULL once erased
    body_digest BLOB,                        -- NULL until erased: while the body is there it is computed
    chain       BLOB NOT NULL,
    abandoned_by INTEGER,                    -- the branch that a rewind began by leaving the event; derived: its key is free
    PRIMARY KEY (tenant_id, workflow_id, seq),
    CHECK ((body IS NULL) = (salt IS NULL)),
    CHECK ((body IS NULL) = (body_digest IS NOT NULL))
) STRICT;
CREATE UNIQUE INDEX event_key ON event (tenant_id, workflow_id, key) WHERE key IS NOT NULL AND abandoned_by IS NULL;
CREATE INDEX event_key_abandoned ON event (tenant_id, workflow_id, key)
    WHERE key IS NOT NULL AND abandoned_by IS NOT NULL;

CREATE TRIGGER event_is_never_deleted BEFORE DELETE ON event
BEGIN SELECT RAISE(ABORT, 'I1: an event is never deleted'); END;

-- Only an erasure changes an event, and only by taking body and salt away (I1, C31). That a rewind left it behind is
-- written beside it, once.
CREATE TRIGGER event_is_never_changed BEFORE UPDATE ON event
WHEN NOT (((old.body IS NOT NULL AND new.body IS NULL AND new.salt IS NULL AND new.body_digest IS NOT NULL
            AND new.abandoned_by IS old.abandoned_by)
        OR (old.abandoned_by IS NULL AND new.abandoned_by IS NOT NULL AND new.body IS old.body AND new.salt IS old.salt
            AND new.body_digest IS old.body_digest))
    AND new.tenant_id = old.tenant_id AND new.workflow_id = old.workflow_id AND new.seq = old.seq
    AND new.key IS old.key AND new.record = old.record AND new.chain = old.chain)
BEGIN SELECT RAISE(ABORT, 'I1: an event is never changed'); END;

-- Events that a rewind left behind: readable, and in no context of a later branch (C22).
CREATE TABLE abandoned_range (
    tenant_id   INTEGER NOT NULL,
    workflow_id INTEGER NOT NULL,
    branch      INTEGER NOT NULL,            -- the one that the rewind began
    from_seq    INTEGER NOT NULL,
    through_seq INTEGER NOT NULL,
    row_digest  BLOB NOT NULL,
    PRIMARY KEY (tenant_id, workflow_id, branch),
    CHECK (from_seq <= through_seq)
) STRICT, WITHOUT ROWID;

-- The one place of reference texts; elsewhere a reference is its number (C31). A block holds the references that one
-- batch of events brought: a row for each would take four times the space (ADR 0021).
CREATE TABLE ref_block (
    tenant_id   INTEGER NOT NULL,
    workflow_id INTEGER NOT NULL,
    first_id    INTEGER NOT NULL,            -- number of the first one; they are numbered 1, 2, … in the workflow
    texts       BLOB NOT NULL,               -- folded JSON list; null: erased
    sightings   BLOB NOT NULL,               -- folded varints: of each, where the batch saw it (stores/sql/refs.py)
    row_digest  BLOB NOT NULL,
    PRIMARY KEY (tenant_id, workflow_id, first_id)
) STRICT, WITHOUT ROWID;

-- From a text to its number. Nothing of a text can be guessed from its digest, which is keyed.
CREATE TABLE ref_key (
    tenant_id   INTEGER NOT NULL,
    workflow_id INTEGER NOT NULL,
    digest      INTEGER NOT NULL,            -- keyed, of the text
    ref_id      INTEGER NOT NULL,
    proof       INTEGER NOT NULL,            -- keyed, of number and text: what a hit is checked against
    PRIMARY KEY (tenant_id, workflow_id, digest, ref_id)
) STRICT, WITHOUT ROWID;

-- Where a later batch saw a reference again. Derived from the records of the events.
CREATE TABLE ref_sighting (
    tenant_id   INTEGER NOT NULL,
    workflow_id INTEGER NOT NULL,
    ref_id      INTEGER NOT NULL,
    first_seq   INTEGER NOT NULL,            -- of the first event of the batch that holds it
    seqs        BLOB NOT NULL,               -- varints (stores/sql/refs.py)
    proof       INTEGER NOT NULL,            -- keyed, of the row
    PRIMARY KEY (tenant_id, workflow_id, ref_id, first_seq)
) STRICT, WITHOUT ROWID;

-- The index of words (C4). It is derived from the log, comes behind it, and is made anew at any time (ADR 0041).
CREATE TABLE search_mark (
    tenant_id   INTEGER NOT NULL,
    workflow_id INTEGER NOT NULL,
    from_seq    INTEGER NOT NULL,            -- the events from_seq..through_seq are indexed
    through_seq INTEGER NOT NULL,
    row_digest  BLOB NOT NULL,
    PRIMARY KEY (tenant_id, workflow_id),
    CHECK (from_seq <= through_seq)
) STRICT, WITHOUT ROWID;

CREATE TABLE search_posting (
    tenant_id   INTEGER NOT NULL,
    workflow_id INTEGER NOT NULL,
    word        BLOB NOT NULL,               -- UTF-8, folded (rules/searching.py); empty: the event may hold any word
    first_seq   INTEGER NOT NULL,            -- of the chunk of events that were indexed together
    events      BLOB NOT NULL,               -- of the chunk, those that hold the word (stores/sql/search.py)
    proof       INTEGER NOT NULL,            -- keyed, of the row
    PRIMARY KEY (tenant_id, workflow_id, word, first_seq)
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
) STRICT, WITHOUT ROWID;

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
    drafts       BLOB NOT NULL,              -- folded; written once, by this attempt
    draft_digest BLOB,
    verdict      BLOB,
    summary_no   INTEGER,
    row_digest   BLOB NOT NULL,
    PRIMARY KEY (tenant_id, workflow_id, attempt_id),
    UNIQUE (tenant_id, workflow_id, candidate_id, number),
    FOREIGN KEY (tenant_id, workflow_id, candidate_id) REFERENCES candidate
) STRICT, WITHOUT ROWID;

-- For the store's figures: counts of attempts, without their drafts.
CREATE INDEX attempt_figures ON attempt (tenant_id, state, failure, started_us);

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
    text          BLOB,                      -- folded; NULL once erased
    salt          BLOB,
    text_digest   BLOB NOT NULL,
    ref_ids       BLOB NOT NULL,             -- folded: references that stand verbatim in the text
    made_by       TEXT NOT NULL,             -- attempt
    row_digest    BLOB NOT NULL,
    PRIMARY KEY (tenant_id, workflow_id, segment_id),
    CHECK (from_seq <= through_seq)
) STRICT, WITHOUT ROWID;

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
    segments        BLOB NOT NULL,           -- folded: their ids, in order
    anchors         BLOB,                    -- folded; NULL once erased, with anchors_text, ledger, ledger_text, salt
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
) STRICT, WITHOUT ROWID;

-- Changes of the manifest against the base summary. The manifest is their fold along the chain of bases.
CREATE TABLE dropped_ref (
    tenant_id   INTEGER NOT NULL,
    workflow_id INTEGER NOT NULL,
    summary_no  INTEGER NOT NULL,
    base_no     INTEGER NOT NULL,
    generation  INTEGER NOT NULL,
    changes     BLOB NOT NULL,               -- folded varints (stores/sql/manifest.py)
    row_digest  BLOB NOT NULL,
    PRIMARY KEY (tenant_id, workflow_id, summary_no)
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
) STRICT; -- a rowid table, as register_fact
CREATE INDEX lineage_name ON lineage (tenant_id, workflow_id, name, kind, lineage_seq) WHERE name IS NOT NULL;
CREATE INDEX lineage_figures ON lineage (tenant_id, kind) WHERE kind <> 'checkpoint';
CREATE INDEX lineage_move ON lineage (tenant_id, workflow_id, view, generation)
    WHERE generation IS NOT NULL AND kind <> 'checkpoint';

CREATE TRIGGER entry_is_never_changed BEFORE UPDATE ON lineage
BEGIN SELECT RAISE(ABORT, 'I13: an entry of the lineage is never changed'); END;
CREATE TRIGGER entry_is_never_deleted BEFORE DELETE ON lineage
BEGIN SELECT RAISE(ABORT, 'I13: an entry of the lineage is never deleted'); END;

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
    state        BLOB,                       -- folded; NULL once erased
    salt         BLOB,
    external     BLOB,                       -- address and digest of a state that lives elsewhere
    digest       BLOB NOT NULL,              -- over all of it
    state_digest BLOB,                       -- of state and salt; NULL until erased: while they are there it is computed
    PRIMARY KEY (tenant_id, workflow_id, lineage_seq),
    FOREIGN KEY (tenant_id, workflow_id, lineage_seq) REFERENCES lineage,
    CHECK ((state IS NULL) = (salt IS NULL)),
    CHECK ((state IS NULL) = (state_digest IS NOT NULL))
) STRICT;

CREATE TABLE foreign_summary (
    tenant_id   INTEGER NOT NULL,
    workflow_id INTEGER NOT NULL,
    key         TEXT NOT NULL,
    through_seq INTEGER NOT NULL,
    text        BLOB,                        -- folded; NULL once erased
    detail      BLOB NOT NULL,
    row_digest  BLOB NOT NULL,
    PRIMARY KEY (tenant_id, workflow_id, key)
) STRICT, WITHOUT ROWID;

-- Open questions for the controller, and their answers. An open blocking case stands between its summary and a
-- compaction.
CREATE TABLE case_file (
    tenant_id   INTEGER NOT NULL,
    workflow_id INTEGER NOT NULL,
    case_id     TEXT NOT NULL,
    identity    TEXT NOT NULL,               -- of what it asks
    kind        TEXT NOT NULL,
    state       TEXT NOT NULL,               -- open -> answered
    blocking    INTEGER NOT NULL,
    view        TEXT NOT NULL,
    summary_no  INTEGER NOT NULL,            -- the summary that it names
    opened_us   INTEGER NOT NULL,
    record      BLOB NOT NULL,               -- the whole case
    row_digest  BLOB NOT NULL,
    PRIMARY KEY (tenant_id, workflow_id, case_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX case_kind ON case_file (tenant_id, workflow_id, kind, state, opened_us);
CREATE INDEX case_identity ON case_file (tenant_id, workflow_id, identity, state);
CREATE UNIQUE INDEX case_open ON case_file (tenant_id, workflow_id, identity) WHERE state = 'open';

-- intended -> done | failed | unknown ; unknown -> done | failed | abandoned ; failed -> intended
CREATE TABLE effect (
    tenant_id   INTEGER NOT NULL,
    workflow_id INTEGER NOT NULL,            -- the root of a family of forks
    key         TEXT NOT NULL,
    fingerprint TEXT NOT NULL,               -- keyed: what the same request in other words shares
    state       TEXT NOT NULL,
    attempt     INTEGER NOT NULL,
    intended_us INTEGER NOT NULL,
    record      BLOB NOT NULL,               -- the whole effect; arguments and result stand in the log
    row_digest  BLOB NOT NULL,
    PRIMARY KEY (tenant_id, workflow_id, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX effect_alike ON effect (tenant_id, workflow_id, fingerprint, intended_us);

-- granted -> consumed ; denied
CREATE TABLE permit (
    tenant_id   INTEGER NOT NULL,
    workflow_id INTEGER NOT NULL,            -- the root of a family of forks
    permit_id   TEXT NOT NULL,
    state       TEXT NOT NULL,
    decided_us  INTEGER NOT NULL,
    record      BLOB NOT NULL,
    row_digest  BLOB NOT NULL,
    PRIMARY KEY (tenant_id, workflow_id, permit_id)
) STRICT, WITHOUT ROWID;

-- Single-use approvals that were used: once in a family of forks.
CREATE TABLE approval_use (
    tenant_id   INTEGER NOT NULL,
    workflow_id INTEGER NOT NULL,            -- the root of the family
    workflow    TEXT NOT NULL,               -- whose log holds the approval
    seq         INTEGER NOT NULL,
    permit_id   TEXT NOT NULL,
    row_digest  BLOB NOT NULL,
    PRIMARY KEY (tenant_id, workflow_id, workflow, seq)
) STRICT, WITHOUT ROWID;

-- Compactions that were asked for. A row is never deleted: its fence only grows.
-- asked for: due_us set -> a worker takes it: due_us = lease_until_us -> done or failed: due_us NULL; else due again
CREATE TABLE due_compaction (
    tenant_id      INTEGER NOT NULL,
    workflow_id    INTEGER NOT NULL,
    view           TEXT NOT NULL,
    revision       INTEGER NOT NULL,         -- of the log when it was last asked for
    priority       INTEGER NOT NULL CHECK (priority BETWEEN 0 AND 9),
    due_us         INTEGER,                  -- when a sweep offers it next
    wanted_us      INTEGER,                  -- from when it is wanted; NULL: nobody asked since the last run began
    asked_us       INTEGER NOT NULL,
    budget         INTEGER,
    when_tokens    INTEGER,
    strict         INTEGER NOT NULL,
    runs           INTEGER NOT NULL,         -- begun since it was asked for
    worker         TEXT,
    lease_until_us INTEGER NOT NULL,         -- 0: nobody runs it
    fence          INTEGER NOT NULL,         -- highest fencing token handed out
    outcome        TEXT,                     -- of the last run, and what failed
    failure        TEXT,
    failure_text   TEXT NOT NULL,
    case_id        TEXT,
    watch          BLOB,                     -- what makes it due by itself, and what came since the last run
    row_digest     BLOB NOT NULL,
    PRIMARY KEY (tenant_id, workflow_id, view),
    CHECK ((worker IS NULL) = (lease_until_us = 0))
) STRICT, WITHOUT ROWID;
CREATE INDEX due_lane ON due_compaction (tenant_id, priority, due_us) WHERE due_us IS NOT NULL;
CREATE INDEX due_time ON due_compaction (due_us) WHERE due_us IS NOT NULL;
CREATE INDEX due_lease ON due_compaction (lease_until_us) WHERE lease_until_us > 0;

-- Who reads the log in order outside. A row is never deleted: one who has finished needs nothing more (C31).
CREATE TABLE reader_watermark (
    tenant_id   INTEGER NOT NULL,
    workflow_id INTEGER NOT NULL,
    name        TEXT NOT NULL CHECK (name <> ''),
    seq         INTEGER NOT NULL,            -- the last event that he has read
    finished    INTEGER NOT NULL,
    seen_us     INTEGER NOT NULL,
    row_digest  BLOB NOT NULL,
    PRIMARY KEY (tenant_id, workflow_id, name)
) STRICT, WITHOUT ROWID;

-- How a summarizer answered: one that does not is left alone for a while by the whole tenant (C14).
CREATE TABLE cooldown (
    tenant_id   INTEGER NOT NULL,
    workflow_id INTEGER NOT NULL,
    summarizer  TEXT NOT NULL,
    failures    INTEGER NOT NULL,
    failed_us   INTEGER NOT NULL,
    answered_us INTEGER NOT NULL,
    until_us    INTEGER NOT NULL,
    steps       INTEGER NOT NULL,
    changed_us  INTEGER NOT NULL,
    row_digest  BLOB NOT NULL,
    PRIMARY KEY (tenant_id, workflow_id, summarizer),
    CHECK (changed_us = CASE WHEN failed_us > answered_us THEN failed_us ELSE answered_us END)
) STRICT, WITHOUT ROWID;
CREATE INDEX cooldown_newest ON cooldown (tenant_id, summarizer, changed_us);

-- Saved states (ADR 0058): what a framework saves of itself. A line is a chain of them; neither is ever taken away.
CREATE TABLE state_line (
    tenant_id   INTEGER NOT NULL,
    workflow_id INTEGER NOT NULL,
    number      INTEGER NOT NULL,            -- 1, 2, … in the workflow
    name        TEXT NOT NULL,
    saved       INTEGER NOT NULL,            -- the highest position that was given in it
    newest      INTEGER NOT NULL,            -- the highest of a state that was not deleted; 0: none is left
    row_digest  BLOB NOT NULL,
    PRIMARY KEY (tenant_id, workflow_id, number),
    UNIQUE (tenant_id, workflow_id, name),
    CHECK (newest <= saved)
) STRICT, WITHOUT ROWID;

-- A part of a value (level 0), or a block of sixteen nodes of the level below. Each content is kept once.
CREATE TABLE state_node (
    tenant_id   INTEGER NOT NULL,
    workflow_id INTEGER NOT NULL,
    node_id     INTEGER NOT NULL,            -- never given again
    level       INTEGER NOT NULL,
    kind        TEXT NOT NULL,            -- of a part: what serialised it
    body        BLOB,                     -- folded; of a block: varints of the nodes that it holds; NULL once erased
    body_digest BLOB NOT NULL,            -- keyed, of kind and body; of a block: of the digests that it holds
    proof       INTEGER NOT NULL,           -- keyed, of the row
    PRIMARY KEY (tenant_id, workflow_id, node_id)
) STRICT;
CREATE UNIQUE INDEX state_node_content ON state_node (tenant_id, workflow_id, body_digest);

-- awaited -> saved -> erased | deleted ; awaited, erased -> deleted
CREATE TABLE saved_state (
    tenant_id   INTEGER NOT NULL,
    workflow_id INTEGER NOT NULL,
    number      INTEGER NOT NULL,            -- 1, 2, … in the workflow
    line        INTEGER NOT NULL,
    state_id    BLOB NOT NULL,            -- stores/sql/rows.py: pack_key
    status      TEXT NOT NULL,
    position    INTEGER,                     -- 1, 2, … in the order of saving; NULL: never saved
    previous    INTEGER NOT NULL,            -- position of the one before it in the line; 0: none
    parent      BLOB,
    run         TEXT,
    held        BLOB NOT NULL,            -- folded JSON: of each value the numbers of its nodes
    meta        BLOB NOT NULL,            -- folded
    writes      BLOB NOT NULL,            -- folded JSON: what tasks wrote behind it
    row_digest  BLOB NOT NULL,
    PRIMARY KEY (tenant_id, workflow_id, number)
) STRICT;
CREATE UNIQUE INDEX saved_state_id ON saved_state (tenant_id, workflow_id, line, state_id);
CREATE UNIQUE INDEX saved_state_position ON saved_state (tenant_id, workflow_id, position) WHERE position IS NOT NULL;
CREATE INDEX saved_state_line ON saved_state (tenant_id, workflow_id, line, position) WHERE position IS NOT NULL;
