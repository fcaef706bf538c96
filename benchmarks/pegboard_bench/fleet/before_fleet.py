"""The fleet as clients are given it: every server's own entry, or Pegboard's on stdio or over HTTP."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pegboard.settings.server_spec import ServerSpec
from pegboard_bench.coding_agents.atlassian import Running, Server
from pegboard_bench.coding_agents.processes import board
from pegboard_bench.fleet.needs import PEGBOARD, Way

SETTINGS: Mapping[Way, Mapping[str, str]] = {
    "stdio": {},
    "grows": {"EXPOSURE": "dynamic"},
    "pushes": {"EXPOSURE": "dynamic", "PUSH": "true"},
}
"""Variables of the gateway beside the defaults, by way."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Doors:
    """``url``: of the gateway that all clients over HTTP share; ``folder``: for programs and for what gateways keep."""

    specs: Mapping[str, ServerSpec]
    config: Path
    folder: Path
    url: str

    def servers(self, way: Way) -> Mapping[str, Server | Running]:
        """What is written into a client's configuration."""
        if way == "direct":
            return {name: _as_it_is(spec) for name, spec in self.specs.items()}
        if way == "http":
            return {PEGBOARD: Running(self.url)}
        return {PEGBOARD: Server(command=str(self.program(way)))}

    def program(self, way: Way) -> Path:
        """`pegboard mcp` as a command without arguments: the inspector would take `--config` for itself.

        All of them keep the fleet's tools in one folder, so that only the first start of all reads them anew.
        """
        path = self.folder / f"pegboard-{way}"
        if not path.exists():
            own = {"CACHE_DIR": str(self.folder / "cache"), "STATE_DIR": str(self.folder / f"state-{way}")}
            given = own | {"OFTEN_USED": "0"} | dict(SETTINGS[way])
            exports = "".join(f"export PEGBOARD_{name}={shlex.quote(value)}\n" for name, value in given.items())
            command = [sys.executable, "-m", "pegboard", "mcp", "--no-attach", "--log-level", "error"]
            path.write_text(f"#!/bin/sh\n{exports}exec {shlex.join([*command, '--config', str(self.config)])}\n")
            path.chmod(0o755)
        return path


@contextmanager
def doors(specs: Mapping[str, ServerSpec], config: Path, folder: Path) -> Iterator[Doors]:
    """With a gateway over HTTP until the end."""
    with board(config.absolute(), folder / "served") as url:
        yield Doors(specs=specs, config=config.absolute(), folder=folder, url=url)


def _as_it_is(spec: ServerSpec) -> Server:
    """Agents have no folder for a server to run in, so paths in its arguments are made whole."""
    base = Path(spec.cwd or ".")
    whole = (str(base / each) if not each.startswith("-") and (base / each).exists() else each for each in spec.args)
    return Server(command=spec.command or "", args=tuple(whole), env=dict(spec.env))
