from __future__ import annotations

import multiprocessing
import os
import pickle
import re
import signal
import subprocess
import sys
import tarfile
import textwrap
import threading
import time

import numpy as np
import pytest
import turboloader as tl
from conftest import HEIGHT, WIDTH
from turboloader import transforms as T  # noqa: N812
from turboloader._paths import absolute, expand

TRAIN = [T.RandomResizedCrop(5), T.RandomHorizontalFlip(), T.ToTensor()]


def train(data, **settings):
    return tl.DataLoader(data, batch_size=8, shuffle=True, transform=TRAIN, **settings)


def content(batches):
    return [
        (batch["index"].numpy().tolist(), batch["image"].numpy().tobytes()) for batch in batches
    ]


def test_an_epoch_has_every_sample_once(data):
    loader = train(data)
    assert len(loader) == 13
    indices = [index for batch in loader for index in batch["index"].numpy().tolist()]
    assert sorted(indices) == list(range(100))
    assert indices != list(range(100))


def test_epochs_differ_and_come_again(data):
    loader = train(data, num_workers=2)
    first, second = content(loader), content(loader)
    assert first != second
    loader.set_epoch(0)
    assert content(loader) == first
    assert content(train(data, num_workers=1)) == first
    assert content(train(data, seed=43)) != first


def test_ranks_have_parts_of_every_global_batch(data):
    whole = tl.DataLoader(data, batch_size=8, shuffle=True, image_size=4)
    parts = [
        tl.DataLoader(data, batch_size=4, shuffle=True, image_size=4, ranks=tl.Ranks(rank, 2))
        for rank in range(2)
    ]
    ranks = [[batch["index"].numpy().tolist() for batch in part] for part in parts]
    together = [left + right for left, right in zip(*ranks, strict=True)]
    # The last global batch is filled up, so that ranks have equally many.
    expected = [batch["index"].numpy().tolist() for batch in whole]
    assert together[:-1] == expected[:-1]
    assert together[-1][:4] == expected[-1]


def test_rank_and_world_come_from_the_environment(data, monkeypatch):
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert "rank 1 of 2" in train(data, ranks="auto").explain()
    monkeypatch.delenv("RANK")
    with pytest.raises(tl.SettingError, match="WORLD_SIZE"):
        train(data, ranks="auto")


def test_workers_by_id_have_each_sample_once(data):
    seen = []
    for worker in range(4):
        loader = tl.DataLoader(data, worker_id=worker, num_workers=4, batch_size=7)
        seen += [index for batch in loader for index in batch["index"].numpy().tolist()]
    assert sorted(seen) == list(range(100))


def test_workers_by_id_share_the_part_of_their_rank(data, monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "2")
    seen = []
    for rank in range(2):
        monkeypatch.setenv("RANK", str(rank))
        for worker in range(3):
            place = {"worker_id": worker, "num_workers": 3, "ranks": "auto"}
            loader = tl.DataLoader(data, batch_size=7, **place)
            seen += [index for batch in loader for index in batch["index"].numpy().tolist()]
    assert sorted(seen) == list(range(100))


@pytest.mark.parametrize("received", [0, 1, 5, 13])
def test_a_state_goes_on_where_it_was(data, received):
    loader = train(data)
    loader.set_epoch(3)
    expected = content(loader) + content(loader)
    loader.set_epoch(3)
    epoch = iter(loader)
    for _ in range(received):
        next(epoch)
    state = loader.state_dict()
    assert (state["epoch"], state["consumed"]) == (3, min(8 * received, 104))
    other = train(data, num_workers=1, memory=tl.Memory(prefetch=5))
    other.load_state_dict(state)
    assert other.state_dict() == state
    rest = content(other)
    # An epoch that is over is not begun again.
    assert rest == (expected[received:13] if received < 13 else expected[13:])
    if received < 13:
        assert content(other) == expected[13:]


def test_set_epoch_keeps_a_state_of_that_epoch(data):
    loader = train(data)
    expected = content(loader)
    epoch = iter(loader)
    loader.set_epoch(0)
    epoch = iter(loader)
    next(epoch)
    state = loader.state_dict()
    other = train(data)
    other.load_state_dict(state)
    other.set_epoch(0)
    assert content(other) == expected[1:]
    other.load_state_dict(state)
    other.set_epoch(1)
    assert len(content(other)) == 13


