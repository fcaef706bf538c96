"""Translation between the client's tool calls and calls of `call_tool`. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from pegboard.errors import RequestNotUnderstood
from pegboard.gateways.llm.formats.edits import fields_of, loaded, strictly_loaded, written
from pegboard.gateways.llm.formats.json_reader import read, text_of
from pegboard.lone_surrogates import readable

STRING = r'"(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))+"'
"""A JSON string that is not empty."""
CUT_OFF = re.compile(rf'\s*\{{\s*"name"\s*:\s*({STRING})\s*,\s*"arguments"\s*:\s*(.*)', re.DOTALL)
"""The beginning of a call that was cut off."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TranslatedCall:
    """A call of one of the caller's tools. ``arguments`` is JSON, if the model wrote it correctly."""

    name: str
    arguments: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """Translates calls of ``own``, the name of `call_tool` in a request, to native ones.

    ``meant`` is the call with the whole name of its tool. Calls that do not pass are left unchanged, or removed if
    ``drops`` is set. ``offered`` is the request's array of tools, for answers that repeat it.
    """

    own: str
    passes: Callable[[TranslatedCall], bool]
    meant: Callable[[TranslatedCall], TranslatedCall]
    drops: bool = False
    offered: bytes = b"[]"

    def native(self, arguments: str) -> TranslatedCall | None:
        """The native call for these arguments; None if it does not pass."""
        call = unwrapped(arguments, self.own)
        if call is None:
            return None
        call = self.meant(call)
        return call if self.passes(call) else None


def wrapped_object(name: str, arguments: bytes) -> bytes:
    """The arguments of `call_tool` if the format has them as a JSON object; the given ones stay byte for byte.

    >>> wrapped_object("fly", b'{"to": 1.0}')
    b'{"name":"fly","arguments":{"to": 1.0}}'
    """
    return b'{"name":' + written(name) + b',"arguments":' + arguments + b"}"


def wrapped_text(name: str, arguments: bytes) -> bytes:
    """The same if the format has them as JSON in a string, given and returned with quotes and escapes.

    Anything but a JSON object is encoded as a string once more, to keep the two apart. Arguments that are an object
    already (Mistral's API takes both) stay one.
    """
    if arguments.startswith(b"{"):
        return wrapped_object(name, arguments)
    said = text_of(read(readable(arguments)))
    inner = arguments[1:-1] if strictly_loaded(said) is not None else written(json.dumps(said))[1:-1]
    return written('{"name":' + json.dumps(name) + ',"arguments":')[:-1] + inner + b'}"'


def wrapped_in_text(name: str, arguments: bytes) -> bytes:
    """The same if the given arguments are an object and the parameter of `call_tool` is JSON in a string."""
    return wrapped_object(name, written(readable(arguments).decode()))


def unwrapped(text: str, own: str) -> TranslatedCall | None:
    """The call that these arguments of `call_tool` mean; None if they name no tool.

    Also accepts arguments as JSON in a string, arguments beside the name, a call of `call_tool` within another, and a
    call that was cut off.
    """
    call = _read(text) if loaded(text) is not None else _cut_off(text)
    while call is not None and call.name == own:
        call = _read(call.arguments) if loaded(call.arguments) is not None else None
    return call


def _read(text: str) -> TranslatedCall | None:
    try:
        data = text.encode()
        raw = {name: data[slice(*member.value)].decode() for name, member in fields_of(data)[1].items()}
    except (UnicodeEncodeError, msgspec.MsgspecError, RequestNotUnderstood):  # only Python's JSON reader accepts it
        raw = {name: json.dumps(value) for name, value in json.loads(text).items()}
    name = json.loads(raw.pop("name", "null"))
    if not isinstance(name, str) or not name:
        return None
    if "arguments" not in raw:
        return TranslatedCall(
            name=name, arguments="{" + ",".join(f"{json.dumps(key)}:{said}" for key, said in raw.items()) + "}"
        )
    given = raw["arguments"]
    if given == "null":
        return TranslatedCall(name=name, arguments="{}")
    return TranslatedCall(name=name, arguments=json.loads(given) if given.startswith('"') else given)


def _cut_off(text: str) -> TranslatedCall | None:
    found = CUT_OFF.match(text)
    return None if found is None else TranslatedCall(name=json.loads(found[1]), arguments=found[2])
