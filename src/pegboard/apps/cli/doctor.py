"""`pegboard doctor`: checks the installation and the configuration, and says what to do."""

from __future__ import annotations

import asyncio
import hashlib
import platform
import sqlite3
import tempfile
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from importlib.resources import files as resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, Literal

import numpy as np
import typer

from pegboard import compose
from pegboard.apps.cli.configs import Configured, given, given_or_usual, is_ours
from pegboard.apps.cli.options import Configs, Json, Verbose, examples
from pegboard.apps.cli.shared_process import SharedProcess
from pegboard.apps.cli.tool_sources import load
from pegboard.clock import SYSTEM_CLOCK
from pegboard.errors import ConfigError, PegboardError
from pegboard.gateways.key_expiry import ending
from pegboard.gateways.llm.proxy.config_checks import warnings
from pegboard.gateways.llm.proxy.model_upstream import ModelUpstream
from pegboard.gateways.llm.selection.policy_rules import Policies
from pegboard.retrieval import OnnxEncoder
from pegboard.settings import Settings
from pegboard.settings.client_files import own_file
from pegboard.stores import SqliteEmbeddings
from pegboard.stores.sqlite.backend import EMBEDDINGS_FILE
from pegboard.stores.state import open_state
from pegboard.upstreams.error_text import sign_in_remedy

EXAMPLES = examples(
    "Everything that can be checked on this machine",
    "pegboard doctor",
    "Before a configuration is used with pegboard mcp",
    "pegboard doctor --config servers.json",
)

COLORS = {"ok": "green", "warn": "yellow", "fail": "bold red"}

LOCAL = frozenset({"127.0.0.1", "::1", "localhost"})
SAMPLE = "is everything in order?"
PACKAGES = ("pegboard", "mcp", "onnxruntime", "numpy", "toktok-rs")


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    name: str
    status: Literal["ok", "warn", "fail"]
    detail: str
    remedy: str = ""

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def doctor(config: Configs = None, as_json: Json = False, verbose: Verbose = False) -> None:
    """Check configuration files, servers, the encoder, the embedding cache, the state store, and versions.

    Exits with 1 if a check fails. A warning does not need to be fixed.
    """
    from pegboard.apps.cli import output

    checks = asyncio.run(_examine(config or []))
    failed = any(check.status == "fail" for check in checks)
    if as_json:
        output.print_json({"ok": not failed, "checks": [check.as_dict() for check in checks]})
    else:
        _show(checks)
    if failed:
        raise typer.Exit(1)


async def _examine(files: Sequence[Path]) -> list[Check]:
    from pegboard.settings import load_settings

    found, configured = configurations(files)
    every = [*versions(), *found, *shared(files)]
    if configured is not None:
        every += [
            *profile(configured.settings),
            *models(configured.settings),
            *keys(configured.settings),
            *await servers(configured),
        ]
    try:
        settings = configured.settings if configured else load_settings()
    except ConfigError as error:
        remedy = "Correct the variable PEGBOARD_… of this option, or unset it."
        return [*every, Check(name="environment", status="fail", detail=error.message, remedy=remedy)]
    return [*every, *await encoder(settings), *await cache(settings), *await state(settings)]


def _show(checks: Sequence[Check]) -> None:
    from pegboard.apps.cli.output import cells, plain, stdout, table

    made = table("", "", "check", "finding", "what to do")
    for check in checks:
        status = plain(check.status)
        status.stylize(COLORS[check.status])
        made.add_row(status, *cells(check.name, check.detail, check.remedy))
    stdout().print(made)


def failed(name: str, error: PegboardError) -> Check:
    return Check(name=name, status="fail", detail=error.message, remedy=error.remedy)


def versions() -> list[Check]:
    return [Check(name="python", status="ok", detail=platform.python_version()), *map(_installed, PACKAGES)]


def _installed(package: str) -> Check:
    try:
        return Check(name=package, status="ok", detail=version(package))
    except PackageNotFoundError:
        return Check(name=package, status="fail", detail="not installed", remedy="Install pegboard again.")


def configurations(files: Sequence[Path]) -> tuple[list[Check], Configured | None]:
    """A check of each file, and the combined settings; None if a file is invalid or there are none."""
    if not files:
        return _usual()
    checks = [_configuration(path) for path in files]
    if any(check.status == "fail" for check in checks):
        return checks, None
    return checks, given(files)


