"""Records an unmodified program: the part of `firelane record -- python train.py` that runs inside the program.

Steps are detected automatically, from the most reliable source available: a profiler's own step(), then the first
optimizer that steps, then the iterations of a DataLoader, then calls of a model. A few steps pass untouched, then the
recorder is prepared, `steps` steps are recorded, and a few more are timed; after that all hooks are off and the program
runs on alone. Once the trace is complete, a thread prints the table, the verdict and the next commands to stderr,
because stdout belongs to the program.
"""

from __future__ import annotations

import atexit
import functools
import json
import multiprocessing.util
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TextIO

from firelane._light import LIGHT_STEPS, marked
from firelane._model_calls import ModelCalls
from firelane._optimizers import OptimizerSteps
from firelane._output_files import files_of_children, inode, path_for_this_process, shown, temporary_path
from firelane._patches import Patches
from firelane._step_events import StepEvents

if TYPE_CHECKING:
    from typing import Literal

    from firelane import Trace
    from firelane._record import StepTimer
    from firelane.profiler._recording import Recording

    Phase = Literal["unrecorded", "warmup", "recorded", "light"]

_MIN_UNRECORDED = 3  # steps; with fewer, a single outlier would decide (as in src/analyze/trace/info.cc)
_MAX_DIAGNOSED = 2_000_000  # events; takes a few seconds
_MAX_FOLLOWED = 50  # steps
_RELIABILITY = {"model": 1, "data loader": 2, "optimizer": 3, "profiler": 4}


@dataclass
class Plan:
    """What `firelane record` was asked to do; FIRELANE_RECORD holds it as JSON."""

    output: str = "trace.lane"
    old_inode: int = 0  # of the file at `output` that this recording replaces; 0 if there is none
    process: int = 0  # the command's own pid; its children have others
    steps: int = 5  # 0: the whole program
    light: int = -1  # light steps before them; below 0: some with a GPU, none without
    sample_rate: float = 0  # samples per second at the stacks of all threads meanwhile; 0: none
    wait: int = 3
    warmup: int = 1
    after: int = 3
    quiet: bool = False
    end: bool = False  # the program, once the trace is complete
    always: bool = False  # the whole job within a budget (_always), into the folder `output`
    budget: float = 0.005
    keep_bytes: int = 2 << 30
    prometheus: str = ""  # where to serve its metrics: a port, 0 for any, or a Unix socket's path
    opentelemetry: bool = False
    signal: str = ""  # that asks for a recording
    timeout_s: float = 0  # of `firelane attach`: without a step
    options: dict[str, Any] = field(default_factory=dict)  # by the recorder's names (_record.OPTIONS)


def begin(plan_json: str) -> None:
    """Called once torch is imported. Installs the hooks; records nothing yet (everything, with steps=0)."""
    plan = Plan(**json.loads(plan_json))
    if plan.always:
        from firelane._always import Always

        auto: Auto = Always(plan, plan.budget, plan.keep_bytes)
    else:
        auto = Auto(plan)
    auto.install_hooks()
    atexit.register(auto.finish)
    os.register_at_fork(after_in_child=auto.begin_in_child)
    # Its children end without atexit, and begin by forgetting what was to be done at their end.
    multiprocessing.util.register_after_fork(
        auto, lambda _: multiprocessing.util.Finalize(None, auto.finish, exitpriority=0)
    )


running: list[Auto] = []  # those that were begun in this process, by whomever


