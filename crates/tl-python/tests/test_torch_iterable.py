from __future__ import annotations

import multiprocessing
import pathlib
import pickle
import sys
import textwrap

import numpy as np
import pytest
import turboloader as tl
from conftest import bmp, image
from turboloader import transforms as T  # noqa: N812

torch = pytest.importorskip("torch")
import turboloader.torch as tlt  # noqa: E402

pytestmark = [
    pytest.mark.torch,
    # Said where there are fewer cores than workers, and by torchdata 0.11 on torch 2.15.
    pytest.mark.filterwarnings("ignore:This DataLoader will create"),
    pytest.mark.filterwarnings("ignore:'set_vital' is deprecated"),
]

# 100 samples: 14 batches of 7, and one of 2.
TRAIN = {
    "batch_size": 7,
    "shuffle": True,
    "transform": [T.RandomResizedCrop(5), T.RandomHorizontalFlip(), T.ToTensor()],
}
ALL = ("index", "image", "label")


def dataset(data, **settings):
    return tlt.IterableDataset(data, **{**TRAIN, "fields": ALL, **settings})


def loader(data, workers=0, **settings):
    """A loader of torch around the data set."""
    return torch.utils.data.DataLoader(
        dataset(data, **settings), batch_size=None, num_workers=workers
    )


def rows(batches):
    return [
        (indices.tolist(), images.numpy().tobytes(), labels.tolist())
        for indices, images, labels in batches
    ]


def expected(data, **settings):
    """What a loader of ours has in its next epoch."""
    return rows(
        (batch["index"].torch(), batch["image"].torch(), batch["label"].torch())
        for batch in tl.DataLoader(data, **{**TRAIN, **settings})
    )


@pytest.mark.parametrize("workers", [0, 1, 2, 3])
def test_workers_change_no_batch(data, workers):
    batches = rows(loader(data, workers))
    assert batches == expected(data)
    assert len(batches) == len(loader(data, workers)) == 15


@pytest.mark.parametrize("tail", ["drop", "pad", "uneven"])
@pytest.mark.parametrize("rank", [0, 1, 2])
def test_workers_share_the_part_of_their_rank(data, rank, tail):
    place = {"ranks": tl.Ranks(rank, 3), "tail": tail}
    assert rows(loader(data, 2, **place)) == expected(data, **place)


def test_mixed_images_are_the_same_in_workers(data):
    mixing = {"batch_transform": T.MixUp(num_classes=7)}
    assert rows(loader(data, 2, **mixing)) == expected(data, **mixing)


def test_each_iteration_is_the_next_epoch_in_workers_too(data):
    ours = tl.DataLoader(data, **TRAIN)
    epochs = [[batch["index"].numpy().tolist() for batch in ours] for _ in range(4)]
    for persistent in (False, True):
        theirs = torch.utils.data.DataLoader(
            dataset(data, fields=("index",)),
            batch_size=None,
            num_workers=2,
            persistent_workers=persistent,
        )
        run = lambda: [indices.tolist() for (indices,) in theirs]  # noqa: E731, B023
        assert [run(), run()] == epochs[:2]
        theirs.dataset.set_epoch(3)
        assert run() == epochs[3]
        theirs.dataset.set_epoch(0)
        assert run() == epochs[0]


def test_an_iteration_that_was_left_is_over(data):
    iterable = dataset(data)
    next(iter(iterable))
    ours = tl.DataLoader(data, **TRAIN)
    ours.set_epoch(1)
    assert [batch[0].tolist() for batch in iterable] == [
        batch["index"].numpy().tolist() for batch in ours
    ]


def indices(around):
    return [index for batch in around for index in batch[0].tolist()]


@pytest.mark.parametrize("persistent", [False, True])
def test_workers_begin_the_same_epoch_whatever_was_begun_before(data, persistent):
    epochs = tl.DataLoader(data, **TRAIN)
    orders = [[i for batch in epochs for i in batch["index"].numpy().tolist()] for _ in range(7)]
    iterable = dataset(data, fields=("index",))
    next(iter(iterable))

    def around(workers):
        return torch.utils.data.DataLoader(
            iterable, batch_size=None, num_workers=workers, persistent_workers=persistent
        )

    two = around(2)
    assert indices(two) == orders[1]
    assert indices(around(3)) == orders[2]
    # What was seeded alike is another iteration all the same.
    torch.manual_seed(7)
    assert indices(around(2)) == orders[3]
    torch.manual_seed(7)
    assert indices(around(2)) == orders[4]
    assert indices(iterable) == orders[5]
    iterable.set_epoch(6)
    assert indices(two) == orders[6]


