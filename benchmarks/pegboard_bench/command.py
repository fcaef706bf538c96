"""`pegboard bench`: the tables of the papers, measured again."""

from __future__ import annotations

import asyncio
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pegboard.apps.cli.options import Configs, Json, Verbose, examples
from pegboard.errors import ConfigError
from pegboard_bench.sets.command import app as sets_app
from pegboard_bench.whole_tasks import command as whole_tasks

if TYPE_CHECKING:
    from typing import Any

    from pegboard.catalog import Catalog

EXAMPLES = examples(
    "What the methods cost and find, on what comes in the package, in less than a minute",
    "pegboard bench --quick",
    "Everything, on real sets too; what is done already is not done again",
    "PEGBOARD_DATA=sets pegboard bench --resume --out results",
    "Two methods on one testbed",
    "pegboard bench --set synthetic --method attention --method hybrid",
    "Every method on a labelled set of your own: a folder with tools.json and queries.jsonl",
    "pegboard bench --set ./mine --page mine.md",
    "What a model of your own does with the tools that each method sends it",
    "pegboard bench --quick --model-url http://127.0.0.1:8080/v1 --model qwen3",
)
RECORD_EXAMPLES = examples(
    "The definitions of the servers of my clients, to be counted elsewhere",
    "pegboard bench record --out tools.jsonl.gz",
)

OWN_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
"""Of a set of a user's own; results files are named after it."""

app = typer.Typer(rich_markup_mode="markdown", add_completion=False, invoke_without_command=True)
app.add_typer(sets_app, name="sets")
app.command("tasks", epilog=whole_tasks.EXAMPLES)(whole_tasks.tasks)


def main() -> None:
    """The entry point of `pegboard-bench`, which is `pegboard bench`."""
    from pegboard.apps.cli import app as program

    program(["bench", *sys.argv[1:]])


@app.callback(epilog=EXAMPLES)
def bench(
    context: typer.Context,
    quick: Annotated[bool, typer.Option("--quick", help="Few tasks, one seed, no labelled sets.")] = False,
    data: Annotated[
        Path | None, typer.Option(envvar="PEGBOARD_DATA", help="Folder of the sets, with real120 among them.")
    ] = None,
    sets: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME",
            help="Only this testbed, or this folder of --data; or the path of a labelled set of your own, by every "
            "method. More than once.",
        ),
    ] = None,
    methods: Annotated[
        list[str] | None, typer.Option("--method", metavar="NAME", help="Only this method. More than once.")
    ] = None,
    seeds: Annotated[int, typer.Option("--seeds", min=1, help="Draws of the tasks.")] = 3,
    parts: Annotated[
        list[str] | None,
        typer.Option(
            "--part",
            metavar="NAME",
            help="Only tokens, ablations, poisoning, failures, frontier, scaling, peers or model; "
            "tokens are always there unless it is the model alone.",
        ),
    ] = None,
    largest: Annotated[int, typer.Option("--largest", min=10, help="Tools of the largest made catalog.")] = 10_000,
    out: Annotated[Path, typer.Option("--out", help="Folder for the results file.")] = Path("bench/results"),
    resume: Annotated[bool, typer.Option("--resume", help="Keep what an earlier run of these sources did.")] = False,
    finished: Annotated[
        bool, typer.Option("--finished", help="Put together what an earlier run did, and do nothing more.")
    ] = False,
    page: Annotated[Path | None, typer.Option("--page", help="Write the results to this page too.")] = None,
    cache: Annotated[
        Path | None, typer.Option(help="Folder for embeddings and for what was done; default: the cache folder.")
    ] = None,
    untuned: Annotated[
        Path | None, typer.Option(help="MiniLM as published, from scripts/build_encoder.py, to be measured too.")
    ] = None,
    mpnet: Annotated[
        Path | None, typer.Option(help="MPNet, from scripts/build_mpnet.py, for the row of table 5 that has it.")
    ] = None,
    peers: Annotated[
        Path | None, typer.Option(help="Folder of scripts/install_peers.py, to measure those too.")
    ] = None,
    model_url: Annotated[
        str | None, typer.Option("--model-url", help="An OpenAI-compatible endpoint, to measure what a model calls.")
    ] = None,
    model: Annotated[str, typer.Option("--model", help="The model's name there.")] = "default",
    model_tasks: Annotated[
        int, typer.Option("--model-tasks", min=1, help="Single-step tasks of each testbed that it is asked for.")
    ] = 30,
    as_json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Measure the tools tax by every method: tokens of each turn, recall, context left, poisoned tools let through.

    Runs offline on a made testbed and on definitions that were recorded from public servers; with --data on real120 and
    labelled sets too. The same seed gives the same figures, timings aside.
    """
    if context.invoked_subcommand is not None:
        return
    from pegboard.apps.cli import output
    from pegboard_bench.results import read

    if sets and (own := _own_sets(sets, data)):
        if len(own) < len(sets):
            raise ConfigError("Own sets and others were named.", remedy="Measure them in two runs.")
        _run_own(own, out, page, as_json=as_json)
        return
    from pegboard_bench.tax import frontier, live, report, run
    from pegboard_bench.tax.boards import Place
    from pegboard_bench.tax.methods import NAME, available
    from pegboard_bench.tax.plan import MODEL, PARTS, Plan
    from pegboard_bench.tax.testbeds import there

    place = Place(data=data, cache=_folder(cache), untuned=untuned, mpnet=mpnet, peers=peers)
    plan = Plan.of(
        place, sets=sets or (), methods=methods or (), seeds=seeds, quick=quick, parts=parts or (), largest=largest
    )
    for name in sets or []:
        if not NAME.fullmatch(name):
            raise ConfigError(f"{name!r} is no name of a set.", remedy="Use lower-case letters, digits and _.")
    _check(sets or [], [*there(data), *frontier.sets(data, sets or ())], "set")
    _check(methods or [], list(available(place)), "method")
    _check(parts or [], [*PARTS, MODEL], "part")
    if quick and page is not None:
        raise ConfigError("A quick run writes no page.", remedy="Leave out --page, or --quick.")
    if page is not None and not plan.only_model and not plan.judged:
        raise ConfigError("The page needs the testbed synthetic or real120.", remedy="Name it with --set too.")
    if MODEL in (parts or ()) and model_url is None:
        raise ConfigError("No model to ask.", remedy="Name an OpenAI-compatible endpoint with --model-url.")
    if model_url is not None:
        if finished or MODEL not in plan.parts:
            raise ConfigError(
                "The model would not be asked.", remedy="Leave out --finished, and name --part model too."
            )
        live.planned(plan)
    written = []
    if not plan.only_model:
        written.append(run.run(plan, out=out, resume=resume, command="make bench", finished=finished, page=page))
    if model_url is not None:
        asked = run.run_model(
            plan, url=model_url, model=model, tasks=model_tasks, out=out, command="make bench-live", page=page
        )
        written.append(asked)
    found = [read(path) for path in written]
    if as_json:
        figures = {name: value for each in found for name, value in each["figures"].items()}
        output.print_json({"written": [str(path) for path in written], "figures": figures})
        return
    for path, each in zip(written, found, strict=True):
        report.show(each["tables"])
        output.stdout().print(f"Written to {path}", markup=False)


@app.command("record", epilog=RECORD_EXAMPLES)
def record(
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="Where they go; .gz is compressed.")],
    config: Configs = None,
    as_json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Write the tool definitions of live servers to a file that every command reads with --catalog."""
    from pegboard.apps.cli import output
    from pegboard.apps.cli.configs import given_or_usual
    from pegboard.apps.cli.tool_sources import load
    from pegboard_bench.tax import record as recording

    loaded = asyncio.run(load(given_or_usual(config or []), []))
    if not loaded.catalog.tools:
        raise ConfigError("No server answered.", remedy="`pegboard doctor` says why.")
    try:
        recording.write(loaded.catalog, out)
    except OSError as error:
        raise ConfigError(f"Cannot write {str(out)!r}: {error}.", remedy="Name another file with --out.") from error
    if as_json:
        output.print_json(_recorded(loaded.catalog, out) | loaded.payload())
        return
    console = output.stdout()
    for line in loaded.lines():
        console.print(output.plain(line))
    console.print(f"{len(loaded.catalog)} tools of {len(loaded.catalog.servers)} servers: {out}", markup=False)


