"""Sixty tools of a back office as plain functions, the asks of its people, and how a program of a framework is run.

A program gets the address before a model on its command line, and how many of the asks it is to make. It asks one after
another, and prints a line of JSON for each: `{"ask", "ended", "said"}`, where ``said`` is the end of the answer or of
the error.
"""

from __future__ import annotations

import asyncio
import json
import sys
import warnings
from collections.abc import Awaitable, Callable
from typing import Any

TOPICS = (
    *("invoice", "customer", "ticket", "calendar_event", "email", "contract"),
    *("warehouse_item", "shipment", "employee", "payroll_run", "campaign", "dashboard"),
)
VERBS = {
    "create": "Create a new {topic} from the given fields and return it with the id that it was given",
    "get": "Fetch one {topic} by its id, with all of its fields and the history of its changes",
    "list": "List every {topic} that fits the filter, the newest first, one page at a time",
    "update": "Change fields of an existing {topic}; fields that are not given stay as they are",
    "delete": "Remove a {topic} for good; it cannot be brought back, and what refers to it is told",
}
NAMES = tuple(f"{verb}_{topic}" for topic in TOPICS for verb in VERBS)
ASKS = (
    "Get invoice 7 and tell me what is wrong with it",
    "Where is my shipment?",
    "I want my money back for order 12",
    "Update the address of customer 31",
    "List every ticket of this week",
    "Cancel the meeting tomorrow",
    "Write an email to the customer about the delay",
    "Who is on holiday in August?",
    "Delete the spring campaign",
    "continue",
    "Thanks, that is all",
    "How much did we pay in salaries last month?",
)
INSTRUCTIONS = "You work in the back office of a shop. Use the tools that you are given."
EXPERT_INSTRUCTIONS = "You are the expert for shipping in the back office of a shop."
MOST_STEPS = 12
"""Steps after which a loop counts as one that does not end."""
SOURCE = '''
def {name}(id: str = "", note: str = "", fields: str = "", page: int = 1, requested_by: str = "") -> str:
    """{about}.

    Args:
        id: The id of the {topic}, as it stands on documents and in earlier results.
        note: What is to be set or changed, in plain words, or what to look for where nothing is to be changed.
        fields: Names of the fields that are wanted, with commas between them; all of them where nothing is said.
        page: The page of the results, from 1 on, where there are more than twenty of them.
        requested_by: Who in the company asked for it, for the record that is kept of every change.

    Returns:
        What was done, as text.
    """
    return "ok {name} " + str(id)
'''


def functions() -> list[Callable[..., str]]:
    """The tools, each a function of this module, with annotations and a docstring."""
    made = []
    for topic in TOPICS:
        for verb, about in VERBS.items():
            words = topic.replace("_", " ")
            source = SOURCE.format(name=f"{verb}_{topic}", about=about.format(topic=words), topic=words)
            namespace: dict[str, Any] = {"__name__": __name__}
            exec(source, namespace)  # noqa: S102  # our own text
            made.append(namespace[f"{verb}_{topic}"])
    return made


def written(folder: str) -> list[Callable[..., str]]:
    """The same from a file: some frameworks read a function's source."""
    import importlib.util
    from pathlib import Path

    file = Path(folder) / "back_office_tools.py"
    texts = []
    for topic in TOPICS:
        for verb, about in VERBS.items():
            words = topic.replace("_", " ")
            texts.append(SOURCE.format(name=f"{verb}_{topic}", about=about.format(topic=words), topic=words))
    file.write_text("\n".join(texts), "utf-8")
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[file.stem] = module
    spec.loader.exec_module(module)
    return [getattr(module, name) for name in NAMES]


def run(ask: Callable[[str], Awaitable[object]]) -> None:
    """Every ask, one after the other. A model's error or a limit of steps is an end that did not come."""
    warnings.simplefilter("ignore")
    asyncio.run(_all(ask))


async def _all(ask: Callable[[str], Awaitable[object]]) -> None:
    for text in ASKS[: int(sys.argv[2])]:
        try:
            said, ended = str(await ask(text)), True
        except Exception as error:  # noqa: BLE001  # whatever the framework makes of it
            said, ended = f"{type(error).__name__}: {error}", False
        sys.stdout.write(json.dumps({"ask": text, "ended": ended, "said": said[-300:]}) + "\n")
        sys.stdout.flush()


def base() -> str:
    """The address before the model, without a path."""
    return sys.argv[1].rstrip("/")
