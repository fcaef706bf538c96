"""A wider selection, for a model that was refused a tool again and again: the router may have missed something."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pegboard.catalog import Catalog
from pegboard.model import Decision, Tokens, ToolId


def widened(decision: Decision, catalog: Catalog, refused: Sequence[str]) -> Decision:
    """The decision with twice the tools for each refusal after the first, by the ranking.

    ``refused`` are the names that the model called in vain since the user last spoke. Those of them that the caller may
    use are among the added ones: calling them again is what the model wants, and it will see their schemas.
    """
    repeated = len(refused) - 1
    if repeated < 1:
        return decision
    wanted = max(len(decision.active), 1) * 2**repeated
    ranked = (candidate.tool for candidate in decision.candidates)
    asked = (tool for tool in sorted(decision.reachable) if _is_called(tool, decision, refused))
    order = list(dict.fromkeys([*decision.active, *asked, *ranked]))
    return with_active(decision, catalog, order[:wanted])


def with_active(decision: Decision, catalog: Catalog, tools: Sequence[ToolId]) -> Decision:
    """The decision with these as its active tools, in catalog order."""
    places = sorted(catalog.position[tool] for tool in tools if tool in catalog)
    return replace(
        decision,
        active=tuple(catalog.tools[place].id for place in places),
        tools=tuple(catalog.tools[place] for place in places),
        phase2=tuple(catalog.tools[place].definition for place in places),
        phase2_tokens=Tokens(sum(catalog.token_counts[place] for place in places)),
    )


def _is_called(tool: ToolId, decision: Decision, names: Sequence[str]) -> bool:
    return any(name in (decision.name_of(tool), tool.name, str(tool)) for name in names)
