"""One request on its way through the LLM gateway."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pegboard.gateways.llm.exchange import Target
from pegboard.gateways.llm.filtering import Rewritten
from pegboard.gateways.llm.shadow import Shadow, so_far

NOT_READ = Rewritten(outcome="passed")
"""A request that carries no tools: its body goes on as it comes."""
OFF = Rewritten(outcome="off", reason="the policy")
"""So does one whose tools all stay, whatever it says."""


@dataclass(slots=True, kw_only=True)
class Passage:
    """A request, and what is known of it so far. ``answer`` is the id of its answer, which has ``ended`` or not yet."""

    target: Target
    started: float
    key: str | None = None
    owner: str = ""
    wishes: Mapping[str, str] = field(default_factory=dict)
    client: Mapping[str, str] = field(default_factory=dict)
    rewritten: Rewritten = NOT_READ
    shadow: Shadow | None = None
    added_ms: float = 0.0
    status: int = 0
    called: tuple[str, ...] = ()
    answer: str = ""
    ended: bool = False

    @property
    def known(self) -> Rewritten:
        """What was done to it, or as far as that is known in the shadow would have been."""
        return so_far(self.rewritten, self.shadow)
