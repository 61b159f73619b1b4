"""What is PostgreSQL's own in its store: rights, row security, triggers, many starts at once, connections that die.

Laws: I21 (a tenant sees its own rows, whatever a statement forgot), I1 (events stay), I2 and I19 (a commit whose answer
was lost is told as unknown, and reading says what became of it), C26.
"""

import multiprocessing
import os
import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import partial
from urllib.parse import urlsplit

import psycopg
import pytest
from psycopg import sql
from typer.testing import CliRunner

import strandline
from strandline.cli.app import app
from strandline.client.diagnosis import diagnose
from strandline.client.opening import migrate_store
from strandline.errors import CorruptRecordError, OutcomeUnknownError, SchemaVersionError, StoreUnavailableError
from strandline.model.ids import Scope
from strandline.model.lineage import AbandonedRange
from strandline.stores.postgres.errors import map_error
from strandline.stores.postgres.place import read_url
from strandline.stores.postgres.store import PostgresStore
from strandline.system import SystemClock, SystemEntropy
from strandline.testing import FixedClock, SeededEntropy
from strandline.testing.conformance.stage import append

SCOPE = Scope(tenant="acme", workflow="w")
WAIT_S = 60
CLOCK_US = 60_000_000  # more than the slowest answer
AS_APP = "SELECT set_config('role', 'strandline_app', true)"


def open_store(url, **options):
    return PostgresStore(url, clock=FixedClock(), entropy=SeededEntropy(1), **options)


@contextmanager
def connected(url):
    with closing(psycopg.connect(url, autocommit=True)) as connection:
        yield connection


def tables(connection):
    query = "SELECT relname FROM pg_class WHERE relnamespace = 'strandline'::regnamespace AND relkind IN ('r', 'p')"
    return sorted(name for (name,) in connection.execute(query))


def as_user(url, user):
    """Return the URL for another user."""
    host = urlsplit(url).netloc.rpartition("@")[2]
    return f"postgresql://{user}@{host}{urlsplit(url).path}"


def as_app(connection, *statements):
    """Run statements as the role of every transaction, in one of its own; a pair has parameters."""
    with connection.transaction():
        connection.execute(AS_APP)
        for statement in statements:
            connection.execute(*(statement if isinstance(statement, tuple) else (statement,)))


def append_and_die(store, url, *, ask):
    """Append, end the connection in the middle of the transaction, and go on: with a question, or with the commit."""
    with store.write(SCOPE) as tx:
        append(tx)
        kill_others(url)
        if ask:
            tx.log.count()


def append_and_fail(store):
    """Append, let a statement fail, and commit all the same."""
    with store.write(SCOPE) as tx:
        append(tx)
        with pytest.raises(StoreUnavailableError):
            tx.log._session.rows("sightings", ref_id=1, through_seq=1, limit=-1)


def kill_others(url):
    """End the stores' connections to the database, and wait until they are gone."""
    with connected(url) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity"
            " WHERE datname = current_database() AND application_name = 'strandline'"
        )


# ------------------------------------------------------------------------------------------ row security (I21)


def test_every_table_is_bound_to_its_tenant_also_for_its_owner(postgres_store_url):
    with connected(postgres_store_url) as connection:
        rows = connection.execute(
            "SELECT relname, relrowsecurity, relforcerowsecurity,"
            " (SELECT count(*) FROM pg_policies p WHERE p.schemaname = 'strandline' AND p.tablename = relname"
            "    AND p.policyname = 'bound' AND qual IS NOT NULL AND with_check IS NOT NULL)"
            " FROM pg_class WHERE relnamespace = 'strandline'::regnamespace AND relkind IN ('r', 'p')"
        ).fetchall()
    assert len(rows) > 20
    assert [row for row in rows if row[1:] != (True, True, 1)] == []


@pytest.mark.parametrize("setting", ["", "9999"])
def test_without_a_tenant_nothing_is_seen_and_nothing_is_written(postgres_store_url, setting):
    with closing(open_store(postgres_store_url)) as store, store.write(SCOPE) as tx:
        append(tx)
    with connected(postgres_store_url) as connection:
        for table in tables(connection):
            name = sql.Identifier("strandline", table)
            with connection.transaction():
                connection.execute(AS_APP)
                if setting:
                    connection.execute("SELECT set_config('strandline.tenant_id', %s, true)", (setting,))
                count = connection.execute(sql.SQL("SELECT count(*) FROM {}").format(name)).fetchone()
            assert count == (0,), table
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            as_app(connection, "INSERT INTO strandline.tenant (name) VALUES ('umbrella')")


