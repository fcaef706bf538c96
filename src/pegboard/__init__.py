"""Pegboard gives an LLM agent, at every turn, only the tools it needs."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from pegboard.moved_modules import install

__version__ = "0.1.0"

if TYPE_CHECKING:
    from pegboard.catalog import Catalog
    from pegboard.errors import PegboardError
    from pegboard.gateways.mcp.embedded.lazy import lazy
    from pegboard.library import Board, build
    from pegboard.model import AgentState, Call, Decision, Outcome, Result, Tool, ToolId, Turn
    from pegboard.settings import Settings, load_settings

__all__ = [
    "AgentState",
    "Board",
    "Call",
    "Catalog",
    "Decision",
    "Outcome",
    "PegboardError",
    "Result",
    "Settings",
    "Tool",
    "ToolId",
    "Turn",
    "build",
    "lazy",
    "load_settings",
]

HOMES = {
    "AgentState": "pegboard.model",
    "Board": "pegboard.library",
    "Call": "pegboard.model",
    "Catalog": "pegboard.catalog",
    "Decision": "pegboard.model",
    "Outcome": "pegboard.model",
    "PegboardError": "pegboard.errors",
    "Result": "pegboard.model",
    "Settings": "pegboard.settings",
    "Tool": "pegboard.model",
    "ToolId": "pegboard.model",
    "Turn": "pegboard.model",
    "build": "pegboard.library",
    "lazy": "pegboard.gateways.mcp.embedded.lazy",
    "load_settings": "pegboard.settings",
}


def __getattr__(name: str) -> Any:
    """Imports a public name when it is first used, so that `pegboard --help` does not wait for NumPy (PEP 562)."""
    if name not in HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])


install()
