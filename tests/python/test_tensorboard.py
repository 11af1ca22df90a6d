"""The TensorBoard plugin inside TensorBoard's own WSGI application."""

import argparse
import gzip
import json
import logging
import os
import shutil
from pathlib import Path

import pytest

from small_trace import EVENTS

pytest.importorskip("tensorboard")

from tensorboard.backend import application
from tensorboard.plugins.core import core_plugin
from werkzeug.test import Client

from firelane import _tensorboard
from firelane._tensorboard import Plugin, trace_cache
from firelane._tensorboard.logdir import Folder, find_traces, folders_of
from firelane._trace import page_names

DATA = Path(__file__).resolve().parents[1] / "data"
BASE = "/data/plugin/firelane/"
T0, T1 = 1_700_000_000_000_000_000, 1_700_000_060_000_000_000


class NoData:
    """The part of a data provider that TensorBoard uses to list plugins."""

    def list_plugins(self, ctx, *, experiment_id):
        return []


def tensorboard(logdir, path_prefix="", logdir_spec="", reload_interval=5.0):
    flags = argparse.Namespace(
        logdir=str(logdir),
        logdir_spec=logdir_spec,
        reload_interval=reload_interval,
        path_prefix=path_prefix,
        window_title="",
        samples_per_plugin={},
        generic_data="true",
    )
    app = application.TensorBoardWSGIApp(flags, [core_plugin.CorePluginLoader(), Plugin], data_provider=NoData())
    return Client(app)


def write(path, events=EVENTS):
    path.parent.mkdir(parents=True, exist_ok=True)
    data = json.dumps({"schemaVersion": 1, "traceEvents": events}).encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


@pytest.fixture(autouse=True)
def patience(monkeypatch):
    """A busy machine may take longer than TensorBoard's first screen should wait."""
    monkeypatch.setattr(_tensorboard, "_LISTING_TIMEOUT_SECONDS", 600.0)


@pytest.fixture
def logdir(tmp_path):
    folder = tmp_path / "log"
    write(folder / "run1" / f"host_10.{T0}.pt.trace.json")
    write(folder / "run1" / f"host_9.{T0}.pt.trace.json.gz")
    shutil.copyfile(DATA / "v1.lane", folder / "mine.lane")
    os.utime(folder / "mine.lane", (1, 1))
    return folder


def traces(client, **params):
    response = client.get(BASE + "api/traces", query_string=params)
    assert response.status_code == 200
    return response.get_json()["traces"]


def id_of(client, name):
    (entry,) = [entry for entry in traces(client) if entry["name"] == name]
    return entry["id"]


def is_listed(client):
    return client.get("/data/plugins_listing").get_json()["firelane"]["enabled"]


def test_tensorboard_lists_the_tab_when_there_is_a_trace(logdir):
    listing = tensorboard(logdir).get("/data/plugins_listing").get_json()["firelane"]
    assert listing["enabled"] and listing["tab_name"] == "Firelane"
    assert listing["loading_mechanism"] == {"type": "IFRAME", "module_path": BASE + "index.js"}


@pytest.mark.parametrize("folder", ["empty", "missing"])
def test_a_folder_without_traces_has_no_tab_until_one_is_written(tmp_path, folder):
    (tmp_path / "empty").mkdir()
    client = tensorboard(tmp_path / folder)
    assert not is_listed(client) and traces(client, trace="first") == []
    write(tmp_path / folder / f"w.{T0}.pt.trace.json")
    assert is_listed(client) and [entry["name"] for entry in traces(client)] == ["w"]


@pytest.mark.parametrize("logdir", ["", "gs://bucket/log"])
def test_a_log_folder_that_is_not_on_this_machine_has_no_tab(logdir):
    assert not is_listed(tensorboard(logdir))