def test_another_tenants_rows_can_not_be_written(postgres_store_url):
    with closing(open_store(postgres_store_url)) as store:
        for tenant in ("acme", "umbrella"):
            with store.write(Scope(tenant=tenant, workflow="w")) as tx:
                append(tx)
    with connected(postgres_store_url) as connection:
        ids = dict(connection.execute("SELECT name, tenant_id FROM strandline.tenant").fetchall())
        as_acme = ("SELECT set_config('strandline.tenant_id', %s, true)", (str(ids["acme"]),))
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            as_app(connection, as_acme, ("UPDATE strandline.workflow SET tenant_id = %s", (ids["umbrella"],)))
        with connection.transaction():
            connection.execute(AS_APP)
            connection.execute(*as_acme)
            changed = connection.execute(
                "UPDATE strandline.workflow SET revision = 9 WHERE tenant_id = %s", (ids["umbrella"],)
            )
            assert changed.rowcount == 0


@pytest.mark.parametrize("statement", ["UPDATE strandline.event SET record = ''", "DELETE FROM strandline.event",
                                       "TRUNCATE strandline.event CASCADE"])  # fmt: skip
def test_events_are_never_changed_not_even_by_a_superuser(postgres_store_url, statement):
    """I1: outside of an erasure and a rewind."""
    with closing(open_store(postgres_store_url)) as store, store.write(SCOPE) as tx:
        append(tx)
    with connected(postgres_store_url) as connection, pytest.raises(psycopg.errors.IntegrityConstraintViolation):
        connection.execute(statement)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE strandline.lineage SET at_us = at_us",
        "DELETE FROM strandline.lineage",
        "TRUNCATE strandline.lineage CASCADE",
    ],
)
def test_the_lineage_only_grows_also_for_a_superuser(postgres_store_url, statement):
    """I13."""
    with strandline.open(postgres_store_url) as db:
        wf = db.tenant("acme").workflow("w")
        wf.append(strandline.message("user", "hello"))
        wf.checkpoint({"turn": 1}, 1, context_free=True)
        with connected(postgres_store_url) as connection:
            with pytest.raises(psycopg.errors.IntegrityConstraintViolation, match="I13"):
                connection.execute(statement)
            if statement.startswith("UPDATE"):  # the application has the right, and is refused all the same
                (number,) = connection.execute("SELECT tenant_id FROM strandline.tenant").fetchone()
                known = ("SELECT set_config('strandline.tenant_id', %s, true)", (str(number),))
                with pytest.raises(psycopg.errors.IntegrityConstraintViolation, match="I13"):
                    as_app(connection, known, statement)
        assert wf.verify().ok


def test_a_head_that_the_application_changed_by_itself_is_found(postgres_store_url):
    """The row is sealed: strandline_app may change it, and can't seal it anew without the digest key."""
    with strandline.open(postgres_store_url) as db:
        wf = db.tenant("acme").workflow("w")
        wf.append(strandline.message("user", "hello"))
        with connected(postgres_store_url) as connection:
            assert connection.execute("UPDATE strandline.workflow SET lineage_seq = 0, revision = 0").rowcount == 1
        assert not wf.verify().ok


def test_the_application_may_not_delete(postgres_store_url):
    open_store(postgres_store_url).close()
    with connected(postgres_store_url) as connection:
        for statement in ("DELETE FROM strandline.event", "TRUNCATE strandline.lineage",
                          "UPDATE strandline.store_meta SET value = ''"):  # fmt: skip
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                as_app(connection, statement)


# ------------------------------------------------------------------------------------------ rights


@pytest.fixture
def users(postgres_url):
    """Give a maker of users, who go with the test."""
    made = []

    def make(options, *grants):
        name = f"u{os.getpid()}_{len(made)}_{os.urandom(3).hex()}"
        with connected(postgres_url) as connection:
            connection.execute(f"CREATE ROLE {name} LOGIN {options}")
            made.append(name)
            for grant in grants:
                connection.execute(grant.format(user=name))
        return as_user(postgres_url, name)

    yield make
    with connected(postgres_url) as connection:
        for name in made:
            connection.execute(f"DROP OWNED BY {name} CASCADE")
            connection.execute(f"DROP ROLE {name}")


def test_a_user_who_may_nothing_is_told_what_an_administrator_runs(users, postgres_url):
    with pytest.raises(StoreUnavailableError) as refused:
        open_store(users(""))
    assert "GRANT" in refused.value.hint or "CREATE ROLE" in refused.value.hint
    told = refused.value.hint.partition(": ")[2]
    with connected(postgres_url) as connection:
        connection.execute(told)  # can be run as it stands


