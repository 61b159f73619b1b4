"""Effect: a tool call with consequences outside, which runs once; its recorded result is given ever after (I18, C23).

The intent is committed before anything runs, the outcome after it. Between the two the process may die, and then
nobody can tell whether it happened: it is not run again before a probe, or the answer to a case, says that it did not.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from strandline.codec import storable
from strandline.engine.append import LogWriter, PreparedEvent, prepare
from strandline.engine.effect_held import doubtful_alike, held_for, note_held
from strandline.engine.effect_replay import answer_repeat, check_same, noted_repeat, outcome_of, replay
from strandline.engine.effect_rows import (
    IN_DOUBT,
    OTHERWISE,
    EffectRequest,
    MovedError,
    PreparedResult,
    acknowledged,
    add_events,
    args_of,
    call_event,
    call_key,
    check_may_read,
    close_cases,
    copy_of_call,
    effect_basis,
    find_effect,
    fingerprint_of,
    late_key,
    mark_unknown,
    open_effect_case,
    prepare_result,
    put_intent,
    read_effect_event,
    record_outcome,
    settle,
)
from strandline.engine.effect_told import conclude
from strandline.engine.environment import Environment
from strandline.engine.find_repeat import Window, calls_executed, effects_executed, find_window
from strandline.engine.flow import NotBegunError, Probe, Run, Verb
from strandline.engine.guard import consume_permit, record_refusal
from strandline.engine.landing import unanswered
from strandline.engine.watching import watched_flow
from strandline.errors import (
    ActionDeniedError,
    CorruptRecordError,
    EffectFailedError,
    EffectUnknownError,
    IdempotencyConflictError,
    InvalidInputError,
    OutcomeUnknownError,
    StoreUnavailableError,
    StrandlineError,
)
from strandline.limits import EFFECT_KEY_CHARS_MAX, EFFECT_ROUNDS_MAX, FAILURE_CHARS_MAX
from strandline.model.case import Case, EffectCantTell, EffectDone, EffectNeverHappened, ProbeAnswer
from strandline.model.effect import Effect, EffectOutcome, EffectOutcomeKind, EffectState, KeyedProbe
from strandline.model.event import EventKind
from strandline.ports import KeyTakenError, Transaction
from strandline.ports.occurrences import EffectTold
from strandline.rules.repeats import Execution, likely_repeat

_NO_WINDOW: Final = Window(recovery_seq=0, branch=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """A request that was checked."""

    request: EffectRequest
    fingerprint: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Seen:
    """What one snapshot holds of the key."""

    effect: Effect | None
    window: Window = _NO_WINDOW
    calls: Sequence[Execution] = ()
    noted: EffectOutcome | None = None  # what the key was answered with before, as a likely repeat
    held: Effect | None = None  # the key was held because this one was in doubt, and it is done by now


@dataclass(frozen=True, slots=True, kw_only=True)
class _Intent:
    """A new attempt: it is this call's to run."""

    effect: Effect


@watched_flow("effect")
def effect(env: Environment, request: EffectRequest) -> Verb[EffectOutcome]:
    """Run an effect once, or give the result that is recorded.

    Raises:
        InvalidInputError: no key, no tool, arguments that are no JSON value; nothing ran. Or a result that is none: it
            ran, is recorded as done, and will not run again.
        IdempotencyConflictError: the key is another tool's, or was used with other arguments; nothing ran.
        ActionDeniedError: the permit can't be used; nothing ran.
        EffectUnknownError: whether it happened is not known; a case is open. Nothing ran.
        EffectFailedError: as `run` raised it: it did not happen, and may be asked for again.
        OutcomeUnknownError: whether its intent was recorded is not known; nothing ran (I19).
    """
    asked = _check(env, request)
    for _ in range(EFFECT_ROUNDS_MAX):
        try:
            outcome = yield from _round(env, asked)
        except MovedError as moved:
            _settle(env, request, moved)
            continue
        if outcome is not None:
            env.emit("effect", EffectTold(key=request.key, tool=request.tool, kind=outcome.kind.value))
            return outcome
    raise StoreUnavailableError(
        f"the effect {request.key!r} was moved by others {EFFECT_ROUNDS_MAX} times in a row; nothing ran",
        hint="Ask again.",
    )


