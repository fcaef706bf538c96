"""Errors of our own in the shape that each provider's clients understand."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pegboard.errors import PegboardError
from pegboard.settings.llm import Format

GEMINI_STATUS: Mapping[int, str] = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    413: "INVALID_ARGUMENT",
    502: "UNAVAILABLE",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}
ANTHROPIC_TYPE: Mapping[int, str] = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
}
OPENAI_TYPE: Mapping[int, str] = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "invalid_request_error",
    413: "invalid_request_error",
}


def refusal(error: PegboardError, status: int, format_: Format) -> bytes:
    """The body of an error answer."""
    text = str(error)
    shape: dict[str, Any]
    match format_:
        case "anthropic":
            shape = {"type": "error", "error": {"type": ANTHROPIC_TYPE.get(status, "api_error"), "message": text}}
        case "gemini":
            shape = {"error": {"code": status, "message": text, "status": GEMINI_STATUS.get(status, "INTERNAL")}}
        case "openai" | "generic":
            kind = OPENAI_TYPE.get(status, "api_error")
            shape = {"error": {"message": text, "type": kind, "param": None, "code": error.code}}
    return json.dumps(shape, ensure_ascii=False).encode()
