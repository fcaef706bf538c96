"""The paper's comparison in a world with the facts of LiveMCPBench's public traces, with its own measure of cost.

    python -m pegboard_bench.simulate.calibrated    # puts the part `calibrated` into bench/results/simulate.json

In the traces, 109 of 531 calls failed: 10% of those of tools that the labels name, 28% of the others. The first, second
and third tool of an offer were called 87, 50 and 39 times. Prices and latencies are those of the frozen worlds.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from pegboard.compose import default_parts
from pegboard.evaluation.progress_bar import bar
from pegboard.retrieval import CachedEncoder, OnnxEncoder
from pegboard.settings import load_settings
from pegboard.stores import SqliteEmbeddings
from pegboard.stores.sqlite.backend import EMBEDDINGS_FILE
from pegboard_bench import results
from pegboard_bench.page import write_page
from pegboard_bench.simulate import inputs
from pegboard_bench.simulate.calls import Calls, Chance
from pegboard_bench.simulate.chooser import Policy, Setting, play
from pegboard_bench.simulate.policies import BySimilarity, Ehrr, Known
from pegboard_bench.simulate.run import Asked, known_of
from pegboard_bench.simulate.spread import Resampled, change, interval
from pegboard_bench.simulate.tasks import SUBTASK, Task, tasks
from pegboard_bench.simulate.world import SEEDS, Numbers, World, draw

SEED = 20261124
FAILS_LABELLED, FAILS_OTHER = 0.10, 0.28
CALLED_BY_PLACE = (87, 50, 39)
ROUTES = "routes"
WORLDS = ("calibrated", "frozen")
TEXTS = ("task_text", "sub_task_text")
ROUTERS = ("rag_mcp", "ehrr")
MEASURES = ("success", "whole_task", "cost_usd", "offered_usd")

Played = Mapping[tuple[str, str], Mapping[str, Numbers]]
"""By router and text, of each measure an array of shape (worlds, tasks of users)."""


def by_place() -> tuple[float, ...]:
    """What makes an agent to whom all tools look alike call them as often as the traces have it."""
    return tuple(math.log(count / CALLED_BY_PLACE[0]) for count in CALLED_BY_PLACE)


def of_task(world: World, task: Task) -> World:
    """The world as it is while this task is done: no server crashes, and calls fail as those of the traces."""
    labelled = np.zeros(len(world.tools), np.bool_)
    labelled[list(frozenset[int]().union(*task.goals))] = True
    success = np.where(labelled, 1 - FAILS_LABELLED, 1 - FAILS_OTHER)
    return replace(world, success=success, crash=np.zeros_like(world.crash))


def routers(known: Known) -> dict[tuple[str, str], Policy]:
    """Both routers, each asked with the text of the user's whole task and with that of the step."""
    found: dict[tuple[str, str], Policy] = {}
    for text, relevance in zip(TEXTS, (known.original, known.relevance), strict=True):
        of = replace(known, relevance=relevance)
        found["rag_mcp", text] = BySimilarity(of, tools=relevance.tools, servers=relevance.servers, cut=True)
        found["ehrr", text] = Ehrr(of)
    return found


