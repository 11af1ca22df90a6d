"""Reads traces of PyTorch programs; `import firelane` is the door to it."""

from collections.abc import Iterator
import os
from typing import Any, Literal, overload


version: str = '0.1.0'

class TraceError(Exception):
    pass

class Table:
    """
    A table of a trace. pandas, polars, DuckDB and pyarrow take it as it is, without a copy:
    pd.DataFrame.from_arrow(table), pl.DataFrame(table), duckdb.sql('from table'), pa.table(table).
    """

    @property
    def name(self) -> str: ...

    @property
    def column_names(self) -> list[str]: ...

    def __len__(self) -> int: ...

    def __getitem__(self, row: int, /) -> dict[str, Any]:
        """One row as a dict; texts as str, absent values as None."""

    def __iter__(self) -> Iterator[dict[str, Any]]: ...

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """
        The Arrow PyCapsule interface. The columns' memory outlives the table and its trace.
        """

    def __arrow_c_schema__(self) -> object: ...

    def _repr_html_(self) -> str: ...

    def __str__(self) -> str: ...

    def __repr__(self) -> str: ...

class Trace:
    """
    An open trace: tables named as in docs/python.md, and the answers of the command line.
    Times are in ns since the start of the trace; columns that name rows count from 0.
    """

    @property
    def lanes(self) -> Table:
        """Threads and GPU streams."""

    @property
    def host_slices(self) -> Table:
        """
        Ops, annotations, Python functions, runtime and driver calls: what has a start and an end on the host.
        """

    @property
    def op_details(self) -> Table:
        """
        What only ops and annotations have: shapes, types, stacks, sequence numbers.
        """

    @property
    def call_details(self) -> Table:
        """
        What only runtime and driver calls have: correlation and the op that made the call.
        """

    @property
    def device_slices(self) -> Table:
        """Kernels, copies, sets, synchronisations, device-side annotations."""

    @property
    def kernel_details(self) -> Table:
        """
        What only kernels have: grid, block, registers, shared memory, occupancy, CUDA graph.
        """

    @property
    def copy_details(self) -> Table:
        """Bytes and bandwidth of copies and sets."""

    @property
    def sync_details(self) -> Table:
        """What a device-side synchronisation waits for."""

    @property
    def comm_details(self) -> Table:
        """Collectives: what NCCL, or another backend, was asked to do."""

    @property
    def memory_events(self) -> Table:
        """Allocations and frees, negative bytes being freed ones."""

    @property
    def allocator_events(self) -> Table:
        """
        What the CUDA caching allocator did below allocations and frees: segments, completed frees.
        """

    @property
    def allocator_segments(self) -> Table:
        """
        Segments that it held when recording began, and again after each pause.
        """

    @property
    def allocator_blocks(self) -> Table:
        """The pieces of these segments: allocated, waiting or free."""

    @property
    def instants(self) -> Table:
        """Events without a duration."""

    @property
    def counter_tracks(self) -> Table:
        """The names of counters."""

    @property
    def counter_samples(self) -> Table:
        """The values of counters over time."""

    @property
    def flows(self) -> Table:
        """
        Arrows of the trace other than op to launch to device work, and forward to backward.
        """

    @property
    def steps(self) -> Table:
        """Iterations (ProfilerStep#N)."""

    @property
    def losses(self) -> Table:
        """What was skipped, repaired or left unlinked, with a remedy."""

    def args(self, table: Literal['host_slices', 'device_slices', 'memory_events', 'instants'], row: int) -> dict[str, Any]:
        """
        The args of one event as the source has them; the file is read again for it.
        """

    def __repr__(self) -> str: ...

    @property
    def info(self) -> dict[str, Any]:
        """
        What the trace is, what it can answer and what it lost: the words of `firelane info --json`.
        """

    def ops(self, *, sort_by: str | None = None, group_by_shape: bool = False, group_by_stack: int = 0, top_level: bool = False, side: Literal['both', 'host', 'device'] = 'both', rows: int | None = None, flops: bool = False) -> Table:
        """
        Time, memory and FLOPs per operator. print() gives the table of torch's key_averages().
        sort_by takes torch's names (self_cuda_time_total, count, ...); rows=None is all, 100 when printed.
        """

    def kernels(self, *, sort_by: Literal['total', 'mean', 'min', 'max', 'calls', 'occupancy', 'bytes', 'name'] = 'total', group_by_op: bool = False, by_stream: bool = False, rows: int | None = None) -> Table:
        """
        Device time per kernel, copy and set. rows=None is all, 30 when printed.
        """

    def steps_summary(self) -> Table:
        """How long each step took, and how much of it the devices worked."""

    def lanes_summary(self) -> Table:
        """Threads and GPU streams: what each holds and how long it was busy."""

    def roofline(self, *, table: Literal['roofline', 'utilization'] = 'roofline') -> Table:
        """
        FLOP/s and bandwidth per op and shape against what the device can do; FLOPs utilisation per step.
        """

    def fusion(self) -> Table:
        """
        Chains of small kernels that one kernel could do, and what that would save.
        """

    def modules(self, *, table: Literal['modules', 'phases'] = 'modules', by_type: bool = False, depth: int = -1) -> Table:
        """Time, memory and FLOPs per nn.Module, or per phase. depth=-1 is all."""

    def memory(self, *, table: Literal['devices', 'at_peak', 'owners', 'steps', 'spikes', 'growth', 'copies', 'curve', 'allocator', 'allocator_shares', 'allocator_curve'] = 'devices') -> Table:
        """
        Where memory went: peak, what is alive at it, steps, spikes, growth, copies, the curve, the allocator.
        """

    def input(self, *, table: Literal['steps', 'transfers'] = 'steps') -> Table:
        """Waiting for the DataLoader per step, and copies from host to device."""

    def inference(self) -> Table:
        """Prefill and decode passes of a language model."""

    def cost(self, *, price_per_hour: float | None = None, grams_per_kwh: float | None = None, samples_per_step: int | None = None, steps_per_run: int | None = None) -> dict[str, Any]:
        """What a step costs: the words of `firelane cost --json`."""

    def diagnose(self) -> Table:
        """
        What limits the program and what to change: one row per finding; print() gives the whole verdict.
        """

    @property
    def diagnosis(self) -> dict[str, Any]:
        """
        The verdict with the evidence of each finding: the words of `firelane diagnose --json`.
        """

    def _short_verdict(self, *, color: bool = False) -> str: ...

    def breakdown(self) -> Table:
        """How a step was spent on device and host; the parts add up to the step."""

    def idle(self) -> Table:
        """Why the device did nothing: one row per gap, longest first."""

    def launches(self) -> Table:
        """What launches cost, how long work waits, how deep the queue is."""

    def syncs(self) -> Table:
        """Every call that waited for the device: how long, and who asked."""

    def critical_path(self) -> Table:
        """The chain of dependencies that decides how long a step takes."""

    def whatif(self, *, host: float = 1.0, kernels: float = 1.0, communication: float = 1.0, copies: float = 1.0, latency: float = 1.0) -> dict[str, Any]:
        """
        How long a step would take if each kind of cost took this part of its time: the dependencies, replayed.
        """

    def sql(self, query: str) -> Table:
        """
        Runs SQL (SQLite's) over the trace's tables; docs/sql.md lists them and the views.
        Gives the rows of the last statement. Ctrl-C ends a long query.
        """

    def export(self, path: str | os.PathLike[str], *, to: Literal['chrome', 'perfetto', 'speedscope', 'stacks', 'csv', 'json'], table: str = '', metric: Literal['self_cpu', 'self_device'] = 'self_cpu', force: bool = False) -> None:
        """
        Writes the trace for another tool, compressed when the name ends in .gz. csv needs a table,
        stacks take a metric. An existing file is replaced only with force=True.
        """

    def report(self, path: str | os.PathLike[str] | None = None, *, force: bool = False) -> str | None:
        """
        The verdict and everything behind it in one document: the viewer for a path that ends in .html,
        Markdown for .md, and the Markdown itself without a path. An existing file is replaced only with force=True.
        """

    def view(self, *, height: int = 600) -> View:
        """
        In a notebook: the viewer, in the output of the cell, with what is in a report. Elsewhere it says which
        command opens the whole trace.
        """

    def _function_events(self) -> _FunctionEvents: ...

    def _memory_categories(self) -> list[str]: ...

    @property
    def _start_unix_ns(self) -> int: ...

    def _key_averages(self, group_by_input_shape: bool = False, group_by_stack_n: int = 0, group_by_overload_name: bool = False) -> list[dict[str, Any]]: ...

