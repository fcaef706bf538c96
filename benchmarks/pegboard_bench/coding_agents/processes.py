"""The processes that agents talk to: a provider of ours, and `pegboard serve` before it."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2

from pegboard.errors import ConfigError
from pegboard.settings.llm import Format
from pegboard_bench.coding_agents.atlassian import Running, Server
from pegboard_bench.ports import free_port

PATIENCE = 600.0
UPSTREAM = "provider"


@dataclass(frozen=True, slots=True)
class Provider:
    """The provider as seen from outside; `tests/servers/coding_provider.py` says what it does."""

    url: str

    def play(self, prompt: str, steps: Sequence[Mapping[str, Any]]) -> None:
        """What the model does in the next conversation; what came before is forgotten."""
        script = {"prompt": prompt, "steps": list(steps)}
        httpx2.put(f"{self.url}/script", json=script, trust_env=False, timeout=PATIENCE).raise_for_status()

    def noted(self) -> dict[str, Any]:
        return dict(httpx2.get(f"{self.url}/noted", trust_env=False, timeout=PATIENCE).raise_for_status().json())


@contextmanager
def provider(program: Path, folder: Path) -> Iterator[Provider]:
    with _process([sys.executable, str(program)], folder, {}) as url:
        yield Provider(url)


@contextmanager
def gateway(behind: str, format_: Format, folder: Path, *, more: str = "") -> Iterator[str]:
    """The address at which an agent finds its provider: the default configuration, one upstream, and ``more`` TOML."""
    folder.mkdir(parents=True)
    config = folder / "pegboard.toml"
    config.write_text(f'[llm.upstreams.{UPSTREAM}]\nurl = "{behind}"\nformat = "{format_}"\n{more}', "utf-8")
    command = [sys.executable, "-m", "pegboard", "serve", "--config", str(config), "--log-level", "error", "--port"]
    own = {"PEGBOARD_STATE_DIR": str(folder / "state"), "PEGBOARD_CACHE_DIR": str(folder / "cache")}
    with _process(command, folder, own) as url:
        yield f"{url}/{UPSTREAM}"


@contextmanager
def board(config: Path, folder: Path) -> Iterator[str]:
    """The address of `pegboard serve` before the MCP servers of a configuration; ``folder`` for what it keeps."""
    folder.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "pegboard", "serve", "--config", str(config), "--log-level", "error", "--port"]
    own = {"PEGBOARD_STATE_DIR": str(folder / "state"), "PEGBOARD_CACHE_DIR": str(folder / "cache")}
    with _process(command, folder, own) as url:
        yield f"{url}/mcp"


@contextmanager
def running(servers: Mapping[str, Server], folder: Path) -> Iterator[Mapping[str, Running]]:
    """The same servers, each started once for all conversations: starting takes them longer than most agents."""
    with ExitStack() as stack:
        yield {
            name: Running(
                stack.enter_context(_process([each.command, *each.args, *each.http], folder, each.env)) + "/mcp"
            )
            for name, each in servers.items()
        }


@contextmanager
def _process(command: Sequence[str], folder: Path, environment: Mapping[str, str]) -> Iterator[str]:
    """The address of a program whose last argument is its port, once it answers."""
    port = free_port()
    with (folder / f"{port}.log").open("w+") as log:
        process = subprocess.Popen([*command, str(port)], env=os.environ | dict(environment), stdout=log, stderr=log)
        try:
            _wait(process, port)
            yield f"http://127.0.0.1:{port}"
        except ConfigError as error:
            log.seek(0)
            raise ConfigError(f"{error}: {log.read()[-800:]}", remedy="Run it by hand.") from error
        finally:
            process.terminate()
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _wait(process: subprocess.Popen[bytes], port: int) -> None:
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline and process.poll() is None:
        with suppress(httpx2.HTTPError):
            if httpx2.get(f"http://127.0.0.1:{port}/healthz", trust_env=False).status_code == 200:
                return
        time.sleep(0.05)
    raise ConfigError("A process that the benchmark needs did not start", remedy="Run it by hand.")
