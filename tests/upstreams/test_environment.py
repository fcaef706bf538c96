"""What a server's process has of the gateway's environment: what is safe, and what its entry names."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from mcp.client.stdio import DEFAULT_INHERITED_ENV_VARS

from pegboard.errors import ConfigError
from pegboard.model import ToolId
from pegboard.settings import Settings
from pegboard.settings.server_spec import SAFE, ServerSpec
from pegboard.testing import FakeClock
from pegboard.upstreams import Fleet
from pegboard.upstreams.connection import expanded_spec
from pegboard.upstreams.fleet_options import FleetOptions
from processes import until
from upstream_specs import python, scripted

MakeFleet = Callable[..., Fleet]


async def seen(fleet_of: MakeFleet, spec: ServerSpec, *names: str) -> list[str]:
    async with fleet_of(spec) as fleet:
        await fleet.settled(60)
        told = [await fleet.call(ToolId("scripted", "environment"), {"name": name}) for name in names]
    return [str(each["content"][0]["text"]) for each in told]


def test_it_is_the_sdks_own_list() -> None:
    assert sorted(SAFE) == sorted(DEFAULT_INHERITED_ENV_VARS)


@pytest.mark.requirement("D13")
async def test_a_server_does_not_see_the_gateways_secrets(fleet_of: MakeFleet, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-operator")
    monkeypatch.setenv("WHO", "ann")
    names = ("OPENAI_API_KEY", "WHO", "GREETING", "PATH")

    closed = await seen(fleet_of, scripted(env={"GREETING": "hello ${WHO}"}), *names)
    assert closed[:3] == ["unset", "unset", "hello ann"], "variables stand for what the gateway has, all the same"
    assert closed[3] != "unset"
    assert (await seen(fleet_of, scripted(env={"OPENAI_API_KEY": "${OPENAI_API_KEY}"}), *names))[0] == "sk-operator"
    assert (await seen(fleet_of, scripted(inherit_env=True), *names))[:2] == ["sk-operator", "ann"]


@pytest.mark.parametrize(
    ("everywhere", "own", "whole"),
    [(False, None, None), (False, True, True), (True, None, True), (True, False, False)],
)
def test_it_is_said_for_all_servers_or_for_one(everywhere: bool, own: bool | None, whole: bool | None) -> None:
    entry: dict[str, Any] = {"command": "x"} | ({} if own is None else {"inheritEnv": own})

    settings = Settings(servers={"a": entry}, inherit_env=everywhere)

    assert settings.enabled_servers["a"].inherit_env is whole


@pytest.mark.requirement("D13")
async def test_a_server_that_misses_a_variable_says_which_and_what_to_write(
    fleet_of: MakeFleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NOTES_TOKEN", "s3cr3t")
    spec = python("notes", "import sys; sys.exit('NOTES_TOKEN and OTHER_TOKEN have to be set')")
    async with fleet_of(spec) as fleet:
        await fleet.settled(60)
        reason = fleet.status()[0].reason
    assert 'mentions NOTES_TOKEN, which it is not given: write "env": {"NOTES_TOKEN": "${NOTES_TOKEN}"}' in reason
    assert "s3cr3t" not in reason


@pytest.mark.requirement("D13")
async def test_what_a_terminal_would_obey_is_written_out(fleet_of: MakeFleet) -> None:
    spec = python("rude", r"import sys; sys.exit('\x1b[2J\x1b]0;owned\x07 gone\r\x9b1m')")
    async with fleet_of(spec) as fleet:
        await fleet.settled(60)
        reason = fleet.status()[0].reason
    assert r"\x1b[2J\x1b]0;owned\x07 gone" in reason
    assert reason.isprintable()


@pytest.mark.requirement("M30")
async def test_a_secret_reaches_its_server_anew_with_each_start_and_no_message(
    fleet_of: MakeFleet, tmp_path: Path
) -> None:
    token = tmp_path / "token"
    token.write_text("first-s3cret\n")
    spec = scripted(env={"GREETING": f"${{file:{token}}}"})
    assert await seen(fleet_of, spec, "GREETING") == ["first-s3cret"]
    token.write_text("second-s3cret\n")
    assert await seen(fleet_of, spec, "GREETING") == ["second-s3cret"]

    told = python("told", "import os, sys; sys.exit('bad token ' + os.environ['TOKEN'])")
    told = told.model_copy(update={"env": {"TOKEN": f"${{file:{token}}}"}})
    async with fleet_of(told) as fleet:
        await fleet.settled(60)
        assert "bad token ***" in fleet.status()[0].reason


async def test_a_server_whose_secret_is_missing_says_so_and_the_others_start(
    fleet_of: MakeFleet, tmp_path: Path
) -> None:
    lost = scripted(env={"GREETING": f"${{file:{tmp_path}/absent}}"}).model_copy(update={"name": "lost"})
    async with fleet_of(lost, scripted()) as fleet:
        await fleet.settled(60)
        found = {status.name: status for status in fleet.status()}
    assert "absent" in found["lost"].reason
    assert found["scripted"].available


@pytest.mark.parametrize("wrong", ["${UNSET}", "${cmd:tell ${UNSET}}", "${file:${UNSET}/token}"])
async def test_an_entry_that_is_wrong_anyway_runs_no_command(clock: FakeClock, tmp_path: Path, wrong: str) -> None:
    ran = tmp_path / "ran"
    words = shlex.join([sys.executable, "-c", f"open({str(ran)!r}, 'w').close(); print('token')"])
    spec = ServerSpec(name="wrong", command="x", env={"A": f"${{cmd:{words}}}", "B": wrong})
    options = FleetOptions(connect_timeout=60, call_timeout=60, clock=clock, environment={})

    with pytest.raises(ConfigError, match="UNSET"):
        await expanded_spec(spec, options)

    assert not ran.exists()


@pytest.mark.parametrize("field", ["env", "envFile"])
async def test_a_server_whose_secret_comes_late_is_started_then(
    fleet_of: MakeFleet, tmp_path: Path, field: str
) -> None:
    """A secret that is mounted or replaced while the gateway starts is there a moment later."""
    late = tmp_path / "late"
    given = {"env": {"GREETING": f"${{file:{late}}}"}, "envFile": str(late)}
    async with fleet_of(scripted(**{field: given[field]})) as fleet:
        await fleet.settled(60)
        assert "late" in fleet.status()[0].reason
        late.write_text("GREETING=hello\n")
        await until(lambda: fleet.status()[0].state == "ready")
        told = await fleet.call(ToolId("scripted", "environment"), {"name": "GREETING"})
    assert told["content"][0]["text"].endswith("hello")
