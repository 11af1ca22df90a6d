"""Run by test_python_versions.py under each CPython and recorded into sys.argv[2].

Frames, C calls, exceptions, generators, threads, the garbage collector, modules and other profilers.
"""

import cProfile
import gc
import pstats
import sys
import threading

sys.path.insert(0, sys.argv[1])
import frames_module


class Module:
    """Stands for torch.nn.Module."""

    def __init__(self, **children):
        self.children = children

    def named_modules(self, prefix=""):
        yield prefix, self
        for name, child in self.children.items():
            yield from child.named_modules(f"{prefix}.{name}" if prefix else name)

    def __call__(self, x):
        for child in self.children.values():
            x = child(x)
        return self.forward(x)

    def forward(self, x):
        return x + 1


class Leaf(Module):
    pass


def numbers():
    yield 1
    yield 2


def raises():
    raise KeyError("k")


def deep(n):
    return deep(n - 1) if n else 0


def in_thread():
    len("abc")


def everything(model):
    sum(numbers())
    try:  # noqa: SIM105 (contextlib.suppress would add frames of its own)
        raises()
    except KeyError:
        pass
    try:  # noqa: SIM105 (as above)
        int("no")
    except ValueError:
        pass
    deep(3)
    thread = threading.Thread(target=in_thread)
    thread.start()
    thread.join()
    gc.collect()
    model(1)


profile = None if sys.argv[3] == "alone" else cProfile.Profile()
if profile:
    profile.enable()
original = Module.__call__
model = Module(first=Leaf(), second=Module(inner=Leaf()))
frames_module.start(sys.argv[2], Module)
everything(model)
loss = frames_module.stop()
everything(model)
assert loss == "", loss
assert Module.__call__ is original
if profile:
    profile.disable()
    calls = {key[2]: value[1] for key, value in pstats.Stats(profile).stats.items()}  # type: ignore[attr-defined]  # typeshed leaves it out
    assert calls["everything"] == 2 and calls["deep"] == 8, calls
else:
    assert sys.getprofile() is None
assert len(gc.callbacks) == 0
