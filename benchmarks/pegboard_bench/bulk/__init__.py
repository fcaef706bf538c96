"""Indexing in bulk: what a tool costs, how workers share it, whether kills change a byte, and what a start saves."""
