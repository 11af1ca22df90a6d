"""How far `firelane diagnose` was from the truth with each rule: the table of src/advise/proofs.cc.

    python bench/diagnose/calibrate.py FIRELANE FOLDER[:ENDING] ...    # folders of record_all.py; ENDING: lane

Held-out programs and those of the newest blind test (kinds_fresh.py) are left out. Prints a row for each rule, as
proofs.cc has it: programs (the same one on a GPU and on a CPU is two), how many were named with at least half of the
gain, and the error of the middle that nine of ten stay below; the error of all; the median of true gains over those
said; and, leaving one program out at a time, how many true gains the ranges would then contain.

Where a program was recorded more than once, its errors are averaged. The error counts beyond what the timed blocks of
steps vary by themselves, which is the other part of a range (src/advise/gain.cc).
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

WEIGHT_OF_ALL = 2  # as in proofs.cc
NAMED = 0.5


@dataclass
class Case:
    program: str
    rule: str
    middle: float
    low: float
    high: float
    true: float
    noise: float  # of the true gain: half of what the blocks span

    @property
    def error(self) -> float:
        return max(0.0, abs(self.true - self.middle) - self.noise / 2) / self.middle if self.middle else 1.0


def cases(firelane: str, folder: Path, ending: str) -> list[Case]:
    found = []
    for name, entry in json.loads((folder / "true_steps.json").read_text()).items():
        path = folder / f"{name}.faulty.{ending}"
        if entry["half"] in ("held out", "fresh") or not entry["saves_time"] or not path.exists():
            continue
        faulty, fixed = (statistics.median(entry[kind + "_ns"]) for kind in ("faulty", "fixed"))
        if faulty - fixed < 0.05 * faulty or min(entry["faulty_ns"]) <= fixed:
            continue
        done = subprocess.run([firelane, "diagnose", path, "--json"], check=True, capture_output=True, text=True)
        findings = json.loads(done.stdout)["findings"]
        finding = next((each for each in findings if each["id"] in entry["findings"]), None)
        rule = finding["id"] if finding else entry["findings"][0]
        gain = finding["gain"] if finding else {"low_ns": 0, "high_ns": 0}
        spread = [statistics.quantiles(entry[kind + "_ns"], n=4) for kind in ("faulty", "fixed")]
        found.append(
            Case(
                f"{name}, {entry['device']}",
                rule,
                (gain["low_ns"] + gain["high_ns"]) / 2,
                gain["low_ns"],
                gain["high_ns"],
                faulty - fixed,
                sum(high - low for low, _, high in spread) / 2,
            )
        )
    return found


def quantile(values: list[float], part: float = 0.9) -> float:
    """Of few values nearly the largest, of none 1."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(part * len(ordered)))] if ordered else 1.0


def shrunk(own: list[float], all_errors: float) -> float:
    return (len(own) * quantile(own) + WEIGHT_OF_ALL * all_errors) / (len(own) + WEIGHT_OF_ALL) if own else all_errors


def main() -> None:
    firelane, *folders = sys.argv[1:]
    programs: dict[tuple[str, str], list[Case]] = defaultdict(list)
    for each in folders:
        folder, _, ending = each.partition(":")
        for case in cases(firelane, Path(folder), ending or "lane"):
            programs[case.rule, case.program].append(case)
    errors: dict[str, dict[str, float]] = defaultdict(dict)
    right: dict[str, int] = defaultdict(int)
    for (rule, program), seen in programs.items():
        named = [case for case in seen if case.middle > 0]
        right[rule] += bool(named) and statistics.fmean(case.true / case.middle for case in named) >= NAMED
        if named:
            errors[rule][program] = statistics.fmean(case.error for case in named)
        else:
            errors.setdefault(rule, {})
    pooled = quantile([error for of_rule in errors.values() for error in of_rule.values()])
    for rule, of_rule in sorted(errors.items()):
        count = sum(1 for each, _ in programs if each == rule)
        print(f'    {{"{rule}", {count}, {right[rule]}, {quantile(list(of_rule.values())):.2f}}},')
    print(f"of all: {pooled:.2f}")
    ratios = [case.true / case.middle for seen in programs.values() for case in seen if case.middle > 0]
    print(f"true gains over those said: median {statistics.median(ratios):.2f} of {len(ratios)}")
    inside = total = 0
    for (rule, program), seen in programs.items():
        others = [error for name, error in errors[rule].items() if name != program]
        rest = quantile([e for r in errors.values() for name, e in r.items() if name != program])
        for case in seen:
            if case.middle == 0:
                continue
            total += 1
            inside += abs(case.true - case.middle) <= shrunk(others, rest) * case.middle + case.noise / 2
    print(f"leaving one program out: {inside} of {total} in the range")


if __name__ == "__main__":
    main()
