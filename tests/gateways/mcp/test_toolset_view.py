from __future__ import annotations

import traceback
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pegboard import Catalog, Tool, ToolId
from pegboard.catalog import WireNames
from pegboard.errors import ConfigError
from pegboard.gateways.mcp.gateway.caller_view import CallerView
from pegboard.gateways.mcp.gateway.meta_definitions import META_TOOLS
from pegboard.gateways.mcp.gateway.toolset_view import ToolsetView
from pegboard.model import Server, ServerName
from pegboard.settings import Settings, ToolsetSettings, load_settings


def tool(server: str, name: str, *arguments: str) -> Tool:
    schema = {"type": "object", "properties": {each: {"type": "string"} for each in arguments}, "required": arguments}
    schema["required"] = list(arguments)
    definition = {"name": name, "description": f"The {name}.", "inputSchema": schema, "x-own": 1}
    return Tool(id=ToolId(server, name), description=f"The {name}.", input_schema=schema, definition=definition)


@pytest.fixture
def board() -> Catalog:
    groups = {
        "github": [tool("github", "create_issue", "owner", "title"), tool("github", "delete_repo", "owner")],
        "jira": [tool("jira", "create_issue", "summary"), tool("jira", "list_boards")],
        "github.com/org/notes": [tool("github.com/org/notes", "add_note", "text")],
    }
    return Catalog.build([(Server(name=ServerName(name)), tools) for name, tools in groups.items()])


def toolset(environment: dict[str, str] | None = None, **fields: Any) -> ToolsetView:
    return ToolsetView.of("tickets", ToolsetSettings(**fields), environment or {})


def names(catalog: Catalog) -> list[str]:
    return [str(each.id) for each in catalog.tools]


def test_an_empty_toolset_is_the_whole_board(board: Catalog) -> None:
    assert toolset().apply(board).fingerprint == board.fingerprint


def test_servers_tools_and_hidden_patterns_choose_together(board: Catalog) -> None:
    view = toolset(servers=["jira", "github"], tools=["*/create_*", "*_repo"], hidden=["jira/*"]).apply(board)

    assert names(view) == ["github/create_issue", "github/delete_repo"]
    assert list(view.servers) == ["github"]


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, None),
        ({"hidden": ["jira/*"]}, {"github", "documents", "github.com/org/notes"}),
        ({"servers": ["jira", "documents"], "hidden": ["documents/*"]}, {"jira"}),
        ({"servers": ["jira", "documents"]}, {"jira", "documents"}),
        ({"tools": ["jira/list_boards"]}, {"jira"}),
    ],
)
def test_a_toolset_has_the_resources_and_prompts_of_its_servers_although_one_has_no_tools(
    board: Catalog, fields: dict[str, Any], expected: set[str] | None
) -> None:
    chosen = toolset(**fields)
    shown: Any = SimpleNamespace(catalog=chosen.apply(board))
    none: Any = None
    servers = {name: {"command": "x"} for name in ("jira", "github", "documents")}
    view = CallerView(Settings(servers=servers), shown, none, chosen, searches=none)
    assert view.servers == expected


def test_a_tool_that_is_not_changed_is_the_very_same(board: Catalog) -> None:
    view = toolset(servers=["jira"], rename={"jira/create_issue": "new_ticket"}).apply(board)

    assert view.tools[1] is board.tools[3]


def test_a_description_is_changed_wherever_it_is_read(board: Catalog) -> None:
    view = toolset(describe={"jira/create_issue": "Open a ticket."}).apply(board)

    changed = view[ToolId("jira", "create_issue")]
    assert changed.description == "Open a ticket."
    assert changed.definition["description"] == "Open a ticket."
    assert changed.definition["x-own"] == 1
    assert changed.summary == "create_issue: Open a ticket."


def test_a_new_name_is_on_the_wire_and_is_searched_by(board: Catalog) -> None:
    chosen = toolset(rename={"jira/create_issue": "new_ticket", "github.com/org/notes/add_note": "jot"})
    view = chosen.apply(board)

    wire = WireNames.build(view.position, reserved=META_TOOLS, renamed=chosen.renamed)
    renamed = ToolId("jira", "create_issue")
    assert wire.of[renamed] == "new_ticket"
    assert wire.of[ToolId("github", "create_issue")] == "create_issue"
    assert wire.resolve("jot") == ToolId("github.com/org/notes", "add_note")
    assert view[renamed].aliases == ("new_ticket",)
    assert view[renamed].summary == "new_ticket: The create_issue."
    assert view[renamed].id == renamed


def test_a_preset_argument_is_not_shown_and_is_always_sent(board: Catalog) -> None:
    chosen = toolset(preset={"github/create_issue": {"owner": "us"}})

    shown = chosen.apply(board)[ToolId("github", "create_issue")]
    assert shown.definition["inputSchema"] == shown.input_schema
    assert shown.input_schema == {"type": "object", "properties": {"title": {"type": "string"}}, "required": ["title"]}
    sent = chosen.arguments(shown.id, {"title": "x", "owner": "them"})
    assert sent == {"title": "x", "owner": "us"}
    assert chosen.arguments(ToolId("jira", "create_issue"), {"owner": "them"}) == {"owner": "them"}


