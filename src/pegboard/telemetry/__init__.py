"""Event sinks: logs and files (`event_log`), Prometheus (`metrics`), counts of shadow requests (`shadow_counts`), and
decisions with what came of them (`activity_recorder`, `activity_book`).

Begin with `event_log`. The events themselves are in `pegboard.events`.
"""
