"""A call of a tool as the client knows it, and the same as a call of `call_tool`. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from pegboard.errors import RequestNotUnderstood
from pegboard.gateways.llm.reading import read, readable, text_of
from pegboard.gateways.llm.way_back.edits import fields_of, loaded, written

CUT_OFF = re.compile(r'\s*\{\s*"name"\s*:\s*("(?:[^"\\]|\\.)*")\s*,\s*"arguments"\s*:\s*(.*)', re.DOTALL)
"""The beginning of a call whose end the model did not get to say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A call of a tool of the caller's. ``arguments`` is JSON, as far as the model says it right."""

    name: str
    arguments: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """Reads the calls of ``own``, as `call_tool` is called, that become native ones.

    Those that do not pass are left as they are, or dropped where it ``drops`` them. ``offered`` is the request's array
    of tools, for answers that repeat it.
    """

    own: str
    passes: Callable[[Call], bool]
    drops: bool = False
    offered: bytes = b"[]"

    def native(self, arguments: str) -> Call | None:
        """What a call with these arguments is to the client."""
        call = unwrapped(arguments, self.own)
        return call if call is not None and self.passes(call) else None


def wrapped_object(name: str, arguments: bytes) -> bytes:
    """The arguments of `call_tool` where a format has them as a JSON object; the given ones stay byte for byte.

    >>> wrapped_object("fly", b'{"to": 1.0}')
    b'{"name":"fly","arguments":{"to": 1.0}}'
    """
    return b'{"name":' + written(name) + b',"arguments":' + arguments + b"}"


def wrapped_text(name: str, arguments: bytes) -> bytes:
    """The same where a format has them as JSON in a string, which is given and returned with its quotes and escapes.

    What is no JSON object becomes a string once more, so that it can be told from one.
    """
    said = text_of(read(readable(arguments)))
    inner = arguments[1:-1] if loaded(said) is not None else written(json.dumps(said))[1:-1]
    return written('{"name":' + json.dumps(name) + ',"arguments":')[:-1] + inner + b'}"'


def wrapped_in_text(name: str, arguments: bytes) -> bytes:
    """The same where the given ones are an object, and the parameter of `call_tool` is JSON in a string."""
    return wrapped_object(name, written(readable(arguments).decode()))


def unwrapped(text: str, own: str) -> Call | None:
    """The call that these arguments of `call_tool` mean; None where they name no tool.

    Understood too: arguments as JSON in a string, arguments beside the name, a call of `call_tool` within another, and
    a call that was cut off.
    """
    call = _read(text) if loaded(text) is not None else _cut_off(text)
    while call is not None and call.name == own:
        call = _read(call.arguments) if loaded(call.arguments) is not None else None
    return call


def _read(text: str) -> Call | None:
    try:
        data = text.encode()
        _, fields = fields_of(data)
    except (UnicodeEncodeError, msgspec.MsgspecError, RequestNotUnderstood):  # what only Python's JSON can read
        data = json.dumps(json.loads(text)).encode()
        _, fields = fields_of(data)
    raw = {name: data[slice(*member.value)].decode() for name, member in fields.items()}
    name = json.loads(raw.pop("name", "null"))
    if not isinstance(name, str) or not name:
        return None
    if "arguments" not in raw:
        return Call(name=name, arguments="{" + ",".join(f"{json.dumps(key)}:{said}" for key, said in raw.items()) + "}")
    given = raw["arguments"]
    if given == "null":
        return Call(name=name, arguments="{}")
    return Call(name=name, arguments=json.loads(given) if given.startswith('"') else given)


def _cut_off(text: str) -> Call | None:
    found = CUT_OFF.match(text)
    return None if found is None else Call(name=json.loads(found[1]), arguments=found[2])
