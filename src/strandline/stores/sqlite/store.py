"""The SQLite store: connections, transactions, durability (DESIGN §5)."""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib import resources
from pathlib import Path

from strandline.codec import DIGEST_BYTES, EMPTY_CHAIN
from strandline.errors import CorruptRecordError, InvalidInputError, StoreUnavailableError
from strandline.limits import STORE_BUSY_TIMEOUT_S, STORE_READERS_MAX, STORE_SCOPES_MAX
from strandline.model.due import DueKey
from strandline.model.erasure import FileScan
from strandline.model.figures import StoreFigures, fold_figures
from strandline.model.ids import Scope
from strandline.model.lineage import WorkflowHead
from strandline.ports import Clock, Entropy, Transaction
from strandline.stores.migrate import Migration, pending, read_migrations
from strandline.stores.sql.due import sweep
from strandline.stores.sql.figures import figures_of
from strandline.stores.sql.log import head_digest
from strandline.stores.sql.session import UNKNOWN_ID, Row
from strandline.stores.sql.strays import stray_queries
from strandline.stores.sql.transaction import SqlTransaction
from strandline.stores.sql.transfer import COPY_MARK, DIGEST_KEY, refuse_unfinished
from strandline.stores.sqlite.group_commit import GroupCommit
from strandline.stores.sqlite.raw import Connection, close
from strandline.stores.sqlite.scrub import scrub
from strandline.stores.sqlite.session import QUERIES, SQLITE_RAISES, SqliteSession, map_error

APPLICATION_ID = 0x5374726E  # "Strn" in the file's header
_INHERITED: list[object] = []  # connections of a parent process: SQLite forbids a child to use them, or to close them
_DURABILITY = {"full": "FULL", "normal": "NORMAL"}


