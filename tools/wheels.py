#!/usr/bin/env python3
"""Wheels that install in seconds: one for each Python, with a recorder for each version of torch.

    tools/wheels.py                                  # every Python that is found, every torch from 2.6 on
    tools/wheels.py --python python3.12 --torch 2.11 # one pair, for a try
    tools/wheels.py --recorders-only --torch 2.16    # one more recorder

Recorders (build/wheels/recorders-*) know nothing of Python, and the Python modules nothing of torch: each is compiled
once. A torch is fetched from the package index, unpacked as far as a compiler needs it, and deleted again. All else is
linked in (tools/static_deps.sh), but for the C and C++ libraries; libtorch_cpu.so and libc10.so are the user's, and so
is CUPTI, which the recorder opens at run time. What each wheel needs is read from its files, and gives its manylinux
tag. Not part of `make check`: it downloads gigabytes. Wheels land in dist/.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import types
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WORK = ROOT / "build" / "wheels"
TORCH = [f"2.{minor}" for minor in range(6, 16)]
PYTHONS = ["3.10", "3.11", "3.12", "3.13", "3.14"]
LIMIT_BYTES = 25_000_000

# The package's own builder, without the package, whose compiled parts are not there yet.
package = types.ModuleType("firelane")
package.__path__ = [str(ROOT / "python/firelane")]
sys.modules["firelane"] = package

# What a file in a wheel may need. manylinux allows the first group; torch and our own recorder are loaded before it.
SYSTEM = {"libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1", "libgcc_s.so.1", "libstdc++.so.6"}
LOADED = {"libtorch_cpu.so", "libc10.so", "libfirelane_recorder.so"}
# The newest libstdc++ symbols on systems with that glibc (as auditwheel's policies have it).
GLIBCXX = {34: (3, 4, 29), 35: (3, 4, 30), 36: (3, 4, 30)}


def say(text: str) -> None:
    print(f"wheels: {text}", flush=True)


def run(*command: object, **more: object) -> None:
    done = subprocess.run([str(word) for word in command], check=False, capture_output=True, text=True, **more)  # type: ignore[call-overload]
    if done.returncode:
        print(done.stdout[-3000:], done.stderr[-6000:], sep="\n", file=sys.stderr)
        raise SystemExit(f"wheels: failed: {' '.join(str(word) for word in command)}")


# ---- recorders


def fetch(packages: list[str], folder: Path, python: str = "3.12") -> list[Path]:
    platforms = [f"manylinux_2_{minor}_x86_64" for minor in range(28, 16, -1)] + [
        "manylinux2014_x86_64",
        "manylinux1_x86_64",
    ]
    chosen = [word for platform in platforms for word in ("--platform", platform)]
    base = [
        sys.executable,
        "-m",
        "pip",
        "download",
        "--quiet",
        "--no-deps",
        "--no-cache-dir",
        "--disable-pip-version-check",
    ]
    run(*base, "--only-binary=:all:", "--python-version", python, *chosen, "-d", folder, *packages)
    return sorted(folder.glob("*.whl"))


def cuda_headers() -> list[Path]:
    """CUPTI's and CUDA's headers, from the packages that torch depends on."""
    from firelane import _build_recorder

    folder = WORK / "cuda"
    if not folder.exists():
        with tempfile.TemporaryDirectory(dir=WORK) as downloads:
            for wheel in fetch(
                ["nvidia-cuda-cupti==13.0.*", "nvidia-cuda-runtime==13.0.*", "nvidia-cuda-crt==13.0.*"], Path(downloads)
            ):
                with zipfile.ZipFile(wheel) as archive:
                    archive.extractall(folder, [name for name in archive.namelist() if "/include/" in name])
    return _build_recorder.find_cupti(sorted(folder.glob("nvidia/*/include")))


def unpack_torch(wheel: Path, folder: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        wanted = ("torch/include/", "torch/lib/libc10.so", "torch/lib/libtorch_cpu.so", "torch/version.py")
        archive.extractall(folder, [name for name in archive.namelist() if name.startswith(wanted)])


def recorders_folder() -> Path:
    """Another one as soon as the recorder's sources are others."""
    from firelane import _recorders

    return WORK / f"recorders-{_recorders.digest(ROOT)}"


