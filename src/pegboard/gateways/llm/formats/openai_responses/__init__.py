"""OpenAI Responses. Begin with `request.py`."""
