"""What shaping the results of tools needs from a wire format. Without I/O."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from pegboard.gateways.llm.formats.edits import written
from pegboard.gateways.llm.formats.insertion import Fields, begins, member, objects, value
from pegboard.gateways.llm.formats.json_reader import read, text_of
from pegboard.gateways.llm.formats.json_spans import Edit, Span, cut, elements
from pegboard.gateways.llm.formats.protocol import LlmRequest
from pegboard.results.asked_lines import asked_by
from pegboard.wire_formats import Provider


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultText:
    """A text of a result. ``span`` is the value in the body that says it; another text is written there as a JSON
    string, between ``frame``. ``element`` is the place of the text among the result's parts."""

    text: str
    span: Span
    element: int = 0
    frame: tuple[bytes, bytes] = (b"", b"")


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResult:
    """A result in a request. ``tool`` is empty if the request does not say whose it is. ``elements`` are its parts, if
    it has any. A ``new`` one comes after the model's last words. ``asked`` are the words that it was called for."""

    tool: str
    texts: tuple[ResultText, ...]
    elements: tuple[Span, ...] = ()
    new: bool = False
    asked: str = ""

    @property
    def start(self) -> int:
        """Where its first text begins in the body."""
        return self.texts[0].span.start


@dataclass(slots=True)
class Words:
    """What was said before a call: the last words of the user, those of the model since, and each call's arguments."""

    user: str = ""
    model: str = ""
    calls: dict[str, str] = field(default_factory=dict)

    def by_user(self, text: str) -> None:
        if text:
            self.user, self.model = text, ""

    def by_model(self, text: str) -> None:
        self.model = text or self.model

    def before(self, call: str) -> str:
        """What a call was made for."""
        return asked_by(self.user, self.model, self.calls.get(call, ""))


class ToolResultCodec(Protocol):
    """The results of tools in one wire format."""

    @property
    def definitions(self) -> Provider:
        """The form of the request's tools."""
        ...

    def results(self, request: LlmRequest) -> Sequence[ToolResult]:
        """The results with a text, in order; none that the format marks as an error."""
        ...


def result_edits(result: ToolResult, said: Sequence[str]) -> list[Edit]:
    """Writes these texts in place of those of the result; a single text in place of several is put where the last was:
    that is where clients put cache breakpoints."""
    texts = result.texts
    if len(said) == len(texts):
        pairs = zip(texts, said, strict=True)
        return [_written(before, after) for before, after in pairs if before.text != after]
    last, gone = texts[-1], {each.element for each in texts[:-1]}
    keep = [place not in gone for place in range(len(result.elements))]
    return [*cut(result.elements, keep), _written(last, "\n".join(said))]


def content_texts(
    request: LlmRequest, content: Span | None, kinds: Sequence[str]
) -> tuple[tuple[ResultText, ...], tuple[Span, ...]]:
    """The texts of a content, which is a string or parts of which some have a `text`, and the spans of its parts."""
    if content is None:
        return (), ()
    if begins(request, content, b'"'):
        return (ResultText(text=text_of(read(request.text[slice(*content)])), span=content),), ()
    if not begins(request, content, b"["):
        return (), ()
    parts = tuple(elements(request.text, content))
    return tuple(_part_texts(request, content, parts, kinds)), parts


def raw(request: LlmRequest, given: Span | None) -> str:
    """A value as the request writes it."""
    return "" if given is None else request.text[slice(*given)].decode("utf-8")


def said_in(request: LlmRequest, content: Span | None, kinds: Sequence[str]) -> str:
    """The texts of a content, one after the other."""
    return "\n".join(each.text for each in content_texts(request, content, kinds)[0])


def result_of(
    request: LlmRequest, tool: str, content: Span | None, kinds: Sequence[str], asked: str
) -> ToolResult | None:
    """The result with this content; None if it has no text."""
    texts, parts = content_texts(request, content, kinds)
    return ToolResult(tool=tool, texts=texts, elements=parts, asked=asked) if texts else None


def entries(request: LlmRequest, name: str) -> Iterator[tuple[Span, Fields]]:
    """The objects of one of the request's arrays."""
    return objects(request, member(request, request.fields, name))


def _part_texts(
    request: LlmRequest, content: Span, parts: Sequence[Span], kinds: Sequence[str]
) -> Iterator[ResultText]:
    places: Mapping[Span, int] = {span: place for place, span in enumerate(parts)}
    for span, fields in objects(request, content):
        text = member(request, fields, "text")
        if text is not None and value(request, fields, "type") in kinds and begins(request, text, b'"'):
            yield ResultText(text=read(request.text[slice(*text)]), span=text, element=places[span])


def _written(before: ResultText, text: str) -> Edit:
    opening, closing = before.frame
    return Edit(*before.span, opening + written(text) + closing)
