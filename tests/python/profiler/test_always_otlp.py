"""Metrics of an always-on recording over OTLP, as a collector gets them: its exporter, and a server of our own."""

import http.server
import threading
from types import SimpleNamespace

import pytest

from firelane._always.outside import Outside

REASON = "needs opentelemetry-exporter-otlp-proto-http"
exporter = pytest.importorskip("opentelemetry.exporter.otlp.proto.http.metric_exporter", reason=REASON)
service = pytest.importorskip("opentelemetry.proto.collector.metrics.v1.metrics_service_pb2", reason=REASON)


@pytest.fixture
def collector():
    """Its .port, and .requests: what was posted, by path."""
    requests = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            requests.append((self.path, self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield SimpleNamespace(port=server.server_address[1], requests=requests)
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_collector_gets_the_steps_when_the_recording_ends(collector, monkeypatch, tmp_path):
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{collector.port}")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "none")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    account = dict.fromkeys(("timing_ns", "windows_ns", "elapsed_ns", "spent", "budget", "windows"), 0)
    ours = Outside(
        SimpleNamespace(
            plan=SimpleNamespace(prometheus="", opentelemetry=True, quiet=True, signal=""),
            account=lambda: {**account, "write_errors": 0, "dropped_lines": 0},
            line_began_ns=0,
            rss_bytes=1000,
            cuda_bytes=-1,
            path="run",
            share=0.005,
            trigger=lambda reason: None,
        )
    )
    ours.open(tmp_path)
    ours.metrics.observe(30_000_000, 1, "unrecorded", 10_000_000, 0, 5_000_000, 0)
    ours.stop()  # sends what there is
    path, body = collector.requests[-1]
    assert path == "/v1/metrics"
    message = service.ExportMetricsServiceRequest.FromString(body)
    metrics = {metric.name: metric for metric in message.resource_metrics[0].scope_metrics[0].metrics}
    (step,) = metrics["firelane.step"].histogram.data_points
    assert step.count == 1 and step.sum == pytest.approx(0.03) and metrics["firelane.step"].unit == "s"
    (memory,) = metrics["firelane.resident_memory"].gauge.data_points
    assert 1000 in (memory.as_int, memory.as_double)
