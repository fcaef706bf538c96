"""What is written into an agent's home before it starts: where its provider and its MCP servers are. One each.

`docs/coding-agents.md` has the same files for people.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeAlias

import tomli_w

from pegboard_bench.coding_agents.atlassian import Running, Server

Servers: TypeAlias = Mapping[str, Server | Running]
PATIENT = 170_000
"""Milliseconds for MCP servers to start, where an agent has a limit: a machine may be busy."""
Setup: TypeAlias = Callable[[Path, str, Servers], tuple[str, ...]]
"""From a home, the provider's address and the MCP servers by name; the arguments that are to be added."""


def claude_code(home: Path, url: str, servers: Servers) -> tuple[str, ...]:
    if not servers:
        return ()
    path = _written(home / "mcp.json", _servers(servers, {"type": "http"}))
    return (f"--mcp-config={path}",)


def codex(home: Path, url: str, servers: Servers) -> tuple[str, ...]:
    provider = {"name": "Pegboard", "base_url": url, "env_key": "PROVIDER_KEY", "wire_api": "responses"}
    config: dict[str, Any] = {
        "model_provider": "pegboard",
        "approval_policy": "never",
        "sandbox_mode": "danger-full-access",
        "model_providers": {"pegboard": provider},
    }
    if servers:
        more = {"required": True, "startup_timeout_sec": PATIENT // 1_000}
        config["mcp_servers"] = {name: _entry(server, "url") | more for name, server in servers.items()}
    _written(home / ".codex/config.toml", tomli_w.dumps(config))
    return ()


def gemini_cli(home: Path, url: str, servers: Servers) -> tuple[str, ...]:
    settings: dict[str, Any] = {
        "security": {"auth": {"selectedType": "gemini-api-key"}},
        "privacy": {"usageStatisticsEnabled": False},
        "general": {"enableAutoUpdate": False},
    }
    _written(home / ".gemini/settings.json", settings | _servers(servers, at="httpUrl"))
    return ()


def opencode(home: Path, url: str, servers: Servers) -> tuple[str, ...]:
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
    if servers:
        more = {"enabled": True, "timeout": PATIENT}
        config["mcp"] = {name: _of_opencode(each) | more for name, each in servers.items()}
    _written(home / ".config/opencode/opencode.json", config)
    return ()


def qwen_code(home: Path, url: str, servers: Servers) -> tuple[str, ...]:
    settings = {"privacy": {"usageStatisticsEnabled": False}, "general": {"enableAutoUpdate": False}}
    entries = _servers(servers, at="httpUrl")
    for entry in entries.get("mcpServers", {}).values():
        entry["discoveryTimeoutMs"] = PATIENT
    _written(home / ".qwen/settings.json", settings | entries)
    return ()


def copilot_cli(home: Path, url: str, servers: Servers) -> tuple[str, ...]:
    entries = _servers(servers, {"type": "http"}).get("mcpServers", {})
    for entry in entries.values():
        entry.pop("trust")
        entry.update(tools=["*"], timeout=PATIENT)
    _written(home / ".copilot/mcp-config.json", {"mcpServers": entries})
    return ()


def cline(home: Path, url: str, servers: Servers) -> tuple[str, ...]:
    provider = {"provider": "openai-compatible", "apiKey": "none", "model": "gpt-5.4", "baseUrl": url}
    own = {"settings": provider, "updatedAt": "2026-11-20T09:00:00.000Z", "tokenSource": "manual"}
    settings = {"version": 1, "lastUsedProvider": "openai-compatible", "providers": {"openai-compatible": own}}
    entries = _servers(servers, {"type": "streamableHttp"}).get("mcpServers", {})
    for entry in entries.values():
        entry.pop("trust")
        entry["timeout"] = PATIENT // 1_000
    folder = home / ".cline/data/settings"
    _written(folder / "providers.json", settings)
    _written(folder / "cline_mcp_settings.json", {"mcpServers": entries})
    return ()


def _servers(servers: Servers, of_running: Mapping[str, Any] = MappingProxyType({}), at: str = "url") -> dict[str, Any]:
    """``of_running``: what an entry of a server that runs has besides its address, which is ``at`` that name."""
    if not servers:
        return {}
    entries = {
        name: _entry(each, at) | {"trust": True} | dict(of_running if isinstance(each, Running) else {})
        for name, each in servers.items()
    }
    return {"mcpServers": entries}


def _entry(server: Server | Running, at: str) -> dict[str, Any]:
    if isinstance(server, Running):
        return {at: server.url}
    return {"command": server.command, "args": list(server.args), "env": dict(server.env)}


def _of_opencode(server: Server | Running) -> dict[str, Any]:
    if isinstance(server, Running):
        return {"type": "remote", "url": server.url, "oauth": False}
    return {"type": "local", "command": [server.command, *server.args], "environment": dict(server.env)}


def _written(path: Path, content: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content, indent=2), "utf-8")
    return path
