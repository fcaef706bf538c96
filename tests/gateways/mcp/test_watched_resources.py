"""Servers are told when nobody watches their resources any more, however those who did have left."""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import mcp_types as types
import pytest
from mcp import Client, MCPError

from pegboard import Settings
from pegboard.compose import default_parts
from pegboard.errors import UpstreamError
from pegboard.gateways.mcp import open_gateway
from pegboard.gateways.mcp.gateway import notifications
from pegboard.gateways.mcp.gateway.gateway import Gateway, all_hear
from pegboard.gateways.mcp.gateway.host import Host, open_host
from pegboard.gateways.mcp.resources import resources
from pegboard.gateways.mcp.transport.gateway_server import wire
from pegboard.model import ServerName
from pegboard.settings.server_spec import ServerSpec
from pegboard.stores import MemoryEmbeddings
from pegboard.testing import FakeEncoder
from processes import until

SERVER = str(Path(__file__).parents[2] / "servers" / "watched.py")
URIS = [f"note://watched/{name}" for name in ("one", "two", "three")]

pytestmark = pytest.mark.filterwarnings("ignore::mcp.MCPDeprecationWarning")

Opening = Callable[..., AbstractAsyncContextManager[Gateway]]


@pytest.fixture
def opened(tmp_path: Path) -> Opening:
    """Opens a gateway before a server whose resources can be watched."""

    @asynccontextmanager
    async def gateway(*how: str, others: tuple[str, ...] = (), **options: Any) -> AsyncIterator[Gateway]:
        servers = {name: watched(tmp_path, name, *how) for name in ("watched", *others)}
        settings = settings_of(tmp_path, servers, **options)
        parts = default_parts(settings, encoder=FakeEncoder(), embeddings=MemoryEmbeddings())
        async with open_gateway(settings, parts) as made:
            yield made

    return gateway


@asynccontextmanager
async def hosted(folder: Path, servers: dict[str, ServerSpec] | None = None, **options: Any) -> AsyncIterator[Host]:
    """A host before the same server, or these, which can be reconfigured."""
    settings = settings_of(folder, {"watched": watched(folder, "watched")} if servers is None else servers, **options)
    parts = default_parts(settings, encoder=FakeEncoder(), embeddings=MemoryEmbeddings())
    async with open_host(settings, parts) as made:
        await made.gateway().view.started()
        yield made


def settings_of(folder: Path, servers: dict[str, ServerSpec], **options: Any) -> Settings:
    defaults: dict[str, Any] = {"cache_dir": folder, "state_dir": folder, "start_wait": 20.0}
    return Settings(servers=servers, **(defaults | options))


def watched(folder: Path, name: str, *how: str) -> ServerSpec:
    return ServerSpec(name=name, command=sys.executable, args=(SERVER, str(seen_in(folder, name)), *how))


def seen_in(folder: Path, name: str) -> Path:
    return folder / f"{name}.txt"


def asked(folder: Path, what: str, name: str = "watched") -> Counter[str]:
    """How often the server was asked to do this, by address."""
    lines = seen_in(folder, name).read_text().splitlines() if seen_in(folder, name).exists() else []
    return Counter(line.split()[1] for line in lines if line.split()[0] == what)


async def test_a_stream_that_its_client_closes_ends_what_it_watched_at_the_server(
    opened: Opening, tmp_path: Path
) -> None:
    async with opened() as gateway, Client(wire(gateway), mode="auto", cache=None) as client:
        async with client.listen(resource_subscriptions=URIS):
            await until(lambda: asked(tmp_path, "subscribe") == Counter(URIS))
        await until(lambda: asked(tmp_path, "unsubscribe") == Counter(URIS))
        assert gateway.resources._watchers == {}


async def test_a_connection_that_ends_ends_what_its_session_watched(opened: Opening, tmp_path: Path) -> None:
    async with opened() as gateway, Client(wire(gateway), mode="legacy") as other:
        async with Client(wire(gateway), mode="legacy") as client:
            for uri in URIS:
                await client.subscribe_resource(uri)
            await other.subscribe_resource(URIS[0])
        await until(lambda: asked(tmp_path, "unsubscribe") == Counter(URIS[1:]))
        assert list(gateway.resources._watchers) == URIS[:1]


