"""JSON as compact text from which the same JSON can be read again: arrays of objects become tables.

The text is the JSON on one line, in which ``@1`` stands for the first table, and the tables after it::

    {"total":2,"items":@1}
    @1 3 rows, each with {"state":"open"}
    id<tab>title<tab>user.login
    7<tab>Cold start<tab>ann

A cell is a bare text or JSON. An empty cell is null; in a column whose name ends in ``?`` it is a missing field. A
field of a nested object has a dotted name. Rows of an array of arrays are ``each an array``, and its fields are the
places, from 0. Literals of numbers stay as they are written.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import cache
from json.encoder import encode_basestring
from operator import itemgetter
from types import MappingProxyType
from typing import Any

LEAST_ROWS = 3
"""Shorter arrays stay JSON."""
LEAST_CELLS = 2
"""Arrays of shorter arrays stay JSON."""
LEAST_FILL = 0.5
"""Least share of cells that are there; a sparser array stays JSON."""
DEEPEST = 6
"""Levels of containers in which tables are looked for."""
DEEPEST_FIELD = 6
"""Levels of nested objects that become columns."""
MARKS = ("\ue000", "\ue001")
"""Characters of the private use area around what is not quoted. A text that contains them is not shaped."""
MARKED = re.compile(f'"{MARKS[0]}([^"{MARKS[1]}]*){MARKS[1]}"')
MAYBE_MINUS_ZERO = re.compile(r"-0(?![.\deE])")
MINUS_ZERO = re.compile(r"(?:^|[\[:,\s])-0\s*(?:$|[,\]}])")
"""Python's integers have no negative zero. The first pattern is the faster one."""
SPECIAL = re.compile(
    r"\x00(?:[\"\[{\s\x00]|-?\d[\d.eE+-]*\x00|(?:true|false|null)\x00|[^\x00]*"
    r"(?:[\x01-\x1f\x7f\x85\u2028\u2029\ue000\ue001]|\s\x00))"
)
"""What a bare cell between two zeros must not be: JSON, a text that begins or ends with a blank, or one with a line
break."""
LIKE_JSON = re.compile(r"\x00(?:[\"\[{ \x00]|-?\d[\d.eE+-]*\x00|(?:true|false|null)\x00)")
"""The same for printable texts that end without a blank."""
BARE_NAME = re.compile(r'[^\s.,?@"{}\[\]\x00-\x1f\x7f\x85\u2028\u2029\ue000\ue001]+')
NAME_PART = re.compile(r'("(?:[^"\\]|\\.)*"|[^."?]+)')
HEADER = re.compile(r"@(\d{1,9}) (\d{1,9}) rows(?:, each with (\{.*\})|, (each an array))?")
EXPONENT = re.compile(rb"0e|0\.0000")
BEFORE_NUMBER = (b":", b",", b"[", b"")
LONGEST_NUMBER = 40
ZEROS = bytes.maketrans(b"123456789", b"000000000")
LONG = 10_000
"""Characters from which on a text is read by msgspec, if it is there."""
ENCODED = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
Path = tuple[str, ...]


class NotShaped(ValueError):  # noqa: N818
    """The JSON cannot be written as text from which the same is read again."""


class PartlyRead(list[Any]):
    """An array that can be written as a table and in no other way, since not all of it was read."""


@dataclass(frozen=True, slots=True)
class WrittenJson:
    """A nested value in `PartlyRead`, as the compact JSON that is written of it."""

    text: str


class SomeRows(PartlyRead):
    """Rows of an array of ``of``: those at ``places``. ``ranks`` are of those places which are about what was asked.
    The array has ``size`` bytes, and these rows have those that were ``read``."""

    of: int = 0
    size: int = 0
    read: int = 0
    places: Sequence[int] = ()
    ranks: Mapping[int, int] = MappingProxyType({})

    def changed(self, rows: list[Any]) -> SomeRows:
        """Other rows at the same places."""
        made = SomeRows(rows)
        made.of, made.places, made.ranks = self.of, self.places, self.ranks
        made.size, made.read = self.size, self.read
        return made