def _settle(env: Environment, request: EffectRequest, moved: MovedError) -> None:
    """Wait until what was met in a write is committed or gone: a write of its own ends with it or after it."""
    try:
        with suppress(OutcomeUnknownError), env.write():
            pass
    except StoreUnavailableError as error:
        if moved.__cause__ is None:  # it was another's write
            raise
        raise OutcomeUnknownError(
            f"whether the intent of the effect {request.key!r} was recorded is not known, and it did not run: "
            f"{error.message}",
            hint="Ask again with the same key: an intent that stands there is settled by the probe, or by a case.",
        ) from error


def _check(env: Environment, request: EffectRequest) -> _Asked:
    key, subject = request.key, request.subject
    if not isinstance(key, str) or not key or len(key) > EFFECT_KEY_CHARS_MAX:
        raise InvalidInputError(f"an effect needs a key: text of 1 to {EFFECT_KEY_CHARS_MAX} characters, not {key!r}")
    if subject is not None and (not isinstance(subject, str) or not subject):
        raise InvalidInputError(f"the subject of an effect is text that is not empty, or None, not {subject!r}")
    if not callable(request.run):
        raise InvalidInputError(f"run is called without an argument; a {type(request.run).__name__} can't be called")
    probe = request.probe.look if isinstance(request.probe, KeyedProbe) else request.probe
    if probe is not None and not callable(probe):
        raise InvalidInputError(f"a probe is called; {type(probe).__name__} can't be")
    try:
        prepare(call_event(request, 1), env.references)
        return _Asked(request=request, fingerprint=fingerprint_of(env, request.tool, subject, request.args))
    except (OverflowError, RecursionError) as error:
        raise InvalidInputError(f"the arguments of the effect {key!r} are no JSON value: {error}") from error


def _round(env: Environment, asked: _Asked) -> Verb[EffectOutcome | None]:
    """Look, decide in one transaction, and do what was decided; None: look again."""
    request = asked.request
    seen = _look(env, asked)
    if seen.noted is not None:
        return seen.noted
    if seen.held is not None:
        done = seen.held
        return answer_repeat(env, request, Execution(call_seq=done.call_seq, result_seq=done.result_seq, effect=done))
    if seen.effect is not None and seen.effect.state is EffectState.DONE:
        return replay(env, seen.effect, EffectOutcomeKind.REPLAYED)
    if seen.effect is not None and seen.effect.state is EffectState.ABANDONED:
        raise EffectUnknownError(
            f"the effect {request.key!r} was given up, and is never run again",
            key=request.key,
            case_id=None,
            hint="What is to be done all the same is another effect: give it a key of its own.",
        )
    try:
        step = _begin(env, asked, seen)
    except ActionDeniedError as refused:
        record_refusal(env, refused, request.key, request.actor, request.view)
        raise
    if isinstance(step, _Intent):
        return (yield from _run(env, request, step.effect))
    if isinstance(step, Effect):
        return (yield from _clear_up(env, request, step))
    return answer_repeat(env, request, step)


# ---------------------------------------------------------------------------------------------- the intent


def _look(env: Environment, asked: _Asked) -> _Seen:
    """Read what there is of the key, and of the same request in other words; the long reads need no lock."""
    request = asked.request
    with env.read() as tx:
        found = find_effect(tx, request.key)
        if found is not None:
            check_may_read(env, tx, request, found)
            call = read_effect_event(env, tx, found, found.call_seq, EventKind.TOOL_CALL)
            check_same(request, found.tool, None if call.body is None else args_of(call), call.body is None, call.seq)
        window = find_window(tx)
        if request.again or (found is not None and found.state is not EffectState.FAILED):
            return _Seen(effect=found, window=window)
        held = held_for(env, tx, request, asked.fingerprint)
        if found is not None or held is not None:
            return _Seen(effect=found, window=window, held=held)
        noted = noted_repeat(env, tx, request)
        calls = () if noted else calls_executed(env, tx, request, window)
        return _Seen(effect=None, window=window, calls=calls, noted=noted)


