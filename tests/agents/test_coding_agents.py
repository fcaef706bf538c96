"""Real coding agents through the gateway in its default configuration, with and without sixty MCP tools.

`make bench-coding-agents` runs every prompt for real. Here one conversation does, and what the agent sent in it is sent
again with each of the other prompts in its place.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_URL, uuid5

import httpx2
import pytest

from pegboard_bench.coding_agents.atlassian import is_one
from pegboard_bench.coding_agents.processes import gateway
from pegboard_bench.coding_agents.prompts import LOOK, PROMPTS, WHOLE, WITH_MCP
from pegboard_bench.coding_agents.request_view import visible
from pegboard_bench.coding_agents.sessions import Place
from played_agents import PLACES

pytestmark = [
    pytest.mark.npm,
    pytest.mark.timeout(600),
    pytest.mark.parametrize(
        "place",
        PLACES,
        ids=[f"{name}-{tools}" for name, tools in PLACES],
        indirect=True,
    ),
]
UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
OF_THE_CONNECTION = {"host", "content-length", "connection", "transfer-encoding", "accept-encoding"}


@pytest.mark.requirement("agents.tools")
def test_no_prompt_loses_a_tool_of_the_agents_own(place: Place, tmp_path: Path) -> None:
    said = PROMPTS[0]
    session = place.hold(place.provider.url, said, LOOK)
    assert session.broke == ""
    captured = [request for request in session.requests if request["played"]]
    assert len(captured) == len(LOOK) + 1
    own = [{name for name in visible(request["body"]) if not is_one(name)} for request in captured]
    assert min(map(len, own)) > 3

    with gateway(place.provider.url, place.agent.format, tmp_path / "gateway") as url:
        lost = {prompt: _lost(place, url, captured, own, said, prompt) for prompt in PROMPTS}

    assert {prompt: names for prompt, names in lost.items() if names} == {}


@pytest.mark.requirement("agents.tasks")
def test_a_whole_task_is_done_through_the_gateway(place: Place, tmp_path: Path) -> None:
    """With MCP tools one that needs two of them in the middle, after a conversation that needed none where all are
    listed."""
    task = WITH_MCP if place.tools else WHOLE
    with gateway(place.provider.url, place.agent.format, tmp_path / "gateway") as url:
        before = place.hold(url, WHOLE.prompt, WHOLE.acts) if place.tools and place.agent.lists else None
        session = place.hold(url, task.prompt, task.acts)

    assert before is None or before.did(WHOLE) == ""
    assert session.did(task) == ""


def _lost(
    place: Place, url: str, captured: list[Mapping[str, Any]], own: list[set[str]], said: str, prompt: str
) -> set[str]:
    """Of a conversation that is the captured one, but for what the user says and the numbers that it goes by."""
    place.provider.play(prompt, [])
    session = str(uuid5(NAMESPACE_URL, prompt))
    for request in captured:
        written = json.dumps(request["body"]).replace(json.dumps(said)[1:-1], json.dumps(prompt)[1:-1])
        headers = {name: value for name, value in request["headers"].items() if name not in OF_THE_CONNECTION}
        answer = httpx2.post(
            url + request["target"],
            content=UUID.sub(session, written).encode(),
            headers={name: UUID.sub(session, value) for name, value in headers.items()},
            timeout=60,
            trust_env=False,
        )
        assert answer.status_code == 200, answer.text
    noted = place.provider.noted()
    assert noted["refused"] == []
    sent = [visible(request["body"]) for request in noted["requests"]]
    assert len(sent) == len(captured)
    return {name for names, offered in zip(own, sent, strict=True) for name in names - offered}
