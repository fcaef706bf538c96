"""A run of `pegboard index build` that is killed at random moments, beside one that is not."""

from __future__ import annotations

import hashlib
import json
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import cycle, islice
from pathlib import Path
from typing import Literal

from pegboard.compose.shard_jobs import EngineName
from pegboard_bench.bulk.process_tree import alive, command, descendants, ended, kill

Victim = Literal["a worker", "both workers", "the driver", "everything"]
VICTIMS: Sequence[Victim] = ("a worker", "both workers", "the driver", "everything", "a worker")
LATEST = 0.9
"""Share of the tools after which nothing is killed."""
WORKERS: dict[EngineName, str] = {"ray": "ray::_build_shard", "local": "spawn_main"}
"""What is in the command of a worker that makes a shard. Ray's own agents call themselves `ray::` too."""
END_SECONDS = 120.0
"""Ray's agents end a minute after their driver."""
PAUSE = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Kill:
    """Once a share of the tools is there, and so many seconds later: SIGKILL to the victim."""

    at: float
    delay: float
    victim: Victim


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """The command, without its folder."""

    catalog: Path
    tools: int
    engine: EngineName
    workers: int
    shard_size: int

    def start(self, out: Path) -> subprocess.Popen[bytes]:
        words = ["--catalog", self.catalog, "--out", out, "--engine", self.engine, "--workers", self.workers]
        arguments = [*map(str, words), "--shard-size", str(self.shard_size)]
        return subprocess.Popen(
            [sys.executable, "-m", "pegboard", "index", "build", *arguments],
            start_new_session=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def done(self, out: Path) -> float:
        """The share of the tools whose shards are finished."""
        return min(1.0, len([*out.glob("[0-9]*.json")]) * self.shard_size / self.tools)


@dataclass(slots=True)
class Killed:
    """``starts`` of the command; ``went_on``: kills after which it went on without being started again; ``left``:
    processes that had to be ended after their driver was."""

    kills: list[Kill] = field(default_factory=list)
    starts: int = 0
    went_on: int = 0
    left: int = 0
    seconds: float = 0.0


def moments(count: int, seed: int, most_delay: float) -> list[Kill]:
    """``count`` moments, each with its victim: all victims take their turns, in random order."""
    draw = random.Random(seed)  # noqa: S311 - the same moments each time, no secret
    victims = list(islice(cycle(VICTIMS), count))
    draw.shuffle(victims)
    shares = sorted(draw.uniform(0, LATEST) for _ in range(count))
    return [
        Kill(at=share, delay=draw.uniform(0, most_delay), victim=victim)
        for share, victim in zip(shares, victims, strict=True)
    ]


def undisturbed(job: Job, out: Path) -> float:
    """Seconds of the run, into a folder that is empty then. Raises RuntimeError if it fails."""
    shutil.rmtree(out, ignore_errors=True)
    began = time.monotonic()
    if code := job.start(out).wait():
        raise RuntimeError(f"The undisturbed run ended with {code}")
    return time.monotonic() - began


def disturbed(job: Job, out: Path, kills: Sequence[Kill], say: Callable[[str], None]) -> Killed:
    """Run into an empty folder until all is done, starting again whatever has ended. Raises RuntimeError if it ends
    without being killed."""
    shutil.rmtree(out, ignore_errors=True)
    found, waiting, began = Killed(), list(kills), time.monotonic()
    while True:
        found.starts += 1
        process, struck = job.start(out), len(waiting)
        while process.poll() is None:
            if waiting and job.done(out) >= waiting[0].at and _strike(job, process, waiting[0], found):
                found.kills.append(waiting.pop(0))
                say(f"killed {found.kills[-1].victim} at {job.done(out):.0%}")
            time.sleep(PAUSE)
        if process.returncode == 0:
            found.went_on = len(found.kills) - (found.starts - 1)
            found.seconds = time.monotonic() - began
            return found
        if len(waiting) == struck:
            raise RuntimeError(f"The run ended with {process.returncode}, and was not killed")


def _strike(job: Job, process: subprocess.Popen[bytes], due: Kill, found: Killed) -> bool:
    """Kill the victim, unless there is none yet, or the run has ended meanwhile."""
    time.sleep(due.delay)
    tree = descendants(process.pid)
    workers = makers(job.engine, {each: command(each) for each in tree})
    victims = {
        "a worker": workers[:1],
        "both workers": workers,
        "the driver": [process.pid],
        "everything": [process.pid, *tree],
    }[due.victim]
    if not victims or not alive(process.pid):
        return False
    kill(victims)
    if process.pid in victims:
        process.wait()
        left = ended(tree, END_SECONDS)
        found.left += len(left)
        kill(left)
    return True


def makers(engine: EngineName, commands: Mapping[int, str]) -> list[int]:
    """The processes that make shards, of those with these commands."""
    return [process for process, words in commands.items() if WORKERS[engine] in words]


def digests(folder: Path) -> dict[str, str]:
    """SHA-256 of every file, by its name."""
    found = {}
    for path in sorted(folder.iterdir()):
        with path.open("rb") as opened:
            found[path.name] = hashlib.file_digest(opened, "sha256").hexdigest()
    return found


def differing(one: dict[str, str], other: dict[str, str]) -> list[str]:
    """Files that are not in both, or not the same."""
    return sorted(name for name in one.keys() | other.keys() if one.get(name) != other.get(name))


def kept_seconds(note: Path, code: str, work: Callable[[], float]) -> float:
    """What the work returned, if an earlier run of the benchmark has noted it for the same code; else it is done and
    noted. Files of other code are no measure of what kills change: its scanner may say other things."""
    noted = json.loads(note.read_text("utf-8")) if note.exists() else {}
    if noted.get("code") == code and not code.endswith("-dirty"):
        return float(noted["seconds"])
    note.unlink(missing_ok=True)
    seconds = work()
    note.write_text(json.dumps({"code": code, "seconds": seconds}), "utf-8")
    return seconds
