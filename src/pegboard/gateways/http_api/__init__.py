"""The HTTP API of `pegboard serve`, for programs in any language. Start with `api_app.py`."""
