"""`python -m pegboard_bench.board`: what a change of one tool costs a board, its memory, and its first decision.

Each board is measured in a process of its own with one thread. FastMCP's search is measured beside it where an
environment has it (`scripts/install_clients.py`).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import typer
from rich.console import Console

from pegboard_bench import results
from pegboard_bench.board.tool_sets import as_json, new_tool, tools_of
from pegboard_bench.page import write_page

SIZES = (1000, 3000, 10_000)
SMALL = 120
TIMES = 5
FASTMCP = Path(".demo/clients/fastmcp/bin/python")
SEED = 0
STDERR = Console(stderr=True)
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")


def main(
    data: Annotated[Path | None, typer.Option(envvar="PEGBOARD_DATA", help="Folder of real catalogs.")] = None,
    out: Annotated[Path, typer.Option(help="Folder for board.json.")] = Path("bench/results"),
    page: Annotated[Path | None, typer.Option(help="The page whose sections are written.")] = None,
    sizes: Annotated[list[int] | None, typer.Option("--size", help="Tools of a board; may be repeated.")] = None,
    fastmcp: Annotated[Path, typer.Option(help="The Python of an environment with FastMCP.")] = FASTMCP,
) -> None:
    """Measure boards that change."""
    figures: dict[str, float] = {}
    for size in sizes or SIZES:
        STDERR.print(f"{size} tools")
        said = [str(size), *([str(data)] if data else [])]
        found = _of_process("one_board", "changed", *said) | _of_process("one_board", "words", *said)
        figures |= {f"{name}/{size}": value for name, value in found.items() if name != "tools"}
        if fastmcp.is_file():
            peer = _fastmcp(fastmcp, json.dumps(as_json(tools_of(data, size))))
            figures |= {f"fastmcp_{name}/{size}": value for name, value in peer.items()}
    figures |= _first_decision(data)
    tables = {"tools": "real" if data else "made", "small": SMALL}
    path = results.write("board", command="make bench-board", seed=SEED, figures=figures, tables=tables, folder=out)
    if page is not None:
        write_page(page, out)
    STDERR.print(f"Written to {path}")


def _first_decision(data: Path | None) -> dict[str, float]:
    """The best of several new processes, whose tools are embedded already."""
    with TemporaryDirectory() as folder:
        tools = Path(folder) / "tools.json"
        definitions = {tool.name: dict(tool.definition) for tool in tools_of(data, 10 * SMALL)}
        tools.write_text(json.dumps([*definitions.values()][:SMALL] or [new_tool(0)]), "utf-8")
        runs = [_of_process("warm_process", str(tools), folder) for _ in range(1 + TIMES)][1:]
    return {name: min(run[name] for run in runs) for name in runs[0]}


def _of_process(module: str, *arguments: str) -> dict[str, Any]:
    command = [sys.executable, "-m", f"pegboard_bench.board.{module}", *arguments]
    said = subprocess.run(command, check=True, capture_output=True, text=True, env=os.environ | ONE_THREAD)
    return dict(json.loads(said.stdout.splitlines()[-1]))


def _fastmcp(python: Path, tools: str) -> dict[str, Any]:
    program = str(Path(__file__).with_name("fastmcp_search.py"))
    said = subprocess.run([str(python), program], input=tools, check=True, capture_output=True, text=True)
    return dict(json.loads(said.stdout.splitlines()[-1]))


if __name__ == "__main__":
    typer.run(main)