class Auto:
    front = "firelane record"  # what the user called
    follows_models = True  # where nothing else tells steps; not where an optimizer may have been made before
    timer: StepTimer  # set by install_hooks()

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.uses_gpu = plan.options.get("cuda", True) and _has_gpu()
        self.light = plan.light if plan.light >= 0 else LIGHT_STEPS if self.uses_gpu and plan.steps else 0
        self._begin()

    def _begin(self) -> None:
        self.recording: Recording | None = None
        self.step_count = 0
        self.source = ""
        self.main_optimizer: int | None = None
        self.range_id = 0
        self.is_over = False
        self.stood_aside = False
        self.is_forked = False
        self.path = ""
        self.begin_s = time.time()
        self.unrecorded_count = 0
        self.summary: threading.Thread | None = None
        self.events = StepEvents(lambda: self.step_count)
        self.model_calls = ModelCalls(lambda: self.stepped("model"))
        self.patches = Patches()

    # -- detecting steps ------------------------------------------------------------------

    def install_hooks(self) -> None:
        from firelane.profiler import _backend

        running.append(self)
        _backend.on_start.append(self.step_aside)
        self.timer = _backend.step_timer(on_device=self.uses_gpu)
        if self.plan.steps == 0:
            self._prepare().start()
            return
        self._follow_optimizers()
        self._follow_loaders_and_profilers()
        if self.follows_models:
            self.model_calls.install()
        self.events.install()

    def _follow_optimizers(self) -> None:
        from torch.optim import Optimizer

        hook_of = Optimizer.profile_hook_step  # wraps every optimizer's step() when its class is first used

        def profile_hook_step(func: Callable[..., Any]) -> Callable[..., Any]:
            self.model_calls.remove()  # there is an optimizer, whose steps count
            return followed_by(hook_of(func), lambda optimizer: self.stepped("optimizer", id(optimizer)))

        self.patches.replace(Optimizer, "profile_hook_step", staticmethod(profile_hook_step))

    def _follow_existing_optimizers(self) -> None:
        """For who comes when there may be some."""
        steps = OptimizerSteps(lambda optimizer: self.stepped("optimizer", id(optimizer)))
        steps.install()
        self.patches.on_removal(steps.remove)

    def _follow_loaders_and_profilers(self) -> None:
        import torch.profiler
        import torch.utils.data.dataloader as dataloader

        iterator: Any = dataloader._BaseDataLoaderIter
        next_batch = followed_by(self._marked(iterator.__next__), lambda _: self.stepped("data loader"))
        self.patches.replace(iterator, "__next__", next_batch)
        profile: Any = torch.profiler.profile
        self.patches.replace(profile, "step", followed_by(profile.step, lambda _: self.stepped("profiler")))

    def _marked(self, next_batch: Callable[[Any], Any]) -> Callable[[Any], Any]:
        return marked(next_batch, self._is_light)

    def _is_light(self) -> bool:
        return self.recording is not None and self.recording.is_light

    def stepped(self, source: str, optimizer: int = 0) -> None:
        """A step has ended and the next begins. Never raises."""
        if self.is_over:
            return
        try:
            if _RELIABILITY[source] > _RELIABILITY.get(self.source, 0):
                if self.recording is not None and self.source:
                    return  # too late to switch: the current steps are already being recorded
                self.source, self.main_optimizer, self.step_count = source, optimizer, 0
                if source != "model":
                    self.model_calls.remove()
            elif source != self.source or optimizer != self.main_optimizer:
                return
            self._next_step()
        except BaseException as error:
            self._give_up(error)

    def _next_step(self) -> None:
        from firelane.profiler import _backend

        plan = self.plan
        self._end_step()
        self.step_count += 1
        done = self.step_count
        first_light = max(1, plan.wait + plan.warmup)  # light steps: first_light .. first - 1
        first = first_light + self.light  # recorded steps: first .. first + steps - 1
        recording = self.recording
        if done == max(1, plan.wait) and recording is None:
            recording = self._prepare()
        if recording is not None and done == first_light:
            recording.start()
        if recording is not None and done == first:
            recording.begin_full()
        if recording is not None and done == first + plan.steps:
            recording.pause()
        if done == first + plan.steps + plan.after:
            self._complete()
            return
        is_warm = done > 1 and (recording is None or done >= first + plan.steps)  # the first step is cold
        phase: Phase = "unrecorded" if is_warm else "warmup"
        if recording is not None and recording.is_running:
            self.range_id = _backend.begin_range(f"ProfilerStep#{done}")
            phase = "light" if recording.is_light else "recorded"
        self.timer.step(done, phase)

    def _complete(self) -> None:
        self._stop()
        self._print_summary()
        if self.plan.end:
            self._end_program()

    def _end_program(self) -> None:
        if self.summary is not None:
            self.summary.join()
        end_process()

    def _end_step(self) -> None:
        self.timer.finish()
        self._end_range()

    def _discard_unfinished_step(self) -> None:
        """The program ends in the middle of a step: the step is not timed and does not count as one in the trace."""
        if self.range_id and self.recording is not None:
            self.recording.add_metadata("unfinished_step", str(self.step_count))
        self._end_range()

    def _end_range(self) -> None:
        from firelane.profiler import _backend

        if self.range_id:
            _backend.end_range(self.range_id)
            self.range_id = 0

    # -- recording ------------------------------------------------------------------------

    def _prepare(self) -> Recording:
        from firelane.profiler._recording import RecordFlags, Recording

        plan = self.plan
        self.path = self._choose_path()
        replaces = os.path.exists(self.path) and os.path.getsize(self.path) > 0
        recording = self.recording = Recording(
            RecordFlags(
                **{name: on for name, on in plan.options.items() if name != "cuda"},
                use_device="cuda" if self.uses_gpu else None,
                front=self.front,
                follow_tensors=0 < plan.steps <= _MAX_FOLLOWED,
                light=self.light > 0,
                sample_rate=plan.sample_rate,
                output=temporary_path(self.path) if replaces else self.path,
                is_temporary=replaces,
            )
        )
        recording.is_automatic = True
        recording.prepare()
        self._catch_termination()
        return recording

    def _choose_path(self) -> str:
        return path_for_this_process(self.plan.output, self.plan.old_inode)

    # -- SIGTERM (a scheduler's time limit, kill), which would end the program without a word about the trace. A program
    # that handles it itself is left to do so.

    def _catch_termination(self) -> None:
        if _may_set_signals() and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
            signal.signal(signal.SIGTERM, self._terminated)

    def _release_termination(self) -> None:
        if _may_set_signals() and signal.getsignal(signal.SIGTERM) == self._terminated:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)

    def _terminated(self, *_: Any) -> None:
        if not self.is_forked:
            self.finish()
            sys.stderr.flush()
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGTERM)

    def _stop(self) -> None:
        self.is_over = True
        self._release_termination()
        self.events.remove()
        self.model_calls.remove()
        if self.recording is not None:
            self.recording.add_metadata("step_source", json.dumps(self.source or "none"))
            for name, text in self.events.metadata().items():
                self.recording.add_metadata(name, text)
            phases = [phase for _, phase, _ in self.timer.samples]  # stop() clears them
            self.unrecorded_count = phases.count("unrecorded")
            self.recording.stop(self.timer)
            if self.recording.path:
                self.recording.save(self.path)  # an older file is only replaced now

    def step_aside(self, recording: Recording) -> None:
        """The program starts a firelane profiler of its own, which takes precedence."""
        if recording.is_automatic or self.is_over:
            return
        if self.recording is not None and self.recording.is_prepared:
            self._discard_unfinished_step()
            self._stop()
        self.is_over = self.stood_aside = True
        self._say("the program uses firelane.profiler itself; its own recording takes precedence")

    def _say(self, text: str) -> None:
        print(f"firelane: {text}", file=sys.stderr)

    def begin_in_child(self) -> None:
        """Called in a forked child: a trainer, which is recorded too, or a DataLoader worker, which makes no steps."""
        whole_program = self.plan.steps == 0
        self._begin()
        self.is_forked = True
        self.is_over = whole_program  # the program is its parent
        if self.is_over or "firelane.profiler._backend" not in sys.modules:
            return
        from firelane.profiler import _backend

        self.timer = _backend.step_timer(on_device=self.uses_gpu)

    def _give_up(self, error: BaseException) -> None:
        self.is_over = True
        self.events.remove()
        self.model_calls.remove()
        self._say(f"recording stopped: {error}")

    # -- at exit --------------------------------------------------------------------------

    def finish(self) -> None:
        try:
            self._finish()
        except BaseException as error:
            self._give_up(error)

    def _finish(self) -> None:
        if not self.is_over:
            self._discard_unfinished_step()
            self._stop()
        if self.recording is None:
            self._explain_missing_recording()
        if self.summary is not None:
            self.summary.join()
        elif self.recording is not None and not self.plan.quiet:
            self._summarize(self.recording)  # here: from Python 3.12 on no thread starts at exit

    def _print_summary(self) -> None:
        """In a thread: the program does not wait for it."""
        if self.recording is not None and self.summary is None and not self.plan.quiet:
            self.summary = threading.Thread(target=self._summarize, args=(self.recording,), daemon=True)
            self.summary.start()

    def _explain_missing_recording(self) -> None:
        if self.stood_aside or self.is_forked:  # step_aside() has explained it; workers have nothing to record
            return
        if inode(self.plan.output) not in (0, self.plan.old_inode):
            self._name_files_of_children()
            return
        if self.step_count:
            print(
                f"firelane: nothing recorded: the program took {_steps(self.step_count)} ({self.source}), and the "
                f"first {self.plan.wait} are skipped; try --wait 0 --steps {self.step_count}",
                file=sys.stderr,
            )
        elif "torch.distributed.launcher.api" not in sys.modules:  # torchrun's own process has no steps
            print(
                "firelane: nothing recorded: found no steps (of an optimizer, a DataLoader, a model or a profiler); "
                "--steps 0 records the whole program",
                file=sys.stderr,
            )

    def _name_files_of_children(self) -> None:
        """They have said so themselves, unless they ended by os._exit()."""
        if self.plan.quiet:
            return
        names = [self.plan.output, *files_of_children(self.plan.output, self.begin_s)]
        words = [shown(name) for name in names]
        self._say(
            f"the recording of {'a process' if len(names) == 1 else f'{len(names)} processes'} that the program "
            f"started is in {', '.join(words)}; next: firelane diagnose {words[0]}"
        )

    def _summarize(self, recording: Recording) -> None:
        try:
            text = self._summary_of(recording)
        except BaseException as error:
            text = f"firelane: {self.path} was written, but could not be summarized: {error}"
        print(text, file=sys.stderr)

    def _summary_of(self, recording: Recording) -> str:
        trace = recording.trace
        if trace is None:
            return f"firelane: nothing recorded: {recording._why_nothing()}"
        table = recording.key_averages().table(sort_by="self_cpu_time_total", row_limit=10)
        name = shown(self.path)
        steps = _step_counts(trace.info, self.unrecorded_count)
        if trace.info["recorded_step_count"] is None and trace.info["light_step_count"] is not None:
            steps = f"the program ended after its light steps, which have no operators: try --light 0; {steps}"
        return f"{table}\n{_verdict(trace)}\n{steps}wrote {name}; next: firelane diagnose {name}, firelane view {name}"


