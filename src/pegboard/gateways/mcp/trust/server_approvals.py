"""Approved definitions of a gateway's servers: of tools, and of prompts, resources and skills beside them."""

from __future__ import annotations

from collections.abc import Callable

from pegboard.gateways.mcp.trust.content_pins import ContentPins
from pegboard.model import ToolId
from pegboard.protocols import Clock, EventSink, Pins
from pegboard.settings.storage import PinPolicy, ScanPolicy
from pegboard.trust.approvals import Approvals
from pegboard.trust.switches import Switches


class ServerApprovals(Approvals):
    """Shared by all gateways of a process. The attribute ``contents`` has the pins of everything that is no tool, under
    the policy ``contents``."""

    def __init__(
        self,
        store: Pins,
        policy: PinPolicy,
        scanning: ScanPolicy = "off",
        *,
        contents: PinPolicy = "warn",
        events: EventSink,
        clock: Clock,
        changed: Callable[[], None],
        exempt: Callable[[ToolId], bool] = lambda tool: False,
        switches: Switches | None = None,
        pinned_as: Callable[[ToolId], ToolId] = lambda tool: tool,
        doubts: Callable[[str], bool] = lambda server: False,
    ) -> None:
        super().__init__(
            store,
            policy,
            scanning,
            events=events,
            clock=clock,
            changed=changed,
            exempt=exempt,
            switches=switches,
            pinned_as=pinned_as,
            doubts=doubts,
        )
        self.contents = ContentPins(store, contents, events=events, clock=clock, is_off=self.is_item_off)

    def adopt(self, policy: PinPolicy, scanning: ScanPolicy = "off", contents: PinPolicy = "warn") -> None:
        """Use these policies from now on."""
        self.contents.policy = contents
        super().adopt(policy, scanning)
