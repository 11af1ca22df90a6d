"""For programs that tests run in a process of their own: an optimizer's first call imports all of torch.compile,
which takes a second and which these programs do not use. After `import quick_torch` it is not imported.
"""

import sys
import types

import torch

stub = types.ModuleType("torch._dynamo")
vars(stub).update(graph_break=lambda: None, disable=lambda function, *_, **__: function)
torch._dynamo = sys.modules["torch._dynamo"] = stub
