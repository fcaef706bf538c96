"""What a provider's prompt cache makes of a request's tools: prices, the expected bill, and when to change them.

Pure: no I/O but the table that comes with the package, no clock. DESIGN §2.4 has the formulas.
"""

from pegboard.prompt_cache.account import NOTHING_YET, Account, rounds_bill
from pegboard.prompt_cache.prices import CachePrices, PriceRow, PriceTable, known_prices, prices_of
from pegboard.prompt_cache.rule import Moment, Verdict, verdict
from pegboard.prompt_cache.ways import WAYS, cheapest_way, expected_bills
from pegboard.settings.llm import Way
from pegboard.traffic import Seen, Traffic, Turned

__all__ = [
    "NOTHING_YET",
    "WAYS",
    "Account",
    "CachePrices",
    "Moment",
    "PriceRow",
    "PriceTable",
    "Seen",
    "Traffic",
    "Turned",
    "Verdict",
    "Way",
    "cheapest_way",
    "expected_bills",
    "known_prices",
    "prices_of",
    "rounds_bill",
    "verdict",
]
