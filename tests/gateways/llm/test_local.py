"""Which requests count as this machine's own."""

from __future__ import annotations

import pytest

from pegboard.gateways.llm.proxy.keys import is_local


def scope(client: str | None, *headers: tuple[bytes, bytes]) -> dict[str, object]:
    return {"type": "http", "client": client and (client, 1), "headers": list(headers)}


@pytest.mark.requirement("D4")
@pytest.mark.parametrize("client", ["127.0.0.1", "127.8.8.8", "::1", "::ffff:127.0.0.1"])
@pytest.mark.parametrize("host", [b"localhost", b"LOCALHOST:80", b"127.0.0.1:7332", b"[::1]:7332", b"own.test"])
def test_a_request_over_loopback_to_a_name_of_this_servers_is_local(client: str, host: bytes) -> None:
    assert is_local(scope(client, (b"Host", host)), ["own.test"])


@pytest.mark.requirement("D4")
@pytest.mark.parametrize(
    ("client", "headers"),
    [
        ("10.0.0.7", [(b"host", b"localhost")]),
        ("::ffff:10.0.0.7", [(b"host", b"localhost")]),
        ("not-an-address", [(b"host", b"localhost")]),
        (None, [(b"host", b"localhost")]),
        ("127.0.0.1", []),
        ("127.0.0.1", [(b"host", b"")]),
        ("127.0.0.1", [(b"host", b"[")]),
        ("127.0.0.1", [(b"host", b"evil.test")]),
        ("127.0.0.1", [(b"host", b"localhost"), (b"host", b"evil.test")]),
        ("127.0.0.1", [(b"host", b"localhost"), (b"X-Real-IP", b"10.0.0.7")]),
    ],
)
def test_anything_else_is_not(client: str | None, headers: list[tuple[bytes, bytes]]) -> None:
    assert not is_local(scope(client, *headers), ["own.test"])
