"""Ranks divide a data set once: neither twice nor not at all without a word."""

from __future__ import annotations

import pickle
import socket
import sys
import warnings

import pytest
import turboloader as tl

torch = pytest.importorskip("torch")
from turboloader.torch import IterableDataset  # noqa: E402

pytestmark = pytest.mark.torch


@pytest.fixture
def second_of_two(monkeypatch):
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")


SIZED = {"image_size": (6, 10)}


def indices(batches) -> list[int]:
    return [index for batch in batches for index in batch["index"].numpy().tolist()]


def test_a_loader_of_the_whole_data_set_warns_once_in_each_of_several_ranks(data, second_of_two):
    loader = tl.DataLoader(data, 10, **SIZED)
    with pytest.warns(UserWarning, match="rank 1 of 2 loads the whole data set.*ranks='auto'"):
        assert indices(loader) == list(range(100))
    assert indices(loader) == list(range(100))
    pickled = pickle.loads(pickle.dumps(tl.DataLoader(data, 10, **SIZED)))
    with pytest.warns(UserWarning, match="rank 1 of 2"):
        next(iter(pickled))
    dataset = IterableDataset(data, 10, **SIZED)
    with pytest.warns(UserWarning, match="rank 1 of 2"):
        assert len(list(dataset)) == 10


def test_a_part_that_was_chosen_does_not_warn(data, second_of_two):
    for settings, expected in (
        ({"ranks": "auto"}, 50),
        ({"ranks": tl.Ranks(0, 1)}, 100),
        ({"worker_id": 3, "num_workers": 4}, 20),
    ):
        loader = tl.DataLoader(data, 10, **settings, **SIZED)
        assert len(indices(loader)) == expected
        assert len(
            indices(pickle.loads(pickle.dumps(tl.DataLoader(data, 10, **settings, **SIZED))))
        )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        list(IterableDataset(data, 10, ranks="auto", **SIZED))


def test_one_process_does_not_warn(data, monkeypatch):
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", "1")
    assert len(indices(tl.DataLoader(data, 10, **SIZED))) == 100


ACCELERATED = """
import json, sys
import accelerate, torch
from turboloader.torch import IterableDataset

path, workers, form = sys.argv[1], int(sys.argv[2]), sys.argv[3]
accelerator = accelerate.Accelerator(cpu=True)
dataset = IterableDataset(
    path, 10, image_size=(6, 10), fields=("index",), ranks=None if form == "prepared" else "auto"
)
loader = torch.utils.data.DataLoader(dataset, batch_size=None, num_workers=workers)
if form != "divided":
    loader = accelerator.prepare(loader)
try:
    # Of a prepared loader the main process reads all batches and sends the others theirs.
    is_asked = form != "twice" or accelerator.is_main_process
    seen = [int(index) for (indices,) in loader for index in indices] if is_asked else []
except Exception as error:
    seen = str(error)
print(json.dumps(seen), flush=True)
if form != "twice":
    accelerator.wait_for_everyone()
    torch.distributed.destroy_process_group()
"""


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("form", "workers"), [("prepared", 0), ("prepared", 1), ("divided", 0), ("twice", 0)]
)
def test_accelerate_divides_what_is_not_divided_yet(data, tmp_path, run, form, workers):
    pytest.importorskip("accelerate")
    script = tmp_path / "train.py"
    script.write_text(ACCELERATED)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = ["env", "WORLD_SIZE=2", "MASTER_ADDR=127.0.0.1", f"MASTER_PORT={port}"]
    environment += ["GLOO_SOCKET_IFNAME=lo", "OMP_NUM_THREADS=1"]
    command = [sys.executable, "-W", "ignore", str(script), str(data), str(workers), form]
    seen = run([[*environment, f"RANK={rank}", f"LOCAL_RANK={rank}", *command] for rank in (0, 1)])
    if form == "twice":
        assert "divided among ranks twice: Accelerate divides" in seen[0]
        return
    assert sorted(seen[0] + seen[1]) == list(range(100))
    assert len(seen[0]) == len(seen[1]) == 50
