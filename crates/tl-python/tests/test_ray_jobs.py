"""Jobs of Ray over many shards: killed nodes and drivers, damage, and the report of ``tl``."""

from __future__ import annotations

import hashlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import textwrap
import time

import pytest
import turboloader as tl

# Nothing leaves this machine: no statistics, no dashboard. Tasks do not wait for other programs.
os.environ.update(
    RAY_USAGE_STATS_ENABLED="0",
    RAY_enable_metrics_collection="0",
    RAY_AUTH_MODE="disabled",
    RAY_worker_niceness="0",
)
ray = pytest.importorskip("ray")
pytest.importorskip("ray.data")
import turboloader.ray as tlr  # noqa: E402

pytestmark = [pytest.mark.ray, pytest.mark.filterwarnings("ignore")]

NODE = {"num_cpus": 1, "object_store_memory": 100 << 20, "node_ip_address": "127.0.0.1"}

# What Ray itself does on other systems: its servers listen on the loopback interface alone. With
# an address of 127.0.0.1 it would look for another one here.
LOOPBACK = "from ray._private import ray_constants; ray_constants.ENABLE_RAY_CLUSTER = False"

# A cluster of some nodes, the last of which is killed after so many shards.
JOB = """
    import json, sys
    import ray
    exec(sys.argv.pop(1))
    from ray.cluster_utils import Cluster
    import turboloader.ray

    node = json.loads(sys.argv.pop(1))
    nodes, kill_after = int(sys.argv.pop(1)), int(sys.argv.pop(1))
    folder, report, *shards = sys.argv[1:]
    cluster = Cluster(initialize_head=True, head_node_args={**node, "include_dashboard": False})
    others = [cluster.add_node(**node) for _ in range(nodes - 1)]
    ray.init(address=cluster.address, log_to_driver=False, _node_ip_address="127.0.0.1")

    def said(progress):
        print("done", progress.done, progress.skipped, progress.record["output"], flush=True)
        if progress.done == kill_after:
            cluster.remove_node(others.pop(), allow_graceful=False)

    turboloader.ray.convert(shards, folder, report=report, progress_callback=said)
    print("end", len(others), flush=True)
    ray.shutdown()
    cluster.shutdown()
"""


@pytest.fixture(scope="module")
def cluster():
    exec(LOOPBACK)
    ray.init(
        num_cpus=2,
        include_dashboard=False,
        _node_ip_address="127.0.0.1",
        object_store_memory=200 << 20,
        log_to_driver=False,
    )
    yield
    ray.shutdown()


@pytest.fixture
def shards(photos, tmp_path):
    """Archives, TBL and Parquet files of the photographs, large enough to be killed in between."""
    folder = tmp_path / "shards"
    folder.mkdir()
    kinds = ["tar", "tbl", "parquet"] * 4
    paths = [folder / f"train-{number:02d}.{kind}" for number, kind in enumerate(kinds)]
    for path in paths[:3]:
        tl.convert([photos] * 12, path, sync=False)
    for number, path in enumerate(paths[3:]):
        shutil.copy(paths[number % 3], path)
    return paths


def digests(folder):
    files = [path for path in folder.iterdir() if path.is_file()]
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def by_tl(shards, folder):
    """Convert on threads; return the files and the report, and leave neither."""
    report = folder.parent / "tl.jsonl"
    command = [sys.executable, "-m", "turboloader", "convert", "--each", "--quiet", *shards]
    subprocess.run([*command, "-o", folder, "--report", report], check=True)
    made = digests(folder), report.read_bytes()
    shutil.rmtree(folder)
    return made


def job(shards, folder, *, nodes=1, kill_after=-1):
    settings = [LOOPBACK, json.dumps(NODE), nodes, kill_after, folder, folder.parent / "job.jsonl"]
    command = [sys.executable, "-c", textwrap.dedent(JOB), *settings, *shards]
    return subprocess.Popen(
        list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )


def said_by(process):
    """Return what a job has printed; Ray tells of lost nodes in between."""
    lines = process.stdout.read().splitlines()
    return [line for line in lines if line.startswith(("done ", "end "))]


def test_a_lost_node_changes_nothing(shards, tmp_path):
    folder = tmp_path / "out"
    expected = by_tl(shards, folder)
    with job(shards, folder, nodes=3, kill_after=3) as process:
        printed = said_by(process)
    assert process.returncode == 0
    assert printed[-1] == "end 1"
    assert (digests(folder), (tmp_path / "job.jsonl").read_bytes()) == expected
    assert not list(folder.glob(".*"))


def test_a_killed_driver_is_started_again(shards, tmp_path):
    folder = tmp_path / "out"
    files, report = by_tl(shards, folder)
    with job(shards, folder) as process:
        first = process.stdout.readline()
        process.send_signal(signal.SIGKILL)
        process.stdout.read()
    assert first.startswith("done 1 0 ")
    left = digests(folder)
    # What has its name is complete.
    assert left.items() <= files.items()
    assert 1 <= len(left) < len(files)
    assert not (tmp_path / "job.jsonl").exists()
    recorded = len(list((folder / "_records").iterdir()))
    with job(shards, folder) as process:
        printed = said_by(process)
    assert process.returncode == 0
    assert printed[-1] == "end 0"
    assert int(printed[-2].split()[2]) >= recorded
    assert (digests(folder), (tmp_path / "job.jsonl").read_bytes()) == (files, report)


