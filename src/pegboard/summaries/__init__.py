"""Query-shaped summaries (Tool Attention §5.3): written by rule or by an LLM, kept in a file, used while valid."""

from pegboard.summaries.rules import query_shaped
from pegboard.summaries.summary_file import RULE, Summaries, Summary, as_lines, read_summaries

__all__ = ["RULE", "Summaries", "Summary", "as_lines", "query_shaped", "read_summaries"]
