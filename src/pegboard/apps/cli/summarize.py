"""`pegboard summarize`: writes a one-line summary of each tool, phrased as users ask for it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import httpx2
import typer
from rich.table import Table

from pegboard.apps.cli.atomic_files import staged
from pegboard.apps.cli.configs import Configured
from pegboard.apps.cli.options import Catalogs, Configs, Json, Verbose, examples
from pegboard.apps.cli.output import cells, plain, print_json, stdout, table, unwritable
from pegboard.apps.cli.tool_sources import LoadedTools, load_some
from pegboard.apps.cli.warm_board import Replaced
from pegboard.catalog import Catalog
from pegboard.compose import default_parts
from pegboard.errors import ConfigError
from pegboard.evaluation.datasets import Query, check_labels, read_queries
from pegboard.evaluation.progress_bar import bar
from pegboard.evaluation.summary_quality import METRICS, Retrieval, mean_tokens, remembering, retrieval
from pegboard.model import ToolId
from pegboard.retrieval.tool_texts import name_and_description
from pegboard.settings import Settings, SummariesSettings, read_file
from pegboard.settings.client_files import is_projects
from pegboard.settings.services import key_in
from pegboard.summaries import Summaries, Summary, as_lines, read_summaries
from pegboard.summaries.catalog_summaries import WrittenSummaries, batches, still_good, write
from pegboard.summaries.llm_summaries import Chat

EXAMPLES = examples(
    "What would summaries by rule look like, and how short are they?",
    "pegboard summarize --dry-run",
    "Write them; `[summaries] file` in pegboard.toml uses the file",
    "pegboard summarize --config pegboard.toml --out summaries.jsonl",
    "Do they find tools better? With labelled queries",
    "pegboard summarize --catalog tools.jsonl --queries queries.jsonl",
)

SHOWN = 5
"""Number of sample summaries shown, at even intervals over the catalog."""
CLAIM = "Tool Attention reports -63% of length and +8 points of F1 for an LLM's."


@dataclass(frozen=True, slots=True, kw_only=True)
class SummarizeOptions:
    """The command's options. ``trusted`` means that the configuration was named with --config."""

    catalogs: tuple[Path, ...]
    trusted: bool
    out: Path
    queries: Path | None
    rules: bool
    again: bool
    dry_run: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Lengths:
    """Mean tokens per tool: of the name with the whole description, of the old summary, and of the new one."""

    description: float
    before: float
    after: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SummarizeReport:
    """``after`` is the catalog with the new summaries; ``found`` is the retrieval before and after.

    ``to_ask`` is the number of requests to an LLM, sent or planned; ``out`` is None if nothing was written.
    """

    loaded: LoadedTools
    written: WrittenSummaries
    model: str | None
    to_ask: int
    after: Catalog
    found: tuple[Retrieval, Retrieval] | None
    queries: int
    out: Path | None

    @property
    def lengths(self) -> Lengths:
        before, after = self.loaded.catalog, self.after
        return Lengths(
            description=mean_tokens(before, [name_and_description(tool) for tool in before.tools]),
            before=mean_tokens(before, [tool.summary for tool in before.tools]),
            after=mean_tokens(after, [tool.summary for tool in after.tools]),
        )

    @property
    def by_model(self) -> int:
        return len(self.written.rows) - self.written.by_rule - self.written.kept


