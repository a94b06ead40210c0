"""Everything that opens data, on the URLs of a store on this machine."""

from __future__ import annotations

import json
import pathlib
import pickle
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest
import turboloader as tl
from conftest import write
from loopback import DUMMY, SECRET, served
from stored import ring, write_segment, write_table
from turboloader import _native, _paths, _shards, compat
from turboloader.exceptions import LoaderError

PHOTOS = pathlib.Path(__file__).parents[3] / "testdata" / "photos"
ROWS = 100


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[pathlib.Path, str]]:
    root = tmp_path_factory.mktemp("store")
    folder = root / "bucket"
    (folder / "train").mkdir(parents=True)
    for number in range(2):
        tl.convert(PHOTOS, folder / "train" / f"{number}.tar", sync=False)
    write(folder / "train.tbl", 20)
    write_table(folder / "table.idv", ROWS)
    vectors = np.arange(100, dtype=np.float32).reshape(20, 5)
    write_segment(folder / "nodes.tbf", vectors, ring(20), "float32")
    with served(root) as endpoint:
        yield folder, endpoint


@pytest.fixture(autouse=True)
def no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_ENDPOINT_URL"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def options(store: tuple[pathlib.Path, str]) -> dict[str, Any]:
    return {"store": {**DUMMY, "endpoint": store[1]}}


