"""ONNX Runtime, which says nothing to anyone."""

from __future__ import annotations

import os
from typing import Any

SILENT = ("ORT_DISABLE_TELEMETRY", "1")
"""From 1.32 on it looks up its vendor's event collector and keeps a device id in ~/.cache, unless this is set before
its library is loaded. Earlier versions know nothing of the variable, and nothing of telemetry on Linux and macOS."""


def onnxruntime() -> Any:
    """The module, with its telemetry off: in this process, and by the environment in those that it starts.

    Where somebody else has imported it before, from now on.
    """
    os.environ.update([SILENT])
    import onnxruntime as runtime

    runtime.disable_telemetry_events()  # the events of Windows, and what was loaded without the variable
    return runtime