class LateSecond(tlt.IterableDataset):
    """Its second worker begins when the first one is through."""

    def __iter__(self):
        batches = super().__iter__()
        worker = torch.utils.data.get_worker_info()
        return self.in_turn(batches, worker.id)

    def in_turn(self, batches, worker):
        if worker == 1:
            assert self.is_through.acquire(timeout=60)
        yield from batches
        if worker == 0:
            self.is_through.release()


def test_workers_that_begin_late_follow_the_others(data):
    iterable = LateSecond(data, **TRAIN, fields=("index",))
    iterable.is_through = multiprocessing.Semaphore(0)
    around = torch.utils.data.DataLoader(
        iterable, batch_size=None, num_workers=2, prefetch_factor=10, persistent_workers=True
    )
    for _ in range(3):
        assert sorted(indices(around)) == list(range(100))


@pytest.mark.parametrize("workers", [0, 2, 3])
@pytest.mark.parametrize("received", [0, 1, 5, 14])
def test_states_are_those_of_the_loader(data, received, workers):
    ours = tl.DataLoader(data, **TRAIN)
    ours.set_epoch(2)
    whole = [batch["index"].numpy().tolist() for batch in ours]
    ours.set_epoch(2)
    iterable = dataset(data, fields=("index",))
    iterable.set_epoch(2)
    mine, its = iter(iterable), iter(ours)
    for _ in range(received):
        next(mine), next(its)
    state = iterable.state_dict()
    assert state == ours.state_dict()
    other = dataset(data, fields=("index",))
    other.load_state_dict(state)
    around = torch.utils.data.DataLoader(other, batch_size=None, num_workers=workers)
    assert [indices.tolist() for (indices,) in around] == whole[received:]
    # And the next epoch is whole.
    ours.set_epoch(3)
    third = [batch["index"].numpy().tolist() for batch in ours]
    assert [indices.tolist() for (indices,) in around] == third


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("received", [1, 6, 15])
def test_stateful_loaders_of_torchdata_go_on_at_the_next_sample(data, received, workers):
    stateful = pytest.importorskip("torchdata.stateful_dataloader")

    def make():
        return stateful.StatefulDataLoader(dataset(data), batch_size=None, num_workers=workers)

    uninterrupted = make()
    first, second = rows(uninterrupted), rows(uninterrupted)
    assert first == expected(data)
    assert first != second
    stopped = make()
    epoch = iter(stopped)
    for _ in range(received):
        next(epoch)
    state = pickle.loads(pickle.dumps(stopped.state_dict()))
    del epoch, stopped
    resumed = make()
    resumed.load_state_dict(state)
    assert rows(resumed) == first[received:]
    assert rows(resumed) == second


@pytest.mark.parametrize("workers", [0, 2])
def test_a_state_between_epochs_begins_the_next(data, workers):
    stateful = pytest.importorskip("torchdata.stateful_dataloader")
    make = lambda: stateful.StatefulDataLoader(  # noqa: E731
        dataset(data), batch_size=None, num_workers=workers
    )
    whole = make()
    first = rows(whole)
    state = whole.state_dict()
    second = rows(whole)
    assert first != second
    resumed = make()
    resumed.load_state_dict(state)
    assert rows(resumed) == second


@pytest.mark.parametrize("persistent", [False, True])
def test_a_state_is_refused_where_workers_make_the_batches(data, persistent):
    iterable = dataset(data, fields=("index",))
    start = iterable.state_dict()
    # An iteration that the caller left does not count once workers iterate.
    next(iter(iterable))
    around = torch.utils.data.DataLoader(
        iterable, batch_size=None, num_workers=2, persistent_workers=persistent
    )
    batches = iter(around)
    next(batches)
    with pytest.raises(tl.StateError, match="StatefulDataLoader of torchdata"):
        iterable.state_dict()
    list(batches)
    with pytest.raises(tl.StateError, match="StatefulDataLoader of torchdata"):
        iterable.state_dict()
    # The caller knows that the epoch is over.
    iterable.set_epoch(2)
    assert iterable.state_dict() == {**start, "epoch": 2}
    ours = dataset(data, fields=("index",))
    ours.set_epoch(2)
    assert indices(around) == indices(ours)
    iterable.load_state_dict({**start, "epoch": 3, "consumed": 14})
    assert iterable.state_dict() == {**start, "epoch": 3, "consumed": 14}
    next(iter(iterable))
    assert iterable.state_dict() == {**start, "epoch": 3, "consumed": 21}


