from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from pegboard.errors import CatalogError, ConfigError, StoreError
from pegboard.registry.snapshot import Gathered, read_snapshot, write_snapshot
from registry_entries import entry, real_entries, snapshot_of


def gathered(*values: object) -> Gathered:
    found = Gathered()
    found.add(values)
    return found


@pytest.mark.requirement("registry.snapshot")
def test_a_snapshot_has_the_latest_version_of_every_real_server(tmp_path: Path) -> None:
    snapshot = snapshot_of(tmp_path / "registry.json")
    marked = {
        each["server"]["name"]: each["server"]["version"]
        for each in real_entries()
        if each["_meta"]["io.modelcontextprotocol.registry/official"]["isLatest"]
    }

    assert {each.name: each.server.version for each in snapshot.listings} == marked
    assert len(marked) == 50


@pytest.mark.requirement("registry.snapshot")
def test_a_second_sync_of_the_same_servers_writes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "registry.json"
    first = write_snapshot(path, gathered(*real_entries()), "a")
    inode, data = path.stat().st_ino, path.read_bytes()
    os.utime(path, (1, 1))
    second = write_snapshot(path, gathered(*reversed(real_entries())), "b")

    assert (first.added, second.is_unchanged, second.servers) == (50, True, 50)
    assert (path.stat().st_ino, path.read_bytes()) == (inode, data)
    assert read_snapshot(path).read_at.year > 2000  # when it was last read, not when it last changed


@pytest.mark.skipif(sys.platform == "win32", reason="has other rights")
def test_whoever_may_read_a_snapshot_may_read_the_next_one(tmp_path: Path) -> None:
    path, link, new = (tmp_path / name for name in ("registry.json", "link.json", "new.json"))
    write_snapshot(path, gathered(entry()), "a")
    link.symlink_to(path)
    new.touch()
    assert path.stat().st_mode == new.stat().st_mode, "a new one is as other new files"
    for mode in (0o640, 0o604, 0o600):
        path.chmod(mode)
        write_snapshot(link, gathered(entry(), entry(f"io.example/wind{mode}")), "a")
        assert path.stat().st_mode & 0o777 == mode

    assert link.is_symlink()
    assert len(read_snapshot(path).listings) == 2


@pytest.mark.requirement("registry.snapshot")
def test_deleted_servers_leave_and_deprecated_ones_stay_with_their_status(tmp_path: Path) -> None:
    path = tmp_path / "registry.json"
    write_snapshot(path, gathered(entry(), entry("io.example/wind"), entry("io.example/waves")), "a")
    old = {"status": "deprecated", "statusMessage": "Use io.example/sea"}
    report = write_snapshot(
        path, gathered(entry(standing={"status": "deleted"}), entry("io.example/wind", standing=old)), "a"
    )

    assert (report.removed, report.changed, report.deleted, report.deprecated) == (2, 1, 1, 1)
    assert [(each.name, each.standing.status_message) for each in read_snapshot(path).listings] == [
        ("io.example/wind", "Use io.example/sea")
    ]


def test_invalid_servers_are_left_out_and_named(tmp_path: Path) -> None:
    report = write_snapshot(tmp_path / "r.json", gathered(entry(), entry("bad"), {"name": 1}, None), "a")

    assert (report.servers, report.invalid, len(report.faults)) == (1, 3, 3)
    assert "'bad'" in report.faults[0]


def test_a_source_without_valid_servers_leaves_the_snapshot_alone(tmp_path: Path) -> None:
    path = tmp_path / "registry.json"
    write_snapshot(path, gathered(entry()), "a")
    before = path.read_bytes()

    with pytest.raises(CatalogError, match="Nothing in 'a' is a valid server"):
        write_snapshot(path, gathered({"name": "x"}), "a")
    assert path.read_bytes() == before


def test_a_missing_and_a_cut_snapshot_are_errors_and_a_sync_mends_the_latter(tmp_path: Path) -> None:
    path = tmp_path / "registry.json"
    with pytest.raises(ConfigError, match="pegboard registry sync"):
        read_snapshot(path)
    write_snapshot(path, gathered(*real_entries()), "a")
    path.write_bytes(path.read_bytes()[:1_000])
    with pytest.raises(CatalogError, match="is no JSON"):
        read_snapshot(path)

    assert write_snapshot(path, gathered(entry()), "a").added == 1
    assert len(read_snapshot(path).listings) == 1


def test_a_place_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(StoreError, match="Cannot write"):
        write_snapshot(tmp_path / "file" / "registry.json", gathered(entry()), "a")


def test_an_unknown_name_is_an_error_with_similar_ones(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"Similar names: .*io\.github\.domdomegg/airtable-mcp-server"):
        snapshot_of(tmp_path / "registry.json").named("airtable")
