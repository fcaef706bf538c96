"""Installs LangChain's own tests of its agents: the source distribution of the version that is installed here, and an
environment with what those tests need and this Pegboard.

    python scripts/install_langchain_tests.py [FOLDER]        # default .demo/langchain_own

`source/` has the tests, `environment/` runs them. A second run installs nothing.
"""

from __future__ import annotations

import sys
import tarfile
import tempfile
import tomllib
from importlib.metadata import version
from pathlib import Path

from environments import from_pypi, succeeds, with_packages
from install_frameworks import UV

ROOT = Path(__file__).resolve().parents[1]
ALSO = ("vcrpy",)
"""What the tests import besides their own list."""


def install(folder: Path) -> bool:
    """Whether tests and environment are there."""
    folder = folder.absolute()
    folder.mkdir(parents=True, exist_ok=True)
    wanted = f"langchain=={version('langchain')}"
    source = folder / "source"
    if not (source / wanted).exists() and not _unpacked(wanted, source):
        return False
    needed = tomllib.loads((source / "pyproject.toml").read_text("utf-8"))["dependency-groups"]["test"]
    uv = from_pypi(folder / "uv", UV, "uv")
    group = (wanted, *needed, *ALSO, "--editable", f"{ROOT}[langchain]")
    return uv is not None and with_packages(folder / "environment", group, uv=uv)


def _unpacked(wanted: str, source: Path) -> bool:
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", "langchain"]
        if not succeeds([*pip, "--dest", name, wanted]):
            return False
        archive = next(place.glob("langchain-*.tar.gz"))
        with tarfile.open(archive) as files:
            files.extractall(place / "unpacked", filter="data")
        (place / "unpacked" / archive.name.removesuffix(".tar.gz")).rename(source)
    (source / wanted).touch()
    return True


if __name__ == "__main__":
    sys.exit(not install(Path(sys.argv[1] if len(sys.argv) > 1 else ".demo/langchain_own")))
