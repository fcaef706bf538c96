"""Runs the steps of the Dockerfile where there is no Docker: its build, in an empty virtual environment and from
nothing but the context that .dockerignore lets through, then its command, its health check and its end.

python scripts/check_image.py          # downloads the dependencies; needs no root
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).parents[1]
PORT = "7339"
STARTS = 120.0
"""Seconds on a machine that is busy."""


def instructions(text: str) -> list[tuple[str, str]]:
    """The instructions of a Dockerfile, with lines that go on joined."""
    joined = re.sub(r"\\\n\s*", "", text)
    lines = [line for line in joined.splitlines() if line.strip() and not line.startswith("#")]
    return [(word, rest.strip()) for word, _, rest in (line.partition(" ") for line in lines)]


def stages(text: str) -> list[list[tuple[str, str]]]:
    found: list[list[tuple[str, str]]] = []
    for word, rest in instructions(text):
        if word == "FROM":
            found.append([])
        found[-1].append((word, rest))
    return found


def environment(stage: list[tuple[str, str]]) -> dict[str, str]:
    said = [rest for word, rest in stage if word == "ENV"]
    return dict(pair.split("=", 1) for rest in said for pair in shlex.split(rest))


def only(stage: list[tuple[str, str]], word: str) -> str:
    (found,) = [rest for each, rest in stage if each == word]
    return found


def build(stage: list[tuple[str, str]], context: Path, folder: Path) -> None:
    """The build stage, with the image's folders below ``folder``."""
    work = folder / "src"
    work.mkdir()
    for word, rest in stage:
        if word == "COPY":
            *sources, target = rest.split()
            for source in sources:
                if (context / source).is_dir():
                    shutil.copytree(context / source, work / target)
                else:
                    shutil.copy(context / source, work / target)
        elif word == "RUN":
            command = rest.replace("/opt/pegboard", str(folder / "pegboard")).replace(
                "python -m venv", f"{sys.executable} -m venv"
            )
            subprocess.run(["sh", "-ec", command], cwd=work, check=True)


def serve(stage: list[tuple[str, str]], folder: Path) -> None:
    """The image's command with its environment, its health check until that is content, and its signal to end."""
    programs, state, config = folder / "pegboard" / "bin", folder / "state", folder / "pegboard.toml"
    state.mkdir()
    config.write_text((ROOT / "deploy" / "pegboard.toml").read_text())
    said = environment(stage) | {"PEGBOARD_PORT": PORT, "PEGBOARD_DRAIN_WAIT": "0"}
    said = {name: value.replace("/state", str(state)) for name, value in said.items()}
    known: Mapping[str, str] = said | {"PATH": f"{programs}:{os.environ['PATH']}", "HOME": str(state)}
    (command,) = json.loads(only(stage, "ENTRYPOINT"))
    words = [str(config) if word.endswith(".toml") else word for word in json.loads(only(stage, "CMD"))]
    check = json.loads(only(stage, "HEALTHCHECK").partition("CMD ")[2].replace("7332", PORT))
    process = subprocess.Popen([programs / command, *words], env=known)
    try:
        deadline = time.monotonic() + STARTS
        while subprocess.run([programs / check[0], *check[1:]], env=known, capture_output=True).returncode:
            assert process.poll() is None, "it ended by itself"
            assert time.monotonic() < deadline, "its health check is never content"
            time.sleep(0.5)
        process.send_signal(getattr(signal, only(stage, "STOPSIGNAL")))
        assert process.wait(30) == 0, process.returncode
    finally:
        process.kill()


def main() -> None:
    first, last = stages((ROOT / "Dockerfile").read_text())
    with tempfile.TemporaryDirectory() as name:
        folder, context = Path(name), Path(name) / "context"
        kept = [line[1:] for line in (ROOT / ".dockerignore").read_text().split() if line.startswith("!")]
        context.mkdir()
        for each in kept:
            source = ROOT / each
            if source.is_dir():
                shutil.copytree(source, context / each, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(source, context / each)
        build(first, context, folder)
        assert not list((folder / "pegboard").glob("lib/*/site-packages/pip")), "pip is in the image"
        serve(last, folder)
    sys.stdout.write("The Dockerfile's steps work.\n")


if __name__ == "__main__":
    main()
