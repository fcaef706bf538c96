"""Agents of each framework behind its adapter: what they are offered, what they get past, what a turn costs."""
