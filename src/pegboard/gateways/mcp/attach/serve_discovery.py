"""Finds the `pegboard serve` on this machine for a configuration: each one writes a small file."""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import re
import secrets
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx2
from platformdirs import user_state_path

from pegboard import operating_system

HEALTH = "/healthz"
PATIENCE = 2.0
"""Seconds that a running serve has to answer the health check."""
PROOF = "pegboard-proof"
"""The header with which whoever can read the file of a serve asks it who it is."""
_PROOF = secrets.token_hex(32)
LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})
SETTING = re.compile(r"PEGBOARD_(?!DEBUG$)|ALWAYS_AVAILABLE_TOOLS$")


def running_folder() -> Path:
    """The default folder of these files."""
    return user_state_path("pegboard", appauthor=False) / "running"


@contextmanager
def announce(url: str, files: Sequence[Path], folder: Path) -> Iterator[None]:
    """Within it, a file says that this process serves these configuration files at ``url``, its MCP endpoint.

    It contains no value of a configuration.
    """
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    path = folder / f"{os.getpid()}.json"
    said = {"url": url, "pid": os.getpid(), "version": version("pegboard"), "files_hash": files_hash(files)}
    _write(path, said | {"files": _resolved(files), "proof": _PROOF})
    try:
        yield
    finally:
        path.unlink(missing_ok=True)


def health(files: Sequence[Path]) -> dict[str, Any]:
    """The answer of a serve to GET /healthz, which `running_for` checks. One that wants tokens of its callers gives it
    to who `has_proof` alone."""
    return {"status": "ok", "pid": os.getpid(), "files_hash": files_hash(files)}


def has_proof(headers: Mapping[str, str]) -> bool:
    """Whether a request comes from who can read this process's file."""
    return hmac.compare_digest(headers.get(PROOF, "").encode(), _PROOF.encode())


def files_hash(files: Sequence[Path]) -> str:
    """Identifies a configuration: the absolute paths of its files, in order, and the environment's settings.

    Processes with different settings, which may grant different rights, never have the same hash.
    """
    set_here = {name: value for name, value in os.environ.items() if SETTING.match(name)}
    said = {"files": _resolved(files), "environment": set_here}
    return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()


def running_for(files: Sequence[Path], folder: Path, *, wants_tokens: bool = False) -> str | None:
    """The URL of a running serve of this version with exactly these files, or None. Removes files of dead ones.

    One that wants tokens of its callers is found only with ``wants_tokens``.
    """
    if not folder.is_dir() or not operating_system.only_we_write(folder):
        return None
    for path in sorted(folder.glob("*.json")):
        said = _read(path)
        if said is None:
            continue
        if not operating_system.is_alive(said["pid"]):
            path.unlink(missing_ok=True)
        elif (
            said["version"] == version("pegboard")
            and said["files_hash"] == files_hash(files)
            and _answers(said, health(files) | {"pid": said["pid"]}, prove=wants_tokens)
        ):
            return str(said["url"])
    return None


def is_serve(pid: int, files: Sequence[Path], folder: Path) -> bool:
    """Whether this process is a running serve with exactly these files, of whatever version and environment."""
    said = _read(folder / f"{pid}.json") if operating_system.only_we_write(folder) else None
    if said is None or said["pid"] != pid or said.get("files") != _resolved(files):
        return False
    return _answers(said, {"pid": pid}, prove=True)


def _read(path: Path) -> dict[str, Any] | None:
    """The content of a file, if it is complete and only this user could have written it."""
    try:
        said = json.loads(path.read_text("utf-8")) if operating_system.only_we_write(path) else None
    except (OSError, ValueError):
        return None
    kinds = {"url": str, "pid": int, "version": str, "files_hash": str}
    whole = isinstance(said, dict) and all(isinstance(said.get(key), kind) for key, kind in kinds.items())
    return said if whole else None


def _resolved(files: Sequence[Path]) -> list[str]:
    return [str(file.resolve()) for file in files]


def _answers(said: Mapping[str, Any], expected: Mapping[str, Any], *, prove: bool) -> bool:
    """Whether the process that answers where the file says is the one expected."""
    where, proof = urlsplit(said["url"]), said.get("proof")
    headers = {PROOF: proof} if prove and isinstance(proof, str) else {}
    if where.hostname not in LOOPBACK:
        return False
    try:
        with httpx2.Client(trust_env=False, timeout=PATIENCE) as client:
            answer = client.get(where._replace(path=HEALTH, query="").geturl(), headers=headers)
            told = answer.json() if answer.status_code == httpx2.codes.OK else None
    except (httpx2.HTTPError, ValueError):
        return False
    return isinstance(told, dict) and expected.items() <= told.items()


def _write(path: Path, said: Mapping[str, Any]) -> None:
    """Write atomically; mkstemp makes a file that only this user can read."""
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            json.dump(said, file)
        operating_system.replace_file(Path(name), path)
    except BaseException:
        with suppress(OSError):
            Path(name).unlink()
        raise
