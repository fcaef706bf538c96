"""Rules on tools beside each other."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from pegboard import Catalog
from pegboard.lint import BOARD_RULES, LintFinding, board_findings, subjects
from pegboard.lint.board_rules import first_sentence
from pegboard.model import Tool, Turn
from pegboard.routing_board import RoutingBoard
from pegboard.settings import RuleSettings
from pegboard.testing import fake_tool

BoardOf = Callable[..., RoutingBoard]
CatalogOf = Callable[..., Catalog]


async def findings(board: RoutingBoard, *rules: str, scopes: frozenset[str] = frozenset()) -> list[LintFinding]:
    asked: list[tuple[int, int]] = []
    made = await board_findings(
        board,
        Turn.ask("", scopes=scopes),
        subjects(board.catalog),
        frozenset(rules) or BOARD_RULES,
        lambda done, total: asked.append((done, total)),
    )
    assert asked in ([], [(place + 1, len(board.catalog)) for place in range(len(board.catalog))])
    return made


def named(server: str, name: str, description: str) -> Tool:
    return fake_tool(name, description, server=server)


LOSER = named("depot", "store_parcel", "Puts a box on a shelf")
WINNER = named("attic", "parcel_store_parcel", "Store a parcel: store parcel")


async def test_a_tool_that_another_one_beats_for_its_own_name_is_found_with_the_winner(
    board_of: BoardOf, catalog_of: CatalogOf
) -> None:
    board = board_of(catalog_of(LOSER, WINNER, named("sky", "forecast", "Weather of tomorrow")), profile="semantic")

    made = await findings(board, "lost-name")

    assert [str(each.tool) for each in made] == ["depot/store_parcel"]
    assert made[0].says == "'store parcel' finds attic/parcel_store_parcel first; this tool is number 2."
    assert made[0].tokens == board.catalog.token_counts[0]


async def test_a_tool_that_another_one_beats_for_its_first_sentence_is_found(
    board_of: BoardOf, catalog_of: CatalogOf
) -> None:
    tools = (
        named("depot", "alpha_beta_gamma_delta", "Weigh the box. Then a long tale about stones, rivers and hills."),
        named("attic", "weigh_box", "Weigh the box"),
    )
    made = await findings(board_of(catalog_of(*tools), profile="semantic"), "lost-description")

    assert [(str(each.tool), each.rule) for each in made] == [("depot/alpha_beta_gamma_delta", "lost-description")]
    assert "'Weigh the box.' finds attic/weigh_box first" in made[0].says


@pytest.mark.parametrize(
    ("description", "sentence"),
    [
        ("Weighs a box. And more.", "Weighs a box."),
        ("Purpose: 1. Weighs a box. 2. More.", "Purpose: 1. Weighs a box."),
        ("Weighs\na box\n\nArgs:", "Weighs\na box"),
        ("称箱子。还有更多。", "称箱子。"),
        ("", ""),
    ],
)
def test_the_first_sentence_ends_at_its_full_stop_or_at_a_blank_line(
    catalog_of: CatalogOf, description: str, sentence: str
) -> None:
    assert first_sentence(subjects(catalog_of(named("depot", "weigh", description)))[0]) == sentence


async def test_losing_to_a_duplicate_is_the_duplicates_finding_alone(board_of: BoardOf, catalog_of: CatalogOf) -> None:
    board = board_of(
        catalog_of(
            named("one", "read_file", "Read the text of a file"), named("two", "read_file", "Read the text of a file")
        )
    )
    made = await findings(board)

    assert [(each.rule, str(each.tool)) for each in made] == [("duplicate", "two/read_file")]
    assert made[0].spare == made[0].tokens == board.catalog.token_counts[1]
    assert "one/read_file" in made[0].says


async def test_tools_of_one_description_name_each_other(board_of: BoardOf, catalog_of: CatalogOf) -> None:
    board = board_of(
        catalog_of(named("crm", "list_notes", "List all notes."), named("crm", "find_memos", "list ALL notes"))
    )

    made = await findings(board, "same-description")

    assert [each.says for each in made] == [
        "It has the same description as crm/find_memos.",
        "It has the same description as crm/list_notes.",
    ]


async def test_a_tool_that_the_caller_may_not_use_is_not_asked_for(board_of: BoardOf, catalog_of: CatalogOf) -> None:
    rules = [RuleSettings(tools="depot/*", scope="depot:use")]
    board = board_of(catalog_of(LOSER, WINNER), profile="semantic", rules=rules)

    assert await findings(board, "lost-name") == []
    assert len(await findings(board, "lost-name", scopes=frozenset({"depot:use"}))) == 1


@pytest.mark.parametrize("rule", sorted(BOARD_RULES))
async def test_a_board_of_tools_that_differ_has_nothing_to_say(
    board_of: BoardOf, catalog_of: CatalogOf, rule: str
) -> None:
    board = board_of(
        catalog_of(
            named("sky", "weather_forecast", "Forecast the weather of tomorrow in a city"),
            named("depot", "weigh_parcel", "Weigh a parcel before it is shipped"),
        )
    )
    assert await findings(board, rule) == []
