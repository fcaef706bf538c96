"""A model without a network that errs as often as published models do, and always in the same places.

It knows the calls of its task. Of a step it calls the right tool, or a wrong one that is much like it and believes that
the step is done; a tool that it lacks it looks for, if it thinks of that. What it draws depends on seed, task and step
alone, so that two ways to give it tools differ by what they show.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Mapping, Sequence
from typing import Any

from pegboard.model import ToolId
from pegboard_bench.whole_tasks.rates import Rates
from pegboard_bench.whole_tasks.task import Step, Task, resolved

SEARCHES = ("search_tools", "tool_search", "retrieve_tools")
"""Beginnings of the names of functions that look for tools."""
INVOKES = ("invoke_tool", "call_tool")
"""Beginnings of the names of functions that call a tool by its name."""
NOT_TOOLS = (*SEARCHES, *INVOKES, "list_tool_categories", "describe_tools", "read_result")
REFUSED = re.compile(r'"(?:error|code)": ?"(?:tool_not_available|tool_not_found)"')
TRIES = 3
"""Searches for a tool, and calls of one that is refused."""
DONE = "Done."
UNABLE = "I have no tool for that."
NAMED = re.compile(r'"name": ?"([^"]+)"')
WORD = re.compile(r"[A-Za-z0-9]+(?:[._-]+[A-Za-z0-9]+)*")

Message = dict[str, Any]


class NoisyOracle:
    """One play of a task. ``tools`` are the names of all tools that there are, as ids."""

    def __init__(self, task: Task, rates: Rates, seed: int, tools: Sequence[ToolId]) -> None:
        self.missed: list[str] = []
        """What went wrong, step by step, as text."""
        self._task, self._rates, self._tools = task, rates, tools
        self._draws = [random.Random(f"{seed} {task.name} {place}") for place in range(len(task.steps))]  # noqa: S311
        self._results: list[str] = []
        self._began(0)

    def respond(self, tools: Sequence[Mapping[str, Any]], messages: Sequence[Mapping[str, Any]]) -> Message:
        """The assistant's next message, in OpenAI's form, to a request of these functions and messages."""
        self._take(messages)
        while self._place < len(self._task.steps):
            if (call := self._next(tools, messages)) is not None:
                name, arguments = call
                function = {"name": name, "arguments": json.dumps(arguments)}
                self._count += 1
                called = {"id": f"call_{self._count}", "type": "function", "function": function}
                return {"role": "assistant", "content": None, "tool_calls": [called]}
            self._results.append("")
            self._began(self._place + 1)
        said = "\n".join(each for each in self._results if each)
        return {"role": "assistant", "content": f"{said}\n{DONE}" if said else UNABLE}

    _count = 0

    def _began(self, place: int) -> None:
        self._place, self._asked, self._tried, self._pending = place, 0, 0, ""
        if place < len(self._task.steps):
            draw = self._draws[place]
            self._luck, self._thinks = draw.random(), draw.random() < self._rates.search

    def _take(self, messages: Sequence[Mapping[str, Any]]) -> None:
        """What became of the call that was pending."""
        if not self._pending:
            return
        said = text_of(messages[-1])
        pending, self._pending = self._pending, ""
        if pending == "call" and not (REFUSED.search(said) and self._tried < TRIES):
            self._results.append(said)
            self._began(self._place + 1)

    def _next(self, tools: Sequence[Mapping[str, Any]], messages: Sequence[Mapping[str, Any]]) -> Any:
        """The call to make now; None where the model leaves the step."""
        step = self._task.steps[self._place]
        functions = [str(tool["function"]["name"]) for tool in tools]
        invoke = next((name for name in functions if name.startswith(INVOKES)), None)
        shown = [name for name in functions if not name.startswith(NOT_TOOLS)]
        direct = self._of(step, shown)
        if direct is not None:
            return self._called(step, direct, shown, tools, None)
        named = self._named(messages) if invoke else []
        if invoke and (found := self._of(step, named)) is not None:
            return self._called(step, found, named, tools, invoke)
        search = next((name for name in functions if name.startswith(SEARCHES)), None)
        if not self._thinks:
            return self._wrong(step, shown or named, tools, None if shown else invoke, "looked for no tool")
        if search is not None and self._asked < TRIES - 1:
            query = step.need if self._asked == 0 else self._task.ask
            self._asked, self._pending = self._asked + 1, "search"
            return search, {"query": query}
        hinted = None if search else self._of(step, WORD.findall(text_of(messages[0])))
        if hinted is not None and self._tried < TRIES:
            self._tried, self._pending = self._tried + 1, "call"
            return hinted, resolved(step.arguments, self._results)
        return self._wrong(step, shown or named, tools, None if shown else invoke, "was not shown")

    def _called(
        self, step: Step, name: str, among: Sequence[str], tools: Sequence[Mapping[str, Any]], invoke: str | None
    ) -> Any:
        if self._luck >= self._rates.among(len(among)):
            others = [each for each in among if each != name]
            return self._wrong(step, others, tools, invoke, "was shown, and another called")
        return self._wrapped(step, name, invoke)

    def _wrong(
        self, step: Step, among: Sequence[str], tools: Sequence[Mapping[str, Any]], invoke: str | None, why: str
    ) -> Any:
        self.missed.append(f"{step.tools[0].server}/{step.tools[0].name} {why}")
        texts = {str(tool["function"]["name"]): str(tool["function"].get("description", "")) for tool in tools}
        wanted = _words(f"{step.tools[0].name} {step.need}")
        others = [name for name in among if self._of(step, [name]) is None]
        if not others:
            return None
        likest = max(others, key=lambda name: (len(wanted & _words(f"{name} {texts.get(name, '')}")), name))
        return self._wrapped(step, likest, invoke)

    def _wrapped(self, step: Step, name: str, invoke: str | None) -> Any:
        self._pending, self._tried = "call", self._tried + 1
        arguments = resolved(step.arguments, self._results)
        return (name, arguments) if invoke is None else (invoke, {"name": name, "arguments": arguments})

    def _of(self, step: Step, names: Sequence[str]) -> str | None:
        """The first of these names that is the step's tool."""
        wanted = {spelt for tool in step.tools for spelt in spellings(tool)}
        return next((name for name in names if name in wanted), None)

    def _named(self, messages: Sequence[Mapping[str, Any]]) -> list[str]:
        """The tools that results of searches name so far."""
        known = {spelt for tool in self._tools for spelt in spellings(tool)}
        names = [name for each in messages if each.get("role") == "tool" for name in NAMED.findall(text_of(each))]
        return [name for name in dict.fromkeys(names) if name in known]


def spellings(tool: ToolId) -> tuple[str, ...]:
    """The names under which a tool may be shown."""
    return (tool.name, f"{tool.server}__{tool.name}", f"{tool.server}_{tool.name}", f"mcp__{tool.server}__{tool.name}")


def text_of(message: Mapping[str, Any]) -> str:
    """The text of a message whose content is a string or parts."""
    content = message.get("content") or ""
    if isinstance(content, str):
        return content
    return "\n".join(str(part.get("text", "")) for part in content)


def _words(text: str) -> frozenset[str]:
    return frozenset(re.findall(r"[a-z]{3,}", text.lower()))
