"""`python -m pegboard_bench.llm.deferral` writes `bench/results/deferral.json`: what deferring tools adds to a request.

Everything is measured in turns, the encoder alone too, so that the ratio holds on a machine that does other work.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Annotated
from urllib.parse import urlsplit

import typer

from pegboard.retrieval import OnnxEncoder
from pegboard.retrieval.intents import clauses
from pegboard_bench import results
from pegboard_bench.llm.body import messages_request
from pegboard_bench.llm.contenders import NEW_ASK, started, warm
from pegboard_bench.page import write_page

SEED = 0
"""Nothing here is drawn by chance."""
CLIENTS = (1, 16)
ENCODED = 40
PATH = "/v1/messages"
OVER_ENCODER, MORE_MS = 1.3, 2.0
"""What a request may be delayed: so many times what the encoder takes for its query, and so many milliseconds."""
GATEWAY = """
start_wait = 0
encoder_threads = 1

[llm]
patience = 0.05
filter_timeout = 60

[llm.upstreams.deferred]
url = "{mock}"
format = "anthropic"

[llm.policy]
ways = ["defer"]
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """Milliseconds a request by number of clients, and what the encoder took for such queries."""

    direct: dict[int, float]
    deferred: dict[int, float]
    encoder: float

    def added(self, clients: int) -> float:
        return self.deferred[clients] - self.direct[clients]

    def over_allowed(self, clients: int) -> float:
        return self.added(clients) / (OVER_ENCODER * self.encoder + MORE_MS)


def main(
    out: Annotated[Path, typer.Option(help="Folder for deferral.json.")] = Path("bench/results"),
    page: Annotated[Path | None, typer.Option(help="Write the results as a section of this page too.")] = None,
    rounds: Annotated[int, typer.Option(help="Rounds in which all take turns.")] = 9,
    requests: Annotated[int, typer.Option(help="Requests of each client, each with a query of its own.")] = 40,
) -> None:
    """Measure the time that deferring 120 tools adds to a request, beside the time of the encoder alone."""
    encoder = OnnxEncoder(threads=1)
    with addresses() as (direct, deferred):
        found = [_round(number, direct, deferred, encoder, requests) for number in range(rounds)]
    figures = {"encoder_ms": median(each.encoder for each in found)}
    for clients in CLIENTS:
        figures[f"added_ms/{clients}"] = median(each.added(clients) for each in found)
        figures[f"added_over_allowed/{clients}"] = median(each.over_allowed(clients) for each in found)
    tables = {
        "rounds": rounds,
        "requests": requests,
        "over_allowed": {str(clients): [each.over_allowed(clients) for each in found] for clients in CLIENTS},
    }
    path = results.write(
        "deferral", command="make bench-deferral", seed=SEED, figures=figures, tables=tables, folder=out
    )
    for name, value in figures.items():
        sys.stdout.write(f"{name:28} {value:10.3f}\n")
    sys.stderr.write(f"Written to {path}\n")
    if page is not None:
        write_page(page, out)


@contextmanager
def addresses() -> Iterator[tuple[str, str]]:
    """Those of a mock provider, and of a gateway before it that defers."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="pegboard-bench-")))
        mock, _ = started(stack, [sys.executable, "-m", "pegboard_bench.llm.mock"], folder)
        config = folder / "pegboard.toml"
        config.write_text(GATEWAY.format(mock=mock), "utf-8")
        command = [sys.executable, "-m", "pegboard", "serve", "--config", str(config), "--log-level", "error", "--port"]
        ours, _ = started(stack, command, folder, PEGBOARD_STATE_DIR=str(folder), PEGBOARD_CACHE_DIR=str(folder))
        warm(f"{ours}/deferred{PATH}", messages_request("Approve an invoice."))
        yield f"{mock}{PATH}", f"{ours}/deferred{PATH}"


def _round(number: int, direct: str, deferred: str, encoder: OnnxEncoder, requests: int) -> Round:
    def load(url: str, clients: int) -> float:
        texts = [f"{number}-{clients}-{each}" for each in range(clients * requests)]
        bodies = [messages_request(NEW_ASK.replace("@ASK@", text)) for text in texts]
        return asyncio.run(_load(url, bodies, clients))

    sides = (direct, deferred) if number % 2 else (deferred, direct)
    times = {(url, clients): load(url, clients) for clients in CLIENTS for url in sides}
    return Round(
        direct={clients: times[direct, clients] for clients in CLIENTS},
        deferred={clients: times[deferred, clients] for clients in CLIENTS},
        encoder=_encoding(encoder, number),
    )


def _encoding(encoder: OnnxEncoder, number: int) -> float:
    """Milliseconds for a new query, in its clauses as the router asks for them: the mean, as that of requests."""
    texts = [NEW_ASK.replace("@ASK@", f"{number}-encoder-{each}") for each in range(ENCODED)]
    begun = time.perf_counter()
    for text in texts:
        encoder.encode_clauses_now(text, clauses(text))
    return (time.perf_counter() - begun) * 1000 / ENCODED


async def _load(url: str, bodies: Sequence[bytes], clients: int) -> float:
    """Milliseconds a request while so many clients send these, each on a connection of its own."""
    waiting = iter(bodies)
    begun = time.perf_counter()
    await asyncio.gather(*(_client(url, waiting) for _ in range(clients)))
    return (time.perf_counter() - begun) * 1000 / len(bodies)


async def _client(url: str, waiting: Iterator[bytes]) -> None:
    at = urlsplit(url)
    reader, writer = await asyncio.open_connection(at.hostname, at.port)
    head = f"POST {at.path} HTTP/1.1\r\nhost: {at.netloc}\r\ncontent-type: application/json\r\n"
    head += "x-api-key: none\r\nanthropic-version: 2023-06-01\r\ncontent-length: "
    for body in waiting:
        writer.write(f"{head}{len(body)}\r\n\r\n".encode() + body)
        answer = (await reader.readuntil(b"\r\n\r\n")).lower()
        if not answer.startswith(b"http/1.1 200") or b"x-pegboard-filter: failed" in answer:
            raise RuntimeError(answer.decode("latin-1"))
        await reader.readexactly(int(answer.partition(b"content-length: ")[2].partition(b"\r\n")[0]))
    writer.close()


if __name__ == "__main__":
    typer.run(main)
