"""Batches that are waited for, or not: ``next`` of an iteration, with a time."""

from __future__ import annotations

import threading
import time

import pytest
import turboloader as tl

T = tl.transforms


def test_next_gives_the_batches_of_the_iteration(data):
    expected = [batch["index"].tolist() for batch in tl.DataLoader(data, 32, image_size=4)]
    for timeout in (None, 60, 60.0):
        batches = iter(tl.DataLoader(data, 32, image_size=4))
        seen = [batches.next(timeout)["index"].tolist() for _ in range(4)]
        assert seen == expected
        with pytest.raises(StopIteration):
            batches.next(timeout)
        with pytest.raises(StopIteration):
            next(batches)


def test_a_batch_that_is_not_ready_stays_the_next_one(data):
    may_go = threading.Event()

    def held(pixels):
        assert may_go.wait(60)
        return pixels

    loader = tl.DataLoader(data, 10, [T.Resize((6, 10)), T.Lambda(held)], num_workers=1)
    with loader:
        batches = iter(loader)
        start = time.monotonic()
        with pytest.raises(TimeoutError, match="no batch is ready after 0 s"):
            batches.next(timeout=0)
        with pytest.raises(tl.BatchTimeoutError, match=r"no batch is ready after 0\.2 s"):
            batches.next(timeout=0.2)
        assert 0.2 <= time.monotonic() - start < 30
        state = loader.state_dict()
        may_go.set()
        assert batches.next(60).number == 0
        assert loader.state_dict() != state
        # Once it is ready, nobody waits.
        end = time.monotonic() + 60
        while True:
            try:
                batch = batches.next(0)
            except tl.BatchTimeoutError:
                assert time.monotonic() < end
            else:
                break
        assert batch.number == 1
        assert [batch.number for batch in batches] == list(range(2, 10))


def test_fields_that_are_picked_come_with_a_time_too(data):
    batches = iter(tl.DataLoader(data, 50, image_size=4, fields=("index", "label")))
    indices, labels = batches.next(timeout=60)
    assert indices.tolist() == list(range(50))
    assert labels.tolist() == [index % 7 for index in range(50)]


@pytest.mark.parametrize("timeout", [-1, float("nan"), float("-inf")])
def test_times_that_cannot_be_are_refused(data, timeout):
    batches = iter(tl.DataLoader(data, 50, image_size=4))
    with pytest.raises(tl.SettingError, match=r"timeout is .*, expected seconds"):
        batches.next(timeout)
    assert next(batches).number == 0
