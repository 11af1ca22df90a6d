"""For programs that tests run in a process of their own: `import quick_torch` instead of, or before, `import torch`.

Importing torch registers how every operator behaves on meta tensors, and an optimizer's first call imports all of
torch.compile: half of the time of such a program, for what none of them uses. Here neither is imported.
"""

import sys
import types

sys.modules["torch._meta_registrations"] = types.ModuleType("torch._meta_registrations")
import torch  # noqa: E402

stub = types.ModuleType("torch._dynamo")
vars(stub).update(graph_break=lambda: None, disable=lambda function, *_, **__: function)
torch._dynamo = sys.modules["torch._dynamo"] = stub
