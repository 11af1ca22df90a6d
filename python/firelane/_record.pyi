"""The recorder: what the profiler's Python surface is built on.

    options = _record.RecordOptions(shapes=True, memory=True)
    recorder = _record.start(options)          # RuntimeError if another recording is active
    ...                                        # ops of all threads are recorded from here on
    recorder.stop()
    recorder.save("run.lane")                  # otherwise the file is deleted with `recorder`

Problems of the environment (missing folder, full disk) never raise while recording; `recorder.losses` lists them.
Everything here may be called from any thread. With a torch other than the one it was built for, the import raises an
ImportError that says how to rebuild.
"""

from collections.abc import Callable, Sequence
from os import PathLike
from typing import Any, Literal

TORCH_VERSION: str
"""The torch that the recorder was built against: "2.11.0"."""

HAS_CUPTI: bool
"""Whether the recorder was built with CUPTI's headers, without which it records no GPU."""

OPTIONS: tuple[tuple[str, bool, str, str], ...]
"""What a recording can be asked for: name, default, key in the trace, help. RecordOptions has a field of each name."""

ENVIRONMENT: tuple[tuple[str, str, str], ...]
"""The environment variables that are read: name, what holds when it is unset, meaning."""

class RecordOptions:
    """What to record. All fields can be read and set."""

    shapes: bool
    """Input dims, dtypes, strides and (with `concrete_inputs`) values of numbers, lists and strings."""
    memory: bool
    """Every allocation and free on every thread: the CPU's and, with `cuda`, those of torch's CUDA allocator."""
    stacks: bool
    """Python frames, C calls and garbage collections as slices, on all threads."""
    modules: bool
    """A slice per nn.Module call, named by its path: "model.layers.3.attn.q_proj"."""
    lines: bool
    """The line of the program that called each op, outside torch. Not with `stacks`, which say more."""
    cuda: bool
    """Kernels, memcpys, memsets, synchronizations, the calls behind them, GPU power. `losses` lists what is missing."""
    cuda_sync: bool
    """With `cuda`: also what each wait waited for. Costs as much as everything else together."""
    metrics: bool
    """With `cuda`: hardware counters of the GPUs in use, by CUPTI's PM sampling. `losses` says why there are none."""
    metric_names: str
    """With `metrics`: CUPTI's names, by commas. Empty: SM and tensor core activity, DRAM, PCIe and NVLink traffic."""

    @property
    def metric_interval_ms(self) -> float:
        """Between their samples."""

    flops: bool
    """torch.profiler's with_flops: turns shapes on; readers compute FLOPs from them."""
    cuda_detach: bool
    """With `cuda`: stop() takes CUPTI out of the process, unless TEARDOWN_CUPTI=0 or another tool uses it."""
    concrete_inputs: bool
    tensors: bool
    """With `shapes`: which tensor and which storage each input is, by their addresses."""
    start_paused: bool
    """Nothing is recorded until resume()."""
    start_light: bool
    """Light recording until begin_full(): the GPU's work, CUDA calls, garbage collections and ranges, but no ops."""
    output: str
    """The file while it is written, or its folder. Empty: FIRELANE_DIR, else the temporary folder."""
    keep: bool
    """Keep the file when the Recorder is destroyed, even without save(). Set it if the user chose `output`."""

    def __init__(
        self,
        *,
        shapes: bool = False,
        memory: bool = False,
        stacks: bool = False,
        modules: bool = False,
        lines: bool = False,
        cuda: bool = True,
        cuda_sync: bool = False,
        metrics: bool = False,
        metric_names: str = "",
        metric_interval_ms: float = 1.0,
        flops: bool = False,
        cuda_detach: bool = True,
        concrete_inputs: bool = True,
        tensors: bool = False,
        without: Sequence[str] = [],
        start_paused: bool = False,
        start_light: bool = False,
        output: str | PathLike[str] = "",
        keep: bool = False,
    ) -> None: ...

class Loss:
    """Something missing from the trace, and why. `count` is a number of events; 0: unknown, or not about events."""

    @property
    def reason(self) -> str: ...
    @property
    def count(self) -> int: ...

class Status:
    @property
    def state(self) -> Literal["recording", "paused", "failed", "stopped", "forked"]: ...
    @property
    def losses(self) -> list[Loss]: ...
    @property
    def event_count(self) -> int: ...
    @property
    def dropped_count(self) -> int: ...
    @property
    def file_bytes(self) -> int: ...
    @property
    def in_flight_bytes(self) -> int: ...
    @property
    def thread_count(self) -> int: ...

