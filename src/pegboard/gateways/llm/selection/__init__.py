"""Which tools of a request stay, and how they reach the model.

Begin with `filter.py` (one request, bytes in and bytes out), then `selector.py` (the decision). `policy_rules.py` finds
the policy of a request.
"""
