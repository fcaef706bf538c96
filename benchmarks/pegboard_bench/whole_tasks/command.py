"""`pegboard bench tasks`: whole tasks over real MCP servers, by every way to give an agent its tools."""

from __future__ import annotations

import asyncio
import hashlib
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import pegboard
from pegboard.apps.cli.options import Json, Verbose, examples
from pegboard.errors import ConfigError
from pegboard_bench import results

if TYPE_CHECKING:
    from rich.table import Table

    from pegboard_bench.whole_tasks.task_set import TaskSet

EXAMPLES = examples(
    "The noisy oracle by every way; what was played already is not played again",
    "pegboard bench tasks --servers .demo",
    "A model of your own over the same tasks, by two ways",
    "pegboard bench tasks --model-url http://127.0.0.1:8080/v1 --model qwen3 --method all --method llm_gateway",
    "The noisy oracle of one published model, on ten tasks",
    "pegboard bench tasks --like claude-sonnet-4-5 --tasks 10 --out /tmp",
    "The tasks of ProgressiveMCPBench on its own synthetic servers",
    "pegboard bench tasks --set progressive",
)
NAMES = {
    "own": ("tasks", "make bench-tasks"),
    "progressive": ("tasks_progressive", "make bench-progressive"),
}
"""By set, the results file and what writes it."""


def tasks(
    of_set: Annotated[
        str, typer.Option("--set", metavar="NAME", help="own, or progressive: ProgressiveMCPBench's.")
    ] = "own",
    servers: Annotated[
        Path, typer.Option(help="Folder of scripts/install_task_servers.py, or install_progressive.py.")
    ] = Path(".demo"),
    out: Annotated[Path, typer.Option("--out", help="Folder for the results file.")] = Path("bench/results"),
    page: Annotated[Path | None, typer.Option("--page", help="Write the results to this page too.")] = None,
    methods: Annotated[
        list[str] | None, typer.Option("--method", metavar="NAME", help="Only this way. More than once.")
    ] = None,
    boards: Annotated[
        list[str] | None, typer.Option("--board", metavar="NAME", help="Only servers, or plus128. More than once.")
    ] = None,
    seeds: Annotated[int, typer.Option("--seeds", min=1, help="Times that each task is played.")] = 3,
    most: Annotated[int | None, typer.Option("--tasks", min=1, help="Only so many tasks.")] = None,
    like: Annotated[
        str, typer.Option("--like", metavar="MODEL", help="Whose errors the noisy oracle makes; default: the mean's.")
    ] = "mean",
    model_url: Annotated[
        str | None, typer.Option("--model-url", help="An OpenAI-compatible endpoint, in place of the noisy oracle.")
    ] = None,
    model: Annotated[str, typer.Option("--model", help="The model's name there.")] = "default",
    kept: Annotated[Path, typer.Option("--keep", help="Folder for plays that are done.")] = Path(".demo/whole-tasks"),
    clients: Annotated[
        Path, typer.Option("--clients", help="Folder of scripts/install_clients.py, for FastMCP's search.")
    ] = Path(".demo/clients"),
    as_json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Play whole tasks over real MCP servers: is the work done, for how many tokens, by each way.

    A run that was broken off goes on where it was, with the same sources. Without --model-url a noisy oracle plays,
    the same in every run.
    """
    from rich.console import Console

    from pegboard.apps.cli import output
    from pegboard_bench.page import write_page
    from pegboard_bench.whole_tasks import methods as ways
    from pegboard_bench.whole_tasks import run, summary
    from pegboard_bench.whole_tasks.model import NAME
    from pegboard_bench.whole_tasks.rates import published, rates

    _known([of_set], list(NAMES), "set")
    _known(methods or [], ways.METHODS, "way")
    _known(boards or [], run.BOARDS, "board")
    _known([like], list(rates()), "published model")
    whole = not (methods or boards or most or model_url) and like == "mean"
    fastmcp = clients / "fastmcp" / "bin" / "python"
    with _set(of_set, servers) as played:
        plan = run.Plan(
            methods=[name for name in ways.METHODS if name in (methods or ways.METHODS)],
            boards=boards or run.BOARDS,
            played=played,
            kept=kept / _of(of_set, model if model_url else like),
            seeds=range(seeds),
            most=most,
            like=like,
            url=model_url,
            name=model if model_url else NAME,
            fastmcp=fastmcp if fastmcp.exists() else None,
        )
        plays, tools = asyncio.run(run.run(plan))
    figures = summary.figures(plays)
    said = {
        "tasks": len(next(iter(next(iter(plays.values())).values()))[0]),
        "seeds": seeds,
        "tools": tools,
        "model": model if model_url else f"a noisy oracle with the errors of {like}",
        "rates": {}
        if model_url
        else {name: getattr(plan.rates, name) for name in ("right", "less", "search", "named")},
    }
    name, made_by = NAMES[of_set]
    if of_set == "progressive":
        said["published"] = published()
    path = results.write(
        name if whole else f"{name}-part",
        command=made_by if whole else "pegboard bench tasks",
        seed=summary.SEED,
        figures=figures,
        tables=said | summary.tables(plays),
        folder=out,
    )
    if page is not None:
        write_page(page, out)
    if as_json:
        output.print_json({"written": str(path), "figures": figures})
        return
    for board in plays:
        Console(width=None if sys.stdout.isatty() else 120).print(_shown(figures, board, plays[board]))
    Console(stderr=True).print(f"Written to {path}")


def _known(wanted: Sequence[str], there: Sequence[str], what: str) -> None:
    if unknown := [name for name in wanted if name not in there]:
        raise ConfigError(f"No {what} {unknown[0]!r} is there.", remedy=f"Use one of {', '.join(there)}.")


@contextmanager
def _set(name: str, servers: Path) -> Iterator[TaskSet]:
    """The tasks of this name, with their servers in a folder."""
    from pegboard_bench.whole_tasks import progressive
    from pegboard_bench.whole_tasks.play import SYSTEM
    from pegboard_bench.whole_tasks.task import tasks as own
    from pegboard_bench.whole_tasks.task_set import TaskSet
    from pegboard_bench.whole_tasks.toolbox import specs

    if name == "progressive":
        with progressive.running(servers) as found:
            yield found
    else:
        yield TaskSet(tasks=own, servers=partial(specs, servers), system=SYSTEM)


def _of(name: str, model: str) -> str:
    """A folder for what these sources play of this set with this model."""
    sources = sorted(Path(str(files("pegboard_bench.whole_tasks"))).glob("*.*"))
    played = [path for path in sources if path.stem not in ("page", "progressive_page", "summary", "bills", "command")]
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in played if path.is_file()))
    for source in sorted(Path(pegboard.__file__).parent.rglob("*.py")):
        digest.update(source.read_bytes())
    digest.update(f"{name} {model}".encode())
    return digest.hexdigest()[:16]


def _shown(figures: Mapping[str, float], board: str, methods: Mapping[str, Any]) -> Table:
    from rich.table import Table

    table = Table(title=board, title_justify="left")
    for column in ("way", "success", "minus oracle", "tokens", "requests"):
        table.add_column(column, justify="left" if column == "way" else "right")
    for name in methods:
        minus = figures.get(f"success_minus_oracle/{name}/{board}", 0.0)
        shown = (f"{figures[f'success/{name}/{board}']:.1%}", f"{minus:+.1%}")
        of = (f"{figures[f'tokens/{name}/{board}']:,.0f}", f"{figures[f'requests/{name}/{board}']:.1f}")
        table.add_row(name, *shown, *of)
    return table
