"""What it costs a gateway to be observed: some of them side by side, with dashboard, activity and OpenTelemetry or not.

Bursts of requests go to each in turn, in an order that is drawn for each round: what else happens on the machine meets
all. Two gateways are not observed: what one of them loses to the other is noise. A burst is measured once it has lasted
for `LEAD_SECONDS`: what is written behind the requests is under way then. A model request has 120 tools, which are
ranked by words, as nothing is to be embedded then. It is the first for a model that is filtered: what a model was sent
before the gateway was ready is in its cache, and costs least from there on. There is no way back, and one way: whether
a gateway offers a search depends on the conversations that it has seen, and one that does takes twice as long. A call
goes to a server on standard streams, whose tools are all listed, and is answered by it.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
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
from pegboard_bench.mcp.upstream import ECHO
from pegboard_bench.observability.behind import activity_cpu_us, otel_cpu_us
from pegboard_bench.observability.paired_rounds import PLAIN, Burst, compared, shuffled_rounds
from pegboard_bench.observability.processor_time import ProcessorTime

PYTHON = sys.executable
RESULTS = Path("bench/results")
CHAT = "/openai/v1/chat/completions"
CLIENTS = 8
LEAD_SECONDS = 1.0
"""Much activity is written every second, as spans are handed on."""
ACCEPT = "application/json, text/event-stream"
REVISION = "2025-11-25"
QUIET = 'dashboard = false\n[activity]\nkeep = "off"\n'
WAYS = {"overhead": (*PLAIN, "on"), "overhead_parts": (*PLAIN, "every", "otel", "activity")}
"""Gateways that are measured beside each other, by part of the results. `on` is the dashboard, activity in files and
OpenTelemetry as they are without further options; `otel` and `activity` are its parts alone; with `every`, every trace
is recorded; `off` and `control` are none."""
MOST_FIRST = 100
"""Models that are asked at most."""
SEEN = ("on", "every", "activity")
TRACED = ("on", "every", "otel")
BATCHES = 100
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


def configuration(model: str, collector: str, way: str) -> str:
    """The file of a gateway that is observed in one of the `WAYS`."""
    server = f'[servers.bench]\ncommand = "{PYTHON}"\nargs = ["-m", "pegboard_bench.mcp.upstream"]\n'
    common = 'profile = "keyword"\nexposure = "eager"\n'
    models = f'[llm.upstreams.openai]\nurl = "{model}"\nformat = "openai"\n[llm.policy]\nprofile = "keyword"\n'
    models += 'way_back = false\nways = ["tools"]\n'
    shown = 'dashboard = true\n[activity]\nkeep = "store"\n' if way in SEEN else QUIET
    otel = f'[otel]\nendpoint = "{collector}"\n' if way in TRACED else ""
    otel += "sample = 1\n" if way == "every" else ""
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
    listed = _result(_post(url, {"id": 1, "method": "tools/list"}, session))
    name = next(each["name"] for each in listed["tools"] if each["name"].endswith(ECHO))
    asked = {"method": "tools/call", "params": {"name": name, "arguments": {"text": "hi"}}}
    if _result(_post(url, {"id": 2} | asked, session))["content"][0].get("text") != "hi":
        raise ValueError("the server did not answer the call")
    call = {"jsonrpc": "2.0", "id": IDENTITY} | asked
    return {
        "model": _raw(url, CHAT, _filtered_chat(url), {}),
        "call": _raw(url, "/mcp", call, session | {"accept": ACCEPT}),
    }


def _filtered_chat(url: str) -> dict[str, Any]:
    """A request whose tools are chosen. Raises ValueError if none of many is."""
    chat: dict[str, Any] = json.loads(chat_request()) | {"stream": False}
    for number in range(MOST_FIRST):
        asked = chat | {"model": f"model-{number}"}
        request = urllib.request.Request(  # noqa: S310
            f"{url}{CHAT}", json.dumps(asked).encode(), {"content-type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310
            if answer.headers["x-pegboard-filter"] == "filtered":
                return asked
        time.sleep(0.1)
    raise ValueError("no request was filtered")


def _result(answer: Any) -> dict[str, Any]:
    text = answer.read().decode()
    data = text if text.startswith("{") else next(line[5:] for line in text.splitlines() if line.startswith("data:"))
    return dict(json.loads(data)["result"])


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

        async def sent(until: float) -> None:
            took.clear()
            await asyncio.gather(*(run(send, until) for send in senders))

        async def run(send: Callable[[bytes], Any], until: float) -> None:
            while (at := time.perf_counter()) < until:
                await send(request)
                took.append((time.perf_counter() - at) * 1_000)

        await sent(time.perf_counter() + LEAD_SECONDS)
        processor = ProcessorTime(gateway.process)
        before, began = processor.read(), time.perf_counter()
        await sent(began + seconds)
        passed, after = time.perf_counter() - began, processor.read()
    cpu = {name: (after[name] - before[name]) / len(took) for name in after}
    return Burst(took=took, rate=len(took) / passed, cpu=cpu["gateway"], exporter=cpu["exporter"], writer=cpu["writer"])


async def bursts(
    gateways: Sequence[Observed], kind: str, *, rounds: int, seconds: float, clients: int, seed: int
) -> dict[str, list[Burst]]:
    """Bursts of each gateway by its name, one in each round, in an order that is drawn for each round."""
    named = {each.name: each for each in gateways}
    found: dict[str, list[Burst]] = {name: [] for name in named}
    for order in shuffled_rounds(tuple(named), rounds, seed=seed):
        for name in order:
            found[name].append(await burst(named[name], kind, seconds, clients))
    return found


async def overhead_figures(
    folder: Path, ways: Sequence[str], starts: int, rounds: int, seconds: float, seed: int
) -> tuple[dict[str, float], dict[str, Any]]:
    """The figures of each kind of request and each of the ways, the first of which is `off`, of so many rounds after
    each start; and the load meanwhile."""
    found: dict[tuple[str, int], dict[str, list[Burst]]] = {}
    load = [os.getloadavg()[0]]
    for start in range(starts):
        place = folder / str(start)
        place.mkdir()
        with ExitStack() as stack:
            gateways = list(opened(stack, place, ways))
            for kind, clients in itertools.product(("model", "call"), (CLIENTS, 1)):
                lasts = seconds if clients > 1 else seconds / 2
                more = await bursts(gateways, kind, rounds=rounds, seconds=lasts, clients=clients, seed=seed + start)
                for name, of_way in more.items():
                    found.setdefault((kind, clients), {}).setdefault(name, []).extend(of_way)
        load.append(os.getloadavg()[0])
        typer.echo(f"start {start + 1} of {starts}: load {load[-1]:.1f}")
    figures = dict[str, float]()
    for (kind, clients), of_kind in found.items():
        for name in ways[1:]:
            lost = compared(of_kind, name, clients=clients, starts=starts)
            figures |= {f"overhead/{kind}/{name}/{key}": each for key, each in lost.items()}
            typer.echo(f"{kind} {name}, {clients} clients: {lost}")
    return figures, {
        "starts": starts,
        "rounds": rounds,
        "seconds": seconds,
        "seed": seed,
        "clients": CLIENTS,
        "load": [round(each, 2) for each in load],
    }


def behind_figures(folder: Path) -> dict[str, float]:
    """Microseconds of CPU that the processes behind a gateway take for a decision or a trace."""
    found = {"activity_cpu_us": asyncio.run(activity_cpu_us(folder, BATCHES))}
    with ExitStack() as stack:
        collector, _ = started(stack, [PYTHON, "-m", "pegboard_bench.llm.mock"], folder)
        found["otel_cpu_us"] = asyncio.run(otel_cpu_us(collector, BATCHES))
        found["otel_left_out_cpu_us"] = asyncio.run(otel_cpu_us(collector, BATCHES, recorded=False))
    return {f"overhead/behind/{name}": value for name, value in found.items()}


def main(
    parts: Annotated[list[str], typer.Option("--part", help="What to measure; all of it without.")] = list(WAYS),  # noqa: B006
    starts: Annotated[int, typer.Option(help="How often all gateways are started.", min=1)] = 6,
    rounds: Annotated[int, typer.Option(help="Bursts of each gateway after a start, of each kind.", min=1)] = 3,
    seconds: Annotated[float, typer.Option(help="Seconds of a burst.")] = 1.0,
    seed: Annotated[int, typer.Option(help="Of the order of gateways in each round.")] = 0,
    write: Annotated[bool, typer.Option(help="Put the figures into bench/results/observability.json.")] = False,
) -> None:
    """What a gateway loses by being observed."""
    if unknown := set(parts) - WAYS.keys():
        raise typer.BadParameter(f"{unknown.pop()!r} is none of {', '.join(WAYS)}.")
    for part in parts:
        with tempfile.TemporaryDirectory() as folder:
            ways = WAYS[part]
            figures, table = asyncio.run(overhead_figures(Path(folder), ways, starts, rounds, seconds, seed))
            if part != "overhead":  # the control is a figure of the first
                figures = {name: value for name, value in figures.items() if "/control/" not in name}
                figures |= behind_figures(Path(folder))
        typer.echo(json.dumps({**figures, **table}, indent=1))
        if write:
            results.extend(RESULTS / "observability.json", part, figures=figures, table=table)


if __name__ == "__main__":
    typer.run(main)
