"""State as a JSON lines file: a header, one record a line, and a last line with the number of records."""

from __future__ import annotations

import json
import logging
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import IO, Any

from pydantic import TypeAdapter, ValidationError
from pydantic_core import PydanticSerializationError

from pegboard.errors import ConfigError
from pegboard.protocols import Archive
from pegboard.records import RECORDS, Kind, Record
from pegboard.settings.client_configs import sentences

LOGGER = logging.getLogger(__name__)
NAME = "pegboard state"
FORMAT = 1
"""Incremented when this version could not read the file correctly."""

Report = Callable[[int], None]
"""Called with the number of records done."""


@cache
def _types() -> dict[str, TypeAdapter[Record]]:
    return {kind: TypeAdapter(of_kind) for kind, of_kind in RECORDS.items()}


async def export(
    archive: Archive, kinds: Sequence[Kind], file: IO[bytes], *, now: float, report: Report
) -> Counter[Kind]:
    """Write the records of these kinds, in this order; the number of each kind. A record that no import would take is
    left out, with a warning that says how many are."""
    left_out = 0
    about, written = await archive.about(), Counter[Kind](dict.fromkeys(kinds, 0))
    date = datetime.fromtimestamp(now, UTC).isoformat(timespec="seconds")
    file.write(_line({"format": NAME, "version": FORMAT, "backend": about.backend, "date": date}))
    for kind in kinds:
        async for record in archive.read(kind):
            line = _exported(record)
            if line is None:
                left_out += 1
                continue
            file.write(line + b"\n")
            written[kind] += 1
            report(written.total())
    file.write(_line({"records": written.total()}))
    if left_out:
        LOGGER.warning("%d records are left out: no import would take them.", left_out)
    return written


def _exported(record: Record) -> bytes | None:
    """A record as a line; None for one that no import would take, such as a name with NUL."""
    kind = _types()[record.record]
    try:
        line = kind.dump_json(record)
        kind.validate_json(line)
    except (PydanticSerializationError, ValidationError):
        return None
    return line


def records(path: Path) -> Iterator[Record]:
    """The records of an export. Raises ConfigError that names the line and what is wrong with it."""
    try:
        with path.open("rb") as file:
            yield from _checked(path, file)
    except OSError as error:
        raise ConfigError(f"Cannot read {str(path)!r}: {error.strerror}.", remedy="Check the path.") from error


def _checked(path: Path, file: IO[bytes]) -> Iterator[Record]:
    _check_header(path, file.readline())
    number, count, stated = 1, 0, None
    for number, line in enumerate(file, start=2):
        if stated is not None:
            raise _wrong(path, number, "it follows the last line")
        fields = _fields(path, number, line)
        if "records" in fields:
            stated = fields["records"]
            continue
        count += 1
        yield _record(path, number, line, fields)
    if stated is None:
        raise _wrong(path, number + 1, "the file ends too early: its last line is missing")
    if stated != count:
        raise _wrong(path, number, f"it states {stated!r} records, but there are {count}")


def _check_header(path: Path, line: bytes) -> None:
    header = _fields(path, 1, line)
    version = header.get("version")
    if header.get("format") != NAME or not isinstance(version, int):
        raise _wrong(path, 1, f'it does not begin with {{"format": "{NAME}", "version": {FORMAT}, …}}')
    if version > FORMAT:
        raise ConfigError(
            f"{str(path)!r} has format {version}, but this version of Pegboard reads {FORMAT}.",
            remedy="Upgrade Pegboard here, or export it again with this version.",
        )


def _fields(path: Path, number: int, line: bytes) -> dict[str, Any]:
    try:
        fields = json.loads(line)
    except ValueError:
        fields = None
    if not isinstance(fields, dict):
        raise _wrong(path, number, "it is not a JSON object")
    return fields


def _record(path: Path, number: int, line: bytes, fields: dict[str, Any]) -> Record:
    kind = fields.get("record")
    if kind not in RECORDS:
        raise _wrong(path, number, f"unknown kind of record {kind!r}")
    try:
        return _types()[kind].validate_json(line)
    except ValidationError as error:
        raise _wrong(path, number, sentences(error)) from error


def _wrong(path: Path, number: int, what: str) -> ConfigError:
    return ConfigError(
        f"{str(path)!r}, line {number}: {what}.", remedy="Nothing was imported. Export it again, or correct the line."
    )


def _line(fields: dict[str, Any]) -> bytes:
    return json.dumps(fields, separators=(",", ":")).encode() + b"\n"
