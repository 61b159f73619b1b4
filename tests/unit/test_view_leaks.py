"""Law: what a view may not read it never gets, by whatever verb, whatever happened before (I21).

Random histories: events of all kinds, each marked by its audience wherever it can hold text; compactions, checkpoints,
recoveries, reverts, rewinds, forks, effects, permits, cases, and views that are given other audiences. Now and then
every verb of every narrow view is called, and all that it says, returns, raises or tells the hooks is searched for the
marks of other audiences.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

import strandline
from strandline.cli.output import plain
from tests.unit.test_engine_stage import STORES, bounded, open_store, transaction

pytestmark = pytest.mark.long

AUDIENCES = ("all", "red", "blue")
VIEWS = {"reds": ("red",), "blues": ("blue",), "others": ()}
SMALL = 400  # tokens: what a few events exceed
STEPS_MAX = 24
PAD = "and more words that fill the window of this view " * 2


KINDS = ("message", "user", "call", "constraint", "shared", "approval", "revoke", "issue", "artifact", "note")
DEEDS = (
    "compact",
    "checkpoint",
    "recover",
    "revert",
    "regression",
    "rewind",
    "fork",
    "define",
    "effect",
    "guard",
    "result",
)


def mark(audience: str) -> str:
    """Return the mark of an audience: it stands in whatever is said to it alone."""
    return f"zq{audience}qz"


class Told:
    """A hook that keeps what it is told."""

    def __init__(self) -> None:
        self.said: list[object] = []

    def emit(self, name: str, details: object) -> None:
        self.said.append((name, details))


def said(value: object) -> str:
    """Return all that a value says, as Python and as JSON."""
    return f"{value!r} {json.dumps(plain(value), default=repr)}"


def said_by(error: BaseException) -> str:
    return f"{error!r} {vars(error)!r} {getattr(error, 'hint', '')} {getattr(error, '__notes__', '')!r}"


class History:
    """A workflow with three narrow views, and what is done to it."""

    def __init__(self, kind: str, folder) -> None:
        self.told = Told()
        self.db = open_store(kind, folder, hooks=[self.told])
        self.wf = self.db.tenant("acme").workflow("run")
        self.reads = {name: set(audiences) for name, audiences in VIEWS.items()}
        for name, audiences in VIEWS.items():
            self.wf.define_view(name, audiences=audiences, budget=SMALL)
        self.number = 0
        self.calls: list[tuple[str, str]] = []
        self.wf.append([self.event(kind, "all") for kind in ("message", "issue", "call")])

    # ------------------------------------------------------------------------------------------ what happens

    def event(self, kind: str, audience: str) -> strandline.NewEvent:
        self.number += 1
        secret = mark(audience)
        name = f"{secret}-{self.number}"
        how = {"actor": f"{secret}-actor", "audience": audience, "key": f"{name}-key"}
        how["refs"] = [f"{secret}-ref-{self.number % 7}"]
        text = f"{name} says /srv/{secret}/{self.number % 5}.log {PAD}"
        if kind == "call":
            self.calls.append((name, secret))
            return strandline.tool_call(name, f"{secret}_tool", {"path": text}, **how)
        makers: dict[str, Callable[[], strandline.NewEvent]] = {
            "message": lambda: strandline.message("assistant", text, **how),
            "user": lambda: strandline.message("user", text, thread=secret, **how),
            "constraint": lambda: strandline.constraint(f"{secret}-subject", name, **how),
            "shared": lambda: strandline.constraint("shared", name, **how),
            "approval": lambda: strandline.approval("ship", name, granter=f"{secret}-granter", **how),
            "revoke": lambda: strandline.revoke("ship", name, **how),
            "issue": lambda: strandline.issue(f"{secret}-issue", name, **how),
            "artifact": lambda: strandline.artifact(f"{secret}-artifact", name, **how),
            "note": lambda: strandline.note(text, **how),
        }
        return makers[kind]()

    def step(self, what: str, audience: str, view: str, number: int) -> None:
        if what in KINDS:
            self.wf.append(self.event(what, audience))
            return
        mine = view == "main"
        through = self.wf if mine else self.wf.view(view)
        who = {"by": f"{mark(audience)}-by", "why": f"{mark(audience)}-why"} if mine else {"by": "me", "why": "so"}
        basis = through.basis()
        generation = number % (basis.generation + 1)
        free = bool(number % 2)
        deeds: dict[str, Callable[[], object]] = {
            "result": lambda: self.answer(number),
            "compact": lambda: through.compact(budget=SMALL + 100 * (number % 3)),
            "checkpoint": lambda: through.checkpoint(
                {"state": mark(view) if mine else view}, number, basis=None if free else basis, context_free=free
            ),
            "recover": lambda: through.recover(needs=[f"{mark('all')}-ref-1"] if free else []),
            "revert": lambda: through.revert(generation, **who),
            "regression": lambda: through.report_regression(generation, **who),
            "rewind": lambda: self.wf.rewind(max(3, basis.revision - number), **who),
            "fork": lambda: self.fork(f"fork-{self.number}-{basis.revision}", go_on=free, **who),
            "define": lambda: self.define(view, audience),
            "effect": lambda: self.effect(audience, number),
            "guard": lambda: self.wf.guard(
                f"{mark('main')}-action", [strandline.no_open_issue()], by=f"{mark('main')}-by"
            ),
        }
        deeds[what]()

    def answer(self, number: int) -> None:
        if self.calls:
            call_id, secret = self.calls[number % len(self.calls)]
            self.wf.append(strandline.tool_result(call_id, f"{secret} done"))

    def fork(self, name: str, *, go_on: bool, by: str, why: str) -> None:
        self.wf.fork(None, name, by=by, why=why)
        if go_on:
            self.wf = self.db.tenant("acme").workflow(name)

    def define(self, view: str, audience: str) -> None:
        if view != "main":
            self.wf.define_view(view, audiences=[audience], budget=SMALL)
            self.reads[view] = {audience} - {"all"}

    def effect(self, audience: str, number: int) -> None:
        secret = mark(audience)
        self.wf.effect(f"{secret}-{number}", f"{secret}-tool", {"a": secret}, lambda: secret, audience=audience)

    # ------------------------------------------------------------------------------------------ what a view is told

    def outputs(self, view: str) -> dict[str, str]:
        """Return what each verb of a view says, those that write among them."""
        through, here = self.wf.view(view), self.wf.basis()
        first, own = here.revision, through.basis()
        verbs: dict[str, Callable[[], object]] = {
            "context": through.context,
            "whole": lambda: through.context(budget=100_000),
            "openai": lambda: through.context(budget=100_000).messages("openai"),
            "anthropic": lambda: through.context(budget=100_000).messages("anthropic"),
            "needs": lambda: through.context(needs=["unheard-of-1"]),
            "tight": lambda: through.context(budget=64, needs=[f"{mark('all')}-ref-1"]),
            "events": through.events,
            "recall": lambda: [through.recall(f"{mark(one)}-ref-1") for one in ("all", *self.reads[view])],
            "manifest": through.manifest,
            "search": lambda: [through.search(word) for word in ("says", "done", mark("all"))],
            "due": lambda: (through.compact_later(), through.due()),
            "lineage": through.lineage,
            "cases": lambda: through.cases(include_answered=True),
            "effects": lambda: (through.effects(), [through.effect_args(effect.key) for effect in through.effects()]),
            "permits": through.permits,
            "views": through.views,
            "basis": through.basis,
            "verify": through.verify,
            "compare": through.compare,
            "guard": lambda: through.guard("go", [strandline.no_open_issue(), strandline.approved("ship")]),
            "granted": lambda: through.guard("go", [strandline.approved("ship")]),
            "dry": lambda: through.recover(dry_run=True, prior_state=True),
            "dry of main": lambda: through.recover(name="main", dry_run=True, prior_state=True),
            "dry, needing": lambda: through.recover(needs=[f"{mark('all')}-ref-1"], dry_run=True),
            "compact": lambda: through.compact(budget=SMALL),
            "through": lambda: through.compact(budget=SMALL, through=own.revision),
            "checkpoint": lambda: through.checkpoint({"a": 1}, 1, basis=through.basis()),
            "external": lambda: through.register_checkpoint("x", "sha256:" + "0" * 64, 1, context_free=True),
            "recover": lambda: through.recover(needs=[f"{mark('all')}-ref-1"]),
            "revert": lambda: through.revert(max(0, own.generation - 1), by="me", why="so"),
            "too far": lambda: through.revert(0, by="me", why="so"),
            "rewind": lambda: through.rewind(max(3, first - 1), by="me", why="so"),
            "fork": lambda: through.fork(None, f"{view}-{self.number}-{first}", by="me", why="so"),
            "after": lambda: (
                through.context(budget=100_000),
                through.compact(),
                through.lineage(),
                through.manifest(),
            ),
        }
        outputs = {}
        for name, verb in verbs.items():
            self.told.said.clear()
            try:
                got = said(verb())
            except strandline.StrandlineError as error:
                got = said_by(error)
            outputs[name] = f"{got} {self.told.said!r}"
        outputs["stored"] = self.stored(view)
        return outputs

    def stored(self, view: str) -> str:
        """Return what is stored as the active summary of a view."""
        with transaction(self.db, self.wf) as tx:
            head = tx.views.get(view)
            return repr(tx.summaries.get(head.summary_no)) if head.summary_no else ""

    def check(self) -> None:
        for view, reads in self.reads.items():
            hidden = [mark(one) for one in (*AUDIENCES[1:], "main") if one not in reads]
            for name, got in self.outputs(view).items():
                leaked = [one for one in hidden if one in got]
                assert not leaked, f"{view}, which reads {reads}, by {name}: {leaked} in {got[:4000]}"
        report = self.db.verify()
        assert report.ok, report.problems


steps = st.lists(
    st.tuples(
        st.one_of(st.sampled_from(KINDS), st.sampled_from(DEEDS)),
        st.sampled_from(AUDIENCES),
        st.sampled_from(["main", *VIEWS]),
        st.integers(0, 6),
    ),
    min_size=6,
    max_size=STEPS_MAX,
)


@pytest.mark.parametrize("kind", STORES)
@bounded(10)
@given(steps=steps)
def test_no_verb_of_a_view_tells_what_it_may_not_read(kind, tmp_path_factory, steps):
    history = History(kind, tmp_path_factory.mktemp("leaks"))
    with history.db:
        for number, step in enumerate(steps):
            with contextlib.suppress(strandline.StrandlineError):
                history.step(*step)
            if number % 8 == 7:
                history.check()
        history.check()
