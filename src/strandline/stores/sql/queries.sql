-- Every statement of the store, one text for SQLite and PostgreSQL. A block begins with `-- name:`; what stands
-- beside the lock or the compare-and-swap says why it is there. Each statement
-- is bound to :tenant_id, but for those that find or make a tenant, and the sweep's, which see keys and times only (I21).

-- ------------------------------------------------------------------------------------------ tenants, workflows

-- name: find_tenant
SELECT tenant_id FROM tenant WHERE name = :name

-- name: add_tenant
INSERT INTO tenant (name) VALUES (:name) ON CONFLICT (name) DO NOTHING

-- name: find_workflow
SELECT workflow_id FROM workflow WHERE tenant_id = :tenant_id AND name = :name

-- name: add_workflow
INSERT INTO workflow (tenant_id, name, revision, chain, lineage_seq, lineage_chain, branch, summary_no, ref_id,
    live_events, facts, attempts, foreign_summaries, epoch, cases, effects, permits, approval_uses, due_rows, readers,
    cooldowns, states, state_positions, state_lines, state_nodes, state_changes, parent, fork_seq, fork_ref_id, row_digest)
VALUES (:tenant_id, :name, 0, :chain, 0, :chain, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, NULL, 0, 0,
    :row_digest)
ON CONFLICT (tenant_id, name) DO NOTHING

-- name: scopes
SELECT t.name, w.name FROM workflow w JOIN tenant t ON t.tenant_id = w.tenant_id
WHERE CAST(:tenant AS TEXT) IS NULL OR t.name = :tenant
ORDER BY t.name, w.name

-- name: head
SELECT name, revision, chain, lineage_seq, lineage_chain, branch, summary_no, ref_id, live_events, facts, attempts,
    foreign_summaries, epoch, cases, effects, permits, approval_uses, due_rows, readers, cooldowns, states,
    state_positions, state_lines, state_nodes, state_changes, parent, fork_seq, fork_ref_id, row_digest
FROM workflow WHERE tenant_id = :tenant_id AND workflow_id = :workflow_id

-- name: set_head
UPDATE workflow SET revision = :revision, chain = :chain, lineage_seq = :lineage_seq, lineage_chain = :lineage_chain,
    branch = :branch, summary_no = :summary_no, ref_id = :ref_id, live_events = :live_events, facts = :facts,
    attempts = :attempts, foreign_summaries = :foreign_summaries, epoch = :epoch, cases = :cases, effects = :effects,
    permits = :permits, approval_uses = :approval_uses, due_rows = :due_rows, readers = :readers,
    cooldowns = :cooldowns, states = :states, state_positions = :state_positions, state_lines = :state_lines,
    state_nodes = :state_nodes, state_changes = :state_changes, parent = :parent, fork_seq = :fork_seq, fork_ref_id = :fork_ref_id, row_digest = :row_digest
WHERE tenant_id = :tenant_id AND workflow_id = :workflow_id

-- ------------------------------------------------------------------------------------------ log

-- name: insert_event
INSERT INTO event (tenant_id, workflow_id, seq, key, record, codec, body, salt, body_digest, chain)
VALUES (:tenant_id, :workflow_id, :seq, :key, :record, :codec, :body, :salt, :body_digest, :chain)

-- name: read_events
SELECT seq, key, record, codec, body, salt, body_digest, chain, abandoned_by FROM event
WHERE tenant_id = :tenant_id AND workflow_id = :workflow_id AND seq BETWEEN :from_seq AND :through_seq
ORDER BY seq

-- name: event_by_key
SELECT seq, key, record, codec, body, salt, body_digest, chain, abandoned_by FROM event
WHERE tenant_id = :tenant_id AND workflow_id = :workflow_id AND key = :key AND abandoned_by IS NULL

-- name: key_holders
SELECT seq, key, record, codec, body, salt, body_digest, chain, abandoned_by FROM event
WHERE tenant_id = :tenant_id AND workflow_id = :workflow_id AND key = :key AND abandoned_by IS NULL
-- each half has an index of its own
UNION ALL
SELECT seq, key, record, codec, body, salt, body_digest, chain, abandoned_by FROM event
WHERE tenant_id = :tenant_id AND workflow_id = :workflow_id AND key = :key AND abandoned_by IS NOT NULL

-- name: add_abandoned
INSERT INTO abandoned_range (tenant_id, workflow_id, branch, from_seq, through_seq, row_digest)
VALUES (:tenant_id, :workflow_id, :branch, :from_seq, :through_seq, :row_digest)

-- name: abandon_events
UPDATE event SET abandoned_by = :branch
WHERE tenant_id = :tenant_id AND workflow_id = :workflow_id AND seq BETWEEN :from_seq AND :through_seq
    AND abandoned_by IS NULL

-- name: abandoned
SELECT branch, from_seq, through_seq, row_digest FROM abandoned_range
WHERE tenant_id = :tenant_id AND workflow_id = :workflow_id ORDER BY branch

-- The trigger lets nothing else of an event be changed (I1, C31).
-- name: erase_event
UPDATE event SET codec = :codec, body = NULL, salt = NULL, body_digest = :body_digest
WHERE tenant_id = :tenant_id AND workflow_id = :workflow_id AND seq = :seq AND body IS NOT NULL

-- name: count_events
SELECT count(*) FROM event WHERE tenant_id = :tenant_id AND workflow_id = :workflow_id

-- ------------------------------------------------------------------------------------------ references

-- name: add_ref_block
INSERT INTO ref_block (tenant_id, workflow_id, first_id, texts, sightings, row_digest)
VALUES (:tenant_id, :workflow_id, :first_id, :texts, :sightings, :row_digest)

-- The block that holds a number, if any does: the last one that begins at or before it.
-- name: ref_block_of
SELECT first_id, texts, sightings, row_digest FROM ref_block
WHERE tenant_id = :tenant_id AND workflow_id = :workflow_id AND first_id <= :ref_id
ORDER BY first_id DESC LIMIT 1

-- name: all_ref_blocks
SELECT first_id, texts, sightings, row_digest FROM ref_block
WHERE tenant_id = :tenant_id AND workflow_id = :workflow_id ORDER BY first_id

-- name: erase_ref_block
UPDATE ref_block SET texts = :texts, row_digest = :row_digest
WHERE tenant_id = :tenant_id AND workflow_id = :workflow_id AND first_id = :first_id

-- name: drop_ref_key
DELETE FROM ref_key
WHERE tenant_id = :tenant_id AND workflow_id = :workflow_id AND digest = :digest AND ref_id = :ref_id

-- name: add_ref_key
INSERT INTO ref_key (tenant_id, workflow_id, digest, ref_id, proof)
VALUES (:tenant_id, :workflow_id, :digest, :ref_id, :proof)

