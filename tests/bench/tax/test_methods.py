from __future__ import annotations

import pytest

from pegboard_bench.tax.boards import Place
from pegboard_bench.tax.methods import available, methods
from pegboard_bench.tax.request import Sent
from pegboard_bench.tax.tasks import Task, needs
from pegboard_bench.tax.testbeds import testbed as bed_of

pytestmark = pytest.mark.slow

BED = bed_of("recorded", None)
PLACE = Place()


def task(kind: str) -> Task:
    return next(task for task in BED.tasks(1, 40) if task.kind == kind)


async def sends(method: str, kind: str = "multi") -> list[Sent]:
    playing = methods()[method].make(PLACE)
    await playing.begin(BED)
    return list(await playing.play(task(kind)))


@pytest.mark.parametrize("method", available(PLACE))
async def test_every_method_sends_something_for_every_step_and_the_same_when_asked_again(method: str) -> None:
    found = await sends(method)

    assert len(found) == len(task("multi").steps)
    assert found == await sends(method)


async def test_all_tools_are_there_with_the_full_schema_and_thirty_with_the_pruned() -> None:
    assert all(sent.tools == BED.catalog.tools for sent in await sends("full"))
    assert all(len(sent.tools) == 30 for sent in await sends("pruned"))


async def test_simple_retrieval_sends_ten_whole_definitions_and_no_summaries() -> None:
    assert all(len(sent.tools) == 10 and not sent.texts for sent in await sends("simple"))


@pytest.mark.requirement("A9")
async def test_where_no_cosine_reaches_the_threshold_every_tool_that_may_be_used_is_sent_as_the_gateway_does() -> None:
    for sent in await sends("semantic_threshold"):
        assert sent.reached == {tool.id for tool in sent.tools}
        assert all(needs(tool.id) for tool in BED.catalog.tools if tool.id not in sent.reached)


async def test_tool_attention_keeps_every_summary_in_front_and_its_definitions_behind() -> None:
    for sent in await sends("attention"):
        assert not sent.tools
        assert len(sent.late) <= 10
        assert len(sent.texts[0].splitlines()) > 40


async def test_a_command_line_asks_for_a_server_and_for_help_and_remembers_both() -> None:
    found = await sends("cli", "follow_up")

    assert [len(sent.asked) for sent in found] == [2] + [0] * (len(found) - 1)


@pytest.mark.parametrize("method", ["static", "hybrid_static"])
async def test_a_static_listing_is_the_same_in_every_step(method: str) -> None:
    assert len({sent.tools for sent in await sends(method, "long")}) == 1


@pytest.mark.parametrize("method", ["dynamic", "hybrid_dynamic"])
async def test_a_dynamic_listing_grows_with_what_searches_found(method: str) -> None:
    found = await sends(method, "long")

    assert len(found[-1].tools) > len(found[0].tools)
    assert found[0].asked


async def test_with_a_way_back_the_model_reaches_what_it_searched_for_and_keeps_it() -> None:
    for kind in ("multi", "long"):
        steps, found = task(kind).steps, await sends("hybrid_way_back", kind)
        plain = await sends("hybrid", kind)
        hits = [bool(step.serves & sent.reached) for step, sent in zip(steps, found, strict=True)]
        assert sum(hits) >= sum(bool(step.serves & sent.reached) for step, sent in zip(steps, plain, strict=True))
        assert all(sent.tools[-1].name == "search_tools" for sent in found)


async def test_ehrr_offers_three_tools_for_each_subtask() -> None:
    first = (await sends("ehrr"))[0]

    assert len(first.reached) == 3
    assert [tool.name for tool in first.tools] == ["route_tools", "execute_tool"]
