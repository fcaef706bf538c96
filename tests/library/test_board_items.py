"""One board for tools, skills, agents, prompts and resources."""

from __future__ import annotations

import json
import os
import pickle
import sys
from pathlib import Path
from typing import Any

import pytest

from pegboard import Board
from pegboard.errors import CatalogError, ConfigError
from pegboard.library.skill_folders import manifests, read_skill, skills_in
from pegboard.testing import FakeEncoder

TIDE = {"name": "tide", "description": "When the tide is high at a harbour"}
SKILLS = {
    "invoices": ("Writes and checks invoices", "Value added tax is shown on its own line, after the discount."),
    "weather-maps": ("Draws maps of the weather: isobars, fronts", "Isobars are drawn every four hectopascals."),
    "travel": ("Plans journeys by train", "Ask for the harbour first if a ferry is part of the journey."),
}
PLANNER = {
    "name": "Route planner",
    "description": "Plans routes for lorries",
    "url": "https://agents.example/routes",
    "version": "1.0.0",
    "capabilities": {},
    "skills": [{"id": "toll", "name": "Toll", "description": "Works out motorway tolls", "tags": ["vignette"]}],
}
BOOKKEEPER = {
    "name": "Bookkeeper",
    "description": "Books receipts",
    "supportedInterfaces": [{"url": "https://agents.example/books", "protocolBinding": "JSONRPC"}],
    "skills": [],
}
PROMPT = {
    "name": "review",
    "description": "Review a change",
    "arguments": [{"name": "pull_request", "description": "Number of the pull request", "required": True}],
}
RESOURCE = {"uri": "docs://handbook/holidays", "name": "Holidays", "description": "Rules for paid leave"}


@pytest.fixture
def skills(tmp_path: Path) -> Path:
    folder = tmp_path / "skills"
    for name, (description, body) in SKILLS.items():
        (folder / name).mkdir(parents=True)
        head = f"---\nname: {name}\ndescription: {description}\nlicense: MIT\n---\n"
        (folder / name / "SKILL.md").write_text(f"{head}\n# {name}\n\n{body}\n", "utf-8")
    return folder


@pytest.fixture
def options(tmp_path: Path) -> dict[str, Any]:
    return {"encoder": FakeEncoder(), "cache_dir": tmp_path, "state_dir": tmp_path}


def names(found: Any) -> list[tuple[str, str]]:
    return [(each.kind, each.name) for each in found.items]


@pytest.mark.requirement("library.one-board")
@pytest.mark.parametrize(
    ("query", "kind", "name"),
    [
        ("check this invoice", "skill", "invoices"),
        ("four hectopascals", "skill", "weather-maps"),
        ("motorway tolls", "agent", "Route planner"),
        ("vignette", "agent", "Route planner"),
        ("book a receipt", "agent", "Bookkeeper"),
        ("review the change", "prompt", "review"),
        ("number of the pull request", "prompt", "review"),
        ("paid leave", "resource", "Holidays"),
        ("handbook", "resource", "Holidays"),
    ],
)
def test_a_turn_and_a_search_get_what_matches_of_every_kind(
    skills: Path, options: dict[str, Any], query: str, kind: str, name: str
) -> None:
    offered = {"agents": [PLANNER, BOOKKEEPER], "prompts": [PROMPT], "resources": [RESOURCE]}
    with Board([TIDE], skills=skills, **offered, **options) as board:
        decision, found = board.route_now(query), board.search_now(query)

        assert names(decision) == names(found) == [(kind, name)]
        assert [tool.name for tool in decision.tools] == ["tide"]
        assert found.to_dict()[f"{kind}s"] == [found.items[0].to_dict()]


@pytest.mark.requirement("library.one-board")
def test_a_skill_comes_with_its_place_and_its_body(skills: Path, options: dict[str, Any]) -> None:
    with Board(skills=[skills / "invoices", skills / "travel"], **options) as board:
        skill = board.route_now("write an invoice").items[0]

    assert skill.address == str(skills / "invoices" / "SKILL.md")
    assert skill.text == f"# invoices\n\n{SKILLS['invoices'][1]}"
    assert skill.to_dict() == {"name": "invoices", "description": SKILLS["invoices"][0], "address": skill.address}


