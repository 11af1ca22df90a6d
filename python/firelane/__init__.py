"""Records PyTorch programs, and opens their traces.

    import firelane
    with firelane.profile(shapes=True) as p:                # see docs/profiler.md
        train()
    print(p.key_averages().table(sort_by="self_cpu_time_total"))

    trace = firelane.open("trace.json.gz")
    print(trace.ops())                                      # the table of key_averages()
    df = pandas.DataFrame.from_arrow(trace.host_slices)     # also polars, DuckDB, pyarrow
    print(firelane.compare("before.lane", "after.lane"))    # see docs/compare.md
    print(firelane.ranks("traces/"))                        # see docs/ranks.md

Only recording needs torch, which is imported on first use of profile, install or firelane.profiler.
See docs/python.md.
"""

from ._trace import Table, Trace, TraceError, open
from ._trace import version as __version__

TraceError.__module__ = "firelane"  # the name that tracebacks show

__all__ = [
    "Table",
    "Trace",
    "TraceError",
    "__version__",
    "always_on",
    "compare",
    "gate",
    "install",
    "open",
    "profile",
    "ranks",
    "uninstall",
]

_FROM = {
    "always_on": "_always",
    "compare": "_compare",
    "gate": "_compare",
    "ranks": "_ranks",
    "profile": "_profile",
    "install": "_install",
    "uninstall": "_install",
}

TYPE_CHECKING = False  # type checkers take it as True; saves importing typing
if TYPE_CHECKING:
    from . import profiler as profiler
    from ._always import always_on
    from ._compare import compare, gate
    from ._install import install, uninstall
    from ._profile import profile
    from ._ranks import ranks
del TYPE_CHECKING


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, "profiler"})  # also what __getattr__ imports later


def __getattr__(name: str) -> object:
    from importlib import import_module

    if name == "profiler":
        return import_module(".profiler", __name__)
    if name in _FROM:
        return getattr(import_module("." + _FROM[name], __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
