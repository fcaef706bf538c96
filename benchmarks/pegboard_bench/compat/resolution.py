"""What pip would install for some requirements, from its report (`pip install --dry-run --report`)."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

LIMIT = 900
"""Seconds for one resolution."""
REASON = 300
"""Characters of pip's error that are kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolution:
    """Versions by canonical name; the requirements of each; and why pip refused, empty if it did not."""

    versions: Mapping[str, str] = field(default_factory=dict)
    requires: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    refused: str = ""

    def of(self, name: str) -> tuple[Requirement, ...]:
        """The requirements of a package that apply here without an extra."""
        found = (Requirement(each) for each in self.requires.get(name, ()))
        return tuple(each for each in found if each.marker is None or each.marker.evaluate({"extra": ""}))


@dataclass(frozen=True, slots=True, kw_only=True)
class Downgrade:
    """A package that is older beside Pegboard than without it."""

    package: str
    alone: str
    beside: str


def resolve(python: Path, *requirements: str) -> Resolution:
    """What pip of this interpreter would install into an empty environment, newest of each."""
    with TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        command = [str(python), "-m", "pip", "install", "--dry-run", "--quiet", "--ignore-installed", "--no-input"]
        finished = subprocess.run(
            [*command, "--report", str(report), *requirements],
            capture_output=True,
            text=True,
            check=False,
            timeout=LIMIT,
        )
        if finished.returncode:
            return Resolution(refused=reason(finished.stderr))
        return read_report(json.loads(report.read_text("utf-8")))


def read_report(report: Mapping[str, Any]) -> Resolution:
    """A report of pip, version 1 of its format."""
    metadata = [each["metadata"] for each in report["install"]]
    return Resolution(
        versions={canonicalize_name(each["name"]): each["version"] for each in metadata},
        requires={canonicalize_name(each["name"]): tuple(each.get("requires_dist", ())) for each in metadata},
    )


def reason(said: str) -> str:
    """The line of pip's errors that says what conflicts."""
    errors = [line.removeprefix("ERROR: ") for line in said.splitlines() if line.startswith("ERROR: ")]
    return (errors[0] if errors else said.strip())[:REASON]


def downgraded(alone: Resolution, beside: Resolution) -> tuple[Downgrade, ...]:
    """The packages whose version is lower beside Pegboard."""
    return tuple(
        Downgrade(package=name, alone=version, beside=beside.versions[name])
        for name, version in sorted(alone.versions.items())
        if name in beside.versions and Version(beside.versions[name]) < Version(version)
    )


def conflicts(alone: Mapping[str, Resolution]) -> list[tuple[str, str, str]]:
    """Pairs of packages whose own requirements exclude each other, and the package that they disagree on.

    Judged by the versions that occur in any resolution: two ranges that none of them satisfies both are a conflict.
    """
    seen: dict[str, set[Version]] = {}
    for each in alone.values():
        for name, version in each.versions.items():
            seen.setdefault(name, set()).add(Version(version))
    own = {package: _ranges(package, resolution) for package, resolution in alone.items()}
    names = sorted(own)
    return [
        (one, other, shared)
        for place, one in enumerate(names)
        for other in names[place + 1 :]
        for shared in sorted(own[one].keys() & own[other].keys())
        if seen.get(shared) and not any(_in(version, own[one][shared], own[other][shared]) for version in seen[shared])
    ]


def _ranges(package: str, resolution: Resolution) -> dict[str, Requirement]:
    name = canonicalize_name(package)
    ranges: dict[str, Requirement] = {canonicalize_name(each.name): each for each in resolution.of(name)}
    if name in resolution.versions:
        ranges[name] = Requirement(f"{name}=={resolution.versions[name]}")
    return ranges


def _in(version: Version, *ranges: Requirement) -> bool:
    return all(each.specifier.contains(version, prereleases=True) for each in ranges)


def refusals(beside: Mapping[str, Resolution], alone: Mapping[str, Resolution]) -> Sequence[str]:
    """The packages that pip resolves alone and refuses beside Pegboard."""
    return [name for name, each in beside.items() if each.refused and not alone[name].refused]
