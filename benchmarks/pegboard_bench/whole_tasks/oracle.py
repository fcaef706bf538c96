"""A model without a network that errs as often as published models do, and always in the same places.

It knows the calls of its task. Of a step it calls the right tool, or a wrong one that is much like it and believes that
the step is done. A tool that it lacks it looks for, if it thinks of that; one whose name it can read it looks up by
that name. What it draws depends on seed, task and step alone, so that two ways to give it tools differ by what they
show.
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
DESCRIBES = ("describe_tools",)
"""Beginnings of the names of functions that tell the definition of a tool by its name."""
NOT_TOOLS = (*SEARCHES, *INVOKES, *DESCRIBES, "list_tool_categories", "read_result")
REFUSED = re.compile(r'"(?:error|code)": ?"(?:tool_not_available|tool_not_found)"')
TRIES = 3
"""Searches for a tool, and calls of one that is refused."""
DONE = "Done."
UNABLE = "I have no tool for that."
NAMED = re.compile(r'"name": ?"([^"]+)"')
LISTED = re.compile(r"(?:^|[\],:] )([^\s,:\[\]]+)(?=[,:(]|$)", re.MULTILINE)
"""A name in a list: it begins a line, or follows a comma, a colon or a server's name in brackets."""
PREFIXED = re.compile(r"^(\S*[_/.-]): (.+)$", re.MULTILINE)
"""Names that share a beginning, as `pegboard.catalog.name_lines` writes them."""

Message = dict[str, Any]


class NoisyOracle:
    """One play of a task. ``tools`` are the names of all tools that there are, as ids."""

    def __init__(self, task: Task, rates: Rates, seed: int, tools: Sequence[ToolId]) -> None:
        self.missed: list[str] = []
        """What went wrong, step by step, as text."""
        self._task, self._rates = task, rates
        self._known = frozenset(spelt for tool in tools for spelt in spellings(tool))
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
        said = "\n".join(each for each in (*self._results, self._conclusion()) if each)
        return {"role": "assistant", "content": f"{said}\n{DONE}" if said else UNABLE}

    _count = 0

    def _conclusion(self) -> str:
        """What follows from the results, where the task's evidence is in them."""
        text = "\n".join(self._results)
        evidence = self._task.evidence
        return self._task.concludes if evidence and all(re.search(each, text) for each in evidence) else ""

    def _began(self, place: int) -> None:
        self._place, self._asked, self._tried, self._pending, self._looked_up = place, 0, 0, "", 0
        if place < len(self._task.steps):
            self._luck, self._thought = (self._draws[place].random() for _ in range(2))

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
        listed = self._listed(tools, messages)
        readable = self._of(step, listed)
        if self._thought >= (self._rates.search if readable is None else self._rates.named):
            return self._wrong(step, shown or named, tools, None if shown else invoke, "looked for no tool")
        if readable is not None and (call := self._by_name(step, readable, functions, len(shown) + len(listed))):
            return call
        search = next((name for name in functions if name.startswith(SEARCHES)), None)
        if search is not None and self._asked < TRIES - 1:
            query = step.need if self._asked == 0 else self._task.ask
            self._asked, self._pending = self._asked + 1, "search"
            return search, {"query": query}
        return self._wrong(step, shown or named, tools, None if shown else invoke, "was not shown")

    def _by_name(self, step: Step, name: str, functions: Sequence[str], among: int) -> Any:
        """How to get at a tool whose name stands in a list of so many: its definition, else a search for the name, else
        a call; None once that was tried."""
        first, self._looked_up = not self._looked_up, among
        describe, search, invoke = (
            next((each for each in functions if each.startswith(of)), None) for of in (DESCRIBES, SEARCHES, INVOKES)
        )
        if describe is None and search is None:
            return self._wrapped(step, name, invoke) if self._tried < TRIES else None
        self._pending = "search"
        found = (search, {"query": name}) if describe is None else (describe, {"names": [name]})
        return found if first else None

    def _called(
        self, step: Step, name: str, among: Sequence[str], tools: Sequence[Mapping[str, Any]], invoke: str | None
    ) -> Any:
        if self._luck >= self._rates.among(max(len(among), self._looked_up)):
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
        """The tools that results of searches, or definitions before the user's words, name so far."""
        read = [text_of(each) for each in messages if each.get("role") in ("tool", "user")]
        names = [name for text in read for name in NAMED.findall(text)]
        return [name for name in dict.fromkeys(names) if name in self._known]

    def _listed(self, tools: Sequence[Mapping[str, Any]], messages: Sequence[Mapping[str, Any]]) -> list[str]:
        """The tools whose names the request lists, in the system prompt or in a search's description."""
        said = [tool["function"] for tool in tools if str(tool["function"]["name"]).startswith(NOT_TOOLS)]
        text = "\n".join([text_of(messages[0]), *(str(each.get("description", "")) for each in said)])
        joined = (f"{first}{rest}" for first, several in PREFIXED.findall(text) for rest in several.split(", "))
        return [name for name in dict.fromkeys([*LISTED.findall(text), *joined]) if name in self._known]


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
