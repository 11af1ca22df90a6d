#!/usr/bin/env python3
"""What an always-on recording costs: the same steps with and without it, in turns, in several processes.

    bench/always.py [--gpu] [--runs 4] [--seconds 30] [--budgets 0.5% 2%] [--json FILE]
    bench/always.py --inside [--gpu] [--runs 4] [--seconds 60]      # the launch-bound program, step by step
    bench/always.py --ring 100000          # steps of a tiny program, many windows, a folder of 1 MiB, metrics on

A launch-bound program (many small ops) and a compute-bound one (large matrices), on the CPU or with --gpu. In each
process blocks without recording lie around blocks with it, one for each budget, in random order; the cost is the block
against the average of its neighbours: the median of all processes, and where nine in ten resampled medians lie. Beside
it: what the recording says itself (its account), windows, and bytes on disk for each step. A block pays for turning
everything on and for its first window, so that a longer job pays less.

Where blocks of the same program differ by more than the budget, --inside decides: every step and every call of the
recorder between steps are timed from outside. What is lost are those calls, what steps of a window take longer than the
median of the unrecorded steps around them, and the processor time of the recorder's own threads, all of it as if the
program had waited for it.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import random
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "python"))


def training_step(kind: str, gpu: bool) -> tuple[Callable[[], None], Callable[[], None]]:
    """A step, and what waits for it."""
    import torch

    torch.set_num_threads(1)
    device = "cuda" if gpu else "cpu"
    width, layers, batch = {
        ("launch", False): (64, 24, 16),
        ("tiny", False): (64, 1, 16),
        ("compute", False): (512, 6, 256),
        ("launch", True): (256, 60, 64),
        ("compute", True): (2048, 16, 4096),
    }[(kind, gpu)]
    modules: list[torch.nn.Module] = []
    for _ in range(layers):
        modules += [torch.nn.Linear(width, width), torch.nn.ReLU()]
    net = torch.nn.Sequential(*modules).to(device)
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-4)
    x = torch.randn(batch, width, device=device)

    def step() -> None:
        net(x).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()

    return step, torch.cuda.synchronize if gpu else (lambda: None)


def process(kind: str, gpu: bool, seconds: float, budgets: list[str], seed: int) -> None:
    """Prints a list of blocks, as JSON."""
    import firelane

    step, wait = training_step(kind, gpu)

    def block(budget: str, seconds: float) -> dict[str, Any]:
        folder = tempfile.mkdtemp()
        wait()
        begin = time.perf_counter()
        always = firelane.always_on(Path(folder) / "run", budget=float(budget.rstrip("%")) / 100) if budget else None
        count = 0
        while time.perf_counter() - begin < seconds:
            for _ in range(10):
                step()
                if always is not None:
                    always.step()
            count += 10
        wait()
        result: dict[str, Any] = {"budget": budget, "steps": count, "ns": (time.perf_counter() - begin) / count * 1e9}
        if always is not None:
            always.stop()
            result["account"] = always.account()
            result["bytes"] = sum(p.stat().st_size for p in Path(folder).rglob("*") if p.is_file())
        return result

    for _ in range(30):
        step()
    ways = list(budgets)
    random.Random(seed).shuffle(ways)
    blocks = [block("", seconds / 3)]
    for budget in ways:
        blocks += [block(budget, seconds), block("", seconds / 3)]
    print(json.dumps(blocks))


def processor_ns(name: str) -> int:
    """Of this process' Python threads whose names begin so."""
    total = 0
    for thread in threading.enumerate():
        if thread.name.startswith(name):
            with contextlib.suppress(OSError, ValueError):
                total += int(Path(f"/proc/self/task/{thread.native_id}/schedstat").read_text().split()[0])
    return total


