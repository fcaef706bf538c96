"""The page of the documentation on what the protocol's test suite says. Every figure comes from the results file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pegboard_bench.conformance.suite import NOT_OURS, Checked, exceptions, lost, made, passed
from pegboard_bench.results import measured

HEAD = """# Conformance

What the protocol's own test suite (npm `@modelcontextprotocol/conformance` {version}, its newest version) says of
servers by themselves, and of the gateway before each of them, which lists all tools (`exposure = "eager"`): everything
that revisions 2025-11-25 and 2026-07-28 require, each in its own run, and the extensions for tasks and skills. The
[client half](#the-client-half) of the suite says the same of the gateway as a client of servers. Nothing that passes
directly may be lost behind the gateway; a test of CI holds that, and so does this command.

```console
$ make conformance
```

{measured}.

- **server-everything** is the protocol's reference server. It has none of the tools that most scenarios call, and
  speaks the handshake era alone, so it fails much of the suite by itself.
- **conforming** is a server of ours that has what the suite asks for, in both eras, with tasks and skills.

`direct` is the server by itself, on HTTP. `stdio` and `http` are the gateway on HTTP, and say how the server is
connected to it. A cell has the checks passed of those that were made; skipped ones, and those that only inform, do not
count. What the gateway passes and a server does not is the gateway's own: its guard against DNS rebinding, its headers,
its answers to revision 2026-07-28.
"""
CLIENT_HALF = """## The client half

The suite's own servers check a client: the Python SDK by itself (`direct`), and the same client with the gateway
between (`gateway`), whose requests are then what the suite sees. In the scenarios of authorization (`auth/…`) the
gateway [signs in](sign-in.md) as `pegboard login` does, and `direct` is the SDK's own OAuth; tests of CI hold the
gateway to one of each kind. The SDK has no skills, so that it loads none; the gateway loads them for `describe_tools`,
and checks them. What is left out stands [below](#exceptions).
"""
OURS = "conforming"
"""The server that has everything that the suite asks for: what is missing behind the gateway is the gateway's."""
EXCEPTIONS = """## Exceptions

Everything that is not passed behind the gateway before **conforming**, or by the gateway as a client, and everything
that is not run. What **server-everything** does not pass, it lacks by itself.

| scenario | where | why |
|---|---|---|
"""
WHY = {
    "server-sse-polling": "Nothing was made: the checks are about answers as event streams, which the gateway gives "
    "only where something comes before the result. It answers in JSON, which the suite itself calls not applicable.",
    "tasks-status-notifications": "Skipped by the suite for every server: notifications of tasks are optional. Tests "
    "of ours hold that the gateway relays them.",
    "http-standard-headers": "Skipped by the suite for requests that revision 2026-07-28 does not have.",
}
"""By scenario, without its revision. An exception without a text is an error of `page`."""


def page(results: Mapping[str, Any]) -> str:
    """The whole page."""
    parts = [HEAD.format(version=results["tables"]["suite"], measured=measured(results))]
    parts += [_table(f"## {name}", sides) for name, sides in results["tables"]["checks"].items()]
    parts.append(_table(CLIENT_HALF, results["tables"]["client"]))
    return "\n".join([*parts, _exceptions(results)])


def _exceptions(results: Mapping[str, Any]) -> str:
    """Raises KeyError for one that nobody has explained."""
    found: dict[str, list[str]] = {}
    sides = {f"{OURS}, {side}": each for side, each in results["tables"]["checks"].get(OURS, {}).items()}
    sides |= {"client half": results["tables"]["client"]["gateway"]}
    for where, checked in sides.items():
        for scenario in exceptions(checked) if not where.endswith("direct") else ():
            found.setdefault(scenario, []).append(where)
    rows = [f"| {name} | {'; '.join(where)} | {WHY[name.partition(' ')[0]]} |" for name, where in found.items()]
    rows += [
        f"| {name} | client half | Not run, as Pegboard has no such extension: {about}. |"
        for name, about in NOT_OURS.items()
    ]
    return EXCEPTIONS + "\n".join(rows) + "\n"


def _table(head: str, sides: Mapping[str, Checked]) -> str:
    rows = [head, "", f"| scenario | {' | '.join(sides)} |", f"|---|{'---|' * len(sides)}"]
    for scenario in sides["direct"]:
        cells = [_cell(checked.get(scenario, {})) for checked in sides.values()]
        rows.append(f"| {scenario} | {' | '.join(cells)} |")
    rows.append(f"| **passed** | {' | '.join(f'**{passed(checked)}**' for checked in sides.values())} |")
    gone = [f"`{each}` ({side})" for side, checked in sides.items() for each in lost(sides["direct"], checked)]
    return "\n".join([*rows, "", f"Lost behind the gateway: {', '.join(gone) or 'nothing'}.", ""])


def _cell(checks: Mapping[str, str]) -> str:
    statuses = made(checks)
    return f"{statuses.count('SUCCESS')} of {len(statuses)}" if statuses else "–"
