"""What the process of a server may reach: the options of a sandbox."""

from __future__ import annotations

from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, model_validator


class SandboxSettings(BaseModel):
    """Where a server's process runs; a string alone is its ``kind``.

    >>> SandboxSettings.model_validate("bubblewrap").network
    False
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Literal["none", "bubblewrap", "docker"] = "none"
    network: bool = False
    """Whether it has the machine's network; without it, not even the machine's own ports."""
    read: tuple[str, ...] = ()
    """Files and folders that it may read, besides those of the system and of its program."""
    write: tuple[str, ...] = ()
    """Files and folders that it may read and write. Everything else that it writes is gone when it ends."""
    image: str = ""
    """The image of a container, for docker."""

    @model_validator(mode="before")
    @classmethod
    def _kind_alone(cls, value: Any) -> Any:
        return {"kind": value} if isinstance(value, str) else value

    @model_validator(mode="after")
    def _meant(self) -> Self:
        if self.kind == "docker" and not self.image:
            raise ValueError("docker needs an image")
        if self.kind != "docker" and self.image:
            raise ValueError("image is for docker")
        if self.kind == "none" and (self.read or self.write or self.network):
            raise ValueError("read, write and network have an effect only in bubblewrap or docker")
        return self