-- Eight at a time: a statement has its own cost, and most references of a batch are new. Each by its whole key: of a
-- list (digest IN ...), PostgreSQL 15 with a table that was never analyzed makes a filter over all keys of the workflow.
-- name: ref_keys
SELECT digest, ref_id, proof FROM ref_key WHERE tenant_id = :tenant_id AND workflow_id = :workflow_id AND digest = :d1
UNION ALL
SELECT digest, ref_id, proof FROM ref_key WHERE tenant_id = :tenant_id AND workflow_id = :workflow_id AND digest = :d2
UNION ALL
SELECT digest, ref_id, proof FROM ref_key WHERE tenant_id = :tenant_id AND workflow_id = :workflow_id AND digest = :d3
UNION ALL
SELECT digest, ref_id, proof FROM ref_key WHERE tenant_id = :tenant_id AND workflow_id = :workflow_id AND digest = :d4
UNION ALL
SELECT digest, ref_id, proof FROM ref_key WHERE tenant_id = :tenant_id AND workflow_id = :workflow_id AND digest = :d5
UNION ALL
SELECT digest, ref_id, proof FROM ref_key WHERE tenant_id = :tenant_id AND workflow_id = :workflow_id AND digest = :d6
UNION ALL
SELECT digest, ref_id, proof FROM ref_key WHERE tenant_id = :tenant_id AND workflow_id = :workflow_id AND digest = :d7
UNION ALL
SELECT digest, ref_id, proof FROM ref_key WHERE tenant_id = :tenant_id AND workflow_id = :workflow_id AND digest = :d8

-- name: all_ref_keys
SELECT digest, ref_id, proof FROM ref_key
WHERE tenant_id = :tenant_id AND workflow_id = :workflow_id ORDER BY ref_id

-- name: add_sighting
INSERT INTO ref_sighting (tenant_id, workflow_id, ref_id, first_seq, seqs, proof)
VALUES (:tenant_id, :workflow_id, :ref_id, :first_seq, :seqs, :proof)

-- name: sightings
SELECT first_seq, seqs, proof FROM ref_sighting
WHERE tenant_id = :tenant_id AND workflow_id = :workflow_id AND ref_id = :ref_id AND first_seq <= :through_seq
ORDER BY first_seq DESC LIMIT :limit

-- name: all_sightings
SELECT ref_id, first_seq, seqs, proof FROM ref_sighting
WHERE tenant_id = :tenant_id AND workflow_id = :workflow_id ORDER BY ref_id, first_seq

-- ------------------------------------------------------------------------------------------ index of words

-- name: search_mark
SELECT from_seq, through_seq, row_digest FROM search_mark
WHERE tenant_id = :tenant_id AND workflow_id = :workflow_id

-- name: set_search_mark
INSERT INTO search_mark (tenant_id, workflow_id, from_seq, through_seq, row_digest)
VALUES (:tenant_id, :workflow_id, :from_seq, :through_seq, :row_digest)
ON CONFLICT (tenant_id, workflow_id) DO UPDATE SET through_seq = excluded.through_seq, row_digest = excluded.row_digest

-- name: drop_search_mark
DELETE FROM search_mark WHERE tenant_id = :tenant_id AND workflow_id = :workflow_id

-- name: add_posting
INSERT INTO search_posting (tenant_id, workflow_id, word, first_seq, events, proof)
VALUES (:tenant_id, :workflow_id, :word, :first_seq, :events, :proof)

-- name: postings
SELECT first_seq, events, proof FROM search_posting
WHERE tenant_id = :tenant_id AND workflow_id = :workflow_id AND word = :word AND first_seq <= :through_seq
ORDER BY first_seq DESC LIMIT :limit

-- name: postings_of_beginning
SELECT word, first_seq, events, proof FROM search_posting
WHERE tenant_id = :tenant_id AND workflow_id = :workflow_id AND word >= :low AND word < :high
ORDER BY word, first_seq LIMIT :limit

-- name: set_posting
UPDATE search_posting SET events = :events, proof = :proof
WHERE tenant_id = :tenant_id AND workflow_id = :workflow_id AND word = :word AND first_seq = :first_seq

-- name: drop_posting
DELETE FROM search_posting
WHERE tenant_id = :tenant_id AND workflow_id = :workflow_id AND word = :word AND first_seq = :first_seq

-- name: drop_postings
DELETE FROM search_posting WHERE tenant_id = :tenant_id AND workflow_id = :workflow_id

-- name: all_postings
SELECT word, first_seq, events, proof FROM search_posting
WHERE tenant_id = :tenant_id AND workflow_id = :workflow_id ORDER BY word, first_seq

-- ------------------------------------------------------------------------------------------ register

-- name: begin_fact
INSERT INTO register_fact (tenant_id, workflow_id, from_seq, ordinal, kind, subject, holder, state, source_seq,
    through_seq, lane, audience, expires_us, row_digest)
VALUES (:tenant_id, :workflow_id, :from_seq, :ordinal, :kind, :subject, :holder, :state, :source_seq,
    :through_seq, :lane, :audience, :expires_us, :row_digest)

-- name: end_fact
UPDATE register_fact SET through_seq = :through_seq, row_digest = :row_digest
WHERE tenant_id = :tenant_id AND workflow_id = :workflow_id AND from_seq = :from_seq AND ordinal = :ordinal

-- Without ORDER BY: an order that the primary key gives would lead the planner to walk all of it.
-- name: facts_standing
SELECT from_seq, ordinal, kind, subject, holder, state, source_seq, through_seq, lane, audience, expires_us, row_digest
FROM register_fact
WHERE tenant_id = :tenant_id AND workflow_id = :workflow_id AND subject = :subject AND kind = :kind
    AND through_seq IS NULL

-- name: open_calls
SELECT from_seq, ordinal, kind, subject, holder, state, source_seq, through_seq, lane, audience, expires_us, row_digest
FROM register_fact
WHERE tenant_id = :tenant_id AND workflow_id = :workflow_id
    AND through_seq IS NULL AND kind = 'call' AND state = 'standing'

-- Facts that held just after :seq: those that stand now, and those that ended later.
-- name: facts_as_of
SELECT from_seq, ordinal, kind, subject, holder, state, source_seq, through_seq, lane, audience, expires_us, row_digest
FROM register_fact
WHERE tenant_id = :tenant_id AND workflow_id = :workflow_id AND from_seq <= :seq
    AND (through_seq IS NULL OR through_seq >= :seq)
ORDER BY from_seq, ordinal

-- name: facts_of
SELECT from_seq, ordinal, kind, subject, holder, state, source_seq, through_seq, lane, audience, expires_us, row_digest
FROM register_fact
WHERE tenant_id = :tenant_id AND workflow_id = :workflow_id AND subject = :subject AND kind = :kind

-- name: count_standing
SELECT count(*) FROM register_fact
WHERE tenant_id = :tenant_id AND workflow_id = :workflow_id AND through_seq IS NULL

-- name: all_facts
SELECT from_seq, ordinal, kind, subject, holder, state, source_seq, through_seq, lane, audience, expires_us, row_digest
FROM register_fact WHERE tenant_id = :tenant_id AND workflow_id = :workflow_id ORDER BY from_seq, ordinal

