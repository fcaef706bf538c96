"""The parameters of the gateway article's semantic tool filtering policy, under their original names."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Annotated, Any, Literal

import jsonpath
from pydantic import AfterValidator, AliasChoices, BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from pegboard.errors import ConfigError
from pegboard.routing import Profile, profile_named


def _json_path(path: str) -> str:
    try:
        jsonpath.compile(path)
    except jsonpath.JSONPathError as error:
        raise ValueError(f"this is not a JSONPath: {str(error).splitlines()[0]}") from None
    return path


JsonPath = Annotated[str, AfterValidator(_json_path)]


class SemanticToolFiltering(BaseModel):
    """Where a payload has the query and the tools, and which tools stay.

    A query or tools that are not JSON are in tags within the text at their path. ``limit`` applies in the mode `By
    Rank`, ``threshold``, a cosine, in `By Threshold`.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", alias_generator=to_camel, validate_by_name=True)

    selection_mode: Literal["By Rank", "By Threshold"] = "By Rank"
    limit: int = Field(default=5, ge=1, validation_alias=AliasChoices("limit", "Limit"))
    threshold: float = Field(default=0.7, ge=0, le=1, validation_alias=AliasChoices("threshold", "Threshold"))
    query_json_path: JsonPath = Field(default="$.messages[-1].content", alias="queryJSONPath")
    tools_json_path: JsonPath = Field(default="$.tools", alias="toolsJSONPath")
    user_query_is_json: bool = True
    tools_is_json: bool = True

    @property
    def profile(self) -> Profile:
        """The profile `semantic`, by rank or by threshold."""
        if self.selection_mode == "By Rank":
            return profile_named("semantic").with_overrides(k=self.limit)
        return profile_named("semantic").with_overrides(threshold=self.threshold)


def filtering_of(upstream: str, given: Mapping[str, Any]) -> SemanticToolFiltering:
    """The policy of an upstream. Raises ConfigError with each wrong parameter, its value and what is allowed.

    >>> filtering_of("legacy", {"Limit": 3}).limit
    3
    """
    try:
        return SemanticToolFiltering.model_validate(dict(given))
    except ValidationError as error:
        wrong = "; ".join(_sentence(each["type"], str(each["loc"][0]), each) for each in error.errors())
        raise ConfigError(
            f"llm.upstreams.{upstream}.semantic_tool_filtering: {wrong}.",
            remedy=f"Its parameters are {', '.join(PARAMETERS)}.",
        ) from error


PARAMETERS = tuple(field.alias or name for name, field in SemanticToolFiltering.model_fields.items())


def _sentence(kind: str, name: str, error: Mapping[str, Any]) -> str:
    if kind == "extra_forbidden":
        near = get_close_matches(name, PARAMETERS, n=1)
        return f"there is no {name!r}" + (f", perhaps {near[0]!r} is meant" if near else "")
    return f"{name} is {error['input']!r}, but {error['msg'].removeprefix('Value error, ')}"
