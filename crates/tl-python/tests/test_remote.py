"""Data sets in a store on this machine."""

from __future__ import annotations

import copy
import json
import pathlib
import pickle
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator

import pytest
import turboloader as tl
from loopback import DUMMY, SECRET, Handler, Server, served
from turboloader.exceptions import LoaderError

PHOTOS = pathlib.Path(__file__).parents[3] / "testdata" / "photos"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[pathlib.Path, str]]:
    root = tmp_path_factory.mktemp("store")
    (root / "bucket").mkdir()
    for name in ("train-0.tbl", "train-1.tbl"):
        # More than the first bytes, which come when an object is opened.
        tl.convert([PHOTOS] * 3, root / "bucket" / name, sync=False)
    with served(root) as endpoint:
        yield root / "bucket", endpoint


def samples(loader: tl.DataLoader) -> list[tuple[int, bytes]]:
    with loader:
        return [
            (int(label), bytes(stored))
            for batch in loader
            for label, stored in zip(batch["label"], batch["bytes"], strict=True)
        ]


def test_a_store_makes_the_batches_of_local_files(store: tuple[pathlib.Path, str]) -> None:
    folder, endpoint = store
    settings = {"batch_size": 8, "shuffle": True, "decode": False}
    local = samples(tl.DataLoader(str(folder / "train-{0..1}.tbl"), **settings))
    remote = tl.DataLoader(
        "s3://bucket/train-{0..1}.tbl",
        store={**DUMMY, "endpoint": endpoint, "allow_http": True},
        **settings,
    )
    assert remote.remote_stats()["gets"] > 0
    assert samples(remote) == local
    stats = remote.remote_stats()
    assert stats["received_bytes"] > sum(len(stored) for _, stored in local) / 2
    assert stats["retries"] == stats["refused"] == 0


def test_blocks_on_disk_spare_a_store(
    store: tuple[pathlib.Path, str], tmp_path: pathlib.Path
) -> None:
    _, endpoint = store

    def loader(cache: tl.Cache | None) -> tl.DataLoader:
        options = {**DUMMY, "endpoint": endpoint, "allow_http": True}
        url = "s3://bucket/train-{0..1}.tbl"
        return tl.DataLoader(url, 4, shuffle=True, decode=False, store=options, cache=cache)

    expected = samples(loader(None))
    cache = tl.Cache(disk="1GB", folder=tmp_path, blocks=True)
    # On a busy machine workers may read samples before they are requested.
    for _ in range(4):
        assert samples(loader(cache)) == expected
    whole = loader(cache)
    with whole:
        before = whole.remote_stats()["received_bytes"]
        count = sum(len(batch) for batch in whole)
        assert whole.cache_stats()["disk"]["hits"] >= count == len(expected)
        stats = whole.cache_stats()["disk"]
        assert stats["bytes_from_blocks"] > 0
        assert stats["dropped_blocks"] == stats["bad_entries"] == stats["faults"] == 0
        assert whole.remote_stats()["received_bytes"] == before