@pytest.mark.parametrize(
    "spec, folders",
    [
        ("/a,/b", [("/a", ""), ("/b", "")]),
        ("new:/a,old:b/c", [("/a", "new"), ("b/c", "old")]),
        ("/with:colon,x:/with:colon", [("/with:colon", ""), ("/with:colon", "x")]),
        ("gs://bucket/a,far:gs://bucket/b,,near:~/log", [("~/log", "near")]),
        ("", []),
        (None, []),
    ],
)
def test_a_logdir_spec_is_parsed_as_in_tensorboard(spec, folders):
    assert folders_of("", spec) == [Folder(*each) for each in folders]


def test_folders_of_a_logdir_spec_are_distinguished_by_group(tmp_path):
    for folder in ("a", "b"):
        write(tmp_path / folder / "run" / f"w.{T0}.pt.trace.json")
    client = tensorboard("", logdir_spec=f"before:{tmp_path}/a,after:{tmp_path}/b")
    assert is_listed(client)
    assert {entry["name"] for entry in traces(client)} == {"before/run/w", "after/run/w"}
    for entry in traces(client):
        assert client.get(f"{BASE}api/t/{entry['id']}/lanes").status_code == 200


def test_traces_of_two_folders_without_a_group_are_both_listed(tmp_path):
    for folder in ("a", "b"):
        write(tmp_path / folder / "run" / f"w.{T0}.pt.trace.json")
    listed = traces(tensorboard("", logdir_spec=f"{tmp_path}/a,{tmp_path}/b"))
    assert {entry["name"].split(" in ")[1] for entry in listed} == {f"{tmp_path}/a", f"{tmp_path}/b"}
    assert len({entry["id"] for entry in listed}) == 2


@pytest.mark.parametrize("interval, seconds", [(5.0, 5.0), (60.0, 60.0), (0.1, 2.0), (0.0, None)])
def test_the_page_looks_for_new_traces_as_often_as_tensorboard(logdir, interval, seconds):
    client = tensorboard(logdir, reload_interval=interval)
    assert client.get(BASE + "api/traces").get_json()["reload_s"] == seconds


def test_the_latest_run_comes_first_and_workers_are_sorted_by_number(logdir):
    assert [entry["name"] for entry in traces(tensorboard(logdir))] == ["run1/host_9", "run1/host_10", "mine"]


def test_several_traces_of_a_worker_are_named_by_time_newest_first(tmp_path):
    for when in (T0, T1):
        os.utime(write(tmp_path / "run" / f"w.{when}.pt.trace.json"), ns=(when, when))
    first, second = (entry["name"] for entry in traces(tensorboard(tmp_path)))
    assert first.startswith("run/w 2023-11-1") and first.endswith(":20.000") and second.endswith(":20.000")
    assert first > second  # 60 s later


def test_other_files_are_not_listed(logdir):
    for name in ("events.out.tfevents.1", "x.json", "pt.trace.json", "x.lane.txt", ".hidden/x.lane"):
        write(logdir / name)
    (logdir / "new.lane").touch()  # still empty
    os.mkfifo(logdir / "pipe.lane")
    assert len(traces(tensorboard(logdir))) == 3


def test_ids_survive_a_restart_and_new_runs(logdir):
    before = {entry["name"]: entry["id"] for entry in traces(tensorboard(logdir))}
    write(logdir / "run0" / f"host_9.{T1}.pt.trace.json")
    after = {entry["name"]: entry["id"] for entry in traces(tensorboard(logdir))}
    assert len(after) == 4 and before.items() <= after.items()


def test_only_the_chosen_trace_is_loaded(logdir):
    client = tensorboard(logdir)
    assert {entry["state"] for entry in traces(client)} == {"unloaded"}
    chosen = id_of(client, "mine")
    traces(client, trace=chosen)
    overview = client.get(f"{BASE}api/t/{chosen}/overview").get_json()
    assert overview["name"] == "mine.lane" and overview["event_count"] > 0
    assert [entry["state"] for entry in traces(client)] == ["unloaded", "unloaded", "ready"]


def test_the_first_trace_is_loaded_if_the_link_names_none(logdir):
    client = tensorboard(logdir)
    states = [entry["state"] for entry in traces(client, trace="first")]
    assert states[0] in ("loading", "ready") and states[1:] == ["unloaded", "unloaded"]


