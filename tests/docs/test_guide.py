"""Law: the loop of the guide goes on after its process died at any of its steps, and loses nothing."""

import re
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import strandline

GUIDE = (Path(__file__).resolve().parents[2] / "docs" / "guide.md").read_text(encoding="utf-8")
STAND_INS, LOOP = re.findall(r"^```python\n(.*?)^```$", GUIDE, re.MULTILINE | re.DOTALL)[:2]
PATHS = 40


class Died(BaseException):
    """Stands for kill -9: nothing catches it."""


def loop() -> dict[str, Any]:
    """Return the names that the guide defines, made anew."""
    namespace: dict[str, Any] = {"__name__": "guide"}
    for body in (STAND_INS, LOOP):
        exec(compile(body, "docs/guide.md", "exec"), namespace)
    return namespace


def dying(call: Callable[..., Any], at: int, *, after: bool) -> Callable[..., Any]:
    """Return the call, dying before or after its call number `at`."""
    count = 0

    def counted(*args: Any, **kwargs: Any) -> Any:
        nonlocal count
        count += 1
        if count == at and not after:
            raise Died
        answer = call(*args, **kwargs)
        if count == at:
            raise Died
        return answer

    return counted


@contextmanager
def gone_at_once() -> Iterator[None]:
    """Nothing is written any more once the tool died, as after kill -9."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("strandline.engine.effect._after_error", lambda *_: (None, "gone"))
        yield


def workflow(db: strandline.Strandline) -> strandline.Workflow:
    return db.tenant("acme").workflow("api-tests")


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("at", [1, 2, 23])
@pytest.mark.parametrize("step", ["append", "context", "compact", "basis", "checkpoint"])
def test_the_loop_goes_on_after_dying_at_a_step(
    step: str, at: int, after: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = loop()
    with strandline.open(":memory:") as db:
        wf = workflow(db)
        with monkeypatch.context() as patch:
            patch.setattr(strandline.Workflow, step, dying(getattr(strandline.Workflow, step), at, after=after))
            with pytest.raises(Died):
                names["run"](wf)
        state, turn = names["run"](wf)
        assert state["done"]
        assert turn >= PATHS - 1
        check_log(wf)
        if state["complete"]:
            assert sorted(state["tested"]) == sorted(answered(wf))
        assert db.verify().ok


def test_a_tool_that_dies_leaves_an_open_call_and_the_loop_abandons_it(tmp_path: Path) -> None:
    names = loop()
    run_tool = names["run_tool"]
    with strandline.open(tmp_path / "a.db", durability="normal") as db:
        names["run_tool"] = dying(run_tool, 20, after=True)
        with pytest.raises(Died):
            names["run"](workflow(db))
    with strandline.open(tmp_path / "a.db", durability="normal") as db:
        assert [call.tool for call in workflow(db).context().open_calls] == ["get"]
        names["run_tool"] = run_tool
        state, _ = names["run"](workflow(db))
        assert (state["complete"], len(state["tested"])) == (True, PATHS - 1)
        kinds = Counter(event.kind.value for event in workflow(db).events())
        assert (kinds["tool_call"], kinds["tool_result"], kinds["abandoned"]) == (PATHS + 1, PATHS, 1)
        assert workflow(db).context().open_calls == ()


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_an_effect_whose_process_dies_is_asked_for_again_and_happens_once(tmp_path: Path, after: bool) -> None:
    """I18: death comes as the first thing or the last that its run does; nothing is recorded of it but the intent."""
    names = loop()
    run_tool = names["run_tool"]
    with strandline.open(tmp_path / "a.db", durability="normal") as db:
        names["run_tool"] = dying(run_tool, PATHS + 1, after=after)
        with gone_at_once(), pytest.raises(Died):
            names["run"](workflow(db))
    assert names["PUBLISHED"] == (["orders"] if after else [])
    with strandline.open(tmp_path / "a.db", durability="normal") as db:
        assert [call.tool for call in workflow(db).context().open_calls] == ["publish"]
        names["run_tool"] = run_tool
        state, _ = names["run"](workflow(db))
        assert (state["done"], len(state["tested"]), names["PUBLISHED"]) == (True, PATHS, ["orders"])
        (effect,) = workflow(db).effects()
        assert (effect.state, effect.attempt) == ("done", 1 if after else 2)
        assert workflow(db).context().open_calls == ()
        assert workflow(db).verify().ok


def test_an_effect_that_is_not_permitted_is_not_run() -> None:
    names = loop()
    with strandline.open(":memory:") as db:
        names["NEEDS"]["publish"] = [strandline.approved("publish", quorum=2)]
        state, _ = names["run"](workflow(db))
        assert (state["done"], names["PUBLISHED"], workflow(db).effects()) == (True, [], [])
        assert [event.text for event in workflow(db).events() if "not permitted" in event.text]


def test_dying_between_compaction_and_checkpoint_leads_to_a_replay(monkeypatch: pytest.MonkeyPatch) -> None:
    names = loop()
    compact = strandline.Workflow.compact

    def compact_and_die(self: strandline.Workflow, **kwargs: Any) -> object:
        outcome = compact(self, **kwargs)
        if outcome.outcome == "activated":
            raise Died
        return outcome

    with strandline.open(":memory:") as db:
        with monkeypatch.context() as patch:
            patch.setattr(strandline.Workflow, "compact", compact_and_die)
            with pytest.raises(Died):
                names["run"](workflow(db))
        rec = workflow(db).recover(dry_run=True, prior_state=True)
        assert (rec.kind, rec.state) == ("replay", None)
        assert rec.prior_state is not None
        assert rec.prior_state.stale
        state, turn = names["run"](workflow(db))
        assert (state["done"], state["complete"]) == (True, False)
        assert turn > rec.prior_state.turn


def test_running_a_finished_run_again_adds_nothing() -> None:
    names = loop()
    with strandline.open(":memory:") as db:
        done = names["run"](workflow(db))
        revision = workflow(db).basis().revision
        assert names["run"](workflow(db)) == done
        assert workflow(db).basis().revision == revision


def answered(wf: strandline.Workflow) -> list[str]:
    results = [event.text for event in wf.events() if event.kind == "tool_result"]
    return [text.split()[0] for text in results if text.startswith("/")]


def check_log(wf: strandline.Workflow) -> None:
    """Each call is answered or abandoned once, and no path has two results."""
    events = wf.events()
    calls = {event.call_id for event in events if event.kind == "tool_call"}
    ends = [event.call_id for event in events if event.kind in ("tool_result", "abandoned")]
    assert sorted(ends) == sorted(calls)
    assert max(Counter(answered(wf)).values()) == 1
