"""What is exported, and where: the settings, and the standard variables for what they do not say.

Variables of the exporters themselves (OTEL_EXPORTER_OTLP_ENDPOINT, _HEADERS, _TIMEOUT, _COMPRESSION, _CERTIFICATE,
OTEL_RESOURCE_ATTRIBUTES) are read by the SDK in the exporter process, which inherits the environment.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec

from pegboard.errors import ConfigError
from pegboard.settings.otel_settings import OtelSettings, Signal

SAMPLERS = ("always_on", "always_off", "traceidratio")
SAMPLER = "OTEL_TRACES_SAMPLER"
PARENT_BASED = "parentbased_"
BATCH_SECONDS = 1.0
METRIC_SECONDS = 60.0
MOST_TRACES = 10.0
"""Traces a second that begin here and are recorded, where nothing else is said."""
GRPC = "grpc"
HTTP = "http/protobuf"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportOptions:
    """``console`` prints all signals, without an endpoint in place of a collector; ``printed`` are signals that no
    collector gets. ``headers`` may be secret. ``ratio``, ``most_traces`` a second (None: no limit) and
    ``follows_parent`` are the sampler. Times are in seconds."""

    endpoint: str | None = None
    protocol: str = HTTP
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    console: bool = False
    printed: tuple[Signal, ...] = ()
    signals: tuple[Signal, ...] = ()
    service: str = ""
    ratio: float = 1.0
    most_traces: float | None = None
    follows_parent: bool = True
    content: bool = False
    batch_seconds: float = BATCH_SECONDS
    metric_seconds: float = METRIC_SECONDS


def export_options(settings: OtelSettings, environment: Mapping[str, str] = os.environ) -> ExportOptions | None:
    """None if nothing is exported. Raises ConfigError.

    >>> export_options(OtelSettings(enabled=True), {"OTEL_TRACES_EXPORTER": "none"}).signals
    ('metrics', 'logs')
    """
    exporters = {each: environment.get(f"OTEL_{each.upper()}_EXPORTER", "otlp").strip() for each in settings.signals}
    signals = tuple(each for each, chosen in exporters.items() if chosen != "none")
    if not settings.is_on or not signals or environment.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return None
    for each, chosen in exporters.items():
        if chosen not in ("otlp", "console", "none"):
            raise ConfigError(
                f"OTEL_{each.upper()}_EXPORTER is {chosen!r}.", remedy="Pegboard knows otlp, console and none."
            )
    protocol = settings.protocol or environment.get("OTEL_EXPORTER_OTLP_PROTOCOL", "").strip() or HTTP
    if protocol not in (HTTP, GRPC):
        raise ConfigError(
            f"The OTLP protocol {protocol!r} is not supported.", remedy=f"Use {HTTP} or {GRPC} ([otel] protocol)."
        )
    _check_installed(protocol)
    ratio, follows_parent = _sampler(settings, environment)
    is_said = settings.sample is not None or environment.get(SAMPLER, "").strip()
    most = None if is_said else MOST_TRACES
    return ExportOptions(
        endpoint=settings.endpoint,
        protocol=protocol,
        headers=settings.headers_from(environment),
        console=settings.console,
        printed=tuple(each for each in signals if exporters[each] == "console"),
        signals=signals,
        service=settings.service or environment.get("OTEL_SERVICE_NAME", "").strip() or "pegboard",
        ratio=ratio,
        most_traces=most if settings.most_traces is None else settings.most_traces,
        follows_parent=follows_parent,
        content=settings.content,
        batch_seconds=_milliseconds(environment, "OTEL_BSP_SCHEDULE_DELAY", BATCH_SECONDS),
        metric_seconds=_milliseconds(environment, "OTEL_METRIC_EXPORT_INTERVAL", METRIC_SECONDS),
    )


def _sampler(settings: OtelSettings, environment: Mapping[str, str]) -> tuple[float, bool]:
    if settings.sample is not None:
        return settings.sample, True
    named = environment.get(SAMPLER, "").strip() or "parentbased_always_on"
    kind = named.removeprefix(PARENT_BASED)
    if kind not in SAMPLERS:
        known = ", ".join((*SAMPLERS, *(PARENT_BASED + each for each in SAMPLERS)))
        raise ConfigError(f"OTEL_TRACES_SAMPLER is {named!r}.", remedy=f"Pegboard knows {known}; or set [otel] sample.")
    given = environment.get("OTEL_TRACES_SAMPLER_ARG", "").strip() or "1"
    try:
        ratio = {"always_on": 1.0, "always_off": 0.0}.get(kind, float(given))
    except ValueError:
        ratio = -1.0
    if not 0 <= ratio <= 1:
        raise ConfigError(f"OTEL_TRACES_SAMPLER_ARG is {given!r}.", remedy="Write a share from 0 to 1.")
    return ratio, named.startswith(PARENT_BASED)


def _milliseconds(environment: Mapping[str, str], name: str, otherwise: float) -> float:
    given = environment.get(name, "").strip()
    if not given:
        return otherwise
    if not given.isdecimal() or not int(given):
        raise ConfigError(f"{name} is {given!r}.", remedy="Write a number of milliseconds.")
    return int(given) / 1_000


def _check_installed(protocol: str) -> None:
    """Raises ConfigError with the install command. Imports nothing of OpenTelemetry."""
    kind, extra = ("grpc", "otel-grpc") if protocol == GRPC else ("http", "otel")
    needed = ("opentelemetry", "opentelemetry.sdk", "opentelemetry.exporter", "opentelemetry.exporter.otlp")
    for module in (*needed, "opentelemetry.exporter.otlp.proto", f"opentelemetry.exporter.otlp.proto.{kind}"):
        if find_spec(module) is None:
            raise ConfigError(
                f"OpenTelemetry is configured, but {module} is not installed.",
                remedy=f"Install it with `pip install 'pegboard[{extra}]'`.",
            )
