"""Law (C33, I21, I22): the official client gets the same tools on stdin and over HTTP, whichever revision of the
protocol it speaks; without a token, or with another tenant's, nothing is told; what is too large or damaged harms
nobody else.
"""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from pathlib import Path
from threading import Event, Semaphore
from typing import Any
from urllib.parse import urlsplit

import httpx2
import pytest
from mcp import Client, MCPError, StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client

import strandline
from strandline.integrations.mcp import Access, TokenFile, http_app
from strandline.integrations.mcp.server import make_server
from strandline.integrations.mcp.serving import is_loopback
from strandline.integrations.mcp.tools import TOOLS
from strandline.limits import MCP_ARGUMENTS_BYTES_MAX, MCP_CALLS_MAX, MCP_CALLS_PER_TENANT_MAX, MCP_REQUEST_BYTES_MAX

ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith("STRANDLINE_")}
MODES = ["auto", "legacy"]
PATIENCE_S = 300


@asynccontextmanager
async def on_stdin(folder: Path, *options: str, mode: str = "auto") -> AsyncIterator[Client]:
    """A client of a server that it started."""
    words = ["-m", "strandline", "mcp", *options]
    parameters = StdioServerParameters(command=sys.executable, args=words, env=ENVIRONMENT, cwd=folder)
    async with Client(stdio_client(parameters), mode=mode) as client:
        yield client


@asynccontextmanager
async def over_http(url: str, token: str | None = None, *, mode: str = "auto") -> AsyncIterator[Client]:
    """A client of a server that listens."""
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=PATIENCE_S) as http_client,
        Client(streamable_http_client(url, http_client=http_client), mode=mode) as client,
    ):
        yield client