-- ------------------------------------------------------------------------------------------ views

-- name: view
SELECT view_id, name, audiences, audience_version, budget, generation, summary_no, watermark, moved_lineage_seq,
    fence, lease_attempt, lease_until_us, row_digest
FROM view_head WHERE tenant_id = :tenant_id AND workflow_id = :workflow_id AND name = :name

-- name: all_views
SELECT view_id, name, audiences, audience_version, budget, generation, summary_no, watermark, moved_lineage_seq,
    fence, lease_attempt, lease_until_us, row_digest
FROM view_head WHERE tenant_id = :tenant_id AND workflow_id = :workflow_id ORDER BY view_id

-- name: add_view
INSERT INTO view_head (tenant_id, workflow_id, view_id, name, audiences, audience_version, budget, generation,
    summary_no, watermark, moved_lineage_seq, fence, lease_attempt, lease_until_us, row_digest)
VALUES (:tenant_id, :workflow_id, :view_id, :name, :audiences, :audience_version, :budget, :generation,
    :summary_no, :watermark, :moved_lineage_seq, :fence, :lease_attempt, :lease_until_us, :row_digest)

-- Everything of a view but its pointer: only move_pointer moves that.
-- name: set_view
UPDATE view_head SET audiences = :audiences, audience_version = :audience_version, budget = :budget, fence = :fence,
    lease_attempt = :lease_attempt, lease_until_us = :lease_until_us, row_digest = :row_digest
WHERE tenant_id = :tenant_id AND workflow_id = :workflow_id AND view_id = :view_id
    AND generation = :generation AND summary_no = :summary_no AND watermark = :watermark
    AND moved_lineage_seq = :moved_lineage_seq

-- The compare-and-swap (I6). The engine has checked the same under the head's lock; this is the second assertion:
-- the generation is still the base, the fence is the attempt's own, this attempt's draft is VALIDATED, and its job is
-- one of this view: fences are counted per view.
-- name: move_pointer
UPDATE view_head SET name = :name, audiences = :audiences, audience_version = :audience_version, budget = :budget,
    generation = :generation, summary_no = :summary_no, watermark = :watermark,
    moved_lineage_seq = :moved_lineage_seq, fence = :fence, lease_attempt = :lease_attempt,
    lease_until_us = :lease_until_us, row_digest = :row_digest
WHERE tenant_id = :tenant_id AND workflow_id = :workflow_id AND view_id = :view_id
    AND generation = :base_generation AND fence = :owner_fence AND :generation > :base_generation
    AND EXISTS (SELECT 1 FROM attempt a JOIN candidate c
            ON c.tenant_id = a.tenant_id AND c.workflow_id = a.workflow_id AND c.candidate_id = a.candidate_id
        WHERE a.tenant_id = :tenant_id AND a.workflow_id = :workflow_id AND a.attempt_id = :attempt_id
            AND a.fence = :owner_fence AND a.state = 'validated' AND c.view = :name)
    AND NOT EXISTS (SELECT 1 FROM case_file f
        WHERE f.tenant_id = :tenant_id AND f.workflow_id = :workflow_id AND f.view = :name
            AND f.summary_no = view_head.summary_no AND f.state = 'open' AND f.blocking = 1)

-- For a summary that was active before, or none: revert, rewind, fork.
-- name: shift_pointer
UPDATE view_head SET name = :name, audiences = :audiences, audience_version = :audience_version, budget = :budget,
    generation = :generation, summary_no = :summary_no, watermark = :watermark,
    moved_lineage_seq = :moved_lineage_seq, fence = :fence, lease_attempt = :lease_attempt,
    lease_until_us = :lease_until_us, row_digest = :row_digest
WHERE tenant_id = :tenant_id AND workflow_id = :workflow_id AND view_id = :view_id
    AND generation = :base_generation AND :generation > :base_generation

-- ------------------------------------------------------------------------------------------ candidates, attempts

-- name: candidate
SELECT candidate_id, view, audience_version, plan, recipe, state, created_us, not_before_us, row_digest
FROM candidate WHERE tenant_id = :tenant_id AND workflow_id = :workflow_id AND candidate_id = :candidate_id

-- name: all_candidates
SELECT candidate_id, view, audience_version, plan, recipe, state, created_us, not_before_us, row_digest
FROM candidate WHERE tenant_id = :tenant_id AND workflow_id = :workflow_id ORDER BY created_us, candidate_id

-- name: add_candidate
INSERT INTO candidate (tenant_id, workflow_id, candidate_id, view, audience_version, plan, recipe, state, created_us,
    not_before_us, row_digest)
VALUES (:tenant_id, :workflow_id, :candidate_id, :view, :audience_version, :plan, :recipe, :state, :created_us,
    :not_before_us, :row_digest)

-- name: set_candidate_state
UPDATE candidate SET state = :state, row_digest = :row_digest
WHERE tenant_id = :tenant_id AND workflow_id = :workflow_id AND candidate_id = :candidate_id

-- name: attempts
SELECT attempt_id, candidate_id, number, fence, state, started_us, ended_us, failure, failure_text, drafts,
    draft_digest, verdict, summary_no, row_digest
FROM attempt WHERE tenant_id = :tenant_id AND workflow_id = :workflow_id AND candidate_id = :candidate_id
ORDER BY number

-- name: add_attempt
INSERT INTO attempt (tenant_id, workflow_id, attempt_id, candidate_id, number, fence, state, started_us, ended_us,
    failure, failure_text, drafts, draft_digest, verdict, summary_no, row_digest)
VALUES (:tenant_id, :workflow_id, :attempt_id, :candidate_id, :number, :fence, :state, :started_us, :ended_us,
    :failure, :failure_text, :drafts, :draft_digest, :verdict, :summary_no, :row_digest)

-- Write-once: a row is settled from the state that its owner knows, under the owner's fence, and a stored draft is
-- never replaced by another (I6).
-- name: settle_attempt
UPDATE attempt SET fence = :fence, state = :state, ended_us = :ended_us, failure = :failure,
    failure_text = :failure_text, drafts = :drafts, draft_digest = :draft_digest, verdict = :verdict,
    summary_no = :summary_no, row_digest = :row_digest
WHERE tenant_id = :tenant_id AND workflow_id = :workflow_id AND attempt_id = :attempt_id
    AND fence = :owner_fence AND state = :expected
    AND (draft_digest IS NULL OR draft_digest = :draft_digest)

-- What it drafted, was told and failed with may quote what is erased (C31).
-- name: erase_attempt
UPDATE attempt SET failure_text = :failure_text, drafts = :drafts, verdict = :verdict, row_digest = :row_digest
WHERE tenant_id = :tenant_id AND workflow_id = :workflow_id AND attempt_id = :attempt_id

-- ------------------------------------------------------------------------------------------ segments, summaries

