"""How far measurements agree with themselves: what bounds every verdict on gains and true steps.

    python bench/diagnose/agreement.py FOLDER [ANSWERS] ...     # of record_all.py; of score_all.py --answers

For each folder: of the faults that count, how often one block of steps with the fault and one without it give a gain
within 20% of the median gain. With the answers of score_all.py: how the errors of torch.profiler's true steps split
into what the recordings of one program share (the program, and the truth's own noise) and what each has by itself.
"""

from __future__ import annotations

import itertools
import json
import math
import statistics
import sys
from collections import defaultdict
from pathlib import Path

NEAR = 0.2
WORTH = 0.05


def gains(truths: dict) -> tuple[int, float]:
    """Faults that count, and the sum over them of the part of all pairs of blocks that is near the median gain."""
    faults, near = 0, 0.0
    for entry in truths.values():
        if not entry["findings"] or not entry["saves_time"] or not entry["fixed_ns"]:
            continue
        faulty, fixed = (statistics.median(entry[kind + "_ns"]) for kind in ("faulty", "fixed"))
        gain = faulty - fixed
        if gain < WORTH * faulty or min(entry["faulty_ns"]) <= fixed:
            continue
        pairs = list(itertools.product(entry["faulty_ns"], entry["fixed_ns"]))
        faults += 1
        near += sum(abs((a - b) / gain - 1) <= NEAR for a, b in pairs) / len(pairs)
    return faults, near


def step_errors(truths: dict, answers: dict) -> dict[tuple[str, str], list[float]]:
    """By program and kind: logarithms of what is said over the truth, one for each set of options."""
    errors = defaultdict(list)
    for name, entry in truths.items():
        for kind in ("faulty", "fixed"):
            if not entry[kind + "_ns"] or (kind == "faulty" and "slow-steps" in entry["findings"]):
                continue
            for options in ("plain", "memory", "stacks"):
                step = answers.get(f"{name}.{kind}.{options}.json", {}).get("step")
                if step:
                    errors[name, kind].append(math.log(step["usual_ns"] / statistics.median(entry[kind + "_ns"])))
    return {key: each for key, each in errors.items() if len(each) > 1}


def main() -> None:
    arguments = [Path(each) for each in sys.argv[1:]]
    for i, folder in enumerate(arguments):
        if not folder.is_dir():
            continue
        truths = json.loads((folder / "true_steps.json").read_text())
        faults, near = gains(truths)
        if faults:
            print(f"{folder}: a pair of blocks gives the gain within 20% in {near / faults:.0%} ({faults} faults)")
        following = arguments[i + 1] if i + 1 < len(arguments) else None
        if following is None or following.is_dir():
            continue
        errors = step_errors(truths, json.loads(following.read_text())).values()
        own = statistics.fmean(statistics.variance(each) for each in errors)
        whole = statistics.pvariance([error for each in errors for error in each])
        shared = max(0.0, whole - own)
        averaged = sum(abs(math.expm1(statistics.fmean(each))) <= 0.15 for each in errors)
        print(
            f"{folder}: steps are off by {math.sqrt(whole):.0%}: {math.sqrt(shared):.0%} that the recordings of a "
            f"program share, {math.sqrt(own):.0%} each by itself; their average is within 15% in {averaged} of "
            f"{len(errors)}"
        )


if __name__ == "__main__":
    main()
