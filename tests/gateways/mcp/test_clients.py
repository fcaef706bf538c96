from __future__ import annotations

import re
from pathlib import Path

import pytest

from pegboard.errors import ConfigError
from pegboard.gateways.mcp.gateway.clients import ClientKind, client_kind, client_rows, known_clients
from pegboard.settings import ClientSettings, load_settings


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("claude-code", "claude-code"),
        ("claude-ai", "claude-desktop"),
        ("Visual Studio Code", "vscode"),
        ("Visual Studio Code - Insiders", "vscode"),
        ("Visual-Studio-Code", "vscode"),
        ("cursor-vscode", "cursor"),
        ("Windsurf", "windsurf"),
        ("windsurf-client", "windsurf"),
        ("codex-mcp-client", "codex"),
        ("Codex", "codex"),
        ("ChatGPT", "chatgpt"),
        ("openai-mcp", "chatgpt"),
        ("gemini-cli-mcp-client", "gemini-cli"),
        ("Cline", "cline"),
        ("Kilo-Code", "kilo"),
        ("Roo Code", "roo"),
        ("Roo-Code", "roo"),
        ("Zed", "zed"),
        ("goose", "goose"),
        ("@librechat/api-client", "librechat"),
        ("@n8n/n8n-nodes-langchain.mcpClientTool", "n8n"),
        ("opencode", "opencode"),
        ("github-copilot-developer", "copilot-cli"),
        ("JetBrains-IU-copilot-intellij", "copilot-ide"),
        ("JetBrains-IU/copilot-intellij", "copilot-ide"),
        ("Q-DEV-CLI", "amazon-q"),
        ("Glama", "glama"),
        ("continue-cli-client", "continue"),
        ("mcp-inspector", "inspector"),
    ],
)
def test_clients_are_known_by_the_names_they_give_themselves(name: str, kind: str) -> None:
    assert client_kind(name).name == kind


def test_clients_behind_a_bridge_are_known_all_the_same() -> None:
    assert client_kind("claude-ai (via mcp-remote 0.1.37)") == client_kind("claude-ai")


def test_a_title_helps_where_the_name_says_nothing() -> None:
    assert client_kind("client", "Visual Studio Code").name == "vscode"
    assert client_kind("cursor-vscode", "Visual Studio Code").name == "cursor"


def test_a_client_nobody_knows_re_lists_nothing() -> None:
    assert client_kind("something-new", "Something new") == ClientKind(name="unknown")
    assert client_kind("") == ClientKind()


def test_the_table_holds_what_is_known_of_list_changed_caps_and_own_searches() -> None:
    kinds = {name: row.kind for name, row in known_clients().items()}

    honour = {"vscode", "claude-code", "gemini-cli", "opencode", "windsurf", "cline", "kilo", "glama"}
    do_not = {"claude-desktop", "cursor", "codex", "continue"}
    assert {name for name in honour | do_not if kinds[name].list_changed} == honour
    assert not any(kind.native_search for kind in kinds.values()), "no client says that its search is on"
    assert kinds["claude-code"].always_load == "anthropic/alwaysLoad"
    assert (kinds["cursor"].most_tools, kinds["windsurf"].most_tools, kinds["vscode"].most_tools) == (40, 100, 128)


def test_every_row_of_the_table_has_patterns_a_source_and_a_day() -> None:
    for name, row in known_clients().items():
        assert row.matches, name
        assert row.source, name
        assert re.fullmatch(r"\d{4}-\d\d-\d\d", row.checked), name
        assert row.kind.exposure is None, name


def test_no_client_is_given_names_longer_than_a_function_name_may_be() -> None:
    limits = [row.kind.longest_name for row in known_clients().values() if row.kind.longest_name]

    assert min(limits) >= 40
    assert max(limits) == 64


def test_configuration_changes_a_row_in_what_it_names_and_leaves_the_rest() -> None:
    kind = client_kind("cursor-vscode", overrides={"cursor": ClientSettings(list_changed=True, most_tools=80)})

    assert kind == ClientKind(name="cursor", list_changed=True, most_tools=80, longest_name=42)


def test_configuration_brings_new_clients_and_comes_before_the_table(tmp_path: Path) -> None:
    file = tmp_path / "pegboard.toml"
    file.write_text(
        '[clients.our-agent]\nmatches = ["ACME-agent*", "cursor-acme"]\nlongest_name = 64\nexposure = "dynamic"\n',
        "utf-8",
    )
    clients = load_settings([file]).clients

    wanted = ClientKind(name="our-agent", longest_name=64, exposure="dynamic")
    assert client_kind("acme-agent/2", overrides=clients) == wanted
    assert client_kind("cursor-acme", overrides=clients) == wanted
    assert client_kind("cursor-vscode", overrides=clients).name == "cursor"


def test_a_row_can_be_given_other_patterns() -> None:
    kinds = [client_kind(name, overrides={"zed": ClientSettings(matches=("zee*",))}).name for name in ("zee", "Zed")]

    assert kinds == ["zed", "unknown"]


def test_a_new_client_without_patterns_is_an_error_that_names_it() -> None:
    with pytest.raises(ConfigError, match=r"'our-agent'.*clients\.our-agent\.matches"):
        client_rows({"our-agent": ClientSettings(list_changed=True)})


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("[clients.zed]\nmost_tools = 0", "clients.zed.most_tools"),
        ("[clients.zed]\nlongest_name = 3", "clients.zed.longest_name"),
        ('[clients.zed]\nexposure = "auto"', "clients.zed.exposure"),
        ("[clients.zed]\nlistchanged = true", "clients.zed.listchanged"),
    ],
)
def test_a_client_that_cannot_be_used_is_named_with_its_field(tmp_path: Path, text: str, named: str) -> None:
    file = tmp_path / "pegboard.toml"
    file.write_text(text, "utf-8")

    with pytest.raises(ConfigError, match=named):
        load_settings([file])
