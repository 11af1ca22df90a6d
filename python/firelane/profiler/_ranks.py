"""Which rank of how many this process is: what torch.distributed knows, and what launchers put into the environment.

`firelane ranks` joins the traces of a job by it: rank, world size, place on the host, process groups with their
members, and how many collectives each group had begun when the recording began.
"""

from __future__ import annotations

import json
import os
import re
import sys
from typing import Any

# For each launcher: rank, world size, rank on this host, ranks on this host. Slurm's are those of a step that srun
# started: the batch script itself is no rank.
_LAUNCHERS = {
    "torchrun": ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"),
    "Open MPI": (
        "OMPI_COMM_WORLD_RANK",
        "OMPI_COMM_WORLD_SIZE",
        "OMPI_COMM_WORLD_LOCAL_RANK",
        "OMPI_COMM_WORLD_LOCAL_SIZE",
    ),
    "MVAPICH2": (
        "MV2_COMM_WORLD_RANK",
        "MV2_COMM_WORLD_SIZE",
        "MV2_COMM_WORLD_LOCAL_RANK",
        "MV2_COMM_WORLD_LOCAL_SIZE",
    ),
    "MPICH": ("PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"),
    "Slurm": ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", "SLURM_STEP_TASKS_PER_NODE"),
}


def launch() -> dict[str, Any]:
    """The first launcher whose rank and world size are both set; {} when this is no rank of several."""
    for launcher, names in _LAUNCHERS.items():
        numbers = [_number(os.environ.get(name, "")) for name in names]
        rank, world_size, local_rank, local_world_size = numbers
        if rank is None or world_size is None or rank >= world_size:
            continue
        found = {
            "launcher": launcher,
            "rank": rank,
            "world_size": world_size,
            "local_rank": local_rank,
            "local_world_size": local_world_size,
        }
        return {name: value for name, value in found.items() if value is not None}
    return {}


def rank() -> int | None:
    """Of this process; None when it is not one of several, or nobody says which."""
    dist = _initialized()
    if dist is not None:
        own: int = dist.get_rank()
        return own
    if (own_rank := _number(os.environ.get("RANK", ""))) is not None:
        return own_rank  # also of a job of one, as torchrun's users expect
    found = launch()
    return found["rank"] if found.get("world_size", 0) > 1 else None


def metadata() -> dict[str, str]:
    """What the trace says about it, as JSON texts; read when a recording starts. Never raises."""
    found: dict[str, str] = {}
    if launched := launch():
        found["launch"] = json.dumps(launched)
    dist = _initialized()
    if dist is None:
        return found
    try:
        found["distributedInfo"] = json.dumps(distributed_info(dist), default=str)
        if sequences := _sequences(dist):
            found["group_sequences"] = json.dumps(sequences)
    except Exception:
        pass  # another version of torch keeps it elsewhere
    return found


def distributed_info(dist: Any) -> dict[str, Any]:
    """In torch.profiler's form. REQUIRES: torch.distributed is initialized."""
    backend = dist.get_backend()
    info = {
        "backend": backend,
        "rank": dist.get_rank(),
        "world_size": dist.get_world_size(),
        "pg_count": dist.get_pg_count(),
        "pg_config": dist.distributed_c10d._get_all_pg_configs(),
    }
    if backend == "nccl":
        import torch

        info["nccl_version"] = ".".join(map(str, torch.cuda.nccl.version()))
    return info


def _sequences(dist: Any) -> dict[str, int]:
    """Collectives that each process group has begun; a backend that does not count them is left out."""
    found = {}
    for group, name in dist.distributed_c10d._world.pg_names.items():
        try:
            found[str(name)] = int(group._get_sequence_number_for_group())
        except Exception:
            continue
    return found


def _number(text: str) -> int | None:
    """4; also of Slurm's 4(x2), four on each of two hosts."""
    match = re.fullmatch(r"(\d{1,9})(\(x\d+\))?", text)
    return int(match[1]) if match else None


def _initialized() -> Any:
    """torch.distributed, where the program has initialized it; it is not imported for that."""
    dist = sys.modules.get("torch.distributed")
    if dist is None or not dist.is_available() or not dist.is_initialized():
        return None
    return dist
