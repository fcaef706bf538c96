"""Attacks that others published, read from a folder beside the repository: their texts are not kept here.

`FOLDER/CORPUS/attacks.jsonl` has one attack a line: `{"family": …, "place": …, "text": …}`. The place is `description`,
`result`, or `definition` if the text is the JSON of a whole definition.
"""

from __future__ import annotations

import base64
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pegboard.catalog.ingest.mcp import tool_from_mcp
from pegboard.testing import fake_tool
from pegboard.trust import ScanResult, scan, scan_content
from pegboard.trust.definition_texts import all_texts
from pegboard.trust.look_alikes import LOOKING_LIKE
from pegboard_bench import results

OBFUSCATED = "proofs"
"""The corpus whose texts are also disguised."""
LIKE = str.maketrans({letter: others[1] for letter, others in LOOKING_LIKE.items() if len(others) > 1})
DISGUISES: Mapping[str, Callable[[str], str]] = {
    "look-alikes": lambda text: text.translate(LIKE),
    "zero-width": lambda text: "\u200b".join(text),
    "digits": lambda text: text.lower().translate(str.maketrans("oieast", "013457")),
    "spaced": lambda text: "   ".join(" ".join(word) for word in text.split()),
    "base64": lambda text: base64.b64encode(" ".join(text.split()).encode()).decode(),
    "base64 in parts": lambda text: "\n".join(_parts(base64.b64encode(" ".join(text.split()).encode()).decode())),
    "hexadecimal": lambda text: " ".join(text.split()).encode("ascii", "ignore").hex(),
    "right-to-left": lambda text: f"\u202e{text[::-1]}\u202c",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """A published attack. ``place`` is where its author put it."""

    corpus: str
    family: str
    place: str
    text: str

    def scanned(self) -> ScanResult:
        if self.place == "result":
            return scan_content({"content": [{"type": "text", "text": self.text}]})
        if self.place == "definition":
            return scan(tool_from_mcp("helper", json.loads(self.text)))
        return scan(fake_tool("helper", self.text))


def published(folder: Path) -> Iterator[Published]:
    """All attacks of a folder; none if there is no folder. Raises ValueError for a line that is no attack."""
    for path in sorted(folder.glob("*/attacks.jsonl")):
        for line in path.read_text("utf-8").splitlines():
            try:
                yield Published(corpus=path.parent.name, **json.loads(line))
            except TypeError as error:
                raise ValueError(f"{path}: {line[:80]!r} is no attack: {error}") from error


def disguised(attack: Published) -> Iterator[tuple[str, Published]]:
    """The attack in each disguise, with the disguise's name; the texts of a whole definition as one description."""
    said, place = attack.text, attack.place
    if place == "definition":
        said, place = " ".join(text.raw for text in all_texts(json.loads(said)) if " " in text.raw), "description"
    for name, disguise in DISGUISES.items():
        text = f"A helper. {disguise(said)}"
        yield name, Published(corpus="obfuscated", family=name, place=place, text=text)


@dataclass(slots=True)
class Caught:
    """Of attacks of one family: how many are suspicious, and how many are without the finding of the second stage."""

    attacks: int = 0
    suspicious: int = 0
    by_patterns: int = 0


def caught(attacks: Iterator[Published]) -> dict[str, dict[str, Caught]]:
    """By corpus and family."""
    found: dict[str, dict[str, Caught]] = {}
    for attack in attacks:
        row = found.setdefault(attack.corpus, {}).setdefault(attack.family, Caught())
        verdict = attack.scanned()
        patterns = ScanResult.of(each for each in verdict.findings if each.rule != "meaning")
        row.attacks += 1
        row.suspicious += verdict.suspicious
        row.by_patterns += patterns.suspicious
    return found


def all_of(folder: Path) -> Iterator[Published]:
    """The published attacks, then those of `OBFUSCATED` in each disguise."""
    attacks = list(published(folder))
    yield from attacks
    for attack in attacks:
        if attack.corpus == OBFUSCATED:
            yield from (each for _, each in disguised(attack))


def measured_or_kept(folder: Path | None, path: Path) -> tuple[dict[str, dict[str, Caught]], dict[str, Any]]:
    """What is caught of a folder's attacks; of corpora that are not there, what the results file at ``path`` says of an
    earlier run, with those ``corpora`` and that run's ``commit`` and ``date``. Raises ValueError for a line that is no
    attack."""
    found = caught(all_of(folder)) if folder is not None else {}
    if not path.exists():
        return found, {}
    before = results.read(path)
    tables = before["tables"]
    kept = {
        corpus: {family: Caught(**row) for family, row in families.items()}
        for corpus, families in tables["published"].items()
        if corpus not in found
    }
    if not kept:
        return found, {}
    earlier = tables.get("published_at") or {"commit": before["commit"], "date": before["date"]}
    return found | kept, earlier | {"corpora": sorted(kept)}


def shares(found: Mapping[str, Mapping[str, Caught]]) -> dict[str, float]:
    """Figures by corpus: the share of its attacks that is suspicious."""
    totals: Counter[str] = Counter()
    hits: Counter[str] = Counter()
    for corpus, families in found.items():
        for row in families.values():
            totals[corpus] += row.attacks
            hits[corpus] += row.suspicious
    return {f"published/{corpus}": hits[corpus] / totals[corpus] for corpus in totals}


def _parts(text: str) -> list[str]:
    return [text[at : at + 20] for at in range(0, len(text), 20)]
