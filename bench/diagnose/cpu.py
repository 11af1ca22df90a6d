"""The scoreboard of `firelane diagnose` on this machine's CPU: programs are timed, recorded, diagnosed and fixed, live.

    .venv/bin/python bench/diagnose/cpu.py [--write]      # --write: into bench/README.md

Three tables: the step with the recording's cost removed against the step timed without a profiler; planted faults
found, with the predicted gain against the measured one; findings in healthy programs. "Off" compares the middle of a
range with the truth.
"""

import argparse
import statistics
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import torch

import readme
from cpu_programs import FAULTS, HEALTHY, MEMORY, slow_loader, tiny_operators, transformer
from recorded import diagnosis, ids, record

ROOT = Path(__file__).resolve().parents[2]


EVERYTHING = {"record_shapes": True, "profile_memory": True, "with_stack": True}
UNDONE = {
    "tiny operators": lambda: tiny_operators(True),
    "transformer": transformer,
    "DataLoader": lambda: slow_loader(True),
}


def times_of(step, steps=30) -> list[float]:
    for _ in range(3):
        step()
    out = []
    for _ in range(steps):
        start = time.perf_counter()
        step()
        out.append((time.perf_counter() - start) * 1e9)
    return out


def alternating(one, other, rounds=40) -> tuple[list[float], list[float]]:
    """Times of both, taken in turn: whatever slows down the machine slows down both."""
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(rounds):
        for step, into in ((one, times[0]), (other, times[1])):
            start = time.perf_counter()
            step()
            into.append((time.perf_counter() - start) * 1e9)
    return times


def middle(times: list[float]) -> float:
    """The mean without the first and last quartile: steps that other programs delayed do not count."""
    times = sorted(times)
    return statistics.fmean(times[len(times) // 4 : -(len(times) // 4)])


def ms(ns: float) -> str:
    return f"{ns / 1e6:.2f}"


def undone_table(folder: Path) -> list[str]:
    out = ["| program | recorder | true step ms | recorded | undone | off |", "|---|---|--:|--:|--:|--:|"]
    errors: dict[str, list[float]] = {}
    for name, make in UNDONE.items():
        for flags_name, flags in (("plain", {}), ("everything", EVERYTHING)):
            for recorder, wait, words in (
                ("firelane", 8, "firelane"),
                ("firelane", 0, "firelane, no step without recording"),
                ("torch", 8, "torch.profiler"),
            ):
                step = make()
                path = folder / ("trace.lane" if recorder == "firelane" else "trace.json")
                before = times_of(step)
                record(step, path, recorder, wait=wait, **flags)
                truth = middle(before + times_of(step))
                answer = diagnosis(path)["step"]
                error = answer["usual_ns"] / truth - 1
                errors.setdefault(words, []).append(abs(error))
                out.append(
                    f"| {name}, {flags_name} | {words} | {ms(truth)} | {ms(answer['usual_recorded_ns'])} "
                    f"| {ms(answer['usual_ns'])} | {error:+.0%} |"
                )
    goals = {"torch.profiler": 0.15}
    out.append("")
    for words, all_of in errors.items():
        goal = goals.get(words, 0.05)
        out.append(
            f"- {words}: {sum(error <= goal for error in all_of)} of {len(all_of)} within {goal:.0%}; "
            f"the worst is {max(all_of):.0%} off"
        )
    return out


def fault_table(folder: Path) -> list[str]:
    out = [
        "| planted fault | found | step ms | predicted gain ms | measured | off | when fixed |",
        "|---|---|--:|---|--:|--:|---|",
    ]
    first = found = alarms = timed = near = within = 0
    for name, fault in FAULTS.items():
        faulty, fixed = fault.make(True), fault.make(False)
        path = folder / "fault.lane"
        record(faulty, path, **fault.flags)
        verdict = diagnosis(path)
        place = ids(verdict).index(name) + 1 if name in ids(verdict) else 0
        slow, fast = alternating(faulty, fixed)
        # A step that is slow now and then raises the average, not the middle.
        typical = statistics.fmean if name == "slow-steps" else middle
        step_ns = typical(slow)
        real = step_ns - typical(fast)
        record(fixed, path, **fault.flags)
        alarm = name in ids(diagnosis(path))
        first, found, alarms = first + (place == 1), found + (place > 0), alarms + alarm
        row = [name, "first" if place == 1 else f"place {place}" if place else "no", ms(step_ns)]
        if place and fault.saves_time:
            gain = verdict["findings"][place - 1]["gain"]
            predicted = (gain["low_ns"] + gain["high_ns"]) / 2
            timed += 1
            near += abs(predicted / real - 1) <= 0.2
            within += 0.9 * gain["low_ns"] <= real <= 1.1 * gain["high_ns"]
            row += [f"{ms(gain['low_ns'])} to {ms(gain['high_ns'])}", ms(real), f"{predicted / real - 1:+.0%}"]
        else:
            row += ["not about time", "", ""]
        out.append("| " + " | ".join([*row, "still found" if alarm else "absent"]) + " |")
    out += [
        "",
        (
            f"{first} of {len(FAULTS)} found first, {found} found, {alarms} still found when fixed; the middle of "
            f"{near} of {timed} predicted gains is within 20% of the measured one, which is in the range of {within} "
            "(or at most 10% outside it)."
        ),
    ]
    return out


def healthy_table(folder: Path) -> list[str]:
    out = ["| healthy program | verdict | findings |", "|---|---|---|"]
    alarms = 0
    for name, make in HEALTHY.items():
        record(make(), folder / "healthy.lane", **MEMORY)
        verdict = diagnosis(folder / "healthy.lane")
        alarms += not verdict["healthy"]
        out.append(
            f"| {name} | {verdict['verdict'].split(':')[0]} | {', '.join(ids(verdict)) or 'nothing worth fixing'} |"
        )
    return [*out, "", f"{alarms} false alarms on {len(HEALTHY)} healthy programs."]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        tables = [table(Path(folder)) for table in (undone_table, fault_table, healthy_table)]
    text = "\n".join(line for table in tables for line in [*table, ""]).rstrip()
    print(text)
    if arguments.write:
        readme.write("diagnose cpu", text)


if __name__ == "__main__":
    main()
