"""Payloads of any shape, read as an upstream's policy says. Begin with `payload_policy.py` (its parameters)."""
