"""A set as a folder: gzip files of JSON lines and SOURCE.md, and whether they are what the figures were measured on."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import shutil
import tempfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from pegboard.errors import ConfigError
from pegboard_bench.sets.origins import Origins
from pegboard_bench.sets.recipe import Converted, Files, Recipe, Row
from pegboard_bench.sets.source_page import BUILT_BY, SOURCE_PAGE, source_page


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """What a file has: ``rows`` lines, and the SHA-256 of its text. Compressed bytes differ by version of zlib."""

    rows: int
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """Of a set in a folder. ``wrong`` has a sentence for each file that is missing or has another content."""

    built: bool
    wrong: tuple[str, ...]

    @property
    def whole(self) -> bool:
        return self.built and not self.wrong


def expected() -> dict[str, dict[str, Content]]:
    """The content of every file of every set, as `scripts/pin_sets.py` wrote it down."""
    text = files("pegboard_bench.sets").joinpath("checksums.json").read_text("utf-8")
    return {
        name: {file: Content(**content) for file, content in of_set.items()}
        for name, of_set in json.loads(text).items()
    }


def check(folder: Path, wanted: Mapping[str, Content]) -> State:
    """Whether a folder has every file with its content."""
    wrong = []
    for name, content in wanted.items():
        path = folder / name
        if not path.is_file():
            wrong.append(f"{name} is missing")
        elif (found := content_of(path)) is None:
            wrong.append(f"{name} cannot be read")
        elif found != content:
            rows = f"{found.rows:,} rows instead of {content.rows:,}" if found.rows != content.rows else "other rows"
            wrong.append(f"{name} has {rows}")
    return State(built=folder.is_dir(), wrong=tuple(wrong))


def content_of(path: Path) -> Content | None:
    """What a file has, or None if it is no gzip file."""
    try:
        text = gzip.decompress(path.read_bytes())
    except (OSError, EOFError, zlib.error):
        return None
    return Content(rows=text.count(b"\n"), sha256=hashlib.sha256(text).hexdigest())


def build(recipe: Recipe, origins: Origins, to: Path) -> Path:
    """Reads the sources, converts them, and puts the set into its folder in one step. Raises ConfigError."""
    _refuse_others(to / recipe.name)
    sources = {name: origins.open(source) for name, source in recipe.sources.items()}
    try:
        converted = recipe.convert(sources)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ConfigError(
            f"The sources of {recipe.name} are not what its conversion expects: {type(error).__name__}: {error}.",
            remedy="The recipe and its commits do not fit: please report it.",
        ) from error
    return _write(recipe, converted, sources, to)


def _refuse_others(folder: Path) -> None:
    """Raises ConfigError if a folder is there that was not built by this program: nobody's own set is replaced."""
    page = folder / SOURCE_PAGE
    if folder.exists() and not (page.is_file() and BUILT_BY in page.read_text("utf-8", "replace")):
        raise ConfigError(
            f"{str(folder)!r} is there, and this program did not build it.", remedy="Name another folder with --to."
        )


def _write(recipe: Recipe, converted: Converted, sources: Mapping[str, Files], to: Path) -> Path:
    try:
        to.mkdir(parents=True, exist_ok=True)
        made = Path(tempfile.mkdtemp(prefix=f".{recipe.name}-", dir=to))
    except OSError as error:
        raise ConfigError(f"Cannot write to {str(to)!r}: {error}.", remedy="Name another folder with --to.") from error
    try:
        contents = {}
        for name, rows in converted.files.items():
            (made / name).write_bytes(_compressed(rows))
            contents[name] = content_of(made / name)
        page = source_page(recipe, converted, sources, {name: found for name, found in contents.items() if found})
        (made / SOURCE_PAGE).write_text(page, "utf-8")
        made.chmod(0o755)
        if (to / recipe.name).exists():
            shutil.rmtree(to / recipe.name)
        made.rename(to / recipe.name)
    except OSError as error:
        raise ConfigError(
            f"Cannot write {str(to / recipe.name)!r}: {error}.", remedy="Free it, then run again."
        ) from error
    finally:
        shutil.rmtree(made, ignore_errors=True)
    return to / recipe.name


def _compressed(rows: Sequence[Row]) -> bytes:
    """JSON lines as gzip without a time and a name, so that the same rows give the same bytes."""
    text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    buffer = io.BytesIO()
    with gzip.GzipFile(filename="", mode="wb", fileobj=buffer, mtime=0) as file:
        file.write(text.encode("utf-8"))
    return buffer.getvalue()
