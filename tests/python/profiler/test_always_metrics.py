"""What others see of an always-on recording while it runs: metrics over HTTP, a Unix socket and OpenTelemetry; triggers
over HTTP and by a signal. And callers that are slow, silent, wrong or too many."""

import contextlib
import http.client
import json
import os
import re
import socket
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from firelane._always import metrics, outside, server
from firelane._always.outside import Outside
from firelane._always.server import Answer, Server

torch = pytest.importorskip("torch")
parser = pytest.importorskip("prometheus_client.parser", reason="needs prometheus-client (tools/requirements.txt)")

ROOT = Path(__file__).resolve().parents[3]
FIRELANE = os.environ.get("FIRELANE_BINARY", str(ROOT / "build" / "release" / "firelane"))
needs_command = pytest.mark.skipif(not Path(FIRELANE).exists(), reason=f"no {FIRELANE}; make build")
MS = 1_000_000


def samples_of(text):
    """Name and labels to value, by a real parser. Families that it cannot place have type "unknown"."""
    families = list(parser.text_string_to_metric_families(text))
    assert all(family.type in ("counter", "gauge", "histogram") and family.documentation for family in families)
    return {
        (sample.name, *sorted(sample.labels.items())): sample.value for family in families for sample in family.samples
    }


# -- the numbers ---------------------------------------------------------------------------


def test_steps_become_a_histogram_and_waits_by_cause():
    ours = metrics.Metrics()
    for duration_ms in (3, 3, 30, 400_000):
        ours.observe(duration_ms * MS, 1, "unrecorded", 1 * MS, 0, 1 * MS, 0)
    ours.observe(64 * 2 * MS, 64, "unrecorded", 100 * MS, 5 * MS, 0, 0)  # steps that were timed together
    ours.observe(50 * MS, 1, "recorded", 50 * MS, 0, 0, 0)  # not what a step usually takes
    found = samples_of(metrics.text(ours.step_values(), ours.histogram(), {}))
    assert found[("firelane_step_seconds_bucket", ("le", "0.0025"))] == 64
    assert found[("firelane_step_seconds_bucket", ("le", "0.005"))] == 66
    assert found[("firelane_step_seconds_bucket", ("le", "300"))] == 67
    assert found[("firelane_step_seconds_bucket", ("le", "+Inf"))] == found[("firelane_step_seconds_count",)] == 68
    assert found[("firelane_step_seconds_sum",)] == pytest.approx(400.164)
    assert found[("firelane_steps_total", ("phase", "unrecorded"))] == 68
    assert found[("firelane_steps_total", ("phase", "recorded"))] == 1
    assert found[("firelane_wait_seconds_total", ("cause", "input"))] == pytest.approx(0.004)
    assert found[("firelane_wait_seconds_total", ("cause", "garbage_collection"))] == pytest.approx(0.005)
    assert found[("firelane_wait_seconds_total", ("cause", "blocked"))] == pytest.approx(400.028 + 0.028, abs=1e-6)
    assert found[("firelane_cpu_seconds_total",)] == pytest.approx(0.154)


def test_odd_label_values_are_escaped():
    values = {"firelane_run_info": [('a "b"\\c\nd\udcff', 1.0)]}
    found = samples_of(metrics.text(values, metrics.Metrics().histogram(), {"rank": "3"}))
    assert found[("firelane_run_info", ("rank", "3"), ("run", 'a "b"\\c\nd?'))] == 1


def test_a_window_with_a_gpu_says_how_busy_it_was_and_its_power():
    found = metrics.window_values(ROOT / "tests/data/h200_gpt_all.lane")
    parts = dict(found["firelane_device_time_ratio"])
    assert sum(parts.values()) == pytest.approx(1) and parts["compute"] == pytest.approx(0.0767, abs=1e-3)
    idle = sum(share for part, share in parts.items() if part.startswith("idle"))
    assert found["firelane_device_busy_ratio"] == [("", pytest.approx(1 - idle))]
    assert found["firelane_device_power_watts"] == [("0", pytest.approx(129.31))]


