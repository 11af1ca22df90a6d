"""Which rank a process is, by the environment variables of launchers."""

import pytest

from firelane.profiler import _ranks

NAMES = sorted({name for names in _ranks._LAUNCHERS.values() for name in names})


@pytest.fixture(autouse=True)
def no_launcher(monkeypatch):
    for name in NAMES:
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(
    "launcher, environment",
    [
        ("torchrun", {"RANK": "5", "WORLD_SIZE": "8", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "4"}),
        (
            "Open MPI",
            {
                "OMPI_COMM_WORLD_RANK": "5",
                "OMPI_COMM_WORLD_SIZE": "8",
                "OMPI_COMM_WORLD_LOCAL_RANK": "1",
                "OMPI_COMM_WORLD_LOCAL_SIZE": "4",
            },
        ),
        ("MPICH", {"PMI_RANK": "5", "PMI_SIZE": "8", "MPI_LOCALRANKID": "1", "MPI_LOCALNRANKS": "4"}),
        (
            "Slurm",
            {
                "SLURM_PROCID": "5",
                "SLURM_STEP_NUM_TASKS": "8",
                "SLURM_LOCALID": "1",
                "SLURM_STEP_TASKS_PER_NODE": "4(x2)",
            },
        ),
    ],
)
def test_every_launcher_says_which_rank_it_is(monkeypatch, launcher, environment):
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert _ranks.launch() == {
        "launcher": launcher,
        "rank": 5,
        "world_size": 8,
        "local_rank": 1,
        "local_world_size": 4,
    }
    assert _ranks.rank() == 5


def test_a_program_of_its_own_is_no_rank(monkeypatch):
    assert _ranks.launch() == {} and _ranks.rank() is None
    # A batch script of Slurm is no task of a step, and one process of mpirun is no job.
    monkeypatch.setenv("SLURM_PROCID", "0")
    monkeypatch.setenv("SLURM_NTASKS", "8")
    assert _ranks.rank() is None
    monkeypatch.setenv("OMPI_COMM_WORLD_RANK", "0")
    monkeypatch.setenv("OMPI_COMM_WORLD_SIZE", "1")
    assert _ranks.rank() is None


def test_a_rank_beyond_the_world_or_no_number_is_not_believed(monkeypatch):
    monkeypatch.setenv("PMI_RANK", "9")
    monkeypatch.setenv("PMI_SIZE", "8")
    assert _ranks.launch() == {}
    monkeypatch.setenv("PMI_RANK", "-1")
    assert _ranks.launch() == {} and _ranks.rank() is None
