from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegboard.errors import ConfigError
from pegboard.settings.client_configs import load_document, servers_of
from pegboard.settings.client_files import clients, usual_files
from pegboard.settings.server_spec import ServerSpec

ENVIRONMENT = {"TICKETS_TOKEN": "t0ken", "SEARCH_TOKEN": "s3arch", "NOTES_KEY": "n0tes"}


def read(path: Path) -> dict[str, ServerSpec]:
    return servers_of(load_document(path), path)


def spec(**fields: object) -> ServerSpec:
    return ServerSpec.model_validate({"name": "notes"} | fields)


@pytest.mark.requirement("M26")
def test_claude_desktop_servers_are_read_with_their_variables(data: Path) -> None:
    servers = {
        name: each.expanded(ENVIRONMENT) for name, each in read(data / "client_configs/claude_desktop.json").items()
    }

    assert servers["files"].args == ("-y", "@modelcontextprotocol/server-filesystem", "/srv/docs")
    assert servers["tickets"].args == ("--token", "t0ken")
    assert servers["tickets"].env == {"TICKETS_TOKEN": "t0ken", "REGION": "eu"}


@pytest.mark.requirement("M26")
def test_claude_code_servers_are_read_with_their_variables(data: Path) -> None:
    search = read(data / "client_configs/claude_code.mcp.json")["search"].expanded(ENVIRONMENT)

    assert search.is_http
    assert search.url == "https://search.example/mcp"
    assert search.headers == {"Authorization": "Bearer s3arch"}


@pytest.mark.requirement("M26")
def test_cursor_servers_are_read_with_their_variables(data: Path) -> None:
    servers = read(data / "client_configs/cursor_mcp.json")
    notes = servers["notes"].expanded(ENVIRONMENT)

    assert notes.command == f"{Path.home()}/bin/notes-mcp"
    assert notes.cwd == str(data / "client_configs" / "notes")
    assert notes.env == {"NOTES_KEY": "n0tes"}
    assert (servers["remote-notes"].url, servers["remote-notes"].disabled) == ("https://notes.example/mcp", True)


@pytest.mark.requirement("M26")
def test_cline_servers_are_read_as_its_command_line_writes_them() -> None:
    """`cline mcp add` of npm cline 3.0.65; without a type, an address is one of HTTP with SSE."""
    row = next(client for client in clients() if client.name == "cline")
    stdio = {"type": "stdio", "command": "notes-mcp", "args": ["-v"], "env": {"KEY": "k"}}
    remote = {"type": "streamableHttp", "url": "https://notes.example/mcp", "headers": {"X-Key": "k"}}

    assert row.common({"transport": stdio, "disabled": True}) == stdio | {"disabled": True}
    assert row.common({"transport": remote, "timeout": 60}) == remote | {"timeout": 60}
    assert row.common({"url": "https://notes.example/sse"}) == {"url": "https://notes.example/sse", "type": "sse"}
    assert row.common({"command": "notes-mcp"}) == {"command": "notes-mcp"}


@pytest.mark.requirement("M26")
def test_vs_code_servers_are_read_among_comments_and_trailing_commas(data: Path) -> None:
    database = read(data / "client_configs/vscode_mcp.json")["database"].expanded({})

    assert database.args == ("--config", f"{data / 'client_configs'}/db.toml")


def test_vs_codes_settings_hold_servers_under_mcp(data: Path) -> None:
    assert list(read(data / "client_configs/vscode_settings.json")) == ["database"]


def test_claude_codes_user_file_adds_the_servers_of_the_current_project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    document = {
        "mcpServers": {"everywhere": {"command": "a"}},
        "projects": {str(Path.cwd()): {"mcpServers": {"here": {"command": "b"}}}, "/elsewhere": {"mcpServers": {}}},
    }

    assert list(servers_of(document, tmp_path / ".claude.json")) == ["everywhere", "here"]


