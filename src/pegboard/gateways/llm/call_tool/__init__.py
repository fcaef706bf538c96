"""Calling a request's tools through one constant `call_tool`, so that the cached prefix never changes.

The model gets `call_tool` with a summary of all tools; matching definitions are put directly before each of the user's
messages, where they stay. The client only sees native calls. Begin with `plan.py`; what a wire format has to provide is
in `formats/call_tool.py`.

request ─► call_tool, translated history, definitions ─► provider ─► invalid calls? ─► … ─► native calls
"""