class _Absent:
    """A field that an object does not have."""


ABSENT = _Absent()
EMPTY = frozenset({_Absent, type(None)})


@dataclass(frozen=True, slots=True)
class Column:
    """One field of the rows of a table."""

    path: Path
    values: Sequence[Any]
    missing: int = 0
    """How many rows do not have it."""
    unread: Sequence[Any] = ()
    """The objects whose field it is, where its values are not gathered yet."""

    def filled(self) -> Column:
        """The column with its values."""
        if not self.unread:
            return self
        return Column(self.path, [each.get(self.path[-1], ABSENT) for each in self.unread], self.missing)


@dataclass(slots=True)
class JsonTable:
    """An array of objects: the columns that differ, and the fields that all rows share; or one of ``arrays``. ``some``
    are the rows that it has, if it has not all."""

    rows: int
    columns: list[Column]
    shared: dict[str, Any] = field(default_factory=dict)
    arrays: bool = False
    some: SomeRows | None = None


@dataclass(frozen=True, slots=True)
class TableText:
    """``root`` is the JSON with references to the tables, on one line; ``tables`` are their lines, or the first of
    them."""

    root: str
    tables: tuple[tuple[str, ...], ...]
    parsed: tuple[JsonTable, ...]

    @property
    def lines(self) -> list[str]:
        """All lines. An array that is the whole result needs no line that refers to it."""
        first = [] if self.root == "@1" else [self.root]
        return first + [line for table in self.tables for line in table]

    @property
    def numbers(self) -> tuple[list[int], int]:
        """The places that the lines have, from 0, where all rows are written, and how many lines that are."""
        found, begin = ([], 0) if self.root == "@1" else ([0], 1)
        for table in self.parsed:
            places = range(table.rows) if table.some is None else table.some.places
            found += [begin, begin + 1, *(begin + 2 + place for place in places)]
            begin += 2 + table.rows
        return found, begin

    @property
    def ranks(self) -> dict[int, int]:
        """Of the lines about what was asked, by place among ``lines``, how good they are: 0 is the best."""
        found: dict[int, int] = {}
        begin = 0 if self.root == "@1" else 1
        for table, lines in zip(self.parsed, self.tables, strict=True):
            some = table.some or SomeRows()
            found |= {at: some.ranks[each] for at, each in enumerate(some.places, begin + 2) if each in some.ranks}
            begin += len(lines)
        return found


def parsed_json(text: str) -> Any:
    """The value of a JSON text, in which literals that Python's floats do not reproduce are marked texts.

    Raises NotShaped for what is no JSON, and for JSON that Python's values cannot hold: a key twice, NaN, -0.

    >>> parsed_json('{"a": [1, 2.5]}')
    {'a': [1, 2.5]}
    """
    refuse_unsayable(text)
    if len(text) > LONG and (codec := _codec()) is not None:
        try:
            value = codec.read(text)
            if value is not None:
                return value
        except (ValueError, RecursionError):  # the strict reading says why, or can read it
            pass
    try:
        return json.loads(text, parse_float=_number, parse_constant=_refused, object_pairs_hook=_unique)
    except (ValueError, RecursionError) as error:
        raise NotShaped from error


def refuse_unsayable(text: str) -> None:
    """Raises NotShaped for a JSON text with our marks or with -0 in it."""
    marked = MARKS[0] in text or MARKS[1] in text
    if not marked and _is_in("\\u", text):
        marked = "\\ue00" in text or "\\uE00" in text
    if marked or (MAYBE_MINUS_ZERO.search(text) and MINUS_ZERO.search(text)):
        raise NotShaped


def _is_in(escape: str, text: str) -> bool:
    """Whether an escape is in a text. One character is found far faster than two."""
    return "\\" in text and escape in text


def json_text(value: Any) -> str:
    """Compact JSON, with the marked literals as they were written."""
    text = _encoded(value)
    return MARKED.sub(r"\1", text) if MARKS[0] in text else text


