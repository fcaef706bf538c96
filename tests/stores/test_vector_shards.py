"""Shards of vectors: found by their keys, refused if cut or of another encoder, the same bytes in any order."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest

from pegboard.errors import ConfigError, PegboardError, StoreError
from pegboard.model import Floats
from pegboard.retrieval.encoders.encoder_cache import embedding_key
from pegboard.stores import MemoryEmbeddings, vector_shards
from pegboard.stores.vector_shards import (
    Manifest,
    ShardEmbeddings,
    VectorSpace,
    changed_files,
    finished_shard,
    read_manifest,
    write_manifest,
    write_shard,
)

SPACE = VectorSpace(provider="fake", model="m", dimensions=4)
KEYS = [embedding_key("fake", "m", f"text {number}") for number in range(40)]
VECTORS = {key: np.full(4, number, np.float32) for number, key in enumerate(KEYS)}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    halves = {key: VECTORS[key] for key in KEYS[:25]}, {key: VECTORS[key] for key in KEYS[25:30]}
    shards = [write_shard(tmp_path, f"{number:05}", "x", half, [], 3) for number, half in enumerate(halves)]
    write_manifest(tmp_path, Manifest(space=SPACE, tools=6, shards=shards))
    return tmp_path


@pytest.mark.requirement("scale.shards")
async def test_vectors_of_all_shards_are_found_and_others_behind_them(folder: Path) -> None:
    behind = MemoryEmbeddings(100)
    await behind.put({KEYS[30]: VECTORS[KEYS[30]]})
    store = ShardEmbeddings([folder], SPACE, behind)
    await store.put({KEYS[31]: VECTORS[KEYS[31]]})

    found = await store.get(KEYS)

    assert set(found) == set(KEYS[:32])
    assert all(np.array_equal(found[key], VECTORS[key]) for key in found)
    assert await store.get([]) == {}


class Down(MemoryEmbeddings):
    async def get(self, keys: Sequence[str]) -> Mapping[str, Floats]:
        raise StoreError("The store is down.")


async def test_what_shards_have_is_found_while_the_store_behind_them_is_down(folder: Path) -> None:
    store = ShardEmbeddings([folder], SPACE, Down(1))

    assert set(await store.get(KEYS)) == set(KEYS[:30])
    with pytest.raises(StoreError):
        await store.get(KEYS[30:])


async def test_keys_that_begin_alike_are_told_apart(tmp_path: Path) -> None:
    alike = {KEYS[0][:16] + f"{number:048x}": np.full(4, number, np.float32) for number in range(5)}
    shard = write_shard(tmp_path, "00000", "x", alike, [], 1)
    write_manifest(tmp_path, Manifest(space=SPACE, tools=1, shards=[shard]))

    found = await ShardEmbeddings([tmp_path], SPACE, MemoryEmbeddings(1)).get([*alike, KEYS[0]])

    assert {key: vector[0] for key, vector in found.items()} == {key: vector[0] for key, vector in alike.items()}


@pytest.mark.requirement("scale.shards")
def test_the_bytes_do_not_depend_on_the_order_in_which_vectors_came(tmp_path: Path) -> None:
    for name, keys in (("a", KEYS), ("b", KEYS[::-1])):
        (tmp_path / name).mkdir()
        write_shard(tmp_path / name, "00000", "x", {key: VECTORS[key] for key in keys}, [], 1)

    assert contents(tmp_path / "a") == contents(tmp_path / "b")


def test_a_shard_that_was_not_written_to_its_end_is_not_taken_for_the_one_before(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Keys of one and vectors of the other would have the same sizes."""
    write = vector_shards._write

    def full(path: Path, content: bytes) -> None:
        if path.name.endswith("vectors.npy"):
            raise PegboardError("The disk is full.")
        write(path, content)

    monkeypatch.setattr(vector_shards, "_write", full)
    with pytest.raises(PegboardError, match="full"):
        write_shard(folder, "00000", "y", {key: VECTORS[key] for key in KEYS[1:26]}, [], 3)

    assert finished_shard(folder, "00000", "x") is finished_shard(folder, "00000", "y") is None
    assert finished_shard(folder, "00001", "x") is not None
    with pytest.raises(ConfigError, match="no finished shards"):
        ShardEmbeddings([folder], SPACE, MemoryEmbeddings(1))


@pytest.mark.parametrize("record", ['{"files": []}', "[" * 100_000, "7", ""])
def test_a_record_that_cannot_be_read_is_of_no_finished_shard(folder: Path, record: str) -> None:
    (folder / "00000.json").write_text(record)
    assert finished_shard(folder, "00000", "x") is None


@pytest.mark.requirement("scale.shards")
def test_shards_of_another_encoder_are_refused_by_name(folder: Path) -> None:
    other = VectorSpace(provider="fake", model="other", dimensions=4)

    with pytest.raises(ConfigError, match=r"encoder fake/m \(4\); the configured one is fake/other \(4\)"):
        ShardEmbeddings([folder], other, MemoryEmbeddings(1))


@pytest.mark.requirement("scale.shards")
@pytest.mark.parametrize("file", ["00001.vectors.npy", "00000.keys.npy", "manifest.json"])
def test_a_cut_file_is_refused_by_name(folder: Path, file: str) -> None:
    path = folder / file
    path.write_bytes(path.read_bytes()[:-30])

    with pytest.raises(ConfigError, match=file):
        ShardEmbeddings([folder], SPACE, MemoryEmbeddings(1))


@pytest.mark.requirement("scale.shards")
@pytest.mark.parametrize("kind", ["keys", "vectors"])
async def test_a_file_that_is_cut_after_it_was_mapped_ends_no_process(
    folder: Path, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    store = ShardEmbeddings([folder], SPACE, MemoryEmbeddings(1))
    os.truncate(folder / f"00000.{kind}.npy", 100)

    found = [await store.get(KEYS) for _ in range(2)]

    assert [set(each) for each in found] == [set(KEYS[25:30])] * 2
    assert [record.message.count("was cut") for record in caplog.records] == [1]


def test_a_folder_without_shards_and_another_format_are_refused(folder: Path, tmp_path: Path) -> None:
    manifest = json.loads((folder / "manifest.json").read_text())
    (folder / "manifest.json").write_text(json.dumps(manifest | {"format": 7}))

    with pytest.raises(ConfigError, match="format 7, not 1"):
        read_manifest(folder)
    with pytest.raises(ConfigError, match="no finished shards"):
        read_manifest(tmp_path / "nowhere")


@pytest.mark.requirement("scale.shards")
def test_a_changed_byte_is_found_and_a_cut_shard_is_not_finished(folder: Path) -> None:
    path = folder / "00001.vectors.npy"
    written = path.read_bytes()
    assert [*changed_files(folder, read_manifest(folder))] == []
    path.write_bytes(written[:-1] + b"\1")

    assert [*changed_files(folder, read_manifest(folder))] == [path.name]
    assert finished_shard(folder, "00001", "x") is not None
    path.write_bytes(written[:-1])
    assert finished_shard(folder, "00001", "x") is None
    assert finished_shard(folder, "00000", "y") is None


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}