def _usual() -> tuple[list[Check], Configured | None]:
    try:
        configured = given_or_usual([])
    except ConfigError as error:
        return [Check(name="configuration", status="warn", detail=error.message, remedy=error.remedy)], None
    notes = [Check(name="configuration", status="warn", detail=note) for note in configured.notes if not is_ours(note)]
    return [*map(_configuration, configured.files), *notes], configured


def _configuration(path: Path) -> Check:
    try:
        configured = given([path])
    except ConfigError as error:
        return failed(str(path), error)
    servers = configured.settings.servers
    if configured.notes and not servers:
        return Check(name=str(path), status="ok", detail="starts Pegboard")
    off = sum(spec.disabled for spec in servers.values())
    detail = f"{len(servers)} server{'' if len(servers) == 1 else 's'}" + (f", {off} of them disabled" if off else "")
    return Check(name=str(path), status="ok" if servers else "warn", detail=detail)


def shared(files: Sequence[Path]) -> list[Check]:
    """Says whether a process that all clients share runs these files, or the user's own."""
    chosen = [path.absolute() for path in files or [own_file()]]
    if not all(path.is_file() for path in chosen):
        return []
    if url := SharedProcess(files=tuple(chosen)).url():
        return [Check(name="shared process", status="ok", detail=f"runs at {url}")]
    remedy = "`pegboard up` starts one process for all clients."
    return [Check(name="shared process", status="ok", detail="none: each client starts its servers", remedy=remedy)]


def profile(settings: Settings) -> list[Check]:
    """Checks the routing options, which can contradict each other."""
    try:
        chosen = compose.profile(settings, compose.local_fit(settings))
        rules = [rule for each in settings.rules for rule in compose.rules(each)]
    except ConfigError as error:
        return [failed("routing", error)]
    return [Check(name="routing", status="ok", detail=f"profile {chosen.name}, {len(rules)} rules")]


def keys(settings: Settings) -> list[Check]:
    """Warns of tokens and keys that end soon or have ended."""
    now = SYSTEM_CLOCK.time()
    return [
        Check(name="keys", status="warn", detail=each.sentence(now), remedy=f"`pegboard keys rotate {each.name}`")
        for each in ending(settings, now)
    ]


def models(settings: Settings) -> list[Check]:
    """Checks the LLM gateway: upstreams, policies, names in rules and keys, and who may use a provider's key."""
    chosen = settings.llm
    if not chosen.serves:
        return []
    try:
        Policies(chosen)
        upstreams = [ModelUpstream(name, each) for name, each in chosen.upstreams.items()]
    except ConfigError as error:
        return [failed("models", error)]
    detail = f"upstreams {', '.join(each.name for each in upstreams)}, {len(chosen.rules)} rules"
    warned = [Check(name="models", status="warn", detail=each) for each in warnings(chosen)]
    if settings.host not in LOCAL and chosen.holds_keys and not chosen.keys:
        unknown = "other machines may not use the providers' keys, because no keys of this gateway are configured"
        remedy = "`pegboard keys new NAME` makes one for [llm.keys]."
        warned.append(Check(name="models", status="warn", detail=unknown, remedy=remedy))
    return [Check(name="models", status="ok", detail=detail), *warned]


def listing(settings: Settings, tokens: int) -> list[Check]:
    """Whether ``list_budget`` keeps clients from being listed what the configuration asks for."""
    if settings.exposure not in ("eager", "native") or not 0 < settings.list_budget < tokens:
        return []
    detail = f"exposure {settings.exposure}: all tools take {tokens} tokens, and list_budget is {settings.list_budget}"
    remedy = "Clients are listed a search instead. Leave exposure out, or set list_budget = 0."
    return [Check(name="listing", status="warn", detail=detail, remedy=remedy)]


async def servers(configured: Configured) -> list[Check]:
    """Connects to each server."""
    loaded = await load(configured, [])
    checks = listing(configured.settings, sum(loaded.catalog.token_counts))
    for status in loaded.statuses:
        if status.available:
            took = f" in {status.latency_ms:.0f} ms" if status.latency_ms is not None else ""
            detail = f"{status.tools} tools{took}, protocol {status.protocol}"
            checks.append(Check(name=f"server {status.name}", status="ok" if status.tools else "warn", detail=detail))
        else:
            reason = status.reason or f"no answer within {configured.settings.connect_timeout:g} s"
            remedy = sign_in_remedy(status.name, reason)
            checks.append(
                Check(
                    name=f"server {status.name}",
                    status="fail",
                    detail=reason.removesuffix(remedy).rstrip(),
                    remedy=remedy or 'Correct its entry, or set "disabled": true in it.',
                )
            )
    return checks