def table_text(value: Any) -> TableText:
    """The value of `parsed_json` as text. Raises NotShaped if `PartlyRead` in it are no table."""
    tables: list[JsonTable] = []
    root = _with_references(value, tables, 0)
    lines = tuple(tuple(_lines(at, each)) for at, each in enumerate(tables, 1))
    return TableText(json_text(root), lines, (*tables,))


def restored(text: str) -> Any:
    """The value that `table_text` wrote as these lines: the inverse, by which its losslessness is shown.

    >>> restored('[@1]\\n@1 3 rows, each with {"b":1}\\na\\n7\\nseven\\n')
    [[{'a': 7, 'b': 1}, {'a': 'seven', 'b': 1}, {'a': None, 'b': 1}]]
    """
    lines = text.split("\n")
    root = "@1" if HEADER.fullmatch(lines[0]) else lines.pop(0)
    tables: dict[str, list[Any]] = {}
    while lines and (head := HEADER.fullmatch(lines[0])):
        rows = int(head[2])
        names, cells = lines[1].split("\t") if lines[1] else [], lines[2 : 2 + rows]
        shared = json.loads(head[3]) if head[3] else {}
        tables[head[1]] = [
            [*map(_value, row.split("\t"))] if head[4] else _object(names, row.split("\t"), shared) for row in cells
        ]
        lines = lines[2 + rows :]
    return _resolved(json.loads(re.sub(r'("(?:[^"\\]|\\.)*")|@(\d+)', _referred, root)), tables)


class _HasFloats(Exception):  # noqa: N818
    """A JSON text has numbers that may be written in several ways."""


@dataclass(frozen=True, slots=True)
class _Codec:
    """A faster reader and writer of JSON than Python's: ``whole`` reads what has no floats, ``plain`` floats as Python
    does, and ``marked`` those that are written otherwise as marked texts."""

    whole: Callable[[str], Any]
    plain: Callable[[bytes], Any]
    marked: Callable[[str], Any]
    encode: Callable[[Any], bytes]
    compact: Callable[[bytes], bytes]

    def read(self, text: str) -> Any:
        """The value of a text; None if it must be read strictly, and for null."""
        try:
            return self._unique(text, self.whole(text))
        except _HasFloats:
            pass
        exact = None if _is_in("\\u", text) else self._exact(text)
        return exact if exact is not None else self._unique(text, self.marked(text))

    def _unique(self, text: str, value: Any) -> Any:
        """The value, if no key is there twice: what is said of it for a second time is not in the value, nor are its
        colons."""
        same = not _is_in("\\u003", text) and text.count(":") == self.encode(value).count(b":")
        return value if same else None

    def _exact(self, text: str) -> Any:
        """The value, if the text is what is written of it but for blanks: then no key is there twice, and no float is
        written in another way. Faster than to look at each float."""
        raw = text.encode("utf-8", "surrogatepass")
        value = self.plain(raw)
        written = self.encode(value)
        return value if written == self.compact(raw) and not _has_exponents(written) else None


@cache
def _codec() -> _Codec | None:
    """None where msgspec, which comes with the extra `mcp`, is not installed."""
    try:
        import msgspec
    except ImportError:
        return None
    return _Codec(
        whole=msgspec.json.Decoder(float_hook=_refuse_float).decode,
        plain=msgspec.json.Decoder().decode,
        marked=msgspec.json.Decoder(float_hook=_number).decode,
        encode=msgspec.json.Encoder().encode,
        compact=lambda raw: msgspec.json.format(raw, indent=-1),
    )


def _has_exponents(written: bytes) -> bool:
    """Whether there may be small or great floats, the only values that msgspec writes in another way than Python."""
    digits = written.translate(ZEROS)
    ends = [found.start() + 1 for found in EXPONENT.finditer(digits)] if b"0e" in digits or b"0.0000" in digits else []
    return any(digits[max(0, end - LONGEST_NUMBER) : end].rstrip(b"0.-")[-1:] in BEFORE_NUMBER for end in ends)


def _encoded(value: Any) -> str:
    """Python's compact JSON."""
    if isinstance(value, list | dict) and value and (codec := _codec()) is not None:
        try:
            text = codec.encode(value)
        except UnicodeEncodeError:  # half of a surrogate pair
            return ENCODED(value)
        if not _has_exponents(text):
            return text.decode()
    return ENCODED(value)


