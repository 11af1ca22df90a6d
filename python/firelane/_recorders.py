"""Which recorder library fits the running torch, and where such libraries are.

torch's C++ API changes between minor versions, so each has a library of its own: `recorders/torch_2_11.so` serves
every release of 2.11. Wheels bring those of the releases on PyPI; `firelane build-recorder` compiles one for any other
torch into the user's cache. Nothing in here imports torch.
"""

from __future__ import annotations

import hashlib
import os
import re
import sys
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent
WITHOUT_GPU = "_cpu"  # ends the name of a library that was built without CUPTI's headers

_RELEASE = re.compile(r"(\d+)\.(\d+)(\.\d+)*(\.post\d+)?(\+.*)?")


def name_for(torch_version: str, cxx11_abi: bool) -> str:
    """The library's name: one for all releases of a minor version, and one for each nightly and each own build.

    `cxx11_abi`: False for torch 2.6's wheels from PyPI, whose std::string is the old one.
    """
    release = _RELEASE.fullmatch(torch_version)
    name = f"torch_{release[1]}_{release[2]}" if release else "torch_" + re.sub(r"\W", "_", torch_version)
    return name if cxx11_abi else name + "_precxx11"


def source_folder() -> Path | None:
    """The C++ sources that a library is compiled from: a wheel's, else those of the checkout around this file."""
    for folder in (PACKAGE / "recorder_source", PACKAGE.parent.parent):
        if (folder / "src" / "record" / "library" / "library.cc").exists():
            return folder
    return None


ROOMS = ("base", "format", "record/core", "record/cupti", "record/torch", "record/library")


def source_files(folder: Path) -> list[Path]:
    """Everything that a library is compiled from, in a fixed order."""
    files = [folder / "include" / "firelane" / "profiler.h"]
    for room in ROOMS:
        found = sorted((folder / "src" / room).iterdir())
        files += [f for f in found if f.suffix in (".h", ".cc", ".map") and not f.stem.endswith(("_test", "testing"))]
    return files


def digest(folder: Path) -> str:
    """Another one as soon as any of the sources is another."""
    content = hashlib.sha256()
    for file in source_files(folder):
        content.update(file.read_bytes())
    return content.hexdigest()[:16]


def _user_cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "firelane"


def cache_folder() -> Path | None:
    """Where `firelane build-recorder` puts libraries; another one as soon as the sources are others."""
    sources = source_folder()
    return None if sources is None else _user_cache() / f"recorders-{digest(sources)}"


def find(torch_version: str, cxx11_abi: bool) -> Path | None:
    """The library for this torch: the user's own comes first."""
    name = name_for(torch_version, cxx11_abi)
    folders = [cache_folder()] if _user_cache().is_dir() else []  # reading the sources takes some ms
    for folder in [*folders, PACKAGE / "recorders"]:
        for file in (f"{name}.so", f"{name}{WITHOUT_GPU}.so"):
            if folder is not None and (folder / file).is_file():
                return folder / file
    return None


def bundled() -> list[str]:
    """The versions of torch that this package brings a recorder for: ["2.6", "2.7"]."""
    found = {
        (int(m[1]), int(m[2])) for f in PACKAGE.glob("recorders/*.so") if (m := re.match(r"torch_(\d+)_(\d+)", f.name))
    }
    return [f"{major}.{minor}" for major, minor in sorted(found)]


def refusal(torch_version: str) -> str:
    """One line: that no library fits, and what to do."""
    have = bundled()
    which = f"recorders for torch {', '.join(have)}" if have else "no recorder for any torch"
    return (
        f"this firelane brings {which}, and this is torch {torch_version}; `{build_command()}` compiles one for it, "
        "with any C++20 compiler. Reading traces (firelane.open, the command) works without it"
    )


def build_command() -> str:
    """As it is typed: by this Python where the command beside it is another's."""
    beside = Path(sys.executable).parent / "firelane"
    return "firelane build-recorder" if beside.exists() else "python -m firelane build-recorder"
