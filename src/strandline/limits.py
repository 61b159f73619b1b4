"""Every bound in the system: one named constant each, the unit last (I22)."""

from typing import Final

# Names
NAME_CHARS_MAX: Final = 200
KEY_CHARS_MAX: Final = 500

# Log
EVENT_BYTES_MAX: Final = 16 * 1024 * 1024
EVENT_REFS_MAX: Final = 20_000
EXPIRES_US_MIN: Final = 10**14  # in 1973: what is less is seconds or milliseconds by mistake
EXPIRES_US_MAX: Final = 253_402_300_799_999_999  # the end of the year 9999
TURN_MAX: Final = 2**62
APPEND_EVENTS_MAX: Final = 10_000
REFERENCE_CHARS_MAX: Final = 512
REFERENCE_RULES_MAX: Final = 64  # patterns of a user, and JSON paths
JSON_DEPTH_MAX: Final = 200
UNPACKED_BYTES_MAX: Final = 64 * 1024 * 1024  # of one stored value: damaged bytes must not fill the memory
PLAIN_BYTES_MAX: Final = 40  # what is smaller is stored as it is: deflating would not shrink it
LOG_PAGE_EVENTS: Final = 512

# Import
IMPORT_CHUNK_EVENTS: Final = 256
IMPORT_KEPT_BYTES_MAX: Final = 8 * 1024 * 1024
IMPORT_LINE_BYTES_MAX: Final = 64 * 1024 * 1024
IMPORT_JSON_BYTES_MAX: Final = 64 * 1024 * 1024  # one JSON document, which is read whole; JSONL streams
IMPORT_STDIN_BYTES_MAX: Final = 4 * 1024 * 1024 * 1024  # what is spooled of stdin
IMPORT_LEFT_OUT_LISTED_MAX: Final = 1_000  # of what a salvage left out; the rest is counted
IMPORT_REASON_CHARS_MAX: Final = 500  # of the reason why it was left out
IMPORT_OPENING_CHARS_MAX: Final = 200  # of a value in the note that opens a conversation
IMPORT_RESYNC_PASSES_MAX: Final = 8  # how often a salvage walks through a document to find its way behind a damage
IMPORT_RESYNC_TRIES_MAX: Final = 10_000  # and from how many places it tries to
LIVE_BLOCK_BYTES: Final = (
    256 * 1024
)  # read at once, from the end of a file that grows, to find what the log holds of it
IMPORT_DETECT_RECORDS_MAX: Final = 100  # records read to tell the format
IMPORT_SKIPPED_TYPES_MAX: Final = 200  # types counted by name; the rest are "other"
EXPORT_PAGE_EVENTS: Final = 256  # read in one snapshot: a slow reader of an export holds no transaction open
EXPORT_HELD_EVENTS_MAX: Final = 1_000  # events behind a call among which its result is looked for

# Token counters that learn from what providers report
CALIBRATION_WINDOW_TOKENS: Final = 16_000  # counted; a smaller window says more of its messages' frames than of texts
CALIBRATION_WINDOWS_MAX: Final = 10_000
CALIBRATION_FACTOR_MAX: Final = 3.0  # tokens to one of the default counter: more than one a byte no text can have
CALIBRATION_STEP_SLACK_TOKENS: Final = 400  # frames and reminders that a step holds besides its texts
CALIBRATION_HEADROOM: Final = 1.03  # an upper bound, beside the highest that was seen

# Calls (I8)
UNKNOWN_CALL_ANCHORS_MAX: Final = 16
OPEN_CALL_EVENTS_MAX: Final = 10_000  # events behind an open call, after which a case closes it
OPEN_CALL_S_MAX: Final = 86_400.0  # and its age