-- name: add_segment
INSERT INTO segment (tenant_id, workflow_id, segment_id, from_seq, through_seq, event_count, level, depth, tokens,
    source_tokens, source_digest, text, salt, text_digest, ref_ids, made_by, row_digest)
VALUES (:tenant_id, :workflow_id, :segment_id, :from_seq, :through_seq, :event_count, :level, :depth, :tokens,
    :source_tokens, :source_digest, :text, :salt, :text_digest, :ref_ids, :made_by, :row_digest)

-- name: segment_exists
SELECT 1 FROM segment WHERE tenant_id = :tenant_id AND workflow_id = :workflow_id AND segment_id = :segment_id

-- name: add_summary
INSERT INTO summary (tenant_id, workflow_id, summary_no, summary_id, view, base_no, generation, compactions,
    watermark, event_count, source_digest, depth, tokens, token_counter, segments, anchors, ledger, anchors_text,
    ledger_text, ref_ids, salt, text_digest, refs_seen, dropped_count, manifest_digest, revision, row_digest)
VALUES (:tenant_id, :workflow_id, :summary_no, :summary_id, :view, :base_no, :generation, :compactions,
    :watermark, :event_count, :source_digest, :depth, :tokens, :token_counter, :segments, :anchors, :ledger,
    :anchors_text, :ledger_text, :ref_ids, :salt, :text_digest, :refs_seen, :dropped_count, :manifest_digest, :revision,
    :row_digest)

-- name: summary
SELECT summary_no, summary_id, view, base_no, generation, compactions, watermark, event_count, source_digest, depth,
    tokens, token_counter, segments, anchors, ledger, anchors_text, ledger_text, ref_ids, salt, text_digest, refs_seen,
    dropped_count, manifest_digest, revision, row_digest
FROM summary WHERE tenant_id = :tenant_id AND workflow_id = :workflow_id AND summary_no = :summary_no

-- name: summary_no
SELECT summary_no FROM summary
WHERE tenant_id = :tenant_id AND workflow_id = :workflow_id AND summary_id = :summary_id

-- name: segment
SELECT segment_id, from_seq, through_seq, event_count, level, depth, tokens, source_tokens, source_digest, text, salt,
    text_digest, ref_ids, made_by, row_digest
FROM segment WHERE tenant_id = :tenant_id AND workflow_id = :workflow_id AND segment_id = :segment_id

-- name: erase_segment
UPDATE segment SET text = NULL, salt = NULL, row_digest = :row_digest
WHERE tenant_id = :tenant_id AND workflow_id = :workflow_id AND segment_id = :segment_id

-- name: erase_summary
UPDATE summary SET anchors = NULL, ledger = NULL, anchors_text = NULL, ledger_text = NULL, salt = NULL,
    row_digest = :row_digest
WHERE tenant_id = :tenant_id AND workflow_id = :workflow_id AND summary_no = :summary_no

-- name: add_changes
INSERT INTO dropped_ref (tenant_id, workflow_id, summary_no, base_no, generation, changes, row_digest)
VALUES (:tenant_id, :workflow_id, :summary_no, :base_no, :generation, :changes, :row_digest)

-- name: changes
SELECT summary_no, base_no, generation, changes, row_digest FROM dropped_ref
WHERE tenant_id = :tenant_id AND workflow_id = :workflow_id AND summary_no = :summary_no

-- name: add_foreign
INSERT INTO foreign_summary (tenant_id, workflow_id, key, through_seq, text, detail, row_digest)
VALUES (:tenant_id, :workflow_id, :key, :through_seq, :text, :detail, :row_digest)
ON CONFLICT (tenant_id, workflow_id, key) DO NOTHING

-- name: foreign
SELECT key, through_seq, text, detail, row_digest FROM foreign_summary
WHERE tenant_id = :tenant_id AND workflow_id = :workflow_id ORDER BY through_seq, key

-- name: erase_foreign
UPDATE foreign_summary SET text = NULL, row_digest = :row_digest
WHERE tenant_id = :tenant_id AND workflow_id = :workflow_id AND key = :key

-- ------------------------------------------------------------------------------------------ lineage, checkpoints

-- name: add_lineage
INSERT INTO lineage (tenant_id, workflow_id, lineage_seq, kind, op_key, revision, at_us, view, generation, name,
    restored_seq, record, chain)
VALUES (:tenant_id, :workflow_id, :lineage_seq, :kind, :op_key, :revision, :at_us, :view, :generation, :name,
    :restored_seq, :record, :chain)

-- name: lineage
SELECT lineage_seq, kind, op_key, revision, at_us, view, generation, name, restored_seq, record, chain
FROM lineage WHERE tenant_id = :tenant_id AND workflow_id = :workflow_id AND lineage_seq > :after
ORDER BY lineage_seq LIMIT :limit

-- name: lineage_move
SELECT max(generation) FROM lineage
WHERE tenant_id = :tenant_id AND workflow_id = :workflow_id AND view = :view AND generation IS NOT NULL
    AND kind <> 'checkpoint'

-- name: lineage_move_to
SELECT lineage_seq, kind, op_key, revision, at_us, view, generation, name, restored_seq, record, chain
FROM lineage
WHERE tenant_id = :tenant_id AND workflow_id = :workflow_id AND view = :view AND generation = :generation
    AND kind <> 'checkpoint' AND kind <> 'restore' AND kind <> 'replay'

-- name: newest_recovery
SELECT lineage_seq, kind, op_key, revision, at_us, view, generation, name, restored_seq, record, chain
FROM lineage
WHERE tenant_id = :tenant_id AND workflow_id = :workflow_id AND name IS NOT NULL AND kind IN ('restore', 'replay')
ORDER BY lineage_seq DESC LIMIT 1

-- name: lineage_by_op
SELECT lineage_seq, kind, op_key, revision, at_us, view, generation, name, restored_seq, record, chain
FROM lineage WHERE tenant_id = :tenant_id AND workflow_id = :workflow_id AND op_key = :op_key

-- name: left_by_restore
SELECT 1 FROM lineage
WHERE tenant_id = :tenant_id AND workflow_id = :workflow_id AND name = :name
    AND kind IN ('restore', 'rewind') AND lineage_seq > :lineage_seq AND restored_seq < :lineage_seq
LIMIT 1

-- name: lineage_of_kind
SELECT lineage_seq, kind, op_key, revision, at_us, view, generation, name, restored_seq, record, chain
FROM lineage WHERE tenant_id = :tenant_id AND workflow_id = :workflow_id AND kind = :kind AND kind <> 'checkpoint'
ORDER BY lineage_seq

-- name: forks
SELECT f.name FROM workflow w JOIN workflow f ON f.tenant_id = w.tenant_id AND f.parent = w.name
WHERE w.tenant_id = :tenant_id AND w.workflow_id = :workflow_id ORDER BY f.name

-- name: add_checkpoint
INSERT INTO checkpoint (tenant_id, workflow_id, lineage_seq, name, turn, revision, branch, context_free, in_flight,
    views, state, salt, external, digest)
