"""Embeds and scans a catalog in bulk: one job a shard, in this process, in several, or as Ray tasks.

A job's result depends on its tools, the encoder and the scanner alone, so shards have the same bytes however many
workers there are and however often they were killed. A finished shard is not made again.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import re
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import asdict, dataclass
from functools import partial
from itertools import islice
from multiprocessing import active_children, get_context, parent_process
from pathlib import Path
from threading import Thread
from typing import Any, Literal, TypeAlias

import numpy as np

from pegboard.catalog import Catalog, canonical_text
from pegboard.catalog.catalog import fingerprint
from pegboard.clock import SystemClock
from pegboard.compose.vectors import configured_encoder
from pegboard.errors import ConfigError, PegboardError
from pegboard.extras import required
from pegboard.model import Floats, Server, Tool
from pegboard.protocols import BulkEncoder, Encoder
from pegboard.retrieval.encoders.encoder_cache import embedding_key
from pegboard.retrieval.encoders.remote import RemoteEncoder
from pegboard.retrieval.tool_texts import full, server_profile, short
from pegboard.settings import Settings
from pegboard.stores.vector_shards import (
    Manifest,
    ShardRecord,
    VectorSpace,
    finished_shard,
    write_manifest,
    write_shard,
)
from pegboard.trust.scan import scan

EngineName = Literal["local", "ray"]
RETRIES = 100
"""Times that Ray starts a task again whose worker died."""
Report = Callable[[int, int], object]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardJob:
    """What one shard is made of. It can be pickled."""

    folder: Path
    name: str
    tools: tuple[Tool, ...]
    servers: tuple[Server, ...]

    @property
    def texts(self) -> list[str]:
        """What the ranker `hybrid` embeds: two texts a tool, and one a server."""
        of_tools = [text for tool in self.tools for text in (short(tool), full(tool))]
        return list(dict.fromkeys([*of_tools, *map(server_profile, self.servers)]))

    def made_from(self, space: VectorSpace) -> str:
        """SHA-256 of everything that its files depend on but the scanner: a shard keeps the findings of its time."""
        said = [asdict(space), self.texts, [fingerprint(tool) for tool in self.tools]]
        return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()


OF_SHARDS = re.compile(r"\.?\d{5,}\.(keys\.npy|vectors\.npy|findings\.jsonl|json)(\.new)?")
"""Names of files that a build writes."""
Work: TypeAlias = Callable[[ShardJob], ShardRecord]
Engine: TypeAlias = Callable[[Work, Sequence[ShardJob], int], Iterator[ShardRecord]]


def build_index(
    settings: Settings,
    catalog: Catalog,
    out: Path,
    *,
    engine: EngineName | Engine = "local",
    workers: int = 1,
    shard_size: int = 2_000,
    encoder: Encoder | None = None,
    progress: Report = lambda done, total: None,
) -> Manifest:
    """Write the shards of a catalog into a folder, and its manifest last. What an earlier run finished is kept.

    ``engine`` may be one of one's own. ``encoder`` in place of the configured one is for one worker. ``progress`` is
    told tools done and all tools. Raises PegboardError if a file cannot be written or a worker ends, ConfigError if the
    engine is not installed.
    """
    if not catalog.tools:
        raise PegboardError("There are no tools to index.")
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"{out} cannot be made a folder: {error.strerror}.") from error
    space = _space(encoder or configured_encoder(settings, SystemClock()))
    jobs = _jobs(catalog, out, shard_size)
    done = {job.name: record for job in jobs if (record := finished_shard(out, job.name, job.made_from(space)))}
    work = partial(_build_shard, settings, encoder)
    tools = sum(record.tools for record in done.values())
    progress(tools, len(catalog.tools))
    made_by = ENGINES[engine] if isinstance(engine, str) else engine
    for record in made_by(work, [job for job in jobs if job.name not in done], workers):
        done[record.name] = record
        tools += record.tools
        progress(tools, len(catalog.tools))
    manifest = Manifest(
        space=space,
        tools=len(catalog.tools),
        shards=[done[job.name] for job in jobs],
        duplicates=_duplicates(catalog.tools),
    )
    write_manifest(out, manifest)
    _sweep(out, manifest)
    return manifest


def _space(encoder: Encoder) -> VectorSpace:
    """The space of an encoder; a service says its dimensions with its first answer."""
    if not encoder.dimensions:
        asyncio.run(_encoded(encoder, ["tool"]))
    return VectorSpace.of(encoder)


def _jobs(catalog: Catalog, out: Path, size: int) -> list[ShardJob]:
    made: list[ShardJob] = []
    for number, start in enumerate(range(0, len(catalog.tools), size)):
        tools = tuple(islice(catalog.tools, start, start + size))
        names = dict.fromkeys(tool.server for tool in tools)
        servers = tuple(catalog.servers[name] for name in names if name in catalog.servers)
        made.append(ShardJob(folder=out, name=f"{number:05}", tools=tools, servers=servers))
    return made


def _build_shard(settings: Settings, encoder: Encoder | None, job: ShardJob) -> ShardRecord:
    """Embed and scan the tools of one shard. An encoder of one's own has one thread: the workers are the others."""
    own = settings.model_copy(update={"encoder_threads": 1})
    used = encoder or configured_encoder(own, SystemClock())
    texts = job.texts
    vectors = asyncio.run(_encoded(used, texts))
    space = VectorSpace.of(used)
    keys = [embedding_key(space.provider, space.model, text) for text in texts]
    findings = [found for tool in job.tools if (found := _findings(tool))]
    return write_shard(
        job.folder,
        job.name,
        job.made_from(space),
        dict(zip(keys, vectors, strict=True)),
        findings,
        len(job.tools),
    )


