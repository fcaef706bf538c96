"""What a real model calls with the tools that each method sends it: measured where an endpoint can be had.

Any OpenAI-compatible endpoint. Single-step tasks alone: the model is shown the user's message and the tools of the
step, and its first call is looked at. The key, where one is needed, is in `OPENAI_API_KEY`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import Any

import aiohttp
import numpy as np

from pegboard.bench.metrics import bootstrap
from pegboard.bench.progress import bar
from pegboard.bench.tax.counting import wire_text
from pegboard.bench.tax.methods import METHODS
from pegboard.bench.tax.plan import Plan
from pegboard.bench.tax.sending import Sent
from pegboard.bench.tax.tasks import Step
from pegboard.bench.tax.testbeds import testbed
from pegboard.errors import ConfigError

TASKS = 30
"""Single-step tasks of each testbed."""
SHOWN = ("full", "pruned", "simple", "attention", "attention_minilm", "semantic", "hybrid")
"""Methods that send definitions with the first request; the others need a loop."""
PATIENCE = 300.0
"""Seconds that an answer may take."""
SYSTEM = "You help the user by calling one of the tools. Call the one tool that fits the request best."


async def measure(plan: Plan, url: str, model: str) -> dict[str, Any]:
    """By testbed and method: how often the right tool was called, and the tokens that the endpoint counted.

    Raises ConfigError where the endpoint does not answer.
    """
    methods = [name for name in SHOWN if name in plan.methods]
    found: dict[str, Any] = {"model": model, "testbeds": {}}
    async with aiohttp.ClientSession(headers=_headers(), timeout=aiohttp.ClientTimeout(PATIENCE)) as session:
        with bar("live model") as progress:
            done = 0
            for bed in plan.judged:
                steps = _steps(plan, bed)
                for method in methods:
                    sends = await _sends(plan, bed, method)
                    answers = []
                    for step, sent in zip(steps, sends, strict=True):
                        answers.append(await _answer(session, url, model, step, sent))
                        done += 1
                        progress(done, len(plan.judged) * len(methods) * len(steps))
                    found["testbeds"].setdefault(bed, {})[method] = _summed(answers)
    return found


def figures(live: Mapping[str, Any]) -> dict[str, float]:
    return {
        f"live_{key}/{bed}/{method}": of[key][0] if isinstance(of[key], list) else of[key]
        for bed, methods in live.get("testbeds", {}).items()
        for method, of in methods.items()
        for key in ("right", "prompt_tokens", "refused")
    }


def _steps(plan: Plan, bed: str) -> list[Step]:
    tasks = testbed(bed, plan.place.data).tasks(plan.seeds[0], plan.tasks)
    return [task.steps[0] for task in tasks if task.kind == "single"][:TASKS]


async def _sends(plan: Plan, bed: str, method: str) -> list[Sent]:
    of = testbed(bed, plan.place.data)
    playing = METHODS[method].make(plan.place)
    await playing.begin(of)
    single = [task for task in of.tasks(plan.seeds[0], plan.tasks) if task.kind == "single"][:TASKS]
    return [(await playing.play(task))[0] for task in single]


async def _answer(session: aiohttp.ClientSession, url: str, model: str, step: Step, sent: Sent) -> dict[str, Any]:
    """Which tool was called first, and what the endpoint counted; a refusal (too long) is an answer too."""
    tools = [json.loads(wire_text(tool)) for tool in (*sent.tools, *sent.late)]
    instructions = "\n\n".join([SYSTEM, *sent.texts])
    body: dict[str, Any] = {
        "model": model,
        "temperature": 0,
        "max_tokens": 200,
        "messages": [{"role": "system", "content": instructions}, {"role": "user", "content": step.said}],
    }
    if tools:
        body |= {"tools": tools, "tool_choice": "auto"}
    try:
        async with session.post(f"{url.rstrip('/')}/chat/completions", json=body) as response:
            if response.status in (400, 413, 422):
                return {"right": 0.0, "prompt_tokens": None, "refused": 1.0}
            response.raise_for_status()
            answer = await response.json(content_type=None)
    except (aiohttp.ClientError, TimeoutError, ValueError) as error:
        raise ConfigError(f"The endpoint {url!r} does not answer: {error}.", remedy="Check --model-url.") from error
    calls = answer["choices"][0]["message"].get("tool_calls") or [{}]
    name = calls[0].get("function", {}).get("name")
    counted = (answer.get("usage") or {}).get("prompt_tokens")
    right = name in {tool.name for tool in step.serves}
    return {"right": float(right), "prompt_tokens": counted, "refused": 0.0}


def _summed(answers: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    right = bootstrap([each["right"] for each in answers], np.random.default_rng(0))
    counted = [each["prompt_tokens"] for each in answers if each["prompt_tokens"] is not None]
    return {
        "right": [round(right.mean, 4), round(right.low, 4), round(right.high, 4)],
        "prompt_tokens": round(sum(counted) / len(counted), 1) if counted else 0.0,
        "refused": sum(each["refused"] for each in answers) / len(answers),
        "answers": len(answers),
    }


def _headers() -> dict[str, str]:
    key = os.environ.get("OPENAI_API_KEY")
    return {"Authorization": f"Bearer {key}"} if key else {}
