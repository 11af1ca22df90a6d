"""`firelane ranks` on Spark: traces are mapped by tasks, and the answer is that of one machine.

    python -m firelane.spark /shared/traces --json                 # the flags of `firelane ranks`
    spark-submit --files firelane firelane/spark.py /shared/traces

    from pyspark.sql import SparkSession
    import firelane.spark
    answer = firelane.spark.analyze(SparkSession.builder.getOrCreate(), ["/shared/traces"])
    print(answer["findings"])

Each task runs `firelane ranks map TRACE`, native code that reads the trace by its path, on the machine where Spark put
the task; what comes back are parts of kilobytes to a few MB, which the driver writes to disk and reduces with
`firelane ranks reduce`. Of jobs whose parts are larger than `shuffle_bytes`, the executors find which rows are one
collective, after a shuffle of the numbered rows by group and range of numbers. Executors need the `firelane` command
(in PATH, or sent along with spark.files) and a file system on which the paths mean the same; they need neither this
package nor torch. docs/scale.md has clusters and memory settings.
"""

from __future__ import annotations

import argparse
import heapq
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

__all__ = ["analyze", "answer"]

_ENDINGS = (".lane", ".json", ".json.gz", ".json.zst", ".part")
_MOST_DEPTH = 4  # folders below the one that was named, as in `firelane ranks`
_TASKS_PER_CORE = 2  # all with about as many bytes; each costs as much as mapping 20 MB
_FEW_FILES = 64  # whose parts come to the driver without lying on the executors' disks first
_MOST_COLLECTED = 256 << 20  # bytes of parts in the driver's memory at once, of all tasks together
_SHUFFLE_BYTES = 1 << 30  # of parts, from which on executors match: 5 million rows are 0.2 GB
_SHUFFLE_PARTITION = 64 << 20  # bytes of parts for each partition of the shuffle
_SCHEMA = "path string, part binary, error string"
_SLICES = "group string, range long, slice binary"


def analyze(
    spark: Any,
    paths: Sequence[str | os.PathLike[str]],
    *,
    command: str | None = None,
    shuffle_bytes: int = _SHUFFLE_BYTES,
) -> dict[str, Any]:
    """What `firelane ranks --json PATHS` prints, as a dictionary. `paths` are folders or traces."""
    result: dict[str, Any] = json.loads(answer(spark, paths, ["--json"], command=command, shuffle_bytes=shuffle_bytes))
    return result


def answer(
    spark: Any,
    paths: Sequence[str | os.PathLike[str]],
    flags: Sequence[str] = (),
    *,
    command: str | None = None,
    shuffle_bytes: int = _SHUFFLE_BYTES,
) -> bytes:
    """What `firelane ranks FLAGS PATHS` prints, byte for byte.

    `command` is the `firelane` of the executors and the driver; by default that of spark.files, else of PATH. A file of
    a folder that is no trace is left out with a line on stderr; one that was named itself is an error. Of parts that
    are larger than `shuffle_bytes` together, the executors match the numbered rows.
    """
    sizes, named = _find_files(paths)
    if not sizes:
        raise ValueError(f"no trace in {', '.join(map(str, paths))}")
    with tempfile.TemporaryDirectory(prefix="firelane-parts-") as name:
        parts, matches = Path(name) / "parts", Path(name) / "matches"
        parts.mkdir()
        count = 0
        for row in _mapped(spark, sizes, command, shuffle_bytes, matches):
            if row["error"] is not None:
                if row["path"] in named:
                    raise RuntimeError(row["error"])
                print(f"firelane: skipped: {row['error']}", file=sys.stderr)
                continue
            (parts / f"{count:08}.part").write_bytes(row["part"])
            count += 1
        words = [_own_command(command), "ranks", "reduce", str(parts), *flags]
        if matches.exists():
            words += ["--matches", str(matches)]
        done = subprocess.run(words, stdout=subprocess.PIPE, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"firelane ranks reduce ended with exit code {done.returncode}")
        return done.stdout


def _find_files(paths: Iterable[str | os.PathLike[str]]) -> tuple[dict[str, int], set[str]]:
    """All traces with their bytes, the largest first, and those that were named themselves."""
    found: dict[str, int] = {}
    named = set()
    for path in (os.fspath(each) for each in paths):
        if not os.path.isdir(path):
            named.add(path)
            found[path] = os.path.getsize(path)
            continue
        for folder, folders, names in os.walk(path):
            if folder[len(path) :].strip(os.sep).count(os.sep) + (folder != path) >= _MOST_DEPTH - 1:
                folders.clear()
            for name in names:
                file = os.path.join(folder, name)
                if name.endswith(_ENDINGS) and os.path.isfile(file):
                    found[file] = os.path.getsize(file)
    # A part that was kept beside its trace is made again: the trace may be newer.
    files = [file for file in found if not (file.endswith(".part") and file.removesuffix(".part") in found)]
    return {file: found[file] for file in sorted(files, key=lambda file: (-found[file], file))}, named


