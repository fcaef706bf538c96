"""What has changed in pinned definitions, as text and as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from pegboard.apps.cli.output import plain, stdout
from pegboard.catalog.ingest.mcp import tool_from_mcp
from pegboard.errors import CatalogError
from pegboard.model import Pin, Server, ServerName, ToolId, Wording
from pegboard.trust import Change, Verdict, changes, scan, scan_server

UNKNOWN = "Its text is not known: it was seen before texts were kept, or is very long."


@dataclass(frozen=True, slots=True, kw_only=True)
class Differing:
    """A definition that is not the one that was approved."""

    tool: ToolId
    pin: Pin
    wording: Wording

    @property
    def title(self) -> str:
        what = self.tool.name or "what it says of itself"
        return f"{self.tool.server}: {what}{' (new)' if self.pin.new else ''}"

    @property
    def changes(self) -> list[Change] | None:
        """None where they cannot be known."""
        if self.wording.seen is None or (self.wording.approved is None and not self.pin.new):
            return None
        return changes(self.wording.approved, self.wording.seen)

    @property
    def verdict(self) -> Verdict:
        """Of the definition as it is now."""
        if self.wording.seen is None:
            return Verdict()
        said = json.loads(self.wording.seen)
        if not self.tool.name:
            return scan_server(Server(name=ServerName(self.tool.server), **said))
        try:
            return scan(tool_from_mcp(self.tool.server, said))
        except CatalogError:
            return Verdict()


def payload(differing: Differing) -> dict[str, Any]:
    found, verdict = differing.changes, differing.verdict
    return {
        "server": differing.tool.server,
        "tool": differing.tool.name,
        "new": differing.pin.new,
        "changes": None if found is None else [asdict(each) for each in found],
        "score": round(verdict.score, 3),
        "findings": [asdict(each) for each in verdict.findings],
    }


def show(of: Sequence[Differing]) -> None:
    console = stdout()
    for each in of:
        console.print(plain("\n".join([each.title, *_lines(each)]) + "\n"), soft_wrap=True)
    if not of:
        console.print(plain("Nothing has changed."))


def _lines(of: Differing) -> Iterator[str]:
    found = of.changes
    if found is None:
        yield f"  {UNKNOWN}"
    for each in found or ():
        yield f"  {each.place}"
        yield from (f"    {line}" for line in each.marked.split("\n"))
    for finding in of.verdict.findings:
        yield f"  ! {finding.rule} ({finding.weight:.2f}) at {finding.where}: {finding.excerpt}"
