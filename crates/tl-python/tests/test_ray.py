from __future__ import annotations

import io
import os
import pathlib
import subprocess
import sys
import tarfile
import types

import numpy as np
import pytest
import turboloader as tl
from conftest import bmp, image, run_examples, write
from loopback import DUMMY, SECRET, served
from turboloader import transforms as T  # noqa: N812

# Nothing leaves this machine: no statistics, no dashboard. Tasks do not wait for other programs.
os.environ.update(
    RAY_USAGE_STATS_ENABLED="0", RAY_enable_metrics_collection="0", RAY_worker_niceness="0"
)
ray = pytest.importorskip("ray")
pytest.importorskip("ray.data")
pa = pytest.importorskip("pyarrow")
import turboloader.ray as tlr  # noqa: E402

pytestmark = [pytest.mark.ray, pytest.mark.filterwarnings("ignore")]

CLUSTER = {
    "num_cpus": 2,
    "include_dashboard": False,
    "_node_ip_address": "127.0.0.1",
    "object_store_memory": 200 << 20,
    "log_to_driver": False,
}


# What Ray itself does on other systems: its servers listen on the loopback interface alone. With
# an address of 127.0.0.1 it would look for another one here.
LOOPBACK = "from ray._private import ray_constants; ray_constants.ENABLE_RAY_CLUSTER = False"


@pytest.fixture(scope="module", autouse=True)
def cluster():
    exec(LOOPBACK)
    ray.init(**CLUSTER)
    assert ray.util.get_node_ip_address() == "127.0.0.1"
    ray.data.DataContext.get_current().execution_options.preserve_order = True
    yield
    ray.shutdown()


@pytest.fixture(scope="module")
def more(tmp_path_factory):
    """Five images of another size, beside the hundred."""
    return write(tmp_path_factory.mktemp("more") / "more.tbl", 5, height=9)


def test_rows_are_the_samples_in_order(data, more):
    rows = tlr.read_tbl([data, more], override_num_blocks=7).take_all()
    readers = [tl.TblReader(data), tl.TblReader(more)]
    expected = [
        {"key": f"{index:05d}.bmp", "label": index % 7, "bytes": reader[index]}
        for reader in readers
        for index in range(len(reader))
    ]
    assert rows == expected


def test_tasks_are_ranges_of_samples(data, more):
    source = tlr.TblDatasource([data, more])
    tasks = source.get_read_tasks(4)
    assert [task.metadata.num_rows for task in tasks] == [26, 26, 26, 27]
    assert [len(task.metadata.input_files) for task in tasks] == [1, 1, 1, 2]
    sizes = [task.metadata.size_bytes for task in tasks]
    assert sum(sizes) == source.estimate_inmemory_data_size()
    assert sum(sizes) == sum(len(sample) for path in (data, more) for sample in tl.TblReader(path))
    assert len(source.get_read_tasks(1000)) == 105
    blocks = [block for task in tasks for block in task()]
    assert [block.num_rows for block in blocks] == [26, 26, 26, 22, 5]


def test_a_pattern_and_an_index_stand_for_their_files(data, archives):
    folder = archives[0].parent
    listed = folder / "train.tlidx"
    command = [sys.executable, "-m", "turboloader", "index", "--quiet", *archives, "-o", listed]
    subprocess.run(command, check=True)
    expected = tlr.read_tbl([str(path) for path in archives]).take_all()
    assert len(expected) == 600
    for paths in (folder / "train-*.tar", listed):
        assert tlr.read_tbl(paths, override_num_blocks=7).take_all() == expected
    mixed = tlr.read_tbl([data, listed], override_num_blocks=7).take_all()
    assert mixed == tlr.read_tbl(data).take_all() + expected


def test_options_of_stores_stay_in_their_process(data, archives, tmp_path):
    options = {"store": {"secret_access_key": "planted-secret"}}
    for call in (
        lambda: tlr.read_tbl(data, **options),
        lambda: tlr.TblDatasource(data, **options),
        lambda: tlr.TblDatasink(tmp_path / "out", **options),
        lambda: tlr.convert(archives, tmp_path / "out", **options),
        lambda: tlr.verify(archives, **options),
        lambda: tlr.stats(archives, **options),
    ):
        with pytest.raises(tl.SettingError, match="set environment variables") as caught:
            call()
        assert "planted-secret" not in str(caught.value)
    assert tlr.read_tbl(data, store=tl.Store(hedge=False, connections=2)).count() == 100
    with pytest.raises(tl.SettingError, match="objects are not removed"):
        tlr.TblDatasink("s3://bucket/out", overwrite=True)


