"""Pegboard gives an LLM agent, at every turn, only the tools it needs."""

__version__ = "0.1.0"

from pegboard.board import Board
from pegboard.catalog import Catalog
from pegboard.compose import build
from pegboard.errors import PegboardError
from pegboard.model import Call, Decision, Tool, ToolId, Turn
from pegboard.settings import Settings, load_settings

__all__ = [
    "Board",
    "Call",
    "Catalog",
    "Decision",
    "PegboardError",
    "Settings",
    "Tool",
    "ToolId",
    "Turn",
    "build",
    "load_settings",
]
