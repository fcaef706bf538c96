"""Under which names gateways store what belongs to a session or to a caller: what erasure looks for."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator
from itertools import chain

from pegboard.call_charges import budget_account
from pegboard.caller_limits import LimitedCaller
from pegboard.gateways.access_keys import hashed
from pegboard.gateways.llm.proxy.model_budgets import account_of
from pegboard.gateways.mcp.transport.auth import Holder
from pegboard.gateways.mcp.transport.client_connection import named_session
from pegboard.gateways.users import of_token
from pegboard.settings import Settings


def api_conversation(holder: Holder | None, name: str) -> str:
    """The id of a caller's conversation at the HTTP API: no name reaches another caller's, or a session of MCP."""
    owner = "" if holder is None else "\0".join(holder.identity)
    return "api:" + hashlib.sha256(f"{owner}\0{name}".encode("utf-8", "surrogatepass")).hexdigest()


def session_ids(session: str, settings: Settings, callers: Iterable[str]) -> set[str]:
    """Every id that gateways give to the sessions that clients know by this one. ``callers`` are the names of subjects
    of the issuer, as far as they are known."""
    holders: list[Holder | None] = [None, *_holders(settings)]
    subjects = [Holder(name=name, secret="", user="a subject") for name in callers]
    ids = {session, *(named_session(session, holder) for holder in [*holders, *subjects])}
    return ids | {api_conversation(holder, session) for holder in holders}


def budget_keys(caller: str, settings: Settings) -> set[str]:
    """The keys of the accounts of what budgets count for this caller alone, as they are configured now."""
    limited = LimitedCaller(name=caller)
    policies = () if settings.issuer is None else settings.issuer.policies
    calls = chain(settings.spend.budgets, *(policy.budgets for policy in policies))
    accounts = [budget_account(each, limited) for each in calls if each.by == "caller"]
    accounts += [account_of(each, limited) for each in settings.llm.budgets if each.by == "caller"]
    return {account.key for account in accounts}


def _holders(settings: Settings) -> Iterator[Holder]:
    """Those of the configured tokens and of the ones before them, without the secret of one whose variable is not set
    here."""
    for name, each in settings.access.items():
        token = os.environ.get(each.env or "", "").strip()
        secret = each.hash or (hashed(token) if token else "")
        yield Holder(name=name, secret=secret, user=of_token(name))
        if each.previous is not None:
            yield Holder(name=name, secret=each.previous, user=of_token(name))
