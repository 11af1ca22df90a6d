"""The library of planted faults: programs of real kinds, each with a fault and mended, and who may be tuned on them.

Whoever writes a rule or fits a number looks at the programs of TUNING only; HELD_OUT is for the scoreboard. The split
was fixed before anything was measured: the names in alphabetical order, every second one is held out. The programs of
gpu_programs.py are older, and rules have been tuned on all of them. UNSEEN is a blind test: not even its source is read
by those who write rules before it has been scored, and once it has, it is no blind test any more. BLIND is a second
one; of its names in alphabetical order every second one (BLIND_KEPT) stays away from tuning after it was scored, too.
LATE is a third, scored once, FRESH a fourth, for a CPU, and NEXT a fifth. SEALED is a sixth, written by somebody
who had not read the rules; ASKED is a seventh, of the same kind, after questions that people ask about slow programs;
MERGED is an eighth, after speedups that were merged into libraries; SHIPPED is a ninth, of code as people ship it, most
of it on libraries of PyTorch's users.
COMMON has kinds of trouble that are common and that no rule named; those of COMMON_KEPT are scored, never tuned with.

    step = LIBRARY["experts-boolean-masks"].make(Machine("cuda"), True)      # True: with the fault
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import gpu_programs
import kinds_asked
import kinds_blind
import kinds_fresh
import kinds_gains
import kinds_gains_device
import kinds_language
import kinds_late
import kinds_loops
import kinds_merged
import kinds_next
import kinds_other
import kinds_sealed
import kinds_shipped
import kinds_unseen
import kinds_vision
from gpu_models import MEMORY, Program

LIBRARY: dict[str, Program] = dict(
    sorted(
        {
            **kinds_vision.PROGRAMS,
            **kinds_language.PROGRAMS,
            **kinds_other.PROGRAMS,
            **kinds_loops.PROGRAMS,
        }.items()
    )
)

TUNING = list(LIBRARY)[0::2]
HELD_OUT = list(LIBRARY)[1::2]
UNSEEN: dict[str, Program] = dict(sorted(kinds_unseen.PROGRAMS.items()))
BLIND: dict[str, Program] = dict(sorted(kinds_blind.PROGRAMS.items()))
BLIND_OPEN = list(BLIND)[0::2]
BLIND_KEPT = list(BLIND)[1::2]
LATE: dict[str, Program] = dict(sorted(kinds_late.PROGRAMS.items()))
FRESH: dict[str, Program] = dict(sorted(kinds_fresh.PROGRAMS.items()))
NEXT: dict[str, Program] = dict(sorted(kinds_next.PROGRAMS.items()))
SEALED: dict[str, Program] = dict(sorted(kinds_sealed.PROGRAMS.items()))
ASKED: dict[str, Program] = dict(sorted(kinds_asked.PROGRAMS.items()))
MERGED: dict[str, Program] = dict(sorted(kinds_merged.PROGRAMS.items()))
SHIPPED: dict[str, Program] = dict(sorted(kinds_shipped.PROGRAMS.items()))
# Each file kinds_common_*.py has PROGRAMS, and of these KEPT and ON_GPU_ONLY.
_common = [import_module(path.stem) for path in sorted(Path(__file__).parent.glob("kinds_common_*.py"))]
COMMON: dict[str, Program] = dict(sorted(pair for kinds in _common for pair in kinds.PROGRAMS.items()))
COMMON_KEPT: set[str] = {name for kinds in _common for name in kinds.KEPT}

# On a CPU the device's queue, pinned memory and half precision are no trouble: those programs are left out there.
ON_GPU_ONLY = {
    "copies-unpinned",
    "scaler-checked-on-host",
    "resnet-fp32-nchw",
    "diffusion-norm-in-fp32",
    *kinds_unseen.ON_GPU_ONLY,
    *kinds_blind.ON_GPU_ONLY,
    *kinds_late.ON_GPU_ONLY,
    *kinds_next.ON_GPU_ONLY,
    *kinds_sealed.ON_GPU_ONLY,
    *kinds_asked.ON_GPU_ONLY,
    *kinds_merged.ON_GPU_ONLY,
    *kinds_shipped.ON_GPU_ONLY,
    *(name for kinds in _common for name in kinds.ON_GPU_ONLY),
}

OLDER: dict[str, Program] = {
    name: Program(
        fault.make,
        (fault.finding or name,),
        flags={**MEMORY, **fault.flags},
        saves_time=fault.saves_time,
        block=8 if name == "slow-steps" else 1,
        recorded=8 if name == "slow-steps" else 4,
    )
    for name, fault in gpu_programs.FAULTS.items()
}


# What gains are fitted with, beside TUNING and OLDER; in no score.
GAINS = kinds_gains.GAINS
ON_GPU_ONLY |= {
    name for name in GAINS if name.startswith(("convolutions", "copied", "fused"))
} | kinds_gains_device.ON_GPU_ONLY

EVERY: dict[str, Program] = {
    **LIBRARY,
    **UNSEEN,
    **BLIND,
    **LATE,
    **FRESH,
    **NEXT,
    **SEALED,
    **ASKED,
    **MERGED,
    **SHIPPED,
    **COMMON,
    **OLDER,
    **GAINS,
}


def half_of(name: str) -> str:
    halves = {
        "held out": HELD_OUT,
        "tuning": TUNING,
        "unseen": UNSEEN,
        "blind, opened": BLIND_OPEN,
        "blind, kept": BLIND_KEPT,
        "late": LATE,
        "fresh": FRESH,
        "next": NEXT,
        "sealed": SEALED,
        "asked": ASKED,
        "merged": MERGED,
        "shipped": SHIPPED,
        "common, kept": COMMON_KEPT,
        "common": COMMON,
        "gains": GAINS,
    }
    return next((half for half, names in halves.items() if name in names), "older")
