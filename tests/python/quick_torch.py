"""For programs that tests run in a process of their own: `import quick_torch` instead of, or before, `import torch`.

Importing torch imports a thousand modules, and an optimizer's first call all of torch.compile: most of the time of
such a program, for what none of them uses. Here these modules are left out, with the torch that CI has; torch 2.15
needs some of them. Who calls into one of them nevertheless gets an error that says so.
"""

import importlib.abc
import importlib.machinery
import importlib.metadata
import sys
import types
import warnings

IS_QUICK = importlib.metadata.version("torch").startswith("2.11.")
# Packages that torch imports and eager programs do not need: half of its modules.
UNUSED = """torch._export torch._higher_order_ops torch._meta_registrations torch._subclasses torch.ao
    torch.distributions torch.export torch.fx torch.masked torch.nested torch.nn.intrinsic torch.nn.qat
    torch.nn.quantizable torch.nn.quantized torch.package torch.testing""".split()


class _AnythingType(type):
    def __getattr__(cls, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return cls

    def __or__(cls, _):
        return cls

    __ror__ = __getitem__ = __or__

    def __iter__(cls):
        return iter(())


class _Anything(metaclass=_AnythingType):
    """What modules of torch take from those that are left out while they are imported: types, bases, decorators."""

    def __new__(cls, *args, **_):
        if len(args) == 1 and isinstance(args[0], types.FunctionType):
            return args[0]
        return cls


class _LeftOut(types.ModuleType):
    is_importing = True

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        if _LeftOut.is_importing or name[0].isupper():  # later on torch asks whether something is of a type of theirs
            return _Anything
        return _LeftOut(f"{self.__name__}.{name}")  # a module, or a function that fails when it is called

    def __call__(self, *_, **__):
        raise RuntimeError(f"quick_torch has left out {self.__name__}; import torch in this program")


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name, path, target=None):
        if not any(name == left_out or name.startswith(left_out + ".") for left_out in UNUSED):
            return None
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec):
        return _LeftOut(spec.name)

    def exec_module(self, module):
        pass


with warnings.catch_warnings():
    if IS_QUICK:
        sys.meta_path.insert(0, _Finder())
        sys.modules["numpy"] = None  # type: ignore[assignment]  # means that it cannot be imported
        warnings.filterwarnings("ignore", message="Failed to initialize NumPy")
    import torch

if IS_QUICK:
    del sys.modules["numpy"]
    _LeftOut.is_importing = False
    stub = types.ModuleType("torch._dynamo")
    vars(stub).update(
        graph_break=lambda: None,
        disable=lambda function, *_, **__: function,
        trace_rules=types.SimpleNamespace(clear_lru_cache=lambda: None),  # which a process group asks for
    )
    torch._dynamo = sys.modules["torch._dynamo"] = stub
