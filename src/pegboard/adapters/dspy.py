"""DSPy: a `ReAct` that shows its model the tools of each step and checks each call.

ReAct has no hook per step; the call of its predictor is one. The predictor stays the module's own and is given the
signature of the step, so that what knows it by identity (stream listeners, optimizers) finds it. Names of tools are
text instead of a `Literal`, so that a call of another tool is refused instead of ending the trajectory. `finish` is
never left out.
"""

from __future__ import annotations

import copy
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

from pegboard.adapters.selection import SEARCH_ABOUT, SEARCH_SCHEMA, SEARCH_TOOLS, ToolSelector, TurnTools
from pegboard.extras import required
from pegboard.model import Message, Part

required("dspy", "dspy")

import dspy  # noqa: E402

FINISH = "finish"
MOST_SIGNATURES = 256
"""Signatures kept for different tools: making one takes milliseconds."""


class PegboardReAct(dspy.ReAct):
    """Selects the tools of each step by the inputs and the trajectory; serves any number of requests at once."""

    def __init__(
        self, signature: Any, tools: list[Any], max_iters: int = 20, selector: ToolSelector | None = None
    ) -> None:
        super().__init__(signature, tools, max_iters)
        self._selector = (selector or ToolSelector()).reading(once=True)
        self._signatures: OrderedDict[tuple[str, ...], Any] = OrderedDict()

    def forward(self, **inputs: Any) -> Any:
        return dspy.ReAct.forward(_run_of(self), **inputs)

    async def aforward(self, **inputs: Any) -> Any:
        return await dspy.ReAct.aforward(_run_of(self), **inputs)

    def _call_with_potential_trajectory_truncation(self, module: Any, trajectory: Any, **inputs: Any) -> Any:
        if module is self.react:
            turn = self._selector.select_now(self._choices(), _said(inputs, trajectory), inputs)
            inputs["signature"] = self._step(turn)
        return super()._call_with_potential_trajectory_truncation(module, trajectory, **inputs)

    async def _async_call_with_potential_trajectory_truncation(
        self, module: Any, trajectory: Any, **inputs: Any
    ) -> Any:
        if module is self.react:
            turn = await self._selector.select(self._choices(), _said(inputs, trajectory), inputs)
            inputs["signature"] = self._step(turn)
        return await super()._async_call_with_potential_trajectory_truncation(module, trajectory, **inputs)

    def _choices(self) -> list[Any]:
        return [tool for name, tool in self.tools.items() if name != FINISH]

    def _step(self, turn: TurnTools[Any]) -> Any:
        """The signature of one step."""
        search = _search_tool(self._selector, turn)
        self.tools.turn, self.tools.search = turn, search
        shown = [*turn.tools, *([search] if turn.has_search else ())]
        names = tuple(tool.name for tool in shown)
        signature = self._signatures.get(names)
        if signature is None:
            made = dspy.ReAct(self.signature, shown, self.max_iters).react.signature
            signature = self._signatures[names] = made.with_updated_fields("next_tool_name", type_=str)
            while len(self._signatures) > MOST_SIGNATURES:
                self._signatures.popitem(last=False)
        return signature


class GatedTools(dict[str, Any]):
    """The tools of one run. What a step does not have gives the error; an unknown name, too."""

    turn: TurnTools[Any] | None = None
    search: Any = None

    def __getitem__(self, name: str) -> Any:
        if self.turn is None or name == FINISH:
            return super().__getitem__(name)
        if (refusal := self.turn.refusal(name)) is not None:
            return dspy.Tool(func=lambda **_: refusal, name=name, desc=name, args={}, arg_types={}, arg_desc={})
        return self.search if name == SEARCH_TOOLS and self.turn.has_search else super().__getitem__(name)


def _run_of(module: PegboardReAct) -> Any:
    """A copy for one run: its steps are nobody else's."""
    run = copy.copy(module)
    run.tools = GatedTools(module.tools)
    return run


def _search_tool(selector: ToolSelector, turn: TurnTools[Any]) -> Any:
    def search_tools(query: str) -> str:
        return selector.search_now(turn, query).text

    return dspy.Tool(search_tools, desc=SEARCH_ABOUT, args=dict(SEARCH_SCHEMA["properties"]))


def _said(inputs: Mapping[str, Any], trajectory: Mapping[str, Any]) -> list[Message]:
    """The inputs as what the user said, the trajectory as calls and results."""
    asked = "\n".join(str(value) for name, value in inputs.items() if name != "trajectory")
    messages = [Message(role="user", parts=(Part(text=asked),))]
    for name, tool in trajectory.items():
        if name.startswith("tool_name_"):
            observation = trajectory.get(f"observation_{name.removeprefix('tool_name_')}")
            messages.append(Message(role="assistant", parts=(Part(kind="tool_call", tool=tool),)))
            messages.append(Message(role="tool", parts=(Part(kind="tool_result", text=str(observation), tool=tool),)))
    return messages
