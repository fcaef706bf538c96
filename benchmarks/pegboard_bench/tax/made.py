"""Made catalogs: the testbed of Tool Attention (table 2), and larger ones of the same making for the scaling figure.

Every tool is a verb and a noun of one server. Descriptions speak like a reference manual, requests like a user
(`wording`), so that neither is a copy of the other.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import cycle, islice, product
from typing import Any

from pegboard.catalog import BpeCounter, Catalog, canonical_text
from pegboard.model import Server, ServerName, Tool, ToolId

SEED = 42
"""Tool Attention §6.6."""
SPREAD = 0.25
"""Standard deviation of a tool's tokens over the mean of its server."""
ROUNDED_TOTAL = 47_300
"""Tokens that Tool Attention gives as the sum of table 2, whose products sum to 48,600."""
MEAN = 394
"""Tokens of a tool on average (table 2), for larger catalogs."""

CRUD = ("create", "list", "get", "update", "delete")


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A server of table 2; ``tokens`` is the average of its tools."""

    server: str
    tokens: int
    verbs: tuple[str, ...]
    nouns: tuple[str, ...]


TABLE_2 = (
    Row(
        server="github",
        tokens=520,
        verbs=CRUD,
        nouns=("repository", "branch", "issue", "pull_request", "release", "label"),
    ),
    Row(
        server="filesystem",
        tokens=180,
        verbs=("read", "write", "move", "delete", "search"),
        nouns=("file", "directory"),
    ),
    Row(server="database", tokens=410, verbs=CRUD, nouns=("table", "row", "index", "view")),
    Row(server="slack", tokens=290, verbs=CRUD, nouns=("message", "channel", "user_group")),
    Row(
        server="web", tokens=220, verbs=("search", "fetch", "extract", "screenshot", "archive"), nouns=("page", "image")
    ),
    Row(
        server="jira",
        tokens=470,
        verbs=CRUD,
        nouns=("ticket", "sprint", "board", "worklog", "comment", "version", "epic"),
    ),
)

DOES = {
    "create": "Creates one {noun} from the given properties and returns its identifier.",
    "list": "Returns the {noun} objects that match the filter, one page at a time.",
    "get": "Returns a single {noun} object with all of its properties.",
    "update": "Overwrites the given properties of an existing {noun}; absent ones stay as they are.",
    "delete": "Deletes an existing {noun} permanently. This cannot be undone.",
    "read": "Returns the stored content of one {noun}.",
    "write": "Stores content in one {noun}, replacing what was there.",
    "move": "Changes the path of one {noun}.",
    "search": "Returns each {noun} that matches a pattern or query, best match first.",
    "fetch": "Retrieves one {noun} from its URL.",
    "extract": "Returns the structured data that one {noun} contains.",
    "screenshot": "Renders one {noun} and returns the bitmap.",
    "archive": "Stores a permanent snapshot of one {noun}.",
}
OPTIONS = (
    ("page", "integer", "Number of the result page to return, counted from 1 for the first page of the result set"),
    ("per_page", "integer", "How many objects a result page holds at most; the service enforces an upper bound of 100"),
    ("sort", "string", "Property that determines the order of the result, with a leading minus for descending order"),
    ("fields", "array", "Names of the properties to return; when omitted, every property of the object is returned"),
    ("expand", "array", "Related objects to embed into the response instead of returning only their identifiers"),
    ("since", "string", "Only objects changed at or after this moment, as an ISO 8601 timestamp including the zone"),
    ("until", "string", "Only objects changed before this moment, as an ISO 8601 timestamp including the time zone"),
    ("owner", "string", "Account that owns the object; when omitted, the account of the credentials in use is assumed"),
    (
        "namespace",
        "string",
        "Namespace, workspace or tenant in which the object lives, exactly as the service spells it",
    ),
    (
        "include_archived",
        "boolean",
        "Whether objects that have been archived are considered too; they are not by default",
    ),
    (
        "dry_run",
        "boolean",
        "Validate the request and report what would happen without changing anything on the service",
    ),
    (
        "idempotency_key",
        "string",
        "Client-generated key by which a repeated request is recognised and not carried out twice",
    ),
    ("timeout_seconds", "number", "Seconds after which the service gives up and reports a timeout error to the caller"),
    ("locale", "string", "Language tag for human-readable parts of the response, for instance en-GB or pt-BR"),
    ("etag", "string", "Version of the object the caller has seen; the request fails when it has changed in between"),
    ("visibility", "string", "Who may see the object: private, internal or public, as far as the policy allows it"),
    ("notify", "boolean", "Whether subscribers of the object receive a notification about this request being made"),
    ("reason", "string", "Free text that is stored in the audit log together with the identity of the caller"),
)
FILLER = "see the reference of the service for the limits, defaults and error codes that apply to this property"
QUALITIES = (
    *("billing", "payroll", "warehouse", "fleet", "clinic", "campus", "museum", "harbour", "orchard", "studio"),
    *("archive", "laboratory", "theatre", "factory", "embassy", "observatory", "vineyard", "railway", "quarry", "mill"),
)
THINGS = (
    *("invoice", "contract", "shipment", "vehicle", "patient", "course", "exhibit", "vessel", "harvest", "recording"),
    *("permit", "sample", "rehearsal", "machine", "visa", "telescope", "barrel", "timetable", "blast", "loom"),
)


def synthetic(total: int | None = None) -> Catalog:
    """Table 2: 120 tools of six servers, each average to the token; or scaled so that they sum to ``total``."""
    choose = random.Random(SEED)  # noqa: S311
    scale = 1.0 if total is None else total / sum(len(row.verbs) * len(row.nouns) * row.tokens for row in TABLE_2)
    return Catalog.build((_server(row.server), _tools(row, choose, scale)) for row in TABLE_2)


def many(size: int) -> Catalog:
    """``size`` tools of as many servers as that takes, twenty each: a part of every larger one."""
    choose = random.Random(SEED)  # noqa: S311
    names = islice(_names(), -(-size // 20))
    groups: list[tuple[Server, list[Tool]]] = []
    for server, nouns in names:
        row = Row(server=server, tokens=MEAN, verbs=CRUD, nouns=nouns)
        tools = [_nested(tool) for tool in _tools(row, choose, 1.0)]
        groups.append((_server(server), tools[: size - 20 * len(groups)]))
    return Catalog.build(groups)


def _names() -> Iterable[tuple[str, tuple[str, ...]]]:
    """Servers with four nouns each, no two alike: 20 fields of work x 5 sites x 5 groups of nouns."""
    for number, (site, quality, group) in enumerate(product("abcde", QUALITIES, range(5))):
        things = THINGS[4 * group : 4 * group + 4]
        yield f"{quality}_{site}{number}", tuple(f"{quality}_{thing}" for thing in things)


def _server(name: str) -> Server:
    return Server(name=ServerName(name), description=f"The {name} service")


def _tools(row: Row, choose: random.Random, scale: float) -> list[Tool]:
    pairs = list(product(row.nouns, row.verbs))
    drawn = [max(0.4, choose.gauss(1, SPREAD)) for _ in pairs]
    wanted = [row.tokens * scale * each * len(drawn) / sum(drawn) for each in drawn]
    tools, owed = [], 0.0
    for (noun, verb), tokens in zip(pairs, wanted, strict=True):
        tool = _tool(row.server, verb, noun, round(tokens + owed), choose)
        owed += tokens - _tokens(tool)
        tools.append(tool)
    return tools


def _tool(server: str, verb: str, noun: str, tokens: int, choose: random.Random) -> Tool:
    """A tool of so many tokens, or the fewest it can have."""
    spoken = noun.replace("_", " ")
    properties: dict[str, Any] = {f"{noun}_id": {"type": "string", "description": f"Identifier of the {spoken}"}}
    options = choose.sample(OPTIONS, len(OPTIONS))
    tool = _defined(server, verb, noun, properties)
    for name, kind, description in options:
        larger = {**properties, name: {"type": kind, "description": description}}
        made = _defined(server, verb, noun, larger)
        if _tokens(made) > tokens:
            break
        properties, tool = larger, made
    return _filled(tool, verb, noun, properties, tokens)


def _filled(tool: Tool, verb: str, noun: str, properties: dict[str, Any], tokens: int) -> Tool:
    """The rest of the tokens as words behind the description of the last property."""
    last = list(properties)[-1]
    description = properties[last]["description"]
    words: Sequence[str] = list(islice(cycle(FILLER.split()), 200))
    low, high = 0, len(words)
    while low < high:
        middle = (low + high + 1) // 2
        tried = _with(tool, verb, noun, properties, last, [description, *words[:middle]])
        low, high = (middle, high) if _tokens(tried) <= tokens else (low, middle - 1)
    return _with(tool, verb, noun, properties, last, [description, *words[:low]])


def _with(tool: Tool, verb: str, noun: str, properties: dict[str, Any], last: str, words: Iterable[str]) -> Tool:
    described = {**properties[last], "description": " ".join(words)}
    return _defined(tool.server, verb, noun, {**properties, last: described})


def _defined(server: str, verb: str, noun: str, properties: dict[str, Any]) -> Tool:
    name = f"{verb}_{noun}"
    description = DOES[verb].format(noun=noun.replace("_", " "))
    schema = {"type": "object", "properties": properties, "required": [f"{noun}_id"]}
    return Tool(
        id=ToolId(server, name),
        description=description,
        input_schema=schema,
        definition={"name": name, "description": description, "inputSchema": schema},
    )


def _nested(tool: Tool) -> Tool:
    """The tool with all but its identifier in an object of options: as long, and quicker to embed, which ten thousand
    tools should be; texts for retrieval do not go that deep."""
    schema = tool.input_schema or {}
    (identifier, of), *rest = schema["properties"].items()
    options = {"type": "object", "properties": dict(rest)}
    inner = {**schema, "properties": {identifier: of, "options": options}}
    return replace(tool, input_schema=inner, definition={**tool.definition, "inputSchema": inner})


def _tokens(tool: Tool) -> int:
    return BpeCounter().count([canonical_text(tool)])[0]
