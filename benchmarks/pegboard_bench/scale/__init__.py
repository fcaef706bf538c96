"""Boards from a thousand to a million tools: what a search and a change cost, beside the exact answer."""
