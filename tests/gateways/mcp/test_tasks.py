"""Tasks of servers, relayed: a client sees through the gateway what it sees directly, under ids of its own."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import mcp_types as types
import pytest
from mcp import Client, MCPError
from mcp.client.extension import ClientExtension, NotificationBinding
from pydantic import TypeAdapter

from pegboard import Settings
from pegboard.compose import default_parts
from pegboard.gateways.mcp import open_gateway
from pegboard.gateways.mcp.gateway import notifications
from pegboard.gateways.mcp.gateway.after_answer import AfterAnswer
from pegboard.gateways.mcp.gateway.caller import Caller
from pegboard.gateways.mcp.gateway.gateway import Gateway
from pegboard.gateways.mcp.tasks import server_tasks
from pegboard.gateways.mcp.tasks.server_tasks import ServerTasks, StartedTask, WatchedTask
from pegboard.gateways.mcp.tasks.task_ids import TaskIds, TaskPlace
from pegboard.gateways.mcp.transport.auth import Holder
from pegboard.gateways.mcp.transport.gateway_server import wire
from pegboard.gateways.mcp.transport.signed_ids import Signing
from pegboard.gateways.mcp.trust.content import Contents
from pegboard.model import Server, ServerName, ToolId
from pegboard.settings.server_spec import ServerSpec
from pegboard.stores import MemoryEmbeddings, MemoryEvents, MemorySigningKeys
from pegboard.testing import FakeClock, FakeEncoder
from pegboard.upstreams.extension_requests import TASKS, AnyNotification, ExtensionRequest, TaskRequest
from pegboard.upstreams.server_lists import ListingCache
from pegboard_bench.conformance.server import made
from processes import until

TASKED = str(Path(__file__).parents[2] / "servers" / "tasked.py")
CONFORMING = ServerSpec(name="jobs", command=sys.executable, args=("-m", "pegboard_bench.conformance.server"))
HANDSHAKE = ServerSpec(name="holes", command=sys.executable, args=(TASKED,))
OVER = ("completed", "failed", "cancelled")
ANY: TypeAdapter[dict[str, Any]] = TypeAdapter(dict[str, Any])
VARYING = ("taskId", "createdAt", "lastUpdatedAt")
RELATED = "io.modelcontextprotocol/related-task"
apart = pytest.mark.parametrize("per_client", [False, True], ids=["shared", "apart"])

Result = dict[str, Any]
Heard = list[Result]


class Tasks(ClientExtension):
    """A client that takes tasks, and notes what it hears of them."""

    identifier = TASKS

    def __init__(self, heard: Heard) -> None:
        self._heard = heard

    def notifications(self) -> list[NotificationBinding[Any]]:
        async def note(params: types.NotificationParams) -> None:
            self._heard.append(params.model_dump(by_alias=True))

        class Params(types.NotificationParams, extra="allow"):
            """As they were sent."""

        names = ("notifications/tasks", "notifications/tasks/status")
        return [NotificationBinding(method=name, params_type=Params, handler=note) for name in names]


@asynccontextmanager
async def before(folder: Path, *specs: ServerSpec) -> AsyncIterator[Gateway]:
    options: dict[str, Any] = {"cache_dir": folder, "state_dir": folder, "start_wait": 60.0, "connect_timeout": 60.0}
    settings = Settings(servers={spec.name: spec for spec in specs}, exposure="eager", **options)
    parts = default_parts(settings, encoder=FakeEncoder(), embeddings=MemoryEmbeddings())
    async with open_gateway(settings, parts) as gateway:
        yield gateway


def client(server: Any, mode: str, heard: Heard | None = None) -> Client:
    """One that takes tasks if ``heard`` is given."""
    return Client(server, mode=mode, cache=None, extensions=None if heard is None else [Tasks(heard)])


async def asked(of: Client, method: str, **params: Any) -> Result:
    kind = TaskRequest if "taskId" in params else ExtensionRequest
    request: Any = kind(method=method, params=params)
    return await of.session.send_request(request, ANY)  # type: ignore[type-var]


async def called(of: Client, name: str, arguments: Result | None = None, **more: Any) -> Result:
    """The result as it was sent: the SDK has no model of one that is a task."""
    params = {"name": name, "arguments": arguments or {}} | more
    data: Any = {"method": "tools/call", "params": params}
    options: Any = {}
    of.session._stamp(data, options)
    return await of.session._dispatcher.send_raw_request("tools/call", data["params"], options)


async def ended(of: Client, task: str) -> Result:
    return await polled(of, task, lambda found: found["status"] in OVER)


async def polled(of: Client, task: str, done: Callable[[Result], bool]) -> Result:
    """The task, once it is as it should be."""
    for _ in range(600):
        if done(found := await asked(of, "tasks/get", taskId=task)):
            return found
        await asyncio.sleep(0.1)
    raise AssertionError(found)


def unvarying(result: Result) -> Result:
    return {key: value for key, value in result.items() if key not in (*VARYING, "_meta")}


@pytest.mark.parametrize("tool", ["slow_compute", "failing_job", "protocol_error_job"])
async def test_a_client_of_2026_sees_a_task_through_the_gateway_as_it_does_directly(tmp_path: Path, tool: str) -> None:
    async with before(tmp_path, CONFORMING) as gateway, client(wire(gateway), "auto", []) as through:
        sides = []
        async with client(made(), "auto", []) as directly:
            for side in (directly, through):
                begun = await called(side, tool)
                sides.append((unvarying(begun), unvarying(await ended(side, begun["taskId"]))))
    assert sides[0] == sides[1]
    assert sides[0][0]["resultType"] == "task"


async def test_what_a_task_asks_is_answered_and_a_task_can_be_cancelled(tmp_path: Path) -> None:
    async with before(tmp_path, CONFORMING) as gateway, client(wire(gateway), "auto", []) as through:
        task = (await called(through, "confirm_delete", {"filename": "a"}))["taskId"]
        asks = (await polled(through, task, lambda found: "inputRequests" in found))["inputRequests"]
        assert asks["confirm"]["method"] == "elicitation/create"
        answers = {"confirm": {"action": "accept", "content": {"confirm": True}}}
        await asked(through, "tasks/update", taskId=task, inputResponses=answers)
        assert (await ended(through, task))["result"]["content"][0]["text"] == "Deleted."
        slow = (await called(through, "slow_compute", {"seconds": 600}))["taskId"]
        await asked(through, "tasks/cancel", taskId=slow)
        assert (await ended(through, slow))["status"] == "cancelled"


async def test_a_client_that_does_not_take_tasks_gets_results_and_no_word_of_tasks(tmp_path: Path) -> None:
    async with before(tmp_path, CONFORMING) as gateway, client(wire(gateway), "auto") as plain:
        assert (await called(plain, "slow_compute"))["content"][0]["text"] == "Computed."
        with pytest.raises(MCPError) as refused:
            await asked(plain, "tasks/get", taskId="any")
        assert refused.value.error.code == -32021
        with pytest.raises(MCPError) as refused:
            await called(plain, "failing_job")
        assert refused.value.error.code == -32021


@apart
async def test_a_stream_of_notifications_tells_of_the_tasks_that_it_names(tmp_path: Path, per_client: bool) -> None:
    heard: Heard = []
    spec = CONFORMING.model_copy(update={"per_client": per_client})
    async with before(tmp_path, spec) as gateway, client(wire(gateway), "auto", heard) as through:
        task = (await called(through, "slow_compute", {"seconds": 0.5}))["taskId"]
        wanted = types.SubscriptionFilter.model_validate({"taskIds": [task]})
        request = types.SubscriptionsListenRequest(params=types.SubscriptionsListenRequestParams(notifications=wanted))
        listening = asyncio.create_task(through.session.send_request(request, ANY))  # type: ignore[type-var]
        await until(lambda: any(each["status"] == "completed" for each in heard))
        listening.cancel()
    assert {each["taskId"] for each in heard} == {task}


async def test_a_stream_that_is_asked_for_just_as_the_connection_begins_is_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server can be called before its listing is kept, and serves after that."""
    heard: Heard = []
    kept = asyncio.Event()

    async def put(_cache: ListingCache, _listing: Any) -> None:
        await kept.wait()

    monkeypatch.setattr(ListingCache, "put", put)
    async with before(tmp_path, CONFORMING) as gateway, client(wire(gateway), "auto", heard) as through:
        task = (await called(through, "slow_compute", {"seconds": 0}))["taskId"]
        wanted = types.SubscriptionFilter.model_validate({"taskIds": [task]})
        request = types.SubscriptionsListenRequest(params=types.SubscriptionsListenRequestParams(notifications=wanted))
        listening = asyncio.create_task(through.session.send_request(request, ANY))  # type: ignore[type-var]
        await until(lambda: bool(gateway.tasks._streams))
        kept.set()
        await until(lambda: any(each["status"] == "completed" for each in heard))
        listening.cancel()


