"""Each peer on six tools: `python -m pegboard_bench.peers` says which of them work here.

Two of the tools have one name, and one has no parameters: what several peers stumble over.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from pegboard.catalog import Catalog
from pegboard.evaluation.datasets import Query, ToolSet
from pegboard.evaluation.progress_bar import bar
from pegboard.model import Server, ServerName, Tool, ToolId
from pegboard_bench.peers import PeerRows, peer_rows

TOOLS: tuple[tuple[str, str, str, dict[str, str]], ...] = (
    ("weather", "get_forecast", "The weather forecast of a city for the coming days.", {"city": "Name of the city."}),
    ("mail", "send_email", "Send an email to a person.", {"to": "Address.", "body": "The message's text."}),
    ("files", "read_file", "Read the contents of a file on disk.", {"path": "Where the file is."}),
    ("code", "search", "Find issues and pull requests of a repository.", {"query": "Words of the issue."}),
    ("music", "search", "Find songs and albums of an artist.", {"query": "Title or artist."}),
    ("clock", "current_time", "What time it is now.", {}),
)
QUERIES = {
    "what will the weather forecast be for the city of Oslo": ToolId("weather", "get_forecast"),
    "send an email to Ann": ToolId("mail", "send_email"),
    "find songs of an artist": ToolId("music", "search"),
}


def main(folder: Annotated[Path, typer.Argument(help="Folder of install_peers.py.")] = Path(".demo/peers")) -> None:
    """Try every peer on six tools; fails where one does not find the obvious."""
    with bar("peers") as progress:
        rows = asyncio.run(peer_rows(six_tools(), folder, progress, seed=0))
    console = Console(soft_wrap=True)
    for method, run in rows.runs.items():
        console.print(f"{method} ({run.version}): built in {run.build_s:.2f} s, {run.p50_ms:.2f} ms a query")
    problems = [*rows.missing.values(), *strays(rows)]
    for problem in problems:
        console.print(problem, style="red")
    raise typer.Exit(bool(problems))


def six_tools() -> ToolSet:
    servers = [
        (
            Server(name=ServerName(server)),
            [Tool(id=ToolId(server, name), description=description, input_schema=_schema(parameters))],
        )
        for server, name, description, parameters in TOOLS
    ]
    queries = tuple(Query(id=text, text=text, relevant=(tool,)) for text, tool in QUERIES.items())
    return ToolSet(name="six_tools", catalog=Catalog.build(servers), queries=queries)


def _schema(parameters: dict[str, str]) -> dict[str, object]:
    properties = {name: {"type": "string", "description": text} for name, text in parameters.items()}
    return {"type": "object", "properties": properties}


def strays(rows: PeerRows) -> list[str]:
    """A line for each query whose tool a peer did not put first."""
    return [
        f"{method} finds {run.rankings[number][:1]} for {text!r}, where {tool} is meant"
        for method, run in rows.runs.items()
        for number, (text, tool) in enumerate(QUERIES.items())
        if run.rankings[number][:1] != (tool,)
    ]


if __name__ == "__main__":
    typer.run(main)
