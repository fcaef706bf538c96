"""The way back: a tool with which the model finds what was filtered out, answered by the gateway itself.

request ─► body ─► provider ─► calls of ours? ─► results, tools ─► body ─► … ─► one answer
"""

from __future__ import annotations

from collections.abc import Mapping

from pegboard.gateways.llm.way_back.anthropic import MessagesWayBack
from pegboard.gateways.llm.way_back.gemini import ContentsWayBack
from pegboard.gateways.llm.way_back.openai_chat import ChatWayBack
from pegboard.gateways.llm.way_back.openai_responses import ResponsesWayBack
from pegboard.gateways.llm.way_back.wire import WireFormat

FORMATS: Mapping[str, WireFormat] = {
    "openai_chat": ChatWayBack(),
    "openai_responses": ResponsesWayBack(),
    "anthropic": MessagesWayBack(),
    "gemini": ContentsWayBack(),
}
"""By the name of a codec; the formats that are not here have no way back."""