def test_the_last_few_chosen_traces_stay_in_memory_and_others_are_reloaded(tmp_path):
    for i in range(trace_cache.MAX_OPEN + 2):
        write(tmp_path / f"w{i}.lane")
    client = tensorboard(tmp_path)
    ids = [entry["id"] for entry in traces(client)]
    for id in ids:
        assert client.get(f"{BASE}api/t/{id}/lanes").status_code == 200
    states = [entry["state"] for entry in traces(client)]
    assert states == ["unloaded"] * 2 + ["ready"] * trace_cache.MAX_OPEN
    assert client.get(f"{BASE}api/t/{ids[0]}/lanes").status_code == 200
    assert [entry["state"] for entry in traces(client)].count("ready") == trace_cache.MAX_OPEN


def test_a_growing_trace_is_read_as_far_as_it_goes_and_reloaded_when_chosen_again(tmp_path):
    path = write(tmp_path / f"w.{T0}.pt.trace.json")
    whole = path.read_bytes()
    path.write_bytes(whole[: whole.index(b'{"ph": "i"') - 2])
    client = tensorboard(tmp_path)
    (entry,) = traces(client)

    def event_count():
        return client.get(f"{BASE}api/t/{entry['id']}/overview").get_json()["event_count"]

    before = event_count()
    path.write_bytes(whole)
    assert event_count() == before  # the page keeps what it shows
    traces(client, trace=entry["id"])  # as a newly opened page does
    assert event_count() > before > 0


def test_a_file_that_is_not_a_trace_is_reported(tmp_path):
    (tmp_path / "broken.lane").write_bytes(b"\x00 not a trace")
    client = tensorboard(tmp_path)
    (entry,) = traces(client)
    response = client.get(f"{BASE}api/t/{entry['id']}/overview")
    assert response.status_code == 409 and "broken.lane" in response.get_json()["error"]
    assert traces(client)[0]["state"] == "failed"


def test_links_out_of_the_folder_are_not_followed(logdir, tmp_path):
    secret = write(tmp_path / "secret" / f"w.{T0}.pt.trace.json")
    (logdir / "link.lane").symlink_to(secret)
    (logdir / "folder").symlink_to(secret.parent)
    (logdir / "loop").symlink_to(logdir)
    (logdir / "nowhere.lane").symlink_to(tmp_path / "nothing")
    assert len(traces(tensorboard(logdir))) == 3
    beside = tmp_path / "log2"  # its path starts with the folder's
    write(beside / "x.lane")
    (logdir / "beside.lane").symlink_to(beside / "x.lane")
    assert len(find_traces([Folder(str(logdir))])) == 3


def test_a_link_that_replaces_a_listed_trace_is_not_followed(logdir, tmp_path):
    client = tensorboard(logdir)
    id = id_of(client, "mine")
    (logdir / "mine.lane").unlink()
    (logdir / "mine.lane").symlink_to(write(tmp_path / "secret.lane"))
    assert client.get(f"{BASE}api/t/{id}/overview").status_code == 404


@pytest.mark.parametrize(
    "path",
    [
        "assets/../index.html",
        "assets/..%2f..%2fetc/passwd",
        "assets/%2e%2e/index.html",
        "assets//etc/passwd",
        "assets/",
        "api/t/../../etc/passwd",
        "api/t/%2e%2e%2fetc%2fpasswd/overview",
        "api/t/-1/overview",
        "api/t//overview",
        "api/t/99999999999999999999/overview",
        "api/t/\u0663/overview",
        "api/nothing",
        "api/traces/x",
        "../../../etc/passwd",
    ],
)
def test_paths_lead_to_nothing_but_the_page_and_its_traces(logdir, path):
    response = tensorboard(logdir).get(BASE + path)
    assert response.status_code == 404 and b"root:" not in response.data


