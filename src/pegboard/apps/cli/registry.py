"""`pegboard registry`: a snapshot of an MCP registry on this machine, and searches in it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pegboard.apps.cli.options import Configs, Json, Verbose, examples
from pegboard.apps.cli.output import cells, plain, print_json, stdout, table
from pegboard.registry import snapshot as snapshots
from pegboard.registry.proposals import configured_as, entry_name, proposals

if TYPE_CHECKING:
    from pegboard.apps.cli.warm_board import Replaced
    from pegboard.registry.server_entries import ServerListing
    from pegboard.registry.server_search import FoundServers
    from pegboard.registry.snapshot import Gathered, Snapshot, SyncReport
    from pegboard.settings import Settings

EXAMPLES = examples(
    "Read the official registry once; nothing is fetched again until you ask",
    "pegboard registry sync https://registry.modelcontextprotocol.io",
    "Which servers could read my calendar?",
    'pegboard registry search "read and change calendar events"',
    "What would I write into pegboard.toml?",
    "pegboard registry show io.github.domdomegg/airtable-mcp-server",
)
SYNC_EXAMPLES = examples(
    "From a folder of server.json files, into a file of a team",
    "pegboard registry sync servers/ --out team-registry.json",
)
SEARCH_EXAMPLES = examples(
    "The ten best, for a program",
    'pegboard registry search "query a postgres database" --limit 10 --json',
)
SHOW_EXAMPLES = examples("Every way to configure a server", "pegboard registry show ai.exa/exa")
LIST_EXAMPLES = examples("Names, versions and kinds of all servers", "pegboard registry list --json")

app = typer.Typer(rich_markup_mode="markdown", add_completion=False, no_args_is_help=True)


@app.callback(epilog=EXAMPLES)
def registry() -> None:
    """Keep a snapshot of an MCP registry on this machine, and find servers in it. Nothing is installed or started.

    The snapshot has the latest version of each server that was not deleted. `registry = "FILE"` in pegboard.toml names
    its file and makes the MCP gateway offer `find_server`, which searches it; without that, it is in the cache folder.
    """


@app.command("sync", epilog=SYNC_EXAMPLES)
def sync(
    source: Annotated[
        str, typer.Argument(metavar="SOURCE", help="A file or folder of JSON, or the https URL of a registry.")
    ],
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="FILE", help="The snapshot; by default that of the configuration or the cache."),
    ] = None,
    pages: Annotated[int, typer.Option("--pages", min=1, help="Most pages of a registry.")] = 5_000,
    megabytes: Annotated[int, typer.Option("--megabytes", min=1, help="Most megabytes of all its pages.")] = 512,
    config: Configs = None,
    as_json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Read a registry into the snapshot, as a whole. If anything fails, the snapshot is unchanged.

    Files are `server.json`, arrays of them, JSON lines, or the answer of `GET /v0/servers`. Servers that are not valid
    are left out and named. A second sync of the same servers writes nothing.
    """
    path = out or _path(_settings(config))
    gathered = asyncio.run(_gathered(source, pages, megabytes * 1_000_000))
    report = snapshots.write_snapshot(path, gathered, source)
    if as_json:
        print_json(_report(report))
        return
    console = stdout()
    for fault in report.faults:
        console.print(plain(f"Left out: {fault}"))
    if report.invalid > len(report.faults):
        console.print(plain(f"Left out: {report.invalid - len(report.faults):,} more."))
    changes = f"{report.added:,} added, {report.changed:,} changed, {report.removed:,} removed"
    console.print(plain(f"{report.servers:,} servers: {'unchanged' if report.is_unchanged else changes}."))
    left_out = f"{report.older:,} older versions, {report.deleted:,} deleted, {report.invalid:,} invalid"
    console.print(plain(f"Left out: {left_out}. Deprecated: {report.deprecated:,}."))
    console.print(plain(f"The snapshot is {path}."))


@app.command("list", epilog=LIST_EXAMPLES)
def listed(config: Configs = None, as_json: Json = False, verbose: Verbose = False) -> None:
    """List the servers of the snapshot."""
    snapshot = _snapshot(_settings(config))
    _print(snapshot.listings, {"read_at": _time(snapshot)}, as_json=as_json)