def test_images_are_those_of_the_loader(data):
    random = [T.RandomResizedCrop(5), T.ToTensor()]
    loader = tl.DataLoader(data, 10, shuffle=True, transform=random, seed=9)
    loader.set_epoch(2)
    expected = {
        int(index): pixels
        for batch in loader
        for index, pixels in zip(batch["index"].numpy(), batch["image"].numpy(), strict=True)
    }
    read = tlr.read_tbl(data, transform=random, seed=9, epoch=2, override_num_blocks=3)
    rows = read.take_all()
    assert len(rows) == 100
    for index, row in enumerate(rows):
        np.testing.assert_array_equal(row["image"], expected[index])
    batch = next(iter(read.iter_batches(batch_size=4)))
    assert batch["image"].shape == (4, 3, 5, 5)


def test_rows_are_not_mixed(data):
    recipe = T.recipe([T.Resize((4, 4)), T.ToTensor()], batch_transform=T.MixUp(num_classes=7))
    with pytest.raises(tl.SettingError, match="mixes batches"):
        tlr.read_tbl(data, transform=recipe)


def test_images_keep_their_sizes(data, more):
    rows = tlr.read_tbl([data, more], decode=True, override_num_blocks=1).take_all()
    assert [row["image"].shape for row in rows] == [(6, 10, 3)] * 100 + [(9, 10, 3)] * 5
    np.testing.assert_array_equal(rows[42]["image"], image(42))


def test_files_come_back_as_they_were(data, tmp_path):
    folder = tmp_path / "out"
    tlr.write_tbl(tlr.read_tbl(data, override_num_blocks=3), folder, class_names=list("abcdefg"))
    files = sorted(folder.iterdir())
    assert all(tl.verify(path)["is_good"] for path in files)
    assert {path.name for path in files} <= {f"part-{task:05d}.tbl" for task in range(100)}
    readers = [tl.TblReader(path) for path in files]
    copied = {
        reader.entry(index)["key"]: (reader.entry(index)["label"], reader[index])
        for reader in readers
        for index in range(len(reader))
    }
    original = tl.TblReader(data)
    assert copied == {
        original.entry(index)["key"]: (index % 7, original[index]) for index in range(100)
    }
    assert readers[0].class_names == list("abcdefg")
    with pytest.raises(tl.SettingError, match="is not empty"):
        tlr.write_tbl(tlr.read_tbl(data), folder)
    assert sorted(folder.iterdir()) == files
    tlr.write_tbl(tlr.read_tbl(data, override_num_blocks=1), folder, overwrite=True)
    assert sum(len(tl.TblReader(path)) for path in folder.iterdir()) == 100


def test_a_folder_is_emptied_of_what_was_killed_or_left_as_it_was(tmp_path):
    names = [".part-00001.tbl.Xy12ab.partial", "part-00000.tbl"]
    for name in names:
        (tmp_path / name).touch()
    sink = tlr.TblDatasink(tmp_path)
    # As when an earlier write with this sink was well.
    sink._has_begun = True
    with pytest.raises(tl.SettingError, match="is not empty") as refused:
        sink.on_write_start()
    sink.on_write_failed(refused.value)
    assert sorted(path.name for path in tmp_path.iterdir()) == names
    tlr.TblDatasink(tmp_path, overwrite=True).on_write_start()
    assert not any(tmp_path.iterdir())


def test_names_that_are_no_text_are_readable(tmp_path):
    path = tmp_path / "a.tar"
    with tarfile.open(path, "w") as tar:
        for name in (b"caf\xe9.bmp", "caf\u00e9.bmp".encode()):
            member = tarfile.TarInfo(os.fsdecode(name))
            member.size = len(bmp(image(0)))
            tar.addfile(member, io.BytesIO(bmp(image(0))))
    keys = [row["key"] for row in tlr.read_tbl(path).take_all()]
    assert keys == [r"caf\xe9.bmp", "caf\u00e9.bmp"]