def played(asked: Asked, seeds: Sequence[int], kind: str, progress: Callable[[int, int], None]) -> Played:
    """All steps in the worlds of these seeds, `calibrated` or as they were frozen, and what became of whole tasks."""
    names = [query.id.partition("#")[0] for query in asked.queries]
    places = np.unique(names, return_inverse=True)[1]
    found = {
        pair: {name: np.zeros((len(seeds), int(places.max()) + 1)) for name in (*MEASURES, "steps")}
        for pair in product(ROUTERS, TEXTS)
    }
    for turn, seed in enumerate(seeds):
        world = draw(asked.tools, seed)
        known = known_of(asked, world)
        made = routers(known)
        wanted = tasks(asked.queries, asked.tokens, asked.canonical, world)
        for each in found.values():
            each["whole_task"][turn] = 1.0
        for number in np.random.default_rng(seed).permutation(len(wanted)):
            task, place = wanted[number], places[number]
            here = of_task(world, task) if kind == WORLDS[0] else world
            setting = Setting(
                limits=SUBTASK,
                tokens=known.tokens,
                price=known.prices,
                seed=seed,
                moment=int(number),
                by_place=by_place() if kind == WORLDS[0] else (),
            )
            chance = Chance.of(here, seed, int(number))
            for pair, policy in made.items():
                episode = play(task, policy, Calls(here, chance), setting)
                of = found[pair]
                of["success"][turn, place] += episode.success
                of["whole_task"][turn, place] *= episode.success
                of["cost_usd"][turn, place] += episode.paid
                of["offered_usd"][turn, place] += episode.offered
                of["steps"][turn, place] += 1
        progress(turn + 1, len(seeds))
    return found


def summed(found: Played, kind: str) -> tuple[dict[str, float], dict[str, list[float]]]:
    """Figures `MEASURE/ROUTER/TEXT/WORLD`, and what EHRR differs by, with intervals, by measure and by the texts."""
    worlds, users = next(iter(found.values()))["steps"].shape
    resampled = Resampled(worlds, users, SEED)

    def ratio(pair: tuple[str, str], name: str) -> Numbers:
        of = found[pair]
        return resampled.ratios(of[name], of["steps"] if name == "success" else np.ones_like(of["steps"]))

    figures = {
        f"{name}/{router}/{text}/{kind}": float(ratio((router, text), name)[0])
        for (router, text), name in product(found, MEASURES)
    }
    compared = {"same_step": (TEXTS[1], TEXTS[1]), "same_task": (TEXTS[0], TEXTS[0]), "as_the_paper": TEXTS[::-1]}
    table = {}
    for (case, (ours, theirs)), name in product(compared.items(), MEASURES):
        found_change = interval(change(ratio(("ehrr", ours), name), ratio(("rag_mcp", theirs), name)))
        table[f"{name}/{case}/{kind}"] = [found_change.mean, found_change.low, found_change.high]
    return figures, table


async def _asked(data: Path, cache: Path) -> Asked:
    settings, embeddings = load_settings(), SqliteEmbeddings(cache / EMBEDDINGS_FILE)
    parts = default_parts(settings, encoder=CachedEncoder(OnnxEncoder(), embeddings), embeddings=embeddings)
    return (await inputs.read(data, settings, parts))[ROUTES]


def main(
    data: Annotated[Path, typer.Option(envvar="PEGBOARD_DATA", help="Folder of the tool-retrieval sets.")],
    out: Annotated[Path, typer.Option(help="Folder that has simulate.json.")] = Path("bench/results"),
    page: Annotated[Path | None, typer.Option(help="Write the results to this page too.")] = None,
    cache: Annotated[Path, typer.Option(help="Folder for embeddings.")] = Path(".demo/embeddings"),
    worlds: Annotated[int, typer.Option(min=2, help="How many worlds.")] = len(SEEDS),
) -> None:
    """Play the two by two of routers and texts, in the calibrated worlds and in those as they were frozen."""
    cache.mkdir(parents=True, exist_ok=True)
    asked = asyncio.run(_asked(data, cache))
    figures: dict[str, float] = {}
    changes: dict[str, list[float]] = {}
    for kind in WORLDS:
        with bar(f"{kind} worlds") as progress:
            more, table = summed(played(asked, SEEDS[:worlds], kind, progress), kind)
        figures, changes = figures | more, changes | table
    of = {"changes": changes, "worlds": worlds, "steps": len(asked.queries)}
    named = {f"two_by_two/{name}": value for name, value in figures.items()}
    results.extend(out / "simulate.json", "calibrated", figures=named, table=of)
    if page is not None:
        write_page(page, out)


if __name__ == "__main__":
    typer.run(main)
