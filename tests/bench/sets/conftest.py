"""Conversions are tested on a mirror of small repositories, without a network."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

import git_mirrors
from pegboard_bench.sets import folder
from pegboard_bench.sets.origins import Origins
from pegboard_bench.sets.recipe import Recipe

Built = Callable[[Recipe, Mapping[str, Mapping[str, Any]]], Path]


@pytest.fixture
def built(tmp_path: Path) -> Built:
    """Builds a recipe from these files of its sources, and gives the folder of the set."""

    def build(recipe: Recipe, files: Mapping[str, Mapping[str, Any]]) -> Path:
        recipe = git_mirrors.mirrored(recipe, tmp_path / "mirror", files)
        return folder.build(recipe, Origins(tmp_path / "cache", tmp_path / "mirror"), tmp_path / "sets")

    return build