def test_a_data_set_without_rows_makes_the_folder(tmp_path):
    tlr.write_tbl(tlr.read_tbl(write(tmp_path / "empty.tbl", 0)), tmp_path / "none")
    assert (tmp_path / "none").is_dir()


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("label", "cat", "column label has type str in row 2, expected a whole number"),
        ("label", 1.5, "column label has type float in row 2"),
        ("key", 7, "column key has type int in row 2, expected a name"),
    ],
)
def test_what_is_no_name_or_label_is_named(tmp_path, column, value, message):
    sink = tlr.TblDatasink(tmp_path)
    rows = {"bytes": [b"a", b"b"], "key": ["a", "b"], "label": [0, 1]}
    wrong = {"bytes": [b"c"], "key": ["c"], "label": [2], column: [value]}
    with pytest.raises(tl.SampleError, match=message):
        sink.write([pa.table(rows), pa.table(wrong)], types.SimpleNamespace(task_idx=0))
    assert not any(tmp_path.iterdir())


def test_a_failed_write_leaves_nothing(data, tmp_path):
    def spoil(row):
        return {"bytes": 3 if row["key"] == "00077.bmp" else row["bytes"]}

    folder = tmp_path / "out"
    one_spoilt = tlr.read_tbl(data, override_num_blocks=4).map(spoil)
    with pytest.raises(Exception, match=r"column bytes has type int"):
        tlr.write_tbl(one_spoilt, folder)
    assert list(folder.iterdir()) == []
    with pytest.raises(Exception, match="no column pixels: the blocks have key, label"):
        tlr.write_tbl(tlr.read_tbl(data), folder, column="pixels")
    assert list(folder.iterdir()) == []


def test_objects_are_the_files(tmp_path, monkeypatch):
    blocks = [pa.table({"bytes": [b"a", b"bc"], "key": ["a", "b"], "label": [0, 1]})]
    task = types.SimpleNamespace(task_idx=7)

    def write_to(folder):
        sink = tlr.TblDatasink(folder, class_names=["x", "y"])
        sink.on_write_start()
        written = sink.write(blocks * 2, task)
        sink.on_write_complete()
        return written

    root = tmp_path / "root"
    (root / "bucket").mkdir(parents=True)
    (root / "bucket" / "out").mkdir()
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", DUMMY["access_key_id"])
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    with served(root) as endpoint:
        monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)
        assert write_to("s3://bucket/out/") == "s3://bucket/out/part-00007.tbl"
        with pytest.raises(tl.SettingError, match="is not empty: pass another folder"):
            write_to("s3://bucket/out")
    local = pathlib.Path(write_to(tmp_path / "local"))
    assert (root / "bucket" / "out" / local.name).read_bytes() == local.read_bytes()


@pytest.fixture
def archives(data, tmp_path):
    """Six archives of a hundred images."""
    paths = [tmp_path / "tars" / f"train-{number}.tar" for number in range(6)]
    paths[0].parent.mkdir()
    for path in paths:
        tl.convert(data, path, sync=False)
    return paths


def test_the_examples_in_docstrings_run(photos, tmp_path, monkeypatch):
    for number in range(2):
        for kind in ("tar", "tbl"):
            tl.convert(photos, tmp_path / f"train-{number:03d}.{kind}", sync=False)
    monkeypatch.chdir(tmp_path)
    run_examples(tlr)


@pytest.mark.parametrize(
    ("call", "name", "advice"),
    [
        (tlr.read_tbl, "parallelism", "pass override_num_blocks"),
        (tlr.read_tbl, "storage_options", "set environment variables, such as by ray.init("),
        (tlr.read_tbl, "imagesize", "did you mean image_size?"),
        (tlr.write_tbl, "mode", "pass overwrite=True"),
        (tlr.write_tbl, "class_name", "did you mean class_names?"),
        (tlr.convert, "progress", "did you mean progress_callback?"),
    ],
)
def test_names_that_are_nearly_right_are_explained(call, name, advice, tmp_path):
    known = {} if call is tlr.read_tbl else {"folder": tmp_path / "never"}
    with pytest.raises(TypeError, match=f"unexpected keyword argument '{name}'") as caught:
        call("missing", **known, **{name: 1})
    assert f": {advice}" in str(caught.value)
    assert not (tmp_path / "never").exists()