@contextmanager
def listening(folder: Path, *options: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """The URL of a server over HTTP, and its process."""
    words = [sys.executable, "-m", "strandline", "mcp", "--http", "--port", "0", *options]
    with subprocess.Popen(words, cwd=folder, env=ENVIRONMENT, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            line = process.stderr.readline()
            found = re.search(r"http://\S+", line)
            assert found, line + process.stderr.read()
            yield found[0], process
        finally:
            process.terminate()
            process.wait(PATIENCE_S)


async def ask(client: Client, name: str, **arguments: object) -> dict[str, Any]:
    """Return what a tool answers; the client has checked it by the tool's schema."""
    result = await client.call_tool(name, arguments)
    assert not result.is_error, result
    assert json.loads(result.content[0].text) == result.structured_content
    return result.structured_content


async def refused(client: Client, name: str, **arguments: object) -> dict[str, Any]:
    """Return the error of a call that is refused."""
    result = await client.call_tool(name, arguments)
    assert result.is_error, result
    return result.structured_content["error"]


async def use(client: Client) -> None:
    """Use every tool once, as an agent does."""
    tools = (await client.list_tools()).tools
    assert [tool.name for tool in tools] == list(TOOLS)
    assert all(tool.input_schema["type"] == "object" and tool.output_schema for tool in tools)
    assert [tool.name for tool in tools if not tool.annotations.read_only_hint] == [
        "append_event",
        "request_compaction",
    ]
    appended = await ask(client, "append_event", kind="artifact", subject="bucket", handle="bucket-7f3a", key="a1")
    assert appended["subject"].endswith("/bucket")
    again = await ask(client, "append_event", kind="artifact", subject="bucket", handle="bucket-7f3a", key="a1")
    assert (again["seq"], again["added"]) == (appended["seq"], False)
    assert "bucket-7f3a" in (await ask(client, "read_context", needs=["bucket-7f3a"]))["text"]
    (hit,) = (await ask(client, "find_reference", ref="bucket-7f3a"))["hits"]
    assert (await ask(client, "get_event", seq=hit["seq"]))["references"] == ["bucket-7f3a"]
    needs = [{"kind": "approved", "subject": "review"}]
    ready = await ask(client, "check_ready", action="publish", needs=needs)
    assert (ready["ready"], ready["reasons"]) == (False, ["'review' is not approved"])
    assert (await ask(client, "request_compaction"))["state"] == "due"
    assert (await ask(client, "status"))["state"]["compaction"]["state"] in ("due", "settled")
    assert (await ask(client, "list_cases"))["cases"] == []
    for verb in ("approve", "accept", "activate", "revert", "erase", "reconcile", "rewind"):
        with pytest.raises(MCPError, match=f"no tool is called '{verb}'"):
            await client.call_tool(verb, {})


# ---------------------------------------------------------------------------------------------- in this process


@pytest.mark.parametrize("mode", MODES)
def test_the_tools_in_one_process(mode: str) -> None:
    async def run() -> None:
        with strandline.open(":memory:") as db:
            server = make_server(db, lambda: Access(tenant="acme", workflows=["release-42"]))
            async with Client(server, mode=mode) as client:
                await use(client)

    asyncio.run(run())


def test_too_many_calls_of_a_tenant_are_refused_none_is_lost_and_others_get_their_turn() -> None:
    whose = ContextVar[str]("whose")

    async def run() -> None:
        with strandline.open(":memory:") as db:
            server = make_server(db, lambda: Access(tenant=whose.get(), workflows=["release-42"]))
            whose.set("acme")
            most = MCP_CALLS_PER_TENANT_MAX
            async with Client(server) as client:
                calls = [client.call_tool("append_event", {"kind": "note", "text": f"{n}"}) for n in range(most + 50)]
                flood = asyncio.gather(*calls)
                await asyncio.sleep(0)
                whose.set("other")
                assert (await ask(client, "status"))["tenant"] == "other"
                results = await flood
                done = [result for result in results if not result.is_error]
                busy = [result.structured_content["error"]["type"] for result in results if result.is_error]
                assert set(busy) == {"ServerBusyError"}
                assert most <= len(done) < most + 50
                workflow = db.tenant("acme").workflow("release-42")
                assert {result.structured_content["seq"] for result in done} == set(range(1, len(done) + 1))
                assert workflow.basis().revision == len(done)
                whose.set("acme")
                await ask(client, "status")

    asyncio.run(run())


def test_who_goes_away_has_a_thread_until_the_call_has_settled(monkeypatch: pytest.MonkeyPatch) -> None:
    begun, ended, go_on = Semaphore(0), Semaphore(0), Event()
    append = strandline.Workflow.append

    def slow(self: strandline.Workflow, *given: Any, **more: Any) -> strandline.Appended:
        begun.release()
        assert go_on.wait(PATIENCE_S)
        try:
            return append(self, *given, **more)
        finally:
            ended.release()

    monkeypatch.setattr(strandline.Workflow, "append", slow)

    async def run() -> None:
        with strandline.open(":memory:") as db:
            server = make_server(db, lambda: Access(tenant="acme", workflows=["release-42"]))
            async with Client(server) as client:

                def note(text: str) -> asyncio.Future[Any]:
                    return asyncio.ensure_future(client.call_tool("append_event", {"kind": "note", "text": text}))

                running = [note(f"runs {n}") for n in range(MCP_CALLS_MAX)]
                for _ in running:
                    assert await asyncio.to_thread(begun.acquire, timeout=PATIENCE_S)
                waiting = [note("waits") for _ in range(3)]
                await asyncio.sleep(0)
                for call in (*running, *waiting):
                    call.cancel()
                await asyncio.gather(*running, *waiting, return_exceptions=True)
                last = note("last")
                assert not await asyncio.to_thread(begun.acquire, timeout=0.2)  # no thread is free
                go_on.set()
                assert not (await last).is_error
                for _ in (*running, last):  # the last one had the first thread that was free
                    assert await asyncio.to_thread(ended.acquire, timeout=PATIENCE_S)
                texts = sorted(event.text for event in db.tenant("acme").workflow("release-42").events())
                assert texts == ["last", *(f"runs {n}" for n in range(MCP_CALLS_MAX))]

    asyncio.run(run())


def test_a_fault_of_the_server_is_logged_and_not_told(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("the password is hunter2")

    async def run() -> None:
        with strandline.open(":memory:") as db:
            server = make_server(db, lambda: Access(tenant="acme", workflows=["release-42"]))
            async with Client(server) as client:
                monkeypatch.setattr(strandline.Workflow, "context", fail)
                told = await refused(client, "read_context")
                assert told["type"] == "ServerFaultError"
                assert "hunter2" not in json.dumps(told)

    asyncio.run(run())
    assert "hunter2" in caplog.text


# ---------------------------------------------------------------------------------------------- on stdin


@pytest.mark.parametrize("mode", ["auto", pytest.param("legacy", marks=pytest.mark.long)])
def test_the_tools_on_stdin(tmp_path: Path, mode: str) -> None:
    async def run() -> None:
        options = ("--store", "agent.db", "--tenant", "acme", "--workflow", "release-42", "--actor", "desk")
        async with on_stdin(tmp_path, *options, mode=mode) as client:
            await use(client)
        async with on_stdin(tmp_path, *options, mode=mode) as client:  # it ended, and what was appended stands
            assert (await ask(client, "status"))["state"]["revision"] == 1

    asyncio.run(run())
    with strandline.open(tmp_path / "agent.db", create=False) as db:
        (event,) = db.tenant("acme").workflow("release-42").events()
        assert (event.actor, event.subject) == ("desk", "desk/bucket")
        assert db.verify().ok


@pytest.mark.long
def test_a_worker_beside_the_server_compacts_what_is_asked_for(tmp_path: Path) -> None:
    with strandline.open(tmp_path / "strandline.db") as db:
        notes = [strandline.note(f"Step {n} is done, see logs/run-{n}.txt") for n in range(300)]
        db.tenant("default").workflow("release-42").append(notes)

    async def run() -> None:
        async with on_stdin(tmp_path, "--workflow", "release-42", "--worker") as client:
            await ask(client, "request_compaction", budget=1_000)
            for _ in range(PATIENCE_S * 10):
                state = (await ask(client, "status"))["state"]
                if state["compaction"]["state"] == "settled":
                    break
                await asyncio.sleep(0.1)
            assert (state["compaction"]["outcome"], state["generation"]) == ("activated", 1)

    asyncio.run(run())


def test_a_hostile_caller_on_stdin_gets_typed_refusals_and_harms_nothing(tmp_path: Path) -> None:
    with strandline.open(tmp_path / "strandline.db") as db:
        db.tenant("other").workflow("release-42").append(strandline.note("secret-other-1"))
        db.tenant("default").workflow("release-43").append(strandline.note("secret-43-1"))

    async def run() -> None:
        async with on_stdin(tmp_path, "--workflow", "release-42") as client:
            for arguments in ({"tenant": "other"}, {"view": "main"}, {"workflow": "release-43"}, {"workflow": "../x"}):
                told = await refused(client, "read_context", **arguments)
                assert told["type"] in ("InvalidInputError", "TenantScopeError")
            for kind in ("approval", "revoke", "lift_constraint", "resolve", "constraint", "release_artifact", "unpin"):
                told = await refused(client, "append_event", kind=kind, subject="review", text="Go.")
                assert "people or programs" in told["hint"]
            huge = await refused(client, "append_event", kind="note", text="x" * (5 * MCP_ARGUMENTS_BYTES_MAX))
            assert "MCP_ARGUMENTS_BYTES_MAX" in huge["message"]
            assert (await ask(client, "find_reference", ref="secret-other-1"))["hits"] == []
            assert (await ask(client, "status"))["workflows"] == ["release-42"]
            assert (await ask(client, "status"))["state"]["revision"] == 0

    asyncio.run(run())


@pytest.mark.long
def test_lines_that_are_no_messages_do_not_end_the_server(tmp_path: Path) -> None:
    lines = [
        b"garbage\n",
        b"{}\n",
        b"[]\n",
        b"\xff\xfe\x00\n",
        b'{"jsonrpc": "2.0", "id": 1}\n',
        b"1e999\n",
        b"[" * 100_000 + b"\n",
    ]
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
    lines += [json.dumps({"jsonrpc": "2.0", "id": 7, "method": "initialize", "params": hello}).encode() + b"\n"]
    words = [sys.executable, "-m", "strandline", "mcp", "--workflow", "release-42"]
    done = subprocess.run(
        words, cwd=tmp_path, env=ENVIRONMENT, input=b"".join(lines), capture_output=True, timeout=PATIENCE_S, check=True
    )
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert answers[-1]["result"]["serverInfo"]["name"] == "strandline"


@pytest.mark.long
def test_ctrl_c_ends_a_server_that_waits_on_stdin(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "strandline", "mcp", "--workflow", "release-42"]
    with subprocess.Popen(
        words, cwd=tmp_path, env=ENVIRONMENT, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b'{"jsonrpc": "2.0", "id": 1, "method": "ping"}\n')
        process.stdin.flush()
        assert process.stdout.readline()
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE_S) == -signal.SIGINT


# ---------------------------------------------------------------------------------------------- over HTTP


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("mcp")


@pytest.fixture(scope="module")
def tokens(folder: Path) -> TokenFile:
    return TokenFile(folder / "tokens.json")


@pytest.fixture(scope="module")
def ana(tokens: TokenFile) -> str:
    return tokens.add("ana", tenant="acme", workflows=["release-42"])


@pytest.fixture(scope="module")
def url(folder: Path, ana: str) -> Iterator[str]:
    """A server with tokens, that listens everywhere."""
    with listening(folder, "--host", "0.0.0.0", "--tokens", "tokens.json") as (found, _):
        yield found.replace("0.0.0.0", "127.0.0.1")


@pytest.mark.parametrize("mode", MODES)
def test_the_tools_over_http(url: str, tokens: TokenFile, mode: str) -> None:
    token = tokens.add(f"reader-{mode}", tenant="acme", workflows=[f"release-{mode}"])

    async def run() -> None:
        async with over_http(url, token, mode=mode) as client:
            await use(client)
            assert (await ask(client, "status"))["actor"] == f"reader-{mode}"

    asyncio.run(run())


def test_each_token_reaches_its_own_tenant(url: str, tokens: TokenFile, ana: str) -> None:
    bob = tokens.add("bob", tenant="other")

    async def run() -> None:
        async with over_http(url, bob) as other:
            await ask(other, "append_event", workflow="release-42", kind="note", text="secret-other-1")
        async with over_http(url, ana) as client:
            assert (await ask(client, "find_reference", ref="secret-other-1"))["hits"] == []
            assert "unknown field `tenant`" in (await refused(client, "status", tenant="other"))["message"]
            assert (await ask(client, "status"))["tenant"] == "acme"
        async with over_http(url, bob) as other:
            assert (await ask(other, "status"))["workflows"] == ["release-42"]
            assert len((await ask(other, "find_reference", workflow="release-42", ref="secret-other-1"))["hits"]) == 1

    asyncio.run(run())


def test_many_clients_at_once_are_not_mixed_up(url: str, tokens: TokenFile) -> None:
    names = [f"crew-{n}" for n in range(6)]
    made = {name: tokens.add(name, tenant=name) for name in names}

    async def work(name: str) -> None:
        async with over_http(url, made[name]) as client:
            for n in range(10):
                await ask(client, "append_event", workflow="w", kind="note", text=f"secret-{name}-{n}")
            told = await ask(client, "status")
            assert (told["tenant"], told["actor"]) == (name, name)
            text = (await ask(client, "read_context", workflow="w"))["text"]
            assert {line.removeprefix("[note] ") for line in text.split("\n\n")} == {
                f"secret-{name}-{n}" for n in range(10)
            }

    async def run() -> None:
        await asyncio.gather(*map(work, names))

    asyncio.run(run())


def post(url: str, body: bytes | Iterator[bytes], *, method: str = "POST", **headers: str) -> tuple[int, bytes]:
    """Send a request as it stands, and return status and body of the answer."""
    place = urlsplit(url)
    connection = http.client.HTTPConnection(place.hostname or "", place.port, timeout=PATIENCE_S)
    sent = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
    sent |= {name.replace("_", "-"): value for name, value in headers.items()}
    try:
        connection.request(method, place.path, body=body, headers=sent)
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


LIST = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}).encode()


