from __future__ import annotations

import re
from collections import Counter
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegboard import ToolId
from pegboard.catalog.names import PlainNames, WireNames, hashed, identity_hash
from pegboard.wire_formats import LONGEST_NAME, plain_name

PROTOCOL = re.compile(r"[A-Za-z0-9_.-]{1,128}")
META_TOOLS = frozenset({"search_tools", "invoke_tool"})

short = st.text("ab_. /é", min_size=1, max_size=3) | st.sampled_from(["search_tools", "a__b", "x" * 70, "x" * 140])
tool_ids = st.lists(st.builds(ToolId, short, short), unique=True, max_size=12)
limits = st.sampled_from([24, 40, 64, 128])
wishes = st.dictionaries(st.builds(ToolId, short, short), short, max_size=8)


@pytest.mark.requirement("M10")
@given(tools=tool_ids, limit=limits, wished=wishes)
def test_every_name_on_the_wire_leads_back_to_its_tool(
    tools: list[ToolId], limit: int, wished: dict[ToolId, str]
) -> None:
    names = WireNames.build(tools, reserved=META_TOOLS, limit=limit, renamed=wished)

    assert set(names.of) == set(tools)
    assert [names.tool[names.of[tool]] for tool in tools] == tools
    assert [names.resolve(names.of[tool]) for tool in tools] == tools


@pytest.mark.requirement("M10", "mcp.tool-name")
@given(tools=tool_ids, limit=limits, wished=wishes)
def test_every_name_on_the_wire_is_within_the_protocols_characters_and_the_clients_limit(
    tools: list[ToolId], limit: int, wished: dict[ToolId, str]
) -> None:
    names = WireNames.build(tools, reserved=META_TOOLS, limit=limit, renamed=wished)

    assert all(PROTOCOL.fullmatch(name) and len(name) <= limit for name in names.of.values())


@pytest.mark.requirement("M11")
@given(tools=tool_ids, limit=limits, wished=wishes, seed=st.integers(0, 100))
def test_names_do_not_depend_on_which_server_connected_first(
    tools: list[ToolId], limit: int, wished: dict[ToolId, str], seed: int
) -> None:
    shuffled = Random(seed).sample(tools, len(tools))

    built = [WireNames.build(each, reserved=META_TOOLS, limit=limit, renamed=wished) for each in (tools, shuffled)]

    assert built[0].of == built[1].of


@pytest.mark.requirement("M12")
@given(tools=tool_ids, reserved=st.frozensets(short | st.just("a__b"), max_size=4), limit=limits, wished=wishes)
def test_no_tool_takes_a_name_that_is_ours(
    tools: list[ToolId], reserved: frozenset[str], limit: int, wished: dict[ToolId, str]
) -> None:
    names = WireNames.build(tools, reserved=reserved, limit=limit, renamed=wished)

    assert reserved.isdisjoint(names.of.values())


@pytest.mark.requirement("M12")
def test_an_upstream_tool_with_a_meta_tools_name_is_renamed() -> None:
    tool = ToolId("library", "search_tools")

    names = WireNames.build([tool], reserved=META_TOOLS)

    assert names.of[tool] == "library__search_tools"
    assert names.resolve("library__search_tools") == tool


@pytest.mark.requirement("M12")
def test_a_prefixed_name_is_not_ours_either() -> None:
    tools = [ToolId("search", "tools"), ToolId("other", "tools")]

    names = WireNames.build(tools, reserved=frozenset({"search__tools"}))

    assert names.of[tools[0]] != "search__tools"
    assert names.resolve(names.of[tools[0]]) == tools[0]


def test_a_name_that_one_tool_has_alone_stays_as_it_is() -> None:
    names = WireNames.build([ToolId("library", "renew_loan"), ToolId("weather", "get.tides-2")])

    assert sorted(names.of.values()) == ["get.tides-2", "renew_loan"]


@pytest.mark.requirement("M11")
def test_a_name_that_two_servers_share_is_prefixed_for_both() -> None:
    tools = [ToolId("library", "search"), ToolId("maps", "search")]

    names = WireNames.build(tools)

    assert list(names.of.values()) == ["library__search", "maps__search"]
    assert names.resolve("search") is None
    assert names.resolve("maps/search") == tools[1]


@pytest.mark.requirement("M10")
def test_a_name_beyond_the_limit_becomes_its_start_and_a_hash_that_is_the_same_every_time() -> None:
    tool = ToolId("library", "find_books_by_author_and_year_and_place_of_publication_and_language_and_shelf")

    names = [WireNames.build([tool], limit=64).of[tool] for _ in range(2)]

    assert names[0] == names[1]
    assert names[0].startswith("find_books_by_author")
    assert len(names[0]) == 64


