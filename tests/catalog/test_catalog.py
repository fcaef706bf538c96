from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegboard import Catalog, Tool, ToolId
from pegboard.catalog import BpeCounter, canonical_text, continued, fingerprint
from pegboard.catalog.catalog import look_through, with_labels
from pegboard.catalog.ingest import tool_from_mcp
from pegboard.errors import CatalogError
from pegboard.model import Server, ServerName
from pegboard.testing import fake_tool

CatalogOf = Callable[..., Catalog]

LIBRARY = Server(name=ServerName("library"), description="Loans")
WEATHER = Server(name=ServerName("weather"), description="Forecasts")

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


def definition(**changes: object) -> dict[str, object]:
    return {
        "name": "create_ticket",
        "description": "Open a ticket.",
        "inputSchema": {
            "type": "object",
            "properties": {"priority": {"type": "string", "enum": ["low", "urgent"]}},
            "required": ["priority"],
        },
        "annotations": {"readOnlyHint": False},
    } | changes


def test_tools_stand_in_the_order_of_their_servers_and_of_their_lists() -> None:
    catalog = Catalog.build(
        [
            (WEATHER, [fake_tool("tides", server="weather"), fake_tool("forecast", server="weather")]),
            (LIBRARY, [fake_tool("renew", server="library")]),
        ]
    )

    assert [str(tool.id) for tool in catalog.tools] == ["weather/tides", "weather/forecast", "library/renew"]
    assert catalog.position[ToolId("library", "renew")] == 2
    assert list(catalog.servers) == ["weather", "library"]


def test_the_same_name_on_two_servers_is_two_tools(catalog_of: CatalogOf) -> None:
    catalog = catalog_of(fake_tool("search", "Books.", server="library"), fake_tool("search", "Maps.", server="maps"))

    assert len(catalog) == 2
    assert catalog[ToolId("maps", "search")].description == "Maps."
    assert [tool.server for tool in catalog.by_name["search"]] == ["library", "maps"]


def test_a_server_that_lists_a_name_twice_is_an_error_that_names_it(catalog_of: CatalogOf) -> None:
    with pytest.raises(CatalogError, match="Duplicate tools: library/renew"):
        catalog_of(fake_tool("renew", server="library"), fake_tool("renew", "again", server="library"))


def test_a_tool_under_another_server_than_its_own_is_an_error_that_names_both() -> None:
    with pytest.raises(CatalogError, match="'library/renew' is listed under server 'weather'"):
        Catalog.build([(WEATHER, [fake_tool("renew", server="library")])])


def test_an_unknown_tool_is_an_error_that_names_it(town: Catalog) -> None:
    assert ToolId("weather", "snow") not in town
    with pytest.raises(CatalogError, match="'weather/snow'"):
        town[ToolId("weather", "snow")]


def test_a_replaced_server_keeps_its_place_and_the_old_catalog_stays_as_it_was(town: Catalog) -> None:
    changed = town.with_server(town.servers["weather"], [fake_tool("snow", server="weather")])

    assert list(changed.servers) == list(town.servers)
    assert [tool.name for tool in changed.of_server("weather")] == ["snow"]
    assert [tool.name for tool in town.of_server("weather")] == ["get_forecast", "get_tides"]


def test_a_new_server_comes_last_and_a_removed_one_takes_its_tools_along(town: Catalog) -> None:
    added = town.with_server(Server(name=ServerName("post")), [fake_tool("send", server="post")])
    removed = added.without_server("weather")

    assert added.tools[-1].id == ToolId("post", "send")
    assert all(tool.server != "weather" for tool in removed.tools)
    assert len(removed) == len(added) - 2


def test_a_catalog_cannot_be_changed_in_place(town: Catalog) -> None:
    with pytest.raises(TypeError):
        town.servers["x"] = LIBRARY  # type: ignore[index]
    with pytest.raises(TypeError):
        town.position[ToolId("x", "y")] = 1  # type: ignore[index]


