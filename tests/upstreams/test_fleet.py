"""Real subprocesses and a real HTTP server: one that fails is named with its reason, and delays nobody."""

from __future__ import annotations

import asyncio
import json
import logging
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import mcp_types as types
import pytest
from mcp import MCPError

from pegboard.errors import UpstreamError
from pegboard.events import ServerChanged
from pegboard.model import ToolId
from pegboard.settings.server_spec import ServerSpec
from pegboard.stores import MemoryEvents
from pegboard.testing import FakeClock
from pegboard.upstreams import Fleet
from pegboard.upstreams.connection import Connection, ConnectionEnd
from pegboard.upstreams.error_text import Redactor
from pegboard.upstreams.fleet_options import FleetOptions, admit_all
from pegboard.upstreams.handshake_state import HandshakeState
from pegboard.upstreams.upstream import Upstream
from pegboard.upstreams.user_servers import UserServers
from processes import alive, eventually, listening, until
from servers.scripted import TOOLS
from upstream_specs import SCRIPTED, python, scripted

MakeFleet = Callable[..., Fleet]

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="process groups are POSIX")


@pytest.fixture(scope="module")
def http_server() -> Iterator[str]:
    with listening(SCRIPTED) as url:
        yield f"{url}/mcp"


@pytest.mark.requirement("M9")
@pytest.mark.requirement("mcp.pagination")
async def test_every_page_of_a_listing_is_read_past_an_empty_page_and_an_empty_cursor(fleet_of: MakeFleet) -> None:
    async with fleet_of(scripted()) as fleet:
        await fleet.settled(60)
        names = [tool.name for tool in fleet.catalog().tools]
    assert names == [tool.name for tool in TOOLS]


async def test_a_server_is_reached_over_streamable_http(fleet_of: MakeFleet, http_server: str) -> None:
    async with fleet_of(ServerSpec(name="web", url=http_server)) as fleet:
        await fleet.settled(60)
        result = await fleet.call(ToolId("web", "add"), {"a": 1, "b": 2})
    assert result["structuredContent"] == {"sum": 3}


@pytest.mark.requirement("M15")
@pytest.mark.requirement("M23")
async def test_sick_servers_are_named_with_reasons_and_delay_nobody(fleet_of: MakeFleet, events: MemoryEvents) -> None:
    sick = [
        ServerSpec(name="missing-command", command="no-such-command-anywhere"),
        ServerSpec(name="missing-variable", command="echo", env={"TOKEN": "${PEGBOARD_TEST_NOT_SET}"}),
        ServerSpec(name="missing-folder", command="echo", cwd="/no/such/folder"),
        ServerSpec(name="missing-user", command="echo", cwd="~no-such-user/work"),
        ServerSpec(name="nobody-listens", url="http://127.0.0.1:9/mcp"),
        python("garbage", "while True: print('hello, I am no MCP server', flush=True)"),
        ServerSpec(name="bad-header", url="http://127.0.0.1:9/mcp", headers={"X-Name": "… …"}),
        ServerSpec(name="bad-argument", command=sys.executable, args=("a\0b",)),
        python("exits", "import sys; print('the licence expired', file=sys.stderr); sys.exit(3)"),
    ]
    async with fleet_of(*sick, scripted("well")) as fleet:
        assert await fleet.settled(60)
        status = {each.name: each for each in fleet.status()}
        answer = await fleet.call(ToolId("well", "echo"), {"text": "still here"})
    assert answer["content"][0]["text"] == "still here"
    assert status["well"].state == "ready"
    assert {name for name, each in status.items() if each.state == "unhealthy"} == {spec.name for spec in sick}
    assert "no-such-command-anywhere" in status["missing-command"].reason
    assert "PEGBOARD_TEST_NOT_SET" in status["missing-variable"].reason
    assert "missing-variable" in status["missing-variable"].reason
    assert "/no/such/folder" in status["missing-folder"].reason
    assert "'~no-such-user/work', but there is no such user" in status["missing-user"].reason
    assert "hello, I am no MCP server" in status["garbage"].reason
    assert "the licence expired" in status["exits"].reason
    assert {event.server for event in events.of(ServerChanged) if event.state == "unhealthy"} >= {"garbage", "exits"}  # type: ignore[attr-defined]


@pytest.mark.requirement("M15")
async def test_a_server_that_never_answers_is_unhealthy_after_its_time_and_others_serve_meanwhile(
    fleet_of: MakeFleet,
) -> None:
    mute = python("mute", "import time; time.sleep(600)")
    async with fleet_of(mute, scripted("well"), connect_timeout=15.0) as fleet:
        await until(lambda: fleet.status()[1].state == "ready")
        assert fleet.status()[0].state == "starting"
        await fleet.call(ToolId("well", "echo"), {"text": "x"})
        assert await fleet.settled(60)
        assert fleet.status()[0].state == "unhealthy"
        assert "15 s" in fleet.status()[0].reason


