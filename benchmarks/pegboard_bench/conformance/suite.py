"""One run of the protocol's own test suite against a server, as tables of what it checked."""

from __future__ import annotations

import asyncio
import json
import re
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PACKAGE = "@modelcontextprotocol/conformance"
WORST_FIRST = ("FAILURE", "WARNING", "SKIPPED", "INFO", "SUCCESS")
SECONDS = 240.0

Checked = Mapping[str, Mapping[str, str]]
"""The status of each check, by scenario. One that was made several times has the worst of its statuses."""


@dataclass(frozen=True, slots=True)
class Suite:
    """Where `scripts/install_clients.py` put it."""

    folder: Path

    @property
    def installed(self) -> bool:
        return (self._packages / PACKAGE / "package.json").exists()

    @property
    def version(self) -> str:
        return str(json.loads((self._packages / PACKAGE / "package.json").read_text("utf-8"))["version"])

    async def run(self, url: str) -> Checked:
        """Every scenario there is for servers. Raises RuntimeError where the suite itself broke."""
        with tempfile.TemporaryDirectory(prefix="pegboard-conformance-") as out:
            programs = self._packages.absolute() / ".bin"
            process = await asyncio.create_subprocess_exec(
                *(str(programs / "node"), str(programs / "conformance"), "server"),
                *("--url", url, "--suite", "all", "--output-dir", out),
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.STDOUT,
            )
            try:
                said, _ = await asyncio.wait_for(process.communicate(), SECONDS)
            finally:
                if process.returncode is None:
                    process.kill()
                    await process.wait()
            found = read(Path(out))
        if not found:
            raise RuntimeError(f"The suite checked nothing: {said.decode('utf-8', 'replace')[-2000:]}")
        return found

    @property
    def _packages(self) -> Path:
        return self.folder / "node_modules"


def read(folder: Path) -> Checked:
    """What the suite wrote: a folder for each scenario, named `server-SCENARIO-DATE`, with its checks."""
    return {
        _scenario(path.parent.name): _statuses(json.loads(path.read_text("utf-8")))
        for path in sorted(folder.glob("server-*/checks.json"))
    }


def lost(direct: Checked, through: Checked) -> list[str]:
    """What a server passes by itself and not through something before it, as `SCENARIO/CHECK`."""
    return [
        f"{scenario}/{check}"
        for scenario, checks in direct.items()
        for check, status in checks.items()
        if status == "SUCCESS" and through.get(scenario, {}).get(check) != "SUCCESS"
    ]


def passed(checked: Checked) -> int:
    """Checks that were passed."""
    return sum(status == "SUCCESS" for checks in checked.values() for status in checks.values())


def _scenario(folder: str) -> str:
    return re.sub(r"-\d{4}-\d\d-\d\dT.*", "", folder.removeprefix("server-"))


def _statuses(checks: list[Mapping[str, Any]]) -> dict[str, str]:
    statuses: dict[str, str] = {}
    for each in checks:
        before = statuses.get(each["id"], WORST_FIRST[-1])
        statuses[each["id"]] = min(before, each["status"], key=WORST_FIRST.index)
    return statuses
