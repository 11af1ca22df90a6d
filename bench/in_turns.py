#!/usr/bin/env python3
"""Whether a program of bench/ became slower: run in another checkout and in this one, in turns, its rows side by side.

    bench/in_turns.py OTHER [--rounds 3] load.py [ARGUMENTS]

OTHER is a checkout of another commit, built (`make build`; for load.py and view.py also the targets bench_load and
make_trace). Each round runs the program in both, in turns, each as its own commit has it. Rows of the Markdown tables
that both print are compared cell by cell; of each number the least of all rounds is shown, and how many times the
other's this checkout's is. A row that only one of them prints is named below the table.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
NUMBER = re.compile(r"-?\d[\d,]*(?:\.\d+)?")

Rows = dict[str, list[float]]  # by the row's name, the numbers of its cells


def rows_of(text: str) -> Rows:
    """The rows of all tables in `text`: a name, which is the first cell, and the first number of each other cell."""
    rows: Rows = {}
    for line in text.splitlines():
        if not line.startswith("| "):
            continue
        name, *cells = (cell.strip() for cell in line.strip().strip("|").split("|"))
        file = [cell for cell in cells if cell and not cell[0].isdigit() and not cell.startswith("-")]
        costs = [cell for cell in cells if not cell.endswith("/s")]  # of rates the least says nothing
        numbers = [float(match[0].replace(",", "")) for cell in costs if (match := NUMBER.match(cell))]
        if numbers:
            rows[f"{name} {file[0]}" if file and "." in file[0] and "=" not in file[0] else name] = numbers
    return rows


def least(rounds: list[Rows]) -> Rows:
    """Of each number the least; rows and cells that every round has."""
    shared = [name for name in rounds[0] if all(name in rows for rows in rounds)]
    return {name: [min(cell) for cell in zip(*(rows[name] for rows in rounds), strict=False)] for name in shared}


def table(before: Rows, after: Rows) -> str:
    lines = ["| what | other | this | times |", "|---|--:|--:|--:|"]
    for name in (name for name in after if name in before):
        pairs = list(zip(before[name], after[name], strict=False))
        texts = [", ".join(f"{value:,.6g}" for value in side) for side in zip(*pairs, strict=True)]
        times = ", ".join(f"{now / then:.2f}" if then > 0 else "-" for then, now in pairs)
        lines.append(f"| {name} | {texts[0]} | {texts[1]} | {times} |")
    alone = sorted(set(before) ^ set(after))
    return "\n".join(lines + ([f"\nNot in both: {'; '.join(alone)}"] if alone else []))


def run(checkout: Path, program: str, arguments: list[str]) -> Rows:
    python = checkout / ".venv/bin/python"
    command = [str(python if python.exists() else sys.executable), f"bench/{program}", *arguments]
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    done = subprocess.run(command, cwd=checkout, env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{checkout}/bench/{program} failed: {(done.stderr.strip().splitlines() or ['no reason given'])[-1]}")
    return rows_of(done.stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("other", type=Path)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("program")
    parser.add_argument("arguments", nargs=argparse.REMAINDER)
    asked = parser.parse_args()
    rounds: tuple[list[Rows], list[Rows]] = ([], [])
    for number in range(asked.rounds):
        print(f"in_turns: round {number + 1} of {asked.rounds}", file=sys.stderr)
        for side, checkout in zip(rounds, (asked.other.resolve(), ROOT), strict=True):
            side.append(run(checkout, asked.program, asked.arguments))
    print(table(least(rounds[0]), least(rounds[1])))


if __name__ == "__main__":
    main()
