"""The pipeline that selects the tools of a turn and checks its calls. Begin with `router`."""

from pegboard.routing.eligibility import (
    Eligibility,
    Precondition,
    Rule,
    has_prior_tool_output,
    is_authenticated,
    milestone_reached,
    parse_precondition,
)
from pegboard.routing.guard import (
    check_arguments,
    check_arguments_now,
    check_available,
    check_lightly,
    matches_output_schema,
)
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
    "matches_output_schema",
    "milestone_reached",
    "parse_precondition",
    "profile_named",
]