def _number(literal: str) -> float | str:
    value = float(literal)
    return value if repr(value) == literal else f"{MARKS[0]}{literal}{MARKS[1]}"


def _refuse_float(literal: str) -> Any:
    raise _HasFloats(literal)


def _refused(literal: str) -> Any:
    raise NotShaped(literal)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise NotShaped("a key twice")
    return found


def _with_references(value: Any, tables: list[JsonTable], depth: int) -> Any:
    """The value with a marked reference in place of each array that is a table."""
    if depth > DEEPEST:
        return value
    if isinstance(value, list):
        table = table_of(value)
        if table is not None:
            tables.append(table)
            return f"{MARKS[0]}@{len(tables)}{MARKS[1]}"
        if isinstance(value, PartlyRead):
            raise NotShaped
        return [_with_references(each, tables, depth + 1) if isinstance(each, list | dict) else each for each in value]
    if isinstance(value, dict):
        return {
            key: _with_references(each, tables, depth + 1) if isinstance(each, list | dict) else each
            for key, each in value.items()
        }
    return value


def table_of(rows: Sequence[Any]) -> JsonTable | None:
    """The array as a table; None if it is none."""
    if len(rows) < LEAST_ROWS:
        return None
    kinds = set(map(type, rows))
    if kinds == {list}:
        return _table_of_arrays(rows)
    if kinds != {dict} or not all(rows):
        return None
    found = _columns(rows, (), 0)
    if sum(each.missing for each in found) > (1 - LEAST_FILL) * len(found) * len(rows):
        return None
    columns = [each.filled() for each in found]
    some = rows if isinstance(rows, SomeRows) else None
    if some is not None:
        return JsonTable(some.of, columns, some=some)
    table = JsonTable(len(rows), [])
    for each in columns:
        first = each.values[0]
        if first is not ABSENT and _is_plain(first) and all(_is_same(value, first) for value in each.values):
            table.shared[_dotted(each.path)] = first
        else:
            table.columns.append(each)
    return table


def _table_of_arrays(rows: Sequence[Sequence[Any]]) -> JsonTable | None:
    """Arrays of the same length, of which none has arrays or objects in it."""
    if len(rows[0]) < LEAST_CELLS or len(set(map(len, rows))) > 1:
        return None
    columns = [Column((str(at),), values) for at, values in enumerate(zip(*rows, strict=True))]
    plain = not any(issubclass(kind, list | dict) for each in columns for kind in set(map(type, each.values)))
    some = rows if isinstance(rows, SomeRows) else None
    return JsonTable(len(rows) if some is None else some.of, columns, arrays=True, some=some) if plain else None


def _columns(rows: Sequence[Any], path: Path, depth: int) -> list[Column]:
    """The columns of objects at ``path``. A field that always is an object becomes several columns."""
    found: list[Column] = []
    for each in _fields(rows):
        may_nest = not each.missing and depth < DEEPEST_FIELD
        nested = may_nest and all(type(value) is dict and value for value in each.values)
        (key,) = each.path
        found += _columns(each.values, (*path, key), depth + 1) if nested else [replace(each, path=(*path, key))]
    return found


def _fields(rows: Sequence[Any]) -> list[Column]:
    """The columns of objects, with nested objects as values. What some rows lack is not gathered yet: where no row has
    a field of another, that would be as many values as the square of the rows."""
    if set(map(len, rows)) == {len(rows[0])}:
        try:
            return [Column((key,), list(map(itemgetter(key), rows))) for key in rows[0]]
        except KeyError:
            pass
    there: Counter[str] = Counter()
    for row in rows:
        there.update(row.keys())
    return [
        Column((key,), (), len(rows) - count, rows) if count < len(rows) else Column((key,), [row[key] for row in rows])
        for key, count in there.items()
    ]


def _is_plain(value: Any) -> bool:
    return value is None or isinstance(value, str | int | float) or value in ([], {})


