"""Reads traces of PyTorch programs; use it through `import firelane`."""

from collections.abc import Iterator, Sequence
import os
import types
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
        Ops, annotations, Python functions, runtime and driver calls: everything with a start and an end on the host.
        """

    @property
    def op_details(self) -> Table:
        """
        What only ops and annotations have: shapes, types, stacks, sequence numbers.
        """

    @property
    def data_dependencies(self) -> Table:
        """
        Which op has to wait for the data of which other: from execution traces.
        """

    @property
    def call_details(self) -> Table:
        """
        What only runtime and driver calls have: correlation and the op that made the call.
        """

    @property
    def device_slices(self) -> Table:
        """Kernels, copies, memsets, synchronizations, device-side annotations."""

    @property
    def kernel_details(self) -> Table:
        """
        What only kernels have: grid, block, registers, shared memory, occupancy, CUDA graph.
        """

    @property
    def copy_details(self) -> Table:
        """
        What only copies and memsets have: bytes, bandwidth, direction, kinds of memory.
        """

    @property
    def sync_details(self) -> Table:
        """What a device-side synchronization waits for."""

    @property
    def comm_details(self) -> Table:
        """Collectives: what NCCL, or another backend, was asked to do."""

    @property
    def memory_events(self) -> Table:
        """Allocations and frees."""

    @property
    def allocator_events(self) -> Table:
        """
        What the CUDA caching allocator did below allocations and frees: segments, completed frees.
        """

    @property
    def allocator_segments(self) -> Table:
        """
        Segments that the caching allocator held when recording began, and again after each pause.
        """

    @property
    def allocator_blocks(self) -> Table:
        """The pieces of these segments: allocated, waiting or free."""

    @property
    def instants(self) -> Table:
        """Events without a duration."""

    @property
    def stack_samples(self) -> Table:
        """Where threads were: sampled Python stacks."""

    @property
    def counter_tracks(self) -> Table:
        """Counters: power, clocks, queue lengths."""

    @property
    def counter_samples(self) -> Table:
        """The values of counters over time."""

    @property
    def flows(self) -> Table:
        """Arrows other than op to launch to device work and forward to backward."""

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
        Show what a trace is, what it can answer, and what it lost.
        What `firelane info --json` prints.
        """

    def diagnose(self, *, short: bool = False) -> Table:
        """
        Find what limits the program, what to change, and how much that would gain.
        print() shows what `firelane diagnose` prints.

        short: text: the verdict, and two lines for each of the first findings
        """

    def breakdown(self, *, table: Literal['parts', 'steps', 'phases', 'annotations', 'operators'] = 'parts') -> Table:
        """
        Show how each step was spent on device and host; the parts add up to the step.
        print() shows what `firelane breakdown` prints.

        table: which of the report's tables the rows are
        """

    def idle(self, *, table: Literal['gaps', 'causes', 'lines'] = 'gaps', rows: int | None = None) -> Table:
        """
        Show why the device was idle: the cause of every gap.
        print() shows what `firelane idle` prints.

        table: which of the report's tables the rows are
        rows: show at most this many; 0 = all (default: all, of which print() shows 15)
        """

    def launches(self) -> Table:
        """
        Show what launches cost, how long work waits in the queue, and how deep the queue is.
        print() shows what `firelane launches` prints.
        """

    def syncs(self) -> Table:
        """
        List every call that waited for the device: how long it waited, and what called it.
        print() shows what `firelane syncs` prints.
        """

    def critical_path(self, *, table: Literal['pieces', 'classes', 'edges', 'data_chain'] = 'pieces', rows: int | None = None) -> Table:
        """
        Show the chain of dependencies that decides how long a step takes.
        print() shows what `firelane critical-path` prints.

        table: which of the report's tables the rows are
        rows: show at most this many; 0 = all (default: all, of which print() shows 20)
        """

    def whatif(self, *, host: float = 1.0, kernels: float = 1.0, communication: float = 1.0, copies: float = 1.0, latency: float = 1.0, data_order: bool = False, without: Sequence[Literal['input', 'gc', 'loading', 'syncs']] = (), kernel: Sequence[str] = ()) -> dict[str, Any]:
        """
        Estimate how long a step would take if something cost less, by replaying the trace's dependencies.
        What `firelane whatif --json` prints.

        host: the host's own work takes this fraction of its time (1 = unchanged, 0 = free)
        kernels: device compute takes this fraction of its time (1 = unchanged, 0 = free)
        communication: communication takes this fraction of its time (1 = unchanged, 0 = free)
        copies: memcpy and memset takes this fraction of its time (1 = unchanged, 0 = free)
        latency: latency from launch to start takes this fraction of its time (1 = unchanged, 0 = free)
        data_order: device work waits for its launch and its data, but not for earlier work on its stream (needs an execution trace)
        without: leave this out; may be repeated
        kernel: device work whose name contains NAME takes FACTOR of its time; may be repeated
        """

    def ops(self, *, sort_by: str | None = None, group_by_input_shape: bool = False, group_by_stack: int = 0, top_level: bool = False, side: Literal['both', 'host', 'device'] = 'both', flops: bool = False, time_unit: Literal['s', 'ms', 'us'] | None = None, rows: int | None = None) -> Table:
        """
        Show time, memory and FLOPs per operator, like torch's key_averages().table().
        print() shows what `firelane ops` prints.

        sort_by: largest first, by torch's names: self_cpu_time_total, cuda_time_total, count, flops, ...
        group_by_input_shape: one row per name and input shapes
        group_by_stack: one row per name and this many innermost Python frames
        top_level: only ops that are not called by other ops
        side: rows that run on the CPU, on the device, or both
        flops: show FLOPs even if the recording did not ask for them
        time_unit: one unit for all times
        rows: show at most this many; 0 = all (default: all, of which print() shows 100)
        """

    def kernels(self, *, group_by_op: bool = False, by_stream: bool = False, sort_by: Literal['total', 'mean', 'min', 'max', 'calls', 'occupancy', 'bytes', 'name'] = 'total', rows: int | None = None) -> Table:
        """
        Show device time per kernel, memcpy and memset: calls, durations, launch shape, occupancy, bandwidth.
        print() shows what `firelane kernels` prints.

        group_by_op: one row per kernel and the op that launched it
        by_stream: one row per kernel and stream
        sort_by: largest first; names ascending
        rows: show at most this many; 0 = all (default: all, of which print() shows 30)
        """

    def roofline(self, *, table: Literal['roofline', 'utilization'] = 'roofline', rows: int | None = None) -> Table:
        """
        Show FLOP/s and bandwidth per op and shape against the device's peak, and FLOPs utilization per step.
        print() shows what `firelane roofline` prints.

        table: which of the report's tables the rows are
        rows: show at most this many; 0 = all (default: all, of which print() shows 30)
        """

    def steps_summary(self) -> Table:
        """
        Show how long each step took, and how much of it the devices were busy.
        print() shows what `firelane steps` prints.
        """

    def lanes_summary(self, *, all: bool = False) -> Table:
        """
        List threads and GPU streams: what each contains and how long it was busy.
        print() shows what `firelane lanes` prints.

        all: show lanes without slices too
        """

    def lines(self, *, rows: int | None = None) -> Table:
        """
        Show what each line of the program costs per step: host and device, forward and backward.
        print() shows what `firelane lines` prints.

        rows: show at most this many; 0 = all (default: all, of which print() shows 30)
        """

    def fusion(self, *, rows: int | None = None) -> Table:
        """
        Find chains of small kernels that one kernel could replace: launches, traffic and time it would save.
        print() shows what `firelane fusion` prints.

        rows: show at most this many; 0 = all (default: all, of which print() shows 20)
        """

    def modules(self, *, table: Literal['modules', 'phases'] = 'modules', by_type: bool = False, depth: int | None = None, rows: int | None = None) -> Table:
        """
        Show time, memory and FLOPs per nn.Module and per phase, forward and backward.
        print() shows what `firelane modules` prints.

        table: which of the report's tables the rows are
        by_type: one row per type of module
        depth: modules at most this deep; 0 = the outermost (default: all)
        rows: show at most this many; 0 = all (default: all, of which print() shows 50)
        """

    def memory(self, *, table: Literal['devices', 'at_peak', 'owners', 'steps', 'spikes', 'allocator', 'allocator_shares', 'growth', 'copies', 'curve', 'allocator_curve'] = 'devices', curve: bool = False, rows: int | None = None) -> Table:
        """
        Show where memory went: the peak and what is alive at it, steps, spikes, growth, copies, allocator.
        print() shows what `firelane memory` prints.

        table: which of the report's tables the rows are
        curve: also every change of allocated and reserved memory
        rows: show at most this many; 0 = all (default: all, of which print() shows 10)
        """

    def input(self, *, table: Literal['steps', 'transfers'] = 'steps') -> Table:
        """
        Show how data is loaded: waiting for the DataLoader, copies to the device, what overlaps.
        print() shows what `firelane input` prints.

        table: which of the report's tables the rows are
        """

    def inference(self, *, rows: int | None = None) -> Table:
        """
        Analyze generation by a language model: prefill and decode, time to first token, time per token, tokens/s.
        print() shows what `firelane inference` prints.

        rows: show at most this many; 0 = all (default: all, of which print() shows 10)
        """

    def cost(self, *, price_per_hour: float | None = None, grams_per_kwh: float | None = None, samples_per_step: int | None = None, steps_per_run: int | None = None, overhead_factor: float = 1.0) -> dict[str, Any]:
        """
        Show what a step costs: energy where power was recorded, money and CO2 at your prices.
        What `firelane cost --json` prints.

        price_per_hour: of the machine, in any currency
        grams_per_kwh: CO2 of the electricity
        samples_per_step: batch size of a step
        steps_per_run: steps of the whole training
        overhead_factor: energy of the data center divided by energy of the device (PUE)
        """

    @property
    def diagnosis(self) -> dict[str, Any]:
        """
        The verdict with the evidence of each finding: what `firelane diagnose --json` prints.
        """

    def _short_verdict(self, *, color: bool = False) -> str: ...

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

    def _export_as_torch(self, path: str | os.PathLike[str], *, collections: bool) -> None: ...

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

    def _function_events(self, python_functions: bool = False) -> _FunctionEvents: ...

    def _memory_categories(self) -> list[str]: ...

    @property
    def _start_unix_ns(self) -> int: ...

    def _key_averages(self, group_by_input_shape: bool = False, group_by_stack_n: int = 0, group_by_overload_name: bool = False, python_functions: bool = False) -> list[dict[str, Any]]: ...

