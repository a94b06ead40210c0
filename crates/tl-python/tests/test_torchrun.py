from __future__ import annotations

import json
import os
import pathlib
import signal
import socket
import subprocess
import sys

import pytest
import turboloader as tl
from loopback import DUMMY, FaultyHandler, served

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

EXAMPLE = pathlib.Path(__file__).parents[1] / "examples" / "torchrun_resume.py"


@pytest.fixture(scope="module")
def archives(photos, tmp_path_factory):
    """The photographs in a TBL file, eight times over: 96 samples, 12 steps an epoch."""
    path = tmp_path_factory.mktemp("torchrun") / "photos.tbl"
    assert tl.convert(photos, path, sync=False) == 12
    return [str(path)] * 8


def launch(archives, folder, world):
    return launch_node(world, ["--standalone"], [*archives, "--folder", str(folder)])


def launch_node(processes, rendezvous, arguments, environment=None):
    """Start the processes of one node."""
    command = [sys.executable, "-m", "torch.distributed.run", *rendezvous]
    command += ["--nproc_per_node", str(processes), str(EXAMPLE), *arguments]
    usual = {"OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
    environment = {**os.environ, **usual, **(environment or {})}
    # A group of its own, to be killed whole.
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env=environment, start_new_session=True
    )


def finish(archives, folder, world):
    with launch(archives, folder, world) as process:
        printed = process.stdout.read()
    assert process.returncode == 0, printed
    assert printed.endswith("done\n")


def kill_after(archives, folder, world, steps):
    """Kill all processes of a run once the checkpoint of so many steps is there."""
    with launch(archives, folder, world) as process:
        for line in process.stdout:
            if line == f"checkpoint {steps}\n":
                break
        else:
            pytest.fail(f"the run ended before step {steps}")
        assert kill(process) == world
        process.stdout.read()
    assert process.returncode == -signal.SIGKILL
    assert not (folder / "model.pt").exists()


def kill(process):
    """Kill the processes of a node, and return how many ranks it had."""
    # The launcher puts each rank into a session of its own.
    ranks = children(process.pid)
    for victim in [process.pid, *ranks]:
        os.kill(victim, signal.SIGKILL)
    return len(ranks)


def children(pid):
    return [
        int(child)
        for task in pathlib.Path(f"/proc/{pid}/task").iterdir()
        for child in (task / "children").read_text().split()
    ]


def seen(folder):
    """What ranks were given at each row of each step; what they were given twice is the same."""
    found = {}
    for log in folder.glob("rows-*.jsonl"):
        for line in log.read_text().splitlines(keepends=True):
            if not line.endswith("\n"):
                continue
            epoch, step, row, index, digest = json.loads(line)
            known = found.setdefault((epoch, step, row), (index, digest))
            assert known == (index, digest), f"step {step} has come out differently"
    return found


def test_killed_runs_go_on_with_another_number_of_ranks(archives, tmp_path):
    finish(archives, tmp_path / "whole", 1)
    whole = seen(tmp_path / "whole")
    assert sorted(whole) == [(step // 12, step, row) for step in range(36) for row in range(8)]
    for epoch in range(3):
        indices = [index for (when, _, _), (index, _) in whole.items() if when == epoch]
        assert sorted(indices) == list(range(96))

    broken = tmp_path / "broken"
    kill_after(archives, broken, 2, 6)
    kill_after(archives, broken, 1, 18)
    finish(archives, broken, 2)
    assert len(list(broken.glob("rows-*.jsonl"))) == 5
    assert seen(broken) == whole

    # Sums over ranks round differently; other samples would give other weights altogether.
    ours, theirs = (torch.load(tmp_path / run / "model.pt") for run in ("whole", "broken"))
    for name, weights in ours.items():
        torch.testing.assert_close(theirs[name], weights, rtol=1e-4, atol=1e-6)


@pytest.fixture(scope="module")
def store(photos, tmp_path_factory):
    """Two objects of 96 photographs: 8 steps an epoch."""
    root = tmp_path_factory.mktemp("store")
    (root / "bucket").mkdir()
    for name in ("train-0.tbl", "train-1.tbl"):
        assert tl.convert([photos] * 8, root / "bucket" / name, sync=False) == 96
    with served(root, FaultyHandler) as endpoint:
        keys = {f"AWS_{name.upper()}": value for name, value in DUMMY.items()}
        yield root / "bucket", {**keys, "AWS_ENDPOINT_URL": endpoint, "AWS_ALLOW_HTTP": "true"}


def train_on_nodes(store, folder, world, caches, until=None):
    """Train with half the ranks on each of two nodes, to the end or to the checkpoint of a step."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = ["--master_addr", "127.0.0.1", "--master_port", str(free.getsockname()[1])]
    data = ["s3://bucket/train-0.tbl", "s3://bucket/train-1.tbl", "--folder", str(folder)]
    data += ["--epochs", "2", "--global-batch", "24", "--shuffle", "lanes:24/2x2"]
    nodes = [
        launch_node(
            world // 2,
            ["--nnodes", "2", "--node_rank", str(node), *address],
            # A tenth of the data.
            [*data, "--cache", str(cache), "--cache-size", "1MB"],
            store[1],
        )
        for node, cache in enumerate(caches)
    ]
    printed = []
    for line in nodes[0].stdout:
        printed.append(line)
        if line == f"checkpoint {until}\n":
            assert [kill(node) for node in nodes] == [world // 2] * 2
            break
    for node in nodes:
        node.communicate()
    if until is None:
        assert [node.returncode for node in nodes] == [0, 0], printed
    else:
        assert f"checkpoint {until}\n" in printed
        assert not (folder / "model.pt").exists()


def test_nodes_that_come_and_go_have_the_rows_of_one_process(store, tmp_path):
    whole = tmp_path / "whole"
    paths = [str(store[0] / f"train-{number}.tbl") for number in range(2)]
    settings = ["--folder", str(whole), "--epochs", "2", "--global-batch", "24"]
    settings += ["--shuffle", "lanes:24/2x2"]
    with launch_node(1, ["--standalone"], [*paths, *settings]) as process:
        process.stdout.read()
    expected = seen(whole)
    assert len(expected) == 2 * 192

    # A cache of each node, and then one that both share.
    own = [tmp_path / "cache-0", tmp_path / "cache-1"]
    shared = [tmp_path / "cache-of-both"] * 2
    broken = tmp_path / "broken"
    crews = [int(ranks) for ranks in os.environ.get("TURBOLOADER_CREWS", "4,2,4").split(",")]
    for ranks, until, caches in zip(crews, [3, 9, None], [own, own, shared], strict=True):
        train_on_nodes(store, broken, ranks, caches, until)
    assert len(list(broken.glob("rows-*.jsonl"))) == sum(crews)
    assert seen(broken) == expected
    assert all(any(cache.rglob("claims")) for cache in [*own, *shared])