def _deal(sizes: dict[str, int], tasks: int) -> list[list[str]]:
    """The files of each task: the next largest goes to the one that has the least so far."""
    dealt: list[list[str]] = [[] for _ in range(tasks)]
    loads = [(0, 0, task) for task in range(tasks)]  # bytes, files, task: a heap
    for file, size in sizes.items():
        load, count, task = loads[0]
        dealt[task].append(file)
        heapq.heapreplace(loads, (load + size, count + 1, task))
    return dealt


def _mapped(spark: Any, sizes: dict[str, int], command: str | None, shuffle_bytes: int, matches: Path) -> Iterator[Any]:
    """A row for each file; the driver holds small parts at once, and large ones one partition at a time. What executors
    match goes into the folder `matches`, which is made then."""
    try:
        # Starting a task costs as much as mapping a small trace: a few files each.
        cores = spark.sparkContext.defaultParallelism
        tasks = min(len(sizes), _TASKS_PER_CORE * cores)
    except Exception:  # Spark Connect has no context
        tasks = cores = len(sizes)
    dealt = _deal(sizes, tasks)
    threads = int(spark.conf.get("spark.task.cpus", "1"))
    # A row a task, made by the JVM: the paths travel with the function, and Python is started once.
    parts = spark.range(0, tasks, 1, tasks).mapInArrow(_mapper(dealt, command, threads), _SCHEMA)
    from pyspark import StorageLevel

    # All tasks at once. Small parts come to the driver with the sizes of all, and mostly that is everything; larger
    # ones follow, one partition at a time, from the executors' disks. Writing them there takes time: of a few files it
    # is done only when there are such, which are mapped again then.
    is_kept = len(sizes) > _FEW_FILES
    if is_kept:
        parts = parts.persist(StorageLevel.DISK_ONLY)
    try:
        small = _MOST_COLLECTED // len(sizes)
        is_large = f"coalesce(octet_length(part), 0) > {small}"
        rows = parts.selectExpr(
            "path", f"if({is_large}, null, part) as part", "error", "octet_length(part) as bytes"
        ).collect()
        total = sum(row["bytes"] or 0 for row in rows)
        are_large = [(row["bytes"] or 0) > small for row in rows]
        if not is_kept and (total > shuffle_bytes or any(are_large)):
            is_kept = True
            parts = parts.persist(StorageLevel.DISK_ONLY)
        if total > shuffle_bytes:
            partitions = max(cores, total // _SHUFFLE_PARTITION + 1)
            slices = parts.select("part").mapInArrow(_slicer(command), _SLICES)
            shuffled = slices.repartition(partitions, "group", "range").select("slice")
            matches.mkdir()
            found = shuffled.mapInArrow(_matcher(command), "matches binary").toLocalIterator(prefetchPartitions=True)
            for count, row in enumerate(found):
                (matches / f"{count:08}").write_bytes(row["matches"])
        yield from (row for row, is_one in zip(rows, are_large, strict=True) if not is_one)
        if any(are_large):
            yield from parts.where(is_large).toLocalIterator(prefetchPartitions=True)
    finally:
        if is_kept:
            parts.unpersist()


def _program_finder(command: str | None) -> Callable[[], str | None]:
    """How a task finds the command. Travels by value, as the tasks do."""

    def find() -> str | None:
        import os
        import shutil

        from pyspark import SparkFiles

        sent = SparkFiles.get("firelane")
        return command or (sent if os.path.exists(sent) else shutil.which("firelane"))

    return find


def _mapper(dealt: list[list[str]], command: str | None, threads: int) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """What a task runs. Self-contained: it travels by value, to machines that need not have this package."""
    find_program = _program_finder(command)

    def run(batches: Iterator[Any]) -> Iterator[Any]:
        import gc
        import os
        import subprocess
        import tempfile

        import pyarrow

        # Spark's worker looks for garbage after each task: 40 ms, for the modules of pandas and pyarrow alone. What is
        # there before the first task stays until the worker ends.
        if gc.get_freeze_count() == 0:
            gc.freeze()
        program = find_program()
        schema = pyarrow.schema([("path", pyarrow.string()), ("part", pyarrow.binary()), ("error", pyarrow.string())])

        def row(path: str, part: str | None, error: str | None) -> Any:
            content = None
            if part is not None:
                with open(part, "rb") as file:
                    content = file.read()
            return pyarrow.RecordBatch.from_pydict({"path": [path], "part": [content], "error": [error]}, schema=schema)

        def map_one(path: str, folder: str) -> Any:
            output = os.path.join(folder, "one.part")
            words = [str(program), "ranks", "map", path, "-o", output, "--force", "--threads", str(threads)]
            done = subprocess.run(words, capture_output=True, text=True, check=False)
            if done.returncode == 0:
                return row(path, output, None)
            return row(path, None, done.stderr.strip().removeprefix("firelane: ") or f"{path}: firelane was killed")

        def map_all(paths: list[str], folder: str) -> Iterator[Any]:
            if program is None:
                for path in paths:
                    yield row(path, None, f"{path}: this executor has no firelane command in PATH or spark.files")
                return
            if len(paths) > 1:  # the program is started once, unless one of them cannot be read
                words = [program, "ranks", "map", *paths, "-o", folder, "--threads", str(threads)]
                if subprocess.run(words, capture_output=True, check=False).returncode == 0:
                    for i, path in enumerate(paths):
                        yield row(path, os.path.join(folder, f"{i}.part"), None)
                    return
            for path in paths:
                yield map_one(path, folder)

        for batch in batches:
            for task in batch.column(0).to_pylist():
                with tempfile.TemporaryDirectory(prefix="firelane-map-") as folder:
                    yield from map_all(dealt[task], folder)

    return run


def _slicer(command: str | None) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """Parts become slices: the numbered rows of a rank, by group and range of numbers (docs/ranks-part.md)."""
    find_program = _program_finder(command)

    def run(batches: Iterator[Any]) -> Iterator[Any]:
        import os
        import struct
        import subprocess
        import tempfile

        import pyarrow

        schema = pyarrow.schema([("group", pyarrow.string()), ("range", pyarrow.int64()), ("slice", pyarrow.binary())])
        head = struct.Struct("<IIIq")  # bytes that follow, checksum, bytes of the key, range; then the key
        with tempfile.TemporaryDirectory(prefix="firelane-slice-") as folder:
            source, target = os.path.join(folder, "part"), os.path.join(folder, "slices")
            for batch in batches:
                for part in batch.column(0).to_pylist():
                    if part is None:
                        continue
                    with open(source, "wb") as file:
                        file.write(part)
                    words = [str(find_program()), "ranks", "slice", source, "-o", target, "--force"]
                    subprocess.run(words, check=True)
                    with open(target, "rb") as file:
                        frames = file.read()
                    rows: dict[str, list[Any]] = {"group": [], "range": [], "slice": []}
                    at = 0
                    while at < len(frames):
                        size, _, key_size, number = head.unpack_from(frames, at)
                        key = at + head.size
                        rows["group"].append(frames[key : key + key_size].decode("utf-8", "replace"))
                        rows["range"].append(number)
                        rows["slice"].append(frames[at : at + 4 + size])
                        at += 4 + size
                    yield pyarrow.RecordBatch.from_pydict(rows, schema=schema)

    return run


def _matcher(command: str | None) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """All slices of some groups and ranges become what `firelane ranks reduce --matches` takes."""
    find_program = _program_finder(command)

    def run(batches: Iterator[Any]) -> Iterator[Any]:
        import os
        import subprocess
        import tempfile

        import pyarrow

        with tempfile.TemporaryDirectory(prefix="firelane-match-") as folder:
            source, target = os.path.join(folder, "slices"), os.path.join(folder, "matches")
            with open(source, "wb") as file:
                for batch in batches:
                    file.writelines(each.as_py() for each in batch.column(0))
            if os.path.getsize(source) == 0:
                return
            subprocess.run([str(find_program()), "ranks", "match", source, "-o", target], check=True)
            with open(target, "rb") as file:
                content = file.read()
            yield pyarrow.RecordBatch.from_pydict(
                {"matches": [content]}, schema=pyarrow.schema([("matches", pyarrow.binary())])
            )

    return run


def _own_command(command: str | None) -> str:
    beside = Path(sys.executable).parent / "firelane"
    found = command or shutil.which("firelane") or (str(beside) if beside.exists() else None)
    if found is None:
        raise FileNotFoundError("no firelane command in PATH; name it with command= or --command")
    return found


def _main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m firelane.spark",
        description="firelane ranks on Spark. Other flags are those of `firelane ranks`: --json, --rows, ...",
    )
    parser.add_argument("paths", nargs="+", help="folders or traces, by paths that every executor can read")
    parser.add_argument("--command", help="the firelane command of executors and driver")
    parser.add_argument(
        "--shuffle-mb", type=int, default=_SHUFFLE_BYTES >> 20, help="match on the executors above this size of parts"
    )
    parser.add_argument("--master", help="as of spark-submit; by default what Spark is configured with")
    known, flags = parser.parse_known_args()
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        print("firelane: Spark is not installed; pip install pyspark pyarrow pandas", file=sys.stderr)
        return 1
    if (known.master or "").startswith("local"):
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # workers would take the python3 of PATH
    builder = SparkSession.builder.appName("firelane ranks")
    spark = (builder.master(known.master) if known.master else builder).getOrCreate()
    try:
        sys.stdout.buffer.write(
            answer(spark, known.paths, flags, command=known.command, shuffle_bytes=known.shuffle_mb << 20)
        )
    except (OSError, RuntimeError, ValueError) as error:
        print(f"firelane: {error}", file=sys.stderr)
        return 1
    finally:
        spark.stop()
    return 0


if __name__ == "__main__":
    sys.exit(_main())
