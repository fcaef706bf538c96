"""The certificates of all connections, read once."""

from __future__ import annotations

from pathlib import Path

import certifi
import pytest

from pegboard.upstreams import tls
from pegboard.upstreams.http_transport import ServerClient
from pegboard.upstreams.limits import DEFAULT_LIMITS

pytestmark = pytest.mark.requirement("023.shared")


def test_connections_share_one_context(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []
    context = tls.trusted()
    monkeypatch.setattr("pegboard.upstreams.http_transport.trusted", lambda: asked.append(1) or context)
    for _ in range(2):
        ServerClient({}, DEFAULT_LIMITS)
    assert len(asked) == 2
    assert tls.trusted() is context


def test_other_certificates_in_the_environment_are_another_context(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    before = tls.trusted()
    monkeypatch.setenv("SSL_CERT_FILE", certifi.where())
    assert tls.trusted() is not before
    assert tls.trusted().get_ca_certs()
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "missing.pem"))
    with pytest.raises(FileNotFoundError):
        tls.trusted()
