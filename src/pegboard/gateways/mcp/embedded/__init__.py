"""`pegboard.lazy`: the gateway inside your own server. Start with `lazy.py`."""
