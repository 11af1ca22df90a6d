"""`firelane view` as users run it: the real program, its server, and the one-file report."""

import http.client
import json
import os
import re
import select
import signal
import subprocess
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BINARY = ROOT / "build/release/firelane"
DATA = ROOT / "tests/data"

pytestmark = pytest.mark.skipif(not BINARY.exists(), reason="build/release/firelane is not built (make build)")

HOSTILE = ["<img src=x onerror=alert(1)>", "</script><script>alert(1)</script>", "<!-- "]


class View:
    """A running `firelane view`."""

    def __init__(self, *arguments, env=None, verb="view"):
        self.process = subprocess.Popen(
            [BINARY, verb, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env
        )
        ready, _, _ = select.select([self.process.stdout], [], [], 300)
        assert ready, "firelane view printed no address"
        self.url = self.process.stdout.readline().strip()
        match = re.fullmatch(r"http://127\.0\.0\.1:(\d+)/\?token=([0-9a-f]{64})", self.url)
        assert match, self.url
        self.port, self.token = int(match[1]), match[2]

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()

    def get(self, path, token=True, method="GET", body=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=300)
        connection.request(method, path, body, {"X-Firelane-Token": self.token} if token else {})
        answer = connection.getresponse()
        content = answer.read()
        connection.close()
        return answer, content

    def json(self, path):
        answer, content = self.get(path)
        assert answer.status == 200, content
        return json.loads(content)

    def wait_until_loaded(self):
        def loaded():
            traces = self.json("/api/traces")["traces"]
            return traces if all(trace["state"] != "loading" for trace in traces) else None

        return wait_for(loaded)


def wait_for(condition):
    """Waits for `condition` and returns its value. The limit is for a hang, not for a busy machine."""
    deadline = time.monotonic() + 300
    while not (value := condition()):
        assert time.monotonic() < deadline, "still waiting after five minutes"
        time.sleep(0.02)
    return value


def test_a_trace_is_served_until_ctrl_c():
    with View(DATA / "gpt_full.json.gz", "--no-open") as view:
        assert [trace["state"] for trace in view.wait_until_loaded()] == ["ready"]
        lanes = view.json("/api/t/0/lanes")
        ids = ",".join(str(lane["id"]) for lane in lanes["lanes"])
        answer, tiles = view.get(f"/api/t/0/tiles?level=19&first=0&count=1&lanes={ids}")
        assert answer.status == 200 and tiles[:4] == b"FLT1"
        assert view.json("/api/t/0/overview")["verdict"]["limit"] == "overhead"
        assert view.get("/api/t/0/lanes", token=False)[0].status == 403
        view.process.send_signal(signal.SIGINT)
        assert view.process.wait(timeout=300) == 0


def test_several_traces_are_served_and_a_broken_one_says_why(tmp_path):
    broken = tmp_path / "broken.json"
    broken.write_text("")
    with View(DATA / "mm64.json.gz", broken, DATA / "v1.lane", "--no-open") as view:
        traces = view.wait_until_loaded()
        assert [trace["state"] for trace in traces] == ["ready", "failed", "ready"]
        assert "empty" in traces[1]["error"]
        assert view.get("/api/t/1/lanes")[0].status == 409
        assert view.json("/api/t/2/lanes")["lanes"]


def test_a_comparison_is_served_with_the_sides_of_the_command():
    plain, slow = DATA / "gpt_plain.json.gz", DATA / "gpt_slowdata.json.gz"
    sides = ["--before", plain, plain, "--after", slow, "--threshold", "500", "--view", "--no-open"]
    with View(*sides, verb="compare") as view:
        view.wait_until_loaded()
        listed = view.json("/api/traces")
        assert listed["panes"] == ["compare"] and listed["first_pane"] == "compare"
        assert listed["compare"] == {"before": [0, 1], "after": [2], "by": None}
        report = view.json("/api/compare")
        facts = {fact["name"]: fact["value"] for fact in report["facts"]}
        assert facts["runs_before"] == 2 and facts["runs_after"] == 1
        done = subprocess.run([BINARY, "compare", *sides[:-2], "--json"], capture_output=True, check=True)
        printed = json.loads(done.stdout)
        parts = next(table for table in report["tables"] if table["name"] == "parts")
        names = [column["name"] for column in parts["columns"]]
        assert [dict(zip(names, row, strict=True)) for row in parts["rows"]] == printed["parts"]
        assert facts["headline"] == printed["headline"]


def test_a_missing_file_and_a_port_in_use_are_one_line_errors():
    done = subprocess.run([BINARY, "view", "missing.json"], capture_output=True, text=True, check=False)
    assert done.returncode == 1 and done.stderr == "firelane: missing.json: No such file or directory\n"
    with View(DATA / "mm64.json.gz", "--no-open") as view:
        done = subprocess.run(
            [BINARY, "view", DATA / "mm64.json.gz", "--no-open", "--port", str(view.port)],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 1 and "--port" in done.stderr and done.stderr.count("\n") == 1


def test_the_browser_is_opened_if_there_is_a_display(tmp_path):
    opened = tmp_path / "opened"
    fake = tmp_path / "xdg-open"
    fake.write_text(f'#!/bin/sh\necho "$1" > {opened}.part && mv {opened}.part {opened}\n')
    fake.chmod(0o755)
    env = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "DISPLAY": ":0"}
    with View(DATA / "mm64.json.gz", env=env) as view:
        wait_for(opened.exists)
        assert opened.read_text().strip() == view.url


def has_page():
    return (ROOT / "viewer/dist/report.html").exists()


@pytest.mark.skipif(not has_page(), reason="viewer/dist is not built (make viewer)")
def test_the_page_and_its_files_are_built_into_the_program():
    with View(DATA / "mm64.json.gz", "--no-open") as view:
        answer, page = view.get(f"/?token={view.token}", token=False)
        assert answer.status == 200 and answer.getheader("Content-Type").startswith("text/html")
        files = re.findall(r'(?:src|href)="\./(assets/[^"]+)"', page.decode())
        assert any(name.endswith(".js") for name in files) and any(name.endswith(".css") for name in files)
        for name in files:
            answer, content = view.get(f"/{name}", token=False)
            assert answer.status == 200 and content == (ROOT / "viewer/dist" / name).read_bytes()


@pytest.mark.skipif(not has_page(), reason="viewer/dist is not built (make viewer)")
def test_a_comparison_in_one_file_is_the_same_by_report_and_by_compare(tmp_path):
    files = [DATA / "gpt_plain.json.gz", DATA / "gpt_slowdata.json.gz"]
    pages = []
    for verb in ["report", "compare"]:
        path = tmp_path / f"{verb}.html"
        subprocess.run([BINARY, verb, *files, "-o", path], check=True)
        assert path.stat().st_size < 5_000_000
        answers = re.search(r'id="firelane-answers">(.*?)</script>', path.read_text(), re.DOTALL)[1]
        pages.append(json.loads(answers))
    stored = pages[0]
    assert stored.keys() == pages[1].keys()
    assert stored["compare?before=0&after=1"] == pages[1]["compare?before=0&after=1"]
    assert stored["compare?before=0&after=1"]["json"]["title"] == "Comparison"
    assert stored["traces"]["json"]["first_pane"] == "compare"
    assert any(key.startswith("t/1/tiles?") for key in stored)
    runs = tmp_path / "runs.html"
    subprocess.run([BINARY, "compare", *files, "--by", "batch", "-o", runs], check=True)
    assert '"by":"batch"}' in runs.read_text()


def hostile_trace(path):
    events = [
        {
            "ph": "X",
            "cat": "kernel",
            "name": name,
            "pid": 0,
            "tid": 7,
            "ts": 1000 + 10 * i,
            "dur": 8,
            "args": {"device": 0, "stream": 7, "note": name},
        }
        for i, name in enumerate(HOSTILE)
    ]
    events += [
        {"ph": "X", "cat": "cpu_op", "name": name, "pid": 1, "tid": 1, "ts": 1000 + 10 * i, "dur": 5}
        for i, name in enumerate(HOSTILE)
    ]
    path.write_text(json.dumps({"traceEvents": events}))


@pytest.mark.skipif(not has_page(), reason="viewer/dist is not built (make viewer)")
@pytest.mark.parametrize("trace", ["gpt_full.json.gz", "hostile.json"])
def test_the_report_is_one_small_file_that_no_name_can_break_out_of(tmp_path, trace):
    source = DATA / trace
    if trace == "hostile.json":
        source = tmp_path / trace
        hostile_trace(source)
    target = tmp_path / "report.html"
    subprocess.run([BINARY, "report", source, "-o", target], check=True, capture_output=True)
    html = target.read_text()
    assert target.stat().st_size < 5_000_000
    page = (ROOT / "viewer/dist/report.html").read_text()
    before, after = page.split("<!--firelane-answers-->")
    assert html.startswith(before) and html.endswith(after)
    added = html[len(before) : len(html) - len(after)]
    match = re.fullmatch(r'<script type="application/json" id="firelane-answers">([^<>&]*)</script>', added, re.DOTALL)
    assert match, "must be JSON without any markup"
    answers = json.loads(match[1])
    assert {"traces", "t/0/overview", "t/0/lanes", "t/0/diagnose"} <= answers.keys()
    assert any(key.startswith("t/0/tiles?") for key in answers)
    if trace == "hostile.json":
        names = [row[1] for row in answers["t/0/report/kernels"]["json"]["tables"][0]["rows"]]
        assert sorted(names) == sorted(HOSTILE)
