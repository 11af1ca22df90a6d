"""A recorder that records nothing but logs every call, to test how the profiler uses it."""

from types import SimpleNamespace


class FakeRecorder:
    def __init__(self, log, options):
        self.log, self.options = log, options
        self.metadata, self.losses, self.path = {}, [], ""
        log.append("open")

    def resume(self):
        self.log.append("resume")

    def begin_full(self):
        self.log.append("full")

    def resume_device(self):
        self.log.append("resume device")

    def pause_device(self):
        self.log.append("pause device")

    def stop_device(self):
        self.log.append("stop device")

    def pause(self):
        self.log.append("pause")

    def stop(self):
        self.log.append("stop")

    def status(self):
        return SimpleNamespace(event_count=0)

    def add_metadata(self, key, json):
        self.metadata[key] = json

    def add_loss(self, reason, count=0):
        self.losses.append(SimpleNamespace(reason=reason, count=count))

    def add_steps(self, timer):
        self.log.append("steps " + " ".join(f"{n}{phase[0]}" for n, phase in timer.take()))


class FakeTimer:
    def __init__(self, on_device=False):
        self.steps, self.running = [], None

    def step(self, number, phase):
        self.finish()
        self.running = (number, phase)

    def raise_phase(self, phase):
        if self.running:
            self.running = (self.running[0], phase)

    def finish(self):
        if self.running:
            self.steps.append(self.running)
        self.running = None

    @property
    def samples(self):
        return [(number, phase, 0) for number, phase in self.steps]

    def take(self):
        steps, self.steps = self.steps, []
        return steps


def install(monkeypatch):
    """Replaces the recorder with the fake; returns (log of calls, recorders created)."""
    from firelane.profiler import _backend

    log, made = [], []

    def start(**options):
        made.append(FakeRecorder(log, SimpleNamespace(**options)))
        return made[-1]

    monkeypatch.setattr(_backend, "start", start)
    monkeypatch.setattr(_backend, "step_timer", FakeTimer)
    monkeypatch.setattr(_backend, "begin_range", lambda name: log.append(name) or 1)
    monkeypatch.setattr(_backend, "end_range", lambda id: log.append("end"))
    return log, made
