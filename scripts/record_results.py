"""Records what real MCP servers answer about real local data, for `make bench-results`.

    python scripts/record_results.py [FOLDER]         # default /tmp/recorded; writes the recordings of the benchmark

Servers from PyPI and npm run over: this repository (git, files, code), the metadata of the packages that are installed
beside this Python (in SQLite, DuckDB, PostgreSQL, Redis, a workbook and a graph), its commits as an issue tracker
behind GitLab's API, and pages of HTML (`--pages`). Needs node, git, ripgrep, PostgreSQL and Redis; what is not there is
said and left out. A second run installs nothing.
"""

from __future__ import annotations

import argparse
import asyncio
import csv
import gzip
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from importlib import metadata
from pathlib import Path
from typing import Any

from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from environments import binary, from_npm, from_pypi, say, succeeds
from recorded_calls import calls_of

TARGET = Path(__file__).parents[1] / "benchmarks" / "pegboard_bench" / "result_shapes" / "recordings.jsonl.gz"
ROOT = Path(__file__).parents[1]
MOST_BYTES = 1_200_000
"""Of one result; the repository keeps them all."""
POSTGRES = "postgresql://postgres@127.0.0.1:5432/test"
REDIS = "redis://127.0.0.1:6379/9"
SECONDS = 40
OLD_SDK = "mcp<2"
"""What servers need that were written for the SDK's first version and do not say so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    package: str
    program: str
    arguments: tuple[str, ...] = ()
    environment: dict[str, str] = field(default_factory=dict)
    npm: bool = False
    more: str = ""


SERVERS = {
    "sqlite": Server(
        package="mcp-server-sqlite",
        program="mcp-server-sqlite",
        arguments=("--db-path", "{data}/meta.sqlite"),
        more=OLD_SDK,
    ),
    "alchemy": Server(
        package="mcp-alchemy", program="mcp-alchemy", environment={"DB_URL": "sqlite:///{data}/meta.sqlite"}
    ),
    "duckdb": Server(
        package="mcp-server-duckdb",
        program="mcp-server-duckdb",
        arguments=("--db-path", "{data}/x.duckdb"),
        more=OLD_SDK,
    ),
    "redis": Server(package="redis-mcp-server", program="redis-mcp-server", arguments=("--url", REDIS)),
    "code": Server(package="code-index-mcp", program="code-index-mcp"),
    "markitdown": Server(package="markitdown-mcp", program="markitdown-mcp"),
    "excel": Server(package="excel-mcp-server", program="excel-mcp-server", arguments=("stdio",)),
    "tree": Server(package="mcp-server-tree-sitter", program="mcp-server-tree-sitter", more=OLD_SDK),
    "git": Server(package="mcp-server-git", program="mcp-server-git"),
    "fetch": Server(
        package="mcp-server-fetch",
        program="mcp-server-fetch",
        arguments=("--ignore-robots-txt", "--allow-private-ips"),
    ),
    "time": Server(package="mcp-server-time", program="mcp-server-time"),
    "postgres": Server(
        package="@modelcontextprotocol/server-postgres", program="mcp-server-postgres", arguments=(POSTGRES,), npm=True
    ),
    "ripgrep": Server(package="mcp-ripgrep", program="mcp-ripgrep", npm=True),
    "gitjs": Server(package="@cyanheads/git-mcp-server", program="git-mcp-server", npm=True),
    "gitlab": Server(
        package="@zereight/mcp-gitlab",
        program="mcp-gitlab",
        environment={"GITLAB_PERSONAL_ACCESS_TOKEN": "none", "GITLAB_API_URL": "{site}/api/v4"},
        npm=True,
    ),
    "filesystem": Server(
        package="@modelcontextprotocol/server-filesystem",
        program="mcp-server-filesystem",
        arguments=("{data}/repository",),
        npm=True,
    ),
    "memory": Server(
        package="@modelcontextprotocol/server-memory",
        program="mcp-server-memory",
        environment={"MEMORY_FILE_PATH": "{data}/memory.jsonl"},
        npm=True,
    ),
    "everything": Server(package="@modelcontextprotocol/server-everything", program="mcp-server-everything", npm=True),
    "playwright": Server(
        package="@playwright/mcp",
        program="playwright-mcp",
        arguments=("--headless", "--isolated", "--no-sandbox"),
        npm=True,
    ),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=Path("/tmp/recorded"))  # noqa: S108
    parser.add_argument("--pages", type=Path, nargs="*", default=[], help="HTML files to serve")
    parser.add_argument("--server", nargs="*", default=[*SERVERS], help="only these; the others' recordings stay")
    given = parser.parse_args()
    data = given.folder / "data"
    pages = _data(data, given.pages)
    with _served(data / "site") as site:
        for name in given.server:
            _write(name, asyncio.run(_recorded(given.folder, site, pages, name)))


def _write(server: str, found: list[dict[str, Any]]) -> None:
    """Put the recordings of a server in place of those that it had, if there are any."""
    if not found:
        return
    kept = [each for each in _known() if each["server"] != server]
    rows = sorted(kept + found, key=lambda each: (each["server"], each["tool"], each["number"]))
    with TARGET.open("wb") as raw, gzip.GzipFile(fileobj=raw, mode="wb", mtime=0) as file:
        for row in rows:
            line = json.dumps(row, ensure_ascii=False, separators=(",", ":"))
            file.write(line.replace(str(ROOT), "/srv/pegboard").replace(str(Path.home()), "/srv/home").encode() + b"\n")
    tools = {(each["server"], each["tool"]) for each in rows}
    say(f"{len(rows)} results of {len(tools)} tools of {len({name for name, _ in tools})} servers: {TARGET}")


def _known() -> list[dict[str, Any]]:
    if not TARGET.exists():
        return []
    with gzip.open(TARGET, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


async def _recorded(folder: Path, site: str, pages: list[str], name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    program = _installed(folder, SERVERS[name])
    if program is None:
        say(f"going on without {name}")
        return found
    try:
        async with asyncio.timeout(SECONDS * 3):
            await _ask(name, program, folder / "data", site, pages, found)
    except Exception as error:  # noqa: BLE001 - whatever a server does, the others are recorded
        say(f"{name}: {error!r}"[:300])
    return found


async def _ask(name: str, program: Path, data: Path, site: str, pages: list[str], found: list[dict[str, Any]]) -> None:
    """Put what the server answers into ``found``."""
    server = SERVERS[name]

    def filled(text: str) -> str:
        return text.format(data=data, site=site)

    command = StdioServerParameters(
        command=str(program),
        args=[filled(each) for each in server.arguments],
        env=os.environ | {key: filled(value) for key, value in server.environment.items()},
        cwd=str(data / "repository"),
    )
    with open(os.devnull, "w") as quiet:  # noqa: PTH123, ASYNC230
        async with Client(stdio_client(command, errlog=quiet), mode="legacy") as client:
            tools = {tool.name: tool for tool in (await client.list_tools()).tools}
            for number, (tool, arguments, kept) in enumerate(calls_of(name, data, site, pages)):
                if tool not in tools:
                    say(f"{name}: no tool {tool}")
                    continue
                with suppress(TimeoutError):
                    async with asyncio.timeout(SECONDS):
                        result = await client.session.call_tool(tool, arguments)
                    said = result.model_dump(by_alias=True, mode="json", exclude_none=True)
                    size = len(json.dumps(said))
                    say(f"{name} {tool}: {size} bytes{' (error)' if result.is_error else ''}")
                    if kept and not result.is_error and size <= MOST_BYTES:
                        row = {"server": name, "tool": tool, "number": number, "arguments": arguments, "result": said}
                        found.append(row | {"outputSchema": tools[tool].output_schema})


def _installed(folder: Path, server: Server) -> Path | None:
    place = folder / "servers" / server.program
    if server.npm:
        return binary(place, server.program) if from_npm(place, [server.package]) else None
    fresh = not (place / "bin" / server.program).exists()
    program = from_pypi(place, server.package, server.program)
    if program is not None and fresh and server.more:
        succeeds([str(program.with_name("python")), "-m", "pip", "install", "--quiet", server.more])
    return program


def _data(data: Path, pages: list[Path]) -> list[str]:
    """Make the data once; the names of the pages."""
    site = data / "site"
    if not data.exists():
        site.mkdir(parents=True)
        git = shutil.which("git") or "git"
        subprocess.run([git, "clone", "--quiet", str(ROOT), str(data / "repository")], check=True)
        _metadata(data)
        _tracker(data, site)
    for page in pages:
        shutil.copy(page, site / page.name)
    _postgres(data)
    _redis(data)
    return sorted(path.name for path in site.glob("*.html"))


def _metadata(data: Path) -> None:
    """The metadata of installed packages, in SQLite and as CSV."""
    packages, requires, files = [], [], []
    for each in sorted(metadata.distributions(), key=lambda each: each.metadata["Name"].lower()):
        said, name = each.metadata, each.metadata["Name"]
        licence = said.get("License-Expression") or (said.get("License") or "").split("\n")[0][:60] or None
        author = said.get("Author-email") or said.get("Author")
        packages.append((name, each.version, said.get("Summary"), licence, said.get("Requires-Python"), author))
        requires += [(name, one) for one in each.requires or ()]
        files += [(name, str(one), one.size) for one in each.files or () if one.suffix == ".py"][:400]
    columns = {
        "packages": ("name", "version", "summary", "licence", "requires_python", "author"),
        "requires": ("package", "requirement"),
        "files": ("package", "path", "size"),
    }
    connection = sqlite3.connect(data / "meta.sqlite")
    for table, rows in (("packages", packages), ("requires", requires), ("files", files)):
        names = columns[table]
        connection.execute(f"CREATE TABLE {table} ({', '.join(names)})")
        connection.executemany(f"INSERT INTO {table} VALUES ({', '.join('?' * len(names))})", rows)  # noqa: S608
        with (data / f"{table}.csv").open("w", newline="") as file:
            csv.writer(file).writerows([names, *rows])
    connection.commit()
    connection.close()


def _tracker(data: Path, site: Path) -> None:
    """This repository's commits as GitLab's API shows commits, issues and merge requests."""
    git = shutil.which("git") or "git"
    form = "%H%x1f%h%x1f%an%x1f%aI%x1f%s%x1f%b%x1e"
    log = subprocess.run(
        [git, "-C", str(data / "repository"), "log", "-400", f"--format={form}"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    commits = [each.strip("\n").split("\x1f") for each in log.split("\x1e") if each.strip()]
    web = "https://gitlab.example.com/pegboard/pegboard"
    person = {"id": 7, "username": "pegboard", "name": "The Pegboard developers", "state": "active", "locked": False}
    person |= {"avatar_url": None, "web_url": "https://gitlab.example.com/pegboard"}
    listed = [
        {"id": sha, "short_id": short, "created_at": at, "parent_ids": [], "title": title,
         "message": f"{title}\n{body}",
         "author_name": author, "author_email": "pegboard@example.com", "authored_date": at, "committer_name": author,
         "committer_email": "pegboard@example.com", "committed_date": at, "trailers": {}, "extended_trailers": {},
         "web_url": f"{web}/-/commit/{sha}"}
        for sha, short, author, at, title, body in commits
    ]  # fmt: skip
    issues = [
        {"id": 9000 + at, "iid": len(commits) - at, "project_id": 42, "title": each["title"],
         "description": each["message"],
         "state": "closed" if at % 3 else "opened", "created_at": each["created_at"], "updated_at": each["created_at"],
         "closed_at": each["created_at"] if at % 3 else None, "closed_by": person if at % 3 else None,
         "labels": ["docs"] if "doc" in each["title"].lower() else ["core"], "milestone": None, "assignees": [person],
         "assignee": person, "author": person, "type": "ISSUE", "user_notes_count": at % 5, "merge_requests_count": 1,
         "upvotes": at % 4, "downvotes": 0, "due_date": None, "confidential": False, "discussion_locked": None,
         "issue_type": "issue", "web_url": f"{web}/-/issues/{len(commits) - at}", "weight": None,
         "time_stats": {"time_estimate": 0, "total_time_spent": 0, "human_time_estimate": None,
                        "human_total_time_spent": None},
         "task_completion_status": {"count": 0, "completed_count": 0}, "has_tasks": True, "moved_to_id": None,
         "references": {"short": f"#{len(commits) - at}", "relative": f"#{len(commits) - at}",
                        "full": f"pegboard/pegboard#{len(commits) - at}"},
         "severity": "UNKNOWN", "epic_iid": None, "epic": None, "iteration": None, "service_desk_reply_to": None,
         "_links": {"self": f"{web}/issues/{at}", "notes": f"{web}/issues/{at}/notes", "project": web,
                    "award_emoji": f"{web}/issues/{at}/award_emoji"}}
        for at, each in enumerate(listed)
    ]  # fmt: skip
    for name, rows in {"commits": listed, "issues": issues}.items():
        (site / f"{name}.json").write_text(json.dumps(rows), "utf-8")


def _postgres(data: Path) -> None:
    with suppress(Exception):
        import psycopg

        with psycopg.connect(POSTGRES, autocommit=True) as connection:
            connection.execute("DROP SCHEMA IF EXISTS recorded CASCADE")
            connection.execute("CREATE SCHEMA recorded")
            source = sqlite3.connect(data / "meta.sqlite")
            for table in ("packages", "requires", "files"):
                cursor = source.execute(f"SELECT * FROM {table}")  # noqa: S608
                names = [each[0] for each in cursor.description]
                types = ", ".join(f"{each} {'bigint' if each == 'size' else 'text'}" for each in names)
                connection.execute(f"CREATE TABLE recorded.{table} ({types})")
                marks = ", ".join(["%s"] * len(names))
                with connection.cursor() as writing:
                    writing.executemany(f"INSERT INTO recorded.{table} VALUES ({marks})", cursor.fetchall())  # noqa: S608
            source.close()


def _redis(data: Path) -> None:
    with suppress(Exception):
        import redis

        client = redis.Redis.from_url(REDIS)
        own = [*client.scan_iter("package:*"), "licences", "releases", "sizes", "queue"]  # of an earlier run
        client.delete(*own)
        source = sqlite3.connect(data / "meta.sqlite")
        for name, version, summary, licence, _, author in source.execute("SELECT * FROM packages"):
            fields = {"version": version, "summary": summary or "", "licence": licence or "", "author": author or ""}
            client.hset(f"package:{name}", mapping=fields)
            client.sadd("licences", licence or "unknown")
            client.xadd("releases", {"name": name, "version": version})
        for name, size in source.execute("SELECT package, sum(size) FROM files GROUP BY package"):
            client.zadd("sizes", {name: size})
            client.rpush("queue", json.dumps({"package": name, "bytes": size}))
        source.close()


class _Tracker(SimpleHTTPRequestHandler):
    """Pages as they are, and the API of the tracker."""

    def do_GET(self) -> None:
        path, _, query = self.path.partition("?")
        kind = path.rsplit("/", 1)[-1]
        if path.startswith("/api/v4/") and kind in ("issues", "commits"):
            rows = json.loads((Path(self.directory) / f"{kind}.json").read_text("utf-8"))
            given = dict(part.partition("=")[::2] for part in query.split("&"))
            self._json(rows[: int(given.get("per_page") or 20)])
        elif path.startswith("/api/v4/"):
            rows = json.loads((Path(self.directory) / "issues.json").read_text("utf-8"))
            self._json(rows[int(kind) % len(rows)] if kind.isdigit() else {"id": 42, "name": "pegboard"})
        else:
            super().do_GET()

    def _json(self, value: Any) -> None:
        body = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


@contextmanager
def _served(folder: Path) -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 18473), partial(_Tracker, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()


if __name__ == "__main__":
    sys.exit(main())