@pytest.mark.requirement("M26")
def test_what_only_an_editor_can_ask_for_is_an_error_that_names_it_and_the_server(data: Path) -> None:
    billing = read(data / "client_configs/vscode_mcp.json")["billing"]

    with pytest.raises(ConfigError, match=r"'billing' uses \$\{input:token\}"):
        billing.expanded(ENVIRONMENT)


@pytest.mark.requirement("M26")
@pytest.mark.parametrize(
    "fields",
    [
        {"command": "${ABSENT}"},
        {"command": "x", "args": ["${ABSENT}"]},
        {"command": "x", "env": {"KEY": "${env:ABSENT}"}},
        {"command": "x", "cwd": "/srv/${ABSENT}"},
        {"url": "https://${ABSENT}/mcp"},
        {"url": "https://host/", "headers": {"A": "Bearer ${ABSENT}"}},
        {"command": "${ALSO_ABSENT:-${ABSENT}}"},
    ],
)
def test_a_missing_variable_is_an_error_that_names_it_and_the_server(fields: dict[str, object]) -> None:
    with pytest.raises(ConfigError, match="'notes' needs the environment variable ABSENT") as caught:
        spec(**fields).expanded({})

    assert "${ABSENT:-default}" in caught.value.remedy


@pytest.mark.requirement("M26")
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("${HOST}", "example.org"),
        ("${env:HOST}", "example.org"),
        ("${HOST:-localhost}", "example.org"),
        ("${NOWHERE:-localhost}", "localhost"),
        ("${EMPTY:-localhost}", "localhost"),
        ("${EMPTY}", ""),
        ("${NOWHERE:-}", ""),
        ("${NOWHERE:-${HOST}}", "example.org"),
        ('${NOWHERE:-{"a": 1}}', '{"a": 1}'),
        ("https://${HOST}:${PORT:-80}/$x", "https://example.org:80/$x"),
        ("no variable", "no variable"),
    ],
)
def test_variables_are_put_in_as_a_shell_would(text: str, expected: str) -> None:
    expanded = spec(command="x", args=[text]).expanded({"HOST": "example.org", "EMPTY": ""})

    assert expanded.args == (expected,)


@pytest.mark.requirement("M26")
@given(value=st.text())
def test_a_variables_value_is_taken_literally(value: str) -> None:
    """Nothing inside a value is a variable, a group reference or an escape."""
    expanded = spec(command="x", env={"A": "<${V}>"}).expanded({"V": value})

    assert expanded.env == {"A": f"<{value}>"}


@pytest.mark.requirement("M30")
def test_headers_among_arguments_are_secrets_that_errors_do_not_repeat() -> None:
    by_flag = spec(command="npx", args=["mcp-remote", "https://host/", "--header", "Authorization: Bearer hush-hush"])
    by_name = spec(command="x", args=["Authorization:Bearer hush=hush==", "auth:read", "docker:latest"])

    assert by_flag.secrets({}) == {"hush-hush", "Bearer hush-hush"}
    assert by_name.secrets({}) == {"Bearer hush=hush=="}


@pytest.mark.requirement("M30")
def test_the_representation_of_an_expanded_server_holds_no_value_of_a_variable() -> None:
    by_command = spec(command="x", args=["--token", "${T}"], env={"T": "${T}"}).expanded({"T": "hush-hush"})
    by_url = spec(url="https://u:${T}@host/mcp?k=${T}", headers={"A": "Bearer ${T}"}).expanded({"T": "hush-hush"})

    assert "hush-hush" not in f"{by_command!r} {by_command} {by_url!r} {by_url}"


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        ({}, "needs either a command or a url"),
        ({"command": "x", "url": "https://host/"}, "needs either a command or a url"),
        ({"url": "http://[::1/mcp"}, "the url is malformed"),
        ({"url": "https://host:port/mcp"}, "the url is malformed"),
        ({"command": ["npx", "x"]}, "command: Input should be a valid string"),
        ("npx x", "is not an object"),
        (None, "is not an object"),
    ],
)
def test_an_entry_that_cannot_be_used_names_its_server_and_its_file(entry: object, problem: str) -> None:
    with pytest.raises(ConfigError) as caught:
        servers_of({"mcpServers": {"notes": entry}}, Path("somewhere/mcp.json"))

    assert "'notes' in 'somewhere/mcp.json'" in str(caught.value)
    assert problem in str(caught.value)


