"""Paths that begin in a user's home folder."""

from __future__ import annotations

from pathlib import Path

from pegboard.errors import ConfigError


def home_path(name: str | Path, owner: str = "") -> Path:
    """The path, with `~` and `~USER` replaced by that home folder. Raises ConfigError, which names the ``owner`` of the
    path, where there is no such user.

    >>> home_path("tools.json").name
    'tools.json'
    >>> home_path("~nobody-has-this-name/tools.json", "Server 'git'")
    Traceback (most recent call last):
        ...
    pegboard.errors.ConfigError: Server 'git' names '~nobody-has-this-name/tools.json', but there is no such user. ...
    """
    try:
        return Path(name).expanduser()
    except RuntimeError as error:
        what = f"{owner} names {str(name)!r}" if owner else f"A path is {str(name)!r}"
        raise ConfigError(f"{what}, but there is no such user.", remedy="Correct the path.") from error
