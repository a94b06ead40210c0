"""Stored bytes where they lie in their files: ``views``."""

from __future__ import annotations

import gc

import numpy as np
import pytest
import turboloader as tl
from conftest import bmp, image

SETTINGS = {"decode": False, "shuffle": True}


def test_views_have_the_bytes_of_copies(data):
    copies = [sample for batch in tl.DataLoader(data, 8, **SETTINGS) for sample in batch["bytes"]]
    loader = tl.DataLoader(data, 8, **SETTINGS, views=True)
    views = [sample for batch in loader for sample in batch["bytes"]]
    assert [view.numpy().tobytes() for view in views] == copies
    array = views[0].numpy()
    assert (array.dtype, array.shape) == (np.uint8, (len(copies[0]),))
    assert not array.flags.writeable
    # They keep their file, whatever ends.
    del array, loader
    gc.collect()
    assert [view.numpy().tobytes() for view in views] == copies


def test_views_lie_in_one_mapping(data):
    with tl.DataLoader(data, 100, decode=False, views=True) as loader:
        (batch,) = loader
        addresses = [view.numpy().ctypes.data for view in batch["bytes"]]
        sizes = [len(view) for view in batch["bytes"]]
    # The samples of a TBL file follow each other, which copies of them do not.
    gaps = np.diff(addresses) - sizes[:-1]
    assert gaps.min() >= 0
    assert addresses[-1] - addresses[0] < 2 * sum(sizes)


def test_numbers_that_are_written_move_no_view(data):
    (batch,) = tl.DataLoader(data, 100, decode=False, views=True)
    batch["index"].numpy()[:] = 0
    assert batch["bytes"][7].numpy().tobytes() == bmp(image(7))


def test_what_is_not_mapped_is_copied(tmp_path):
    (tmp_path / "cats").mkdir()
    for index in range(3):
        (tmp_path / f"cats/{index}.bmp").write_bytes(bmp(image(index)))
    (batch,) = tl.DataLoader(tmp_path, 3, decode=False, views=True)
    assert [view.numpy().tobytes() for view in batch["bytes"]] == [
        bmp(image(index)) for index in range(3)
    ]
    assert not tl.TblReader(tmp_path).is_memory_mapped()


def test_views_are_of_stored_bytes_only(data):
    with pytest.raises(tl.SettingError, match="views: only supported with decode=False"):
        tl.DataLoader(data, views=True)
