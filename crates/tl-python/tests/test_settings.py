"""What is said of a loader that cannot be, or that says two things, is refused by name."""

from __future__ import annotations

import errno
import gc
import os
import pickle
import threading
import weakref

import numpy as np
import pytest
import turboloader as tl
from turboloader import transforms as T  # noqa: N812


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"batch_size": "8"}, "^batch_size: .*str"),
        ({"batch_size": -1}, "^batch_size: .*negative"),
        ({"boxes": {"column": "json", "boxes": 3}}, r"^boxes\.boxes: .*int"),
        ({"mask": {"column": "png", "dtpye": "int64"}}, "mask has no 'dtpye', only column, dtype"),
        ({"boxes": {"column": "json"}}, "boxes needs 'boxes'"),
        ({"drop_last": True, "tail": "pad"}, "drop_last and tail='pad'"),
        ({"prefetch_batches": 3, "prefetch_factor": 2}, "prefetch_batches and prefetch_factor"),
        ({"decode": False, "dtype": "uint8"}, "dtype: decode=False"),
        ({"decode": False, "channels_last": False}, "channels_last: decode=False"),
        ({"decode": False, "batch_transform": T.MixUp(num_classes=2)}, "batch_transform: decode"),
        ({"worker_id": 2, "num_workers": 2}, "worker_id is 2, num_workers 2"),
        ({"worker_id": 0}, "worker_id is 0, num_workers 0"),
        (
            {"worker_id": 0, "num_workers": 2, "world_rank": 0, "world_size": 2},
            "worker_id and world_rank",
        ),
        ({"format": "tar"}, "format is tar, but the data set is of tbl"),
        ({"format": "idv"}, "format is idv, but the data set is of tbl"),
        ({"format": "zip"}, "format is zip, none of auto, folder"),
    ],
)
def test_what_cannot_be_is_refused_by_name(data, settings, message):
    with pytest.raises(tl.SettingError, match=message):
        tl.DataLoader(data, **settings)


def test_settings_that_agree_are_taken(data):
    assert len(tl.DataLoader(data, 8, decode=False, drop_last=True, tail="drop")) == 12
    assert len(tl.DataLoader(data, 8, decode=False, format="tbl")) == 13
    tl.DataLoader(data, 8, decode=False, batch_transform=[], prefetch_factor=2)


def test_a_recipe_says_itself_how_pixels_lie(data):
    recipe = tl.DataLoader(data, image_size=4, dtype="float32").recipe
    loader = tl.DataLoader(data, transform=recipe, output_format="numpy")
    assert next(iter(loader))["image"].shape == (32, 3, 4, 4)
    for name, value in {"channels_last": False, "dtype": "uint8", "image_size": 0}.items():
        with pytest.raises(tl.SettingError, match=f"{name}: a recipe says this itself"):
            tl.DataLoader(data, transform=recipe, **{name: value})


def test_a_file_that_is_not_there_is_the_built_in_error_too(tmp_path):
    path = str(tmp_path / "none.tar")
    with pytest.raises(FileNotFoundError) as caught:
        tl.DataLoader(path)
    for error in (caught.value, pickle.loads(pickle.dumps(caught.value))):
        assert isinstance(error, tl.StorageError)
        assert (error.errno, error.filename, error.shard) == (errno.ENOENT, path, path)
        assert str(error).count("none.tar") == 1


def test_errors_keep_their_place_in_another_process():
    error = tl.DecodeError("broken")
    error.sample, error.offset = 3, 512
    copy = pickle.loads(pickle.dumps(error))
    assert (type(copy), str(copy), copy.sample, copy.offset) == (tl.DecodeError, "broken", 3, 512)


def test_a_fork_of_a_process_that_waits_is_told_at_once(data):
    """Another thread holds the epoch's lock while the process is forked."""
    inside, leave = threading.Event(), threading.Event()

    def wait(image):
        inside.set()
        leave.wait(60)
        return image

    loader = tl.DataLoader(data, batch_size=4, num_workers=1, transform=[wait, T.Resize(4)])
    epoch = iter(loader)
    waiting = threading.Thread(target=lambda: next(epoch))
    waiting.start()
    assert inside.wait(60)
    child = os.fork()
    if child == 0:
        status = 1
        try:
            refused = 0
            for ask in (lambda: next(epoch), epoch.state, epoch.remaining, lambda: iter(loader)):
                try:
                    ask()
                except tl.ForkedError:
                    refused += 1
            loader.close()
            status = 0 if refused == 4 else 2
        finally:
            os._exit(status)
    try:
        for _ in range(600):
            done, status = os.waitpid(child, os.WNOHANG)
            if done:
                break
            leave.wait(0.1)
        else:
            os.kill(child, 9)
            os.waitpid(child, 0)
            pytest.fail("the child hangs")
    finally:
        leave.set()
        waiting.join()
    assert os.waitstatus_to_exitcode(status) == 0
    loader.close()


def brighter(image):
    return np.minimum(image, 250) + np.uint8(5)


def test_functions_go_into_samples_by_number_too(data):
    torch = pytest.importorskip("torch")
    import turboloader.torch as tlt

    transform = [T.Resize((4, 4)), brighter]
    loader = tl.DataLoader(data, transform=transform, batch_size=100)
    expected = torch.from_numpy(next(iter(loader))["image"].numpy()).permute(0, 3, 1, 2)
    dataset = pickle.loads(pickle.dumps(tlt.Dataset(data, transform=transform)))
    assert torch.equal(torch.stack([dataset[index][0] for index in range(100)]), expected)


class Trainer:
    """It has the loader, whose transform is its own method."""

    def __init__(self, data):
        self.loader = tl.DataLoader(data, batch_size=4, transform=[T.Resize((4, 4)), self.same])
        self.is_whole = True

    def same(self, image):
        assert self.is_whole
        return image


def test_a_loader_whose_function_leads_back_to_it_is_collected(data):
    trainer = Trainer(data)
    next(iter(trainer.loader))
    alive = weakref.ref(trainer)
    del trainer
    gc.collect()
    assert alive() is None


def test_functions_of_an_epoch_that_is_left_stay_whole(data):
    batches = iter(Trainer(data).loader)
    gc.collect()
    assert sum(len(batch) for batch in batches) == 100