def summarize(
    context: typer.Context,
    config: Configs = None,
    catalog: Catalogs = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="FILE", help="Output file; by default the configured file, or summaries.jsonl."),
    ] = None,
    queries: Annotated[
        Path | None,
        typer.Option(
            "--queries",
            metavar="FILE",
            help="Labelled queries, as for `pegboard rank`, to measure F1 before and after.",
        ),
    ] = None,
    rules: Annotated[
        bool, typer.Option("--rules", help="Write summaries by rule, even if an LLM is configured.")
    ] = False,
    again: Annotated[bool, typer.Option("--again", help="Ask the LLM even if the file has a valid summary.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Write nothing and ask no LLM: show what would be done.")
    ] = False,
    as_json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Write a summary of each tool: its name and at most 60 tokens, phrased as users ask for it.

    An LLM writes them if `[summaries]` names one. Unusable answers are replaced with summaries by rule, and so is
    everything if there is no LLM. Lengths are compared with the current ones, and with --queries so is retrieval by the
    profile attention.
    """
    from pegboard.apps.cli.configs import for_tools

    configured = for_tools(config, catalog)
    asked = SummarizeOptions(
        catalogs=tuple(catalog or ()),
        trusted=bool(config),
        out=out or configured.settings.summaries.file or Path("summaries.jsonl"),
        queries=queries,
        rules=rules,
        again=again,
        dry_run=dry_run,
    )
    outcome = asyncio.run(summaries_of(configured, asked, context.obj))
    if as_json:
        print_json(payload(outcome))
    else:
        show(outcome)


async def summaries_of(configured: Configured, asked: SummarizeOptions, replaced: Replaced) -> SummarizeReport:
    """Write summaries and measure them. Raises ConfigError at the start if a file or the LLM cannot be used."""
    labelled = read_queries(asked.queries) if asked.queries else ()
    known = _known(asked)
    section = None if asked.rules else _service(configured, asked)
    key = _key(section) if section and not asked.dry_run else None
    loaded = await _loaded(configured, asked, labelled)
    catalog = loaded.catalog
    kept = {} if asked.again else still_good(catalog, known)
    written = await _written(catalog, kept, None if asked.dry_run else section, key)
    rows = {row.tool: row for row in written.rows}
    after = Summaries(rows).put_on(catalog)
    found = await _compared(catalog, after, labelled, configured.settings, replaced)
    if not asked.dry_run:
        _write(asked.out, _others(known, catalog) | rows)
    return SummarizeReport(
        loaded=loaded,
        written=written,
        model=section.model if section else None,
        to_ask=len(batches(catalog, kept, section.batch)) if section else 0,
        after=after,
        found=found,
        queries=len(labelled),
        out=None if asked.dry_run else asked.out,
    )


async def _loaded(configured: Configured, asked: SummarizeOptions, labelled: tuple[Query, ...]) -> LoadedTools:
    """The tools. Raises PegboardError if there are none, CatalogError if queries name other tools."""
    loaded = await load_some(configured, asked.catalogs, "to summarize")
    if asked.queries:
        check_labels(labelled, loaded.catalog, asked.queries)
    return loaded


def _known(asked: SummarizeOptions) -> dict[ToolId, Summary]:
    """The summaries already in the file, none in a device. Since it is rewritten, it must be readable and its folder,
    or that of a link's target, must exist."""
    if not asked.out.resolve().parent.is_dir():
        raise unwritable(asked.out, "its folder does not exist")
    if asked.out.is_dir():
        raise unwritable(asked.out, "it is a folder")
    return read_summaries(asked.out) if asked.out.is_file() else {}


def _service(configured: Configured, asked: SummarizeOptions) -> SummariesSettings | None:
    """The LLM's section, if there is one. A file of the current project must not decide where a key is sent."""
    section = configured.settings.summaries
    if section.base_url is None:
        return None
    for path in () if asked.trusted else configured.files:
        if is_projects(path, Path.home(), Path.cwd()) and "base_url" in (read_file(path).get("summaries") or ()):
            raise ConfigError(
                f"{str(path)!r} belongs to the current project and names an LLM's service.",
                remedy=f"`--config {path}` uses it; `--rules` does not need it.",
            )
    return section


def _key(section: SummariesSettings) -> str | None:
    """The key from the variable that the section names; None if it names none."""
    return None if section.api_key_env is None else key_in(section.api_key_env, "the LLM's service")


async def _written(
    catalog: Catalog, kept: Mapping[ToolId, Summary], section: SummariesSettings | None, key: str | None
) -> WrittenSummaries:
    if section is None or section.base_url is None or section.model is None:
        return await write(catalog, kept=kept)
    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(httpx2.AsyncClient())
        progress = stack.enter_context(bar(f"asking {section.model}"))
        chat = Chat(client, base_url=section.base_url, model=section.model, key=key, timeout=section.timeout)
        return await write(
            catalog,
            kept=kept,
            model=chat,
            batch=section.batch,
            concurrency=section.concurrency,
            progress=progress,
        )


async def _compared(
    before: Catalog, after: Catalog, queries: tuple[Query, ...], settings: Settings, replaced: Replaced
) -> tuple[Retrieval, Retrieval] | None:
    """Retrieval with the old summaries and with the new ones; None without queries."""
    if not queries:
        return None
    parts = remembering(default_parts(settings, **(replaced or {})))
    found = []
    for label, catalog in (("before", before), ("after", after)):
        with bar(f"queries, {label}") as progress:
            found.append(await retrieval(catalog, queries, settings, parts, progress))
    return found[0], found[1]


def _others(known: Mapping[ToolId, Summary], catalog: Catalog) -> dict[ToolId, Summary]:
    """Summaries for servers that are not in the catalog."""
    return {tool: row for tool, row in known.items() if tool.server not in catalog.servers}


