"""Providers as strict as their documentation: what would be a 400 there, as sentences. Nothing here does I/O."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from strict_upstreams import anthropic, bedrock, cohere, gemini, openai

Problems = Callable[[Mapping[str, Any]], list[str]]

PROBLEMS: Mapping[str, Problems] = {
    "openai_chat": openai.chat_problems,
    "openai_responses": openai.responses_problems,
    "anthropic": anthropic.problems,
    "gemini": gemini.problems,
    "bedrock": bedrock.problems,
    "cohere": cohere.problems,
}
"""By the name of a codec."""
