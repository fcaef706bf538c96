"""Writes the generated parts of the documentation: whole pages, and the tables of options, of clients and of rules.

python scripts/make_docs.py [--check]    # --check names those that are out of date and writes nothing
"""

from __future__ import annotations

import json
import re
import sys
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

import pegboard
from pegboard.apps.cli.program import load, names
from pegboard.gateways.http_api.openapi_document import openapi_document
from pegboard.gateways.mcp.gateway.clients import known_clients
from pegboard.lint import RULES
from pegboard.settings import Settings
from pegboard.settings.client_files import Client
from pegboard.settings.client_files import clients as init_clients

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
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
    "pgvector",
    "qdrant",
    "encoder",
    "retention",
    "spend",
    "llm",
    "api",
)
"""Settings that are tables, each with a section of its own."""
MORE = {"pegboard shadow": "shadow.md", "pegboard replay": "shadow.md"}
"""Pages that say more of a command."""
FOLDERS = {"cache_dir": "the user's cache folder", "state_dir": "the user's state folder"}


def cli() -> str:
    """Every command with its help, options as a table."""
    pages = [
        "# Command line\n",
        "Written by `scripts/make_docs.py` from the program's own help.\n",
        "Every command takes `--help`. With `--json`, standard output is JSON and nothing else; messages go",
        "to standard error. Exit codes: 0 done, 1 failed, 2 wrong use or configuration, 130 interrupted.\n",
    ]
    for name, command in _commands("pegboard", {name: load(name) for name in names()}):
        pages.append(f"## {name}\n")
        more = f" [More]({MORE[name]})." if name in MORE else ""
        pages.append(f"{_plain(command.help)}{more}\n")
        rows = [_row(parameter) for parameter in command.params if parameter.name != "help"]
        pages += ["| option | default | meaning |", "|---|---|---|", *rows, ""] if rows else []
        pages += [f"```console\n{_examples(command.epilog)}\n```\n"] if command.epilog else []
    return "\n".join(pages)


