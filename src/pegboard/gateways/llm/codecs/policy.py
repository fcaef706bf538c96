"""The parameters of the semantic tool filtering policy of seed 003, under their own names."""

from __future__ import annotations

from typing import Annotated, Literal

import jsonpath
from pydantic import AfterValidator, AliasChoices, BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from pegboard.routing import Profile, profile_named


def _json_path(path: str) -> str:
    try:
        jsonpath.compile(path)
    except jsonpath.JSONPathError as error:
        raise ValueError(f"{path!r} is not a JSONPath: {error}") from None
    return path


JsonPath = Annotated[str, AfterValidator(_json_path)]


class SemanticToolFiltering(BaseModel):
    """Where query and tools stand in a payload, and which tools stay.

    A query or tools that are not JSON stand in tags, in the text that the path of each leads to. ``limit`` counts in
    the mode `By Rank`, ``threshold``, a cosine, in `By Threshold`.
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
