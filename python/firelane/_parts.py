"""What this installation has: `python -m firelane --version --parts`."""

from __future__ import annotations

import importlib.util
import platform

from . import _recorders
from ._trace import page_names
from ._trace import version as __version__


def _recorder_of_this_torch() -> str:
    if importlib.util.find_spec("torch") is None:
        return "torch is not installed here: traces can be read, nothing can be recorded"
    try:
        import torch

        from . import _record
    except ImportError as error:
        return f"none: {error}"
    return f"for torch {torch.__version__}, {'with' if _record.HAS_CUPTI else 'without'} the GPU's part (CUPTI)"


def text() -> str:
    bundled = ", ".join(_recorders.bundled()) or "none"
    rows = {
        "Python": f"{platform.python_version()}, package in {_recorders.PACKAGE}",
        "viewer": "yes" if "index.html" in page_names() else "no: built without viewer/dist",
        "recorders": f"torch {bundled}" if _recorders.bundled() else "none in the package",
        "recorder": _recorder_of_this_torch(),
        "sources": "yes" if _recorders.source_folder() else "no: firelane build-recorder cannot compile",
    }
    return "\n".join([f"firelane {__version__}", *(f"  {name:<10} {value}" for name, value in rows.items())])