@pytest.mark.requirement("library.one-board")
async def test_kinds_say_what_is_asked_for(skills: Path, options: dict[str, Any]) -> None:
    agent = PLANNER | {"description": "Ferries from every harbour"}
    async with Board([TIDE], skills=skills, agents=[agent], **options) as board:
        asked = "the harbour"
        assert {kind for kind, _ in names(await board.route(asked))} == {"skill", "agent"}
        only = await board.route(asked, kinds=["agent"])
        assert (only.active, only.tools, only.phase2_tokens) == ((), (), 0)
        assert names(only) == [("agent", "Route planner")]
        assert names(await board.route(asked, kinds=["tool"])) == []

        found = await board.search(asked, kinds=["skill"])
        assert (found.tools, names(found)) == ((), [("skill", "travel")])
        assert names(await board.search(asked, kinds=["tool"])) == []
        with pytest.raises(ConfigError, match="no kind 'skills'"):
            await board.route(asked, kinds=["skills"])  # type: ignore[list-item]


@pytest.mark.requirement("library.one-board")
def test_each_kind_has_a_number_and_a_budget_of_its_own(options: dict[str, Any]) -> None:
    prompts = [{"name": f"report_{each}", "description": "Write a report " + "at length " * each} for each in range(9)]
    resources = [{"uri": f"file:///report/{each}", "name": f"Report {each}"} for each in range(9)]
    given = {"prompts": prompts, "resources": resources}

    def counts(**limits: Any) -> tuple[int, int]:
        with Board([TIDE], **given, **limits, **options) as board:
            kinds = [kind for kind, _ in names(board.route_now("a report"))]
        return kinds.count("prompt"), kinds.count("resource")

    assert counts() == (3, 3)
    assert counts(most={"prompt": 5, "resource": 0}) == (5, 0)
    assert counts(most={"prompt": 9}, budgets={"prompt": 40})[0] in range(1, 4)
    assert counts(budgets={"prompt": 0}) == (0, 3)


@pytest.mark.parametrize(
    ("limits", "said"),
    [
        ({"most": {"tool": 3}}, "For tools, set `k` and `budget`"),
        ({"budgets": {"skils": 3}}, "skils"),
        ({"most": {"skill": -1}}, "most of skill is -1"),
        ({"budgets": {"skill": "many"}}, "budgets of skill is 'many'"),
    ],
)
def test_limits_that_cannot_hold_are_refused(limits: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Board(**limits)
    assert said in f"{caught.value.message} {caught.value.remedy}"


def test_what_a_search_found_joins_the_decision(skills: Path, options: dict[str, Any]) -> None:
    with Board([TIDE], skills=skills, **options) as board:
        decision = board.route_now("write an invoice")
        widened = board.with_found(decision, board.search_now("isobars"))

    assert names(widened) == [("skill", "invoices"), ("skill", "weather-maps")]
    assert pickle.loads(pickle.dumps(widened)).items == widened.items  # noqa: S301
    assert json.loads(json.dumps(widened.to_dict()))["items"][0]["name"] == "invoices"


def test_boards_of_other_tools_have_the_same_skills(skills: Path, options: dict[str, Any]) -> None:
    with Board([TIDE], skills=skills, **options) as board:
        other = board.with_tools([{"name": "wind"}])
        assert names(other.route_now("write an invoice")) == [("skill", "invoices")]


def test_a_card_may_be_a_file(tmp_path: Path, options: dict[str, Any]) -> None:
    card = tmp_path / "agent-card.json"
    card.write_text(json.dumps(BOOKKEEPER), "utf-8")
    with Board(agents=card, **options) as board:
        assert board.search_now("book receipts").items[0].address == "https://agents.example/books"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("# A skill", "no front matter"),
        ("---\nname: x\n", "no front matter"),
        ("---\nname: x\n---\nDo it.", "no description"),
        ("---\n- x\n---\nDo it.", "no description"),
        (b"---\nname: \xff\n---\n", "cannot be read"),
    ],
)
def test_a_skill_that_cannot_be_read_is_named(tmp_path: Path, text: str | bytes, said: str) -> None:
    path = tmp_path / "SKILL.md"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    with pytest.raises(CatalogError, match=said) as caught:
        Board(skills=tmp_path)
    assert str(path) in caught.value.message


@pytest.mark.parametrize(
    "given",
    [
        {"skills": "nowhere"},
        {"skills": 7},
        {"skills": [7]},
        {"agents": [{"description": "nameless"}]},
        {"agents": "nowhere.json"},
        {"prompts": "review"},
        {"resources": [{"uri": "a://b"}]},
    ],
)
def test_what_is_no_skill_agent_prompt_or_resource_is_refused(given: dict[str, Any]) -> None:
    with pytest.raises(CatalogError) as caught:
        Board(**given)
    assert caught.value.remedy