def _write(path: Path, rows: Mapping[ToolId, Summary]) -> None:
    with staged(path) as file:
        file.write(as_lines(rows.values()).encode(errors="backslashreplace"))  # half a surrogate pair, as in JSON


def payload(outcome: SummarizeReport) -> dict[str, Any]:
    written, lengths = outcome.written, outcome.lengths
    made: dict[str, Any] = {
        "out": None if outcome.out is None else str(outcome.out),
        "tools": len(written.rows),
        "by_rule": written.by_rule,
        "by_model": outcome.by_model,
        "kept": written.kept,
        "model": outcome.model,
        "requests": written.requests,
        "requests_needed": outcome.to_ask,
        "refused": dict(written.refused),
        "mean_tokens": {
            "description": round(lengths.description, 1),
            "before": round(lengths.before, 1),
            "after": round(lengths.after, 1),
        },
        "length_change": round(_change(lengths.before, lengths.after), 4),
        "length_change_of_description": round(_change(lengths.description, lengths.after), 4),
        "retrieval": _retrieval(outcome),
        "summaries": [{"server": row.server, "name": row.name, "summary": row.summary} for row in written.rows],
    }
    return made | outcome.loaded.payload()


def _retrieval(outcome: SummarizeReport) -> dict[str, Any] | None:
    if outcome.found is None:
        return None
    before, after = outcome.found
    gain = after.gain(before)
    return {
        "queries": outcome.queries,
        "before": before.payload(),
        "after": after.payload(),
        "f1@5_gain": round(gain.mean, 4),
        "f1@5_gain_interval_95": [round(gain.low, 4), round(gain.high, 4)],
        "seed_claims": {"f1": 0.08, "length_change": -0.63},
    }


def show(outcome: SummarizeReport) -> None:
    console = stdout()
    for line in outcome.loaded.lines():
        console.print(plain(line))
    console.print(_examples(outcome.loaded.catalog, outcome.after))
    if outcome.found is not None:
        console.print(_compared_summarized(outcome.queries, *outcome.found))
    console.print(plain("\n" + "\n".join(_sentences(outcome))))


def _examples(before: Catalog, after: Catalog) -> Table:
    made = table("", "before", "after")
    made.show_lines = True
    step = max(1, len(before) // SHOWN)
    for old, new in list(zip(before.tools, after.tools, strict=True))[::step][:SHOWN]:
        made.add_row(*cells(old.summary, new.summary))
    return made


def _compared_summarized(queries: int, before: Retrieval, after: Retrieval) -> Table:
    made = table(f"\n{queries} queries, profile attention", "", ">before", ">after")
    for metric in METRICS:
        made.add_row(*cells(metric, f"{before.mean(metric):.3f}", f"{after.mean(metric):.3f}"))
    made.add_row(*cells("F1 at the best θ", f"{before.f1:.3f} (θ={before.theta})", f"{after.f1:.3f} (θ={after.theta})"))
    return made


def _sentences(outcome: SummarizeReport) -> Iterator[str]:
    written, lengths = outcome.written, outcome.lengths
    yield (
        f"{len(written.rows)} tools: {written.by_rule} by rule, {outcome.by_model} by "
        f"{outcome.model or 'an LLM'}, {written.kept} kept from the file."
    )
    if written.refused:
        why = ", ".join(f"{reason} ({times})" for reason, times in written.refused.items())
        yield f"Answers of {outcome.model} not used: {why}."
    yield (
        f"Mean tokens of a summary: {lengths.after:.1f}, before {lengths.before:.1f} "
        f"({_change(lengths.before, lengths.after):+.0%}), of name and whole description {lengths.description:.1f} "
        f"({_change(lengths.description, lengths.after):+.0%})."
    )
    if outcome.found is not None:
        before, after = outcome.found
        gain = after.gain(before)
        points = [100 * value for value in (gain.mean, gain.low, gain.high)]
        yield f"F1@5 changes by {points[0]:+.1f} points [{points[1]:+.1f}, {points[2]:+.1f}]. {CLAIM}"
    if outcome.out is not None:
        yield f'Written to {outcome.out}. `summaries = "{outcome.out}"` in pegboard.toml uses it.'
    else:
        asked = f"; {outcome.model} would be asked {outcome.to_ask} times" if outcome.model else ""
        yield f"Nothing was written{asked}."


def _change(before: float, after: float) -> float:
    return after / before - 1 if before else 0.0
