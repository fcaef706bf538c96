"""Ports for servers that take a moment to start."""

from __future__ import annotations

import os
import random
import socket
from collections.abc import Iterator

PORTS = range(10_000, 32_000)
"""Below those that systems give out by themselves (from 32,768 on under Linux)."""


def free_port() -> int:
    """A port of this machine on which nobody listens, and which nobody is given until a server listens there.

    A port that the system has chosen is not yet the server's: under load, seconds pass until it listens, and the system
    gives the port to whoever asks for any. Then two servers' clients talk to one. The processes of a test run have a
    part of the ports each, and take one after the other. Raises OSError if all are in use.
    """
    for _ in PORTS:
        port = next(_TURNS)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise OSError("No port is free.")


def turns(worker: int, workers: int, start: float) -> Iterator[int]:
    """The ports of a worker again and again, from a ``start`` between 0 and 1 on.

    >>> first, second = turns(0, 2, 0.0), turns(1, 2, 0.0)
    >>> next(first), next(second), next(first)
    (10000, 10001, 10002)
    """
    own = PORTS[worker::workers]
    place = int(start * len(own))
    while True:
        yield own[place % len(own)]
        place += 1


_WORKER = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0")[2:])
_TURNS = turns(_WORKER, int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1")), random.random())  # noqa: S311
