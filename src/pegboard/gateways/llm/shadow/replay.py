"""Runs recorded requests through the filters of another configuration, without any provider."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from pegboard.errors import PegboardError
from pegboard.gateways.llm.formats.protocol import LlmRequest
from pegboard.gateways.llm.formats.registry import codec_for, generic_codecs, history_of
from pegboard.gateways.llm.selection.filter import RequestFilter, RewrittenRequest
from pegboard.gateways.llm.selection.policy_rules import Policies, Treatment
from pegboard.gateways.llm.shadow.recorder import RequestRecord
from pegboard.model import Tokens
from pegboard.settings.llm import LlmSettings


class NotReplayed(PegboardError):  # noqa: N818
    """It cannot be said what a recorded request would become; ``why`` is a code."""

    code = "not_replayed"

    def __init__(self, why: str) -> None:
        super().__init__(f"The request cannot be replayed: {why}.")
        self.why = why


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayedChoice:
    """The tools selected for a request: their names, their number and their tokens; 0 if not counted."""

    names: frozenset[str]
    tools: int
    tokens: Tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayedComparison:
    """What two configurations select for one request, and the model's calls of offered tools."""

    before: ReplayedChoice
    after: ReplayedChoice
    called: tuple[str, ...]
    was_filtered: bool
    """Whether the first configuration removed tools from the request, so that the model could not call them."""


class RecordedClock:
    """A clock that stands still at the time of the replayed request."""

    def __init__(self) -> None:
        self.now = 0.0

    def time(self) -> float:
        return self.now

    def monotonic(self) -> float:
        return self.now


class RecordReplay:
    """Replays requests in the order in which they were recorded."""

    def __init__(self, settings: LlmSettings, filters: Mapping[str, RequestFilter], clock: RecordedClock) -> None:
        """Raises ConfigError for contradictory options."""
        self._keys = settings.keys
        self._policies = Policies(settings)
        self._generic = generic_codecs(settings.upstreams)
        self._filters = filters
        self._clock = clock

    async def compare(self, recorded: RequestRecord) -> ReplayedComparison:
        """Raises NotReplayed."""
        if recorded.kept is None:
            raise NotReplayed("not_picked_when_recorded")
        rewritten = await self._again(recorded)
        request = rewritten.request
        if request is None or rewritten.outcome == "failed":
            raise NotReplayed(rewritten.failure)
        filtered = rewritten.filtered
        whole = Tokens(max(recorded.tokens_before, filtered.tokens_before if filtered else 0))
        places = filtered.reached if filtered else range(len(request.tools))
        after = [request.tools[place].name for place in places]
        return ReplayedComparison(
            before=_choice(request, recorded.kept, Tokens(recorded.tokens_after), whole),
            after=_choice(request, after, filtered.tokens_after if filtered else whole, whole),
            called=tuple(name for name in recorded.called if name in request.names),
            was_filtered=recorded.outcome == "filtered",
        )

    async def _again(self, recorded: RequestRecord) -> RewrittenRequest:
        """What the gateway would do without the shadow."""
        self._clock.now = recorded.at
        filter_ = self._filters.get(recorded.upstream)
        codec = self._generic.get(recorded.upstream) or codec_for(recorded.path)
        if filter_ is None or codec is None:
            raise NotReplayed("no_upstream_of_that_name" if filter_ is None else "path_not_known")
        try:
            rewritten = await filter_.rewrite(
                codec,
                recorded.whole_body,
                path=recorded.path,
                coding="",
                owner=recorded.owner,
                conversation=recorded.conversation,
                client=recorded.client,
                treatment_of=lambda model: self._treatment(recorded, model),
            )
        except PegboardError as error:
            raise NotReplayed(error.code) from error
        if history_of(codec) is not None and recorded.answer and rewritten.request is not None:
            filter_.histories.remember(recorded.owner, recorded.answer, rewritten.request, recorded.called)
        return rewritten

    def _treatment(self, recorded: RequestRecord, model: str) -> Treatment:
        """A key that is unknown in this configuration counts as none."""
        key = recorded.key if recorded.key in self._keys else None
        treatment = self._policies.of(recorded.upstream, model, key, recorded.wishes)
        return replace(treatment, shadow=False, fails_open=True)


def _choice(request: LlmRequest, kept: list[str], tokens: Tokens, whole: Tokens) -> ReplayedChoice:
    """All tools have all tokens, even if those were not counted because there was nothing to select."""
    everything = len(kept) == len(request.tools)
    return ReplayedChoice(names=frozenset(kept), tools=len(kept), tokens=(tokens or whole) if everything else tokens)
