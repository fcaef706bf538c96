"""`pegboard.build`: a board from loaded settings and a catalog."""

from __future__ import annotations

import warnings
from typing import Any

from pegboard.catalog import Catalog
from pegboard.compose import build_routing
from pegboard.library.board import Board
from pegboard.routing_board import RoutingBoard
from pegboard.settings import Settings


class BuiltBoard(Board):
    """A `Board` that keeps the interface of what `build` returned before 0.2: missing attributes come from its
    routing."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or not hasattr(RoutingBoard, name):
            raise AttributeError(f"'Board' object has no attribute {name!r}", name=name, obj=self)
        warnings.warn(
            f"`pegboard.build(…).{name}` is deprecated: use `.routing.{name}`.", DeprecationWarning, stacklevel=2
        )
        return getattr(self.routing, name)


def build(settings: Settings, catalog: Catalog, **parts: Any) -> Board:
    """A board over a catalog with loaded settings, like `Board(catalog, config=settings)`.

    Raises ConfigError for contradictory options or a missing file. ``parts`` are further arguments of
    `pegboard.compose.build_routing`; passing any is deprecated and returns what `build_routing` returns.

    >>> from pegboard.model import Server, ServerName
    >>> from pegboard.testing import fake_tool
    >>> catalog = Catalog.build([(Server(name=ServerName("rail")), [fake_tool("timetable", server="rail")])])
    >>> build(Settings(), catalog).route_now("when do trains go?").profile
    'hybrid'
    """
    if parts:
        warnings.warn(
            f"`pegboard.build` with {', '.join(sorted(parts))} is deprecated: use `pegboard.compose.build_routing`.",
            DeprecationWarning,
            stacklevel=2,
        )
        made: Any = build_routing(settings, catalog, **parts)
        return made  # type: ignore[no-any-return]
    return BuiltBoard(catalog, config=settings)