@pytest.mark.parametrize("header", [None, "", "Bearer", "Bearer ", "Bearer sl_wrong", "Basic YTpi", "Bearer \xff\xfe"])
def test_without_a_token_nothing_is_told(url: str, header: str | None) -> None:
    status, body = post(url, LIST, **({} if header is None else {"authorization": header}))
    assert status == 401
    assert b"append_event" not in body
    assert json.loads(body)["error"] == "invalid_token"


def test_a_token_that_is_revoked_lets_nobody_in(url: str, tokens: TokenFile) -> None:
    token = tokens.add("carl", tenant="acme")
    assert post(url, LIST, authorization=f"Bearer {token}")[0] == 200
    tokens.revoke("carl")
    assert post(url, LIST, authorization=f"Bearer {token}")[0] == 401


def test_a_damaged_token_file_lets_nobody_in_until_it_is_mended(url: str, folder: Path, ana: str) -> None:
    text = (folder / "tokens.json").read_text()
    (folder / "tokens.json").write_text(text[:-9])
    assert post(url, LIST, authorization=f"Bearer {ana}")[0] == 401
    (folder / "tokens.json").write_text(text)
    assert post(url, LIST, authorization=f"Bearer {ana}")[0] == 200


def test_bodies_that_are_too_large_or_no_messages_are_refused_and_the_server_goes_on(url: str, ana: str) -> None:
    bearer = f"Bearer {ana}"
    assert post(url, b"", authorization=bearer, content_length=f"{MCP_REQUEST_BYTES_MAX + 1}")[0] == 413  # not read
    pieces = iter([b" " * MCP_REQUEST_BYTES_MAX, b" "])
    assert post(url, pieces, authorization=bearer)[0] == 413
    for body in (b"", b"garbage", b"[]", b"\xff", b"{}", b"[" * 100_000, b"1" * 10_000):
        status, _ = post(url, body, authorization=bearer)
        assert 400 <= status < 500, body[:20]
    assert post(url, LIST, authorization=bearer, content_type="text/plain")[0] == 400
    for method in ("GET", "DELETE", "PUT", "OPTIONS"):
        assert post(url, b"", authorization=bearer, method=method)[0] == 405
    assert post(url, LIST, authorization=bearer)[0] == 200


