"""Foreign MCP clients as the tests drive them: a process of its own each, a JSON job in, a JSON document out."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
CLIENTS = ROOT / ".demo" / "clients"
SCRIPTS = Path(__file__).parent / "clients"
NPM = CLIENTS / "npm"
INSPECTOR = NPM / "node_modules" / "@modelcontextprotocol" / "inspector-cli" / "build"

Step = tuple[Any, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A server: a command for stdio, or a URL."""

    command: str = ""
    args: Sequence[str] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    cwd: str | None = None
    url: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)

    def job(self) -> dict[str, Any]:
        if self.url:
            return {"transport": "http", "url": self.url, "headers": dict(self.headers)}
        return {
            "transport": "stdio",
            "command": self.command,
            "args": list(self.args),
            "env": dict(self.env),
            "cwd": self.cwd,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Driver:
    """A client: how its driver is started, and what has to be installed for it."""

    name: str
    command: Sequence[str]
    needs: Path
    mode: str = ""
    sessions: bool = True
    """Whether several steps can go over one connection."""

    @property
    def tellable(self) -> bool:
        """Whether its session can be told that tools were enabled: revision 2026-07-28 has no sessions."""
        return self.sessions and self.mode != "auto"

    async def run(self, target: Target, steps: Sequence[Step]) -> list[Any]:
        """A result for each step."""
        if not self.sessions:
            return [json.loads(await _output(self._line(target, step), cwd=INSPECTOR)) for step in steps]
        job = target.job() | {"steps": steps} | ({"mode": self.mode} if self.mode else {})
        return list(json.loads(await _output(self.command, json.dumps(job)))["results"])

    def _line(self, target: Target, step: Step) -> list[str]:
        """The inspector's command line: one step each. It takes no variable that is empty, as make sets some."""
        where = [target.url] if target.url else [target.command, *target.args]
        environment = [part for name, value in target.env.items() if value for part in ("-e", f"{name}={value}")]
        headers = [part for name, value in target.headers.items() for part in ("--header", f"{name}: {value}")]
        match step:
            case ("list",):
                what = ["--method", "tools/list"]
            case ("call", name, arguments):
                what = ["--method", "tools/call", "--tool-name", name]
                for key, value in arguments.items():
                    what += ["--tool-arg", f"{key}={json.dumps(value, ensure_ascii=False)}"]
            case _:
                raise ValueError(f"The inspector has no step {step!r}")
        return [*self.command, *environment, "--cli", *where, *headers, *what]


PYTHON_1 = CLIENTS / "sdk1" / "bin" / "python"
FASTMCP = CLIENTS / "fastmcp" / "bin" / "python"
SDK_2 = [sys.executable, str(SCRIPTS / "sdk2.py")]
FASTMCP_CLIENT = [str(FASTMCP), str(SCRIPTS / "fastmcp_client.py")]
NPM_SDK = ["node", str(SCRIPTS / "npm_sdk.mjs"), str(NPM)]
NPM_1 = NPM / "node_modules" / "@modelcontextprotocol" / "sdk" / "package.json"
NPM_2 = NPM / "node_modules" / "@modelcontextprotocol" / "client" / "package.json"

DRIVERS = (
    Driver(name="python-2-modern", command=SDK_2, needs=Path(sys.executable), mode="auto"),
    Driver(name="python-2-legacy", command=SDK_2, needs=Path(sys.executable), mode="legacy"),
    Driver(name="python-1", command=[str(PYTHON_1), str(SCRIPTS / "sdk1.py")], needs=PYTHON_1),
    Driver(name="fastmcp-modern", command=FASTMCP_CLIENT, needs=FASTMCP, mode="auto"),
    Driver(name="fastmcp-legacy", command=FASTMCP_CLIENT, needs=FASTMCP, mode="legacy"),
    Driver(name="npm-1", command=[*NPM_SDK, "1"], needs=NPM_1),
    Driver(name="npm-2-modern", command=[*NPM_SDK, "2"], needs=NPM_2, mode="auto"),
    Driver(name="npm-2-legacy", command=[*NPM_SDK, "2"], needs=NPM_2, mode="legacy"),
    Driver(name="inspector", command=["node", str(INSPECTOR / "cli.js")], needs=INSPECTOR, sessions=False),
)


async def _output(command: Sequence[str], given: str = "", cwd: Path | None = None) -> str:
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        cwd=cwd,
    )
    out, err = await process.communicate(given.encode())
    if process.returncode:
        raise AssertionError(f"{command[:2]} failed:\n{err.decode()[-3000:]}")
    return out.decode()
