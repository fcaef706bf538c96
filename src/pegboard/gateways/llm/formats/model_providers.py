"""The APIs of the known model providers, except for the bodies of requests: paths, headers, keys and errors."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from pegboard.errors import PegboardError

ErrorShape = Callable[[PegboardError, int], Mapping[str, Any]]
"""Makes the JSON of an error response with this HTTP status, in the form that the provider's clients understand."""
OPENAI_ERRORS: Mapping[int, str] = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "insufficient_quota",
    403: "permission_error",
    404: "invalid_request_error",
    413: "invalid_request_error",
    429: "rate_limit_error",
}
ANTHROPIC_ERRORS: Mapping[int, str] = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
}
GEMINI_STATUSES: Mapping[int, str] = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    402: "RESOURCE_EXHAUSTED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    413: "INVALID_ARGUMENT",
    429: "RESOURCE_EXHAUSTED",
    502: "UNAVAILABLE",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}
BEDROCK_ERRORS: Mapping[int, str] = {
    400: "ValidationException",
    401: "AccessDeniedException",
    402: "ServiceQuotaExceededException",
    403: "AccessDeniedException",
    404: "ResourceNotFoundException",
    429: "ThrottlingException",
    413: "ValidationException",
    503: "ServiceUnavailableException",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Auth:
    """``header`` carries the key, with the scheme ``before`` it.

    Clients may also send a key in one of the ``others`` or in the ``query`` parameter of this name.
    """

    header: bytes
    before: bytes = b""
    others: tuple[bytes, ...] = ()
    query: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Detection:
    """How to recognize the API of a request that names no upstream.

    Only this provider's clients send ``headers`` (lowercase), and no other API has paths that begin with ``paths``.
    ``api`` matches the beginning of every path of the API, even if another API shares that path.
    """

    headers: tuple[bytes, ...] = ()
    paths: tuple[str, ...] = ()
    api: re.Pattern[str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelProvider:
    """An API with one or more wire formats; ``name`` is the `format` of upstreams in the settings.

    ``allowed_tools_at`` is the host that is known to accept a list of allowed tools in `tool_choice`. ``prices`` names
    the provider whose cache prices apply, if it is another one.
    """

    name: str
    auth: Auth
    errors: ErrorShape
    detection: Detection = Detection()
    allowed_tools_at: str = ""
    prices: str = ""


def openai_error(error: PegboardError, status: int) -> Mapping[str, Any]:
    kind = OPENAI_ERRORS.get(status, "api_error")
    return {"error": {"message": str(error), "type": kind, "param": None, "code": error.code}}


def anthropic_error(error: PegboardError, status: int) -> Mapping[str, Any]:
    return {"type": "error", "error": {"type": ANTHROPIC_ERRORS.get(status, "api_error"), "message": str(error)}}


def gemini_error(error: PegboardError, status: int) -> Mapping[str, Any]:
    return {"error": {"code": status, "message": str(error), "status": GEMINI_STATUSES.get(status, "INTERNAL")}}


def bedrock_error(error: PegboardError, status: int) -> Mapping[str, Any]:
    return {"message": str(error), "__type": BEDROCK_ERRORS.get(status, "InternalServerException")}


def cohere_error(error: PegboardError, status: int) -> Mapping[str, Any]:
    return {"message": str(error)}


OPENAI = ModelProvider(
    name="openai",
    auth=Auth(header=b"authorization", before=b"Bearer ", others=(b"api-key",)),
    errors=openai_error,
    detection=Detection(
        api=re.compile(r"/v1/.|/(chat/completions|completions|embeddings)/?$|/(responses|models)(/|$)")
    ),
    allowed_tools_at="api.openai.com",
)
"""Shared by Chat Completions and Responses. Azure's clients send the key in `api-key`, and many servers have paths
without `/v1`. Most OpenAI-compatible servers answer a list of allowed tools with a 400."""
ANTHROPIC = ModelProvider(
    name="anthropic",
    auth=Auth(header=b"x-api-key"),
    errors=anthropic_error,
    detection=Detection(headers=(b"anthropic-version",), paths=("/v1/messages",), api=re.compile(r"/v1/.")),
)
GEMINI = ModelProvider(
    name="gemini",
    auth=Auth(header=b"x-goog-api-key", query="key"),
    errors=gemini_error,
    detection=Detection(
        headers=(b"x-goog-api-key", b"x-goog-api-client"),
        paths=("/v1beta/",),
        api=re.compile(r"/(v1|v1beta|v1alpha|upload/v1beta|upload/v1alpha)/."),
    ),
)
GENERIC = replace(OPENAI, name="generic", detection=Detection(), allowed_tools_at="")
"""An API of unknown shape: keys and errors are those of OpenAI, and its requests are never detected."""
AZURE = replace(
    OPENAI,
    name="azure",
    auth=Auth(header=b"api-key", others=(b"authorization",)),
    detection=Detection(),
    allowed_tools_at="",
    prices="openai",
)
"""Azure OpenAI: the formats of OpenAI at `/openai/deployments/NAME/…` and `/openai/v1/…`, with the key in `api-key`."""
BEDROCK = ModelProvider(
    name="bedrock",
    auth=Auth(header=b"authorization", before=b"Bearer "),
    errors=bedrock_error,
    detection=Detection(paths=("/model/",), api=re.compile(r"/model/.")),
)
"""Amazon Bedrock Runtime, with a Bedrock API key. Requests signed with SigV4 are never rewritten."""
COHERE = ModelProvider(
    name="cohere",
    auth=Auth(header=b"authorization", before=b"Bearer "),
    errors=cohere_error,
    detection=Detection(paths=("/v2/chat", "/v2/embed", "/v2/rerank"), api=re.compile(r"/v2/(chat|embed|rerank)(/|$)")),
)
ALIASES = (AZURE,)
"""Providers whose formats are another provider's, with keys of their own."""