def _begin(env: Environment, asked: _Asked, seen: _Seen) -> _Intent | Effect | Execution:
    """Decide in one transaction: a new attempt, an outcome that is not known, or a likely repeat.

    Raises:
        MovedError: what was seen is no longer so.
    """
    request, before = asked.request, seen.effect
    call = prepare(call_event(request, before.attempt + 1 if before else 1), env.references)
    try:
        with env.write() as tx:
            if find_effect(tx, request.key) != before:
                raise MovedError
            if before is not None and before.state in IN_DOUBT:
                return mark_unknown(env, tx, before)
            if not request.again:
                if find_window(tx) != seen.window:
                    raise MovedError
                doubtful = doubtful_alike(tx, request, asked.fingerprint, seen.window)
                if doubtful:
                    note_held(env, tx, request, doubtful)
                    return mark_unknown(env, tx, doubtful[0])
            if before is None and not request.again:
                effects = effects_executed(tx, request, asked.fingerprint, seen.window)
                earlier = likely_repeat(effects, seen.calls)
                if earlier is not None and (earlier.effect is not None or earlier.result_seq is not None):
                    return earlier
                if earlier is not None:  # a call without a result: nobody can tell
                    return mark_unknown(env, tx, _intend(env, tx, asked, before, call).effect)
            return _intend(env, tx, asked, before, call)
    except (OutcomeUnknownError, StoreUnavailableError) as error:
        if not unanswered(error):
            raise
        raise MovedError from error  # looked at anew: only an intent that is known to be there may run


def _intend(env: Environment, tx: Transaction, asked: _Asked, before: Effect | None, call: PreparedEvent) -> _Intent:
    """Use the permit, append the call, and write the row: in one transaction (I20)."""
    request = asked.request
    permit_id = None
    if request.permit is not None:
        use = {"effect_key": request.key, "action": request.tool, "actor": request.actor, "view": request.view}
        used = consume_permit(env, tx, request.permit, **use)
        permit_id = used.permit_id
    elif before is not None and before.permit_id is not None:
        reason = f"attempt {before.attempt} used its permit up; the next one needs a permit of its own"
        raise ActionDeniedError(
            f"{request.tool!r} is denied: {reason}",
            action=request.tool,
            reasons=(reason,),
            permit_id=before.permit_id,
        )
    basis = request.basis or effect_basis(env, tx, request.view)
    try:
        appended = LogWriter(env, tx, basis=basis).add([call])
    except KeyTakenError:
        raise IdempotencyConflictError(
            f"an event that is no effect has the key {call.new.key!r}; nothing ran", key=call.new.key or "", seq=None
        ) from None
    intended = Effect(
        key=request.key,
        tool=request.tool,
        subject=request.subject,
        fingerprint=asked.fingerprint,
        state=EffectState.INTENDED,
        attempt=before.attempt + 1 if before else 1,
        workflow=env.scope.workflow,
        call_seq=appended.seq,
        intended_us=env.clock.now_us(),
        basis=basis,
        permit_id=permit_id,
        actor=request.actor,
    )
    put_intent(tx, intended, before)
    return _Intent(effect=intended)


# ---------------------------------------------------------------------------------------------- the run


def _run(env: Environment, request: EffectRequest, effect: Effect) -> Verb[EffectOutcome]:
    try:
        told = yield Run(call=request.run)
    except NotBegunError:
        _fail(env, effect, EffectFailedError("it was not begun: nobody waited any more"))
        raise
    except BaseException as gone:
        gone.add_note(_leave_unknown(env, request, effect, "nobody waited for its end"))
        raise
    error = told.error
    if error is None:
        return _finish(env, request, effect, told.value)
    if isinstance(error, EffectFailedError) and error.key in (None, effect.key):
        error.key = effect.key
        _fail(env, effect, error)
        raise error
    answer, how, interrupt = yield from _ask(env, request, effect)
    settled, note = _after_error(env, request, effect, answer, f"it raised {_said(error)}; {how}")
    error = interrupt or error
    if settled is not None and isinstance(error, Exception):
        return replay(env, settled, EffectOutcomeKind.PROBED)
    error.add_note(note)
    raise error