class View:
    """What view() gives: a notebook draws it."""

    def _repr_html_(self) -> str: ...

    def __repr__(self) -> str: ...

class _FunctionEvents:
    def __len__(self) -> int: ...

    def parent(self, event: int) -> int | None: ...

    def children(self, event: int) -> list[int]: ...

    def is_on_device(self, event: int) -> bool: ...

    def times(self, event: int) -> tuple[int, int]: ...

    def metadata_json(self, event: int) -> str: ...

    def fields(self, event: int) -> dict[str, Any]: ...

def open(path: str | os.PathLike[str], *, execution_trace: str | os.PathLike[str] = '', snapshot: str | os.PathLike[str] = '', threads: int = 0) -> Trace:
    """
    Opens a trace: .lane, .json or .json.gz (Kineto or Chrome). threads=0 uses every core.
    execution_trace and snapshot are joined to it: what ExecutionTraceObserver and
    torch.cuda.memory._dump_snapshot wrote in the same run.
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

def _compare(before: Sequence[str], after: Sequence[str], threshold: float, alpha: float) -> tuple[str, str]: ...

def _compare_report(before: Sequence[str], after: Sequence[str], threshold: float, alpha: float, path: str | os.PathLike[str] | None, force: bool) -> str | None: ...

def _compare_view(before: Sequence[str], after: Sequence[str], threshold: float, alpha: float, height: int) -> View: ...

def _gate(baseline: Sequence[str], store: str, label: str, candidate: Sequence[str], limits: Sequence[tuple[str, str]], alpha: float) -> tuple[str, str]: ...

def _judge(before: Sequence[float], after: Sequence[float], threshold: float = 0.03, alpha: float = 0.05, noise: tuple[float, float] | None = None, with_range: bool = True) -> dict[str, Any]: ...

def _warm_up_steps(steps: Sequence[float]) -> int: ...

def _ranks(paths: Sequence[str], keep_parts: bool, price_per_hour: float, link_gb_s: float, ranks_per_host: int) -> tuple[str, str]: ...

def _rank_part(path: str, name: str = '') -> bytes: ...

def _ranks_of_parts(parts: Sequence[bytes], price_per_hour: float, link_gb_s: float, ranks_per_host: int) -> tuple[str, str]: ...

def _replay(kind: Sequence[int], sync: Sequence[int], communicates: Sequence[bool], after: Sequence[Sequence[int]], durations: Sequence[float]) -> tuple[list[float], list[float], list[float]]: ...

def thread_stacks() -> str:
    """
    Python's and native frames of all threads of this process but the calling one, or one line why not.
    """

def python_stacks() -> dict[int, list[tuple[types.CodeType, int]]]:
    """
    By thread: code and line of its frames, innermost first, of all threads at the same moment.
    """

def thread_state(thread: int) -> str:
    """
    Whether a thread of this process runs, or in which system call it waits.
    """

class Watchdog:
    """
    Writes the stacks of all threads when it was not fed in time; needs no GIL for it.
    """

    def __init__(self, folder: str) -> None: ...

    def feed(self, step: int, limit_ms: int) -> None: ...

    def take_incident(self) -> int: ...

    def end(self, longest_wait_ms: int) -> bool: ...

class StackRecorder:
    """
    Samples the stacks of this process from a thread that needs no GIL, until stop().
    """

    def start(self) -> None: ...

    def stop(self) -> tuple[list[str], list[tuple[str, int]]]:
        """
        What was seen, as texts for metadata `stack_samples`; and what was not: (reason, count).
        """

def record_stacks(rate: float) -> StackRecorder:
    """
    What samples from start() on; a RuntimeError says why that is not possible.
    """

def wrong_rate(rate: float) -> str:
    """What is wrong with a rate of samples; empty: nothing."""

def why(run: str, step: int = -1) -> str: ...
