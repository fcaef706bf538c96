"""Where credentials rest: encrypted, private, by server, address and user."""

from __future__ import annotations

import stat
import sys
import threading
from pathlib import Path
from typing import Any

import keyring
import pytest
from keyring.backend import KeyringBackend
from keyring.errors import KeyringLocked
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken

from pegboard.errors import PegboardError
from pegboard.upstreams.oauth.credential_store import KEY_VARIABLE, CredentialStore
from pegboard.upstreams.oauth.credentials import OAuthCredentials

CANARY = "canary-d41d8cd9"


def credentials(server: str = "notion", url: str = "https://notion.example/mcp", user: str = "") -> OAuthCredentials:
    return OAuthCredentials(
        server=server,
        url=url,
        user=user,
        tokens=OAuthToken(access_token=f"{CANARY}-access-{user}", refresh_token=f"{CANARY}-refresh", scope="read"),
        client=OAuthClientInformationFull(client_id="us", client_secret=f"{CANARY}-client", redirect_uris=None),
        obtained_at=1.0,
    )


@pytest.fixture
def store(tmp_path: Path) -> CredentialStore:
    return CredentialStore(tmp_path, key_file=tmp_path / "user" / "credentials.key", place="file")


def test_what_was_written_is_read_for_the_same_server_address_and_user_only(store: CredentialStore) -> None:
    shared, anns = credentials(), credentials(user="ann")
    store.write(shared)
    store.write(anns)

    assert store.read(shared.key) == shared
    assert store.read(anns.key) == anns
    assert store.read(credentials(user="bob").key) is None
    assert store.read(credentials(url="https://other.example/mcp").key) is None
    assert store.read(credentials(server="other").key) is None
    assert [each.user for each in store.all()] == ["", "ann"]


def test_keys_that_would_read_alike_when_joined_are_different_credentials(store: CredentialStore) -> None:
    store.write(credentials(url="https://a.example\nann"))

    assert store.read(credentials(url="https://a.example", user="ann").key) is None


@pytest.mark.requirement("023.private")
def test_files_are_encrypted_and_for_their_owner_alone(store: CredentialStore, tmp_path: Path) -> None:
    store.write(credentials())
    files = [path for path in tmp_path.rglob("*") if path.is_file()]

    assert len(files) == 3
    assert all(CANARY.encode() not in path.read_bytes() for path in files)
    if sys.platform != "win32":
        assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o600}
        assert stat.S_IMODE((tmp_path / "credentials").stat().st_mode) == 0o700


@pytest.mark.requirement("023.private")
def test_credentials_show_no_secret_in_their_text_and_summary(store: CredentialStore) -> None:
    made = credentials()

    assert CANARY not in f"{made!r} {made} {store.write(made)!r} {store.all()[0].shown()}"


def test_another_key_is_an_error_that_says_what_to_do(
    store: CredentialStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = credentials()
    store.write(made)
    other = CredentialStore(tmp_path, key_file=tmp_path / "another.key", place="file")

    with pytest.raises(PegboardError, match=r"encrypted with another key.*pegboard login notion"):
        other.read(made.key)
    monkeypatch.setenv(KEY_VARIABLE, "not a key")
    with pytest.raises(PegboardError, match=f"not valid.*{KEY_VARIABLE}"):
        store.read(made.key)


def test_a_changed_file_is_an_error_and_not_credentials(store: CredentialStore, tmp_path: Path) -> None:
    made = credentials()
    store.write(made)
    [sealed] = tmp_path.rglob("*.sealed")
    sealed.write_bytes(sealed.read_bytes()[:-8] + b"AAAAAAA=")

    with pytest.raises(PegboardError, match="cannot be read"):
        store.read(made.key)


def test_the_stamp_changes_with_each_write_and_is_0_without_credentials(store: CredentialStore) -> None:
    made = credentials()
    assert store.stamp(made.key) == 0
    store.write(made)
    first = store.stamp(made.key)
    store.write(made)

    assert first != store.stamp(made.key) != 0
    assert store.delete(made.key)
    assert not store.delete(made.key)
    assert store.stamp(made.key) == 0


def test_only_one_holds_the_lock_of_a_server(store: CredentialStore) -> None:
    key, inside, seen = credentials().key, threading.Event(), []

    def wait() -> None:
        with store.lock(key):
            seen.append(inside.is_set())

    with store.lock(key):
        waiting = threading.Thread(target=wait)
        waiting.start()
        waiting.join(0.1)
        assert waiting.is_alive()
        inside.set()
    waiting.join(60)
    assert seen == [True]


class Keychain(KeyringBackend):
    """A keychain in memory, which can be locked."""

    priority = 5  # type: ignore[assignment]  # a class property there

    def __init__(self) -> None:
        super().__init__()
        self.kept: dict[tuple[str, str], str] = {}
        self.locked = False

    def _check(self) -> None:
        if self.locked:
            raise KeyringLocked

    def get_password(self, service: str, username: str) -> str | None:
        self._check()
        return self.kept.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        self._check()
        self.kept[service, username] = password

    def delete_password(self, service: str, username: str) -> None:
        self._check()
        self.kept.pop((service, username), None)


@pytest.fixture
def keychain() -> Any:
    before, made = keyring.get_keyring(), Keychain()
    keyring.set_keyring(made)
    yield made
    keyring.set_keyring(before)


@pytest.mark.requirement("023.private")
def test_a_keychain_is_preferred_and_then_no_file_has_tokens(tmp_path: Path, keychain: Keychain) -> None:
    store, made = CredentialStore(tmp_path, key_file=tmp_path / "key"), credentials()

    assert store.write(made).place == "keyring"
    assert store.read(made.key) == made
    assert CANARY in "".join(keychain.kept.values())
    assert list(tmp_path.rglob("*.sealed")) == []
    assert store.delete(made.key)
    assert keychain.kept == {}


def test_a_locked_keychain_is_an_error_for_what_it_has_and_a_file_takes_what_is_new(
    tmp_path: Path, keychain: Keychain
) -> None:
    store, made = CredentialStore(tmp_path, key_file=tmp_path / "key"), credentials()
    store.write(made)
    keychain.locked = True

    with pytest.raises(PegboardError, match="keychain cannot be read"):
        store.read(made.key)
    assert store.write(credentials(server="linear")).place == "file"
    with pytest.raises(PegboardError, match="no keychain that can be used"):
        CredentialStore(tmp_path, key_file=tmp_path / "key", place="keyring").write(credentials(server="sentry"))
