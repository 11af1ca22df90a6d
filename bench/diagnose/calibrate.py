"""How far `firelane diagnose` was from the truth with each rule: the table of src/advise/proofs.cc.

    python bench/diagnose/calibrate.py FIRELANE FOLDER[:ENDING] ...    # folders of record_all.py; ENDING: lane

Held-out programs and kept ones are left out. Prints kMeasured as proofs.cc has it, a row for each rule that ever
promised something: programs of which it was said (the same one on a GPU and on a CPU is two), in how many of them at
least half of the gain was there, and by how much the truth was below and above what was said to be likely, which 97
of 100 do not exceed; the same of all; the median of true gains over those said; leaving one program out at a time,
how many true gains the ranges would then contain; and the programs of which nothing was promised, which say nothing
about how sure a finding is when it is said.

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

WEIGHT_OF_ALL = 6  # this and the ends of each side: as in proofs.cc
BELOW, ABOVE = (0.35, 0.8), (0.6, 1.6)
NAMED = 0.5
LEFT_OUT = ("held out", "common, kept")
SIDE = 0.97  # of each side, so that nine of ten programs that were left out lie in between

Errors = dict[str, dict[str, float]]  # by rule, by program


@dataclass
class Case:
    program: str
    rule: str
    likely: float
    true: float
    step: float
    noise: float  # of the true gain: half of what the blocks span

    def error(self, sign: int) -> float:
        """Of the likely gain: by how much the truth is below (sign -1) or above it (1)."""
        return max(0.0, sign * (self.true - self.likely) - self.noise / 2) / self.likely


def cases(firelane: str, folder: Path, ending: str) -> list[Case]:
    found = []
    for name, entry in json.loads((folder / "true_steps.json").read_text()).items():
        path = folder / f"{name}.faulty.{ending}"
        if entry["half"] in LEFT_OUT or not entry["saves_time"] or not path.exists():
            continue
        faulty, fixed = (statistics.median(entry[kind + "_ns"]) for kind in ("faulty", "fixed"))
        if faulty - fixed < 0.05 * faulty or min(entry["faulty_ns"]) <= fixed:
            continue
        done = subprocess.run([firelane, "diagnose", path, "--json"], check=True, capture_output=True, text=True)
        findings = json.loads(done.stdout)["findings"]
        finding = next((each for each in findings if each["id"] in entry["findings"]), None)
        rule = finding["id"] if finding else entry["findings"][0]
        spread = [statistics.quantiles(entry[kind + "_ns"], n=4) for kind in ("faulty", "fixed")]
        found.append(
            Case(
                f"{name}, {entry['device']}",
                rule,
                finding["gain"]["likely_ns"] if finding else 0,
                faulty - fixed,
                faulty,
                sum(high - low for low, _, high in spread) / 2,
            )
        )
    return found


def quantile(values: list[float], part: float = SIDE) -> float:
    """Of few values the largest, of none 1."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(part * len(ordered)))] if ordered else 1.0


def of_all(errors: Errors, without: str = "") -> float:
    return quantile([e for of_rule in errors.values() for program, e in of_rule.items() if program != without])


def shrunk(own: list[float], all_errors: float, ends: tuple[float, float]) -> float:
    total = len(own) * quantile(own) + WEIGHT_OF_ALL * all_errors
    return min(ends[1], max(ends[0], total / (len(own) + WEIGHT_OF_ALL)))


def main() -> None:
    firelane, *folders = sys.argv[1:]
    programs: dict[tuple[str, str], list[Case]] = defaultdict(list)
    for each in folders:
        folder, _, ending = each.partition(":")
        for case in cases(firelane, Path(folder), ending or "lane"):
            programs[case.rule, case.program].append(case)
    below: Errors = defaultdict(dict)
    above: Errors = defaultdict(dict)
    right: dict[str, int] = defaultdict(int)
    counts: dict[str, int] = defaultdict(int)
    for (rule, program), seen in programs.items():
        named = [case for case in seen if case.likely > 0]
        counts[rule] += bool(named)
        right[rule] += bool(named) and statistics.fmean(case.true / case.likely for case in named) >= NAMED
        if named:
            below[rule][program] = statistics.fmean(case.error(-1) for case in named)
            above[rule][program] = statistics.fmean(case.error(1) for case in named)
    for rule in sorted(below):
        errors = [quantile(list(side[rule].values())) for side in (below, above)]
        print(f'    {{"{rule}", {counts[rule]}, {right[rule]}, {errors[0]:.2f}, {errors[1]:.2f}}},')
    print(f"of all: {of_all(below):.2f} below, {of_all(above):.2f} above")
    ratios = [case.true / case.likely for seen in programs.values() for case in seen if case.likely > 0]
    print(f"true gains over those said: median {statistics.median(ratios):.2f} of {len(ratios)}")
    inside = 0
    for (rule, program), seen in programs.items():
        rest = [[e for name, e in side[rule].items() if name != program] for side in (below, above)]
        low = shrunk(rest[0], of_all(below, program), BELOW)
        high = shrunk(rest[1], of_all(above, program), ABOVE)
        for case in seen:
            least, most = (1 - low) * case.likely - case.noise / 2, (1 + high) * case.likely + case.noise / 2
            inside += case.likely > 0 and least <= case.true <= most
    print(f"leaving one program out: {inside} of {len(ratios)} in the range")
    missed = sorted(name for (_, name), seen in programs.items() if all(case.likely <= 0 for case in seen))
    print(f"nothing promised of {len(missed)}: {'; '.join(missed)}")


if __name__ == "__main__":
    main()
