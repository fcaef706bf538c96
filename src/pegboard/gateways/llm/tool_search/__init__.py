"""A search tool with which the model finds tools that were filtered out; the gateway answers its calls.

Begin with `round_trip.py` (which requests get it, and one search), then `search_loop.py` (the only part with I/O). What
a wire format has to provide is in `formats/tool_search.py`.

request ─► body ─► provider ─► search calls? ─► results, tools ─► body ─► … ─► one answer
"""