def process_inside(gpu: bool, seconds: float, budgets: list[str], seed: int) -> None:
    """Prints what was lost at each budget, as JSON."""
    import firelane

    step, wait = training_step("launch", gpu)
    for _ in range(100):
        step()
    ways = list(budgets)
    random.Random(seed).shuffle(ways)
    out = []
    for budget in ways:
        wait()
        begin = time.perf_counter()
        always = firelane.always_on(Path(tempfile.mkdtemp()) / "run", budget=float(budget.rstrip("%")) / 100)
        turned_on_ns = int((time.perf_counter() - begin) * 1e9)
        phases: list[str] = []
        steps_ns: list[int] = []
        calls_ns: list[int] = []
        now = time.perf_counter_ns()
        while time.perf_counter() - begin < seconds:
            phase = always.phase
            step()
            stepped = time.perf_counter_ns()
            always.step()
            called = time.perf_counter_ns()
            phases.append(phase)
            steps_ns.append(stepped - now)
            calls_ns.append(called - stepped)
            now = called
        threads_ns = processor_ns("firelane")
        always.stop()
        plain = {i: ns for i, ns in enumerate(steps_ns) if phases[i] == "unrecorded"}
        usual = statistics.median(plain.values())
        longer = 0.0
        for i, ns in enumerate(steps_ns):
            if i not in plain:
                around = [plain[j] for j in range(i - 40, i + 40) if j in plain]
                longer += ns - (statistics.median(around) if around else usual)
        lost = sum(calls_ns) + longer + threads_ns + turned_on_ns
        out.append({
            "budget": budget, "usual_ns": usual, "steps": len(phases), "recorded": len(phases) - len(plain),
            "calls": sum(calls_ns), "call_ns": statistics.median(calls_ns), "longer": longer, "threads": threads_ns,
            "turned_on": turned_on_ns, "cost": lost / (sum(steps_ns) - longer),
            "account": always.account(),
        })  # fmt: skip
    print(json.dumps(out))


def inside_row(budget: str, blocks: list[dict[str, Any]]) -> str:
    mine = [one for one in blocks if one["budget"] == budget]

    def share(part: str) -> str:
        return f"{100 * sum(one[part] for one in mine) / sum(one['usual_ns'] * one['steps'] for one in mine):.3f}%"

    lowest, highest = (100 * way(one["cost"] for one in mine) for way in (min, max))
    return (
        f"| {statistics.median(one['usual_ns'] for one in mine) / 1e6:.2f} ms | {budget} "
        f"| {100 * statistics.median(one['cost'] for one in mine):.2f}% ({lowest:.2f} to {highest:.2f}) "
        f"| {share('calls')} | {share('longer')} | {share('threads')} | {share('turned_on')} "
        f"| {100 * statistics.median(one['account']['spent'] for one in mine):.2f}% "
        f"| {sum(one['recorded'] for one in mine)} of {sum(one['steps'] for one in mine)} |"
    )


def costs(processes: list[list[dict[str, Any]]], budget: str) -> list[float]:
    """Of each process: a block against its neighbours."""
    return [
        2 * one["ns"] / (blocks[i - 1]["ns"] + blocks[i + 1]["ns"]) - 1
        for blocks in processes
        for i, one in enumerate(blocks)
        if one["budget"] == budget
    ]


def row(kind: str, budget: str, processes: list[list[dict[str, Any]]]) -> str:
    found = costs(processes, budget)
    draw = random.Random(1)
    medians = sorted(statistics.median(draw.choices(found, k=len(found))) for _ in range(2000))
    mine = [one for blocks in processes for one in blocks if one["budget"] == budget]
    base = statistics.median(one["ns"] for blocks in processes for one in blocks if not one["budget"])
    return (
        f"| {kind}-bound | {base / 1e6:.2f} ms | {budget} | {100 * statistics.median(found):+.2f}% "
        f"| {100 * medians[100]:+.2f}% to {100 * medians[-100]:+.2f}% "
        f"| {100 * statistics.median(one['account']['spent'] for one in mine):.2f}% "
        f"| {statistics.median(one['account']['windows'] for one in mine):g} "
        f"| {statistics.median(one['bytes'] / one['steps'] for one in mine):.0f} |"
    )