# Cases, effects, permits
CASE_ESCALATES_S: Final = 3_600.0  # an open case that is older is shown as escalated (I11)
CASE_TEXT_CHARS_MAX: Final = 2_000  # of who answered, and why
CASES_LISTED_MAX: Final = 1_000
RECOVERY_ANSWERS_MAX: Final = 8  # cases that a controller may answer within one recovery
SEMANTIC_FAILURES_MAX: Final = 3  # open cases of quarantined candidates, after which a view is compacted by hand only
REPEAT_SCAN_EVENTS_MAX: Final = 10_000  # events since the checkpoint that are searched for the same request
EFFECT_KEY_CHARS_MAX: Final = 400
EFFECT_ROUNDS_MAX: Final = 8  # how often an effect is looked at anew because somebody else moved it meanwhile
REPEAT_WINDOWS_KEPT_MAX: Final = 16  # of recoveries whose calls are kept in memory, so that no effect walks again
EFFECTS_ALIKE_MAX: Final = 100  # effects of the same fingerprint that are looked at
NEEDS_OF_ACTION_MAX: Final = 100  # needs of one action; granters that a need names, and its quorum
REASON_FACTS_MAX: Final = 10  # facts that the reason of a denial names
ACTED_ON_LISTED_MAX: Final = 1_000  # what was made from a bad generation, as a revert lists it
FORK_DEPTH_MAX: Final = 32  # forks of forks

# Views
VIEWS_MAX: Final = 64  # of a workflow: a recovery fences each, a rewind moves each
VIEW_AUDIENCES_MAX: Final = 256  # that one view reads

# Context and compaction
CONTEXT_BUDGET_TOKENS: Final = 32_000
CONTEXT_BUDGET_TOKENS_MIN: Final = 64
SEGMENTS_SHARE: Final = 0.45  # of the budget: the segments' texts
LEDGER_SHARE: Final = 0.20  # of the budget: anchors and ledger together; the ledger also takes what segments leave
TAIL_SHARE: Final = 0.35  # of the budget: the events kept verbatim behind the watermark
TRIGGER_HEADROOM: Final = 1.25  # by which a context may outgrow the trigger of its compaction, if nothing else is said
KEEP_SHARE_MIN: Final = 0.25  # of the trigger: what a compaction comes down to, however little is to be kept verbatim
KEEP_SHARE_MAX: Final = 0.5  # and however much
SHARES_ROUNDING: Final = 1e-9  # by which the sum of fractions may exceed 1
SEGMENT_TOKENS_MIN: Final = 24  # its label alone takes up to 16
LEDGER_CANDIDATES_MAX: Final = 20_000
LEDGER_CALLS_SHARE: Final = 0.25  # of the ledger: older calls of unknown outcome, the newest first
RETRIEVAL_SHARE: Final = 0.5  # of the budget: quotes of events that hold what a context needs (C19)
RETRIEVAL_LOOKUPS_MAX: Final = 64  # references that one context looks up in the log
RETRIEVAL_EVENTS_MAX: Final = 32  # events that one context quotes
RETRIEVAL_CONTEXT_CHARS: Final = (3_000, 600, 120)  # of an event that is quoted in part: on either side, at most
SIGHTINGS_PAGE: Final = 32  # sightings of a reference that are read at once
TAIL_HELD_TOKENS: Final = 2_000_000  # a longer tail is read again, in pages, when it is compacted
EXTRACTIVE_WINDOW_TOKENS: Final = 2_000_000  # events that the default summarizer is shown at once
REFS_PAGE: Final = 10_000  # texts of references that a compaction holds at once
DRAFT_CLAIMS_MAX: Final = 2_000  # of one draft: each is held against the events that it cites
CITED_EVENTS_MAX: Final = 64  # events of other parts that the draft of a part may call approvals
PART_TOKENS_MIN: Final = 64  # of the draft of a part: less is no room for a line
PARTITIONS_MAX: Final = 1_000  # parts of a source that is larger than the summarizer's window
DRAFT_BYTES_MAX: Final = 4 * 1024 * 1024
JUDGED_FACTS_MAX: Final = 1_000  # that one text is judged against
OBJECTIONS_MAX: Final = 100  # of a judge to one draft
FAILURE_CHARS_MAX: Final = 10_000  # of what is kept of a failure
ATTEMPTS_MAX: Final = 3  # of one form, for reasons that pass
FORM_DRAFTS_MAX: Final = 2  # bad drafts: the second was told what was wrong with the first; then in smaller parts
HALVINGS_MAX: Final = 4  # of what is shown at once to a server that finds the prompt too long
SAME_FACT_FAILURES_MAX: Final = 3  # attempts in a row that get the same mandatory fact wrong; then somebody is asked
REPLANS_MAX: Final = 3
LEASE_TTL_S: Final = 300.0
SUMMARIZER_DEADLINE_S: Final = 240.0
MODEL_DEADLINE_S: Final = 110.0  # of one model's answer: two of a chain fit into SUMMARIZER_DEADLINE_S
MODEL_STALL_S: Final = 60.0  # without a piece of the answer, the first one too
MODEL_EVENTS_SHARE: Final = 0.6  # of a model's window: events; the rest is for instructions, labels, facts and answer
CHAIN_SUMMARIZERS_MAX: Final = 16
RETRY_BASE_S: Final = 0.5
RETRY_CAP_S: Final = 30.0
RETRY_AFTER_CAP_S: Final = 120.0  # a server's Retry-After is honoured up to here; below LEASE_TTL_S
COOLDOWN_FAILURES: Final = 5  # of one tenant in a row, for reasons that pass; then nobody calls the summarizer
COOLDOWN_BASE_S: Final = 30.0  # for so long, and twice as long each time
COOLDOWN_CAP_S: Final = 600.0
COOLDOWN_FORGOTTEN_S: Final = 3_600.0  # an older failure says nothing of now
COOLDOWN_ROWS_MAX: Final = 64  # of a tenant's workflows that are looked at: those that failed last

