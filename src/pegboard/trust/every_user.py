"""Approvals of definitions that servers list to each user apart (`SERVER@USER`): one is for all users."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from pegboard.model import Fingerprint, Pin, ToolId

MARK = "@"
"""Between the name of a server and the user whose own connection it is, in pins."""


def own_pin(tool: ToolId, user: str) -> ToolId:
    """By which id the pin of a tool goes that is listed to one user."""
    return ToolId(f"{tool.server}{MARK}{user}", tool.name)


def shared_pin(tool: ToolId) -> ToolId:
    """By which id a definition is approved for every user. Nobody's pin: no user has an empty name.

    >>> shared_pin(ToolId("github", "fork"))
    ToolId(server='github@', name='fork')
    """
    return own_pin(tool, "")


def of_every_user(pin: ToolId, servers: Collection[str]) -> ToolId:
    """By which id a definition with this pin is rejected, for all users: that of the tool on one of the ``servers``.

    >>> str(of_every_user(ToolId("github@ann@a.example", "fork"), ["git", "github"]))
    'github/fork'
    >>> str(of_every_user(ToolId("git@hub@ann", "fork"), ["git", "git@hub"]))
    'git@hub/fork'
    """
    if pin.server in servers:
        return pin
    named = (server for server in servers if pin.server.startswith(f"{server}{MARK}"))
    return ToolId(max(named, key=len, default=pin.server), pin.name)


def for_every_user(approved: Mapping[ToolId, Fingerprint], known: Mapping[ToolId, Pin]) -> dict[ToolId, Fingerprint]:
    """What to approve so that these definitions are approved for all users of their servers: those that ``known`` says
    are listed exactly the same, and those that will be."""
    found = dict(approved)
    wide = {}
    for tool, definition in approved.items():
        server, mark, _ = tool.server.partition(MARK)
        if mark:
            wide[server, tool.name] = definition
            found[shared_pin(ToolId(server, tool.name))] = definition
    for tool, pin in known.items():
        if pin.changed and wide.get((tool.server.partition(MARK)[0], tool.name)) == pin.seen and MARK in tool.server:
            found[tool] = pin.seen
    return found
