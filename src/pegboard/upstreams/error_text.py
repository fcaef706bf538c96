"""Error messages about servers, without secrets."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from urllib.parse import quote

import mcp_types as types
from mcp import MCPError
from pydantic import ValidationError

from pegboard.errors import NotCarriedOut, PegboardError, UpstreamError
from pegboard.settings.server_spec import SAFE, SECRET_LENGTH, ServerSpec
from pegboard.upstreams.http_transport import (
    BROKE_OFF,
    MORE_SCOPES,
    NO_ANSWER,
    NOT_REACHED,
    NOT_RENEWED,
    REFUSED,
    SIGN_IN,
)
from pegboard.upstreams.line_reader import UNPARSED, Size

WHY_CHARACTERS = 200
NAME = re.compile(r"\b[A-Z][A-Z0-9_]{2,63}\b")
MOST_NAMED = 5
ALNUM = re.compile("[A-Za-z0-9]+")
"""What no notation writes otherwise."""
NAMED_ESCAPES: Mapping[str, str] = {"\n": "n", "\r": "r", "\t": "t"}


@dataclass(frozen=True, slots=True)
class Redactor:
    """Replaces the secrets of a server's configuration by ``***`` (M30)."""

    spec: ServerSpec
    environment: Mapping[str, str]
    resolved: set[str] = field(default_factory=set, repr=False)
    """The secrets that were read from a keyring, a file or a command."""
    tokens: list[set[str]] = field(default_factory=list, repr=False)
    """Sets of tokens, which change with each renewal."""

    def __call__(self, text: str) -> str:
        found = self.resolved.union(*self.tokens)
        read = {secret for secret in found if len(secret) >= SECRET_LENGTH}
        for secret in sorted(self.spec.secrets(self.environment) | read, key=len, reverse=True):
            text = text.replace(secret, "***")
            if ("%" in text or "\\" in text) and _may_be_spelled(secret, text):
                text = re.sub(_spelled(secret), "***", text)
        return text


def _may_be_spelled(secret: str, text: str) -> bool:
    """Whether to search the text for other spellings, which takes far longer than for the words of the secret."""
    return ALNUM.fullmatch(secret) is None and all(word in text for word in ALNUM.findall(secret))


def _spelled(secret: str) -> str:
    """A pattern for a secret as it stands in a URL, in JSON or in a quoted text, with the escapes of these.

    >>> re.sub(_spelled("a<b'c"), "***", r"?key=a%3Cb'c 'a<b\\'c'")
    "?key=*** '***'"
    """
    parts = re.findall(r"\\+|.", secret, re.DOTALL)
    return _begin(parts[0]) + "".join(map(_spelled_part, parts))


def _begin(part: str) -> str:
    """What a match begins with: a run of backslashes is searched once, not again from each of them."""
    if part.startswith("\\"):
        return r"(?<!\\)(?<!%5[Cc])"
    return "" if ALNUM.match(part) else r"(?<!\\)"


def _spelled_part(part: str) -> str:
    if part.startswith("\\"):
        return r"(?:\\|(?i:%5C))++"
    if ALNUM.match(part):
        return part
    named = rf"|(?<=\\){NAMED_ESCAPES[part]}" if part in NAMED_ESCAPES else ""
    coded = f"{quote(part, safe='', errors='replace')}|{_code_units(part)}"
    return rf"\\*+(?:{re.escape(part)}|(?i:{coded}){named})"


def _code_units(character: str) -> str:
    """A pattern for the escape of a character behind its backslash: JSON writes two code units for what is beyond
    U+FFFF, and Python's `ascii` eight digits, or two up to U+00FF."""
    number = ord(character)
    if number <= 0xFFFF:
        return f"u{number:04x}" + (f"|x{number:02x}" if number <= 0xFF else "")
    high, low = divmod(number - 0x10000, 0x400)
    return rf"u{0xD800 + high:04x}\\++u{0xDC00 + low:04x}|u{number:08x}"


