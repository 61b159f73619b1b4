"""Checkpoint: exact agent state, with its place in the lineage, in one transaction (I14)."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Final

from strandline.codec import body_digest, encode_json, encode_text, record_digest
from strandline.engine.environment import Environment
from strandline.engine.lineage import add_entry, maker, next_seq, own_key
from strandline.engine.reading import find_view
from strandline.engine.watching import watched
from strandline.errors import CompactionLineageError, CorruptRecordError, InvalidInputError
from strandline.limits import EXTERNAL_ADDRESS_CHARS_MAX, LEASE_TTL_S, STATE_BYTES_MAX, TURN_MAX
from strandline.model.checkpoint import Checkpoint, CheckpointView, ExternalState
from strandline.model.event import Basis
from strandline.model.ids import DEFAULT_VIEW, check_name
from strandline.model.lineage import LineageEntry, LineageKind, WorkflowHead
from strandline.model.view import ViewHead
from strandline.ports import Transaction
from strandline.ports.occurrences import CheckpointTold

_DIGEST: Final = re.compile(r"sha256:[0-9a-f]{64}", re.ASCII)


@watched("checkpoint")
def checkpoint(
    env: Environment,
    state: object,
    *,
    turn: int,
    name: str,
    basis: Basis | None,
    context_free: bool,
    view: str = DEFAULT_VIEW,
) -> Checkpoint:
    """Keep the agent's state.

    Args:
        env: ports and workflow.
        state: any JSON value.
        turn: the agent's own count of turns.
        name: whose checkpoint it is.
        basis: the context that the state was made from; needed unless it is context-free.
        context_free: the state holds control flow and references, and no working context (I14).
        view: through which it is kept; one that is context-free is that view's.

    Raises:
        CompactionLineageError: the basis is no longer the view's generation: the state is from before a compaction,
            and would wear a stamp from after it.
        InvalidInputError: no basis, a turn below 0, a state that is no JSON or too large, another view's name.
    """
    encoded = encode_json(state)
    if len(encoded) > STATE_BYTES_MAX:
        raise InvalidInputError(f"a state of {len(encoded)} bytes; at most {STATE_BYTES_MAX} are allowed")
    return _keep(env, encoded, None, turn=turn, name=name, basis=basis, context_free=context_free, view=view)


@watched("checkpoint")
def register_checkpoint(
    env: Environment,
    external: ExternalState,
    *,
    turn: int,
    name: str,
    basis: Basis | None,
    context_free: bool,
    view: str = DEFAULT_VIEW,
) -> Checkpoint:
    """Register agent state that lives elsewhere, by its digest; it is not fetched.

    Args:
        env: ports and workflow.
        external: an address at which nothing ever changes, and the digest of what lies there.
        turn, name, basis, context_free, view: as of `checkpoint`.

    Raises:
        CompactionLineageError, InvalidInputError: as of `checkpoint`; an address or a digest that is none.
    """
    _check_external(external)
    state = encode_json(None)
    return _keep(env, state, external, turn=turn, name=name, basis=basis, context_free=context_free, view=view)


def _check_external(external: ExternalState) -> None:
    address, digest = external.address, external.digest
    if not isinstance(address, str) or not address.strip() or "\0" in address:
        raise InvalidInputError(f"{address!r} is no address")
    if len(address) > EXTERNAL_ADDRESS_CHARS_MAX:
        raise InvalidInputError(
            f"an address of {len(address)} characters; at most {EXTERNAL_ADDRESS_CHARS_MAX} are allowed"
        )
    encode_text(address, "the address")
    if not isinstance(digest, str) or not _DIGEST.fullmatch(digest):
        raise InvalidInputError(f'{digest!r} is no digest: "sha256:" and 64 hexadecimal digits, 0-9 and a-f')


def _keep(
    env: Environment,
    state: bytes,
    external: ExternalState | None,
    *,
    turn: int,
    name: str,
    basis: Basis | None,
    context_free: bool,
    view: str,
) -> Checkpoint:
    check_name("checkpoint", name)
    if isinstance(turn, bool) or not isinstance(turn, int) or not 0 <= turn <= TURN_MAX:
        raise InvalidInputError(f"turn {turn!r} is no count")
    if basis is not None and context_free:
        raise InvalidInputError("a checkpoint has a basis, or is context-free, not both")
    if basis is None and not context_free:
        raise InvalidInputError(
            "a checkpoint needs basis= (the context that the state was made from), or context_free=True"
        )
    with env.write() as tx:
        head, reader = tx.log.head(), find_view(tx, view, str(env.scope))
        if basis is not None:
            _check_basis(env, tx, basis, head.revision)
        _check_owner(tx, name, basis.view if basis is not None else view)
        views = tx.views.all()
        made = _with_digest(
            Checkpoint(
                name=name,
                lineage_seq=next_seq(tx),
                turn=turn,
                revision=head.revision,
                branch=head.branch,
                context_free=context_free,
                in_flight=any(
                    in_flight(view, env.clock.now_us())
                    for view in views
                    if external is None or (basis is not None and view.name == basis.view)
                ),
                views=_views(views, basis),
                state=state,
                salt=env.entropy.salt(),
                digest=b"",
                external=external,
            )
        )
        add_entry(
            tx,
            LineageEntry(
                lineage_seq=0,
                kind=LineageKind.CHECKPOINT,
                op_key=own_key(env, "checkpoint"),
                revision=head.revision,
                at_us=env.clock.now_us(),
                view=basis.view if basis else None,
                generation=basis.generation if basis else None,
                name=name,
                digest=made.digest,
                detail=_detail(head, turn, view, context_free=context_free),
            ),
        )
        tx.checkpoints.add(made)
    env.emit("checkpoint", CheckpointTold(lineage_seq=made.lineage_seq, turn=turn))
    if not reader.narrow:
        return made
    own = tuple(seen for seen in made.views if seen.view == view)
    return replace(made, views=own, in_flight=in_flight(reader, env.clock.now_us()))


def _detail(head: WorkflowHead, turn: int, view: str, *, context_free: bool) -> dict[str, object]:
    detail: dict[str, object] = {"turn": turn, "context_free": context_free}
    if head.branch:
        detail["branch"] = head.branch
    if context_free and view != DEFAULT_VIEW:
        detail["view"] = view
    return detail


def _check_owner(tx: Transaction, name: str, view: str) -> None:
    """Refuse a name under which another view keeps checkpoints: recovery goes by the name, and must not meet a state
    that was made from what its view may not read (I21).
    """
    end = tx.log.head().lineage_seq + 1
    newest = [tx.lineage.newest_checkpoint(name, end, context_free=context_free) for context_free in (False, True)]
    makers = {maker(made) for made in newest if made is not None}
    if not makers and (name == DEFAULT_VIEW or tx.views.get(name) is not None):
        makers = {name}  # a view's own name is kept for it
    for owner in makers:
        if owner != view:
            raise InvalidInputError(
                f"checkpoints {name!r} are kept for another view than {view!r}; nothing was written",
                hint="A name is that of one agent, which reads through one view: give it another name.",
            )


def in_flight(view: ViewHead, now_us: int) -> bool:
    """Tell whether a compaction holds the view's lease; one further ahead than its TTL counts as expired."""
    return view.lease_attempt is not None and now_us < view.lease_until_us <= now_us + int(LEASE_TTL_S * 1_000_000)


