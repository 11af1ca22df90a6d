"""The events of the small trace that tests open (conftest.py) or vary."""

# Two steps' worth of everything that has a table of its own; times in us.
EVENTS = [
    {"ph": "M", "name": "process_name", "pid": 10, "tid": 0, "args": {"name": "python"}},
    {"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#1", "pid": 10, "tid": 10, "ts": 0, "dur": 50},
    {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 10, "tid": 10, "ts": 1, "dur": 20,
     "args": {"External id": 1, "Input Dims": [[2, 3], [3, 4]], "Sequence number": 4, "Ev Idx": 5}},
    {"ph": "X", "cat": "cpu_op", "name": "aten::<b>&co", "pid": 10, "tid": 10, "ts": 30, "dur": 5,
     "args": {"External id": 2}},
    {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 10, "tid": 10, "ts": 5, "dur": 4,
     "args": {"External id": 1, "correlation": 7}},
    {"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": 12, "dur": 18,
     "args": {"External id": 1, "correlation": 7, "device": 0, "stream": 7, "grid": [4, 1, 1], "block": [128, 1, 1]}},
    {"ph": "i", "cat": "cpu_instant_event", "name": "[memory]", "pid": 10, "tid": 10, "ts": 3, "s": "t",
     "args": {"Device Type": 0, "Device Id": -1, "Addr": 4096, "Bytes": 512, "Total Allocated": 512,
              "Total Reserved": 1024}},
    {"ph": "C", "name": "GPU 0 power", "pid": 0, "ts": 4, "args": {"W": 2.5}},
]
