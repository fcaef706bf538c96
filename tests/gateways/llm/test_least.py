"""What is too small to be filtered, where nothing is said about it."""

from __future__ import annotations

from typing import Any

import pytest

from model_bodies import CODECS, asking, parsed
from pegboard.catalog import BpeCounter, Catalog
from pegboard.gateways.llm.selection.board_cache import BoardCache
from pegboard.gateways.llm.selection.policy import Filtered
from pegboard.gateways.llm.selection.policy_rules import Policies
from pegboard.gateways.llm.selection.selector import Selector
from pegboard.retrieval import CachedEncoder
from pegboard.routing import Profile
from pegboard.routing_board import RoutingBoard
from pegboard.settings.llm import LlmSettings, UpstreamSettings
from pegboard.stores import MemoryEmbeddings, MemoryEvents
from pegboard.testing import FakeClock, FakeEncoder

JOBS = [f"do_thing_{number}" for number in range(10)]
LONG = "Do this one thing, and nothing but this one thing, for whoever asks for it. " * 30
BY_RANK = {"selectionMode": "By Rank", "limit": 1, "toolsJSONPath": "$.tools[*].function"}


@pytest.fixture
def selector(encoder: FakeEncoder) -> Selector:
    documents = CachedEncoder(encoder, MemoryEmbeddings())

    def make(catalog: Catalog, profile: Profile) -> RoutingBoard:
        return RoutingBoard(
            catalog, profile, documents=documents, queries=documents, events=MemoryEvents(), clock=FakeClock()
        )

    return Selector(BoardCache(make))


def offering(count: int, description: str) -> dict[str, Any]:
    body = asking("openai_chat", "Do the thing that is called 7", JOBS[:count])
    for entry in body["tools"]:
        entry["function"]["description"] = description
    return body


async def selected(selector: Selector, body: dict[str, Any], settings: LlmSettings | None = None) -> Filtered:
    policy = Policies(settings or LlmSettings()).of("openai", "gpt-5.4", None, {}).policy
    return await selector.select(CODECS["openai_chat"], parsed("openai_chat", body), policy)


@pytest.mark.requirement("A5")
@pytest.mark.parametrize(
    ("count", "description", "why"),
    [
        (9, LONG, "it has 9 tools to select from, and the minimum is 10"),
        (10, "Do it.", "and the minimum is 4000"),
        (10, LONG, ""),
    ],
    ids=["nine", "small", "neither"],
)
async def test_few_tools_or_few_tokens_to_pick_from_pass_by_default(
    selector: Selector, count: int, description: str, why: str
) -> None:
    filtered = await selected(selector, offering(count, description))

    assert filtered.left_alone.endswith(why)
    assert (len(filtered.kept.places) == count) is bool(why)


@pytest.mark.requirement("A5")
async def test_what_cannot_be_left_out_does_not_count_as_something_to_pick_from(selector: Selector) -> None:
    counter = BpeCounter()
    body = offering(10, LONG)
    body["tools"] += [{"type": "web_search", "about": LONG * 3}]
    for entry in body["tools"][:10]:
        entry["function"]["description"] = LONG[: len(LONG) // 2]
    assert counter.count([str(body["tools"])])[0] > 4000

    filtered = await selected(selector, body)

    assert filtered.left_alone.endswith("and the minimum is 4000")


@pytest.mark.requirement("A5")
def test_the_policy_of_any_other_payload_holds_for_any_number_of_tools() -> None:
    upstream = UpstreamSettings(url="http://models.test", format="generic", semantic_tool_filtering=BY_RANK)
    policies = Policies(LlmSettings(upstreams={"legacy": upstream}))

    policy = policies.of("legacy", "", None, {}).policy

    assert (policy.least_tools, policy.least_tokens) == (0, 0)
