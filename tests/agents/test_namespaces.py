"""Real Codex, which lists MCP tools in namespaces: the gateway defers them, and the task is billed less.

By `call_tool`, and by `tool_search` for a model that has it.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from pegboard_bench.coding_agents.billing import billed
from pegboard_bench.coding_agents.processes import gateway
from pegboard_bench.coding_agents.prompts import WITH_MCP
from pegboard_bench.coding_agents.request_view import visible
from pegboard_bench.coding_agents.sessions import Place

UNKNOWN = "gpt-5.9"
"""A model that Codex has no data of, with `tool_search` by its name."""


@pytest.mark.npm
@pytest.mark.timeout(600)
@pytest.mark.requirement("A7")
@pytest.mark.parametrize("place", [("codex_listed", 60)], indirect=True, ids=["listed-60"])
@pytest.mark.parametrize("way", ["call_tool", "defer"])
def test_a_task_with_tools_in_namespaces_is_done_and_is_billed_less(place: Place, way: str, tmp_path: Path) -> None:
    agent = place.agent
    if way == "defer":
        agent = replace(agent, model=UNKNOWN, arguments=(*agent.arguments[:-1], UNKNOWN))
    place = replace(place, agent=agent)
    direct = place.hold(place.provider.url, WITH_MCP.prompt, WITH_MCP.acts)
    assert direct.did(WITH_MCP) == ""

    more = f'[llm]\nfilter_timeout = 60\n[llm.policy]\nways = ["{way}"]\n'
    with gateway(place.provider.url, agent.format, tmp_path / "gateway", more=more) as url:
        session = place.hold(url, WITH_MCP.prompt, WITH_MCP.acts)

    assert session.did(WITH_MCP) == ""
    assert len(session.requests) <= len(direct.requests) + 1  # a search, at most
    own = {name for name in visible(direct.requests[0]["body"]) if not name.startswith("mcp__")}
    played = [request["body"] for request in session.requests if request["played"]]
    assert all(own < visible(body) for body in played)
    assert {name for body in played for name in visible(body) if name.startswith("mcp__")} == set()
    ours, theirs = (
        billed(agent, [[request["body"] for request in each.requests]], "apart") for each in (session, direct)
    )
    assert ours <= (0.75 if way == "defer" else 0.65) * theirs  # asked for alone, the dearer way of the two


@pytest.mark.npm
@pytest.mark.timeout(600)
@pytest.mark.requirement("A12")
@pytest.mark.parametrize("place", [("codex_listed", 60)], indirect=True, ids=["listed-60"])
def test_the_first_conversation_of_a_gateway_that_has_just_begun_is_filtered(place: Place, tmp_path: Path) -> None:
    """On a machine that is too busy its first request may pass; the others may not for that."""
    with gateway(place.provider.url, place.agent.format, tmp_path / "gateway") as url:
        session = place.hold(url, WITH_MCP.prompt, WITH_MCP.acts)

    assert session.did(WITH_MCP) == ""
    played = [visible(request["body"]) for request in session.requests if request["played"]]
    assert not any(name.startswith("mcp__") for names in played[1:] for name in names)
