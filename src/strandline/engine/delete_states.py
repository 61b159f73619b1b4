"""Delete saved states: what they held goes, their ids stay, so that nothing late brings them back."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace

from strandline.engine.environment import Environment, check_whole
from strandline.engine.holds import covering
from strandline.engine.load_state import check_lines_whole, check_states_whole
from strandline.engine.save_state import check_texts, count_change
from strandline.engine.state_values import nodes_of
from strandline.engine.watching import watched
from strandline.errors import ErasureRefusedError, InvalidInputError
from strandline.model.state import StateLine, StateRow, StateStatus
from strandline.ports import Transaction
from strandline.rules.states import tombstone

Chosen = Callable[[StateRow, StateLine], bool]


@watched("delete_states")
def delete_states(env: Environment, runs: Collection[str] | None = None) -> int:
    """Delete the saved states of a workflow, or of some runs, with what was written behind them. Return how many.

    Raises:
        ErasureRefusedError: a legal hold covers the workflow; nothing was deleted (C31).
        CorruptRecordError: one is missing, or is not what was written; nothing was deleted.
    """
    return _delete(env, lambda row, _: runs is None or row.run in runs)


@watched("prune_states")
def prune_states(env: Environment, keep: str | Collection[tuple[str, str]], through: int | None = None) -> int:
    """Delete the saved states of a workflow but for some. Return how many were.

    Args:
        env: ports and workflow.
        keep: "latest": the newest of each line; or these, by line and id.
        through: the position up to which some are deleted; None: whatever there is.

    Raises:
        InvalidInputError: neither.
        ErasureRefusedError, CorruptRecordError: as of `delete_states`.
    """
    check_whole("through", through)
    if isinstance(keep, str):
        if keep != "latest":
            raise InvalidInputError(f'keep is "latest", or pairs of line and id, not {keep!r}; nothing was deleted')
        return _delete(env, lambda row, line: _is_saved(row, through) and row.position != line.newest)
    kept = set(keep)
    for line_name, state_id in kept:
        check_texts(line=line_name, state_id=state_id)
    return _delete(env, lambda row, line: _is_saved(row, through) and (line.name, row.state_id) not in kept)


def _is_saved(row: StateRow, through: int | None) -> bool:
    """Tell whether a state was saved, up to a position; one that was only written to may be just being saved."""
    return row.position is not None and (through is None or row.position <= through)


def _delete(env: Environment, chosen: Chosen) -> int:
    with env.read() as tx:
        if not tx.log.head().states:
            return 0  # a name that was misspelt makes no workflow
    with env.write(joins=False) as tx:
        check_lines_whole(tx)
        check_states_whole(tx)
        lines = {line.number: line for line in tx.states.lines()}
        gone = [
            row for row in tx.states.all() if row.status is not StateStatus.DELETED and chosen(row, lines[row.line])
        ]
        if not gone:
            return 0
        holds = [hold.name for hold in covering(tx, env.scope.workflow)]
        if holds:
            raise ErasureRefusedError(
                f"{env.scope.workflow!r} is under legal hold: {', '.join(map(repr, holds))}; nothing was deleted",
                holds=tuple(holds),
            )
        bury(tx, gone)
    return len(gone)


def bury(tx: Transaction, gone: Collection[StateRow]) -> None:
    """Put tombstones in the place of states, and drop the nodes that no other state needs."""
    for row in gone:
        tx.states.put(tombstone(row))
    left = [row for row in tx.states.all() if row.status is not StateStatus.DELETED]
    newest: dict[int, int] = {}
    for row in left:
        newest[row.line] = max(newest.get(row.line, 0), row.position or 0)
    for line in tx.states.lines():
        if line.newest != newest.get(line.number, 0):
            tx.states.put_line(replace(line, newest=newest.get(line.number, 0)))
    held = [value for row in left for _, value in row.values] + [w.value for row in left for w in row.writes]
    needed = nodes_of(tx, held)
    tx.nodes.drop([node_id for node_id in tx.nodes.ids() if node_id not in needed])
    count_change(tx)