def test_what_is_told_is_enough(users, postgres_url):
    url = users("")
    with pytest.raises(StoreUnavailableError) as refused:
        open_store(url)
    with connected(postgres_url) as connection:
        connection.execute(refused.value.hint.partition(": ")[2])
    with closing(open_store(url)) as store, store.write(SCOPE) as tx:
        append(tx)


def test_a_user_who_is_no_superuser_makes_the_store(users, postgres_url):
    database = urlsplit(postgres_url).path[1:]
    url = users("CREATEROLE", f'GRANT CREATE ON DATABASE "{database}" TO {{user}}')
    with connected(postgres_url) as connection:  # roles are the server's: another test may have made them
        user = urlsplit(url).username
        for role in ("strandline_app", "strandline_sweep", "strandline_operator"):
            if connection.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", (role,)).fetchone():
                connection.execute(f"GRANT {role} TO {user} WITH ADMIN OPTION")
    with closing(open_store(url)) as store:
        with store.write(SCOPE) as tx:
            append(tx)
        assert store.scopes() == [SCOPE]
        assert store.scopes("acme") == [SCOPE]


ROLES_SQL = tuple(  # of deploy/roles.sh; roles are the server's, and other tests may have made them
    f"DO $$ BEGIN CREATE ROLE {role} NOLOGIN NOBYPASSRLS; EXCEPTION WHEN duplicate_object THEN NULL; END $$"
    for role in ("strandline_app", "strandline_sweep", "strandline_operator")
)
AGENT = "NOSUPERUSER NOCREATEDB NOCREATEROLE NOBYPASSRLS"


def test_the_owner_makes_the_store_and_an_agents_user_uses_it(users, postgres_url):
    """What deploy/roles.sh and deploy/compose.yaml do; nothing that is told gives the agents' user more."""
    agent = users(AGENT, *ROLES_SQL, "GRANT strandline_app, strandline_sweep TO {user}")
    for create in (True, False):
        with pytest.raises(StoreUnavailableError) as refused:
            open_store(agent, create=create)
        assert "strandline migrate --store" in refused.value.hint
        assert "GRANT" not in refused.value.hint
    checks = checks_of(agent)
    assert "strandline migrate --store" in checks["schema"].advice
    assert "GRANT" not in str(checks)
    assert checks["roles"].status == "ok"
    with pytest.raises(StoreUnavailableError, match="may not make"):
        migrate_store(agent, post=False)
    assert migrate_store(postgres_url, post=False) == ["0001 initial"]
    assert migrate_store(postgres_url, post=False) == []
    assert migrate_store(agent, post=False) == []
    with strandline.open(agent) as db:
        db.tenant("acme").workflow("w").append(strandline.message("user", "hello"))
        assert db.sweep() == []
    checks = checks_of(agent)
    assert [name for name, check in checks.items() if check.status != "ok"] == ["durability"]
    assert "an agents' user" in checks["roles"].value
    assert "strandline_operator" in checks["roles"].value


def test_only_the_role_of_ordinary_work_is_asked_for(users, postgres_url):
    open_store(postgres_url).close()
    url = users(AGENT)
    with pytest.raises(StoreUnavailableError) as refused:
        open_store(url)
    told = f'GRANT strandline_app TO "{urlsplit(url).username}";'
    assert refused.value.hint == f"An administrator runs in this database: {told}"
    assert checks_of(url)["roles"].advice == f"An administrator runs: {told}"


def test_a_user_who_may_not_migrate_opens_what_is_up_to_date(users, postgres_url):
    open_store(postgres_url).close()
    url = users("", "GRANT strandline_app TO {user}")
    with closing(open_store(url)) as store:
        with store.write(SCOPE) as tx:
            append(tx)
        with store.read(SCOPE) as tx:
            assert tx.log.count() == 1
        with pytest.raises(StoreUnavailableError) as refused:
            store.scopes()
        assert "strandline_operator" in str(refused.value)


def test_a_tenant_is_proved_without_the_operators_role(users, postgres_url):
    with strandline.open(postgres_url) as db:
        for tenant in ("acme", "umbrella"):
            db.tenant(tenant).workflow("w").append(strandline.message("user", "hello"))
    url = users(AGENT, "GRANT strandline_app TO {user}")
    with strandline.open(url) as db:
        report = db.tenant("acme").verify()
        assert (report.ok, report.workflows, report.events) == (True, 1, 1)
        with pytest.raises(StoreUnavailableError, match="strandline_operator") as refused:
            db.verify()
        assert "--tenant" in refused.value.hint
    invoke = partial(CliRunner().invoke, app)
    assert "ok: 1 workflow, 1 event" in invoke(["verify", "--store", url, "--tenant", "acme"]).stdout
    assert "ok: 2 workflows, 2 events" in invoke(["verify", "--store", postgres_url]).stdout
    gone = invoke(["verify", "--store", url, "--tenant", "default"])
    assert gone.exit_code != 0
    assert "no tenant 'default'" in gone.stderr


