"""Writes the generated parts of the documentation: docs/cli.md, and the tables of options, of clients and of rules.

python scripts/make_docs.py          # a test fails where they are out of date
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from typer.main import get_command

from pegboard.apps.cli import app
from pegboard.gateways.mcp.clients import known_clients
from pegboard.lint import RULES
from pegboard.settings import Settings

DOCS = Path(__file__).parents[1] / "docs"
SECTIONS = (
    "access",
    "grants",
    "servers",
    "rules",
    "aliases",
    "clients",
    "toolsets",
    "category_patterns",
    "category_descriptions",
    "summaries",
    "state",
    "statistics",
    "chroma",
    "encoder",
    "retention",
    "spend",
    "llm",
)
"""Settings that are tables, each with a section of its own."""
MORE = {"pegboard shadow": "shadow.md", "pegboard replay": "shadow.md"}
"""Pages that say more of a command."""
FOLDERS = {"cache_dir": "the user's cache folder", "state_dir": "the user's state folder"}


def cli() -> str:
    """Every command with its help, options as a table."""
    group = get_command(app)
    pages = [
        "# Command line\n",
        "Written by `scripts/make_docs.py` from the program's own help.\n",
        "Every command takes `--help`. With `--json`, standard output is JSON and nothing else; messages go",
        "to standard error. Exit codes: 0 done, 1 failed, 2 wrong use or configuration, 130 interrupted.\n",
    ]
    for name, command in _commands("pegboard", group):
        pages.append(f"## {name}\n")
        more = f" [More]({MORE[name]})." if name in MORE else ""
        pages.append(f"{_plain(command.help)}{more}\n")
        rows = [_row(parameter) for parameter in command.params if parameter.name != "help"]
        pages += ["| option | default | meaning |", "|---|---|---|", *rows, ""] if rows else []
        pages.append(f"```console\n{_examples(command.epilog)}\n```\n")
    return "\n".join(pages)


def _commands(path: str, group: Any) -> Iterator[tuple[str, Any]]:
    """Each with its path, by name; a group before what is in it."""
    for name, command in sorted(group.commands.items()):
        yield f"{path} {name}", command
        if hasattr(command, "commands"):
            yield from _commands(f"{path} {name}", command)


def options() -> str:
    """Every setting but the tables that have sections of their own."""
    rows = ["| option | default | meaning |", "|---|---|---|"]
    for name, field in Settings.model_fields.items():
        if name in SECTIONS:
            continue
        default = FOLDERS.get(name) or _default(field.default)
        rows.append(f"| `{name}` | {default} | {field.description} |")
    return "\n".join(rows) + "\n"


def configuration(text: str) -> str:
    return _generated("options", options(), text)


def clients(text: str) -> str:
    """The page on clients with the table that is in the package."""
    columns = (
        "client",
        "calls itself",
        "re-lists",
        "own search",
        "loads at once",
        "most tools",
        "longest name",
        "source",
    )
    rows = [f"| {' | '.join(columns)} |", "|---" * len(columns) + "|"]
    for name, row in known_clients().items():
        kind = row.kind
        names = ", ".join(f"`{pattern}`" for pattern in row.matches)
        limits = f"{kind.most_tools or ''} | {kind.longest_name or ''}"
        at_once = f"`{kind.always_load}`" if kind.always_load else ""
        does = f"{_yes(kind.list_changed)} | {_yes(kind.native_search)} | {at_once}"
        rows.append(f"| `{name}`: {row.title} | {names} | {does} | {limits} | {row.source} ({row.checked}) |")
    return _generated("clients", "\n".join(rows) + "\n", text)


def lint(text: str) -> str:
    """The page on `pegboard lint` with every rule."""
    rows = [f"| `{name}` | {finds} |" for name, finds in RULES.items()]
    return _generated("rules", "\n".join(["| rule | finds |", "|---|---|", *rows]) + "\n", text)


def _generated(part: str, content: str, text: str) -> str:
    """The page with what stands between the marks of this part replaced."""
    place = re.compile(rf"(<!-- generated: {part} -->\n).*?(<!-- end -->)", re.DOTALL)
    return place.sub(lambda match: match.group(1) + content + match.group(2), text)


def _yes(value: bool) -> str:
    return "yes" if value else ""


def _row(parameter: object) -> str:
    names = ", ".join(f"`{each}`" for each in getattr(parameter, "opts", []))
    if getattr(parameter, "param_type_name", "") == "argument":
        names = f"`{str(getattr(parameter, 'name', '')).upper()}`"
    return f"| {names} | {_default(getattr(parameter, 'default', None))} | {_plain(getattr(parameter, 'help', ''))} |"


def _default(value: object) -> str:
    return "" if value is None or value is False or value == () or value == [] else f"`{value}`"


def _plain(text: str | None) -> str:
    return " ".join((text or "").split())


def _examples(epilog: str | None) -> str:
    lines = [line.strip() for line in (epilog or "").splitlines()]
    return "\n".join(line if line.startswith("#") else f"$ {line}" for line in lines if line and line[0] not in "`*")


if __name__ == "__main__":
    (DOCS / "cli.md").write_text(cli())
    for page, written in (("configuration.md", configuration), ("clients.md", clients), ("lint.md", lint)):
        (DOCS / page).write_text(written((DOCS / page).read_text()))