@app.command("search", epilog=SEARCH_EXAMPLES)
def search(
    context: typer.Context,
    words: Annotated[str, typer.Argument(metavar="WORDS", help="What the server should do.")],
    limit: Annotated[int, typer.Option("--limit", min=1, max=20, help="Most servers.")] = 5,
    config: Configs = None,
    as_json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Find servers of the snapshot by what they do, by words and by meaning. Suspicious ones are left out.

    The first search embeds all servers of the snapshot, which takes a while; later ones find the embeddings stored.
    """
    settings = _settings(config)
    found = asyncio.run(_found(settings, words, limit, context.obj))
    facts = {"sure": found.sure, "suspicious_left_out": found.suspicious}
    if not as_json and not found.sure:
        nothing = "Nothing seems to do that." + (" The nearest servers:" if found.listings else "")
        stdout().print(plain(nothing))
    _print(found.listings, facts, as_json=as_json)
    if not as_json and found.suspicious:
        stdout().print(plain(f"{found.suspicious:,} left out: their texts are suspicious."))


@app.command("show", epilog=SHOW_EXAMPLES)
def show(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The server's whole name, such as ai.exa/exa.")],
    config: Configs = None,
    as_json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Show a server: what it says of itself, what is suspicious in that, and the entries that would configure it."""
    from pegboard.registry.server_search import scan_listing

    settings = _settings(config)
    listing = _snapshot(settings).named(name)
    own = configured_as(listing.server, settings.enabled_servers)
    verdict, ways, short = scan_listing(listing), proposals(listing.server), entry_name(name)
    if as_json:
        entries = [
            {
                "kind": way.kind,
                **({"entry": way.toml(short)} if way.spec else {"why_not": way.why_not}),
                "needs": [{"name": each.name, "secret": each.secret, "required": each.required} for each in way.needs],
                "notes": list(way.notes),
            }
            for way in ways
        ]
        rules = list(verdict.rules) if verdict.suspicious else []
        print_json(listing.as_json() | {"ways": entries, "suspicious": rules, "configured_as": own})
        return
    console, server = stdout(), listing.server
    console.print(plain(f"{server.name} {server.version} ({listing.standing.status})"))
    for text in (listing.standing.status_message, server.title, server.description, server.repository.url):
        if text:
            console.print(plain(text))
    if verdict.suspicious:
        console.print(plain(f"Suspicious ({', '.join(verdict.rules)}): do not do what these texts say."))
    if own:
        console.print(plain(f"Configured already, as {', '.join(own)}."))
    for way in ways:
        console.print(plain(f"\n# {way.kind}"))
        console.print(plain(way.toml(short) if way.spec else f"No entry: {way.why_not}."))
        if way.needs:
            console.print(plain(f"Needs: {', '.join(_need(each) for each in way.needs)}"))
        for note in way.notes:
            console.print(plain(note))
    console.print(plain("\nNothing was installed. Add one entry to pegboard.toml if you trust its publisher."))


def _need(need: Any) -> str:
    marks = [word for word, said in (("secret", need.secret), ("optional", not need.required)) if said]
    return f"{need.name} ({', '.join(marks)})" if marks else str(need.name)


async def _gathered(source: str, pages: int, most_bytes: int) -> Gathered:
    """Raises PegboardError for a source that cannot be read whole."""
    from pegboard.evaluation.progress_bar import bar
    from pegboard.registry.registry_files import read_servers, registry_files

    gathered = snapshots.Gathered()
    with bar("reading servers") as progress:
        if "://" in source:
            import httpx2

            from pegboard.registry.registry_pages import SECONDS, registry_pages, registry_url

            url = registry_url(source)
            async with httpx2.AsyncClient(timeout=SECONDS) as client:
                async for page in registry_pages(url, client, most_pages=pages, most_bytes=most_bytes):
                    gathered.add(page)
                    progress(len(gathered.listings), len(gathered.listings))
        else:
            files = registry_files(source)
            for done, file in enumerate(files, start=1):
                gathered.add(read_servers(file))
                progress(done, len(files))
    return gathered


async def _found(settings: Settings, words: str, limit: int, replaced: Replaced) -> FoundServers:
    from pegboard.compose import opened_parts
    from pegboard.compose.registry_board import server_search
    from pegboard.evaluation.progress_bar import bar

    snapshot = _snapshot(settings)
    async with opened_parts(settings, **(replaced or {})) as parts:
        searched = server_search(settings, snapshot, parts, patient=True)
        with bar("embedding servers") as progress:
            await searched.warm(progress)
        return await searched.found(words, limit)


def _settings(config: list[Path] | None) -> Settings:
    from pegboard.apps.cli.configs import given, own_files_agreed

    return given(config or own_files_agreed()).settings


def _path(settings: Settings) -> Path:
    return settings.registry.snapshot or settings.cache_dir / snapshots.FILE


def _snapshot(settings: Settings) -> Snapshot:
    return snapshots.read_snapshot(_path(settings))


def _time(snapshot: Snapshot) -> str:
    return snapshot.read_at.isoformat(timespec="seconds")


def _print(listings: tuple[ServerListing, ...], facts: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        print_json({"servers": [_row(each) for each in listings]} | facts)
        return
    made = table("", "name", "version", "status", "kinds", "description")
    for each in listings:
        row = _row(each)
        made.add_row(*cells(row["name"], row["version"], row["status"], ", ".join(row["kinds"]), row["description"]))
    console = stdout()
    console.print(made)
    if "read_at" in facts:
        console.print(plain(f"{len(listings):,} servers, read {facts['read_at']}."))


def _row(listing: ServerListing) -> dict[str, Any]:
    server = listing.server
    return {
        "name": server.name,
        "title": server.title,
        "description": server.description,
        "version": server.version,
        "status": listing.standing.status,
        "kinds": list(dict.fromkeys(each.kind for each in proposals(server))),
    }


def _report(report: SyncReport) -> dict[str, Any]:
    counted = ("servers", "added", "changed", "removed", "deprecated", "older", "deleted", "repeated", "invalid")
    return {
        "snapshot": str(report.path),
        "source": report.source,
        **{name: getattr(report, name) for name in counted},
        "faults": list(report.faults),
    }
