"""`pegboard top`: the last minute of a gateway, in the terminal."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from pegboard.apps.cli.event_source import happened
from pegboard.apps.cli.options import Configs, Json, Verbose, examples
from pegboard.apps.cli.output import cells, plain, print_json, stdout, table
from pegboard.apps.cli.top_figures import WINDOW, TopFigures, TopWindow

EXAMPLES = examples(
    "The gateway of this configuration, live",
    "pegboard top",
    "One picture of it, and the same for a program",
    "pegboard top --once\npegboard top --once --json",
)
FRAME_SECONDS = 1.0
FIRST_SECONDS = 1.0
"""Seconds in which what has happened arrives, before one frame is printed."""
STYLES = {"ready": "green", "idle": "dim", "starting": "yellow", "unhealthy": "red", "signed_out": "red"}


def top(
    config: Configs = None,
    url: Annotated[
        str | None, typer.Option(metavar="URL", help="A gateway elsewhere; its token is in PEGBOARD_TOKEN.")
    ] = None,
    once: Annotated[bool, typer.Option("--once", help="Print one frame, and end.")] = False,
    as_json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Watch a gateway: requests a second, tokens billed and saved, the tools that are called, the health of servers.

    All figures are of the last minute. Reads the `pegboard serve` that runs with this configuration; without one, the
    activity that gateways keep with `[activity] keep = "store"`, which has no health of servers. Ends with Ctrl-C.
    """
    with suppress(KeyboardInterrupt):
        asyncio.run(_watch(config, url, once=once or as_json, as_json=as_json))


async def _watch(files: Sequence[Path] | None, url: str | None, *, once: bool, as_json: bool) -> None:
    window, ended, begun = TopWindow(), asyncio.Event(), asyncio.Event()

    async def take() -> None:
        try:
            async for batch in happened(files, url, since=time.time() - WINDOW):
                for said in batch:
                    window.take(said)
                begun.set()
        finally:
            ended.set()
            begun.set()

    taking = asyncio.create_task(take())
    try:
        if once:
            await begun.wait()  # finding the gateway takes its time
            await asyncio.wait([taking], timeout=FIRST_SECONDS)
            figures = window.figures(time.time())
            _raise(taking)
            if as_json:
                print_json(asdict(figures))
            else:
                stdout().print(frame(figures))
            return
        with Live(console=Console(highlight=False), screen=False, auto_refresh=False) as live:
            while not ended.is_set():
                live.update(frame(window.figures(time.time())), refresh=True)
                with suppress(TimeoutError):
                    await asyncio.wait_for(ended.wait(), FRAME_SECONDS)
        _raise(taking)
    finally:
        taking.cancel()
        with suppress(asyncio.CancelledError):
            await asyncio.wait([taking])


def _raise(taking: asyncio.Task[None]) -> None:
    """What ended it, if it was an error."""
    if taking.done():
        taking.result()


def frame(figures: TopFigures) -> Group:
    """One picture of the last minute."""
    head = (
        f"{figures.requests_a_second:,.1f} requests/s   {figures.failures:,} failed   "
        f"{figures.billed:,} tokens billed ({figures.cost:,.4f} USD)   "
        f"definitions: {figures.sent:,} tokens sent, {figures.saved:,} saved"
    )
    parts: list[Text | Table] = [Text("Last minute", style="bold"), plain(head)]
    if figures.latency:
        times = table("", "time", ">number", ">p50 ms", ">p95 ms")
        for name, (number, p50, p95) in figures.latency.items():
            times.add_row(*cells(name, f"{number:,}", f"{p50:,.1f}", f"{p95:,.1f}"))
        parts += [Text(), times]
    if figures.tools:
        called = table("", "tool", ">calls", ">failed")
        for name, calls, failed in figures.tools:
            called.add_row(*cells(name, f"{calls:,}", f"{failed:,}"))
        parts += [Text(), called]
    if figures.servers:
        states = table("", "server", "state")
        for name, state in figures.servers.items():
            states.add_row(plain(name), Text(state, style=STYLES.get(state, "")))
        parts += [Text(), states]
    return Group(*parts)
