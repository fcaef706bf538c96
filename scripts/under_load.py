"""Runs the tests again and again on a machine that is busy, and says how they did.

    python scripts/under_load.py [--runs 3] [--times 4] [--spin 1] [--write] [-- ARGUMENTS OF PYTEST]

`--times 4`: four processes for each core want to run. `--spin 1` of them does nothing else, the others are workers of
pytest, whose tests start processes of their own. With `--spin 3`, a run takes three times as long. After each run it
says how many tests ran, which failed, seconds, and the load as the system tells it (the mean of its average over one
minute). `--write` adds it to bench/results/under_load.json, which has the runs without a failure in a row, of several
days if need be; a failure empties it. Exits 1 where a test failed.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic
from xml.etree import ElementTree

from pegboard_bench import results
from pegboard_bench.page import write_page

SPIN = "import os, sys\nwhile os.getppid() == int(sys.argv[1]): sum(range(100_000))"
"""It ends with the process that started it, however that ends."""
SAMPLE_S = 5.0
RESULTS = Path("bench/results")
PAGE = Path("docs/benchmarks.md")
"""The pages of all results; a test compares them with the files."""
CORES = len(os.sched_getaffinity(0))


@dataclass(frozen=True)
class Run:
    """One run of the tests: seconds of wall time, tests that ran, those that failed, processes that wanted to run."""

    seconds: float
    tests: int
    failed: tuple[str, ...]
    exit_code: int
    load: float | None


@contextmanager
def burners(count: int) -> Iterator[None]:
    """So many processes that never rest."""
    started = [subprocess.Popen([sys.executable, "-c", SPIN, str(os.getpid())]) for _ in range(count)]
    try:
        yield
    finally:
        for each in started:
            each.kill()
            each.wait()


class Load:
    """The system's load average over one minute, sampled while it is entered."""

    def __init__(self) -> None:
        self._samples: list[float] = []
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._sample)

    @property
    def mean(self) -> float | None:
        return round(sum(self._samples) / len(self._samples), 1) if self._samples else None

    def __enter__(self) -> Load:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _sample(self) -> None:
        while not self._over.wait(SAMPLE_S):
            self._samples.append(os.getloadavg()[0])


def run(workers: int, arguments: list[str]) -> Run:
    """Run pytest once."""
    with tempfile.TemporaryDirectory() as folder, Load() as load:
        report = Path(folder) / "report.xml"
        command = [
            sys.executable,
            "-m",
            "pytest",
            f"-n{workers}",
            "--dist=worksteal",
            f"--junitxml={report}",
            *arguments,
        ]
        started = monotonic()
        exit_code = subprocess.run(command, check=False).returncode
        seconds = round(monotonic() - started, 1)
        tests, failed = read_report(report)
    return Run(seconds, tests, failed, exit_code, load.mean)


def read_report(report: Path) -> tuple[int, tuple[str, ...]]:
    """How many tests ran, and the names of those that failed; nothing where pytest wrote no report."""
    if not report.exists():
        return 0, ()
    cases = list(ElementTree.parse(report).iter("testcase"))  # noqa: S314 - pytest wrote it
    failed = [case for case in cases if case.find("failure") is not None or case.find("error") is not None]
    ran = [case for case in cases if case.find("skipped") is None]
    return len(ran), tuple(f"{case.get('classname')}::{case.get('name')}" for case in failed)


def write(times: int, workers: int, run: Run, folder: Path = RESULTS) -> None:
    """Add a run to those without a failure in a row, each with its commit and its day. A failure ends the row: nothing
    of it is kept."""
    path = folder / "under_load.json"
    if run.exit_code:
        path.unlink(missing_ok=True)
        return
    row = list(results.read(path)["tables"]["row"]) if path.exists() else []
    now = datetime.now(UTC).isoformat(timespec="seconds")
    about = {"commit": results.commit(), "date": now, "times": times, "workers": workers}
    row.append(about | {"tests": run.tests, "seconds": run.seconds, "load": run.load})
    figures = {"runs": len(row), "least_tests": min(each["tests"] for each in row)}
    results.write(
        "under_load", command="make test-under-load", seed=0, figures=figures, tables={"row": row}, folder=folder
    )


def show(page: Path = PAGE, folder: Path = RESULTS) -> None:
    """Write the pages of the results anew, and leave none of a row that is no more."""
    (page.with_suffix("") / "under_load.md").unlink(missing_ok=True)
    write_page(page, folder)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--times", type=int, default=4)
    parser.add_argument("--spin", type=int, default=1)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("pytest", nargs="*")
    options = parser.parse_args()
    workers, failed = (options.times - options.spin) * CORES, False
    if workers < 1:
        parser.error("--spin is to be less than --times: the others run tests")
    with burners(options.spin * CORES):
        for number in range(options.runs):
            each = run(workers, options.pytest)
            print(f"run {number + 1}: {each}", flush=True)
            failed = failed or bool(each.exit_code)
            if options.write:
                write(options.times, workers, each)
                show()
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
