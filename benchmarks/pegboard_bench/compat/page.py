"""The section of `compat.json`: packages for agents beside Pegboard, and the library alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pegboard_bench.results import measured

HEAD = """## Beside other packages

Written by `{command}`. {measured}.

`pip install --dry-run` of each package into an empty environment, alone and beside the wheel of Pegboard, newest of
each. Refused are packages that pip resolves alone but not beside Pegboard; older are packages of the resolution whose
version is lower than without Pegboard. Of {packages} packages {refused} are refused and {downgraded} get an older
version of anything.

| package | version | brings | Pegboard adds | refused | older |
|---|---|---|---|---|---|
"""
CONFLICTS = """
These exclude each other, whether or not Pegboard is there:

"""
CORE = """
### The library alone
{measured_again}
| measure | value | limit |
|---|---|---|
| packages on the disk | {megabytes:.0f} MB | 240 MB |
| `import pegboard` | {import_ms:.0f} ms | 50 ms |
| first decision over 200 tools, vectors cached | {first_s:.2f} s | 0.7 s |
| the same, of the processor, all threads | {first_cpu_s:.2f} s | |
| next decision | {next_ms:.1f} ms | |

Times are the best of five processes, of the wheel in an empty environment, after one that fills the cache. Before it,
{load:.1f} processes wanted to run on {cores} cores.
[Boards that change](#boards-that-change) has the first decision over 120 real tools, import included, with one thread.
"""
OTHERS = """
The packages above are of {date} (`{commit}`); this was measured again.
"""


def section(results: Mapping[str, Any]) -> str:
    figures, tables = results["figures"], results["tables"]
    counts = {name: int(figures[name]) for name in ("packages", "refused", "downgraded")}
    head = HEAD.format(command=results["command"], measured=measured(results), **counts)
    rows = "".join(_row(name, row) for name, row in tables["packages"].items())
    pairs = [f"- `{one}` and `{other}`: `{shared}`\n" for one, other, shared in tables["conflicts"]]
    core = {name.removeprefix("core/"): value for name, value in figures.items() if name.startswith("core/")}
    others = tables.get("others_of")
    again = "" if others is None else OTHERS.format(date=others["date"][:10], commit=others["commit"][:8])
    return (
        head
        + rows
        + (CONFLICTS + "".join(pairs) if pairs else "")
        + CORE.format(cores=results["machine"]["cores"], measured_again=again, **core)
    )


def _row(name: str, row: Mapping[str, Any]) -> str:
    older = ", ".join(f"{package} {alone} → {beside}" for package, alone, beside in row["downgraded"])
    refused = "alone too" if row["refused_alone"] else ("yes" if row["refused"] else "no")
    return f"| {name} | {row['version']} | {row['packages']} | {row['added']} | {refused} | {older or 'none'} |\n"
