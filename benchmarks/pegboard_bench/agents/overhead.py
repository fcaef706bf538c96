"""What the middleware adds to a request, and what a conversation takes of memory."""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median, quantiles
from typing import Any

from langchain_core.messages import AnyMessage, HumanMessage

from pegboard.gateways.langchain import Request, ToolAttention
from pegboard.gateways.langchain.model_request import Rendering
from pegboard.library.portal import Portal
from pegboard.protocols import Encoder
from pegboard.retrieval import OnnxEncoder
from pegboard_bench.agents.contenders import full, local_tools, pegboard
from pegboard_bench.agents.script import Ask
from pegboard_bench.synthetic import synthetic_catalog, synthetic_queries

SIZES = (120, 1000)
QUERIES = 120
SESSIONS = 200
SEED = 42
WAYS = ("full", "native", "text")


def overhead(size: int, rendering: Rendering, encoder: Encoder, cache: Path) -> dict[str, float]:
    """Milliseconds of `before_model` for texts that are new and that came before, in turns with the encoder alone."""
    catalog, texts = synthetic_catalog(size, SEED), synthetic_queries(QUERIES + 1, SEED)
    attention = ToolAttention(catalog.tools, rendering=rendering, encoder=encoder, cache_dir=cache, state_dir=cache)
    portal = Portal()
    try:
        _prepare(attention, texts.pop())
        taken = [
            (_encode(portal, encoder, text + "."), _prepare(attention, text), _prepare(attention, text))
            for text in texts
        ]
    finally:
        attention.board.close()
        portal.close()
    alone, new, again = zip(*taken, strict=True)
    where = f"{size}/{rendering}"
    return {
        f"overhead_p50_ms/{where}/new": median(new),
        f"overhead_p95_ms/{where}/new": quantiles(new, n=20)[-1],
        f"overhead_p50_ms/{where}/again": median(again),
        f"overhead_p95_ms/{where}/again": quantiles(again, n=20)[-1],
        f"encoder_p50_ms/{where}": median(alone),
    }


def _prepare(attention: ToolAttention, text: str) -> float:
    said: list[AnyMessage] = [HumanMessage(text, id="1")]
    started = time.perf_counter()
    attention.before_model({"messages": said}, Request(messages=said))
    return (time.perf_counter() - started) * 1000


def _encode(portal: Portal, encoder: Encoder, text: str) -> float:
    started = time.perf_counter()
    portal.run(encoder.encode([text]))
    return (time.perf_counter() - started) * 1000


def memory(way: str, cache: Path) -> dict[str, float]:
    """Kilobytes of this process that a conversation of three turns takes, checkpoints included."""
    command = [sys.executable, "-m", "pegboard_bench.agents.overhead", way, str(cache)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=dict(os.environ))
    return {f"session_kb/{way}": json.loads(done.stdout)}


def _memory(way: Any, cache: str) -> float:
    catalog = synthetic_catalog(SIZES[0], SEED)
    tools, texts = local_tools(catalog), synthetic_queries(3, SEED)
    options: dict[str, Any] = {"encoder": OnnxEncoder(), "cache_dir": cache, "state_dir": cache}
    made = full(tools) if way == "full" else pegboard(tools, rendering=way, **options)
    made.behaviour.ask = Ask(text="", tools=())

    def talk(numbers: Sequence[int]) -> None:
        for number in numbers:
            for text in texts:
                config = {"configurable": {"thread_id": str(number)}}
                made.agent.invoke({"messages": [HumanMessage(text)]}, config)
            made.model.asked.clear()

    talk(range(20))
    gc.collect()
    before = _resident()
    talk(range(20, 20 + SESSIONS))
    gc.collect()
    grown = (_resident() - before) / SESSIONS
    made.close()
    return grown


def _resident() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1000


if __name__ == "__main__":
    sys.stdout.write(json.dumps(_memory(*sys.argv[1:])))
