"""Servers of an MCP registry: a validated snapshot on this machine, the entry that would configure each, and a search.

source ─► listings ─► latest versions ─► snapshot ─► search ─► proposal

A source is a file, a folder or a registry's URL in the format of the official registry. Its texts are untrusted, and
nothing here installs or starts a server.
"""
