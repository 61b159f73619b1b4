"""Law (I15): a checkpoint that says which context it was made from is not taken up from before a compaction, a revert
or an erasure as if nothing had happened; the newest is, since its context comes out of the log.
"""

import warnings

import pytest
from langgraph.checkpoint.base import empty_checkpoint

import strandline
from strandline import CompactionLineageError
from strandline.integrations.langgraph import StrandlineSaver
from strandline.integrations.langgraph.gate import StaleStateWarning
from strandline.integrations.langgraph.place import BASIS_KEY

TURNS = 40


@pytest.fixture
def tenant():
    with strandline.open(":memory:") as db:
        yield db.tenant("acme")


@pytest.fixture
def workflow(tenant):
    return tenant.workflow("t")


def talk(workflow):
    """Say something in the log."""
    workflow.append([strandline.message("user", f"note {number} " * 20) for number in range(TURNS)])


def save(saver, workflow, config, **changed):
    """Save a checkpoint as the middleware would: with what it was made from."""
    basis = workflow.basis()
    said = {
        "workflow": workflow.name,
        "view": basis.view,
        "generation": basis.generation,
        "revision": basis.revision,
        "recorded": basis.revision,
    }
    checkpoint = empty_checkpoint()
    checkpoint["channel_values"] = {BASIS_KEY: said | changed}
    checkpoint["channel_versions"] = {BASIS_KEY: checkpoint["id"]}
    return saver.put(config, checkpoint, {"source": "loop", "step": 1}, {})


def compacted(saver, workflow):
    """Save a checkpoint, compact, and save another; return the configs of both."""
    talk(workflow)
    old = save(saver, workflow, {"configurable": {"thread_id": "t", "checkpoint_ns": ""}})
    workflow.compact(budget=1_000)
    return old, save(saver, workflow, old)


def test_an_older_one_from_before_a_compaction_is_refused(tenant, workflow):
    saver = StrandlineSaver(tenant)
    old, new = compacted(saver, workflow)
    with pytest.raises(CompactionLineageError, match="before compaction") as refused:
        saver.get_tuple(old)
    assert (refused.value.basis_generation, refused.value.generation) == (0, 1)
    assert "checkpoint_id" in refused.value.hint
    assert saver.get_tuple(new).config == saver.get_tuple({"configurable": {"thread_id": "t"}}).config
    assert len(list(saver.list({"configurable": {"thread_id": "t"}}))) == 2  # a history stays readable


def test_or_handed_over_with_a_warning(tenant, workflow):
    saver = StrandlineSaver(tenant, restore="warn")
    old, _ = compacted(saver, workflow)
    with pytest.warns(StaleStateWarning, match="generation 1 is active"):
        assert saver.get_tuple(old) is not None


def test_the_newest_passes_whatever_became_of_the_summary(tenant, workflow):
    saver = StrandlineSaver(tenant)
    compacted(saver, workflow)
    workflow.revert(0, by="ann", why="it was wrong")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert saver.get_tuple({"configurable": {"thread_id": "t"}}) is not None


def test_an_older_one_of_the_same_generation_passes(tenant, workflow):
    saver = StrandlineSaver(tenant)
    talk(workflow)
    old = save(saver, workflow, {"configurable": {"thread_id": "t", "checkpoint_ns": ""}})
    save(saver, workflow, old)
    assert saver.get_tuple(old) is not None


@pytest.mark.parametrize("ahead", [{"generation": 3}, {"recorded": 10_000}, {"view": "reviewer"}])
def test_one_that_knows_more_than_the_log_is_refused(tenant, workflow, ahead):
    saver = StrandlineSaver(tenant)
    talk(workflow)
    save(saver, workflow, {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}, **ahead)
    with pytest.raises(CompactionLineageError, match="which is at generation 0"):
        saver.get_tuple({"configurable": {"thread_id": "t"}})
