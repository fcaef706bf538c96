"""What a search says on each board: whether anything fits, and how sure that is."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pegboard.board_search import found_tools
from pegboard.compose import Parts, build_routing
from pegboard.model import Turn
from pegboard.proportions import wilson
from pegboard.retrieval.search_index import SearchIndex
from pegboard.settings import load_settings
from pegboard_bench.no_match.boards import AskedBoard


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Whether a tool fits, what the search said, and the chance that it gave."""

    query: str
    fits: bool
    said_fits: bool
    chance: float


async def verdicts(boards: Iterable[AskedBoard], parts: Parts) -> list[Verdict]:
    found = []
    for each in boards:
        routing = build_routing(load_settings(profile="hybrid"), each.board, parts=parts)
        await routing.warm()
        index = SearchIndex(each.board.tools, each.board.servers)
        for query, fits in [(text, True) for text in each.fitting] + [(text, False) for text in each.unfitting]:
            result = await found_tools(routing, index, Turn.ask, query)
            found.append(Verdict(query=query, fits=fits, said_fits=not result.nothing_fits, chance=result.chance))
    return found


def figures(name: str, found: Sequence[Verdict]) -> dict[str, float]:
    """`recall` is the share of requests without a tool that are told so, `false` the share of the others that are,
    both with 95% intervals (Wilson), and `precision` what "nothing fits" is worth if both kinds are equally many.
    `auc` is the chance that a request with a tool gets the higher probability of two (Mann-Whitney).
    """
    fitting = [each for each in found if each.fits]
    unfitting = [each for each in found if not each.fits]
    shown = {f"asked/{name}": float(len(found))}
    told = sum(not each.said_fits for each in unfitting), sum(not each.said_fits for each in fitting)
    for figure, hits, of in (("recall", told[0], len(unfitting)), ("false", told[1], len(fitting))):
        if (share := wilson(hits, of)) is not None:
            shown |= {
                f"{figure}/{name}": share.value,
                f"{figure}_low/{name}": share.low,
                f"{figure}_high/{name}": share.high,
            }
    recall, false = (shown.get(f"{figure}/{name}", 0.0) for figure in ("recall", "false"))
    shown[f"precision/{name}"] = recall / (recall + false) if recall + false else 0.0
    pairs = [(a.chance > b.chance) + (a.chance == b.chance) / 2 for a in fitting for b in unfitting]
    shown[f"auc/{name}"] = sum(pairs) / len(pairs) if pairs else 0.0
    return shown
