"""A configuration that changes while it is served: only what changed is touched, and everybody is told."""

from __future__ import annotations

import asyncio
import json
import logging
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp.server.transport_security import TransportSecuritySettings
from starlette.requests import Request

from doors import META, Raw, at_rest, door_on
from journals import Journal
from pegboard.compose import default_parts
from pegboard.gateways.access_keys import hashed
from pegboard.gateways.dashboard.board_pages import BoardPages
from pegboard.gateways.dashboard.dashboard_access import DashboardAccess, DashboardClosed
from pegboard.gateways.mcp.gateway.host import Host, open_host
from pegboard.gateways.mcp.transport import config_reload
from pegboard.gateways.mcp.transport.config_reload import Source
from pegboard.settings import Settings, load_settings
from pegboard.settings.restart_options import FIXED
from pegboard.stores import MemoryEmbeddings, MemoryEvents
from pegboard.testing import FakeEncoder
from processes import alive, until

OWN = {"eager_tools": 0, "eager_tokens": 0, "start_wait": 20, "exposure": "dynamic"}


class Configuration:
    """A file that a host follows."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.path = folder / "servers.json"
        self.journals = {name: Journal(name, folder) for name in ("stays", "changes", "goes", "comes")}
        self.versions = 0

    def write(self, servers: dict[str, list[str]], **own: Any) -> None:
        specs = {name: self.journals[name].spec(*tools) for name, tools in servers.items()}
        listed = {name: {"command": spec.command, "args": list(spec.args)} for name, spec in specs.items()}
        self.write_text(json.dumps({"mcpServers": listed, "pegboard": OWN | own}))

    def write_text(self, text: str) -> None:
        """At once, with a time of its own: clocks of file systems are coarse."""
        new = self.path.with_suffix(".new")
        new.write_text(text)
        self.versions += 1
        os.utime(new, (self.versions, self.versions))
        new.replace(self.path)


@pytest.fixture
def configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Configuration:
    monkeypatch.setattr(config_reload, "POLL_SECONDS", 0.02)
    return Configuration(tmp_path)


@pytest.fixture
def follow(configuration: Configuration, encoder: FakeEncoder, events: MemoryEvents) -> Callable[..., Any]:
    @asynccontextmanager
    async def serve(meanwhile: Callable[[], None] = lambda: None) -> AsyncIterator[tuple[str, Host]]:
        read = partial(
            load_settings, [configuration.path], cache_dir=configuration.folder, state_dir=configuration.folder
        )
        settings = read()
        parts = default_parts(settings, encoder=encoder, embeddings=MemoryEmbeddings(), events=events)
        async with open_host(settings, parts) as host, door_on(host) as url:
            await host.gateway().view.started()
            await at_rest(host.gateway())
            meanwhile()
            following = asyncio.create_task(Source(files=[configuration.path], load=read).follow(host))
            await asyncio.sleep(0)  # it has looked at the file once
            yield url, host
            assert not following.done(), "it follows until it is told to stop"
            following.cancel()

    return serve


@pytest.fixture
async def http() -> AsyncIterator[httpx2.AsyncClient]:
    async with httpx2.AsyncClient(trust_env=False, timeout=60) as client:
        yield client


def servers_of(host: Host) -> list[str]:
    return [status.name for status in host.fleet.status()]


@pytest.mark.requirement("M27")
async def test_only_what_changed_is_touched_and_the_clients_are_told(
    configuration: Configuration, follow: Callable[..., Any], http: httpx2.AsyncClient
) -> None:
    journals = configuration.journals
    configuration.write({"stays": ["one"], "changes": ["two"], "goes": ["three"]})
    async with follow() as (url, host):
        before = {name: journals[name].starts[0] for name in ("stays", "changes", "goes")}
        client = await Raw(http, url).begin()
        assert await client.call("one") == str(before["stays"])
        assert sorted(await client.search("do one two three", limit=3)) == ["one", "three", "two"]
        assert len(await client.names()) == len(META) + 3
        async with client.stream() as heard:
            configuration.write({"stays": ["one"], "changes": ["two", "more"], "comes": ["four"]})
            await until(lambda: servers_of(host) == ["stays", "changes", "comes"])
            await until(lambda: all(status.settled for status in host.fleet.status()))
            await until(lambda: len(journals["comes"].starts) == 1 and not alive(before["goes"]))
            await until(lambda: "notifications/tools/list_changed" in heard)
        async with asyncio.timeout(20):
            while await client.search("do four", limit=1) != ["four"]:
                pass
        assert set(await client.names()) == {*META, "one", "two", "four"}, "its session goes on without what is gone"
        assert await client.call("one") == str(before["stays"])
        assert await client.call("more") == str(journals["changes"].starts[1])
        gone = await client.result("tools/call", name="three", arguments={})
        assert gone["isError"]
    assert len(journals["stays"].starts) == len(journals["goes"].starts) == 1
    assert not alive(before["changes"])


@pytest.mark.requirement("M27")
@pytest.mark.parametrize(
    "broken", ["{", "", '{"mcpServers": {}, "pegboard": {"no_such": 1}}', '{"pegboard": {"clients": {"x": {}}}}', None]
)
async def test_a_configuration_that_cannot_be_used_changes_nothing_and_is_said(
    configuration: Configuration,
    follow: Callable[..., Any],
    http: httpx2.AsyncClient,
    caplog: pytest.LogCaptureFixture,
    broken: str | None,
) -> None:
    configuration.write({"stays": ["one"]})
    async with follow() as (url, host):
        client = await Raw(http, url).begin()
        with caplog.at_level(logging.INFO, "pegboard"):
            if broken is None:
                configuration.path.unlink()
            else:
                configuration.write_text(broken)
            await until(lambda: any("the previous one stays" in record.message for record in caplog.records))
        assert servers_of(host) == ["stays"]
        assert await client.call("one") == str(configuration.journals["stays"].starts[0])
        configuration.write({"stays": ["one"], "comes": ["four"]})
        await until(lambda: servers_of(host) == ["stays", "comes"])
    assert len(configuration.journals["stays"].starts) == 1


@pytest.mark.requirement("M27")
async def test_toolsets_and_always_available_tools_follow(
    configuration: Configuration, follow: Callable[..., Any], http: httpx2.AsyncClient
) -> None:
    servers = {"stays": ["one", "two", "three"]}
    configuration.write(servers, always_available=["one"], toolsets={"few": {"tools": ["stays/two"]}})
    async with follow() as (url, host):
        client, few = await Raw(http, url).begin(), await Raw(http, f"{url}/few").begin()
        assert await client.names() == [*META, "one"]
        assert await few.search("do one two three", limit=5) == ["two"]
        configuration.write(
            servers,
            always_available=["three"],
            toolsets={"few": {"tools": ["stays/one"]}, "new": {"tools": ["stays/three"], "exposure": "eager"}},
        )
        await until(lambda: "new" in host.settings.toolsets)
        assert await client.names() == [*META, "three"]
        assert await few.search("do one two three", limit=5) == ["one"]
        assert await (await Raw(http, f"{url}/new").begin()).names() == ["three"]
        configuration.write(servers)
        await until(lambda: not host.settings.toolsets)
        assert await client.names() == META
        assert (await few.post("tools/list", {})).status == 404
    assert len(configuration.journals["stays"].starts) == 1


async def test_a_file_that_was_only_touched_restarts_nothing(
    configuration: Configuration, follow: Callable[..., Any], caplog: pytest.LogCaptureFixture
) -> None:
    configuration.write({"stays": ["one"]})
    async with follow():
        with caplog.at_level(logging.INFO, "pegboard"):
            configuration.write({"stays": ["one"]})
            await until(lambda: any("Servers added: none" in record.message for record in caplog.records))
    assert len(configuration.journals["stays"].starts) == 1


ONLY_AT_START: dict[str, Any] = {
    "audit_log": {"to": ["store"]},
    "activity": {"keep": "off", "most": 7, "texts": True},
    "retention": {"activity": 3},
    "usage": {"half_life": 9},
    "users": {"public_url": "https://board.example", "most": 9},
    "dashboard": False,
    "health_timeout": 11.5,
    "result_limit": 200_000,
    "list_limit": 4_000,
    "list_bytes": 20_000,
    "most_connections": 9,
    "head_timeout": 9,
    "body_timeout": 9,
    "index_recall": 9,
    "index_shards": ["shards"],
    "credentials": "file",
}
RELOADED = {
    *("servers", "profile", "k", "threshold", "calibration", "query", "recall", "budget", "pool", "always_available"),
    *("aliases", "rules", "scopes", "access", "issuer", "grants", "exposure", "list_budget", "session_tools", "push"),
    *("eager_tools", "eager_tokens", "clients", "categories", "category_patterns", "category_descriptions"),
    *("toolsets", "summaries", "instruction_tokens", "results", "programs", "items", "registry", "inherit_env"),
    *("sandbox", "activity", "rates", "spend", "economics", "breakers", "users", "pins", "new_servers", "scan", "llm"),
    *("api", "index_wait"),
}
"""Options of which all, or all that `FIXED` does not name, apply at once; and `index_wait`, which is the library's."""


