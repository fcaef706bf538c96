"""The section of `cache.json`: what conversations are billed, by method, under the rules of prompt caches."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from statistics import median
from typing import Any

from pegboard_bench.cache.pictures import picture
from pegboard_bench.cache.providers import MODELS
from pegboard_bench.cache.summary import RIVALS
from pegboard_bench.results import measured

METHODS: Mapping[str, str] = {
    "eager": "all tools, always",
    "naive": "what is relevant to the turn, and what the history calls",
    "append": "what is relevant is added, nothing leaves",
    "call_tool": "one constant `call_tool`, definitions in the history",
    "unlearnt": 'the rule alone, always: `ways = ["tools"]`',
    "learning": "as `hybrid`, from a new key's first request on",
    "sticky": "the rule, or left alone, by what traffic has taught: the LLM gateway as it comes",
    "hybrid": "**Pegboard**: the rule, `call_tool` or left alone, by what traffic has taught: with `ways` set",
    "defer": "what is relevant to the first turn, the others deferred (Anthropic's search)",
    "refer": 'all deferred, what is relevant referred to, Pegboard\'s search: `ways = ["defer"]`',
    "none": "no tools at all: the floor",
}
GOALS: Mapping[str, tuple[str, float]] = {
    "worst_billed_over_eager": ("the worst cell", 1.01),
    "median_billed_over_eager": ("the median", 0.6),
    "worst_billed_over_cheapest": ("the worst cell over the cheapest", 1.02),
}
INTRODUCTION = """## What prompt caches make of it

Written by `{command}`; run it yourself with `PEGBOARD_DATA` set to a folder with the set real120. {measured}.
No provider is asked: their rules are simulated, and the simulators are tested against the examples of their
documentation. [The rule](prompt-cache.md) has a page of its own.

A cell of the grid is a number of turns (1 to 60), of conversations that begin within a lifetime (1, 10, 100), a share
of turns with a new intent (0, 0.3, 1), a lifetime (5 minutes and an hour where both are sold), seconds to think (20,
400), tokens that a turn leaves in the history (300, 2,000), and a board:

| board | tools | tokens of all | `call_tool` and pool |
|---|---|---|---|
{boards}

All input is billed, tools, system prompt and history, and all methods get the same conversations, with the router's
own picks. These are the {cells:,} cells by provider. `worst` and `median` are of what `hybrid` is billed over all tools
each time; the cheapest is the least of {rivals}.

`hybrid` is the LLM gateway with `ways = ["whole", "tools", "call_tool"]`, once it has learnt what traffic is like;
`sticky` is what it does without being told anything, for `call_tool` is by request. Both take the code and the
constants of the gateway; those were chosen on this grid with other seeds.

| provider | worst (goal 1.01) | median (goal 0.6) | worst over cheapest (goal 1.02) | cells within 2% of the cheapest |
|---|---|---|---|---|
{providers}

{missed}

What can be had at all: the cheapest of the others, cell by cell, as somebody would choose who had seen all the bills,
has a median of {possible}. No choice of tools comes below the conversation itself (but for prompts
that are then too short to be cached): without any tool the medians are {floor}, for the history is billed
too. A goal below these is not to be had on this grid.
"""
METHOD_TABLE = """
### {model}

Over all tools each time, {cells:,} cells; `dearer` is the share of cells above 1.01, `close` the share within 2% of the
cheapest. Recall is the share of needed tools that the model could call when it needed them.

| method | median | worst | dearer | close | recall |
|---|---|---|---|---|---|
{rows}

![{model}]({picture})
"""
WORST = """
### Where Pegboard is furthest from the cheapest

| cell | over the cheapest | over all tools |
|---|---|---|
{rows}
"""
READING = """
### What to make of it

- Filtering anew on each turn is the dearest of all where intents change and the history is long: each change writes
  everything again. Where they do not change, it is as good as any.
- One constant tool wins on large boards wherever intents change and turns come within the lifetime. Where they come
  later its definitions are paid for again with the history, and on small boards it costs its pool. What it costs in
  output and in calls that the model gets wrong is not in these figures.
