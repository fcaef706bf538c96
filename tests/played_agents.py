"""The coding agents that tests play: those with most users, or with TEST_AGENTS=all every one that is measured."""

from __future__ import annotations

import os

from pegboard_bench.coding_agents.agents import AGENTS

ALL = os.environ.get("TEST_AGENTS") == "all"
PLAYED = tuple(AGENTS) if ALL else ("claude_code", "claude_code_listed", "codex", "gemini_cli", "opencode", "qwen_code")
PLACES = [(name, tools) for name in PLAYED for tools in (0, 60) if ALL or tools or not name.endswith("_listed")]
"""With the number of MCP tools: without any, an agent whose tools are all listed is the same as one that searches."""
