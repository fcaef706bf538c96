"""Finds the policy of a request: the general one, then the matching rules, its key's policy, and its own wishes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import lru_cache

from pegboard.errors import ConfigError, PegboardError
from pegboard.gateways.llm.formats.generic.payload_policy import SemanticToolFiltering, filtering_of
from pegboard.gateways.llm.formats.registry import priced_as, takes_allowed_tools
from pegboard.gateways.llm.proxy.config_checks import check_names
from pegboard.gateways.llm.selection.policy import Policy
from pegboard.gateways.llm.tool_search.round_trip import ToolSearchTerms
from pegboard.routing import Profile, profile_named
from pegboard.settings.llm import LlmSettings, PolicySettings, RuleOfPolicy, UpstreamSettings, Way
from pegboard.settings.result_settings import ResultForm, form_named

WISH = "x-pegboard-"
"""Prefix of the headers in which a request states its wishes."""
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
    way_back=True,
    search_tokens=600,
)


OF_ITS_OWN = PolicySettings(least_tools=0, least_tokens=0, way_back=False)
"""The policy of the gateway article has no minimum, and adds no tool: it applies to any number of tools."""
NO_TOOL_SEARCH = ToolSearchTerms()
DEFERRED_ALONE: tuple[Way, ...] = ("defer",)
"""Ways whose tools the model searches: it does so too where an answer that the provider keeps rules deferral out."""
WAYS: tuple[Way, ...] = ("whole", "tools")
BESIDE_ITS_OWN: tuple[Way, ...] = ("whole", "call_tool")
"""For agents with their own tools, which stay: the beginning of the prompt never changes, and every tool remains
reachable (docs/prompt-cache.md)."""


class WishNotUnderstood(PegboardError):  # noqa: N818
    """A request header has an invalid value."""

    code = "wish_not_understood"
    http_status = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class Treatment:
    """How a request is treated: whether and by which policy its tools are selected, and what happens if that fails.

    In the ``shadow`` tools are selected while the request passes unchanged, whatever fails. ``results`` is the form in
    which the results of tools are sent.
    """

    policy: Policy
    filters: bool = True
    optional: bool = False
    fails_open: bool = True
    tool_search: ToolSearchTerms = NO_TOOL_SEARCH
    shadow: bool = False
    results: ResultForm = "whole"


LONGEST_MODEL = 256
"""Characters of a model's name up to which its treatment is remembered: callers choose it."""


class Policies:
    """The policies of one configuration. The constructor raises ConfigError for an invalid one."""

    def __init__(self, settings: LlmSettings) -> None:
        self._settings = settings
        self._filterings = {
            name: filtering_of(name, each.semantic_tool_filtering)
            for name, each in settings.upstreams.items()
            if each.semantic_tool_filtering is not None
        }
        self._of = lru_cache(maxsize=4096)(self._resolved)
        self._never = lru_cache(maxsize=4096)(self._nothing_for)
        self._check()

    def of(self, upstream: str, model: str, key: str | None, wishes: Mapping[str, str]) -> Treatment:
        """The treatment of a request; its wishes (names without `x-pegboard-`) can only narrow it.

        Raises WishNotUnderstood.
        """
        resolved = (self._of if len(model) <= LONGEST_MODEL else self._resolved)(upstream, model, key)
        return narrowed(resolved, wishes) if wishes else resolved

    def profiles(self) -> frozenset[Profile]:
        """The profiles by which tools may be selected."""
        models = {"", *(rule.model for rule in self._settings.rules)}
        keys = (None, *self._settings.keys)
        return frozenset(
            self._resolved(upstream, model, key).policy.profile
            for upstream in self._settings.upstreams
            for model in models
            for key in keys
        )

    def shapes_results(self, upstream: str, key: str | None, wishes: Mapping[str, str]) -> bool:
        """Whether the results of a request may be shaped, whatever its model."""
        models = {"", *(rule.model for rule in self._settings.rules)}
        return "results" in wishes or any(self._of(upstream, each, key).results != "whole" for each in models)

    def never_filters(self, upstream: str, key: str | None) -> bool:
        """Whether no request of this key to this upstream is filtered, or has its results shaped, whatever its model:
        then bodies need not be read."""
        return self._never(upstream, key)

    def _nothing_for(self, upstream: str, key: str | None) -> bool:
        models = {"", *(rule.model for rule in self._settings.rules)}
        all_ = (self._resolved(upstream, model, key) for model in models)
        return not any(each.filters or each.results != "whole" for each in all_)

    def _resolved(self, upstream: str, model: str, key: str | None) -> Treatment:
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
                self._resolved(upstream, "", key)
        for rule in self._settings.rules:
            for each in self._settings.upstreams.values():
                treatment(rule.over(self._settings.policy.over(START)), each)