def build_recorder(series: str, compiler: list[str], downloads: Path | None) -> None:
    from firelane import _build_recorder

    begin = time.monotonic()
    with tempfile.TemporaryDirectory(dir=WORK) as name:
        folder = Path(name)
        found = sorted(downloads.glob(f"torch-{series}.*.whl")) if downloads else []
        wheel = found[-1] if found else fetch([f"torch=={series}.*"], folder)[0]
        unpack_torch(wheel, folder)
        if not found:
            wheel.unlink()
        about: dict[str, object] = {}
        exec((folder / "torch/version.py").read_text(), about)
        # Strings of the new kind are in the names of functions that take one.
        cxx11_abi = b"torchCheckFailEPKcS2_jRKNSt7__cxx11" in (folder / "torch/lib/libc10.so").read_bytes()
        torch = _build_recorder.Torch(folder / "torch", str(about["__version__"]), cxx11_abi, has_cuda=True)
        plan = _build_recorder.Plan(torch, ROOT, compiler, cuda_headers(), jobs=os.cpu_count() or 1)
        plan.zstd = str(ROOT / "build/static/lib/libzstd.a")
        objects = recorders_folder() / "objects"
        objects.mkdir(parents=True, exist_ok=True)
        output = recorders_folder() / _build_recorder.output_name(torch, with_gpu=True)
        try:
            _build_recorder.build(plan, output, objects)
        except _build_recorder.BuildError as error:
            raise SystemExit(f"wheels: torch {series}: {error}") from None
    say(
        f"{output.name} for torch {torch.version} ({output.stat().st_size >> 10} KiB, {time.monotonic() - begin:.0f} s)"
    )


# ---- wheels


def find_python(version: str) -> Path | None:
    """`version`: 3.12, or a path. pyenv's versions are found even when they are not the current one."""
    if "/" in version:
        return Path(version)
    found = shutil.which(f"python{version}")
    if found and "/shims/" not in found:
        return Path(found)
    candidates = sorted((Path.home() / ".pyenv/versions").glob(f"{version}.*/bin/python{version}"))
    return candidates[-1] if candidates else None


def write_licenses(static: Path, tools: Path) -> Path:
    """Of everything that is linked in: Debian's packages, and nanobind."""
    written = WORK / "THIRD_PARTY_LICENSES.txt"
    nanobind = "\n".join(file.read_text() for file in tools.rglob("nanobind-*.dist-info/**/LICENSE*"))
    written.write_text((static / written.name).read_text() + f"==== nanobind\n\n{nanobind}")
    return written


def build_wheel(python: Path, version: str) -> Path:
    """With a virtual environment of its own for the build's tools; the rooms are compiled for the first Python only."""
    begin = time.monotonic()
    tools = WORK / f"venv-{version}"
    if not (tools / "bin/pip").exists():
        run(python, "-m", "venv", tools)
    pins = [
        line
        for line in (ROOT / "tools/requirements.txt").read_text().split()
        if re.match("(nanobind|scikit-build)", line)
    ]
    run(tools / "bin/pip", "install", "--quiet", "--disable-pip-version-check", *pins)
    static = ROOT / "build/static"
    environment = {
        **os.environ,
        "CXX": os.environ.get("CXX", "clang++-19"),
        "CMAKE_PREFIX_PATH": str(static),
        "PKG_CONFIG_PATH": f"{static}/lib/pkgconfig",
        "CMAKE_GENERATOR": "Ninja",
    }
    defines = {
        "FIRELANE_RECORDERS": str(recorders_folder()),
        "FIRELANE_STATIC_ZSTD": f"{static}/lib/libzstd.a",
        "FIRELANE_LICENSES": str(write_licenses(static, tools)),
        # The C library stays shared, so that the command can load libdw for `sample --native`;
        # the C++ runtime, too: Debian 12's static one needs glibc 2.36 (arc4random, _dl_find_object).
        "CMAKE_EXE_LINKER_FLAGS": "-Wl,-s",
        "CMAKE_MODULE_LINKER_FLAGS": "-Wl,-s",
    }
    folder = WORK / "plain"
    shutil.rmtree(folder, ignore_errors=True)
    options = [word for key, value in defines.items() for word in ("--config-settings", f"cmake.define.{key}={value}")]
    build_folder = ("--config-settings", "build-dir=build/wheel-all")
    command = [tools / "bin/pip", "wheel", "--quiet", "--no-build-isolation", "--no-deps", "-w", folder]
    run(*command, *build_folder, *options, ROOT, env=environment)
    (plain,) = folder.glob("*.whl")
    with tempfile.TemporaryDirectory(dir=WORK) as name:  # a module links with symbols that nobody has
        with zipfile.ZipFile(plain) as archive:
            archive.extractall(name)
        run(tools / "bin/python", "-c", "import firelane; firelane._trace.page_names()", env={"PYTHONPATH": name})
    wheel = tag_wheel(plain)
    say(f"{wheel.name} ({wheel.stat().st_size / 1e6:.1f} MB, {time.monotonic() - begin:.0f} s)")
    return wheel


