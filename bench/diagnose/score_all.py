"""The scoreboard of the library: what `firelane diagnose` says about each program of record_all.py, against the truth.

    python bench/diagnose/score_all.py FIRELANE FOLDER [--half "held out"] [--answers FILE]

FOLDER: what record_all.py wrote; traces still in .json.xz are unpacked first. Prints Markdown: the true step
and what is said from each recording; planted faults; a summary. `--answers` keeps what FIRELANE said, or takes it from
there if the file exists.

Where programs have names of the place of their fault (`where`), a column says whether the diagnosis leads there,
whatever it makes of it: whether one of the names is in the first finding (its title, evidence or advice), in one of the
first three, or anywhere in what is said, notes included. A name counts in any case of its letters.

The true step is the median of blocks of steps without any recorder. A range contains it if it touches what those blocks
span. A fault counts as first if the first finding names it, "kind" if the first finding is of the right category only.
A fault counts where it costs at least 5% of the step and even its fastest block is slower than the mended program. A
gain is right if what is said to be likely is within 20% of the measured one.
A program without a fault is well judged if nothing is said of it but what is true (the program's `near`), what would
gain less than 5% of the step, and remarks on the recording.
"""

from __future__ import annotations

import argparse
import itertools
import json
import lzma
import shutil
import statistics
import subprocess
from pathlib import Path
from typing import Any

OPTIONS = ("plain", "memory", "stacks")
HALVES = (
    "tuning",
    "held out",
    "older",
    "unseen",
    "blind, opened",
    "blind, kept",
    "late",
    "fresh",
    "next",
    "sealed",
    "asked",
    "merged",
    "shipped",
    "common",
    "common, kept",
    "gains",
)
ON_RECORDING = {"recording-distorts", "one-time-costs"}
WORTH = 0.05


def unpack(folder: Path) -> None:
    for path in sorted(folder.glob("*.json.xz")):
        if path.with_suffix("").exists():
            continue
        with lzma.open(path) as packed, path.with_suffix("").open("wb") as unpacked:
            shutil.copyfileobj(packed, unpacked)


def words_in(said: Any) -> str:
    """All texts of a part of what diagnose says, a line each; names of fields are none."""
    if isinstance(said, str):
        return said
    parts = said.values() if isinstance(said, dict) else said if isinstance(said, list) else ()
    return "\n".join(dict.fromkeys(line for part in parts for line in words_in(part).splitlines()))


def diagnose(firelane: str, path: Path) -> dict:
    done = subprocess.run([firelane, "diagnose", path, "--json"], check=False, capture_output=True, text=True)
    if done.returncode != 0:
        return {"failed": done.stderr}
    answer = json.loads(done.stdout)
    keys = ("id", "gain", "confidence", "title")
    return {
        "step": answer["step"],
        "verdict": answer["verdict"],
        "findings": [
            {**{key: finding[key] for key in keys}, "words": words_in(finding)} for finding in answer["findings"]
        ],
        "words": words_in(answer),
    }


def all_answers(firelane: str, folder: Path, truths: dict) -> dict[str, dict]:
    endings = ["lane", *(f"{options}.json" for options in OPTIONS)]
    paths = [folder / f"{name}.{kind}.{end}" for name in truths for kind in ("faulty", "fixed") for end in endings]
    return {path.name: diagnose(firelane, path) for path in paths if path.exists()}


def likely(gain: dict) -> float:
    return gain.get("likely_ns", (gain["low_ns"] + gain["high_ns"]) / 2)  # stored answers may have none


def kinds_of(entry: dict) -> tuple[str, ...]:
    return tuple(kind for kind in ("faulty", "fixed") if entry[kind + "_ns"])


def ms(ns: float) -> str:
    return f"{ns / 1e6:.2f}"


class Truth:
    def __init__(self, entry: dict[str, Any], kind: str):
        blocks = entry[kind + "_ns"]
        self.ns = statistics.median(blocks)
        self.low, self.high = min(blocks), max(blocks)

    def in_range(self, step: dict) -> bool:
        low, high = min(step["low_ns"], step["usual_ns"]), max(step["high_ns"], step["usual_ns"])
        return low <= self.high and high >= self.low


