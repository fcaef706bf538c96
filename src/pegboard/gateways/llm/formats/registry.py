"""All wire formats, one row each. A new one is a folder beside the others and a row here.

Everything that depends on a request's format is in its row; no other module names a format.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from urllib.parse import unquote, urlsplit

from pegboard.errors import PegboardError
from pegboard.gateways.llm.formats.anthropic.call_tool import MessagesCallTool
from pegboard.gateways.llm.formats.anthropic.request import AnthropicMessages
from pegboard.gateways.llm.formats.anthropic.tool_references import MessagesDeferral
from pegboard.gateways.llm.formats.anthropic.tool_results import MessagesResults
from pegboard.gateways.llm.formats.anthropic.tool_search import MessagesToolSearch
from pegboard.gateways.llm.formats.bedrock.call_tool import ConverseCallTool
from pegboard.gateways.llm.formats.bedrock.request import BedrockConverse
from pegboard.gateways.llm.formats.bedrock.tool_search import ConverseToolSearch
from pegboard.gateways.llm.formats.call_tool import CallToolCodec
from pegboard.gateways.llm.formats.cohere.call_tool import CohereCallTool
from pegboard.gateways.llm.formats.cohere.request import CohereChat
from pegboard.gateways.llm.formats.cohere.tool_search import CohereToolSearch
from pegboard.gateways.llm.formats.gemini.call_tool import ContentsCallTool
from pegboard.gateways.llm.formats.gemini.request import Gemini
from pegboard.gateways.llm.formats.gemini.tool_results import ContentsResults
from pegboard.gateways.llm.formats.gemini.tool_search import ContentsToolSearch
from pegboard.gateways.llm.formats.generic.payload_policy import filtering_of
from pegboard.gateways.llm.formats.generic.request import Generic
from pegboard.gateways.llm.formats.model_providers import (
    ALIASES,
    ANTHROPIC,
    BEDROCK,
    COHERE,
    GEMINI,
    GENERIC,
    OPENAI,
    ModelProvider,
)
from pegboard.gateways.llm.formats.openai_chat.call_tool import ChatCallTool
from pegboard.gateways.llm.formats.openai_chat.request import OpenAIChat
from pegboard.gateways.llm.formats.openai_chat.tool_results import ChatResults
from pegboard.gateways.llm.formats.openai_chat.tool_search import ChatToolSearch
from pegboard.gateways.llm.formats.openai_responses.call_tool import ResponsesCallTool
from pegboard.gateways.llm.formats.openai_responses.provider_history import ResponsesHistory
from pegboard.gateways.llm.formats.openai_responses.request import OpenAIResponses
from pegboard.gateways.llm.formats.openai_responses.search_output import ResponsesDeferral
from pegboard.gateways.llm.formats.openai_responses.tool_results import ResponsesResults
from pegboard.gateways.llm.formats.openai_responses.tool_search import ResponsesToolSearch
from pegboard.gateways.llm.formats.protocol import Codec
from pegboard.gateways.llm.formats.provider_history import HistoryCodec
from pegboard.gateways.llm.formats.tool_references import DeferralCodec
from pegboard.gateways.llm.formats.tool_results import ToolResultCodec
from pegboard.gateways.llm.formats.tool_search import ToolSearchCodec
from pegboard.settings.llm import UpstreamSettings

EMPTY_SEGMENTS = re.compile(r"/{2,}")
NOWHERE = re.compile(r"(?!)")
"""Matches no path."""


def _path(pattern: str) -> re.Pattern[str]:
    """In whatever case: some servers and proxies do not tell it."""
    return re.compile(pattern, re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """A wire format: the ``provider`` whose API has it, and the code that handles it. Stateless.

    ``paths`` matches the end of the path of POST requests with this body, ``counting`` that of requests that count
    another request's tokens, ``condensing`` that of requests for the history behind an answer in a shorter form.
    ``tool_search``, ``call_tool``, ``deferral`` and ``results`` are None if the format does
    not support them. With ``history`` a request can continue an earlier answer by its id.
    """

    codec: Codec
    provider: ModelProvider
    paths: re.Pattern[str] = NOWHERE
    counting: re.Pattern[str] = NOWHERE
    condensing: re.Pattern[str] = NOWHERE
    tool_search: ToolSearchCodec | None = None
    call_tool: CallToolCodec | None = None
    deferral: DeferralCodec | None = None
    results: ToolResultCodec | None = None
    history: HistoryCodec | None = None

    @property
    def name(self) -> str:
        return self.codec.name


FORMATS: tuple[Format, ...] = (
    Format(
        codec=OpenAIChat(),
        provider=OPENAI,
        paths=_path(r"/chat/completions/?$"),
        tool_search=ChatToolSearch(),
        call_tool=ChatCallTool(),
        results=ChatResults(),
    ),
    Format(
        codec=OpenAIResponses(),
        provider=OPENAI,
        paths=_path(r"/responses(/input_tokens)?/?$"),
        counting=_path(r"/responses/input_tokens/?$"),
        condensing=_path(r"/responses/compact/?$"),
        tool_search=ResponsesToolSearch(),
        call_tool=ResponsesCallTool(),
        deferral=ResponsesDeferral(),
        results=ResponsesResults(),
        history=ResponsesHistory(),
    ),
    Format(
        codec=AnthropicMessages(),
        provider=ANTHROPIC,
        paths=_path(
            r"/messages(/count_tokens)?/?$"
            r"|/publishers/anthropic/models/[^/]+:(rawPredict|streamRawPredict)$"
            r"|/model/[^/]*anthropic\.claude[^/]*/invoke/?$"
        ),
        counting=_path(r"/messages/count_tokens/?$|/publishers/anthropic/models/count-tokens:rawPredict$"),
        tool_search=MessagesToolSearch(),
        call_tool=MessagesCallTool(),
        deferral=MessagesDeferral(),
        results=MessagesResults(),
    ),
    Format(
        codec=Gemini(),
        provider=GEMINI,
        paths=_path(r"/models/[^/]+:((stream)?generateContent|countTokens)$"),
        counting=_path(r":countTokens$"),
        tool_search=ContentsToolSearch(),
        call_tool=ContentsCallTool(),
        results=ContentsResults(),
    ),
    Format(
        codec=BedrockConverse(),
        provider=BEDROCK,
        paths=_path(r"/model/[^/]+/converse(-stream)?/?$"),
        tool_search=ConverseToolSearch(),
        call_tool=ConverseCallTool(),
    ),
    Format(
        codec=CohereChat(),
        provider=COHERE,
        paths=_path(r"/v2/chat/?$"),
        tool_search=CohereToolSearch(),
        call_tool=CohereCallTool(),
    ),
    Format(codec=Generic(), provider=GENERIC),
)
"""The first row's provider is the default for unrecognized requests: many servers are OpenAI-compatible."""


