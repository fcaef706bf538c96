"""What it costs a gateway to be observed: two of them side by side, one with dashboard, activity and OpenTelemetry.

Bursts of requests go to each in turn, the first of a pair to the other one each time: what else happens on the machine
meets both. A model request has 120 tools, which are ranked by words, as nothing is to be embedded then. A call goes
to a server on standard streams.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import statistics
import sys
import tempfile
import time
import urllib.request
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlsplit

import typer

from pegboard_bench import results
from pegboard_bench.llm.body import chat_request
from pegboard_bench.llm.contenders import started

PYTHON = sys.executable
RESULTS = Path("bench/results")
CLIENTS = 8
WARM_SECONDS = 3.0
ACCEPT = "application/json, text/event-stream"
REVISION = "2025-11-25"
QUIET = 'dashboard = false\n[activity]\nkeep = "off"\n'
WAYS = ("off", "on", "otel", "tenth", "activity")
"""`on` is the dashboard, activity in files and OpenTelemetry with every trace; `otel`, `tenth` (of the traces) and
`activity` are its parts alone; `off` is none."""
TICKS = os.sysconf("SC_CLK_TCK")
IDENTITY = "@IDENTITY@"
"""Stands for the id of a JSON-RPC request: two with one id are not to be under way at once."""
NUMBERS = itertools.count()


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """A gateway, and how it is observed."""

    name: str
    url: str
    process: int
    requests: Mapping[str, bytes]
    """By kind, as they are sent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Burst:
    """Milliseconds of each request, requests a second, and milliseconds of CPU that a request took of the gateway and
    of its exporter."""

    took: Sequence[float]
    rate: float
    cpu: float
    exporter: float


def configuration(model: str, collector: str, way: str) -> str:
    """The file of a gateway that is observed in one of the `WAYS`."""
    server = f'[servers.bench]\ncommand = "{PYTHON}"\nargs = ["-m", "pegboard_bench.mcp.upstream"]\n'
    common = 'profile = "keyword"\n'
    models = f'[llm.upstreams.openai]\nurl = "{model}"\nformat = "openai"\n[llm.policy]\nprofile = "keyword"\n'
    shown = 'dashboard = true\n[activity]\nkeep = "store"\n' if way in ("on", "activity") else QUIET
    sample = {"on": 1.0, "otel": 1.0, "tenth": 0.1}.get(way)
    otel = f'[otel]\nendpoint = "{collector}"\nsample = {sample}\n' if sample else ""
    return f"{common}{shown}{otel}{server}{models}"


def opened(stack: ExitStack, folder: Path, ways: Sequence[str]) -> Iterator[Observed]:
    """Gateways that serve until the stack closes, with one provider and one collector that cost next to nothing."""
    mock = [PYTHON, "-m", "pegboard_bench.llm.mock"]
    model, _ = started(stack, mock, folder)
    collector, _ = started(stack, mock, folder)
    for name in ways:
        place = folder / name
        place.mkdir()
        file = place / "pegboard.toml"
        file.write_text(configuration(model, collector, name))
        command = [PYTHON, "-m", "pegboard", "serve", "--config", str(file), "--log-level", "error", "--port"]
        state = {"PEGBOARD_STATE_DIR": str(place), "XDG_STATE_HOME": str(place)}
        url, process = started(stack, command, place, **state, PEGBOARD_CACHE_DIR=str(folder))
        yield Observed(name=name, url=url, process=process, requests=_requests(url))