class Steps:
    """How near the steps of one recorder come."""

    def __init__(self) -> None:
        self.errors: list[float] = []
        self.contained = 0

    def add(self, truth: Truth, step: dict, key: str) -> str:
        error = step[key] / truth.ns - 1
        self.errors.append(error)
        self.contained += truth.in_range(step)
        return f"{ms(step[key])} ({error:+.0%}){'' if truth.in_range(step) else ' !'}"

    def __str__(self) -> str:
        if not self.errors:
            return "none"
        count = len(self.errors)
        near = {goal: sum(abs(error) <= goal for error in self.errors) for goal in (0.05, 0.15)}
        return (
            f"{near[0.05]} of {count} within 5%, {near[0.15]} within 15%, the range contains {self.contained}; "
            f"median {statistics.median(self.errors):+.0%}, the worst {max(self.errors, key=abs):+.0%}"
        )


def step_table(truths: dict, answers: dict) -> None:
    print("| program | true step ms | our recorder | torch, no flags | shapes, memory | and stacks, modules |")
    print("|---|--:|--:|--:|--:|--:|")
    columns = {end: Steps() for end in ("lane", *(f"{options}.json" for options in OPTIONS))}
    for name, entry in truths.items():
        for kind in kinds_of(entry):
            truth, cells = Truth(entry, kind), []
            slow = kind == "faulty" and "slow-steps" in entry["findings"]
            for end, column in columns.items():
                answer = answers.get(f"{name}.{kind}.{end}", {"failed": "missing"})
                if slow and end != "lane":
                    cells.append("no slow step in it")
                elif "failed" in answer:
                    cells.append("failed")
                else:
                    cells.append(column.add(truth, answer["step"], "step_ns" if slow else "usual_ns"))
            shown = kind if entry["findings"] else "no fault"
            print(f"| {name}, {shown} | {ms(truth.ns)} | {' | '.join(cells)} |")
    print()
    for end, column in columns.items():
        print(f"- {end.split('.')[0]}: {column}")
    print()


def place_of(entry: dict, ids: list[str]) -> tuple[int, str]:
    place = next((i + 1 for i, each in enumerate(ids) if each in entry["findings"]), 0)
    if place == 1:
        return 1, "first"
    if ids and ids[0] in entry["near"]:
        return place, f"kind: {ids[0]}" + (f"; place {place}" if place else "")
    return place, (f"place {place}, after " if place else "no: ") + (
        ", ".join(ids[: place - 1 if place else 2]) or "nothing"
    )


NAMED = ("first", "in the first three", "anywhere")


def place_named(entry: dict, answer: dict) -> str:
    """Where the place of the fault is named, of NAMED; empty if nowhere."""

    def named(words: str) -> bool:
        return any(name.lower() in words.lower() for name in entry.get("where", ()))

    told = [
        named(finding.get("words", finding["title"])) for finding in answer["findings"]
    ]  # stored answers may have none
    if any(told[:1]):
        return NAMED[0]
    if any(told[:3]):
        return NAMED[1]
    return NAMED[2] if any(told) or named(answer.get("words", "")) else ""


