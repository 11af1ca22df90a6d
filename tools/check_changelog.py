#!/usr/bin/env python3
"""Checks that the changelog mentions every command that users can type.

    tools/check_changelog.py [ROOT]      prints one line per gap, exit code 1 if there is one

Every verb (src/cli/verb_NAME.cc) must appear in CHANGELOG.md as `firelane NAME`, and the project's version must have a
section there unless there is an [Unreleased] one.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path


def gaps(root: Path) -> list[str]:
    changelog = (root / "CHANGELOG.md").read_text()
    found = []
    for path in sorted((root / "src/cli").glob("verb_*.cc")):
        verb = path.stem.removeprefix("verb_").replace("_", "-")
        if not re.search(rf"`firelane {re.escape(verb)}\b", changelog):
            found.append(f"CHANGELOG.md: `firelane {verb}` is not mentioned ({path.relative_to(root)})")
    version = re.search(r"project\(firelane VERSION ([\d.]+)", (root / "CMakeLists.txt").read_text())
    if not version:
        found.append("CMakeLists.txt: no project(firelane VERSION ...)")
    elif f"## [{version[1]}]" not in changelog and "## [Unreleased]" not in changelog:
        found.append(f"CHANGELOG.md: neither a section [{version[1]}] nor [Unreleased]")
    return found


def main() -> int:
    problems = gaps(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parent.parent)
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