def test_a_wrong_name_is_told_from_a_server_that_is_away(users, postgres_url):
    host = urlsplit(postgres_url).netloc.rpartition("@")[2]
    name = urlsplit(postgres_url).path
    refused = {
        f"postgresql://{urlsplit(postgres_url).username}@{host}/nowhere": ("no such database", "CREATE DATABASE"),
        f"postgresql://nobody_{os.getpid()}@{host}{name}": ("refused the user", "CREATE ROLE"),
        users("", "ALTER ROLE {user} NOLOGIN"): ("refused the user", "pg_hba.conf"),
        f"postgresql://dana@127.0.0.1:1{name}": ("refused", "Check that the server runs"),
    }
    for url, (said, hint) in refused.items():
        with pytest.raises(StoreUnavailableError, match=said) as told:
            open_store(url)
        assert hint in told.value.hint
        assert checks_of(url)["server"].advice == told.value.hint


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ('FATAL:  password authentication failed for user "dana"', "refused the password"),
        ("fe_sendauth: no password supplied", "refused the password"),
        ('FATAL:  no pg_hba.conf entry for host "10.0.0.1", user "dana", database "x"', "refused the user"),
        ("FATAL:  sorry, too many clients already", "no more connections"),
        ("could not translate host name", "could not translate"),
    ],
)
def test_a_refused_connection_is_told_by_its_text(said, told):
    """Where the server's user has no password, and trusts, it can't be tried."""
    where = 'connection failed: connection to server at "127.0.0.1", port 5432 failed: '
    mapped = map_error(psycopg.OperationalError(where + said), read_url("postgresql://dana@h/x"))
    assert told in mapped.message
    assert ("server runs" in mapped.hint) == ("translate" in said)


# ------------------------------------------------------------------------------------------ migrations


def open_and_close(url):
    open_store(url).close()


def test_ten_processes_may_start_at_once(postgres_url):
    spawn = multiprocessing.get_context("spawn")
    with spawn.Pool(3) as pool:
        pool.map_async(open_and_close, [postgres_url] * 10).get(WAIT_S)
    with ThreadPoolExecutor(8) as pool:
        keys = set(pool.map(lambda _: open_key(postgres_url), range(8)))
    assert len(keys) == 1


def open_key(url):
    with closing(PostgresStore(url, clock=SystemClock(), entropy=SystemEntropy())) as store:
        return store.digest_key


def test_of_many_threads_that_start_at_once_one_makes_the_store(postgres_url):
    gate = threading.Barrier(8)

    def start(_):
        gate.wait()
        return open_key(postgres_url)

    with ThreadPoolExecutor(8) as pool:
        assert len(set(pool.map(start, range(8)))) == 1


def test_a_newer_schema_is_refused(postgres_url):
    open_store(postgres_url).close()
    with connected(postgres_url) as connection:
        connection.execute("INSERT INTO strandline.schema_migration VALUES (9999, '\\x00')")
    with pytest.raises(SchemaVersionError):
        open_store(postgres_url)


def test_what_is_another_programs_is_left_alone(postgres_url):
    with connected(postgres_url) as connection:
        connection.execute(
            "CREATE TABLE public.theirs (id int); CREATE SCHEMA strandline; CREATE TABLE strandline.x ()"
        )
    with pytest.raises(StoreUnavailableError, match="another program"):
        open_store(postgres_url)
    with closing(open_store(f"{postgres_url}?schema=agents")) as store, store.write(SCOPE) as tx:
        append(tx)
    with connected(postgres_url) as connection:
        assert tables(connection) == ["x"]
        left = connection.execute("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'").fetchone()
        assert left == (1,)


def test_create_false_makes_nothing(postgres_url):
    with pytest.raises(StoreUnavailableError, match="no such store"):
        strandline.open(postgres_url, create=False)
    with connected(postgres_url) as connection:
        assert connection.execute("SELECT 1 FROM pg_namespace WHERE nspname = 'strandline'").fetchone() is None


# ------------------------------------------------------------------------------------------ connections that die


