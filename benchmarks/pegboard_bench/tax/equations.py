"""The tools tax in symbols: Tool Attention, equations 1 to 3."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pegboard.catalog import BpeCounter, Catalog, compact_json
from pegboard.model import Tool

C_TASK = 15_000
"""C_task(30), tokens that are useful at turn 30. The paper gives none; its table 3 solves to 14.9k, 15.1k and 14.5k for
B1, B2 and B3 (and to 7.5k and 24k for B4 and Tool Attention, which no single value explains)."""
C_SYS = 0
"""C_sys, tokens of the system prompt: those three rows leave no room for one."""
TURNS = 30
"""K of eq. 2."""
WINDOW = 200_000
ALPHA = (200, 500)
"""What Tool Attention takes for α, tokens a tool."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """τ_i in its parts, tokens (eq. 1). The parts are counted apart, so that their sum is a little off the whole."""

    name: int
    description: int
    schema: int
    output: int

    @property
    def whole(self) -> int:
        return self.name + self.description + self.schema + self.output


def cost(tool: Tool, counter: BpeCounter | None = None) -> Cost:
    """τ_i = τ_name + τ_desc + τ_schema + τ_output, tokens (eq. 1)."""
    texts = [
        tool.name,
        tool.description,
        compact_json(tool.input_schema or {"type": "object"}),
        compact_json(tool.output_schema) if tool.output_schema else "",
    ]
    name, description, schema, output = (counter or BpeCounter()).count(texts)
    return Cost(name=name, description=description, schema=schema, output=output)


def session_tax(tokens: Sequence[int], turns: int = TURNS) -> int:
    """T_tax(N, K) = K · Σ τ_i, tokens (eq. 2).

    >>> session_tax([395] * 120)
    1422000
    """
    return turns * sum(tokens)


def alpha(catalog: Catalog) -> float:
    """The α, tokens a tool, at which the right-hand side of eq. 2 is exact: Σ τ_i = α·N + ¼·Σ |desc_i|."""
    letters = sum(len(tool.description) for tool in catalog.tools)
    return (sum(catalog.token_counts) - letters / 4) / len(catalog)


def utilization(tax: float, *, task: float = C_TASK, system: float = C_SYS) -> float:
    """ρ(K) = C_task / (C_task + T_tax + C_sys), with the tax that is resident at turn K (eq. 3).

    >>> round(utilization(47_312), 2)
    0.24
    """
    return task / (task + tax + system)


def cumulative_utilization(taxes: Sequence[float], *, task: float = C_TASK, system: float = C_SYS) -> float:
    """The same with T_tax of eq. 2, which is everything that was sent up to turn K: eq. 3 as it is printed."""
    return utilization(sum(taxes), task=task, system=system)


def servers(catalog: Catalog) -> dict[str, Mapping[str, float]]:
    """Table 1 of this catalog: tools, tokens, their parts and the share of a window of 200k, by server."""
    tokens = {tool.id: count for tool, count in zip(catalog.tools, catalog.token_counts, strict=True)}
    found: dict[str, Mapping[str, float]] = {}
    for server in catalog.servers:
        tools = catalog.of_server(server)
        costs = [cost(tool) for tool in tools]
        total = sum(tokens[tool.id] for tool in tools)
        found[server] = {
            "tools": len(tools),
            "tokens": total,
            "share": total / WINDOW,
            "name": sum(each.name for each in costs),
            "description": sum(each.description for each in costs),
            "schema": sum(each.schema for each in costs),
            "output": sum(each.output for each in costs),
        }
    return found