async def _encoded(encoder: Encoder, texts: Sequence[str]) -> Floats:
    """All at once, since what is in a batch with a text moves its last bits; but a service, whose time for a call is
    limited, gets as many as it takes at a time."""
    step = encoder.at_once if isinstance(encoder, BulkEncoder) else len(texts)
    try:
        return np.concatenate([await encoder.encode(texts[at : at + step]) for at in range(0, len(texts), step)])
    finally:
        if isinstance(encoder, RemoteEncoder):
            await encoder.close()


def _findings(tool: Tool) -> Mapping[str, Any]:
    """A suspicious tool with what the scanner found in it; nothing for another."""
    found = scan(tool)
    if not found.suspicious:
        return {}
    return {"tool": str(tool.id), "score": round(found.score, 6), "findings": [asdict(each) for each in found.findings]}


def _duplicates(tools: Sequence[Tool]) -> list[list[str]]:
    """Tools with the same name, description and input schema, on several servers."""
    groups: dict[str, list[str]] = {}
    for tool in tools:
        groups.setdefault(hashlib.sha256(canonical_text(tool).encode("utf-8", "replace")).hexdigest(), []).append(
            str(tool.id)
        )
    return [group for group in groups.values() if len(group) > 1]


def _sweep(out: Path, manifest: Manifest) -> None:
    """Remove shards of an earlier, larger catalog, and drafts of killed runs; nothing else that is in the folder."""
    kept = {name for shard in manifest.shards for name in (*shard.files, f"{shard.name}.json")}
    for path in out.iterdir():
        if OF_SHARDS.fullmatch(path.name) and path.name not in kept and path.is_file():
            path.unlink(missing_ok=True)


def _locally(work: Work, jobs: Sequence[ShardJob], workers: int) -> Iterator[ShardRecord]:
    if workers == 1:
        yield from map(work, jobs)
        return
    others = set(active_children())
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn"), initializer=follow_parent) as pool:
        under_way = [pool.submit(work, job) for job in jobs]
        try:
            for each in as_completed(under_way):
                yield each.result()
        except BrokenProcessPool as error:
            raise PegboardError(
                "A worker ended unexpectedly.", remedy="Run the command again: finished shards are kept."
            ) from error
        except BaseException:  # an interrupt does not wait for the shards under way: they are made again
            for worker in set(active_children()) - others:
                worker.kill()
            raise
        finally:
            pool.shutdown(cancel_futures=True)


def follow_parent() -> None:
    """Have this worker end with the process that started it, also if that is killed, and leave interrupts to it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    if (parent := parent_process()) is not None:
        parent.join()
        os._exit(1)


def _on_ray(work: Work, jobs: Sequence[ShardJob], workers: int) -> Iterator[ShardRecord]:
    """On the cluster that RAY_ADDRESS names, else on this machine. ``out`` must be a folder that all nodes share."""
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    ray = required("ray", "ray")
    own = {} if os.environ.get("RAY_ADDRESS") else {"num_cpus": workers, "include_dashboard": False}
    ray.init(log_to_driver=False, configure_logging=False, **own)
    try:
        task = ray.remote(num_cpus=1, max_retries=RETRIES)(work.func if isinstance(work, partial) else work)
        given = work.args if isinstance(work, partial) else ()
        waiting = [task.remote(*given, job) for job in jobs]
        while waiting:
            ready, waiting = ray.wait(waiting)
            yield from ray.get(ready)
    finally:
        ray.shutdown()


ENGINES: Mapping[EngineName, Engine] = {"local": _locally, "ray": _on_ray}
