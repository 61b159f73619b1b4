"""A witness as a line of JSON: the same bytes for the same content, with a digest, and signed if there is a key."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable
from typing import Final

import msgspec

from strandline.codec.digests import witness_digest
from strandline.codec.values import pack
from strandline.errors import InvalidInputError
from strandline.limits import WITNESS_FILE_BYTES_MAX, WITNESS_KEY_BYTES_MIN
from strandline.model.witness import WITNESS_FORMAT, Witness, WitnessedHead

_SIGNED: Final = b"strandline witness 1\0"  # a signature over this can't be one over anything else


class _Line(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The document, in the order in which it is written."""

    format: str
    tenant: str | None
    store: str
    taken_us: int
    heads: tuple[WitnessedHead, ...]
    digest: str
    signature: str | None = None


_decoder: Final = msgspec.json.Decoder(_Line)


def make_witness(
    heads: Iterable[WitnessedHead], *, tenant: str | None, store: bytes, taken_us: int, key: bytes | None
) -> Witness:
    """Return a witness of these heads, signed if a key is given.

    Raises:
        InvalidInputError: a key of fewer than WITNESS_KEY_BYTES_MIN bytes.
    """
    told = tuple(heads)
    name = store.hex()
    line = _Line(WITNESS_FORMAT, tenant, name, taken_us, told, witness_digest((tenant, name, told)).hex())
    if key is not None:
        line = msgspec.structs.replace(line, signature=_sign(line, key))
    return _to_witness(line)


def _sign(line: _Line, key: bytes) -> str:
    if len(key) < WITNESS_KEY_BYTES_MIN:
        raise InvalidInputError(
            f"a key of {len(key)} bytes, and WITNESS_KEY_BYTES_MIN is {WITNESS_KEY_BYTES_MIN}; nothing was signed"
        )
    return hmac.new(key, _SIGNED + pack(msgspec.structs.replace(line, signature=None)), hashlib.sha256).hexdigest()


def _to_witness(line: _Line) -> Witness:
    return Witness(
        document=pack(line).decode(),
        tenant=line.tenant,
        store=line.store,
        taken_us=line.taken_us,
        heads=line.heads,
        digest=line.digest,
        signature=line.signature,
    )


def read_witnesses(document: str | bytes, key: bytes | None) -> list[Witness]:
    """Read witnesses, a line each, and check the digest of each; with a key, its signature, too.

    Raises:
        InvalidInputError: a line is damaged, cut off, or of no witness; or not signed with this key. None is skipped.
    """
    data = document.encode("utf-8", "surrogatepass") if isinstance(document, str) else bytes(document)
    if len(data) > WITNESS_FILE_BYTES_MAX:
        raise InvalidInputError(
            f"{len(data):,} bytes of witnesses; WITNESS_FILE_BYTES_MAX is {WITNESS_FILE_BYTES_MAX:,}",
            hint="Keep the last lines in a new file: those before them are then no longer looked at.",
        )
    found = [_read_line(line, number, key) for number, line in enumerate(data.splitlines(), start=1)]
    if not found:
        raise InvalidInputError("there is no witness in it", hint="`strandline witness --keep FILE` adds one.")
    return found


def _read_line(data: bytes, number: int, key: bytes | None) -> Witness:
    try:
        line = _decoder.decode(data)
    except (msgspec.DecodeError, msgspec.ValidationError, UnicodeDecodeError) as error:
        raise _refusal(number, f"not a witness: {error}") from error
    if line.format != WITNESS_FORMAT:
        raise _refusal(number, f"of another format than {WITNESS_FORMAT!r}: {line.format!r}")
    if pack(line) != data or witness_digest((line.tenant, line.store, line.heads)).hex() != line.digest:
        raise _refusal(number, "the witness is not what was written")
    if key is not None and not hmac.compare_digest(_sign(line, key).encode(), (line.signature or "").encode()):
        raise _refusal(number, "signed with another key" if line.signature else "not signed")
    return _to_witness(line)


def _refusal(number: int, reason: str) -> InvalidInputError:
    return InvalidInputError(
        f"line {number} of the witnesses: {reason}",
        hint="Take another copy of the file. A last line that was cut off while it was written may be deleted by hand.",
    )