def test_a_preset_of_a_tool_without_a_schema_is_sent_too() -> None:
    bare = Catalog.build([(Server(name=ServerName("a")), [Tool(id=ToolId("a", "b"))])])
    chosen = toolset(preset={"a/b": {"n": 1}})

    assert chosen.apply(bare).tools[0].input_schema == {"type": "object"}
    assert chosen.arguments(ToolId("a", "b"), {}) == {"n": 1}


def test_preset_values_hold_variables_at_any_depth() -> None:
    preset = {"a/b": {"token": "Bearer ${TOKEN}", "options": {"keys": ["${TOKEN}", 3]}, "who": "${WHO:-me}"}}

    chosen = toolset({"TOKEN": "hush-hush"}, preset=preset)

    assert chosen.arguments(ToolId("a", "b"), {}) == {
        "token": "Bearer hush-hush",
        "options": {"keys": ["hush-hush", 3]},
        "who": "me",
    }


def test_a_variable_that_is_not_set_is_named_with_toolset_and_tool() -> None:
    with pytest.raises(ConfigError, match=r"Toolset 'tickets', preset of 'a/b', needs .* TOKEN, which is not set"):
        toolset(preset={"a/b": {"token": "${TOKEN}"}})


@pytest.mark.requirement("M30")
def test_preset_values_are_in_no_definition_and_no_representation(board: Catalog) -> None:
    preset = {"github/create_issue": {"owner": "hush-hush", "nowhere": "${TOKEN}"}}
    chosen = toolset({"TOKEN": "hush-hush"}, preset=preset)
    view = chosen.apply(board)

    assert "hush-hush" not in repr(chosen) + repr(chosen.settings) + str(chosen.unmatched(board))
    assert "hush-hush" not in "".join(repr((each, each.definition)) for each in view.tools)


@pytest.mark.requirement("M30")
def test_preset_values_are_in_no_error_about_the_configuration(tmp_path: Path) -> None:
    file = tmp_path / "pegboard.toml"
    file.write_text('[toolsets.tickets.preset]\n"github/x" = "hush-hush"\n"no" = { a = "hush-hush" }\n', "utf-8")

    with pytest.raises(ConfigError, match=r"toolsets\.tickets\.preset") as caught:
        load_settings([file])

    assert "hush-hush" not in "".join(traceback.format_exception(caught.value))


def test_what_matches_nothing_is_listed_with_its_field(board: Catalog) -> None:
    chosen = toolset(
        servers=["github", "gitlab"],
        tools=["github/*issue", "jira/*"],
        hidden=["*/wipe"],
        rename={"github/create_isue": "new"},
        describe={"github/delete_repo": "Left out above."},
        preset={"github/create_issue": {"owner": "us", "ower": "us"}},
        always_available=["nowhere/*"],
    )

    assert chosen.unmatched(board) == (
        "servers: gitlab",
        "tools: jira/*",
        "hidden: */wipe",
        "always_available: nowhere/*",
        "rename: github/create_isue",
        "describe: github/delete_repo",
        "preset: github/create_issue, argument ower",
    )
    assert toolset(rename={"jira/create_issue": "new"}, hidden=["*_repo"]).unmatched(board) == ()


@pytest.mark.requirement("M12")
def test_a_tool_cannot_be_given_the_name_of_a_meta_tool() -> None:
    with pytest.raises(ConfigError, match=r"Toolset 'tickets', rename: 'a/b' .*'search_tools'"):
        toolset(rename={"a/b": "search_tools"})


def test_two_tools_cannot_be_given_one_name() -> None:
    with pytest.raises(ConfigError, match="Toolset 'tickets', rename: 'a/b' and 'c/d' are both called 'new'"):
        toolset(rename={"a/b": "new", "c/d": "new"})


def test_toolsets_are_read_from_the_file(tmp_path: Path) -> None:
    text = """
        [toolsets.tickets]
        servers = ["jira"]
        hidden = ["*/delete_*"]
        exposure = "eager"
        always_available = ["jira/create_issue"]

        [toolsets.tickets.rename]
        "jira/create_issue" = "new_ticket"

        [toolsets.tickets.preset."jira/create_issue"]
        project = "OPS"
        labels = ["from-agent"]
    """
    file = tmp_path / "pegboard.toml"
    file.write_text(text, "utf-8")

    chosen = load_settings([file]).toolsets["tickets"]

    assert (chosen.servers, chosen.hidden, chosen.exposure) == (("jira",), ("*/delete_*",), "eager")
    assert chosen.rename == {"jira/create_issue": "new_ticket"}
    assert chosen.preset == {"jira/create_issue": {"project": "OPS", "labels": ["from-agent"]}}


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ('[toolsets.a]\nserver = ["jira"]', r"toolsets\.a\.server"),
        ('[toolsets.a.rename]\ncreate_issue = "x"', r"toolsets\.a\.rename\.create_issue"),
        ('[toolsets.a.rename]\n"jira/create_issue" = ""', r"toolsets\.a\.rename\.jira/create_issue"),
        ('[toolsets."a/b"]', r"toolsets\.a/b"),
    ],
)
def test_a_toolset_that_cannot_be_used_is_named_with_its_field(tmp_path: Path, text: str, named: str) -> None:
    file = tmp_path / "pegboard.toml"
    file.write_text(text, "utf-8")

    with pytest.raises(ConfigError, match=named):
        load_settings([file])
