#!/usr/bin/env python3
"""The source archive, with the viewer's page inside: who installs from it needs no Node.js.

    tools/sdist.py                  # dist/firelane-VERSION.tar.gz; `make sdist` builds the page first
    tools/sdist.py --folder DIR

pyproject.toml says what belongs into it. `python -m build --sdist` makes the same archive, but does not miss
viewer/dist where it was not built: hence this tool, which refuses then.
"""

from __future__ import annotations

import argparse
import os
import sys
import tarfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = "viewer/dist/report.html"
# What `pip install` of the archive, and `firelane build-recorder` after it, cannot do without.
NEEDED = [
    "CMakeLists.txt",
    "LICENSE",
    "README.md",
    "include/firelane/profiler.h",
    "pyproject.toml",
    "python/firelane/__init__.py",
    "src/CMakeLists.txt",
    "src/record/library/exports.map",
    "tools/cmake/FirelaneLibraries.cmake",
    "viewer/dist/index.html",
    PAGE,
]


def members(archive: Path) -> list[str]:
    """The files of an archive, without the folder that holds them all."""
    with tarfile.open(archive) as file:
        return sorted(entry.name.partition("/")[2] for entry in file if entry.isfile())


def build(root: Path, folder: Path) -> Path:
    if not (root / PAGE).exists():
        raise SystemExit(f"sdist: {PAGE} is not there, and an archive without the viewer is of no use: make sdist")
    from scikit_build_core.build import build_sdist

    here = Path.cwd()
    os.chdir(root)  # where a build backend is called
    try:
        archive = folder / build_sdist(str(folder))
    finally:
        os.chdir(here)
    lacks = sorted(set(NEEDED) - set(members(archive)))
    if lacks:
        archive.unlink()
        raise SystemExit(f"sdist: the archive lacks {', '.join(lacks)}; pyproject.toml says what belongs into it")
    return archive


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=ROOT / "dist", help="where the archive is written (dist)")
    wanted = parser.parse_args()
    wanted.folder.mkdir(parents=True, exist_ok=True)
    archive = build(ROOT, wanted.folder.resolve())
    print(f"sdist: {archive} ({archive.stat().st_size / 1e6:.1f} MB)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
