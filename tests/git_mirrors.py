"""Small git repositories in the place of public ones: what recipes of sets read in tests."""

from __future__ import annotations

import gzip
import json
import subprocess
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from pegboard_bench.sets.recipe import Package, Recipe, Source

AUTHOR = ("-c", "user.name=test", "-c", "user.email=test@localhost", "-c", "commit.gpgsign=false")


def repository(folder: Path, files: Mapping[str, Any]) -> str:
    """A clone with one commit of these files, texts as they are and everything else as JSON; gives the commit."""
    folder.mkdir(parents=True)
    _git(folder, "init", "--quiet", ".")
    for path, content in files.items():
        place = folder / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(content if isinstance(content, str) else json.dumps(content), "utf-8")
    _git(folder, "add", "--all", "--force")
    _git(folder, *AUTHOR, "commit", "--quiet", "--message", "files")
    return _git(folder, "rev-parse", "HEAD").strip()


def mirrored(recipe: Recipe, mirror: Path, files: Mapping[str, Mapping[str, Any]]) -> Recipe:
    """The recipe with the commits of a mirror that has these files, by the recipe's own names of its sources.

    Sources that are one repository share the files of the first; of a package the files are its answer.
    """
    sources = {name: _mirrored(source, mirror, files[name]) for name, source in recipe.sources.items()}
    return replace(recipe, sources=sources)


def _mirrored(source: Source, mirror: Path, files: Mapping[str, Any]) -> Source:
    if not isinstance(source, Package):
        return replace(source, commit=_commit(mirror / source.name, files))
    answer = mirror / source.registry / f"{source.name}@{source.version}.json"
    answer.parent.mkdir(parents=True, exist_ok=True)
    answer.write_text(json.dumps(files), "utf-8")
    return source


def _commit(folder: Path, files: Mapping[str, Any]) -> str:
    return _git(folder, "rev-parse", "HEAD").strip() if folder.exists() else repository(folder, files)


def rows(path: Path) -> list[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def _git(folder: Path, *words: str) -> str:
    done = subprocess.run(["git", *words], cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout
