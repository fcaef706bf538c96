"""How a provider's prompt cache affects the choice of tools: prices, expected bills, and when to change tools.

Pure: no clock, and no I/O except for reading the bundled tables. docs/prompt-cache.md has the formulas.
"""

from pegboard.prompt_cache.account import NOTHING_YET, CacheAccount, rounds_bill
from pegboard.prompt_cache.cache_prices import CachePrices, PriceRow, PriceTable, known_prices, prices_of
from pegboard.prompt_cache.deferral_support import (
    EMULATED,
    DeferralRow,
    DeferralSupport,
    EmulationKind,
    deferral_rows,
    deferral_support,
)
from pegboard.prompt_cache.rule import CacheDecision, Moment, verdict
from pegboard.prompt_cache.ways import WAYS, Begun, cheapest_way, expected_bills
from pegboard.settings.llm import Way
from pegboard.traffic import Seen, Traffic, Turned

__all__ = [
    "EMULATED",
    "NOTHING_YET",
    "WAYS",
    "Begun",
    "CacheAccount",
    "CacheDecision",
    "CachePrices",
    "DeferralRow",
    "DeferralSupport",
    "EmulationKind",
    "Moment",
    "PriceRow",
    "PriceTable",
    "Seen",
    "Traffic",
    "Turned",
    "Way",
    "cheapest_way",
    "deferral_rows",
    "deferral_support",
    "expected_bills",
    "known_prices",
    "prices_of",
    "rounds_bill",
    "verdict",
]
