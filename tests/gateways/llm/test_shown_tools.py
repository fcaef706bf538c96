"""What an agent with tools of its own is shown of the others, with the encoder of the package."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from model_bodies import CODECS, asking, parsed
from pegboard.compose import boards_of_requests, opened_parts
from pegboard.gateways.llm.formats.protocol import LlmRequest
from pegboard.gateways.llm.selection.board_cache import BoardCache
from pegboard.gateways.llm.selection.policy import Policy
from pegboard.gateways.llm.selection.selector import Selector
from pegboard.routing import PROFILES
from pegboard.settings import Settings

OWN = ["Bash", "Read", "Edit"]
JIRA = {
    "mcp__jira__add_comment": "Add a comment to a Jira issue.",
    "mcp__jira__get_issue": "Get the details of a Jira issue: its summary, status, description and comments.",
    "mcp__jira__create_issue": "Create a new Jira issue in a project.",
    "mcp__jira__assign_issue": "Assign a Jira issue to a user.",
    "mcp__jira__add_worklog": "Add a worklog entry to a Jira issue: the time that somebody spent on it.",
    "mcp__wiki__get_page": "Get the content of a Confluence page by its title or id.",
    "mcp__wiki__create_page": "Create a new Confluence page in a space.",
    "mcp__wiki__search": "Search the Confluence wiki for pages.",
    "mcp__crm__list_invoices": "List the invoices of a customer.",
    "mcp__crm__send_invoice": "Send an invoice to a customer by e-mail.",
    "mcp__air__book_flight": "Book a flight between two airports.",
    "mcp__air__cancel_flight": "Cancel a flight that was booked.",
}


@pytest.fixture
async def selector(tmp_path: Path) -> AsyncIterator[Selector]:
    settings = Settings(state_dir=tmp_path / "state", cache_dir=tmp_path / "cache")
    async with opened_parts(settings) as parts:
        yield Selector(BoardCache(boards_of_requests(settings, parts)))


def request(text: str, *, own: bool = True) -> LlmRequest:
    """A request of an agent with tools of its own, or of one that has none."""
    body = asking("anthropic", text, [*OWN, *JIRA])
    for entry in body["tools"]:
        entry["description"] = JIRA.get(entry["name"], "Works on files.")
    found = parsed("anthropic", body)
    marked = (msgspec.structs.replace(each, protected="own" if own else "") for each in found.tools[: len(OWN)])
    return replace(found, tools=(*marked, *found.tools[len(OWN) :]))


async def shown(selector: Selector, asked: LlmRequest, way: str) -> set[str]:
    policy = Policy(profile=PROFILES["hybrid"], ways=(way,), sticky=False)  # type: ignore[arg-type]
    filtered = await selector.select(CODECS["anthropic"], asked, policy)
    if filtered.call_tool_plan is not None:
        places = filtered.call_tool_plan.disclosure.places
    else:
        assert filtered.deferral is not None
        places = filtered.deferral.referred
    return {asked.tools[place].name for place in places}


@pytest.mark.requirement("agents.nothing-shown-unasked")
@pytest.mark.parametrize("way", ["call_tool", "defer"])
@pytest.mark.parametrize(
    "text", ["Fix the bug in calc.py", "Run the tests and tell me what fails", "continue", "commit my changes"]
)
async def test_an_ordinary_request_to_a_coding_agent_shows_no_tool_of_a_server(
    selector: Selector, text: str, way: str
) -> None:
    assert await shown(selector, request(text), way) == set()


@pytest.mark.requirement("agents.nothing-shown-unasked")
@pytest.mark.parametrize("way", ["call_tool", "defer"])
@pytest.mark.parametrize(
    ("text", "tool"),
    [
        ("Fix what Jira issue PEG-7 asks for, and add a comment to the issue when done", "mcp__jira__add_comment"),
        ("Put what you found on a new Confluence page", "mcp__wiki__create_page"),
        ("send the customer the invoice", "mcp__crm__send_invoice"),
    ],
)
async def test_what_a_request_needs_of_a_server_is_shown(selector: Selector, text: str, tool: str, way: str) -> None:
    assert tool in await shown(selector, request(text), way)


@pytest.mark.requirement("agents.nothing-shown-unasked")
async def test_an_agent_without_tools_of_its_own_is_shown_what_comes_next(selector: Selector) -> None:
    assert await shown(selector, request("Fix the bug in calc.py", own=False), "call_tool")