def needs_of(binary: Path) -> tuple[set[str], list[tuple[str, tuple[int, ...]]]]:
    """Names of the libraries that a file needs, and the versions of their symbols."""
    dynamic = subprocess.run(["readelf", "-dW", binary], check=True, capture_output=True, text=True).stdout
    versions = subprocess.run(["readelf", "-VW", binary], check=True, capture_output=True, text=True).stdout
    libraries = set(re.findall(r"\(NEEDED\)\s+Shared library: \[(.*?)\]", dynamic))
    found = set(re.findall(r"Name: (GLIBC|GLIBCXX)_([\d.]+)", versions))
    return libraries, [(name, tuple(int(part) for part in number.split("."))) for name, number in found]


def tag_wheel(plain: Path) -> Path:
    """Gives a wheel the manylinux tag that its files allow; refuses what no system would have."""
    glibc = 17
    glibcxx: tuple[int, ...] = (3, 4, 0)
    with tempfile.TemporaryDirectory(dir=WORK) as name, zipfile.ZipFile(plain) as archive:
        archive.extractall(name)
        for file in sorted(Path(name).rglob("*")):
            if not file.is_file() or file.read_bytes()[:4] != b"\x7fELF":
                continue
            libraries, versions = needs_of(file)
            strange = {n for n in libraries - SYSTEM - LOADED if not n.startswith("ld-linux")}
            if strange:
                raise SystemExit(f"wheels: {file.name} needs {', '.join(sorted(strange))}, which users do not have")
            glibc = max([glibc, *(number[1] for name_, number in versions if name_ == "GLIBC")])
            glibcxx = max([glibcxx, *(number for name_, number in versions if name_ == "GLIBCXX")])
    while glibc in GLIBCXX and glibcxx > GLIBCXX[glibc]:
        glibc += 1
    tag = f"manylinux_2_{glibc}_x86_64"
    tools = next(WORK.glob("venv-*"))
    run(tools / "bin/pip", "install", "--quiet", "--disable-pip-version-check", "wheel")
    run(tools / "bin/python", "-m", "wheel", "tags", "--remove", "--platform-tag", tag, plain)
    (tagged,) = plain.parent.glob("*.whl")
    if tagged.stat().st_size > LIMIT_BYTES:
        raise SystemExit(
            f"wheels: {tagged.name} has {tagged.stat().st_size / 1e6:.1f} MB, more than {LIMIT_BYTES / 1e6:.0f} MB"
        )
    (ROOT / "dist").mkdir(exist_ok=True)
    return tagged.replace(ROOT / "dist" / tagged.name)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", nargs="+", default=PYTHONS, help="versions or paths (default: all that are found)")
    parser.add_argument("--torch", nargs="+", default=TORCH, help="minor versions (default: 2.6 to 2.15)")
    parser.add_argument("--recorders-only", action="store_true", help="compile recorders, and no wheel")
    parser.add_argument("--downloads", type=Path, help="a folder with wheels of torch that need not be fetched")
    parser.add_argument("--again", action="store_true", help="compile recorders that are there already, too")
    wanted = parser.parse_args()
    WORK.mkdir(parents=True, exist_ok=True)
    run(ROOT / "tools/static_deps.sh", ROOT / "build/static")
    for series in wanted.torch:
        there = list(recorders_folder().glob(f"torch_{series.replace('.', '_')}*.so"))
        if wanted.again or not there:
            build_recorder(series, [os.environ.get("CXX", "clang++-19")], wanted.downloads)
    if wanted.recorders_only:
        return
    for version in wanted.python:
        python = find_python(version)
        if python is None:
            say(f"Python {version} is not here; no wheel for it")
            continue
        build_wheel(python, re.sub(r"\W", "", version))


if __name__ == "__main__":
    main()
