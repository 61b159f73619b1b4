"""What all commands share: the options that say which workflow is meant, and how an answer is printed."""

from __future__ import annotations

import inspect
import os
import shlex
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Concatenate, Final, ParamSpec, cast, get_args

import typer

from strandline.cli.failures import report_described
from strandline.cli.hooks import hooks_of_environment
from strandline.cli.output import emit, emit_line, facts_of, tell, to_json
from strandline.cli.reference_rules import rules_of
from strandline.errors import (
    CaseAnsweredError,
    CompactionLineageError,
    CorruptRecordError,
    InvalidInputError,
    StoreUnavailableError,
    SummaryReconciliationError,
    TenantScopeError,
    UnreconciledSummaryError,
)
from strandline.limits import CONTEXT_BUDGET_TOKENS, CONTEXT_BUDGET_TOKENS_MIN
from strandline.model.ids import DEFAULT_TENANT, DEFAULT_VIEW, check_name
from strandline.rules.commands import command_line

if TYPE_CHECKING:
    from strandline import Strandline, Workflow

P = ParamSpec("P")
COUNT_MAX: Final = 2**63 - 1  # what every store can hold


def number(least: int, most: int = COUNT_MAX) -> Callable[[str], int]:
    """Return a parser for whole numbers between two bounds."""

    def parse(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            raise typer.BadParameter(f"{text!r} is no whole number") from None
        if not least <= value <= most:
            raise typer.BadParameter(f"{text} is less than {least}" if value < least else f"{text} is more than {most}")
        return value

    return parse


def named(what: str) -> Callable[[str], str]:
    """Return a parser for names."""

    def parse(text: str) -> str:
        try:
            return check_name(what, text)
        except TenantScopeError as error:
            raise refused(error) from error

    return parse


def refused(error: TenantScopeError | InvalidInputError, option: str | None = None) -> typer.BadParameter:
    """Return the usage error that says the same of the value of an option."""
    usage = typer.BadParameter(error.message, param_hint=option)
    if error.hint != type(error).hint or isinstance(error, TenantScopeError):
        usage.add_note(error.hint)
    return usage


@contextmanager
def as_usage(option: str | None = None) -> Iterator[None]:
    """Let an option or argument that can't be read be a usage error; what is refused of one that can is none."""
    try:
        yield
    except InvalidInputError as error:
        raise refused(error, option) from error


ONLY_WORKFLOW: Final = "the store's only workflow"
FILE_STEM: Final = "the file's name without suffix"
DEFAULT_STORE: Final = "strandline.db"
_STORE_HELP: Final = "The store: a path, or sqlite:///PATH."
_VIEW_HELP: Final = "The view that is read through; `view define` makes one."
_NO_STORE_HINT: Final = "`strandline import FILE` or `append` makes it; or name another with --store."
_NO_VIEW_HINT: Final = "`strandline view define` makes one, in a workflow that is there."
_NO_WORKFLOW_HINT: Final = "Name another with --workflow or --tenant; `strandline import FILE` or `append` makes one."
_OTHER_ANSWERS: Final = "Other answers: `strandline reconcile --help`."
_NAMES_SHOWN_MAX: Final = 20
_BUDGET_HELP: Final = f"Tokens of the context, at most.  [default: {CONTEXT_BUDGET_TOKENS}]"
_REFS_CONFIG_HELP: Final = "Rules for references, TOML or JSON; the same wherever events are added or compacted."
RefsConfig = Annotated[
    Path | None,
    typer.Option("--refs-config", envvar="STRANDLINE_REFS_CONFIG", metavar="FILE", help=_REFS_CONFIG_HELP),
]
StorePath = Annotated[str, typer.Option("--store", envvar="STRANDLINE_STORE", metavar="PATH", help=_STORE_HELP)]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object, also on failure.")]
Budget = Annotated[int | None, typer.Option(metavar="N", parser=number(CONTEXT_BUDGET_TOKENS_MIN), help=_BUDGET_HELP)]
_NAME_HELP: Final = "Whose checkpoint: an agent, a thread.  [default: the view's name]"
CheckpointName = Annotated[
    str | None, typer.Option("--name", metavar="NAME", parser=named("checkpoint"), help=_NAME_HELP)
]
Needs = Annotated[list[str] | None, typer.Option(metavar="REF", help="A ref that must stand verbatim. Repeatable.")]


@dataclass(slots=True, kw_only=True)
class Target:
    """Which store, tenant, workflow and view a command works on: the options of every command."""

    store: StorePath = DEFAULT_STORE
    tenant: Annotated[str, typer.Option(metavar="NAME", parser=named("tenant"), help="The tenant.")] = DEFAULT_TENANT
    workflow: Annotated[str | None, typer.Option(metavar="NAME")] = None  # `command` adds the help
    view: Annotated[str, typer.Option(metavar="NAME", parser=named("view"), help=_VIEW_HELP)] = DEFAULT_VIEW
    refs_config: RefsConfig = None
    as_json: AsJson = False
    tenant_named: bool = field(default=False, init=False)  # on the command line: it is also the default one, then

    @contextmanager
    def open(self, *, create: bool = False, may_be_new: bool = False, file: Path | None = None) -> Iterator[Workflow]:
        """Open the workflow, settle its name, and close the store at the end.

        `create` makes what is not there; `may_be_new` takes a workflow that is not there as an empty one. The name of
        `file`, a transcript, stands for that of the workflow.
        """
        if self.workflow is None and file is not None:
            self.workflow = file.stem
        with self.open_store(create=create) as db:
            tenant = db.tenant(self.tenant)
            held = tenant.workflows()
            if self.workflow is None:
                self.workflow = self._only(db, held)
            workflow = tenant.workflow(self.workflow)
            if not create and self.workflow not in held:
                said = f"tenant {self.tenant!r} holds no workflow {self.workflow!r}; {self._there_is(db, held)}"
                if not may_be_new:
                    raise TenantScopeError(said, hint=_NO_WORKFLOW_HINT)
                tell("warning", f"{said}; it is taken as empty")
            if self.view != DEFAULT_VIEW:
                workflow = workflow.view(self.view)
                workflow.basis()  # refuses a view that was never defined
            try:
                yield workflow
            except (SummaryReconciliationError, CompactionLineageError, UnreconciledSummaryError) as error:
                error.hint = self._way_out(error)
                raise
            except (CorruptRecordError, CaseAnsweredError) as error:
                self._complete(error)
                raise

    def each(self) -> Iterator[Workflow]:
        """Yield each workflow of the tenant, while the store is open; of several only through `main`, and if none is
        named.
        """
        if self.workflow is None and self.view == DEFAULT_VIEW:
            with self.open_store() as db:
                tenant = db.tenant(self.tenant)
                held = tenant.workflows()
                if len(held) > 1:
                    yield from map(tenant.workflow, held)
                    return
        with self.open() as workflow:
            yield workflow

    def command(self, words: str) -> str:
        """Return a command line on this same workflow, as it can be typed."""
        given = {"store": self.shown, "tenant": self.tenant, "workflow": self.workflow, "view": self.view}
        usual = {"store": os.environ.get("STRANDLINE_STORE") or DEFAULT_STORE, "tenant": DEFAULT_TENANT}
        usual["view"] = DEFAULT_VIEW
        return command_line(words, **{name: value for name, value in given.items() if value != usual.get(name)})

    @property
    def shown(self) -> str:
        """The store as it may be shown: without a password."""
        from strandline.client.opening import shown_url

        return shown_url(self.store)

    def _complete(self, error: CorruptRecordError | CaseAnsweredError) -> None:
        """Let a hint name its commands as they can be typed here."""
        for verb in ("verify", "recover", "cases --all"):
            error.hint = error.hint.replace(f"`strandline {verb}`", f"`{self.command(verb)}`")

    def _way_out(self, error: SummaryReconciliationError | CompactionLineageError | UnreconciledSummaryError) -> str:
        """Return the commands that answer a refusal, as they can be typed."""
        exact = self.command(f"reconcile {error.case_id} replay-from-exact --by WHO --why TEXT")
        if isinstance(error, UnreconciledSummaryError):
            see, any_answer = self.command("cases"), exact.replace("replay-from-exact", "ANSWER")
            return f"See it: `{see}`. Answer it: `{any_answer}`. Nothing was written."
        if isinstance(error, CompactionLineageError) or error.missing_ref is None or error.last_known is None:
            return error.hint if error.case_id is None else f"Answer the case: `{exact}`. {_OTHER_ANSWERS}"
        ref = shlex.quote(error.missing_ref)
        read = f"Read it: `{self.command(f'recall -- {ref}')}`. If it still holds, "
        pin = self.command(f"append --kind pin {'--ref=' if ref.startswith('-') else '--ref '}{ref}")
        if error.case_id is None:  # a dry run
            return f"{read}pin it: `{pin}`. Then run this again. Nothing was overwritten."
        return (
            f"{read}answer the case, which pins it: `{exact}`. Then run this again. {_OTHER_ANSWERS} "
            f"`{pin}` alone leaves the case open. Nothing was overwritten."
        )

    def _there_is(self, db: Strandline, held: Sequence[str]) -> str:
        return f"it holds {_listed(held) if held else f'none; {self._elsewhere(db)[0]}'}"

    def _only(self, db: Strandline, held: Sequence[str]) -> str:
        """Return the only workflow of the tenant, or say which there are."""
        if len(held) == 1:
            return held[0]
        if held:
            said = f"name one of tenant {self.tenant!r}, which holds {_listed(held)}"
            raise typer.BadParameter(said, param_hint="--workflow")
        elsewhere, empty = self._elsewhere(db)
        said = f"tenant {self.tenant!r} holds no workflow; {elsewhere}"
        refused = typer.BadParameter(said, param_hint="--workflow" if empty else "--tenant")
        refused.add_note("`strandline import FILE` or `append` makes one.")
        raise refused

    def _elsewhere(self, db: Strandline) -> tuple[str, bool]:
        """Say what the store holds besides this tenant, which holds nothing; and whether that is surely nothing."""
        try:
            others = sorted({scope.tenant for scope in db.store.scopes()} - {self.tenant})
        except StoreUnavailableError:  # on PostgreSQL only an operator sees other tenants (I21)
            return "what other tenants hold is not shown", False
        return (f"the store has tenants: {_listed(others)}", False) if others else ("the store is empty", True)

    def open_store(self, *, create: bool = False) -> Strandline:
        """Open the store; names are checked before anything is created."""
        import strandline
        from strandline.client.opening import file_of, path_of

        with as_usage("--store"):
            path_of(self.store)
        if self.workflow is not None:
            check_name("workflow", self.workflow)  # that of a file, too
        create = create and self.view == DEFAULT_VIEW  # a new store has no other view
        try:
            return strandline.open(
                self.store, create=create, hooks=hooks_of_environment(), references=rules_of(self.refs_config)
            )
        except strandline.StoreUnavailableError as error:
            file = file_of(self.store)
            missing = not create and file is not None and not file.exists()
            if missing and self.view != DEFAULT_VIEW:
                raise TenantScopeError(
                    f"{error.message}, so there is no view {self.view!r}", hint=_NO_VIEW_HINT
                ) from None
            if missing:
                error.hint = _NO_STORE_HINT
            raise
        except CorruptRecordError as error:
            self._complete(error)
            raise


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMES_SHOWN_MAX:,} more" if len(names) > _NAMES_SHOWN_MAX else ""
    return ", ".join(map(repr, names[:_NAMES_SHOWN_MAX])) + more


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a command answers: the value for JSON; heading, facts and text for people; an error if it is no success.

    Where the text alone is the result, to be piped on, heading and facts are explanations and go to stderr.
    """

    value: dict[str, object]
    heading: str = ""
    facts: Sequence[tuple[str, object]] = ()
    text: str = ""
    lines: Sequence[tuple[str, str]] = ()  # further text, a line with its style each
    marked: Sequence[Sequence[tuple[str, str]]] = ()  # and lines of several parts, a part with its style each
    text_alone: bool = False
    note: str = ""  # for people, beside a result that is piped on
    hint: str = ""  # what to do next
    error: dict[str, object] = field(default_factory=dict)
    code: int = 0


def command(
    verb: Callable[Concatenate[Target, P], Answer], workflow: str = ONLY_WORKFLOW, unused: Sequence[str] = ()
) -> Callable[..., None]:
    """Return the command of a verb: its own options, then those of `Target`; `workflow` says which it takes unnamed.

    Every command takes all options of `Target`; its help leaves out those that are `unused`.
    """
    own = list(inspect.signature(verb, eval_str=True).parameters.values())[1:]
    shared = list(inspect.signature(Target, eval_str=True).parameters.values())
    which = typer.Option(metavar="NAME", parser=named("workflow"), help=f"The workflow.  [default: {workflow}]")
    shared = [
        option.replace(annotation=Annotated[str | None, which]) if option.name == "workflow" else option
        for option in shared
    ]
    shared = [_hidden(option) if option.name in unused else option for option in shared]

    def run(**options: object) -> None:
        ctx = cast("typer.Context", options.pop("ctx"))
        if ctx.invoked_subcommand is not None:  # it is what a group does by itself
            return
        source = ctx.get_parameter_source("tenant")
        target = Target(**{option.name: options.pop(option.name) for option in shared})  # type: ignore[arg-type]
        target.tenant_named = source is not None and source.name == "COMMANDLINE"
        _print(target, verb(target, **options))  # type: ignore[arg-type, call-arg]

    context = inspect.Parameter("ctx", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context)
    options = [option.replace(kind=inspect.Parameter.KEYWORD_ONLY) for option in (context, *own, *shared)]
    run.__doc__ = verb.__doc__
    run.__signature__ = inspect.Signature(options)  # type: ignore[attr-defined]  # what typer reads
    run.__annotations__ = {option.name: option.annotation for option in options}
    return run


def _hidden(option: inspect.Parameter) -> inspect.Parameter:
    """Return an option that is taken and not shown."""
    kind, shown = get_args(option.annotation)
    unseen = copy(shown)
    unseen.hidden = True
    return option.replace(annotation=Annotated[kind, unseen])


def show(answer: Answer, *, as_json: bool) -> None:
    """Print the answer of a command that works on no store."""
    _print(Target(as_json=as_json), answer)


def _print(target: Target, answer: Answer) -> None:
    scope = {"tenant": target.tenant, "workflow": target.workflow} if target.workflow is not None else {}
    if target.as_json:
        emit(to_json({**scope, **answer.value, **({"error": answer.error} if answer.error else {})}))
    else:
        if answer.note:
            tell("note", answer.note)
        if answer.heading:
            where = f"{target.tenant}/{target.workflow}: " if scope else ""
            style = "red" if answer.error else "green"
            emit(f"{where}{answer.heading}", style, aside=answer.text_alone)
        emit(facts_of(answer.facts), aside=answer.text_alone)
        emit(answer.text)
        for line, style in answer.lines:
            emit(line, style)
        for parts in answer.marked:
            emit_line(parts)
        if answer.hint:
            tell("hint", answer.hint, "cyan")
        if answer.error:
            report_described(answer.error)
    if answer.code:
        raise typer.Exit(answer.code)