def test_shards_that_are_not_good_do_not_end_a_job(shards, tmp_path, cluster):
    shards[1].write_bytes(shards[1].read_bytes()[:-1000])
    states = []
    report = tmp_path / "report.jsonl"
    settings = {"report": report, "progress_callback": states.append, "concurrency": 3}
    with pytest.raises(tl.FormatError, match=r"1 of 4 shards are damaged, 0 failed, .*01\.tbl"):
        tlr.convert(shards[:4], tmp_path / "out", to="tar", compression=None, **settings)
    assert [state.done for state in states] == [1, 2, 3, 4]
    assert (states[-1].not_good, states[-1].samples) == (1, 3 * 144)
    lines = [json.loads(line) for line in report.read_text().splitlines()]
    assert [line.get("status") for line in lines] == ["good", "damaged", "good", "good", None]
    assert sorted(digests(tmp_path / "out")) == ["train-00.tar", "train-02.tar", "train-03.tar"]
    found = tlr.verify(shards[:4], records=tmp_path / "records", report=report)
    assert [found[name] for name in ("good", "damaged", "failed")] == [3, 1, 0]
    with pytest.raises(tl.StorageError, match=r"1 of 2 shards are damaged, 1 failed"):
        tlr.verify([shards[1], tmp_path / "missing.tar"])
    for settings, message in (
        ({"to": "mp3"}, "to is mp3"),
        ({"to": "tar", "compression": "lz4"}, 'are for to="tbl"'),
        ({"compression": "lz5"}, "compression is `lz5`"),
        ({"concurrency": 0}, "concurrency"),
    ):
        with pytest.raises(tl.SettingError, match=message):
            tlr.convert(shards, tmp_path / "out", **settings)


def test_statistics_are_those_of_tl_and_of_the_data_set(photos, tmp_path, cluster):
    report = tmp_path / "report.jsonl"
    shards = [tmp_path / f"a.{kind}" for kind in ("tar", "tbl", "parquet")]
    for path in shards:
        tl.convert(photos, path, sync=False)
    totals = tlr.stats(shards, report=report)
    by_tl = tmp_path / "tl.jsonl"
    command = [sys.executable, "-m", "turboloader", "stats", "--quiet", *shards]
    subprocess.run([*command, "--report", by_tl], check=True, stdout=subprocess.DEVNULL)
    assert report.read_bytes() == by_tl.read_bytes()
    mean, std = tl.open(shards).mean_std()
    assert (totals["mean"], totals["std"]) == (list(mean), list(std))
    assert sum(totals["statistics"]["classes"].values()) == totals["samples"] == 36


def test_a_task_whose_worker_dies_is_a_failed_shard(shards, tmp_path, cluster, monkeypatch):
    def die(task, places, store):
        from turboloader import _shards

        if places[0].endswith("01.tbl"):
            os._exit(1)
        return _shards.run_shard(task, places, store)

    monkeypatch.setattr(tlr, "run_shard", die)
    retries = {"ray_remote_args": {"max_retries": 0}}
    reason = r"0 of 3 shards are damaged, 1 failed, .*01\.tbl: the task of Ray ended by [A-Za-z]+$"
    with pytest.raises(tl.StorageError, match=reason):
        tlr.verify(shards[:3], report=tmp_path / "report.jsonl", **retries)
    lines = (tmp_path / "report.jsonl").read_text().splitlines()
    statuses = [json.loads(line).get("status") for line in lines]
    assert statuses == ["good", "failed", "good", None]
    monkeypatch.undo()
    records = tmp_path / "records"
    assert tlr.verify(shards[:3], records=records)["good"] == 3
    assert len(list(pathlib.Path(records).iterdir())) == 3


def test_a_job_that_raises_leaves_no_task_running(shards, tmp_path, cluster):
    class StopError(Exception):
        pass

    def stop(progress):
        raise StopError

    with pytest.raises(StopError):
        tlr.convert(shards, tmp_path / "out", progress_callback=stop, concurrency=4)
    made = digests(tmp_path / "out")
    assert len(made) == 4
    assert len(list((tmp_path / "out" / "_records").iterdir())) == 4
    time.sleep(1)
    assert digests(tmp_path / "out") == made


def test_errors_of_tasks_have_one_text_or_end_the_job(shards, tmp_path, cluster, monkeypatch):
    def wrong(task, places, store):
        raise ValueError(f"process {os.getpid()}")

    monkeypatch.setattr(tlr, "run_shard", wrong)
    with pytest.raises(tl.StorageError, match=r"00\.tar: the task of Ray raised ValueError$"):
        tlr.verify(shards[:2])

    def setting(task, places, store):
        raise tl.SettingError("no such store")

    monkeypatch.setattr(tlr, "run_shard", setting)
    with pytest.raises(tl.SettingError, match="no such store"):
        tlr.verify(shards[:2])


def test_a_job_replaces_neither_shards_nor_files_of_others(shards, tmp_path, cluster):
    with pytest.raises(tl.SettingError, match="is one of the shards"):
        tlr.convert(shards[:2], shards[0].parent)
    out = tmp_path / "out"
    out.mkdir()
    (out / "train-00.tbl").write_bytes(b"of somebody")
    with pytest.raises(tl.StorageError, match="no record says"):
        tlr.convert(shards[:2], out)
    assert (out / "train-00.tbl").read_bytes() == b"of somebody"
    assert tlr.convert(shards[:2], out, overwrite=True)["good"] == 2
