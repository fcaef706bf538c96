"""One tool for all: the tools of a request are called through a constant `call_tool`, so that its prefix never changes.

The model gets `call_tool` with a summary of all tools, and the definitions that fit what is asked right before each of
the user's messages, where they stay. The client sees native calls alone.

request ─► call_tool, history in its terms, definitions ─► provider ─► calls that do not fit? ─► … ─► native calls
"""

from __future__ import annotations

from collections.abc import Mapping

from pegboard.gateways.llm.one_tool.anthropic import MessagesDialect
from pegboard.gateways.llm.one_tool.gemini import ContentsDialect
from pegboard.gateways.llm.one_tool.openai_chat import ChatDialect
from pegboard.gateways.llm.one_tool.openai_responses import ResponsesDialect
from pegboard.gateways.llm.one_tool.wire import Dialect

DIALECTS: Mapping[str, Dialect] = {
    "openai_chat": ChatDialect(),
    "openai_responses": ResponsesDialect(),
    "anthropic": MessagesDialect(),
    "gemini": ContentsDialect(),
}
"""By the name of a codec; in the formats that are not here tools are called by themselves."""