@pytest.mark.requirement("M23")
async def test_some_lines_of_noise_before_the_protocol_do_no_harm(fleet_of: MakeFleet) -> None:
    noisy = python(
        "noisy",
        f"import runpy; print('Welcome!\\nLoading…', flush=True); runpy.run_path({SCRIPTED!r}, run_name='__main__')",
    )
    async with fleet_of(noisy) as fleet:
        await fleet.settled(60)
        assert fleet.status()[0].state == "ready", fleet.status()


async def test_a_server_killed_in_mid_call_fails_that_call_and_is_started_again(fleet_of: MakeFleet) -> None:
    async with fleet_of(scripted(), scripted("other")) as fleet:
        await fleet.settled(60)
        with pytest.raises(UpstreamError, match="closed the connection during the call"):
            await fleet.call(ToolId("scripted", "die"), {})
        assert (await fleet.call(ToolId("other", "echo"), {"text": "x"}))["content"]
        await until(lambda: fleet.status()[0].state == "ready")
        result = await fleet.call(ToolId("scripted", "echo"), {"text": "back"})
    assert result["content"][0]["text"] == "back"


async def test_what_a_server_itself_answers_is_not_rewritten(fleet_of: MakeFleet) -> None:
    async with fleet_of(scripted()) as fleet:
        await fleet.settled(60)
        with pytest.raises(MCPError) as raised:
            await fleet.call(ToolId("scripted", "raises"), {})
        failed = await fleet.call(ToolId("scripted", "fails"), {})
    assert (raised.value.code, raised.value.data) == (-32050, {"why": "test"})
    assert failed["isError"] is True
    assert failed["content"][0]["text"] == "it is broken"


async def test_a_call_that_takes_too_long_is_given_up_with_a_remedy(fleet_of: MakeFleet) -> None:
    async with fleet_of(scripted(), call_timeout=2.0) as fleet:
        await fleet.settled(60)
        with pytest.raises(UpstreamError, match=r"did not answer within 2 s.*call_timeout"):
            await fleet.call(ToolId("scripted", "slow"), {})
        assert await fleet.call(ToolId("scripted", "echo"), {"text": "x"})


@pytest.mark.requirement("M16")
async def test_one_connection_serves_many_calls_at_once(fleet_of: MakeFleet) -> None:
    async with fleet_of(scripted()) as fleet:
        await fleet.settled(60)
        results = await asyncio.gather(
            *(fleet.call(ToolId("scripted", "echo"), {"text": str(number)}) for number in range(50))
        )
    assert [result["content"][0]["text"] for result in results] == [str(number) for number in range(50)]


