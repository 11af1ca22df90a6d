#!/usr/bin/env python3
"""How often comparing runs cries wolf, and what it finds: the study behind `firelane compare` and `firelane gate`.

    .venv/bin/python bench/compare_noise.py --real ../shared/traces/other/same_program_again_h200.jsonl --write

Equal runs must not be called different more often than one time in twenty; a slowdown must be found. The runs:

  real       steps of one program, started again and again on an H200: runs are dealt out to two sides, every way there
             is for few runs, or drawn; for more, runs are made from blocks of the steps of real ones
  simulated  each run has its own level (between-run noise), each step its own noise, correlated with the step before

Every comparison drops warm-up, takes the median of each run and asks firelane's own judge. The older way, Mann-Whitney
over single steps, is shown beside it.
"""

from __future__ import annotations

import argparse
import itertools
import json
import random
import statistics
import sys
from pathlib import Path

import readme

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))

from firelane._trace import _judge, _warm_up_steps

HERE = Path(__file__).resolve().parent


def run_median(steps: list[float]) -> float:
    return statistics.median(steps[_warm_up_steps(steps) :])


def is_different(before: list[float], after: list[float], threshold: float = 0.03) -> bool:
    return _judge(before, after, threshold, with_range=False)["outcome"] in ("more", "less")


def mann_whitney_differs(before: list[float], after: list[float]) -> bool:
    """By the normal approximation, at 0.05, without ties' correction: what people do with single steps."""
    ranked = sorted([(value, 0) for value in before] + [(value, 1) for value in after])
    ranks = sum(rank for rank, (_, side) in enumerate(ranked, 1) if side == 0)
    n, m = len(before), len(after)
    u = ranks - n * (n + 1) / 2
    return abs(u - n * m / 2) > 1.96 * (n * m * (n + m + 1) / 12) ** 0.5


def simulated_run(rng: random.Random, *, steps: int, within: float, between: float, correlation: float) -> list[float]:
    level = 1 + rng.gauss(0, between)
    fresh = within * (1 - correlation**2) ** 0.5
    noise = rng.gauss(0, within)
    out = []
    for _ in range(steps):
        out.append(level * (1 + noise))
        noise = correlation * noise + rng.gauss(0, fresh)
    return out


def share(hits: int, trials: int) -> str:
    return f"{100 * hits / trials:.1f}%"