def test_a_hostile_caller_over_http_gets_typed_refusals(url: str, ana: str) -> None:
    async def run() -> None:
        async with over_http(url, ana) as client:
            for kind in ("approval", "revoke", "lift_constraint", "resolve", "constraint"):
                told = await refused(client, "append_event", kind=kind, subject="review", text="Go.", granter="ana")
                assert told["type"] == "InvalidInputError"
            huge = await refused(client, "append_event", kind="note", text="x" * MCP_ARGUMENTS_BYTES_MAX)
            assert "MCP_ARGUMENTS_BYTES_MAX" in huge["message"]
            assert (await refused(client, "status", workflow="release-43"))["type"] == "TenantScopeError"

    asyncio.run(run())


def test_without_tokens_it_serves_this_machine_alone_and_no_web_page(tmp_path: Path) -> None:
    with listening(tmp_path, "--tenant", "acme", "--workflow", "release-42") as (found, process):
        assert found.startswith("http://127.0.0.1:")

        async def run() -> None:
            async with over_http(found) as client:
                await use(client)

        asyncio.run(run())
        assert post(found, LIST, host="evil.example")[0] == 421
        assert post(found, LIST, origin="http://evil.example")[0] == 403
        process.terminate()
        assert process.wait(PATIENCE_S) == 0


def test_beyond_this_machine_it_needs_tokens() -> None:
    access = Access(tenant="acme")
    with strandline.open(":memory:") as db:
        for host in ("0.0.0.0", "::", "192.0.2.1", "example.org", "127.0.0.1.example.org", "", "::ffff:8.8.8.8"):
            assert not is_loopback(host)
            with pytest.raises(strandline.InvalidInputError, match="without tokens") as caught:
                http_app(db, access, host=host)
            assert "strandline mcp token" in caught.value.hint
        for host in ("127.0.0.1", "127.8.8.8", "::1", "localhost"):
            assert http_app(db, access, host=host)
