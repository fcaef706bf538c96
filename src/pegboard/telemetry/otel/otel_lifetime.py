"""OpenTelemetry for as long as a gateway runs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import version

from pegboard.settings.otel_settings import OtelSettings
from pegboard.telemetry.otel.export import OtelExport, Points
from pegboard.telemetry.otel.export_options import export_options


@asynccontextmanager
async def opened_otel(settings: OtelSettings, points: Points | None = None) -> AsyncIterator[OtelExport | None]:
    """None if it is not turned on. The end of the block waits a few seconds at most for what was not delivered.

    ``points`` are further metrics, as `OtelExport` has them. Raises ConfigError.
    """
    options = await asyncio.to_thread(export_options, settings)  # reads secrets
    if options is None:
        yield None
        return
    export = OtelExport(options, points, version=version("pegboard"))
    export.start()
    try:
        yield export
    finally:
        await asyncio.to_thread(export.close)
