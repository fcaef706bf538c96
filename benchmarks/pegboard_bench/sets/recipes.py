"""All sets, in the order in which they are built: those of the headline figures first, those made of others last."""

from __future__ import annotations

from collections.abc import Sequence

from pegboard.errors import ConfigError
from pegboard_bench.sets import (
    catalog_docker,
    catalog_toolsdk,
    graphtoolcall,
    livemcp,
    mcpproxy_golden,
    mcpverse,
    metatool,
    nestful,
    real120,
    seal_tools,
    stabletoolbench,
    toolalpaca,
)
from pegboard_bench.sets.recipe import Recipe

RECIPES: tuple[Recipe, ...] = (
    livemcp.TASKS_RECIPE,
    livemcp.STEPS_RECIPE,
    livemcp.ROUTES_RECIPE,
    mcpverse.RECIPE,
    mcpproxy_golden.RECIPE,
    graphtoolcall.RECIPE,
    metatool.RECIPE,
    real120.RECIPE,
    catalog_docker.RECIPE,
    catalog_toolsdk.RECIPE,
    seal_tools.RECIPE,
    stabletoolbench.RECIPE,
    toolalpaca.RECIPE,
    nestful.RECIPE,
)


def named(names: Sequence[str]) -> list[Recipe]:
    """The recipes of these names, or all. Raises ConfigError for a name that no set has."""
    known = {recipe.name: recipe for recipe in RECIPES}
    for name in names:
        if name not in known:
            raise ConfigError(f"No set {name!r} is known.", remedy=f"Use one of {', '.join(known)}.")
    return [known[name] for name in names] if names else list(RECIPES)
