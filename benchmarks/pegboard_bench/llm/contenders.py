"""What stands between client and provider: nothing, Pegboard in three ways, LiteLLM's proxy."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import httpx2

from pegboard.errors import ConfigError
from pegboard_bench.llm.body import chat_request
from pegboard_bench.ports import free_port

PATIENCE = 180.0
LITELLM_OPEN = "LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY"
"""It serves whoever is on this machine."""
NEW_ASK = "Approve invoice @ASK@ of the printing shop and archive its ticket."
GATEWAY = """
start_wait = 0
encoder_threads = 1

[llm]
patience = 0.05

[llm.upstreams.through]
url = "{mock}"

[llm.upstreams.filtered]
url = "{mock}"

[[llm.rules]]
upstream = "through"
filter = false
"""
LITELLM = """
model_list:
  - model_name: some-model
    litellm_params: {{model: openai/some-model, api_base: "{mock}/v1", api_key: sk-none}}
litellm_settings: {{telemetry: false, drop_params: true}}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Contender:
    """Where to send which body; ``pid`` is the process in between."""

    name: str
    url: str
    body: Path
    pid: int | None = None

    @property
    def rss_mb(self) -> float:
        """Memory of the process and its children now."""
        return 0.0 if self.pid is None else sum(map(_rss, _family(self.pid))) / 1024


@contextmanager
def contenders(litellm: Path | None) -> Iterator[list[Contender]]:
    """All of them running, before one mock."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="pegboard-bench-")))
        same, new = folder / "same.json", folder / "new.json"
        same.write_bytes(chat_request())
        new.write_bytes(chat_request(NEW_ASK))
        mock, _ = started(stack, [sys.executable, "-m", "pegboard_bench.llm.mock"], folder)
        ours, pid = _ours(stack, folder, mock)
        warm(f"{ours}/filtered/v1/chat/completions", same.read_bytes())
        found = [
            Contender(name="direct", url=f"{mock}/v1/chat/completions", body=same),
            Contender(name="passthrough", url=f"{ours}/through/v1/chat/completions", body=same, pid=pid),
            Contender(name="filter_repeat", url=f"{ours}/filtered/v1/chat/completions", body=same, pid=pid),
            Contender(name="filter_new", url=f"{ours}/filtered/v1/chat/completions", body=new, pid=pid),
        ]
        if litellm is not None:
            theirs, pid = _litellm(stack, folder, mock, litellm)
            found.append(Contender(name="litellm", url=f"{theirs}/v1/chat/completions", body=same, pid=pid))
        yield found


def _ours(stack: ExitStack, folder: Path, mock: str) -> tuple[str, int]:
    config = folder / "pegboard.toml"
    config.write_text(GATEWAY.format(mock=mock), "utf-8")
    command = [sys.executable, "-m", "pegboard", "serve", "--config", str(config), "--log-level", "error", "--port"]
    return started(stack, command, folder, PEGBOARD_STATE_DIR=str(folder), PEGBOARD_CACHE_DIR=str(folder))


def _litellm(stack: ExitStack, folder: Path, mock: str, program: Path) -> tuple[str, int]:
    config = folder / "litellm.yaml"
    config.write_text(LITELLM.format(mock=mock), "utf-8")
    command = [str(program), "--config", str(config), "--host", "127.0.0.1", "--num_workers", "1", "--port"]
    options = {"LITELLM_LOG": "ERROR", "LITELLM_LOCAL_MODEL_COST_MAP": "True", LITELLM_OPEN: "true"}
    return started(stack, command, folder, **options)


def started(stack: ExitStack, command: Sequence[str], folder: Path, **environment: str) -> tuple[str, int]:
    """The address of a program whose last argument is its port, once it answers, and its process."""
    port = free_port()
    log = stack.enter_context((folder / f"{port}.log").open("w+"))
    process = subprocess.Popen([*command, str(port)], env=os.environ | environment, stdout=log, stderr=log)
    stack.callback(_end, process)
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline and process.poll() is None:
        with suppress(httpx2.HTTPError):
            httpx2.get(f"http://127.0.0.1:{port}/healthz", trust_env=False)
            return f"http://127.0.0.1:{port}", process.pid
        time.sleep(0.1)
    log.seek(0)
    raise ConfigError(f"{command[0]} did not start: {log.read()[-500:]}", remedy="Run it by hand.")


def warm(url: str, body: bytes) -> None:
    """Until the tools are embedded."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        answer = httpx2.post(url, content=body, headers={"content-type": "application/json"}, trust_env=False)
        if answer.headers.get("x-pegboard-filter") == "filtered":
            return
        time.sleep(0.5)
    raise ConfigError("The gateway filters nothing.", remedy="Look at its log.")


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _rss(pid: int) -> int:
    """In KB."""
    with suppress(OSError):
        lines = Path(f"/proc/{pid}/status").read_text("utf-8").splitlines()
        return next((int(line.split()[1]) for line in lines if line.startswith("VmRSS:")), 0)
    return 0


def _family(pid: int) -> list[int]:
    with suppress(OSError):
        below = Path(f"/proc/{pid}/task/{pid}/children").read_text("utf-8").split()
        return [pid, *(each for child in below for each in _family(int(child)))]
    return [pid]
