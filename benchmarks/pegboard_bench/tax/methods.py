"""Every method by name: what it is, and how it is made; those of other packages too."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import entry_points

from pegboard.errors import ConfigError
from pegboard.routing.profiles import SEMANTIC_THRESHOLD
from pegboard_bench.tax.boards import Place
from pegboard_bench.tax.request import Method
from pegboard_bench.tax.router_methods import Pruned, Routed, Simple, WayBack, Whole
from pegboard_bench.tax.search_methods import Asking, CommandLine


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """``title`` for tables; ``untuned`` methods need the encoder as published."""

    title: str
    make: Callable[[Place], Method]
    untuned: bool = False


NAME = re.compile(r"[a-z0-9_]+")
"""Of methods and of sets: names of jobs and of figures are made of them."""
GROUP = "pegboard.bench.methods"
"""Entry points of this group are methods too: the name is the method's, the object an `Entry`."""

OWN: Mapping[str, Entry] = {
    "full": Entry(title="B1 full schema", make=lambda _: Whole()),
    "pruned": Entry(title="B2 static pruning, 30 tools", make=lambda _: Pruned()),
    "simple": Entry(title="B3 simple retrieval, ten schemas", make=lambda place: Simple(place)),
    "simple_minilm": Entry(
        title="B3 with MiniLM as published", make=lambda place: Simple(place, weights=place.untuned), untuned=True
    ),
    "cli": Entry(title="B4 command line, lazy", make=lambda _: CommandLine()),
    "attention": Entry(
        title="Tool Attention (`attention`)", make=lambda place: Routed(place, late=True, profile="attention")
    ),
    "attention_minilm": Entry(
        title="Tool Attention exactly: MiniLM as published",
        make=lambda place: Routed(place, late=True, weights=place.untuned, profile="attention"),
        untuned=True,
    ),
    "ehrr": Entry(title="EHRR (`ehrr`), ROUTE and EXECUTE", make=lambda place: Asking(place, "route", profile="ehrr")),
    "semantic": Entry(
        title="semantic filter, rank 5 (`semantic`)", make=lambda place: Routed(place, profile="semantic")
    ),
    "semantic_threshold": Entry(
        title="semantic filter, cosine of 0.7",
        make=lambda place: Routed(place, all_where_none=True, profile="semantic", threshold=SEMANTIC_THRESHOLD),
    ),
    "dynamic": Entry(
        title="the lazy-loading PRD, approach D (`keyword`, 20)",
        make=lambda place: Asking(place, "dynamic", limit=20, profile="keyword", session_tools=1000),
    ),
    "static": Entry(
        title="the lazy-loading PRD, static proxy (`keyword`, 20)",
        make=lambda place: Asking(place, "static", limit=20, profile="keyword"),
    ),
    "hybrid": Entry(title="**Pegboard**, library (`hybrid`)", make=lambda place: Routed(place, profile="hybrid")),
    "hybrid_way_back": Entry(
        title="**Pegboard**, LLM gateway with the way back", make=lambda place: WayBack(place, profile="hybrid")
    ),
    "hybrid_dynamic": Entry(title="**Pegboard**, MCP gateway, dynamic", make=lambda place: Asking(place, "dynamic")),
    "hybrid_static": Entry(title="**Pegboard**, MCP gateway, static", make=lambda place: Asking(place, "static")),
}
"""Profiles have the encoder of the package, tuned; those that end in `_minilm` have MiniLM as published."""


def _plugged() -> Iterator[tuple[str, Entry]]:
    """Raises ConfigError for one that cannot be loaded, or has a name of ours or none that files can have."""
    for point in entry_points(group=GROUP):
        try:
            entry = point.load()
        except Exception as error:
            raise ConfigError(
                f"The benchmark's method {point.name!r} of {point.value!r} cannot be loaded: {error!r}.",
                remedy="Mend or uninstall the package that brings it.",
            ) from error
        if not isinstance(entry, Entry) or point.name in OWN or not NAME.fullmatch(point.name):
            raise ConfigError(
                f"{point.value!r} is no method {point.name!r} of the benchmark's.",
                remedy="It has to be a pegboard_bench.tax.methods.Entry, under a name that is not taken, of lower-case "
                "letters, digits and _.",
            )
        yield point.name, entry


@cache
def methods() -> Mapping[str, Entry]:
    """Ours and those of other packages, which are loaded when they are first asked for."""
    return {**OWN, **dict(_plugged())}


def title(name: str) -> str:
    """For tables; the name itself where the package that brought the method is gone."""
    entry = OWN.get(name) or methods().get(name)
    return f"`{name}`" if entry is None else entry.title


def available(place: Place) -> tuple[str, ...]:
    return tuple(name for name, entry in methods().items() if place.untuned is not None or not entry.untuned)
