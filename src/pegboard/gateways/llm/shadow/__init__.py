"""Filtering that is only measured: what it would have done to requests that passed unchanged, and to recorded ones.

`recorder.py` measures requests and writes them to a file, `replay.py` runs them through another configuration.
"""
