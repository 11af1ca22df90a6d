#!/usr/bin/env python3
"""Counts lines of C++ below src/ by room, without tests, at commits.

    tools/lines_by_room.py 8ad4fb0c 433e5615 HEAD     a Markdown table, a column for each commit

Counted are `.cc` and `.h` without `*_test.cc` and `testing.h`. A room is a folder of src/; those of `record` and `bind`
count as one each.
"""

from __future__ import annotations

import collections
import subprocess
import sys


def git(*arguments: str, given: bytes = b"") -> bytes:
    return subprocess.run(["git", *arguments], input=given, capture_output=True, check=True).stdout


def is_counted(path: str) -> bool:
    name = path.rpartition("/")[2]
    return path.count("/") > 1 and name.endswith((".cc", ".h")) and not name.endswith(("_test.cc", "testing.h"))


def lines_by_room(commit: str) -> collections.Counter[str]:
    paths = [
        path for path in git("ls-tree", "-r", "--name-only", commit, "src").decode().splitlines() if is_counted(path)
    ]
    texts = git("cat-file", "--batch", given="".join(f"{commit}:{path}\n" for path in paths).encode())
    lines: collections.Counter[str] = collections.Counter()
    at = 0
    for path in paths:
        begin = texts.index(b"\n", at) + 1  # after "id blob size"
        end = begin + int(texts[at:begin].split()[2])
        lines[path.split("/")[1]] += texts.count(b"\n", begin, end)
        at = end + 1
    return lines


def main() -> int:
    commits = sys.argv[1:]
    if not commits:
        print(__doc__)
        return 2
    columns = [lines_by_room(commit) for commit in commits]
    print("| room | " + " | ".join(commits) + " |")
    print("|---|" + "---:|" * len(commits))
    for room in sorted(set().union(*columns)):
        print(f"| `{room}` | " + " | ".join(f"{each[room]:,}" if each[room] else "" for each in columns) + " |")
    print("| all | " + " | ".join(f"{each.total():,}" for each in columns) + " |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
