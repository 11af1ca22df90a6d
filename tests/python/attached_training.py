"""A training that others attach to: attached_training.py STEPS, or 0 for until a file `stop` is there.

Prints "ready" and, at its end, what it computed and whether anything of a visitor is left in it. Run by the tests of
`firelane attach` and by bench/attach.py.
"""

import gc
import hashlib
import json
import sys
import threading
from pathlib import Path

import quick_torch  # noqa: F401  # isort: skip  (before torch)
import torch
from torch.optim.optimizer import _global_optimizer_post_hooks
from torch.utils.data.dataloader import _BaseDataLoaderIter


def open_files():
    links = list(Path("/proc/self/fd").iterdir())
    return sorted(str(link.readlink()).split(":")[0] for link in links if link.exists())


def state():
    classes = (torch.nn.Module.eval, torch.utils.data.DataLoader.__iter__, _BaseDataLoaderIter.__next__)
    profiler = (torch.profiler.profile.step, torch.autograd._profiler_enabled, torch._C._profiler._RecordFunctionFast)
    return {
        "functions": [*map(id, (torch.save, *classes, *profiler, optimizer.step))],
        "hooks": [len(gc.callbacks), len(_global_optimizer_post_hooks)],
        "path": sys.path[:],
        "threads": sorted(t.name for t in threading.enumerate()),
        "files": open_files(),
    }


torch.manual_seed(0)
torch.set_num_threads(1)
data = torch.utils.data.TensorDataset(torch.randn(64, 8), torch.randn(64, 1))
loader = torch.utils.data.DataLoader(data, batch_size=8, shuffle=True)
net = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Dropout(), torch.nn.Linear(16, 1))
optimizer = torch.optim.AdamW(net.parameters())
scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.99999)
before, most = state(), int(sys.argv[1])
losses: list[float] = []
print("ready", flush=True)
while len(losses) != most if most else not Path("stop").exists():
    for x, y in loader:
        loss = torch.nn.functional.mse_loss(net(x), y)
        loss.backward()
        optimizer.step()
        scheduler.step()
        optimizer.zero_grad()
        losses.append(loss.item())
for thread in threading.enumerate():
    if thread.name == "firelane-attach" and not sys.modules["firelane._attach"]._visited:
        thread.join()  # it has answered, and is about to end
after = state()
computed = {
    "steps": len(losses),
    "losses": hashlib.sha256(json.dumps(losses).encode()).hexdigest(),
    "weights": hashlib.sha256(json.dumps([p.tolist() for p in net.parameters()]).encode()).hexdigest(),
}
left = {name: [before[name], after[name]] for name in before if before[name] != after[name]}
print(json.dumps({"computed": computed, "left": left}))