def _after_error(
    env: Environment, request: EffectRequest, effect: Effect, answer: ProbeAnswer, why: str
) -> tuple[Effect | None, str]:
    """Settle an attempt that raised, by what the probe says; return the effect if it is done, and what to note."""
    try:
        settled = conclude(env, request, effect, answer, why)
    except EffectUnknownError as unknown:
        return None, str(unknown)
    except MovedError:
        with env.read() as tx:
            there = find_effect(tx, effect.key)
        done = there if there is not None and there.state is EffectState.DONE else None
        return done, f"the outcome of the effect {effect.key!r} was told meanwhile: ask again with its key"
    except StrandlineError as failure:
        return None, f"the outcome of the effect {effect.key!r} is not known, and this was not recorded: {failure}"
    if settled.state is EffectState.DONE:
        return settled, f"the probe says that the effect {effect.key!r} is done; its result is recorded"
    return None, f"the probe says that the effect {effect.key!r} did not happen; it may be asked for again"


def _finish(env: Environment, request: EffectRequest, effect: Effect, value: object) -> EffectOutcome:
    """Record the result of a run; whatever the ledger says meanwhile, the result is kept."""
    result = prepare_result(env, effect, value)
    try:
        settled, case = acknowledged(lambda: _record_run(env, request, effect, result))
    except StrandlineError as error:
        error.add_note(
            f"the effect {effect.key!r} ran, and its result could not be recorded: when it is asked for again, its "
            "outcome counts as unknown"
        )
        raise
    if case is not None:
        raise _ran_otherwise(effect, settled, case)
    if result.refusal is not None:
        raise result.refusal
    return outcome_of(EffectOutcomeKind.RAN, settled, result.value)


def _ran_otherwise(effect: Effect, there: Effect, case: Case) -> EffectUnknownError:
    return EffectUnknownError(
        f"attempt {effect.attempt} of the effect {effect.key!r} ran, but the ledger holds attempt {there.attempt} as "
        f"{there.state}: it was settled otherwise, or ran twice. The result is kept in the log, as a late one",
        key=effect.key,
        case_id=case.case_id,
    )


def _record_run(
    env: Environment, request: EffectRequest, effect: Effect, result: PreparedResult
) -> tuple[Effect, Case | None]:
    with env.write() as tx:
        there = find_effect(tx, effect.key)
        if there is None:
            raise CorruptRecordError("the row of the effect is missing", place=f"effect {effect.key!r}")
        ours = there.attempt == effect.attempt
        if ours and there.state in IN_DOUBT:
            settled = record_outcome(env, tx, there, result, EffectState.DONE)
            close_cases(env, tx, settled, "run")
            return settled, None
        if ours and there.state is EffectState.DONE:
            recorded = read_effect_event(env, tx, there, there.result_seq or 0, EventKind.TOOL_RESULT)
            if recorded.body in (None, result.event.body):  # ours, whose commit was not acknowledged; or the same
                return there, None
        return _record_late(env, tx, request, there, effect, result)


