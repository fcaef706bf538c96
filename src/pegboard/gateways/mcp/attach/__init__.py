"""`pegboard mcp` as a bridge to a running `pegboard serve`. Start with `bridge.py`."""