def _own_sets(named: list[str], data: Path | None) -> list[Path]:
    """The folders among these names that are labelled sets, and no testbed or set of --data."""
    from pegboard.evaluation.datasets import is_set
    from pegboard_bench.tax import frontier
    from pegboard_bench.tax.testbeds import there

    known = {*there(data), *frontier.sets(data, named)}
    return [Path(name) for name in named if name not in known and is_set(Path(name))]


def _run_own(folders: list[Path], out: Path, page: Path | None, *, as_json: bool) -> None:
    from pegboard.apps.cli import output
    from pegboard.evaluation.datasets import read_set
    from pegboard.settings import load_settings
    from pegboard_bench import own_set
    from pegboard_bench.results import read

    if page is not None and len(folders) > 1:
        raise ConfigError("A page is for one set.", remedy="Name one --set.")
    written = []
    for folder in folders:
        dataset = read_set(folder)
        if not OWN_NAME.fullmatch(dataset.name):
            raise ConfigError(f"{dataset.name!r} is no name of a set.", remedy="Use letters, digits, '_', '.' and '-'.")
        command = f"pegboard bench --set {folder}"
        written.append(asyncio.run(own_set.run(dataset, load_settings(), out=out, command=command)))
    found = [read(path) for path in written]
    if page is not None:
        try:
            page.write_text(own_set.page(found[0]), "utf-8")
        except OSError as error:
            raise output.unwritable(page, str(error)) from error
    if as_json:
        output.print_json({"written": [str(path) for path in written], "figures": [each["figures"] for each in found]})
        return
    for path, each in zip(written, found, strict=True):
        own_set.show(each)
        output.stdout().print(f"Written to {path}", markup=False)


def _recorded(catalog: Catalog, out: Path) -> dict[str, Any]:
    return {"written": str(out), "servers": len(catalog.servers), "tools": len(catalog)}


def _folder(cache: Path | None) -> Path:
    from pegboard.settings import load_settings

    folder = cache or load_settings().cache_dir / "bench"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _check(wanted: list[str], there: list[str], what: str) -> None:
    """Raises ConfigError for a name that is not there."""
    unknown = [name for name in wanted if name not in there]
    if unknown:
        raise ConfigError(
            f"No {what} {unknown[0]!r} is there.",
            remedy=f"Use one of {', '.join(there) or 'none'}; some need --data, --untuned or --peers.",
        )
