"""The text of a web page, one line for each block: headings, items, rows of tables, code and links stay visible."""

from __future__ import annotations

import hashlib
import re
from typing import Any

import numpy as np

from pegboard.extras import required
from pegboard.results.asked_lines import asked_places, in_utf8

PAGE = re.compile(r"\s*(?:<!doctype\s+html|<\?xml[^>]*>\s*<!doctype\s+html|<html[\s>])", re.IGNORECASE)
BEHIND = re.compile(r"\n\s*(?:<!doctype\s+html|<html[\s>])", re.IGNORECASE)
FRONT = 600
"""Most characters before a page: fetch says where it is from."""
UNSEEN = ["script", "style", "noscript", "template", "svg", "head", "iframe", "object", "canvas"]
INLINE = [
    *("a", "abbr", "b", "bdi", "bdo", "cite", "code", "data", "del", "dfn", "em", "font", "i", "ins", "kbd", "label"),
    *("mark", "q", "s", "samp", "small", "span", "strong", "sub", "sup", "td", "th", "time", "tt", "u", "var", "wbr"),
]
BEFORE = {"li": "- ", "h1": "# ", "h2": "## ", "h3": "### ", "h4": "#### ", "h5": "##### ", "h6": "###### "}
PART = 4
"""How many times as long the part of a page is as the text that it should have, at first."""
MOST_PARTS = 2
MORE = 1.5
"""By how much more than its share of text says a part is taken the second time."""
MOST_MARKS = 3_000
"""Elements that get a mark: links, cells, items, headings. The rest of a longer page is text alone, for speed."""
MOST_PIECES = 24
"""Pieces of a page about what was asked that are read."""
BESIDE = 1
"""Lines before and after one about what was asked that are read with it."""
LONG_LINES = 1_000
"""Characters of the lines of a page, on average, from which on they are divided before tags."""
DIVIDED = (b"<p", b"<li", b"<tr", b"<h", b"<div", b"<dt")
SCRIPTS = (b"script", b"style", b"svg")
FOUR = 4
FIRST = [int.from_bytes(b"<" + each[: FOUR - 1], "little") for each in SCRIPTS]
"""The first four bytes of their tags, as numbers."""
CODE = "\ue000{}-{}\ue001"
"""Stands for a block of code while blanks are removed. The hash of the page is in it, which no page can write."""
CODES = re.compile("\ue000[0-9a-f]+-[0-9]+\ue001")
TAG = re.compile(r"<([a-zA-Z]+)")
BLANKS = " \t\r\f\v\u00a0"
"""What is left out at the end of a line."""


def is_page(text: str) -> bool:
    """Whether a text is a whole HTML page.

    >>> is_page("<!DOCTYPE html><title>a</title>"), is_page("<b>a</b> is not")
    (True, False)
    """
    return PAGE.match(text) is not None


def page_start(text: str) -> int | None:
    """Where the page in a text begins, which a few lines without tags or fenced code may precede; None if it has none.

    >>> page_start("Contents of /a:\\n<html><body>a</body></html>"), page_start("```\\n<html>")
    (15, None)
    """
    if is_page(text):
        return 0
    found = BEHIND.search(text, 0, FRONT + 20)
    if found is None or found.start() > FRONT or any(sign in text[: found.start()] for sign in ("<", "```", "{")):
        return None
    return found.start()


def page_text(page: str) -> str:
    """The page as text. Addresses of links stand behind them in parentheses, and cells are separated by a tab.

    Raises ConfigError if `selectolax` is not installed.
    """
    page = page.replace("\ue000", "").replace("\ue001", "")
    hashed = hashlib.sha256(in_utf8(page)).hexdigest()
    tree = required("selectolax.lexbor", "results").LexborHTMLParser(page)
    title = tree.css_first("title")
    named = title.text(strip=True) if title is not None else ""
    tags = {tag.lower() for tag in set(TAG.findall(page))}
    tree.strip_tags([tag for tag in UNSEEN if tag in tags])
    if tree.body is None:
        return str(named)
    for element in tree.css("a[href],td,th,li,h1,h2,h3,h4,h5,h6,img[alt]")[:MOST_MARKS]:
        _mark(element)
    codes: dict[str, str] = {}
    for element in tree.css("pre"):
        mark = CODE.format(hashed, len(codes))
        codes[mark] = element.text().rstrip()
        element.inner_html = mark
    tree.unwrap_tags([tag for tag in INLINE if tag in tags])
    tree.merge_text_nodes()
    said = _without_blanks(tree.body.text(separator="\n", strip=True))
    said = CODES.sub(lambda match: codes.get(match[0], match[0]), said)
    return "\n".join(filter(None, [named if named not in said[:200] else "", said]))


