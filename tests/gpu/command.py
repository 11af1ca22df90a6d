"""Where the firelane command is that tests on a GPU machine run: "" if nowhere."""

import os
import shutil
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_PLACES = [
    os.environ.get("FIRELANE_BINARY"),
    ROOT / "build/release/firelane",
    ROOT / "build/carry/bin/firelane",
    shutil.which("firelane"),
]
FIRELANE = next((str(place) for place in _PLACES if place and Path(place).exists()), "")