async def test_a_board_that_closes_ends_what_its_clients_watched(opened: Opening, tmp_path: Path) -> None:
    async with opened() as gateway, Client(wire(gateway), mode="legacy") as client:
        for uri in URIS:
            await client.subscribe_resource(uri)
        gateway.resources.close()
        await until(lambda: asked(tmp_path, "unsubscribe") == Counter(URIS))


async def test_a_session_ends_whole_although_the_server_does_not_end_what_it_watched(
    opened: Opening, tmp_path: Path
) -> None:
    async with opened("refuses") as gateway:
        await gateway.view.started()
        for uri in URIS:
            await gateway.resources.subscribe("session", uri, None)
        await gateway.book.update("session", lambda session: session)
        await gateway.end_session("session")
        found = await gateway.book.find("session")

        assert asked(tmp_path, "unsubscribe") == Counter(URIS)
        assert gateway.resources._watchers == {}
        assert found is None


async def test_two_who_begin_to_watch_at_once_are_one_to_the_server(opened: Opening, tmp_path: Path) -> None:
    async with opened() as gateway:
        await gateway.view.started()
        both = ("one", "other")
        await asyncio.gather(*(gateway.resources.subscribe(who, URIS[0], None) for who in both))
        assert asked(tmp_path, "subscribe") == Counter(URIS[:1])
        await asyncio.gather(*(gateway.resources.unsubscribe(who, URIS[0]) for who in both))
        assert asked(tmp_path, "unsubscribe") == Counter(URIS[:1])
        assert not gateway.resources._turns


async def test_only_the_server_where_a_resource_was_watched_is_told_of_the_end(opened: Opening, tmp_path: Path) -> None:
    async with opened(others=("second",)) as gateway:
        await gateway.view.started()
        second = next(each for each in gateway.resources.servers() if each.server.name == "second")
        await second.watch(URIS[0])
        await gateway.resources.subscribe("session", URIS[0], None, lambda name: name == "watched")
        await gateway.resources.unsubscribe("session", URIS[0])
        assert asked(tmp_path, "unsubscribe") == Counter(URIS[:1])
        assert not asked(tmp_path, "unsubscribe", "second")


async def test_a_stream_hears_of_what_can_be_watched_although_something_cannot(opened: Opening, tmp_path: Path) -> None:
    async with (
        opened() as gateway,
        Client(wire(gateway), mode="auto", cache=None) as client,
        client.listen(tools_list_changed=True, resource_subscriptions=["no://such", URIS[0]]) as stream,
    ):
        assert stream.honored.tools_list_changed
        assert stream.honored.resource_subscriptions == URIS[:1]
        assert asked(tmp_path, "subscribe") == Counter(URIS[:1])


async def test_who_does_not_take_an_update_delays_no_other_watcher_and_no_other_endpoint(
    opened: Opening, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notifications, "PATIENCE", 0.05)
    heard: list[str] = []

    async def stuck(_uri: str) -> None:
        await asyncio.Event().wait()

    async def tell(uri: str) -> None:
        heard.append(uri)

    class Failing:
        async def heard(self, *_message: Any) -> None:
            raise RuntimeError("no")

    message = types.ResourceUpdatedNotification(params=types.ResourceUpdatedNotificationParams(uri=URIS[0]))
    async with opened() as gateway:
        await gateway.view.started()
        await gateway.resources.subscribe("stuck", URIS[0], stuck)
        await gateway.resources.subscribe("reads", URIS[0], tell)
        async with asyncio.timeout(60):
            await all_hear([Failing(), gateway], ServerName("watched"), message)  # type: ignore[list-item]
        assert heard == URIS[:1]


async def test_a_server_that_is_reloaded_watches_on_at_the_same_log_level(tmp_path: Path) -> None:
    async with hosted(tmp_path) as host:
        gateway = host.gateway()
        await gateway.resources.subscribe("session", URIS[0], None)
        await gateway.levels.set("session", "error")
        await host.reconfigure(settings_of(tmp_path, {"watched": watched(tmp_path, "watched", "anew")}))

        await until(lambda: asked(tmp_path, "subscribe")[URIS[0]] == 2)
        assert asked(tmp_path, "setLevel") == Counter(error=2)
        await gateway.resources.unsubscribe("session", URIS[0])
        assert asked(tmp_path, "unsubscribe") == Counter(URIS[:1])


