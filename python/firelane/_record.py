"""firelane._record: the recorder's hooks, compiled against one version of torch.

The compiled module carries torch's version in its name (`_record_torch_2_11`), so that several can be installed side by
side and the wrong one is never loaded: torch's C++ API changes between minor versions. `_record.pyi` declares and
documents it.
"""

import re
from importlib import import_module
from pathlib import Path

import torch


def _load():
    version = ".".join(re.findall(r"\d+", torch.__version__)[:2])
    name = "_record_torch_" + version.replace(".", "_")
    try:
        return import_module("." + name, __package__)
    except ModuleNotFoundError as error:
        if error.name != f"{__package__}.{name}":
            raise
    built = sorted(
        {
            m[1].replace("_", ".")
            for p in Path(__file__).parent.glob("_record_torch_*.so")
            if (m := re.match(r"_record_torch_(\d+_\d+)\.", p.name))
        }
    )
    have = f"was built for torch {', '.join(built)}" if built else "was built without torch"
    raise ImportError(
        f"firelane's recorder {have}, but this is torch {torch.__version__}; rebuild it against this torch, in "
        "firelane's source tree: `pip install scikit-build-core nanobind && pip install --no-build-isolation "
        "--force-reinstall --no-deps .` (to run from the tree itself: `make build`, then PYTHONPATH=python). "
        "Reading traces (firelane.open, the firelane command) works without it"
    )


_native = _load()
globals().update({name: getattr(_native, name) for name in dir(_native) if not name.startswith("__")})