async def test_env_variables_and_cwd_reach_the_server(fleet_of: MakeFleet, tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    spec = scripted(env={"GREETING": "${WHO:-hello} you"}, cwd="work", folder=str(tmp_path))
    async with fleet_of(spec) as fleet:
        await fleet.settled(60)
        greeting = await fleet.call(ToolId("scripted", "environment"), {"name": "GREETING"})
        folder = await fleet.call(ToolId("scripted", "folder"), {})
    assert greeting["content"][0]["text"] == "hello you"
    assert folder["content"][0]["text"] == str(tmp_path / "work")


async def test_a_listener_that_fails_costs_no_user_the_connection(
    fleet_of: MakeFleet, http_server: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def fail(*_news: object) -> None:
        raise RuntimeError("a defect")

    async with fleet_of(ServerSpec(name="web", url=http_server, per_user=True)) as fleet:
        servers = UserServers(fleet, "ann", idle_stop=60, admit=admit_all, on_change=fail, on_news=fail)
        await servers.settled(60)
        result = await servers.call(ToolId("web", "add"), {"a": 1, "b": 2})
        servers.close()

    assert result["content"][0]["text"] == "3"
    assert "A listener failed" in caplog.text


@pytest.mark.requirement("M30")
async def test_no_secret_of_a_server_stands_in_the_reason_it_failed(fleet_of: MakeFleet, events: MemoryEvents) -> None:
    spec = python(
        "leaky",
        "import os, sys; sys.exit('cannot log in with ' + os.environ['API_KEY'])",
        env={"API_KEY": "s3cr3t-key"},
    )
    async with fleet_of(spec) as fleet:
        await fleet.settled(60)
        reason = fleet.status()[0].reason
    assert "cannot log in with ***" in reason
    assert "s3cr3t-key" not in json.dumps([event.as_dict() for event in events.of(ServerChanged)])


@pytest.mark.requirement("M30")
@pytest.mark.parametrize(
    "secret",
    [
        "s3cr3t|k^y",
        "s3cr3t key",
        "s3cr3t<k>",
        "s3cr3t-κλειδί",
        "s3cr3tκλειδί",
        "s3cr3t-£é\x1bkey",
        "s3cr3t-\U0001f600-key",
        "\U0001f511\U0001f511s3cr3t\\\U0001f511",
        's3cr3t"key',
        "s3cr3t\\'key",
        "\\s3cr3t\\",
        "-s3cr3t",
        "\ns3cr3t\nkey+\r\n",
    ],
)
def test_a_secret_is_known_as_urls_and_quotes_write_it(secret: str) -> None:
    spec = ServerSpec(name="leaky", url=f"https://leaky.example/sse?api={quote(secret)}", headers={"X-Key": secret})
    redacted = Redactor(spec, {})

    for text in (quote(secret), quote(secret, safe=""), repr(f'"{secret}'), ascii(secret), json.dumps(secret)):
        assert redacted(f"no {text} here").count("s3cr3t") == 0, text
        assert redacted(f"no {json.dumps(text)} here").count("s3cr3t") == 0, f"{text}, in a text of JSON"


@pytest.mark.parametrize("secret", ["/srv/da-ta", "\\srv\\da-ta"])
@pytest.mark.parametrize("run", ["\\", "%5C"])
def test_a_long_run_of_backslashes_is_searched_for_a_secret_once(secret: str, run: str) -> None:
    """Once from each of them would take hours."""
    said = run * 300_000 + "srv da ta"

    assert Redactor(ServerSpec(name="x", command="c", env={"P": secret}), {})(said) == said


@pytest.mark.requirement("M30")
async def test_no_secret_of_a_server_stands_in_the_log_of_what_it_refuses(
    clock: FakeClock, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse(*_request: object) -> None:
        raise MCPError(types.INVALID_PARAMS, "s3cr3t-key may not set levels")

    options = FleetOptions(connect_timeout=60, call_timeout=60, clock=clock, environment={})
    spec = python("leaky", "", env={"API_KEY": "s3cr3t-key"})
    connection = Connection(spec, options, protocol="", heard=refuse)
    monkeypatch.setattr(connection, "call", refuse)
    caplog.set_level(logging.INFO)
    options.levels.put("client", "debug")
    state = HandshakeState("leaky", 60, options.levels)

    await state.say_level(connection, {"logging": {}}, "2025-06-18")

    assert "does not accept a log level: *** may not set levels" in caplog.text


@pytest.mark.requirement("M13")
async def test_leaving_the_fleet_ends_every_process_also_one_that_left_its_group(fleet_of: MakeFleet) -> None:
    async with fleet_of(scripted()) as fleet:
        await fleet.settled(60)
        result = await fleet.call(ToolId("scripted", "spawn"), {})
        child = int(result["content"][0]["text"])
        assert alive(child)
    assert eventually(lambda: not alive(child))


async def test_a_server_that_is_ended_is_not_said_to_have_broken(
    fleet_of: MakeFleet, events: MemoryEvents, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What goes wrong while a connection is closed hides that it was to be closed."""
    run = Connection.run

    async def runs(self: Connection, *listed: Any) -> ConnectionEnd:
        try:
            return await run(self, *listed)
        except asyncio.CancelledError:
            return ConnectionEnd(reason="The connection broke.", opened=True)

    monkeypatch.setattr(Connection, "run", runs)
    async with fleet_of(scripted()) as fleet:
        await fleet.settled(60)
    assert [event.state for event in events.of(ServerChanged)] == ["ready"]  # type: ignore[attr-defined]


async def test_roots_that_change_while_a_connection_ends_end_nothing_else(
    fleet_of: MakeFleet, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    run, closed, go_on = Connection.run, asyncio.Event(), asyncio.Event()

    async def runs(self: Connection, *listed: Any) -> ConnectionEnd:
        end = await run(self, *listed)
        closed.set()
        await go_on.wait()
        return end

    monkeypatch.setattr(Connection, "run", runs)
    async with fleet_of(scripted(), scripted("other")) as fleet:
        await fleet.settled(60)
        ending = fleet.upstreams[0]._connection
        assert ending is not None
        ending.end(agreed=True)
        await closed.wait()
        await told_of_roots(fleet)
        assert (await fleet.call(ToolId("other", "echo"), {"text": "x"}))["content"]
        go_on.set()
        await until(lambda: fleet.upstreams[0]._connection not in (None, ending))
        assert (await fleet.call(ToolId("scripted", "echo"), {"text": "x"}))["content"]
    assert "changed roots" not in caplog.text


async def test_a_server_that_cannot_be_told_of_roots_ends_nothing_else(
    fleet_of: MakeFleet, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def fails(_self: Upstream) -> None:
        raise RuntimeError("it is broken")

    monkeypatch.setattr(Upstream, "tell_roots_changed", fails)
    async with fleet_of(scripted()) as fleet:
        await fleet.settled(60)
        await told_of_roots(fleet)
        assert (await fleet.call(ToolId("scripted", "echo"), {"text": "x"}))["content"]
    assert "Server scripted could not be told of changed roots" in caplog.text


async def told_of_roots(fleet: Fleet) -> None:
    """Tell every server that roots have changed, and wait until all that does so has ended."""
    fleet.roots_changed(None)
    await until(lambda: not any(task.get_name().endswith("-roots") for task in asyncio.all_tasks()))
