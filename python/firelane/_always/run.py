"""One always-on recording: times every step, records windows within the budget, keeps what belongs to incidents.

The training thread only times, decides, and turns the recorder on and off at the end of a step; all files are written
by a thread of our own, once a second. Neither waits for the other: they hand over through deques.
"""

from __future__ import annotations

import collections
import functools
import json
import os
import shlex
import statistics
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from firelane._auto import Auto, Plan

from . import gil_watch, kept, outside, registry
from . import hang as hung
from .budget import Budget, next_drawn
from .parts import StepParts
from .process import folder_for_this_process, last_exception, memory, summary_of
from .ring import Ring
from .triggers import Growth, Hang, SlowSteps
from .window import Window

if TYPE_CHECKING:
    from firelane._auto import Phase
    from firelane.profiler._recording import Recording

_BATCH = 64  # lines between two visits to the timer's samples; the GPU's events of 256 steps are kept
_GPU_WINDOW: list[Phase] = ["warmup", "light", "light", "recorded"]
_CPU_WINDOW: list[Phase] = ["recorded"]
_FIRST_WINDOW_NS = {True: 60_000_000, False: 15_000_000}  # expected of the first one, by whether there is a GPU
_MAX_STRIDE = 1024
_TIMING_SHARE = 0.25  # of the budget, at most, for timing
_RECORDED_LIMIT = 2  # times the limit: recording makes steps slower, too