def test_a_connection_that_died_in_the_pool_is_replaced(postgres_store_url):
    with closing(open_store(postgres_store_url)) as store:
        with store.write(SCOPE) as tx:
            append(tx)
        kill_others(postgres_store_url)
        with store.read(SCOPE) as tx:
            assert tx.log.count() == 1
        kill_others(postgres_store_url)
        with store.write(SCOPE) as tx:
            append(tx)
            assert tx.log.count() == 2
        kill_others(postgres_store_url)
        assert store.scopes() == [SCOPE]


def test_a_connection_that_dies_within_a_write_is_told_and_nothing_was_written(postgres_store_url):
    with closing(open_store(postgres_store_url)) as store:
        with pytest.raises(StoreUnavailableError, match="nothing was written"):
            append_and_die(store, postgres_store_url, ask=True)
        with store.write(SCOPE) as tx:
            assert tx.log.count() == 0


def test_a_connection_that_dies_before_the_commit_is_answered_is_of_unknown_outcome(postgres_store_url):
    """I19: nobody can tell from the error; reading tells."""
    with closing(open_store(postgres_store_url)) as store:
        with pytest.raises(OutcomeUnknownError):
            append_and_die(store, postgres_store_url, ask=False)
        with store.read(SCOPE) as tx:
            assert tx.log.count() == 0


def test_a_commit_whose_answer_is_lost_is_read_back(postgres_store_url, monkeypatch):
    """I3, I19: it is answered as if nothing had been lost, and so is the append that is sent again."""
    from strandline.stores.postgres.wire import Wire

    db = strandline.open(postgres_store_url)
    wf = db.tenant("acme").workflow("w")
    events = [strandline.message("user", "hello", key="k-1")]
    ask = Wire.ask

    def lose(self, questions):
        answer = ask(self, questions)
        if questions[-1][0].text == "COMMIT":
            monkeypatch.setattr(Wire, "ask", ask)
            self.connection.close()
            raise psycopg.OperationalError("server closed the connection unexpectedly")
        return answer

    monkeypatch.setattr(Wire, "ask", lose)
    assert wf.append(events).seqs == (1,)
    assert Wire.ask is ask, "an answer was lost"
    assert (wf.append(events).seqs, wf.append(events).added) == ((1,), 0)
    assert wf.basis().revision == 1
    db.close()


def test_an_activation_that_the_server_still_commits_is_waited_for(postgres_store_url, monkeypatch):
    """I19: the connection broke, and the server goes on with the COMMIT. Who reads before its end reads too early."""
    from strandline.stores.postgres.wire import Wire

    with strandline.open(postgres_store_url) as db:
        wf = db.tenant("acme").workflow("w")
        wf.append([strandline.note(f"step {number} is done") for number in range(120)])
        ask, commits = Wire.ask, []

        def late(self, questions):
            commits.extend(question for question in questions if question[0].text == "COMMIT")
            if len(commits) < 3:  # claim, draft, activation
                return ask(self, questions)
            monkeypatch.setattr(Wire, "ask", ask)
            twin = Wire(self.connection, prepare=False, answer_timeout_s=60)
            self.connection = psycopg.connect(postgres_store_url)
            self.connection.close()
            timer = threading.Timer(0.5, lambda: (ask(twin, questions), twin.connection.close()))
            timer.start()
            raise psycopg.OperationalError("server closed the connection unexpectedly")

        monkeypatch.setattr(Wire, "ask", late)
        outcome = wf.compact(900)
        assert (outcome.outcome, outcome.generation) == ("activated", 1)
        assert len(commits) == 3
        assert [entry.kind for entry in wf.lineage()] == ["compaction"]


def test_a_commit_of_a_failed_transaction_is_no_commit(postgres_store_url):
    """I2: PostgreSQL answers ROLLBACK to it, and no error."""
    with closing(open_store(postgres_store_url)) as store:
        with pytest.raises(StoreUnavailableError, match="nothing was written"):
            append_and_fail(store)
        with store.read(SCOPE) as tx:
            assert tx.log.count() == 0


def test_a_lock_is_waited_for_no_longer_than_it_says(postgres_store_url):
    with (
        closing(open_store(postgres_store_url)) as store,
        closing(open_store(f"{postgres_store_url}?lock_timeout_s=0.1")) as other,
    ):
        with store.write(SCOPE) as tx:
            append(tx)
        with store.write(SCOPE), pytest.raises(StoreUnavailableError, match="held the lock"), other.write(SCOPE):
            pass


