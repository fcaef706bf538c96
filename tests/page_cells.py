"""The texts of a page of the dashboard."""

from __future__ import annotations

from html.parser import HTMLParser


class Cells(HTMLParser):
    """The texts of a page: of elements with an id, and of the cells of each table, by row."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.ids: dict[str, str] = {}
        self.tables: list[list[list[str]]] = []
        self.tags: list[str] = []
        self._id = ""
        self._in_cell = False
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self._id = dict(attrs).get("id") or ""
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("td", "th"):
            self.tables[-1][-1].append("")
            self._in_cell = True

    def handle_endtag(self, tag: str) -> None:
        self._id = ""
        if tag in ("td", "th"):
            self._in_cell = False

    def handle_data(self, data: str) -> None:
        if self._id:
            self.ids[self._id] = self.ids.get(self._id, "") + data.strip()
        if self._in_cell:
            self.tables[-1][-1][-1] += data.strip()