def _requests(url: str) -> dict[str, bytes]:
    hello = {"protocolVersion": REVISION, "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}
    answer = _post(url, {"id": 0, "method": "initialize", "params": hello}, {})
    session = {"mcp-session-id": answer.headers["mcp-session-id"], "mcp-protocol-version": REVISION}
    _post(url, {"method": "notifications/initialized"}, session)
    listed = _post(url, {"id": 1, "method": "tools/list"}, session).read()
    name = next(each for each in _names(listed) if each not in ("search_tools", "list_tool_categories"))
    call = {
        "jsonrpc": "2.0",
        "id": IDENTITY,
        "method": "tools/call",
        "params": {"name": name, "arguments": {"text": "hi"}},
    }
    chat = json.loads(chat_request()) | {"stream": False}
    return {
        "model": _raw(url, "/openai/v1/chat/completions", chat, {}),
        "call": _raw(url, "/mcp", call, session | {"accept": ACCEPT}),
    }


def _names(listed: bytes) -> list[str]:
    text = listed.decode()
    data = text if text.startswith("{") else next(line[5:] for line in text.splitlines() if line.startswith("data:"))
    return [each["name"] for each in json.loads(data)["result"]["tools"]]


def _post(url: str, message: dict[str, Any], headers: dict[str, str]) -> Any:
    body = json.dumps({"jsonrpc": "2.0"} | message).encode()
    headers = {"content-type": "application/json", "accept": ACCEPT} | headers
    request = urllib.request.Request(f"{url}/mcp", body, headers)  # noqa: S310
    return urllib.request.urlopen(request, timeout=60)  # noqa: S310


def _raw(url: str, path: str, body: Any, headers: Mapping[str, str]) -> bytes:
    data = json.dumps(body).encode()
    lines = [f"POST {path} HTTP/1.1", f"host: {urlsplit(url).netloc}", "content-type: application/json"]
    lines += [f"content-length: {len(data)}", *(f"{name}: {value}" for name, value in headers.items())]
    return "\r\n".join((*lines, "", "")).encode() + data


@asynccontextmanager
async def connected(gateway: Observed, clients: int) -> AsyncIterator[list[Callable[[bytes], Any]]]:
    """Kept connections, each a function that sends a request and reads its answer."""
    address = urlsplit(gateway.url)
    opened = [await asyncio.open_connection(address.hostname, address.port) for _ in range(clients)]

    def sender(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Callable[[bytes], Any]:
        async def send(request: bytes) -> None:
            writer.write(request.replace(IDENTITY.encode(), b"%010d" % next(NUMBERS)))
            head = (await reader.readuntil(b"\r\n\r\n")).lower()
            if b" 200 " not in head.split(b"\r\n")[0]:
                raise ValueError(head.decode())
            if b"content-length:" in head:
                await reader.readexactly(int(head.partition(b"content-length:")[2].split(b"\r\n")[0]))
                return
            while size := int(await reader.readline(), 16):
                await reader.readexactly(size + 2)
            await reader.readline()

        return send

    try:
        yield [sender(reader, writer) for reader, writer in opened]
    finally:
        for _, writer in opened:
            writer.close()


async def burst(gateway: Observed, kind: str, seconds: float, clients: int) -> Burst:
    """Requests of one kind for some seconds, by so many clients at once."""
    request, took = gateway.requests[kind], list[float]()
    async with connected(gateway, clients) as senders:
        cpu = _cpu(gateway.process)
        began = time.perf_counter()

        async def run(send: Callable[[bytes], Any]) -> None:
            while (at := time.perf_counter()) - began < seconds:
                await send(request)
                took.append((time.perf_counter() - at) * 1_000)

        await asyncio.gather(*(run(send) for send in senders))
        passed = time.perf_counter() - began
        own, child = (after - before for after, before in zip(_cpu(gateway.process), cpu, strict=True))
    return Burst(took=took, rate=len(took) / passed, cpu=own / len(took), exporter=child / len(took))


def _cpu(process: int) -> tuple[float, float]:
    """Milliseconds of CPU of a gateway, and of its exporter process."""
    children = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    every = {int(task.name) for task in Path(f"/proc/{process}/task").iterdir()}
    for task in every:
        children += Path(f"/proc/{process}/task/{task}/children").read_text().split()
    exporters = {int(each) for each in children if b"exporter_process" in Path(f"/proc/{each}/cmdline").read_bytes()}
    return _own(process), sum(_own(each) for each in exporters)


def _own(process: int) -> float:
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS * 1_000


async def pairs(
    one: Observed, other: Observed, kind: str, *, rounds: int, seconds: float, clients: int
) -> list[tuple[Burst, Burst]]:
    """Bursts at both, one after the other; the first of a pair is the other one each time."""
    for each in (one, other):
        await burst(each, kind, WARM_SECONDS, clients)
    found = []
    for place in range(rounds):
        order = (one, other) if place % 2 else (other, one)
        made = {each.name: await burst(each, kind, seconds, clients) for each in order}
        found.append((made[one.name], made[other.name]))
    return found


def compared(found: Sequence[tuple[Burst, Burst]], alone: Sequence[tuple[Burst, Burst]]) -> dict[str, float]:
    """What the second of each pair loses: of requests a second with many clients, and of time with one."""
    lost = [100 * (1 - other.rate / one.rate) for one, other in found]
    added = [statistics.median(other.took) - statistics.median(one.took) for one, other in alone]
    low, middle, high = statistics.quantiles(lost, n=4)
    fast, p50, slow = statistics.quantiles(added, n=4)
    return {
        "requests_lost_percent": middle,
        "requests_lost_percent_q1": low,
        "requests_lost_percent_q3": high,
        "p50_added_ms": p50,
        "p50_added_ms_q1": fast,
        "p50_added_ms_q3": slow,
        "requests_a_second": statistics.median(one.rate for one, _ in found),
        "p50_ms": statistics.median(statistics.median(one.took) for one, _ in alone),
        "cpu_ms": statistics.median(one.cpu for one, _ in found),
        "cpu_added_ms": statistics.median(other.cpu - one.cpu for one, other in found),
        "exporter_cpu_ms": statistics.median(other.exporter for _, other in found),
    }


async def overhead_figures(folder: Path, rounds: int, seconds: float) -> tuple[dict[str, float], dict[str, Any]]:
    """The figures of each kind of request and each way; and the load meanwhile."""
    figures, load = dict[str, float](), [os.getloadavg()[0]]
    with ExitStack() as stack:
        gateways = {each.name: each for each in opened(stack, folder, WAYS)}
        for kind in ("model", "call"):
            for name in WAYS[1:]:
                both = gateways["off"], gateways[name]
                many = await pairs(*both, kind, rounds=rounds, seconds=seconds, clients=CLIENTS)
                alone = await pairs(*both, kind, rounds=rounds, seconds=seconds / 2, clients=1)
                figures |= {f"overhead/{kind}/{name}/{key}": each for key, each in compared(many, alone).items()}
                load.append(os.getloadavg()[0])
                typer.echo(f"{kind} {name}: {compared(many, alone)}")
    return figures, {
        "rounds": rounds,
        "seconds": seconds,
        "clients": CLIENTS,
        "load": [round(each, 2) for each in load],
    }


def main(
    rounds: Annotated[int, typer.Option(help="Pairs of bursts of each kind.")] = 30,
    seconds: Annotated[float, typer.Option(help="Seconds of a burst.")] = 1.0,
    write: Annotated[bool, typer.Option(help="Put the figures into bench/results/observability.json.")] = False,
) -> None:
    """What a gateway loses by being observed."""
    with tempfile.TemporaryDirectory() as folder:
        figures, table = asyncio.run(overhead_figures(Path(folder), rounds, seconds))
    typer.echo(json.dumps({**figures, **table}, indent=1))
    if write:
        results.extend(RESULTS / "observability.json", "overhead", figures=figures, table=table)


if __name__ == "__main__":
    typer.run(main)
