"""ProgressiveMCPBench: its tasks, on its synthetic servers, with the calls of `progressive.toml`."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from pegboard.errors import ConfigError
from pegboard.settings.server_spec import ServerSpec
from pegboard_bench.llm.contenders import started
from pegboard_bench.whole_tasks.task import Task, made, resolved
from pegboard_bench.whole_tasks.task_set import TaskSet

SYSTEM = """You are an assistant who works with tools. Do what the user asks, with as few calls as it takes, then say
what came of it. Files are below /root, and paths that tools take are absolute. Ask nothing back."""


@contextmanager
def running(installed: Path) -> Iterator[TaskSet]:
    """The set, with its servers started from the folder of `scripts/install_progressive.py`. Raises ConfigError."""
    folder = installed / "progressive"
    try:
        records = json.loads((folder / "tasks.json").read_text("utf-8"))
        names: Sequence[str] = json.loads((folder / "servers.json").read_text("utf-8"))
    except OSError as error:
        remedy = f"Run python scripts/install_progressive.py {installed}."
        raise ConfigError(f"ProgressiveMCPBench is not installed in {str(installed)!r}.", remedy=remedy) from error
    with TemporaryDirectory(prefix="pegboard-progressive-") as logs, ExitStack() as stack:
        url, _ = started(stack, ["node", str(folder / "server.mjs"), str(folder / "files")], Path(logs))
        servers = {name: ServerSpec(name=name, url=f"{url}/mcp/{name}") for name in names}
        yield TaskSet(tasks=lambda places: tasks(records), servers=lambda space: servers, system=SYSTEM)


def tasks(records: Sequence[Mapping[str, Any]]) -> list[Task]:
    """Those of the benchmark's records that can be done. Raises ConfigError for one that is missing."""
    said = tomllib.loads((files("pegboard_bench.whole_tasks") / "progressive.toml").read_text("utf-8"))
    by_id = {record["task_id"]: record for record in records}
    if missing := [each["name"] for each in said["task"] if each["id"] not in by_id]:
        raise ConfigError(f"The clone lacks the tasks {', '.join(missing)}.", remedy="Install it again, at its commit.")
    return [_task(each, by_id[each["id"]], said["same"]) for each in said["task"]]


def _task(said: Mapping[str, Any], record: Mapping[str, Any], same: Mapping[str, Sequence[str]]) -> Task:
    answer = str(record["answer"])
    checks = [[str(text) for text in resolved({"of": check}, [answer])["of"]] for check in said["checks"]]
    return made({**said, "ask": record["Question"].strip(), "checks": checks, "concludes": answer}, same, {})