def missing_variables(spec: ServerSpec, environment: Mapping[str, str], words: str) -> str:
    """Advice if a server's output names variables that are set here but not passed to it; empty otherwise."""
    given = {*SAFE, *spec.env}
    named = [name for name in NAME.findall(words) if name in environment and name not in given]
    if spec.is_http or spec.inherit_env or not named:
        return ""
    names = list(dict.fromkeys(named))[:MOST_NAMED]
    put = ", ".join(f'"{name}": "${{{name}}}"' for name in names)
    return f' It mentions {", ".join(names)}, which it is not given: write "env": {{{put}}} in its entry.'


def described(error: BaseException) -> str:
    """One sentence per error. A connection closed before the first answer means that the program ended."""
    return " ".join(_sentence(each) for each in _leaves(error))


def _sentence(error: BaseException) -> str:
    if isinstance(error, PegboardError):
        return str(error)
    if isinstance(error, MCPError):
        closed = error.code == types.CONNECTION_CLOSED
        return "It ended or closed the connection before it answered." if closed else f"{error.message}."
    return f"{type(error).__name__}: {error}."


def _leaves(error: BaseException) -> Iterator[BaseException]:
    if not isinstance(error, BaseExceptionGroup):
        yield error
        return
    for each in error.exceptions:
        yield from _leaves(each)


class ConnectionLost(UpstreamError):  # noqa: N818
    """The connection ended during a call."""


class AnswerLost(UpstreamError):  # noqa: N818
    """The answer did not arrive, or not completely, on an open connection: the server may have failed."""


class SessionExpired(NotCarriedOut):
    """An HTTP server forgot the session: connect again and retry once (M14)."""


class NeedsSignIn(NotCarriedOut):
    """The server wants a person to sign in, or to allow more than before."""

    code = "sign_in_needed"
    http_status = 401


TIMED_OUT = "The request timed out"
UNREADABLE = (UNPARSED, "Failed to parse SSE message: ", "SSE stream failed: ")
"""Prefixes of the SDK's messages about an answer that it could not read."""
BROKEN_OFF = "SSE stream ended"
UNKNOWN_EFFECT = "It is not known whether the call took effect."
NO_IDENTITY = "It is connected for each user alone, and this caller has no identity"
IDENTITY_REMEDY = "Send a token: the operator sets up [access] or [issuer], so that callers can be told apart."
NOT_EXCHANGED = "It takes tokens in exchange for the caller's own, and there is none for this caller"
EXCHANGE_REMEDY = "Call with a current token of the issuer. The gateway's log says if an exchange was refused."
NOT_GIVEN = "It asks for more rights than its authorization server gives in exchange for the caller's token"
NOT_GIVEN_REMEDY = (
    "Call with a token of the issuer that has these rights, or ask the operators of the authorization server for them. "
    "The gateway's log says why the exchange was refused."
)
OWN_SIGN_IN = (
    "Sign in yourself: a client with elicitation by URL is sent to the page when it calls a tool of the server. "
    "For other clients the operator runs `pegboard login {server} --user NAME`, and you consent."
)
UNAUTHORIZED: Mapping[str, str] = {
    SIGN_IN: "Run `pegboard login {server}`, or give its entry a token in its headers.",
    MORE_SCOPES: "Run `pegboard login {server}` to allow that, too.",
    NOT_RENEWED: "Try again later; `pegboard whoami` says which tokens there are.",
    REFUSED: "Give its entry a token that holds.",
}
"""Remedies for a server that refuses a request without the right token."""


def sign_in_remedy(server: str, reason: str) -> str:
    """What to do if a server refused a request; empty for another reason."""
    return next((remedy.format(server=server) for why, remedy in UNAUTHORIZED.items() if why in reason), "")


def needs_sign_in(server: str) -> NeedsSignIn:
    return NeedsSignIn(server, f"Server {server!r}: {SIGN_IN}.", remedy=sign_in_remedy(server, SIGN_IN))


def needs_own_sign_in(server: str, user: str, *, exchanges: bool) -> NeedsSignIn:
    """For a server with ``per_user``: of this user, or of a caller without identity if it is empty. ``exchanges``: its
    tokens come from an exchange of the caller's own."""
    if user and exchanges:
        return NeedsSignIn(server, f"Server {server!r}: {NOT_EXCHANGED}.", remedy=EXCHANGE_REMEDY)
    if not user:
        return NeedsSignIn(server, f"Server {server!r}: {NO_IDENTITY}.", remedy=IDENTITY_REMEDY)
    return NeedsSignIn(server, f"Server {server!r}: {SIGN_IN}.", remedy=OWN_SIGN_IN.format(server=server))


