"""Which policy holds for a request: that of all, then those of the rules that fit it, its key's, and its own wishes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import lru_cache

from pegboard.errors import ConfigError, PegboardError
from pegboard.gateways.llm.codecs import SemanticToolFiltering, filtering_of
from pegboard.gateways.llm.config_checks import check_names
from pegboard.gateways.llm.selection import Policy
from pegboard.gateways.llm.way_back.plan import Terms
from pegboard.routing import Profile, profile_named
from pegboard.settings.llm import LlmSettings, PolicySettings, RuleOfPolicy, UpstreamSettings, Way

WISH = "x-pegboard-"
"""How the names of the headers begin in which a request says how it wants to be treated."""
OFF = frozenset({"off", "false", "0", "no"})
MOST = 10**9
START = PolicySettings(
    filter=True,
    optional=False,
    shadow=False,
    profile="hybrid",
    always=(),
    never=(),
    protect=True,
    least_tools=10,
    least_tokens=4000,
    when_none="all",
    sticky=True,
    turns=1.0,
    fail="open",
    way_back=False,
    search_tokens=600,
)


OF_ITS_OWN = PolicySettings(least_tools=0, least_tokens=0)
"""The policy of seed 003 has no such least: what it says holds for any number of tools."""
NO_WAY_BACK = Terms()
WAYS: tuple[Way, ...] = ("whole", "tools")
BESIDE_ITS_OWN: tuple[Way, ...] = ("whole", "call_tool")
"""Of an agent that has tools of its own, which stay: what it begins with then never changes, and nothing is out of its
reach (docs/prompt-cache.md)."""


class WishNotUnderstood(PegboardError):  # noqa: N818
    """A header of a request says what makes no sense."""

    code = "wish_not_understood"
    http_status = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class Treatment:
    """How a request is treated: by which policy its tools are picked, if at all, and what a failure to pick means.

    In ``shadow`` they are picked while the request passes as it came, whatever fails.
    """

    policy: Policy
    filters: bool = True
    optional: bool = False
    fails_open: bool = True
    way_back: Terms = NO_WAY_BACK
    shadow: bool = False


class Policies:
    """The policies of one configuration. Raises ConfigError, when it is made, for one that makes no sense."""

    def __init__(self, settings: LlmSettings) -> None:
        self._settings = settings
        self._filterings = {
            name: filtering_of(name, each.semantic_tool_filtering)
            for name, each in settings.upstreams.items()
            if each.semantic_tool_filtering is not None
        }
        self._of = lru_cache(maxsize=4096)(self._settled)
        self._never = lru_cache(maxsize=4096)(self._nothing_for)
        self._check()

    def of(self, upstream: str, model: str, key: str | None, wishes: Mapping[str, str]) -> Treatment:
        """The treatment of a request; its wishes (by their names without `x-pegboard-`) only ever narrow it.

        Raises WishNotUnderstood.
        """
        settled = self._of(upstream, model, key)
        return narrowed(settled, wishes) if wishes else settled

    def profiles(self) -> frozenset[Profile]:
        """Those by which tools may be picked."""
        models = {"", *(rule.model for rule in self._settings.rules)}
        keys = (None, *self._settings.keys)
        return frozenset(
            self._settled(upstream, model, key).policy.profile
            for upstream in self._settings.upstreams
            for model in models
            for key in keys
        )

    def never_filters(self, upstream: str, key: str | None) -> bool:
        """Whether no request of this key to this upstream is filtered, whatever its model: then none need be read."""
        return self._never(upstream, key)

    def _nothing_for(self, upstream: str, key: str | None) -> bool:
        models = {"", *(rule.model for rule in self._settings.rules)}
        return not any(self._settled(upstream, model, key).filters for model in models)

    def _settled(self, upstream: str, model: str, key: str | None) -> Treatment:
        said = self._settings.policy.over(_start(self._settings.upstreams[upstream]))
        for rule in self._settings.rules:
            if _fits(rule, upstream, model, key or ""):
                said = rule.over(said)
        if key is not None:
            said = self._settings.keys[key].over(said)
        return treatment(said, self._settings.upstreams[upstream], self._filterings.get(upstream))

    def _check(self) -> None:
        check_names(self._settings)
        for upstream in self._settings.upstreams:
            for key in (None, *self._settings.keys):
                self._settled(upstream, "", key)
        for rule in self._settings.rules:
            for each in self._settings.upstreams.values():
                treatment(rule.over(self._settings.policy.over(START)), each)


def _start(upstream: UpstreamSettings) -> PolicySettings:
    """What holds before anything is said."""
    return START if upstream.semantic_tool_filtering is None else OF_ITS_OWN.over(START)


def treatment(
    said: PolicySettings, upstream: UpstreamSettings, filtering: SemanticToolFiltering | None = None
) -> Treatment:
    """``filtering`` is the policy of an upstream of the format `generic`, whose profile counts.

    Raises ConfigError for options that contradict each other.
    """
    if filtering is not None:
        profile = filtering.profile
    else:
        profile = profile_named(said.profile or "hybrid").with_overrides(
            k=said.k, threshold=said.threshold, recall=said.recall, budget=said.budget
        )
    ways = said.ways or WAYS
    if "defer" in ways and len(ways) > 1:
        raise ConfigError(
            "ways has `defer` beside others, and what it will cost is not known to be compared.",
            remedy='Name it alone, in a rule for the models that have it: ways = ["defer"].',
        )
    policy = Policy(
        profile=profile,
        always=said.always or (),
        never=said.never or (),
        protect=said.protect is not False,
        least_tools=said.least_tools or 0,
        least_tokens=said.least_tokens or 0,
        when_none=said.when_none or "all",
        sticky=said.sticky is not False,
        turns=said.turns or 1.0,
        allowed_tools=upstream.takes_allowed_tools if said.allowed_tools is None else said.allowed_tools,
        provider=upstream.format,
        ways=ways,
        beside=said.ways or BESIDE_ITS_OWN,
    )
    return Treatment(
        policy=policy,
        filters=said.filter is not False,
        optional=bool(said.optional),
        way_back=Terms(
            offered=bool(said.way_back),
            hidden_call=said.hidden_call or ("ask" if said.way_back else "pass"),
            search_tokens=said.search_tokens or 0,
        ),
        fails_open=bool(said.shadow) or said.fail != "closed",
        shadow=bool(said.shadow),
    )


def narrowed(given: Treatment, wishes: Mapping[str, str]) -> Treatment:
    """The treatment with a request's wishes: fewer tools and fewer tokens than the policy has, never more."""
    profile, never, filters = given.policy.profile, given.policy.never, given.filters
    way_back = given.way_back
    for name, value in wishes.items():
        match name:
            case "k":
                profile = replace(profile, k=min(_whole(name, value), profile.k or MOST))
            case "budget":
                profile = replace(
                    profile, budget=min(_whole(name, value), MOST if profile.budget is None else profile.budget)
                )
            case "threshold":
                profile = replace(profile, threshold=max(_number(name, value), profile.threshold or 0.0))
            case "never":
                never = (*never, *filter(None, map(str.strip, value.split(","))))
            case "filter":
                filters = filters and not (given.optional and value.strip().lower() in OFF)
            case "way-back":
                way_back = NO_WAY_BACK if value.strip().lower() in OFF else way_back
    try:
        profile.check()
    except ConfigError as error:
        raise WishNotUnderstood(error.message, remedy=error.remedy) from error
    return replace(
        given, policy=replace(given.policy, profile=profile, never=never), filters=filters, way_back=way_back
    )


def _whole(name: str, value: str) -> int:
    number = _number(name, value)
    if number != int(number):
        raise _no_number(name, value)
    return int(number)


def _number(name: str, value: str) -> float:
    try:
        number = float(value)
    except ValueError:
        raise _no_number(name, value) from None
    if not 0 <= number <= MOST:
        raise _no_number(name, value)
    return number


def _no_number(name: str, value: str) -> WishNotUnderstood:
    return WishNotUnderstood(f"The header {WISH}{name} is {value!r}.", remedy="Give a number that makes sense there.")


def _fits(rule: RuleOfPolicy, upstream: str, model: str, key: str) -> bool:
    return fnmatchcase(upstream, rule.upstream) and fnmatchcase(model, rule.model) and fnmatchcase(key, rule.key)
