"""The metrics of an always-on recording as OpenTelemetry's instruments, where its SDK is installed.

They go to the meter provider of the program (or of `opentelemetry-instrument`). Where there is none and
OTEL_EXPORTER_OTLP_ENDPOINT is set, one is made that sends them there. Names follow OpenTelemetry's rules, so that its
Prometheus exporters give them the names of metrics.py: firelane.wait, in s, is firelane_wait_seconds_total.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from .metrics import BUCKETS_S, SPECS, Metrics, Spec, Values

if TYPE_CHECKING:
    from opentelemetry.metrics import CallbackOptions, MeterProvider, Observation

_UNITS = {"seconds": "s", "bytes": "By", "ratio": "1", "watts": "W"}
_ENDPOINTS = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT")


def name_and_unit(spec: Spec) -> tuple[str, str]:
    """firelane_wait_seconds_total: firelane.wait, s."""
    stem, _, unit = spec.name.removesuffix("_total").rpartition("_")
    if unit not in _UNITS:
        stem, unit = f"{stem}_{unit}", ""
    return stem.replace("_", ".", 1), _UNITS.get(unit, "")


class Telemetry:
    """Raises ImportError without OpenTelemetry's SDK."""

    def __init__(
        self,
        metrics: Metrics,
        values: Callable[[], Values],
        labels: Mapping[str, str],
        provider: MeterProvider | None = None,
    ) -> None:
        import opentelemetry.metrics as api
        import opentelemetry.sdk.metrics  # without it every instrument does nothing

        self._values = values
        self._labels = dict(labels)
        self._own: Any = None
        if provider is None and not isinstance(api.get_meter_provider(), opentelemetry.sdk.metrics.MeterProvider):
            self._own = provider = _own_provider()
        meter = (provider or api.get_meter_provider()).get_meter("firelane")
        for spec in SPECS:
            name, unit = name_and_unit(spec)
            if spec.kind == "histogram":
                histogram = meter.create_histogram(
                    name, unit, spec.help, explicit_bucket_boundaries_advisory=list(BUCKETS_S)
                )

                metrics.on_line = functools.partial(histogram.record, attributes=self._labels)
            elif spec.kind == "counter":
                meter.create_observable_counter(name, [self._callback(spec)], unit, spec.help)
            else:
                meter.create_observable_gauge(name, [self._callback(spec)], unit, spec.help)

    def _callback(self, spec: Spec) -> Callable[[CallbackOptions], Iterable[Observation]]:
        from opentelemetry.metrics import Observation

        def observe(_: CallbackOptions) -> Iterable[Observation]:
            for label, value in self._values().get(spec.name, ()):
                yield Observation(value, {**self._labels, spec.label: label} if spec.label else self._labels)

        return observe

    def stop(self) -> None:
        if self._own is not None:
            self._own.shutdown(2000)


def _own_provider() -> Any:
    if not any(os.environ.get(name) for name in _ENDPOINTS):
        return None  # the program may still set one: instruments of the API find it then
    import importlib

    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader

    otlp = importlib.import_module("opentelemetry.exporter.otlp.proto.http.metric_exporter")
    return MeterProvider([PeriodicExportingMetricReader(otlp.OTLPMetricExporter())])
