"""Options of the results of tools: in which form they are handed on, and how long what is left out is kept."""

from __future__ import annotations

from typing import Literal, get_args

from pydantic import BaseModel, ConfigDict, Field

from pegboard.errors import ConfigError

ResultForm = Literal["whole", "shaped", "handle"]
FILE_READS = (
    *("*/read", "*/read_file", "*/read_*_file", "*/read_*_files", "*/*file_read", "*/get_file*", "*/cat"),
    *("*/view", "*/view_file*", "*/open_file*", "*/str_replace*editor*"),
)
"""Tools that read files. What they answer is edited next, so it stays whole unless `tools` says otherwise."""


class ResultSettings(BaseModel):
    """In which form results are handed on: `whole`, as the tool sent them; `shaped`, as texts by rule that say the same
    in fewer tokens; or `handle`, where what is longer than ``budget`` tokens is cut, and read on with `read_result`.

    ``policy`` is for all tools, ``tools`` for those that match a pattern on ``server/name``, of which the first counts.
    Results of fewer than ``threshold`` tokens always stay whole. What is cut is kept whole for ``hours``, and at most
    ``bytes_per_caller`` of it for each caller.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    policy: ResultForm = "whole"
    tools: dict[str, ResultForm] = Field(default_factory=dict)
    threshold: int = Field(default=400, ge=0)
    budget: int = Field(default=6_000, ge=200)
    hours: float = Field(default=24.0, gt=0, le=24 * 366)
    bytes_per_caller: int = Field(default=64_000_000, ge=100_000)

    @property
    def is_on(self) -> bool:
        """Whether any tool's results are changed."""
        return self.policy != "whole" or any(each != "whole" for each in self.tools.values())

    @property
    def cuts(self) -> bool:
        """Whether any tool's results may be cut."""
        return self.policy == "handle" or "handle" in self.tools.values()


def form_named(value: object) -> ResultForm | None:
    """The form that a client names; None without a name. Raises ConfigError for a form that there is not.

    >>> form_named("whole"), form_named(None)
    ('whole', None)
    """
    if value is None or value == "":
        return None
    for form in get_args(ResultForm):
        if value == form:
            return form  # type: ignore[no-any-return]
    raise ConfigError(
        f"Results cannot be {str(value)[:40]!r}.", remedy=f"Use one of: {', '.join(get_args(ResultForm))}."
    )
