"""`python -m firelane`: what concerns this Python (build-recorder, --version --parts); the rest is the command's."""

import os
import shutil
import sys
from pathlib import Path


def main(arguments: list[str]) -> int:
    if arguments[:1] == ["build-recorder"]:
        from . import _build_recorder

        return _build_recorder.main(arguments[1:])
    if "--parts" in arguments and set(arguments) <= {"--version", "--parts"}:
        from . import _parts

        print(_parts.text())
        return 0
    beside = Path(sys.executable).parent / "firelane"
    command = str(beside) if beside.exists() else shutil.which("firelane")
    if command is None:
        print("firelane: the command is neither next to this Python nor on PATH", file=sys.stderr)
        return 1
    return os.execv(command, ["firelane", *arguments])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