VALUES (:tenant_id, :workflow_id, :lineage_seq, :name, :turn, :revision, :branch, :context_free, :in_flight,
    :views, :state, :salt, :external, :digest)

-- name: newest_checkpoint
SELECT lineage_seq, kind, op_key, revision, at_us, view, generation, name, restored_seq, record, chain
FROM lineage
WHERE tenant_id = :tenant_id AND workflow_id = :workflow_id AND name = :name AND kind = 'checkpoint'
    AND lineage_seq < :before AND (view IS NULL) = (:context_free = 1)
ORDER BY lineage_seq DESC LIMIT 1

-- name: checkpoint
SELECT name, lineage_seq, turn, revision, branch, context_free, in_flight, views, state, salt, external, digest,
    state_digest
FROM checkpoint
WHERE tenant_id = :tenant_id AND workflow_id = :workflow_id AND lineage_seq = :lineage_seq

-- name: all_checkpoints
SELECT name, lineage_seq, turn, revision, branch, context_free, in_flight, views, state, salt, external, digest,
    state_digest
FROM checkpoint WHERE tenant_id = :tenant_id AND workflow_id = :workflow_id ORDER BY lineage_seq

-- name: erase_checkpoint
UPDATE checkpoint SET state = NULL, salt = NULL, state_digest = :state_digest
WHERE tenant_id = :tenant_id AND workflow_id = :workflow_id AND lineage_seq = :lineage_seq

-- ------------------------------------------------------------------------------------------ cases

-- name: add_case
INSERT INTO case_file (tenant_id, workflow_id, case_id, identity, kind, state, blocking, view, summary_no, opened_us, record,
    row_digest)
VALUES (:tenant_id, :workflow_id, :case_id, :identity, :kind, :state, :blocking, :view, :summary_no, :opened_us, :record,
    :row_digest)

-- The first answer wins (I11).
-- name: settle_case
UPDATE case_file SET state = :state, record = :record, row_digest = :row_digest
WHERE tenant_id = :tenant_id AND workflow_id = :workflow_id AND case_id = :case_id AND state = 'open'

-- name: erase_case
UPDATE case_file SET record = :record, row_digest = :row_digest
WHERE tenant_id = :tenant_id AND workflow_id = :workflow_id AND case_id = :case_id

-- name: case
SELECT case_id, identity, kind, state, blocking, view, summary_no, opened_us, record, row_digest
FROM case_file WHERE tenant_id = :tenant_id AND workflow_id = :workflow_id AND case_id = :case_id

-- name: open_case
SELECT case_id, identity, kind, state, blocking, view, summary_no, opened_us, record, row_digest
FROM case_file
WHERE tenant_id = :tenant_id AND workflow_id = :workflow_id AND identity = :identity AND state = 'open'

-- name: count_cases_of
SELECT count(*) FROM case_file
WHERE tenant_id = :tenant_id AND workflow_id = :workflow_id AND identity = :identity

-- name: blocking_case
SELECT case_id, identity, kind, state, blocking, view, summary_no, opened_us, record, row_digest
FROM case_file
WHERE tenant_id = :tenant_id AND workflow_id = :workflow_id AND view = :view AND summary_no = :summary_no
    AND state = 'open' AND blocking = 1
ORDER BY opened_us, case_id LIMIT 1

-- name: cases_of_kind
SELECT case_id, identity, kind, state, blocking, view, summary_no, opened_us, record, row_digest
FROM case_file WHERE tenant_id = :tenant_id AND workflow_id = :workflow_id AND kind = :kind AND state = :state
ORDER BY opened_us, case_id

-- name: count_cases
SELECT count(*) FROM case_file WHERE tenant_id = :tenant_id AND workflow_id = :workflow_id

-- name: all_cases
SELECT case_id, identity, kind, state, blocking, view, summary_no, opened_us, record, row_digest
FROM case_file WHERE tenant_id = :tenant_id AND workflow_id = :workflow_id ORDER BY opened_us, case_id

-- ------------------------------------------------------------------------------------------ effects, permits

-- name: add_effect
INSERT INTO effect (tenant_id, workflow_id, key, fingerprint, state, attempt, intended_us, record, row_digest)
VALUES (:tenant_id, :workflow_id, :key, :fingerprint, :state, :attempt, :intended_us, :record, :row_digest)

-- name: settle_effect
UPDATE effect SET fingerprint = :fingerprint, state = :state, attempt = :attempt, intended_us = :intended_us,
    record = :record, row_digest = :row_digest
WHERE tenant_id = :tenant_id AND workflow_id = :workflow_id AND key = :key
    AND state = :expected AND attempt = :known_attempt

-- name: effect
SELECT key, fingerprint, state, attempt, intended_us, record, row_digest
FROM effect WHERE tenant_id = :tenant_id AND workflow_id = :workflow_id AND key = :key

-- name: effects_alike
SELECT key, fingerprint, state, attempt, intended_us, record, row_digest
FROM effect WHERE tenant_id = :tenant_id AND workflow_id = :workflow_id AND fingerprint = :fingerprint
ORDER BY intended_us DESC, key LIMIT :limit

-- name: effects_in_doubt
SELECT key, fingerprint, state, attempt, intended_us, record, row_digest
FROM effect WHERE tenant_id = :tenant_id AND workflow_id = :workflow_id AND fingerprint = :fingerprint
    AND state IN ('intended', 'unknown')
ORDER BY intended_us DESC, key LIMIT :limit

-- name: all_effects
SELECT key, fingerprint, state, attempt, intended_us, record, row_digest
FROM effect WHERE tenant_id = :tenant_id AND workflow_id = :workflow_id ORDER BY intended_us, key

-- name: count_effects
SELECT COUNT(*) FROM effect WHERE tenant_id = :tenant_id AND workflow_id = :workflow_id

-- name: add_permit
INSERT INTO permit (tenant_id, workflow_id, permit_id, state, decided_us, record, row_digest)
VALUES (:tenant_id, :workflow_id, :permit_id, :state, :decided_us, :record, :row_digest)

-- name: settle_permit
UPDATE permit SET state = :state, decided_us = :decided_us, record = :record, row_digest = :row_digest
WHERE tenant_id = :tenant_id AND workflow_id = :workflow_id AND permit_id = :permit_id AND state = :expected

-- name: permit
SELECT permit_id, state, decided_us, record, row_digest
FROM permit WHERE tenant_id = :tenant_id AND workflow_id = :workflow_id AND permit_id = :permit_id

-- name: all_permits
SELECT permit_id, state, decided_us, record, row_digest
FROM permit WHERE tenant_id = :tenant_id AND workflow_id = :workflow_id ORDER BY decided_us, permit_id

-- name: use_approval
INSERT INTO approval_use (tenant_id, workflow_id, workflow, seq, permit_id, row_digest)
VALUES (:tenant_id, :workflow_id, :workflow, :seq, :permit_id, :row_digest)
ON CONFLICT (tenant_id, workflow_id, workflow, seq) DO NOTHING

