"""A run of `build_index` in a process of its own, each shard timed where it is made.

`python -m pegboard_bench.bulk.one_run CATALOG OUT ENGINE WORKERS SHARD_SIZE NOTES`
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import cast

from pegboard.catalog.ingest import read_catalog
from pegboard.compose.shard_jobs import ENGINES, EngineName, ShardJob, Work, build_index
from pegboard.settings import load_settings
from pegboard.stores.vector_shards import ShardRecord


def timed(work: Work, notes: Path, job: ShardJob) -> ShardRecord:
    """Make a shard, and note when, in which process, and what it took of the processor in all threads there."""
    began, before = time.monotonic(), time.process_time()
    record = work(job)
    noted = {"process": os.getpid(), "began": began, "ended": time.monotonic(), "cpu_s": time.process_time() - before}
    (notes / f"{job.name}.json").write_text(json.dumps(noted | {"tools": record.tools}), "utf-8")
    return record


def main(catalog: str, out: str, engine: str, workers: str, shard_size: str, notes: str) -> None:
    def noted(work: Work, jobs: Sequence[ShardJob], of: int) -> Iterator[ShardRecord]:
        return ENGINES[cast(EngineName, engine)](partial(timed, work, Path(notes)), jobs, of)

    build_index(
        load_settings(),
        read_catalog(Path(catalog)),
        Path(out),
        engine=noted,
        workers=int(workers),
        shard_size=int(shard_size),
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
