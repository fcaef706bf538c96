"""Ports that nobody else is given while a server starts."""

from __future__ import annotations

import socket
from itertools import islice

from pegboard_bench.ports import PORTS, free_port, turns


def test_a_port_is_given_once_and_is_none_that_the_system_gives() -> None:
    given = [free_port() for _ in range(20)]

    assert len(set(given)) == 20
    assert all(port in PORTS for port in given)


def test_one_on_which_somebody_listens_is_not_given() -> None:
    first = free_port()
    with socket.socket() as busy:
        busy.bind(("127.0.0.1", 0))
        busy.listen()
        assert busy.getsockname()[1] not in {first, free_port()}


def test_the_processes_of_a_run_share_the_ports_without_overlap() -> None:
    own = [set(islice(turns(worker, 3, 0.5), len(PORTS) // 3)) for worker in range(3)]

    assert sum(map(len, own)) == len(set.union(*own)) == len(PORTS) // 3 * 3
