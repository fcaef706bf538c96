"""What is wrong with the tools of a board, so that they are not found or cost more than they need to."""

from pegboard.lint.boards import BOARD_RULES, board_findings
from pegboard.lint.findings import Finding, Limits, Subject, subjects
from pegboard.lint.rules import LONG_TEXTS, RULES, chosen, in_order, tool_findings

__all__ = [
    "BOARD_RULES",
    "LONG_TEXTS",
    "RULES",
    "Finding",
    "Limits",
    "Subject",
    "board_findings",
    "chosen",
    "in_order",
    "subjects",
    "tool_findings",
]