def test_relabelled_and_joined_sets_count_the_requests_of_all(
    store: tuple[pathlib.Path, str],
) -> None:
    _, endpoint = store
    options = {**DUMMY, "endpoint": endpoint, "allow_http": True}
    first, second = (tl.open(f"s3://bucket/train-{number}.tbl", store=options) for number in (0, 1))
    classes = ["even", "odd"] * (len(first) // 2)
    both = first.with_labels(classes) + second

    def received(ds: tl.Dataset) -> int:
        with tl.DataLoader(ds, 8, decode=False) as loader:
            before = loader.remote_stats()["received_bytes"]
            for _ in loader:
                pass
            return loader.remote_stats()["received_bytes"] - before

    # Each part alone: how much is read ahead of the next epoch depends on the machine.
    count = len(first)
    three = second + both
    for part in (both.take(count), both.skip(count), three.take(count), three.skip(2 * count)):
        assert received(part) > 0


def test_messages_have_no_secret(
    store: tuple[pathlib.Path, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, endpoint = store
    options = {**DUMMY, "endpoint": endpoint}

    def refused(path: str, **settings: object) -> str:
        with pytest.raises((LoaderError, OSError)) as caught:
            tl.DataLoader(path, **settings)
        assert SECRET not in str(caught.value)
        return str(caught.value)

    message = refused("s3://bucket/none.tbl", store=options)
    assert "s3://bucket/none.tbl: no such object (status 404 NoSuchKey)" in message
    wrong = {**options, "access_key_id": "wrong"}
    message = refused("s3://bucket/train-0.tbl", store=wrong)
    assert "status 403 InvalidAccessKeyId, 1 try" in message
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name, raising=False)
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, "/nonexistent")
    message = refused("s3://bucket/train-0.tbl", store={"endpoint": endpoint})
    assert "no credentials for S3" in message
    assert "expected text for 'token'" in refused("s3://b/k", store={"token": [SECRET]})
    assert "expected a dict" in refused("s3://b/k", store=SECRET)
    with pytest.raises(tl.SettingError, match="expected one of auto, instance"):
        tl.Store(credentials="machine")


def test_secrets_are_neither_shown_nor_pickled(store: tuple[pathlib.Path, str]) -> None:
    _, endpoint = store
    options = {**DUMMY, "endpoint": endpoint}
    with tl.DataLoader("s3://bucket/train-0.tbl", store=options) as loader:
        shown = f"{loader!r} {loader._settings!r} {loader.explain()} {loader.notes}"
        assert SECRET not in shown
        with pytest.raises(TypeError, match="a Store with options cannot be pickled"):
            pickle.dumps(loader)
        # It is copied in this process, with its options.
        assert len(copy.deepcopy(loader)) == len(loader)


HUSH = tl.Store({"secret_access_key": SECRET})


def listed(folder: pathlib.Path) -> dict[str, str]:
    """Files that list two images of a folder."""
    names = ["animals/chelsea.jpg", "people/astronaut.jpg"]
    objects = {"images": [{"id": i, "file_name": name} for i, name in enumerate(names)]}
    texts = {
        "coco.json": json.dumps({**objects, "annotations": [], "categories": []}),
        "list.csv": "\n".join(["path", *names]),
    }
    for name, text in texts.items():
        (folder / name).write_text(text)
    return {name: str(folder / name) for name in texts}


HOLDERS = {
    "Store": lambda made: HUSH,
    "open": lambda made: tl.open(PHOTOS, store=HUSH),
    "view": lambda made: tl.open(PHOTOS, store=HUSH).take(2),
    "selection": lambda made: tl.open(PHOTOS, store=HUSH).select(label="people"),
    "concat": lambda made: tl.concat(tl.open(PHOTOS, store=HUSH), tl.open(PHOTOS)),
    "mix": lambda made: tl.mix({tl.open(PHOTOS, store=HUSH): 1}),
    "labels": lambda made: tl.open(PHOTOS, store=HUSH).with_labels([0] * 12),
    "coco": lambda made: tl.coco(PHOTOS, made["coco.json"], store=HUSH),
    "manifest": lambda made: tl.manifest(made["list.csv"], root=PHOTOS, store=HUSH),
    "pairs": lambda made: tl.pairs(f"{PHOTOS}/*/*.jpg", x=f"{PHOTOS}/*/*.jpg", store=HUSH),
    "loader": lambda made: tl.DataLoader(PHOTOS, store=HUSH),
    "loader of a set": lambda made: tl.DataLoader(HOLDERS["coco"](made)),
    "loader with labels": lambda made: tl.DataLoader(PHOTOS, labels=[0] * 12, store=HUSH),
}


@pytest.mark.parametrize("holder", HOLDERS)
def test_no_holder_of_a_store_pickles_its_options(holder: str, tmp_path: pathlib.Path) -> None:
    held = HOLDERS[holder](listed(tmp_path))
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        with pytest.raises(TypeError, match="a Store with options cannot be pickled"):
            pickle.dumps(held, protocol)
    assert copy.copy(HUSH) is HUSH and copy.deepcopy([HUSH])[0] is HUSH
    plain = tl.Store(hedge=False)
    assert pickle.loads(pickle.dumps(plain)) == plain


@pytest.mark.parametrize(
    "opened",
    [
        lambda store: {"data": PHOTOS, "store": store},
        lambda store: {"data": PHOTOS, "labels": [0] * 12, "store": store},
        lambda store: {"data": tl.open(PHOTOS, store=store)},
        lambda store: {"data": tl.open(PHOTOS, store=store).with_labels([0] * 12).take(6)},
        lambda store: {"data": tl.concat(tl.open(PHOTOS), tl.open(PHOTOS, store=store))},
    ],
)
def test_the_lead_of_a_store_is_that_of_each_loader_of_its_data_set(opened) -> None:
    settings = {"decode": False, "readers": 1, "memory": "150MB"}
    with pytest.raises(tl.SettingError, match="the memory budget is 150000000 bytes"):
        tl.DataLoader(**opened(None), **settings)
    with tl.DataLoader(**opened(tl.Store(read_ahead="1MB")), **settings) as loader:
        assert len(list(loader)) == 1
    with pytest.raises(tl.SettingError, match="the memory budget is 150000000 bytes"):
        tl.DataLoader(**opened(tl.Store(read_ahead="1GB")), **settings)


OPENS_A_SET = """
import signal, sys
import turboloader as tl

# A parent in the background ignores it, and its children do.
signal.signal(signal.SIGINT, signal.default_int_handler)
options = {"endpoint": sys.argv[1], "allow_http": "true", "anonymous": "true"}
try:
    tl.DataLoader("s3://bucket/train-{0..3}.tar", store=options)
except KeyboardInterrupt:
    print("interrupted")
"""


def test_ctrl_c_ends_opening_a_set_in_a_store_that_does_not_answer() -> None:
    requests = threading.Semaphore(0)
    is_over = threading.Event()

    class Stalling(Handler):
        def do_GET(self) -> None:  # noqa: N802
            requests.release()
            is_over.wait()
            self.close_connection = True

    server = Server(("127.0.0.1", 0), Stalling)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        opening = subprocess.Popen(
            [sys.executable, "-c", OPENS_A_SET, f"http://127.0.0.1:{server.server_port}"],
            stdout=subprocess.PIPE,
            text=True,
        )
        # All archives are opened at once.
        assert all(requests.acquire(timeout=60) for _ in range(4))
        opening.send_signal(signal.SIGINT)
        started = time.monotonic()
        printed, _ = opening.communicate(timeout=60)
        assert (printed, opening.returncode) == ("interrupted\n", 0)
        # A second for the interrupt, the rest for the end of the interpreter on a busy machine.
        assert time.monotonic() - started < 5
    finally:
        is_over.set()
        server.shutdown()
        thread.join()
        server.server_close()
