#!/usr/bin/env python3
"""Reruns the commands in the documents' `cmdoutput` blocks and compares, or rewrites, what they print.

    tools/regen_docs.py            prints a diff and exits with 1 when a block no longer matches
    tools/regen_docs.py --write    puts the new output into the documents (make docs)

A block is fenced, marked `cmdoutput`, and holds one or more commands, each after "$ ", followed by its output,
including stderr. Commands run with bash in the repository's root, with build/release first in PATH, 120 columns and
no colors. A last line `...` in an output means that the rest is left out: it stays, and the lines before it are
compared. Only commands whose output is the same on every machine belong in such a block.
"""

from __future__ import annotations

import argparse
import difflib
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BLOCK = re.compile(r"^(?P<fence>```+)cmdoutput\n(?P<body>.*?)^(?P=fence)$", re.MULTILINE | re.DOTALL)
LEFT_OUT = "..."


def run_command(command: str) -> str:
    env = os.environ | {
        "PATH": f"{ROOT}/build/release:{os.environ['PATH']}",
        "NO_COLOR": "1",
        "COLUMNS": "120",
        "LC_ALL": "C.UTF-8",
    }
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=ROOT,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=120,
        check=False,
    )
    output = done.stdout.decode(errors="replace")
    if done.returncode == 127:
        raise RuntimeError(f"{command}: {output.strip()} (make build first)")
    return output


def split_commands(body: str) -> list[tuple[str, list[str]]]:
    """The commands of a block, each with the output lines below it."""
    commands: list[tuple[str, list[str]]] = []
    for line in body.splitlines():
        if line.startswith("$ "):
            commands.append((line[2:], []))
        elif commands:
            commands[-1][1].append(line)
        else:
            raise ValueError(f"cmdoutput: a block must begin with '$ command', not {line!r}")
    return commands


def new_body(body: str, run: Callable[[str], str]) -> str:
    lines: list[str] = []
    for command, old in split_commands(body):
        new = [line.rstrip() for line in run(command).splitlines()]
        if old and old[-1] == LEFT_OUT and len(new) >= len(old):
            new = [*new[: len(old) - 1], LEFT_OUT]
        lines += [f"$ {command}", *new]
    return "".join(line + "\n" for line in lines)


def new_text(text: str, run: Callable[[str], str]) -> str:
    def replace(match: re.Match[str]) -> str:
        return f"{match['fence']}cmdoutput\n{new_body(match['body'], run)}{match['fence']}"

    return BLOCK.sub(replace, text)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="rewrite the documents instead of comparing")
    args = parser.parse_args()
    stale = 0
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), ROOT / "bench/README.md"]:
        if not path.exists():
            continue
        old = path.read_text()
        try:
            new = new_text(old, run_command)
        except (RuntimeError, ValueError) as error:
            print(f"{path.relative_to(ROOT)}: {error}", file=sys.stderr)
            return 1
        if new == old:
            continue
        stale += 1
        name = str(path.relative_to(ROOT))
        if args.write:
            path.write_text(new)
            print(f"rewrote {name}")
        else:
            sys.stdout.writelines(
                difflib.unified_diff(old.splitlines(True), new.splitlines(True), name, f"{name} (now)", n=2)
            )
    if stale and not args.write:
        print("Outputs in the documents are stale: run `make docs` and review the diff.", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