@apart
async def test_a_client_of_2025_11_25_starts_lists_and_reads_its_own_tasks(tmp_path: Path, per_client: bool) -> None:
    """By ids of its own, although the server gives two connections the same ones."""
    heard: Heard = []
    spec = HANDSHAKE.model_copy(update={"per_client": per_client})
    async with before(tmp_path, spec) as gateway, client(wire(gateway), "legacy", heard) as mine:
        begun = (await called(mine, "dig", {"depth": 3}, task={"ttl": 9000}))["task"]
        assert (begun["status"], begun["ttl"]) == ("working", 9000)
        async with client(wire(gateway), "legacy", []) as theirs:
            await called(theirs, "dig", {"depth": 4}, task={})
            listed = (await asked(mine, "tasks/list"))["tasks"]
            assert [each["taskId"] for each in listed] == [begun["taskId"]]
        result = await asked(mine, "tasks/result", taskId=begun["taskId"])
        assert result["content"][0]["text"] == "dig 3"
        assert result["_meta"][RELATED]["taskId"] == begun["taskId"]
        await until(lambda: bool(heard))
        assert (heard[0]["taskId"], heard[0]["status"]) == (begun["taskId"], "completed")
        other = (await called(mine, "dig", task={}))["task"]["taskId"]
        assert (await asked(mine, "tasks/cancel", taskId=other))["status"] == "cancelled"
        with pytest.raises(MCPError, match="Task not found"):
            await asked(mine, "tasks/get", taskId="task-0")


