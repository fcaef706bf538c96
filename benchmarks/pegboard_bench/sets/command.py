"""`pegboard-bench sets`: build the sets, list them, check them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from pegboard.apps.cli.options import Json, Verbose, examples
from pegboard.errors import ConfigError

FAILED = 1
FETCH_EXAMPLES = examples(
    "Every set, from its public source; what is there already is not built again",
    "pegboard-bench sets fetch --to sets",
    "Two sets, from clones on this machine: clones/OWNER/NAME",
    "pegboard-bench sets fetch mcpverse metatool --mirror clones",
)
LIST_EXAMPLES = examples("What there is, under which licence, and what is built", "pegboard-bench sets list --to sets")
CHECK_EXAMPLES = examples(
    "Are these the rows that the published figures were measured on?", "pegboard-bench sets check --to sets"
)

To = Annotated[
    Path | None,
    typer.Option(
        "--to", metavar="DIR", envvar="PEGBOARD_DATA", help="Folder of the sets; default: in the cache folder."
    ),
]
Names = Annotated[list[str] | None, typer.Argument(metavar="[NAME]...", help="Only these sets.")]

app = typer.Typer(rich_markup_mode="markdown", add_completion=False, no_args_is_help=True)


@app.callback(epilog=FETCH_EXAMPLES)
def sets() -> None:
    """Build the labelled sets of the benchmarks from their public sources."""


@app.command("fetch", epilog=FETCH_EXAMPLES)
def fetch(
    names: Names = None,
    to: To = None,
    mirror: Annotated[
        Path | None, typer.Option("--mirror", metavar="DIR", help="Local clones, OWNER/NAME, instead of the network.")
    ] = None,
    cache: Annotated[
        Path | None,
        typer.Option("--cache", metavar="DIR", help="Folder for what git fetched; default: the cache folder."),
    ] = None,
    as_json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Build sets from git repositories at pinned commits, each with a SOURCE.md that says what was read and left out.

    Only the pinned commit of a repository is fetched, once; a set that is there with the right content is kept. The
    exit code is 1 if a source cannot be had or a set has other rows than the published figures were measured on.
    """
    from pegboard.apps.cli import output
    from pegboard_bench.sets import folder
    from pegboard_bench.sets.origins import Origins
    from pegboard_bench.sets.recipes import named

    recipes = named(names or [])
    if mirror is not None and not mirror.is_dir():
        raise ConfigError(f"No folder {str(mirror)!r} is there.", remedy="Name a folder of clones with --mirror.")
    place = _place(to)
    origins = Origins(cache or _cache() / "fetched", mirror, tell=_tell)
    expected = folder.expected()
    done: dict[str, dict[str, Any]] = {}
    console = output.stdout()
    for number, recipe in enumerate(recipes, 1):
        wanted = expected.get(recipe.name, {})
        if wanted and folder.check(place / recipe.name, wanted).whole:
            done[recipe.name] = {"state": "kept", "wrong": []}
        else:
            done[recipe.name] = _built(recipe, origins, place, wanted)
        if not as_json:
            said = "; ".join([done[recipe.name]["state"], *done[recipe.name]["wrong"]])
            console.print(f"{number}/{len(recipes)} {recipe.name}: {said}", markup=False)
    if as_json:
        output.print_json({"folder": str(place), "sets": done})
    else:
        console.print(f"Sets are in {place}: set PEGBOARD_DATA to it.", markup=False)
    if any(each["wrong"] for each in done.values()):
        raise typer.Exit(FAILED)


@app.command("list", epilog=LIST_EXAMPLES)
def list_sets(to: To = None, as_json: Json = False, verbose: Verbose = False) -> None:
    """Show every set: rows, licence, whether it may be passed on, and whether it is built."""
    from pegboard.apps.cli import output
    from pegboard_bench.sets import folder
    from pegboard_bench.sets.recipe import CATALOG, QUERIES
    from pegboard_bench.sets.recipes import RECIPES

    expected = folder.expected()
    rows: list[dict[str, Any]] = []
    for recipe in RECIPES:
        wanted = expected.get(recipe.name, {})
        path = _place(to) / recipe.name
        size = sum(file.stat().st_size for file in path.iterdir()) if path.is_dir() else 0
        rows.append(
            {
                "name": recipe.name,
                "title": recipe.title,
                "tools": wanted[CATALOG].rows if CATALOG in wanted else None,
                "queries": wanted[QUERIES].rows if QUERIES in wanted else None,
                "licence": recipe.licence,
                "redistributable": recipe.redistributable,
                "kib": round(size / 1024),
                "state": _state(folder.check(path, wanted)),
            }
        )
    if as_json:
        output.print_json({"folder": str(_place(to)), "sets": rows})
        return
    table = output.table(f"Sets in {_place(to)}", "set", ">tools", ">queries", "licence", "to pass on", ">KiB", "state")
    for row in rows:
        numbers = (f"{row[each]:,}" if row[each] is not None else "" for each in ("tools", "queries"))
        passed_on = "yes" if row["redistributable"] else "no"
        table.add_row(*output.cells(row["name"], *numbers, row["licence"], passed_on, row["kib"], row["state"]))
    output.stdout().print(table)


@app.command("check", epilog=CHECK_EXAMPLES)
def check(names: Names = None, to: To = None, as_json: Json = False, verbose: Verbose = False) -> None:
    """Compare the content of built sets with the rows that the published figures were measured on.

    Exit code 1 if a set is missing or differs.
    """
    from pegboard.apps.cli import output
    from pegboard_bench.sets import folder
    from pegboard_bench.sets.recipes import named

    expected = folder.expected()
    states = {
        recipe.name: folder.check(_place(to) / recipe.name, expected.get(recipe.name, {}))
        for recipe in named(names or [])
    }
    if as_json:
        found = {name: {"state": _state(state), "wrong": list(state.wrong)} for name, state in states.items()}
        output.print_json({"folder": str(_place(to)), "sets": found})
    else:
        for name, state in states.items():
            said = _state(state) if not state.built else "; ".join(state.wrong) or "the same rows"
            output.stdout().print(f"{name}: {said}", markup=False)
    if not all(state.whole for state in states.values()):
        raise typer.Exit(FAILED)


def _built(recipe: Any, origins: Any, place: Path, wanted: Any) -> dict[str, Any]:
    """Builds a set and says what became of it: a source that is gone does not stop the others."""
    from pegboard_bench.sets import folder

    try:
        path = folder.build(recipe, origins, place)
    except ConfigError as error:
        return {"state": "not built", "wrong": [str(error)]}
    return {"state": "built", "wrong": list(folder.check(path, wanted).wrong)}


def _tell(line: str) -> None:
    sys.stderr.write(f"{line}\n")


def _state(state: Any) -> str:
    if not state.built:
        return "not built"
    return "differs" if state.wrong else "built"


def _place(to: Path | None) -> Path:
    return to or _cache() / "built"


def _cache() -> Path:
    from pegboard.settings import load_settings

    return load_settings().cache_dir / "sets"
