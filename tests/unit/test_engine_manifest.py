"""Law (I9, I12, C9, I7): every covered reference is accounted for, and old segments stay byte-identical.

Checked on both stores by generated logs that are compacted several times with random budgets, against a recount that
this file makes from the events alone.
"""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

import strandline
from strandline.codec import DIGEST_BYTES, decode_sightings
from strandline.engine import material
from strandline.rules.verbatim import stands_verbatim
from strandline.testing import ScriptedSummarizer
from tests.unit.test_engine_stage import (
    WHOLE,
    bounded,
    log_of,
    logs,
    new_workflow,
    quiet,
    talk,
    transaction,
)

cuts = st.lists(st.tuples(st.integers(4, 20), st.integers(140, 900)), min_size=2, max_size=7)


def sighted(db, wf, through: int) -> dict[str, int]:
    """Return each reference of the events up to `through`, with the seq of its newest sighting there."""
    found: dict[str, int] = {}
    events = [event for event in log_of(db, wf) if event.seq <= through]
    with transaction(db, wf) as tx:
        texts = tx.refs.texts({s.ref_id for event in events for s in decode_sightings(event.sightings)})
    for event in events:
        for sighting in decode_sightings(event.sightings):
            found[texts[sighting.ref_id]] = event.seq
    return found


def check_accounts(db, wf, outcome) -> None:
    """Recount: each covered reference stands in the summary or is in the manifest, and not in both."""
    covered = sighted(db, wf, outcome.watermark)
    summary = outcome.summary
    texts = [segment.text for segment in summary.segments] + [summary.anchors_text, summary.ledger_text]
    dropped = {entry.ref: entry for entry in wf.manifest()}
    for ref, last in covered.items():
        stands = any(stands_verbatim(ref, text) for text in texts)
        assert stands or ref in dropped
        if ref in dropped:
            assert dropped[ref].last_seq == last
            assert 1 <= dropped[ref].generation_dropped <= outcome.generation
    assert set(dropped) <= set(covered)
    assert outcome.refs_unaccounted == 0
    assert (outcome.refs_seen, outcome.refs_dropped) == (len(covered), len(dropped))
    assert outcome.refs_verbatim == len(covered) - len(dropped)


@bounded(25)
@given(log=logs(70, min_size=10), cuts=cuts)
def test_every_covered_reference_is_accounted_for_after_each_compaction(db, log, cuts):
    """I9: by our recount and by verify, along the whole chain; C9: segments that are kept are the same to the byte."""
    wf = new_workflow(db)
    done, kept = 0, {}
    for size, budget in cuts:
        batch = log.events[done : done + size]
        done += len(batch)
        if batch:
            wf.append(batch)
        try:
            outcome = wf.compact(budget)
        except strandline.ContextOverflowError:
            continue
        if outcome.outcome != "activated":
            assert outcome.outcome == "nothing_to_do"
            continue
        assert outcome.tokens_after <= budget
        check_accounts(db, wf, outcome)
        for segment in outcome.summary.segments:
            assert kept.setdefault(segment.head.segment_id, segment) == segment
        assert outcome.depth <= outcome.summary.compactions.bit_length()
    assert wf.verify().problems == ()


@bounded(15)
@given(budgets=st.lists(st.sampled_from([300, 320, 900, 1_500]), min_size=3, max_size=9), seed=st.integers(0, 999))
def test_a_summarizer_that_quotes_at_random_is_accounted_for(db, budgets, seed):
    """I9: whatever references a draft holds, of these events or of others that are covered."""
    wf = new_workflow(db)
    chance, count = random.Random(seed), 0

    def draft(request):
        refs = sorted({ref for event in request.events for ref in event.extracted})
        chosen = chance.sample(refs, min(len(refs), chance.randrange(5)))
        earlier = [ref for ref in sighted(db, wf, request.from_seq - 1) if chance.random() < 0.1]
        text = "Work went on with"
        for ref in [*chosen, *earlier]:
            if request.counter.count(f"{text} {ref}") <= request.budget_tokens:
                text += f" {ref}"
        return text

    for budget in budgets:
        wf.append(talk(5, start=count))
        count += 3  # turns overlap, so that references come back
        outcome = wf.compact(budget, draft)
        if outcome.outcome == "activated":
            check_accounts(db, wf, outcome)
    assert wf.verify().problems == ()


