"""Routing in a simulated world of prices, latencies, failures and crashes (`make bench-simulate`; EHRR section V)."""