class View:
    """What Trace.view() gives: a notebook draws it."""

    def _repr_html_(self) -> str: ...

    def __repr__(self) -> str: ...

class _FunctionEvents:
    def __len__(self) -> int: ...

    def parent(self, event: int) -> int | None: ...

    def children(self, event: int) -> list[int]: ...

    def is_on_device(self, event: int) -> bool: ...

    def times(self, event: int) -> tuple[int, int]: ...

    def fields(self, event: int) -> dict[str, Any]: ...

def open(path: str | os.PathLike[str], *, threads: int = 0) -> Trace:
    """
    Opens a trace: Kineto or Chrome JSON, .json or .json.gz. threads=0 uses every core.
    Raises TraceError, with one line that says what is wrong, when nothing can be read.
    """

class Viewer:
    """
    Answers what the viewer asks about one trace, its number 0: docs/viewer-protocol.md.
    A path is loaded in the background. Any number of threads may ask at once.
    """

    @overload
    def __init__(self, trace: Trace) -> None: ...

    @overload
    def __init__(self, path: str | os.PathLike[str]) -> None: ...

    def answer(self, method: str, target: str, body: bytes = ...) -> tuple[int, str, bytes]:
        """
        Status, content type and body for a request such as 'GET', '/api/t/0/overview'.
        """

    def wait(self) -> None:
        """Returns when the trace is loaded, or has failed to."""

def page_names() -> list[str]:
    """
    The files of the viewer's page; none where the module was built without the viewer.
    """

def page(name: str) -> tuple[str, bytes] | None:
    """Content type and bytes of one of the page's files."""