def test_a_write_inside_a_write_of_the_same_thread_is_refused_at_once(postgres_store_url):
    refused = pytest.raises(StoreUnavailableError, match="already")
    with closing(open_store(postgres_store_url)) as store, store.write(SCOPE), refused, store.write(SCOPE):
        pass


def test_the_pool_is_no_larger_than_it_says(postgres_store_url):
    with closing(open_store(f"{postgres_store_url}?pool=2")) as store:
        with ThreadPoolExecutor(6) as pool:
            list(pool.map(lambda n: append_to(store, n), range(24)))
        with connected(postgres_store_url) as connection:
            count = connection.execute(
                "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
                " AND application_name = 'strandline'"
            ).fetchone()
        assert count[0] <= 2


def append_to(store, number):
    with store.write(Scope(tenant="acme", workflow=f"w{number % 4}")) as tx:
        append(tx, 1, f"{number}-")


def test_an_effect_of_the_family_is_read_over_the_connection_that_its_ledger_was_read_over(postgres_store_url):
    """A thread that waits for a second connection while it holds one waits for itself, or for others who do so."""
    with strandline.open(f"{postgres_store_url}?pool=1") as db:
        root = db.tenant("acme").workflow("root")
        root.append(strandline.note("begin"))
        root.fork(1, "left", by="ada", why="try")
        root.fork(1, "right", by="ada", why="try")
        left, right = db.tenant("acme").workflow("left"), db.tenant("acme").workflow("right")
        assert left.effect("pay-1", "pay", {"sum": 1}, lambda: "paid").kind == "ran"
        assert right.effect("pay-1", "pay", {"sum": 1}, lambda: "twice").result == "paid"


def test_a_forked_child_makes_connections_of_its_own(postgres_store_url):
    with closing(open_store(postgres_store_url)) as store:
        with store.write(SCOPE) as tx:
            append(tx, 1, "parent-")
        child = os.fork()
        if child == 0:
            code = 1
            try:
                with store.write(SCOPE) as tx:
                    append(tx, 1, "child-")
                store.close()
                code = 0
            finally:
                os._exit(code)
        assert os.waitpid(child, 0)[1] == 0
        with store.write(SCOPE) as tx:
            append(tx, 1, "after-")
            assert tx.log.count() == 3


@pytest.mark.parametrize("leaves", ["by an error", "by the commit"])
def test_a_child_that_was_forked_within_a_transaction_can_not_end_it(postgres_store_url, leaves):
    """Else its ROLLBACK would undo what the parent is then told to be committed (I2)."""
    with closing(open_store(postgres_store_url)) as store:
        child = -1
        try:
            with store.write(SCOPE) as tx:
                append(tx)
                tx.log.count()
                child = os.fork()
                if child == 0 and leaves == "by an error":
                    raise RuntimeError(leaves)
                if child:
                    assert os.waitpid(child, 0)[1] == 0
        except (RuntimeError, OutcomeUnknownError):
            os._exit(0)
        finally:
            if child == 0:
                os._exit(1)
        with store.read(SCOPE) as tx:
            assert tx.log.count() == 1


def test_behind_a_pooler_that_mixes_sessions_up_no_other_statement_is_run(postgres_store_url):
    """Two clients prepared different statements; each gets the other's connection: that is an error."""
    stores = [open_store(f"{postgres_store_url}?pool=1") for _ in range(2)]
    with closing(stores[0]), closing(stores[1]):
        with stores[0].write(SCOPE) as tx:
            append(tx)
        with stores[1].read(SCOPE) as tx:
            tx.cases.all()
            tx.log.count()
        first, second = (store._pool._free[0].wire for store in stores)
        texts = {name: text for text, name in first._names.items()}
        assert all(texts.get(name, text) == text for text, name in second._names.items())
        first.connection, second.connection = second.connection, first.connection
        with pytest.raises(StoreUnavailableError, match="prepared statement") as refused, stores[1].read(SCOPE) as tx:
            tx.cases.all()
        assert "prepare=off" in refused.value.hint


def test_a_cut_off_process_leaves_no_lock(postgres_store_url):
    with closing(open_store(postgres_store_url)) as store, store.write(SCOPE) as tx:
        append(tx)
    child = os.fork()
    if child == 0:
        with open_store(postgres_store_url).write(SCOPE) as tx:
            append(tx)
            os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(child, 0)
    with closing(open_store(postgres_store_url)) as store, store.write(SCOPE) as tx:
        assert tx.log.count() == 1