def test_a_folder_without_skills_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CatalogError, match=r"SKILL\.md"):
        Board(skills=tmp_path)


@pytest.mark.skipif(sys.platform == "win32", reason="links need a right there")
def test_a_link_to_a_skill_is_a_skill_and_is_followed_no_further(tmp_path: Path, skills: Path) -> None:
    folder = tmp_path / "linked"
    folder.mkdir()
    (folder / "bills").symlink_to(skills / "invoices")
    (folder / "all").symlink_to(skills)
    (folder / "itself").symlink_to(folder)

    assert [item.address for item in skills_in(folder)] == [str(folder / "bills" / "SKILL.md")]


@pytest.mark.skipif(sys.platform == "win32", reason="links need a right there")
def test_a_skill_that_links_lead_to_is_listed_once(tmp_path: Path, skills: Path) -> None:
    (skills / "bills").symlink_to(skills / "invoices")
    assert skills / "invoices" / "SKILL.md" in manifests(skills)
    assert skills / "bills" / "SKILL.md" not in manifests(skills)

    folder = tmp_path / "linked"
    folder.mkdir()
    for name in ("c", "a", "b"):
        (folder / name).symlink_to(skills / "invoices")
    assert manifests(folder) == [folder / "a" / "SKILL.md"]


@pytest.mark.skipif(sys.platform == "win32", reason="links need a right there")
def test_a_link_into_a_folder_that_may_not_be_searched_is_passed_over(
    tmp_path: Path, skills: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    private = tmp_path / "private" / "plan"
    private.mkdir(parents=True)
    (skills / "plan").symlink_to(private)
    found, exists = manifests(skills), Path.exists

    def refuse(path: Path, **how: Any) -> bool:
        if "plan" in path.parts:
            raise PermissionError(13, "Permission denied", str(path))
        return exists(path, **how)

    monkeypatch.setattr(Path, "exists", refuse)

    assert manifests(skills) == found != []


def test_folders_that_go_away_while_skills_are_looked_for_are_passed_over(
    skills: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scandir = os.scandir

    def gone(folder: str) -> Any:
        if Path(folder).name == "travel":
            raise FileNotFoundError(folder)
        return scandir(folder)

    everything = manifests(skills)
    monkeypatch.setattr(os, "scandir", gone)
    assert manifests(skills) == [each for each in everything if each.parent.name != "travel"]
    assert len(everything) == len(SKILLS)


@pytest.mark.requirement("025.items-everywhere")
def test_skills_and_agents_of_a_configuration_are_those_of_its_boards(
    skills: Path, options: dict[str, Any], tmp_path: Path
) -> None:
    """Their paths are relative to the file."""
    (tmp_path / "routes.json").write_text(json.dumps(PLANNER))
    said = '[items]\nskills = ["skills"]\nagents = ["routes.json"]\nmost = { skill = 1 }\n'
    (tmp_path / "pegboard.toml").write_text(said)
    with Board([TIDE], config=tmp_path / "pegboard.toml", **options) as board:
        assert names(board.search_now("motorway tolls")) == [("agent", "Route planner")]
        assert names(board.search_now("the harbour")) == [("skill", "travel")]

    (tmp_path / "pegboard.toml").write_text("[items]\nmost = { tool = 1 }\n")
    with pytest.raises(ConfigError, match="items"):
        Board([TIDE], config=tmp_path / "pegboard.toml", **options)


def test_an_empty_name_in_a_skill_is_that_of_its_folder(tmp_path: Path) -> None:
    (tmp_path / "SKILL.md").write_text("---\nname:\ndescription: Writes a mail\n---\nbody\n")

    assert read_skill(tmp_path / "SKILL.md").name == tmp_path.name


@pytest.mark.parametrize("name", ["on", "no", "1.10", "007", "2026-11-29", "!!bool maybe"])
def test_a_skill_has_the_name_that_is_written(tmp_path: Path, name: str) -> None:
    (tmp_path / "SKILL.md").write_text(f"---\nname: {name}\ndescription: Writes a mail\n---\nbody\n")

    assert read_skill(tmp_path / "SKILL.md").name == name.removeprefix("!!bool ")