def _commands(path: str, commands: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Each with its path, by name; a group before what is in it."""
    for name, command in sorted(commands.items()):
        yield f"{path} {name}", command
        if hasattr(command, "commands"):
            yield from _commands(f"{path} {name}", command.commands)


API = """# Python API

Everything that `pegboard` exports, from the docstrings. Names that are not on this page are internal and may change in
any version; the exceptions are the protocols of [your own parts](library.md#your-own-parts) and `pegboard.testing`.
[The library](library.md) shows how the parts are used together.
"""


def api() -> str:
    """The public names, each for the site to expand from its docstring."""
    return "\n".join([API, *(f"::: pegboard.{name}\n" for name in pegboard.__all__)])


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
    return _generated("client files", client_files(), _generated("clients", "\n".join(rows) + "\n", text))


def client_files() -> str:
    """The table of the files that `pegboard init` knows, one row a client."""
    rows = ["| client | a project's file | the user's file | servers at | source |", "|---|---|---|---|---|"]
    by_name: dict[str, list[Client]] = {}
    for client in init_clients():
        by_name.setdefault(client.name, []).append(client)
    for name, of_name in sorted(by_name.items()):
        project = [f"`{each.file}`" for each in of_name if each.scope == "project"]
        user = [f"`{each.file}`" for each in of_name if each.scope == "user"]
        user += [f"on Windows `{each.windows}`" for each in of_name if each.windows]
        user += [f"for one project: `{'.'.join(each.place)}` in it" for each in of_name if each.scope == "local"]
        places = dict.fromkeys(f"`{'.'.join(each.place)}`" for each in of_name if each.scope != "local")
        about = of_name[0]
        cells = (f"`{name}`", "<br>".join(project), "<br>".join(user), ", ".join(places))
        rows.append(f"| {' | '.join(cells)} | {about.source} ({about.checked}) |")
    return "\n".join(rows) + "\n"


def lint(text: str) -> str:
    """The page on `pegboard lint` with every rule."""
    rows = [f"| `{name}` | {finds} |" for name, finds in RULES.items()]
    return _generated("rules", "\n".join(["| rule | finds |", "|---|---|", *rows]) + "\n", text)


def openapi() -> str:
    """The document that `pegboard serve` serves at /v1/openapi.json."""
    return json.dumps(openapi_document(pegboard.__version__), indent=1, ensure_ascii=False) + "\n"


REQUIREMENTS = """# Requirements

What Pegboard promises, generated from `tests/requirements.toml`, which names every test; a test keeps the manifest and
the markers of the tests in step. Codes in the source (`P7`, `001.eq2`) lead here. `000` to `003` are
[the sources](architecture.md#sources) 1 to 4.
"""
GROUPS = {
    "P": "Queries and requests",
    "M": "MCP gateways",
    "A": "Defects found in front of agents",
    "B": "Defects found in front of clients",
    "C": "Defects found in agents",
    "D": "Defects found under attack and fault",
    "000": "Tool Attention",
    "001": "Economics-aware hierarchical tool routing",
    "002": "Lazy tool loading by meta-tools",
    "003": "Semantic tool filtering in a gateway",
}
"""Titles by what stands before the number or the dot of a code; every other code is of a protocol or of the design."""


def requirements() -> str:
    """Every requirement with its code, what it promises, how far it is, and where its tests are."""
    sections: dict[str, list[str]] = {}
    for code, entry in tomllib.loads((ROOT / "tests" / "requirements.toml").read_text()).items():
        group = re.split(r"(?<=[A-Z])(?=\d)|\.", code)[0]
        sections.setdefault(GROUPS.get(group, "Protocols, providers and design"), []).append(_requirement(code, entry))
    head = ["| code | requirement | tests |", "|---|---|---|"]
    return "\n".join(
        [REQUIREMENTS, *("\n".join([f"## {name}\n", *head, *rows, ""]) for name, rows in sections.items())]
    )


def _requirement(code: str, entry: Mapping[str, Any]) -> str:
    text = entry["text"].replace("|", "\\|")
    tests = entry.get("tests", [])
    folders = sorted({str(PurePosixPath(test.split("::")[0]).parent) for test in tests})
    shown = [f"{len(tests)} in {', '.join(f'`{each}`' for each in folders)}"] if tests else []
    status = {"planned": "part is planned" if tests else "planned", "declined": f"declined: {entry.get('reason')}"}
    said = [f"*{status[entry['status']]}*"] if "status" in entry else []
    return f'| <span id="{code}">{code}</span> | {text} | {"; ".join([*shown, *said])} |'


SHOWN = re.compile(
    r"(<!-- figure (?P<file>\S+) (?P<rest>1-)?(?P<name>\S+) (?P<format>\S+) -->).*?(<!-- /figure -->)",
    re.DOTALL,
)
"""A figure in a sentence or a cell: the results file, the figure's name in it, and how Python is to format it. ``1-``
before the name is for what is left of a share. No line begins with a mark: Markdown takes it for a block of HTML."""
ROW = re.compile(
    r"^\| (?P<what>[^|]+) \|[^|]*\| `(?P<file>\w+)\.json`: `(?P<name>[^`]+)` \|$",
    re.MULTILINE,
)
"""A row of a decision that names a figure and its results file for the reader."""
OTHERS = {"thresholds": "src/pegboard/retrieval/thresholds.json"}
"""Files that a script measured for the package, beside those of the benchmarks: ``a/b/c`` is a path into them."""


def with_figures(text: str) -> str:
    """A page with the value of every figure that it marks or names in a row, from its results file."""
    text = SHOWN.sub(lambda mark: f"{mark[1]}{_shown(mark)}{mark[6]}", text)
    return ROW.sub(lambda row: f"| {row['what']} | {_rounded(row)} | `{row['file']}.json`: `{row['name']}` |", text)


def _shown(mark: re.Match[str]) -> str:
    value = _figure(mark["file"], mark["name"])
    return format(1 - value if mark["rest"] else value, mark["format"])


def _rounded(row: re.Match[str]) -> str:
    value = _figure(row["file"], row["name"])
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def _figure(file: str, name: str) -> float:
    if file in OTHERS:
        found = json.loads((ROOT / OTHERS[file]).read_text())
        for part in name.split("/"):
            found = found[part]
        return float(found)
    return float(json.loads((ROOT / "bench" / "results" / f"{file}.json").read_text())["figures"][name])


def _generated(part: str, content: str, text: str) -> str:
    """The page with what stands between the marks of this part replaced."""
    place = re.compile(rf"(<!-- generated: {part} -->\n).*?(<!-- end -->)", re.DOTALL)
    return place.sub(lambda match: match.group(1) + content + match.group(2), text)


def _yes(value: bool) -> str:
    return "yes" if value else ""


def _row(parameter: object) -> str:
    names = ", ".join(f"`{each}`" for each in getattr(parameter, "opts", []))
    if getattr(parameter, "param_type_name", "") == "argument":
        names = f"`{getattr(parameter, 'metavar', None) or str(getattr(parameter, 'name', '')).upper()}`"
    return f"| {names} | {_default(getattr(parameter, 'default', None))} | {_plain(getattr(parameter, 'help', ''))} |"


def _default(value: object) -> str:
    return "" if value is None or value is False or value == () or value == [] else f"`{value}`"


def _plain(text: str | None) -> str:
    return " ".join((text or "").split())


def _examples(epilog: str) -> str:
    """Remarks and commands, and JSON as it stands."""
    lines = [line.strip() for line in epilog.splitlines()]
    return "\n".join(line if line[0] in '#{"' else f"$ {line}" for line in lines if line and line[0] not in "`*")


PAGES = {"cli": cli, "api": api, "requirements": requirements}
"""Pages that are generated whole."""
PARTS = {"configuration": configuration, "clients": clients, "lint": lint}
"""Pages with a generated part."""


def out_of_date() -> dict[Path, str]:
    """What each generated page should say, of those that say something else."""
    wanted = {DOCS / f"{name}.md": page() for name, page in PAGES.items()}
    wanted |= {DOCS / f"{name}.md": part((DOCS / f"{name}.md").read_text()) for name, part in PARTS.items()}
    wanted[DOCS / "assets" / "openapi.json"] = openapi()
    for path in (ROOT / "README.md", *DOCS.rglob("*.md")):
        text = with_figures(wanted.get(path) or path.read_text())
        if path in wanted or text != path.read_text():
            wanted[path] = text
    return {path: text for path, text in wanted.items() if not path.exists() or path.read_text() != text}


def main(arguments: list[str]) -> int:
    stale = out_of_date()
    if arguments == ["--check"]:
        for path in stale:
            print(f"{path.relative_to(ROOT)} is out of date: run python scripts/make_docs.py", file=sys.stderr)
        return 1 if stale else 0
    for path, text in stale.items():
        path.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