async def test_a_definition_is_handed_out_as_it_arrived() -> None:
    arrived = definition(_meta={"vendor/x": 2**60})
    catalog = Catalog.build([(WEATHER, [tool_from_mcp("weather", arrived)])])

    assert await catalog.definition(ToolId("weather", "create_ticket")) is arrived


@pytest.mark.requirement("000.eq1")
def test_the_cost_of_a_tool_is_the_tokens_of_its_name_description_and_schema(town: Catalog) -> None:
    counts = BpeCounter().count([canonical_text(tool) for tool in town.tools])

    assert list(town.token_counts) == counts
    assert canonical_text(fake_tool("a", "b", schema={"type": "object"})) == (
        '{"name":"a","description":"b","inputSchema":{"type":"object"}}'
    )


def test_a_tool_without_a_schema_is_counted_as_one_without_parameters() -> None:
    bare = Tool(id=ToolId("weather", "tides"))

    assert canonical_text(bare) == '{"name":"tides","description":"","inputSchema":{"type":"object"}}'


@pytest.mark.requirement("M5")
@pytest.mark.parametrize(
    "change",
    [
        {"inputSchema": {"type": "object", "properties": {"priority": {"type": "integer"}}}},
        {
            "inputSchema": {
                "type": "object",
                "properties": {"priority": {"type": "string", "enum": ["low", "urgent", "now"]}},
                "required": ["priority"],
            }
        },
        {
            "inputSchema": {
                "type": "object",
                "properties": {"priority": {"type": "string", "enum": ["low", "urgent"]}},
                "required": [],
            }
        },
        {"outputSchema": {"type": "object"}},
        {"annotations": {"readOnlyHint": True}},
        {"description": "Open a ticket!"},
        {"title": "Open"},
        {"_meta": {"category": "Tickets"}},
        {"icons": []},
    ],
    ids=["type", "enum", "required", "output", "annotation", "description", "title", "category", "unknown field"],
)
def test_any_change_of_a_definition_changes_its_fingerprint_and_its_catalogs(change: dict[str, object]) -> None:
    before, after = (tool_from_mcp("weather", each) for each in (definition(), definition(**change)))
    catalogs = [Catalog.build([(WEATHER, [tool])]) for tool in (before, after)]

    assert fingerprint(before) != fingerprint(after)
    assert catalogs[0].fingerprint != catalogs[1].fingerprint


@pytest.mark.requirement("M5")
@given(first=json_values, second=json_values)
def test_two_fingerprints_are_equal_exactly_when_the_definitions_are(first: object, second: object) -> None:
    tools = [fake_tool("t", schema={"default": value}) for value in (first, second)]

    assert (fingerprint(tools[0]) == fingerprint(tools[1])) == (repr(_ordered(first)) == repr(_ordered(second)))


def _ordered(value: object) -> object:
    """The value with the keys of its objects sorted: their order means nothing in JSON."""
    if isinstance(value, dict):
        return {key: _ordered(value[key]) for key in sorted(value)}
    return [_ordered(each) for each in value] if isinstance(value, list) else value


@pytest.mark.requirement("M20")
def test_a_renamed_tool_and_the_same_tool_elsewhere_are_other_tools() -> None:
    tool = fake_tool("renew", "Extend a loan.", server="library")
    renamed = replace(tool, id=ToolId("library", "renew_loan"))
    elsewhere = replace(tool, id=ToolId("archive", "renew"))

    assert len({fingerprint(tool), fingerprint(renamed), fingerprint(elsewhere)}) == 3


def test_equal_catalogs_have_equal_fingerprints_and_order_counts(town: Catalog) -> None:
    groups = [(server, town.of_server(name)) for name, server in town.servers.items()]

    assert Catalog.build(groups).fingerprint == town.fingerprint
    assert Catalog.build(reversed(groups)).fingerprint != town.fingerprint


def test_what_a_server_says_about_itself_is_part_of_the_catalogs_fingerprint() -> None:
    tools = [fake_tool("renew", server="library")]
    described = replace(LIBRARY, instructions="Be quiet.")

    assert Catalog.build([(LIBRARY, tools)]).fingerprint != Catalog.build([(described, tools)]).fingerprint


