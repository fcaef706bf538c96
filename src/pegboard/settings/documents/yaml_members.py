"""Members of a mapping, or named items of a list, in a YAML file."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import yaml

from pegboard.settings.documents.splices import line_end, line_start, spliced

WORD = re.compile(r"'(?!<|\\(?:.|x\w\w|u\w{4})')[^'\s]{2,}'")
"""Quoted from a file, and no kind of token (`'<block end>'`) or single mark, such as a tab (`'\\t'`)."""
TAG = "tag:yaml.org,2002:"
NAME = "name"
"""The field by which an item of a list is known."""


class YamlMembers:
    """Implements Syntax. A mapping or list in braces or brackets is not found."""

    name = "YAML"

    def parse(self, text: str) -> Any:
        try:
            return yaml.load(text, Loader=_Loader)  # noqa: S506  # a safe one
        except yaml.MarkedYAMLError as error:
            raise ValueError(_what(error)) from None
        except yaml.YAMLError as error:
            raise ValueError(str(error)) from error
        except (LookupError, ValueError):  # they name the value, which may be secret
            raise ValueError("a value is not what its tag says") from None
        except RecursionError:
            raise ValueError("values are nested too deep") from None

    def source(self, text: str, place: Sequence[str], name: str) -> str:
        start, end = _range(text, place, name)
        return text[start:end].rstrip("\r\n") + line_end(text)

    def written(self, text: str, place: Sequence[str], name: str, value: Mapping[str, Any]) -> str:
        node = _holder(text, place)
        made: Any = [dict(value)] if isinstance(node, yaml.SequenceNode) else {name: dict(value)}
        lines = yaml.safe_dump(made, sort_keys=False, allow_unicode=True, width=2**20).splitlines()
        margin = " " * node.start_mark.column
        return "".join(f"{margin}{line}{line_end(text)}" for line in lines)

    def changed(self, text: str, place: Sequence[str], gone: Collection[str], sources: Sequence[str]) -> str:
        members = list(_members(text, place))
        if not members:
            raise LookupError(".".join(place))
        edits = [(start, end, "") for name, start, end in members if name in gone]
        first = members[0][1]
        return spliced(text, [*edits, (first, first, "".join(sources))])


def _number(loader: yaml.SafeLoader, node: yaml.ScalarNode) -> Any:
    """A number, or its text if the number is written in another way: PyYAML reads YAML 1.1, where `22:22` is 1342 and
    `0755` is 493; and `3.10` is no 3.1 among arguments."""
    number = yaml.SafeLoader.yaml_constructors[node.tag](loader, node)
    return number if str(number) == node.value else node.value


def _flag(loader: yaml.SafeLoader, node: yaml.ScalarNode) -> Any:
    """True or False, or the text: `yes`, `no`, `on` and `off` are texts to clients, which read YAML 1.2."""
    flag = yaml.SafeLoader.yaml_constructors[node.tag](loader, node)
    return flag if node.value.lower() in ("true", "false") else node.value


def _text(loader: yaml.SafeLoader, node: yaml.ScalarNode) -> Any:
    """A date or `=` as it is written: both are texts in YAML 1.2."""
    return loader.construct_scalar(node)


class _Loader(yaml.SafeLoader):  # type: ignore[misc]  # PyYAML has no types
    yaml_constructors = yaml.SafeLoader.yaml_constructors | {
        f"{TAG}int": _number,
        f"{TAG}float": _number,
        f"{TAG}bool": _flag,
        f"{TAG}timestamp": _text,
        f"{TAG}value": _text,
    }


def _what(error: yaml.MarkedYAMLError) -> str:
    """What is wrong, and where, without the line itself and the words in it, which may be secret (M30)."""
    said = ", ".join(filter(None, (error.context, error.problem)))
    mark = error.problem_mark or error.context_mark
    place = "" if mark is None else f" (at line {mark.line + 1}, column {mark.column + 1})"
    return WORD.sub("'***'", said) + place


def _range(text: str, place: Sequence[str], name: str) -> tuple[int, int]:
    found = [(start, end) for each, start, end in _members(text, place) if each == name]
    if not found:
        raise LookupError(name)
    return found[-1]


def _members(text: str, place: Sequence[str]) -> Iterator[tuple[str, int, int]]:
    """Every member with the start of its first line and the end of its last line."""
    node = _holder(text, place)
    if isinstance(node, yaml.SequenceNode):
        named = [(_field(item, NAME), item, item) for item in node.value]
    else:
        named = [(key.value, key, value) for key, value in node.value]
    for name, first, last in named:
        yield name, line_start(text, first.start_mark.index), _end(text, last)


def _holder(text: str, place: Sequence[str]) -> yaml.CollectionNode:
    """The block mapping or block list at ``place``. Raises LookupError."""
    node = yaml.compose(text, Loader=yaml.SafeLoader)
    for key in place:
        inner = node.value if isinstance(node, yaml.MappingNode) else []
        node = next((value for name, value in inner if name.value == key), None)
    if not isinstance(node, yaml.CollectionNode) or node.flow_style:
        raise LookupError(".".join(place))
    return node


def _field(item: yaml.Node, name: str) -> str:
    inner = item.value if isinstance(item, yaml.MappingNode) else []
    return next((str(value.value) for key, value in inner if key.value == name), "")


def _end(text: str, node: yaml.Node) -> int:
    """The end of the line with the node's last word: a block's own end mark is behind the remarks that follow it."""
    while isinstance(node, yaml.CollectionNode) and not node.flow_style and node.value:
        last = node.value[-1]
        node = last[1] if isinstance(last, tuple) else last
    index: int = node.end_mark.index
    if index and text[index - 1] == "\n":
        return index
    line = text.find("\n", index)
    return len(text) if line < 0 else line + 1