def _is_same(value: Any, other: Any) -> bool:
    """1, 1.0 and true are equal in Python, and three values in JSON."""
    return type(value) is type(other) and value == other


def _dotted(path: Path) -> str:
    return ".".join(part if BARE_NAME.fullmatch(part) else json_text(part) for part in path)


def _lines(number: int, table: JsonTable) -> list[str]:
    shared = f", each with {json_text(table.shared)}" if table.shared else ", each an array" if table.arrays else ""
    optional = [each.missing > 0 for each in table.columns]
    names = "\t".join(_dotted(each.path) + "?" * may for each, may in zip(table.columns, optional, strict=True))
    cells = [_cells(each.values, optional=may) for each, may in zip(table.columns, optional, strict=True)]
    rows = map("\t".join, zip(*cells, strict=True)) if cells else [""] * table.rows
    return [f"@{number} {table.rows} rows{shared}", names, *rows]


def _cells(values: Sequence[Any], *, optional: bool) -> list[str]:
    """Values of one column as text, by their type where all that are there have the same. ``optional`` is whether any
    row of the table lacks the field."""
    kinds = set(map(type, values))
    if len(kinds) > 1 and kinds & EMPTY:
        cells = iter(_cells([each for each in values if type(each) not in EMPTY], optional=optional))
        return [_empty(each, optional=optional) if type(each) in EMPTY else next(cells) for each in values]
    if kinds == {str}:
        different = set(values)  # many columns have few
        joined = "".join(different)
        if joined.isascii() and joined.isdigit() and "" not in different:
            return [f'"{value}"' for value in values]
        return list(values) if _are_bare(different, joined) else [_text(value) for value in values]
    if kinds <= {int, float}:
        return list(map(repr, values))
    if kinds == {bool}:
        return ["true" if each else "false" for each in values]
    return [_cell(value, optional=optional) for value in values]


def _cell(value: Any, *, optional: bool) -> str:
    if type(value) in EMPTY:
        return _empty(value, optional=optional)
    if isinstance(value, str):
        return _text(value)
    return value.text if isinstance(value, WrittenJson) else json_text(value)


def _empty(value: Any, *, optional: bool) -> str:
    return "null" if value is None and optional else ""


def _are_bare(values: Set[str], joined: str) -> bool:
    """Whether all texts can be cells as they are. A printable text has no line break, and no blank but the space."""
    if not joined.isprintable():
        return False
    separated = "\0".join(["", *values, ""])
    return " \0" not in separated and not LIKE_JSON.search(separated)


def _text(value: str) -> str:
    return _quoted(value) if "\0" in value or SPECIAL.match(f"\0{value}\0") else value


def _quoted(value: str) -> str:
    """A text as `json_text` writes it, in less time."""
    text = encode_basestring(value)
    return MARKED.sub(r"\1", text) if MARKS[0] in text else text


def _object(names: Sequence[str], cells: Sequence[str], shared: dict[str, Any]) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for name, cell in zip(names, cells, strict=True) if names else ():
        if not (cell == "" and name.endswith("?")):
            _put(made, NAME_PART.findall(name), _value(cell))
    for name, value in shared.items():
        _put(made, NAME_PART.findall(name), value)
    return made


def _put(made: dict[str, Any], parts: Sequence[str], value: Any) -> None:
    *folders, last = (json.loads(part) if part.startswith('"') else part for part in parts)
    for each in folders:
        made = made.setdefault(each, {})
    made[last] = value


def _value(cell: str) -> Any:
    if cell == "":
        return None
    try:
        return json.loads(cell, parse_constant=_refused)
    except ValueError:
        return cell


def _referred(match: re.Match[str]) -> str:
    return match[1] or f'{{"{MARKS[0]}":{match[2]}}}'


def _resolved(value: Any, tables: dict[str, list[Any]]) -> Any:
    if isinstance(value, dict):
        if MARKS[0] in value:
            return tables[str(value[MARKS[0]])]
        return {key: _resolved(each, tables) for key, each in value.items()}
    return [_resolved(each, tables) for each in value] if isinstance(value, list) else value
