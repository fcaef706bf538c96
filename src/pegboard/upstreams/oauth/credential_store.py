"""Keeps credentials: in the system's keychain, else in a file that is encrypted with a key of the user.

A file beside them says what may be shown, and its time of change tells other processes of a new sign-in.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import re
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any, Literal, TypeVar

from cryptography.fernet import Fernet, InvalidToken
from filelock import FileLock, Timeout
from pydantic import ValidationError

from pegboard import operating_system
from pegboard.errors import PegboardError
from pegboard.extras import required
from pegboard.settings.client_files import own_file
from pegboard.upstreams.oauth.credentials import CredentialKey, CredentialSummary, OAuthCredentials

SERVICE = "pegboard-oauth"
KEY_VARIABLE = "PEGBOARD_CREDENTIALS_KEY"
"""A key for the encrypted files, as `Fernet.generate_key` makes them, instead of the one in the user's folder."""
KEY_FILE = "credentials.key"
FOLDER = "credentials"
PRIVATE, PRIVATE_FOLDER = 0o600, 0o700
LOCK_SECONDS = 60.0
MOST_THREADS = 32
"""Locks that are held or waited for at once in this process."""

T = TypeVar("T")
Place = Literal["keyring", "file"]


class CredentialStore:
    """Credentials by server, below ``folder``. Methods block: call them in a thread.

    ``place`` is where new ones are kept; "auto" is the keychain if this machine has one that can be used.
    """

    def __init__(self, folder: Path, *, key_file: Path | None = None, place: str = "auto") -> None:
        self._folder = folder / FOLDER
        self._key_file = key_file or own_file().parent / KEY_FILE
        self._place = place

    def stamp(self, key: CredentialKey) -> int:
        """Changes whenever these credentials do; 0 if there are none."""
        try:
            return self._path(key, ".json").stat().st_mtime_ns
        except OSError:
            return 0

    def read(self, key: CredentialKey) -> OAuthCredentials | None:
        """The credentials of this user for this server at this address. Raises PegboardError if they cannot be read."""
        summary = self._summary(self._path(key, ".json"))
        if summary is None:
            return None
        text = _from_keyring(_name(key)) if summary.place == "keyring" else self._from_file(key)
        try:
            found = None if text is None else OAuthCredentials.model_validate_json(text)
        except ValidationError as error:
            raise _unreadable(key.server, "they are not in the expected form") from error
        return found if found is not None and found.key == key else None

    def write(self, credentials: OAuthCredentials) -> CredentialSummary:
        """Replace the credentials of a server and user. Raises PegboardError if they cannot be kept."""
        key, text = credentials.key, credentials.model_dump_json()
        self._folder.mkdir(parents=True, exist_ok=True, mode=PRIVATE_FOLDER)
        place: Place = "keyring" if self._place != "file" and _to_keyring(_name(key), text) else "file"
        if place == "file" and self._place == "keyring":
            raise PegboardError(
                "This machine has no keychain that can be used.",
                remedy='Unlock it, or write credentials = "file" (encrypted with a key in your folder).',
            )
        if place == "file":
            _write_private(self._path(key, ".sealed"), self._fernet().encrypt(text.encode()))
        else:
            self._path(key, ".sealed").unlink(missing_ok=True)
        summary = credentials.summary(place)
        _write_private(self._path(key, ".json"), summary.model_dump_json(indent=2).encode())
        return summary

    def keep(self, credentials: OAuthCredentials) -> CredentialSummary:
        """`write` those of a sign-in, after a renewal that is under way."""
        with self.lock(credentials.key):
            return self.write(credentials)

    def delete(self, key: CredentialKey) -> bool:
        """Whether there were credentials."""
        path = self._path(key, ".json")
        summary = self._summary(path)
        if summary is not None and summary.place == "keyring":
            _forget_in_keyring(_name(key))
        self._path(key, ".sealed").unlink(missing_ok=True)
        path.unlink(missing_ok=True)
        return summary is not None

    def all(self) -> list[CredentialSummary]:
        """By server; what may be shown of each."""
        found = (self._summary(path) for path in sorted(self._folder.glob("*.json")))
        return sorted((each for each in found if each is not None), key=lambda each: (each.server, each.user))

    @contextmanager
    def lock(self, key: CredentialKey) -> Iterator[None]:
        """Held by the one process that renews, replaces or removes these tokens: most refresh tokens work only once.

        Raises PegboardError if another process does not let go of it.
        """
        self._folder.mkdir(parents=True, exist_ok=True, mode=PRIVATE_FOLDER)
        try:
            with FileLock(self._path(key, ".lock"), timeout=LOCK_SECONDS):
                yield
        except Timeout as error:
            raise PegboardError("Another process is renewing or removing the token, and does not finish.") from error

    def _path(self, key: CredentialKey, suffix: str) -> Path:
        return self._folder / (_name(key) + suffix)

    @staticmethod
    def _summary(path: Path) -> CredentialSummary | None:
        try:
            return CredentialSummary.model_validate_json(path.read_bytes())
        except (OSError, ValidationError):
            return None

    def _from_file(self, key: CredentialKey) -> str | None:
        try:
            sealed = self._path(key, ".sealed").read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise _unreadable(key.server, error.strerror or "the file cannot be opened") from error
        try:
            return self._fernet().decrypt(sealed).decode()
        except InvalidToken as error:
            raise _unreadable(key.server, "they were encrypted with another key") from error

    def _fernet(self) -> Fernet:
        """Encrypts with the key of the variable, else with that of the user's file, which is made if it is missing."""
        given = os.environ.get(KEY_VARIABLE)
        if given is None:
            with suppress(FileExistsError):
                _create_private(self._key_file, Fernet.generate_key())
            given = self._key_file.read_text(errors="replace").strip()
        try:
            return Fernet(given)
        except ValueError as error:
            raise PegboardError(
                "The key that encrypts credentials is not valid.",
                remedy=f"Correct {KEY_VARIABLE}, or remove {str(self._key_file)!r} and sign in again.",
            ) from error


