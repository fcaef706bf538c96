"""`python -m pegboard_bench.llm` writes `bench/results/llm.json`: what the LLM gateway costs, beside LiteLLM."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Annotated, Any

import typer
from rich.console import Console

from pegboard.evaluation.progress_bar import bar
from pegboard.retrieval import OnnxEncoder
from pegboard.retrieval.intents import clauses
from pegboard_bench import results
from pegboard_bench.llm.contenders import NEW_ASK, Contender, contenders
from pegboard_bench.llm.load import Load, load
from pegboard_bench.page import write_page

CLIENTS = (1, 16)
ENCODED = 40
SEED = 0
"""Nothing here is drawn by chance."""
OURS = ("passthrough", "filter_repeat", "filter_new")
STDERR = Console(stderr=True)

Runs = dict[tuple[str, int], list[Load]]


def main(
    litellm: Annotated[Path, typer.Option(help="LiteLLM's program; installed by scripts/install_litellm.py.")] = Path(
        ".demo/litellm/bin/litellm"
    ),
    out: Annotated[Path, typer.Option(help="Folder for llm.json.")] = Path("bench/results"),
    page: Annotated[Path | None, typer.Option(help="Write the results as a section of this page too.")] = None,
    rounds: Annotated[int, typer.Option(help="Rounds in which all take turns.")] = 5,
    seconds: Annotated[int, typer.Option(help="Seconds of load each time.")] = 4,
) -> None:
    """Measure the latency that a hop adds, and requests a second: direct, passing, filtering, and LiteLLM's proxy."""
    program = litellm.absolute() if litellm.exists() else None
    if program is None:
        STDERR.print(f"Not measured: LiteLLM. There is no {litellm}; scripts/install_litellm.py installs it.")
    with contenders(program) as given:
        runs, memory, encoder = _measured(given, rounds, seconds)
    figures = _figures(runs, memory) | {"encoder_p50_ms": median(encoder)}
    tables = _tables(runs, memory, rounds, seconds)
    if program is not None:
        tables["litellm"] = _version(program)
    path = results.write("llm", command="make bench-llm", seed=SEED, figures=figures, tables=tables, folder=out)
    for name, value in figures.items():
        sys.stdout.write(f"{name:40} {value:10.3f}\n")
    STDERR.print(f"Written to {path}")
    if page is not None:
        write_page(page, out)
        STDERR.print(f"Written to {page}")


def _measured(given: Sequence[Contender], rounds: int, seconds: int) -> tuple[Runs, dict[str, float], Sequence[float]]:
    """All loads by contender and number of clients, in an order that rotates; the most memory each had, MB; and what
    the encoder alone takes for such a query, ms, once a round."""
    encoder, taken = OnnxEncoder(threads=1), list[float]()
    runs: Runs = {(each.name, clients): [] for each in given for clients in CLIENTS}
    memory = {each.name: 0.0 for each in given}
    with bar("load") as progress:
        done = 0
        for number in range(rounds):
            turn = number % len(given)
            for each in (*given[turn:], *given[:turn]):
                for clients in CLIENTS:
                    run = f"{number}-{clients}"
                    runs[each.name, clients].append(
                        load(each.url, each.body, clients=clients, seconds=seconds, run=run)
                    )
                    done += 1
                    progress(done, rounds * len(runs))
                memory[each.name] = max(memory[each.name], each.rss_mb)
            taken.append(_encoding(encoder, number))
    return runs, memory, taken


def _encoding(encoder: OnnxEncoder, run: int) -> float:
    """Milliseconds, the median of some new queries, in their clauses as the router asks for them."""
    taken = []
    for number in range(ENCODED):
        text = NEW_ASK.replace("@ASK@", f"{run}-{number}")
        started = time.perf_counter()
        encoder.encode_clauses_now(text, clauses(text))
        taken.append((time.perf_counter() - started) * 1000)
    return median(taken)


def _figures(runs: Runs, memory: Mapping[str, float]) -> dict[str, float]:
    """Medians over the rounds; a difference or ratio is that of two loads of one round."""
    figures = {f"added_p50_ms/{name}": _added(runs, name) for name in OURS}
    figures["rss_mb"] = max(memory[name] for name in OURS)
    figures["errors"] = float(sum(each.errors for name in OURS for clients in CLIENTS for each in runs[name, clients]))
    if ("litellm", 1) in runs:
        figures["litellm_added_p50_ms"] = _added(runs, "litellm")
        figures["litellm_rss_mb"] = memory["litellm"]
        figures |= {f"rps_over_litellm/{name}": _over(runs, name, "litellm") for name in OURS}
    return figures


def _added(runs: Runs, name: str) -> float:
    pairs = zip(runs[name, 1], runs["direct", 1], strict=True)
    return median(each.p50_ms - direct.p50_ms for each, direct in pairs)


def _over(runs: Runs, name: str, other: str) -> float:
    pairs = zip(runs[name, CLIENTS[-1]], runs[other, CLIENTS[-1]], strict=True)
    return median(each.per_second / max(beside.per_second, 1e-9) for each, beside in pairs)


def _tables(runs: Runs, memory: Mapping[str, float], rounds: int, seconds: int) -> dict[str, Any]:
    loads = {
        f"{name}/{clients}": {
            "p50_ms": median(each.p50_ms for each in of),
            "p95_ms": median(each.p95_ms for each in of),
            "p99_ms": median(each.p99_ms for each in of),
            "rps": median(each.per_second for each in of),
            "rps_least": min(each.per_second for each in of),
            "rps_most": max(each.per_second for each in of),
            "errors": sum(each.errors for each in of),
        }
        for (name, clients), of in runs.items()
    }
    return {"loads": loads, "rss_mb": dict(memory), "rounds": rounds, "seconds": seconds}


def _version(program: Path) -> str:
    code = "from importlib.metadata import version; print(version('litellm'))"
    said = subprocess.run([str(program.with_name("python")), "-c", code], capture_output=True, text=True, check=True)
    return said.stdout.strip()


if __name__ == "__main__":
    typer.run(main)
