from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

from pegboard.catalog.ingest import read_catalog
from pegboard.lint import RULES
from pegboard.testing import FakeEncoder

Run = Callable[..., Result]
RunJson = Callable[..., Any]


@pytest.fixture
def faulty(tmp_path: Path) -> Path:
    """Two good tools, and one for each of a few rules."""
    rows = [
        ("disk", "read_file", "Read the text of a file on this machine"),
        ("cloud", "read_file", "Read the text of a file on this machine"),
        ("disk", "dpt", "This function computes a diffusion"),
        ("disk", "list_users", ""),
        ("cloud", "share_file", "Share a file with a person. " + "More words. " * 200),
    ]
    path = tmp_path / "faulty.jsonl"
    lines = (json.dumps({"server": server, "name": name, "description": text}) for server, name, text in rows)
    path.write_text("\n".join(lines))
    return path


def test_each_finding_says_the_tool_the_rule_the_remedy_and_the_tokens(run_json: RunJson, faulty: Path) -> None:
    report = run_json("lint", "--catalog", faulty)
    catalog = read_catalog(faulty)
    by_rule = {finding["rule"]: finding for finding in report["findings"]}

    assert by_rule["duplicate"]["server"] == "cloud"
    assert by_rule["implementer-voice"]["tool"] == by_rule["cryptic-name"]["tool"] == "dpt"
    assert by_rule["no-description"]["tool"] == "list_users"
    assert by_rule["long-description"]["tool"] == "share_file"
    for finding in report["findings"]:
        tool = next(each for each in catalog.of_server(finding["server"]) if each.name == finding["tool"])
        assert finding["tokens"] == catalog.token_counts[catalog.position[tool.id]]
        assert finding["says"].endswith(".")
        assert finding["remedy"]


def test_the_sums_are_those_of_the_findings(run_json: RunJson, faulty: Path) -> None:
    report = run_json("lint", "--catalog", faulty)
    long = [each for each in report["findings"] if each["rule"] in ("long-description", "long-schema")]

    assert report["tools"] == 5
    assert report["tokens"] == sum(read_catalog(faulty).token_counts)
    assert report["long_text_tokens"] == sum(each["spare_tokens"] for each in long) > 0
    assert set(report["rules"]) == set(RULES)
    assert sum(report["rules"].values()) == len(report["findings"])


def test_chosen_rules_are_the_only_ones_and_need_no_encoder_where_they_look_at_texts(
    run_json: RunJson, encoder: FakeEncoder, faulty: Path
) -> None:
    report = run_json("lint", "--catalog", faulty, "--rule", "no-description", "--rule", "cryptic-name")

    assert report["rules"] == {"no-description": 1, "cryptic-name": 1}
    assert encoder.encoded == []


def test_limits_are_options(run_json: RunJson, faulty: Path) -> None:
    options = ("--catalog", faulty, "--rule", "long-description")

    assert run_json("lint", *options, "--max-description", 5000)["findings"] == []
    assert len(run_json("lint", *options, "--max-description", 3)["findings"]) == 4
    assert len(run_json("lint", *options, "--max-description", 3, "--min-tokens", 200)["findings"]) == 1


def test_it_fails_only_where_a_rule_that_was_named_finds_something(run: Run, faulty: Path, tools: Path) -> None:
    texts = ("--rule", "no-description", "--rule", "docstring")

    assert run("lint", "--catalog", faulty, *texts).exit_code == 0
    assert run("lint", "--catalog", faulty, *texts, "--fail-on", "no-description").exit_code == 1
    assert run("lint", "--catalog", faulty, *texts, "--fail-on", "docstring").exit_code == 0
    assert run("lint", "--catalog", faulty, *texts, "--fail-on", "any").exit_code == 1
    assert run("lint", "--catalog", tools, *texts, "--fail-on", "any").exit_code == 0


def test_a_rule_that_should_fail_is_looked_for(run_json: RunJson, faulty: Path) -> None:
    options = ("--catalog", faulty, "--rule", "docstring", "--fail-on", "no-description")
    report = run_json("lint", *options, code=2)

    assert report["message"] == "--fail-on no-description cannot fail: --rule leaves that rule out."
    assert run_json("lint", *options, "--rule", "no-description", code=1)["rules"]["no-description"] == 1


@pytest.mark.parametrize("option", ["--rule", "--fail-on"])
def test_an_unknown_rule_is_misuse(run_json: RunJson, faulty: Path, option: str) -> None:
    report = run_json("lint", "--catalog", faulty, option, "spelling", code=2)

    assert "'spelling'" in report["message"]
    assert "lost-name" in report["remedy"]


def test_the_table_has_a_part_for_each_rule_with_its_remedy_and_ends_with_the_sums(run: Run, faulty: Path) -> None:
    output = run("lint", "--catalog", faulty).stdout

    assert "no-description (1): no description" in output
    assert "→ Say in a sentence what it does" in output
    assert "5 tools of" in output
    assert "Texts beyond the limits cost" in output
    assert "Second tools for the same job cost" in output


def test_of_many_findings_the_table_shows_some_and_says_how_many_more(run: Run, faulty: Path) -> None:
    options = ("lint", "--catalog", faulty, "--rule", "long-description", "--max-description", 3)

    assert "… and 3 more" in run(*options, "--show", 1).stdout
    assert "more" not in run(*options, "--show", 0).stdout.replace("More words", "")


def test_tools_of_live_servers_are_looked_at(
    run_json: RunJson, servers_file: Callable[..., Path], scripted: dict[str, Any]
) -> None:
    report = run_json("lint", "--config", servers_file(scripted=scripted))

    assert report["tools"] > 0
    assert report["unreachable"] == []


def test_without_any_tools_it_says_so(run_json: RunJson, servers_file: Callable[..., Path]) -> None:
    report = run_json("lint", "--config", servers_file(gone={"command": "/nowhere/at/all"}), code=1)

    assert "no tools" in report["message"]
    assert "doctor" in report["remedy"]
