from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

from pegboard.catalog.ingest import read_catalog
from pegboard.events import RouteDecided
from pegboard.routing.encoder_fallback import FallbackRanking
from pegboard.testing import FakeEncoder

Run = Callable[..., Result]
RunJson = Callable[..., Any]

ISSUE = "open a new issue in the repository"


@pytest.fixture
def own_file(machine: Path) -> Callable[[str], Path]:
    """A pegboard.toml with this text."""

    def write(text: str) -> Path:
        path = machine / "pegboard.toml"
        path.write_text(text)
        return path

    return write


def test_the_best_tool_comes_first_with_its_score_and_the_parts_of_it(run_json: RunJson, tools: Path) -> None:
    decision = run_json("route", ISSUE, "--catalog", tools)
    first = decision["candidates"][0]

    assert decision["profile"] == "hybrid"
    assert (first["tool"], first["rank"], first["active"]) == ("code/create_issue", 1, True)
    assert set(first["parts"]) >= {"cosine", "clause", "bm25", "name", "named", "server"}
    assert "code/create_issue" in decision["active"]


def test_tokens_of_both_phases_stand_beside_those_of_all_tools(run_json: RunJson, tools: Path) -> None:
    decision = run_json("route", ISSUE, "--catalog", tools, "--profile", "attention", "--k", 2)
    catalog = read_catalog(tools)
    active = [tool for tool in catalog.tools if str(tool.id) in decision["active"]]

    assert len(active) == 2
    assert decision["tokens"]["all"] == sum(catalog.token_counts)
    assert decision["tokens"]["phase2"] == sum(catalog.token_counts[catalog.position[tool.id]] for tool in active)
    assert decision["tokens"]["phase1"] > 0


def test_the_table_marks_what_is_active_and_shows_those_that_just_missed(run: Run, tools: Path) -> None:
    lines = run("route", ISSUE, "--catalog", tools, "--profile", "keyword", "--k", 1).stdout.splitlines()
    first = next(line for line in lines if "code/create_issue" in line)
    missed = next(line for line in lines if "code/list_issues" in line)

    assert "●" in first
    assert "active" in first
    assert "●" not in missed
    assert any("Phase 1" in line for line in lines)


def test_explain_says_each_part_in_words(run: Run, tools: Path) -> None:
    output = run("route", ISSUE, "--catalog", tools, "--explain").stdout

    assert "by meaning (cosine of query and tool)" in output
    assert "by shared words" in output
    assert "number 1 of 12" in output
    assert "0.000 by its service, if the query names it: the same for all" in output


@pytest.mark.requirement("022.route-chance")
def test_explain_says_the_chance_that_any_tool_fits(run: Run, run_json: RunJson, tools: Path) -> None:
    known = run_json("route", ISSUE, "--catalog", tools)
    unknown = run_json("route", "zorgle the quux fnord", "--catalog", tools)

    assert not known["nothing_fits"]
    assert unknown["nothing_fits"]
    assert unknown["chance"] < known["chance"] <= 1
    assert f"any tool does this is {known['chance']:.2f}" in run("route", ISSUE, "--catalog", tools, "--explain").stdout
    assert "Nothing fits" in run("route", "zorgle the quux fnord", "--catalog", tools, "--explain").stdout


@pytest.mark.requirement("022.route-chance")
def test_a_profile_that_cannot_tell_and_an_empty_query_have_no_chance(run: Run, run_json: RunJson, tools: Path) -> None:
    by_keyword = run_json("route", ISSUE, "--catalog", tools, "--profile", "keyword")
    empty = run_json("route", "", "--catalog", tools)

    assert (by_keyword["chance"], by_keyword["nothing_fits"]) == (None, False)
    assert (empty["chance"], empty["nothing_fits"]) == (None, False)
    assert "chance" not in run("route", ISSUE, "--catalog", tools, "--profile", "keyword", "--explain").stdout


def test_explain_says_what_would_help_a_tool_that_is_held_back(run: Run, tools: Path) -> None:
    output = run("route", ISSUE, "--catalog", tools, "--recall", 1, "--k", 12, "--explain").stdout

    assert "Its weakest part is " in output


@pytest.mark.parametrize(
    ("options", "tool", "status", "why"),
    [
        ((), "code/create_issue", "active", "rank 1 of 12, score"),
        (("--profile", "attention"), "storm_alerts", "below_threshold", "is below the threshold 0.28"),
        (("--profile", "keyword", "--k", 1), "list_issues", "beyond_k", "and k is 1."),
        (("--recall", 0.05, "--k", 12), "list_issues", "recall_reached", "less likely than a recall of 5% requires"),
        (("--recall", 1, "--k", 12, "--budget", 30), "create_issue", "over_budget", "left of the budget of 30."),
    ],
)
def test_a_tool_that_is_asked_about_gets_the_reason(
    run: Run, run_json: RunJson, tools: Path, options: tuple[object, ...], tool: str, status: str, why: str
) -> None:
    words = ("route", ISSUE, "--catalog", tools, *options, "--tool", tool)
    (verdict,) = run_json(*words)["tool"]

    assert verdict["status"] == status
    assert why in verdict["why"]
    assert why in run(*words).stdout


