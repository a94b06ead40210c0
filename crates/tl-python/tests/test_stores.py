"""Everything that opens data, on the URLs of a store on this machine."""

from __future__ import annotations

import pathlib
import pickle
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

import pytest
import turboloader as tl
from conftest import write
from loopback import DUMMY, SECRET, served
from turboloader import _paths
from turboloader.exceptions import LoaderError


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[pathlib.Path, str]]:
    root = tmp_path_factory.mktemp("store")
    folder = root / "bucket"
    folder.mkdir()
    write(folder / "train.tbl", 20)
    with served(root) as endpoint:
        yield folder, endpoint


@pytest.fixture(autouse=True)
def no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_ENDPOINT_URL"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def options(store: tuple[pathlib.Path, str]) -> dict[str, Any]:
    return {"storage_options": {**DUMMY, "endpoint": store[1]}}


def test_queries_of_urls_are_not_shown(store) -> None:
    _, endpoint = store
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
    for call in (
        lambda: tl.DataLoader(url.replace("train", "none")),
        lambda: tl.DataLoader(url.replace("train", "{0..9999999}")),
    ):
        with pytest.raises((LoaderError, OSError)) as caught:
            call()
        texts += [str(caught.value), repr(caught.value)]
    assert not [text for text in texts if SECRET in text]


needs_torch = pytest.mark.skipif(find_spec("torch") is None, reason="needs torch")


@pytest.mark.torch
@needs_torch
def test_data_sets_of_torch_keep_secrets(store, options) -> None:
    import turboloader.torch as tlt

    signed = f"{store[1]}/bucket/train.tbl?signature={SECRET}"
    texts = []
    dataset = tlt.IterableDataset("s3://bucket/train.tbl", **options)
    with pytest.raises(TypeError, match="storage_options cannot be pickled") as caught:
        pickle.dumps(dataset)
    assert "environment variables" in str(caught.value)
    texts += [str(caught.value), repr(dataset), str(dataset.state_dict())]
    for make in (tlt.Dataset, tlt.IterableDataset):
        for paths in (signed, [signed]):
            texts.append(repr(make(paths)))
        again = pickle.loads(pickle.dumps(make(str(store[0] / "train.tbl"))))
        assert len(again) == len(make(str(store[0] / "train.tbl")))
    assert not [text for text in texts if SECRET in text]