async def in_lock_thread(work: Callable[[], T]) -> T:
    """Do what takes a `lock` in a thread for that: a renewal needs a free one of the event loop's own meanwhile, to
    resolve an address."""
    return await asyncio.get_running_loop().run_in_executor(_threads(os.getpid()), work)


@cache
def _threads(_pid: int) -> ThreadPoolExecutor:
    """Of this process: threads do not come along into a child process."""
    return ThreadPoolExecutor(MOST_THREADS, thread_name_prefix="pegboard-credentials")


def _name(key: CredentialKey) -> str:
    """A file name for a server at an address and a user: another address is another server."""
    digest = hashlib.sha256(json.dumps([key.server, key.url, key.user]).encode()).hexdigest()[:24]
    return f"{re.sub(r'[^A-Za-z0-9_-]', '_', key.server)[:60]}-{digest}"


def _unreadable(server: str, why: str) -> PegboardError:
    return PegboardError(
        f"The credentials of server {server!r} cannot be read: {why}.",
        remedy=f"Run `pegboard login {server}` again.",
    )


def _create_private(path: Path, data: bytes) -> None:
    """Raises FileExistsError; the file appears with its whole content."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{os.getpid()}-{threading.get_ident()}")
    _write(draft, data)
    try:
        operating_system.publish_file(draft, path)
    finally:
        draft.unlink(missing_ok=True)


def _write_private(path: Path, data: bytes) -> None:
    draft = path.with_name(f".{path.name}.{os.getpid()}-{threading.get_ident()}")
    _write(draft, data)
    operating_system.replace_file(draft, path)


def _write(path: Path, data: bytes) -> None:
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE), "wb") as file:
        file.write(data)


def _keyring() -> Any:
    """The package, if it has a keychain of the system behind it; None otherwise."""
    try:
        keyring = required("keyring", "keyring")
        usable = keyring.get_keyring().priority >= 1
    except Exception:  # noqa: BLE001  # no package, or a backend that cannot start
        return None
    return keyring if usable else None


def _to_keyring(name: str, text: str) -> bool:
    keyring = _keyring()
    if keyring is None:
        return False
    try:
        keyring.set_password(SERVICE, name, text)
    except Exception:  # noqa: BLE001  # locked, or too long for it; some backends raise errors of their own
        return False
    return True


def _from_keyring(name: str) -> str | None:
    keyring = required("keyring", "keyring")
    try:
        found = keyring.get_password(SERVICE, name)
    except keyring.errors.KeyringError as error:
        raise PegboardError(
            f"The keychain cannot be read ({type(error).__name__}).", remedy="Unlock it, and try again."
        ) from error
    return None if found is None else str(found)


def _forget_in_keyring(name: str) -> None:
    keyring = required("keyring", "keyring")
    with suppress(keyring.errors.KeyringError):
        keyring.delete_password(SERVICE, name)