def real_rows(path: Path, rng: random.Random, trials_wanted: int) -> list[list[str]]:
    programs: dict[str, list[list[float]]] = {}
    for line in path.read_text().splitlines():
        run = json.loads(line)
        programs.setdefault(run["program"], []).append([float(us) for us in run["host_us"]])
    rows = []
    for program, runs in programs.items():
        medians = [run_median(run) for run in runs]
        spread = statistics.stdev(medians) / statistics.mean(medians)
        for side in range(4, len(runs) // 2 + 1):
            hits = trials = 0
            for chosen in itertools.combinations(range(len(runs)), 2 * side):
                for first in itertools.combinations(chosen, side):
                    rest = [i for i in chosen if i not in first]
                    hits += is_different([medians[i] for i in first], [medians[i] for i in rest])
                    trials += 1
            rows.append(
                [f"{program}, as recorded", f"{100 * spread:.1f}%", f"{side} + {side}", share(hits, trials), ""]
            )
        for side in (4, 5, 8, 12):
            hits = by_steps = 0
            for _ in range(trials_wanted):
                made = [resampled(rng, runs) for _ in range(2 * side)]
                values = [run_median(run) for run in made]
                hits += is_different(values[:side], values[side:])
                by_steps += mann_whitney_differs(made[0][8:], made[side][8:])
            kind = f"{program}, runs from blocks of steps"
            rows.append(
                [
                    kind,
                    f"{100 * spread:.1f}%",
                    f"{side} + {side}",
                    share(hits, trials_wanted),
                    share(by_steps, trials_wanted),
                ]
            )
    return rows


def resampled(rng: random.Random, runs: list[list[float]]) -> list[float]:
    """A run of the length of a real one, from blocks of its steps: its level and its correlation stay."""
    run = rng.choice(runs)
    steps = run[_warm_up_steps(run) :]
    block = 8
    out: list[float] = []
    while len(out) < len(run):
        start = rng.randrange(max(1, len(steps) - block))
        out += steps[start : start + block]
    return out[: len(run)]


def simulated_rows(rng: random.Random, trials: int) -> list[list[str]]:
    rows = []
    for correlation in (0.0, 0.3, 0.5, 0.7):
        for between in (0.0, 0.01, 0.03, 0.05):
            for side in (4, 5, 8):
                hits = by_steps = 0
                for _ in range(trials):
                    runs = [
                        simulated_run(rng, steps=40, within=0.02, between=between, correlation=correlation)
                        for _ in range(2 * side)
                    ]
                    values = [run_median(run) for run in runs]
                    hits += is_different(values[:side], values[side:])
                    by_steps += mann_whitney_differs(runs[0], runs[side])
                kind = f"correlation {correlation:g}, between runs {100 * between:g}%"
                rows.append(
                    [kind, f"{100 * between:g}%", f"{side} + {side}", share(hits, trials), share(by_steps, trials)]
                )
    return rows


def power_rows(rng: random.Random, trials: int) -> list[list[str]]:
    rows = []
    for noise in (0.003, 0.01, 0.03):
        for side in (4, 5, 8):
            found = []
            for slowdown in (0.02, 0.03, 0.05, 0.10):
                hits = 0
                for _ in range(trials):
                    before = [1 + rng.gauss(0, noise) for _ in range(side)]
                    after = [(1 + slowdown) * (1 + rng.gauss(0, noise)) for _ in range(side)]
                    hits += _judge(before, after, min(0.03, slowdown / 2), with_range=False)["outcome"] == "more"
                found.append(share(hits, trials))
            rows.append([f"{100 * noise:g}%", f"{side} + {side}", *found])
    return rows


def table(head: list[str], rows: list[list[str]]) -> str:
    lines = ["| " + " | ".join(head) + " |", "|---|" + "--:|" * (len(head) - 1)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--real", type=Path, help="JSON lines of runs: program, host_us")
    parser.add_argument("--trials", type=int, default=2000, help="comparisons for each row")
    parser.add_argument("--write", action="store_true", help="put the tables into bench/README.md")
    args = parser.parse_args()
    rng = random.Random(12)
    head = [
        "equal runs",
        "noise between runs",
        "runs a side",
        "called different",
        "Mann-Whitney over steps of one run each",
    ]
    false_alarms = real_rows(args.real, rng, args.trials) if args.real else []
    false_alarms += simulated_rows(rng, args.trials)
    found = power_rows(rng, args.trials)
    text = (
        table(head, false_alarms)
        + "\n\n"
        + table(["noise between runs", "runs a side", "2% found", "3%", "5%", "10%"], found)
        + "\n"
    )
    print(text)
    rates = [float(row[3].rstrip("%")) for row in false_alarms]
    error = 100 * (0.05 * 0.95 / args.trials) ** 0.5
    beyond = sum(rate > 5 + 2 * error for rate in rates)
    print(
        f"false alarms: {statistics.mean(rates):.1f}% of all, at most {max(rates)}% in a row (goal: 5%, known to ",
        end="",
    )
    print(f"{error:.1f} points a row); rows above 5% by more than two standard errors: {beyond}")
    quiet = next(row for row in found if row[0] == "0.3%" and row[1] == "4 + 4")
    noisy = next(row for row in found if row[0] == "1%" and row[1] == "5 + 5")
    print(f"5% over 0.3% noise, 4 + 4: {quiet[4]} (goal: 100%); ", end="")
    print(f"5% over 1% noise, 5 + 5: {noisy[4]} (goal: 90%)")
    if args.write:
        readme.write("compare_noise.py", text)


if __name__ == "__main__":
    main()
