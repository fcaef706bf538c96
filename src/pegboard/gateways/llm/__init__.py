"""The LLM gateway: forwards model requests to their providers with only the tools they need.

Begin with `proxy/app.py` (the path of a request), then `formats/protocol.py` (the data types) and
`selection/selector.py` (which tools stay).
"""
