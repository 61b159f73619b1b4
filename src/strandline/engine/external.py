"""Agent state that lives elsewhere: loaded outside any transaction, and proved by its digest (I14, I15)."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, TypeVar

from strandline.codec import leaf_text
from strandline.errors import CorruptRecordError, InvalidInputError, StrandlineError
from strandline.limits import EXTERNAL_STATE_BYTES_MAX, RECOVERY_LOADS_MAX
from strandline.model.checkpoint import ExternalState
from strandline.model.recovery import RecoveredExternal

T = TypeVar("T")
Load = Callable[[str], bytes]
EXTERNAL: Final = "external state"  # how the place of one that is not what was registered begins


class NotLoadedError(Exception):
    """A decision needs a state that is not loaded yet. Engine-internal: its transaction is undone, and made again."""

    def __init__(self, external: ExternalState) -> None:
        super().__init__(external.address)
        self.external = external


@dataclass(slots=True)
class Loader:
    """What loads states, and what it loaded so far; None: nothing is loaded."""

    load: Load | None
    _held: dict[ExternalState, bytes | str] = field(default_factory=dict)  # the bytes, or why there are none

    def of(self, external: ExternalState) -> tuple[bytes | None, RecoveredExternal]:
        """Return the bytes of a state, proved, and what recovery says of it; without a `load` there are no bytes.

        Raises:
            CorruptRecordError: they could not be loaded, or are not what was registered.
            NotLoadedError: they are to be loaded first.
        """
        told = RecoveredExternal(address=external.address, digest=external.digest, verified=self.load is not None)
        if self.load is None:
            return None, told
        held = self._held.get(external)
        if held is None:
            raise NotLoadedError(external)
        if isinstance(held, str):
            raise CorruptRecordError(held, place=f"{EXTERNAL} {external.address!r}")
        return held, told

    def fetch(self, external: ExternalState) -> None:
        """Load a state. What it raises is kept as the reason; that it does not know such addresses is passed on."""
        assert self.load is not None
        try:
            data = self.load(external.address)
        except InvalidInputError:
            raise
        except Exception as error:  # noqa: BLE001  whatever another's code raises, the state is not there
            self._held[external] = f"it can't be loaded: {type(error).__name__}: {error}"
        else:
            self._held[external] = _proved(data, external)


def _proved(data: object, external: ExternalState) -> bytes | str:
    """Return the bytes if they are what was registered, or say what they are."""
    if not isinstance(data, bytes):
        return f"what loads it returned a {type(data).__name__}, and no bytes"
    if len(data) > EXTERNAL_STATE_BYTES_MAX:
        return f"it has {len(data)} bytes; at most {EXTERNAL_STATE_BYTES_MAX} are taken"
    found = f"sha256:{hashlib.sha256(data).hexdigest()}"
    if found != external.digest:
        return f"its digest is {found}, and {external.digest} was registered"
    return data


def with_loads(loader: Loader, decide: Callable[[], T]) -> T:
    """Return what a decision says; load what it needs meanwhile, outside its transaction, and let it decide again.

    Raises:
        StrandlineError: after RECOVERY_LOADS_MAX loads it needed yet another state.
    """
    for _ in range(RECOVERY_LOADS_MAX):
        try:
            return decide()
        except NotLoadedError as wanted:
            loader.fetch(wanted.external)
    try:
        return decide()
    except NotLoadedError as wanted:
        raise StrandlineError(
            f"the checkpoint to restore was another one each time that a state was loaded, {RECOVERY_LOADS_MAX} times; "
            "nothing was written",
            hint="Recover again when nobody writes checkpoints of this name.",
        ) from wanted


def state_text(state: object) -> str:
    """Return where dependencies may stand in a state: its leaves; of bytes that were loaded, their text (I16)."""
    if not isinstance(state, bytes):
        return leaf_text(state)
    try:
        return state.decode()
    except UnicodeDecodeError:
        return ""
