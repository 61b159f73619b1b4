"""Tokens of callers over HTTP: a file that holds digests, and what each lets its holder reach.

A token is 256 random bits, so that one round of SHA-256 is enough: there is nothing to guess. Whoever reads the file
can't call; whoever writes it can let anyone in, so nobody but its owner may.
"""

from __future__ import annotations

import hmac
import os
import secrets
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from threading import Lock
from typing import Annotated, Final

import msgspec
from msgspec import Meta, Struct

from strandline import InvalidInputError, TenantScopeError
from strandline.integrations.mcp.access import Access
from strandline.limits import MCP_TOKEN_FILE_BYTES_MAX, MCP_TOKENS_MAX
from strandline.model.ids import DEFAULT_VIEW

_PREFIX: Final = "sl_"  # by which scanners of secrets know it
_RANDOM_BYTES: Final = 32
_OTHERS_MAY_WRITE: Final = 0o022
_NOBODY: Final = "Nobody is let in until it is mended."


class _Entry(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One token. Its name is who states what its holder appends."""

    name: str
    sha256: Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]
    tenant: str
    workflows: tuple[str, ...] | None = None
    view: str = DEFAULT_VIEW

    @property
    def access(self) -> Access:
        """What it lets its holder reach."""
        return Access(tenant=self.tenant, workflows=self.workflows, view=self.view, actor=self.name)


class _File(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the file holds."""

    tokens: Annotated[tuple[_Entry, ...], Meta(max_length=MCP_TOKENS_MAX)] = ()


class TokenFile:
    """The tokens of a file. What is taken out of it lets nobody in any more, from the next request on."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = Path(path)
        self._lock = Lock()
        self._read: tuple[object, tuple[_Entry, ...]] | None = None  # by what the file was when it was read

    def access_of(self, token: str) -> Access | None:
        """Return what a token lets its holder reach; None: it is none of the file's.

        The time that it takes does not tell how much of a token is right, nor which one it is.

        Raises:
            InvalidInputError: the file can't be read, is damaged, or others than its owner may write it.
        """
        asked = sha256(token.encode("utf-8", "surrogatepass")).hexdigest()
        found = [entry for entry in self._entries() if hmac.compare_digest(entry.sha256, asked)]
        return found[0].access if found else None

    def names(self) -> list[str]:
        """Return the names of the tokens.

        Raises:
            InvalidInputError: as of `access_of`.
        """
        return [entry.name for entry in self._entries()]

    def add(self, name: str, *, tenant: str, workflows: Sequence[str] | None = None, view: str = DEFAULT_VIEW) -> str:
        """Make a token, and return it; it is kept nowhere. The file is made if it is not there.

        Args:
            name: of the token; who states what its holder appends.
            tenant, workflows, view: as of `Access`.

        Raises:
            InvalidInputError: the name is taken, the file is full, or as of `access_of`; nothing was written.
            TenantScopeError: a name that can't be one; nothing was written.
        """
        access = Access(tenant=tenant, workflows=workflows, view=view, actor=name)
        token = _PREFIX + secrets.token_urlsafe(_RANDOM_BYTES)
        with _Writing(self._path) as entries:
            if name in (entry.name for entry in entries):
                said = f"{self._path} has a token {name!r}"
                raise InvalidInputError(said, hint="Take another name, or revoke that one first.")
            if len(entries) >= MCP_TOKENS_MAX:
                raise InvalidInputError(f"{self._path} has {len(entries)} tokens; MCP_TOKENS_MAX is {MCP_TOKENS_MAX}")
            of = None if access.workflows is None else tuple(access.workflows)
            digest = sha256(token.encode()).hexdigest()
            entries.append(_Entry(name=name, sha256=digest, tenant=tenant, workflows=of, view=view))
        return token

    def revoke(self, name: str) -> None:
        """Take a token out of the file.

        Raises:
            InvalidInputError: there is none of this name, or as of `access_of`; nothing was written.
        """
        with _Writing(self._path) as entries:
            kept = [entry for entry in entries if entry.name != name]
            if len(kept) == len(entries):
                known = ", ".join(entry.name for entry in entries) or "none"
                raise InvalidInputError(f"{self._path} has no token {name!r}", hint=f"It has {known}.")
            entries[:] = kept

    def _entries(self) -> tuple[_Entry, ...]:
        with self._lock:
            try:
                found = self._path.stat()
            except OSError as error:
                raise _unreadable(self._path, error) from error
            state = (found.st_mtime_ns, found.st_size, found.st_ino, found.st_mode)
            if self._read is None or self._read[0] != state:
                self._read = (state, _entries_of(self._path))
            return self._read[1]


class _Writing:
    """The entries of a file, to be changed; at the end of the block the new file takes the old one's place at once.

    The new file's name is the lock: two who write at once can't lose what the other wrote.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._new = path.with_name(f"{path.name}.new")
        self._entries: list[_Entry] = []

    def __enter__(self) -> list[_Entry]:
        try:
            os.close(os.open(self._new, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        except FileExistsError:
            raise InvalidInputError(
                f"{self._new} is there: somebody writes the tokens, or was cut off", hint="Wait, or delete that file."
            ) from None
        except OSError as error:
            raise _unwritable(self._path, error) from error
        try:
            self._entries = list(_entries_of(self._path)) if self._path.exists() else []
        except BaseException:
            self._new.unlink()
            raise
        return self._entries

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            self._new.unlink()
            return
        data = msgspec.json.format(msgspec.json.encode(_File(tokens=tuple(self._entries)))) + b"\n"
        try:
            with self._new.open("wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            self._new.replace(self._path)
        except OSError as error:
            self._new.unlink(missing_ok=True)
            raise _unwritable(self._path, error) from error


def _entries_of(path: Path) -> tuple[_Entry, ...]:
    try:
        with path.open("rb") as file:
            mode, data = os.fstat(file.fileno()).st_mode, file.read(MCP_TOKEN_FILE_BYTES_MAX + 1)
    except OSError as error:
        raise _unreadable(path, error) from error
    if os.name == "posix" and mode & _OTHERS_MAY_WRITE:
        raise InvalidInputError(f"others may write {path}, and let themselves in", hint=f"Run `chmod go-w {path}`.")
    if len(data) > MCP_TOKEN_FILE_BYTES_MAX:
        raise InvalidInputError(f"{path} has more than {MCP_TOKEN_FILE_BYTES_MAX:,} bytes (MCP_TOKEN_FILE_BYTES_MAX)")
    try:
        entries = msgspec.json.decode(data, type=_File).tokens
        for entry in entries:
            _ = entry.access
    except (msgspec.DecodeError, InvalidInputError, TenantScopeError) as error:  # with its place, as `$.tokens[0].name`
        raise InvalidInputError(f"{path} holds no tokens: {error}", hint=_NOBODY) from error
    for what in ("name", "sha256"):
        if len({getattr(entry, what) for entry in entries}) < len(entries):
            raise InvalidInputError(f"{path} has two tokens with one {what}", hint=_NOBODY)
    return entries


def _unreadable(path: Path, error: OSError) -> InvalidInputError:
    return InvalidInputError(f"{path} can't be read: {error.strerror}", hint="`strandline mcp token` makes one.")


def _unwritable(path: Path, error: OSError) -> InvalidInputError:
    return InvalidInputError(f"{path} can't be written: {error.strerror}", hint="Nothing was changed.")
