"""The page of the documentation on what the protocol's test suite says. Every figure comes from the results file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pegboard_bench.conformance.suite import Checked, lost, passed
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
gateway to one of each kind. Measurements of 2026-11-23 and before have no rows of them. Left out are extensions that
Pegboard does not have: DPoP, signed client assertions, and identity assertions. The SDK has no skills, so that it loads
none; the gateway loads them for `describe_tools`, and checks them.
"""
COUNTED = ("SUCCESS", "FAILURE", "WARNING")


def page(results: Mapping[str, Any]) -> str:
    """The whole page."""
    parts = [HEAD.format(version=results["tables"]["suite"], measured=measured(results))]
    parts += [_table(f"## {name}", sides) for name, sides in results["tables"]["checks"].items()]
    return "\n".join([*parts, _table(CLIENT_HALF, results["tables"]["client"])])


def _table(head: str, sides: Mapping[str, Checked]) -> str:
    rows = [head, "", f"| scenario | {' | '.join(sides)} |", f"|---|{'---|' * len(sides)}"]
    for scenario in sides["direct"]:
        cells = [_cell(checked.get(scenario, {})) for checked in sides.values()]
        rows.append(f"| {scenario} | {' | '.join(cells)} |")
    rows.append(f"| **passed** | {' | '.join(f'**{passed(checked)}**' for checked in sides.values())} |")
    gone = [f"`{each}` ({side})" for side, checked in sides.items() for each in lost(sides["direct"], checked)]
    return "\n".join([*rows, "", f"Lost behind the gateway: {', '.join(gone) or 'nothing'}.", ""])


def _cell(checks: Mapping[str, str]) -> str:
    made = [status for status in checks.values() if status in COUNTED]
    return f"{sum(status == 'SUCCESS' for status in made)} of {len(made)}" if made else "–"