@pytest.mark.parametrize(
    "batch, expected",
    [
        (torch.zeros(8, 3), (8, 0)),
        ([torch.zeros(8, 3), torch.zeros(8)], (8, 0)),
        ({"input_ids": torch.zeros(4, 128), "labels": torch.zeros(4)}, (4, 512)),
        ([("a", "b", "c"), torch.zeros(3)], (3, 0)),
        (torch.tensor(1.0), (0, 0)),
        ({}, (0, 0)),
        ("text", (0, 0)),
    ],
)
def test_samples_and_tokens_of_a_batch(batch, expected):
    assert metrics.work_in(SimpleNamespace(_auto_collation=True), batch) == expected
    assert metrics.work_in(SimpleNamespace(_auto_collation=False), batch) == (0, 0)


def test_what_the_program_counts_takes_the_place_of_what_was_found():
    ours = Outside(fake_recording())
    ours.add_batch(SimpleNamespace(_auto_collation=True), {"input_ids": torch.zeros(4, 128)})
    assert ours.values()["firelane_tokens_total"] == [("", 512)]
    ours.count(samples=0, tokens=100)
    ours.count(samples=0, tokens=100)
    assert ours.values()["firelane_tokens_total"] == [("", 200)]
    assert ours.values()["firelane_samples_total"] == [("", 4)]


def test_windows_are_looked_into_as_often_as_the_budget_allows(monkeypatch):
    ours = Outside(fake_recording())
    seen, now = [], [0.0]
    monkeypatch.setattr(ours.metrics, "see_window", lambda path: (seen.append(path), now.append(now[-1] + 0.5)))
    monkeypatch.setattr(outside.time, "thread_time", lambda: now[-1])  # half a second for each
    clock = iter([0, 0, 1000, 1999, 2001, 2001])
    monkeypatch.setattr(outside.time, "monotonic", lambda: next(clock))
    for name in ("a", "b", "c", "d"):
        ours.see_window(name)
    assert seen == ["a", "d"]  # 0.5 s of 2,000 s: a twentieth of 0.5%


def fake_recording(place="0", **plan):
    account = dict.fromkeys(("timing_ns", "windows_ns", "elapsed_ns", "spent", "budget", "windows"), 0)
    triggers = []
    return SimpleNamespace(
        plan=SimpleNamespace(prometheus=place, opentelemetry=False, quiet=True, **plan),
        account=lambda: {**account, "write_errors": 0, "dropped_lines": 0},
        line_began_ns=time.perf_counter_ns(),
        rss_bytes=1000,
        cuda_bytes=2000,
        path="run",
        share=0.005,
        trigger=triggers.append,
        triggers=triggers,
    )


def test_the_dashboard_draws_metrics_that_are_exported():
    text = (ROOT / "contrib/grafana-always-on.json").read_text()
    json.loads(text)
    drawn = {name for line in text.splitlines() if '"expr"' in line for name in re.findall(r"firelane_\w+", line)}
    exported = {spec.name for spec in metrics.SPECS}
    exported |= {f"{spec.name}_{part}" for spec in metrics.SPECS for part in ("bucket", "sum", "count")}
    assert drawn and drawn <= exported
    every = {spec.name for spec in metrics.SPECS}
    table = set(re.findall(r"^\| `(firelane_\w+)`", (ROOT / "docs/always.md").read_text(), re.MULTILINE))
    assert table == every


# -- OpenTelemetry ---------------------------------------------------------------------------


