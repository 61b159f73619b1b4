"""Bytes as they are stored: plain, or deflated where that makes them smaller (DESIGN §5)."""

from __future__ import annotations

import zlib
from typing import Final

from strandline.codec.dictionary import WORDS
from strandline.errors import CorruptRecordError
from strandline.limits import PLAIN_BYTES_MAX, UNPACKED_BYTES_MAX

PLAIN: Final = 0
DEFLATED: Final = 1
_LEVEL: Final = 5  # 6 takes a quarter more time for half a percent
_RAW: Final = -zlib.MAX_WBITS  # no header and no checksum of its own: a digest proves the bytes
_MARKS: Final = (bytes([PLAIN]), bytes([DEFLATED]))


def compress(data: bytes, known: bytes = b"") -> tuple[int, bytes]:
    """Return (codec, bytes as stored): 0 plain, 1 deflated.

    Repeats are found in WORDS and in `known` too, which the reader must have: what is never erased and lies beside
    the bytes. No dictionary is trained on tenants' data: an erasure could not reach one (DESIGN §5).
    """
    if len(data) > PLAIN_BYTES_MAX:
        deflate = zlib.compressobj(_LEVEL, zlib.DEFLATED, _RAW, zdict=WORDS + known)
        packed = deflate.compress(data) + deflate.flush()
        if len(packed) < len(data):
            return DEFLATED, packed
    return PLAIN, data


def decompress(codec: int, data: bytes, place: str, known: bytes = b"") -> bytes:
    """Undo `compress`.

    Raises:
        CorruptRecordError: damaged bytes or an unknown codec.
    """
    if codec == PLAIN:
        return data
    if codec != DEFLATED:
        raise CorruptRecordError(f"unknown codec {codec}", place=place)
    inflate = zlib.decompressobj(_RAW, zdict=WORDS + known)
    try:
        plain = inflate.decompress(data, UNPACKED_BYTES_MAX)
    except zlib.error as error:
        raise CorruptRecordError(f"the packed bytes are damaged: {error}", place=place) from error
    if not inflate.eof or inflate.unused_data:
        raise CorruptRecordError("the packed bytes end too early, or too late, or hold too much", place=place)
    return plain


def fold(data: bytes) -> bytes:
    """Return bytes as one column holds them: the codec in the first byte, then the packed bytes."""
    codec, packed = compress(data)
    return _MARKS[codec] + packed


def unfold(data: bytes, place: str) -> bytes:
    """Undo `fold`.

    Raises:
        CorruptRecordError: damaged bytes.
    """
    return decompress(data[0] if data else -1, data[1:], place)