@pytest.mark.requirement("B8")
@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_tool_that_only_runs_as_a_task_answers_clients_that_know_no_tasks(tmp_path: Path, mode: str) -> None:
    async with before(tmp_path, HANDSHAKE) as gateway, client(wire(gateway), mode) as plain:
        assert "drill" in [tool.name for tool in (await plain.list_tools()).tools]
        assert (await called(plain, "drill", {"depth": 7}))["content"][0]["text"] == "drill 7"
        assert (await called(plain, "dig", {"depth": 8}))["content"][0]["text"] == "dig 8"


async def test_what_servers_run_as_tasks_is_declared_in_the_era_of_the_client(tmp_path: Path) -> None:
    async with before(tmp_path, CONFORMING, HANDSHAKE) as gateway, client(wire(gateway), "auto") as modern:
        new = modern.server_capabilities
        async with client(wire(gateway), "legacy") as handshake:
            old = handshake.server_capabilities
    assert new is not None
    assert old is not None
    assert TASKS in (new.extensions or {})
    assert new.tasks is None
    assert TASKS not in (old.extensions or {})
    assert old.tasks is not None


def test_the_task_of_an_embedded_server_keeps_its_id() -> None:
    def unreached(server: str) -> Any:
        raise AssertionError(server)

    async def answered(_session: str | None, _tool: str) -> None:
        raise AssertionError

    contents = Contents("off", events=MemoryEvents(), clock=FakeClock(), later=AfterAnswer())
    embedded = ServerTasks(tuple, unreached, lambda: None, TaskIds(), contents, answered)
    begun = {"resultType": "task", "taskId": "a"}
    assert embedded.created(ToolId("s", "t"), begun, Caller()) is begun


