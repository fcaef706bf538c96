"""What is found suspicious in definitions (M29), and what has changed in one that was approved (M28)."""

from pegboard.trust.changes import Change, changes, only_order
from pegboard.trust.crowding import Crowd, crowds
from pegboard.trust.findings import SUSPICIOUS, Finding, Verdict
from pegboard.trust.scan import RULES, scan, scan_content, scan_server

__all__ = [
    "RULES",
    "SUSPICIOUS",
    "Change",
    "Crowd",
    "Finding",
    "Verdict",
    "changes",
    "crowds",
    "only_order",
    "scan",
    "scan_content",
    "scan_server",
]
