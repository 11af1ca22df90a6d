"""`firelane record` puts this folder on PYTHONPATH: Python runs this file before the program.

It waits for the program to import torch and then hands over to firelane._auto; a program without
torch runs as ever, and one line at its end says that nothing was recorded. The program's own sitecustomize, hidden by this one, is run as well. Nothing
in here may fail: whatever goes wrong ends as one line on stderr, and the program goes on.
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

            def execute_and_tell(module: ModuleType) -> None:
                execute(module)
                then()

            spec.loader.exec_module = execute_and_tell  # type: ignore[method-assign]
        return spec


def _torch_is_there() -> None:
    try:
        package_parent = os.path.dirname(os.path.dirname(_HERE))
        if package_parent not in sys.path:
            sys.path.append(package_parent)
        from firelane import _auto

        _auto.begin(os.environ["FIRELANE_RECORD"])
    except BaseException as error:
        print(f"firelane: the program runs unrecorded: {error}", file=sys.stderr)


def _run_the_hidden_one() -> None:
    this = sys.modules.pop("sitecustomize")
    sys.path[:] = [p for p in sys.path if os.path.abspath(p or ".") != _HERE]
    try:
        importlib.import_module("sitecustomize")
    except ImportError as error:
        if error.name != "sitecustomize":
            raise
        sys.modules["sitecustomize"] = this


def _say_that_torch_was_not_there() -> None:
    if os.getpid() == _PROCESS and "torch" not in sys.modules:
        print("firelane: nothing recorded in this process: torch was not imported", file=sys.stderr)


if os.environ.get("FIRELANE_RECORD"):
    _PROCESS = json.loads(os.environ["FIRELANE_RECORD"]).get("process")  # children without torch say nothing
    atexit.register(_say_that_torch_was_not_there)
    sys.meta_path.insert(0, _WhenImported("torch", _torch_is_there))
_run_the_hidden_one()