def test_opentelemetry_reads_the_same_numbers():
    sdk = pytest.importorskip("opentelemetry.sdk.metrics", reason="needs opentelemetry-sdk (tools/requirements.txt)")
    from opentelemetry.sdk.metrics.export import InMemoryMetricReader

    from firelane._always.telemetry import Telemetry

    ours = Outside(fake_recording())
    reader = InMemoryMetricReader()
    telemetry = Telemetry(ours.metrics, ours.values, {"rank": "3"}, sdk.MeterProvider([reader]))
    ours.metrics.observe(30 * MS, 1, "unrecorded", 10 * MS, 0, 5 * MS, 0)
    scope = reader.get_metrics_data().resource_metrics[0].scope_metrics[0]
    assert scope.scope.name == "firelane"
    found = {metric.name: metric for metric in scope.metrics}
    (step,) = found["firelane.step"].data.data_points
    assert found["firelane.step"].unit == "s" and (step.count, step.sum) == (1, pytest.approx(0.03))
    assert step.attributes == {"rank": "3"} and tuple(step.explicit_bounds) == metrics.BUCKETS_S
    waits = {point.attributes["cause"]: point.value for point in found["firelane.wait"].data.data_points}
    assert waits["input"] == pytest.approx(0.005) and found["firelane.wait"].unit == "s"
    assert found["firelane.resident_memory"].unit == "By"
    assert found["firelane.resident_memory"].data.data_points[0].value == 1000
    telemetry.stop()


def test_without_the_sdk_there_is_one_line(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(outside, "_spec_of", lambda module: None)
    ours = Outside(fake_recording(""))
    ours._always.plan.opentelemetry = True
    ours.open(tmp_path)
    assert capsys.readouterr().err == (
        "firelane: no OpenTelemetry: install opentelemetry-sdk where the program runs; recording continues without it\n"
    )


def test_an_endpoint_without_its_exporter_is_one_line(monkeypatch, capsys, tmp_path):
    pytest.importorskip("opentelemetry.sdk.metrics", reason="needs opentelemetry-sdk (tools/requirements.txt)")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.http.metric_exporter", None)
    ours = Outside(fake_recording(""))
    ours._always.plan.opentelemetry = True
    ours.open(tmp_path)
    text = capsys.readouterr().err
    assert text.startswith("firelane: no OpenTelemetry: ") and text.count("\n") == 1
    ours.stop()


# -- the server ------------------------------------------------------------------------------


@pytest.fixture
def served(tmp_path, monkeypatch):
    """A fake recording that is served; its .url and .token."""
    monkeypatch.delenv("FIRELANE_TOKEN", raising=False)
    ours = Outside(fake_recording())
    ours.open(tmp_path)
    yield SimpleNamespace(
        recording=ours._always,
        server=ours._server,
        folder=tmp_path,
        port=int((tmp_path / "endpoint").read_text().rpartition(":")[2]),
        token=(tmp_path / "token").read_text().strip(),
    )
    ours.stop()
    assert not list(tmp_path.iterdir())


def ask(port, method="GET", path="/metrics", body=None, **headers):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=200)
    connection.request(method, path, body, headers)
    answer = connection.getresponse()
    return answer.status, answer.read().decode()


def test_metrics_are_served_on_loopback_and_triggers_need_the_token(served):
    status, text = ask(served.port)
    assert status == 200 and samples_of(text)[("firelane_resident_memory_bytes",)] == 1000
    assert ask(served.port, "POST", "/trigger", "loss is odd")[0] == 401
    assert ask(served.port, "POST", "/trigger", "loss is odd", Authorization="Bearer wrong")[0] == 401
    assert served.recording.triggers == []
    status, text = ask(served.port, "POST", "/trigger", "loss is odd", Authorization=f"Bearer {served.token}")
    assert status == 202 and served.recording.triggers == ["loss is odd"]
    assert ask(served.port, "GET", "/trigger")[0] == 405
    assert ask(served.port, "POST", "/metrics")[0] == 405
    assert ask(served.port, "GET", "/")[0] == 404
    assert stat.S_IMODE((served.folder / "token").stat().st_mode) == 0o600
    assert served.server.busy_ns > 0


def test_pages_of_other_sites_are_refused(served):
    assert ask(served.port, Host="evil.example:80")[0] == 403
    assert ask(served.port, Host=f"localhost:{served.port}")[0] == 200


def test_a_token_of_the_user_is_needed_for_metrics_too(tmp_path, monkeypatch):
    monkeypatch.setenv("FIRELANE_TOKEN", "geheim")
    ours = Outside(fake_recording())
    ours.open(tmp_path)
    port = int((tmp_path / "endpoint").read_text().rpartition(":")[2])
    assert ask(port)[0] == 401 and ask(port, Authorization="Bearer geheim")[0] == 200
    assert not (tmp_path / "token").exists()
    ours.stop()