@pytest.fixture
def environment(store: tuple[pathlib.Path, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", DUMMY["access_key_id"])
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    monkeypatch.setenv("AWS_ENDPOINT_URL", store[1])


def test_files_are_read_with_options(store, options, tmp_path) -> None:
    folder, _ = store
    url, local = "s3://bucket/train.tbl", tl.TblReader(folder / "train.tbl")
    reader = tl.TblReader(
        url, store=tl.Store(options["store"], connections=2, deadline=30.0, hedge=False)
    )
    assert [*reader] == [*local]
    assert (reader.entry(3), len(reader)) == (local.entry(3), 20)
    old = compat.TblReaderV2(url, **options)
    assert old.read_sample(3) == local[3]
    found = tl.verify(url, decode=True, workers=1, **options)
    assert found == tl.verify(folder / "train.tbl", decode=True)
    assert (found["samples"], found["is_good"]) == (20, True)
    copy = tmp_path / "copy.tbl"
    assert tl.convert("s3://bucket/train/*.tar", copy, sync=False, **options) == 24
    local = tmp_path / "local.tbl"
    tl.convert(folder / "train" / "*.tar", local, sync=False)
    assert copy.read_bytes() == local.read_bytes()


def test_tables_are_read_with_options(store, options) -> None:
    folder, _ = store
    local, remote = tl.IdvFile(folder / "table.idv"), tl.IdvFile("s3://bucket/table.idv", **options)
    assert remote.names == local.names
    for name in local.names:
        np.testing.assert_array_equal(remote[name], local[name], err_msg=name)
    assert remote.sparse("sparse").data.tolist() == local.sparse("sparse").data.tolist()
    here = tl.TbfSegment(folder / "nodes.tbf")
    there = tl.TbfSegment("s3://bucket/nodes.tbf", **options)
    assert there["timestamp"].tolist() == here["timestamp"].tolist()
    assert there.embeddings.numpy().tolist() == here.embeddings.numpy().tolist()
    assert there.edges().indptr.tolist() == here.edges().indptr.tolist()
    for name, rows in (("table.idv", ROWS), ("nodes.tbf", 20)):
        found = tl.verify(f"s3://bucket/{name}", **options)
        assert found == tl.verify(folder / name)
        assert found["samples"] == rows
    with pytest.raises(tl.SettingError, match="the URL of a folder, expected that of a file"):
        tl.IdvFile("s3://bucket/train/", **options)


def test_settings_are_checked_wherever_they_are_taken(options, tmp_path) -> None:
    url = "s3://bucket/train.tbl"
    for call in (
        lambda **settings: tl.TblReader(url, **settings),
        lambda **settings: tl.verify(url, **settings),
        lambda **settings: tl.convert(url, tmp_path / "a.tbl", **settings),
        lambda **settings: tl.IdvFile(url, **settings),
        lambda **settings: tl.TbfSegment(url, **settings),
        lambda **settings: compat.DataLoader(url, **settings),
        lambda **settings: compat.TblReaderV2(url, **settings),
    ):
        for settings, message in (
            (SECRET, "Store: options has type str, expected a dict"),
            ({"token": [SECRET]}, "expected text for 'token'"),
            ({"timeout": SECRET}, '"timeout" is not supported: set deadline'),
            (True, "store is True, expected a turboloader.Store"),
            (tl.Ranks(0, 1), "store is Ranks, expected a turboloader.Store"),
        ):
            with pytest.raises(LoaderError, match=message) as caught:
                call(store=settings)
            assert SECRET not in str(caught.value)
        with pytest.raises(TypeError, match="conections"):
            call(conections=3)
    with pytest.raises(tl.SettingError, match="store: not supported for tables"):
        tl.convert("table.idv", tmp_path / "table.csv", store=tl.Store(hedge=False))
    with pytest.raises(tl.SettingError, match=r"s3://bucket/b\.csv: files are written locally"):
        tl.convert("table.idv", "s3://bucket/b.csv")


def test_queries_of_urls_are_not_shown(store) -> None:
    folder, endpoint = store
    url = f"{endpoint}/bucket/train.tbl?signature={SECRET}"
    host = endpoint.removeprefix("http://")
    for given, shown in (
        (url, f"{endpoint}/bucket/train.tbl?..."),
        (f"http://me:{SECRET}@{host}/k", f"{endpoint}/k"),
        ("https://host?a", "https://host?..."),
        ("s3://bucket/k?versionId=3", "s3://bucket/k?versionId=3"),
        ("folder/a?b", "folder/a?b"),
    ):
        assert _paths.shown(given) == shown
    texts = []
    for paths in (url, [url], iter([url])):
        with tl.DataLoader(paths, decode=False) as loader:
            assert len(list(loader)) == 1
            texts += [repr(loader), str(loader), repr(loader._settings), loader.explain()]
            texts += [*loader.notes, str(loader.state_dict())]
    table, nodes = (url.replace("train.tbl", name) for name in ("table.idv", "nodes.tbf"))
    texts += [repr(tl.TblReader(url)), repr(tl.IdvFile(table)), repr(tl.TbfSegment(nodes))]
    for call in (
        lambda: tl.DataLoader(url.replace("train", "none")),
        lambda: tl.DataLoader(url.replace("train", "{0..9999999}")),
        lambda: tl.TblReader(url.replace("train", "none")),
        lambda: tl.verify(url.replace("train", "none")),
        lambda: tl.convert(folder / "train.tbl", url),
        lambda: tl.IdvFile(table)["none"],
        lambda: tl.IdvFile(f"{endpoint}/bucket/?signature={SECRET}"),
    ):
        with pytest.raises((LoaderError, OSError)) as caught:
            call()
        texts += [str(caught.value), repr(caught.value)]
    assert not [text for text in texts if SECRET in text]


def test_the_code_of_the_first_design_runs_with_a_pattern(store, options, environment) -> None:
    def loader(source: str) -> tl.DataLoader:
        return tl.DataLoader(
            source=source,
            format="webdataset",
            batch_size=256,
            transforms=[
                tl.RandomResizedCrop(224),
                tl.RandomHorizontalFlip(),
                tl.Normalize(mean=[0.485, 0.456, 0.406], std=[0.229, 0.224, 0.225]),
            ],
            num_workers=16,
            prefetch_factor=8,
        )

    with loader("s3://bucket/train/*.tar") as batches:
        (batch,) = batches
        classes = len(batches.class_names)
    assert batch["image"].shape == (24, 3, 224, 224)
    assert sorted(set(batch["label"].tolist())) == list(range(classes))
    with pytest.raises(FileNotFoundError, match="the URL of a folder ends with a slash"):
        loader("s3://bucket/train")
    expected = "this folder has no images but 2 TAR archives: pass '{}\\*.tar'"
    for folder in ("s3://bucket/train/", f"{store[0]}/train/"):
        with pytest.raises(tl.SettingError, match=expected.format(folder)):
            loader(folder)
    images = compat.DataLoader(
        "s3://bucket/train/*.tar", 32, image_size=8, output_format="pytorch", **options
    )
    ((pixels, meta),) = images
    assert pixels.shape == (24, 3, 8, 8)
    assert meta["labels"].tolist() == batch["label"].tolist()


def test_patterns_of_local_folders_reach_below_others(tmp_path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    for path in (tmp_path / "0.tbl", tmp_path / "a" / "b" / "1.tbl"):
        write(path, 2)
    assert tl.DataLoader(tmp_path / "**" / "*.tbl").num_samples == 4


def index(folder: pathlib.Path) -> pathlib.Path:
    path = folder / "train.tlidx"
    archives = sorted(str(path) for path in folder.glob("*.tar"))
    command = [sys.executable, "-m", "turboloader", "index", "--quiet", *archives, "-o", str(path)]
    subprocess.run(command, check=True)
    return path


def test_parts_of_a_data_set_are_opened_by_themselves(data, tmp_path) -> None:
    for number in range(2):
        tl.convert(data, tmp_path / f"{number}.tar", sync=False)
    shards = [str(tmp_path / f"{number}.tar") for number in range(2)]
    recipe = tl.transforms.recipe(None)

    def parts(*paths: str) -> list[tuple[str, int, int]]:
        samples = _native.Samples(list(paths), recipe, seed=1)
        return list(_shards.parts_of(paths, samples.shards()))

    both = [(shards[0], 0, 100), (shards[1], 100, 200)]
    assert parts(*shards) == both
    listed = str(index(tmp_path))
    assert parts(listed) == [(listed, 0, 200)]
    assert parts(str(data), listed) == [
        (str(data), 0, 100),
        *((path, first + 100, end + 100) for path, first, end in both),
    ]
    # A location is shown without the query that opening it takes.
    signed = "https://host/a.tar?signature=x"
    found = [("https://host/a.tar?...", 0, 1), ("0.tar", 1, 2), ("1.tar", 2, 3)]
    assert next(_shards.parts_of([signed, listed], found)) == (signed, 0, 1)


def test_patterns_mean_the_objects_of_a_store(store, environment) -> None:
    urls = [f"s3://bucket/train/{number}.tar" for number in range(2)]
    assert _native.expand(["s3://bucket/train/*.tar", "a*.tar"]) == [*urls, "a*.tar"]


def test_archives_of_a_store_are_converted_once(store, environment, tmp_path) -> None:
    signed = f"{store[1]}/bucket/train/1.tar?signature={SECRET}"
    sources = ["s3://bucket/train/0.tar", signed]
    task = json.dumps({"name": "convert", "to": "tbl", "compression": "none", "jpeg_index": False})
    report = tmp_path / "report.jsonl"

    def run(*sources: str) -> tuple[list[bool], dict[str, Any]]:
        settings = tl.Store(hedge=False)
        output, written = str(tmp_path / "out"), str(report)
        job = _native.Job(task, sources, output=output, report=written, stores=settings)
        skipped = []
        for number in reversed(range(len(job))):
            record, is_skipped = _shards.run_shard(task, job.places(number), settings)
            job.add(number, record)
            skipped.insert(0, is_skipped)
        return skipped, json.loads(job.finish())

    skipped, totals = run(*sources)
    assert skipped == [False, False]
    assert [totals[name] for name in ("shards", "good", "samples")] == [2, 2, 24]
    first = report.read_bytes()
    shown = f"{store[1]}/bucket/train/1.tar?..."
    named = [json.loads(line).get("source") for line in first.splitlines()]
    assert named == [sources[0], shown, None]
    assert SECRET.encode() not in first
    (tmp_path / "out" / "1.tbl").write_bytes(b"TBL")
    assert run(*sources)[0] == [True, False]
    assert report.read_bytes() == first
    with pytest.raises(tl.SettingError, match=r"several shards would become .*0.tbl"):
        run("a/0.tar", "s3://b/0.tar")
    with pytest.raises(tl.SettingError, match=r"all\.tlidx: is a shard index, expected its shards"):
        run("s3://b/all.tlidx")
    with pytest.raises(tl.SettingError, match="unknown variant `mp3`"):
        _native.Job(task.replace("tbl", "mp3"), sources)


needs_torch = pytest.mark.skipif(find_spec("torch") is None, reason="needs torch")


@pytest.mark.torch
@needs_torch
@pytest.mark.filterwarnings("ignore:This DataLoader will create")
def test_data_sets_of_torch_read_stores_in_forked_workers(store, options) -> None:
    import torch
    import turboloader.torch as tlt

    folder, _ = store
    url = "s3://bucket/train.tbl"
    for workers in (0, 2):
        settings = {"num_workers": workers}
        if workers:
            settings["multiprocessing_context"] = "fork"
        local, remote = (
            torch.cat([images for images, _ in torch.utils.data.DataLoader(dataset, **settings)])
            for dataset in (tlt.Dataset(folder / "train.tbl"), tlt.Dataset(url, **options))
        )
        assert torch.equal(local, remote)
        batches = tlt.IterableDataset(url, 4, **options)
        loader = torch.utils.data.DataLoader(batches, batch_size=None, **settings)
        assert len(list(loader)) == 5


@pytest.mark.torch
@needs_torch
def test_data_sets_of_torch_keep_secrets(store, options) -> None:
    import turboloader.torch as tlt

    signed = f"{store[1]}/bucket/train.tbl?signature={SECRET}"
    texts = []
    for make in (tlt.Dataset, tlt.IterableDataset):
        dataset = make("s3://bucket/train.tbl", **options)
        with pytest.raises(TypeError, match="a Store with options cannot be pickled") as caught:
            pickle.dumps(dataset)
        assert "environment variables" in str(caught.value)
        with pytest.raises(TypeError, match="a Store with options cannot be pickled"):
            pickle.dumps(make(tl.open("s3://bucket/train.tbl", **options)))
        texts += [str(caught.value), repr(dataset), str(dataset.state_dict())]
        for paths in (signed, [signed]):
            texts.append(repr(make(paths)))
        for path in ("s3://bucket/none.tbl", signed.replace("train", "none")):
            with pytest.raises((LoaderError, OSError)) as missing:
                make(path, **options)
            texts += [str(missing.value), repr(missing.value)]
        # Settings that are not secret travel.
        again = pickle.loads(
            pickle.dumps(make(str(store[0] / "train.tbl"), store=tl.Store(hedge=False)))
        )
        assert len(again) == len(make(str(store[0] / "train.tbl")))
    assert not [text for text in texts if SECRET in text]