def _without_blanks(text: str) -> str:
    """The text without empty lines, and without the blanks in which lines begin and end."""
    lines = (line.rstrip(BLANKS).lstrip() for line in text.split("\n"))
    return "\n".join(filter(None, lines)).strip()


def page_beginning(page: str, characters: int) -> tuple[str, float]:
    """The lines of a page's text from its beginning, of at least ``characters`` if it has as many, and the share of
    the page that they are from; 1.0 with the whole text. Only as much of the page is read as is needed.

    >>> page_beginning("<html><body><p>a</p><p>b</p></body></html>", 40)
    ('a\\nb', 1.0)
    """
    end = PART * characters
    for _ in range(MOST_PARTS):
        if end >= len(page):
            break
        text = page_text(page[:end]).rpartition("\n")[0]  # the last line may go on
        if len(text) >= characters:
            return text, end / len(page)
        end = int(MORE * end * characters / max(1, len(text)))
    return page_text(page), 1.0


def page_pieces(page: str, asked: str) -> list[str]:
    """The text of the pieces of a page that are about what was asked, the best first. The rest is not read.

    >>> page_pieces("<p>1</p>\\n<p>2</p>\\n<p>3 <b>deep</b></p>\\n<p>4</p>", "How deep?")
    ['2\\n3 deep\\n4']
    """
    raw = _without_scripts(in_utf8(page))
    if len(raw) > LONG_LINES * (raw.count(b"\n") + 1):
        for tag in DIVIDED:
            raw = raw.replace(tag, b"\n" + tag)
    lines = raw.split(b"\n")
    pieces: list[str] = []
    seen: set[int] = set()
    for at in asked_places(raw, asked)[:MOST_PIECES]:
        new = [each for each in range(max(0, at - BESIDE), at + BESIDE + 1) if each < len(lines) and each not in seen]
        seen.update(new)
        piece = b"\n".join(lines[each] for each in new).decode("utf-8", "surrogatepass")
        if at in new and (text := page_text(_after_tag(piece))):
            pieces.append(text)
    return pieces


def _without_scripts(page: bytes) -> bytes:
    """The page without the elements that have no text; one that does not end stays.

    >>> _without_scripts(b"a<svg id='1'><b/></svg>b<svgx>c</svgx><style>d")
    b'ab<svgx>c</svgx><style>d'
    """
    if len(page) < FOUR:
        return page
    begins = np.flatnonzero(np.frombuffer(page, np.uint8)[: 1 - FOUR] == ord("<"))
    first = np.ndarray((len(page) - FOUR + 1,), "<u4", page, strides=(1,))[begins]
    kept, at, endless = [], 0, set()
    for start in begins[np.isin(first, FIRST)].tolist():
        tag = next((each for each in SCRIPTS if page.startswith(each, start + 1)), b"")
        after = start + 1 + len(tag)
        if start < at or not tag or tag in endless or page[after : after + 1].isalnum():
            continue
        end = b"</" + tag + b">"
        stop = page.find(end, after)
        if stop < 0:
            endless.add(tag)
        else:
            kept.append(page[at:start])
            at = stop + len(end)
    return b"".join([*kept, page[at:]])


def _after_tag(line: str) -> str:
    """What stands behind the tag in which a line begins."""
    end, begin = line.find(">"), line.find("<")
    return line[end + 1 :] if 0 <= end < begin or begin < 0 <= end else line


def _mark(element: Any) -> None:
    tag = element.tag
    if tag == "a":
        address = element.attributes.get("href") or ""
        if address and not address.startswith(("#", "javascript:")):
            element.insert_child(f" ({address})")
    elif tag in ("td", "th"):
        element.insert_child("\t")
    elif tag == "img":
        element.insert_after(f"[{element.attributes.get('alt')}]")
    elif element.child is not None:
        element.child.insert_before(BEFORE[tag])
