"""Real Claude Code that lists sixty MCP tools: the gateway defers them, searches itself, and is billed less."""

from __future__ import annotations

from pathlib import Path

import pytest

from pegboard_bench.coding_agents.atlassian import is_one
from pegboard_bench.coding_agents.billing import billed
from pegboard_bench.coding_agents.processes import gateway
from pegboard_bench.coding_agents.prompts import WITH_MCP
from pegboard_bench.coding_agents.request_view import visible
from pegboard_bench.coding_agents.sessions import Place

WAYS = '[llm.policy]\nways = ["defer"]\n'
"""Whatever the cost rule would choose: `call_tool` may be cheaper by now."""


@pytest.mark.npm
@pytest.mark.timeout(600)
@pytest.mark.parametrize("place", [("claude_code_listed", 60)], indirect=True, ids=["listed-60"])
def test_a_task_with_tools_that_wait_is_done_and_is_billed_less(place: Place, tmp_path: Path) -> None:
    direct = place.hold(place.provider.url, WITH_MCP.prompt, WITH_MCP.acts)
    assert direct.did(WITH_MCP) == ""

    with gateway(place.provider.url, place.agent.format, tmp_path / "gateway", more=WAYS) as url:
        session = place.hold(url, WITH_MCP.prompt, WITH_MCP.acts)

    assert session.did(WITH_MCP) == ""
    assert session.refused == []
    played = [request["body"] for request in session.requests if request["played"]]
    assert all("search_tools" in visible(body) and not any(map(is_one, visible(body))) for body in played)
    own = {name for name in visible(direct.requests[0]["body"]) if not is_one(name)}
    assert all(own <= visible(body) for body in played)
    ours, theirs = (
        billed(place.agent, [[request["body"] for request in each.requests]], "apart") for each in (session, direct)
    )
    assert ours < 0.85 * theirs
