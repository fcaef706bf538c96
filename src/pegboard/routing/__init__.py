"""The pipeline: which tools a turn is given, and which calls it may make. Start with `router.py`."""

from pegboard.routing.eligibility import (
    Eligibility,
    Precondition,
    Rule,
    has_prior_tool_output,
    is_authenticated,
    milestone_reached,
    parse_precondition,
)
from pegboard.routing.guard import check_arguments, check_arguments_now, check_available, check_lightly, keeps_its_word
from pegboard.routing.loader import DirectorySource, SchemaLoader
from pegboard.routing.profiles import PROFILES, Profile, profile_named
from pegboard.routing.router import Router

__all__ = [
    "PROFILES",
    "DirectorySource",
    "Eligibility",
    "Precondition",
    "Profile",
    "Router",
    "Rule",
    "SchemaLoader",
    "check_arguments",
    "check_arguments_now",
    "check_available",
    "check_lightly",
    "has_prior_tool_output",
    "is_authenticated",
    "keeps_its_word",
    "milestone_reached",
    "parse_precondition",
    "profile_named",
]