def _start(upstream: UpstreamSettings) -> PolicySettings:
    """The policy before any settings."""
    return START if upstream.semantic_tool_filtering is None else OF_ITS_OWN.over(START)


def treatment(
    said: PolicySettings, upstream: UpstreamSettings, filtering: SemanticToolFiltering | None = None
) -> Treatment:
    """The treatment of a policy. ``filtering`` is the policy of a `generic` upstream, whose profile applies.

    Raises ConfigError for contradictory options.
    """
    if filtering is not None:
        profile = filtering.profile
    else:
        profile = profile_named(said.profile or "hybrid").with_overrides(
            k=said.k, threshold=said.threshold, recall=said.recall, budget=said.budget
        )
    ways = said.ways or WAYS
    searched = bool(said.way_back) or ways == DEFERRED_ALONE
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
        allowed_tools=_narrows(upstream, searched) if said.allowed_tools is None else said.allowed_tools,
        provider=priced_as(upstream.format),
        ways=ways,
        beside=said.ways or BESIDE_ITS_OWN,
        search_tokens=START.search_tokens or 0 if said.search_tokens is None else said.search_tokens,
        way_back=searched,
    )
    return Treatment(
        policy=policy,
        filters=said.filter is not False,
        optional=bool(said.optional),
        tool_search=ToolSearchTerms(
            offered=searched,
            hidden_call=said.hidden_call or ("ask" if searched else "pass"),
            search_tokens=said.search_tokens or 0,
        ),
        fails_open=bool(said.shadow) or said.fail != "closed",
        shadow=bool(said.shadow),
        results=said.results or "whole",
    )


def _narrows(upstream: UpstreamSettings, searched: bool) -> bool:
    """Whether tools that are not relevant are sent and forbidden: not where the model could search for them."""
    return takes_allowed_tools(upstream) and not searched


def narrowed(given: Treatment, wishes: Mapping[str, str]) -> Treatment:
    """The treatment narrowed by a request's wishes: fewer tools and tokens than the policy allows, never more; and the
    form of results that it wants."""
    profile, never, filters = given.policy.profile, given.policy.never, given.filters
    tool_search, results, way_back = given.tool_search, given.results, given.policy.way_back
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
                if value.strip().lower() in OFF:
                    tool_search, way_back = NO_TOOL_SEARCH, False
            case "results":
                results = _form(value) or results
    try:
        profile.check()
    except ConfigError as error:
        raise WishNotUnderstood(error.message, remedy=error.remedy) from error
    return replace(
        given,
        policy=replace(given.policy, profile=profile, never=never, way_back=way_back),
        filters=filters,
        tool_search=tool_search,
        results=results,
    )


def _form(value: str) -> ResultForm | None:
    try:
        return form_named(value.strip().lower())
    except ConfigError as error:
        raise WishNotUnderstood(error.message, remedy=error.remedy) from error


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
    return WishNotUnderstood(f"The header {WISH}{name} is {value!r}.", remedy="Give a valid number.")


def _fits(rule: RuleOfPolicy, upstream: str, model: str, key: str) -> bool:
    return fnmatchcase(upstream, rule.upstream) and fnmatchcase(model, rule.model) and fnmatchcase(key, rule.key)
