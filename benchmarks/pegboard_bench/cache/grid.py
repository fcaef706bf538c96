"""The bill of each method in each cell of the grid."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from pegboard.prompt_cache import deferral_support
from pegboard.prompt_cache.ways import REFERENCE, WAYS, cheapest_way
from pegboard.settings.llm import Way
from pegboard.traffic import Seen, Traffic
from pegboard_bench.cache.boards import ToolBoard
from pegboard_bench.cache.methods import (
    Append,
    CallTool,
    Defer,
    Eager,
    Learning,
    Method,
    Naive,
    NoTools,
    Refer,
    Sent,
    Sticky,
    Watch,
)
from pegboard_bench.cache.prompts import Block, Chain
from pegboard_bench.cache.providers import Model
from pegboard_bench.cache.sessions import ASKED, SYSTEM, Cell, Conversation, Turn, conversations, turns, visitors

METHODS = (
    "eager",
    "naive",
    "append",
    "call_tool",
    "unlearnt",
    "learning",
    "sticky",
    "hybrid",
    "defer",
    "refer",
    "none",
)
"""`defer` at Anthropic alone, `refer` where the results of searches can load tools; `none` is the floor."""
TURNS = (1, 5, 20, 60)
OTHERS = (1, 10, 100)
NEWS = (0.0, 0.3, 1.0)
THINK = (20, 400)
GROWTH = (300, 2000)
LIFETIMES = (300, 3600)
LEAST_COLD = 2
"""Conversations at least that come before those that are billed: a lifetime of them, where that is not too many."""
BILLED_TURNS, LEAST_BILLED = 160, 4
"""Turns of a cell that are billed, and conversations at least: many short ones, so that chance evens out."""
TAUGHT_TURNS, LEAST_TAUGHT = 800, 20
"""Turns of earlier conversations, and conversations at least, that have taught the gateway what traffic is like."""
WAYS_OF: Mapping[str, Sequence[Way]] = {"sticky": ("whole", "tools"), "hybrid": WAYS}
"""`defer` only where the results of searches can load tools."""
API_OF: Mapping[str, str] = {"openai": "openai_responses"}
"""The wire format that is simulated, where a provider has more than one."""
SYSTEM_BLOCK: Block = (-1, SYSTEM)


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """The mean bill of a conversation in tokens of plain input, and the share of needed tools that were offered."""

    bill: float
    recall: float


def cells(testbeds: Sequence[str], lifetimes: Sequence[int] = LIFETIMES) -> Iterator[Cell]:
    for testbed, length, others, news, ttl, think, growth in product(
        testbeds, TURNS, OTHERS, NEWS, lifetimes, THINK, GROWTH
    ):
        if length > 1 or (news, think, growth) == (NEWS[0], THINK[0], GROWTH[0]):
            yield Cell(testbed=testbed, turns=length, others=others, news=news, ttl=ttl, think=think, growth=growth)


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """What is the same for every method: the turns in their order, and the numbers of the conversations billed."""

    cell: Cell
    testbed: ToolBoard
    model: Model
    order: Sequence[Turn]
    billed: range


def run(cell: Cell, testbed: ToolBoard, model: str, seed: int) -> dict[str, Found]:
    """Every method on the same conversations: ours take the way that is cheapest by what traffic has taught."""
    played = _played(cell, testbed, Model.of(model, cell.ttl), seed)
    prices = played.model.prices
    earlier = conversations(cell, testbed, max(TAUGHT_TURNS // cell.turns, LEAST_TAUGHT), seed + 1)
    taught = learnt(cell, testbed, earlier, played.model)
    methods: dict[str, Method] = {
        "eager": Eager(testbed),
        "naive": Naive(),
        "append": Append(),
        "call_tool": CallTool(),
        "unlearnt": Sticky(testbed, prices, cell.growth),
        "none": NoTools(),
    }
    provider = played.model.provider
    defers = deferral_support(API_OF.get(provider, provider), model).search != "none"
    if provider == "anthropic":
        methods["defer"] = Defer()
    if defers:
        methods["refer"] = Refer(testbed)
    open_ = [way for way in WAYS if defers or way != "defer"]
    methods["learning"] = Learning(testbed, prices, cell, played.billed.stop, open_)
    billed = {name: _billed(method, played) for name, method in methods.items()}
    by_way: dict[Way, Found] = {
        "whole": billed["eager"],
        "tools": billed["unlearnt"],
        "call_tool": billed["call_tool"],
    }
    if defers:
        by_way["defer"] = billed["refer"]
    total, constant, search = sum(testbed.tokens), testbed.constant, testbed.search
    for name, ways in WAYS_OF.items():
        possible = [way for way in ways if way in open_]
        billed[name] = by_way[cheapest_way(taught, prices, total, constant, possible, search=search)]
    return {name: billed[name] for name in METHODS if name in billed}


def _played(cell: Cell, testbed: ToolBoard, model: Model, seed: int) -> Played:
    cold = max(min(cell.others, BILLED_TURNS // cell.turns), LEAST_COLD)
    billed = range(cold, cold + max(BILLED_TURNS // cell.turns, LEAST_BILLED))
    found = conversations(cell, testbed, billed.stop, seed)
    until = found[-1].begins + cell.turns * cell.think
    order = turns(cell, [*found, *visitors(cell, testbed, until, len(found), seed)])
    return Played(cell=cell, testbed=testbed, model=model, order=order, billed=billed)


def learnt(cell: Cell, testbed: ToolBoard, earlier: Sequence[Conversation], model: Model) -> Traffic:
    """What earlier conversations of the same kind have taught: means, and nothing of the ones to come."""
    watch, seen = Watch(testbed, cell, model.prices.ttl), Seen()
    for turn in turns(cell, earlier):
        seen = seen.after(watch.turned(turn))
    return seen.traffic(SYSTEM, sum(testbed.tokens))


class _Thread:
    """One conversation as it is sent: what the history has besides messages, and the prompt of the last turn."""

    def __init__(self, testbed: ToolBoard, growth: int, number: int) -> None:
        self._testbed = testbed
        self._growth = growth
        self._number = number
        self._head: list[Block] | None = None
        self._history: list[Block] = []
        self._chain = Chain()

    def turn(self, number: int, sent: Sent) -> tuple[Chain, int]:
        """The prompt, and how many of its blocks are tools."""
        head = self._blocks(sent)
        new = self._messages(number, sent)
        if head != self._head:
            self._head, self._chain = head, Chain()
            self._chain.extend([*head, SYSTEM_BLOCK, *self._history])
        self._history += new
        self._chain.extend(new)
        return self._chain, len(head)

    def _blocks(self, sent: Sent) -> list[Block]:
        if sent.tools is None:
            return [(-2, self._testbed.constant)]
        search: list[Block] = [(-3, sent.search)] if sent.search else []
        return [*search, *((place, self._testbed.tokens[place]) for place in sent.tools)]

    def referred(self, places: tuple[int, ...]) -> Chain:
        """The prompt with references behind the user's message."""
        return self.found(places) if places else self._chain

    def found(self, places: tuple[int, ...]) -> Chain:
        """The prompt with what the model has searched for: it goes on with the same answer."""
        block = hash(places), REFERENCE + sum(self._testbed.tokens[place] for place in places)
        self._history.append(block)
        self._chain.extend([block])
        return self._chain

    def _messages(self, number: int, sent: Sent) -> list[Block]:
        """The answer to the turn before, and the user's message with the definitions that come with it."""
        said = hash((self._number, number))
        asked = ASKED + sum(self._testbed.tokens[place] for place in sent.injected)
        answer = [(said + 1, self._growth - ASKED)] if number else []
        return [*answer, (hash((said, sent.injected)), asked)]


def _billed(method: Method, played: Played) -> Found:
    model, cache = played.model, played.model.cache()
    threads: dict[int, _Thread] = {}
    bill, needed, offered = 0.0, 0, 0
    for turn in played.order:
        number = turn.conversation.number
        thread = threads.setdefault(number, _Thread(played.testbed, played.cell.growth, number))
        sent = method.send(turn)
        chain, tools = thread.turn(turn.number, sent)
        chain = thread.referred(sent.referred)
        marks = model.marks(tools, len(chain.ends))
        spent = cache.send(chain.prompt(marks), turn.at).billed(model.prices)
        if sent.found:
            spent += cache.send(thread.found(sent.found).prompt(marks), turn.at).billed(model.prices)
        if number in played.billed:
            wanted = turn.conversation.intents[turn.number].needed
            bill += spent
            needed += len(wanted)
            offered += len(wanted & sent.offered)
    return Found(bill=bill / len(played.billed), recall=offered / needed)