def codec_for(path: str) -> Codec | None:
    """The codec for a POST to this path (without query); None if such requests carry no tools."""
    return _codec_at(as_served(path))


def counts(path: str) -> bool:
    """Whether the path counts the tokens of another request: it must be counted as that would be sent."""
    plain = as_served(path)
    return any(each.counting.search(plain) for each in FORMATS)


def as_served(path: str) -> str:
    """The path as servers read it, however a client writes it: unescaped and without empty segments. Slashes within a
    segment stay escaped if a request with tools is served there; some servers take them for separators.

    >>> as_served("//v1/chat/completion%73"), as_served("/model/arn%3Aaws%2Fx/converse")
    ('/v1/chat/completions', '/model/arn:aws%2Fx/converse')
    >>> as_served("/v1/chat%2Fcompletions")
    '/v1/chat/completions'
    """
    if "%" not in path and "//" not in path:
        return path
    segments = (unquote(each).replace("/", "%2F") for each in path.split("/"))
    plain = EMPTY_SEGMENTS.sub("/", "/".join(segments))
    whole = EMPTY_SEGMENTS.sub("/", unquote(path))
    return whole if _codec_at(plain) is None and _codec_at(whole) is not None else plain


def condensing_codec(path: str) -> Codec | None:
    """The codec for a POST to this path if it asks for a shorter history: only the answer that it names matters."""
    plain = as_served(path)
    return next((each.codec for each in FORMATS if each.condensing.search(plain)), None)


