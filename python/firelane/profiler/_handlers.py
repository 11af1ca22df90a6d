"""Ready-made `on_trace_ready` callbacks."""

from __future__ import annotations

import inspect
import os
import socket
import time
from collections.abc import Callable
from typing import Any


def tensorboard_trace_handler(
    dir_name: str, worker_name: str | None = None, use_gzip: bool = False, use_python_export: bool = False
) -> Callable[[Any], None]:
    """Writes each cycle to `dir_name/<worker>.<time in ns>.pt.trace.json[.gz]` in the background.

    The worker name defaults to `<host>_<pid>`; set it where workers share both (containers). `use_python_export` is
    accepted and ignored.
    """

    def handler(prof: Any) -> None:
        nonlocal worker_name
        try:
            os.makedirs(dir_name, exist_ok=True)
        except OSError as error:
            raise RuntimeError(f"Can't create directory: {dir_name}") from error
        if not worker_name:
            worker_name = f"{socket.gethostname()}_{os.getpid()}"
        name = f"{worker_name}.{time.time_ns()}.pt.trace.json{'.gz' if use_gzip else ''}"
        takes_wait = "wait" in inspect.signature(prof.export_chrome_trace).parameters  # unless overridden
        prof.export_chrome_trace(os.path.join(dir_name, name), **({"wait": False} if takes_wait else {}))

    return handler
