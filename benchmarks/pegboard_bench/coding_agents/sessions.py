"""One conversation with an agent: a fresh home, the same small project, one prompt, until the agent ends."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pegboard_bench.coding_agents.agents import Agent
from pegboard_bench.coding_agents.atlassian import Running, Server, servers
from pegboard_bench.coding_agents.processes import Provider
from pegboard_bench.coding_agents.prompts import COMMENT, FILE, OUTCOME, PASSED, PROJECT, RIGHT, Act, Task

PATIENCE = 180.0
"""Seconds after which an agent is ended: it has failed then."""
GIT = ("git", "-c", "user.name=Ada", "-c", "user.email=ada@example.com", "-c", "init.defaultBranch=main")
DATED = {"GIT_AUTHOR_DATE": "2026-11-20T09:00:00Z", "GIT_COMMITTER_DATE": "2026-11-20T09:00:00Z"}
LAST_WORDS = 600


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """``requests`` as they came to the provider: `target`, `headers`, `body`; ``refused``: what was wrong with them;
    ``missed``: the tools that the model would have called and was not given."""

    prompt: str
    code: int
    seconds: float
    requests: Sequence[Mapping[str, Any]]
    refused: Sequence[str]
    missed: Sequence[str]
    said: str
    files: Mapping[str, str] = field(default_factory=dict)
    comments: Sequence[str] = ()

    @property
    def broke(self) -> str:
        """Why it is no conversation that went through; empty where it is one."""
        if self.refused or self.missed:
            return "; ".join([*self.refused, *(f"no tool {name}" for name in self.missed)])
        return "" if self.code == 0 and self.requests else f"ended with {self.code}: {self.said}"

    def did(self, task: Task) -> str:
        """What of a task is not done; empty where all of it is on the disk, and in the issue tracker."""
        wrong = [self.broke] if self.broke else []
        if RIGHT not in self.files[FILE]:
            wrong.append(f"{FILE} is as it was")
        if self.files.get(OUTCOME) != PASSED:
            wrong.append(f"{OUTCOME} has {self.files.get(OUTCOME)!r}")
        if any(act.kind == "mcp" for act in task.acts) and list(self.comments) != [COMMENT]:
            wrong.append(f"comments: {list(self.comments)}")
        return "; ".join(wrong)


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where an agent works: ``installed`` as `scripts/install_agents.py` does it, ``folder`` for home and project.

    ``running``: its MCP servers, if it is not to start its own for each conversation.
    """

    agent: Agent
    tools: int
    installed: Path
    folder: Path
    provider: Provider
    running: Mapping[str, Server | Running] | None = None
    """MCP servers in place of those that ``tools`` says."""

    def hold(self, url: str, prompt: str, acts: Sequence[Act]) -> Session:
        """A conversation through ``url``: the provider's own address, or the gateway's before it."""
        home, project = self.folder / "home", self.folder / "project"
        for each in (home, project):
            shutil.rmtree(each, ignore_errors=True)
            each.mkdir(parents=True)
        _make_project(project)
        steps = [step for act in acts for step in self.agent.hands.steps(act, project)]
        self.provider.play(prompt, steps)
        begun = time.monotonic()
        code, said = self._run(home, project, url + self.agent.path, prompt)
        seconds = time.monotonic() - begun
        noted = self.provider.noted()
        return Session(
            prompt=prompt,
            code=code,
            seconds=seconds,
            requests=noted["requests"],
            refused=noted["refused"],
            missed=noted["missed"],
            said=said[-LAST_WORDS:],
            files={path.name: path.read_text("utf-8") for path in project.iterdir() if path.is_file()},
            comments=noted["comments"],
        )

    def _run(self, home: Path, project: Path, url: str, prompt: str) -> tuple[int, str]:
        own = servers(self.installed, self.provider.url, self.tools) if self.running is None else self.running
        added = self.agent.setup(home, url, own)
        node = self.installed / "node/node_modules/.bin"
        environment = {
            "PATH": f"{node}:{os.environ['PATH']}",
            "HOME": str(home),
            "TERM": "xterm-256color",
            "LANG": "C.UTF-8",
            "NO_COLOR": "1",
            "NODE_COMPILE_CACHE": str(self.folder / "compiled"),
            **self.agent.environment,
        }
        if self.agent.address:
            environment[self.agent.address] = url
        program = self.installed / self.agent.package / self.agent.program
        with subprocess.Popen(
            [str(program), *added, *self.agent.arguments, prompt],
            cwd=project,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        ) as process:
            try:
                said, _ = process.communicate(timeout=PATIENCE)
            except subprocess.TimeoutExpired as late:
                said = late.stdout or b""
            finally:
                end_agent(process, home)
        return process.returncode, said.decode("utf-8", "replace")


def end_agent(process: subprocess.Popen[bytes], home: Path) -> None:
    """The agent, what it started, and what left its session: Cline's hub is a daemon, told by its home."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    for environment in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):  # it ended, or is another user's
            if f"HOME={home}".encode() in environment.read_bytes().split(b"\0"):
                os.kill(int(environment.parent.name), signal.SIGKILL)


def _make_project(project: Path) -> None:
    for name, content in PROJECT.items():
        (project / name).write_text(content, "utf-8")
    for command in (("init", "--quiet"), ("add", "."), ("commit", "--quiet", "--message", "A calculator")):
        subprocess.run([*GIT, *command], cwd=project, env=os.environ | DATED, check=True, capture_output=True)
    (project / "README.md").write_text(PROJECT["README.md"] + "\nMore soon.\n", "utf-8")
