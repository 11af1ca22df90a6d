"""What the writer keeps of an incident: the steps before it, where threads were, the next windows and their verdict."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING

from . import hang as hung
from .ring import HEADER

if TYPE_CHECKING:
    from .run import Always
    from .window import Window


def keep_incident(always: Always, kind: str, step: int, text: str) -> None:
    ring = always.ring
    assert ring is not None
    stamp = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime())
    folder = ring.keep(step, kind, f"{text} ({stamp})\n", ring.newest_windows(2))
    ring.write(folder / "steps-000001.csv", HEADER + "".join(always.recent))
    if kind == "slow":
        from firelane._trace import why

        ring.write(folder / "incident.txt", f"{text} ({stamp})\n{why(str(folder), step).split(chr(10) * 2)[0]}\n")
    if kind == "hang":
        place = hung.place_of_thread(always.training_thread)
        ring.write(folder / "incident.txt", f"{text} ({stamp})\nthe training thread: {place}\n")
        stacks = hung.stacks()
        ring.write(folder / "stacks.txt", stacks)  # at once: what follows takes longer
        ring.write(folder / "stacks.txt", f"{stacks}\n{hung.native_stacks()}")
        collectives, dump = hung.pending_collectives()  # last: torch might not answer
        if collectives:
            ring.write(folder / "collectives.txt", collectives)
        if dump:
            ring.write(folder / f"flight_rank{json.loads(dump)['rank']}.json", dump)
    always.wanted = folder


def file_window(always: Always, window: Window) -> None:
    """A window that has ended: to the incident that it was recorded for, if there is one."""
    ring = always.ring
    assert ring is not None
    try:
        always.largest_window = max(always.largest_window, window.path.stat().st_size)
    except OSError:  # nothing could be written
        ring.errors += 1
        return
    if window.incident is not None and window.incident.exists():  # else it had to go meanwhile
        ring.add_to(window.incident, window.path, "after.lane")
        import firelane

        ring.write(window.incident / "verdict.txt", firelane.open(window.path)._short_verdict(color=False))
    always.outside.see_window(window.path)
    always.make_room()
