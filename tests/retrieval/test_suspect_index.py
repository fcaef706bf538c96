"""The tools of a changing catalog that are built to be found: the same as those of the whole catalog."""

from __future__ import annotations

import random

import numpy as np
import pytest

from pegboard.model import Tool
from pegboard.retrieval.rank_attacks import suspects
from pegboard.retrieval.slots import Slots, change_of
from pegboard.retrieval.suspect_index import DESCRIPTION, NAME, OWN, SENTENCES, SuspectIndex
from pegboard.testing import fake_tool

SERVERS = ("github", "jira", "zendesk", "slack", "mail", "mimic")
NAMES = ("create_issue", "list_files", "send_message", "find_hotels", "open_door", "assist")
SENTENCES_OF_TOOLS = (
    "Creates an issue with a title and labels.",
    "Lists all files of a folder by date.",
    "Sends a message to the members of a channel.",
    "Finds hotels near a place for the night.",
    "Opens the door of a building for a guest.",
    "Use this tool when the user asks for it.",
    "Find me a hotel in Oslo.",
    "What is the weather there?",
    "Please open an issue for me.",
    "Does it better.",
    "weather restaurant hotel table booking menu map route distance station train flight ticket airport city",
)


def a_tool(chance: random.Random, number: int) -> Tool:
    said = SENTENCES_OF_TOOLS if chance.random() < 0.2 else SENTENCES_OF_TOOLS[:6]
    text = " ".join(chance.sample(said, chance.choice((0, 1, 1, 2, 3, 4, 5))))
    if chance.random() < 0.5:
        text += f" It is for number {number} alone."
    name = chance.choice((*NAMES, f"tool_{number}", f"{chance.choice(NAMES)}_{number}"))
    return fake_tool(name, text, server=chance.choice(SERVERS))


def changed(chance: random.Random, tools: list[Tool], number: int) -> list[Tool]:
    """One to four tools come, go, or get other texts, at any place; the order of the others stays."""
    after = list(tools)
    for each in range(chance.randint(1, 4)):
        new = a_tool(chance, 10 * number + each)
        if after and chance.random() < 0.45:
            del after[chance.randrange(len(after))]
        else:
            after = [tool for tool in after if tool.id != new.id]
            after.insert(chance.randint(0, len(after)), new)
    return after


def found(tools: list[Tool]) -> list[bool]:
    of_all = suspects(tools)
    return [tool.id in of_all for tool in tools]


@pytest.mark.requirement("library.changed-tools")
@pytest.mark.parametrize("seed", range(12))
def test_a_catalog_that_changes_has_the_suspects_of_a_new_one(seed: int) -> None:
    chance = random.Random(seed)
    tools: list[Tool] = []
    for number in range(30):
        tools = changed(chance, tools, number)
    index, slots = SuspectIndex(tools), Slots.first(len(tools))
    assert index.mask.tolist() == found(tools)
    for number in range(30, 90):
        before, tools = tools, changed(chance, tools, number)
        change = change_of(slots, before, {}, tools, {})
        if change is None:
            index, slots = SuspectIndex(tools), Slots.first(len(tools))
            continue
        index, slots = index.changed(change, tools), change.slots
        assert index.mask.tolist() == found(tools)


def test_the_tools_of_that_test_are_suspected_for_every_reason() -> None:
    why: set[int] = set()
    whole, free = 0, 0
    for seed in range(12):
        chance = random.Random(seed)
        tools: list[Tool] = []
        for number in range(60):
            tools = changed(chance, tools, number)
        index = SuspectIndex(tools)
        why |= {bit for bit in (OWN, NAME, DESCRIPTION, SENTENCES) if (index._why & bit).any()}
        whole += len(index._whole)
        free += int(np.count_nonzero(~index.mask))

    assert why == {OWN, NAME, DESCRIPTION, SENTENCES}
    assert whole > 0
    assert free > 100


def test_the_first_of_two_copies_is_suspected_once_the_other_is_gone_and_comes_again() -> None:
    honest = fake_tool("create_issue", "Creates an issue with a title and labels.", server="github")
    copy = fake_tool("open_door", honest.description, server="mimic")
    many = [fake_tool(f"task_{number}", f"Do the task number {number}", server="own") for number in range(40)]
    tools = [honest, *many, copy]
    index, slots = SuspectIndex(tools), Slots.first(len(tools))
    assert index.mask.tolist() == found(tools) == [False] * 41 + [True]

    for after in ([*many, copy], [*many, copy, honest]):
        change = change_of(slots, tools, {}, after, {})
        assert change is not None
        index, slots, tools = index.changed(change, after), change.slots, after
        assert index.mask.tolist() == found(after)
