"""What several threads of Python use at the same time.

pytest-run-parallel runs each of these in four threads at once, which share what the fixtures make;
without it they run in one.
"""

from __future__ import annotations

import numpy as np
import pytest
import turboloader as tl
from conftest import HEIGHT, WIDTH, bmp, image, write
from turboloader import _native
from turboloader import transforms as T  # noqa: N812

pytestmark = pytest.mark.force_parallel_threads(4)

RANDOM = T.Compose([T.RandomResizedCrop(5), T.ColorJitter(0.4), T.RandomHorizontalFlip()])


@pytest.fixture(scope="module")
def reader(data):
    return tl.TblReader(data)


@pytest.fixture(scope="module")
def batch(data):
    return next(iter(tl.DataLoader(data, 16, image_size=(HEIGHT, WIDTH), keys=True)))


@pytest.fixture(scope="module")
def ragged(data, tmp_path_factory):
    """A batch of images in two sizes, whose list is made when it is first asked for."""
    small = write(tmp_path_factory.mktemp("ragged") / "small.tbl", 4, height=3)
    return next(iter(tl.DataLoader([data, small], 104)))


@pytest.fixture(scope="module")
def loader(data):
    return tl.DataLoader(data, 8, shuffle=True, transform=RANDOM)


@pytest.fixture(scope="module")
def samples(data):
    return _native.Samples([str(data)], T.recipe(RANDOM), seed=42)


@pytest.fixture(scope="module")
def expected(data):
    """Each sample's pixels in epoch 0, made by one thread."""
    loader = tl.DataLoader(data, 10, transform=RANDOM, num_workers=1)
    return [pixels.copy() for batch in loader for pixels in batch["image"].numpy()]


def test_one_reader(reader):
    for index in range(100):
        assert reader[index] == bmp(image(index))
        assert reader.entry(index)["label"] == index % 7


def test_one_batch(batch):
    for _ in range(20):
        assert batch["key"] == [f"{index:05d}.bmp" for index in range(16)]
        for index, sample in enumerate(batch):
            assert sample["label"] == index % 7
            np.testing.assert_array_equal(sample["image"], image(index))


def test_one_list_of_images(ragged):
    images = ragged["image"]
    # They are made once, whoever asks first.
    again = ragged["image"]
    assert [image.data_ptr() for image in again] == [image.data_ptr() for image in images]
    for index in range(100):
        np.testing.assert_array_equal(images[index].numpy(), image(index))
    np.testing.assert_array_equal(images[100].numpy(), image(0, height=3))


def test_one_data_set(samples, expected):
    for index in reversed(range(100)):
        np.testing.assert_array_equal(samples.image(index, 0).numpy(), expected[index])


def test_one_transform(expected):
    for index in range(0, 100, 9):
        made = RANDOM(image(index), seed=42, epoch=0, sample=index)
        np.testing.assert_array_equal(made, expected[index])


def test_one_loader_is_asked(loader):
    state = loader.state_dict()
    for _ in range(50):
        assert loader.state_dict() == state
        assert (len(loader), loader.num_samples) == (13, 100)
        assert "13 of 8" in loader.explain()
        assert loader.report().batches == 0


def test_loaders_beside_each_other(data, expected):
    seen = 0
    for batch in tl.DataLoader(data, 7, shuffle=True, transform=RANDOM):
        for index, pixels in zip(batch["index"].numpy(), batch["image"].numpy(), strict=True):
            np.testing.assert_array_equal(pixels, expected[index])
            seen += 1
    assert seen == 100
