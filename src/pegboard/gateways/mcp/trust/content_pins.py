"""Approved definitions of prompts, resources and skills, under the policy for tools (M28)."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from typing import TypeVar

from pegboard.catalog import compact_json
from pegboard.errors import PegboardError
from pegboard.events import DefinitionChanged
from pegboard.gateways.mcp.resources.resource_listing import KINDS, Kind
from pegboard.model import Fingerprint, JsonObject, Pin, ServerName, ToolId
from pegboard.protocols import Clock, EventSink, Pins
from pegboard.settings.storage import PinPolicy
from pegboard.upstreams.server_lists import MOST_NAME_BYTES

LOGGER = logging.getLogger(__name__)

PINNED = ("name", "title", "description", "arguments", "uri", "uriTemplate", "mimeType", "frontmatter", "resources")
"""What of an item is pinned: what a model reads, and the digests of a skill's files. Sizes and dates change by
themselves."""

SHOWN = 100
"""Characters of a very long name that its pin has."""
MOST_KEPT = 1_000
"""Items of one kind of a server that are remembered beside those that it lists now."""
T = TypeVar("T")


class ContentPins:
    """The pins of prompts, resources, templates and skills. A pin is called ``SERVER/KIND/NAME``.

    What is listed for the first time counts as approved. Under `quarantine`, a changed item is left out of the lists
    until it is approved, and one that the store cannot tell about is left out too.
    """

    def __init__(
        self,
        store: Pins,
        policy: PinPolicy,
        *,
        events: EventSink,
        clock: Clock,
        is_off: Callable[[ToolId, Fingerprint], bool] = lambda pin, seen: False,
    ) -> None:
        """``is_off`` says whether an operator has rejected this definition of an item."""
        self.policy: PinPolicy = policy
        self._store = store
        self._is_off = is_off
        self._events = events
        self._clock = clock
        self._known: dict[tuple[ServerName, Kind], Mapping[ToolId, Pin]] = {}
        self._told: dict[tuple[ServerName, Kind], Mapping[ToolId, Fingerprint]] = {}

    async def admitted(self, server: ServerName, kind: Kind, items: Sequence[JsonObject]) -> Sequence[JsonObject]:
        """The items of a server that may be listed."""
        if self.policy == "allow" or not items:
            return items
        named = [(pin_of(server, kind, item), item) for item in items]
        pins = await self._pins((server, kind), dict(named))
        before, told = self._told.get((server, kind), {}), dict[ToolId, Fingerprint]()
        shown = []
        for pin, item in named:
            seen, approved = print_of(item), pins[pin].approved if pin in pins else None
            held_back = (self.policy == "quarantine" and approved != seen) or self._is_off(pin, seen)
            if approved is not None and approved != seen:
                told[pin] = seen
                if before.get(pin) != seen:
                    self._tell(pin, approved, seen, held_back=held_back)
            if not held_back:
                shown.append(item)
        self._told[server, kind] = _latest(before, told)
        return shown

    async def _pins(self, of: tuple[ServerName, Kind], items: Mapping[ToolId, JsonObject]) -> Mapping[ToolId, Pin]:
        """The pins ``of`` a server's list, after what is new has been recorded; if the store fails, those of its last
        answer."""
        seen = {pin: print_of(item) for pin, item in items.items()}
        try:
            pins = await self._store.put(seen, texts={pin: json.dumps(_pinned(item)) for pin, item in items.items()})
        except PegboardError as error:
            LOGGER.warning("Approved prompts and resources cannot be read: %s", error)
        else:
            self._known[of] = _latest(self._known.get(of, {}), {pin: pins[pin] for pin in items if pin in pins})
        return self._known.get(of, {})

    def _tell(self, pin: ToolId, approved: Fingerprint, seen: Fingerprint, *, held_back: bool) -> None:
        at = self._clock.time()
        self._events.emit(DefinitionChanged(at=at, tool=str(pin), approved=approved, seen=seen, held_back=held_back))
        what = "held back" if held_back else "used anyway"
        LOGGER.warning(
            "The definition of %s differs from the approved one; it is %s. `pegboard pins diff` shows it, "
            "`pegboard pins approve` approves it.",
            ascii(str(pin)),
            what,
        )


def _latest(before: Mapping[ToolId, T], new: Mapping[ToolId, T]) -> Mapping[ToolId, T]:
    """Both, the oldest ones forgotten: a server may list something else each time, and two users' lists may differ."""
    both = {**{pin: value for pin, value in before.items() if pin not in new}, **new}
    return dict(islice(both.items(), max(0, len(both) - max(MOST_KEPT, len(new))), None))


def pin_of(server: ServerName, kind: Kind, item: JsonObject) -> ToolId:
    """The name of an item's pin. No tool has it (`pegboard.trust.tool_keys`). Of an address that is longer than every
    store takes it has the beginning and a hash.

    >>> str(pin_of(ServerName("notes"), "prompts", {"name": "review"}))
    'notes/prompts/review'
    """
    name = f"{kind}/{item.get(KINDS[kind].identity, '')}"
    if len(name.encode("utf-8", "surrogatepass")) > MOST_NAME_BYTES:
        name = f"{name[:SHOWN]}…{hashlib.sha256(name.encode('utf-8', 'surrogatepass')).hexdigest()}"
    return ToolId(server, name)


def print_of(item: JsonObject) -> Fingerprint:
    """The fingerprint of what is pinned of an item."""
    data = compact_json(_pinned(item)).encode("utf-8", "surrogatepass")
    return Fingerprint(hashlib.sha256(data).hexdigest())


def _pinned(item: JsonObject) -> JsonObject:
    return {key: item[key] for key in PINNED if key in item}
