"""Vectors in files that gateways map into memory; `pegboard index build` writes them, and nobody changes them.

A folder has a file ``manifest.json``, and for each shard ``00000.keys.npy`` (SHA-256 keys as `protocols.Embeddings` has
them, shape (n, 32), uint8, sorted), ``00000.vectors.npy`` (shape (n, d), float32, in the keys' order),
``00000.findings.jsonl`` (what the scanner found, a line a tool) and ``00000.json`` (what the shard was made from, and
the SHA-256 of its files), which is written last. The bytes depend on the texts and the encoder alone.
"""

from __future__ import annotations

import hashlib
import io
import json
import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pegboard.errors import ConfigError, PegboardError
from pegboard.model import Floats
from pegboard.operating_system import replace_file
from pegboard.protocols import Embeddings, Encoder

LOGGER = logging.getLogger(__name__)

FORMAT = 1
MANIFEST = "manifest.json"
KEY = 32
"""Bytes of a key."""
AGAIN = "Run `pegboard index build` again."


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorSpace:
    """The encoder that made vectors: those of two spaces are never compared."""

    provider: str
    model: str
    dimensions: int

    @classmethod
    def of(cls, encoder: Encoder) -> VectorSpace:
        return cls(provider=encoder.provider, model=encoder.model, dimensions=encoder.dimensions)

    def is_like(self, other: VectorSpace) -> bool:
        """Whether only the dimensions may differ: a service says them with its first answer, and 0 before."""
        return (self.provider, self.model) == (other.provider, other.model)


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardRecord:
    """One shard: ``made_from`` digests its texts and their space, ``files`` have SHA-256 and size."""

    name: str
    made_from: str
    tools: int
    vectors: int
    flagged: int
    files: Mapping[str, tuple[str, int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """A folder of shards. ``duplicates`` are the ids of tools with equal definitions, group by group."""

    space: VectorSpace
    tools: int
    shards: Sequence[ShardRecord]
    duplicates: Sequence[Sequence[str]] = ()


def write_shard(
    folder: Path,
    name: str,
    made_from: str,
    vectors: Mapping[str, Floats],
    findings: Sequence[Mapping[str, Any]],
    tools: int,
) -> ShardRecord:
    """Write one shard; its record comes last, so that it is whole or not there. ``findings``: one a flagged tool.

    One that is written anew is taken from the folder's manifest first, with its record: its files would go together no
    more.
    """
    keys = sorted(vectors)
    rows = np.array([np.frombuffer(bytes.fromhex(key), np.uint8) for key in keys], np.uint8).reshape(-1, KEY)
    matrix = np.array([vectors[key] for key in keys], np.float32)
    lines = "".join(f"{_json(each)}\n" for each in findings)
    contents = {
        f"{name}.keys.npy": _npy(rows),
        f"{name}.vectors.npy": _npy(matrix.reshape(len(keys), -1)),
        f"{name}.findings.jsonl": lines.encode("utf-8", "replace"),
    }
    for said in (f"{name}.json", MANIFEST):
        _remove(folder / said)
    for file, content in contents.items():
        _write(folder / file, content)
    files = {file: (hashlib.sha256(content).hexdigest(), len(content)) for file, content in contents.items()}
    record = ShardRecord(
        name=name, made_from=made_from, tools=tools, vectors=len(keys), flagged=len(findings), files=files
    )
    _write(folder / f"{name}.json", _json(asdict(record)).encode())
    return record


def finished_shard(folder: Path, name: str, made_from: str) -> ShardRecord | None:
    """The record of a shard that an earlier run finished from the same texts."""
    try:
        record = _record(json.loads((folder / f"{name}.json").read_text("utf-8")))
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None
    whole = all(_size(folder / file) == size for file, (_, size) in record.files.items())
    return record if record.made_from == made_from and whole else None


def write_manifest(folder: Path, manifest: Manifest) -> None:
    _write(folder / MANIFEST, (_json({"format": FORMAT} | asdict(manifest)) + "\n").encode("utf-8", "replace"))


def read_manifest(folder: Path) -> Manifest:
    """Raises ConfigError if there is none that can be read."""
    try:
        said = json.loads((folder / MANIFEST).read_text("utf-8"))
        if said["format"] != FORMAT:
            raise ConfigError(f"{folder} has shards of format {said['format']}, not {FORMAT}.", remedy=AGAIN)
        return Manifest(
            space=VectorSpace(**said["space"]),
            tools=int(said["tools"]),
            shards=[_record(each) for each in said["shards"]],
            duplicates=[[*map(str, group)] for group in said["duplicates"]],
        )
    except FileNotFoundError as error:
        raise ConfigError(
            f"{folder} has no finished shards.", remedy="Run `pegboard index build --out` with this folder."
        ) from error
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise ConfigError(f"{folder / MANIFEST} cannot be read.", remedy=AGAIN) from error


def changed_files(folder: Path, manifest: Manifest) -> Iterator[str]:
    """The files that are not as they were written. Reads all of them."""
    for shard in manifest.shards:
        for file, (digest, _) in shard.files.items():
            try:
                with (folder / file).open("rb") as opened:
                    same = hashlib.file_digest(opened, "sha256").hexdigest() == digest
            except OSError:
                same = False
            if not same:
                yield file


class ShardEmbeddings:
    """Embeddings that are read from mapped shards first; new ones are kept ``behind`` them. While that store fails,
    what the shards have is found.

    Raises ConfigError if a folder has no shards, or shards that are cut or of another encoder. Processes that map the
    same files share their memory. A file that is cut later is left out from then on, with a warning.
    """

    def __init__(self, folders: Sequence[Path], space: VectorSpace, behind: Embeddings) -> None:
        shards = [shard for folder in folders for shard in _opened(folder, space)]
        self._keys = [keys for keys, _ in shards]
        self._vectors = [vectors for _, vectors in shards]
        starts = [_starts(keys) for keys in self._keys]
        of = [np.arange(len(keys), dtype=np.int64) + (number << 32) for number, keys in enumerate(self._keys)]
        joined, places = (
            np.concatenate(each) if each else np.zeros(0, kind) for each, kind in ((starts, "u8"), (of, "i8"))
        )
        order = np.argsort(joined, kind="stable")
        self._starts, self._places = joined[order], places[order]
        self._behind = behind
        self._cut: set[int] = set()

    async def get(self, keys: Sequence[str]) -> Mapping[str, Floats]:
        found = self._found(keys)
        missing = [key for key in keys if key not in found]
        if not missing:
            return found
        try:
            return found | dict(await self._behind.get(missing))
        except PegboardError:
            if not found:
                raise
            return found

    async def put(self, vectors: Mapping[str, Floats]) -> None:
        await self._behind.put(vectors)

    def _found(self, keys: Sequence[str]) -> dict[str, Floats]:
        asked = np.array([np.frombuffer(bytes.fromhex(key), np.uint8) for key in keys], np.uint8).reshape(-1, KEY)
        starts = _starts(asked)
        found: dict[str, Floats] = {}
        whole: dict[int, bool] = {}
        for number, place in enumerate(np.searchsorted(self._starts, starts)):
            while place < len(self._starts) and self._starts[place] == starts[number]:
                shard, row = divmod(int(self._places[place]), 1 << 32)
                if shard not in whole:
                    whole[shard] = self._is_whole(shard)
                if whole[shard] and np.array_equal(self._keys[shard][row], asked[number]):
                    found[keys[number]] = np.array(self._vectors[shard][row])
                    break
                place += 1
        return found

    def _is_whole(self, shard: int) -> bool:
        """Whether the files have all that was mapped of them: reading beyond their end would end the process."""
        mapped = (self._keys[shard], self._vectors[shard])
        if shard not in self._cut and any(each.base.size() < len(each.base) for each in mapped):
            LOGGER.warning("%s was cut: its vectors are computed instead. %s", mapped[1].filename, AGAIN)
            self._cut.add(shard)
        return shard not in self._cut


def _opened(folder: Path, space: VectorSpace) -> Iterator[tuple[Any, Any]]:
    manifest = read_manifest(folder)
    if manifest.space != space and (space.dimensions or not manifest.space.is_like(space)):
        theirs, ours = (f"{each.provider}/{each.model} ({each.dimensions})" for each in (manifest.space, space))
        raise ConfigError(
            f"The shards in {folder} are of the encoder {theirs}; the configured one is {ours}.",
            remedy="Build them with the configured encoder, or remove the folder from index_shards.",
        )
    for shard in manifest.shards:
        for file, (_, size) in shard.files.items():
            if _size(folder / file) != size:
                raise ConfigError(f"{folder / file} is missing or cut.", remedy=AGAIN)
        try:
            keys, vectors = (
                np.load(folder / f"{shard.name}.{kind}.npy", mmap_mode="r") for kind in ("keys", "vectors")
            )
        except (OSError, ValueError) as error:
            raise ConfigError(f"Shard {shard.name} in {folder} cannot be read.", remedy=AGAIN) from error
        if keys.shape != (shard.vectors, KEY) or vectors.shape != (shard.vectors, manifest.space.dimensions):
            raise ConfigError(f"Shard {shard.name} in {folder} is not what its manifest says.", remedy=AGAIN)
        yield keys, vectors


def _starts(keys: Any) -> Any:
    """The first eight bytes of each key as a number, in the keys' order."""
    return np.ascontiguousarray(keys[:, :8]).view(">u8").reshape(-1).astype(np.uint64)


def _record(said: Mapping[str, Any]) -> ShardRecord:
    files = {str(file): (str(digest), int(size)) for file, (digest, size) in said["files"].items()}
    return ShardRecord(**{**said, "files": files})


def _npy(array: Any) -> bytes:
    written = io.BytesIO()
    np.save(written, array, allow_pickle=False)
    return written.getvalue()


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def _write(path: Path, content: bytes) -> None:
    """Write a file whole or not at all. Raises PegboardError."""
    draft = path.with_name(f".{path.name}.new")
    try:
        draft.write_bytes(content)
        replace_file(draft, path)
    except OSError as error:
        raise PegboardError(f"{path} cannot be written: {error.strerror}.") from error


def _remove(path: Path) -> None:
    """Raises PegboardError."""
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise PegboardError(f"{path} cannot be removed: {error.strerror}.") from error


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return -1
