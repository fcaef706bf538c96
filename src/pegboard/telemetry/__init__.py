"""Event sinks: logs and files (`event_log`), Prometheus (`metrics`), counts of shadow requests (`shadow_counts`).

Begin with `event_log`. The events themselves are in `pegboard.events`.
"""
