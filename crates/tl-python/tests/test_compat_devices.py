"""Loaders of the first turboloader that copy to devices, where there are some."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from turboloader import compat

Batch = tuple[np.ndarray, dict[str, Any]]


class Batches:
    """Batches in memory, counted as they are taken."""

    def __init__(self, count: int) -> None:
        self.taken = 0
        self.batches: list[Batch] = [
            (
                np.full((2, 3, 4, 4), n, np.float32),
                {"labels": np.array([n, n]), "names": ["a", "b"]},
            )
            for n in range(count)
        ]

    def __len__(self) -> int:
        return len(self.batches)

    def __iter__(self) -> Any:
        for batch in self.batches:
            self.taken += 1
            yield batch


def test_batches_of_a_cuda_prefetcher_are_on_the_device():
    torch = pytest.importorskip("torch")
    with warnings.catch_warnings():
        # Torch warns of a driver that is too old for it.
        warnings.simplefilter("ignore")
        if not torch.cuda.is_available():
            pytest.skip("no CUDA device")
    loader = compat.CudaPrefetcher(Batches(5), "cuda:0")
    assert len(loader) == 5
    side = torch.cuda.Stream()
    seen = []
    with torch.cuda.stream(side):
        for images, meta in loader:
            torch.cuda._sleep(20_000_000)
            assert images.device == meta["labels"].device == torch.device("cuda:0")
            assert meta["names"] == ["a", "b"]
            seen.append((images.sum(), meta["labels"].sum()))
            del images, meta
    torch.cuda.synchronize()
    assert [tuple(map(float, pair)) for pair in seen] == [(96.0 * n, 2.0 * n) for n in range(5)]


@pytest.mark.parametrize("with_meta", [True, False])
def test_batches_of_a_jax_loader_are_arrays_of_jax_a_few_ahead(with_meta):
    jax = pytest.importorskip("jax")
    batches = Batches(5)
    device = jax.devices()[0]
    options = {"device": device, "prefetch": 2, "dtype": "float16", "with_meta": with_meta}
    loader = compat.JaxDeviceLoader(batches, **options)
    for number, batch in enumerate(loader):
        images = batch[0] if with_meta else batch
        assert list(images.devices()) == [device]
        assert images.dtype == "float16"
        assert np.array_equal(np.asarray(images), batches.batches[number][0])
        assert batches.taken == min(number + 3, 5)
    assert number == 4


def test_a_device_loader_has_what_its_loader_has():
    batches = Batches(3)
    loader = compat.JaxDeviceLoader(batches)
    assert (len(loader), loader.taken) == (3, 0)
    assert not hasattr(loader, "absent")
    with pytest.raises(ValueError, match="prefetch is 0, expected"):
        compat.JaxDeviceLoader(batches, prefetch=0)