def test_who_is_refused_at_the_door_is_told_why(postgres_store_url):
    """Libpq gives no SQLSTATE for a connection that was not made."""
    missing = f"{postgres_store_url}_missing"
    stranger = as_user(postgres_store_url, "nobody_of_that_name")
    for url, words, hint in (
        (missing, "no such database", "CREATE DATABASE"),
        (stranger, "refused the user", "pg_hba"),
    ):
        with pytest.raises(StoreUnavailableError, match=words) as refused:
            open_store(url)
        assert hint in refused.value.hint


def test_a_server_that_only_reads_is_told(postgres_url):
    """A failover: the connection is fine, and this server is not the one that writes."""
    open_store(postgres_url).close()
    with connected(postgres_url) as connection:
        name = sql.Identifier(urlsplit(postgres_url).path[1:])
        connection.execute(sql.SQL("ALTER DATABASE {} SET default_transaction_read_only = on").format(name))
    with closing(open_store(postgres_url)) as store:
        with store.read(SCOPE) as tx:
            assert tx.log.count() == 0
        with pytest.raises(StoreUnavailableError, match="only reads") as refused, store.write(SCOPE):
            pass
        assert "read-write" in refused.value.hint


def test_long_reads_come_in_pages(postgres_store_url):
    with closing(open_store(postgres_store_url)) as store:
        with store.write(SCOPE) as tx:
            append(tx, 1_500)
            assert [event.seq for event in tx.log.read(1, 10_000)] == list(range(1, 1_501))
        with store.read(SCOPE) as tx:
            reading = tx.log.read(1, 10_000)
            assert [next(reading).seq for _ in range(600)] == list(range(1, 601))
            assert tx.log.count() == 1_500  # another question in between
            assert [event.seq for event in reading] == list(range(601, 1_501))


def test_leases_and_expiry_are_judged_by_the_servers_clock(postgres_store_url):
    """DESIGN §5: however wrong the clock of a machine is, all of them see the same time."""
    with (
        closing(open_store(postgres_store_url)) as wrong,
        strandline.open(postgres_store_url) as db,
        connected(postgres_store_url) as c,
    ):
        told = c.execute("SELECT extract(epoch FROM clock_timestamp()) * 1000000").fetchone()[0]
        assert abs(wrong.clock.now_us() - told) < CLOCK_US
        assert db._clock is db.store.clock
    with strandline.open(postgres_store_url, clock=FixedClock(5)) as db:
        assert db._clock.now_us() == 5


@pytest.mark.parametrize("prepare", ["on", "off"])
def test_nothing_of_a_transaction_stays_on_its_connection(postgres_store_url, prepare):
    """A pooler gives it to somebody else: no role, no tenant, no timeout is left."""
    with closing(open_store(f"{postgres_store_url}?prepare={prepare}")) as store:
        with store.write(SCOPE) as tx:
            append(tx)
        connection = store._pool._free[-1].wire.connection
        row = connection.execute(
            "SELECT current_user, current_setting('strandline.tenant', true), current_setting('statement_timeout')"
        ).fetchone()
        assert row == ("postgres", "", "0")


# ------------------------------------------------------------------------------------------ families of forks


def rewind(store, workflow, branch, from_seq, through_seq):
    """Leave events behind, as a rewind does."""
    with store.write(Scope(tenant="acme", workflow=workflow)) as tx:
        tx.log.abandon(AbandonedRange(branch=branch, from_seq=from_seq, through_seq=through_seq))
        tx.log.set_head(replace(tx.log.head(), branch=branch))


def test_a_parent_that_is_rewound_while_a_fork_reads_it_is_not_taken_for_damaged(postgres_store_url):
    """I4, ADR 0038: it is read without its lock, each statement as of its own moment."""
    parent = Scope(tenant="acme", workflow="parent")
    with closing(open_store(postgres_store_url)) as store:
        with store.write(parent) as tx:
            append(tx, 9)
        rewind(store, "parent", 1, 9, 9)
        with store.write(Scope(tenant="acme", workflow="fork")) as tx:
            log = tx.relative("parent").log
            assert len(list(log.read(1, 9))) == 9
            rewind(store, "parent", 2, 7, 8)
            assert len(list(log.read(1, 9))) == 9


def test_a_mark_that_no_rewind_made_is_damage(postgres_store_url):
    """I4."""
    parent = Scope(tenant="acme", workflow="parent")
    with closing(open_store(postgres_store_url)) as store:
        with store.write(parent) as tx:
            append(tx, 3)
        with connected(postgres_store_url) as connection:
            connection.execute("UPDATE strandline.event SET abandoned_by = 5 WHERE seq = 2")
        with store.read(parent) as tx, pytest.raises(CorruptRecordError, match="mark"):
            list(tx.log.read(1, 3))


