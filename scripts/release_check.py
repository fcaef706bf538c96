"""Checks everything that a release needs, and leaves it in dist/: sdist, wheel, licences and a bill of materials.

make release-check                       # while the changelog's section is still called Unreleased
make release-check RELEASE_ARGS=--final  # before publishing: the changelog names the version and its date

Runs in an environment of its own (`--group release`). Only pip uses the network, to install the built wheel into an
empty environment, whose packages the licences and the bill of materials list.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
import venv
import zipfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
DIST = ROOT / "dist"
VERSION = re.compile(r'^__version__ = "(\d+\.\d+\.\d+(?:(?:a|b|rc)\d+)?)"$', re.MULTILINE)
PACKED = ("pegboard/py.typed", "pegboard/retrieval/encoders/minilm/model.onnx", "licenses/LICENSE", "licenses/NOTICE")
"""What a wheel has to hold, by how the paths end."""
REFUSED = re.compile(r"(?<!L)GPL|SSPL|BUSL|Business Source|Commons Clause|Proprietary|UNKNOWN", re.IGNORECASE)
"""Licences that a dependency of an Apache-2.0 package may not have without a look at it."""


class Failed(Exception):  # noqa: N818 - a finding, and no error of this program
    """A check that does not hold: what was found, and the remedy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """What is being checked: its version, and an environment with nothing but its wheel."""

    version: str
    final: bool
    place: Path

    @property
    def python(self) -> Path:
        return self.place / "bin" / "python"


def version_of(source: str) -> str:
    """The version that the package says it has.

    >>> version_of('__version__ = "1.2.3"')
    '1.2.3'
    """
    found = VERSION.search(source)
    if found is None:
        raise Failed("src/pegboard/__init__.py has no version of the form 1.2.3: set __version__.")
    return found[1]


def changelog(release: Release) -> str:
    """The newest section has entries, and for a final release the version and a date."""
    heading, body = newest((ROOT / "CHANGELOG.md").read_text())
    if not re.search(r"^- ", body, re.MULTILINE):
        raise Failed(f"CHANGELOG.md has no entry under {heading!r}: say what changed.")
    if release.final and not re.fullmatch(rf"{re.escape(release.version)} \(\d{{4}}-\d\d-\d\d\)", heading):
        raise Failed(f"CHANGELOG.md begins with {heading!r}: call it '{release.version} (YYYY-MM-DD)'.")
    return heading


def newest(text: str) -> tuple[str, str]:
    """Heading and text of a changelog's first section.

    >>> newest("# Log\\n\\n## Unreleased\\n\\n- a\\n\\n## 1.0.0\\n\\n- b\\n")
    ('Unreleased', '\\n\\n- a\\n\\n')
    """
    parts = re.split(r"^## (.+)$", text, flags=re.MULTILINE)
    return (parts[1], parts[2]) if len(parts) > 2 else ("", "")


def built(release: Release) -> str:
    """An sdist, and a wheel made from that sdist, so that the sdist is known to be complete."""
    shutil.rmtree(DIST, ignore_errors=True)
    _run(sys.executable, "-m", "build", "--no-isolation", "--outdir", str(DIST), str(ROOT))
    return ", ".join(f"{path.name} {path.stat().st_size / 1e6:.1f} MB" for path in _files())


def packed(release: Release) -> str:
    """The wheel's version, and what has to be in it or may not be."""
    wheel = _wheel()
    if f"-{release.version}-" not in wheel.name:
        raise Failed(f"{wheel.name} is not of version {release.version}: build it anew.")
    names = zipfile.ZipFile(wheel).namelist()
    missing = [each for each in PACKED if not any(name.endswith(each) for name in names)]
    foreign = sorted({name.split("/")[0] for name in names if not name.startswith(("pegboard/", "pegboard-"))})
    if missing or foreign:
        raise Failed(f"{wheel.name} misses {missing} and has {foreign} besides: look at tool.hatch in pyproject.toml.")
    return f"{len(names)} files"


def described(release: Release) -> str:
    """The metadata and the README are what a package index takes."""
    return _run(sys.executable, "-m", "twine", "check", "--strict", *map(str, _files())).strip().splitlines()[-1]


def installed(release: Release) -> str:
    """The wheel can be installed where nothing else is, and says its version."""
    venv.create(release.place, with_pip=True)
    _run(str(release.python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", f"{_wheel()}[gateway]")
    said = _run(str(release.python), "-m", "pegboard", "--version").strip()
    if release.version not in said:
        raise Failed(f"The installed program says {said!r}, and not {release.version}.")
    return said


def licences(release: Release) -> str:
    """Every package that comes along has a licence that goes with ours."""
    command = [str(Path(sys.executable).with_name("pip-licenses")), f"--python={release.python}", "--from=mixed"]
    rows = json.loads(_run(*command, "--format=json", "--ignore-packages", "pip", "setuptools"))
    (DIST / "licences.json").write_text(json.dumps(rows, indent=1) + "\n")
    refused = [f"{row['Name']} ({row['License']})" for row in rows if REFUSED.search(row["License"])]
    if refused:
        raise Failed(f"Licences to be looked at: {', '.join(refused)}.")
    return f"{len(rows)} packages"


def materials(release: Release) -> str:
    """A bill of materials in CycloneDX's form, with everything that an installation brings."""
    program = Path(sys.executable).with_name("cyclonedx-py")
    out = DIST / "sbom.cdx.json"
    project = ("--pyproject", str(ROOT / "pyproject.toml"))
    _run(str(program), "environment", "--output-reproducible", *project, "-o", str(out), str(release.python))
    return f"{len(json.loads(out.read_text())['components'])} components"


CHECKS: Sequence[Callable[[Release], str]] = (changelog, built, packed, described, installed, licences, materials)


def outcomes(release: Release) -> Iterator[tuple[str, bool, str]]:
    """Each check by its name, whether it holds, and what it found; what needs a wheel ends where there is none."""
    for check in CHECKS:
        try:
            yield check.__name__, True, check(release)
        except Failed as failure:
            yield check.__name__, False, str(failure)
            if check in (built, installed):
                return


def _files() -> list[Path]:
    return sorted([*DIST.glob("*.tar.gz"), *DIST.glob("*.whl")])


def _wheel() -> Path:
    return next(DIST.glob("*.whl"))


def _run(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Failed(f"{Path(command[0]).name} {' '.join(command[1:4])} failed:\n{(done.stdout + done.stderr)[-2000:]}")
    return done.stdout


def main() -> int:
    options = argparse.ArgumentParser(description="Check what a release needs.")
    options.add_argument("--final", action="store_true", help="The changelog has to name the version and its date.")
    final = options.parse_args().final
    requires = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["requires-python"]
    version = version_of((ROOT / "src" / "pegboard" / "__init__.py").read_text())
    print(f"pegboard {version}, Python {requires}")
    with tempfile.TemporaryDirectory() as place:
        release = Release(version=version, final=final, place=Path(place))
        holding = [_said(*outcome) for outcome in outcomes(release)]
    return 0 if all(holding) else 1


def _said(name: str, holds: bool, found: str) -> bool:
    print(f"{'ok    ' if holds else 'FAILED'} {name}: {found}", flush=True)
    return holds


if __name__ == "__main__":
    sys.exit(main())
