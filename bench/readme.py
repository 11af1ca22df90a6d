"""Puts a measured table into bench/README.md, between the marks of the program that measured it; reads it back."""

from pathlib import Path

PAGE = Path(__file__).resolve().parent / "README.md"


def write(program: str, text: str) -> None:
    begin, end = f"<!-- {program} begin -->\n", f"<!-- {program} end -->"
    before, rest = PAGE.read_text().split(begin)
    PAGE.write_text(before + begin + text.rstrip("\n") + "\n" + end + rest.split(end, 1)[1])


def read(program: str) -> str:
    """What is there now."""
    begin, end = f"<!-- {program} begin -->\n", f"<!-- {program} end -->"
    return PAGE.read_text().split(begin)[1].split(end, 1)[0]
