"""OpenTelemetry: traces, metrics and logs for a collector (`pegboard[otel]`).

Begin with `export`: it puts spans and events aside, and hands them to `exporter_process`, the only place that imports
the SDK. `conventions` has the names.
"""