def ring(steps: int) -> None:
    """Whether the folder stays within its limit while windows come faster than any job would record them."""
    import firelane

    keep = 1 << 20
    run = Path(tempfile.mkdtemp()) / "run"
    step, _ = training_step("tiny", False)
    always = firelane.always_on(run, budget=0.2, keep_bytes=keep, prometheus=0)
    sizes: list[int] = [0]
    scrapes = [0]
    over = threading.Event()

    def watch() -> None:
        while not over.wait(0.5):
            seen = {}
            for path in run.rglob("*"):
                with contextlib.suppress(OSError):  # removed meanwhile
                    status = path.stat()
                    seen[status.st_ino] = status.st_size if path.is_file() else 0
            sizes.append(sum(seen.values()))
            with contextlib.suppress(OSError):
                urllib.request.urlopen((run / "endpoint").read_text().strip() + "/metrics").read()
                scrapes[0] += 1

    watcher = threading.Thread(target=watch)
    watcher.start()
    for _ in range(steps):
        step()
        always.step()
    over.set()
    watcher.join()
    always.stop()
    account = always.account()
    print(
        f"{account['steps']} steps, {account['windows']} windows, {account['incidents']} incidents, "
        f"{100 * account['spent']:.1f}% of the time by its own account; {scrapes[0]} scrapes; the folder had at most "
        f"{max(sizes) / 2**20:.2f} of {keep / 2**20:g} MiB; {account['write_errors']} write errors, "
        f"{account['dropped_lines']} lines lost"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--process", help=argparse.SUPPRESS)
    parser.add_argument("--seed", type=int, default=0, help=argparse.SUPPRESS)
    parser.add_argument("--gpu", action="store_true")
    parser.add_argument("--runs", type=int, default=4, help="processes of each program")
    parser.add_argument(
        "--seconds", type=float, default=30, help="of a block with recording; those without take a third"
    )
    parser.add_argument("--budgets", nargs="+", default=["0.5%", "2%"])
    parser.add_argument("--json", type=Path)
    parser.add_argument("--inside", action="store_true", help="the launch-bound program, every step timed from outside")
    parser.add_argument("--ring", type=int, metavar="STEPS", help="only the size of the folder, over so many steps")
    args = parser.parse_args()
    if args.ring:
        ring(args.ring)
        return
    if args.process == "inside":
        process_inside(args.gpu, args.seconds, args.budgets, args.seed)
        return
    if args.process:
        process(args.process, args.gpu, args.seconds, args.budgets, args.seed)
        return

    def run(kind: str, seed: int) -> list[dict[str, Any]]:
        command = [sys.executable, __file__, "--process", kind, "--seconds", str(args.seconds), "--seed", str(seed)]
        command += ["--budgets", *args.budgets, *(["--gpu"] if args.gpu else [])]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise SystemExit(f"always: {kind}: exit {done.returncode}\n{done.stderr}")
        blocks: list[dict[str, Any]] = json.loads(done.stdout.splitlines()[-1])
        return blocks

    if args.inside:
        found = [block for seed in range(args.runs) for block in run("inside", seed)]
        print("| step | budget | cost | calls | longer steps | threads | turning on | by its own account | recorded |")
        print("|--:|--:|--:|--:|--:|--:|--:|--:|--:|")
        for budget in args.budgets:
            print(inside_row(budget, found))
        if args.json:
            args.json.write_text(json.dumps(found))
        return
    results: dict[str, list[list[dict[str, Any]]]] = {}
    print("| program | step | budget | cost | nine in ten | by its own account | windows | bytes a step |")
    print("|---|--:|--:|--:|--:|--:|--:|--:|")
    for kind in ("launch", "compute"):
        results[kind] = []
        for seed in range(args.runs):
            results[kind].append(run(kind, seed))
        for budget in args.budgets:
            print(row(kind, budget, results[kind]), flush=True)
        if args.json:
            args.json.write_text(json.dumps(results))


if __name__ == "__main__":
    main()
