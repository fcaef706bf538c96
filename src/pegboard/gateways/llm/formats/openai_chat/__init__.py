"""OpenAI Chat Completions, also used by many other servers. Begin with `request.py`."""
