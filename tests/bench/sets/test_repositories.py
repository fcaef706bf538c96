"""Public repositories from a mirror or over git's transport, that commit alone, and kept."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

import git_mirrors
from pegboard.errors import ConfigError
from pegboard_bench.sets import folder
from pegboard_bench.sets.mcpproxy_golden import CORPUS, GOLDEN, RECIPE
from pegboard_bench.sets.origins import Origins
from pegboard_bench.sets.recipe import Repository
from pegboard_bench.sets.repositories import Repositories

FILES = {"data/a.txt": "one\n", "data/b.json": [1, 2], "other": "x"}

pytestmark = pytest.mark.requirement("bench.public-sets")


def source(commit: str) -> Repository:
    return Repository(name="owner/name", commit=commit, date="2026-01-01", licence="MIT")


@pytest.fixture
def public(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that git takes for https://github.com."""
    place = tmp_path / "public"
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", f"url.file://{place}/.insteadOf")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", "https://github.com/")
    return place


@pytest.mark.parametrize("bare", [False, True])
def test_files_are_read_from_a_clone_with_or_without_a_work_tree(tmp_path: Path, bare: bool) -> None:
    clone = tmp_path / "mirror" / "owner" / "name"
    commit = git_mirrors.repository(clone, FILES)
    if bare:
        subprocess.run(["git", "clone", "--quiet", "--bare", clone, f"{clone}.git"], check=True)
        clone.rename(tmp_path / "moved")
    snapshot = Repositories(tmp_path / "cache", tmp_path / "mirror").open(source(commit))

    assert snapshot.paths("data") == ["data/a.txt", "data/b.json"]
    assert snapshot.read_all(["data/b.json", "data/a.txt"]) == [b"[1, 2]", b"one\n"]
    assert set(snapshot.digests) == {"data/a.txt", "data/b.json"}
    with pytest.raises(ConfigError, match=r"has no file 'gone'"):
        snapshot.read("gone")


def test_what_is_missing_in_a_mirror_is_said_with_what_to_do(tmp_path: Path) -> None:
    git_mirrors.repository(tmp_path / "mirror" / "owner" / "name", FILES)
    repositories = Repositories(tmp_path / "cache", tmp_path / "mirror")

    with pytest.raises(ConfigError, match=r"does not have commit 0{40}\. Run `git -C .* fetch origin 0{40}`"):
        repositories.open(source("0" * 40))
    with pytest.raises(ConfigError, match=r"other/name is not in the mirror"):
        repositories.open(replace(source("0" * 40), name="other/name"))


def test_a_commit_is_fetched_once_without_the_others(tmp_path: Path, public: Path) -> None:
    clone = public / "owner" / "name.git"
    git_mirrors.repository(clone, {"old": "x"})
    subprocess.run(["git", *git_mirrors.AUTHOR, "commit", "--quiet", "--allow-empty", "-m", "2"], cwd=clone, check=True)
    commit = subprocess.run(["git", "rev-parse", "HEAD"], cwd=clone, check=True, capture_output=True, text=True)
    said: list[str] = []
    repositories = Repositories(tmp_path / "cache", tell=said.append)
    first = repositories.open(source(commit.stdout.strip()))
    clone.rename(tmp_path / "gone")
    second = repositories.open(source(commit.stdout.strip()))

    assert (first.read("old"), second.read("old")) == (b"x", b"x")
    assert len(said) == 1
    counted = subprocess.run(
        ["git", "rev-list", "--count", commit.stdout.strip()],
        cwd=tmp_path / "cache" / "owner" / "name.git",
        check=True,
        capture_output=True,
        text=True,
    )
    assert counted.stdout.strip() == "1"


def test_a_repository_that_is_gone_is_said_with_what_to_do(tmp_path: Path, public: Path) -> None:
    with pytest.raises(ConfigError, match=r"https://github.com/owner/name at commit 0+ cannot be fetched.*--mirror"):
        Repositories(tmp_path / "cache").open(source("0" * 40))


def test_nobodys_own_folder_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "sets" / RECIPE.name).mkdir(parents=True)
    (tmp_path / "sets" / RECIPE.name / "queries.jsonl.gz").write_text("mine")
    files = {CORPUS: {"tools": []}, GOLDEN: {"queries": []}}
    recipe = git_mirrors.mirrored(RECIPE, tmp_path / "mirror", {"mcpproxy-go": files})

    with pytest.raises(ConfigError, match="this program did not build it"):
        folder.build(recipe, Origins(tmp_path / "cache", tmp_path / "mirror"), tmp_path / "sets")
    assert (tmp_path / "sets" / RECIPE.name / "queries.jsonl.gz").read_text() == "mine"


def test_sources_of_another_form_are_said_instead_of_written(tmp_path: Path) -> None:
    files = {CORPUS: {"tools": [{"server": "desk"}]}, GOLDEN: {"queries": []}}
    recipe = git_mirrors.mirrored(RECIPE, tmp_path / "mirror", {"mcpproxy-go": files})

    with pytest.raises(ConfigError, match="are not what its conversion expects: KeyError: 'tool'"):
        folder.build(recipe, Origins(tmp_path / "cache", tmp_path / "mirror"), tmp_path / "sets")
    assert list((tmp_path / "sets").glob("*")) == []
