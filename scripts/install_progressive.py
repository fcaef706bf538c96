"""Installs ProgressiveMCPBench: its tasks, and its synthetic MCP servers, bundled to run by Node without a network.

    python scripts/install_progressive.py [FOLDER] [--source DIR]    # default .demo; writes FOLDER/progressive alone

DIR has clones as DIR/OWNER/NAME; without it, git fetches the two commits. Nothing of theirs is part of this repository:
the tasks come from OpenBench (MIT), the servers from a repository that names no licence but `ISC` in its package.json.
"""

from __future__ import annotations

import argparse
import json
import shutil
from pathlib import Path

from environments import binary, from_npm, say, succeeds
from pegboard_bench.sets.recipe import Files, Repository
from pegboard_bench.sets.repositories import Repositories

SERVERS = Repository(
    name="geelen/progressivemcpbench",
    commit="c78deff64bf4fab9f1bf48814e47540f99c21de2",
    date="2025-12-11",
    licence="ISC",
)
TASKS = Repository(
    name="groq/openbench", commit="c1bff52b9edaab40a9b39dd99b9da5de83efb132", date="2025-12-09", licence="MIT"
)
"""Before its authors moved the tasks: later commits read them from a folder that the servers' repository lacks."""
TASKS_FILE = "synthetic_mcp/tasks/progressivemcpbench.json"
PACKAGES = (
    *("@hono/mcp@0.2.2", "@hono/node-server@1.19.7", "@modelcontextprotocol/sdk@1.24.3", "esbuild@0.27.0"),
    *("hono@4.10.7", "hono-rate-limiter@0.4.2", "zod@4.1.13"),
)
"""As their lock file has them, and what serves by Node."""
TEXT = (".txt", ".csv", ".bib")
"""Files whose content tools give; of others the servers say only that they are there, or keep the text elsewhere."""


def install(folder: Path, source: Path | None) -> Path:
    """The path of the bundled program. Raises SystemExit without a package, and ConfigError without a clone."""
    place = folder.absolute() / "progressive"
    repositories = Repositories(place / "fetched", source, tell=say)
    server, tasks = repositories.open(SERVERS), repositories.open(TASKS)
    _copy(server, "server/src", place / "src")
    _copy(server, "data/files", place / "files", text=TEXT)
    names = list(json.loads(server.text("server/src/data/servers.json")))
    (place / "servers.json").write_text(json.dumps(names), "utf-8")
    (place / "tasks.json").write_bytes(tasks.read(TASKS_FILE))
    shutil.copy(Path(__file__).with_name("progressive_server.mjs"), place / "serve.mjs")
    program = place / "server.mjs"
    options = ("--bundle", "--platform=node", "--format=esm", "--loader:.html=text", f"--outfile={program}")
    bundle = [str(binary(place, "esbuild")), str(place / "serve.mjs"), *options, "--log-level=warning"]
    if not from_npm(place, PACKAGES) or not succeeds(bundle):
        raise SystemExit("ProgressiveMCPBench needs node, npm and these packages, and not all could be had.")
    return program


def _copy(source: Files, below: str, to: Path, text: tuple[str, ...] = ("",)) -> None:
    """All files below a folder; those that do not end in ``text`` are empty."""
    shutil.rmtree(to, ignore_errors=True)
    paths = source.paths(below)
    whole = [path for path in paths if path.endswith(text)]
    contents = dict(zip(whole, source.read_all(whole), strict=True))
    for path in paths:
        written = to / Path(path).relative_to(below)
        written.parent.mkdir(parents=True, exist_ok=True)
        written.write_bytes(contents.get(path, b""))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", nargs="?", type=Path, default=Path(".demo"))
    parser.add_argument("--source", type=Path, help="Folder of clones, OWNER/NAME, instead of the network.")
    given = parser.parse_args()
    print(install(given.folder, given.source))
