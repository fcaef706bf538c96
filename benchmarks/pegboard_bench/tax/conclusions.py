"""What to conclude, in sentences whose figures come from the results."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pegboard_bench.tax.equations import ALPHA
from pegboard_bench.tax.made import ROUNDED_TOTAL
from pegboard_bench.tax.rows import READ

GOAL_TOKENS, GOAL_RECALL = 5_700, 0.9
"""Of issue and page: 85% less than everything, in the steady state on real120."""
HALF = 0.5


def conclusions(tables: Mapping[str, Any]) -> list[str]:
    """Ten sentences on the testbed that is nearest to life."""
    bed = "real120" if "real120" in tables["methods"] else "synthetic"
    of = tables["methods"][bed]
    if "hybrid" not in of or "full" not in of:
        return ["Only some methods were run: the tables say what they gave."]
    full, ours = of["full"], of["hybrid"]
    found = [
        f"On {bed} every request carries {_n(full['first'])} tokens of definitions if nothing is done; Pegboard as a "
        f"library sends {_n(ours['steady'])} ({_less(ours, full)} less) and the tool of a step is there in "
        f"{_p(ours['recall'])} of steps: with its defaults it does not reach 0.9 on requests like these."
        if ours["recall"][0] < GOAL_RECALL
        else f"On {bed} Pegboard as a library sends {_n(ours['steady'])} of {_n(full['first'])} tokens and has "
        f"the tool of a step in {_p(ours['recall'])} of steps.",
    ]
    if "hybrid_way_back" in of:
        way = of["hybrid_way_back"]
        met = way["steady"][0] <= GOAL_TOKENS and way["recall"][0] >= GOAL_RECALL
        found.append(
            f"With a way back, by which the model may search for what was left out, it is {_n(way['steady'])} tokens, "
            f"{way['requests'][0]:.2f} requests a step and {_p(way['recall'])}: the goal of at most {GOAL_TOKENS:,} "
            f"tokens at a recall of {GOAL_RECALL} is {'met' if met else 'missed'} that way."
        )
    if "hybrid_static" in of:
        static = of["hybrid_static"]
        found.append(
            f"Of Pegboard's doors the MCP gateway lists least ({_n(static['steady'])} tokens a step), but the model "
            f"has to ask: {static['requests'][0]:.2f} requests a step carry {_n(static['sent'])} tokens together, and "
            f"after thirty turns {_n(static['resident_t30'])} tokens of searches and definitions stand in the "
            "conversation; a listing alone is no measure."
        )
    attention = "attention_minilm" if "attention_minilm" in of else "attention"
    if attention in of:
        tool = of[attention]
        found.append(
            f"Tool Attention's saving is real and its recall is the price: {_n(tool['steady'])} tokens with its "
            f"summaries, and {_p(tool['recall'])} of steps; its threshold of 0.28 is too high for requests that do "
            "not repeat the summaries, and has to be calibrated (`pegboard calibrate`)."
        )
    found += _more(tables, of)
    return found


def _more(tables: Mapping[str, Any], of: Mapping[str, Any]) -> list[str]:
    found = []
    if "semantic_threshold" in of:
        by_threshold = of["semantic_threshold"]
        passes = by_threshold["recall"][0] < HALF
        what = (
            f"{_p(by_threshold['recall'])} of steps"
            if passes
            else f"so all are sent, {_n(by_threshold['sent'])} tokens"
        )
        found.append(
            f"A threshold of 0.7 on raw cosines lets nothing through ({what}): filter by rank, or by a calibrated "
            "probability."
        )
    if "pruned" in of:
        found.append(
            f"Thirty tools chosen once for all serve {_p(of['pruned']['recall'])} of steps where work is as varied as "
            "here; where it is not, they are hard to beat: pin them (`always_available`)."
        )
    if "full" in of and "hybrid" in of:
        read = READ * of["full"]["sent"][0]
        found.append(
            "A prompt cache changes the sum: over tasks as short as these, sending everything is billed as "
            f"{_n(of['full']['billed'])} tokens a step and Pegboard's changing selection as "
            f"{_n(of['hybrid']['billed'])}, but in a long session, where everything is read at a tenth ({read:,.0f}), "
            "next to nothing is left to save: there the LLM gateway's rule for caches leaves requests alone."
        )
    small = tables["catalogs"].get("recorded")
    if small and "recorded" in tables["methods"]:
        recorded = tables["methods"]["recorded"]
        found.append(
            f"On the {small['tools']} tools of seven small public servers everything is {small['tokens']:,} tokens, "
            f"and Pegboard sends {_n(recorded['hybrid']['steady'])} with the tool there in "
            f"{_p(recorded['hybrid']['recall'])} of steps: on a board that small, send everything or leave a way "
            "back; below ten tools or 4,000 tokens Pegboard passes everything by itself."
        )
    found += [
        "Projected success, latency and cost (†) rest on two rows of the paper and a straight line; no model was run "
        "for them (what one calls is measured by `make bench-live`), and they should decide nothing that recall and "
        "tokens do not.",
        "Rule of thumb: one agent of your own, the library or middleware; several clients and servers, the MCP "
        "gateway (static, or dynamic where no prompt cache is billed); agents you cannot change, the LLM gateway "
        "with its way back; fewer than thirty tools, or one cached prompt used all day, leave everything in.",
    ]
    return found


def claims(tables: Mapping[str, Any]) -> list[str]:
    """What the paper says, and what came out."""
    about = tables["catalogs"].get("synthetic")
    if about is None:
        return ["The synthetic testbed was not run."]
    of, found = tables["methods"]["synthetic"], []
    found.append(
        f"Table 2 sums to {about['tokens']:,} tokens a turn here (the paper rounds to {ROUNDED_TOTAL:,}); 30 turns "
        f"are {about['session_tax']:,} (eq. 2). The right-hand side of eq. 2 is exact at α = {about['alpha']:.0f}"
        + (
            f", and on real120 at α = {tables['catalogs']['real120']['alpha']:.0f}"
            if "real120" in tables["catalogs"]
            else ""
        )
        + f"; the paper takes {ALPHA[0]} to {ALPHA[1]}."
    )
    for name, title in (("attention_minilm", "with MiniLM as published"), ("attention", "with Pegboard's encoder")):
        if name in of:
            phase1, phase2 = of[name]["phase1"][0], of[name]["phase2"][0]
            whole = of["full"]["first"][0] if "full" in of else about["tokens"]
            found.append(
                f"Tool Attention {title}: phase 2 is {phase2:,.0f} tokens, {1 - phase2 / whole:.1%} less than "
                f"everything (claimed: at least 95%), phase 1 {phase1:,.0f} more, so that "
                f"{1 - (phase1 + phase2) / whole:.1%} is saved. It promotes {of[name]['tools'][0]:.1f} tools a step, "
                f"and the right one is among them in {of[name]['recall'][0]:.1%} of steps."
            )
    found.append(
        "The paper's 2,368 tokens are phase 2 alone: its own §4.4 puts the resident summaries at 4.8k, so a turn "
        "carries about 7.2k, and its ρ of 0.91 does not follow from eq. 3 with either sum and one C_task. Its tasks "
        "were summaries of the tools themselves, which is why its recall could be high with so few tools."
    )
    found.append(
        "With T_tax as eq. 2 has it, everything sent up to the turn, ρ at turn 30 is "
        + ", ".join(
            f"{of[name]['rho_cumulative_t30'][0]:.3f} ({name})"
            for name in ("full", "attention", "hybrid")
            if "rho_cumulative_t30" in of.get(name, {})
        )
        + "; its table 3 has the tax that is resident."
    )
    return found


def of_poison(tables: Mapping[str, Any]) -> str:
    shares = tables["poisoned"]
    bed = next(iter(shares)).split("/")[0]
    summaries = shares.get(f"{bed}/attention/plain")
    targeted = shares.get(f"{bed}/hybrid/targeted")
    found = "Filtering is no defence."
    if summaries:
        found += (
            f" Tool Attention keeps {1 - summaries['full']:.0%} of plain payloads out of phase 2 and shows "
            f"{summaries['text']:.0%} of their summaries to the model all the same."
        )
    if targeted:
        found += (
            " Whoever knows the request is selected by every method that goes by relevance "
            f"({targeted['reached']:.0%} by `hybrid`); pins and `pegboard lint` are what stands against that."
        )
    return found


def _n(interval: list[float]) -> str:
    return f"{interval[0]:,.0f}"


def _p(interval: list[float]) -> str:
    return f"{interval[0]:.1%}"


def _less(ours: Mapping[str, Any], full: Mapping[str, Any]) -> str:
    return f"{1 - ours['steady'][0] / full['steady'][0]:.0%}"
