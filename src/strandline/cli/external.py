"""Files that hold an agent's state: what `checkpoint --external` registers, and `recover` loads (I14)."""

from __future__ import annotations

import hashlib
import os
from io import BufferedReader
from pathlib import Path

from strandline.errors import InvalidInputError
from strandline.limits import EXTERNAL_STATE_BYTES_MAX


def digest_of(path: Path) -> tuple[str, str]:
    """Return the absolute path of a file, without links in it, and the digest of its bytes, read piece by piece.

    Raises:
        InvalidInputError: it is no file, can't be read, or is too large.
    """
    try:
        real = path.resolve(strict=True)
        with _open(real) as file:
            if os.fstat(file.fileno()).st_size > EXTERNAL_STATE_BYTES_MAX:
                raise InvalidInputError(f"{real}: more than {EXTERNAL_STATE_BYTES_MAX:,} bytes; nothing was written")
            return str(real), f"sha256:{hashlib.file_digest(file, 'sha256').hexdigest()}"
    except (OSError, RuntimeError) as error:  # RuntimeError: links in a circle
        raise InvalidInputError(f"{path}: {getattr(error, 'strerror', None) or error}; nothing was written") from error


def load_file(address: str) -> bytes:
    """Return the bytes of a file, one more than are taken at most.

    Raises:
        InvalidInputError: the address is no absolute path.
        OSError: it is no file, or can't be read.
    """
    if not Path(address).is_absolute():
        raise InvalidInputError(
            f"the state lives at {address!r}, which is no absolute path",
            hint="--no-load leaves it where it is; fetch it yourself, and compare its digest.",
        )
    with _open(Path(address)) as file:
        return file.read(EXTERNAL_STATE_BYTES_MAX + 1)


def _open(path: Path) -> BufferedReader:
    if not path.is_file():
        raise OSError(f"{path} is no file")  # a pipe would be waited for
    return path.open("rb")
