"""What a method sends for one step, and the seam that every method fills in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from pegboard.model import AgentState, Message, Part, Tool, ToolId, Turn
from pegboard_bench.tax.tasks import Step, Task
from pegboard_bench.tax.testbeds import Testbed

RESULT = "done"
"""What tools answer: results are the same whichever method found the tool, so they are left out of every count."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """The tool text of one step.

    ``tools`` are sent as definitions with each request of the step, ``texts`` beside them: pools and instructions.
    ``asked`` are calls and answers by which the model found out about tools in this step, one request each; they stay
    in the conversation. ``reached`` are the tools that the model can call by then, knowing their parameters.
    ``late`` definitions stand behind the conversation, where they change no cached prefix (Tool Attention §5.6).
    """

    tools: tuple[Tool, ...] = ()
    texts: tuple[str, ...] = ()
    asked: tuple[tuple[str, ...], ...] = ()
    reached: frozenset[ToolId] = frozenset()
    late: tuple[Tool, ...] = ()


class Method(Protocol):
    """A way to bring tools before a model: one of `methods.OWN`, or an entry point of the group `methods.GROUP`."""

    async def begin(self, testbed: Testbed) -> None:
        """Whatever is done once for a catalog."""
        ...

    async def play(self, task: Task) -> Sequence[Sent]:
        """One for each step of the task."""
        ...


@dataclass(slots=True)
class Conversation:
    """The messages of a task as it goes on."""

    messages: list[Message] = field(default_factory=list)

    def turn(self, step: Step, state: AgentState | None = None) -> Turn:
        """The turn before this step's call."""
        if step.said is not None:
            self.messages.append(Message(role="user", parts=(Part(text=step.said),)))
        return Turn(messages=tuple(self.messages), state=step.state if state is None else state)

    def called(self, step: Step) -> None:
        """The step's call was made, and answered."""
        name = min(step.serves).name
        self.messages.append(Message(role="assistant", parts=(Part(kind="tool_call", tool=name),)))
        self.messages.append(Message(role="tool", parts=(Part(kind="tool_result", text=RESULT, tool=name),)))

    @property
    def asked(self) -> str:
        """What the user said last."""
        return next(message.text for message in reversed(self.messages) if message.role == "user")