@pytest.mark.parametrize(
    "request_bytes, status",
    [
        (b"GET /metrics HTTP/1.1\r\nX: " + b"a" * 100_000, b"431"),
        (b"POST /trigger HTTP/1.1\r\nContent-Length: 99999999999999999999\r\n\r\n", b"413"),
        (b"POST /trigger HTTP/1.1\r\nContent-Length: -5\r\n\r\n", b"400"),
        (b"POST /trigger HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n", b"400"),
        (b"\x16\x03\x01\x02\x00 hello TLS \r\n\r\n", b"400"),
        (b"GET /metrics HTTP/1.1\r\nno colon\r\n\r\n", b"400"),
        (b"GET  /metrics HTTP/1.1\r\n\r\n", b"400"),
        (b"\xff\xfe\x00" * 5 + b"\r\n\r\n", b"400"),
    ],
)
def test_what_is_no_request_is_answered_and_forgotten(served, request_bytes, status):
    with socket.create_connection(("127.0.0.1", served.port), timeout=200) as caller:
        with contextlib.suppress(OSError):  # answered and closed before all of it was sent
            caller.sendall(request_bytes)
        try:
            answer = caller.recv(100)
        except ConnectionResetError:  # what was not read yet resets the connection
            answer = b""
    assert answer == b"" or answer.startswith(b"HTTP/1.1 " + status)
    assert ask(served.port)[0] == 200


def test_callers_that_say_nothing_are_let_go_and_do_not_keep_others_out(served, monkeypatch):
    monkeypatch.setattr(server, "DEADLINE_S", 1000)
    silent = [socket.create_connection(("127.0.0.1", served.port), timeout=200) for _ in range(40)]
    assert ask(served.port)[0] == 200  # the oldest of too many have to go
    assert read_or_nothing(silent[0]) == b""
    with monkeypatch.context() as patch:
        patch.setattr(server, "DEADLINE_S", 0.05)
        late = socket.create_connection(("127.0.0.1", served.port), timeout=200)
        answer = read_or_nothing(late)
        assert answer == b"" or answer.startswith(b"HTTP/1.1 408")
        silent.append(late)
    assert ask(served.port)[0] == 200
    for caller in silent:
        caller.close()


def read_or_nothing(caller):
    try:
        return caller.recv(1000)
    except ConnectionResetError:
        return b""


def test_a_port_in_use_is_one_line_and_the_recording_goes_on(tmp_path, capsys):
    with socket.create_server(("127.0.0.1", 0)) as other:
        ours = Outside(fake_recording(str(other.getsockname()[1])))
        ours.open(tmp_path)
        lines = capsys.readouterr().err.splitlines()
        assert len(lines) == 1 and "no metrics" in lines[0] and "in use" in lines[0]
        ours.stop()


def test_a_unix_socket_is_the_users_alone_and_one_left_behind_is_replaced(tmp_path):
    path = tmp_path / "m.sock"
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))
    first = Server(str(path), lambda request: Answer(200, "first"))
    first.start()
    with pytest.raises(OSError, match="in use"):
        Server(str(path), lambda request: Answer(200, "second"))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    with socket.socket(socket.AF_UNIX) as caller:
        caller.connect(str(path))
        caller.sendall(b"GET / HTTP/1.1\r\n\r\n")
        assert caller.recv(1000).endswith(b"first")
    first.stop()
    assert not path.exists()
    path.write_text("a file of the user")
    with pytest.raises(OSError, match="in use"):
        Server(str(path), lambda request: Answer(200, "third"))
    assert path.read_text() == "a file of the user"


