"""Which files a recording of an unmodified program goes to: one a process, however many a program starts."""

from __future__ import annotations

import fcntl
import glob
import os
import shlex

_claim = -1  # the older file that this process replaces, locked


def shown(path: str) -> str:
    """As it is typed: without the current folder, and with quotes where a shell needs them."""
    return shlex.quote(os.path.relpath(path) if path.startswith(os.getcwd() + os.sep) else path)


def inode(path: str) -> int:
    try:
        return os.stat(path).st_ino
    except OSError:
        return 0


def temporary_path(path: str) -> str:
    """Where a recording is written before it replaces an older file."""
    return f"{path}.pid{os.getpid()}.part"


def _split_name(output: str) -> tuple[str, str, str]:
    """ "run", ".", "lane"."""
    return output.rpartition(".") if "." in os.path.basename(output) else (output, "", "")


def path_for_this_process(output: str, old_inode: int) -> str:
    """`run.lane`; `run.rank3.lane` with ranks; `run.pid77.lane` for further processes of a program."""
    stem, dot, suffix = _split_name(output)
    from firelane.profiler import _ranks

    rank = _ranks.rank()
    if rank is not None:
        return f"{stem}.rank{rank}{dot}{suffix}"
    try:
        os.close(os.open(output, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
    except FileExistsError:
        if os.stat(output).st_ino == old_inode and _claims(output):
            return output
        return f"{stem}.pid{os.getpid()}{dot}{suffix}"
    except OSError:
        pass  # the recorder reports it at the end
    return output


def _claims(output: str) -> bool:
    """Whether this process is the one to replace the older file: the first one of the program that asks."""
    global _claim
    _claim = os.open(output, os.O_RDONLY | os.O_CLOEXEC)  # held until this process ends
    try:
        fcntl.flock(_claim, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def files_of_children(output: str, since_s: float) -> list[str]:
    """Those that further processes have written since then (Unix time)."""
    stem, dot, suffix = _split_name(output)
    found = glob.glob(f"{glob.escape(stem)}.pid*{glob.escape(dot + suffix)}")
    return sorted(file for file in found if os.stat(file).st_mtime >= since_s)
