"""The recorder: what the profiler's Python surface is built on.

    options = _record.RecordOptions(shapes=True, memory=True)
    recorder = _record.start(options)          # RuntimeError if another recording is running
    ...                                        # ops of all threads are recorded from here on
    recorder.stop()
    recorder.save("run.lane")                  # else the file is deleted with `recorder`

Problems with the environment (no folder, disk full) never raise while recording: they are in `recorder.losses`.
Everything here may be called from any thread. With a torch other than the one it was built for, the import raises
an ImportError that says how to rebuild.
"""

from os import PathLike
from typing import Any, Literal

TORCH_VERSION: str
"""The torch this module was built against: "2.11.0"."""

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
    cuda: bool
    """Where there is a GPU: kernels, copies, waits, the calls behind them, and power. What is missing is in `losses`."""
    cuda_sync: bool
    """With `cuda`: also what each wait waited for. Costs as much as everything else together."""

    flops: bool
    """torch.profiler's with_flops: turns shapes on; readers compute FLOPs from them."""
    cuda_detach: bool
    """With `cuda`: stop() takes CUPTI out of the process, unless TEARDOWN_CUPTI=0 or another tool uses it."""
    concrete_inputs: bool
    start_paused: bool
    """Nothing is recorded until resume()."""
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
        cuda: bool = True,
        cuda_sync: bool = False,
        flops: bool = False,
        cuda_detach: bool = True,
        concrete_inputs: bool = True,
        start_paused: bool = False,
        output: str | PathLike[str] = "",
        keep: bool = False,
    ) -> None: ...

class Loss:
    """Something that is not in the trace, and why. `count` is in events; 0 = unknown or not about events."""

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
        """Turns the hooks off; slices begun before still get their ends. Cheap, any number of times."""
    def resume(self) -> None: ...
    def pause_device(self) -> None:
        """The same for what the GPU does. Does not wait for it."""
    def resume_device(self) -> None:
        """With `start_paused`, device activity counts from the first call on."""
    def stop_device(self) -> None:
        """Ends the recording of the GPU only, after the work that is queued; the rest continues. Idempotent."""
    def stop(self) -> None:
        """Ends the recording and completes the file. Idempotent; the hooks are off when it returns."""
    def save(self, path: str | PathLike[str]) -> None:
        """After stop(): moves the file there; a second save copies. OSError if that is not possible."""
    @property
    def path(self) -> str:
        """After stop(): the path of the file; empty if there is none."""
    def status(self) -> Status: ...
    @property
    def losses(self) -> list[Loss]:
        """The same as status().losses."""
    @property
    def start_unix_ns(self) -> int: ...
    def add_metadata(self, key: str, json: str) -> None:
        """A note for the trace until stop(). `json` is JSON text: '"a string"', '3', '{"a": 1}'."""
    def add_steps(self, timer: StepTimer) -> None:
        """Writes the steps that `timer` has collected into the trace and empties it. Before stop()."""
    def add_loss(self, reason: str, count: int = 0) -> None: ...

def start(options: RecordOptions) -> Recorder:
    """Starts recording. RuntimeError if a recording is running in this process already."""

def is_recording() -> bool:
    """True while a recording is running and not paused."""

class StepTimer:
    """The true step time: one clock reading per step, recorded or not. Lives as long as the profiler object.

    timer.step(0, "unrecorded"); ...; timer.step(1, "recorded"); ...; timer.finish(); recorder.add_steps(timer)

    `on_device`: steps that are not recorded are also timed by the GPU, with one CUDA event a step; nothing waits for it.
    """

    def __init__(self, on_device: bool = False) -> None: ...
    def step(self, number: int, phase: Literal["unrecorded", "warmup", "recorded"]) -> None:
        """Step `number` begins now, in `phase`; the one before ends. "unrecorded": no hook is on."""
    def raise_phase(self, phase: Literal["unrecorded", "warmup", "recorded"]) -> None:
        """The recorder was switched inside the current step: it counts as the more disturbed phase."""
    def finish(self) -> None:
        """The last step ends now."""
    @property
    def samples(self) -> list[tuple[int, str, int]]:
        """(number, phase, duration in ns), oldest first."""

def begin_range(name: str, args: str = "") -> int:
    """Opens a user annotation on this thread ("ProfilerStep#3"); `args` is a JSON object for its args, or empty.

    Costs a fraction of torch's record_function and is only seen by this recorder. Returns an id for end_range();
    0 when nothing is recorded. The end may come in any order and on any thread.
    """

def end_range(id: int) -> None: ...

class Range:
    """`with _record.Range("load batch"):` the same as a context manager."""

    def __init__(self, name: str, args: str = "") -> None: ...
    def __enter__(self) -> Range: ...
    def __exit__(self, *exc: object) -> None: ...

class FastOp:
    """Replaces torch._C._profiler._RecordFunctionFast while this recorder is on, because torch's own does nothing then."""

    def __init__(self, name: str, input_values: Any = None, keyword_values: dict[str, Any] | None = None) -> None: ...
    def __enter__(self) -> None: ...
    def __exit__(self, *exc: object) -> None: ...

def instant(name: str) -> None:
    """A mark on this thread's lane."""

def counter(name: str, value: float) -> None:
    """A point of a curve."""

def name_thread(name: str) -> None:
    """The name of this thread's lane, instead of the system's name for it."""

def name_modules(root: Any, name: str = "") -> None:
    """Names the sub-modules of an nn.Module `root` for `modules`: "name.layers.0". Modules that are called
    outside any other module are named automatically: by the variable that holds them in the calling frame, else by class."""

def costs() -> dict[str, float]:
    """ns per event as measured in this process so far, by kind: "op", "op+inputs", "memory", "python", ..."""
