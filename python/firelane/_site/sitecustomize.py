"""`firelane record` and `firelane verify` put this folder on PYTHONPATH: Python runs this file before the program.

It waits for the program to import torch and then hands over to firelane._auto, or firelane._verify. A program without
torch runs as usual, and one line at its end says that nothing was recorded. The program's own sitecustomize, which this
one hides, runs as well. Nothing in here may fail: any error becomes one line on stderr, and the program goes on.
"""

from __future__ import annotations

import atexit
import importlib.abc
import importlib.util
import json
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    import importlib.machinery
    from collections.abc import Callable, Sequence
    from types import ModuleType

_HERE = os.path.dirname(os.path.abspath(__file__))


class _WhenImported(importlib.abc.MetaPathFinder):
    """Calls `then` once, right after `name` has been imported."""

    def __init__(self, name: str, then: Callable[[], None]) -> None:
        self.name, self.then = name, then

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if name != self.name:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.loader is not None:
            execute, then = spec.loader.exec_module, self.then

            def execute_then_notify(module: ModuleType) -> None:
                execute(module)
                then()

            spec.loader.exec_module = execute_then_notify  # type: ignore[method-assign]  # a hook
        return spec


def _start_recording() -> None:
    try:
        package_parent = os.path.dirname(os.path.dirname(_HERE))
        if package_parent not in sys.path:
            sys.path.append(package_parent)
        if os.environ.get("FIRELANE_VERIFY"):
            from firelane import _verify

            _verify.begin(os.environ["FIRELANE_VERIFY"])
            return
        from firelane import _auto

        _auto.begin(os.environ["FIRELANE_RECORD"])
    except BaseException as error:
        print(f"firelane: the program is not being recorded: {error}", file=sys.stderr)


def _run_hidden_sitecustomize() -> None:
    this = sys.modules.pop("sitecustomize")
    sys.path[:] = [p for p in sys.path if os.path.abspath(p or ".") != _HERE]
    try:
        importlib.import_module("sitecustomize")
    except ImportError as error:
        if error.name != "sitecustomize":
            raise
        sys.modules["sitecustomize"] = this


def _report_missing_torch() -> None:
    if os.getpid() == _PROCESS and "torch" not in sys.modules:
        print("firelane: nothing recorded in this process: torch was not imported", file=sys.stderr)


if os.environ.get("FIRELANE_VERIFY"):
    sys.meta_path.insert(0, _WhenImported("torch", _start_recording))
elif os.environ.get("FIRELANE_RECORD"):
    _PROCESS = json.loads(os.environ["FIRELANE_RECORD"]).get("process")  # child processes without torch stay silent
    atexit.register(_report_missing_torch)
    sys.meta_path.insert(0, _WhenImported("torch", _start_recording))
_run_hidden_sitecustomize()
