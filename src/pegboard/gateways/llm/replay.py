"""Recorded requests through the filters of another configuration; no provider is asked anything."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from pegboard.errors import PegboardError
from pegboard.gateways.llm.codec import Request
from pegboard.gateways.llm.codecs import codec_for, generic_codecs
from pegboard.gateways.llm.filtering import Filter, Rewritten
from pegboard.gateways.llm.history import KEPT_BY_PROVIDERS
from pegboard.gateways.llm.policies import Policies, Treatment
from pegboard.gateways.llm.recording import Recorded
from pegboard.model import Tokens
from pegboard.settings.llm import LlmSettings


class NotReplayed(PegboardError):  # noqa: N818
    """What a recorded request would become cannot be said; ``why`` is a code."""

    code = "not_replayed"

    def __init__(self, why: str) -> None:
        super().__init__(f"The request cannot be replayed: {why}.")
        self.why = why


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """What was picked of a request's tools: their names, how many they are, and their tokens; 0 if not counted."""

    names: frozenset[str]
    tools: int
    tokens: Tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """What two configurations pick of one request, and the calls that the model made of tools it was offered."""

    before: Choice
    after: Choice
    called: tuple[str, ...]
    was_filtered: bool
    """Whether the model did not see what the first one had removed, and so could not call it."""


class RecordedClock:
    """Stands at the moment of the request that is replayed."""

    def __init__(self) -> None:
        self.now = 0.0

    def time(self) -> float:
        return self.now

    def monotonic(self) -> float:
        return self.now


class Replay:
    """Replays one request after another, in the order in which they were recorded."""

    def __init__(self, settings: LlmSettings, filters: Mapping[str, Filter], clock: RecordedClock) -> None:
        """Raises ConfigError for options that make no sense together."""
        self._keys = settings.keys
        self._policies = Policies(settings)
        self._generic = generic_codecs(settings.upstreams)
        self._filters = filters
        self._clock = clock

    async def compare(self, recorded: Recorded) -> Compared:
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
        return Compared(
            before=_choice(request, recorded.kept, Tokens(recorded.tokens_after), whole),
            after=_choice(request, after, filtered.tokens_after if filtered else whole, whole),
            called=tuple(name for name in recorded.called if name in request.names),
            was_filtered=recorded.outcome == "filtered",
        )

    async def _again(self, recorded: Recorded) -> Rewritten:
        """What the gateway would do, were it not in the shadow."""
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
        if codec.name in KEPT_BY_PROVIDERS and recorded.answer and rewritten.request is not None:
            filter_.remember(recorded.owner, recorded.answer, rewritten.request, recorded.called)
        return rewritten

    def _treatment(self, recorded: Recorded, model: str) -> Treatment:
        """A key that this configuration does not have is treated as none."""
        key = recorded.key if recorded.key in self._keys else None
        treatment = self._policies.of(recorded.upstream, model, key, recorded.wishes)
        return replace(treatment, shadow=False, fails_open=True)


def _choice(request: Request, kept: list[str], tokens: Tokens, whole: Tokens) -> Choice:
    """All tools have all tokens, also where those were not counted because there was nothing to pick."""
    everything = len(kept) == len(request.tools)
    return Choice(names=frozenset(kept), tools=len(kept), tokens=(tokens or whole) if everything else tokens)
