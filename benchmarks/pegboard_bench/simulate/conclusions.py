"""What the figures say, in sentences: which way a difference goes is never written by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Triple = Sequence[float]
"""Mean, low and high."""


SIMILARITY, EHRR, HYBRID = "no_cut_over_cut_similarity", "no_cut_over_cut_ehrr", "no_cut_over_cut_hybrid"
"""Pairs of the same scores without the cut and with it."""


def shows(each: Triple) -> bool:
    """Whether the interval leaves zero out."""
    _, low, high = each
    return low > 0 or high < 0


def signed(each: Triple, *, share: bool = True) -> str:
    """The mean with its interval, as +12.3% [+1.0, +20.0].

    >>> signed((0.123, 0.01, 0.2)), signed((0.123, 0.01, 0.2), share=False)
    ('+12.3% [+1.0, +20.0]', '+0.123 [+0.010, +0.200]')
    """
    if not share:
        mean, low, high = each
        return f"{mean:+.3f} [{low:+.3f}, {high:+.3f}]"
    mean, low, high = (100 * value for value in each)
    return f"{mean:+.1f}% [{low:+.1f}, {high:+.1f}]"


def how(each: Triple, more: str, less: str, *, share: bool = True) -> str:
    """
    >>> how((0.2, 0.1, 0.3), "more", "less"), how((0.2, -0.1, 0.3), "more", "less")
    ('more (+20.0% [+10.0, +30.0])', 'not clearly more or less (+20.0% [-10.0, +30.0])')
    """
    word = (more if each[0] > 0 else less) if shows(each) else f"not clearly {more} or {less}"
    return f"{word} ({signed(each, share=share)})"


def ehrr(tables: Mapping[str, Any]) -> list[str]:
    """EHRR beside RAG-MCP on either kind of request, and beside RAG-MCP as the paper ran it."""
    found = []
    for asked in tables["policies"]:
        pair = tables["pairs"][f"{asked}/h1/copies1"]["ehrr_over_rag_mcp"]
        found.append(
            f"**On {asked}, with the same text for both**, EHRR succeeds {how(pair['success'], 'more', 'less')} "
            f"often than RAG-MCP, spends {how(pair['cost_usd'], 'more', 'less')} on calls and "
            f"{how(pair['tokens'], 'more', 'fewer')} tokens, and its calls have "
            f"{how(pair['utility'], 'more', 'less', share=False)} utility by its own measure."
        )
    pairs = tables["pairs"].get("routes/h1/copies1", {})
    if "ehrr_over_rag_mcp_task_text" in pairs:
        original, text = pairs["ehrr_over_rag_mcp_task_text"], pairs["rag_mcp_over_rag_mcp_task_text"]
        found.append(
            f"**As the paper compared them**, RAG-MCP with the text of the whole task and EHRR with the sub-task, "
            f"EHRR succeeds {how(original['success'], 'more', 'less')} often, at a cost that is "
            f"{how(original['cost_usd'], 'higher', 'lower')}, with {how(original['tokens'], 'more', 'fewer')} tokens. "
            f"RAG-MCP itself succeeds {how(text['success'], 'more', 'less')} often with the sub-task's text than with "
            "the task's: that much is the text's doing, and not the routing's."
        )
    return found


def where_it_loses(tables: Mapping[str, Any]) -> str:
    """Which cells of the grid EHRR wins, by success at the same text."""
    verdicts: dict[str, list[str]] = {"wins": [], "loses": [], "neither": []}
    for label, pairs in tables["pairs"].items():
        each = pairs["ehrr_over_rag_mcp"]["success_points"]
        verdicts[("wins" if each[0] > 0 else "loses") if shows(each) else "neither"].append(_cell(label))
    return (
        f"**Where EHRR loses.** Of {len(tables['pairs'])} cells of the grid, EHRR succeeds more often than RAG-MCP "
        f"with the same text in {len(verdicts['wins'])}, less often in {len(verdicts['loses'])}, and in "
        f"{len(verdicts['neither'])} no difference shows. It loses with {_listed(verdicts['loses'])}; it wins with "
        f"{_listed(verdicts['wins'])}."
    )


def as_it_learns(tables: Mapping[str, Any]) -> str:
    found = []
    for asked, policies in tables["policies"].items():
        learnt = tables["learnt"][asked]
        parts = ", ".join(
            f"`{policy}` {policies[policy]['mrr'][0]:.2f} → {learnt[policy]['mrr'][0]:.2f}"
            for policy in ("rag_mcp", "ehrr", "ehrr_neutral", "ehrr_tenth", "ehrr_neutral_tenth", "hybrid_economics")
        )
        found.append(f"{asked}: {parts}")
    return (
        f"**As it learns** (MRR in the first pass → in pass {max(tables['passes'].values())}), {'; '.join(found)}. "
        "Two properties of the formulas pull EHRR down. From r = 0.5 down the conservative r − √σ² is clipped to ε, "
        "and C^s becomes a thousand seconds, whatever the server is for. And where a second weighs α_t = 0.25, two "
        "seconds outweigh nearly any difference of cosines. `ehrr_neutral` lets r~ be r, `ehrr_tenth` weighs a second "
        "a tenth as much, `ehrr_neutral_tenth` does both."
    )


def economics(tables: Mapping[str, Any]) -> str:
    """What prices and failures do for `hybrid`."""
    found = []
    for asked in tables["policies"]:
        for copies in sorted({label.split("/")[2] for label in tables["pairs"]}):
            label = f"{asked}/h1/{copies}"
            first = tables["pairs"][label]["hybrid_economics_over_hybrid"]["success"]
            last = tables["pairs_learnt"][label]["hybrid_economics_over_hybrid"]["success"]
            found.append(
                f"{_cell(label)}: {how(first, 'more', 'less')} at first, {how(last, 'more', 'less')} in the last pass"
            )
    return (
        "**`hybrid` with economics**, which lets costs decide between tools that are about as relevant and never "
        f"otherwise, beside `hybrid` succeeds, on {'; on '.join(found)}. With one of each server a needed tool is on "
        "one server, and there is nothing to choose: what can be learnt is then only what not to pay for."
    )


def cut(tables: Mapping[str, Any]) -> list[str]:
    """The answer to: what does the cut to five servers cost, and does softer evidence do better?"""
    return [_cut(asked, tables) for asked in tables["kept"]]


def _cut(asked: str, tables: Mapping[str, Any]) -> str:
    kept, pairs = tables["kept"][asked], tables["pairs"][f"{asked}/h1/copies1"]
    soft = pairs["no_cut_over_cut_hybrid"]
    several = "".join(
        f" With three of each server, whose copies fill the five places, by {_points(found, SIMILARITY)}, "
        f"{_points(found, EHRR)} and {_points(found, HYBRID)}."
        for label, found in tables["pairs"].items()
        if label == f"{asked}/h1/copies3"
    )
    return (
        f"On {asked} the five servers most similar to the text keep {kept['kept_by_cut']:.0%} of the tools that are "
        f"needed, and all of them for {kept['whole_after_cut']:.0%} of the requests. Without the cut, with the same "
        f"scores, success changes by {_points(pairs, SIMILARITY)} points for similarity, {_points(pairs, EHRR)} for "
        f"EHRR and {_points(pairs, HYBRID)} for `hybrid`.{several} So softer evidence, the server as a part of "
        f"`hybrid`'s scores, succeeds {how(soft['success'], 'more', 'less')} often than the cut with these scores; its "
        f"MRR is {how(soft['mrr'], 'higher', 'lower', share=False)}; and `hybrid` succeeds "
        f"{how(pairs['hybrid_over_rag_mcp']['success'], 'more', 'less')} often than RAG-MCP, which has the cut, and "
        f"{how(pairs['hybrid_over_ehrr']['success'], 'more', 'less')} often than EHRR."
    )


def _points(pairs: Mapping[str, Any], name: str) -> str:
    return signed(pairs[name]["success_points"], share=False)


def _cell(label: str) -> str:
    """
    >>> _cell("tasks/h0.5/copies3")
    'tasks, h = 0.5, 3 of each server'
    """
    asked, level, copies = label.split("/")
    return f"{asked}, h = {level.removeprefix('h')}, {copies.removeprefix('copies')} of each server"


def _listed(cells: Sequence[str]) -> str:
    return "; ".join(cells) or "none"
