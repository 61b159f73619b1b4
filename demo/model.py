"""A model's own summaries, bad in the known ways and good, and what becomes of the same ones under Strandline.

The model is played over HTTP by a server in this process, and asked as a real one is. What it says is scripted: claims
out of the transcript itself, and what models are known to add to them, to forget, or to send instead.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import strandline
from demo.choices import EVERYTHING
from demo.facts import Step
from demo.run import CONTROL, Run
from demo.visible import counted, one_line, span
from strandline.testing import Reply, ScriptedModel

CLAIMS_MAX: Final = 12
EVENTS_MAX: Final = 10_000  # that are read at once
EARLY_SHARE: Final = 0.5  # of the log, where the claims come from: every summary of this demo covers it
APPROVAL: Final = "The release was approved by Morgan."
REASON_CHARS: Final = 60
_SAID: Final = ("message", "decision", "failed_attempt", "note")
_SENTENCE: Final = re.compile(r"[A-Z][^\n.!?`{}<>|\[\]]{24,200}\.(?=\s|$)")
_HANDLE: Final = re.compile(r"\b[a-z]{2,12}-[0-9a-f]{4,12}\b", re.ASCII)

Claim = dict[str, object]


@dataclass(frozen=True, slots=True)
class Trial:
    """Tries one summary after another, each in a fork of its own."""

    run: Run
    tenant: strandline.Tenant
    events: Sequence[strandline.SourceEvent]
    claims: Sequence[Claim]  # true ones

    def compact(self, name: str, *replies: Reply) -> tuple[strandline.CompactionOutcome, strandline.Context]:
        """Compact with a model that says this; return the outcome, and what is read then."""
        self.tenant.workflow(self.run.workflow).fork(None, name, by="demo", why="to let a model summarize it")
        fork = self.tenant.workflow(name)
        with ScriptedModel(*replies) as model:
            summarizer = strandline.OpenAISummarizer("scripted", base_url=f"{model.url}/v1", api_key="none")
            outcome = fork.compact(self.run.story.budget, summarizer, fallback=False)
        return outcome, fork.context(EVERYTHING)


def compare_model(run: Run) -> None:
    """Let a model summarize the transcript, badly and well; where no event holds a sentence, there is none to say."""
    with strandline.open(run.out / CONTROL) as db:
        events = run.log(db).events(1, min(run.story.events, EVENTS_MAX))
        claims = _claims(events[: int(len(events) * EARLY_SHARE)])
        if not claims:
            return
        trial = Trial(run, db.tenant("default"), events, claims)
        with run.story.step("Let a language model summarize it, badly") as step:
            _refuse(trial, step)
            _tell(trial, step)
        with run.story.step("Let it summarize well, with what Strandline carries beside it") as step:
            _carry(trial, step)


def _claims(events: Sequence[strandline.SourceEvent]) -> list[Claim]:
    """Return sentences of the early log, word for word, each with its event."""
    found: dict[str, int] = {}
    for event in events:
        sentence = _SENTENCE.match(event.text) if event.kind.value in _SAID else None
        if sentence is not None:
            found.setdefault(sentence.group(), event.seq)
    few = list(found.items())[:: -(-len(found) // CLAIMS_MAX) or 1]
    return [{"text": text, "events": [seq]} for text, seq in few]


def _answer(claims: Sequence[Claim], more: str = "") -> Reply:
    """Return the claims as an answer, each with a quote; one may be added that its event does not say."""
    quoted = [{**claim, "quote": claim["text"]} for claim in claims]
    added = [{**quoted[0], "text": more}] if more else []
    return Reply(text=json.dumps({"claims": [*quoted, *added]}, ensure_ascii=False))


def _bad_ways(trial: Trial) -> list[tuple[str, Reply]]:
    """Return what models are known to send, and how it is called."""
    whole = _answer(trial.claims).text
    known = next((found for text in trial.run.texts.values() for found in _HANDLE.findall(text)), "job-7f3a91")
    made_up = f"{known[:-2]}{(int(known[-2:], 16) + 0x5D) % 0x100:02x}"
    return [
        ("cut off at a length limit", Reply(text=whole[: len(whole) // 2], finish="length")),
        ("nothing to see", Reply(text="I don't see any events to summarize.")),
        (f"with {made_up}, which is made up", _answer(trial.claims, f"The work goes on in {made_up}.")),
        ("with an approval that nobody gave", _answer(trial.claims, APPROVAL)),
    ]


def _refuse(trial: Trial, step: Step) -> None:
    """Send bad summaries: without checks each would stand in place of the events; here it must change nothing."""
    step.say("What models are known to send. Each would stand in place of the events if nobody looked:")
    for number, (how, reply) in enumerate(_bad_ways(trial), 1):
        outcome, context = trial.compact(f"bad-{number}", reply)
        kept = outcome.generation == 0 and context.watermark == 0 and not context.omitted
        failure = outcome.attempts[0].failure if outcome.attempts else None
        step.check(f"{how}: {failure}, in the end {outcome.outcome}; all events stay", kept)


def _tell(trial: Trial, step: Step) -> None:
    """Send a bad summary, and a better one when the model is told what was wrong."""
    outcome, context = trial.compact("told", _answer(trial.claims, APPROVAL), _answer(trial.claims))
    step.check(
        f"told what was wrong, it leaves the approval out: {outcome.outcome} by attempt {len(outcome.attempts)}",
        outcome.outcome.value == "activated" and APPROVAL not in context.text,
    )


def _carry(trial: Trial, step: Step) -> None:
    """Count what a good summary of the model's own holds, and what the same one holds with what we carry beside it."""
    outcome, context = trial.compact("good", _answer(trial.claims))
    summary = outcome.summary
    if summary is None:
        reason = one_line(outcome.reason, REASON_CHARS)
        step.check(f"a good summary is activated ({outcome.outcome}: {reason})", False)
        return
    own = "\n".join(segment.text for segment in summary.segments)
    whole = "\n".join(part.text for part in context.parts if part.kind.value != "event")
    seen: set[str] = set()
    later: set[str] = set()
    for event in trial.events:
        (seen if event.seq <= outcome.watermark else later).update((*event.declared, *event.extracted))
    needed = sorted(seen & later)
    facts = [anchor.text for anchor in summary.anchors if anchor.text]
    step.say(f"{counted(len(trial.claims), 'claim')}, all of them true, speak for {span(1, outcome.watermark)}")
    for whose, text in (("the model's own text", own), ("the same, anchors and ledger beside it,", whole)):
        used = _held(needed, text)
        step.say(f"{whose} holds {_held(facts, text)} facts in force, and {used} references that are used later")
    step.check(
        f"all {counted(len(facts), 'fact')} in force stand word for word, whatever the model forgot",
        all(fact in whole for fact in facts),
    )
    step.check(
        f"{outcome.refs_dropped:,} references it dropped are in the manifest, {outcome.refs_unaccounted:,} nowhere",
        outcome.refs_unaccounted == 0,
    )


def _held(texts: Sequence[str], where: str) -> str:
    return f"{sum(text in where for text in texts):,} of {len(texts):,}"