def test_who_locks_upward_waits_and_sees_what_the_other_did(postgres_store_url):
    """ADR 0038: a fork that takes its parent's lock waits for who holds it, and then reads what that one committed."""
    with closing(open_store(postgres_store_url)) as store, ThreadPoolExecutor(1) as pool:
        with store.write(Scope(tenant="acme", workflow="parent")) as tx:
            append(tx, 1, "first-")
        held = threading.Event()

        def count_from_fork():
            with store.write(Scope(tenant="acme", workflow="fork")) as tx:
                assert tx.relative("parent").log.head().revision == 1  # not locked: it does not wait
                held.set()
                return tx.relative("parent", locked=True).log.head().revision

        with store.write(Scope(tenant="acme", workflow="parent")) as tx:
            append(tx, 1, "second-")
            waiting = pool.submit(count_from_fork)
            assert held.wait(WAIT_S)
        assert waiting.result(WAIT_S) == 2


# ------------------------------------------------------------------------------------------ doctor


def checks_of(url):
    return {check.name: check for check in diagnose(url)}


def test_a_doctor_looks_at_server_roles_and_schema(postgres_store_url):
    with strandline.open(postgres_store_url) as db:
        db.tenant("acme").workflow("w").append(strandline.message("user", "hello"))
    checks = checks_of(postgres_store_url)
    failed = [name for name, check in checks.items() if check.status == "fail"]
    assert failed == ["durability"]  # the test's server gives it up, and is told so
    for name in (
        "server",
        "writes",
        "connections",
        "timeouts",
        "clock",
        "roles",
        "schema",
        "row security",
        "digest key",
    ):
        assert checks[name].status == "ok", checks[name]
    assert checks["content"].measured["events"] == 1


def test_a_doctor_tells_what_is_missing(postgres_url):
    assert checks_of(postgres_url)["schema"].status == "warn"
    assert checks_of("postgresql://dana:s3cret@127.0.0.1:1/memory")["server"].status == "fail"
    open_store(postgres_url).close()
    with connected(postgres_url) as connection:
        connection.execute("ALTER TABLE strandline.event NO FORCE ROW LEVEL SECURITY")
        connection.execute("ALTER TABLE strandline.event DISABLE TRIGGER event_is_never_changed")
    told = checks_of(postgres_url)["row security"]
    assert told.status == "fail"
    assert "event: row security" in told.value
    assert "event_is_never_changed" in told.value
    with closing(open_store(postgres_url)) as store:
        assert len(store.problems()) == 2
        with connected(postgres_url) as connection:
            connection.execute("DROP TRIGGER entries_are_never_truncated ON strandline.lineage")
        assert "table lineage: trigger entries_are_never_truncated is missing" in store.problems()


# ------------------------------------------------------------------------------------------ texts


def test_a_nul_goes_all_the_way_or_is_refused_before_the_server_is_asked(postgres_store_url):
    """C3: bodies hold it; what PostgreSQL keeps as text never does."""
    with strandline.open(postgres_store_url) as db:
        wf = db.tenant("acme").workflow("w")
        wf.append([strandline.message("user", "n\0ul job-17"), strandline.tool_call("c1", "f", {"p": "a\0b"})])
        assert wf.events()[0].text == "n\0ul job-17"
        for refused in (
            lambda: wf.append(strandline.message("user", "x", key="k\0")),
            lambda: wf.append(strandline.constraint("x\0", "never")),
            lambda: wf.append(strandline.tool_call("c\0", "f", {})),
            lambda: wf.effect("e\0", "f", {}, run=lambda: 1),
            lambda: db.tenant("a\0").workflow("w"),
            lambda: wf.checkpoint(state={}, turn=1, context_free=True, name="n\0"),
        ):
            with pytest.raises((strandline.InvalidInputError, strandline.TenantScopeError)):
                refused()
        assert wf.recall("job-17")[0].text == "n\0ul job-17"
        assert db.verify().ok


def test_a_failure_that_holds_a_nul_is_kept(postgres_store_url):
    """C14: what a summarizer says is untrusted."""

    def broken(request):
        raise strandline.MalformedDraftError("no \0 and \ud800")

    with strandline.open(postgres_store_url) as db:
        wf = db.tenant("acme").workflow("w")
        wf.append([strandline.message("user", f"job-{n} " + "words " * 200) for n in range(40)])
        assert wf.compact(budget=1_000, summarizer=broken).outcome != "activated"
        assert wf.compact(budget=1_000).outcome == "activated"
        assert db.verify().ok
