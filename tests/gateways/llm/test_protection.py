"""What makes an agent an agent leaves with every request, whatever it is about."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest

from model_bodies import CODECS, FORMATS, PATH, asking, names_of, parsed
from model_doors import Gateway, gateway_beside
from pegboard.gateways.llm.formats.tool_choice import apply_tool_choice
from pegboard.gateways.llm.selection.policy import Policy, mark_protected
from unknown_agents import OFFICE

formats = pytest.mark.parametrize("name", FORMATS)
CATALOG = list(OFFICE)[:20]
CONTROL = ["final_result", "transfer_to_billing_agent", "todo_write", "ask_user", "ContactInfo"]
CLAUDE_CODE = {"user-agent": "claude-cli/2.1.330 (external, sdk-cli)", "x-app": "cli"}


def kept(name: str, body: dict[str, Any], *, client: dict[str, str] | None = None, **policy: Any) -> list[str]:
    """The tools that leave where `get_invoice` is relevant."""
    request = mark_protected(parsed(name, body), client or {}, Policy(**policy))
    relevant = {place: "relevant" for place, tool in enumerate(request.tools) if tool.name == "get_invoice"}
    out = CODECS[name].rewrite(request, apply_tool_choice(request, relevant).places)
    return names_of(name, json.loads(out))


@pytest.mark.requirement("A2")
@formats
def test_control_tools_stay_beside_what_is_relevant(name: str) -> None:
    body = asking(name, tools=[*CATALOG, *CONTROL])

    assert kept(name, body) == ["get_invoice", *CONTROL]
    assert kept(name, body, protect=False) == ["get_invoice"]
    assert kept(name, body, never=("todo_*",)) == ["get_invoice", *(each for each in CONTROL if each != "todo_write")]


@pytest.mark.requirement("A2")
@formats
@pytest.mark.parametrize("exits", [True, False])
def test_a_call_that_is_required_never_loses_its_exit(name: str, exits: bool) -> None:
    tools = [*CATALOG, "final_answer"] if exits else CATALOG
    required: Any = {"tool_choice": {"type": "any"} if name == "anthropic" else "required"}
    if name == "gemini":
        required = {"toolConfig": {"functionCallingConfig": {"mode": "ANY"}}}

    found = kept(name, asking(name, tools=tools, **required))

    assert found == (["get_invoice", "final_answer"] if exits else CATALOG)


@pytest.mark.requirement("A2")
def test_of_claude_code_only_tools_of_servers_are_filtered() -> None:
    own = ["Bash", "Read", "Edit", "Write", "ANewOne"]
    body = asking("anthropic", tools=[*own, *(f"mcp__office__{each}" for each in CATALOG)])
    request = mark_protected(parsed("anthropic", body), CLAUDE_CODE, Policy())

    out = apply_tool_choice(request, {5 + CATALOG.index("get_invoice"): "relevant"})

    assert [request.tools[place].name for place in out.places] == [*own, "mcp__office__get_invoice"]
    assert out.why[0] == "protected: Claude Code"


@pytest.mark.requirement("A7")
def test_of_codex_only_tools_in_namespaces_of_servers_are_filtered() -> None:
    functions = [{"type": "function", "name": each, "parameters": {"type": "object"}} for each in CATALOG]
    own = [{"type": "function", "name": each, "parameters": {}} for each in ("exec_command", "write_stdin", "get_goal")]
    namespaces = [{"type": "namespace", "name": each, "tools": functions} for each in ("multi_agent_v1", "mcp__office")]
    body = {
        "model": "gpt-5",
        "input": [{"role": "user", "content": "Fix the bug in calc.py"}],
        "tools": [*own, *namespaces, {"type": "web_search"}],
    }
    codec = CODECS["openai_responses"]
    sent = json.dumps(body).encode()

    request = mark_protected(codec.parse(sent, PATH), {"originator": "codex_exec"}, Policy())

    assert {tool.namespace for tool in request.tools if not tool.stays} == {"mcp__office"}
    assert all(tool.stays for tool in request.tools if tool.namespace != "mcp__office")
    assert codec.rewrite(request, apply_tool_choice(request, {}).places) == sent
    wanted = next(place for place, tool in enumerate(request.tools) if tool.name == "mcp__office.get_invoice")
    out = json.loads(codec.rewrite(request, apply_tool_choice(request, {wanted: "relevant"}).places))
    office = namespaces[1] | {"tools": [each for each in functions if each["name"] == "get_invoice"]}
    assert out["tools"] == [*own, namespaces[0], office, {"type": "web_search"}]


@pytest.fixture(scope="module")
def door(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """One tool a request, but by `call_tool` for models called `one-…`."""
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("PEGBOARD_STATE_DIR", str(tmp_path_factory.mktemp("state")))
        environment.setenv("PEGBOARD_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        rules = [{"model": "one-*", "ways": ["call_tool"]}]
        with gateway_beside(
            policy={"k": 1, "least_tools": 0, "least_tokens": 0, "ways": ["tools"]}, rules=rules
        ) as found:
            yield found


def arrived(door: Gateway, model: str, headers: dict[str, str]) -> list[str]:
    body = asking(
        "openai_chat", "Fetch invoice 7", tools=["Bash", "Read", *(f"mcp__office__{each}" for each in OFFICE)]
    )
    with httpx2.Client() as client:
        client.post(f"{door.url}/openai/v1/chat/completions", json=body | {"model": model}, headers=headers)
    return names_of("openai_chat", json.loads(door.mock.last.body))


@pytest.mark.requirement("A2")
def test_headers_reach_the_place_where_tools_are_picked(door: Gateway) -> None:
    found = arrived(door, "m", CLAUDE_CODE)

    assert found[:2] == ["Bash", "Read"]
    assert len(found) == 3


@pytest.mark.requirement("A2")
def test_beside_the_one_tool_for_all_protected_ones_stay_what_they_are(door: Gateway) -> None:
    assert arrived(door, "one-m", CLAUDE_CODE) == ["Bash", "Read", "call_tool"]