def fault_table(truths: dict, answers: dict, end: str) -> None:
    placed = any(entry.get("where") for entry in truths.values())
    print(
        f"| planted fault | found | step ms | gain said ms | measured | off | when mended |{' place named |' * placed}"
        f"\n|---|---|--:|---|--:|--:|---|{'---|' * placed}"
    )
    counts = {"first": 0, "kind": 0, "found": 0, "alarms": 0, "worth": 0, "near": 0, "within": 0, "gains": 0}
    named = dict.fromkeys(("", *NAMED), 0)
    for name, entry in truths.items():
        answer, mended = (answers.get(f"{name}.{kind}.{end}", {}) for kind in ("faulty", "fixed"))
        if "findings" not in answer or "findings" not in mended:
            continue
        fixed = Truth(entry, "fixed").ns
        faulty, fastest = Truth(entry, "faulty").ns, Truth(entry, "faulty").low
        ids = [finding["id"] for finding in answer["findings"]]
        place, words = place_of(entry, ids)
        after = [finding["id"] for finding in mended["findings"]]
        still = [each for each in after if each in entry["findings"]]
        worth = (faulty - fixed >= WORTH * faulty and fastest > fixed) or not entry["saves_time"]
        row = [name, words, ms(faulty), "", ms(faulty - fixed), "", ", ".join(after) or "nothing"]
        if placed:
            row.append(place_named(entry, answer) or "no")
        if worth:
            counts["worth"] += 1
            named[place_named(entry, answer)] += 1
            counts["first"] += place == 1
            counts["kind"] += words.startswith("kind")
            counts["found"] += place > 0
            counts["alarms"] += bool(still)
        else:
            row[1] += " (it costs nothing here)"
        if worth and entry["saves_time"]:
            counts["gains"] += 1
            gain = answer["findings"][place - 1]["gain"] if place else {"low_ns": 0, "high_ns": 0}
            off = likely(gain) / (faulty - fixed) - 1
            counts["near"] += abs(off) <= 0.2
            counts["within"] += gain["low_ns"] <= faulty - fixed <= gain["high_ns"]
            row[3:6] = [
                f"{ms(likely(gain))} ({ms(gain['low_ns'])} to {ms(gain['high_ns'])})" if place else "",
                ms(faulty - fixed),
                f"{off:+.0%}",
            ]
        print("| " + " | ".join(row) + " |")
    print(
        f"\nOf {counts['worth']} faults that cost something: {counts['first']} first, "
        f"{counts['kind']} by category only, "
        f"{counts['found']} found at any place, {counts['alarms']} still found when mended. Gains: {counts['near']} of "
        f"{counts['gains']} within 20%, the range contains {counts['within']}.\n"
    )
    if placed:
        first, three, anywhere = itertools.accumulate(named[where] for where in NAMED)
        print(
            f"The place is named in the first finding of {first}, in the first three of {three}, anywhere of "
            f"{anywhere}.\n"
        )


def healthy_table(truths: dict, answers: dict, end: str) -> None:
    """Programs without a fault: what is said, its likely gain, and whether that is an alarm."""
    print("| no fault | step ms | said | alarms |\n|---|--:|---|---|")
    judged = quiet = 0
    for name, entry in truths.items():
        answer = answers.get(f"{name}.fixed.{end}", {})
        if "findings" not in answer:
            continue
        step, said, alarms = Truth(entry, "fixed").ns, [], []
        for finding in answer["findings"]:
            share = likely(finding["gain"]) / step
            said.append(f"{finding['id']} ({share:.0%})" if share else finding["id"])
            if finding["id"] not in ON_RECORDING and finding["id"] not in entry["near"] and not 0 < share < WORTH:
                alarms.append(finding["id"])
        judged, quiet = judged + 1, quiet + (not alarms)
        print(f"| {name} | {ms(step)} | {', '.join(said) or 'nothing'} | {', '.join(alarms) or 'none'} |")
    print(f"\nOf {judged} programs without a fault {quiet} without an alarm.\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("firelane")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--half", choices=HALVES)
    parser.add_argument("--answers", type=Path)
    arguments = parser.parse_args()
    unpack(arguments.folder)
    truths = json.loads((arguments.folder / "true_steps.json").read_text())
    if arguments.answers and arguments.answers.exists():
        answers = json.loads(arguments.answers.read_text())
    else:
        answers = all_answers(arguments.firelane, arguments.folder, truths)
        if arguments.answers:
            arguments.answers.write_text(json.dumps(answers))
    for half in HALVES:
        chosen = {name: entry for name, entry in truths.items() if entry["half"] == half}
        if not chosen or (arguments.half and arguments.half != half):
            continue
        print(f"### {half.capitalize()}\n")
        step_table(chosen, answers)
        fault_table({name: entry for name, entry in chosen.items() if entry["findings"]}, answers, "lane")
        healthy = {name: entry for name, entry in chosen.items() if not entry["findings"]}
        if healthy:
            healthy_table(healthy, answers, "lane")


if __name__ == "__main__":
    main()
