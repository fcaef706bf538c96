"""Tools that an agent cannot work without: which they are, as data, and how to tell them from a catalog's tools."""

from pegboard.protection.decision import EXITS, Signs, agent_of, protected_tools
from pegboard.protection.table import Agent, ToolClass, kind_of, known_agents, known_classes, marking_headers

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