def test_a_server_whose_thread_is_late_at_the_end_of_the_program_is_closed_in_silence(tmp_path, monkeypatch):
    asked, proceed, errors = threading.Event(), threading.Event(), []

    def answer(request):
        asked.set()
        proceed.wait()
        return Answer(200, "late")

    monkeypatch.setattr(server, "STOP_S", 0)
    monkeypatch.setattr(threading, "excepthook", errors.append)
    ours = Server(str(tmp_path / "m.sock"), answer)
    ours.start()
    with socket.socket(socket.AF_UNIX) as caller:
        caller.connect(str(tmp_path / "m.sock"))
        caller.sendall(b"GET / HTTP/1.1\r\n\r\n")
        asked.wait()
        ours.stop()
        proceed.set()
        ours._thread.join()
    assert errors == []


# -- whole programs --------------------------------------------------------------------------

PROGRAM = """
import os, quick_torch, signal, sys, time, torch, urllib.request
from prometheus_client.parser import text_string_to_metric_families

def scrape():
    url = open("run/endpoint").read().strip()
    text = urllib.request.urlopen(url + "/metrics").read().decode()
    return {s.name + "".join(f"|{v}" for v in s.labels.values()): s.value
            for f in text_string_to_metric_families(text) for s in f.samples}

def until(true):
    while not true():
        train()

net = torch.nn.Linear(4, 4)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
data = torch.utils.data.DataLoader(torch.ones(10_000_000, 4), batch_size=10)
batches = iter(data)
def train():
    net(next(batches)).sum().backward()
    time.sleep(0.002)
    optimizer.step()

for _ in range(50):
    train()
until(lambda: scrape()["firelane_steps_total|unrecorded"] > 100)
child = os.fork()
if child == 0:  # has the parent's sockets, and does not serve them
    for _ in range(20):
        train()
    os._exit(0)
os.waitpid(child, 0)
found = scrape()
assert found["firelane_samples_total"] >= 1000 and found["firelane_recorder_budget_ratio"] == 0.5, found
assert found["firelane_step_seconds_count"] > 100 and found["firelane_since_step_seconds"] >= 0, found
assert found["firelane_resident_memory_bytes"] > 1e6, found
url, token = open("run/endpoint").read().strip(), open("run/token").read().strip()
request = urllib.request.Request(url + "/trigger", b"over HTTP", {"Authorization": "Bearer " + token})
assert urllib.request.urlopen(request).status == 202
until(lambda: scrape()["firelane_incidents_total|trigger"] == 1)
os.kill(os.getpid(), signal.SIGUSR2)
until(lambda: scrape()["firelane_incidents_total|signal"] == 1)
until(lambda: scrape()["firelane_recorder_windows_total"] >= 2)
print("done")
"""


@needs_command
def test_a_program_is_scraped_asked_and_signalled_while_it_trains(tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'python'}:{ROOT / 'tests' / 'python'}"}
    environment.pop("FIRELANE_TOKEN", None)
    command = [FIRELANE, "record", "--always", "--budget", "50%", "--prometheus", "0", "--signal", "USR2", "-o", "run"]
    done = subprocess.run(
        [*command, "--", sys.executable, "program.py"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "done\n" and "firelane: metrics at http://127.0.0.1:" in done.stderr
    kinds = sorted(
        path.name.rpartition("-")[2] for path in (tmp_path / "run/kept").iterdir() if "slow" not in path.name
    )  # steps may well be slow here
    assert kinds == ["signal", "trigger"]
    assert not (tmp_path / "run/endpoint").exists() and not (tmp_path / "run/token").exists()


@needs_command
@pytest.mark.parametrize(
    "flags, words",
    [
        (["--always", "--prometheus", "70000"], "--prometheus: a port"),
        (["--always", "--prometheus", "public"], "--prometheus: a port"),
        (["--always", "--signal", "KILL"], "--signal"),
        (["--prometheus", "0"], "need --always"),
    ],
)
def test_wrong_places_and_signals_are_refused(tmp_path, flags, words):
    done = subprocess.run(
        [FIRELANE, "record", *flags, "--", "true"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2 and words in done.stderr


def test_always_on_refuses_what_the_command_refuses():
    import firelane

    for wrong in ({"prometheus": "public"}, {"prometheus": 70000}, {"signal": "KILL"}, {"signal": "NOPE"}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            firelane.always_on("nowhere", **wrong)