def test_a_url_that_its_variables_make_malformed_has_no_credentials() -> None:
    entry = spec(url="http://${HOST}/mcp", headers={"X-Region": "eu"})

    assert not entry.expanded({"HOST": "[::1"}).has_credentials


@pytest.mark.parametrize("document", [{}, {"mcpServers": None}, {"mcp": {}}, {"projects": {}}])
def test_a_file_without_servers_says_what_was_expected(document: dict[str, object]) -> None:
    with pytest.raises(ConfigError, match=r"'mcp\.json' names no servers") as caught:
        servers_of(document, Path("mcp.json"))

    assert "mcpServers" in caught.value.remedy


def test_servers_that_are_not_an_object_are_refused() -> None:
    with pytest.raises(ConfigError, match="are not an object"):
        servers_of({"mcpServers": [{"command": "x"}]}, Path("mcp.json"))


def test_unknown_fields_of_a_client_are_ignored() -> None:
    entry = {"command": "x", "autoApprove": ["y"], "disabledTools": [], "icon": {"a": 1}}

    assert servers_of({"mcpServers": {"notes": entry}}, Path("mcp.json"))["notes"].command == "x"


@pytest.mark.parametrize(("content", "problem"), [("{", "is not JSON"), ("[1]", "is not a JSON object")])
def test_a_file_that_is_not_a_json_object_is_named(tmp_path: Path, content: str, problem: str) -> None:
    path = tmp_path / "mcp.json"
    path.write_text(content)

    with pytest.raises(ConfigError, match=f"mcp.json' {problem}"):
        load_document(path)


def test_a_byte_order_mark_is_skipped(tmp_path: Path) -> None:
    path = tmp_path / "mcp.json"
    path.write_bytes(b"\xef\xbb\xbf" + json.dumps({"mcpServers": {}}).encode())

    assert load_document(path) == {"mcpServers": {}}


def test_the_usual_files_that_exist_are_found_the_nearest_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.setattr("pegboard.operating_system.PLATFORM", "linux")
    home, folder = tmp_path / "home", tmp_path / "work"
    expected = [
        folder / "pegboard.toml",
        folder / ".vscode" / "mcp.json",
        home / ".claude.json",
        home / ".config" / "Claude" / "claude_desktop_config.json",
    ]
    for path in reversed(expected):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("{}")

    assert list(usual_files(home, folder)) == expected


@pytest.mark.requirement("B11")
@pytest.mark.parametrize(
    ("entry", "old"),
    [
        ({"url": "https://host/events", "type": "sse"}, True),
        ({"url": "https://host/v1/sse/?key=k"}, True),
        ({"url": "https://host/sse", "type": "http"}, False),
        ({"url": "https://host/mcp"}, False),
        ({"command": "sse"}, False),
    ],
)
def test_the_old_transport_is_told_by_its_type_or_the_end_of_its_address(entry: dict[str, str], old: bool) -> None:
    assert servers_of({"mcpServers": {"s": entry}}, Path("mcp.json"))["s"].is_sse == old


def test_numbers_and_nulls_in_env_are_taken_as_editors_mean_them() -> None:
    entry = {"command": "x", "env": {"PORT": 3000, "DEBUG": True, "UNSET": None, "NAME": "n"}}
    specs = servers_of({"servers": {"s": entry}}, Path("mcp.json"))

    assert specs["s"].env == {"PORT": "3000", "DEBUG": "true", "NAME": "n"}


