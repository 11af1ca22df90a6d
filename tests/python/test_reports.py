"""trace.report() and trace.view(): one document, in a file or in a notebook."""

import json
import re
from html.parser import HTMLParser

import pytest

import firelane
from firelane._trace import page_names
from small_trace import EVENTS

needs_page = pytest.mark.skipif(not page_names(), reason="built without the viewer: make viewer && make build")
HOSTILE = "</script><img src=x onerror=\"alert('1')\">&quot;' srcdoc="


class Tags(HTMLParser):
    def __init__(self, html):
        super().__init__()
        self.tags, self.text = [], ""
        self.feed(html)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))

    def handle_data(self, data):
        self.text += data


def answers(page):
    return json.loads(re.search(r'id="firelane-answers">(.*?)</script>', page, re.DOTALL)[1])


@pytest.fixture
def hostile(tmp_path):
    events = [{**event, "name": HOSTILE} if event.get("cat") == "kernel" else event for event in EVENTS]
    path = tmp_path / "it's <b>.json"
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}))
    return firelane.open(path)


def test_without_a_path_a_report_is_markdown(trace):
    assert trace.report().startswith("# ")


def test_the_file_name_decides_the_report_format(trace, tmp_path):
    assert trace.report(tmp_path / "r.md") is None
    assert (tmp_path / "r.md").read_text() == trace.report()
    with pytest.raises(firelane.TraceError, match=r"r\.txt: a report is HTML or Markdown"):
        trace.report(tmp_path / "r.txt")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["r.md", "small.json"]


def test_an_existing_report_is_replaced_only_with_force(trace, tmp_path):
    (tmp_path / "r.md").write_text("mine")
    with pytest.raises(firelane.TraceError, match="exists"):
        trace.report(tmp_path / "r.md")
    assert (tmp_path / "r.md").read_text() == "mine"
    trace.report(str(tmp_path / "r.md"), force=True)
    assert (tmp_path / "r.md").read_text() != "mine"


@needs_page
def test_an_html_report_is_the_page_with_its_data(trace, tmp_path):
    trace.report(tmp_path / "r.html")
    assert answers((tmp_path / "r.html").read_text())["t/0/overview"]["json"]["name"] == "small.json"


@needs_page
def test_a_notebook_gets_one_frame_that_may_run_scripts_and_nothing_else(hostile):
    html = hostile.view(height=321)._repr_html_()
    ((frame, attributes),) = Tags(html).tags
    assert frame == "iframe" and Tags(html).text == ""
    assert attributes["sandbox"] == "allow-scripts" and attributes["height"] == "321"
    page = attributes["srcdoc"]
    assert page.lower().startswith("<!doctype html>") and page.rstrip().endswith("</html>")
    assert "img" not in [tag for tag, _ in Tags(page).tags]
    assert answers(page)["t/0/overview"]["json"]["top_kernels"][0][0] == HOSTILE


@needs_page
def test_the_frame_of_a_larger_trace_stays_small_enough_for_a_notebook(gpt_full):
    assert len(firelane.open(gpt_full).view()._repr_html_()) < 2_500_000


def test_outside_notebooks_the_view_shows_the_command(trace, trace_file, hostile):
    assert repr(trace.view()) == f"firelane view {trace_file}"
    assert repr(hostile.view()).startswith("firelane view '") and "it'\"'\"'s <b>.json" in repr(hostile.view())


def test_an_invalid_height_is_rejected(trace):
    with pytest.raises(ValueError, match="height"):
        trace.view(height=0)