-- name: approval_use
SELECT workflow, seq, permit_id, row_digest
FROM approval_use
WHERE tenant_id = :tenant_id AND workflow_id = :workflow_id AND workflow = :workflow AND seq = :seq

-- name: all_approval_uses
SELECT workflow, seq, permit_id, row_digest
FROM approval_use WHERE tenant_id = :tenant_id AND workflow_id = :workflow_id ORDER BY workflow, seq

-- ------------------------------------------------------------------------------------------ due compactions

-- name: due
SELECT view, revision, priority, due_us, wanted_us, asked_us, budget, when_tokens, strict, runs, worker, lease_until_us,
    fence, outcome, failure, failure_text, case_id, watch, row_digest FROM due_compaction
WHERE tenant_id = :tenant_id AND workflow_id = :workflow_id AND view = :view

-- name: all_due
SELECT view, revision, priority, due_us, wanted_us, asked_us, budget, when_tokens, strict, runs, worker, lease_until_us,
    fence, outcome, failure, failure_text, case_id, watch, row_digest FROM due_compaction
WHERE tenant_id = :tenant_id AND workflow_id = :workflow_id
ORDER BY view

-- name: add_due
INSERT INTO due_compaction (tenant_id, workflow_id, view, revision, priority, due_us, wanted_us, asked_us, budget,
    when_tokens, strict, runs, worker, lease_until_us, fence, outcome, failure, failure_text, case_id, watch, row_digest)
VALUES (:tenant_id, :workflow_id, :view, :revision, :priority, :due_us, :wanted_us, :asked_us, :budget, :when_tokens,
    :strict, :runs, :worker, :lease_until_us, :fence, :outcome, :failure, :failure_text, :case_id, :watch, :row_digest)

-- name: settle_due
-- who read another fence is a worker whose lease was taken over: it settles nothing
UPDATE due_compaction SET revision = :revision, priority = :priority, due_us = :due_us, wanted_us = :wanted_us,
    asked_us = :asked_us, budget = :budget, when_tokens = :when_tokens, strict = :strict, runs = :runs,
    worker = :worker, lease_until_us = :lease_until_us, fence = :fence, outcome = :outcome, failure = :failure,
    failure_text = :failure_text, case_id = :case_id, watch = :watch, row_digest = :row_digest
WHERE tenant_id = :tenant_id AND workflow_id = :workflow_id AND view = :view AND fence = :owner_fence
    AND fence <= :fence

-- name: count_open_due
SELECT count(*) FROM (SELECT 1 FROM due_compaction WHERE tenant_id = :tenant_id AND due_us IS NOT NULL LIMIT :limit) d

-- name: due_lanes
-- From tenant to tenant, and from priority to priority, by one step in the index each: what else waits is not read.
-- What stands in quotes is no table.
WITH RECURSIVE tenants (tenant_id) AS (
    SELECT min(tenant_id) FROM due_compaction WHERE due_us IS NOT NULL
    UNION ALL
    SELECT (SELECT min(d.tenant_id) FROM due_compaction d WHERE d.due_us IS NOT NULL AND d.tenant_id > t.tenant_id)
    FROM "tenants" t WHERE t.tenant_id IS NOT NULL
), lanes (tenant_id, priority) AS (
    SELECT t.tenant_id,
        (SELECT max(d.priority) FROM due_compaction d WHERE d.due_us IS NOT NULL AND d.tenant_id = t.tenant_id)
    FROM "tenants" t WHERE t.tenant_id IS NOT NULL
    UNION ALL
    SELECT l.tenant_id, (SELECT max(d.priority) FROM due_compaction d
        WHERE d.due_us IS NOT NULL AND d.tenant_id = l.tenant_id AND d.priority < l.priority)
    FROM "lanes" l WHERE l.priority IS NOT NULL
), firsts (tenant_id, priority, first_us) AS (
    SELECT l.tenant_id, l.priority, (SELECT min(d.due_us) FROM due_compaction d
        WHERE d.due_us IS NOT NULL AND d.tenant_id = l.tenant_id AND d.priority = l.priority)
    FROM "lanes" l WHERE l.priority IS NOT NULL
)
SELECT tenant_id, priority, first_us FROM "firsts" WHERE first_us <= :now_us

-- name: due_rows
-- the rows first, by the index alone, then their names
SELECT t.name, w.name, d.view, d.priority, d.due_us FROM (
    SELECT tenant_id, workflow_id, view, priority, due_us FROM due_compaction
    WHERE tenant_id = :tenant_id AND priority = :priority AND due_us <= :now_us
    ORDER BY due_us LIMIT :limit
) d
JOIN tenant t ON t.tenant_id = d.tenant_id
JOIN workflow w ON w.tenant_id = d.tenant_id AND w.workflow_id = d.workflow_id
ORDER BY d.due_us

-- name: due_ahead
-- those whose time lies further ahead than it can: a clock had jumped
SELECT d.tenant_id, t.name, w.name, d.view, d.priority, d.due_us FROM (
    SELECT * FROM (
        SELECT tenant_id, workflow_id, view, priority, due_us FROM due_compaction
        WHERE lease_until_us > :lease_horizon_us AND lease_until_us > 0
        ORDER BY lease_until_us LIMIT :limit
    ) held
    UNION ALL
    SELECT * FROM (
        SELECT tenant_id, workflow_id, view, priority, due_us FROM due_compaction
        WHERE due_us > :horizon_us AND lease_until_us = 0
        ORDER BY due_us LIMIT :limit
    ) waiting
) d
JOIN tenant t ON t.tenant_id = d.tenant_id
JOIN workflow w ON w.tenant_id = d.tenant_id AND w.workflow_id = d.workflow_id

-- ------------------------------------------------------------------------------------------ readers

-- name: reader
SELECT name, seq, finished, seen_us, row_digest FROM reader_watermark
WHERE tenant_id = :tenant_id AND workflow_id = :workflow_id AND name = :name

-- name: all_readers
SELECT name, seq, finished, seen_us, row_digest FROM reader_watermark
WHERE tenant_id = :tenant_id AND workflow_id = :workflow_id ORDER BY name

-- name: set_reader
INSERT INTO reader_watermark (tenant_id, workflow_id, name, seq, finished, seen_us, row_digest)
VALUES (:tenant_id, :workflow_id, :name, :seq, :finished, :seen_us, :row_digest)
ON CONFLICT (tenant_id, workflow_id, name) DO UPDATE SET seq = excluded.seq, finished = excluded.finished,
    seen_us = excluded.seen_us, row_digest = excluded.row_digest

-- ------------------------------------------------------------------------------------------ cooldowns

-- name: cooldown
SELECT summarizer, failures, failed_us, answered_us, until_us, steps, row_digest FROM cooldown
WHERE tenant_id = :tenant_id AND workflow_id = :workflow_id AND summarizer = :summarizer

-- name: all_cooldowns
SELECT summarizer, failures, failed_us, answered_us, until_us, steps, row_digest FROM cooldown
WHERE tenant_id = :tenant_id AND workflow_id = :workflow_id ORDER BY summarizer

