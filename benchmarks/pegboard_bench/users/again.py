"""`python -m pegboard_bench.users.again` makes the calls through two processes on one PostgreSQL once more, and adds
them to the part `postgres_again` of `users.json`: whether a token is ever crossed is worth more than one run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated
from uuid import uuid4

import typer
from rich.console import Console

from pegboard_bench import results
from pegboard_bench.users.__main__ import replicas

PART = "postgres_again"
COUNTS = ("calls", "crossed", "failed")


def main(
    users: Annotated[int, typer.Option(help="Users.")] = 200,
    calls: Annotated[int, typer.Option(help="Calls of each.")] = 20,
    postgres: Annotated[str, typer.Option(help="The store of both.")] = "postgresql://postgres@127.0.0.1:5432/test",
    out: Annotated[Path, typer.Option(help="Folder of users.json.")] = Path("bench/results"),
) -> None:
    """One more run, beside those that the part has."""
    figures = replicas("again", {"url": postgres, "prefix": f"users_{uuid4().hex[:8]}"}, users, calls)
    run = {count: int(figures[f"{count}/two_replicas_again"]) for count in COUNTS}
    path = out / "users.json"
    runs = [*results.read(path)["tables"].get(PART, {}).get("runs", ()), run]
    sums = {f"{count}/{PART}": sum(each[count] for each in runs) for count in COUNTS}
    results.extend(
        path,
        PART,
        figures=sums | {f"runs/{PART}": len(runs)},
        table={"command": "python -m pegboard_bench.users.again", "runs": runs},
    )
    Console().print(run)


if __name__ == "__main__":
    typer.run(main)