# Due compactions
DUE_PER_TENANT_MAX: Final = 10_000  # due or running; beyond them, asking is refused
DUE_DELAY_S_MAX: Final = 86_400.0
DUE_RUNS_MAX: Final = 12  # of what fails for reasons that pass; then it is a dead letter
DUE_RETRY_BASE_S: Final = 1.0
DUE_RETRY_CAP_S: Final = 600.0
DUE_BUSY_S: Final = 10.0  # at most, until a view is looked at again that another compaction holds
DUE_PARKED_S: Final = 3_600.0  # until one is looked at again that waits for the answer of a case, which wakes it too
LEASE_RENEWED_S: Final = 100.0  # of a compaction that goes on: a lease older than this is renewed before the next draft
TRIGGER_S_MIN: Final = 1.0  # of an age or idle time that makes a compaction due
TRIGGER_S_MAX: Final = 86_400.0  # as DUE_DELAY_S_MAX: what is due later counts as that of a clock that had jumped
EVENT_LABEL_TOKENS: Final = 12  # that a trigger counts for an event beside its body; a run sets the sum right
TRIGGER_GROWTH_SHARE: Final = 0.1  # by which a context grows after a run, before its tokens make it due again
SWEEP_ROWS_MAX: Final = 10_000  # that one sweep may be asked for
SWEEP_ROWS: Final = 100
SWEEP_ROWS_PER_TENANT: Final = 10

WORKER_POLL_S: Final = 1.0  # how often a worker with nothing to do looks for what is due; its process wakes it at once
WORKER_PAUSE_S: Final = 5.0  # after a store that did not answer; and of a job that failed outside its row
WORKER_ONCE_TRIES_MAX: Final = 3  # to see what is due, of a worker that is to end: one that always tried would not
WORKER_THREADS_MAX: Final = 64

# Checkpoints
STATE_BYTES_MAX: Final = 16 * 1024 * 1024
EXTERNAL_ADDRESS_CHARS_MAX: Final = 4_096
EXTERNAL_STATE_BYTES_MAX: Final = 256 * 1024 * 1024  # of a state that lives elsewhere: recovery holds it in memory
RECOVERY_LOADS_MAX: Final = 4  # states that one recovery loads, since another checkpoint was to be restored meanwhile
NEEDS_MAX: Final = 1_000

# Saved states
STATE_BLOCK_NODES: Final = 16  # of a list's parts, or of blocks, that one block holds: each save reads a few of a level
STATES_AT_ONCE_MAX: Final = 10_000  # of one `save_all`
STATE_PART_BYTES_MAX: Final = 64 * 1024 * 1024  # as UNPACKED_BYTES_MAX
STATE_PARTS_MAX: Final = 1_000_000  # of one save
STATE_VALUES_MAX: Final = 10_000  # names of one saved state
STATE_WRITES_MAX: Final = 10_000  # behind one saved state
STATE_META_BYTES_MAX: Final = 1024 * 1024
STATES_PAGE: Final = 20  # read in one snapshot: a slow reader of a list holds no transaction open

