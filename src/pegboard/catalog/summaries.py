"""Summaries, by which `attention` ranks tools, and which the phase-1 pool lists (Tool Attention §4.2)."""

from __future__ import annotations

from pegboard.model import Tool
from pegboard.protocols import TokenCounter

SUMMARY_TOKENS = 60


def summarize(tool: Tool, counter: TokenCounter) -> str:
    """s_i: name and description on one line, at most 60 tokens (Tool Attention §4.2)."""
    description = " ".join(tool.description.split())
    text = f"{tool.name}: {description}" if description else tool.name
    return counter.cut(text, SUMMARY_TOKENS).rstrip()
