from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

from language_models import Service, service
from pegboard.apps.cli import consent
from pegboard.settings import load_settings

Run = Callable[..., Result]
RunJson = Callable[..., Any]

KEY = "sk-the-key-that-nobody-sees"


@pytest.fixture
def llm() -> Iterator[Service]:
    with service() as running:
        yield running


@pytest.fixture
def config(machine: Path, llm: Service, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A configuration with an LLM, whose key is in the environment."""
    monkeypatch.setenv("LLM_KEY", KEY)
    path = machine / "pegboard.toml"
    path.write_text(
        '[summaries]\nfile = "own.jsonl"\nmodel = "small"\napi_key_env = "LLM_KEY"\nbatch = 5\n'
        f'base_url = "{llm.url}"\n'
    )
    return path


def rows(path: Path) -> list[dict[str, str]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_without_an_llm_summaries_are_by_rule_and_shorter(run_json: RunJson, tools: Path, machine: Path) -> None:
    report = run_json("summarize", "--catalog", tools)
    written = rows(machine / "summaries.jsonl")

    assert (report["tools"], report["by_rule"], report["model"], report["retrieval"]) == (12, 12, None, None)
    assert written[0].keys() == {"server", "name", "definition", "summary", "by"}
    assert {row["by"] for row in written} == {"rule"}
    assert report["mean_tokens"]["after"] <= 60
    assert report["summaries"] == [{key: row[key] for key in ("server", "name", "summary")} for row in written]


def test_half_a_surrogate_pair_in_a_description_stays_in_the_file(run_json: RunJson, machine: Path) -> None:
    tools = machine / "tools.json"
    tools.write_text(json.dumps({"tools": [{"name": "draw", "description": "Draws \ud83d faces.", "inputSchema": {}}]}))
    [shown] = run_json("summarize", "--catalog", tools)["summaries"]
    [written] = rows(machine / "summaries.jsonl")

    assert "\ud83d" in written["summary"]
    assert written["summary"] == shown["summary"]


def test_a_dry_run_writes_nothing_and_asks_nobody(run_json: RunJson, tools: Path, config: Path, llm: Service) -> None:
    report = run_json("summarize", "--config", config, "--catalog", tools, "--dry-run")

    assert (report["out"], report["requests"], report["requests_needed"]) == (None, 0, 3)
    assert not llm.requests
    assert not (config.parent / "own.jsonl").exists()


def test_a_dry_run_needs_no_key(run_json: RunJson, tools: Path, config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LLM_KEY")

    assert run_json("summarize", "--config", config, "--catalog", tools, "--dry-run")["model"] == "small"


def test_an_llm_writes_into_the_configured_file(run_json: RunJson, tools: Path, config: Path, llm: Service) -> None:
    report = run_json("summarize", "--config", config, "--catalog", tools)

    assert (report["by_model"], report["by_rule"], report["requests"]) == (12, 0, 3)
    assert {row["by"] for row in rows(config.parent / "own.jsonl")} == {"small"}
    assert llm.keys == [f"Bearer {KEY}"] * 3


def test_a_second_run_asks_only_where_something_is_new(
    run_json: RunJson, tools: Path, config: Path, llm: Service
) -> None:
    words = ("summarize", "--config", config, "--catalog", tools)
    run_json(*words)
    second = run_json(*words)
    asked_then = len(llm.requests)
    again = run_json(*words, "--again")

    assert (second["kept"], second["requests"], asked_then) == (12, 0, 3)
    assert (again["kept"], again["requests"], len(llm.requests)) == (0, 3, 6)


def test_rules_can_be_asked_for(run_json: RunJson, tools: Path, config: Path, llm: Service) -> None:
    report = run_json("summarize", "--config", config, "--catalog", tools, "--rules", "--out", "by-rule.jsonl")

    assert (report["by_rule"], llm.requests) == (12, [])


def test_labelled_queries_give_retrieval_before_and_after(run_json: RunJson, cli_data: Path) -> None:
    folder = cli_data / "small_set"
    report = run_json(
        "summarize", "--catalog", folder / "catalog.jsonl.gz", "--queries", folder / "queries.jsonl.gz", "--dry-run"
    )
    found = report["retrieval"]

    assert found["queries"] == 7
    assert found["before"].keys() == found["after"].keys() == {"f1@5", "recall@5", "mrr", "f1_gated", "theta", "tokens"}
    assert found["f1@5_gain"] == pytest.approx(found["after"]["f1@5"] - found["before"]["f1@5"], abs=2e-4)
    assert found["seed_claims"] == {"f1": 0.08, "length_change": -0.63}


def test_queries_that_name_unknown_tools_are_an_error(run: Run, tools: Path, machine: Path) -> None:
    (machine / "queries.jsonl").write_text('{"id": "a", "query": "fly", "relevant": [["no", "such"]]}\n')
    result = run("summarize", "--catalog", tools, "--queries", "queries.jsonl")

    assert result.exit_code == 2
    assert "'no/such'" in result.stderr


def test_people_see_examples_lengths_and_where_the_file_is(
    run: Run, tools: Path, cli_data: Path, config: Path, llm: Service
) -> None:
    llm.answer = lambda tools, _: "no JSON" if len(tools) == 2 else {}
    folder = cli_data / "small_set"
    result = run("summarize", "--config", config, "--catalog", tools, "--queries", folder / "queries.jsonl.gz")

    assert result.exit_code == 0
    assert "12 tools: 12 by rule, 0 by small, 0 kept from the file." in result.stdout
    assert (
        "Answers of small not used: no summary of it (10), an answer that is not the JSON asked for (2)."
        in result.stdout
    )
    assert "F1@5 changes by" in result.stdout
    assert "+8 points of F1" in result.stdout
    assert "own.jsonl" in result.stdout


@pytest.mark.parametrize("flag", ["--verbose", "--json"])
def test_the_key_is_never_shown(flag: str, run: Run, tools: Path, config: Path, llm: Service) -> None:
    words = ("summarize", "--config", config, "--catalog", tools, flag)
    good = run(*words, "--out", "a.jsonl")
    llm.answer = lambda tools, _: 401
    refused = run(*words, "--out", "b.jsonl")

    assert (good.exit_code, refused.exit_code) == (0, 2)
    for said in (good.output, refused.output, (config.parent / "a.jsonl").read_text()):
        assert KEY not in said
    assert "it does not accept the key" in refused.output


def test_a_variable_that_is_not_set_is_named(
    run: Run, tools: Path, config: Path, monkeypatch: pytest.MonkeyPatch, llm: Service
) -> None:
    monkeypatch.delenv("LLM_KEY")
    result = run("summarize", "--config", config, "--catalog", tools)

    assert result.exit_code == 2
    assert "The variable 'LLM_KEY' is not set." in result.stderr
    assert not llm.requests


@pytest.mark.parametrize(
    ("section", "why"),
    [
        ('api_key_env = "sk-proj-secret"', "api_key_env"),
        ('base_url = "https://user:sk-proj-secret@llm.example/v1"\nmodel = "m"', "must not contain a key"),
        ('base_url = "https://llm.example/v1?key=sk-proj-secret"\nmodel = "m"', "must not contain a key"),
        ('base_url = "file:///etc/passwd"\nmodel = "m"', "must begin with http"),
        ('base_url = "https://llm.example/v1"', "belong together"),
        ('api_key = "sk-proj-secret"', "api_key"),
    ],
)
def test_a_key_in_the_configuration_is_refused_without_being_shown(
    section: str, why: str, run: Run, tools: Path, machine: Path
) -> None:
    (machine / "bad.toml").write_text(f"[summaries]\n{section}\n")
    result = run("summarize", "--config", "bad.toml", "--catalog", tools)

    assert result.exit_code == 2
    assert why in result.stderr
    assert "sk-proj-secret" not in result.output


def test_a_projects_own_file_cannot_say_to_whom_a_key_is_sent(
    run: Run, scripted: dict[str, Any], machine: Path, llm: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    service_of = {"base_url": llm.url, "model": "small", "api_key_env": "OPENAI_API_KEY"}
    folder = machine / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    (folder / ".mcp.json").write_text(json.dumps({"mcpServers": {}, "pegboard": {"summaries": service_of}}))
    unasked = run("summarize")
    consent.remember([folder / ".mcp.json"])
    result = run("summarize")

    assert (unasked.exit_code, result.exit_code) == (2, 2)
    assert "Left out: " in unasked.stderr
    assert "belongs to the current project and names an LLM's service" in result.stderr
    assert not llm.requests


def test_the_environment_may_name_the_service_beside_a_projects_own_file(
    run: Run, machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PEGBOARD_SUMMARIES", '{"base_url": "http://127.0.0.1:9/v1", "model": "small"}')
    folder = machine / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    (folder / ".mcp.json").write_text('{"mcpServers": {}}')
    result = run("summarize", "--dry-run")

    assert "There are no tools to summarize." in result.stderr


def test_what_cannot_be_sent_as_a_key_is_refused_without_being_shown(
    run: Run, tools: Path, config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LLM_KEY", f"{KEY}\r\nX-Other: 1")
    result = run("summarize", "--config", config, "--catalog", tools)

    assert result.exit_code == 2
    assert "'LLM_KEY' does not contain a key" in result.stderr
    assert KEY not in result.output


def test_summaries_of_servers_that_are_not_here_stay_in_the_file(
    run_json: RunJson, tools: Path, machine: Path, cli_data: Path
) -> None:
    other = {"server": "away", "name": "far", "definition": "0", "summary": "far: Go far", "by": "rule"}
    (machine / "summaries.jsonl").write_text(json.dumps(other) + "\n")
    run_json("summarize", "--catalog", tools)

    assert other in rows(machine / "summaries.jsonl")
    assert len(rows(machine / "summaries.jsonl")) == 13


def test_the_file_that_was_written_can_be_configured(run_json: RunJson, tools: Path, machine: Path) -> None:
    run_json("summarize", "--catalog", tools)
    (machine / "pegboard.toml").write_text('summaries = "summaries.jsonl"')
    found = run_json("route", "weather", "--config", "pegboard.toml", "--catalog", tools, "--profile", "attention")

    assert load_settings([machine / "pegboard.toml"]).summaries.file == machine / "summaries.jsonl"
    assert found


@pytest.mark.skipif(sys.platform == "win32", reason="links and devices of POSIX")
def test_a_link_stays_a_link_and_a_device_a_device(run_json: RunJson, tools: Path, machine: Path) -> None:
    target, link, fifo = machine / "target.jsonl", machine / "link.jsonl", machine / "fifo"
    target.touch(mode=0o640)
    link.symlink_to(target)
    os.mkfifo(fifo)
    reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    run_json("summarize", "--catalog", tools, "--out", link)
    run_json("summarize", "--catalog", tools, "--out", fifo)

    assert link.is_symlink()
    assert (len(rows(target)), target.stat().st_mode & 0o777) == (12, 0o640)
    assert fifo.is_fifo()
    assert os.read(reader, 1_000_000) == target.read_bytes()
    os.close(reader)


@pytest.mark.parametrize("is_link", [False, True])
def test_a_folder_that_does_not_exist_is_found_out_before_the_work(
    run: Run, tools: Path, machine: Path, is_link: bool
) -> None:
    out = machine / "nowhere" / "summaries.jsonl"
    if is_link:
        out = machine / "link.jsonl"
        out.symlink_to(machine / "nowhere" / "summaries.jsonl")
    result = run("summarize", "--catalog", tools, "--out", out)

    assert result.exit_code == 2
    assert "its folder does not exist. Name another file with --out." in result.stderr


def test_live_servers_are_summarized_too(
    run_json: RunJson, servers_file: Callable[..., Path], scripted: dict[str, Any], machine: Path
) -> None:
    report = run_json("summarize", "--config", servers_file(scripted=scripted))

    assert report["tools"] == len(rows(machine / "summaries.jsonl")) > 0
