"""Edits of configuration files that keep every other character: comments, order, quotes and line ends.

A *place* is a path of keys to the object, table or list that holds the *members*, here the servers of a client.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from pegboard.settings.documents.json_members import JsonMembers
from pegboard.settings.documents.toml_members import TomlMembers
from pegboard.settings.documents.yaml_members import YamlMembers

__all__ = ["Syntax", "syntax_of"]


class Syntax(Protocol):
    """One format. The edits raise LookupError for a place or member that is not there in an editable form.

    No method checks its result: the caller parses it and compares.
    """

    name: str

    def parse(self, text: str) -> Any:
        """The document. Raises ValueError."""

    def source(self, text: str, place: Sequence[str], name: str) -> str:
        """The text of one member, as ``inserted`` takes it."""

    def written(self, text: str, place: Sequence[str], name: str, value: Mapping[str, Any]) -> str:
        """The text of a new member, in the manner of the file ``text``."""

    def changed(self, text: str, place: Sequence[str], gone: Collection[str], sources: Sequence[str]) -> str:
        """The text without the members in ``gone``, and with ``sources`` where the first member was."""


JSON = JsonMembers()
SYNTAXES: Mapping[str, Syntax] = {".toml": TomlMembers(), ".yaml": YamlMembers(), ".yml": YamlMembers()}


def syntax_of(path: Path) -> Syntax:
    """The format of a file by its suffix: TOML, YAML, or else JSON with comments and trailing commas."""
    return SYNTAXES.get(path.suffix, JSON)
