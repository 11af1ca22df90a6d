"""The library of planted faults: programs of real kinds, each with a fault and mended, and who may be tuned on them.

Whoever writes a rule or fits a number looks at the programs of TUNING only; HELD_OUT is for the scoreboard. The split
was fixed before anything was measured: the names in alphabetical order, every second one is held out. The programs of
gpu_programs.py are older, and rules have been tuned on all of them.

    step = LIBRARY["experts-boolean-masks"].make(Machine("cuda"), True)      # True: with the fault
"""

from __future__ import annotations

import gpu_programs
import kinds_gains
import kinds_language
import kinds_loops
import kinds_other
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

# On a CPU the device's queue, pinned memory and half precision are no trouble: those programs are left out there.
ON_GPU_ONLY = {"copies-unpinned", "scaler-checked-on-host", "resnet-fp32-nchw", "diffusion-norm-in-fp32"}

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
ON_GPU_ONLY |= {name for name in GAINS if name.startswith(("convolutions", "copied", "fused"))}


def half_of(name: str) -> str:
    if name in GAINS:
        return "gains"
    return "held out" if name in HELD_OUT else "tuning" if name in TUNING else "older"
