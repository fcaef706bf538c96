"""One module a wire format, and which of them a path speaks."""

from __future__ import annotations

import re
from collections.abc import Mapping

from pegboard.gateways.llm.codec import Codec
from pegboard.gateways.llm.codecs.anthropic import AnthropicMessages
from pegboard.gateways.llm.codecs.gemini import Gemini
from pegboard.gateways.llm.codecs.generic import Generic
from pegboard.gateways.llm.codecs.openai_chat import OpenAIChat
from pegboard.gateways.llm.codecs.openai_responses import OpenAIResponses
from pegboard.gateways.llm.codecs.policy import SemanticToolFiltering, filtering_of
from pegboard.settings.llm import UpstreamSettings

__all__ = [
    "PATHS",
    "AnthropicMessages",
    "Gemini",
    "Generic",
    "OpenAIChat",
    "OpenAIResponses",
    "SemanticToolFiltering",
    "codec_for",
    "counts",
    "filtering_of",
    "generic_codecs",
]

PATHS: tuple[tuple[re.Pattern[str], Codec], ...] = (
    (re.compile(r"/chat/completions/?$"), OpenAIChat()),
    (re.compile(r"/responses(/input_tokens)?/?$"), OpenAIResponses()),
    (re.compile(r"/messages(/count_tokens)?/?$"), AnthropicMessages()),
    (re.compile(r"/models/[^/]+:((stream)?[gG]enerateContent|countTokens)$"), Gemini()),
)
COUNTING = re.compile(r"/messages/count_tokens/?$|/responses/input_tokens/?$|:countTokens$")
"""How the path of a POST ends, and what its body then is. Codecs hold no state, so one of each serves everybody."""


def codec_for(path: str) -> Codec | None:
    """The codec of a path, without its query; None where it is none that carries tools."""
    return next((codec for pattern, codec in PATHS if pattern.search(path)), None)


def counts(path: str) -> bool:
    """Whether a path asks how many tokens another request would have: it is to be counted as that would be sent."""
    return COUNTING.search(path) is not None


def generic_codecs(upstreams: Mapping[str, UpstreamSettings]) -> dict[str, Codec]:
    """The codecs of the upstreams that have a policy of their own for whatever is sent there."""
    return {
        name: Generic(filtering_of(name, each.semantic_tool_filtering))
        for name, each in upstreams.items()
        if each.semantic_tool_filtering is not None
    }
