"""Agents with many tools over thirty turns: what is sent, what is found, what the gate does, beside other ways."""
