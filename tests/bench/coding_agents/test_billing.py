"""Conversations of real requests are billed as the providers say."""

from __future__ import annotations

from typing import Any

import pytest

from pegboard_bench.coding_agents.agents import AGENTS
from pegboard_bench.coding_agents.billing import billed, prices, tokens

LONG = "word " * 5000
MARK = {"cache_control": {"type": "ephemeral"}}
CLAUDE, CODEX, GEMINI = AGENTS["claude_code"], AGENTS["codex"], AGENTS["gemini_cli"]


def said(*texts: str) -> dict[str, Any]:
    blocks = [{"type": "text", "text": text} for text in texts]
    blocks[-1] |= MARK
    return {"messages": [{"role": "user", "content": blocks}]}


def test_what_is_marked_is_written_once_and_read_after_that() -> None:
    price = prices(CLAUDE)
    size = tokens(said(LONG))
    grown = tokens(said(LONG, "More")) - size

    assert billed(CLAUDE, [[said(LONG)]], "apart") == pytest.approx(price.write * size)
    both = billed(CLAUDE, [[said(LONG), said(LONG, "More")]], "apart")
    assert both == pytest.approx(price.write * (size + grown) + price.read * size)


def test_conversations_share_what_they_begin_with_only_where_they_are_close() -> None:
    one = [said(LONG)]
    assert billed(CLAUDE, [one, one], "apart") == pytest.approx(2 * billed(CLAUDE, [one], "apart"))
    assert billed(CLAUDE, [one, one], "close") < 1.2 * billed(CLAUDE, [one], "close")


def test_a_provider_that_marks_by_itself_reads_what_the_last_request_ended_with() -> None:
    first = {"input": [{"role": "user", "content": LONG}]}
    second = {"input": [*first["input"], {"role": "user", "content": "More"}]}
    price = prices(CODEX)

    assert price.breakpoints
    assert price.automatic
    assert billed(CODEX, [[first, second]], "apart") < (price.write + 0.2) * tokens(second)


def test_tools_in_front_that_change_leave_nothing_to_read() -> None:
    def asked(*names: str) -> dict[str, Any]:
        tools = [{"functionDeclarations": [{"name": name, "description": LONG} for name in names]}]
        return {"contents": [{"parts": [{"text": "Hello"}]}], "tools": tools}

    same = billed(GEMINI, [[asked("a", "b"), asked("a", "b")]], "apart")
    changed = billed(GEMINI, [[asked("b", "a"), asked("a", "b")]], "apart")
    assert changed > 1.8 * same - tokens(asked("a"))
