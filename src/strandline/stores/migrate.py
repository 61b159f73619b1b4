"""Numbered migrations: file and record in one transaction, checksummed, refused on a newer schema.

A file is named `NNNN_name.sql`, or, where programs of two versions run beside each other, `NNNN_name.pre.sql` and
`NNNN_name.post.sql`. What is `pre` the old version can live with: it is applied when the first new program opens the
store. What is `post` it can't: it is applied on request, once every process runs the new version.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from importlib.resources.abc import Traversable

from strandline.errors import SchemaVersionError, StoreUnavailableError

_FILE = re.compile(r"^(\d{4})_(\w+)(?:\.(pre|post))?\.sql$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Migration:
    """One step of the schema."""

    number: int
    name: str
    text: str
    post: bool = False  # waits until it is asked for

    @property
    def checksum(self) -> bytes:
        """Tells whether a step that was applied is the step that stands here."""
        return hashlib.blake2b(self.text.encode(), digest_size=16).digest()


def read_migrations(folder: Traversable) -> list[Migration]:
    """Return the migrations of a folder in order; their numbers run 1, 2, … without a gap."""
    found = []
    for entry in folder.iterdir():
        if match := _FILE.match(entry.name):
            text = entry.read_text(encoding="utf-8")
            found.append(Migration(number=int(match[1]), name=match[2], text=text, post=match[3] == "post"))
    found.sort(key=lambda migration: migration.number)
    if [m.number for m in found] != list(range(1, len(found) + 1)):
        raise StoreUnavailableError(f"the migrations {[m.number for m in found]} have a gap: the package is incomplete")
    return found


def due(migrations: list[Migration], applied: dict[int, bytes], *, post: bool = False) -> list[Migration]:
    """Return the migrations to apply now: with `post` all that are pending, else those before the first that waits.

    Raises:
        SchemaVersionError, StoreUnavailableError: as `pending`; and this version needs one that waits.
    """
    rest = pending(migrations, applied)
    waiting = [migration for migration in rest if migration.post]
    if post or not waiting:
        return rest
    behind = [migration for migration in rest if not migration.post and migration.number > waiting[0].number]
    if behind:
        raise StoreUnavailableError(
            f"migration {waiting[0].number} ({waiting[0].name}) waits until it is asked for, and this version needs it",
            hint="Stop the processes of the older version, then run `strandline migrate --post`.",
        )
    return [migration for migration in rest if not migration.post]


def pending(migrations: list[Migration], applied: dict[int, bytes]) -> list[Migration]:
    """Return the migrations that are not applied.

    Raises:
        SchemaVersionError: the store was written by a newer version.
        StoreUnavailableError: an applied migration is not the one that stands here.
    """
    newest = max(applied, default=0)
    if newest > len(migrations):
        raise SchemaVersionError(found=newest, known=len(migrations))
    for migration in migrations[:newest]:
        if applied.get(migration.number) != migration.checksum:
            raise StoreUnavailableError(
                f"migration {migration.number} ({migration.name}) of the store is not the one of this version"
            )
    return migrations[newest:]