async def test_a_client_that_takes_no_word_of_its_task_delays_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notifications, "PATIENCE", 0.05)
    heard: list[Any] = []

    async def stuck(_message: Any) -> None:
        await asyncio.Event().wait()

    async def tell(message: Any) -> None:
        heard.append(message.params["taskId"])

    async def answered(_session: str | None, _tool: str) -> None:
        raise AssertionError

    def unreached(server: str) -> Any:
        raise AssertionError(server)

    contents = Contents("off", events=MemoryEvents(), clock=FakeClock(), later=AfterAnswer())
    tasks = ServerTasks(tuple, unreached, lambda: None, TaskIds(), contents, answered)
    upstream: Any = None
    tasks._started[("s", "", "a")] = StartedTask(given="given", session=None)
    tasks._streams[("s", "", "a")] = WatchedTask(upstream=upstream, tellers={"stuck": stuck, "reads": tell})
    async with asyncio.timeout(60):
        await tasks.on_notification(
            ServerName("s"), AnyNotification(method="notifications/tasks", params={"taskId": "a"})
        )
    assert heard == ["given"]


async def test_a_task_that_its_client_asks_about_is_not_forgotten_for_those_that_came_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(server_tasks, "MOST_TASKS", 2)
    heard: list[str] = []

    async def request(_asked: Any) -> Result:
        return {"status": "working"}

    async def tell(message: Any) -> None:
        heard.append(message.params["taskId"])

    async def nothing(*_said: Any) -> None:
        pass

    upstream: Any = SimpleNamespace(server=Server(name=ServerName("s")), client="", request=request, watch_task=nothing)
    contents = Contents("off", events=MemoryEvents(), clock=FakeClock(), later=AfterAnswer())
    tasks = ServerTasks(lambda: [upstream], lambda _server: upstream, lambda: None, TaskIds(), contents, nothing)
    ann = Caller(session="ann")
    tasks.connect("ann", tell)
    given = tasks.created(ToolId("s", "t"), {"resultType": "task", "taskId": "first"}, ann)["taskId"]
    for number in range(5):
        await tasks.asked("tasks/get", {"taskId": given}, ann)
        tasks.created(ToolId("s", "t"), {"resultType": "task", "taskId": f"{number}"}, Caller(session="bob"))
    told = AnyNotification(method="notifications/tasks/status", params={"taskId": "first"})
    await tasks.on_notification(ServerName("s"), told)
    for number in range(5):
        place = TaskPlace(server="s", tool="t", task=f"of another process {number}")
        assert await tasks.watch("stream", TaskIds().given(place, None), ann, tell)

    assert heard == [given]
    assert len(tasks._started) == 2


async def test_the_last_stream_about_a_task_is_ended_at_the_connection_that_was_asked_last() -> None:
    """As after a reload, or when a client's own connection was idle for long."""

    class Connected:
        server, client = Server(name=ServerName("s")), "ada"

        def __init__(self) -> None:
            self.watched: set[str] = set()
            self.unwatch_task = self.watched.discard

        async def watch_task(self, task: str) -> None:
            self.watched.add(task)

    async def ignore(*_: Any) -> None:
        """Of no interest here."""

    connections = [Connected()]
    contents = Contents("off", events=MemoryEvents(), clock=FakeClock(), later=AfterAnswer())
    upstreams, reach = cast(Any, lambda: connections), cast(Any, lambda _server: connections[-1])
    tasks = ServerTasks(upstreams, reach, lambda: None, TaskIds(), contents, ignore)
    given = TaskIds().given(TaskPlace(server="s", tool="t", task="a"), None)
    assert await tasks.watch("early", given, Caller(), ignore)
    connections.append(Connected())
    assert await tasks.watch("late", given, Caller(), ignore)
    tasks.unwatch("early")
    assert connections[-1].watched == {"a"}

    tasks.unwatch("late")
    assert connections[-1].watched == set()


async def test_an_id_belongs_to_the_holder_that_started_the_task() -> None:
    signing = Signing(MemorySigningKeys(), FakeClock(), lasting=60)
    await signing.renew()
    ids, place = TaskIds(signing), TaskPlace(server="s", tool="t", task="ü/1")
    ada, bob = Holder(name="ada", secret="1"), Holder(name="bob", secret="2")
    given = ids.given(place, ada)
    assert given.isascii()
    assert await ids.place(given, ada) == place
    assert await ids.place(given, bob) is None
    assert await ids.place(ids.given(place, None), ada) is None
    assert [await TaskIds().place(wrong, None) for wrong in ("", "%", "bnVsbA", "é")] == [None] * 4
