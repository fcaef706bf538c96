"""`make bench-programs` writes `bench/results/programs.json`: tasks of one to eight calls over real servers, with
single calls and with a program, on boards of 10, 100 and 800 tools, and what the break-even rule says of each."""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import fmean, median
from typing import Annotated, Any, Literal

import typer

from pegboard.programs.break_even import AGAIN, LEAST_TOOLS, MARGIN, OUTPUT, READ, WRITTEN, offer
from pegboard.settings.program_settings import ProgramSettings
from pegboard_bench import results
from pegboard_bench.page import write_page
from pegboard_bench.programs import world as worlds
from pegboard_bench.programs.health import AT_ONCE, HOSTILE, longest_waits
from pegboard_bench.programs.runs import BOARDS, LARGEST, Cell, boards, counted, made
from pegboard_bench.programs.tasks import FITTED, NUMBERS, tasks

SEED = 7
AROUND = 600.0
"""Tokens of a task, and of a search, which a program that is written again reads again."""


async def measured(folder: Path, demo: Path) -> list[Cell]:
    """Every task on every board."""
    place = folder / "world"
    place.mkdir()
    world = worlds.make(place, SEED)
    cells = []
    async with boards(world, demo, folder / "cache") as there:
        for task in tasks(world):
            of = await made(there[LARGEST], task)
            cells += [await counted(name, board, task, of) for name, board in there.items()]
            _say(f"{task.name}: {of.right}")
    return cells


def paid(cell: Cell, way: str = "single") -> bool:
    """Whether the program cost so much less than the calls, with the share of programs that are written twice."""
    program = cell.ways["program"].bill
    step = cell.program_tokens + cell.printed_tokens
    again = OUTPUT * cell.program_tokens + WRITTEN * step + READ * (cell.listed + AROUND)
    return program + AGAIN * again <= MARGIN * cell.ways[way].bill


def said(cell: Cell) -> bool:
    """What the rule says, where the settings say what a task needs."""
    told = ProgramSettings(mode="auto", expected_calls=len(cell.task.steps), expected_tokens=cell.result_tokens)
    tools = BOARDS[cell.board]
    return offer(told, tools=tools, listed=cell.listed, small=False, searches=tools >= LEAST_TOOLS).offered


def said_unasked(cell: Cell) -> bool:
    """The same where they say nothing of calls, so that there are none at ten tools."""
    return said(cell) and BOARDS[cell.board] >= LEAST_TOOLS


def ratio(cells: Iterable[Cell], of: str, way: str = "single") -> float:
    """The program's tokens or bill over those of calls, as sums."""
    there = list(cells)
    program, calls = (float(sum(getattr(each.ways[name], of) for each in there)) for name in ("program", way))
    return program / calls


def figures_of(cells: Sequence[Cell]) -> dict[str, float]:
    several = [each for each in cells if len(each.task.steps) > 1]
    shown = [each for each in cells if each.task.family not in FITTED]
    found: dict[str, float] = {"tasks": len({each.task.name for each in cells}), "cells": len(cells)}
    for way in ("single", "parallel", "program"):
        found[f"success/{way}"] = fmean(each.ways[way].right for each in cells)
    for way in ("single", "parallel"):
        for of in ("tokens", "bill"):
            found[f"{of}_over_{way}/several"] = ratio(several, of, way)
            for number in NUMBERS:
                found[f"{of}_over_{way}/calls-{number}"] = ratio(
                    [each for each in cells if len(each.task.steps) == number], of, way
                )
            for size in worlds.SIZES:
                for name in BOARDS:
                    part = [each for each in several if each.task.size == size and each.board == name]
                    found[f"{of}_over_{way}/{size}/{name}"] = ratio(part, of, way)
    for of in ("tokens", "bill"):
        found[f"{of}_over_single/median"] = median(
            getattr(each.ways["program"], of) / getattr(each.ways["single"], of) for each in several
        )
    for name in BOARDS:
        there = [each for each in shown if each.board == name]
        found[f"rule_right/{name}"] = fmean(said(each) == paid(each) for each in there)
        found[f"pays/{name}"] = fmean(paid(each) for each in there)
    large = [each for each in shown if BOARDS[each.board] >= LEAST_TOOLS]
    found["rule_right/fitted"] = fmean(said(each) == paid(each) for each in cells if each.task.family in FITTED)
    found["rule_right/cost"] = fmean(said(each) == paid(each) for each in shown)
    found["rule_right/from-100"] = fmean(said(each) == paid(each) for each in large)
    found["rule_right/shipped"] = fmean(said_unasked(each) == paid(each) for each in shown)
    found["rule_right/shipped-parallel"] = fmean(said_unasked(each) == paid(each, "parallel") for each in shown)
    found["search_found"] = fmean(each.found for each in cells)
    for number in NUMBERS:
        part = [each for each in cells if len(each.task.steps) == number]
        for way in ("single", "program"):
            found[f"seconds/{way}/calls-{number}"] = median(each.ways[way].seconds for each in part)
    return found


def fitted(cells: Sequence[Cell]) -> dict[str, float]:
    """The constants of the rule, as means over the families that it is fitted on."""
    part = [each for each in cells if each.task.family in FITTED]
    return {
        "fit/call": fmean(each.call_tokens for each in part),
        "fit/program": fmean(each.program_tokens for each in part),
        "fit/printed": fmean(each.printed_tokens for each in part),
        "fit/looks": fmean(bool(each.task.look) for each in part),
    }


def rows(cells: Sequence[Cell]) -> list[dict[str, Any]]:
    return [
        {
            "task": each.task.name,
            "board": each.board,
            "result_tokens": round(each.result_tokens),
            "pays": paid(each),
            "rule": said(each),
            **{
                way: [of.tokens, round(of.bill), of.requests, of.right, round(of.seconds, 2)]
                for way, of in each.ways.items()
            },
        }
        for each in cells
    ]


def main(
    demo: Annotated[Path, typer.Option(help="Folder of the installed servers.")] = Path(".demo"),
    out: Annotated[Path, typer.Option(help="Folder of results files.")] = Path("bench/results"),
    part: Annotated[Literal["all", "tasks", "hostile"], typer.Option(help="One part alone.")] = "all",
    page: Annotated[Path | None, typer.Option(help="The page of all benchmarks, to be written again.")] = None,
) -> None:
    """Programs beside single calls, over real servers."""
    path = out / "programs.json"
    with tempfile.TemporaryDirectory(prefix="pegboard-programs-") as folder:
        if part != "hostile":
            cells = asyncio.run(measured(Path(folder), demo.absolute()))
            figures, tables = (
                figures_of(cells) | fitted(cells) | {"load/tasks": os.getloadavg()[0]},
                {"cells": rows(cells)},
            )
            results.write(
                "programs", command="make bench-programs", seed=SEED, figures=figures, tables=tables, folder=out
            )
        if part != "tasks":
            waits = asyncio.run(longest_waits(Path(folder) / "health", demo.absolute()))
            named = {f"healthz_longest_s/{name}": of for name, of in waits.items()} | {
                "load/hostile": os.getloadavg()[0]
            }
            results.extend(path, "hostile", figures=named, table={"programs": dict(HOSTILE), "at_once": AT_ONCE})
    _say(f"Written to {path}")
    if page is not None:
        write_page(page, out)


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)  # noqa: T201


if __name__ == "__main__":
    typer.run(main)