async def test_each_option_that_waits_for_a_restart_is_said_and_the_page_shows_what_is_in_force(
    configuration: Configuration, follow: Callable[..., Any], caplog: pytest.LogCaptureFixture
) -> None:
    configuration.write({}, k=3)
    async with follow() as (_, host):
        with caplog.at_level(logging.INFO, "pegboard"):
            configuration.write({}, k=5, **ONLY_AT_START)
            await until(lambda: "Servers added: none" in caplog.text)
            options = BoardPages(host, None).settings()["options"]
            configuration.write({}, k=3)
            await until(lambda: caplog.text.count("Servers added: none") == 2)
    [said] = [each.getMessage() for each in caplog.records if "after a restart" in each.getMessage()]
    waiting = {*ONLY_AT_START, "activity.keep", "activity.most", "users.public_url"} - {"activity", "users"}
    assert set(said.partition(": ")[2].split(", ")) == waiting
    assert options["k"] == "5"
    assert options["health_timeout"] == "10.0 (after a restart: 11.5)"
    assert options["activity.keep"] == "memory (after a restart: off)"
    assert options["audit_log.to"] == "none (after a restart: store)"
    assert (options["activity.texts"], options["users.most"]) == ("True", "9")


def test_each_option_either_applies_at_once_or_waits_for_a_restart() -> None:
    fixed = {name.partition(".")[0] for name in FIXED}
    assert fixed | RELOADED == set(Settings.model_fields)
    assert fixed & RELOADED == {name.partition(".")[0] for name in FIXED if "." in name}


