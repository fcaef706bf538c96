"""Anthropic Messages. Begin with `request.py`; `defer_loading.py` is for tools that the provider's own search finds."""
