"""An agent that nobody has a row for keeps what it works with, and a catalog is filtered all the same."""

from __future__ import annotations

import re
import time
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from model_bodies import CODECS, function
from pegboard.compose import boards_of_requests, default_parts
from pegboard.gateways.llm.selection.board_cache import BoardCache
from pegboard.gateways.llm.selection.policy import Policy, mark_protected
from pegboard.gateways.llm.selection.selector import Selector
from pegboard.protection import Signs, kind_of, protected_tools
from pegboard.protection.unknown_agents import MOST, conspicuous_in, from_catalogs, named_in
from pegboard.settings import Settings
from unknown_agents import MARGRAVE, OFFICE, PROMPTS, TERN, instructions

pytestmark = pytest.mark.slow

AGENTS = {
    "margrave": (MARGRAVE, OFFICE),
    "tern": (TERN, {f"office_{name}": text for name, text in OFFICE.items()}),
}


@pytest.fixture
async def selector(tmp_path: Path) -> AsyncIterator[Selector]:
    """With the encoder of the package."""
    settings = Settings(state_dir=tmp_path, cache_dir=tmp_path)
    parts = default_parts(settings)
    boards = BoardCache(boards_of_requests(settings, parts))
    yield Selector(boards)
    await boards.close()
    await parts.close()


def body(own: Mapping[str, str], catalog: Mapping[str, str], ask: str, system: str) -> dict[str, Any]:
    tools = [
        function(name, description=text, parameters={"type": "object"}) for name, text in {**own, **catalog}.items()
    ]
    said = [{"role": "system", "content": system}] if system else []
    return {"model": "m", "messages": [*said, {"role": "user", "content": ask}], "tools": tools}


@pytest.mark.requirement("A2")
@pytest.mark.parametrize("told", [True, False], ids=["its instructions name its tools", "nothing names them"])
@pytest.mark.parametrize("agent", AGENTS)
async def test_an_agent_that_nobody_knows_loses_nothing_it_works_with(
    selector: Selector, agent: str, told: bool
) -> None:
    own, catalog = AGENTS[agent]
    assert not any(map(kind_of, own))
    system = instructions(own) if told else "You are a careful helper."
    for ask in PROMPTS:
        parsed = CODECS["openai_chat"].parse(msgspec.json.encode(body(own, catalog, ask, system)), "")
        request = mark_protected(parsed, {}, Policy())

        kept = (await selector.select(CODECS["openai_chat"], request, Policy())).kept.places

        assert {request.tools[place].name for place in kept} >= own.keys(), ask
        assert len(kept) <= len(own) + 10, ask


@pytest.mark.requirement("A2")
@pytest.mark.parametrize("agent", AGENTS)
def test_beside_an_agents_own_tools_its_catalog_is_filtered(agent: str) -> None:
    own, catalog = AGENTS[agent]
    names = [*own, *catalog]
    definitions = tuple(
        msgspec.json.encode({"name": name, "description": text}) for name, text in {**own, **catalog}.items()
    )

    assert [names[place] for place in protected_tools(names, Signs(definitions=definitions))] == list(own)


def test_a_catalog_alone_is_none_of_the_clients_own() -> None:
    assert from_catalogs(list(OFFICE)) == set(range(60))
    assert not protected_tools(list(OFFICE), Signs())
    assert not protected_tools(["renew_loan", "weather_forecast", "convert_currency", "翻译文本"], Signs())


def test_a_client_that_marks_what_is_from_servers_keeps_the_rest() -> None:
    names = [*(f"{server}__{name}" for server in ("office", "mail") for name in list(OFFICE)[:8]), "peruse", "conjure"]

    assert conspicuous_in(names) == [16, 17]


def test_more_tools_than_an_agent_has_are_a_catalog() -> None:
    odd = [f"w{chr(97 + number)}rd" for number in range(26)] + [f"{chr(97 + number)}nt" for number in range(MOST - 25)]

    assert conspicuous_in([*OFFICE, *odd]) == []


def test_instructions_name_tools_as_a_whole_and_everyday_words_only_where_they_are_marked() -> None:
    names = ["amend_lines", "peruse", "survey", "lines"]

    assert named_in(names, ["Use amend_lines.", "Then `peruse` it; survey the lines."]) == {0, 1}
    assert named_in(names, []) == set()


def test_instructions_that_list_a_whole_catalog_single_none_out() -> None:
    assert named_in(list(OFFICE), [" ".join(OFFICE)]) == set()


pieces = st.sampled_from(["lines", "Amend", "tool", "é", "a_b", "a.b", "x", " ", "\n", *".:/-`'\"<>*(_1"])
texts = st.lists(pieces, max_size=30).map("".join)


@given(text=texts)
def test_every_word_that_is_marked_in_one_of_the_ways_is_named_and_no_other(text: str) -> None:
    names = ["lines", "Amend", "tool", "é", "x", "a_b", "a.b", "a_b.x", ""]
    written = re.findall(r"[\w.:/-]*\w", text)

    def is_marked(name: str) -> bool:
        if not name.isalpha():
            return True
        return re.search(rf"[`'\"<*]{name}[`'\">*(]|\b{name} tool\b|\btool {name}\b", text) is not None

    expected = {place for place, name in enumerate(names) if name in written and is_marked(name)}
    assert named_in(names, [text]) == expected


@pytest.mark.parametrize("mark", ["-", ".", ":/", "a-", "`", "tool ", "a tool "])
def test_long_instructions_of_any_marks_are_read_in_time_that_grows_with_their_length(mark: str) -> None:
    names = ["w" + "".join(chr(97 + number // 26**place % 26) for place in range(4)) for number in range(20_000)]
    text = " ".join(names) + (mark * 60_000)[:60_000]
    began = time.process_time()

    assert named_in(names, [text]) == set()
    assert time.process_time() - began < 10
