"""`firelane record` puts this folder on PYTHONPATH: Python runs this file before the program.

It waits for the program to import torch and then hands over to firelane._auto. A program without torch runs as
usual, and one line at its end says that nothing was recorded. The program's own sitecustomize, hidden by this one, is
run as well. Nothing in here may fail: any error becomes one line on stderr, and the program continues.
"""

import atexit
import importlib.abc
import importlib.util
import json
import os
import sys

_HERE = os.path.dirname(os.path.abspath(__file__))


class _WhenImported(importlib.abc.MetaPathFinder):
    """Calls `then` once, right after `name` has been imported."""

    def __init__(self, name, then):
        self.name, self.then = name, then

    def find_spec(self, name, path=None, target=None):
        if name != self.name:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.loader is not None:
            execute, then = spec.loader.exec_module, self.then

            def execute_and_tell(module):
                execute(module)
                then()

            spec.loader.exec_module = execute_and_tell
        return spec


def _torch_was_imported():
    try:
        package_parent = os.path.dirname(os.path.dirname(_HERE))
        if package_parent not in sys.path:
            sys.path.append(package_parent)
        from firelane import _auto

        _auto.begin(os.environ["FIRELANE_RECORD"])
    except BaseException as error:
        print(f"firelane: the program is not being recorded: {error}", file=sys.stderr)


def _run_hidden_sitecustomize():
    this = sys.modules.pop("sitecustomize")
    sys.path[:] = [p for p in sys.path if os.path.abspath(p or ".") != _HERE]
    try:
        import sitecustomize
    except ImportError as error:
        if error.name != "sitecustomize":
            raise
        sys.modules["sitecustomize"] = this


def _report_missing_torch():
    if os.getpid() == _PROCESS and "torch" not in sys.modules:
        print("firelane: nothing recorded in this process: torch was not imported", file=sys.stderr)


if os.environ.get("FIRELANE_RECORD"):
    _PROCESS = json.loads(os.environ["FIRELANE_RECORD"]).get("process")  # children without torch print nothing
    atexit.register(_report_missing_torch)
    sys.meta_path.insert(0, _WhenImported("torch", _torch_was_imported))
_run_hidden_sitecustomize()
