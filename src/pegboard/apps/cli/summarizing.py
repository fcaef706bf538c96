"""The work of `pegboard summarize`: read the tools, have summaries written, measure, write the file."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

import httpx2

from pegboard.apps.cli.boards import Replaced
from pegboard.apps.cli.configs import Configured
from pegboard.apps.cli.sources import Loaded, load
from pegboard.apps.cli.summarized import Outcome
from pegboard.bench.datasets import Query, check_labels, read_queries
from pegboard.bench.progress import bar
from pegboard.bench.summarized import Retrieval, remembering, retrieval
from pegboard.catalog import Catalog
from pegboard.client_configs import is_projects
from pegboard.compose import default_parts
from pegboard.errors import ConfigError, PegboardError
from pegboard.model import ToolId
from pegboard.settings import Settings, SummariesSettings, read_file
from pegboard.settings.services import key_in
from pegboard.summaries import Summaries, Summary, as_lines, read_summaries
from pegboard.summaries.chat import Chat
from pegboard.summaries.writing import Written, batches, still_good, write


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What the command line says. ``trusted``: the configuration was named, not found."""

    catalogs: tuple[Path, ...]
    trusted: bool
    out: Path
    queries: Path | None
    rules: bool
    again: bool
    dry_run: bool


async def summaries_of(configured: Configured, asked: Asked, replaced: Replaced) -> Outcome:
    """Raises ConfigError before any work for what could not be written, read or asked at its end."""
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
    return Outcome(
        loaded=loaded,
        written=written,
        model=section.model if section else None,
        to_ask=len(batches(catalog, kept, section.batch)) if section else 0,
        after=after,
        found=found,
        queries=len(labelled),
        out=None if asked.dry_run else asked.out,
    )


async def _loaded(configured: Configured, asked: Asked, labelled: tuple[Query, ...]) -> Loaded:
    """The tools; raises PegboardError where there are none, CatalogError where queries name others."""
    loaded = await load(configured, asked.catalogs)
    if not len(loaded.catalog):
        raise PegboardError(
            " ".join(["There are no tools to summarize.", *loaded.lines()]),
            remedy="`pegboard doctor` says what is wrong with each server.",
        )
    if asked.queries:
        check_labels(labelled, loaded.catalog, asked.queries)
    return loaded


def _known(asked: Asked) -> dict[ToolId, Summary]:
    """What the file holds already. It is written again whole, so that it has to be readable and its folder there."""
    if not asked.out.parent.is_dir():
        raise _unwritable(asked.out, "its folder does not exist")
    return read_summaries(asked.out) if asked.out.exists() else {}


def _service(configured: Configured, asked: Asked) -> SummariesSettings | None:
    """The LLM's section, where there is one. A project's own file must not say to whom a key is sent."""
    section = configured.settings.summaries
    if section.base_url is None:
        return None
    for path in () if asked.trusted else configured.files:
        if is_projects(path, Path.home(), Path.cwd()) and "base_url" in (read_file(path).get("summaries") or ()):
            raise ConfigError(
                f"{str(path)!r} belongs to the project here and names an LLM's service.",
                remedy=f"`--config {path}` uses it; `--rules` does without.",
            )
    return section


def _key(section: SummariesSettings) -> str | None:
    """The key, from the variable that the section names; none where it names none."""
    return None if section.api_key_env is None else key_in(section.api_key_env, "the LLM's service")


async def _written(
    catalog: Catalog, kept: Mapping[ToolId, Summary], section: SummariesSettings | None, key: str | None
) -> Written:
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
    """Retrieval with the summaries of now and with the new ones; None without queries."""
    if not queries:
        return None
    parts = remembering(default_parts(settings, **(replaced or {})))
    found = []
    for label, catalog in (("before", before), ("after", after)):
        with bar(f"queries, {label}") as progress:
            found.append(await retrieval(catalog, queries, settings, parts, progress))
    return found[0], found[1]


def _others(known: Mapping[ToolId, Summary], catalog: Catalog) -> dict[ToolId, Summary]:
    """Those of servers that are not here now."""
    return {tool: row for tool, row in known.items() if tool.server not in catalog.servers}


def _write(path: Path, rows: Mapping[ToolId, Summary]) -> None:
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        draft.write_text(as_lines(rows.values()), "utf-8")
        draft.replace(path)
    except OSError as error:
        draft.unlink(missing_ok=True)
        raise _unwritable(path, str(error)) from error


def _unwritable(out: Path, why: str) -> ConfigError:
    return ConfigError(f"Cannot write {str(out)!r}: {why}.", remedy="Name another file with --out.")
