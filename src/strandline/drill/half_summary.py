"""The half summary: a compaction times out, and its half-written output leaves out an open issue."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import strandline as sl
from strandline.drill import material
from strandline.drill.files import copy_store, hits_in_store
from strandline.drill.material import ASKED_SEQ, COVERED_SEQ, HISTORY_TOKENS, ISSUE, ISSUE_SEQ, LAST_SEQ
from strandline.drill.process import Child, DrillError
from strandline.drill.report import run_of
from strandline.drill.service import HALF_MARK, Remote
from strandline.drill.stage import Stage

NAME: Final = "half-summary"
TITLE: Final = "The half summary"
WHAT: Final = "A compaction times out after 4 s; what it wrote so far leaves out an open issue."
SO: Final = "nobody reads half a summary; the release goes out when the issue is resolved, and once."
BUDGET: Final = 6_000  # tokens
DEADLINE_S: Final = 4.0
WORKFLOW: Final = "release"
NO_DRAFT: Final = f"the summarizer gave no draft within {DEADLINE_S:g} s"
NEEDS: Final = (sl.approved("security-review"), sl.resolved(ISSUE))
PUBLISHING: Final = "POST /releases"
ROOM: Final = 32_000  # tokens: a context in which summary and tail stand whole


def naive(stage: Stage) -> None:
    """Run it without protection."""
    remote = stage.service()
    agent = stage.start("naive", stage.folder / "agents.json", remote.port)
    lines = [f"[{seq}] {text}" for seq, text in enumerate(material.review_texts(), start=1)]
    agent.ask("remember", lines=lines[:ASKED_SEQ])
    before = agent.ask("holds", texts=[ISSUE])[ISSUE]
    stage.step(f"event {ASKED_SEQ}", f"four agents share one history; event {ISSUE_SEQ} is an open issue: {ISSUE}")
    remote.let_next_summary_hang()
    with stage.teller.waiting("the summarizer hangs"):
        done = agent.ask("compact_by_model", timeout_s=DEADLINE_S)
    stage.step(
        f"{DEADLINE_S:g} s", f"the summarizer {done['ended']} half-way; its {done['lines']} lines become the memory"
    )
    agent.ask("remember", lines=lines[ASKED_SEQ:])
    known = agent.ask("holds", texts=[ISSUE])[ISSUE]
    published = agent.ask("publish", unless=ISSUE)["published"]
    stage.step(f"event {LAST_SEQ}", "the publisher looks for open issues in its memory, finds none, and publishes")
    lost = list(agent.ask("holds", texts=[f"[{seq}] " for seq in range(1, LAST_SEQ + 1)]).values()).count(False)
    stage.corrupted(
        f"Published with {ISSUE} open. The agents' memory lacks {lost} of {LAST_SEQ} events, the issue among them. "
        "Nothing raised an error.",
        corrupted=before is True and known is False and published is True,
        published_with_open_issue=published,
        memory_knows_the_issue=known,
        events_lost=lost,
        errors=0,
    )
    remote.release()


def protected(stage: Stage) -> None:
    """Run it with Strandline: strict, then in the default mode, from the same store."""
    remote, begun = stage.service(), stage.folder / "begun.db"
    agent = stage.start("agent", begun, WORKFLOW, remote.port)
    agent.ask("append", what="review", first=1, last=COVERED_SEQ)
    first = agent.ask("compact", budget=BUDGET, through=COVERED_SEQ)
    agent.ask("append", what="review", first=COVERED_SEQ + 1, last=ASKED_SEQ)
    with sl.open(begun) as db:
        tokens = sum(event.tokens for event in _of(db).events(1, ASKED_SEQ))
        counter = _of(db).context(ROOM).token_counter
    stage.step(
        f"event {ASKED_SEQ}",
        f"four agents share one log of {tokens:,} tokens; a validated summary covers 1–{first['watermark']}, "
        f"event {ISSUE_SEQ} is an open issue: {ISSUE}",
    )
    stage.check(f"tokens of events 1–{ASKED_SEQ}, as {counter} counts them", tokens, HISTORY_TOKENS)
    stage.check("the summary that was active before covers events 1 to", first["watermark"], COVERED_SEQ)
    agent.close()
    for mode in (_strict, _default):
        mode(stage, remote, begun)


def _strict(stage: Stage, remote: Remote, begun: Path) -> None:
    """A strict compaction refuses when an event came in between."""
    stage.scene("strict", "no event may have come in between")
    store = stage.folder / "strict.db"
    copy_store(begun, store)
    agent = stage.start("agent", store, WORKFLOW, remote.port)
    with sl.open(store) as db:
        _compact_while_others_append(stage, remote, agent, _of(db), strict=True)
        with stage.teller.waiting(f"the summarizer hangs; the deadline is {DEADLINE_S:g} s"):
            refused = agent.hear()
    stage.step(
        f"{DEADLINE_S:g} s",
        f"the summary through {ASKED_SEQ} is refused; {str(refused['reason']).removeprefix('strict: ')}",
    )
    stage.check(f"the compaction through {ASKED_SEQ} ends as", refused["outcome"], "conflict")
    with sl.open(store) as db:
        moves = [entry for entry in _of(db).lineage() if entry.kind is sl.LineageKind.COMPACTION]
        stage.check(f"summaries through {ASKED_SEQ} stored as active", _through(moves, ASKED_SEQ), 0)
    retried = agent.ask("compact", budget=BUDGET, through=LAST_SEQ, strict=True, deadline_s=DEADLINE_S)
    stage.step("retry", f"planned on revision {LAST_SEQ}; the summary through {retried['watermark']} is active")
    stage.check("the retry ends as", retried["outcome"], "activated")
    stage.check("the summary covers events 1 to", retried["watermark"], LAST_SEQ)
    _end_late(stage, remote, agent, store, drafts=2)


def _default(stage: Stage, remote: Remote, begun: Path) -> None:
    """A compaction in the default mode leaves what came in between in the tail."""
    stage.scene("default", "what comes in between stays verbatim behind the summary")
    store = stage.folder / "default.db"
    copy_store(begun, store)
    agent = stage.start("agent", store, WORKFLOW, remote.port)
    with sl.open(store) as db:
        _compact_while_others_append(stage, remote, agent, _of(db), strict=False)
        _look_while_it_hangs(stage, _of(db))
        published = remote.calls().get(PUBLISHING, 0)
        denied = _ask(_of(db))
        stage.step(
            "meanwhile",
            f"the publisher asks for a permit; it is judged by events, not by a summary: {'; '.join(denied)}",
        )
        stage.check("while the issue is open, the publisher is denied a permit", denied != [], True)
        with stage.teller.waiting(f"the summarizer hangs; the deadline is {DEADLINE_S:g} s"):
            done = agent.hear()
        context = _of(db).context(ROOM)
    tail = [part.from_seq for part in context.parts if part.event is not None]
    stage.step(
        f"{DEADLINE_S:g} s",
        f"the time-out is recorded; the second attempt covers 1–{done['watermark']}, "
        f"events {run_of(tail)} stay verbatim behind it",
    )
    failures = done["failures"]
    stage.check("what the first attempt failed of", failures[0] if isinstance(failures, list) else None, NO_DRAFT)
    stage.check("the compaction ends as", done["outcome"], "activated")
    stage.check("the summary covers events 1 to", context.watermark, ASKED_SEQ)
    stage.check("events verbatim behind it", run_of(tail), f"{ASKED_SEQ + 1}–{LAST_SEQ}")
    stage.check(f"the open issue {ISSUE} stands in the context", ISSUE in context.text, True)
    _end_late(stage, remote, agent, store, drafts=2)
    stage.check("publications while the issue was open", remote.calls().get(PUBLISHING, 0) - published, 0)
    _publish(stage, remote, store, published)


def _ask(wf: sl.Workflow) -> list[str]:
    """Return why the publisher may not publish."""
    try:
        wf.guard("publish", NEEDS, by="publisher")
    except sl.ActionDeniedError as error:
        return list(error.reasons)
    return []


def _publish(stage: Stage, remote: Remote, store: Path, published: int) -> None:
    """Resolve the issue, approve, and publish: once, however often it is asked for."""
    release: dict[str, object] = {"release": "2.4.0"}
    with sl.open(store) as db:
        wf = _of(db)
        wf.append(sl.resolve(ISSUE, "The token may read only.", actor="test-generator"))
        wf.append(sl.approval("security-review", "Release 2.4.0", granter="security-reviewer"))
        permit = wf.guard("publish", NEEDS, by="publisher")
        first, second = (
            wf.effect("publish-2.4.0", "publish", release, lambda: remote.publish(release), permit=permit).kind.value
            for _ in range(2)
        )
    stage.step("then", "the issue is resolved, the review approved; the publisher gets a permit and publishes")
    stage.check("the permit then is", permit.state.value, "granted")
    stage.check("it publishes twice, which is answered as", f"{first}, {second}", "ran, replayed")
    stage.check("publications then", remote.calls().get(PUBLISHING, 0) - published, 1)


def _compact_while_others_append(stage: Stage, remote: Remote, agent: Child, wf: sl.Workflow, *, strict: bool) -> None:
    """Start the compaction; when its summarizer hangs, let the other agents go on."""
    remote.let_next_summary_hang()
    agent.send("compact", budget=BUDGET, through=ASKED_SEQ, strict=strict, deadline_s=DEADLINE_S)
    if not remote.wait_until_it_hangs():
        raise DrillError(f"the summarizer was not asked: {agent.hear()}")
    wf.append(material.review_events(ASKED_SEQ + 1, LAST_SEQ))
    stage.step(
        "0 s",
        f"compaction to {BUDGET:,} tokens through {ASKED_SEQ}; the summarizer hangs half-way; "
        f"meanwhile events {ASKED_SEQ + 1}–{LAST_SEQ} commit",
    )


def _look_while_it_hangs(stage: Stage, wf: sl.Workflow) -> None:
    """Read what an agent would read, and try to publish, while half a summary is on its way."""
    context = wf.context(ROOM)
    tail = [part.from_seq for part in context.parts if part.event is not None]
    stage.step(
        "meanwhile",
        f"whoever reads gets the summary through {context.watermark} and events {run_of(tail)}",
    )
    stage.check("while it hangs, the summary that is read covers events 1 to", context.watermark, COVERED_SEQ)
    stage.check("while it hangs, events verbatim behind it", run_of(tail), f"{COVERED_SEQ + 1}–{LAST_SEQ}")
    stage.check("while it hangs, a context is free of words of the half summary", HALF_MARK not in context.text, True)


def _end_late(stage: Stage, remote: Remote, agent: Child, store: Path, *, drafts: int) -> None:
    """Let the summary that hung come to its end, too late, and look for traces of it."""
    with sl.open(store) as db:
        before = _of(db).basis()
    remote.release()
    agent.ask("wait_for_drafts", drafts=drafts)
    agent.close()
    with sl.open(store) as db:
        after, events, report = _of(db).basis(), _of(db).events(1, LAST_SEQ), db.verify()
    stage.step("late", "the summary that hung is finished now; nobody takes it")
    stage.check("the pointer stays where it was", after == before, True)
    stage.check("places in the store that hold words of it", hits_in_store(store, HALF_MARK), 0)
    stage.check("the same search finds the open issue", hits_in_store(store, ISSUE) > 0, True)
    lost = sum(event.text != text for event, text in zip(events, material.review_texts(), strict=True))
    stage.check(f"events lost of {LAST_SEQ}", lost, 0)
    stage.check("problems that verify finds", len(report.problems), 0)


def _of(db: sl.Strandline) -> sl.Workflow:
    return db.tenant("default").workflow(WORKFLOW)


def _through(moves: Sequence[sl.LineageEntry], watermark: int) -> int:
    return sum(entry.detail["watermark"] == watermark for entry in moves)