def _check_basis(env: Environment, tx: Transaction, basis: Basis, revision: int) -> None:
    view = find_view(tx, basis.view, str(env.scope))
    if basis.generation != view.generation:
        raise CompactionLineageError(
            f"the state was made from generation {basis.generation} of view {basis.view!r}, which is at generation "
            f"{view.generation} now; nothing was written",
            last_pointer_move=view.moved_lineage_seq,
            basis_generation=basis.generation,
            generation=view.generation,
        )
    if not view.watermark <= basis.revision <= revision:
        raise InvalidInputError(
            f"basis revision {basis.revision} of view {basis.view!r} lies outside {view.watermark}..{revision}"
        )


def _views(views: list[ViewHead], basis: Basis | None) -> tuple[CheckpointView, ...]:
    """Every view's generation at this moment, and the revision of the one that is the basis."""
    found = [
        CheckpointView(
            view=view.name,
            generation=view.generation,
            basis_revision=basis.revision if basis and basis.view == view.name else None,
        )
        for view in views
    ]
    if basis and all(view.view != basis.view for view in found):  # `main` before anything was written to its row
        found.append(CheckpointView(view=basis.view, generation=0, basis_revision=basis.revision))
    return tuple(found)


def _with_digest(made: Checkpoint) -> Checkpoint:
    return replace(made, digest=checkpoint_digest(made))


def checkpoint_digest(made: Checkpoint) -> bytes:
    """Return the digest of the whole content of a checkpoint."""
    bare = replace(made, state=b"", salt=b"", digest=b"", state_digest=None)
    return record_digest((bare, made.state_digest or body_digest(made.salt, made.state)))


def load_checkpoint(tx: Transaction, entry: LineageEntry) -> Checkpoint:
    """Return the checkpoint of an entry.

    Raises:
        CorruptRecordError: it is gone, or not what was written (I14).
    """
    made = tx.checkpoints.get(entry.lineage_seq)
    if made is None or made.digest != entry.digest:
        raise CorruptRecordError("it is not the one that the lineage names", place=f"checkpoint {entry.lineage_seq}")
    check_checkpoint(made)
    return made


def check_checkpoint(made: Checkpoint) -> None:
    """Check a checkpoint that was read.

    Raises:
        CorruptRecordError: it is not what was written (I14).
    """
    both = made.erased and bool(made.state or made.salt)
    if both or checkpoint_digest(made) != made.digest:
        raise CorruptRecordError("the checkpoint does not match its digest", place=f"checkpoint {made.lineage_seq}")
