"""Over random conversations and whatever the model does: what was valid arrives valid, in every round of a request."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from more_provider_bodies import Call
from pegboard.catalog import Catalog
from pegboard.gateways.llm.conversation.history import ProviderHistories
from pegboard.gateways.llm.formats.protocol import Codec
from pegboard.gateways.llm.formats.registry import codec_for
from pegboard.gateways.llm.selection.board_cache import BoardCache
from pegboard.gateways.llm.selection.filter import RequestFilter, RewrittenRequest
from pegboard.gateways.llm.selection.policy_rules import Treatment, treatment
from pegboard.gateways.llm.selection.selector import Selector
from pegboard.retrieval import CachedEncoder
from pegboard.routing import Profile
from pegboard.routing_board import RoutingBoard
from pegboard.settings.llm import PolicySettings, UpstreamSettings
from pegboard.stores import MemoryEmbeddings, MemoryEvents
from pegboard.testing import FakeClock, FakeEncoder
from random_conversations import FORMATS, JOBS, PATHS, answer, body, conversations
from strict_upstreams import PROBLEMS
from strict_upstreams.conversations import CONVERSATIONS

MODELS = {
    "openai_chat": ("gpt-5.4", "llama-4-scout"),
    "gemini": ("gemini-2.5-pro", "gemini-1.5-pro"),
    "bedrock": ("", ""),
    "cohere": ("command-a-03-2025", "command-r"),
}
POLICIES: dict[str, dict[str, Any]] = {
    "picked, with the way back": {"ways": ("tools",), "way_back": True},
    "picked, hidden calls to the guard": {"ways": ("tools",), "way_back": True, "hidden_call": "guard"},
    "one tool for all": {"ways": ("call_tool",)},
    "deferred": {"ways": ("defer",)},
}


@dataclass
class Door:
    """The filter of one format and policy, in a loop of its own."""

    name: str
    model: str
    filter: RequestFilter
    treatment: Treatment
    loop: asyncio.Runner

    @property
    def codec(self) -> Codec:
        found = codec_for(self.path)
        assert found is not None
        return found

    @property
    def path(self) -> str:
        return PATHS[self.name].format(self.model)

    def rewrite(self, sent: dict[str, Any]) -> RewrittenRequest:
        made = self.filter.rewrite(
            self.codec,
            json.dumps(sent, ensure_ascii=False).encode(),
            path=self.path,
            coding="",
            owner="someone",
            treatment_of=lambda model: self.treatment,
        )
        return self.loop.run(made)


def door(name: str, policy: str, model: str, loop: asyncio.Runner) -> Door:
    documents = CachedEncoder(FakeEncoder(), MemoryEmbeddings())

    def board(catalog: Catalog, profile: Profile) -> RoutingBoard:
        return RoutingBoard(
            catalog, profile, documents=documents, queries=documents, events=MemoryEvents(), clock=FakeClock()
        )

    said = PolicySettings(profile="semantic", k=2, least_tools=0, least_tokens=0, **POLICIES[policy])
    upstream = UpstreamSettings(url="http://127.0.0.1:1", format=PROVIDER[name])
    filter_ = RequestFilter(
        Selector(BoardCache(board), FakeClock()),
        ProviderHistories(),
        FakeClock(),
        timeout=60,
        shadow_timeout=60,
        patience=60,
        most=2**24,
        most_tools=1_000,
    )
    return Door(name=name, model=model, filter=filter_, treatment=treatment(said, upstream), loop=loop)


PROVIDER: dict[str, Any] = {"openai_chat": "openai", "gemini": "gemini", "bedrock": "bedrock", "cohere": "cohere"}


@pytest.fixture
def loop() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as runner:
        yield runner


def problems(name: str, sent: dict[str, Any]) -> list[str]:
    return [*PROBLEMS[name](sent), *CONVERSATIONS[name](sent)]


rounds = st.lists(
    st.lists(
        st.sampled_from(
            [
                ("ours", {"query": "engine"}),
                ("ours", {}),
                ("ours", {"name": "unit_3", "arguments": {"what": 1}}),
                ("ours", {"name": "nobody_has_this", "arguments": {}}),
                ("unit_7", {"what": "it"}),
                ("renew_loan", {"what": "it"}),
            ]
        ),
        min_size=1,
        max_size=3,
    ),
    max_size=4,
)
"""What the model calls in each round; `ours` is the tool of the gateway."""


@pytest.mark.requirement("llm.any-conversation")
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("name", FORMATS)
def test_what_was_valid_arrives_valid_in_every_round(name: str, policy: str, loop: asyncio.Runner) -> None:
    doors = [door(name, policy, model, loop) for model in MODELS[name]]

    @settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
    @given(talk=conversations(), system=st.booleans(), made=rounds, which=st.integers(0, 1))
    def holds(talk: Any, system: bool, made: list[list[Call]], which: int) -> None:
        through = doors[which]
        sent = body(name, through.model, talk, system=system)
        assert problems(name, sent) == []

        rewritten = through.rewrite(sent)

        arrives = sent if rewritten.body is None else json.loads(rewritten.body)
        assert problems(name, arrives) == []
        assert rewritten.failure == ""
        trip = rewritten.round_trip
        if trip is None:
            return
        ours = [tool.name for tool in through.codec.parse(json.dumps(arrives).encode(), through.path).tools]
        own = next((each for each in reversed(ours) if each not in JOBS), "search_tools")
        for number, calls in enumerate(made):
            document = answer(name, [(own if tool == "ours" else tool, given) for tool, given in calls], number)
            if not trip.goes_on(document):
                break
            loop.run(trip.answer(document))
            assert problems(name, json.loads(trip.body())) == []

    holds()


@pytest.mark.requirement("llm.any-conversation")
@pytest.mark.parametrize("name", FORMATS)
def test_through_one_tool_each_prompt_begins_with_the_one_before(name: str, loop: asyncio.Runner) -> None:
    through = door(name, "one tool for all", MODELS[name][0], loop)
    field = "contents" if name == "gemini" else "messages"

    @settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
    @given(talk=conversations())
    def holds(talk: Any) -> None:
        before: list[Any] = []
        for end in range(1, len(talk) + 1):
            sent = body(name, through.model, [*talk[: end - 1], replace(talk[end - 1], end="")], system=True)
            made = json.loads(through.rewrite(sent).body or b"")

            assert made[field][: len(before)] == before
            before = made[field]

    holds()
