"""Opens the backend that the settings name, and the cache of tool definitions on this machine."""

from __future__ import annotations

import os
import pkgutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from importlib import import_module
from importlib.util import find_spec
from typing import Any
from urllib.parse import urlsplit

from pegboard import stores
from pegboard.errors import ConfigError
from pegboard.protocols import Activity, AuditLines, Clock, Definitions
from pegboard.settings import Settings
from pegboard.settings.audit_settings import Place
from pegboard.settings.secret_sources import SecretReader
from pegboard.settings.server_spec import Expander
from pegboard.stores.audit_file import AuditFile
from pegboard.stores.backend import AddressedBackend, Backend
from pegboard.stores.memory import MemoryActivity
from pegboard.stores.retention import RetentionJob
from pegboard.stores.sqlite import SqliteDefinitions
from pegboard.stores.sqlite.backend import open_sqlite

DEFINITIONS_FILE = "definitions.sqlite"
AUDIT_FOLDER = "audit"


@dataclass(frozen=True, slots=True, kw_only=True)
class State(Backend):
    """The stores of one configuration. ``archive`` covers everything but the definitions, which are always a cache on
    this machine. ``audit_logs`` are those that the settings name, by place."""

    definitions: Definitions
    audit_logs: Mapping[Place, AuditLines]
    retirement: RetentionJob


def open_state(settings: Settings, clock: Clock) -> State:
    """The stores that the settings name. Raises ConfigError for an address that is not valid."""
    backend = _backend(settings, clock)
    logs, activity = _audit_logs(settings, backend), _activity(settings, backend)
    definitions = SqliteDefinitions(settings.cache_dir / DEFINITIONS_FILE, clock=clock)

    async def close() -> None:
        definitions.close()
        await backend.close()

    of_backend: dict[str, Any] = {each.name: getattr(backend, each.name) for each in fields(Backend)}
    of_backend |= {"amiss": lambda: backend.amiss() or definitions.amiss, "close": close, "activity": activity}
    return State(
        **of_backend,
        definitions=definitions,
        audit_logs=logs,
        retirement=RetentionJob(
            backend.archive,
            definitions.forget_unused,
            settings.retention,
            clock,
            audit_logs=tuple(logs.values()),
            activity=activity,
            results=backend.results,
        ),
    )


def addressed_backends() -> Iterator[AddressedBackend]:
    """The backends that have an address: every folder beside this module whose `backend` module defines ``BACKEND``."""
    for folder in pkgutil.iter_modules(stores.__path__):
        name = f"{stores.__name__}.{folder.name}.backend"
        if folder.ispkg and find_spec(name):
            found = getattr(import_module(name), "BACKEND", None)
            if found is not None:
                yield found


def _audit_logs(settings: Settings, backend: Backend) -> dict[Place, AuditLines]:
    chosen = settings.audit_log
    made: dict[Place, AuditLines] = {"store": backend.audit}
    if "file" in chosen.to:
        folder = chosen.folder or settings.state_dir / AUDIT_FOLDER
        made["file"] = AuditFile(folder, key=chosen.key_here, file_bytes=chosen.file_bytes)
    return {place: made[place] for place in chosen.to}


def _activity(settings: Settings, backend: Backend) -> Activity | None:
    """Raises ConfigError for a store that keeps no activity."""
    chosen = settings.activity
    if chosen.keep == "store":
        if backend.activity is None:
            raise ConfigError(
                "This store keeps no activity.",
                remedy='Set activity.keep to "memory", or keep state in PostgreSQL or in files.',
            )
        return backend.activity
    return MemoryActivity(chosen.most) if chosen.keep == "memory" else None


def _backend(settings: Settings, clock: Clock) -> Backend:
    """Without an address, state is in SQLite files."""
    if settings.state.url is None:
        return open_sqlite(settings, clock)
    url = (
        Expander("The address of the state", os.environ, ".", SecretReader())(settings.state.url.get_secret_value())
        or ""
    )
    scheme = urlsplit(url).scheme
    known = list(addressed_backends())
    chosen = next((each for each in known if scheme in each.schemes), None)
    if chosen is None:
        raise ConfigError(
            f"State cannot be kept at an address that begins with {f'{scheme}:' if scheme else 'nothing'!r}.",
            remedy=f"Set state to {' or '.join(each.address for each in known)}, or leave it out.",
        )
    return chosen.open(url, settings, clock)