def test_a_name_that_two_servers_share_gets_a_reason_for_each(run_json: RunJson, tools: Path) -> None:
    verdicts = run_json("route", "read a file", "--catalog", tools, "--tool", "read_file")["tool"]

    assert [verdict["tool"] for verdict in verdicts] == ["files/read_file", "cloud/read_file"]


def test_a_name_of_no_tool_is_answered_with_those_that_are_near(run_json: RunJson, tools: Path) -> None:
    (verdict,) = run_json("route", ISSUE, "--catalog", tools, "--tool", "create_isue")["tool"]

    assert verdict["status"] == "unknown"
    assert verdict["suggestions"][0] == "create_issue"


def test_tools_out_of_state_and_out_of_scope_are_told_apart(
    run_json: RunJson, tools: Path, own_file: Callable[[str], Path]
) -> None:
    config = own_file(
        """
        [[rules]]
        tools = "code/merge_*"
        requires = ["milestone_reached:reviewed"]
        [[rules]]
        tools = "cloud/*"
        scope = "cloud:read"
        """
    )
    words = ("route", "merge the branch and share the file", "--config", config, "--catalog", tools)

    assert run_json(*words, "--tool", "merge_branch")["tool"][0]["status"] == "gated_by_state"
    assert run_json(*words, "--tool", "share_file")["tool"][0]["status"] == "out_of_scope"
    assert run_json(*words)["gated_out_by_state"] == ["code/merge_branch"]


def test_a_tool_that_is_always_available_is_said_to_be(
    run_json: RunJson, tools: Path, own_file: Callable[[str], Path]
) -> None:
    config = own_file('always_available = ["weather/forecast"]')
    words = ("route", ISSUE, "--config", config, "--catalog", tools, "--profile", "keyword", "--tool", "forecast")
    (verdict,) = run_json(*words)["tool"]

    assert verdict["status"] == "active"
    assert "makes it always available" in verdict["why"]


def test_every_verdict_agrees_with_the_decision(run_json: RunJson, tools: Path) -> None:
    for options in (("--k", 3), ("--recall", 0.3), ("--budget", 150), ("--profile", "attention"), ("--threshold", 0.1)):
        decision = run_json("route", ISSUE, "--catalog", tools, *options)
        active = {each["tool"] for each in decision["candidates"] if each["status"] == "active"}

        assert active == set(decision["active"])
        assert len(decision["candidates"]) == 12


def test_an_empty_query_lets_every_tool_pass_and_says_why(run_json: RunJson, tools: Path) -> None:
    decision = run_json("route", " ", "--catalog", tools)

    assert len(decision["active"]) == 12
    assert "Relevance is unknown" in decision["candidates"][0]["why"]


@pytest.mark.parametrize(
    ("options", "remedy"),
    [
        (("--profile", "magic"), "Use one of attention, keyword, semantic, ehrr, hybrid."),
        (("--profile", "semantic", "--recall", "0.9"), "Use --profile hybrid"),
        (("--threshold", "3"), "a probability between 0 and 1"),
        (("--recall", "2"), "recall"),
    ],
)
def test_options_that_make_no_sense_exit_with_2_and_a_remedy(
    run: Run, tools: Path, options: tuple[str, ...], remedy: str
) -> None:
    result = run("route", "x", "--catalog", tools, *options)

    assert result.exit_code == 2
    assert remedy in result.stderr
    assert "Traceback" not in result.output


def test_without_any_tool_there_is_nothing_to_route(run: Run, servers_file: Callable[..., Path]) -> None:
    result = run("route", "x", "--config", servers_file(gone={"command": "/nowhere/server"}))

    assert result.exit_code == 1
    assert "There are no tools to select from." in result.stderr
    assert "'/nowhere/server' was not found" in result.stderr
    assert "`pegboard doctor`" in result.stderr


class FarEncoder(FakeEncoder):
    """One that nothing is fitted for."""

    provider = "far"


