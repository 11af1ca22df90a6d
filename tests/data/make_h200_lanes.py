"""Records programs on a GPU with firelane, and times them without a profiler: the true steps to compare verdicts with.

    python tests/data/make_h200_lanes.py OUTPUT_FOLDER      # needs only the recorder

Writes h200_NAME.lane and h200_true_steps.json: for each program the flags, and the steps in ns, timed on the host
before and after the recording, with a synchronization before the first and after the last.
"""

import itertools
import json
import sys
import time
from pathlib import Path

import torch
import torch.nn.functional as F

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "gpu"))
from cuda_programs import Gpt, train_step
from record_both import load_recorder
from record_steps import record_steps

ALL = {"shapes": True, "memory": True, "stacks": True, "modules": True}


def decoder():
    """One step is one token, chosen on the host as in generate()."""
    model = Gpt(4).cuda().bfloat16().eval()
    seen = torch.randint(0, 1024, (1, 64), device="cuda")

    def step():
        nonlocal seen
        with torch.no_grad():
            token = model(seen)[:, -1].argmax(-1).item()
        seen = torch.cat([seen[:, 1:], torch.full((1, 1), token, device="cuda")], dim=1)

    return step


class SlowTokens(torch.utils.data.Dataset):
    def __len__(self):
        return 1 << 20

    def __getitem__(self, index):
        time.sleep(0.002)
        return torch.randint(0, 1024, (129,))


def input_bound():
    """A data set that takes 2 ms per item, read in the training process."""
    model = Gpt(4).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    batches = iter(torch.utils.data.DataLoader(SlowTokens(), batch_size=4, num_workers=0, pin_memory=True))

    def step():
        tokens = next(batches).to("cuda", non_blocking=True)
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cuda", torch.bfloat16):
            logits = model(tokens[:, :-1])
        F.cross_entropy(logits.float().flatten(0, 1), tokens[:, 1:].flatten()).backward()
        optimizer.step()

    return step


PROGRAMS = {
    "gpt_plain": (lambda: train_step(8), {}),
    "gpt_all": (lambda: train_step(8), ALL),
    "decoder": (decoder, {"shapes": True}),
    "input_bound": (input_bound, {"shapes": True}),
}


def timed(step, count: int = 20) -> list[int]:
    torch.cuda.synchronize()
    marks = [time.perf_counter_ns()]
    for i in range(count):
        step()
        if i == count - 1:
            torch.cuda.synchronize()
        marks.append(time.perf_counter_ns())
    return [b - a for a, b in itertools.pairwise(marks)]


def main() -> None:
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    native = load_recorder()
    truth = {}
    for name, (make, flags) in PROGRAMS.items():
        torch.manual_seed(0)
        step = make()
        timed(step, 10)
        before = timed(step)
        losses = record_steps(native, step, folder / f"h200_{name}.lane", flags)
        timed(step, 3)
        truth[name] = {"flags": sorted(flags), "before_ns": before, "after_ns": timed(step), "losses": losses}
        print(name, sorted(before)[len(before) // 2] / 1e6, "ms", losses, flush=True)
    versions = {"device": torch.cuda.get_device_name(), "torch": torch.__version__}
    (folder / "h200_true_steps.json").write_text(json.dumps({**versions, "programs": truth}, indent=1))


if __name__ == "__main__":
    main()
