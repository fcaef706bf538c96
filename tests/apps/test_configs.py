from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from pegboard.apps.cli import consent
from pegboard.apps.cli.configs import given, given_or_usual, own_files, own_files_agreed
from pegboard.errors import ConfigError
from pegboard.settings.client_configs import is_pegboard
from pegboard.settings.server_spec import ServerSpec


@pytest.mark.parametrize(
    ("command", "args", "ours"),
    [
        ("pegboard", ("mcp",), True),
        ("/opt/bin/pegboard", ("mcp", "--config", "x.json"), True),
        ("uvx", ("pegboard", "mcp"), True),
        ("python", ("-m", "pegboard", "mcp"), True),
        ("pegboard.exe", ("mcp",), True),
        ("npx", ("-y", "pegboard-shop"), False),
        ("cat", ("pegboard",), False),
    ],
)
def test_a_server_that_is_the_gateway_itself_is_recognised(command: str, args: tuple[str, ...], ours: bool) -> None:
    assert is_pegboard(ServerSpec(name="x", command=command, args=args)) is ours


def test_the_nearest_of_the_usual_files_wins(servers_file: Callable[..., Path], machine: Path) -> None:
    consent.remember([servers_file(".mcp.json", tools={"command": "near"})])
    servers_file(".cursor/mcp.json", tools={"command": "far"}, more={"command": "other"})
    configured = given_or_usual([])

    assert configured.settings.servers["tools"].command == "near"
    assert configured.settings.servers["more"].command == "other"
    assert configured.files == (machine / ".mcp.json", machine / ".cursor" / "mcp.json")


def test_flags_win_over_files(machine: Path) -> None:
    (machine / "own.toml").write_text('profile = "keyword"\nk = 3')
    settings = given([machine / "own.toml"], profile="semantic", k=None).settings

    assert (settings.profile, settings.k) == ("semantic", 3)


@pytest.mark.parametrize("option", ["chroma", "encoder", "state"])
def test_a_projects_own_file_does_not_say_where_data_and_keys_go(
    servers_file: Callable[..., Path], machine: Path, option: str
) -> None:
    users = servers_file(".cursor/mcp.json", more={"command": "other"})
    project = machine / ".mcp.json"
    project.write_text(json.dumps({"mcpServers": {}, "pegboard": {option: {"url": "http://elsewhere"}}}))
    consent.remember([users, project])

    configured = given_or_usual([])

    assert configured.files == (users.absolute(),)
    assert any(option in note and "--config" in note for note in configured.notes)


def test_nor_does_a_pegboard_toml_of_the_current_folder(servers_file: Callable[..., Path], machine: Path) -> None:
    users = servers_file(".cursor/mcp.json", more={"command": "other"})
    project = machine / "pegboard.toml"
    project.write_text('[encoder]\nprovider = "openai"\nbase_url = "http://elsewhere"')

    assert given_or_usual([]).files == (users.absolute(),)
    assert given_or_usual([project]).settings.encoder.base_url == "http://elsewhere"
    assert own_files() == [Path("pegboard.toml")]
    with pytest.raises(ConfigError, match=r"belongs to the current project .* \(encoder\)"):
        own_files_agreed()
