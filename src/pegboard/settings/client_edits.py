"""Changes servers in the text of a client's file and keeps every other character."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from pegboard.errors import ConfigError
from pegboard.settings.client_configs import entries_at, parse_document
from pegboard.settings.client_import import ClientFile, JsonObject
from pegboard.settings.documents import syntax_of
from pegboard.settings.jsonc import with_value

BOM = "\ufeff"


def edited(file: ClientFile, gone: Collection[str], added: JsonObject, origins: Mapping[str, ClientFile]) -> str:
    """The text of ``file`` without the servers ``gone``, and with those ``added`` before the others.

    An added server that is in a file of ``origins`` is taken from there as it is written. Raises ConfigError if the
    text has a form in which this cannot be done.
    """
    syntax, text = syntax_of(file.path), file.text.removeprefix(BOM)
    try:
        sources = [_source(file, name, added[name], origins.get(name)) for name in added]
        made = syntax.changed(text, file.place, gone, sources)
        fits = _is_changed(file, text, made, gone, added)
    except (LookupError, ValueError):
        fits = False
    if not fits:
        raise ConfigError(
            f"{str(file.path)!r} has a form that cannot be changed safely.",
            remedy="Leave that client out: name the others with --client.",
        )
    return BOM * file.text.startswith(BOM) + made


def _source(file: ClientFile, name: str, value: Any, origin: ClientFile | None) -> str:
    text = file.text.removeprefix(BOM)
    syntax = syntax_of(file.path)
    if origin is None:
        return syntax.written(text, file.place, name, value)
    return syntax.source(origin.text.removeprefix(BOM), origin.place, name)


def _is_changed(file: ClientFile, text: str, made: str, gone: Collection[str], added: JsonObject) -> bool:
    """Whether exactly the servers changed: the parsed documents are compared."""
    before, after = parse_document(text, file.path), parse_document(made, file.path)
    expected = {name: entry for name, entry in file.entries.items() if name not in gone} | dict(added)
    found = entries_at(after, file.client, file.place, file.path)
    return found == expected and _without(before, file.place) == _without(after, file.place)


def _without(document: Any, place: Sequence[str]) -> Any:
    if not place or not isinstance(document, Mapping):
        return None
    return {key: _without(value, place[1:]) if key == place[0] else value for key, value in document.items()}


def is_plain_rewrite(now: ClientFile, before: ClientFile) -> bool:
    """Whether ``now`` is ``before`` with all servers written anew, as Pegboard 0.2 and earlier changed a file."""
    try:
        return with_value(before.text, before.place, dict(now.entries)) == now.text
    except LookupError:
        return False
