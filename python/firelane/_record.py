"""firelane._record: the recorder for the Python and the torch that run.

Two compiled parts: the library with the hooks into torch (`_recorders.py` finds the one that fits), and the module
`_recorder`, which is compiled for one version of Python and finds the library, once it is loaded, by its SONAME.
`_record.pyi` declares and documents what they offer.
"""

import ctypes
from importlib import import_module

import torch

from . import _recorders


def _load():
    library = _recorders.find(torch.__version__, bool(torch.compiled_with_cxx11_abi()))
    if library is None:
        raise ImportError(_recorders.refusal(torch.__version__))
    try:
        ctypes.CDLL(str(library))  # stays loaded, as torch does
    except OSError as error:
        raise ImportError(
            f"the recorder {library} does not fit this torch {torch.__version__}: {error}; "
            f"`{_recorders.build_command()}` compiles one that does"
        ) from error
    return import_module("._recorder", __package__)


_native = _load()
globals().update({name: getattr(_native, name) for name in dir(_native) if not name.startswith("__")})
