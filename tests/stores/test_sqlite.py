from __future__ import annotations

import asyncio
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from pegboard.audit_entries import AuditEntry
from pegboard.errors import ConfigError
from pegboard.model import Floats
from pegboard.stores import SqliteAudit, SqliteEmbeddings
from pegboard.stores.sqlite.audit_lines import OLDEST

D = 16

WRITER = """
import asyncio, sys
import numpy as np
from pathlib import Path
from pegboard.stores import SqliteEmbeddings

async def main(path, name, batches):
    store = SqliteEmbeddings(Path(path))
    for number in range(int(batches)):
        rows = {f"{name}/{number}/{row}": np.full(16, number * 8 + row, np.float32) for row in range(8)}
        await store.put(rows)
        assert len(await store.get(list(rows))) == 8
        print(number, flush=True)
    store.close()

asyncio.run(main(*sys.argv[1:]))
"""


def writer(path: Path, name: str, batches: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", WRITER, str(path), name, str(batches)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def written(name: str, batches: int) -> dict[str, float]:
    return {f"{name}/{number}/{row}": number * 8.0 + row for number in range(batches) for row in range(8)}


def vectors(count: int, start: int = 0) -> dict[str, Floats]:
    return {f"key {number}": np.full(D, number, np.float32) for number in range(start, start + count)}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "cache" / "embeddings.sqlite"


@pytest.fixture
def store(path: Path) -> Iterator[SqliteEmbeddings]:
    opened = SqliteEmbeddings(path)
    yield opened
    opened.close()


async def test_vectors_come_back_as_they_were_put(store: SqliteEmbeddings) -> None:
    put = {"a": np.array([1.5, -2.25, np.float32(1) / 3], np.float32), "b": np.zeros(0, np.float32)}

    await store.put(put)
    found = await store.get(["b", "a", "a", "missing"])

    assert found.keys() == {"a", "b"}
    assert all((found[key] == put[key]).all() and found[key].dtype == np.float32 for key in put)


async def test_a_file_that_another_process_holds_takes_no_thread_from_others(
    store: SqliteEmbeddings, path: Path
) -> None:
    await store.put(vectors(1))
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    waiting = [asyncio.create_task(store.put(vectors(1))) for _ in range(40)]
    await asyncio.sleep(0)

    assert await asyncio.to_thread(lambda: "others go on") == "others go on"
    assert not any(each.done() for each in waiting)

    holder.execute("ROLLBACK")
    await asyncio.gather(*waiting)
    holder.close()


async def test_a_closed_file_leaves_no_thread_and_can_be_used_again(store: SqliteEmbeddings) -> None:
    before = {each for each in threading.enumerate() if "sqlite" in each.name}
    await store.put(vectors(1))
    mine = {each for each in threading.enumerate() if "sqlite" in each.name} - before
    assert len(mine) == 1

    store.close()
    for each in mine:
        each.join(timeout=60)
        assert not each.is_alive()

    assert (await store.get(["key 0"])).keys() == {"key 0"}


async def test_a_new_vector_replaces_the_old_one(store: SqliteEmbeddings) -> None:
    await store.put({"a": np.zeros(D, np.float32)})
    await store.put({"a": np.ones(D, np.float32)})

    assert (await store.get(["a"]))["a"].tolist() == [1.0] * D


async def test_more_keys_than_one_query_takes_are_found(store: SqliteEmbeddings) -> None:
    await store.put(vectors(1_203))

    found = await store.get(list(vectors(1_300)))

    assert len(found) == 1_203
    assert found["key 1202"][0] == 1_202


async def test_nothing_is_asked_and_nothing_is_put_without_harm(store: SqliteEmbeddings) -> None:
    await store.put({})

    assert await store.get([]) == {}


async def test_vectors_survive_the_process(store: SqliteEmbeddings, path: Path) -> None:
    await store.put(vectors(3))
    store.close()

    again = SqliteEmbeddings(path)

    assert len(await again.get(list(vectors(3)))) == 3
    again.close()


async def test_a_closed_store_opens_again_when_asked(store: SqliteEmbeddings) -> None:
    await store.put(vectors(1))
    store.close()

    assert list(await store.get(["key 0"])) == ["key 0"]


async def test_many_tasks_may_read_and_write_at_once(store: SqliteEmbeddings) -> None:
    await asyncio.gather(*(store.put(vectors(10, start)) for start in range(0, 100, 10)))

    found = await asyncio.gather(*(store.get(list(vectors(100))) for _ in range(5)))

    assert [len(each) for each in found] == [100] * 5


async def test_what_was_written_before_a_kill_is_there_after_it(store: SqliteEmbeddings, path: Path) -> None:
    process = writer(path, "killed", 1_000_000)
    assert process.stdout is not None
    for line in process.stdout:
        if int(line) == 40:
            break
    process.send_signal(signal.SIGKILL)
    process.communicate()

    found = await store.get(list(written("killed", 41)))

    assert process.returncode == -signal.SIGKILL
    assert {key: float(vector[0]) for key, vector in found.items()} == written("killed", 41)
    await store.put(vectors(1))
    assert list(await store.get(["key 0"])) == ["key 0"]


async def test_several_processes_share_one_file_from_its_first_moment(store: SqliteEmbeddings, path: Path) -> None:
    processes = [writer(path, name, 25) for name in "abc"]

    outputs = [process.communicate(timeout=60) for process in processes]

    assert [(process.returncode, errors) for process, (_, errors) in zip(processes, outputs, strict=True)] == [
        (0, "")
    ] * 3
    expected = written("a", 25) | written("b", 25) | written("c", 25)
    found = await store.get(list(expected))
    assert {key: float(vector[0]) for key, vector in found.items()} == expected


@pytest.mark.parametrize(
    "content", [b"this is not a database, however long it may be " * 99, b"SQLite format 3\x00" + b"\xff" * 4096]
)
async def test_a_damaged_file_is_an_error_that_names_it_and_the_way_out(
    store: SqliteEmbeddings, path: Path, content: bytes
) -> None:
    path.parent.mkdir()
    path.write_bytes(content)

    for attempt in (store.get(["a"]), store.put(vectors(1)), store.get(["a"])):
        with pytest.raises(ConfigError, match=r"embeddings\.sqlite' cannot be used") as caught:
            await attempt
        assert "Delete the file" in caught.value.remedy


async def test_a_file_that_is_damaged_later_is_an_error_too(store: SqliteEmbeddings, path: Path) -> None:
    await store.put(vectors(500))
    store.close()
    damaged = bytearray(path.read_bytes())
    damaged[2 * 4096 :] = b"\xff" * (len(damaged) - 2 * 4096)
    path.write_bytes(damaged)

    with pytest.raises(ConfigError, match="cannot be used"):
        await store.get(list(vectors(500)))


async def test_after_the_damaged_file_is_deleted_the_same_store_works(store: SqliteEmbeddings, path: Path) -> None:
    path.parent.mkdir()
    path.write_bytes(b"garbage" * 999)
    with pytest.raises(ConfigError):
        await store.get(["a"])
    path.unlink()

    await store.put(vectors(1))

    assert list(await store.get(["key 0"])) == ["key 0"]


async def test_a_folder_that_cannot_be_made_is_an_error_that_names_the_file(tmp_path: Path) -> None:
    (tmp_path / "occupied").write_text("a file where the folder should be")

    with pytest.raises(ConfigError, match=r"occupied/embeddings\.sqlite' cannot be used"):
        await SqliteEmbeddings(tmp_path / "occupied" / "embeddings.sqlite").get(["a"])


async def test_a_store_that_another_program_holds_is_waited_for(store: SqliteEmbeddings, path: Path) -> None:
    await store.put(vectors(1))
    other = sqlite3.connect(path, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")
    waiting = asyncio.create_task(store.put(vectors(1, 7)))
    reader = SqliteEmbeddings(path)
    found = await reader.get(["key 0"])
    reader.close()

    other.rollback()
    other.close()
    await waiting

    assert list(found) == ["key 0"]
    assert list(await store.get(["key 7"])) == ["key 7"]


def test_making_a_store_touches_no_file(path: Path) -> None:
    SqliteEmbeddings(path)

    assert not path.parent.exists()


async def test_the_age_of_an_audit_log_is_found_without_reading_all_of_it(tmp_path: Path) -> None:
    log, steps = SqliteAudit(tmp_path / "audit.sqlite"), list[int]()
    await log.append([AuditEntry(at=1_000.0 + at, event="call", door="mcp") for at in range(3_000)])

    def oldest(connection: sqlite3.Connection) -> object:
        connection.set_progress_handler(lambda: steps.append(1), 100)
        return connection.execute(OLDEST, (999.0,)).fetchone(), connection.execute(OLDEST, (1_004.5,)).fetchone()[0]

    assert log._file.run_now(oldest) == (None, 5)
    assert len(steps) < 5
    log.close()


FORKED = """
import asyncio, os, sys
from pathlib import Path
from pegboard.stores.sqlite.database import STATE_MIGRATIONS, SqliteFile

file = SqliteFile(Path(sys.argv[1]), STATE_MIGRATIONS, remedy="")

def add(key):
    written = ("INSERT INTO sessions VALUES (?, 1, 0, '')", (key,))
    asyncio.run(file.run(lambda connection: connection.execute(*written).rowcount))

add("parent")
child = os.fork()
add(f"after {child == 0}")
if child:
    os.waitpid(child, 0)
    count = "SELECT count(*) FROM sessions"
    print(asyncio.run(file.run(lambda connection: connection.execute(count).fetchone()[0])))
"""


def test_a_file_that_was_used_is_used_in_a_forked_process_too(tmp_path: Path) -> None:
    path = str(tmp_path / "state.sqlite")
    done = subprocess.run([sys.executable, "-c", FORKED, path], capture_output=True, text=True, timeout=300)

    assert (done.stdout, done.returncode) == ("3\n", 0), done.stderr
