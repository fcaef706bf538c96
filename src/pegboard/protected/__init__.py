"""Tools without which an agent is no agent: which ones they are, as data, and how they are told from a catalog's."""

from pegboard.protected.shield import EXITS, Signs, agent_of, protected_tools
from pegboard.protected.table import Agent, ToolClass, kind_of, known_agents, known_classes, marking_headers

__all__ = [
    "EXITS",
    "Agent",
    "Signs",
    "ToolClass",
    "agent_of",
    "kind_of",
    "known_agents",
    "known_classes",
    "marking_headers",
    "protected_tools",
]