@pytest.mark.requirement("003.by-rank")
def test_tools_that_were_taken_by_rank_are_said_to_be(run: Run, run_json: RunJson, tools: Path) -> None:
    words = ["route", "--catalog", tools, "--k", 3, "renew my loan"]
    shown = run(*words, encoder=FarEncoder())
    report = run_json(*words, encoder=FarEncoder())

    assert "Nothing is fitted for the encoder far/bag-of-words" in " ".join(shown.stdout.split())
    assert (report["by_rank"], report["encoder"], report["scale"]) == (True, "far/bag-of-words", "points")
    assert len(report["active"]) == 3


EHRR = ("--profile", "ehrr")


@pytest.mark.requirement("001.explain")
def test_explain_shows_every_term_of_the_two_layers_and_why_each_server_was_kept(
    run: Run, tools: Path, own_file: Callable[[str], Path]
) -> None:
    file = own_file('[spend.prices]\n"code/create_issue" = 0.03\n"code/*" = 0.001\n[economics.asks]\nbank = 9.0\n')
    output = run("route", ISSUE, "--config", file, "--catalog", tools, *EHRR, "--explain").stdout

    for term in ("r~ = max(ε, r 0.900", "(eq. 2)", "(eq. 3)", "(eq. 4)", "(eq. 5)", "(eq. 6)", "(eq. 7)"):
        assert term in output
    assert "server code: kept: c = $" in output
    assert "code/create_issue: rank " in output
    assert "it costs $0.0300 (configured), but its server code is offered $0.02" in output
    assert "p = $0.0010 (configured) ≤ τ = $0.02" in output


@pytest.mark.requirement("001.explain")
def test_the_terms_of_the_two_layers_can_be_read_by_programs(
    run_json: RunJson, tools: Path, own_file: Callable[[str], Path]
) -> None:
    file = own_file("[economics]\nservers = 2\ncap = 0.01\n[economics.asks]\ncode = 9.0\n")
    decision = run_json("route", ISSUE, "--config", file, "--catalog", tools, *EHRR, "--tool", "create_issue")

    servers = {each["server"]: each for each in decision["economics"]["servers"]}
    code = servers["code"]
    assert (code["shortlisted"], code["accepted"], code["ask"], code["ask_from"]) == (True, False, 9.0, "config")
    assert code["posted"] == 0.01
    chance = (1 - code["failure"]) * code["conservative_success"]
    assert code["cost"] == pytest.approx(code["latency"] / chance, rel=1e-4)
    assert sum(each["shortlisted"] for each in servers.values()) == 2
    assert decision["tool"][0]["status"] == "server_declined"
    statuses = {each["status"] for each in decision["candidates"]}
    assert {"server_declined", "server_not_shortlisted"} <= statuses
    first = decision["candidates"][0]
    assert first["terms"]["reason"] == "server_declined"
    assert first["score"] == pytest.approx(first["terms"]["utility"], abs=1e-4)
    assert first["terms"]["price_from"] == "free"


def test_of_the_tools_worth_their_price_at_most_n_are_taken(run_json: RunJson, tools: Path) -> None:
    decision = run_json("route", ISSUE, "--catalog", tools, *EHRR)

    assert len(decision["active"]) == 3
    assert "beyond_k" in {each["status"] for each in decision["candidates"]}
    assert len(run_json("route", ISSUE, "--catalog", tools, *EHRR, "--k", 1)["active"]) == 1


@pytest.mark.parametrize("profile", ["hybrid", "attention", "ehrr"])
def test_a_request_is_scored_once_however_much_is_explained(
    run: Run, tools: Path, monkeypatch: pytest.MonkeyPatch, profile: str
) -> None:
    passes = []
    relevance = FallbackRanking.relevance

    async def counted(self: FallbackRanking, *arguments: Any) -> Any:
        passes.append(arguments)
        return await relevance(self, *arguments)

    monkeypatch.setattr(FallbackRanking, "relevance", counted)
    result = run("route", ISSUE, "--catalog", tools, "--profile", profile, "--explain", "--tool", "code/create_issue")

    assert result.exit_code == 0
    assert len(passes) == 1


def test_whatever_the_event_of_a_decision_says_is_explained(run: Run, run_json: RunJson, tools: Path) -> None:
    event = run_json("route", ISSUE, "--catalog", tools)["event"]
    said = " ".join(run("route", ISSUE, "--catalog", tools, "--explain").stdout.split("Event: ")[1].split())

    assert set(event) == {field.name for field in fields(RouteDecided)}
    single = {name for name, value in event.items() if isinstance(value, str | int | float) and value != ""}
    assert all(f"{name} " in said for name in single)


