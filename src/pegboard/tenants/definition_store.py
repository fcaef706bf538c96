"""Definitions of tools with their vectors, each once, by its content.

A public definition is one row for everybody. A private one is a row of its owner, also where another tenant has the
very same definition: nobody can tell from a row, or from the time that it takes to make one, what others have.
"""

from __future__ import annotations

import hashlib
import json
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray

from pegboard.errors import CatalogError
from pegboard.model import Floats, Server, Tool, ToolId

PUBLIC = ""
"""The owner of what everybody may see."""
BLOCK = 1_024
"""Vectors that are made room for at a time, so that growth copies nothing."""
DERIVED = {
    "title": "title",
    "description": "description",
    "input_schema": "inputSchema",
    "output_schema": "outputSchema",
    "annotations": "annotations",
}
"""Fields of a tool that are in its definition already, as servers list it, and their keys there."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ServerRows:
    """The tools of one server, by their rows in a `DefinitionStore`.

    ``owner`` is the tenant that alone may see them, or `PUBLIC`; ``profile`` is the vector of the server's description,
    shape (d,).
    """

    server: Server
    owner: str
    rows: NDArray[np.int32]
    profile: Floats

    def __len__(self) -> int:
        return len(self.rows)


class DefinitionStore:
    """Rows of definitions, counted by the servers that list them; a row that none has any more is used again.

    >>> from pegboard.model import ServerName
    >>> from pegboard.testing import fake_tool
    >>> store, tide = DefinitionStore(), fake_tool("tide", server="sea")
    >>> rows = store.keep(store.keys(PUBLIC, [tide]), [tide], np.ones((1, 2), np.float32), [12])
    >>> sea = ServerRows(server=Server(name=ServerName("sea")), owner=PUBLIC, rows=rows, profile=np.ones(2, np.float32))
    >>> [tool.name for tool in store.tools(sea)], store.vectors(sea).tolist(), store.tokens(sea)
    (['tide'], [[1.0, 1.0]], (12,))
    """

    def __init__(self) -> None:
        self._row: dict[bytes, int] = {}
        self._keys: list[bytes] = []
        self._bodies: list[bytes] = []
        self._used: array[int] = array("i")
        self._tokens: array[int] = array("i")
        self._blocks: list[Floats] = []
        self._free: list[int] = []
        self._read: WeakValueDictionary[int, Tool] = WeakValueDictionary()

    def __len__(self) -> int:
        """Distinct definitions."""
        return len(self._row)

    @property
    def definition_bytes(self) -> int:
        """Bytes of all definitions, without their vectors."""
        return sum(map(len, self._bodies))

    def keys(self, owner: str, tools: Sequence[Tool]) -> list[bytes]:
        """SHA-256 of each definition and its owner. Raises CatalogError for what is no JSON."""
        return [_key(owner, tool) for tool in tools]

    def has(self, key: bytes) -> bool:
        """Whether there is a row of this key."""
        return key in self._row

    def keep(
        self, keys: Sequence[bytes], tools: Sequence[Tool], vectors: Floats, tokens: Sequence[int]
    ) -> NDArray[np.int32]:
        """The rows of tools, new where there are none of their keys; one more has them now.

        ``vectors``, shape (n, d), and ``tokens`` are those of the tools. A tool may have got a summary since its key
        was made.
        """
        for key, tool, vector, count in zip(keys, tools, vectors, tokens, strict=True):
            if key not in self._row:
                self._write(key, _body(tool), vector, count)
        return self.hold(keys)

    def hold(self, keys: Sequence[bytes]) -> NDArray[np.int32]:
        """The rows of definitions that are there, which one more has now."""
        rows = np.array([self._row[key] for key in keys], np.int32)
        self.retain(rows)
        return rows

    def retain(self, rows: NDArray[np.int32]) -> None:
        """One more has these rows: they are not used for anything else until `release`."""
        for row in rows.tolist():
            self._used[row] += 1

    def release(self, rows: NDArray[np.int32]) -> None:
        """One less has these rows."""
        for row in rows.tolist():
            self._used[row] -= 1
            if not self._used[row]:
                del self._row[self._keys[row]]
                self._keys[row] = self._bodies[row] = b""
                self._read.pop(row, None)
                self._free.append(row)

    def tools(self, listed: ServerRows) -> tuple[Tool, ...]:
        """The tools in the order listed, read from their JSON; public ones are read once for all who have them now."""
        name, rows = listed.server.name, listed.rows.tolist()
        if listed.owner != PUBLIC:
            return tuple(_tool(name, self._bodies[row]) for row in rows)
        return tuple(self._read.get(row) or self._read.setdefault(row, _tool(name, self._bodies[row])) for row in rows)

    def vectors(self, listed: ServerRows) -> Floats:
        """Their vectors, shape (n, d)."""
        blocks, places = np.divmod(listed.rows, BLOCK)
        out = np.empty((len(listed), len(listed.profile)), np.float32)
        for block in np.unique(blocks).tolist():
            here = blocks == block
            out[here] = self._blocks[block][places[here]]
        return out

    def tokens(self, listed: ServerRows) -> tuple[int, ...]:
        """Tokens of their canonical definitions."""
        return tuple(self._tokens[row] for row in listed.rows.tolist())

    def _write(self, key: bytes, body: bytes, vector: Floats, tokens: int) -> None:
        row = self._free.pop() if self._free else self._new_row()
        self._row[key] = row
        self._keys[row], self._bodies[row] = key, body
        self._used[row], self._tokens[row] = 0, tokens
        block, place = divmod(row, BLOCK)
        if block == len(self._blocks):
            self._blocks.append(np.empty((BLOCK, len(vector)), np.float32))
        self._blocks[block][place] = vector

    def _new_row(self) -> int:
        self._keys.append(b"")
        self._bodies.append(b"")
        self._used.append(0)
        self._tokens.append(0)
        return len(self._keys) - 1


def _key(owner: str, tool: Tool) -> bytes:
    name = f"{len(owner)}:{owner}{len(tool.server)}:{tool.server}".encode("utf-8", "surrogatepass")
    return hashlib.sha256(name + _body(tool)).digest()


def _body(tool: Tool) -> bytes:
    """The tool as JSON, without what its definition says too."""
    known = tool.definition
    body: dict[str, object] = {"definition": known}
    body |= {name: getattr(tool, name) for name in ("summary", "category", "aliases") if getattr(tool, name)}
    body |= {field: said for field, key in DERIVED.items() if (said := getattr(tool, field)) != known.get(key)}
    if tool.name != known.get("name"):
        body["name"] = tool.name
    try:
        text = json.dumps(body, ensure_ascii=False, separators=(",", ":"))
    except (TypeError, ValueError) as error:
        raise CatalogError(
            f"The definition of {str(tool.id)!r} is not JSON: {error}.", remedy="Give definitions as servers list them."
        ) from error
    return text.encode("utf-8", "surrogatepass")


def _tool(server: str, body: bytes) -> Tool:
    said = json.loads(body.decode("utf-8", "surrogatepass"))
    known = said.pop("definition")
    fields = {field: known.get(key) for field, key in DERIVED.items()} | said
    name = fields.pop("name", None) or known["name"]
    fields["aliases"] = tuple(fields.get("aliases", ()))
    return Tool(id=ToolId(server, name), definition=known, **fields)
