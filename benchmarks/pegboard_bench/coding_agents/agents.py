"""The agents: how each is started without a terminal, pointed at an address, and what its own tools are called.

All are as npm has them, in their own defaults but for what a run without people and without a network needs: nothing
is asked, nothing is updated. Two have a second entry, for the ways in which they differ: with its own search for tools
off, Claude Code lists those of MCP servers one by one, and so does Codex for a model that it knows nothing of.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from pegboard.settings.llm import Format
from pegboard_bench.coding_agents import setups
from pegboard_bench.coding_agents.prompts import FILE, RIGHT, WRONG, Act
from pegboard_bench.coding_agents.setups import Setup

Step: TypeAlias = dict[str, Any]
"""A call of the model's: `tool` and `arguments`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hands:
    """The steps by which the model reads, edits and runs something, or calls a tool of the MCP server."""

    read: Callable[[Path], Sequence[Step]]
    edit: Callable[[Path], Sequence[Step]]
    run: Callable[[str], Sequence[Step]]
    mcp: Callable[[str, str, Mapping[str, Any]], Sequence[Step]]
    find: Callable[[str], Sequence[Step]] = lambda word: ()
    """Where a model has to look through the tools of MCP servers by itself, before it can call one."""

    def steps(self, act: Act, project: Path) -> Sequence[Step]:
        match act.kind:
            case "read":
                return self.read(project / FILE)
            case "edit":
                return self.edit(project / FILE)
            case "run":
                return self.run(act.command)
            case "mcp":
                return self.mcp(act.server, act.tool, act.arguments or {})
            case "find":
                return self.find(act.command)


@dataclass(frozen=True, slots=True, kw_only=True)
class Agent:
    """``package``: its folder in that of `scripts/install_agents.py`; ``program``: what there starts it. ``arguments``
    stand before the prompt, ``path`` behind the address of the upstream."""

    name: str
    title: str
    package: str
    program: str
    arguments: tuple[str, ...]
    format: Format
    model: str
    path: str
    hands: Hands
    setup: Setup
    environment: Mapping[str, str] = field(default_factory=dict)
    address: str = ""
    """The variable that says where the provider is, where no file does."""
    lists: bool = True
    """Whether the definitions of MCP tools are in its requests from the start."""


def call(tool: str, **arguments: Any) -> Step:
    return {"tool": tool, "arguments": arguments}


def _script(source: str) -> list[Step]:
    """A program for Codex's one tool, which runs it."""
    return [call("functions.exec", input=source)]


def _in_code(tool: str, arguments: Mapping[str, Any]) -> list[Step]:
    return _script(f"text(JSON.stringify(await tools.{tool}({json.dumps(dict(arguments))})));")


def _shell(tool: str, **more: Any) -> Callable[[str], list[Step]]:
    return lambda command: [call(tool, command=command, **more)]


def _patch(path: Path) -> str:
    return f"*** Begin Patch\n*** Update File: {path}\n@@\n-    {WRONG}\n+    {RIGHT}\n*** End Patch\n"


def _claude_code(mcp: Callable[[str, str, Mapping[str, Any]], Sequence[Step]]) -> Hands:
    return Hands(
        read=lambda path: [call("Read", file_path=str(path))],
        edit=lambda path: [call("Edit", file_path=str(path), old_string=WRONG, new_string=RIGHT)],
        run=_shell("Bash", description="Run it"),
        mcp=mcp,
    )


def _claude_name(server: str, tool: str) -> str:
    return f"mcp__{server}__{tool}"


def _after_search(server: str, tool: str, arguments: Mapping[str, Any]) -> list[Step]:
    """Claude Code's own search comes first, but for tools that ask to be listed at once, as Pegboard's do."""
    name = _claude_name(server, tool)
    search = [] if server == LOADED else [call("ToolSearch", query=f"select:{name}", max_results=5)]
    return [*search, call(name, **arguments)]


