"""The LLM gateway's HTTP side: authentication, routing, and streaming the answer back.

Begin with `app.py`; `target.py` reads a request's path and headers, `model_upstream.py` sends it.
"""
