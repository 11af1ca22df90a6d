"""firelane._trace.Viewer: the viewer's protocol from Python, and the page's files inside the module."""

import json
import threading

import pytest

import firelane
from firelane._trace import Viewer, page, page_names


def ask(viewer, target, method="GET", body=b""):
    status, content_type, answer = viewer.answer(method, target, body)
    assert content_type in ("application/json", "application/octet-stream")
    return status, json.loads(answer) if content_type == "application/json" else answer


def test_a_path_is_loaded_in_the_background_and_then_answers(trace_file):
    viewer = Viewer(trace_file)
    viewer.wait()
    status, listed = ask(viewer, "/api/traces")
    assert status == 200 and listed["version"] == firelane.__version__
    (entry,) = listed["traces"]
    assert (entry["name"], entry["state"], entry["error"]) == ("small.json", "ready", None)
    status, overview = ask(viewer, "/api/t/0/overview")
    assert status == 200 and overview["name"] == "small.json"


def test_an_open_trace_answers_at_once(trace):
    status, lanes = ask(Viewer(trace), "/api/t/0/lanes")
    assert status == 200 and {lane["kind"] for lane in lanes["lanes"]} >= {"thread"}


def test_tiles_are_bytes(trace):
    status, tiles = ask(Viewer(trace), "/api/t/0/tiles?level=10&first=0&count=1&lanes=0")
    assert status == 200 and tiles[:4] == b"FLT1"


def test_sql_is_sent_in_a_body(trace):
    body = json.dumps({"query": "select count(*) as n from device_slices", "rows": 10}).encode()
    status, report = ask(Viewer(trace), "/api/t/0/sql", "POST", body)
    assert status == 200 and report["tables"][0]["rows"] == [[1]]


@pytest.mark.parametrize(
    "target, status",
    [
        ("/api/t/1/overview", 404),
        ("/api/t/0/nothing", 404),
        ("/etc/passwd", 404),
        ("/api/../api/traces", 404),
        ("/api/%zz", 400),
        ("/api/t/0/tiles?level=x", 400),
        ("", 400),
    ],
)
def test_bad_requests_get_a_status_and_one_line(trace, target, status):
    got, answer = ask(Viewer(trace), target)
    assert got == status and "\n" not in answer["error"]


def test_a_file_that_cannot_be_read_is_a_failed_trace(tmp_path):
    viewer = Viewer(tmp_path / "nothing.json")
    viewer.wait()
    (entry,) = ask(viewer, "/api/traces")[1]["traces"]
    assert entry["state"] == "failed" and "No such file" in entry["error"]


def test_many_threads_can_wait_and_ask_at_once(gpt_full):
    viewer = Viewer(gpt_full)
    answers = []

    def work():
        viewer.wait()
        answers.append(ask(viewer, "/api/t/0/report/kernels?rows=3"))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(answers) == 8 and all(answer == answers[0] and answer[0] == 200 for answer in answers)


def test_the_page_is_built_into_the_module():
    names = page_names()
    if not names:
        pytest.skip("built without the viewer: make viewer && make build")
    assert {"index.html", "report.html"} <= set(names)
    content_type, html = page("index.html")
    assert content_type == "text/html; charset=utf-8" and html.startswith(b"<!doctype html>")
    for name in names:
        assert page(name)[1]
    assert page("../index.html") is None and page("") is None