def _record_late(
    env: Environment, tx: Transaction, request: EffectRequest, there: Effect, effect: Effect, result: PreparedResult
) -> tuple[Effect, Case | None]:
    """Keep the result of a run that was settled otherwise meanwhile, and open a case (I18). None: its result counts."""
    new = replace(result.event.new, key=late_key(env, effect, result.event.body))
    named = call_key(effect.key, effect.attempt)
    calls = [] if tx.log.by_keys([named]) else [copy_of_call(effect, request.args, {}, request.audience)]
    seqs = add_events(env, tx, [*calls, replace(result.event, new=new)])
    case = open_effect_case(env, tx, there, request.view, OTHERWISE, f"the ledger says {there.state}")
    if there.attempt == effect.attempt and there.state is EffectState.FAILED:  # it did happen: never run it again
        done = replace(
            there,
            state=EffectState.DONE,
            workflow=env.scope.workflow,
            call_seq=seqs.get(named) or tx.log.by_keys([named])[named].seq,
            result_seq=seqs[new.key or ""],
            settled_us=env.clock.now_us(),
        )
        settle(tx, done, there)
        return done, None
    return there, case


def _fail(env: Environment, effect: Effect, error: EffectFailedError) -> None:
    """Record that an attempt did not happen. Where that can't be recorded, its outcome stays unknown: that is safe."""
    result = prepare_result(env, effect, storable(str(error), FAILURE_CHARS_MAX) or _said(error), is_error=True)

    def record() -> None:
        with env.write() as tx:
            there = find_effect(tx, effect.key)
            if there is not None and there.attempt == effect.attempt and there.state in IN_DOUBT:
                close_cases(env, tx, record_outcome(env, tx, there, result, EffectState.FAILED), "run")

    try:
        acknowledged(record)
    except StrandlineError as failure:
        error.add_note(f"this was not recorded, and the effect {effect.key!r} counts as unknown: {failure}")


def _said(error: BaseException) -> str:
    return storable(f"{type(error).__name__}: {error}", FAILURE_CHARS_MAX)


# ---------------------------------------------------------------------------------------------- the outcome unknown


def _clear_up(env: Environment, request: EffectRequest, effect: Effect) -> Verb[EffectOutcome | None]:
    """Ask the probe of an effect whose outcome is not known. None: it did not happen, look again.

    Raises:
        EffectUnknownError: it can't tell; a case is open.
    """
    answer, how, interrupt = yield from _ask(env, request, effect)
    if interrupt is not None:
        interrupt.add_note(_leave_unknown(env, request, effect, how))
        raise interrupt
    settled = conclude(env, request, effect, answer, how)
    if settled.state is not EffectState.DONE or effect.key != request.key:
        return None
    return replay(env, settled, EffectOutcomeKind.PROBED)


def _ask(
    env: Environment, request: EffectRequest, effect: Effect
) -> Verb[tuple[ProbeAnswer, str, BaseException | None]]:
    """Ask the probe; return its answer, how it was come by, and an interrupt that it raised.

    One that was not told the key may have looked for its own: that another's happened it can find, that it never will
    it can't know (I18).
    """
    probe = request.probe
    if probe is None:
        return EffectCantTell(), "there is no probe to ask", None
    is_told = isinstance(probe, KeyedProbe)
    try:
        told = yield Probe(call=partial(probe.look, effect.key) if isinstance(probe, KeyedProbe) else probe)
    except BaseException as gone:
        gone.add_note(_leave_unknown(env, request, effect, "nobody waited for the probe"))
        raise
    if told.error is not None:
        interrupt = None if isinstance(told.error, Exception) else told.error
        return EffectCantTell(), f"the probe raised {_said(told.error)}", interrupt
    if isinstance(told.value, EffectNeverHappened) and effect.key != request.key and not is_told:
        how = f"the probe that came with {request.key!r} was not told this key, and can't say that it never happened"
        return EffectCantTell(), how, None
    if isinstance(told.value, EffectDone | EffectNeverHappened):
        return told.value, "the probe told it", None
    if isinstance(told.value, EffectCantTell):
        return told.value, "the probe can't tell", None
    return EffectCantTell(), f"the probe gave a {type(told.value).__name__}, which is no answer", None


def _leave_unknown(env: Environment, request: EffectRequest, effect: Effect, why: str) -> str:
    """Settle an attempt as unknown because nobody waits for it any more; return what to note."""
    _, note = _after_error(env, request, effect, EffectCantTell(), why)
    return note