def test_a_state_goes_on_with_another_number_of_ranks(data):
    one = train(data, drop_last=True)
    epoch = iter(one)
    for _ in range(3):
        next(epoch)
    state = one.state_dict()
    expected = [batch["index"].numpy().tolist() for batch in epoch]
    ranks = []
    for rank in range(2):
        loader = tl.DataLoader(
            data,
            batch_size=4,
            shuffle=True,
            transform=TRAIN,
            drop_last=True,
            ranks=tl.Ranks(rank, 2),
        )
        loader.load_state_dict(state)
        ranks.append([batch["index"].numpy().tolist() for batch in loader])
    assert [left + right for left, right in zip(*ranks, strict=True)] == expected


def test_states_of_other_loaders_are_refused(data, tmp_path):
    state = train(data).state_dict()
    with pytest.raises(tl.StateError, match="the state's seed is 42, this loader's is 7"):
        train(data, seed=7).load_state_dict(state)
    with pytest.raises(tl.StateError, match="recipe"):
        tl.DataLoader(data, batch_size=8, shuffle=True, image_size=4).load_state_dict(state)
    with pytest.raises(tl.StateError):
        train(data).load_state_dict({"version": 1})


def test_a_state_that_is_refused_changes_nothing(data):
    loader, alike = train(data), train(data)
    epoch, expected = iter(loader), iter(alike)
    next(epoch), next(expected)
    state = loader.state_dict()
    with pytest.raises(tl.StateError):
        loader.load_state_dict({**state, "seed": 7})
    assert loader.state_dict() == state
    assert content(epoch) == content(expected)


def test_pickles_before_the_first_epoch_and_not_behind(data):
    loader = train(data)
    loader.set_epoch(2)
    expected = content(pickle.loads(pickle.dumps(loader)))
    assert content(loader) == expected
    with pytest.raises(TypeError, match="after its first epoch has begun"):
        pickle.dumps(loader)
    recipe = T.recipe(TRAIN)
    assert pickle.loads(pickle.dumps(recipe)) == recipe
    assert pickle.loads(pickle.dumps(T.Compose(TRAIN))) == T.Compose(TRAIN)


def test_a_closed_loader_says_so(data):
    loader = train(data)
    epoch = iter(loader)
    next(epoch)
    loader.close()
    with pytest.raises(tl.ClosedError):
        next(epoch)
    with pytest.raises(tl.ClosedError, match="the loader is closed"):
        iter(loader)
    assert len(loader) == 13


def test_a_second_iteration_ends_the_first(data):
    loader = train(data)
    first = iter(loader)
    next(first)
    iter(loader)
    with pytest.raises(tl.ClosedError):
        next(first)


def test_other_threads_run_and_ask_while_one_waits(data):
    loader = train(data)
    states = []

    def ask():
        states.extend(loader.state_dict()["consumed"] for _ in range(20))

    epoch = iter(loader)
    next(epoch)
    thread = threading.Thread(target=ask)
    thread.start()
    rest = list(epoch)
    thread.join(10)
    assert len(states) == 20
    assert len(rest) == 12


def test_a_forked_child_is_told_so(data):
    loader = train(data)
    epoch = iter(loader)
    next(epoch)
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        said = []
        for attempt in (lambda: next(epoch), lambda: iter(loader), loader.state_dict):
            try:
                attempt()
                said.append("nothing")
            except tl.ForkedError:
                said.append("forked")
        os.write(writing, " ".join(said).encode())
        os._exit(0)
    os.waitpid(child, 0)
    assert os.read(reading, 100).decode() == "forked forked forked"
    assert len(list(epoch)) == 12


def indices_of(loader):
    return [index for batch in loader for index in batch["index"].numpy().tolist()]


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_loaders_go_to_other_processes(data, method):
    loader = train(data)
    with multiprocessing.get_context(method).Pool(1) as pool:
        there = pool.apply(indices_of, (loader,))
    assert there == indices_of(loader)


# A batch that takes minutes; the process ends without waiting for the workers.
SLOW = """
    import os, signal, sys, threading
    import turboloader as tl
    from turboloader import transforms as T
    blurs = [T.GaussianBlur(255, (60.0, 60.0)) for _ in range(50)]
    transform = [T.Resize([500, 500]), *blurs]
    epoch = iter(tl.DataLoader(sys.argv[1], batch_size=64, num_workers=1, transform=transform))
    # What runs in the background of a shell does not hear of Ctrl-C.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        print("waiting", flush=True)
        next(epoch)
    except KeyboardInterrupt:
        print("interrupted", flush=True)
    os._exit(0)
"""


