"""What is said of a client's conversations; the conversations themselves are held in tests/agents."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pegboard.settings.server_spec import ServerSpec
from pegboard_bench import results
from pegboard_bench.coding_agents.atlassian import Running, Server
from pegboard_bench.coding_agents.sessions import Session
from pegboard_bench.fleet.agent_clients import Conversation, acts, seen
from pegboard_bench.fleet.before_fleet import Doors
from pegboard_bench.fleet.clients import conversations, figures
from pegboard_bench.fleet.clients_page import section
from pegboard_bench.fleet.needs import Need, Way, needs
from pegboard_bench.fleet.sdk_sessions import conversed, directly

NEED = Need(query="tell the time", word="time", server="clock", tool="now", arguments={"zone": "UTC"}, answer="noon")


def conversation(tokens: int, *, done: int = 3, billed: float = 0, trouble: str = "") -> Conversation:
    return Conversation(
        requests=7, calls=3, done=done, start=10, tokens=tokens, billed=billed, listed=4, trouble=trouble
    )


def session(*messages: str) -> Session:
    """One whose requests say each what was said so far."""
    bodies = [{"model": "m", "messages": [{"role": "user", "content": text}], "tools": []} for text in messages]
    return Session(
        prompt="p",
        code=0,
        seconds=1,
        requests=[{"body": body, "played": True} for body in bodies],
        refused=[],
        missed=[],
        said="",
    )


@pytest.mark.parametrize(
    ("way", "said", "done"),
    [
        ("direct", "noon", 1),
        ("stdio", "now(zone: string) noon", 1),
        ("stdio", "noon", 0),
        ("stdio", "now(zone: string)", 0),
    ],
)
def test_behind_pegboard_a_call_counts_only_if_the_search_had_found_its_tool(way: Way, said: str, done: int) -> None:
    found = seen("opencode", session("p", said), [NEED], way)

    assert (found.calls, found.done, found.requests) == (1, done, 2)
    assert (found.trouble == "") is bool(done)


def test_behind_pegboard_the_model_searches_before_each_call() -> None:
    assert [(act.server, act.tool or act.command) for act in acts([NEED], "direct")] == [("", "time"), ("clock", "now")]
    assert [(act.server, act.tool or act.command) for act in acts([NEED], "http")] == [
        ("", "pegboard"),
        ("pegboard", "search_tools"),
        ("pegboard", "invoke_tool"),
    ]


def test_tokens_are_those_of_every_request_with_all_that_was_said_before_it() -> None:
    assert conversed(100, []) == 100
    assert conversed(100, ["a", "b"]) == 100 + 102
    assert conversed(100, ["a", "b", "c", "d"]) == 100 + 102 + 104
    assert directly(100, [NEED]).tokens > 200


def test_figures_are_by_client_and_leave_out_what_did_not_get_through(tmp_path: Path) -> None:
    found: dict[str, dict[Way, Conversation]] = {
        "gemini_cli": {
            "direct": conversation(900, billed=800.0),
            "stdio": conversation(300, billed=200.0),
            "http": conversation(310, billed=200.0),
            "grows": conversation(320, billed=400.0),
            "pushes": conversation(330, billed=500.0),
        },
        "npm-1": {
            "direct": conversation(90, done=2, trouble="no answer of now"),
            "stdio": conversation(30),
            "http": conversation(30, done=0, trouble="no answer"),
        },
        "opencode": {
            "direct": conversation(900, done=0, billed=1.0, trouble="tools: 481 are too many; no answer of now"),
            "stdio": conversation(300, billed=200.0),
            "http": conversation(300, billed=200.0),
        },
    }
    of = figures(found)

    assert (of["calls_ok/gemini_cli"], of["calls_ok/npm-1"]) == (1, 0.5)
    assert (of["tokens_before/gemini_cli"], of["tokens/gemini_cli"], of["billed/gemini_cli"]) == (900, 300, 200)
    assert (of["billed_grows/gemini_cli"], of["billed_pushes/gemini_cli"]) == (400, 500)
    assert "tokens_before/opencode" not in of
    path = results.write("fleet", command="c", seed=0, figures={"tools": 1}, tables={}, folder=tmp_path)
    for _ in range(2):
        table = {"servers": 2, "tools": 30, "tokens": 900, "conversations": conversations(found)}
        results.extend(path, "clients", figures=of, table=table)
    written = results.read(path)
    assert written["figures"].keys() == {"tools", *of}
    text = section(written["figures"], written["tables"]["clients"])
    assert "2 servers, 30 tools, 900 tokens" in text
    assert "| Gemini CLI | 100% | 900 | 300 | 800 | 200 |" in text
    assert "| `npm-1` | 50% |  | 30 |  |  |" in text
    assert "- `npm-1`: no answer of now, of 3 calls" in text
    assert "| Gemini CLI | 200 | 400 | 500 |" in text
    assert "- opencode: its provider refuses the request (tools: 481 are too many)" in text


def test_agents_are_given_every_server_or_pegboard_alone(tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    spec: Any = ServerSpec(name="files", command="files", args=("--here", "notes"), cwd=str(tmp_path), env={"A": "b"})
    fleet = Doors(specs={"files": spec}, config=tmp_path / "fleet.json", folder=tmp_path, url="http://127.0.0.1:1/mcp")

    whole = Server(command="files", args=("--here", str(tmp_path / "notes")), env={"A": "b"})
    assert fleet.servers("direct") == {"files": whole}
    assert fleet.servers("http") == {"pegboard": Running("http://127.0.0.1:1/mcp")}
    program = fleet.program("pushes")
    assert fleet.servers("pushes") == {"pegboard": Server(command=str(program))}
    assert "PEGBOARD_EXPOSURE=dynamic" in program.read_text("utf-8")
    assert program.stat().st_mode & 0o100


def test_the_needs_are_of_servers_that_ci_installs(tmp_path: Path) -> None:
    assert {need.server for need in needs(tmp_path)} <= {"time", "git", "everything"}
