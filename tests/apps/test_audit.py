from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

from pegboard.apps.cli.audit import TURNS, TokenPrice, _than_now
from pegboard.catalog import BpeCounter, canonical_text
from pegboard.catalog.ingest import read_catalog
from servers.scripted import TOOLS

Run = Callable[..., Result]
RunJson = Callable[..., Any]


@pytest.fixture
def large_board(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small boards are listed whole; this makes twelve tools a large one."""
    monkeypatch.setenv("PEGBOARD_EAGER_TOOLS", "5")
    monkeypatch.setenv("PEGBOARD_EAGER_TOKENS", "100")


def test_totals_are_the_sums_of_the_canonical_definitions(run_json: RunJson, tools: Path) -> None:
    report = run_json("audit", "--catalog", tools)
    catalog = read_catalog(tools)

    assert report["total_tokens"] == sum(catalog.token_counts)
    assert report["total_tokens"] == sum(server["tokens"] for server in report["servers"])
    assert report["total_tokens_o200k"] == sum(
        BpeCounter("o200k_base").count([canonical_text(tool) for tool in catalog.tools])
    )
    assert report["total_tools"] == 12


def test_servers_come_with_their_mean_and_largest_tool_the_dearest_first(run_json: RunJson, tools: Path) -> None:
    servers = run_json("audit", "--catalog", tools)["servers"]
    catalog = read_catalog(tools)
    code = next(server for server in servers if server["name"] == "code")
    counts = [catalog.token_counts[catalog.position[tool.id]] for tool in catalog.of_server("code")]

    assert [server["tokens"] for server in servers] == sorted((s["tokens"] for s in servers), reverse=True)
    assert code["tools"] == 4
    assert code["mean_tokens"] == round(sum(counts) / 4, 1)
    assert code["largest_tool"]["tokens"] == max(counts)
    assert code["window_share"] == round(sum(counts) / 200_000, 4)


def test_a_session_costs_thirty_turns_and_with_a_cache_one_write_and_the_rest_reads() -> None:
    price = TokenPrice(input=2.0, read=0.1, write=1.25)

    assert price.turn(1_000_000) == 2.0
    assert price.session(1_000_000) == TURNS * 2.0 == 60.0
    assert price.cached_session(1_000_000) == pytest.approx(2.0 * (1.25 + 29 * 0.1))


def test_prices_are_options_and_the_output_says_which_were_used(run: Run, run_json: RunJson, tools: Path) -> None:
    options = ("--catalog", tools, "--price", 15, "--cache-read", 0.5, "--cache-write", 1)
    report = run_json("audit", *options)

    assert report["assumptions"]["usd_per_million_tokens"] == 15
    assert report["cost_usd"]["turn"] == pytest.approx(report["total_tokens"] * 15e-6)
    assert report["cost_usd"]["session_cached"] == pytest.approx(report["cost_usd"]["turn"] * (1 + 29 * 0.5), abs=1e-5)
    assert "Price: 15 USD per million input tokens" in run("audit", *options).stdout


@pytest.mark.parametrize("option", ["--price", "--cache-read", "--cache-write"])
def test_a_price_without_end_is_refused_as_json_has_no_such_number(run_json: RunJson, tools: Path, option: str) -> None:
    assert f"'{option}'" in run_json("audit", "--catalog", tools, option, "inf", code=2)["message"]


def test_a_small_board_is_said_to_be_listed_completely(run: Run, run_json: RunJson, tools: Path) -> None:
    report = run_json("audit", "--catalog", tools)

    assert report["pegboard"]["mode"] == "eager"
    assert report["pegboard"]["tokens"] == pytest.approx(report["total_tokens"], rel=0.02)
    assert "list all its tools" in run("audit", "--catalog", tools).stdout


@pytest.mark.usefixtures("large_board")
def test_what_pegboard_would_send_counts_its_own_tools_and_what_a_search_adds(
    run: Run, run_json: RunJson, tools: Path
) -> None:
    sent = run_json("audit", "--catalog", tools)["pegboard"]

    assert sent["mode"] == "static"
    assert set(sent["definitions"]) == {"list_tool_categories", "search_tools", "describe_tools", "invoke_tool"}
    assert sent["tokens"] == sum(sent["definitions"].values())
    assert sent["definitions"]["search_tools"] > sent["phase1_tokens"] > 0
    assert sent["search_round_trip_tokens"] > sent["describe_tokens"] > 0
    assert "a search adds about" in run("audit", "--catalog", tools).stdout


def test_where_pegboard_costs_more_the_audit_says_so(
    run: Run, run_json: RunJson, cli_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PEGBOARD_EXPOSURE", "static")
    words = ("audit", "--catalog", cli_data / "one_tool.json")

    assert run_json(*words)["pegboard"]["saved_tokens"] < 0
    assert "% more:" in run(*words).stdout


def test_several_files_are_added_up(run_json: RunJson, tools: Path, cli_data: Path) -> None:
    alone = run_json("audit", "--catalog", tools)["total_tokens"]
    both = run_json("audit", "--catalog", tools, "--catalog", cli_data / "one_tool.json")

    assert both["total_tokens"] > alone
    assert {server["name"] for server in both["servers"]} == {"weather", "code", "files", "cloud", "one_tool"}


def test_one_server_from_two_files_is_an_error(run: Run, tools: Path) -> None:
    result = run("audit", "--catalog", tools, "--catalog", tools)

    assert result.exit_code == 2
    assert "Server 'weather' occurs in two sources. Rename it" in result.stderr


def test_live_servers_are_counted_beside_files_and_those_that_fail_are_reported(
    run_json: RunJson, tools: Path, servers_file: Callable[..., Path], scripted: dict[str, Any]
) -> None:
    path = servers_file(good=scripted, gone={"command": "/nowhere/server"}, us={"command": "pegboard", "args": ["mcp"]})
    report = run_json("audit", "--config", path, "--catalog", tools)

    assert {server["name"] for server in report["servers"]} == {"good", "weather", "code", "files", "cloud"}
    assert report["total_tools"] == 12 + len(TOOLS)
    assert report["sources"] == [str(path), str(tools)]
    assert report["unreachable"][0]["server"] == "gone"
    assert "'/nowhere/server' was not found" in report["unreachable"][0]["reason"]
    assert report["notes"] == ["Left out: server 'us' is Pegboard itself."]


def test_nothing_to_count_is_a_failure(run: Run, servers_file: Callable[..., Path]) -> None:
    result = run("audit", "--config", servers_file(gone={"command": "/nowhere/server"}))

    assert result.exit_code == 1
    assert "Not counted: server 'gone'." in result.stdout
    assert "No tools were counted." in result.stdout


def test_without_options_the_usual_files_are_found_and_named(
    run_json: RunJson, servers_file: Callable[..., Path], machine: Path
) -> None:
    servers_file(".cursor/mcp.json", gone={"command": "/nowhere/server"})
    (machine / ".mcp.json").write_text("{ broken")
    report = run_json("audit", code=1)

    assert report["sources"] == [str(machine / ".cursor" / "mcp.json")]
    assert [each["server"] for each in report["unreachable"]] == ["gone"]
    assert "is not JSON" in report["notes"][0]


def test_where_no_usual_file_is_there_the_remedy_names_the_options(run: Run) -> None:
    result = run("audit")

    assert result.exit_code == 2
    assert "--config FILE" in result.stderr


def test_a_given_file_that_is_broken_is_an_error(run: Run, machine: Path) -> None:
    (machine / "bad.json").write_text(json.dumps({"mcpServers": {"x": {}}}))
    result = run("audit", "--config", machine / "bad.json")

    assert result.exit_code == 2
    assert "needs either a command or a url" in result.stderr
    assert "Traceback" not in result.output


def test_what_a_server_writes_is_not_markup_nor_a_terminals_command(run: Run, cli_data: Path) -> None:
    result = run("audit", "--catalog", cli_data / "hostile.json")

    assert result.exit_code == 0
    assert "[red]wipe[/]" in result.stdout
    assert "\x1b" not in result.stdout


@pytest.mark.requirement("B11")
@pytest.mark.parametrize(
    ("sent", "now", "said"),
    [(747, 240_369, "99.6% less"), (1, 10**9, "99.9% less"), (50, 100, "50% less"), (130, 100, "30% more")],
)
def test_nothing_is_ever_said_to_save_everything(sent: int, now: int, said: str) -> None:
    assert _than_now(sent, now) == said