async def test_with_a_first_token_no_client_signs_in_for_everybody_any_more(
    configuration: Configuration, follow: Callable[..., Any]
) -> None:
    configuration.write({})
    async with follow() as (_, host):
        assert host.sign_ins.local
        configuration.write({}, access={"ann": {"hash": hashed("anns")}})
        await until(lambda: not host.sign_ins.local)


@pytest.mark.parametrize("shared", [{"host": "0.0.0.0"}, {"allowed_hosts": ["board.example"]}])  # noqa: S104
async def test_a_file_that_loses_where_the_gateway_serves_does_not_make_all_clients_one_person(
    configuration: Configuration, follow: Callable[..., Any], shared: dict[str, Any]
) -> None:
    proxied = Request({"type": "http", "headers": [(b"host", b"board.example")], "client": ("127.0.0.1", 1)})
    configuration.write({}, **shared)
    async with follow() as (_, host):
        local = host.sign_ins.local
        configuration.write({}, k=4)
        await until(lambda: host.settings.k == 4)
        assert host.sign_ins.local == local
        assert host.settings.is_for_one_person == local
        with pytest.raises(DashboardClosed):
            await DashboardAccess(host, TransportSecuritySettings()).viewer(proxied)


async def test_browsers_that_sign_in_return_to_the_address_that_a_reload_says(
    configuration: Configuration, follow: Callable[..., Any]
) -> None:
    def write(gateway: str) -> None:
        configuration.write({}, issuer={"url": "https://login.example", "resource": f"https://{gateway}.example/mcp"})

    write("old")
    async with follow() as (_, host):
        write("new")
        await until(lambda: host.settings.public_address == "https://new.example")
        waiting = host.sign_ins.returns.begun("wiki")
        assert waiting is not None
        assert waiting.url == "https://new.example/oauth/callback"


