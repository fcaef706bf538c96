from __future__ import annotations

from datetime import date

import pytest

from pegboard.gateways.llm.formats.registry import FORMATS
from pegboard.prompt_cache import DeferralRow, DeferralSupport, deferral_rows, deferral_support


@pytest.mark.parametrize(
    ("api", "model", "search", "additions"),
    [
        ("anthropic", "claude-opus-4-1-20250805", "none", ""),
        ("anthropic", "claude-opus-4-20250514", "none", ""),
        ("anthropic", "us.anthropic.claude-3-5-haiku-20241022-v1:0", "none", ""),
        ("anthropic", "claude-sonnet-4-5-20250929", "tool_reference", ""),
        ("anthropic", "claude-haiku-4-5", "tool_reference", ""),
        ("anthropic", "claude-sonnet-5", "tool_reference", ""),
        ("anthropic", "claude-sonnet-5-5", "tool_reference", "tool_addition"),
        ("anthropic", "claude-opus-5-20260701", "tool_reference", "tool_addition"),
        ("anthropic", "a-name-of-ours", "tool_reference", ""),
        ("openai_responses", "gpt-5.4", "tool_search", ""),
        ("openai_responses", "gpt-5.6-sol", "tool_search", ""),
        ("openai_responses", "gpt-5.10", "tool_search", ""),
        ("openai_responses", "gpt-5.3-codex", "none", ""),
        ("openai_responses", "gpt-5", "none", ""),
        ("openai_chat", "gpt-5.4", "none", ""),
        ("gemini", "gemini-3.5-flash", "none", ""),
        ("generic", "llama", "none", ""),
    ],
)
def test_the_table_has_what_providers_document(api: str, model: str, search: str, additions: str) -> None:
    support = deferral_support(api, model)

    assert (support.search, support.additions) == (search, additions)


@pytest.mark.requirement("llm.emulated-deferral")
@pytest.mark.parametrize(
    ("api", "model", "emulated"),
    [
        ("anthropic", "claude-opus-4-1-20250805", "call_tool"),
        ("openai_responses", "gpt-5", "call_tool"),
        ("openai_chat", "gpt-5.4", "call_tool"),
        ("openai_chat", "openai/gpt-5.4", "call_tool"),
        ("openai_chat", "o4-mini", "call_tool"),
        ("openai_chat", "deepseek-v4", "call_tool"),
        ("openai_chat", "llama-4-scout", "search_tools"),
        ("openai_chat", "qwen3:30b", "search_tools"),
        ("openai_chat", "gpt-oss-120b", "search_tools"),
        ("gemini", "gemini-2.5-pro", "call_tool"),
        ("gemini", "gemini-3.5-flash", "call_tool"),
        ("gemini", "gemini-1.5-pro", "search_tools"),
        ("bedrock", "eu.anthropic.claude-sonnet-4-5-20250929-v1:0", "call_tool"),
        ("bedrock", "mistral.mistral-large-2407-v1:0", "search_tools"),
        ("cohere", "command-a-03-2025", "search_tools"),
    ],
)
def test_the_table_says_what_emulates_deferral(api: str, model: str, emulated: str) -> None:
    assert deferral_support(api, model).emulated == emulated


def test_every_row_is_of_a_known_format_and_says_where_and_when_it_was_read() -> None:
    for row in deferral_rows():
        assert row.api in {each.name for each in FORMATS}
        assert row.source.startswith("https://")
        assert isinstance(row.checked, date)
        assert bool(row.support.additions) == bool(row.support.beta)


def test_a_row_put_before_the_table_outweighs_it() -> None:
    ours = DeferralRow(
        api="openai_chat",
        models=("local*",),
        support=DeferralSupport(search="tool_search"),
        source="",
        checked=date.max,
    )

    assert deferral_support("openai_chat", "local-1", (ours, *deferral_rows())).search == "tool_search"
