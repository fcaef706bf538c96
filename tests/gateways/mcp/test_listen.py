from __future__ import annotations

import socket

from pegboard.gateways.serve import listen
from pegboard.settings import load_settings


def test_a_connection_does_not_wait_to_fill_a_packet() -> None:
    with listen(load_settings(port=0)) as listening, socket.create_connection(listening.getsockname()):
        accepted, _ = listening.accept()
        with accepted:
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