-- name: other_cooldowns
-- of the tenant's other workflows; a row that is damaged is found by the verify of its own workflow
SELECT summarizer, failures, failed_us, answered_us, until_us, steps, row_digest FROM cooldown
WHERE tenant_id = :tenant_id AND workflow_id <> :workflow_id AND summarizer = :summarizer
ORDER BY changed_us DESC LIMIT :limit

-- name: set_cooldown
INSERT INTO cooldown (tenant_id, workflow_id, summarizer, failures, failed_us, answered_us, until_us, steps, changed_us,
    row_digest)
VALUES (:tenant_id, :workflow_id, :summarizer, :failures, :failed_us, :answered_us, :until_us, :steps, :changed_us,
    :row_digest)
ON CONFLICT (tenant_id, workflow_id, summarizer) DO UPDATE SET failures = excluded.failures,
    failed_us = excluded.failed_us, answered_us = excluded.answered_us, until_us = excluded.until_us,
    steps = excluded.steps, changed_us = excluded.changed_us, row_digest = excluded.row_digest

-- ------------------------------------------------------------------------------------------ saved states

-- name: state_line
SELECT number, name, saved, newest, row_digest FROM state_line
WHERE tenant_id = :tenant_id AND workflow_id = :workflow_id AND name = :name

-- name: all_state_lines
SELECT number, name, saved, newest, row_digest FROM state_line
WHERE tenant_id = :tenant_id AND workflow_id = :workflow_id ORDER BY number

-- name: count_state_lines
SELECT count(*) FROM state_line WHERE tenant_id = :tenant_id AND workflow_id = :workflow_id

-- name: set_state_line
INSERT INTO state_line (tenant_id, workflow_id, number, name, saved, newest, row_digest)
VALUES (:tenant_id, :workflow_id, :number, :name, :saved, :newest, :row_digest)
ON CONFLICT (tenant_id, workflow_id, number) DO UPDATE SET saved = excluded.saved, newest = excluded.newest,
    row_digest = excluded.row_digest

-- name: saved_state
SELECT number, line, state_id, status, position, previous, parent, run, held, meta, writes, row_digest FROM saved_state
WHERE tenant_id = :tenant_id AND workflow_id = :workflow_id AND line = :line AND state_id = :state_id

-- What a state says is written once: it gets a position, what tasks write behind it, and at last a tombstone.
-- name: set_saved_state
INSERT INTO saved_state (tenant_id, workflow_id, number, line, state_id, status, position, previous, parent, run, held,
    meta, writes, row_digest)
VALUES (:tenant_id, :workflow_id, :number, :line, :state_id, :status, :position, :previous, :parent, :run, :held,
    :meta, :writes, :row_digest)
ON CONFLICT (tenant_id, workflow_id, number) DO UPDATE SET status = excluded.status, position = excluded.position,
    previous = excluded.previous, parent = excluded.parent, run = excluded.run, held = excluded.held,
    meta = excluded.meta, writes = excluded.writes, row_digest = excluded.row_digest

-- name: newest_states
SELECT number, line, state_id, status, position, previous, parent, run, held, meta, writes, row_digest FROM saved_state
WHERE tenant_id = :tenant_id AND workflow_id = :workflow_id AND position <= :through
ORDER BY position DESC LIMIT :limit

-- name: newest_states_of_line
SELECT number, line, state_id, status, position, previous, parent, run, held, meta, writes, row_digest FROM saved_state
WHERE tenant_id = :tenant_id AND workflow_id = :workflow_id AND line = :line AND position <= :through
ORDER BY position DESC LIMIT :limit

-- name: all_saved_states
SELECT number, line, state_id, status, position, previous, parent, run, held, meta, writes, row_digest FROM saved_state
WHERE tenant_id = :tenant_id AND workflow_id = :workflow_id ORDER BY number

-- name: count_saved_states
SELECT count(*) FROM saved_state WHERE tenant_id = :tenant_id AND workflow_id = :workflow_id

-- name: add_node
INSERT INTO state_node (tenant_id, workflow_id, node_id, level, kind, body, body_digest, proof)
VALUES (:tenant_id, :workflow_id, :node_id, :level, :kind, :body, :body_digest, :proof)

-- Sixteen at a time, each by its whole key: as ref_keys.
-- name: find_nodes
SELECT body_digest, node_id FROM state_node
WHERE tenant_id = :tenant_id AND workflow_id = :workflow_id AND body_digest = :d1
UNION ALL
SELECT body_digest, node_id FROM state_node
WHERE tenant_id = :tenant_id AND workflow_id = :workflow_id AND body_digest = :d2
UNION ALL
SELECT body_digest, node_id FROM state_node
WHERE tenant_id = :tenant_id AND workflow_id = :workflow_id AND body_digest = :d3
UNION ALL
SELECT body_digest, node_id FROM state_node
WHERE tenant_id = :tenant_id AND workflow_id = :workflow_id AND body_digest = :d4
UNION ALL
SELECT body_digest, node_id FROM state_node
WHERE tenant_id = :tenant_id AND workflow_id = :workflow_id AND body_digest = :d5
UNION ALL
SELECT body_digest, node_id FROM state_node
WHERE tenant_id = :tenant_id AND workflow_id = :workflow_id AND body_digest = :d6
UNION ALL
SELECT body_digest, node_id FROM state_node
WHERE tenant_id = :tenant_id AND workflow_id = :workflow_id AND body_digest = :d7
UNION ALL
SELECT body_digest, node_id FROM state_node
WHERE tenant_id = :tenant_id AND workflow_id = :workflow_id AND body_digest = :d8
UNION ALL
SELECT body_digest, node_id FROM state_node
WHERE tenant_id = :tenant_id AND workflow_id = :workflow_id AND body_digest = :d9
UNION ALL
SELECT body_digest, node_id FROM state_node
WHERE tenant_id = :tenant_id AND workflow_id = :workflow_id AND body_digest = :d10
UNION ALL
SELECT body_digest, node_id FROM state_node
WHERE tenant_id = :tenant_id AND workflow_id = :workflow_id AND body_digest = :d11
UNION ALL
SELECT body_digest, node_id FROM state_node
WHERE tenant_id = :tenant_id AND workflow_id = :workflow_id AND body_digest = :d12
UNION ALL
SELECT body_digest, node_id FROM state_node
WHERE tenant_id = :tenant_id AND workflow_id = :workflow_id AND body_digest = :d13
UNION ALL
SELECT body_digest, node_id FROM state_node
WHERE tenant_id = :tenant_id AND workflow_id = :workflow_id AND body_digest = :d14
UNION ALL
SELECT body_digest, node_id FROM state_node
WHERE tenant_id = :tenant_id AND workflow_id = :workflow_id AND body_digest = :d15
UNION ALL
SELECT body_digest, node_id FROM state_node
WHERE tenant_id = :tenant_id AND workflow_id = :workflow_id AND body_digest = :d16

