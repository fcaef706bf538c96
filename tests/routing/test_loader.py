from __future__ import annotations

import asyncio
import json
from collections import OrderedDict
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegboard import ToolId
from pegboard.errors import CatalogError
from pegboard.model import JsonObject
from pegboard.routing import DirectorySource, SchemaLoader


class CountingSource:
    def __init__(self) -> None:
        self.asked: list[str] = []

    async def definition(self, tool: ToolId) -> JsonObject:
        await asyncio.sleep(0)
        self.asked.append(tool.name)
        return {"name": tool.name}


def tools(*names: object) -> list[ToolId]:
    return [ToolId("s", str(name)) for name in names]


async def test_definitions_come_in_the_order_asked_for_and_once_from_the_source() -> None:
    source = CountingSource()
    loader = SchemaLoader(source)

    first = await loader.load(tools("b", "a", "b"))
    again = await loader.load(tools("a"))

    assert [each["name"] for each in (*first, *again)] == ["b", "a", "b", "a"]
    assert source.asked == ["b", "a"]


@pytest.mark.requirement("000.lru")
async def test_two_hundred_and_fifty_six_definitions_are_kept_and_the_least_recently_used_leaves() -> None:
    source = CountingSource()
    loader = SchemaLoader(source)
    await loader.load(tools(*range(256)))
    await loader.load(tools(0))
    await loader.load(tools(256))

    assert ToolId("s", "0") in loader
    assert ToolId("s", "1") not in loader
    assert sum(tool in loader for tool in tools(*range(257))) == 256


@given(capacity=st.integers(1, 5), wanted=st.lists(st.lists(st.integers(0, 7), max_size=4), max_size=12))
async def test_the_loader_keeps_exactly_the_last_used(capacity: int, wanted: list[list[int]]) -> None:
    source, model, fetched = CountingSource(), OrderedDict[int, None](), 0
    loader = SchemaLoader(source, capacity)
    for batch in wanted:
        await loader.load(tools(*batch))
        for number in batch:
            fetched += number not in model
            model[number] = None
            model.move_to_end(number)
            if len(model) > capacity:
                model.popitem(last=False)

    assert {number for number in range(8) if ToolId("s", str(number)) in loader} == set(model)
    assert len(source.asked) == fetched


async def test_turns_that_load_at_once_all_get_their_definitions() -> None:
    loader = SchemaLoader(CountingSource(), capacity=2)

    loaded = await asyncio.gather(*(loader.load(tools(*range(start, start + 5))) for start in range(10)))

    assert [[each["name"] for each in batch] for batch in loaded] == [
        [str(number) for number in range(start, start + 5)] for start in range(10)
    ]


async def test_a_folder_can_hold_the_definitions(tmp_path: Path) -> None:
    source = DirectorySource(tmp_path)
    tool = ToolId("my server", "a/b:c")
    source.path(tool).parent.mkdir(parents=True)
    source.path(tool).write_text(json.dumps({"name": "a/b:c"}))

    assert await source.definition(tool) == {"name": "a/b:c"}


@pytest.mark.parametrize("content", [None, "", "{", "[1]", "7"])
async def test_a_definition_that_is_not_there_or_broken_is_an_error_that_names_tool_and_file(
    tmp_path: Path, content: str | None
) -> None:
    source, tool = DirectorySource(tmp_path), ToolId("s", "t")
    source.path(tool).parent.mkdir()
    if content is not None:
        source.path(tool).write_text(content)

    with pytest.raises(CatalogError, match=r"No definition of 's/t' in .*t\.json"):
        await source.definition(tool)


@given(
    server=st.text(min_size=1, max_size=8) | st.sampled_from(["..", ".", "...", "../..", "/etc"]),
    name=st.text(min_size=1),
)
def test_no_name_leads_out_of_the_folder(server: str, name: str) -> None:
    folder = Path("definitions")

    path = DirectorySource(folder).path(ToolId(server, name))

    assert path.parent.parent == folder
    assert not {".", ".."} & set(path.parts)


@given(
    first=st.builds(ToolId, st.text(max_size=3), st.text(max_size=3)),
    second=st.builds(ToolId, st.text(max_size=3), st.text(max_size=3)),
)
def test_two_tools_never_share_a_file(first: ToolId, second: ToolId) -> None:
    source = DirectorySource(Path("definitions"))

    assert (source.path(first) == source.path(second)) == (first == second)
