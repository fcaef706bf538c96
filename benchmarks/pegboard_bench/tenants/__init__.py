"""Thousands of tenants on one store: memory, whose tools a search finds, and what one's import costs the others."""
