"""Of an agent's own tools those that no turn may do without: exits, handoffs, planning and the like."""

from __future__ import annotations

from collections.abc import Iterable

from pegboard.catalog import Catalog
from pegboard.model import Decision
from pegboard.protected import kind_of
from pegboard.routing.widening import with_active


def with_protected(decision: Decision, catalog: Catalog, servers: Iterable[str]) -> Decision:
    """The decision with the protected tools of these servers, as far as the caller may use them (`pegboard.protected`).

    Tools of MCP servers are from catalogs, whatever they are called.
    """
    own = [tool.id for server in servers for tool in catalog.of_server(server) if kind_of(tool.name)]
    missing = [tool for tool in own if tool in decision.reachable and tool not in decision.active]
    return with_active(decision, catalog, [*decision.active, *missing]) if missing else decision
