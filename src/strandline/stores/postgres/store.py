"""The PostgreSQL store: transactions and their scopes (DESIGN §5)."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, TypeVar

import psycopg

from strandline.codec import EMPTY_CHAIN
from strandline.errors import StoreUnavailableError
from strandline.limits import POSTGRES_BEGIN_RETRY_S, POSTGRES_BEGIN_TRIES_MAX, STORE_SCOPES_MAX
from strandline.model.due import DueKey
from strandline.model.figures import StoreFigures, fold_figures
from strandline.model.ids import Scope
from strandline.model.lineage import WorkflowHead
from strandline.ports import Clock, Entropy, Transaction
from strandline.stores.postgres.clock import ServerClock
from strandline.stores.postgres.errors import map_error, may_begin_again, only_reads
from strandline.stores.postgres.migrating import open_schema
from strandline.stores.postgres.place import Place, read_url
from strandline.stores.postgres.pool import Link, Pool
from strandline.stores.postgres.problems import find_problems
from strandline.stores.postgres.running import APP, OPERATOR, SWEEP, Running
from strandline.stores.postgres.session import PostgresSession
from strandline.stores.postgres.statements import OPENS, Statements
from strandline.stores.sql.due import sweep
from strandline.stores.sql.figures import figures_of
from strandline.stores.sql.log import head_digest
from strandline.stores.sql.session import UNKNOWN_ID, Row
from strandline.stores.sql.transaction import SqlTransaction
from strandline.stores.sql.transfer import COPY_MARK, DIGEST_KEY, refuse_unfinished

T = TypeVar("T")
Ids = tuple[int, int]  # of tenant and workflow
_NOBODY: Final = (UNKNOWN_ID, UNKNOWN_ID)


class PostgresStore:
    """`ports.Store` over one schema of a PostgreSQL database.

    Args:
        url: `postgresql://user:password@host:port/database?option=value`; its options: `place.read_url`.
        clock: the machine's; `clock` of the store shows the server's time.
        entropy: makes the digest key of a new store.
        create: make the store when it is not there.
        migrate: bring it up to date where that is needed; else it is refused.
        post: also with what waits until every process runs this version.
        unfinished: open a copy that has not finished, too: for who goes on with it.

    Raises:
        InvalidInputError: no such URL.
        StoreUnavailableError: the server can't be reached or is too old, the user may not, or there is no store.
        SchemaVersionError: a newer Strandline wrote it.
        UnfinishedCopyError: it is a copy that has not finished.
    """

    def __init__(
        self,
        url: str,
        *,
        clock: Clock,
        entropy: Entropy,
        create: bool = True,
        migrate: bool = True,
        post: bool = False,
        unfinished: bool = False,
    ) -> None:
        self._place = read_url(url)
        self.clock = ServerClock(clock)
        self._statements = Statements(self._place.schema)
        self._pool = Pool(self._place, self.clock)
        self._ids: dict[Scope, Ids] = {}
        self._writing: set[tuple[int, Scope]] = set()  # by which threads
        try:
            link = self._pool.take()
            try:
                meta, self.applied = open_schema(
                    link.wire.connection, self._place, entropy, create=create, migrate=migrate, post=post
                )
            finally:
                self._pool.give(link)
            self._digest_key = meta[DIGEST_KEY]
            if not unfinished:
                refuse_unfinished(meta.get(COPY_MARK), self._place.shown)
        except psycopg.Error as error:
            self.close()
            raise map_error(error, self._place) from error
        except BaseException:
            self.close()
            raise

    def __repr__(self) -> str:
        return f"PostgresStore({self._place.shown!r})"

    @property
    def digest_key(self) -> bytes:
        return self._digest_key

    @property
    def place(self) -> Place:
        """Where it is, and how it is spoken to."""
        return self._place

    @property
    def path(self) -> str:
        return self._place.shown

    # ------------------------------------------------------------------------------------------ transactions

    @contextmanager
    def read(self, scope: Scope) -> Iterator[Transaction]:
        """Open one snapshot."""
        with self._transaction(scope, writes=False) as (_, session):
            yield SqlTransaction(session, scope)

    @contextmanager
    def write(self, scope: Scope, *, joins: bool = True) -> Iterator[Transaction]:
        """Open a writing transaction that holds the head's lock; leaving it normally commits. The server itself lets
        commits of several connections share a flush.
        """
        mine = (threading.get_ident(), scope)
        if mine in self._writing:
            what = f"this thread is writing to {str(scope)!r} already; nothing was written"
            raise StoreUnavailableError(f"{self.path}: {what}")
        with self._transaction(scope, writes=True) as (running, session):
            self._writing.add(mine)
            try:
                yield SqlTransaction(session, scope)
                running.commit()
            finally:
                self._writing.discard(mine)
        self._remember(scope, session.ids)

    @contextmanager
    def _transaction(self, scope: Scope, *, writes: bool) -> Iterator[tuple[Running, PostgresSession]]:
        with self._running(lambda running: self._opened(running, scope), writes=writes) as found:
            yield found

    @contextmanager
    def _running(self, begin: Callable[[Running], T], *, writes: bool) -> Iterator[tuple[Running, T]]:
        """Run a transaction, with what its beginning gave. A connection of the pool may have died since it was used
        last, a server may be restarting, or another one may write by now: as long as nothing was done it is tried
        again, POSTGRES_BEGIN_TRIES_MAX times in all.
        """
        link, running, begun = self._begin(begin, writes=writes)
        try:
            yield running, begun
        finally:
            running.end()
            self._give(link)

    def _begin(self, begin: Callable[[Running], T], *, writes: bool) -> tuple[Link, Running, T]:
        for number in range(POSTGRES_BEGIN_TRIES_MAX):
            try:
                link = self._pool.take()
                running = Running(link.wire, self._place, writes=writes)
                try:
                    return link, running, begin(running)
                except BaseException as error:
                    running.end()
                    if only_reads(error):  # kept, it would be taken again, though the server that writes is back
                        link.wire.connection.close()
                    self._give(link)
                    raise
            except psycopg.Error as error:
                if number + 1 == POSTGRES_BEGIN_TRIES_MAX or not may_begin_again(error):
                    raise map_error(error, self._place) from error
                self.clock.sleep_s(POSTGRES_BEGIN_RETRY_S * 2**number)
        raise AssertionError("the last try raises")

    def _give(self, link: Link) -> None:
        """Give a connection back. Where it broke, the others may have broken, too, and the data may be another's."""
        if link.wire.connection.closed:
            self._pool.forget_free()
            self._ids.clear()
        self._pool.give(link)

    def _opened(self, running: Running, scope: Scope) -> PostgresSession:
        """Begin, and read the head; in a write transaction the row is made where it is missing, and locked."""
        ids = self._ids.get(scope)
        if ids is not None:
            running.begin(tenant=scope.tenant, tenant_id=ids[0])
            head = self._head(running, ids)
            if head or not running.writes:
                return PostgresSession(running, self._statements, self.digest_key, ids, head)
            raise StoreUnavailableError(f"{self.path}: the workflow {str(scope)!r} is gone; nothing was written")
        running.begin(tenant=scope.tenant)
        ids = self._find_or_add(running, scope) if running.writes else self._find(running, scope)
        head = self._head(running, ids)
        if not running.writes:
            self._remember(scope, ids)
        return PostgresSession(running, self._statements, self.digest_key, ids, head)

    def _head(self, running: Running, ids: Ids) -> list[Row]:
        statement = self._statements.locked_head if running.writes else self._statements["head"]
        return running.ask(statement, {"tenant_id": ids[0], "workflow_id": ids[1]}).rows

    def _find(self, running: Running, scope: Scope) -> Ids:
        tenant_id = self._find_tenant(running, scope.tenant)
        if tenant_id == UNKNOWN_ID:
            return _NOBODY
        return tenant_id, self._find_workflow(running, tenant_id, scope)

    def _find_or_add(self, running: Running, scope: Scope) -> Ids:
        """Find tenant and workflow, or make them: of several who make them at once one does, the others find them."""
        tenant_id = self._find_tenant(running, scope.tenant)
        if tenant_id == UNKNOWN_ID:
            running.ask(self._statements["add_tenant"], {"name": scope.tenant})
            tenant_id = self._find_tenant(running, scope.tenant)
        workflow_id = self._find_workflow(running, tenant_id, scope)
        if workflow_id == UNKNOWN_ID:
            empty = WorkflowHead(chain=EMPTY_CHAIN, lineage_chain=EMPTY_CHAIN)
            row = {
                "tenant_id": tenant_id,
                "name": scope.workflow,
                "chain": EMPTY_CHAIN,
                "row_digest": head_digest(self.digest_key, scope, empty),
            }
            running.ask(self._statements["add_workflow"], row)
            workflow_id = self._find_workflow(running, tenant_id, scope)
            self._check_own(running)
        return tenant_id, workflow_id

    def _check_own(self, running: Running) -> None:
        """Refuse to add a workflow where the store has become a copy of another one since it was opened."""
        running.send(OPENS, {})
        meta: dict[str, bytes] = dict(running.ask(self._statements.meta, {}).rows)
        refuse_unfinished(meta.get(COPY_MARK), self.path)
        if meta.get(DIGEST_KEY) != self.digest_key:
            raise StoreUnavailableError(f"{self.path}: another store was copied here", hint="Open the store again.")

    def _find_tenant(self, running: Running, name: str) -> int:
        rows = running.ask(self._statements["find_tenant"], {"name": name}).rows
        if not rows:
            return UNKNOWN_ID
        running.turn_to(rows[0][0])
        return int(rows[0][0])

    def _find_workflow(self, running: Running, tenant_id: int, scope: Scope) -> int:
        row = {"tenant_id": tenant_id, "name": scope.workflow}
        rows = running.ask(self._statements["find_workflow"], row).rows
        return int(rows[0][0]) if rows else UNKNOWN_ID

    def _remember(self, scope: Scope, ids: Ids) -> None:
        """Keep the ids of a workflow, once its row is committed: they never change, and no row is deleted."""
        if UNKNOWN_ID not in ids:
            if len(self._ids) >= STORE_SCOPES_MAX:
                self._ids.clear()
            self._ids[scope] = ids

    # ------------------------------------------------------------------------------------------ the whole store

    def scopes(self, tenant: str | None = None) -> list[Scope]:
        """Return the workflows, of one tenant or, as strandline_operator, of all."""

        def ask(running: Running) -> list[Row]:
            running.begin(tenant=tenant or "", role=APP if tenant is not None else OPERATOR)
            if tenant is not None and self._find_tenant(running, tenant) == UNKNOWN_ID:
                return []
            return running.ask(self._statements["scopes"], {"tenant": tenant}).rows

        with self._running(ask, writes=False) as (_, rows):
            return [Scope(tenant=name, workflow=workflow) for name, workflow in rows]

    def due(self, now_us: int, limit: int, per_tenant: int) -> list[DueKey]:
        """Return due compactions of all tenants, who take turns; as strandline_sweep, which sees nothing else."""

        def ask(running: Running) -> list[DueKey]:
            running.begin(role=SWEEP)
            return sweep(
                lambda query, **values: running.ask(self._statements[query], values).rows, now_us, limit, per_tenant
            )

        with self._running(ask, writes=False) as (_, found):
            return found

    def figures(self, tenant: str | None, now_us: int) -> StoreFigures:
        """Return counts and ages out of the rows, of one tenant or, as strandline_operator, of all."""

        def ask(running: Running) -> list[Row]:
            running.begin(tenant=tenant or "", role=APP if tenant is not None else OPERATOR)
            wanted = None if tenant is None else self._find_tenant(running, tenant)
            return running.ask(self._statements["figures"], figures_of(wanted, now_us)).rows

        with self._running(ask, writes=False) as (_, rows):
            pass
        return fold_figures([(str(name), str(figure), str(word), int(n)) for name, figure, word, n in rows], now_us)

    def problems(self) -> list[str]:
        """Return what the server knows to be wrong with the schema's tables, their indexes, keys and row security."""
        with self._running(lambda running: find_problems(running, self._place.schema), writes=False) as (_, found):
            return found

    def close(self) -> None:
        """Close all connections; calling it again does nothing."""
        self._pool.close()