async def test_a_server_that_a_reload_adds_logs_at_the_level_that_clients_have_asked_for(tmp_path: Path) -> None:
    """Asked for while there was no server at all."""
    async with hosted(tmp_path, {}) as host:
        await host.gateway().levels.set("session", "error")
        await host.gateway().levels.set("gone", "debug")
        host.fleet.forget("gone")
        await host.reconfigure(settings_of(tmp_path, {"watched": watched(tmp_path, "watched")}))

        await until(lambda: host.fleet.status()[0].state == "ready")
        assert asked(tmp_path, "setLevel") == Counter(error=1)


async def test_a_server_that_is_removed_and_comes_back_is_asked_to_watch_again(tmp_path: Path) -> None:
    async with hosted(tmp_path) as host:
        gateway = host.gateway()
        await gateway.resources.subscribe("session", URIS[0], None)
        await host.reconfigure(settings_of(tmp_path, {}))
        assert gateway.resources._watchers == {}
        await host.reconfigure(settings_of(tmp_path, {"watched": watched(tmp_path, "watched")}))
        await until(lambda: host.fleet.status()[0].state == "ready")
        await gateway.resources.subscribe("other", URIS[0], None)

        assert asked(tmp_path, "subscribe")[URIS[0]] == 2


async def test_a_lazy_server_that_ends_while_it_watches_is_connected_again(opened: Opening, tmp_path: Path) -> None:
    async with opened(lazy=True) as gateway:
        await gateway.view.started()
        await gateway.resources.subscribe("session", URIS[0], None)
        with pytest.raises(UpstreamError):
            await gateway.resources.read(types.ReadResourceRequestParams(uri="note://watched/end"))

        await until(lambda: asked(tmp_path, "subscribe")[URIS[0]] == 2)


async def test_a_session_hears_of_a_part_of_what_it_watches_from_the_server_where_it_is_watched(
    opened: Opening, tmp_path: Path
) -> None:
    heard: list[str] = []
    done = asyncio.Event()

    async def tell(uri: str) -> None:
        heard.append(uri)
        if uri == URIS[0]:
            done.set()

    async with opened() as gateway:
        await gateway.view.started()
        for uri in (URIS[0], URIS[1]):
            await gateway.resources.subscribe("session", uri, tell)
        for uri in (f"{URIS[0]}/part", f"{URIS[0]}_other", URIS[0]):
            await gateway.resources.read(types.ReadResourceRequestParams(uri=uri))
        await asyncio.wait_for(done.wait(), 60)
        message = types.ResourceUpdatedNotification(
            params=types.ResourceUpdatedNotificationParams(uri=f"{URIS[1]}/part")
        )
        await gateway.heard(ServerName("another"), message)

    assert heard == [f"{URIS[0]}/part", URIS[0]]


async def test_lists_of_a_server_that_starts_again_are_its_own_and_clients_hear_of_those_that_differ(
    opened: Opening, tmp_path: Path
) -> None:
    heard: list[str] = []

    async def hear(message: Any) -> None:
        heard.append(getattr(message, "method", ""))

    async with opened() as gateway, Client(wire(gateway), mode="legacy", message_handler=hear) as client:
        assert [each.name for each in (await client.list_prompts()).prompts] == ["1"]
        assert len((await client.list_resources()).resources) == len(URIS)
        with pytest.raises(MCPError):
            await client.read_resource("note://watched/end")
        await until(lambda: "notifications/prompts/list_changed" in heard)
        assert [each.name for each in (await client.list_prompts()).prompts] == ["2"]
        assert asked(tmp_path, "listed") == Counter(prompts=2)
    assert "notifications/resources/list_changed" not in heard


class Hearing:
    """What a client was told of changed lists."""

    def __init__(self) -> None:
        self.lists: list[str] = []

    async def hear(self, message: Any) -> None:
        method = getattr(message, "method", "")
        if method.endswith("list_changed") and "tools" not in method:
            self.lists.append(method.split("/")[1])

    @asynccontextmanager
    async def client(self, host: Host) -> AsyncIterator[Client]:
        """A client that has read the lists of prompts and resources."""
        async with Client(wire(host.gateway()), mode="legacy", message_handler=self.hear) as client:
            await names(client)
            yield client