def generic_codecs(upstreams: Mapping[str, UpstreamSettings]) -> dict[str, Codec]:
    """The codecs of upstreams with their own policy for any payload."""
    return {
        name: Generic(filtering_of(name, each.semantic_tool_filtering))
        for name, each in upstreams.items()
        if each.semantic_tool_filtering is not None
    }


def tool_search_of(codec: Codec) -> ToolSearchCodec | None:
    """The tool search of this format; None if it has none."""
    found = _row(codec)
    return None if found is None else found.tool_search


def results_of(codec: Codec) -> ToolResultCodec | None:
    """The results of tools in this format; None if they are not known."""
    found = _row(codec)
    return None if found is None else found.results


def call_tool_of(codec: Codec) -> CallToolCodec | None:
    """The support for `call_tool` in this format; None if it has none."""
    found = _row(codec)
    return None if found is None else found.call_tool


def deferral_of(codec: Codec) -> DeferralCodec | None:
    """The support for deferred tools in this format; None if it has none."""
    found = _row(codec)
    return None if found is None else found.deferral


def history_of(codec: Codec) -> HistoryCodec | None:
    """The answers that the provider keeps in this format; None if it keeps none."""
    found = _row(codec)
    return None if found is None else found.history


def provider_named(name: str) -> ModelProvider:
    """The provider for an upstream's `format` in the settings. Raises KeyError."""
    return {each.name: each for each in _providers()}[name]


def provider_of(path: str, headers: Collection[bytes]) -> ModelProvider:
    """The provider that a request is for, by what only one provider has: ``headers`` (lowercase) first, then paths."""
    by_header = (each for each in _providers() if not {*each.detection.headers}.isdisjoint(headers))
    by_path = (each for each in _providers() if path.startswith(each.detection.paths))
    return next(chain(by_header, by_path), FORMATS[0].provider)


def is_model_path(path: str) -> bool:
    """Whether a path belongs to a provider's API."""
    patterns = (each.detection.api for each in _providers())
    return any(pattern is not None and pattern.match(path) for pattern in patterns)


def key_headers() -> tuple[bytes, ...]:
    """The headers in which clients send keys; those that providers expect come first."""
    auths = [each.auth for each in _providers()]
    return tuple(dict.fromkeys([*(each.header for each in auths), *(other for each in auths for other in each.others)]))


def key_parameters() -> frozenset[str]:
    """The query parameters in which clients send keys."""
    return frozenset(each.auth.query for each in _providers()) - {""}


def takes_allowed_tools(upstream: UpstreamSettings) -> bool:
    """Whether an upstream is known to accept a list of allowed tools."""
    host = provider_named(upstream.format).allowed_tools_at
    return bool(host) and urlsplit(upstream.url).hostname == host


def error_body(error: PegboardError, status: int, provider: ModelProvider) -> bytes:
    """The body of an error response in the provider's form."""
    return json.dumps(provider.errors(error, status), ensure_ascii=False).encode()


def priced_as(name: str) -> str:
    """The provider whose cache prices apply to an upstream of this `format`."""
    return provider_named(name).prices or name


def _codec_at(plain: str) -> Codec | None:
    return next((each.codec for each in FORMATS if each.paths.search(plain)), None)


def _row(codec: Codec) -> Format | None:
    return next((each for each in FORMATS if each.name == codec.name), None)


def _providers() -> Iterator[ModelProvider]:
    """The providers in row order, with repetitions; last those without formats of their own."""
    return chain((each.provider for each in FORMATS), ALIASES)