class Recorder:
    """One recording, from start() to stop(). A forked child's copy is inert (state "forked")."""

    def pause(self) -> None:
        """Turns the hooks off; slices that are open still get their ends. Cheap; may be called any number of times."""
    def resume(self) -> None: ...
    def begin_full(self) -> None:
        """With `start_light`: from now on everything that was asked for is recorded."""
    def pause_device(self) -> None:
        """The same for GPU activity. Does not wait for the GPU."""
    def resume_device(self) -> None:
        """With `start_paused`, GPU activity is recorded from the first call on."""
    def stop_device(self) -> None:
        """Stops recording the GPU once the queued work is done; everything else continues. Idempotent."""
    def stop(self) -> None:
        """Ends the recording and completes the file. Idempotent; the hooks are off when it returns."""
    def save(self, path: str | PathLike[str]) -> None:
        """After stop(): moves the file to `path`; a second save copies it. Raises OSError if that fails."""
    @property
    def path(self) -> str:
        """After stop(): where the file is; empty if there is none."""
    def status(self) -> Status: ...
    @property
    def losses(self) -> list[Loss]:
        """The same as status().losses."""
    @property
    def start_unix_ns(self) -> int: ...
    def add_metadata(self, key: str, json: str) -> None:
        """Adds metadata to the trace, until stop(). `json` is JSON text: '"a string"', '3', '{"a": 1}'."""
    def add_steps(self, timer: StepTimer) -> None:
        """Writes the steps that `timer` has collected into the trace and clears it. Call it before stop()."""
    def add_loss(self, reason: str, count: int = 0) -> None: ...

def start(options: RecordOptions) -> Recorder:
    """Starts recording. Raises RuntimeError if this process is already recording."""

def is_recording() -> bool:
    """True while a recording is active and not paused."""

class StepTimer:
    """Measures true step times: one clock reading per step, recorded or not. Lives as long as the profiler object.

    timer.step(0, "unrecorded"); ...; timer.step(1, "recorded"); ...; timer.finish(); recorder.add_steps(timer)

    `on_device`: also times unrecorded steps on the GPU, with one CUDA event per step; nothing waits for it.
    """

    def __init__(self, on_device: bool = False) -> None: ...
    def step(self, number: int, phase: Literal["unrecorded", "warmup", "recorded", "light"]) -> None:
        """Step `number` begins now, in `phase`; the one before ends. "unrecorded": no hook is on."""
    def raise_phase(self, phase: Literal["unrecorded", "warmup", "recorded", "light"]) -> None:
        """The recorder was switched during the current step: the step counts as the more intrusive phase."""
    def finish(self) -> None:
        """The last step ends now."""
    @property
    def samples(self) -> list[tuple[int, str, int]]:
        """(number, phase, duration in ns), oldest first."""
    def take(self) -> list[tuple[int, str, int, int, int]]:
        """(number, phase, start in Unix ns, host ns, GPU ns or -1), oldest first; forgets them."""

def begin_range(name: str, args: str = "") -> int:
    """Opens a user annotation on this thread ("ProfilerStep#3"); `args` is a JSON object for its args, or empty.

    Costs a fraction of torch's record_function and is only seen by this recorder. Returns an id for end_range();
    0 if nothing is being recorded. Ranges may end in any order and on any thread.
    """

def end_range(id: int) -> None: ...

class Range:
    """The same as a context manager: `with _record.Range("load batch"):`."""

    def __init__(self, name: str, args: str = "") -> None: ...
    def __enter__(self) -> Range: ...
    def __exit__(self, *exc: object) -> None: ...

class FastOp:
    """Replaces torch._C._profiler._RecordFunctionFast while this recorder is on; torch's own does nothing then."""

    def __init__(self, name: str, input_values: Any = None, keyword_values: dict[str, Any] | None = None) -> None: ...
    def __enter__(self) -> None: ...
    def __exit__(self, *exc: object) -> None: ...

def set_fast_op_inputs(on: bool) -> None:
    """Whether FastOp records its inputs and keywords."""

def instant(name: str) -> None:
    """Marks a moment on this thread's lane."""

def counter(name: str, value: float) -> None:
    """Adds a sample to a counter track."""

def name_thread(name: str) -> None:
    """Names this thread's lane; without it the lane has the operating system's thread name."""

def name_modules(root: Any, name: str = "") -> None:
    """Names the submodules of the nn.Module `root` for `modules`: "name.layers.0".

    Other top-level modules are named at their first call: after the variable that holds them in the calling frame, or
    after their class.
    """

def describe_owners(describe: Callable[[Any], Any] | None) -> None:
    """With `stacks`: calls `describe` with each nn.Module at its first call and each Optimizer after its first step."""

def take_owners() -> list[tuple[str | None, Any]]:
    """In the last recording: (name of the module's slices, or None for a step of an optimizer, what it returned)."""

def costs() -> dict[str, float]:
    """Cost per event in ns, as measured in this process so far, by kind: "op", "op+inputs", "memory", "python", ..."""