def _may_set_signals() -> bool:
    return threading.current_thread() is threading.main_thread()


def end_process() -> None:
    """At once and with success: nothing that the program would still do matters to who asked for this."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


def _verdict(trace: Trace) -> str:
    """What limits the program and the first findings; a trace that takes long to diagnose is left for later."""
    events = len(trace.host_slices) + len(trace.device_slices)
    if events > _MAX_DIAGNOSED:
        return f"{events:,} events take a while to diagnose; run firelane diagnose\n"
    return trace._short_verdict(color=_is_terminal(sys.stderr))


def _is_terminal(stream: TextIO) -> bool:
    """The same rule as in src/cli/output.cc."""
    return not os.environ.get("NO_COLOR") and os.environ.get("TERM", "dumb") != "dumb" and stream.isatty()


def _has_gpu() -> bool:
    """Asks NVML instead of CUDA: a process that has initialized CUDA cannot use it in forked children."""
    import torch

    return torch.cuda.device_count() > 0


def _steps(count: int) -> str:
    return "1 step" if count == 1 else f"{count} steps"


def _step_counts(info: dict[str, Any], unrecorded: int) -> str:
    """How many steps the verdict is based on, and how many were timed without recording."""
    recorded, light = info["step_count"], info["light_step_count"]
    if not recorded:
        return ""
    timed = f"{unrecorded} timed without recording; " if unrecorded >= _MIN_UNRECORDED else ""
    with_light = f" and {light} light" if light and info["recorded_step_count"] else ""
    return f"{_steps(recorded)} recorded{with_light}, {timed}"


def followed_by(method: Callable[..., Any], then: Callable[[Any], None]) -> Callable[..., Any]:
    """`method`, followed by `then(self)` unless it raises."""

    @functools.wraps(method)
    def both(self: Any, *args: Any, **kwargs: Any) -> Any:
        result = method(self, *args, **kwargs)
        then(self)
        return result

    return both
