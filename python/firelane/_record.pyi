"""The recorder: what the profiler's Python surface is built on.

    options = _record.RecordOptions(shapes=True, memory=True)
    recorder = _record.start(options)          # RuntimeError when another recording is on
    ...                                        # ops of all threads are recorded from here on
    recorder.stop()
    recorder.save("run.lane")                  # else the file goes when `recorder` does

Trouble with the world (no folder, disk full) never raises while recording: it stands in `recorder.losses`.
Everything here may be called from any thread. Under another torch than it was built for, the import raises
ImportError with the way to rebuild.
"""

from os import PathLike
from typing import Any, Literal

TORCH_VERSION: str
"""The torch this module was built against: "2.11.0"."""

class RecordOptions:
    """What to record. All fields can be read and set."""

    shapes: bool
    """Input dims, dtypes, strides and (with `concrete_inputs`) values of numbers, lists and strings."""
    memory: bool
    """Every allocation and free on every thread: the CPU's and, with `cuda`, those of torch's CUDA allocator."""
    python_stacks: bool
    """Python frames, C calls and garbage collections as slices, on all threads."""
    modules: bool
    """A slice per nn.Module call, named by its path: "model.layers.3.attn.q_proj"."""
    flops: bool
    """Turns shapes on; readers compute FLOPs from them."""
    concrete_inputs: bool
    start_paused: bool
    """Nothing is recorded until resume()."""
    output: str
    """Where the stream lies: a file or a folder. Empty: FIRELANE_DIR, else the temporary folder."""
    keep: bool
    """Keep the file when the Recorder goes, without save(). Set it when the user named `output`."""
    cuda: bool
    """Kernels, copies, waits, the calls behind them, and the GPU's power. What cannot be had is in `losses`."""
    cuda_sync: bool
    """With `cuda`: also what each wait waited for. Costs as much as everything else together."""
    cuda_detach: bool
    """With `cuda`: stop() takes CUPTI out of the process. Crashes threads that use the GPU at that moment."""

    def __init__(
        self,
        *,
        shapes: bool = False,
        memory: bool = False,
        python_stacks: bool = False,
        modules: bool = False,
        flops: bool = False,
        concrete_inputs: bool = True,
        start_paused: bool = False,
        output: str | PathLike[str] = "",
        keep: bool = False,
        cuda: bool = False,
        cuda_sync: bool = False,
        cuda_detach: bool = True,
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
        """Hooks go off; slices begun before still get their ends. Cheap, any number of times."""
    def resume(self) -> None: ...
    def pause_device(self) -> None:
        """The same for what the GPU does. Does not wait for it."""
    def resume_device(self) -> None:
        """With `start_paused`, device activity counts from the first of these."""
    def stop_device(self) -> None:
        """Ends the recording of the GPU alone, after the work that is queued; the rest goes on. Idempotent."""
    def stop(self) -> None:
        """Ends the recording and completes the file. Idempotent; the hooks are off when it returns."""
    def save(self, path: str | PathLike[str]) -> None:
        """After stop(): moves the file there; a second save copies. OSError when that is not possible."""
    @property
    def path(self) -> str:
        """After stop(): where the file lies; empty when there is none."""
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
    """Starts recording. RuntimeError when a recording is on in this process already."""

def is_recording() -> bool:
    """True while events are wanted (a recording is on and not paused)."""

class StepTimer:
    """The true step: one clock reading a step, recorded or not. Lives as long as the profiler object.

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
    """What torch._C._profiler._RecordFunctionFast is while this recorder is on: torch's own does nothing then."""

    def __init__(self, name: str, input_values: Any = None, keyword_values: dict[str, Any] | None = None) -> None: ...
    def __enter__(self) -> None: ...
    def __exit__(self, *exc: object) -> None: ...

def instant(name: str) -> None:
    """A mark on this thread's lane."""

def counter(name: str, value: float) -> None:
    """A point of a curve."""

def name_thread(name: str) -> None:
    """The name of this thread's lane, instead of the system's name of it."""

def name_modules(root: Any, name: str = "") -> None:
    """Names the sub-modules of an nn.Module `root` for `modules`: "name.layers.0". Modules seen first inside no
    other module are named by themselves: by the variable that holds them in the calling frame, else their class."""

def costs() -> dict[str, float]:
    """ns per event as measured in this process so far, by kind: "op", "op+inputs", "memory", "python", ..."""
