"""One run of the protocol's own test suite against a server, as tables of what it checked."""

from __future__ import annotations

import asyncio
import json
import re
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PACKAGE = "@modelcontextprotocol/conformance"
WORST_FIRST = ("FAILURE", "WARNING", "INFO", "SUCCESS", "SKIPPED")
"""One instance that was skipped says nothing against the others."""
NOT_APPLICABLE = "INFO"
OF_STREAMS = "server-sse-"
CONTENT_TYPE = "server-sse-content-type"
"""The check that says, as not applicable, that an answer came in JSON."""
SECONDS = 240.0
MODERN = "2026-07-28"
REVISIONS = ("2025-11-25", MODERN)
EXTENSIONS = ("sep-2640-skills-directory", "sep-2640-skills-enumeration", "sep-2640-skills-manifest")
"""Scenarios of an extension that came after the requirements of either revision were frozen."""

NOT_OURS = {
    "auth/client-credentials-jwt": "a client assertion signed with a key, in the place of a secret (RFC 7523)",
    "auth/dpop": "tokens bound to a key of the client (DPoP, RFC 9449)",
    "auth/dpop-nonce": "the same, with a nonce of the server",
    "auth/enterprise-managed-authorization": "an assertion of the identity provider (ID-JAG) from the client itself; "
    "the gateway exchanges tokens of its callers instead",
    "auth/wif-jwt-bearer": "the identity of a workload of a cloud as the credential",
}
"""Scenarios of extensions that Pegboard does not have as a client, and what each is about."""

Checked = Mapping[str, Mapping[str, str]]
"""The status of each check, by scenario. One that was made several times has the worst of its statuses."""
COUNTED = ("SUCCESS", "FAILURE", "WARNING")
"""A check that only informs, or was skipped, is not made."""


class SuiteBroke(RuntimeError):  # noqa: N818
    """The suite ended without having checked anything."""


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
        """What both revisions require of servers, and the extensions. Raises SuiteBroke.

        A scenario that applies to both revisions is run once with each: one run does not cover the other.
        """
        found: dict[str, Mapping[str, str]] = {}
        for revision in REVISIONS:
            found |= await self._run(revision, "server", "--url", url, "--requirements", revision)
        for scenario in EXTENSIONS:
            with suppress(SuiteBroke):  # it breaks on a server that does not speak the revision of the extension
                found |= await self._run(MODERN, "server", "--url", url, "--scenario", scenario)
        return found

    async def run_client(self, side: str) -> Checked:
        """What the suite's servers say of a client: by itself (`direct`), or with the `gateway` between."""
        found: dict[str, Mapping[str, str]] = {}
        for revision in REVISIONS:
            for scenario in await self._client_scenarios(revision):
                found |= await self.run_client_scenario(side, revision, scenario)
        return found

    async def run_client_scenario(self, side: str, revision: str, scenario: str) -> Checked:
        """As `run_client`, of one scenario."""
        command = f"{sys.executable} -m pegboard_bench.conformance.client {side}"
        wanted = ("--scenario", scenario, "--spec-version", revision, "--force", "--timeout", "60000")
        return await self._run(revision, "client", "--command", command, *wanted)

    async def _client_scenarios(self, revision: str) -> list[str]:
        """The scenarios for clients of a revision; those of extensions are run with the last one."""
        listed = (await self._said("list")).partition("Client scenarios")[2].partition("\n\n")[0]
        scenarios = re.findall(r"- (\S+) \[([^]]+)\]", listed)
        wanted = {revision} | ({"extension"} if revision == MODERN else set())
        return [name for name, where in scenarios if wanted & {*where.split(",")} and name not in NOT_OURS]

    async def _run(self, revision: str, *arguments: str) -> Checked:
        with tempfile.TemporaryDirectory(prefix="pegboard-conformance-") as out:
            said = await self._said(*arguments, "--output-dir", out)
            found = {f"{scenario} ({revision})": checks for scenario, checks in read(Path(out)).items()}
        if not found:
            raise SuiteBroke(f"The suite checked nothing: {said[-2000:]}")
        return found

    async def _said(self, *arguments: str) -> str:
        programs = self._packages.absolute() / ".bin"
        process = await asyncio.create_subprocess_exec(
            *(str(programs / "node"), str(programs / "conformance")),
            *arguments,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        try:
            said, _ = await asyncio.wait_for(process.communicate(), SECONDS)
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        return said.decode("utf-8", "replace")

    @property
    def _packages(self) -> Path:
        return self.folder / "node_modules"


def read(folder: Path) -> Checked:
    """What the suite wrote: a folder for each scenario, named `SCENARIO-DATE` with `server-` before it for servers; the
    name of a scenario may have a slash."""
    return {
        _scenario(path.parent.relative_to(folder).as_posix()): _statuses(json.loads(path.read_text("utf-8")))
        for path in sorted(folder.rglob("checks.json"))
    }


def lost(direct: Checked, through: Checked) -> list[str]:
    """What a server passes by itself and not through something before it, as `SCENARIO/CHECK`.

    Checks of event streams that the suite itself calls not applicable to answers in JSON are not lost: a server may
    answer in either (MCP 2025-11-25, Streamable HTTP, "Sending Messages to the Server", point 5).
    """
    return [
        f"{scenario}/{check}"
        for scenario, checks in direct.items()
        for check, status in checks.items()
        if status == "SUCCESS" and not _holds(through.get(scenario, {}), check)
    ]


def _holds(checks: Mapping[str, str], check: str) -> bool:
    if check.startswith(OF_STREAMS) and NOT_APPLICABLE in (checks.get(check), checks.get(CONTENT_TYPE)):
        return True
    return checks.get(check) == "SUCCESS"


def made(checks: Mapping[str, str]) -> list[str]:
    """The statuses of the checks of a scenario that were made."""
    return [status for status in checks.values() if status in COUNTED]


def exceptions(checked: Checked) -> list[str]:
    """The scenarios of which a check fails, or none was made."""
    return [name for name, checks in checked.items() if not made(checks) or {*made(checks)} != {"SUCCESS"}]


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
