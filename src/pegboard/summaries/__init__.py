"""Query-shaped summaries (seed 000 §5.3): by rule or by an LLM, kept in a file, put on a catalog while they fit."""

from pegboard.summaries.file import RULE, Summaries, Summary, as_lines, read_summaries
from pegboard.summaries.rules import query_shaped

__all__ = ["RULE", "Summaries", "Summary", "as_lines", "query_shaped", "read_summaries"]
