"""Foreign MCP clients, each in a process of its own: a JSON job goes in, a JSON document comes out."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

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
    folder: Path | None = None
    """Where it runs; None: where this process does."""

    @property
    def tellable(self) -> bool:
        """Whether its session can be told that tools were enabled: revision 2026-07-28 has no sessions."""
        return self.sessions and self.mode != "auto"

    async def run(self, target: Target, steps: Sequence[Step]) -> list[Any]:
        """A result for each step."""
        if not self.sessions:
            return [json.loads(await _output(self._line(target, step), cwd=self.folder)) for step in steps]
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


def drivers(installed: Path, scripts: Path) -> tuple[Driver, ...]:
    """All of them. ``installed``: the folder of `scripts/install_clients.py`; ``scripts``: that of `tests/clients`."""
    python_1, fastmcp, npm = installed / "sdk1/bin/python", installed / "fastmcp/bin/python", installed / "npm"
    packages = npm / "node_modules/@modelcontextprotocol"
    inspector = packages / "inspector-cli/build"
    sdk_2 = [sys.executable, str(scripts / "sdk2.py")]
    fastmcp_client = [str(fastmcp), str(scripts / "fastmcp_client.py")]
    npm_sdk = ["node", str(scripts / "npm_sdk.mjs"), str(npm)]
    npm_1, npm_2 = packages / "sdk/package.json", packages / "client/package.json"
    return (
        Driver(name="python-2-modern", command=sdk_2, needs=Path(sys.executable), mode="auto"),
        Driver(name="python-2-legacy", command=sdk_2, needs=Path(sys.executable), mode="legacy"),
        Driver(name="python-1", command=[str(python_1), str(scripts / "sdk1.py")], needs=python_1),
        Driver(name="fastmcp-modern", command=fastmcp_client, needs=fastmcp, mode="auto"),
        Driver(name="fastmcp-legacy", command=fastmcp_client, needs=fastmcp, mode="legacy"),
        Driver(name="npm-1", command=[*npm_sdk, "1"], needs=npm_1),
        Driver(name="npm-2-modern", command=[*npm_sdk, "2"], needs=npm_2, mode="auto"),
        Driver(name="npm-2-legacy", command=[*npm_sdk, "2"], needs=npm_2, mode="legacy"),
        Driver(
            name="inspector",
            command=["node", str(inspector / "cli.js")],
            needs=inspector,
            sessions=False,
            folder=inspector,
        ),
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
