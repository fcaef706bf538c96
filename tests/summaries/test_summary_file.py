from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from pegboard import Catalog
from pegboard.catalog.ingest import tool_from_mcp
from pegboard.compose import summaries
from pegboard.errors import ConfigError
from pegboard.model import Server, ServerName, ToolId
from pegboard.routing_board import RoutingBoard
from pegboard.settings import Settings, load_settings
from pegboard.summaries import Summaries, Summary, as_lines, read_summaries
from pegboard.testing import fake_tool

RENEW = fake_tool("renew_loan", "Extends the due date.", server="library")


def catalog_of(*descriptions: str) -> Catalog:
    tools = [fake_tool(f"tool{number}", text, server="library") for number, text in enumerate(descriptions)]
    return Catalog.build([(Server(name=ServerName("library")), tools)])


def written(catalog: Catalog, text: str = "Renew a loan") -> dict[ToolId, Summary]:
    return {tool.id: Summary.of(tool, f"{tool.name}: {text}", "rule") for tool in catalog.tools}


@pytest.mark.requirement("000.query-shaped")
def test_a_summary_is_put_on_the_tool_it_was_written_for() -> None:
    catalog = catalog_of("Extends the due date.")

    assert Summaries(written(catalog)).put_on(catalog).tools[0].summary == "tool0: Renew a loan"


@pytest.mark.requirement("000.query-shaped")
def test_a_stale_summary_is_left_out_and_said_once(caplog: pytest.LogCaptureFixture) -> None:
    before, after = catalog_of("Extends the due date."), catalog_of("Deletes the account.")
    known = Summaries(written(before), "summaries.jsonl")

    with caplog.at_level(logging.WARNING):
        found = [known.put_on(after).tools[0].summary for _ in range(2)]

    assert found == ["tool0: Deletes the account."] * 2
    assert [record.getMessage() for record in caplog.records] == [
        "summaries.jsonl: 1 summaries are stale or too long and are not used: library/tool0. "
        "`pegboard summarize` renews them."
    ]


def test_a_summary_of_more_than_sixty_tokens_is_left_out() -> None:
    catalog = catalog_of("Extends the due date.")

    assert Summaries(written(catalog, "renew " * 80)).put_on(catalog).tools[0].summary == "tool0: Extends the due date."


def test_a_changed_parameter_makes_a_summary_stale() -> None:
    row = Summary.of(RENEW, "renew_loan: Renew a loan", "rule")

    assert row.fits(RENEW)
    assert row.fits(replace(RENEW, title="Renewal", aliases=("extend",)))
    assert not row.fits(replace(RENEW, input_schema={"type": "object", "properties": {"all": {"type": "boolean"}}}))


def test_a_tool_is_the_same_whether_a_file_or_a_server_listed_it(tmp_path: Path) -> None:
    listed = {"name": "renew_loan", "description": "Extends the due date.", "inputSchema": {"type": "object"}}
    live = tool_from_mcp("library", listed | {"annotations": {"readOnlyHint": True}})

    assert Summary.of(RENEW, "renew_loan: Renew a loan", "rule").fits(live)


def test_the_file_reads_back_as_it_was_written(tmp_path: Path) -> None:
    rows = written(catalog_of("a", "b"), "Renew a loan\u2028“now”")
    path = tmp_path / "summaries.jsonl"
    path.write_text(as_lines(rows.values()), "utf-8")

    assert read_summaries(path) == rows


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("{", "line 1, is not a summary"),
        ('{"server": "a"}', "line 1, is not a summary"),
        ("3", "line 1, is not a summary"),
    ],
)
def test_a_line_that_is_no_summary_is_an_error_with_its_place(line: str, why: str, tmp_path: Path) -> None:
    (tmp_path / "summaries.jsonl").write_text(line)

    with pytest.raises(ConfigError, match=why):
        read_summaries(tmp_path / "summaries.jsonl")


def test_a_field_that_is_no_text_is_named(tmp_path: Path) -> None:
    row = '{"server": "a", "name": "b", "definition": "c", "summary": 3, "by": "rule"}'
    (tmp_path / "summaries.jsonl").write_text(row)

    with pytest.raises(ConfigError, match="summary is not a string"):
        read_summaries(tmp_path / "summaries.jsonl")


@pytest.mark.parametrize("text", ['summaries = "own.jsonl"', '[summaries]\nfile = "own.jsonl"'])
def test_the_file_is_found_beside_the_configuration(text: str, tmp_path: Path) -> None:
    (tmp_path / "pegboard.toml").write_text(text)

    assert load_settings([tmp_path / "pegboard.toml"]).summaries.file == tmp_path / "own.jsonl"


def test_the_environment_names_the_file_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PEGBOARD_SUMMARIES", "own.jsonl")

    assert load_settings().summaries.file == Path("own.jsonl")


def test_a_configured_file_that_is_not_there_is_an_error_at_once(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="Cannot read the summaries"):
        summaries(Settings(summaries={"file": tmp_path / "none.jsonl"}))


async def test_attention_ranks_by_the_configured_summaries(
    board_of: Callable[..., RoutingBoard], tmp_path: Path
) -> None:
    catalog = catalog_of("Extends the due date.", "Opens the door.")
    rows = written(catalog, "prolong borrowing")
    path = tmp_path / "summaries.jsonl"
    path.write_text(as_lines([rows[ToolId("library", "tool1")]]))

    board = board_of(catalog, profile="attention", summaries={"file": path})

    assert (await board.rank("prolong my borrowing"))[0].tool == ToolId("library", "tool1")
    assert "tool1: prolong borrowing" in (await board.route("prolong")).phase1