async def encoder(settings: Settings, folder: Traversable | None = None) -> list[Check]:
    """Checks the configured encoder, and the local one if it is the encoder or the fallback."""
    chosen = settings.encoder
    if chosen.provider == "local":
        return [await _in_process("encoder", settings, folder)]
    fallback = [await _in_process("encoder (fallback)", settings, folder)] if chosen.fallback == "local" else []
    return [await _remote(settings), *fallback]


async def _remote(settings: Settings) -> Check:
    """Checks that the service returns a vector, and whether anything is fitted for its model."""
    try:
        async with compose.opened_parts(settings) as parts:
            started = time.perf_counter()
            await parts.encoder.encode([SAMPLE])
            took = (time.perf_counter() - started) * 1000
            ranked = compose.space(settings, parts, parts.encoder).profile.by_rank
    except PegboardError as error:
        return failed("encoder", error)
    about = f"{parts.encoder.model} of {parts.encoder.provider}, {parts.encoder.dimensions} numbers, {took:.0f} ms"
    if not ranked:
        return Check(name="encoder", status="ok", detail=about)
    detail = f"{about}; nothing is fitted for it, so tools are selected by rank"
    return Check(name="encoder", status="ok", detail=detail, remedy="`pegboard calibrate` fits it to your requests.")


async def _in_process(name: str, settings: Settings, folder: Traversable | None) -> Check:
    """Checks that the local encoder loads, returns unit vectors, and has the model file that its card describes."""
    folder = folder or resources("pegboard.retrieval.encoders") / "minilm"
    model = OnnxEncoder(folder, threads=settings.encoder_threads)
    again = "Install pegboard again."
    try:
        started = time.perf_counter()
        vectors = await model.encode([SAMPLE])
        took = (time.perf_counter() - started) * 1000
        described = model.card["model_sha256"]
    except PegboardError as error:
        return failed(name, error)
    except KeyError as error:
        return Check(name=name, status="fail", detail=f"Its card has no {error}.", remedy=again)
    actual = hashlib.sha256((folder / "model.onnx").read_bytes()).hexdigest()
    if actual != described:
        return Check(name=name, status="fail", detail="The model file does not match its card.", remedy=again)
    if vectors.shape != (1, model.dimensions) or not np.allclose(np.linalg.norm(vectors), 1, atol=1e-3):
        return Check(name=name, status="fail", detail="It does not return unit vectors.", remedy=again)
    return Check(name=name, status="ok", detail=f"{model.model}, loaded and encoded in {took:.0f} ms")


async def cache(settings: Settings) -> list[Check]:
    """Checks that the cache folder is writable and its file readable."""
    path = settings.cache_dir / EMBEDDINGS_FILE
    store = SqliteEmbeddings(path)
    try:
        await store.put({})
        with tempfile.TemporaryFile(dir=path.parent), closing(sqlite3.connect(path)) as connection:
            (entries,) = connection.execute("SELECT count(*) FROM embeddings").fetchone()
    except PegboardError as error:
        return [failed("cache", error)]
    except (OSError, sqlite3.Error) as error:
        remedy = "Set cache_dir to a folder that can be written."
        return [Check(name="cache", status="fail", detail=f"{path.parent}: {error}", remedy=remedy)]
    finally:
        store.close()
    size = path.stat().st_size / 1e6
    return [Check(name="cache", status="ok", detail=f"{path}: {entries:,} vectors, {size:.1f} MB")]


async def state(settings: Settings) -> list[Check]:
    """Checks that the store answers and that its schema has this version."""
    try:
        store = open_state(settings, SYSTEM_CLOCK)
        try:
            about = await store.archive.about()
        finally:
            await store.close()
    except PegboardError as error:
        return [failed("state", error)]
    kept = sum(count for kind, count in about.counts.items() if kind != "embedding")
    detail = f"{about.backend} {about.version}, {about.place}: {kept:,} records, {about.bytes / 1e6:.1f} MB"
    return [Check(name="state", status="ok", detail=detail)]