- Recall is the router's on these requests, each on one matter: what is relevant is sent by every method here. It says
  nothing of requests that the router does not understand ([those are measured above](#ranking)).
- `sticky` is what can be had without `call_tool`: seldom dearer than all tools, and cheap where intents stay.
- Small boards in long conversations leave next to nothing to save: history is most of the bill, and these cells keep
  the medians up. Medians by each value of each axis are in `billed_over_eager/PROVIDER/METHOD/CASE`.
- What traffic has taught are means over other conversations of the same kind (length, growth, how often intents
  change, whether others keep the cache warm); of the conversation itself nothing is known ahead. Where a cell misses
  its goal, the conversations that are billed differ by chance from those means, or two ways cost nearly the same.
- `learning` begins with nothing known, and is billed from its third conversation on at the earliest: as long as five
  conversations have not been seen, tools are picked. That is what a new key may cost.
- Another way than all tools is taken where it is expected to save at least 5%, more where turns come late. With 2%, two
  to six in a hundred more cells were within 2% of the cheapest, and the worst cell was at 1.06 to 1.12 by seed. The
  worst is a matter of chance: of a cell of sixty turns four conversations are billed.
- To learn more than the way was tried: with means of length, growth and news in the rule itself the bills were no lower
  than with its priors, and replicas could not have agreed on it.
- OpenAI's routing is taken to be perfect, and a client to set its breakpoints well: both favour sending all tools.
"""
DEFERRED = """\
- `defer` is Anthropic's own search for tools that are [deferred](prompt-cache.md#deferred-tools). It is taken to be
  used whenever a needed tool is not there, to find the five that the router would have found, to weigh as much as
  `call_tool`, and to have the prompt read once more from the cache: the documentation says that what it finds is input,
  and none of the rest. So its recall is the router's, not measured, and `hybrid` does not choose it.
"""
REFERRED = """\
- `refer` is the gateway's way `defer`, and where it is measured it is one of the ways of `hybrid`. What is relevant is
  referred to behind the user's message, whose breakpoint moves there. Where a needed tool is not there, the model is
  taken to search and to find it among five, for one more reading; `call_tool` is not billed for that. So recall is 1 by
  assumption.
"""


def section(results: Mapping[str, Any]) -> str:
    tables, figures = results["tables"], results["figures"]
    head = INTRODUCTION.format(
        command=results["command"],
        measured=measured(results),
        boards="\n".join(
            f"| {name} | {tools} | {tokens:,} | {constant:,} |" for name, tools, tokens, constant in tables["testbeds"]
        ),
        cells=len(tables["cells"]),
        rivals=", ".join(f"`{name}`" for name in RIVALS),
        missed=_missed(figures),
        possible=_possible(tables),
        floor=_floor(figures),
        providers="\n".join(_provider(provider, figures) for provider in _providers(figures)),
    )
    models = "".join(_model(model, methods) for model, methods in tables["models"].items())
    worst = WORST.format(
        rows="\n".join(f"| {name} | {over:.3f} | {ratio:.3f} |" for name, over, ratio in tables["worst"])
    )
    notes = {"defer": DEFERRED, "refer": REFERRED}
    there = [text for name, text in notes.items() if any(name in methods for methods in tables["models"].values())]
    return head + models + worst + READING + "".join(there)


def _missed(figures: Mapping[str, float]) -> str:
    """Which goals are not met, and by how much."""
    missed = [
        f"{name} at {provider} ({figures[f'{figure}/{provider}']:.3f}, goal {goal:g})"
        for figure, (name, goal) in GOALS.items()
        for provider in _providers(figures)
        if figures[f"{figure}/{provider}"] > goal
    ]
    return f"Goals that are missed: {'; '.join(missed)}." if missed else "All goals are met."


def _possible(tables: Mapping[str, Any]) -> str:
    """The median of the cheapest rival over all tools, by provider."""
    cheapest: dict[str, list[float]] = defaultdict(list)
    for name, line in tables["cells"].items():
        ratios = dict(zip(tables["methods"], [1.0, *map(float, line.split()[1:])], strict=False))
        provider = next(provider for model, provider in MODELS.items() if name.startswith(f"{model}-"))
        cheapest[provider].append(min(ratios[method] for method in RIVALS))
    return ", ".join(f"{median(values):.3f} ({provider})" for provider, values in sorted(cheapest.items()))


def _floor(figures: Mapping[str, float]) -> str:
    names = [provider for provider in _providers(figures) if f"median_billed_over_eager/{provider}/none" in figures]
    each = (f"{figures[f'median_billed_over_eager/{name}/none']:.3f} ({name})" for name in sorted(names))
    return ", ".join(each) or "not measured yet"


def _providers(figures: Mapping[str, float]) -> list[str]:
    names = (name.split("/") for name in figures if name.startswith("median_billed_over_eager/"))
    return [parts[1] for parts in names if len(parts) == 2]


def _provider(provider: str, figures: Mapping[str, float]) -> str:
    values = (
        f"{figures[f'worst_billed_over_eager/{provider}']:.3f}",
        f"{figures[f'median_billed_over_eager/{provider}']:.3f}",
        f"{figures[f'worst_billed_over_cheapest/{provider}']:.3f}",
        f"{figures[f'cheapest_within_2_percent/{provider}']:.1%}",
    )
    return f"| {provider} | {' | '.join(values)} |"


def _model(model: str, methods: Mapping[str, Mapping[str, float]]) -> str:
    rows = [
        f"| {title} | {' | '.join(f'{methods[method][name]:.3f}' for name in ('median', 'worst'))} | "
        f"{' | '.join(f'{methods[method][name]:.1%}' for name in ('dearer', 'close', 'recall'))} |"
        for method, title in METHODS.items()
        if method in methods
    ]
    return METHOD_TABLE.format(
        model=model, cells=int(methods["eager"]["cells"]), rows="\n".join(rows), picture=picture(model)
    )
