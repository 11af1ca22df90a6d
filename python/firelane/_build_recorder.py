"""`firelane build-recorder`: compiles the recorder for the torch that is installed, from the sources in the package.

Needs a C++20 compiler and nothing else: torch brings its headers and, where it has CUDA, its dependencies bring
CUPTI's. No Python headers either: the library knows nothing of Python.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from . import _recorders

OLDEST = (2, 6)


class BuildError(Exception):
    """One line: what is missing, and what to do."""


@dataclass
class Torch:
    """What has to be known of a torch to compile for it."""

    folder: Path
    version: str
    cxx11_abi: bool
    has_cuda: bool

    @property
    def has_cuda_headers(self) -> bool:
        return (self.folder / "include/c10/cuda/impl/cuda_cmake_macros.h").exists()


@dataclass
class Plan:
    torch: Torch
    sources: Path
    compiler: list[str]
    cupti: list[Path] = field(default_factory=list)  # folders with headers; empty: no GPU
    jobs: int = 2
    zstd: str = "-lzstd"  # how it is linked where the sources bring none

    @property
    def rooms(self) -> list[str]:
        return [room for room in _recorders.ROOMS if self.cupti or room != "record/cupti"]


def installed_torch() -> Torch:
    try:
        import torch
    except ImportError as error:
        raise BuildError(f"torch cannot be imported by {sys.executable} ({error}); install torch first") from None
    found = Torch(
        Path(torch.__file__).parent,
        torch.__version__,
        bool(torch.compiled_with_cxx11_abi()),
        torch.version.cuda is not None,
    )
    if tuple(int(part) for part in found.version.split(".")[:2]) < OLDEST:
        raise BuildError(
            f"torch {found.version} is older than {OLDEST[0]}.{OLDEST[1]}, the oldest that can be recorded"
        )
    if not (found.folder / "include/ATen/record_function.h").exists():
        raise BuildError(f"{found.folder} has no include/ATen: this torch was installed without its headers")
    return found


def find_compiler() -> list[str]:
    """$CXX, else the first of the usual names."""
    if os.environ.get("CXX"):
        return shlex.split(os.environ["CXX"])
    newest_first = [f"{name}-{n}" for n in range(24, 11, -1) for name in ("g++", "clang++")]
    for name in ("c++", "g++", "clang++", *newest_first):
        if shutil.which(name):
            return [name]
    raise BuildError("no C++ compiler: install one (Debian, Ubuntu: apt install g++), or name it: CXX=/path/to/g++")


def cuda_header_folders() -> list[Path]:
    """Where CUPTI's and CUDA's headers may be: packages that torch depends on, then the toolkit."""
    folders: list[Path] = []
    for package, patterns in (
        ("nvidia", ("cu*/include", "cuda_cupti/include", "cuda_runtime/include", "cuda_nvcc/include")),
        ("triton", ("backends/nvidia/include",)),
    ):
        spec = importlib.util.find_spec(package)
        for location in (spec.submodule_search_locations or []) if spec else []:
            folders += [folder for pattern in patterns for folder in sorted(Path(location).glob(pattern))]
    for toolkit in (os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH"), "/usr/local/cuda"):
        if toolkit:
            folders += [Path(toolkit) / "extras/CUPTI/include", Path(toolkit) / "include"]
    return folders


def find_cupti(folders: list[Path]) -> list[Path]:
    """Folders with all the headers that are needed, or an error that names what is missing."""
    needed = {
        "cupti_activity.h": "nvidia-cuda-cupti",
        "cuda_runtime_api.h": "nvidia-cuda-runtime",
        "crt/host_defines.h": "triton, nvidia-cuda-crt (CUDA 13) or nvidia-cuda-nvcc-cu12",
    }
    found: list[Path] = []
    for header, package in needed.items():
        folder = next((f for f in folders if (f / header).exists()), None)
        if folder is None:
            raise BuildError(
                f"the GPU part needs {header}, which comes with PyPI's {package} and with the CUDA toolkit "
                "(CUDA_HOME=/path/to/cuda); --no-gpu leaves that part out on purpose"
            )
        if folder not in found:
            found.append(folder)
    return found


def compile_command(plan: Plan, unit: Path, output: Path) -> list[str]:
    includes = [plan.sources / "src", plan.sources / "include"]
    foreign = [plan.torch.folder / "include", plan.torch.folder / "include/torch/csrc/api/include", *plan.cupti]
    if (plan.sources / "third_party").exists():
        foreign.append(plan.sources / "third_party")
    command = [*plan.compiler, "-std=c++20", "-O2", "-fPIC", "-w", "-DNDEBUG", "-pthread"]
    command += [f"-D_GLIBCXX_USE_CXX11_ABI={int(plan.torch.cxx11_abi)}"]
    if plan.cupti:
        command += ["-DFIRELANE_CUPTI=1", f"-DFIRELANE_TORCH_CUDA={int(plan.torch.has_cuda_headers)}"]
    command += [f"-I{folder}" for folder in includes]
    command += [word for folder in foreign for word in ("-isystem", str(folder))]
    return [*command, "-c", str(unit), "-o", str(output)]


def link_command(plan: Plan, objects: list[Path], output: Path) -> list[str]:
    zstd = plan.sources / "third_party/libzstd.a"
    script = plan.sources / "src/record/library/exports.map"
    command = [*plan.compiler, "-shared", "-pthread", "-o", str(output), *map(str, objects), "-Wl,-s", "-Wl,-Bsymbolic"]
    command += ["-Wl,-soname,libfirelane_recorder.so", f"-Wl,--version-script={script}", "-Wl,--no-as-needed"]
    command += [str(plan.torch.folder / "lib" / name) for name in ("libtorch_cpu.so", "libc10.so")]
    command += ["-Wl,-z,defs"]  # what this torch lacks is told now, and not when the library is loaded
    return [*command, "-Wl,--as-needed", str(zstd) if zstd.exists() else plan.zstd, "-ldl"]


def units(plan: Plan, folder: Path) -> list[Path]:
    """One source for each room, the slowest first: most of a compilation is reading headers."""
    written = []
    for rooms in (("record/torch", "record/library"), *((room,) for room in plan.rooms[:-2])):
        files = [f for room in rooms for f in sorted((plan.sources / "src" / room).glob("*.cc"))]
        files = [f for f in files if not f.stem.endswith("_test")]
        if not (plan.cupti and plan.torch.has_cuda_headers):
            cuda_only = {"cuda_memory.cc", "cuda_memory_events.cc", "graph_capture.cc", "late_start.cc"}
            files = [f for f in files if f.name not in cuda_only]
        unit = folder / (rooms[0].replace("/", "_") + ".cc")
        unit.write_text("".join(f'#include "{file}"\n' for file in files))
        written.append(unit)
    return written


def run(command: list[str]) -> None:
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode:
        last = "\n".join((done.stdout + done.stderr).strip().splitlines()[:30])
        raise BuildError(
            f"{shlex.join(command)}\n{last}\nthe compiler failed; it has to support C++20 (g++ 11, clang 14)"
        )


def build(plan: Plan, output: Path, objects: Path | None = None) -> None:
    """`objects`: a folder that keeps what does not depend on torch, for the next call with the same compiler."""
    with tempfile.TemporaryDirectory(prefix="firelane-recorder-") as name:
        folder = Path(name)
        wanted = []
        with ThreadPoolExecutor(plan.jobs) as pool:
            running = []
            for unit in units(plan, folder):
                keep = objects is not None and unit.stem != "record_torch"
                result = (objects if keep and objects else folder) / f"{unit.stem}.abi{int(plan.torch.cxx11_abi)}.o"
                wanted.append(result)
                if not (keep and result.exists()):
                    running.append(pool.submit(run, compile_command(plan, unit, result)))
            for task in running:
                task.result()
        output.parent.mkdir(parents=True, exist_ok=True)
        fresh = output.with_name(f".{output.name}.{os.getpid()}")
        run(link_command(plan, wanted, fresh))
        fresh.replace(output)  # at once: another process may be loading the old one


def output_name(torch: Torch, with_gpu: bool) -> str:
    return _recorders.name_for(torch.version, torch.cxx11_abi) + ("" if with_gpu else _recorders.WITHOUT_GPU) + ".so"


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="firelane build-recorder",
        description="Compile the recorder for the installed torch, if no recorder in this package fits it.",
    )
    parser.add_argument("--no-gpu", action="store_true", help="leave out the GPU part, which needs CUPTI's headers")
    parser.add_argument("--output", metavar="DIR", help="the folder to write to (default: the user's cache)")
    parser.add_argument(
        "--jobs", type=int, default=os.cpu_count() or 1, help="compilers to run in parallel (default: all cores)"
    )
    wanted = parser.parse_args(arguments)
    try:
        begin = time.monotonic()
        sources = _recorders.source_folder()
        if sources is None:
            raise BuildError("this package has no C++ sources; install firelane's wheel, or use a checkout")
        torch = installed_torch()
        plan = Plan(torch, sources, find_compiler(), jobs=max(1, wanted.jobs))
        if torch.has_cuda and not wanted.no_gpu:
            plan.cupti = find_cupti(cuda_header_folders())
        folder = Path(wanted.output) if wanted.output else _recorders.cache_folder()
        assert folder is not None
        output = folder / output_name(torch, bool(plan.cupti))
        gpu = "with CUPTI" if plan.cupti else "without the GPU's part" if torch.has_cuda else "this torch has no CUDA"
        print(f"firelane: compiling the recorder for torch {torch.version} ({gpu}) with {plan.compiler[0]}", flush=True)
        build(plan, output)
        print(f"firelane: {output} ({time.monotonic() - begin:.0f} s); recording with torch {torch.version} works now")
    except BuildError as error:
        print(f"firelane: build-recorder: {error}", file=sys.stderr)
        return 1
    return 0
