"""What is written into an agent's home before it starts: where its provider is, and its MCP server. One for each agent.

`docs/coding-agents.md` has the same files for people.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import tomli_w

from pegboard_bench.coding_agents.atlassian import SERVER, Server

Setup: TypeAlias = Callable[[Path, str, Server | None], tuple[str, ...]]
"""From a home, the provider's address and the MCP server, if there is one; the arguments that are to be added."""


def claude_code(home: Path, url: str, server: Server | None) -> tuple[str, ...]:
    if server is None:
        return ()
    path = _written(home / "mcp.json", _servers(server))
    return (f"--mcp-config={path}",)


def codex(home: Path, url: str, server: Server | None) -> tuple[str, ...]:
    provider = {"name": "Pegboard", "base_url": url, "env_key": "PROVIDER_KEY", "wire_api": "responses"}
    config: dict[str, Any] = {
        "model_provider": "pegboard",
        "approval_policy": "never",
        "sandbox_mode": "danger-full-access",
        "model_providers": {"pegboard": provider},
    }
    if server is not None:
        entry = {"command": server.command, "env": dict(server.env), "required": True, "startup_timeout_sec": 60}
        config["mcp_servers"] = {SERVER: entry}
    _written(home / ".codex/config.toml", tomli_w.dumps(config))
    return ()


def gemini_cli(home: Path, url: str, server: Server | None) -> tuple[str, ...]:
    settings: dict[str, Any] = {
        "security": {"auth": {"selectedType": "gemini-api-key"}},
        "privacy": {"usageStatisticsEnabled": False},
        "general": {"enableAutoUpdate": False},
    }
    _written(home / ".gemini/settings.json", settings | _servers(server))
    return ()


def opencode(home: Path, url: str, server: Server | None) -> tuple[str, ...]:
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "name": "Pegboard",
        "options": {"baseURL": url, "apiKey": "none"},
        "models": {"gpt-5.4": {"name": "gpt-5.4", "tool_call": True}},
    }
    config: dict[str, Any] = {
        "autoupdate": False,
        "model": "pegboard/gpt-5.4",
        "provider": {"pegboard": provider},
    }
    if server is not None:
        entry = {"type": "local", "command": [server.command], "environment": dict(server.env), "enabled": True}
        config["mcp"] = {SERVER: entry}
    _written(home / ".config/opencode/opencode.json", config)
    return ()


def qwen_code(home: Path, url: str, server: Server | None) -> tuple[str, ...]:
    settings = {"privacy": {"usageStatisticsEnabled": False}, "general": {"enableAutoUpdate": False}}
    _written(home / ".qwen/settings.json", settings | _servers(server))
    return ()


def _servers(server: Server | None) -> dict[str, Any]:
    if server is None:
        return {}
    return {"mcpServers": {SERVER: {"command": server.command, "args": [], "env": dict(server.env), "trust": True}}}


def _written(path: Path, content: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content, indent=2), "utf-8")
    return path