def told_to_user(error: NeedsSignIn, server: str, user: str, *, exchanges: bool) -> NeedsSignIn:
    """The refusal of a request at a server with ``per_user``, with what this user can do."""
    if user and exchanges and MORE_SCOPES in error.message:
        return NeedsSignIn(server, error.message.replace(MORE_SCOPES, NOT_GIVEN), remedy=NOT_GIVEN_REMEDY)
    return NeedsSignIn(server, error.message, remedy=needs_own_sign_in(server, user, exchanges=exchanges).remedy)


def waits_for_sign_in(error: BaseException) -> bool:
    """Whether a connection ended because nobody has signed in."""
    return any(SIGN_IN in str(each) for each in _leaves(error))


def failed_call(error: MCPError | ValidationError, server: str, tool: str, seconds: float) -> Exception:
    """The error for a call that failed; errors that the server itself sent stay unchanged (M8). ``seconds`` was its
    limit."""
    if isinstance(error, ValidationError):
        return UpstreamError(
            server,
            f"Server {server!r} answered {tool!r} with an invalid result.",
            remedy="Report it to the server's authors.",
        )
    if isinstance(error.data, Size):
        return _too_large(server, tool, f"{error.data.bytes:,} bytes, but {error.data.limit:,} are allowed")
    match error.code, error.message:
        case types.CONNECTION_CLOSED, "Connection closed":
            return ConnectionLost(
                server,
                f"Server {server!r} closed the connection during the call.",
                remedy="It is being restarted; it is not known whether the call took effect.",
            )
        case types.REQUEST_TIMEOUT, message if message == TIMED_OUT:
            return AnswerLost(
                server,
                f"Server {server!r} did not answer within {seconds:g} s.",
                remedy="Raise call_timeout, or ask for less.",
            )
        case types.INVALID_REQUEST, message if remedy := sign_in_remedy(server, message):
            kind = NeedsSignIn if message.startswith((SIGN_IN, MORE_SCOPES)) else NotCarriedOut
            return kind(server, f"Server {server!r}: {message}.", remedy=remedy)
        case types.INVALID_REQUEST, "Session terminated":
            return SessionExpired(
                server, f"Server {server!r} forgets its sessions immediately.", remedy="Try again later."
            )
        case types.CONNECTION_CLOSED, message if message == NO_ANSWER or message.startswith(BROKEN_OFF):
            return AnswerLost(server, f"Server {server!r} broke off its answer to {tool!r}.", remedy=UNKNOWN_EFFECT)
        case types.CONNECTION_CLOSED, message if message == NOT_REACHED:
            return NotCarriedOut(
                server,
                f"Server {server!r} could not be reached; {tool!r} was not sent to it.",
                remedy="Try again later, or use a tool of another server.",
            )
        case ((types.CONNECTION_CLOSED | types.PARSE_ERROR), message) if message.startswith(UNREADABLE):
            return _unreadable(server, tool, message)
    return error


def _unreadable(server: str, tool: str, message: str) -> UpstreamError:
    why = next(message.removeprefix(each) for each in UNREADABLE if message.startswith(each)).rstrip(".")
    if why == BROKE_OFF:
        return AnswerLost(server, f"Server {server!r} broke off its answer to {tool!r}.", remedy=UNKNOWN_EFFECT)
    if "byte limit" in why or "result_limit" in why:
        return _too_large(server, tool, "more than is allowed")
    why = "it is not a JSON-RPC response" if "validation error" in why else why[:WHY_CHARACTERS]
    return UpstreamError(
        server,
        f"The answer of server {server!r} to {tool!r} cannot be read: {why}.",
        remedy="Report it to the server's authors.",
    )


def _too_large(server: str, tool: str, how_much: str) -> UpstreamError:
    return UpstreamError(
        server,
        f"Server {server!r} answered {tool!r} with {how_much}.",
        remedy="Ask for less, or raise result_limit. The call was carried out.",
    )