@pytest.mark.requirement("M10")
def test_the_server_of_a_name_is_looked_up_and_never_read_out_of_it() -> None:
    """`a__b__c` may be tool `b__c` of server `a`, or tool `c` of server `a__b`."""
    tools = [ToolId("a", "b__c"), ToolId("a__b", "c"), ToolId("x", "b__c"), ToolId("x", "c")]

    names = WireNames.build(tools)

    assert [names.resolve(names.of[tool]) for tool in tools] == tools
    assert names.resolve("a__b__c") is None


def test_a_name_made_to_look_like_anothers_short_form_gives_way() -> None:
    """Otherwise a server could take the calls meant for another one."""
    victims = [ToolId("bank", "pay now"), ToolId("bank", "pay_now")]
    honest = WireNames.build(victims)
    thief = ToolId("evil", honest.of[victims[0]])

    names = WireNames.build([*victims, thief])

    assert [names.of[victim] for victim in victims] == [honest.of[victim] for victim in victims]
    assert names.of[thief].endswith(identity_hash(thief))


def test_a_tool_is_found_by_its_own_name_where_the_wire_name_differs() -> None:
    tool = ToolId("post", "send letter")

    names = WireNames.build([tool])

    assert names.of[tool] == "send_letter"
    assert names.resolve("send letter") == names.resolve("post/send letter") == tool


def test_an_unknown_name_is_nobodys() -> None:
    names = WireNames.build([ToolId("post", "send")])

    assert names.resolve("receive") is names.resolve("post/receive") is names.resolve("") is None


def test_a_server_whose_name_has_a_slash_is_resolved_by_its_full_name() -> None:
    tool = ToolId("github.com/org/server", "echo")
    names = WireNames.build([tool, ToolId("other", "echo")])

    assert names.resolve("github.com/org/server/echo") == tool


def test_a_tool_cannot_take_the_place_of_anothers_prefixed_name() -> None:
    shared = [ToolId("a", "echo"), ToolId("b", "echo")]
    names = WireNames.build([*shared, ToolId("c", "a__echo")])

    assert names.resolve("a__echo") == ToolId("a", "echo")
    assert names.of[ToolId("c", "a__echo")] == "c__a__echo"


def test_a_wished_name_takes_the_place_of_the_own_one_which_still_leads_to_the_tool() -> None:
    tool = ToolId("jira", "create_issue")
    names = WireNames.build([tool, ToolId("jira", "list_issues")], renamed={tool: "new ticket!"})

    assert names.of[tool] == "new_ticket_"
    assert {names.resolve(name) for name in ("new_ticket_", "new ticket!", "create_issue", "jira/create_issue")} == {
        tool
    }


def test_the_own_name_of_a_renamed_tool_leads_to_the_tool_that_has_it_now() -> None:
    old, other = ToolId("jira", "search"), ToolId("maps", "search")
    names = WireNames.build([old, other], renamed={old: "find_ticket"})

    assert dict(names.of) == {old: "find_ticket", other: "search"}
    assert names.resolve("search") == other
    assert names.resolve("jira/search") == old


@pytest.mark.requirement("M11")
def test_a_wished_name_that_another_tool_has_is_prefixed_for_both() -> None:
    wished, owner = ToolId("jira", "create_issue"), ToolId("github", "report")
    names = WireNames.build([wished, owner], reserved=META_TOOLS, renamed={wished: "report"})

    assert dict(names.of) == {wished: "jira__report", owner: "github__report"}
    assert names.resolve("report") is None
    assert names.resolve("create_issue") == wished


@pytest.mark.requirement("M12")
def test_a_wished_name_that_is_ours_is_prefixed() -> None:
    tool = ToolId("library", "find")

    assert WireNames.build([tool], reserved=META_TOOLS, renamed={tool: "search_tools"}).of[tool] == (
        "library__search_tools"
    )


def plain_names(tools: list[ToolId]) -> dict[ToolId, str]:
    """The names by their definition: those of the wire in the characters that every provider accepts."""
    wished = {tool: plain_name(tool.name) for tool in tools}
    names = WireNames.build(tools, limit=LONGEST_NAME, renamed=wished).of
    plain = {tool: plain_name(name) for tool, name in names.items()}
    uses = Counter(plain.values())
    return {tool: name if uses[name] == 1 else hashed(name, tool, LONGEST_NAME) for tool, name in plain.items()}


similar = st.text("ab_. ", min_size=1, max_size=3) | st.sampled_from(["a__b", "a__a", "x" * 70, "b__x"])
few_ids = st.lists(st.builds(ToolId, st.sampled_from(["a", "b", "a b", "x" * 60]), similar), unique=True, max_size=8)


@pytest.mark.requirement("library.changed-tools")
@given(steps=st.lists(few_ids, min_size=1, max_size=6))
def test_names_of_changed_tools_are_those_of_all_of_them(steps: list[list[ToolId]]) -> None:
    names: PlainNames | None = None
    before: set[ToolId] = set()
    for tools in steps:
        names = PlainNames(tools, names, before - set(tools), set(tools) - before)
        before = set(tools)

        assert dict(names) == plain_names(tools)
