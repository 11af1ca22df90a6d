#!/usr/bin/env python3
"""Attaches to a running training again and again: does the program compute what it would have, and what is left of us?

    bench/attach.py [--attaches 100] [--python .venv/bin/python] [--write]

A small training on the CPU (dropout, shuffled batches, AdamW, a scheduler) runs while `firelane attach` records one
step after the other of it. Then a second process makes as many steps alone. Losses of all steps and the final weights
have to be equal bit by bit, and threads, open files and hooks of the first process those that it had at its start.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import readme

ROOT = Path(__file__).resolve().parents[1]

PROGRAM = """
import gc, hashlib, json, os, sys, threading, torch
from pathlib import Path
from torch.optim.optimizer import _global_optimizer_post_hooks
torch.manual_seed(0)
torch.set_num_threads(1)
data = torch.utils.data.TensorDataset(torch.randn(256, 32), torch.randn(256, 1))
loader = torch.utils.data.DataLoader(data, batch_size=8, shuffle=True)
net = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.Dropout(), torch.nn.ReLU(), torch.nn.Linear(64, 1))
optimizer = torch.optim.AdamW(net.parameters())
scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.999999)

def left():
    return {
        "threads": [t.name for t in threading.enumerate()],
        "files": sorted(os.readlink(f"/proc/self/fd/{fd}").split(":")[0] for fd in os.listdir("/proc/self/fd")
                        if os.path.exists(f"/proc/self/fd/{fd}")),
        "hooks": [len(gc.callbacks), len(_global_optimizer_post_hooks), id(torch.save), id(optimizer.step)],
    }

before, losses, most = left(), hashlib.sha256(), int(sys.argv[1])
count = 0
print("ready", flush=True)
while count != most if most else not Path("stop").exists():
    for x, y in loader:
        loss = torch.nn.functional.mse_loss(net(x), y)
        loss.backward()
        optimizer.step()
        scheduler.step()
        optimizer.zero_grad()
        losses.update(loss.item().hex().encode())
        count += 1
weights = hashlib.sha256(b"".join(p.detach().numpy().tobytes() for p in net.parameters())).hexdigest()
print(json.dumps({"steps": count, "losses": losses.hexdigest(), "weights": weights, "clean": left() == before,
                  "before": before, "after": left()}))
"""


def start(python: str, folder: Path, steps: int) -> subprocess.Popen[str]:
    (folder / "program.py").write_text(PROGRAM)
    command = [python, "program.py", str(steps)]
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stdout.readline() == "ready\n"
    return process


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--attaches", type=int, default=100)
    parser.add_argument("--python", default=str(ROOT / ".venv" / "bin" / "python"))
    parser.add_argument("--write", action="store_true", help="update bench/README.md")
    args = parser.parse_args()
    firelane = os.environ.get("FIRELANE_BINARY", str(ROOT / "build" / "release" / "firelane"))
    with tempfile.TemporaryDirectory(prefix="firelane-attach-bench-") as name:
        folder = Path(name)
        program = start(args.python, folder, 0)
        seconds, failures = [], []
        for number in range(args.attaches):
            begin = time.monotonic()
            flags = ["--steps", "1", "--quiet", "-o", f"{number}.lane"]
            done = subprocess.run(
                [firelane, "attach", str(program.pid), *flags], cwd=folder, capture_output=True, text=True, check=False
            )
            seconds.append(time.monotonic() - begin)
            if done.returncode != 0 or not (folder / f"{number}.lane").exists():
                failures.append(done.stderr)
            print(f"{number + 1} of {args.attaches}: {seconds[-1]:.2f} s", file=sys.stderr)
        (folder / "stop").touch()
        attached = json.loads(program.communicate()[0])
        others = sorted(p.name for p in folder.iterdir() if p.suffix != ".lane")
        alone = json.loads(start(args.python, folder, attached["steps"]).communicate()[0])
    version = subprocess.run([args.python, "--version"], capture_output=True, text=True, check=True).stdout.split()[1]
    equal = attached["losses"] == alone["losses"] and attached["weights"] == alone["weights"]
    row = (
        f"| {version} | {args.attaches} | {args.attaches - len(failures)} | {statistics.median(seconds):.2f} s | "
        f"{attached['steps']:,} | {'yes' if equal else 'NO'} | {'nothing' if attached['clean'] else 'SOMETHING'} |\n"
    )
    text = (
        "| Python | attaches | traces with the step | time of one | steps of the program | losses and weights equal | "
        "left in it |\n|---|--:|--:|--:|--:|---|---|\n" + row
    )
    print(text, "".join(failures[:3]), f"other files: {others}", sep="\n")
    if not attached["clean"]:
        print(f"before: {attached['before']}\nafter: {attached['after']}")
    if args.write:
        readme.write("attach.py", text)
    return 0 if equal and attached["clean"] and not failures else 1


if __name__ == "__main__":
    sys.exit(main())
