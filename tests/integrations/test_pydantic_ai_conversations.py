"""Law (C37, I3): a conversation store on the log keeps each message once, refuses a stale writer, deletes nothing, and
leaves the conversation as it was wherever it is cut off.

Checked against the framework's own store, which keeps everything in memory: both do the same, and give the same back.
"""

import asyncio
import dataclasses

import pytest

import strandline
from strandline.integrations.agent_memory import AgentMemory

pydantic_ai = pytest.importorskip("pydantic_ai")

from pydantic_ai import Agent  # noqa: E402
from pydantic_ai.conversation import Conversation  # noqa: E402
from pydantic_ai.conversation_store import (  # noqa: E402
    ConversationConflict,
    ConversationEntry,
    ConversationRecord,
    InMemoryConversationStore,
)
from pydantic_ai.messages import (  # noqa: E402
    BinaryContent,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.function import FunctionModel  # noqa: E402
from pydantic_ai.tools import DeferredToolRequests, DeferredToolResults  # noqa: E402

from strandline.integrations.pydantic_ai import StrandlineConversationStore, StrandlineMemory  # noqa: E402


@pytest.fixture
def tenant(tmp_path):
    with strandline.open(tmp_path / "agent.db") as db:
        yield db.tenant("acme")
        assert db.verify().problems == ()


@pytest.fixture
def store(tenant):
    return StrandlineConversationStore(tenant)


def scripted(*turns):
    left = list(turns)

    def answer(messages, info):
        said = left.pop(0)
        return ModelResponse(parts=said if isinstance(said, list) else [TextPart(said)])

    return FunctionModel(answer)


def ask(text: str) -> ModelRequest:
    return ModelRequest(parts=[UserPromptPart(text)])


def tell(text: str) -> ModelResponse:
    return ModelResponse(parts=[TextPart(text)])


def texts(conversation) -> list[str]:
    return [part.content for message in conversation.messages for part in message.parts]


def live(wf) -> list[str]:
    return [event.text for event in wf.events() if not event.abandoned and event.kind.value != "thinking"]


async def two_turns(store) -> Conversation:
    conversation = Conversation(conversation_id="c", messages=[ask("a"), tell("1")])
    await store.save(conversation, scope="ada")
    conversation.messages = [*conversation.messages, ask("b"), tell("2")]
    await store.save(conversation)
    return conversation


# ---------------------------------------------------------------------------------------------- save and load


def test_a_conversation_comes_back(store, tenant):
    async def go():
        agent = Agent(scripted("Hello Ada.", "You are Ada."))
        first = await agent.run("I am Ada.")
        await store.save(first, scope="ada")
        again = await store.load(first.conversation.conversation_id, scope="ada")
        assert again.messages == first.all_messages()
        assert again.usage == first.conversation.usage
        second = await agent.run("Who am I?", conversation=again)
        entries = await store.save(second)
        assert len(entries) == 2
        assert await store.load("no such") is None
        assert await store.load(again.conversation_id, scope="bob") is None
        return second

    second = asyncio.run(go())
    loaded = asyncio.run(StrandlineConversationStore(tenant).load(second.conversation.conversation_id))
    assert loaded.messages == second.all_messages()
    wf = tenant.workflow(second.conversation.conversation_id)
    assert live(wf) == ["I am Ada.", "Hello Ada.", "Who am I?", "You are Ada."]


def test_all_kinds_of_messages_come_back(store):
    messages = [
        ModelRequest(parts=[UserPromptPart(["See", BinaryContent(b"\x00\x01", media_type="image/png")])]),
        ModelResponse(parts=[ThinkingPart("", signature="s"), TextPart(""), ToolCallPart("look", '{"n": 1}', "c1")]),
        ModelRequest(parts=[ToolReturnPart("look", {"n": [1, None]}, tool_call_id="c1"), UserPromptPart("And?")]),
        ModelResponse(parts=[]),
        ModelResponse(parts=[TextPart("ä\u2028\u0000😀")]),
    ]

    async def go():
        await store.save(Conversation(conversation_id="c", messages=messages))
        return (await store.load("c")).messages

    dump = ModelMessagesTypeAdapter.dump_json
    assert dump(asyncio.run(go())) == dump(messages)


@pytest.mark.parametrize("limit", [0, 1, 3, 99])
def test_only_the_end_is_loaded(store, tenant, limit):
    async def go():
        conversation = await two_turns(store)
        window = await store.load("c", limit=limit)
        assert window.messages == conversation.messages[-limit:] if limit else window.messages == []
        window.messages = [*window.messages, ask("c")]
        await store.save(window)
        return await store.load("c")

    assert texts(asyncio.run(go())) == ["a", "1", "b", "2", "c"]


def test_a_paused_conversation_goes_on(store, tenant):
    """The requests that a run waits on travel with the record."""
    runs = []
    wf = tenant.workflow("c")

    def make():
        model = scripted([ToolCallPart("publish", {"v": "1"}, "call_1")])
        if runs or wf.effects():
            model = scripted("Out.")
        memory = StrandlineMemory(AgentMemory(wf, budget=4_000))
        agent = Agent(model, output_type=[str, DeferredToolRequests], capabilities=[memory])

        @agent.tool_plain(requires_approval=True)
        def publish(v: str) -> str:
            runs.append(v)
            return "published"

        return agent

    async def go():
        await store.save(await make().run("Publish.", conversation_id="c"))
        for _ in range(2):  # the process died before the second save
            paused = await store.load("c")
            assert [call.tool_call_id for call in paused.deferred_tool_requests.approvals] == ["call_1"]
            runs.append("go")
            answers = DeferredToolResults(approvals={"call_1": True})
            done = await make().run(conversation=paused, deferred_tool_results=answers)
        await store.save(done)
        return await store.load("c")

    loaded = asyncio.run(go())
    assert runs == ["go", "1", "go"]
    assert loaded.deferred_tool_requests is None
    assert len(loaded.messages) == 4


def test_with_the_memory_no_message_stands_twice(store, tenant):
    wf = tenant.workflow("c")
    agent = Agent(
        scripted([TextPart("Wait."), ToolCallPart("make", {"name": "7f3a"}, "call_1")], "Made.", "Yes."),
        capabilities=[StrandlineMemory(AgentMemory(wf, budget=4_000))],
    )

    @agent.tool_plain
    def make(name: str) -> str:
        return f"bucket-{name}"

    async def go():
        await store.save(await agent.run("Make one.", conversation_id="c"))
        loaded = await store.load("c")
        await store.save(await agent.run("Is it there?", conversation=loaded))
        return await store.load("c")

    loaded = asyncio.run(go())
    assert len(loaded.messages) == 6
    assert live(wf) == ["Make one.", 'make {"name": "7f3a"}', "bucket-7f3a", "Wait.", "Made.", "Is it there?", "Yes."]


# ---------------------------------------------------------------------------------------------- revisions


def test_a_stale_writer_is_refused(store):
    """I3: the second of two that loaded the same revision; nothing of it is stored."""

    async def go():
        await two_turns(store)
        one, other = await store.load("c"), await store.load("c")
        one.messages = [*one.messages, ask("one")]
        other.messages = [*other.messages, ask("other")]
        await store.save(one)
        with pytest.raises(ConversationConflict):
            await store.save(other)
        with pytest.raises(ConversationConflict):
            await store.save(Conversation(conversation_id="c", messages=[ask("x")]))
        with pytest.raises(ConversationConflict):
            await store.branch("c", at=1, expected_revision="no such")
        with pytest.raises(ConversationConflict):
            await store.delete_record("c", expected_revision="no such")
        return await store.load("c")

    assert texts(asyncio.run(go())) == ["a", "1", "b", "2", "one"]


def test_of_many_that_save_at_once_one_wins(tenant):
    async def one(n):
        store = StrandlineConversationStore(tenant)
        loaded = await store.load("c")
        loaded.messages = [*loaded.messages, ask(f"w{n}")]
        try:
            await store.save(loaded)
        except ConversationConflict:
            return 0
        return 1

    async def go():
        await two_turns(StrandlineConversationStore(tenant))
        won = sum(await asyncio.gather(*(one(n) for n in range(6))))
        return won, await StrandlineConversationStore(tenant).load("c")

    won, loaded = asyncio.run(go())
    assert won == len(loaded.messages) - 4 >= 1


def test_what_stands_beside_the_conversation_makes_no_conflict(store, tenant):
    async def go():
        await two_turns(store)
        loaded = await store.load("c")
        tenant.workflow("c").append(strandline.constraint("db", "Stay off production."))
        loaded.messages = [*loaded.messages, ask("c")]
        await store.save(loaded)
        return await store.load("c")

    assert texts(asyncio.run(go()))[-1] == "c"


def test_a_head_that_nobody_stored_is_refused(store):
    record = ConversationRecord(conversation_id="c", head_id="no such")
    with pytest.raises(ConversationConflict):
        asyncio.run(store.write_record(record, expected_revision=None))
    entry = ConversationEntry(parent_id="no such", message=ask("a"))
    record = ConversationRecord(conversation_id="c", head_id=entry.id)
    with pytest.raises(ConversationConflict):
        asyncio.run(store.write_record(record, new_entries=[entry], expected_revision=None))
    with pytest.raises(LookupError):
        asyncio.run(store.read_entry("no such"))


# ---------------------------------------------------------------------------------------------- branches and forks


async def wander(store) -> list[object]:
    """Branch, rewrite, go back, fork and delete, and tell what is there after each step."""
    seen: list[object] = []

    async def look(conversation_id="c"):
        loaded = await store.load(conversation_id)
        record = await store.read_record(conversation_id)
        seen.append(None if loaded is None else (texts(loaded), len(record.branches), record.scope))

    conversation = await two_turns(store)
    await look()
    tip = (await store.read_record("c")).head_id
    branched = await store.branch("c", at=2, expected_revision=conversation.revision)
    await look()
    branched.messages = [*branched.messages, ask("B"), tell("II")]
    await store.save(branched)
    await look()
    back = await store.branch("c", from_entry=tip, expected_revision=branched.revision)
    await look()
    back.messages = [*back.messages, ask("c")]
    await store.save(back)
    await look()
    rewritten = Conversation(conversation_id="c", messages=[ask("new"), tell("x")], revision=back.revision)
    await store.save(rewritten)
    await look()
    fork = await store.fork("c", at=1, new_conversation_id="f")
    fork.messages = [*fork.messages, tell("forked")]
    await store.save(fork)
    await look("f")
    await store.fork("c", from_entry=tip, new_conversation_id="g")
    await look("g")
    await store.fork("f", new_conversation_id="h")
    await look("h")
    seen.append(sorted(record.conversation_id for record in await store.list_conversations()))
    await store.delete("c")
    await look()
    await look("f")
    await look("g")
    await store.save(Conversation(conversation_id="c", messages=[ask("again")]))
    await look()
    seen.append([record.conversation_id for record in await store.list_conversations(scope="ada", limit=1)])
    return seen


def test_it_does_what_the_frameworks_own_store_does(store):
    assert asyncio.run(wander(store)) == asyncio.run(wander(InMemoryConversationStore()))


def test_the_log_follows_the_branch_and_keeps_facts(store, tenant):
    """The memory of the agent is that of the branch: what was left stands in no context, and rules go on to hold."""
    wf = tenant.workflow("c")

    async def go():
        conversation = await two_turns(store)
        wf.append(strandline.constraint("db", "Stay off production."))
        tip = (await store.read_record("c")).head_id
        branched = await store.branch("c", at=2, expected_revision=conversation.revision)
        assert live(wf) == ["a", "1", "Stay off production."]
        await store.branch("c", from_entry=tip, expected_revision=branched.revision)

    asyncio.run(go())
    assert live(wf) == ["a", "1", "Stay off production.", "b", "2"]
    assert {event.text for event in wf.events()} >= {"a", "1", "b", "2"}


def test_a_fork_shares_the_ledger(store, tenant):
    """C22: what its parent did is not done again in the fork."""

    async def go():
        await two_turns(store)
        tenant.workflow("c").effect("call_1", "publish", {}, run=lambda: "out")
        await store.fork("c", new_conversation_id="f")

    asyncio.run(go())
    assert tenant.workflow("f").effect("call_1", "publish", {}, run=lambda: pytest.fail("it ran")).result == "out"


def test_cut_off_between_the_rewind_and_the_record(store, tenant, monkeypatch):
    """The conversation is as it was before, and the next save brings the log after it."""
    wf = tenant.workflow("c")
    append = type(wf).append

    async def go():
        conversation = await two_turns(store)
        monkeypatch.setattr(type(wf), "append", lambda *_, **__: (_ for _ in ()).throw(ConnectionError("died")))
        with pytest.raises(ConnectionError):
            await store.branch("c", at=2, expected_revision=conversation.revision)
        monkeypatch.setattr(type(wf), "append", append)
        assert live(wf) == ["a", "1"]
        loaded = await store.load("c")
        assert texts(loaded) == ["a", "1", "b", "2"]
        loaded.messages = [*loaded.messages, ask("c")]
        await store.save(loaded)
        return await store.load("c")

    assert texts(asyncio.run(go())) == ["a", "1", "b", "2", "c"]
    assert live(wf) == ["a", "1", "b", "2", "c"]


def test_cut_off_between_the_fork_and_its_record(store, tenant, monkeypatch):
    wf = tenant.workflow("c")
    append = type(wf).append

    async def go():
        await two_turns(store)
        monkeypatch.setattr(type(wf), "append", lambda *_, **__: (_ for _ in ()).throw(ConnectionError("died")))
        with pytest.raises(ConnectionError):
            await store.fork("c", new_conversation_id="f")
        monkeypatch.setattr(type(wf), "append", append)
        assert await store.load("f") is None
        await store.fork("c", new_conversation_id="f")
        return await store.load("f")

    assert texts(asyncio.run(go())) == ["a", "1", "b", "2"]


def test_an_erased_message_says_so(store, tenant):
    wf = tenant.workflow("c")
    asyncio.run(two_turns(store))
    wf.erase(refs=["b"], by="ada", why="asked for")
    assert texts(asyncio.run(store.load("c"))) == ["a", "1", "[erased]", "2"]


def test_a_record_that_was_changed_is_an_error(store, tenant):
    """I4: never an older one instead."""
    asyncio.run(two_turns(store))
    wf = tenant.workflow("c")
    last = wf.events()[-1]
    events = type(wf).events

    def torn(self, *at):
        return [
            e._replace(origin=e.origin.replace('"head_id"', '"haed_id"')) if e.seq == last.seq else e
            for e in events(self, *at)
        ]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(wf), "events", torn)
        with pytest.raises(strandline.CorruptRecordError, match=f"event {last.seq}"):
            asyncio.run(store.load("c"))


def test_another_tenant_has_none_of_it(store, tenant):
    asyncio.run(two_turns(store))
    other = StrandlineConversationStore(tenant._db.tenant("globex"))
    assert asyncio.run(other.load("c")) is None
    assert asyncio.run(other.list_conversations()) == []
    head = asyncio.run(store.read_record("c")).head_id
    with pytest.raises(LookupError):
        asyncio.run(other.read_entry(head))
    assert asyncio.run(StrandlineConversationStore(tenant).read_entry(head)).message.parts[0].content == "2"


def test_records_are_those_that_were_written(store):
    record = ConversationRecord(conversation_id="c", head_id=None, scope="ada", branches=[])
    asyncio.run(store.write_record(record, expected_revision=None))
    assert dataclasses.asdict(asyncio.run(store.read_record("c"))) == dataclasses.asdict(record)