-- name: nodes
SELECT node_id, level, kind, body, body_digest, proof FROM state_node
WHERE tenant_id = :tenant_id AND workflow_id = :workflow_id AND node_id BETWEEN :from_id AND :through_id

-- name: node_ids
SELECT node_id FROM state_node WHERE tenant_id = :tenant_id AND workflow_id = :workflow_id ORDER BY node_id

-- name: all_nodes
SELECT node_id, level, kind, body, body_digest, proof FROM state_node
WHERE tenant_id = :tenant_id AND workflow_id = :workflow_id ORDER BY node_id

-- name: erase_node
UPDATE state_node SET body = NULL, proof = :proof
WHERE tenant_id = :tenant_id AND workflow_id = :workflow_id AND node_id = :node_id

-- name: drop_nodes
DELETE FROM state_node
WHERE tenant_id = :tenant_id AND workflow_id = :workflow_id AND node_id BETWEEN :from_id AND :through_id

-- ------------------------------------------------------------------------------------------ figures

-- One row for each figure and word, of one tenant (:tenant_id = :last_tenant_id) or of all. No event is read: the cost
-- follows attempts, cases, views, due rows, segments and moves. A lease further ahead than its TTL counts as expired.
-- name: figures
SELECT t.name, f.figure, f.label, f.number FROM (
    SELECT tenant_id, 'workflows' AS figure, '' AS label, count(*) AS number
    FROM workflow WHERE tenant_id BETWEEN :tenant_id AND :last_tenant_id AND name <> :rules GROUP BY tenant_id
    UNION ALL
    SELECT tenant_id, 'events', '', CAST(sum(revision - fork_seq) AS BIGINT)
    FROM workflow WHERE tenant_id BETWEEN :tenant_id AND :last_tenant_id GROUP BY tenant_id
    UNION ALL
    SELECT tenant_id, 'candidates', '', count(*)
    FROM attempt WHERE tenant_id BETWEEN :tenant_id AND :last_tenant_id AND number = 1 GROUP BY tenant_id
    UNION ALL
    SELECT tenant_id, 'retries', '', count(*)
    FROM attempt WHERE tenant_id BETWEEN :tenant_id AND :last_tenant_id AND number > 1 GROUP BY tenant_id
    UNION ALL
    SELECT tenant_id, 'attempts', state, count(*)
    FROM attempt WHERE tenant_id BETWEEN :tenant_id AND :last_tenant_id GROUP BY tenant_id, state
    UNION ALL
    SELECT tenant_id, 'failures', failure, count(*)
    FROM attempt WHERE tenant_id BETWEEN :tenant_id AND :last_tenant_id AND failure IS NOT NULL
    GROUP BY tenant_id, failure
    UNION ALL
    SELECT a.tenant_id, 'stale', '', count(*)
    FROM attempt a WHERE a.tenant_id BETWEEN :tenant_id AND :last_tenant_id AND (a.state = 'fenced'
        OR (a.state = 'validated' AND NOT EXISTS (SELECT 1 FROM view_head v
            WHERE v.tenant_id = a.tenant_id AND v.workflow_id = a.workflow_id AND v.lease_attempt = a.attempt_id)))
    GROUP BY a.tenant_id
    UNION ALL
    SELECT tenant_id, 'running_since', '', min(started_us)
    FROM attempt WHERE tenant_id BETWEEN :tenant_id AND :last_tenant_id AND state = 'running' GROUP BY tenant_id
    UNION ALL
    SELECT tenant_id, 'leases',
        CASE WHEN lease_until_us > :now_us AND lease_until_us <= :latest_us THEN 'live' ELSE 'expired' END, count(*)
    FROM view_head WHERE tenant_id BETWEEN :tenant_id AND :last_tenant_id AND lease_attempt IS NOT NULL GROUP BY 1, 3
    UNION ALL
    SELECT tenant_id, 'due', CASE WHEN lease_until_us > 0 THEN 'running' WHEN due_us <= :now_us THEN 'due' ELSE 'later' END,
        count(*)
    FROM due_compaction WHERE tenant_id BETWEEN :tenant_id AND :last_tenant_id AND due_us IS NOT NULL GROUP BY 1, 3
    UNION ALL
    SELECT tenant_id, 'due_since', '', min(due_us)
    FROM due_compaction
    WHERE tenant_id BETWEEN :tenant_id AND :last_tenant_id AND due_us <= :now_us AND lease_until_us = 0
    GROUP BY tenant_id
    UNION ALL
    SELECT tenant_id, 'lineage', kind, count(*)
    FROM lineage WHERE tenant_id BETWEEN :tenant_id AND :last_tenant_id AND kind <> 'checkpoint'
    GROUP BY tenant_id, kind
    UNION ALL
    SELECT tenant_id, 'cases_opened', kind, count(*)
    FROM case_file WHERE tenant_id BETWEEN :tenant_id AND :last_tenant_id GROUP BY tenant_id, kind
    UNION ALL
    SELECT tenant_id, 'cases_open', kind, count(*)
    FROM case_file WHERE tenant_id BETWEEN :tenant_id AND :last_tenant_id AND state = 'open' GROUP BY tenant_id, kind
    UNION ALL
    SELECT tenant_id, 'cases_since', kind, min(opened_us)
    FROM case_file WHERE tenant_id BETWEEN :tenant_id AND :last_tenant_id AND state = 'open' GROUP BY tenant_id, kind
    UNION ALL
    SELECT v.tenant_id, m.figure, '', CAST(CASE m.figure
            WHEN 'summaries' THEN count(*) WHEN 'summary_tokens' THEN sum(s.tokens) WHEN 'depth_max' THEN max(s.depth)
            WHEN 'manifest_refs' THEN sum(s.dropped_count) ELSE max(s.dropped_count) END AS BIGINT)
    FROM view_head v JOIN summary s
            ON s.tenant_id = v.tenant_id AND s.workflow_id = v.workflow_id AND s.summary_no = v.summary_no
        CROSS JOIN (SELECT 'summaries' AS figure UNION ALL SELECT 'summary_tokens' UNION ALL SELECT 'depth_max'
            UNION ALL SELECT 'manifest_refs' UNION ALL SELECT 'manifest_refs_max') m
    WHERE v.tenant_id BETWEEN :tenant_id AND :last_tenant_id GROUP BY v.tenant_id, m.figure
    UNION ALL
    SELECT tenant_id, 'source_tokens', '', CAST(sum(source_tokens) AS BIGINT)
    FROM segment WHERE tenant_id BETWEEN :tenant_id AND :last_tenant_id GROUP BY tenant_id
    UNION ALL
    SELECT tenant_id, 'segment_tokens', '', CAST(sum(tokens) AS BIGINT)
    FROM segment WHERE tenant_id BETWEEN :tenant_id AND :last_tenant_id GROUP BY tenant_id
) f JOIN tenant t ON t.tenant_id = f.tenant_id
