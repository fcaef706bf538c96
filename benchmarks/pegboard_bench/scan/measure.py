"""How often the scanner is right: on real tools, which are taken to be harmless, and on planted poisons."""

from __future__ import annotations

import json
import random
import time
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from statistics import mean, median

from pegboard.catalog import Catalog
from pegboard.model import Tool
from pegboard.trust import RULES, scan, scan_content, scan_patterns
from pegboard.trust.scan import forget
from pegboard_bench.result_shapes.recordings import Recording
from pegboard_bench.scan.plant import Poison

MOST_READ = 20_000
"""Characters of a result that gateways scan at most."""
OWN = "pegboard"
TIMED = 1_500
"""Tools of a catalog that are also timed alone, at most about so many."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Alarms:
    """On real tools: how many are suspicious, how many have any finding, and both by rule; ``named``: the suspicious
    ones. ``unseen`` ones leave out tools whose texts the second stage was fitted to. Times are of the
    processor, so that other programs do not count. ``mean_ms`` and the quantiles are of a catalog that is read for the
    first time, texts that come again in it are not read again; ``alone_ms`` is the mean where each definition is read
    as if it were the first, ``patterns_ms`` the same without the second stage."""

    tools: int
    suspicious: int
    found: int
    suspicious_by_rule: dict[str, int]
    found_by_rule: dict[str, int]
    named: tuple[str, ...]
    unseen: int = 0
    unseen_suspicious: int = 0
    patterns_ms: float = 0.0
    alone_ms: float = 0.0
    p50_ms: float
    mean_ms: float
    p99_ms: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Hits:
    """Of poisons, each planted into every carrier."""

    planted: int
    caught: int
    by_kind: dict[str, tuple[int, int]]
    """Caught and planted."""

    @property
    def share(self) -> float:
        return self.caught / self.planted


def said(tool: Tool) -> str:
    """What makes two tools the same for a fit: the description, else the name."""
    return " ".join((tool.description or tool.name).casefold().split())


def alarms(catalog: Catalog, fitted_to: Collection[str] = ()) -> Alarms:
    """``fitted_to``: what `said` gives for the tools that the second stage was fitted to."""
    forget()
    verdicts, times = [], []
    for tool in catalog.tools:
        started = time.thread_time()
        verdicts.append(scan(tool))
        times.append((time.thread_time() - started) * 1000)
    by_patterns = alone = 0.0
    some = catalog.tools[:: max(1, len(catalog) // TIMED)]
    for tool in some:
        forget()
        started = time.thread_time()
        scan_patterns(tool)
        between = time.thread_time()
        scan(tool)
        alone += (time.thread_time() - between) * 1000
        by_patterns += (between - started) * 1000
    unseen = [
        each.suspicious for tool, each in zip(catalog.tools, verdicts, strict=True) if said(tool) not in fitted_to
    ]
    suspicious = [each for each in verdicts if each.suspicious]
    return Alarms(
        tools=len(verdicts),
        suspicious=len(suspicious),
        found=sum(bool(each.findings) for each in verdicts),
        suspicious_by_rule=_ordered(Counter(rule for each in suspicious for rule in each.rules)),
        found_by_rule=_ordered(Counter(rule for each in verdicts for rule in each.rules)),
        named=tuple(str(tool.id) for tool, each in zip(catalog.tools, verdicts, strict=True) if each.suspicious),
        unseen=len(unseen),
        unseen_suspicious=sum(unseen),
        patterns_ms=by_patterns / len(some),
        alone_ms=alone / len(some),
        p50_ms=median(times),
        mean_ms=mean(times),
        p99_ms=sorted(times)[int(0.99 * len(times))],
    )


def result_alarms(results: Sequence[Recording]) -> dict[str, int]:
    """Of recorded results of real servers that were read: how many are suspicious; and both of those that hold nothing
    of this repository, to whose files the second stage was fitted."""
    read = [(each, _text(each)) for each in results]
    short = [(each, text) for each, text in read if len(text) <= MOST_READ]
    unseen = [each for each, text in short if OWN not in text.casefold()]
    bad = {id(each) for each, _ in short if scan_content(each.result).suspicious}
    return {
        "results": len(short),
        "suspicious": len(bad),
        "unseen": len(unseen),
        "unseen_suspicious": sum(id(each) in bad for each in unseen),
    }


def _text(recording: Recording) -> str:
    return json.dumps(recording.result, ensure_ascii=False)


def carriers(catalog: Catalog, number: int, seed: int) -> list[Tool]:
    """Tools in which nothing is found, so that what is found in them later was planted."""
    tools = random.Random(seed).sample(catalog.tools, len(catalog))  # noqa: S311
    harmless = (tool for tool in tools if not scan(tool).findings)
    return [tool for tool, _ in zip(harmless, range(number), strict=False)]


def hits(poisons: Sequence[Poison], into: Sequence[Tool]) -> Hits:
    caught: Counter[str] = Counter()
    planted: Counter[str] = Counter()
    for poison in poisons:
        for carrier in into:
            planted[poison.kind] += 1
            caught[poison.kind] += scan(poison.planted(carrier)).suspicious
    return Hits(
        planted=planted.total(),
        caught=caught.total(),
        by_kind={kind: (caught[kind], number) for kind, number in planted.items()},
    )


def _ordered(counts: Counter[str]) -> dict[str, int]:
    return {rule: counts[rule] for rule in (*RULES, "meaning", "length") if counts[rule]}
