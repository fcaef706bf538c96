"""`pegboard-bench sets`: fetch, list and check."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

import git_mirrors
from pegboard_bench.sets import folder, recipes
from pegboard_bench.sets.mcpproxy_golden import CORPUS, GOLDEN, RECIPE
from pegboard_bench.sets.origins import Origins
from pegboard_bench.sets.recipe import Package

Run = Callable[..., Result]
RunJson = Callable[..., Any]

pytestmark = pytest.mark.requirement("bench.public-sets")


@pytest.fixture
def mirror(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Clones of the one set that there is, whose content is what is expected of it."""
    tools = [{"server": "desk", "tool": "lamp", "description": "Light", "schema": {"type": "object"}}]
    queries = [{"id": "1", "query": "light", "labels": [{"tool_id": "desk:lamp", "relevance": 2}]}]
    files = {CORPUS: {"tools": tools}, GOLDEN: {"queries": queries}}
    recipe = git_mirrors.mirrored(RECIPE, tmp_path / "mirror", {"mcpproxy-go": files})
    monkeypatch.setattr(recipes, "RECIPES", (recipe,))
    built = folder.build(recipe, Origins(tmp_path / "cache", tmp_path / "mirror"), tmp_path / "first")
    wanted = {path.name: content for path in built.glob("*.gz") if (content := folder.content_of(path))}
    monkeypatch.setattr(folder, "expected", lambda: {recipe.name: wanted})
    return tmp_path / "mirror"


def test_a_set_is_built_then_kept_then_built_again_where_it_was_changed(
    run: Run, run_json: RunJson, mirror: Path, tmp_path: Path
) -> None:
    words = ("bench", "sets", "fetch", "--to", tmp_path / "sets", "--mirror", mirror)

    assert run_json(*words)["sets"][RECIPE.name]["state"] == "built"
    assert run_json(*words)["sets"][RECIPE.name]["state"] == "kept"
    (tmp_path / "sets" / RECIPE.name / "queries.jsonl.gz").write_bytes(b"broken")
    checked = run("bench", "sets", "check", "--to", tmp_path / "sets")
    assert (checked.exit_code, "queries.jsonl.gz cannot be read" in checked.stdout) == (1, True)
    assert run_json(*words)["sets"][RECIPE.name] == {"state": "built", "wrong": []}
    assert run("bench", "sets", "check", "--to", tmp_path / "sets").exit_code == 0


def test_the_list_says_what_is_built(run_json: RunJson, mirror: Path, tmp_path: Path) -> None:
    before = run_json("bench", "sets", "list", "--to", tmp_path / "sets")["sets"][0]
    run_json("bench", "sets", "fetch", "--to", tmp_path / "sets", "--mirror", mirror)
    after = run_json("bench", "sets", "list", "--to", tmp_path / "sets")["sets"][0]

    assert (before["state"], after["state"]) == ("not built", "built")
    assert (after["tools"], after["queries"], after["licence"]) == (1, 1, "MIT")


def test_other_rows_than_the_published_ones_are_an_exit_code_of_one(
    run: Run, mirror: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = {RECIPE.name: {"queries.jsonl.gz": folder.Content(rows=47, sha256="0" * 64)}}
    monkeypatch.setattr(folder, "expected", lambda: wanted)
    result = run("bench", "sets", "fetch", "--to", tmp_path / "sets", "--mirror", mirror)

    assert result.exit_code == 1
    assert "built; queries.jsonl.gz has 1 rows instead of 47" in result.stdout


def test_a_set_that_nobody_knows_is_said_with_those_that_are(run: Run, mirror: Path) -> None:
    result = run("bench", "sets", "fetch", "moon", "--mirror", mirror)

    assert result.exit_code == 2
    assert f"No set 'moon' is known. Use one of {RECIPE.name}." in result.stderr


def test_every_recipe_has_its_content_written_down() -> None:
    pinned = json.loads(Path(folder.__file__).with_name("checksums.json").read_text("utf-8"))

    assert set(pinned) == {recipe.name for recipe in recipes.RECIPES}
    assert all(recipe.conversion and recipe.noise for recipe in recipes.RECIPES)
    sources = [source for recipe in recipes.RECIPES for source in recipe.sources.values()]
    assert all(source.version if isinstance(source, Package) else len(source.commit) == 40 for source in sources)
