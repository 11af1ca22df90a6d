"""A recording of an H200 with light and full steps: what is told from which. Needs no GPU."""

import re
from pathlib import Path

import pytest

import firelane

DATA = Path(__file__).parent.parent / "data"
RECORDING = DATA / "h200_gpt_light.lane"


def test_times_are_those_of_light_steps_and_operators_those_of_full_ones():
    trace = firelane.open(RECORDING)
    assert [row["step"] for row in trace.steps_summary()] == [17, 18, 19, 20, 21]
    assert [row["number"] for row in trace.steps] == [22, 23, 24, 25, 26]
    assert "times are those of 5 light steps" in str(trace.diagnose())


def test_every_kernel_of_a_light_step_has_its_operator():
    kernels = firelane.open(f"{RECORDING}@light").sql("select op_name from kernels")
    assert len(kernels) == 2585
    assert all(row["op_name"] for row in kernels)


@pytest.mark.parametrize("path", sorted(DATA.glob("h200_*.lane")), ids=lambda path: path.stem)
def test_what_recording_took_is_told_with_the_step_of_the_verdict(path):
    """It said "11.3 ms without" below "a step takes 12.0 ms": one was from the mean, the other from the median."""
    text = str(firelane.open(path).diagnose())
    step = re.search(r"a step takes ([\d.]+ \w+)", text)
    without = re.search(r"while recording, ([\d.]+ \w+) without", text)
    assert without is None or (step and step[1] == without[1])


def test_nothing_is_to_be_left_out_that_was_not_recorded():
    """It advised to leave out --stacks, --shapes and --memory, none of which had been asked for."""
    text = str(firelane.open(RECORDING).diagnose())
    assert "recording took" in text and "leave out --" not in text and "--no-" not in text


def test_a_document_has_the_bars_of_the_verdict_and_says_which_steps_a_section_is_of(tmp_path):
    """Below "14.3 ms in light steps" stood the bars of a full step, and tables without a word on theirs."""
    firelane.open(RECORDING).report(tmp_path / "report.md")
    text = (tmp_path / "report.md").read_text()
    assert "Device time of a light step, as recorded" in text
    assert "Device time of a full step" not in text
    titles = re.findall(r"^## (.*)$", text, re.MULTILINE)
    assert "Operators that take the most (full steps)" in titles
