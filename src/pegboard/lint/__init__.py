"""Finds tool definitions that retrieval will miss, or that cost more tokens than they need to."""

from pegboard.lint.board_rules import BOARD_RULES, board_findings
from pegboard.lint.subjects import LintFinding, LintLimits, Subject, subjects
from pegboard.lint.tool_rules import LONG_TEXTS, RULES, chosen, in_order, tool_findings

__all__ = [
    "BOARD_RULES",
    "LONG_TEXTS",
    "RULES",
    "LintFinding",
    "LintLimits",
    "Subject",
    "board_findings",
    "chosen",
    "in_order",
    "subjects",
    "tool_findings",
]