def test_hostile_file_names_stay_text(tmp_path):
    run = "<img src=x onerror=alert(1)>"
    names = [b"</script>.lane", b"new\nline.lane", b"bytes\xff.lane", "\u202eright.lane".encode()]
    for name in names:
        path = tmp_path / run / os.fsdecode(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(DATA / "v1.lane", path)
    client = tensorboard(tmp_path)
    listed = traces(client)
    assert {entry["name"] for entry in listed} == {
        f"{run}/</script>",
        f"{run}/new\ufffdline",
        f"{run}/bytes\ufffd",
        f"{run}/\ufffdright",
    }
    response = client.get(BASE + "api/traces")
    assert response.mimetype == "application/json" and response.headers["X-Content-Type-Options"] == "nosniff"
    for entry in listed:
        assert client.get(f"{BASE}api/t/{entry['id']}/lanes").status_code == 200


def test_requests_follow_the_viewer_protocol(logdir):
    client = tensorboard(logdir)
    url = f"{BASE}api/t/{id_of(client, 'run1/host_10')}/"
    tiles = client.get(url + "tiles?level=10&first=0&count=1&lanes=0,1")
    assert tiles.mimetype == "application/octet-stream" and tiles.data[:4] == b"FLT1"
    assert client.get(url + "search?text=%3Cb%3E%26co&exact=0&bins=4").get_json()["slices"] == 1
    assert client.get(url + "tiles?level=x").status_code == 400
    sql = {"query": "select count(*) as n from device_slices", "rows": 5}
    assert client.post(url + "sql", json=sql).get_json()["tables"][0]["rows"] == [[1]]
    assert client.get(url + "sql").status_code == 405


def test_the_tab_shows_the_timeline_of_light_steps(tmp_path):
    shutil.copyfile(DATA / "h200_gpt_light.lane", tmp_path / "run.lane")
    client = tensorboard(tmp_path)
    id = traces(client, trace="first")[0]["id"]
    assert "5 light steps" in client.get(f"{BASE}api/t/{id}/light").get_json()["note"]
    steps = client.get(f"{BASE}api/t/{id}.light/lanes").get_json()["steps"]
    assert [step["number"] for step in steps] == [17, 18, 19, 20, 21]


def test_requests_that_the_page_never_makes_are_rejected(logdir):
    client = tensorboard(logdir)
    url = f"{BASE}api/t/{id_of(client, 'mine')}/sql"
    # What a form on another site can send.
    assert client.post(url, data='{"query": "select 1"}', content_type="text/plain").status_code == 400
    assert client.post(url, data=b" " * (65 << 10), content_type="application/json").status_code == 413
    assert client.put(url, json={}).status_code == 405
    assert "Access-Control-Allow-Origin" not in client.get(BASE + "api/traces").headers


@pytest.mark.skipif(not page_names(), reason="built without the viewer: make viewer && make build")
@pytest.mark.parametrize("prefix", ["", "/some/prefix"])
def test_the_page_passes_tensorboards_security_check_and_works_below_a_prefix(logdir, prefix, caplog):
    client = tensorboard(logdir, prefix)
    caplog.set_level(logging.WARNING, logger="tensorboard")
    logging.getLogger("tensorboard").addHandler(caplog.handler)
    try:
        entry = client.get(f"{prefix}/data/plugin_entry.html?name=firelane")
        assert b'import("./index.js")' in entry.data
        assert b"location.replace" in client.get(prefix + BASE + "index.js").data
        page = client.get(prefix + BASE + "index.html")
        assert (
            b"<script>" not in page.data
            and b"unsafe-inline" not in page.headers["Content-Security-Policy"].split("style-src")[0].encode()
        )
        for name in page_names():
            if name.startswith("assets/"):
                assert f'"./{name}"'.encode() in page.data  # relative, so that a prefix is kept
                asset = client.get(prefix + BASE + name, headers={"Accept-Encoding": "gzip"})
                assert asset.status_code == 200 and asset.headers["Content-Encoding"] == "gzip"
                assert asset.headers["Cache-Control"] == "no-store"  # otherwise a new firelane would show an old page
        assert len(client.get(prefix + BASE + "api/traces").get_json()["traces"]) == 3
    finally:
        logging.getLogger("tensorboard").removeHandler(caplog.handler)
    assert not caplog.records