def test_states_of_others_are_refused(data):
    state = dataset(data).state_dict()
    with pytest.raises(tl.StateError, match="the state's seed is 42, this data set's is 7"):
        dataset(data, seed=7).load_state_dict(state)
    with pytest.raises(tl.StateError, match="global_batch is 7, this data set's is 5"):
        dataset(data, batch_size=5).load_state_dict(state)
    with pytest.raises(tl.StateError, match="worker 1 of 2, this is worker 0 of 1"):
        dataset(data).load_state_dict({**state, "worker": 1, "workers": 2})
    with pytest.raises(tl.StateError, match="consumed is 10, expected a multiple"):
        dataset(data).load_state_dict({**state, "consumed": 10})
    whole = len(dataset(data))
    dataset(data).load_state_dict({**state, "consumed": np.int64(7 * whole)})
    with pytest.raises(tl.StateError, match=f"after {whole + 1} batches, an epoch has {whole}"):
        dataset(data).load_state_dict({**state, "consumed": 7 * (whole + 1)})
    for name in ("epoch", "consumed"):
        for changed in ({name: -7}, {name: "7"}, {name: None}):
            with pytest.raises(tl.StateError, match=f"the state's {name} is .*whole number"):
                dataset(data).load_state_dict({**state, **changed})
        rest = {key: value for key, value in state.items() if key != name}
        with pytest.raises(tl.StateError, match=f"the state's {name} is None"):
            dataset(data).load_state_dict(rest)
    for none in ({}, None):
        with pytest.raises(tl.StateError):
            dataset(data).load_state_dict(none)


def test_fields_have_the_names_that_are_asked_for(data):
    named = dataset(data, fields={"pixel_values": "image", "labels": "label"})
    assert list(next(iter(named))) == ["pixel_values", "labels"]
    everything = next(iter(dataset(data, fields=None, keys=True)))
    assert {"image", "label", "index", "valid", "key"} <= set(everything)
    assert everything["image"].shape == (7, 3, 5, 5)
    with pytest.raises(tl.SettingError, match=r"a batch has image, .*: did you mean image\?"):
        dataset(data, fields=("images",))
    assert next(iter(dataset(data, fields=("key", "valid"))))[0] == everything["key"]
    stored = pathlib.Path(data).with_suffix(".files")
    stored.mkdir()
    for number in range(3):
        (stored / f"{number}.bmp").write_bytes(bmp(image(number)))
        (stored / f"{number}.txt").write_text(f"sample {number}")
    with_texts = next(iter(dataset(stored, fields={"caption": tl.Text("txt")})))
    assert sorted(with_texts["caption"]) == [f"sample {number}" for number in range(3)]
    assert with_texts["image"].shape == (3, 3, 5, 5)
    with pytest.raises(tl.SettingError, match="fields is a set, which has no order"):
        dataset(data, fields={"image", "label"})


def test_what_workers_cannot_do_is_an_error_by_name(data):
    for name in ("output_format", "worker_id"):
        with pytest.raises(tl.SettingError, match=name):
            dataset(data, **{name: 0})
    grouped = loader(data, 2, transform=None, buckets=2)
    with pytest.raises(tl.SettingError, match=r"buckets.*num_workers"):
        list(grouped)


def test_spawned_workers_have_the_same_batches(data):
    context = multiprocessing.get_context("spawn")
    spawned = torch.utils.data.DataLoader(
        dataset(data), batch_size=None, num_workers=1, multiprocessing_context=context
    )
    assert rows(spawned) == expected(data)


RANK = """
    import json, sys
    import torch.distributed
    import turboloader as tl, turboloader.torch
    rank, data, store = int(sys.argv[1]), sys.argv[2], sys.argv[3]
    torch.distributed.init_process_group(
        "gloo", init_method=f"file://{store}", rank=rank, world_size=2
    )
    settings = {"batch_size": 5, "shuffle": True, "image_size": 4, "ranks": "auto"}
    loader = tl.DataLoader(data, **settings)
    dataset = turboloader.torch.IterableDataset(data, fields=("index",), **settings)
    around = torch.utils.data.DataLoader(dataset, batch_size=None, num_workers=2)
    print(json.dumps([
        [batch["index"].numpy().tolist() for batch in loader],
        [indices.tolist() for (indices,) in around],
    ]))
    torch.distributed.destroy_process_group()
"""


def test_ranks_are_those_of_a_process_group(data, tmp_path, run):
    command = [sys.executable, "-c", textwrap.dedent(RANK)]
    ranks = run([[*command, str(rank), str(data), str(tmp_path / "store")] for rank in (0, 1)])
    whole = tl.DataLoader(data, batch_size=10, shuffle=True, image_size=4)
    batches = [batch["index"].numpy().tolist() for batch in whole]
    for way in (0, 1):
        left, right = ranks[0][way], ranks[1][way]
        assert [one + other for one, other in zip(left, right, strict=True)] == batches