@pytest.mark.parametrize("field", [each.alias or name for name, each in ServerSpec.model_fields.items()])
def test_a_field_that_is_null_is_one_that_is_not_there(field: str) -> None:
    entry = {"url": "https://a.example"} if field == "command" else {"command": "x"}
    with_null, without = (
        servers_of({"servers": {"s": each}}, Path("mcp.json")) for each in ({**entry, field: None}, entry)
    )

    assert with_null == without


def test_a_command_that_is_a_list_may_stand_beside_arguments_that_are_null() -> None:
    assert clients()[0].common({"command": ["npx", "some"], "args": None})["args"] == ["some"]


def test_numbers_among_arguments_are_texts() -> None:
    entry = {"command": "x", "args": ["--port", 8080, True, 0.5], "envFile": "${ENV_FILE:-}"}
    spec = servers_of({"servers": {"s": entry}}, Path("mcp.json"))["s"].expanded({})

    assert (spec.args, spec.env) == (("--port", "8080", "true", "0.5"), {})


@pytest.mark.parametrize("folder", [".vscode", ".cursor"])
def test_the_workspace_is_the_project_not_the_editors_folder_in_it(folder: str) -> None:
    entry = {"command": "${workspaceFolder}/run"}
    specs = servers_of({"servers": {"s": entry}}, Path("/project") / folder / "mcp.json")

    assert specs["s"].expanded({}).command == "/project/run"


def test_an_env_file_gives_variables_that_env_overrides(tmp_path: Path) -> None:
    (tmp_path / "my.env").write_text("A=1\nB=from-file\n")
    entry = {"command": "x", "envFile": "${workspaceFolder}/my.env", "env": {"B": "from-env"}}
    spec = servers_of({"servers": {"s": entry}}, tmp_path / "mcp.json")["s"]

    assert spec.expanded({}).env == {"A": "1", "B": "from-env"}
    (tmp_path / "my.env").unlink()
    with pytest.raises(ConfigError, match="envFile"):
        spec.expanded({})


def test_an_env_file_may_begin_with_a_byte_order_mark(tmp_path: Path) -> None:
    (tmp_path / "my.env").write_text("A=1\n", "utf-8-sig")
    spec = servers_of({"servers": {"s": {"command": "x", "envFile": "my.env"}}}, tmp_path / "mcp.json")["s"]

    assert spec.expanded({}).env == {"A": "1"}


@pytest.mark.parametrize(
    ("name", "why"),
    [("latin.env", "is not UTF-8"), ("~nosuchuser/x", "does not exist"), (".", "cannot be read")],
)
def test_an_env_file_that_cannot_be_read_is_named_with_its_server(tmp_path: Path, name: str, why: str) -> None:
    (tmp_path / "latin.env").write_bytes(b"A=caf\xe9\n")
    spec = servers_of({"servers": {"s": {"command": "x", "envFile": name}}}, tmp_path / "mcp.json")["s"]

    with pytest.raises(ConfigError, match=rf"Server 's' has the envFile '{name}', which .*{why}"):
        spec.expanded({})


@pytest.mark.requirement("M30")
def test_every_part_of_a_secret_is_known_as_one() -> None:
    spec = servers_of(
        {
            "mcpServers": {
                "s": {
                    "command": "x",
                    "args": ["--key", "${KEY}"],
                    "env": {"DSN": "postgres://me:passw0rd@db/x", "DATA": "/home/someone/python/data"},
                    "headers": {"Authorization": "Bearer t0ken-value"},
                }
            }
        },
        Path("mcp.json"),
    )["s"]

    secrets = spec.secrets({"KEY": "k3y-value"})
    assert {"k3y-value", "passw0rd", "t0ken-value", "Bearer t0ken-value"} <= secrets
    assert "python" not in secrets, "a reason may name what a path is made of"
    assert "bearer" not in {secret.lower() for secret in secrets}
