"""What is known of the conversation that a request belongs to: what it was sent with, and what other conversations
taught.

Begin with `stickiness.py` (the request's place in its conversation), then `store.py` (what each conversation holds).
"""
