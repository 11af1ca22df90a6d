"""Records an unmodified program: what runs inside `firelane record -- python train.py`.

Steps are detected automatically, in this order of trust: a profiler's own step(), the first optimizer
that steps, the iterations of a DataLoader. Some steps are skipped, the recorder warms up, `steps` are
recorded, and a few more are timed; then all hooks are off. At exit the table, the verdict and the next commands are
printed on stderr, because stdout belongs to the program.
"""

from __future__ import annotations

import atexit
import functools
import json
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

_MIN_UNDISTURBED = 3  # steps; with fewer, one outlier would decide (as in src/analyze/trace/info.cc)
_MAX_JUDGED = 2_000_000  # events: a few seconds
_TRUST = {"data loader": 1, "optimizer": 2, "profiler": 3}


@dataclass
class Plan:
    """What `firelane record` was asked for; JSON in FIRELANE_RECORD."""

    output: str = "trace.lane"
    old_inode: int = 0  # of the file at `output` that this recording replaces; 0: there is none
    process: int = 0  # the command's own; its children have others
    steps: int = 5  # 0: the whole program
    wait: int = 3
    warmup: int = 1
    after: int = 3
    quiet: bool = False
    options: dict[str, bool] = field(default_factory=dict)  # by the recorder's names (_record.OPTIONS)


def begin(plan_json: str) -> None:
    """Called once torch is imported. Installs the hooks; records nothing yet (everything, with steps=0)."""
    auto = Auto(Plan(**json.loads(plan_json)))
    auto.hook_in()
    atexit.register(auto.finish)
    os.register_at_fork(after_in_child=auto.forget)


class Auto:
    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.uses_gpu = plan.options.get("cuda", True) and _has_gpu()
        self.recording: Any = None
        self.timer: Any = None
        self.step_count = 0
        self.source = ""
        self.main_optimizer: int | None = None
        self.range_id = 0
        self.is_over = False
        self.stood_aside = False
        self.path = ""
        self.samples: list[tuple[int, str, int]] = []

    # -- finding steps --------------------------------------------------------------------

    def hook_in(self) -> None:
        import torch.utils.data.dataloader as dataloader
        from torch.optim import Optimizer

        from firelane.profiler import _backend

        _backend.on_start.append(self.step_aside)
        self.timer = _backend.step_timer(on_device=self.uses_gpu)
        if self.plan.steps == 0:
            self._prepare()
            self.recording.start()
            return
        hook_of = Optimizer.profile_hook_step  # wraps every optimizer's step() as its class is first used

        def profile_hook_step(func: Callable[..., Any]) -> Callable[..., Any]:
            return _followed_by(hook_of(func), lambda optimizer: self.stepped("optimizer", id(optimizer)))

        Optimizer.profile_hook_step = staticmethod(profile_hook_step)
        iterator = dataloader._BaseDataLoaderIter
        iterator.__next__ = _followed_by(iterator.__next__, lambda _: self.stepped("data loader"))
        import torch.profiler

        torch.profiler.profile.step = _followed_by(torch.profiler.profile.step, lambda _: self.stepped("profiler"))

    def stepped(self, source: str, optimizer: int = 0) -> None:
        """A step has ended and the next begins. Never raises."""
        if self.is_over:
            return
        try:
            if _TRUST[source] > _TRUST.get(self.source, 0):
                if self.recording is not None and self.source:
                    return  # too late to change: steps are being recorded
                self.source, self.main_optimizer, self.step_count = source, optimizer, 0
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
        first = plan.wait + plan.warmup  # recorded steps: first .. first + steps - 1
        if done == max(1, plan.wait) and self.recording is None:
            self._prepare()
        if done == max(1, first):
            self.recording.start()
        if done == max(1, first) + plan.steps:
            self.recording.pause()
        if done == max(1, first) + plan.steps + plan.after:
            self._stop()
            return
        is_recorded = self.recording is not None and self.recording.is_running
        if is_recorded:
            self.range_id = _backend.begin_range(f"ProfilerStep#{done}")
        is_warm = done > 1 and (self.recording is None or done >= max(1, first) + plan.steps)  # the first step is a warm-up
        self.timer.step(done, "recorded" if is_recorded else "unrecorded" if is_warm else "warmup")

    def _end_step(self) -> None:
        self.timer.finish()
        self._end_range()

    def _cut_off_step(self) -> None:
        """The program ends inside a step: that step is not timed, and is not a step of the trace."""
        if self.range_id and self.recording is not None:
            self.recording.add_metadata("unfinished_step", str(self.step_count))
        self._end_range()

    def _end_range(self) -> None:
        from firelane.profiler import _backend

        if self.range_id:
            _backend.end_range(self.range_id)
            self.range_id = 0

    # -- recording ------------------------------------------------------------------------

    def _prepare(self) -> None:
        from firelane.profiler._recording import RecordFlags, Recording

        plan = self.plan
        self.path = _name_for_this_process(plan.output, plan.old_inode)
        replaces = os.path.exists(self.path) and os.path.getsize(self.path) > 0
        self.recording = Recording(
            RecordFlags(
                **{name: on for name, on in plan.options.items() if name != "cuda"},
                use_device="cuda" if self.uses_gpu else None,
                output=_beside(self.path) if replaces else self.path,
                is_temporary=replaces,
            )
        )
        self.recording.is_automatic = True
        self.recording.prepare()

    def _stop(self) -> None:
        self.is_over = True
        if self.recording is not None:
            self.recording.add_metadata("step_source", json.dumps(self.source or "none"))
            self.samples = self.timer.samples  # stop() empties it
            self.recording.stop(self.timer)
            if self.recording.path:
                self.recording.save(self.path)  # only now is an older file replaced

    def step_aside(self, recording: Any) -> None:
        """The program starts its own firelane profiler: that one gets to record."""
        if getattr(recording, "is_automatic", False) or self.is_over:
            return
        if self.recording is not None and self.recording.is_prepared:
            self._cut_off_step()
            self._stop()
        self.is_over = self.stood_aside = True
        print("firelane: the program uses firelane.profiler itself, which does the recording", file=sys.stderr)

    def forget(self) -> None:
        """In a forked child, such as a DataLoader worker."""
        self.is_over = True
        self.recording = None

    def _give_up(self, error: BaseException) -> None:
        self.is_over = True
        print(f"firelane: recording ended: {error}", file=sys.stderr)

    # -- at exit --------------------------------------------------------------------------

    def finish(self) -> None:
        try:
            self._finish()
        except BaseException as error:
            self._give_up(error)

    def _finish(self) -> None:
        if not self.is_over:
            self._cut_off_step()
            self._stop()
        if self.recording is None:
            self._explain_missing_recording()
        elif not self.plan.quiet:
            self._summarize()

    def _explain_missing_recording(self) -> None:
        if self.stood_aside:
            return  # step_aside() printed it
        if self.step_count:
            print(
                f"firelane: nothing recorded: the program made {_steps(self.step_count)} ({self.source}), but the first "
                f"{self.plan.wait} are skipped; try --wait 0 --steps {self.step_count}",
                file=sys.stderr,
            )
        elif "torch.distributed.launcher.api" not in sys.modules:  # torchrun's own process has no steps
            print(
                "firelane: nothing recorded: no optimizer, DataLoader or profiler made a step; "
                "--steps 0 records the whole program",
                file=sys.stderr,
            )

    def _summarize(self) -> None:
        if not self.recording.path:
            print(f"firelane: nothing recorded: {self.recording._why_nothing()}", file=sys.stderr)
            return
        rows = self.recording.key_averages()
        print(rows.table(sort_by="self_cpu_time_total", row_limit=10), file=sys.stderr)
        print(_verdict(self.recording.trace), end="", file=sys.stderr)
        name = os.path.relpath(self.path) if self.path.startswith(os.getcwd() + os.sep) else self.path
        print(
            f"\n{_steps_of(self.samples)}wrote {name}; next: firelane diagnose {name}, firelane view {name}",
            file=sys.stderr,
        )