async def test_that_the_configuration_is_followed_no_more_is_said(
    configuration: Configuration, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(_: object) -> None:
        raise OSError("The disk is gone")

    monkeypatch.setattr(config_reload, "item_stamps", broken)
    configuration.write({})
    settings = load_settings([configuration.path], cache_dir=configuration.folder, state_dir=configuration.folder)
    parts = default_parts(settings, encoder=FakeEncoder(), embeddings=MemoryEmbeddings())
    async with open_host(settings, parts) as host, Source(files=[configuration.path]).followed(host):
        await until(lambda: "followed no more" in caplog.text)
    await parts.close()


def write_skill(folder: Path, description: str, version: int) -> None:
    """At once, with a time of its own."""
    folder.mkdir(exist_ok=True)
    (folder / "new").write_text(f"---\nname: ferry-refunds\ndescription: {description}\n---\nFerry text.\n")
    os.utime(folder / "new", (version, version))
    (folder / "new").replace(folder / "SKILL.md")


async def test_a_skill_that_changed_alone_is_read_again(
    configuration: Configuration, follow: Callable[..., Any], http: httpx2.AsyncClient
) -> None:
    skills = configuration.folder / "skills"
    skills.mkdir()
    write_skill(skills / "ferries", "How to refund a ferry", 1)
    configuration.write({"stays": ["one"]}, items={"skills": [str(skills)]})
    async with follow() as (url, host):
        client = Raw(http, url)
        await client.begin()

        async def found() -> list[str]:
            answer = await client.ask("search_tools", query="refund a ferry", kind="skill")
            return [each["description"] for each in answer.get("skills", [])]

        assert await found() == ["How to refund a ferry"]
        before = host.settings
        write_skill(skills / "ferries", "How to refund a ferry of last year", 2)
        async with asyncio.timeout(60):
            while await found() != ["How to refund a ferry of last year"]:
                pass
            write_skill(skills / "boats", "How to refund a ferry boat", 3)
            while len(await found()) < 2:
                pass
        assert host.settings == before
    assert len(configuration.journals["stays"].starts) == 1


async def test_a_skill_that_changed_while_the_gateway_started_is_read_again(
    configuration: Configuration, follow: Callable[..., Any], http: httpx2.AsyncClient
) -> None:
    skills = configuration.folder / "skills"
    skills.mkdir()
    write_skill(skills / "ferries", "How to refund a ferry", 1)
    configuration.write({"stays": ["one"]}, items={"skills": [str(skills)]})
    change = partial(write_skill, skills / "ferries", "How to refund a ferry of last year", 2)
    async with follow(change) as (url, _):
        client = await Raw(http, url).begin()
        async with asyncio.timeout(60):
            while True:
                answer = await client.ask("search_tools", query="refund a ferry", kind="skill")
                if [each["description"] for each in answer["skills"]] == ["How to refund a ferry of last year"]:
                    break
