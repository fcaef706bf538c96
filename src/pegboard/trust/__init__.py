"""Finds suspicious definitions (M29), and the changes of approved ones (M28). Begin with `scan`.

`approvals` is what holds definitions back, for the MCP gateway and for boards.
"""

from pegboard.trust.definition_changes import Change, changes, only_order
from pegboard.trust.findings import SUSPICIOUS, Finding, ScanResult
from pegboard.trust.impersonation import Crowd, crowds
from pegboard.trust.scan import RULES, scan, scan_content, scan_patterns, scan_server

__all__ = [
    "RULES",
    "SUSPICIOUS",
    "Change",
    "Crowd",
    "Finding",
    "ScanResult",
    "changes",
    "crowds",
    "only_order",
    "scan",
    "scan_content",
    "scan_patterns",
    "scan_server",
]
