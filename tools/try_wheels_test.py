"""What is tried, and what the documents say was tried."""

import json
import re
import subprocess
import sys
from pathlib import Path

TOOLS = Path(__file__).resolve().parent


def said_by_the_tools():
    """Asked in a process of their own: tools/wheels.py puts a stand-in where the package firelane would be."""
    program = (
        "import json, try_wheels, wheels; "
        "print(json.dumps([try_wheels.PAIRS, wheels.PYTHONS, wheels.TORCH, wheels.LIMIT_BYTES]))"
    )
    command = [sys.executable, "-c", program]
    return json.loads(subprocess.run(command, cwd=TOOLS, check=True, capture_output=True, text=True).stdout)


def test_the_pairs_that_are_tried_are_those_of_the_documents_table_and_wheels_are_built_for_them():
    pairs, pythons, torches, _ = said_by_the_tools()
    text = (TOOLS.parent / "docs/install.md").read_text()
    table = text.partition("| Python | torch | works |")[2].partition("\n\n")[0]
    rows = re.findall(r"^\| (3\.\d+) \| (2\.\d+) \|", table, re.MULTILINE)
    assert [":".join(row) for row in rows] == pairs
    assert {python for python, _ in rows} <= set(pythons) and {torch for _, torch in rows} <= set(torches)


def test_a_wheel_may_have_25_megabytes_and_no_byte_more():
    assert said_by_the_tools()[3] == 25 * 1000 * 1000