async def names(client: Client) -> tuple[list[str], int]:
    prompts, resources = await client.list_prompts(), await client.list_resources()
    return [each.name for each in prompts.prompts], len(resources.resources)


async def test_clients_hear_of_the_lists_of_a_server_that_starts_late(tmp_path: Path) -> None:
    (tmp_path / "wait").touch()
    gate = "import os,runpy,sys,time\nwhile os.path.exists(sys.argv[1]): time.sleep(0.05)\ndel sys.argv[:2]\n"
    gate += "runpy.run_path(sys.argv[0], run_name='__main__')"
    seen = str(seen_in(tmp_path, "late"))
    late = ServerSpec(name="late", command=sys.executable, args=("-c", gate, str(tmp_path / "wait"), SERVER, seen))
    hearing = Hearing()
    async with hosted(tmp_path, {"late": late}, start_wait=0.1) as host, hearing.client(host) as client:
        assert await names(client) == ([], 0)
        (tmp_path / "wait").unlink()
        await until(lambda: set(hearing.lists) == {"prompts", "resources"})
        assert await names(client) == (["1"], len(URIS))
        await asyncio.sleep(0.3)
    assert sorted(hearing.lists) == ["prompts", "resources"]


async def test_clients_hear_of_the_lists_of_a_server_that_a_reload_adds_changes_or_removes(tmp_path: Path) -> None:
    hearing = Hearing()
    async with hosted(tmp_path, {}) as host, hearing.client(host) as client:
        await host.reconfigure(settings_of(tmp_path, {"watched": watched(tmp_path, "watched")}))
        await until(lambda: set(hearing.lists) == {"prompts", "resources"})
        assert await names(client) == (["1"], len(URIS))

        hearing.lists.clear()
        await host.reconfigure(settings_of(tmp_path, {"watched": watched(tmp_path, "watched", "anew")}))
        await until(lambda: "prompts" in hearing.lists)
        assert await names(client) == (["2"], len(URIS))
        await asyncio.sleep(0.3)
        assert hearing.lists == ["prompts"]

        hearing.lists.clear()
        await host.reconfigure(settings_of(tmp_path, {}))
        await until(lambda: set(hearing.lists) == {"prompts", "resources"})
        assert await names(client) == ([], 0)


async def test_clients_hear_of_a_list_for_which_they_did_not_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hearing = Hearing()
    monkeypatch.setattr(resources, "PATIENCE", 0.0)
    async with hosted(tmp_path) as host, hearing.client(host) as client:
        await until(lambda: set(hearing.lists) == {"prompts", "resources"})
        assert await names(client) == (["1"], len(URIS))


async def test_clients_hear_nothing_while_servers_offer_what_they_did(tmp_path: Path) -> None:
    hearing = Hearing()
    servers = {name: watched(tmp_path, name) for name in ("watched", "other")}
    async with hosted(tmp_path, servers) as host, hearing.client(host) as client:
        before = await names(client)
        host.gateway().renew()
        await host.reconfigure(settings_of(tmp_path, servers, call_timeout=50.0))
        await asyncio.sleep(0.3)
        assert await names(client) == before
    assert hearing.lists == []


@pytest.mark.parametrize(("how", "lists"), [((), 1), (("silent",), 2)])
async def test_lists_of_whose_changes_a_server_does_not_tell_are_read_again_after_a_while(
    opened: Opening, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: tuple[str, ...], lists: int
) -> None:
    monkeypatch.setattr(resources, "EXPIRY", 0.0)
    async with opened(*how) as gateway:
        await gateway.view.started()
        await gateway.resources.listed("prompts")
        await asyncio.sleep(0.05)  # the timer of the reading is over
        assert await gateway.resources.listed("prompts") == [{"name": str(lists)}]
    assert asked(tmp_path, "listed") == Counter(prompts=lists)


async def test_an_old_list_starts_no_server(opened: Opening, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resources, "EXPIRY", 0.0)
    async with opened("silent", lazy=True) as gateway:
        await gateway.view.started()
        await gateway.resources.listed("prompts")
        with pytest.raises(UpstreamError):
            await gateway.resources.read(types.ReadResourceRequestParams(uri="note://watched/end"))
        await until(lambda: gateway.fleet.status()[0].state == "idle")
        assert await gateway.resources.listed("prompts") == [{"name": "1"}]
    assert asked(tmp_path, "started") == Counter(server=1)
