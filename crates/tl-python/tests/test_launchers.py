"""Rank and world size from the variables of launchers."""

from __future__ import annotations

import pytest
import turboloader as tl
from turboloader import _ranks

PAIRS = {
    "torchrun": ("RANK", "WORLD_SIZE"),
    "Horovod": ("HOROVOD_RANK", "HOROVOD_SIZE"),
    "Open MPI": ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    "MPICH": ("PMI_RANK", "PMI_SIZE"),
    "Slurm": ("SLURM_PROCID", "SLURM_NTASKS"),
}

# The variables that the launcher of DeepSpeed sets for each process (deepspeed/launcher/launch.py).
DEEPSPEED = {
    "MASTER_ADDR": "127.0.0.1",
    "MASTER_PORT": "29500",
    "WORLD_SIZE": "4",
    "CROSS_RANK": "0",
    "CROSS_SIZE": "1",
    "LOCAL_SIZE": "4",
    "RANK": "2",
    "LOCAL_RANK": "2",
}


@pytest.fixture(autouse=True)
def alone(monkeypatch):
    """No variable is set, and torch.distributed is not there."""
    for name in [name for pair in PAIRS.values() for name in pair] + list(DEEPSPEED):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(_ranks, "initialized", lambda: None)


def ranks(data, monkeypatch, **variables: str) -> str:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with tl.DataLoader(data, 4, image_size=4, ranks="auto") as loader:
        text = loader.explain()
    return text[text.index("rank ") :].split(",")[0].split("\n")[0]


@pytest.mark.parametrize("launcher", PAIRS)
def test_each_launcher_is_known(data, monkeypatch, launcher):
    rank, world = PAIRS[launcher]
    assert ranks(data, monkeypatch, **{rank: "1", world: "3"}).startswith("rank 1 of 3")


def test_the_variables_of_deepspeed_are_known(data, monkeypatch):
    assert ranks(data, monkeypatch, **DEEPSPEED).startswith("rank 2 of 4")


def test_a_rank_of_a_launcher_gets_its_part(data, monkeypatch):
    monkeypatch.setenv("HOROVOD_SIZE", "2")
    seen = []
    for rank in range(2):
        monkeypatch.setenv("HOROVOD_RANK", str(rank))
        loader = tl.DataLoader(data, 10, image_size=4, ranks="auto")
        seen += [index for batch in loader for index in batch["index"].tolist()]
    assert sorted(seen) == list(range(100))


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        # Agreement.
        ({"PMI_RANK": "1", "PMI_SIZE": "2", "RANK": "1", "WORLD_SIZE": "2"}, "rank 1 of 2"),
        # MPI starts one torchrun on each of two nodes, and each of these four processes.
        (
            {
                "RANK": "5",
                "WORLD_SIZE": "8",
                "OMPI_COMM_WORLD_RANK": "1",
                "OMPI_COMM_WORLD_SIZE": "2",
            },
            "rank 5 of 8",
        ),
        # The shell of an allocation of eight tasks, where a launcher starts four processes.
        (
            {"RANK": "3", "WORLD_SIZE": "4", "SLURM_PROCID": "0", "SLURM_NTASKS": "8"},
            "rank 3 of 4",
        ),
        # One variable of a pair is none.
        ({"RANK": "3", "SLURM_PROCID": "1", "SLURM_NTASKS": "2"}, "rank 1 of 2"),
    ],
)
def test_the_inner_launcher_counts(data, monkeypatch, variables, expected):
    assert ranks(data, monkeypatch, **variables).startswith(expected)


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        (
            {"RANK": "1", "WORLD_SIZE": "2", "HOROVOD_RANK": "0", "HOROVOD_SIZE": "2"},
            "conflicting variables: RANK is 1 and WORLD_SIZE is 2, but HOROVOD_RANK is 0 and "
            "HOROVOD_SIZE is 2",
        ),
        (
            {
                "HOROVOD_RANK": "1",
                "HOROVOD_SIZE": "2",
                "OMPI_COMM_WORLD_RANK": "1",
                "OMPI_COMM_WORLD_SIZE": "4",
            },
            "HOROVOD_SIZE is 2, but OMPI_COMM_WORLD_RANK is 1 and OMPI_COMM_WORLD_SIZE is 4",
        ),
        ({"PMI_RANK": "one", "PMI_SIZE": "2"}, "PMI_RANK is 'one', expected a whole number"),
        ({"SLURM_PROCID": "2", "SLURM_NTASKS": "2"}, "SLURM_PROCID is 2, expected less than"),
        ({}, "nor are RANK and WORLD_SIZE set, or those of Horovod, MPI or Slurm"),
    ],
)
def test_variables_that_contradict_are_named(data, monkeypatch, variables, message):
    with pytest.raises(tl.SettingError, match=message):
        ranks(data, monkeypatch, **variables)
    # Nobody asked for ranks, so nobody is refused.
    assert len(tl.DataLoader(data, 10, image_size=4)) == 10
    if variables:
        list(tl.DataLoader(data, 10, image_size=4, ranks=tl.Ranks(0, 1)))