# Reading
RECALL_HITS_MAX: Final = 1_000
EVENTS_PAGE_MAX: Final = 10_000
SESSION_PAGE_EVENTS: Final = 128  # of a session that are read at once, from its end backwards
SESSION_ROUNDS_MAX: Final = 16  # how often a session's write is made anew because somebody appended meanwhile
RECORD_ATTEMPTS_MAX: Final = 4  # of agents that record the state which they share, at the same time
KEPT_CONTEXT_BYTES_MAX: Final = 4 * 1024 * 1024  # of bodies that were read for a context that a process keeps
CONTEXTS_KEPT_MAX: Final = 64  # of threads of a graph that a process keeps in memory between two turns
THREADS_KNOWN_MAX: Final = 1_024  # of a graph, whose state a process need not compare with the log at each turn
UNSEEN_SHARE_MAX: Final = 0.5  # of the budget, for events before the newest that the model was not shown yet
RECORD_PAGE_EVENTS: Final = 64  # that a guest looks up at once, from the end of a history, until a whole page is known
GUEST_SUMMARY_TOKENS: Final = 2_000  # of a summary, where a framework itself keeps the newest messages beside it
SEARCH_HITS: Final = 20  # of a search, unless it asks for another number
SEARCH_HITS_MAX: Final = 1_000
SEARCH_CHARS_MAX: Final = 1_000  # of what is searched for
SEARCH_TERMS_MAX: Final = 32  # words and phrases that one search asks for
SEARCH_EXCERPT_CHARS: Final = 120  # of a hit, before the place and behind it
SEARCH_WORD_CHARS_MAX: Final = 48  # of a word in the index: what is longer is found by its beginning, then compared
SEARCH_INDEXED_CHARS_MAX: Final = 1024 * 1024  # a longer event is looked through by each search
SEARCH_EVENT_WORDS_MAX: Final = 20_000  # and so is one with more different words
SEARCH_CHUNK_EVENTS: Final = 1_024  # that are indexed together; the newest, fewer than so many, are looked through
SEARCH_CHUNK_WORDS_MAX: Final = 200_000  # of all its events: a chunk with more ends early
SEARCH_CHUNKS_AT_ONCE: Final = 16  # that one search, or compaction, indexes; it looks through what is left
SEARCH_STALLS_MAX: Final = 3  # chunks in a row that somebody else made void, before a search goes on without more index
SEARCH_BEGINNING_ROWS_MAX: Final = (
    20_000  # of the index, for one beginning of words; if there are more, it only filters
)
SEARCH_PAGE_CHUNKS: Final = 32  # chunks of a word's index that are read at once
SEARCH_PAGE_EVENTS: Final = 128  # events that are looked through at once
CARRIED_TOKENS: Final = 2_500  # put beside a summary of another tool: 7.5 kB; Claude Code takes 10,000 characters
FOREIGN_SOURCE_TOKENS: Final = 2_000_000  # of the newest events, against whose words a foreign summary is held
FOREIGN_REASONS_MAX: Final = 50  # named in the case of one
COMPARE_SUMMARIES_MAX: Final = 1_000  # foreign summaries; each is compared with all that came after it
COMPARE_DROPPED_MAX: Final = 50  # references named of those that a foreign summary dropped and the agent needed
COMPARE_LEDGER_TOKENS: Final = 1_333  # 4,000 bytes, as the default counter counts: the ledger put beside theirs
LINEAGE_PAGE_ENTRIES: Final = 500
VERIFY_PROBLEMS_MAX: Final = 1_000

# Store
STORE_BUSY_TIMEOUT_S: Final = 30.0
STORE_READERS_MAX: Final = 8
STORE_SCOPES_MAX: Final = 10_000  # workflows whose row ids are remembered
STORE_TURN_CHECK_S: Final = 1.0  # how often one who waits looks whether the turn was lost
GROUP_COMMIT_WRITES_MAX: Final = 64  # writes that share one commit
GROUP_COMMIT_AGE_S: Final = 0.05  # a group that has been open for so long takes no further write