def test_old_segments_stay_byte_identical(db):
    """C9, I12: by the binary counter, compaction 2^k merges all, and the others keep what is older."""
    wf = new_workflow(db)
    texts: dict[str, str] = {}
    sizes, depths = [], []
    for number in range(8):
        wf.append(talk(10, start=20 * number))
        outcome = wf.compact(700, quiet)
        assert outcome.outcome == "activated"
        for segment in outcome.summary.segments:
            assert texts.setdefault(segment.head.segment_id, segment.text) == segment.text
        sizes.append(len(outcome.summary.segments))
        depths.append(outcome.depth)
    assert sizes == [1, 1, 2, 1, 2, 2, 3, 1]
    assert depths == [1] * 8
    stable = wf.context(WHOLE).parts[0].text
    wf.append(talk(10, start=900))
    wf.compact(700, quiet)
    assert wf.context(WHOLE).parts[0].text == stable


def test_a_segment_that_was_made_from_other_events_is_not_merged(db, monkeypatch):
    """I7: its events are read again and are whole, but they are not those that it says it was made from."""
    wf = new_workflow(db)
    wf.append(talk(10))
    with monkeypatch.context() as patch:
        patch.setattr(material, "source_digest", lambda previous, digests: bytes(DIGEST_BYTES))
        assert wf.compact(700, quiet).generation == 1
    wf.append(talk(10, start=20))
    with pytest.raises(strandline.CorruptRecordError, match="not those that it was made from") as caught:
        wf.compact(700, quiet)
    assert caught.value.place.startswith("segment ")
    assert not wf.verify().ok
    assert wf.context().generation == 1


def test_a_small_window_merges_from_older_segments_and_keeps_the_bound(db):
    """I12: what does not fit raw is a further lossy pass, at most ⌊log₂ N⌋ + 1 of them; coverage and digests hold."""
    wf = new_workflow(db)
    script = ScriptedSummarizer([lambda r: strandline.Draft(text=quiet(r))] * 100, window_tokens=700)
    for number in range(16):
        wf.append(talk(8, start=20 * number))
        outcome = wf.compact(700, script)
        assert outcome.outcome == "activated"
        assert outcome.depth <= (number + 1).bit_length()
        check_accounts(db, wf, outcome)
    assert outcome.depth > 1
    assert all(sum(e.tokens for e in request.events) <= 700 or not request.prior for request in script.requests)
    assert wf.verify().problems == ()


def test_a_reference_that_comes_back_leaves_the_manifest(db):
    """I9: the manifest is the fold along the chain: dropped, verbatim again while its segment lasts, dropped again."""
    wf = new_workflow(db)
    wf.append([strandline.message("user", "look at vol-0abc99"), *talk(40)])
    found = []
    for number, text in enumerate(
        ("So it went.", "So it went, with vol-0abc99.", "So it went.", "So it went."), start=1
    ):
        outcome = wf.compact(250, ScriptedSummarizer([text]))
        assert outcome.generation == number
        check_accounts(db, wf, outcome)
        dropped = {entry.ref: entry for entry in wf.manifest()}
        found.append(dropped["vol-0abc99"].generation_dropped if "vol-0abc99" in dropped else None)
        wf.append(talk(30, start=100 * number))
    assert found == [1, None, None, 4]
    assert wf.verify().problems == ()


def test_each_dropped_reference_is_recalled_from_the_log(db):
    """C4, I17: the manifest says where it stands, and recall gives back the verbatim event."""
    wf = new_workflow(db)
    wf.append(talk(40))
    wf.compact(250, quiet)
    events = {event.seq: event for event in log_of(db, wf)}
    assert wf.manifest()
    for entry in wf.manifest():
        newest = wf.recall(entry.ref)[0]
        assert newest.seq == entry.last_seq
        assert entry.ref in newest.text == events[newest.seq].body.decode()
