"""The SDKs' own clients before the fleet: each lists, searches, calls what it found, and is given the result."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import Any

from pegboard.catalog import compact_json
from pegboard_bench.fleet.agent_clients import Conversation
from pegboard_bench.fleet.before_fleet import Doors
from pegboard_bench.fleet.needs import INVOKE, SEARCH, Need, Way
from pegboard_bench.fleet.sdk_clients import Driver, Step, Target
from pegboard_bench.fleet.tokens import COUNTER, canonical


async def converse(driver: Driver, doors: Doors, needs: Sequence[Need], way: Way) -> Conversation:
    """One run of a client; its model would be sent the list, and all that was said so far, with every request.

    A client that cannot be told of changed lists, or that takes one step at a time, is judged by the same steps.
    """
    target = Target(url=doors.url) if way == "http" else Target(command=str(doors.program(way)), env=_environment())
    steps: list[Step] = [("list",)]
    for need in needs:
        steps += [("call", SEARCH, need.search), ("call", INVOKE, need.invocation)]
    try:
        listed, *results = await driver.run(target, steps)
    except AssertionError as error:
        return _broken(str(error), len(needs))
    tools = listed["tools"] if isinstance(listed, dict) else listed
    answers = list(map(_text, results))
    pairs = list(zip(needs, answers[::2], answers[1::2], strict=True))
    missing = [
        f"no answer of {need.tool}: {found[:200]}" for need, found, answer in pairs if not _is_done(need, found, answer)
    ]
    said = [
        text
        for need, found, answer in pairs
        for text in (compact_json(need.search), found, compact_json(need.invocation), answer)
    ]
    start = canonical(tools)
    return Conversation(
        requests=2 * len(needs) + 1,
        calls=len(needs),
        done=len(needs) - len(missing),
        start=start,
        tokens=conversed(start, said),
        billed=0,
        listed=len(tools),
        trouble="; ".join(missing),
    )


def directly(listed: int, needs: Sequence[Need]) -> Conversation:
    """The same conversation where every tool of the fleet is ``listed`` and called by its name. Not held: what a server
    answers is taken to be the words that are looked for in it, which is too little."""
    said = [text for need in needs for text in (compact_json(need.invocation), need.answer)]
    return Conversation(
        requests=len(needs) + 1,
        calls=len(needs),
        done=len(needs),
        start=listed,
        tokens=conversed(listed, said),
        billed=0,
        listed=0,
        trouble="",
    )


def conversed(listed: int, said: Sequence[str]) -> int:
    """Tokens of all requests of a model: the list, and what calls and answers (two texts each) were said before it."""
    sizes = COUNTER.count(list(said))
    requests = len(said) // 2 + 1
    return sum(listed + sum(sizes[: 2 * number]) for number in range(requests))


def _is_done(need: Need, found: str, answer: str) -> bool:
    return need.is_found(found) and need.answer in answer


def _text(result: dict[str, Any]) -> str:
    return "\n".join(str(part.get("text", "")) for part in result.get("content", ())) or json.dumps(result)


def _environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name in ("PATH", "HOME", "LANG")}


def _broken(why: str, calls: int) -> Conversation:
    return Conversation(requests=0, calls=calls, done=0, start=0, tokens=0, billed=0, listed=0, trouble=why[-300:])