def test_threads_of_python_run_while_one_waits(data):
    # The second thread can only print if the first waits without holding the interpreter.
    count = """
    def count():
        sys.stdout.write("".join(f"{number}\\n" for number in range(1000)))
        print("counted", flush=True)
        os._exit(0)
    threading.Timer(0.2, count).start()
    """
    slow = textwrap.dedent(SLOW).replace("try:", textwrap.dedent(count) + "try:", 1)
    command = [sys.executable, "-c", slow, str(data)]
    result = subprocess.run(command, stdout=subprocess.PIPE, timeout=60, text=True)
    assert result.stdout.splitlines()[-1] == "counted"


def test_ctrl_c_ends_a_wait_soon(data):
    command = [sys.executable, "-c", textwrap.dedent(SLOW), str(data)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"waiting\n"
        time.sleep(0.3)
        sent = time.monotonic()
        process.send_signal(signal.SIGINT)
        assert process.stdout.readline() == b"interrupted\n"
        # 50 ms of patience; the machine may be busy, but the batch takes far longer.
        assert time.monotonic() - sent < 5


def test_bad_samples_are_errors_with_their_place(tmp_path):
    path = tmp_path / "bad.tbl"
    with tl.TblWriter(path, sync=False) as writer:
        writer.add_sample(b"no image", key="a.jpg", label=1)
    with pytest.raises(tl.DecodeError, match=r"bad.tbl: sample 0 \(a.jpg\) at byte") as raised:
        list(tl.DataLoader(path, batch_size=1))
    error = raised.value
    assert isinstance(error, (tl.LoaderError, ValueError))
    assert (error.shard, error.sample, error.key) == (str(path), 0, "a.jpg")
    assert error.offset is not None


def test_skipping_warns_once_and_ends_where_too_much_is_bad(data, tmp_path):
    path = tmp_path / "bad.tbl"
    with tl.TblWriter(path, sync=False) as writer:
        for index in range(4):
            writer.add_sample(b"no image", key=f"{index}.jpg", label=1)
    sized = {"image_size": (HEIGHT, WIDTH), "batch_size": 2}
    for policy, word in (("skip", "skipped"), ("replace", "replaced"), ("fill", "filled")):
        loader = tl.DataLoader([data, path], errors=policy, **sized)
        with pytest.warns(UserWarning, match=f"bad samples are {word}.*bad.tbl: sample") as caught:
            lengths = [len(batch) for batch in loader]
        assert len(caught) == 1
        # A batch of which nothing is left is left out.
        assert lengths == [2] * (50 if policy == "skip" else 52)
        assert [len(batch) for batch in loader] == lengths
        assert [index for index, _, _ in loader.audit] == 2 * [100, 101, 102, 103]
        assert f" 8 {word}" in str(loader.report())
    with pytest.warns(UserWarning), pytest.raises(tl.LoaderError, match="of 4 samples are bad"):
        list(tl.DataLoader(path, errors="skip", **sized))
    with pytest.warns(UserWarning):
        assert list(tl.DataLoader(path, errors=tl.Errors("skip", at_most=1.0), **sized)) == []


def test_data_sets_without_a_batch_are_refused(data, tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "hidden").mkdir()
    (tmp_path / "hidden" / ".DS_Store").write_text("nothing")
    tarfile.open(tmp_path / "empty.tar", "w").close()
    for name in ("empty", "hidden", "empty.tar"):
        with pytest.raises(tl.LoaderError, match=name):
            tl.DataLoader(tmp_path / name, image_size=8)
    with pytest.raises(tl.SettingError, match="100"):
        tl.DataLoader(data, 101, drop_last=True, image_size=8)


def test_what_cannot_be_opened_is_an_os_error(tmp_path):
    missing = tmp_path / "missing.tbl"
    with pytest.raises(tl.StorageError) as raised:
        tl.DataLoader(missing)
    assert isinstance(raised.value, OSError)
    assert raised.value.errno == 2
    assert raised.value.shard == str(missing)
    broken = tmp_path / "broken.tbl"
    broken.write_bytes(b"TBL\x02" + bytes(10))
    with pytest.raises(tl.FormatError) as raised:
        tl.DataLoader(broken)
    assert isinstance(raised.value, ValueError)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"batch_size": 0}, "batch_size is 0"),
        ({"output_format": "list"}, "output_format is list"),
        ({"shuffle": "some"}, "some"),
        ({"tail": "cut"}, "tail is cut"),
        ({"errors": "ignore"}, "policy is ignore"),
        ({"image_size": 8, "transform": T.Resize(4)}, "image_size"),
        ({"dtype": "int8", "image_size": 4}, "dtype is int8"),
        ({"transform": T.ToTensor()}, "keeps the sizes of images"),
        ({"transform": 3}, "expected transforms"),
        ({"ranks": (0, 2)}, r"ranks is \(0, 2\), expected 'auto'"),
        ({"format": "parquet"}, "format is parquet"),
        ({"transforms": [], "transform": []}, "transforms is transform by another name"),
    ],
)
def test_wrong_settings_are_named(data, settings, message):
    with pytest.raises(tl.SettingError, match=message):
        tl.DataLoader(data, **settings)