class SqliteStore:
    """`ports.Store` over one SQLite file.

    Args:
        path: the file; it is made when it is not there, and a file of 0 bytes or without tables is an empty store.
        clock: the store's clock.
        entropy: makes the digest key of a new store.
        durability: "full" (the default: a commit survives power loss) or "normal" (it survives process death only).
        unfinished: open a copy that has not finished, too: for who goes on with it.

    Raises:
        StoreUnavailableError: the file can't be opened, or is no Strandline store.
        SchemaVersionError: a newer Strandline wrote it.
        UnfinishedCopyError: it is a copy that has not finished.
    """

    def __init__(
        self, path: str, *, clock: Clock, entropy: Entropy, durability: str = "full", unfinished: bool = False
    ) -> None:
        if durability not in _DURABILITY:
            raise InvalidInputError(f"durability {durability!r} is none of {sorted(_DURABILITY)}")
        self._path = path
        self._clock = clock
        self._synchronous = _DURABILITY[durability]
        self._writes = GroupCommit(path, clock, self._open_writer)
        self._pool_lock = threading.Lock()
        self._readers: list[sqlite3.Connection] = []
        self._reader_slots = threading.BoundedSemaphore(STORE_READERS_MAX)
        self._writer: Connection | None = None
        self._ids: dict[Scope, tuple[int, int]] = {}  # of tenant and workflow
        self._process = os.getpid()
        self._closed = False
        try:
            self.digest_key = self._prepare(entropy, unfinished=unfinished)
        except SQLITE_RAISES as error:
            self.close()
            raise map_error(error, path) from error
        except BaseException:
            self.close()
            raise

    @property
    def path(self) -> str:
        return self._path

    def connect(self, *, read_only: bool) -> Connection:
        path = Path(self._path)
        try:
            has_folder = path.parent.is_dir()
        except OSError as error:
            hint = "Who runs this needs the right to enter each folder on the way."
            raise StoreUnavailableError(f"{self._path}: {error.strerror}", hint=hint) from error
        if not has_folder:
            raise StoreUnavailableError(f"{self._path}: the folder is not there", hint="Make the folder first.")
        if os.path.isdir(path):  # noqa: PTH112  a name that can't be is SQLite's to refuse, in its words
            raise StoreUnavailableError(f"{self._path}: a folder", hint="Give the path of a file.")
        if os.path.exists(path) and not os.path.isfile(path):  # noqa: PTH110, PTH113
            raise StoreUnavailableError(
                f"{self._path}: a pipe, a socket or a device; nothing was written", hint="Give the path of a file."
            )
        if not os.path.exists(path):  # noqa: PTH110
            if read_only:
                raise StoreUnavailableError(f"{self._path}: the file is gone", hint="Put it back, or restore a backup.")
            _make_private(path)
        connection = sqlite3.connect(
            self._path,
            timeout=STORE_BUSY_TIMEOUT_S,
            isolation_level=None,
            check_same_thread=False,
            cached_statements=256,
            factory=Connection,
        )
        try:
            connection.enter(self._path)
            connection.execute(f"PRAGMA synchronous={self._synchronous}")
            connection.execute("PRAGMA foreign_keys=ON")
            connection.execute("PRAGMA secure_delete=ON")  # what is erased leaves no bytes in free space (C31)
            if read_only:
                connection.execute("PRAGMA query_only=ON")
        except BaseException:
            connection.close()
            raise
        return connection

    def _prepare(self, entropy: Entropy, *, unfinished: bool) -> bytes:
        """Bring the schema up to date and return the store's digest key."""
        writer = self._writer = self.connect(read_only=False)
        application = writer.execute("PRAGMA application_id").fetchone()[0]
        tables = {name for (name,) in writer.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        if application not in (0, APPLICATION_ID) or (tables and "schema_migration" not in tables):
            raise StoreUnavailableError(f"{self._path}: an SQLite file of another program; nothing was written")
        migrations = read_migrations(resources.files("strandline.stores.sqlite").joinpath("migrations"))
        if not tables:
            writer.execute("PRAGMA journal_mode=WAL")
        applied = self._applied(writer) if tables else {}
        if pending(migrations, applied):
            writer.execute("BEGIN IMMEDIATE")  # two processes may start at once: the second finds the work done
            try:
                self._migrate(writer, migrations, entropy)
                writer.execute("COMMIT")
            except BaseException:
                writer.execute("ROLLBACK")
                raise
        meta = dict(writer.execute("SELECT name, value FROM store_meta"))
        key = meta.get(DIGEST_KEY)
        if not isinstance(key, bytes) or len(key) != DIGEST_BYTES:
            raise CorruptRecordError("the store's digest key is missing or damaged", place=f"{self._path}: store_meta")
        if not unfinished:
            refuse_unfinished(meta.get(COPY_MARK), self._path)
        return key

    def _applied(self, writer: sqlite3.Connection) -> dict[int, bytes]:
        return dict(writer.execute("SELECT number, checksum FROM schema_migration"))

    def _migrate(self, writer: sqlite3.Connection, migrations: list[Migration], entropy: Entropy) -> None:
        writer.execute(
            "CREATE TABLE IF NOT EXISTS schema_migration (number INTEGER PRIMARY KEY, checksum BLOB NOT NULL) STRICT"
        )
        applied = self._applied(writer)
        for migration in pending(migrations, applied):
            for statement in _statements(migration.text):
                writer.execute(statement)
            writer.execute(
                "INSERT INTO schema_migration VALUES (?, ?)",
                (migration.number, migration.checksum),
            )
        if not applied:
            key = entropy.salt() + entropy.salt()
            writer.execute("INSERT INTO store_meta VALUES ('digest_key', ?)", (key,))
            writer.execute(f"PRAGMA application_id={APPLICATION_ID}")

    # ------------------------------------------------------------------------------------------ transactions

    @contextmanager
    def read(self, scope: Scope) -> Iterator[Transaction]:
        """Open one snapshot."""
        with self._reader() as connection:
            connection.execute("BEGIN")
            try:
                ids = self._ids.get(scope) or self._find(connection, scope)
                self._remember(scope, ids)
                session = SqliteSession(connection, self.digest_key, ids, self._path)
                try:
                    yield SqlTransaction(session, scope)
                finally:
                    session.end()
            finally:
                connection.execute("ROLLBACK")

    @contextmanager
    def write(self, scope: Scope, *, joins: bool = True) -> Iterator[Transaction]:
        """Open a writing transaction; leaving it normally commits. The lock is the database's own."""
        self._check_open()
        try:
            with self._writes.write(joins=joins) as connection:
                ids = self._ids.get(scope) or self._find_or_add(connection, scope)
                session = SqliteSession(connection, self.digest_key, ids, self._path)
                try:
                    yield SqlTransaction(session, scope)
                finally:
                    session.end()
        except SQLITE_RAISES as error:
            raise map_error(error, self._path) from error
        self._remember(scope, ids)

    def _remember(self, scope: Scope, ids: tuple[int, int]) -> None:
        """Keep the ids of a workflow, once its row is committed: they never change, and no row is deleted."""
        if UNKNOWN_ID not in ids:
            if len(self._ids) >= STORE_SCOPES_MAX:
                self._ids.clear()
            self._ids[scope] = ids

    @contextmanager
    def _mapped(self) -> Iterator[None]:
        try:
            yield
        except SQLITE_RAISES as error:
            raise map_error(error, self._path) from error

    def _find(self, connection: sqlite3.Connection, scope: Scope) -> tuple[int, int]:
        tenant_id = self._find_tenant(connection, scope.tenant)
        parameters = {"tenant_id": tenant_id, "name": scope.workflow}
        workflow = connection.execute(QUERIES["find_workflow"].text, parameters).fetchone()
        return tenant_id, workflow[0] if workflow else UNKNOWN_ID

    def _find_tenant(self, connection: sqlite3.Connection, name: str) -> int:
        row = connection.execute(QUERIES["find_tenant"].text, {"name": name}).fetchone()
        return int(row[0]) if row else UNKNOWN_ID

    def _find_or_add(self, connection: sqlite3.Connection, scope: Scope) -> tuple[int, int]:
        tenant_id, workflow_id = self._find(connection, scope)
        if tenant_id == UNKNOWN_ID:
            connection.execute(
                QUERIES["add_tenant"].text,
                {"name": scope.tenant},
            )
            tenant_id, _ = self._find(connection, scope)
        if workflow_id == UNKNOWN_ID:
            empty = WorkflowHead(chain=EMPTY_CHAIN, lineage_chain=EMPTY_CHAIN)
            connection.execute(
                QUERIES["add_workflow"].text,
                {
                    "tenant_id": tenant_id,
                    "name": scope.workflow,
                    "chain": EMPTY_CHAIN,
                    "row_digest": head_digest(self.digest_key, scope, empty),
                },
            )
            _, workflow_id = self._find(connection, scope)
            self._check_own(connection)
        return tenant_id, workflow_id

    def _check_own(self, connection: sqlite3.Connection) -> None:
        """Refuse to add a workflow where the store has become a copy of another one since it was opened."""
        meta = dict(connection.execute("SELECT name, value FROM store_meta"))
        refuse_unfinished(meta.get(COPY_MARK), self._path)
        if meta.get(DIGEST_KEY) != self.digest_key:
            raise StoreUnavailableError(f"{self._path}: another store was copied here", hint="Open the store again.")

    # ------------------------------------------------------------------------------------------ connections

    def _check_open(self) -> None:
        if self._closed:
            raise StoreUnavailableError(f"{self._path}: the store is closed", hint="Open it again.")
        if os.getpid() != self._process:
            self._process = os.getpid()
            _INHERITED.append((self._readers, self._writer))
            self._readers, self._writer = [], None
            self._pool_lock, self._reader_slots = threading.Lock(), threading.BoundedSemaphore(STORE_READERS_MAX)
            self._writes = GroupCommit(self._path, self._clock, self._open_writer)

    def _open_writer(self) -> sqlite3.Connection:
        if self._closed:
            raise StoreUnavailableError(f"{self._path}: the store is closed", hint="Open it again.")
        if self._writer is None:
            self._writer = self.connect(read_only=False)
        elif not self._writer.is_at(self._path):  # SQLite looks only where it writes no log ahead
            raise StoreUnavailableError(
                f"{self._path}: the file was deleted, moved or replaced since it was opened; nothing was written",
                hint="Put it back, or restore a backup, and open the store again.",
            )
        return self._writer

    @contextmanager
    def _reader(self) -> Iterator[sqlite3.Connection]:
        self._check_open()
        with self._reader_slots, self._mapped():
            with self._pool_lock:
                connection = self._readers.pop() if self._readers else None
            if connection is None:
                connection = self.connect(read_only=True)
            try:
                yield connection
            finally:
                with self._pool_lock:
                    if self._closed:
                        connection.close()
                    else:
                        self._readers.append(connection)

    def scopes(self, tenant: str | None = None) -> list[Scope]:
        """Return the workflows, of one tenant or of all."""
        with self._reader() as connection:
            rows = connection.execute(QUERIES["scopes"].text, {"tenant": tenant}).fetchall()
        return [Scope(tenant=name, workflow=workflow) for name, workflow in rows]

    def due(self, now_us: int, limit: int, per_tenant: int) -> list[DueKey]:
        """Return due compactions of all tenants, who take turns."""
        with self._reader() as connection:

            def ask(query: str, **parameters: object) -> list[Row]:
                return connection.execute(QUERIES[query].text, parameters).fetchall()

            connection.execute("BEGIN")
            try:
                return sweep(ask, now_us, limit, per_tenant)
            finally:
                connection.execute("ROLLBACK")

    def figures(self, tenant: str | None, now_us: int) -> StoreFigures:
        """Return counts and ages out of the rows: one statement, so one snapshot."""
        with self._reader() as connection:
            wanted = None if tenant is None else self._find_tenant(connection, tenant)
            return fold_figures(connection.execute(QUERIES["figures"].text, figures_of(wanted, now_us)), now_us)

    def problems(self) -> list[str]:
        """Return what SQLite's own checks find wrong, and whether the file was cut in the middle of a page."""
        if self._odd_bytes():  # so does a checkpoint end that lost its power: the log still holds what is missing
            with self._mapped(), self._writes.alone():
                self._open_writer().execute("PRAGMA wal_checkpoint(PASSIVE)")
        odd_bytes = self._odd_bytes()
        with self._reader() as connection:
            found = [row[0] for row in connection.execute("PRAGMA integrity_check") if row[0] != "ok"]
            if odd_bytes:
                found.append(f"the file was cut: behind its last whole page there are {odd_bytes} bytes")
            found += [f"foreign key of {row[0]} row {row[1]}" for row in connection.execute("PRAGMA foreign_key_check")]
            strays = [(what, connection.execute(query).fetchone()[0]) for what, query in stray_queries()]
            return found + [f"{what}: {number}" for what, number in strays if number]

    def _odd_bytes(self) -> int:
        """Return how many bytes stand behind the last whole page of the file."""
        with self._reader() as connection:
            page_bytes: int = connection.execute("PRAGMA page_size").fetchone()[0]
        return Path(self._path).stat().st_size % page_bytes

    def scrub(self, needles: Sequence[bytes]) -> FileScan:
        """Search the files for what was erased, and write them anew where they hold it (C31)."""
        self._check_open()
        try:
            with self._mapped(), self._writes.alone():
                return scrub(self._open_writer(), self._path, needles)
        except (OSError, StoreUnavailableError) as error:
            raise StoreUnavailableError(
                f"it is erased, but the files of {self._path} could not be searched for what is left of it: {error}",
                hint="Once the disk is well, `VACUUM` writes the store's file anew from what is left in it.",
            ) from error

    def close(self) -> None:
        """Close all connections; calling it again does nothing. Who is writing ends his write before."""
        self._closed = True
        if os.getpid() != self._process:
            return
        with self._pool_lock:
            readers, self._readers = self._readers, []
        for connection in readers:
            connection.close()
        with suppress(StoreUnavailableError), self._writes.alone():  # who writes for too long keeps his connection
            writer, self._writer = self._writer, None
            if writer is not None:
                writer.close()


def _make_private(path: Path) -> None:
    """Make the file so that only its owner reads it: memories of agents are nobody else's. WAL and SHM inherit that."""
    with suppress(OSError):  # another process was faster; or SQLite will say what is wrong
        close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))


def _statements(script: str) -> list[str]:
    """Split a migration into statements; triggers hold semicolons of their own. Comments stay out of the store."""
    statements, current = [], ""
    for line in script.splitlines(keepends=True):
        current += line.split("--")[0].rstrip() + "\n"
        if sqlite3.complete_statement(current):
            statements.append(current.strip())
            current = ""
    return statements
