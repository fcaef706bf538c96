"""One framework's agent, directly and through the gateway: which of its control tools were dropped, and did it end.

A control tool is one that the agent sends directly and that is not of the catalog. Agents are told apart by their
instructions: of several that hand off to one another each has its own.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from pegboard.errors import ConfigError
from pegboard.settings.llm import Format
from pegboard_bench.coding_agents import processes

PROGRAMS = Path("scripts/frameworks")
PROVIDER = Path("tests/servers/office_provider.py")
ASKS = 12
TOOLS = 60
UNPROTECTED_ASKS = 4
"""Of the control: enough to see what is lost without protection."""
LIMIT = 1800.0
"""Seconds that a program may take."""
TOPICS = (
    *("invoice", "customer", "ticket", "calendar_event", "email", "contract"),
    *("warehouse_item", "shipment", "employee", "payroll_run", "campaign", "dashboard"),
)
CATALOG = frozenset(f"{verb}_{topic}" for topic in TOPICS for verb in ("create", "get", "list", "update", "delete"))
TOOLS_ONLY = """
[llm]
patience = 120
filter_timeout = 120

[llm.policy]
ways = ["tools"]
"""
"""Always those that are picked, from the first request on, whatever that costs: what could be dropped is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """``toml`` is added to the default configuration, ``asks`` is how many asks go through it."""

    toml: str = ""
    asks: int = ASKS


PROTECTED: Mapping[str, Configuration] = {"default": Configuration(), "tools": Configuration(toml=TOOLS_ONLY)}
UNPROTECTED = "unprotected"
"""The control: the same measurement has to see losses where nothing is protected."""
CONFIGURATIONS: Mapping[str, Configuration] = {
    **PROTECTED,
    UNPROTECTED: Configuration(toml=f"{TOOLS_ONLY}protect = false\n", asks=UNPROTECTED_ASKS),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Framework:
    """``environment`` is the folder of its packages, ``program`` a file of `PROGRAMS`."""

    environment: str
    program: str
    format: Format = "openai"


FRAMEWORKS: Mapping[str, Framework] = {
    name: Framework(
        environment=name,
        program=f"{name.replace('-', '_')}_agent.py",
        format="gemini" if name == "google-adk" else "openai",
    )
    for name in (
        *("pydantic-ai", "openai-agents", "langchain", "langgraph-supervisor", "smolagents"),
        *("crewai", "autogen", "agent-framework", "google-adk", "llama-index"),
    )
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What a program said of each ask, and what the provider noted of each request."""

    asks: Sequence[Mapping[str, Any]]
    requests: Sequence[Mapping[str, Any]]
    refused: Sequence[str]

    @property
    def not_ended(self) -> int:
        return sum(not ask["ended"] for ask in self.asks)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """``direct`` may be of fewer asks: it says which control tools each agent has."""

    direct: Run
    through: Run

    def control(self) -> dict[str, frozenset[str]]:
        """Of each agent."""
        found: dict[str, frozenset[str]] = {}
        for request in self.direct.requests:
            found[request["agent"]] = found.get(request["agent"], frozenset()) | set(request["tools"]) - CATALOG
        return found

    def dropped(self) -> list[str]:
        """The control tools that requests through the gateway had lost, one entry for each loss."""
        control = self.control()
        return [
            name
            for request in self.through.requests
            for name in sorted(control.get(request["agent"], frozenset()) - set(request["tools"]))
        ]

    def possible_losses(self) -> int:
        """How many there would be if no request had its agent's control tools."""
        control = self.control()
        return sum(len(control.get(request["agent"], ())) for request in self.through.requests)

    def filtered(self) -> int:
        """Requests that arrived with fewer tools of the catalog than the agent has."""
        whole = {request["agent"]: len(CATALOG & set(request["tools"])) for request in self.direct.requests}
        return sum(
            len(CATALOG & set(request["tools"])) < whole.get(request["agent"], 0) for request in self.through.requests
        )

    def table(self) -> dict[str, Any]:
        return {
            "control": sorted(frozenset().union(*self.control().values())),
            "asks": len(self.through.asks),
            "requests": len(self.through.requests),
            "required": sum(request["required"] for request in self.through.requests),
            "filtered": self.filtered(),
            "through_one_tool": sum("call_tool" in request["tools"] for request in self.through.requests),
            "possible_losses": self.possible_losses(),
            "dropped": len(self.dropped()),
            "dropped_names": sorted(set(self.dropped())),
            "not_ended": self.through.not_ended,
            "not_ended_directly": self.direct.not_ended,
            "refused": sorted({*self.through.refused, *self.direct.refused}),
            "unknown_agents": len({each["agent"] for each in self.through.requests} - self.control().keys()),
        }


def measured(
    name: str,
    installed: Path,
    *,
    configurations: Mapping[str, Configuration] = CONFIGURATIONS,
    direct_asks: int = ASKS,
) -> dict[str, Outcome]:
    """By the names of the configurations. Raises ConfigError where the framework's program cannot be run."""
    framework = FRAMEWORKS[name]
    found = {}
    with _provider() as provider, TemporaryDirectory() as work:
        direct = _run(framework, installed, provider, provider.url, direct_asks)
        for key, configuration in configurations.items():
            with processes.gateway(provider.url, framework.format, Path(work) / key, more=configuration.toml) as base:
                through = _run(framework, installed, provider, base, configuration.asks)
                found[key] = Outcome(direct=direct, through=through)
    return found


@contextmanager
def _provider() -> Iterator[processes.Provider]:
    with TemporaryDirectory() as folder, processes.provider(PROVIDER, Path(folder)) as provider:
        yield provider


def _run(framework: Framework, installed: Path, provider: processes.Provider, base: str, asks: int) -> Run:
    python = installed.absolute() / framework.environment / "bin" / "python"
    with TemporaryDirectory() as home:
        quiet = {"HOME": home, "HF_HUB_OFFLINE": "1", "DO_NOT_TRACK": "1", "NO_PROXY": "127.0.0.1"}
        finished = subprocess.run(
            [str(python), str(PROGRAMS.absolute() / framework.program), base, str(asks)],
            capture_output=True,
            text=True,
            check=False,
            timeout=LIMIT,
            cwd=home,
            env=os.environ | quiet,
        )
    said = [json.loads(line) for line in finished.stdout.splitlines() if line.startswith('{"ask"')]
    if finished.returncode or len(said) != asks:
        raise ConfigError(
            f"The program of {framework.environment} ended with {finished.returncode}: {finished.stderr[-800:]}",
            remedy="Run scripts/install_frameworks.py.",
        )
    noted = provider.noted()
    return Run(asks=said, requests=noted["requests"], refused=noted["refused"])