def test_unknown_schemes_are_refused_by_name():
    with pytest.raises(tl.SettingError, match="ftp://host/train: unknown URL scheme"):
        tl.DataLoader("ftp://host/train")


def test_urls_are_no_patterns():
    """They are not looked for in the file system, and have no folder to be relative to."""
    assert expand("s3://bucket/[a]?.tar") == ["s3://bucket/[a]?.tar"]
    assert expand("s3://bucket/{1..2}.tar") == ["s3://bucket/1.tar", "s3://bucket/2.tar"]
    assert absolute("s3://bucket/a.tar") == "s3://bucket/a.tar"
    assert absolute("a.tar") == os.path.abspath("a.tar")


def test_lists_patterns_and_ranges_are_one_data_set(data, tmp_path):
    for number in (1, 2, 3):
        tl.convert(data, tmp_path / f"train-{number:02d}.tbl", sync=False)
    count = lambda paths: tl.DataLoader(paths).num_samples  # noqa: E731
    assert count(str(tmp_path / "train-*.tbl")) == 300
    assert count(str(tmp_path / "train-{01..02}.tbl")) == 200
    assert count([data, tmp_path / "train-01.tbl"]) == 200
    assert count(str(tmp_path / "train-{03..02}.tbl")) == 200
    with pytest.raises(FileNotFoundError, match="no file matches"):
        count(str(tmp_path / "val-*.tbl"))


@pytest.mark.parametrize(
    ("path", "names"),
    [
        ("{8..11}", ["8", "9", "10", "11"]),
        ("{11..8}", ["11", "10", "9", "8"]),
        ("{08..10}", ["08", "09", "10"]),
        ("{10..08}", ["10", "09", "08"]),
        ("{0..10}", [str(number) for number in range(11)]),
        ("{1..010}", [f"{number:03d}" for number in range(1, 11)]),
        ("{0..1}{1..0}", ["01", "00", "11", "10"]),
        ("{3..3}", ["3"]),
    ],
)
def test_ranges_count_up_and_down(path, names):
    assert expand(f"train-{path}.tar") == [f"train-{name}.tar" for name in names]


def test_a_range_has_an_end():
    with pytest.raises(tl.SettingError, match="names 100000000000 files, at most 1000000"):
        expand("train-{0..99999999999}.tar")


def test_loaders_explain_themselves(data):
    loader = train(data)
    assert "13 batches of 8" in repr(loader)
    said = loader.explain()
    assert "RandomResizedCrop(5x5" in said
    # As `tl explain` has it, whose own tests say where each operation is.
    for number, name in enumerate(["random_resized_crop", "random_horizontal_flip", "to_float"]):
        assert re.search(rf"^ +{number}  ", said, re.MULTILINE), name
    assert "hash     " in said
    assert "scratch  none" in said
    # A crop that such photographs are too small for is said, not raised.
    large = tl.DataLoader(data, transform=T.RandomCrop(2000))
    assert "places" in large.explain()
    list(loader)
    report = loader.report()
    assert (report.batches, report.samples) == (13, 100)
    assert report.verdict in str(report)


def test_caches_change_no_batch(data, tmp_path):
    expected = content(train(data))
    cached = train(data, cache=tl.Cache("512MiB", "1GiB", tmp_path, decoded=True))
    assert content(cached) == expected
    cached.set_epoch(0)
    assert content(cached) == expected


def test_the_loader_of_a_folder_has_its_classes(photos):
    loader = tl.DataLoader(photos, batch_size=4, image_size=32)
    assert loader.class_names == sorted(path.name for path in photos.iterdir() if path.is_dir())
    labels = np.concatenate([batch["label"].numpy() for batch in loader])
    assert set(labels.tolist()) == set(range(len(loader.class_names)))
