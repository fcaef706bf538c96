"""Cohere's Chat, version 2. Begin with `request.py`."""