# PostgreSQL; an option of the URL overrides where one is named
POSTGRES_CONNECTIONS_MAX: Final = 10  # of one process; option pool
POSTGRES_CONNECT_TIMEOUT_S: Final = 10.0  # option connect_timeout_s
POSTGRES_CONNECTION_AGE_S: Final = 3_600.0  # an older connection is replaced before it is used
POSTGRES_STATEMENT_TIMEOUT_S: Final = 60.0  # option statement_timeout_s; a lock is waited for STORE_BUSY_TIMEOUT_S
POSTGRES_IDLE_TIMEOUT_S: Final = 120.0  # of a transaction that asks nothing; option idle_timeout_s
POSTGRES_ANSWER_TIMEOUT_S: Final = 300.0  # of silence while an answer is waited for; option answer_timeout_s
POSTGRES_SILENCE_S: Final = 0.1  # how often a silent wait is looked at
POSTGRES_BEGIN_TRIES_MAX: Final = 4  # of a transaction whose connection was dead before its first statement
POSTGRES_BEGIN_RETRY_S: Final = 0.1  # before the second try; then twice as long each time
POSTGRES_CONNECTIONS_SHARE_MAX: Final = 0.8  # of the server's, with this pool; `doctor` warns above
POSTGRES_MIGRATE_TIMEOUT_S: Final = 300.0  # of one migration, and of waiting for another process that migrates

# Celery (`strandline.integrations.celery`): the broker carries wake-ups, the store says what is due
SWEEP_INTERVAL_S: Final = 5.0  # how often beat asks the store for what is due
SWEEP_LATE_S: Final = 60.0  # what has been due for longer was not swept, or there are too few workers
WAKEUPS_WAITING_MAX: Final = 32  # in the broker; what is due beyond waits in the store, where tenants take turns
COMPACTION_TASK_S: Final = 1_200.0  # a task that runs for longer is asked to end
COMPACTION_TASK_KILLED_S: Final = 1_260.0  # and its process is killed
BROKER_VISIBILITY_S: Final = 3_600  # of a message that a worker took and did not settle: longer than any task
BROKER_RESTORE_INTERVAL_S: Final = 60  # how often such messages are looked for
BROKER_TIMEOUT_S: Final = 5.0  # of a connection, of an answer
BROKER_TRIES_MAX: Final = 1  # further ones: the sweep sends again what was not sent
BROKER_PAUSE_S: Final = 5.0  # no wake-up is sent for so long after a broker did not answer
BROKER_CONNECTIONS_MAX: Final = 4  # of one process to a broker on PostgreSQL

# MCP (`strandline.integrations.mcp`): who calls is a model, or whoever holds its token
MCP_ARGUMENTS_BYTES_MAX: Final = 1024 * 1024  # of one call, as JSON
MCP_REQUEST_BYTES_MAX: Final = 4 * 1024 * 1024  # of one request over HTTP; a larger one is not read
MCP_CALLS_MAX: Final = 8  # that run at once
MCP_CALLS_PER_TENANT_MAX: Final = 64  # that run or wait for their turn; the next one is refused
MCP_CONNECTIONS_MAX: Final = 256  # over HTTP
MCP_CONTEXT_TOKENS_MAX: Final = 200_000  # that one call may ask for
MCP_PAGE_CHARS: Final = 50_000  # of an event's text that one call answers with
MCP_HIT_CHARS: Final = 2_000  # of the text of a hit, around the reference
MCP_HITS: Final = 10  # unless the call asks for another number
MCP_LISTED_MAX: Final = 100  # of whatever one call names or asks for
MCP_TOKENS_MAX: Final = 1_000  # of one file
MCP_TOKEN_FILE_BYTES_MAX: Final = 1024 * 1024
# Copies of a store, and backups
COPY_BATCH_ROWS_MAX: Final = 2_000  # that one commit makes durable
COPY_BATCH_BYTES_MAX: Final = 8 * 1024 * 1024
COPY_FETCH_ROWS: Final = 32  # of the source that are held at once; an event has up to EVENT_BYTES_MAX
COPY_PAGE_ROWS: Final = 1_000  # keys and digests of the target that are read at once
COPY_PASSES_MAX: Final = 5  # over a store that moves on meanwhile
COPY_HEADS_LISTED_MAX: Final = 100
BACKUP_STEP_PAGES: Final = 1_024  # copied between two reports of progress