class Always(Auto):
    follows_models = False

    def __init__(
        self,
        plan: Plan,
        budget: float = 0.005,
        keep_bytes: int = 2 << 30,
        *,
        tick_s: float = 1.0,
        quiet_s: float = 60.0,
        most_incidents: int = 50,
        hang: Hang | None = None,
        growth: Growth | None = None,
    ) -> None:
        self.share = budget
        self.keep_bytes = keep_bytes
        self.tick_s = tick_s
        self.most_incidents = most_incidents
        self.quiet_ns = int(quiet_s * 1e9)  # between two incidents of one kind
        self.hang = hang or Hang()
        self.growth = growth or Growth()
        self.serves = True  # not in children of a process that does
        hung.turn_on_flight_recorder()
        super().__init__(plan)
        if plan.signal:
            self.outside.catch_signal(outside.signal_number(plan.signal))

    def _follow_optimizers(self) -> None:
        self._follow_existing_optimizers()

    def _begin(self) -> None:
        super()._begin()
        self.parts = StepParts(self._caught_out_of_memory)
        self.events = self.parts  # type: ignore[assignment]  # installed and removed in the same places
        self.budget = Budget(self.share, _FIRST_WINDOW_NS[self.uses_gpu])
        self.slow = SlowSteps()
        self.ring: Ring | None = None
        self.window: Window | None = None
        self.phase: Phase = "warmup"
        self.stride = 1
        self.draw_zeros = self.budget.zeros
        self.usual_hook_ns = 0
        self.until_batch = _BATCH  # lines
        self.hook_samples: collections.deque[int] = collections.deque([0], maxlen=_BATCH)
        self.pending = 1
        self.line: tuple[int, int] = (0, 1)  # first step and number of steps of the current line
        self.line_began_ns = 0
        self.line_cpu_ns = 0
        self.after_window: Window | None = None  # whose cost the current step still belongs to
        self.waiting: list[tuple[int, int, int, int, int, int]] = []  # lines whose samples the timer has
        self.lines: collections.deque[str] = collections.deque(maxlen=65536)  # to be written
        self.recent: collections.deque[str] = collections.deque(maxlen=300)  # of the writer
        self.incidents: collections.deque[tuple[str, int, str]] = collections.deque(maxlen=self.most_incidents)
        self.finished: collections.deque[Window] = collections.deque(maxlen=64)
        self.wanted: Path | None = None  # the incident that a window is to be recorded for
        self.incident_count = 0
        self.last_incident: dict[str, tuple[int, float]] = {}  # when, and the largest so far
        self.writer: threading.Thread | None = None
        self.gil_watch: gil_watch.GilWatch | None = None
        self.training_thread = 0
        self.writer_ns = self.counted_writer_ns = 0
        self.wake = threading.Event()
        self.rss_bytes = self.cuda_bytes = -1
        self.last_sample_s = 0.0
        self.largest_window = 1 << 20
        self.outside = outside.Outside(self)

    # -- the training thread --------------------------------------------------------------

    def _marked(self, next_batch: Callable[[Any], Any]) -> Callable[[Any], Any]:
        marked = super()._marked(next_batch)

        @functools.wraps(next_batch)
        def timed(loader: Any) -> Any:
            begin = time.perf_counter_ns()
            try:
                batch = marked(loader)
            finally:
                self.parts.input_ns += time.perf_counter_ns() - begin
            if self.outside.is_on:
                self.outside.add_batch(loader, batch)
            return batch

        return timed

    def _is_light(self) -> bool:
        return self.phase == "light"

    def step(self) -> None:
        """A step ends here: for programs in which nothing else says so."""
        self.stepped("profiler")

    def count(self, *, samples: int = 0, tokens: int = 0) -> None:
        """What the program has trained on since the last call, for the metrics. Without it, samples are those of
        DataLoaders' batches, and tokens those of their `input_ids`."""
        self.outside.count(samples, tokens)

    def _next_step(self) -> None:
        self.step_count += 1
        if self.pending > 1:
            self.pending -= 1
            return
        begin, began_cpu = time.perf_counter_ns(), time.thread_time_ns()
        if self.writer is None:
            self._open()
            self.budget.add_steps(0, time.thread_time_ns() - began_cpu, 0)
        # Between two steps without a window, one clock reading and one CUDA event are enough.
        is_plain = self.window is None and not self._wants_window()
        if is_plain:
            self.timer.step(self.step_count, "unrecorded")
        else:
            self.timer.finish()
        self._end_line(begin, began_cpu - self.line_cpu_ns)
        if is_plain:
            self.phase = "unrecorded"
        else:
            self._choose_phase()
        self._begin_line(begin if is_plain else 0)
        if is_plain:
            # On a core: a thread that lost its core in here would have lost it elsewhere, which is no cost of ours.
            hook_ns = self.line_cpu_ns - began_cpu
            self.budget.add_steps(0, hook_ns, 0)
            self.hook_samples.append(hook_ns)
        else:  # turning the recorder on or off
            hook_ns = time.perf_counter_ns() - begin
            self.budget.add_steps(hook_ns, 0, 0)
            window = self.window or self.after_window
            if window is not None:
                window.hooks_ns += hook_ns

    def _begin_line(self, began_ns: int) -> None:
        count = self.stride if self.phase == "unrecorded" else 1
        if count > 1:  # a window begins at the step that was drawn, not where a line happens to end
            drawn = next_drawn(self.step_count + 1, count - 1, self.draw_zeros)
            count = drawn - self.step_count if drawn >= 0 else count
        self.pending = count
        self.line = (self.step_count, count)
        if began_ns == 0:
            self.timer.step(self.step_count, self.phase)
        self.line_began_ns = began_ns or time.perf_counter_ns()
        self.line_cpu_ns = time.thread_time_ns()

    def _end_line(self, now_ns: int, cpu_ns: int) -> None:
        if self.window is not None:
            self.window.end_step()
        if self.line_began_ns == 0:  # the program's first step: when it began is not known
            self.parts.take()
            return
        number, count = self.line
        duration_ns = now_ns - self.line_began_ns
        if (watch := self.gil_watch) is not None:  # read once: another thread may end it
            watch.step(self.step_count)
        threads_ns = self.writer_ns + self.outside.busy_ns
        written_ns, self.counted_writer_ns = threads_ns - self.counted_writer_ns, threads_ns
        self.budget.add_steps(duration_ns, written_ns, count)
        parts = self.parts.take()
        self.waiting.append((number, count, cpu_ns, *parts))
        if self.outside.is_on:
            self.outside.observed.append((duration_ns, count, self.phase, cpu_ns, *parts))
        disturbed = self.window or self.after_window
        limit_ns = self.slow.limit_ns // self.stride * count
        if disturbed is not None:
            is_slow = 0 < _RECORDED_LIMIT * limit_ns < duration_ns  # by more than recording does it
            disturbed.longer_ns += (limit_ns if is_slow else duration_ns) - self._usual_ns() * count
            if self.window is None:  # the step after the window: the last one that it may have slowed down
                self.budget.add_window(disturbed.cost_ns)
                self.after_window = None
        else:
            is_slow = self.phase == "unrecorded" and count == self.stride and self.slow.is_slow(duration_ns)
        if is_slow:
            self._take_samples()
            text = f"slow step {number}: {duration_ns / 1e6:.1f} ms"
            self._incident("slow", number, text, duration_ns / max(1, self._usual_ns() * count))
        self.until_batch -= 1
        if self.until_batch <= 0:  # not by what waits: slow steps empty that in between
            self.until_batch = _BATCH
            self._take_samples()
            self._choose_stride()
            self.draw_zeros = self.budget.zeros

    def _take_samples(self) -> None:
        """Lines of the steps so far, with what the GPU took where it is done with them."""
        samples = {sample[0]: sample[1:] for sample in self.timer.take()}
        for number, count, cpu_ns, gc_ns, input_ns, save_ns in self.waiting:
            phase, start_ns, host_ns, device_ns = samples.get(number, ("unknown", -1, -1, -1))
            if host_ns >= 0:
                self.lines.append(
                    f"{number},{count},{start_ns},{host_ns},{device_ns},{phase},{cpu_ns},{gc_ns},{input_ns},{save_ns},"
                    f"{self.rss_bytes},{self.cuda_bytes}\n"
                )
        self.waiting.clear()

    def _choose_stride(self) -> None:
        """Steps too short to be timed one by one within the budget are timed together."""
        self.usual_hook_ns = hook_ns = int(statistics.median(self.hook_samples))
        if (
            self.window is None
            and self.stride < _MAX_STRIDE
            and hook_ns > _TIMING_SHARE * self.share * self.slow.usual_ns > 0
        ):
            self.stride *= 2
            self.slow = SlowSteps()

    def _choose_phase(self) -> None:
        window = self.window
        if window is not None and not window.phases:
            window.end()
            self.window, self.after_window, window = None, window, None
            self.finished.append(self.after_window)
            self.wake.set()
        if window is None and self._wants_window():
            window = self._new_window()
        self.phase = "unrecorded" if window is None else window.begin_step(self.step_count, self.uses_gpu)

    def _usual_ns(self) -> int:
        """Of one step."""
        return self.slow.usual_ns // self.stride

    def _wants_window(self) -> bool:
        if self.after_window is not None or self.slow.usual_ns == 0 or self.ring is None:
            return False
        if self.finished:  # room was made for two: the last one has to be filed first
            return False
        if self.wanted is not None:
            return self.budget.covers_window(credit=1)
        return next_drawn(self.step_count, 1, self.draw_zeros) >= 0 and self.budget.covers_window()

    def _new_window(self) -> Window | None:
        assert self.ring is not None
        budget = self.budget
        incident, self.wanted = self.wanted, None
        begin = time.perf_counter_ns()
        phases = _GPU_WINDOW if self.uses_gpu else _CPU_WINDOW
        window = Window(self.step_count, phases, self.ring.window_path(self.step_count), incident)
        try:
            window.begin(self.plan.options, self.uses_gpu, json.dumps(self.account()))
        except RuntimeError:  # the program records itself
            budget.add_window(time.perf_counter_ns() - begin)
            return None
        self.window = window
        return window

    def _incident(self, kind: str, step: int, text: str, size: float = 1.0) -> None:
        """From any thread. Incidents of one kind have to be some time apart, unless one is twice as large as those
        before, or somebody asked for it."""
        now = time.perf_counter_ns()
        last, largest = self.last_incident.get(kind, (-self.quiet_ns, 0.0))
        is_quiet = now - last < self.quiet_ns and size < 2 * largest and kind not in ("trigger", "signal")
        if self.incident_count >= self.most_incidents or is_quiet:
            return
        self.count_incident(kind, max(size, largest))
        self.incidents.append((kind, step, text))
        self.wake.set()

    def count_incident(self, kind: str, largest: float) -> None:
        self.last_incident[kind] = (time.perf_counter_ns(), largest)
        self.incident_count += 1
        self.outside.incidents[kind] += 1

    def _caught_out_of_memory(self, message: str) -> None:
        """Whether or not the program catches it: one that ends it is of the same kind, and told once."""
        if self.ring is not None:
            self._incident("out-of-memory", self.step_count, f"out-of-memory: {message.strip()[:1000]}")

    def trigger(self, reason: str = "asked for by the program") -> None:
        """Keeps what is there, and records the next steps."""
        self._incident("trigger", self.step_count, f"trigger: {reason}")

    def account(self) -> dict[str, Any]:
        """What recording has cost so far."""
        ring = self.ring
        return {
            **self.budget.account(),
            "steps_a_line": self.stride,
            "incidents": self.incident_count,
            "write_errors": ring.errors if ring else 0,
            "dropped_lines": ring.dropped_lines if ring else 0,
            "process": os.getpid(),
            "timing_a_line_ns": self.usual_hook_ns,
            "writer_ns": self.writer_ns,
        }

    # -- the writer's thread --------------------------------------------------------------

    def _open(self) -> None:
        folder = folder_for_this_process(Path(self.plan.output))
        self.path = str(folder)
        self.training_thread = threading.get_ident()
        self.ring = Ring(folder, self.keep_bytes, summary_of)
        self.ring.write(folder / "account.json", json.dumps(self.account()))
        registry.announce(folder)
        if self.serves:
            self.outside.open(folder)
        self.gil_watch = gil_watch.GilWatch(folder / "kept")
        self.writer = threading.Thread(target=self._write_now_and_then, name="firelane-always", daemon=True)
        self.writer.start()

    def _write_now_and_then(self) -> None:
        ticks = 0
        while not self.is_over:
            self.wake.wait(self.tick_s)
            self.wake.clear()
            begin = time.thread_time_ns()
            ticks += 1
            try:
                self._watch()
                self._write(with_account=ticks % 5 == 1)
            except Exception as error:
                self._give_up(error)
            self.writer_ns += time.thread_time_ns() - begin

    def _watch(self) -> None:
        self.rss_bytes, self.cuda_bytes = memory()
        usual_ns = self._usual_ns()
        since_ns = time.perf_counter_ns() - self.line_began_ns if self.line_began_ns else 0
        gil_watch.tick(self, self.hang.limit_ns(usual_ns * self.line[1]))
        if self.hang.hangs(self.step_count, since_ns, usual_ns * self.line[1]):
            text = f"hang: no step for {since_ns / 1e9:.1f} s after step {self.step_count - 1}"
            self._incident("hang", self.step_count, f"{text}; usually {usual_ns / 1e6:.1f} ms")
        now = time.monotonic()
        is_due = now - self.last_sample_s >= self.tick_s  # incidents wake this thread in between
        self.last_sample_s = now if is_due else self.last_sample_s
        if is_due and (grown := self.growth.grows(self.rss_bytes + max(0, self.cuda_bytes))):
            text = f"memory grows: {grown[0] >> 20} MiB to {grown[1] >> 20} MiB (process and GPU)"
            self._incident("memory", self.step_count, text)
        assert self.ring is not None
        if self.outside.signals:
            self._incident("signal", self.step_count, f"trigger: signal {self.outside.signals.popleft()}")
        request = self.ring.folder / "trigger"
        if request.exists():
            reason = request.read_text(errors="replace").strip()[:1000]
            request.unlink()
            self._incident("trigger", self.step_count, f"trigger: {reason}")

    def _write(self, with_account: bool) -> None:
        ring = self.ring
        assert ring is not None
        # Taken first: the line of a slow step is there before its incident.
        incidents = [self.incidents.popleft() for _ in range(len(self.incidents))]
        while self.lines:
            line = self.lines.popleft()
            self.recent.append(line)
            ring.add_line(line)
        ring.flush()
        self.outside.write()
        for incident in incidents:
            kept.keep_incident(self, *incident)
        while self.finished:
            kept.file_window(self, self.finished.popleft())
        if with_account:
            ring.write(ring.folder / "account.json", json.dumps(self.account()))
            self.make_room()

    def make_room(self) -> None:
        """For the next two windows; in a small folder for as much as leaves room for what is there."""
        assert self.ring is not None
        self.ring.make_room(min(2 * self.largest_window, self.keep_bytes // 2))

    # -- the end, and other processes -----------------------------------------------------

    def _stop(self) -> None:
        self.is_over = True
        watch, self.gil_watch = self.gil_watch, None
        if watch is not None:
            watch.stop()
        self.events.remove()
        if self.window is not None:
            self.window.end()
            self.finished.append(self.window)
            self.window = None
        self.wake.set()
        if self.writer is not None and self.writer is not threading.current_thread():
            self.writer.join(10)
        if self.ring is not None:
            self._take_samples()
            self._write(with_account=True)
            self.outside.stop()
            registry.withdraw()

    def stop(self) -> None:
        """Ends the recording. Hooks that stay in place do nothing from now on."""
        if not self.is_over:
            self._stop()

    def step_aside(self, recording: Recording) -> None:
        if recording.is_automatic or self.is_over:
            return
        self._stop()
        self.stood_aside = True
        print(
            "firelane: the program uses firelane.profiler itself; its own recording takes precedence", file=sys.stderr
        )

    def begin_in_child(self) -> None:
        self.parts.remove()
        self.gil_watch = None
        self.serves = not self.outside.forget_in_child() and self.serves
        super().begin_in_child()
        if not self.is_over and "firelane.profiler._backend" in sys.modules:
            self.parts.install()

    def _finish(self) -> None:
        if not self.is_over:
            if self.ring is not None and (error := last_exception()):
                kind = "out-of-memory" if "out of memory" in error.lower() else "exception"
                self._incident(kind, self.step_count, f"{kind}: {error}")
            self._stop()
        self.outside.stop()  # also when recording had to be given up
        if self.ring is None:
            self._explain_missing_recording()
        elif not self.plan.quiet:
            account = self.account()
            print(
                f"firelane: {account['steps']} steps timed, {account['windows']} windows recorded for "
                f"{100 * account['spent']:.2f}% of the time (budget {100 * self.share:g}%), "
                f"{account['incidents']} incidents; next: firelane why {shlex.quote(os.path.relpath(self.path))}",
                file=sys.stderr,
            )
