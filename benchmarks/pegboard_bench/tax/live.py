"""What a real model calls with the tools that each method sends it: measured where an endpoint can be had.

Any OpenAI-compatible endpoint. Single-step tasks alone: the model is shown the user's message and the tools of the
step, and its first call is looked at. The key, where one is needed, is in `OPENAI_API_KEY`.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from statistics import median
from typing import Any

import aiohttp
import numpy as np

from pegboard.errors import ConfigError
from pegboard.evaluation.progress_bar import bar
from pegboard.evaluation.ranking_metrics import bootstrap
from pegboard_bench.tax.methods import methods
from pegboard_bench.tax.plan import ROUNDED, Plan
from pegboard_bench.tax.request import Sent
from pegboard_bench.tax.rows import wire_text
from pegboard_bench.tax.tasks import Step
from pegboard_bench.tax.testbeds import testbed

TASKS = 30
"""Single-step tasks of each testbed."""
SHOWN = ("full", "pruned", "simple", "attention", "attention_minilm", "semantic", "hybrid")
"""Methods that send definitions with the first request; the others need a loop."""
PATIENCE = 1800.0
"""Seconds that an answer may take: small machines read tens of tokens a second."""
SYSTEM = "You help the user by calling one of the tools. Call the one tool that fits the request best."
TOO_LONG = re.compile(
    r"context (?:length|window|size)|model length|too (?:long|large|many tokens)|(?:input|prompt) tokens?|token count",
    re.IGNORECASE,
)
"""What endpoints say of a prompt that is too long, beside a status of 400 or 422."""
QUOTED = 200
"""Characters of an endpoint's error that are shown."""
SHARES = ("right", "offered", "called", "refused")

Live = dict[str, Any]


def planned(plan: Plan) -> list[tuple[str, str]]:
    """Testbeds and methods. Raises ConfigError where there are none."""
    beds = [bed for bed in plan.beds if bed != ROUNDED]
    found = [(bed, method) for bed in beds for method in SHOWN if method in plan.methods]
    if not found:
        raise ConfigError(
            "There is nothing to ask the model.",
            remedy=f"Name a testbed with --set, and of the methods {', '.join(SHOWN)}: they send definitions at once.",
        )
    return found


async def measure(plan: Plan, url: str, model: str, tasks: int = TASKS) -> AsyncIterator[Live]:
    """What is known after each method, by testbed and method: shares with intervals, tokens that were counted, seconds.

    Raises ConfigError where there is nothing to ask, and where the endpoint does not answer.
    """
    rows = planned(plan)
    found: Live = {"model": model, "planned": len(rows), "testbeds": {}}
    async with aiohttp.ClientSession(headers=_headers(), timeout=aiohttp.ClientTimeout(PATIENCE)) as session:
        with bar("live model") as progress:
            done = 0
            for bed, method in rows:
                answers = []
                played = await _played(plan, bed, method, tasks)
                for step, sent in played:
                    answers.append(await _answer(session, url, model, step, sent))
                    done += 1
                    progress(done, len(rows) * len(played))
                found["testbeds"].setdefault(bed, {})[method] = _summed(answers)
                yield found


def figures(live: Live) -> dict[str, float]:
    return {
        f"live_{key}/{bed}/{method}": of[key][0] if isinstance(of[key], list) else of[key]
        for bed, methods in live["testbeds"].items()
        for method, of in methods.items()
        for key in (*SHARES, "prompt_tokens", "seconds")
        if of[key] is not None
    }


async def _played(plan: Plan, bed: str, method: str, count: int) -> list[tuple[Step, Sent]]:
    of = testbed(bed, plan.place.data)
    playing = methods()[method].make(plan.place)
    await playing.begin(of)
    single = [task for task in of.tasks(plan.seeds[0], plan.tasks) if task.kind == "single"][:count]
    return [(task.steps[0], (await playing.play(task))[0]) for task in single]


async def _answer(session: aiohttp.ClientSession, url: str, model: str, step: Step, sent: Sent) -> dict[str, Any]:
    """Which tool was called first, and what the endpoint counted; a refusal (too long) is an answer too.

    A call of the right tool whose definition was not sent is not right: the model has seen its name at most.
    """
    offered = {tool.name for tool in step.serves} & {tool.name for tool in (*sent.tools, *sent.late)}
    found = {"right": 0.0, "offered": float(bool(offered)), "called": 0.0}
    started = time.perf_counter()
    try:
        async with session.post(f"{url.rstrip('/')}/chat/completions", json=_body(model, step, sent)) as response:
            text = await response.text()
        if response.status == 413 or (response.status in (400, 422) and TOO_LONG.search(text)):
            return found | {"refused": 1.0, "prompt_tokens": None, "seconds": None}
        if not response.ok:
            raise ValueError(f"status {response.status}: {text[:QUOTED]}")
        answer = json.loads(text)
        name = called(answer["choices"][0]["message"])
        tokens = (answer.get("usage") or {}).get("prompt_tokens")
    except (aiohttp.ClientError, TimeoutError, ValueError, LookupError, TypeError, AttributeError) as error:
        raise ConfigError(
            f"The endpoint {url!r} does not answer: {type(error).__name__}: {error}.", remedy="Check --model-url."
        ) from error
    return found | {
        "right": float(name in offered),
        "called": float(name is not None),
        "refused": 0.0,
        "prompt_tokens": tokens,
        "seconds": time.perf_counter() - started,
    }


def _body(model: str, step: Step, sent: Sent) -> dict[str, Any]:
    tools = [json.loads(wire_text(tool)) for tool in (*sent.tools, *sent.late)]
    instructions = "\n\n".join([SYSTEM, *sent.texts])
    body: dict[str, Any] = {
        "model": model,
        "temperature": 0,
        "max_tokens": 200,
        "messages": [{"role": "system", "content": instructions}, {"role": "user", "content": step.said}],
    }
    return body | ({"tools": tools, "tool_choice": "auto"} if tools else {})


def called(message: Mapping[str, Any]) -> str | None:
    """The name of the first call. Small models write it as JSON into their answer, which counts as a call too.

    >>> called({"content": 'Sure: {"name": "git_status", "arguments": {}}'})
    'git_status'
    """
    calls = message.get("tool_calls")
    if calls:
        return str(calls[0].get("function", {}).get("name"))
    text = str(message.get("content") or "")
    for start in (place for place, letter in enumerate(text) if letter == "{"):
        try:
            written, _ = json.JSONDecoder().raw_decode(text, start)
        except ValueError:
            continue
        name = written.get("name")
        return name if isinstance(name, str) else None
    return None


def _summed(answers: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    given = [each for each in answers if not each["refused"]]
    counted = [each["prompt_tokens"] for each in given if each["prompt_tokens"] is not None]
    shares = {key: bootstrap([each[key] for each in answers], np.random.default_rng(0)) for key in SHARES}
    return {
        **{key: [round(share.mean, 4), round(share.low, 4), round(share.high, 4)] for key, share in shares.items()},
        "prompt_tokens": round(sum(counted) / len(counted), 1) if counted else None,
        "seconds": round(median(each["seconds"] for each in given), 2) if given else None,
        "answers": len(answers),
    }


def _headers() -> dict[str, str]:
    key = os.environ.get("OPENAI_API_KEY")
    return {"Authorization": f"Bearer {key}"} if key else {}