def _verdict(trace: Any) -> str:
    """What limits the program and the first findings; not of a trace that would keep the user waiting."""
    events = len(trace.host_slices) + len(trace.device_slices)
    if events > _MAX_JUDGED:
        return f"{events} events; run firelane diagnose for the verdict\n"
    return trace._short_verdict(color=_is_terminal(sys.stderr))


def _is_terminal(stream: Any) -> bool:
    """The same rule as in src/cli/output.cc."""
    return not os.environ.get("NO_COLOR") and os.environ.get("TERM", "dumb") != "dumb" and stream.isatty()


def _has_gpu() -> bool:
    """Asks NVML, not CUDA: a process that started CUDA cannot fork children that use it."""
    import torch

    return torch.cuda.device_count() > 0


def _steps(count: int) -> str:
    return "1 step" if count == 1 else f"{count} steps"


def _steps_of(samples: list[tuple[int, str, int]]) -> str:
    """How many steps the verdict is about, and how many were timed without the recorder."""
    phases = [phase for _, phase, _ in samples]
    recorded, alone = phases.count("recorded"), phases.count("unrecorded")
    if not recorded:
        return ""
    return f"{_steps(recorded)} recorded, " + (f"{alone} timed without recording; " if alone >= _MIN_UNDISTURBED else "")


def _followed_by(method: Callable[..., Any], then: Callable[[Any], None]) -> Callable[..., Any]:
    """`method` followed by `then(self)`, unless it raises."""

    @functools.wraps(method)
    def both(self: Any, *args: Any, **kwargs: Any) -> Any:
        result = method(self, *args, **kwargs)
        then(self)
        return result

    return both


def _beside(path: str) -> str:
    """The path of a recording until it replaces an older file."""
    return f"{path}.pid{os.getpid()}.part"


def _name_for_this_process(output: str, old_inode: int) -> str:
    """`run.lane`; with ranks `run.rank3.lane`; for further processes of a program `run.pid77.lane`."""
    stem, dot, suffix = output.rpartition(".") if "." in os.path.basename(output) else (output, "", "")
    rank = _rank()
    if rank is not None:
        return f"{stem}.rank{rank}{dot}{suffix}"
    try:
        os.close(os.open(output, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
    except FileExistsError:
        if os.stat(output).st_ino == old_inode and _is_first(output):
            return output
        return f"{stem}.pid{os.getpid()}{dot}{suffix}"
    except OSError:
        pass  # the recorder reports it at the end
    return output


def _is_first(output: str) -> bool:
    """Whether no other process of this program has claimed the older file, to replace it."""
    import fcntl

    global _claim
    _claim = os.open(output, os.O_RDONLY | os.O_CLOEXEC)  # held until this process ends
    try:
        fcntl.flock(_claim, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


_claim = -1


def _rank() -> int | None:
    import torch.distributed as dist

    if dist.is_available() and dist.is_initialized():
        return dist.get_rank()
    return int(os.environ["RANK"]) if os.environ.get("RANK", "").isdigit() else None
