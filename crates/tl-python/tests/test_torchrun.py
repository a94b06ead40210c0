from __future__ import annotations

import json
import os
import pathlib
import signal
import subprocess
import sys

import pytest
import turboloader as tl

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
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    command += ["--nproc_per_node", str(world), str(EXAMPLE), *archives]
    command += ["--folder", str(folder)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
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
        # The launcher puts each rank into a session of its own.
        ranks = children(process.pid)
        for victim in [process.pid, *ranks]:
            os.kill(victim, signal.SIGKILL)
        process.stdout.read()
    assert len(ranks) == world
    assert process.returncode == -signal.SIGKILL
    assert not (folder / "model.pt").exists()


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