def test_text_that_is_not_valid_unicode_is_fingerprinted_and_counted() -> None:
    """JSON can hold half a surrogate pair; a server that sends one must not take the board down."""
    broken = tool_from_mcp("weather", definition(description="half \ud83d of a pair"))
    catalog = Catalog.build([(replace(WEATHER, description="\udc00"), [broken])])

    assert len(catalog.fingerprint) == 64
    assert catalog.token_counts[0] > 0
    assert catalog.tools[0].summary.startswith("create_ticket: half")


def test_an_empty_catalog_is_a_catalog() -> None:
    empty = Catalog.build([])

    assert (len(empty), empty.token_counts, dict(empty.servers)) == (0, (), {})


class LetterCounter:
    """Counts letters, and how many texts it was given."""

    def __init__(self) -> None:
        self.asked = 0

    def count(self, texts: Sequence[str]) -> list[int]:
        self.asked += len(texts)
        return list(map(len, texts))

    def cut(self, text: str, limit: int) -> str:
        return text[:limit]


@pytest.mark.requirement("D7")
def test_of_tools_that_were_looked_through_catalogs_compute_nothing_again() -> None:
    names, counter = ("lend", "return"), LetterCounter()
    tools = [replace(fake_tool(name, server="library"), summary="Books") for name in names]
    look_through(tools, counter)
    known = [each.fingerprint for each in tools]
    assert counter.asked == 2

    catalog = Catalog.build([(LIBRARY, tools)], counter=counter)
    assert catalog.token_counts == tuple(len(canonical_text(each)) for each in tools)
    assert list(catalog.fingerprints) == known == [fingerprint(fake_tool(name, server="library")) for name in names]
    assert counter.asked == 2

    other, longer = LetterCounter(), replace(tools[0], description="another text")
    changed = Catalog.build([(LIBRARY, [longer, tools[1]])], counter=other)
    assert changed.token_counts[0] == len(canonical_text(longer))
    assert changed.fingerprints[0] != known[0]
    assert changed.fingerprints[1] == known[1]
    assert other.asked == 2


@pytest.mark.requirement("D7")
def test_what_was_computed_of_a_tool_stays_known_when_it_is_labelled() -> None:
    counter = LetterCounter()
    tool = replace(fake_tool("lend", server="library"), summary="Books")
    look_through([tool], counter)
    assert with_labels(tool, aliases=(), category=None, summary="Books") is tool

    summarized = with_labels(tool, summary="Lends books")
    assert (summarized.summary, summarized.fingerprint, summarized.counted) == (
        "Lends books",
        tool.fingerprint,
        tool.counted,
    )
    aliased = with_labels(tool, aliases=("borrow",))
    assert (aliased.fingerprint, aliased.counted) == (None, tool.counted)
    assert fingerprint(aliased) == fingerprint(replace(tool, aliases=("borrow",))) != tool.fingerprint
    assert fingerprint(replace(tool, summary="Lends books")) == tool.fingerprint


@pytest.mark.parametrize(("before", "after"), [(0, False), (True, 1), (1, 1.0), ([{"a": 0}], [{"a": False}])])
def test_a_schema_with_another_value_that_python_calls_equal_is_a_change(before: object, after: object) -> None:
    def catalog(value: object) -> Catalog:
        tool = fake_tool("lend", server="library", schema={"properties": {"books": {"default": value}}})
        return Catalog.build([(LIBRARY, [tool])])

    old, new, same = catalog(before), catalog(after), catalog(before)
    assert (old.tools == new.tools, old.tools == same.tools) == (False, True)
    assert (hash(old.tools), old.fingerprint) == (hash(same.tools), same.fingerprint)

    changed = continued(new, old)
    assert changed.fingerprints == catalog(after).fingerprints != old.fingerprints
    assert changed.token_counts == catalog(after).token_counts
    assert old.tools != new.tools, "though the fingerprints are known now"
