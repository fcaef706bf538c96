"""When tokens of `access` and keys of `llm.keys` end, and two of one holder that are valid at once."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import AwareDatetime, BaseModel, Field, model_validator

KeyHash = Annotated[str, Field(pattern=r"^sha256:[0-9a-f]{64}$")]


class RotatedKey(BaseModel):
    """The key is refused from ``expires`` on, a time with its zone. While it is rotated, the ``previous`` one of the
    same holder is valid too, until ``previous_expires``; `pegboard keys rotate` makes both."""

    expires: AwareDatetime | None = None
    previous: KeyHash | None = None
    previous_expires: AwareDatetime | None = None

    @model_validator(mode="after")
    def _both(self) -> Self:
        if (self.previous is None) != (self.previous_expires is None):
            raise ValueError("previous and previous_expires belong together: a key that was replaced has to end")
        return self
