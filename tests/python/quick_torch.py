"""For programs that tests run in a process of their own: `import quick_torch` instead of, or before, `import torch`.

Importing torch registers how every operator behaves on meta tensors, and an optimizer's first call imports all of
torch.compile: half of the time of such a program, for what none of them uses. Here neither is imported, with the torch
that CI has; torch 2.15 needs both.
"""

import importlib.metadata
import sys
import types

IS_QUICK = importlib.metadata.version("torch").startswith("2.11.")
if IS_QUICK:
    sys.modules["torch._meta_registrations"] = types.ModuleType("torch._meta_registrations")
import torch  # noqa: E402

if IS_QUICK:
    stub = types.ModuleType("torch._dynamo")
    vars(stub).update(
        graph_break=lambda: None,
        disable=lambda function, *_, **__: function,
        trace_rules=types.SimpleNamespace(clear_lru_cache=lambda: None),  # which a process group asks for
    )
    torch._dynamo = sys.modules["torch._dynamo"] = stub