# Diagnosis of a store (`strandline doctor`)
DOCTOR_BUSY_TIMEOUT_S: Final = 2.0
DOCTOR_CHECK_BYTES_MAX: Final = 256 * 1024 * 1024  # larger stores are read through only when that is asked for
DOCTOR_LEASES_SHOWN_MAX: Final = 10
DISK_FREE_BYTES_MIN: Final = 256 * 1024 * 1024
DISK_FREE_SHARE: Final = 0.10  # of the store's size, beside room for its WAL
FLUSH_PROBES: Final = 7
FLUSH_BYTES: Final = 4_096
FLUSH_FAST_US: Final = 20  # what is faster was not flushed
FLUSH_SLOW_US: Final = 100_000
WAL_BYTES_LARGE: Final = 64 * 1024 * 1024  # SQLite moves the WAL into the file at 4 MB, unless a reader holds it
FREE_PAGES_SHARE_MAX: Final = 0.5
CLOCK_BEHIND_S_MAX: Final = 60.0

# Constraints that nobody declared (`rules.standing`)
USER_PROSE_CHARS_MAX: Final = 20_000  # of one user message that are read for them; what is longer was pasted
USER_SENTENCES_MAX: Final = 200  # and its sentences
FOUND_PER_EVENT_MAX: Final = 16  # of one message
FOUND_READ_MAX: Final = 400  # the newest of a workflow, with what may lift them; older ones are counted
FOUND_SHARE: Final = 0.08  # of the budget: sure ones among the anchors, the newest first
LEDGER_FOUND_SHARE: Final = 0.15  # of the ledger: doubtful ones, the newest first
# Erasure and retention (C31)
ERASURE_TRIES_MAX: Final = 3  # how often what was prepared is compared with what stands; then it is done under the lock
ERASURE_PHRASE_WORDS: Final = 4  # in a row, by which an erased text is known again
ERASURE_PHRASE_CHARS_MIN: Final = 8  # of a text of fewer words
ERASURE_PHRASES_MAX: Final = 1_000_000  # that are told apart; beyond, every text counts as one that repeats them
ERASURE_LISTED_MAX: Final = 1_000  # of what a proof names; the rest is counted
ERASURE_NEEDLES_MAX: Final = 256  # strings that the files are searched for
ERASURE_SCAN_BYTES: Final = 4 * 1024 * 1024  # of a file that are searched at once
READERS_MAX: Final = 256  # of one workflow
HOLDS_MAX: Final = 256  # that stand in one workflow, or one tenant
RETENTION_RULES_MAX: Final = 256  # of one tenant
FAMILY_MAX: Final = 1_000  # workflows that forks make of one: an erasure locks each

# Witnesses (`strandline witness`)
WITNESS_FILE_BYTES_MAX: Final = 256 * 1024 * 1024
WITNESS_KEY_BYTES_MIN: Final = 16
WITNESS_KEY_BYTES_MAX: Final = 4_096  # of a file that holds one
WITNESS_FINDINGS_SHOWN_MAX: Final = 3  # in the message of an error; its attribute has them all

# Hooks of Claude Code
HOOK_INPUT_BYTES_MAX: Final = 64 * 1024 * 1024  # of what it says to one: a summary, or the input of a tool
HOOK_CONTEXT_CHARS_MAX: Final = 10_000  # of what one says to the model; what is longer is shown in part
HOOK_TIMEOUT_S: Final = {
    "PreCompact": 120,  # the whole of a session may be new to the log
    "PostCompact": 60,
    "SessionStart": 60,
    "UserPromptSubmit": 30,
    "Stop": 30,
    "PreToolUse": 30,
}
SETTINGS_BACKUPS_MAX: Final = 99  # of one settings.json
FOREIGN_DROPPED_KEPT_MAX: Final = 100_000  # references in the manifest that is kept of a summary of Claude Code

# LangGraph (`strandline.integrations.langgraph`)
STORE_PUT_ATTEMPTS_MAX: Final = 10  # of one put to an item that others put to, too; each sees their version
TOOL_ANSWERS_MAX: Final = 100  # to one question whether a tool may run, of which none was an answer
EARLY_STATES_MAX: Final = 10_000  # checkpoints that a saver holds writes for until they are saved
EARLY_BYTES_MAX: Final = 64 * 1024 * 1024  # of those writes
REMEMBERED_PARTS_MAX: Final = 50_000  # elements of lists whose content a saver holds, to save and read what is new
