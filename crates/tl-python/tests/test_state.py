"""States and batches under conditions that nobody has chosen."""

from __future__ import annotations

import itertools
import json

import numpy as np
import pytest
import turboloader as tl
from conftest import HEIGHT, WIDTH, image
from turboloader import transforms as T  # noqa: N812

hypothesis = pytest.importorskip("hypothesis")
from hypothesis import strategies as st  # noqa: E402

SETTINGS = hypothesis.settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[hypothesis.HealthCheck.function_scoped_fixture],
)

RANDOM = [T.RandomResizedCrop(3), T.RandomHorizontalFlip()]


def content(batches):
    return [
        (batch["index"].numpy().tolist(), batch["image"].numpy().tobytes()) for batch in batches
    ]


@SETTINGS
@hypothesis.given(
    batch_size=st.integers(1, 120),
    shuffle=st.sampled_from([False, True, "block:16", "block:8x4"]),
    tail=st.sampled_from(["drop", "pad", "uneven"]),
    seed=st.integers(0, 2**64 - 1),
    epoch=st.integers(0, 2**32 - 2),
    received=st.floats(0, 1),
    threads=st.integers(1, 3),
)
def test_a_state_after_some_batches_has_the_same_rest(
    data, batch_size, shuffle, tail, seed, epoch, received, threads
):
    # An epoch without a batch is refused.
    hypothesis.assume(tail != "drop" or batch_size <= 100)
    settings = {"shuffle": shuffle, "seed": seed, "tail": tail, "transform": RANDOM}
    loader = tl.DataLoader(data, batch_size, **settings)
    loader.set_epoch(epoch)
    whole = content(loader)
    assert len(whole) == len(loader)
    loader.set_epoch(epoch)
    batches = iter(loader)
    count = round(received * len(whole))
    first = content(itertools.islice(batches, count))
    # What was prepared ahead is not counted, and the state is data.
    state = json.loads(json.dumps(loader.state_dict()))
    other = tl.DataLoader(data, batch_size, num_workers=threads, **settings)
    other.load_state_dict(state)
    other.set_epoch(epoch)
    assert first == whole[:count]
    assert content(other) == whole[count:]


@SETTINGS
@hypothesis.given(
    split=st.sampled_from([(1, 12), (2, 6), (3, 4), (4, 3), (6, 2), (12, 1)]),
    other_split=st.sampled_from([(1, 12), (2, 6), (3, 4), (4, 3), (6, 2), (12, 1)]),
    steps=st.integers(0, 8),
)
def test_ranks_change_hands_anywhere(data, split, other_split, steps):
    settings = {"shuffle": True, "tail": "drop", "transform": RANDOM}

    def ranks(world, batch_size, state=None):
        loaders = [
            tl.DataLoader(data, batch_size, ranks=tl.Ranks(rank, world), **settings)
            for rank in range(world)
        ]
        for loader in loaders:
            if state is not None:
                loader.load_state_dict(state)
                loader.set_epoch(0)
        return loaders

    def rows(loaders, steps):
        epochs = [iter(loader) for loader in loaders]
        return [[*content(next(epoch) for epoch in epochs)] for _ in range(steps)]

    def flat(step):
        indices = [index for part, _ in step for index in part]
        return indices, b"".join(pixels for _, pixels in step)

    one = ranks(1, 12)
    whole = [flat(step) for step in rows(one, len(one[0]))]
    before = ranks(*split)
    first = [flat(step) for step in rows(before, steps)]
    states = [loader.state_dict() for loader in before]
    assert states.count(states[0]) == len(states)
    rest = rows(ranks(*other_split, state=states[0]), len(whole) - steps)
    assert first + [flat(step) for step in rest] == whole


@SETTINGS
@hypothesis.given(steps=st.integers(0, 9), source=st.sampled_from(["own", 0, 1]))
def test_uneven_ranks_receive_every_sample_once(data, steps, source):
    def ranks():
        settings = {"shuffle": True, "tail": "uneven"}
        return [tl.DataLoader(data, 6, ranks=tl.Ranks(rank, 2), **settings) for rank in range(2)]

    def indices(batches):
        return [index for batch in batches for index in batch["index"].tolist()]

    before = ranks()
    assert [len(loader) for loader in before] == [9, 8]
    first = [
        [indices([batch]) for batch in itertools.islice(iter(loader), steps)] for loader in before
    ]
    states = [loader.state_dict() for loader in before]
    received = []
    after = ranks()
    for rank, loader in enumerate(after):
        state = states[rank if source == "own" else source]
        loader.load_state_dict(state)
        counted = state["consumed"] // state["global_batch"]
        received += itertools.chain(*first[rank][:counted])
        # The rest of epoch 0, which may have no batch for this rank.
        received += indices(loader) if loader.epoch == 0 else []
        assert loader.epoch == 1
    assert sorted(received) == list(range(100))
    assert sorted(indices(after[0]) + indices(after[1])) == list(range(100))


@SETTINGS
@hypothesis.given(
    index=st.one_of(
        st.integers(-8, 7),
        st.slices(8),
        st.tuples(st.slices(8), st.slices(HEIGHT)),
        st.tuples(st.integers(-8, 7), st.just(...), st.integers(0, 2)),
        st.lists(st.integers(-8, 7), min_size=1),
    )
)
def test_tensors_are_sliced_as_arrays_are(data, index):
    expected = np.stack([image(number) for number in range(8)])
    batch = next(iter(tl.DataLoader(data, 8, image_size=(HEIGHT, WIDTH))))
    found = np.asarray(batch["image"][index])
    np.testing.assert_array_equal(found, expected[index])
