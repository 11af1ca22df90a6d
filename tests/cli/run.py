#!/usr/bin/env python3
"""Runs the command-line tests: text files that show commands and their output.

    tests/cli/run.py BINARY FILE.test...        UPDATE=1 rewrites the files instead of comparing

A test file holds comments and commands, each followed by its output:

    # a missing file is one clear line
    $ firelane info missing.json
    ! firelane: missing.json: No such file or directory
    = 1

`|` is a line of stdout, `!` a line of stderr, `=` the exit code if it is not 0. Commands run in bash, one after
another, in an empty folder where `data` is tests/data, `firelane` is the binary, and `on_tty CMD` runs CMD on a
terminal and shows its control characters as ^[ and ^M.
"""

from __future__ import annotations

import difflib
import os
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent


def run_command(command: str, folder: Path, env: dict[str, str]) -> list[str]:
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env=env,
        capture_output=True,
        timeout=300,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    lines = [f"| {line}".rstrip() for line in split_lines(done.stdout)]
    lines += [f"! {line}".rstrip() for line in split_lines(done.stderr)]
    return lines + ([f"= {done.returncode}"] if done.returncode else [])


def split_lines(data: bytes) -> list[str]:
    text = data.decode(errors="backslashreplace")
    lines = text.split("\n")
    if lines[-1] == "":
        return lines[:-1]
    return [*lines[:-1], lines[-1] + "(no line break at the end)"]


def replay(text: str, binary: Path) -> str:
    """The test file with the output that the commands have now."""
    out: list[str] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        tools = folder / ".tools"
        tools.mkdir()
        (tools / "firelane").symlink_to(binary.resolve())
        (tools / "on_tty").symlink_to(HERE / "on_tty.py")
        (folder / "data").symlink_to(HERE.parent / "data")
        env = {"PATH": f"{tools}:/usr/local/bin:/usr/bin:/bin", "HOME": name, "LC_ALL": "C.UTF-8", "TERM": "xterm"}
        for line in text.splitlines():
            if line[:1] in ("|", "!", "="):
                continue
            out.append(line)
            if line.startswith("$ "):
                out += run_command(line[2:], folder, env)
    return "\n".join(out) + "\n"


def main() -> int:
    if len(sys.argv) < 3:
        print(__doc__)
        return 2
    binary, failed = Path(sys.argv[1]), False
    for path in map(Path, sys.argv[2:]):
        expected = path.read_text()
        actual = replay(expected, binary)
        if actual == expected:
            continue
        if os.environ.get("UPDATE"):
            path.write_text(actual)
            print(f"{path.name}: rewritten; review the diff")
            continue
        failed = True
        sys.stdout.writelines(
            difflib.unified_diff(
                expected.splitlines(True), actual.splitlines(True), f"{path.name} (expected)", f"{path.name} (now)"
            )
        )
        print(f"{path.name}: differs; UPDATE=1 {' '.join(sys.argv)} rewrites it")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
