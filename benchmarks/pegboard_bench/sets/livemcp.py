"""LiveMCPBench: 95 tasks that people wrote, as whole requests, as single steps and as questions of an agent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pegboard_bench.sets import livemcp_traces as traces
from pegboard_bench.sets.livemcp_catalog import (
    LICENCE,
    REPOSITORY,
    SOURCE,
    TASKS,
    TRACES,
    Labels,
    Pair,
    catalog,
    interchangeable,
    labels,
    listed,
    owners,
)
from pegboard_bench.sets.recipe import CATALOG, QUERIES, Converted, Files, Recipe, Row, Sources, query

POOLED = "pooled_routes.jsonl.gz"
ANNOTATION = "baseline/annotation/claude-sonnet-4-20250514_Qwen3-Embedding-0.6B.json"
MISALIGNED = {
    "042825": {2},
    "1f6a6d": {3},
    "2293b5": {3},
    "38c156": {1, 2, 3},
    "470f7a": {2, 3},
    "614189": {1},
    "6265fd": {1},
    "71a7a4": {1},
    "e28e8d": {1, 2},
}
"""Steps, counted from 0, whose tool is another's, by the first characters of the task: found by reading all pairs."""


def convert_tasks(sources: Sources) -> Converted:
    files = sources[SOURCE]
    tools = catalog(files)
    queries = []
    left_out = []
    for task, found in _labelled(files, tools):
        left_out += [f"The label {name!r} of {task['task_id']}: no tool has the name." for name in found.unknown]
        if found.relevant:
            queries.append(
                query(
                    task["task_id"],
                    task["Question"].strip(),
                    found.relevant,
                    category=task["category"],
                    any_of=found.any_of,
                )
            )
        else:
            left_out.append(f"The task {task['task_id']}: no label is certain.")
    return Converted(files={CATALOG: tools, QUERIES: queries}, left_out=left_out)


def convert_steps(sources: Sources) -> Converted:
    files = sources[SOURCE]
    tools = catalog(files)
    servers = owners(tools)
    queries = []
    seen: set[tuple[str, Pair]] = set()
    for task, found in _labelled(files, tools):
        steps = listed(task["Annotator Metadata"]["Steps"])
        names = listed(task["Annotator Metadata"]["Tools"])
        if len(steps) != len(names):
            continue
        pairs = {name: server for server, name in found.relevant}
        for number, (step, name) in enumerate(zip(steps, names, strict=True)):
            if number in MISALIGNED.get(task["task_id"][:6], ()) or name not in pairs:
                continue
            pair = (pairs[name], name)
            if (_plain(step), pair) in seen:
                continue
            seen.add((_plain(step), pair))
            queries.append(_subtask(f"{task['task_id']}#s{number}", step, [pair], task["category"], servers))
    return Converted(files={CATALOG: tools, QUERIES: queries})


def convert_routes(sources: Sources) -> Converted:
    files = sources[SOURCE]
    tools = catalog(files)
    servers = owners(tools)
    published = {trace["task_id"]: trace for trace in files.json(TRACES)}
    success = _success(files)
    queries = []
    pooled = []
    dropped = 0
    for task, found in _labelled(files, tools):
        routes = traces.credited(published[task["task_id"]])
        pooled.append(_pooled(task, found, [route.text for route, _ in routes], success.get(task["task_id"])))
        for route, credited in routes:
            known = [pair for pair in credited if pair[0] in servers.get(pair[1], ())]
            if known:
                name = f"{task['task_id']}#r{route.number}"
                queries.append(_subtask(name, route.text, known, task["category"], servers))
            else:
                dropped += 1
    return Converted(
        files={CATALOG: tools, QUERIES: queries, POOLED: pooled},
        left_out=[f"{dropped} routes of which the agent executed no tool that they had returned."],
    )


def _labelled(files: Files, tools: list[Row]) -> Iterator[tuple[Mapping[str, Any], Labels]]:
    servers = owners(tools)
    executed = {trace["task_id"]: set(traces.executed(trace)) for trace in files.json(TRACES)}
    for task in files.json(TASKS):
        yield task, labels(task, servers, executed.get(task["task_id"], set()))


def _plain(step: str) -> str:
    """What two steps are compared by: they are the same without regard to case and final full stop."""
    return step.casefold().rstrip(".").strip()


def _subtask(name: str, text: str, relevant: list[Pair], category: str, servers: Mapping[str, tuple[str, ...]]) -> Row:
    groups = (interchangeable(server, name, servers[name]) for server, name in relevant)
    return query(
        name, text, relevant, kind="subtask", category=category, any_of=[group for group in groups if group is not None]
    )


def _pooled(task: Mapping[str, Any], found: Labels, routes: list[str], success: str | None) -> Row:
    return {
        "task_id": task["task_id"],
        "question": task["Question"],
        "routes": routes,
        "annotated": [list(pair) for pair in found.relevant],
        "any_of": [[list(pair) for pair in group] for group in found.uncertain],
        "agent_task_success": success,
    }


def _success(files: Files) -> dict[str, str]:
    """Whether people found that the agent had done the task."""
    return {each["task_id"]: each["task_success"] for each in files.json(ANNOTATION)}


def _recipe(name: str, **parts: Any) -> Recipe:
    return Recipe(
        name=name,
        sources={SOURCE: REPOSITORY},
        licence=LICENCE,
        redistributable=True,
        **parts,
    )


TASKS_RECIPE = _recipe(
    "livemcp_tasks",
    title="LiveMCPBench: tasks",
    convert=convert_tasks,
    conversion="`query` is the question, `relevant` the annotator's tools, matched to names of the catalog as they "
    "are. A name of several servers is that of the only server that also has an annotated tool of a "
    "unique name, else of the only one whose tool the published agent executed; else it is a group of "
    "`any_of`, of which any member will do. Tools of one name of filesystem and desktop-commander are "
    "such groups too, since they do the same. A group that has a member of `relevant` stands for that "
    "label; another is one more label.",
    noise="The annotated tools are one person's way, not every way: people judged that the repository's own "
    "agent did 67 of 95 tasks, often with other tools. Many servers are near-duplicates (three of news, "
    "two of arXiv). Some descriptions are Chinese. The wording often names files (/root/...).",
)
STEPS_RECIPE = _recipe(
    "livemcp_steps",
    title="LiveMCPBench: steps that people wrote",
    convert=convert_steps,
    conversion="Of tasks with as many steps as tools, step i is paired with tool i (both are numbered lists). "
    "Visibly misaligned pairs, found by reading all, are left out, and so are repeated ones. Names of "
    "several servers are resolved as in `livemcp_tasks`.",
    noise="That step and tool belong together is inferred from equal numbers of both. Several annotators "
    'paraphrased the descriptions of tools, which makes those lexically easy. Steps such as "write the '
    'report" have no context.',
)
ROUTES_RECIPE = _recipe(
    "livemcp_routes",
    title="LiveMCPBench: questions of an agent to its router",
    convert=convert_routes,
    conversion="`query` is what Claude Sonnet 4 asked of the benchmark's router in the published traces. "
    "`relevant` has the tools that this route returned and that the agent then executed without a "
    "failed call; a tool counts for the latest route before its first success alone. "
    "`pooled_routes.jsonl.gz` has all routes of each task beside the annotated tools.",
    noise="Selection bias: labels exist only where the benchmark's retriever (Qwen3-Embedding-0.6B over "
    "server and tool texts, three tools) had found the tool, so the set flatters dense retrievers of "
    "that kind and is easier than routing is. One model, one run. `pooled_routes` has no such bias.",
)
