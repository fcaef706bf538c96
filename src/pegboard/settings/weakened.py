"""Whether a configuration that is taken up while others work would open what the one before kept shut.

A file that was cut off in the middle of being written is often valid all the same: it has only lost its end. So a
protection never just disappears from a process that runs. It is either there, in other words perhaps, or the process is
started anew by somebody who means it.
"""

from __future__ import annotations

from pegboard.settings import Settings

REMEDY = "If it is meant, start the process anew."


def weakened(before: Settings, after: Settings) -> str:
    """What ``after`` would drop of what limits who may do what, in words without names; nothing, if nothing.

    >>> from pegboard.settings import Settings
    >>> kept = {"ann": {"hash": "sha256:" + "0" * 64}}
    >>> weakened(Settings(access=kept), Settings())
    'no token would be needed any more ([access])'
    >>> weakened(Settings(), Settings(access=kept))
    ''
    """
    lost = (
        (before.access and not after.access, "no token would be needed any more ([access])"),
        (before.llm.keys and not after.llm.keys, "no key would be needed for models any more ([llm.keys])"),
        (_any_upstream(before, after), "a key for some upstreams would be for all of them ([llm.keys])"),
        (_unlimited(before, after), "a token that opens some tools would open all of them (tools, [grants])"),
        (_scoped_rules(before) and not _scoped_rules(after), "no tool would need a scope any more (rules)"),
        (_open_toolset(before, after), "a toolset would need no scope any more ([toolsets])"),
    )
    return "; ".join(said for is_so, said in lost if is_so)


def _unlimited(before: Settings, after: Settings) -> bool:
    """Whether a token that was given patterns is left without a word on them; `tools = ["*"]` is one."""
    limited = {name for name, each in before.access.items() if each.tools is not None or before.grants}
    silent = {name for name, each in after.access.items() if each.tools is None and not after.grants}
    return bool(limited & silent)


def _any_upstream(before: Settings, after: Settings) -> bool:
    """As `_unlimited`, of keys for models: whether one is left without a word on the upstreams that it is for."""
    chosen = {name for name, each in before.llm.keys.items() if "upstreams" in each.model_fields_set}
    silent = {name for name, each in after.llm.keys.items() if "upstreams" not in each.model_fields_set}
    return bool(chosen & silent)


def _scoped_rules(settings: Settings) -> bool:
    return any(rule.scope is not None for rule in settings.rules)


def _open_toolset(before: Settings, after: Settings) -> bool:
    kept = before.toolsets.keys() & after.toolsets.keys()
    return any(before.toolsets[name].scope is not None and after.toolsets[name].scope is None for name in kept)