@pytest.mark.parametrize(
    ("provider", "model", "known", "ways"),
    [
        ("anthropic", "claude-sonnet-4-5", True, {"whole", "tools", "call_tool", "defer"}),
        ("azure", "gpt-5.4", True, {"whole", "tools", "call_tool", "defer"}),
        ("bedrock", "", False, {"whole", "tools", "call_tool"}),
    ],
)
def test_what_each_way_would_be_billed_at_a_provider(
    run_json: RunJson, run: Run, tools: Path, provider: str, model: str, known: bool, ways: set[str]
) -> None:
    words = ("route", ISSUE, "--catalog", tools, "--explain", "--provider", provider, "--model", model)
    found = run_json(*words)["ways"]

    assert (found["prices_known"], set(found["bills"])) == (known, ways)
    assert found["chosen"] in ways
    assert found["chosen"] == "whole" or found["bills"][found["chosen"]] < found["bills"]["whole"]
    assert f"The cost rule would choose {found['chosen']}" in run(*words).stdout


@pytest.mark.requirement("llm.emulated-deferral")
@pytest.mark.parametrize(
    ("provider", "model", "emulated"),
    [
        ("anthropic", "claude-sonnet-4-5", {}),
        ("openai", "gpt-5.4", {"openai_chat": "call_tool"}),
        ("openai", "gpt-5", {"openai_chat": "call_tool", "openai_responses": "call_tool"}),
        ("openai", "llama-4", {"openai_chat": "search_tools", "openai_responses": "call_tool"}),
        ("gemini", "gemini-3.5-flash", {"gemini": "call_tool"}),
    ],
)
def test_what_emulates_deferral_at_a_provider_is_said(
    run_json: RunJson, run: Run, tools: Path, provider: str, model: str, emulated: dict[str, str]
) -> None:
    words = ("route", ISSUE, "--catalog", tools, "--explain", "--provider", provider, "--model", model)
    said = run(*words).stdout

    assert run_json(*words)["ways"]["defer_emulated_by"] == emulated
    assert said.count("`defer` is emulated") == len(emulated)
    assert all(f"In {name}, " in said and f"emulated by {way}." in said for name, way in emulated.items())


def test_a_provider_that_nobody_knows_is_said(run: Run, tools: Path) -> None:
    found = run("route", ISSUE, "--catalog", tools, "--provider", "nobody")

    assert found.exit_code == 2
    assert "Known are openai" in found.stderr


@pytest.fixture
def skill_folder(machine: Path) -> Path:
    folder = machine / "skills"
    for name, description, body in (
        ("triage", "Sorts new issues", "Label every issue of the repository, and close duplicates."),
        ("slides", "Makes slides [in colour]", "One thought a slide."),
    ):
        (folder / name).mkdir(parents=True)
        (folder / name / "SKILL.md").write_text(f"---\nname: {name}\ndescription: {description}\n---\n{body}\n")
    return folder


@pytest.mark.requirement("library.one-board")
def test_skills_and_agents_stand_beside_tools(run_json: RunJson, run: Run, tools: Path, skill_folder: Path) -> None:
    card = skill_folder / "card.json"
    card.write_text('{"name": "Issue desk", "description": "Opens issues in a repository", "url": "https://a.example"}')
    given = ("route", ISSUE, "--catalog", tools, "--skills", skill_folder, "--agents", card)
    decision = run_json(*given)

    assert "code/create_issue" in decision["active"]
    assert [(each["kind"], each["name"]) for each in decision["items"]] == [
        ("skill", "triage"),
        ("agent", "Issue desk"),
    ]
    assert "Issue desk" in run(*given).stdout
    assert "items" not in run_json("route", ISSUE, "--catalog", tools)


@pytest.mark.requirement("library.one-board")
def test_for_skills_alone_no_tools_are_read(run_json: RunJson, run: Run, skill_folder: Path) -> None:
    asked = ("route", "thought of a slide", "--skills", skill_folder, "--kind", "skill")
    found = run_json(*asked, "--catalog", skill_folder / "missing.json")

    assert [each["name"] for each in found["items"]] == ["slides"]
    assert found["items"][0]["address"] == str(skill_folder / "slides" / "SKILL.md")
    assert "[in colour]" in run(*asked).stdout
    assert "No skill or agent matches." in run("route", "qwertz", "--skills", skill_folder, "--kind", "skill").stdout


def test_a_kind_without_anything_to_read_says_which_option_is_missing(run: Run, skill_folder: Path) -> None:
    missing = run("route", "slides", "--kind", "skill")
    assert (missing.exit_code, "--skills DIR" in missing.output) == (2, True)
    unknown = run("route", "slides", "--skills", skill_folder, "--kind", "skills")
    assert (unknown.exit_code, "Kinds are tool, skill, agent" in unknown.output) == (2, True)
    nothing = run("route", "slides", "--skills", skill_folder / "none")
    assert (nothing.exit_code, "There is no folder" in nothing.output) == (2, True)
