"""Writes the generated parts of the documentation: docs/cli.md, and the table of options in docs/configuration.md.

python scripts/make_docs.py          # a test fails where they are out of date
"""

from __future__ import annotations

import re
from pathlib import Path

from typer.main import get_command

from pegboard.apps.cli import app
from pegboard.settings import Settings

DOCS = Path(__file__).parents[1] / "docs"
GENERATED = re.compile(r"(<!-- generated: options -->\n).*?(<!-- end -->)", re.DOTALL)


def cli() -> str:
    """Every command with its help, options as a table."""
    group = get_command(app)
    pages = [
        "# Command line\n",
        "Written by `scripts/make_docs.py` from the program's own help.\n",
        "Every command takes `--help`. With `--json`, standard output is JSON and nothing else; messages go",
        "to standard error. Exit codes: 0 done, 1 failed, 2 wrong use or configuration, 130 interrupted.\n",
    ]
    for name, command in sorted(group.commands.items()):  # type: ignore[attr-defined]
        pages.append(f"## pegboard {name}\n")
        pages.append(f"{_plain(command.help)}\n")
        rows = [_row(parameter) for parameter in command.params if parameter.name != "help"]
        pages += ["| option | default | meaning |", "|---|---|---|", *rows, ""]
        pages.append(f"```console\n{_examples(command.epilog)}\n```\n")
    return "\n".join(pages)


def options() -> str:
    """Every setting but the tables that have sections of their own."""
    rows = ["| option | default | meaning |", "|---|---|---|"]
    for name, field in Settings.model_fields.items():
        if name in ("servers", "rules", "aliases"):
            continue
        default = "the user's cache folder" if name == "cache_dir" else _default(field.default)
        rows.append(f"| `{name}` | {default} | {field.description} |")
    return "\n".join(rows) + "\n"


def configuration(text: str) -> str:
    return GENERATED.sub(lambda match: match.group(1) + options() + match.group(2), text)


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
    (DOCS / "configuration.md").write_text(configuration((DOCS / "configuration.md").read_text()))
