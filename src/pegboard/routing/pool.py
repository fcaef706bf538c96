"""Phase 1: the summary pool, which tells the model what tools exist, within a token budget (Tool Attention §4.4)."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import compress, groupby
from operator import attrgetter

from pegboard.catalog import Catalog
from pegboard.model import Mask, Server, Tokens, Tool, ToolId
from pegboard.protocols import TokenCounter

NAMED = 120
"""Maximum characters of a server's description in its line."""
LONG = 8
"""Characters of a token that is long: so many times the budget are more than fit."""
SLACK = 64
"""Tokens that a text may have more than another one of which it is the beginning: a word that was cut has others."""
Render = Callable[[Sequence[Tool], Mapping[str, Server]], Iterable[str]]
MOST = 16
"""Number of cached masks: rights and states are few."""
MOST_LINES = 4096
"""Servers whose lines are remembered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    text: str
    tokens: Tokens


class VisibleTools:
    """What a caller sees of a catalog, cached by mask. Masks have shape (n,), in catalog order; ``budget`` is the token
    budget of a pool, None for no limit."""

    def __init__(self, catalog: Catalog, budget: int | None) -> None:
        self._catalog = catalog
        self._budget = budget
        self._pool = lru_cache(maxsize=MOST)(self._render)
        self._ids = lru_cache(maxsize=MOST)(self._named)

    @classmethod
    def of(cls, catalog: Catalog, budget: int | None) -> VisibleTools:
        """One for all boards with this catalog."""
        found: VisibleTools = catalog.derived.setdefault((cls, budget), cls(catalog, budget))
        return found

    def pool(self, mask: Mask) -> Pool:
        """The summary of these tools (phase 1)."""
        return self._pool(mask.tobytes())

    def ids(self, mask: Mask) -> frozenset[ToolId]:
        return self._ids(mask.tobytes())

    def _render(self, mask: bytes) -> Pool:
        catalog = self._catalog
        tools = list(compress(catalog.tools, mask))
        return summary_pool(tools, catalog.servers, catalog.counter, self._budget)

    def _named(self, mask: bytes) -> frozenset[ToolId]:
        return self._catalog.ids if b"\0" not in mask else frozenset(compress(self._catalog.position, mask))


def summary_pool(
    tools: Sequence[Tool], servers: Mapping[str, Server], counter: TokenCounter, budget: int | None
) -> Pool:
    """One line per tool if that fits the budget, else the names by server, else as many names of each server as fit if
    those are at least half of all, else one line per server.

    Tool Attention's pool (``budget=None``) grows with the number of tools; this one does not.
    """
    if budget is None:
        return _counted("\n".join(_line_a_tool(tools, servers)), counter)
    for render in (_line_a_tool, _names_by_server):
        if (pool := _within(render(tools, servers), counter, budget)) is not None:
            return pool
    if (pool := _some_names_by_server(tools, counter, budget)) is not None:
        return pool
    if (pool := _within(_line_a_server(tools, servers), counter, budget)) is not None:
        return pool
    return _as_many_as_fit(list(_line_a_server(tools, servers)), counter, budget)


def _within(lines: Iterable[str], counter: TokenCounter, budget: int) -> Pool | None:
    """The pool of these lines, if it fits. Of thousands of lines, no more are read than show that it does not."""
    read: list[str] = []
    characters, shown = 0, LONG * budget
    for line in lines:
        read.append(line)
        characters += len(line) + 1
        if characters > shown:
            if counter.count(["\n".join(read)[:shown]])[0] > budget + SLACK:
                return None
            shown *= 2
    pool = _counted("\n".join(read), counter)
    return pool if pool.tokens <= budget else None


def _line_a_tool(tools: Sequence[Tool], _servers: Mapping[str, Server]) -> Iterable[str]:
    for server, of_server in _by_server(tools):
        yield f"[{server}]"
        yield from (tool.summary for tool in of_server)


def _names_by_server(tools: Sequence[Tool], _servers: Mapping[str, Server]) -> Iterable[str]:
    return (_some_names(server, of_server, len(of_server)) for server, of_server in _by_server(tools))


def _some_names_by_server(tools: Sequence[Tool], counter: TokenCounter, budget: int) -> Pool | None:
    """The most names of each server that fit, the same number for all that have more; None if fewer than half of all
    names do: then what the servers are for says more."""
    grouped = [*_by_server(tools)]
    sizes = [len(of_server) for _, of_server in grouped]

    def pool(most: int) -> Pool | None:
        return _within((_some_names(server, of_server, most) for server, of_server in grouped), counter, budget)

    low, high = _half(sizes), max(sizes, default=0)
    found = pool(low)
    while found is not None and low < high - 1:
        middle = (low + high) // 2
        if (more := pool(middle)) is None:
            high = middle
        else:
            found, low = more, middle
    return found


def _half(sizes: Sequence[int]) -> int:
    """The least number of each server's names that are at least half of all names.

    >>> _half([1, 2, 9])
    3
    """
    numbers = range(max(sizes, default=0) + 1)
    return bisect_left(numbers, sum(sizes) / 2, key=lambda most: sum(min(size, most) for size in sizes))


def _some_names(server: str, tools: Sequence[Tool], most: int) -> str:
    """A server's line with at most ``most`` names, and how many more it has."""
    names = [tool.id.name for tool in tools[:most]]
    more = [f"… {len(tools) - most} more"] if len(tools) > most else []
    return f"[{server}] {', '.join([*names, *more])}"


def _line_a_server(tools: Sequence[Tool], servers: Mapping[str, Server]) -> Iterable[str]:
    for server, of_server in _by_server(tools):
        yield _of_server(server, len(of_server), servers[server].description if server in servers else "")


@lru_cache(maxsize=MOST_LINES)
def _of_server(server: str, tools: int, description: str) -> str:
    about = " ".join(description.split())[:NAMED]
    return f"[{server}] {tools} tools" + (f": {about}" if about else "")


def _as_many_as_fit(lines: Sequence[str], counter: TokenCounter, budget: int) -> Pool:
    """The longest prefix of the lines that fits, by binary search, with the number of servers left out."""
    low, high = 0, 1
    while high < len(lines) and _cut(lines, high, counter).tokens <= budget:
        low, high = high, 2 * high
    high = min(high, len(lines))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if _cut(lines, middle, counter).tokens <= budget else (low, middle - 1)
    pool = _cut(lines, low, counter)
    return pool if pool.tokens <= budget else Pool(text="", tokens=Tokens(0))


def _cut(lines: Sequence[str], kept: int, counter: TokenCounter) -> Pool:
    return _counted("\n".join([*lines[:kept], f"… and {len(lines) - kept} more servers"]), counter)


def _counted(text: str, counter: TokenCounter) -> Pool:
    return Pool(text=text, tokens=Tokens(counter.count([text])[0]))


def _by_server(tools: Sequence[Tool]) -> Iterator[tuple[str, list[Tool]]]:
    return ((server, list(group)) for server, group in groupby(tools, key=attrgetter("id.server")))
