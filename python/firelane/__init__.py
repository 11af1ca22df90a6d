"""Opens traces of PyTorch programs.

    import firelane
    trace = firelane.open("trace.json.gz")
    print(trace.ops())                                      # the table of key_averages()
    df = pandas.DataFrame.from_arrow(trace.host_slices)     # also polars, DuckDB, pyarrow

Nothing here needs torch. See docs/python.md.
"""

from ._trace import Table, Trace, TraceError, open
from ._trace import version as __version__

TraceError.__module__ = "firelane"  # the name that tracebacks show

__all__ = ["Table", "Trace", "TraceError", "__version__", "open"]