LOADED = "pegboard"
CODEX = ("exec", "--skip-git-repo-check")
CLAUDE_CODE: dict[str, Any] = {
    "package": "claude_code",
    "program": "node_modules/.bin/claude",
    "arguments": ("--dangerously-skip-permissions", "-p"),
    "format": "anthropic",
    "model": "claude-opus-5-5",
    "path": "",
    "setup": setups.claude_code,
    "address": "ANTHROPIC_BASE_URL",
}
CLAUDE_ENVIRONMENT = {
    "ANTHROPIC_API_KEY": "sk-ant-none",
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "DISABLE_AUTOUPDATER": "1",
    "IS_SANDBOX": "1",
    "MCP_TIMEOUT": str(setups.PATIENT),
}
AGENTS: Mapping[str, Agent] = {
    agent.name: agent
    for agent in (
        Agent(
            name="claude_code",
            title="Claude Code",
            lists=False,
            environment=CLAUDE_ENVIRONMENT,
            hands=_claude_code(_after_search),
            **CLAUDE_CODE,
        ),
        Agent(
            name="claude_code_listed",
            title="Claude Code, `ENABLE_TOOL_SEARCH=false`",
            environment=CLAUDE_ENVIRONMENT | {"ENABLE_TOOL_SEARCH": "false"},
            hands=_claude_code(lambda server, tool, arguments: [call(_claude_name(server, tool), **arguments)]),
            **CLAUDE_CODE,
        ),
        Agent(
            name="codex",
            title="Codex",
            lists=False,
            package="codex",
            program="node_modules/.bin/codex",
            arguments=CODEX,
            format="openai",
            model="gpt-6.1-sol",
            path="/v1",
            environment={"PROVIDER_KEY": "sk-none"},
            hands=Hands(
                read=lambda path: _in_code("exec_command", {"cmd": f"cat {path}"}),
                edit=lambda path: _script(f"text(await tools.apply_patch({json.dumps(_patch(path))}));"),
                run=lambda command: _in_code("exec_command", {"cmd": command}),
                mcp=lambda server, tool, arguments: _in_code(_claude_name(server, tool), arguments),
                find=lambda word: _script(
                    f"text(JSON.stringify(ALL_TOOLS.filter(t => /{word}/i.test(t.name + t.description))));"
                ),
            ),
            setup=setups.codex,
        ),
        Agent(
            name="codex_listed",
            title="Codex, a model it has no data of",
            package="codex",
            program="node_modules/.bin/codex",
            arguments=(*CODEX, "--model", "gpt-5"),
            format="openai",
            model="gpt-5",
            path="/v1",
            environment={"PROVIDER_KEY": "sk-none"},
            hands=Hands(
                read=lambda path: [call("exec_command", cmd=f"cat {path}")],
                edit=lambda path: [call("exec_command", cmd=f"sed -i 's/{WRONG}/{RIGHT}/' {path}")],
                run=lambda command: [call("exec_command", cmd=command)],
                mcp=lambda server, tool, arguments: [call(f"mcp__{server}.{tool}", **arguments)],
            ),
            setup=setups.codex,
        ),
        Agent(
            name="gemini_cli",
            title="Gemini CLI",
            package="gemini_cli",
            program="node_modules/.bin/gemini",
            arguments=("-m", "gemini-2.5-pro", "--yolo", "-p"),
            format="gemini",
            model="gemini-2.5-pro",
            path="",
            environment={"GEMINI_API_KEY": "none", "GEMINI_CLI_TRUST_WORKSPACE": "true"},
            address="GOOGLE_GEMINI_BASE_URL",
            hands=Hands(
                read=lambda path: [call("read_file", file_path=str(path))],
                edit=lambda path: [
                    call("replace", file_path=str(path), old_string=WRONG, new_string=RIGHT, instruction="Add.")
                ],
                run=_shell("run_shell_command", description="Run it"),
                mcp=lambda server, tool, arguments: [call(f"mcp_{server}_{tool}", **arguments)],
            ),
            setup=setups.gemini_cli,
        ),
        Agent(
            name="opencode",
            title="opencode",
            package="opencode",
            program="node_modules/.bin/opencode",
            arguments=("run",),
            format="openai",
            model="gpt-5.4",
            path="/v1",
            environment={
                "OPENCODE_DISABLE_AUTOUPDATE": "1",
                "OPENCODE_DISABLE_MODELS_FETCH": "1",
                "OPENCODE_PURE": "1",
                "npm_config_offline": "true",  # it would install a package for plugins in each new home
            },
            hands=Hands(
                read=lambda path: [call("read", filePath=str(path))],
                edit=lambda path: [call("apply_patch", patchText=_patch(path))],
                run=_shell("bash", description="Run it"),
                mcp=lambda server, tool, arguments: [call(f"{server}_{tool}", **arguments)],
            ),
            setup=setups.opencode,
        ),
        Agent(
            name="qwen_code",
            title="qwen-code",
            lists=False,
            package="qwen_code",
            program="node_modules/.bin/qwen",
            arguments=("--yolo", "--auth-type", "openai", "-p"),
            format="openai",
            model="qwen3-coder-plus",
            path="/v1",
            environment={"OPENAI_API_KEY": "none", "OPENAI_MODEL": "qwen3-coder-plus"},
            address="OPENAI_BASE_URL",
            hands=Hands(
                read=lambda path: [call("read_file", file_path=str(path))],
                edit=lambda path: [call("edit", file_path=str(path), old_string=WRONG, new_string=RIGHT)],
                run=_shell("run_shell_command", is_background=False, description="Run it"),
                mcp=lambda server, tool, arguments: [
                    call("tool_search", query=f"select:{_claude_name(server, tool)}"),
                    call("tool_call", name=_claude_name(server, tool), arguments=dict(arguments)),
                ],
            ),
            setup=setups.qwen_code,
        ),
        Agent(
            name="copilot_cli",
            title="Copilot CLI",
            package="copilot_cli",
            program="node_modules/.bin/copilot",
            arguments=("--allow-all", "--no-auto-update", "-p"),
            format="openai",
            model="gpt-5.4",
            path="/v1",
            environment={
                "COPILOT_OFFLINE": "true",
                "COPILOT_PROVIDER_API_KEY": "none",
                "COPILOT_MODEL": "gpt-5.4",
            },
            address="COPILOT_PROVIDER_BASE_URL",
            hands=Hands(
                read=lambda path: [call("view", path=str(path))],
                edit=lambda path: [call("apply_patch", input=_patch(path))],
                run=_shell("bash", description="Run it"),
                mcp=lambda server, tool, arguments: [call(f"{server}-{tool}", **arguments)],
            ),
            setup=setups.copilot_cli,
        ),
        Agent(
            name="cline",
            title="Cline",
            package="cline",
            program="node_modules/.bin/cline",
            arguments=("--provider", "openai-compatible", "--model", "gpt-5.4"),
            format="openai",
            model="gpt-5.4",
            path="/v1",
            hands=Hands(
                read=lambda path: [call("read_files", files=[{"path": str(path)}])],
                edit=lambda path: [call("apply_patch", input=_patch(path))],
                run=lambda command: [call("run_commands", commands=[command])],
                mcp=lambda server, tool, arguments: [call(f"{server}__{tool}", **arguments)],
            ),
            setup=setups.cline,
        ),
    )
}
