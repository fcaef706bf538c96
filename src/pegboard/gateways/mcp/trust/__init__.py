"""Approval of definitions, scanning, and the notices about both."""
