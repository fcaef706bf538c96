"""What a server costs behind the gateway: memory beside the server itself, and the start of a fleet that is known.

python -m pegboard_bench.fleet.footprint    # as a part of `make bench-fleet`
"""

from __future__ import annotations

import asyncio
import json
import logging
import tempfile
from collections.abc import Mapping
from pathlib import Path
from statistics import median
from typing import Annotated

import typer
from rich.console import Console

from pegboard.settings import load_settings
from pegboard.settings.server_spec import ServerSpec
from pegboard_bench import results
from pegboard_bench.fleet.gateways import PATIENT, called, gateway, settled
from pegboard_bench.fleet.startup import MEGABYTE, QUERY, alone, first_search, met, own_gateway
from pegboard_bench.page import write_page

OURS = b"pegboard"
"""In the command of every process of the gateway; a server's own process is a child of one of them."""
REST_SECONDS = 3.0
"""After the first search: what embedding took is given back meanwhile."""
STDERR = Console(stderr=True)


async def memory(config: Path, state: Path) -> float:
    """MB of the gateway and its processes beside the servers, each page shared among those who have it (PSS)."""
    async with gateway(config, state, start_wait=PATIENT, connect_timeout=PATIENT) as client:
        await settled(client)
        await called(client, "search_tools", {"query": QUERY})
        await asyncio.sleep(REST_SECONDS)
        main = own_gateway()
        return sum(proportional(pid) for pid in (main, *helpers(main)))


def helpers(pid: int) -> list[int]:
    """The processes of ours that a gateway started. Linux."""
    children = [
        child for task in Path(f"/proc/{pid}/task").iterdir() for child in (task / "children").read_text().split()
    ]
    return [int(child) for child in children if OURS in Path(f"/proc/{child}/cmdline").read_bytes()]


def proportional(pid: int) -> float:
    """MB of a process (PSS)."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text("utf-8").splitlines()
    return next(float(line.split()[1]) for line in lines if line.startswith("Pss:")) / MEGABYTE


def of_one(config: Path, folder: Path) -> Path:
    """A configuration with the first of these servers alone."""
    servers = json.loads(config.read_text("utf-8"))["mcpServers"]
    name = next(iter(servers))
    path = folder / "one.json"
    path.write_text(json.dumps({"mcpServers": {name: servers[name]}}), "utf-8")
    return path


async def measure(specs: Mapping[str, ServerSpec], config: Path, number: int) -> dict[str, list[float]]:
    """One value a round of each: seconds of the slowest server alone and of the first search of a known fleet that
    finds something, MB with one server and with all."""
    found: dict[str, list[float]] = {"slowest_alone": [], "known": [], "one": [], "all": []}
    times = {name: await alone(spec) for name, spec in specs.items()}
    slowest = specs[max(times, key=lambda name: times[name])]
    with tempfile.TemporaryDirectory(prefix="pegboard-bench-") as place:
        folder = Path(place)
        one, known, other = of_one(config, folder), folder / "known", folder / "other"
        await met(config, known)
        for _ in range(number):
            found["slowest_alone"].append(await alone(slowest))
            found["known"].append((await first_search(config, known)).seconds)
            found["one"].append(await memory(one, other))
            found["all"].append(await memory(config, known))
            STDERR.print({kind: round(values[-1], 2) for kind, values in found.items()})
    return found


def figures(found: Mapping[str, list[float]], servers: int) -> dict[str, float]:
    """Medians over the rounds, of differences within a round."""
    per_server = [(every - one) / (servers - 1) for every, one in zip(found["all"], found["one"], strict=True)]
    over = [known - slowest for known, slowest in zip(found["known"], found["slowest_alone"], strict=True)]
    return {"memory_mb_per_server": median(per_server), "startup_s/known_over_slowest": median(over)}


def main(
    config: Annotated[Path, typer.Option(help="The fleet; written by scripts/install_fleet.py.")] = Path(
        ".demo/fleet.json"
    ),
    out: Annotated[Path, typer.Option(help="Folder of fleet.json.")] = Path("bench/results"),
    page: Annotated[Path | None, typer.Option(help="Write the results as a section of this page too.")] = None,
    number: Annotated[int, typer.Option("--rounds", help="Rounds.")] = 3,
) -> None:
    """Measure memory for each server, and the start of a known fleet; the rest of fleet.json stays as it is."""
    logging.getLogger("mcp").setLevel(logging.CRITICAL)  # some servers print to stdout what is no message
    specs = load_settings([config]).enabled_servers
    if len(specs) < 2:
        STDERR.print(f"{config} has {len(specs)} servers; at least 2 are needed. See scripts/install_fleet.py.")
        raise typer.Exit(1)
    found = asyncio.run(measure(specs, config, number))
    rounded = {kind: [round(value, 3) for value in values] for kind, values in found.items()}
    results.extend(
        out / "fleet.json",
        "footprint",
        figures=figures(found, len(specs)),
        table={"servers": len(specs), "rounds": rounded},
    )
    if page is not None:
        write_page(page, out)


if __name__ == "__main__":
    typer.run(main)
