"""The changes of a definition, place by place, for the person who approves it."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any, Literal

from pegboard.catalog import ordered
from pegboard.trust.findings import escaped

WORDS = re.compile(r"\s+|\S+")
LIST = re.compile(r"[\[{(]?\s*([^\s,]+(?:\s*,\s*[^\s,]+)+)\s*[\]})]?")
"""A printed list: words separated by commas, as Python prints a set or joins one."""
UNORDERED = frozenset({"default", "example", "examples"})
"""Keywords of a schema that hold values and not prose, so that their text may be a printed set."""
CONTEXT = 8
"""Words and spaces shown on each side of a change."""
MOST_WORDS = 4000
"""Maximum words and spaces of a text whose words are compared one by one."""
MOST_PAIRS = 20_000
"""Maximum pairs of equal words of two texts whose words are compared one by one: the time of a comparison grows with
them."""
Part = tuple[Literal["same", "gone", "new"], str]
MARKS: Mapping[str, str] = {"same": "{}", "gone": "[-{}-]", "new": "{{+{}+}}"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A change at a place such as `inputSchema.properties.x.type`. ``before`` or ``after`` is None if it had no
    value."""

    place: str
    before: str | None
    after: str | None

    @property
    def marked(self) -> str:
        """Both versions in one text, marked `[-removed-]` and `{+added+}`; invisible characters are escaped.

        >>> Change(place="description", before="Adds two numbers", after="Adds three numbers").marked
        'Adds [-two-]{+three+} numbers'
        """
        return "".join(MARKS[kind].format(text) for kind, text in self.parts)

    @property
    def parts(self) -> list[Part]:
        """Both versions in their order, with invisible characters escaped; what did not change is shortened.

        >>> Change(place="description", before="Adds two numbers", after="Adds three numbers").parts
        [('same', 'Adds '), ('gone', 'two'), ('new', 'three'), ('same', ' numbers')]
        """
        if self.before is None or self.after is None:
            return list(_sides(self.before or "", self.after or ""))
        return list(_words(self.before, self.after))


def only_order(before: str, after: str) -> bool:
    """Whether two definitions as JSON differ only in the order of items in printed lists.

    >>> only_order('{"default": "key,summary,status"}', '{"default": "status,key,summary"}')
    True
    >>> only_order('{"description": "allow,deny"}', '{"description": "deny,allow"}')
    False
    """
    one, other = (json.dumps(_unordered(ordered(json.loads(text))), sort_keys=True) for text in (before, after))
    return one == other


def changes(before: str | None, after: str) -> list[Change]:
    """The changes between two definitions as JSON, sorted by place; compared with None, everything is new."""
    old, new = ({} if text is None else dict(_leaves(ordered(json.loads(text)), "")) for text in (before, after))
    return [
        Change(place=place, before=old.get(place), after=new.get(place))
        for place in sorted(old.keys() | new.keys())
        if old.get(place) != new.get(place)
    ]


def _unordered(value: Any, key: str = "") -> Any:
    """The value with the items of printed lists sorted."""
    if isinstance(value, Mapping):
        return {name: _unordered(each, name) for name, each in value.items()}
    if isinstance(value, list):
        return [_unordered(each, key) for each in value]
    if key in UNORDERED and isinstance(value, str) and (found := LIST.fullmatch(value)):
        items = sorted(each.strip() for each in found.group(1).split(","))
        return [value[: found.start(1)], *items, value[found.end(1) :]]
    return value


def _leaves(value: Any, place: str) -> Iterator[tuple[str, str]]:
    """Every leaf with its place: texts unchanged, other values as JSON."""
    if isinstance(value, Mapping) and value:
        for name, each in value.items():
            yield from _leaves(each, f"{place}.{name}" if place else name)
    elif isinstance(value, list) and any(isinstance(each, dict | list) for each in value):
        for at, each in enumerate(value):
            yield from _leaves(each, f"{place}[{at}]")
    else:
        yield place, value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _words(before: str, after: str) -> Iterator[Part]:
    old, new = WORDS.findall(before), WORDS.findall(after)
    if max(len(old), len(new)) > MOST_WORDS:
        yield from _sides(before, after)
        return
    head = _equal(old, new)
    tail = _equal(old[head:][::-1], new[head:][::-1])
    gone, added = old[head : len(old) - tail], new[head : len(new) - tail]
    if head:
        yield "same", _shortened(old[:head], begins=True, ends=not gone and not added)
    yield from _within(gone, added)
    if tail:
        yield "same", _shortened(old[len(old) - tail :], begins=False, ends=True)


def _equal(old: list[str], new: list[str]) -> int:
    """How many words both begin with."""
    pairs = enumerate(zip(old, new, strict=False))
    return next((at for at, (one, other) in pairs if one != other), min(len(old), len(new)))


def _within(old: list[str], new: list[str]) -> Iterator[Part]:
    """The parts of texts that differ in their first and last words. Spaces are compared beside equal words alone."""
    counted = Counter(new)
    if sum(counted[word] for word in old if not word.isspace()) > MOST_PAIRS:
        yield from _sides("".join(old), "".join(new))
        return
    for kind, start, end, to_start, to_end in SequenceMatcher(str.isspace, old, new, autojunk=False).get_opcodes():
        if kind == "equal":
            yield "same", _shortened(old[start:end], begins=False, ends=False)
        else:
            yield from _sides("".join(old[start:end]), "".join(new[to_start:to_end]))


def _sides(gone: str, new: str) -> Iterator[Part]:
    if gone:
        yield "gone", escaped(gone)
    if new:
        yield "new", escaped(new)


def _shortened(same: list[str], *, begins: bool, ends: bool) -> str:
    """Unchanged words, shortened to the context of the changes beside them."""
    head, tail = 0 if begins else CONTEXT, 0 if ends else CONTEXT
    if len(same) <= head + tail + 1:
        return escaped("".join(same))
    return escaped("".join(same[:head])) + "…" + escaped("".join(same[len(same) - tail :]))
