"""A catalog and queries out of a random generator, for timing where no real data is at hand.

Never for quality: the tools are boiler-plate, as in every generated catalog.
"""

from __future__ import annotations

import random

from pegboard.catalog import Catalog
from pegboard.model import Server, ServerName, Tool, ToolId

VERBS = ("create", "list", "get", "update", "delete", "search", "export", "archive", "share", "copy", "merge")
QUALITIES = ("shared", "recent", "open", "overdue", "monthly", "private", "public", "nested", "encrypted")
OBJECTS = ("issue", "branch", "invoice", "event", "contact", "file", "table", "chart", "flight", "route", "sensor")
TOOLS_PER_SERVER = 10


def synthetic_catalog(size: int, seed: int) -> Catalog:
    """`size` tools, ten a server."""
    choose = random.Random(seed)  # noqa: S311
    names = [f"{verb}_{quality}_{thing}" for verb in VERBS for quality in QUALITIES for thing in OBJECTS]
    tools = [_tool(place, name, choose) for place, name in enumerate(choose.sample(names, size))]
    servers = dict.fromkeys(tool.server for tool in tools)
    return Catalog.build(
        (
            Server(name=ServerName(server), description=f"Tools of {server}"),
            [tool for tool in tools if tool.server == server],
        )
        for server in servers
    )


def synthetic_queries(count: int, seed: int) -> list[str]:
    """Requests, each different."""
    choose = random.Random(seed)  # noqa: S311
    return [
        f"Please {choose.choice(VERBS)} the {choose.choice(QUALITIES)} {choose.choice(OBJECTS)} number {number} "
        f"and then {choose.choice(VERBS)} every {choose.choice(OBJECTS)} that belongs to it"
        for number in range(count)
    ]


def _tool(place: int, name: str, choose: random.Random) -> Tool:
    verb, quality, thing = name.split("_")
    described = choose.sample(OBJECTS, 3)
    schema = {
        "type": "object",
        "properties": {
            f"{thing}_id": {"type": "string", "description": f"Identifier of the {thing}"},
            **{other: {"type": "string", "description": f"The {other} it belongs to"} for other in described},
        },
        "required": [f"{thing}_id"],
    }
    description = f"{verb.capitalize()} a {quality} {thing}, with its {', '.join(described)} where it has them."
    return Tool(
        id=ToolId(f"server{place // TOOLS_PER_SERVER}", name),
        description=description,
        input_schema=schema,
        definition={"name": name, "description": description, "inputSchema": schema},
    )
