"""Each test runs the same program under torch.profiler and under firelane.profiler, in one process."""

import pytest

try:
    import torch

    import firelane.profiler
except ImportError as error:
    print(f"tests/python/parity is skipped: {error}")
    collect_ignore_glob = ["test_*.py"]


def _record(profile, run, flags, config):
    more = {"experimental_config": torch._C._profiler._ExperimentalConfig(**config)} if config else {}
    with profile(activities=[torch.profiler.ProfilerActivity.CPU], **flags, **more) as prof:
        run()
    return prof


@pytest.fixture
def both(no_collections):
    """both(run, config={...of _ExperimentalConfig}, **flags of profile()) -> (torch's, firelane's)."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # torch.profiler does not see the ops of other threads
    profiles = torch.profiler.profile, firelane.profiler.profile
    yield lambda run, config=None, **flags: tuple(_record(profile, run, flags, config) for profile in profiles)
    torch.set_num_threads(threads)
