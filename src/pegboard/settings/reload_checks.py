"""Checks whether a configuration that is reloaded while the process runs would remove a protection.

A file that was truncated while being written is often still valid: it has only lost its end. So a reload never removes
a protection. It may be rewritten; to remove it, an operator restarts the process.
"""

from __future__ import annotations

from collections.abc import Mapping

from pegboard.settings import Settings
from pegboard.settings.llm import KeySettings
from pegboard.settings.sections import AccessSettings

REMEDY = "If this is intended, restart the process."


def weakened(before: Settings, after: Settings) -> str:
    """The access limits that ``after`` would remove, in words that contain no names; empty if there are none.

    >>> from pegboard.settings import Settings
    >>> kept = {"ann": {"hash": "sha256:" + "0" * 64}}
    >>> weakened(Settings(access=kept), Settings())
    'no token would be required any more ([access])'
    >>> weakened(Settings(), Settings(access=kept))
    ''
    """
    lost = (
        (_guarded(before) and not _guarded(after), "no token would be required any more ([access])"),
        (before.llm.keys and not after.llm.keys, "no key would be required for models any more ([llm.keys])"),
        (_any_upstream(before, after), "a key for some upstreams would permit all of them ([llm.keys])"),
        (_unlimited(before, after), "a token that permits some tools would permit all of them (tools, [grants])"),
        (_scoped_rules(before) and not _scoped_rules(after), "no tool would require a scope any more (rules)"),
        (_endless(before, after), "a key that ends would be valid for ever (expires)"),
        (before.rates and not after.rates, "calls would not be counted any more ([[rates]])"),
        (_unspent(before, after), "a limit of spending would be gone ([spend] session, key, day)"),
        (before.spend.budgets and not after.spend.budgets, "no budget would be left ([[spend.budgets]])"),
        (before.llm.budgets and not after.llm.budgets, "no budget for models would be left ([[llm.budgets]])"),
        (_open_toolset(before, after), "a toolset would require no scope any more ([toolsets])"),
        (_let_through(before, after), "definitions would not be held back any more (pins, new_servers, scan)"),
        (_unboxed(before, after), "a server would run without its sandbox (sandbox)"),
    )
    return "; ".join(said for is_so, said in lost if is_so)


def _guarded(settings: Settings) -> bool:
    return bool(settings.access) or settings.issuer is not None


def _unlimited(before: Settings, after: Settings) -> bool:
    """Whether a token that had patterns would have none; `tools = ["*"]` counts as a pattern."""
    limited = {name for name, each in before.access.items() if each.tools is not None or before.grants}
    silent = {name for name, each in after.access.items() if each.tools is None and not after.grants}
    policies = before.issuer is not None and before.issuer.policies
    return bool(limited & silent) or bool(policies and after.issuer is not None and not after.issuer.policies)


def _any_upstream(before: Settings, after: Settings) -> bool:
    """Whether a key for models that named upstreams would name none."""
    chosen = {name for name, each in before.llm.keys.items() if "upstreams" in each.model_fields_set}
    silent = {name for name, each in after.llm.keys.items() if "upstreams" not in each.model_fields_set}
    return bool(chosen & silent)


def _endless(before: Settings, after: Settings) -> bool:
    """Whether a key that is the same as before would not end any more."""
    return _lost_ends(before.access, after.access) or _lost_ends(before.llm.keys, after.llm.keys)


def _lost_ends(
    before: Mapping[str, AccessSettings | KeySettings], after: Mapping[str, AccessSettings | KeySettings]
) -> bool:
    same = [name for name in before.keys() & after.keys() if before[name].hash == after[name].hash]
    return any(before[name].expires is not None and after[name].expires is None for name in same)


def _scoped_rules(settings: Settings) -> bool:
    return any(rule.scope is not None for rule in settings.rules)


def _open_toolset(before: Settings, after: Settings) -> bool:
    kept = before.toolsets.keys() & after.toolsets.keys()
    return any(before.toolsets[name].scope is not None and after.toolsets[name].scope is None for name in kept)


def _unspent(before: Settings, after: Settings) -> bool:
    limits = ("session", "key", "day")
    return any(getattr(before.spend, name) is not None and getattr(after.spend, name) is None for name in limits)


def _let_through(before: Settings, after: Settings) -> bool:
    """Whether a quarantine would end because nothing is said of it any more; another policy that is written counts."""
    silent = {"pins", "new_servers", "scan"} - after.model_fields_set
    return any(getattr(before, name) == "quarantine" for name in silent)


def _unboxed(before: Settings, after: Settings) -> bool:
    """Whether the sandbox of all servers, or of one, is not said any more; `sandbox = "none"` counts as said."""
    if before.sandbox.kind != "none" and "sandbox" not in after.model_fields_set:
        return True
    own = {name for name, spec in before.servers.items() if spec.sandbox and spec.sandbox.kind != "none"}
    silent = {name for name, spec in after.servers.items() if spec.command and spec.sandbox is None}
    return after.sandbox.kind == "none" and bool(own & silent)
