"""Approval of what servers list besides tools, and of what each user is listed. Tools: `pegboard.trust.approvals`."""
