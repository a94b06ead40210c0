"""Batches of arrays, of Python data sets and of tokens, by the names of the first turboloader.

Examples
--------
>>> from turboloader.compat import ArrayDataLoader
>>> batches = ArrayDataLoader(np.arange(10), np.arange(10) * 2, batch_size=4)
>>> [(x.tolist(), y.tolist()) for x, y in batches]
[([0, 1, 2, 3], [0, 2, 4, 6]), ([4, 5, 6, 7], [8, 10, 12, 14]), ([8, 9], [16, 18])]
"""

from __future__ import annotations

import collections
import itertools
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np
import numpy.typing as npt

from ..dataset import open as open_dataset
from ..exceptions import SettingError, StateError
from ..loader import DataLoader

__all__ = ["ArrayDataLoader", "MapDataLoader", "TokenDataLoader", "default_collate"]


class _Batches:
    """Positions of an epoch, cut into batches."""

    def __init__(
        self, count: int, batch_size: int, shuffle: bool, seed: int, drop_last: bool
    ) -> None:
        if batch_size < 1:
            raise SettingError(f"batch_size is {batch_size}, expected 1 or more")
        self.batch_size, self.shuffle = batch_size, shuffle
        self.seed, self.drop_last = seed, drop_last
        self._count = count
        self._epoch = 0

    def __len__(self) -> int:
        """Return how many batches an epoch has."""
        batches, rest = divmod(self._count, self.batch_size)
        return batches + (rest > 0 and not self.drop_last)

    def set_epoch(self, epoch: int) -> None:
        """Set the epoch of the next iteration; each has its own order."""
        self._epoch = int(epoch)

    def _chosen(self) -> Iterator[npt.NDArray[np.int64]]:
        """Yield the samples of each batch."""
        order = np.arange(self._count)
        if self.shuffle:
            order = np.random.default_rng((self.seed, self._epoch)).permutation(self._count)
        for batch in range(len(self)):
            yield order[batch * self.batch_size : (batch + 1) * self.batch_size]


class ArrayDataLoader(_Batches):
    """Rows of arrays of one length: an array for each batch, or a tuple of several.

    Parameters
    ----------
    *arrays
        NumPy arrays, memory maps, or what ``numpy.asarray`` takes; or the path of a ``.npy``,
        ``.npz`` or safetensors file or of a Zarr folder, whose arrays are read row by row, in the
        order of `turboloader.DataLoader`.
    batch_size, shuffle, seed, drop_last
        As for `DataLoader`.
    """

    def __init__(
        self,
        *arrays: Any,
        batch_size: int = 32,
        shuffle: bool = False,
        seed: int = 42,
        drop_last: bool = False,
    ) -> None:
        if not arrays:
            raise SettingError("ArrayDataLoader needs at least one array")
        self._rows: DataLoader[Any, Any] | None = None
        if any(isinstance(array, (str, os.PathLike)) for array in arrays):
            if len(arrays) > 1:
                raise SettingError("ArrayDataLoader takes arrays, or the path of one file")
            dataset = open_dataset(arrays[0])
            # A column `label` is what batches call so. They have the number of each row besides.
            self._names = [name for name in dataset.schema if name != "index"]
            self._rows = DataLoader(
                dataset, batch_size=batch_size, shuffle=shuffle, seed=seed, drop_last=drop_last
            )
            super().__init__(self._rows.num_samples, batch_size, shuffle, seed, drop_last)
            return
        # `asanyarray` leaves memory maps what they are.
        self.arrays = [np.asanyarray(array) for array in arrays]
        lengths = sorted({len(array) for array in self.arrays})
        if len(lengths) > 1:
            raise SettingError(
                f"arrays differ in their first (sample) dimension: {', '.join(map(str, lengths))}"
            )
        super().__init__(lengths[0], batch_size, shuffle, seed, drop_last)

    def __iter__(self) -> Iterator[Any]:
        for batch in self._of_arrays() if self._rows is None else self._of_file(self._rows):
            yield batch if len(batch) > 1 else batch[0]

    def _of_arrays(self) -> Iterator[tuple[Any, ...]]:
        for rows in self._chosen():
            yield tuple(np.ascontiguousarray(array[rows]) for array in self.arrays)

    def _of_file(self, rows: DataLoader[Any, Any]) -> Iterator[tuple[Any, ...]]:
        rows.set_epoch(self._epoch)
        for batch in rows:
            yield tuple(np.array(batch[name]) for name in self._names)


def default_collate(samples: Sequence[Any]) -> Any:
    """Stack samples: arrays along a new first dimension, tuples, lists and dicts part by part.

    Examples
    --------
    >>> default_collate([(np.zeros(3), 1), (np.ones(3), 2)])[1]
    array([1, 2])
    """
    first = samples[0]
    if isinstance(first, dict):
        return {name: default_collate([sample[name] for sample in samples]) for name in first}
    if isinstance(first, (tuple, list)):
        parts = [default_collate(part) for part in zip(*samples, strict=True)]
        return parts if isinstance(first, list) else tuple(parts)
    return np.stack([np.asarray(sample) for sample in samples])


class MapDataLoader(_Batches):
    """Samples of a Python object with ``__len__`` and ``__getitem__``, fetched by threads.

    Batches come in the order of the epoch, whatever the number of threads. The interpreter runs one
    thread at a time, so threads help where ``__getitem__`` waits, or calls code that releases it.

    Parameters
    ----------
    dataset
        The object, such as a ``torch.utils.data.Dataset``.
    batch_size, shuffle, seed, drop_last
        As for `DataLoader`.
    num_workers
        How many threads fetch samples.
    collate_fn
        What makes a batch of a list of samples; `default_collate` by default.
    prefetch_batches
        How many batches are fetched ahead.
    """

    def __init__(
        self,
        dataset: Any,
        batch_size: int = 32,
        *,
        shuffle: bool = False,
        num_workers: int = 4,
        collate_fn: Callable[[list[Any]], Any] | None = None,
        seed: int = 42,
        drop_last: bool = False,
        prefetch_batches: int = 2,
    ) -> None:
        for method in ("__getitem__", "__len__"):
            if not hasattr(dataset, method):
                name = type(dataset).__name__
                raise TypeError(f"dataset has type {name} without {method}")
        super().__init__(len(dataset), int(batch_size), shuffle, seed, drop_last)
        self.dataset = dataset
        self.num_workers = max(1, num_workers)
        self.prefetch_batches = max(1, prefetch_batches)
        self.collate_fn = collate_fn or default_collate

    def __iter__(self) -> Iterator[Any]:
        chosen = ([int(sample) for sample in rows] for rows in self._chosen())
        pending: collections.deque[list[Future[Any]]] = collections.deque()
        pool = ThreadPoolExecutor(self.num_workers, "turboloader-map")

        def fetch(count: int) -> None:
            for rows in itertools.islice(chosen, count):
                pending.append([pool.submit(self.dataset.__getitem__, row) for row in rows])

        try:
            fetch(self.prefetch_batches)
            while pending:
                samples = [sample.result() for sample in pending.popleft()]
                fetch(1)
                yield self.collate_fn(samples)
        finally:
            # An iteration that ends early does not wait for samples that nobody has begun.
            pool.shutdown(cancel_futures=True)


class TokenDataLoader:
    """Windows of a stream of tokens: ``(inputs, targets)``, the second one token later.

    Without ``shuffle`` windows follow each other, and start again at the end of the stream; with it
    they start anywhere. Ranks get disjoint parts of the windows of each epoch.

    Parameters
    ----------
    source
        A file of tokens, which is mapped, or an array of them.
    seq_len
        How many tokens a window has.
    batch_size, shuffle, seed
        As for `DataLoader`.
    dtype
        The type of the tokens in the file.
    steps_per_epoch
        How many batches an epoch has; by default as many as cover the stream once.
    return_targets
        Whether batches have targets too.
    pin_memory
        Whether batches are tensors of torch in pinned memory, which needs CUDA.
    device
        The CUDA device that batches are copied to by way of pinned memory.
    ring
        Checked as by the original, without effect: each batch has memory of its own.
    world_rank, world_size
        The rank of this process and the number of ranks.
    """

    def __init__(
        self,
        source: Any,
        seq_len: int,
        batch_size: int = 32,
        *,
        dtype: Any = "uint16",
        shuffle: bool = True,
        seed: int = 42,
        steps_per_epoch: int | None = None,
        return_targets: bool = True,
        pin_memory: bool = False,
        device: Any = None,
        ring: int = 4,
        world_rank: int = 0,
        world_size: int = 1,
    ) -> None:
        self._device = device
        self._torch = _torch(device, ring) if pin_memory or device is not None else None
        if not 0 <= world_rank < world_size:
            raise SettingError(f"world_rank is {world_rank}, expected 0 to {world_size - 1}")
        is_path = isinstance(source, (str, bytes, os.PathLike))
        tokens = np.memmap(source, np.dtype(dtype), "r") if is_path else np.asarray(source)
        self._tokens = tokens if tokens.ndim == 1 else tokens.reshape(-1)
        self._n = len(self._tokens)
        self.seq_len, self.batch_size = int(seq_len), int(batch_size)
        self.shuffle, self.seed, self.return_targets = shuffle, seed, return_targets
        self.world_rank, self.world_size = world_rank, world_size
        # Windows start below it.
        self._max_start = self._n - self.seq_len - int(return_targets)
        if self._max_start <= 0:
            raise SettingError(f"{self._n} tokens are too short for windows of {seq_len}")
        if steps_per_epoch is None:
            steps_per_epoch = max(1, self._max_start // (self.batch_size * self.seq_len))
        self.steps_per_epoch = int(steps_per_epoch)
        self._epoch = self._served = self._resumed = 0

    def __len__(self) -> int:
        """Return how many batches an epoch has."""
        return self.steps_per_epoch

    def set_epoch(self, epoch: int) -> None:
        """Set the epoch of the next iteration; each has its own windows."""
        self._epoch = int(epoch)

    def state_dict(self) -> dict[str, int]:
        """Return the epoch and how many of its batches were received."""
        return {"version": 1, "epoch": self._epoch, "batches_served": self._served}

    def load_state_dict(self, state: dict[str, int]) -> None:
        """Continue from ``state`` in the next iteration."""
        self._epoch, self._resumed = _position(state)

    def _start_positions(self) -> npt.NDArray[np.int64]:
        """Return where this rank's windows of the epoch start."""
        count = self.steps_per_epoch * self.batch_size * self.world_size
        if self.shuffle:
            drawn = np.random.default_rng((self.seed, self._epoch))
            starts = drawn.integers(0, self._max_start, count)
        else:
            starts = np.arange(count) * self.seq_len % self._max_start
        return starts[self.world_rank :: self.world_size]

    def _gather(self, starts: npt.NDArray[np.int64]) -> Any:
        tokens = self.seq_len + int(self.return_targets)
        windows = self._tokens[starts[:, None] + np.arange(tokens)].astype(np.int64)
        if not self.return_targets:
            return self._placed(windows)
        return self._placed(windows[:, :-1]), self._placed(windows[:, 1:])

    def _placed(self, windows: npt.NDArray[np.int64]) -> Any:
        """Return windows as an array, or where `pin_memory` and `device` want them."""
        windows = np.ascontiguousarray(windows)
        if self._torch is None:
            return windows
        pinned = self._torch.from_numpy(windows).pin_memory()
        # Torch keeps the pinned memory until the copy is done.
        return pinned if self._device is None else pinned.to(self._device, non_blocking=True)

    def __iter__(self) -> Iterator[Any]:
        starts = self._start_positions()
        first, self._resumed = self._resumed, 0
        for batch in range(first, self.steps_per_epoch):
            self._served = batch + 1
            yield self._gather(starts[batch * self.batch_size : (batch + 1) * self.batch_size])


def _torch(device: Any, ring: int) -> Any:
    """Return torch, which pinned memory and devices need, with CUDA."""
    if int(ring) < 2:
        raise SettingError(f"ring is {ring}, expected 2 or more")
    try:
        import torch
    except ImportError:
        raise RuntimeError("pin_memory and device need torch") from None
    if not torch.cuda.is_available():
        raise RuntimeError("pin_memory and device need CUDA; without it batches are arrays")
    if device is not None and torch.device(device).type != "cuda":
        raise SettingError(f"device is {device!r}, expected one of CUDA")
    return torch


def _position(state: dict[str, int]) -> tuple[int, int]:
    """Return the epoch of a state and how many batches were received."""
    try:
        return int(state["epoch"]), int(state["batches_served"])
    except KeyError as error:
        raise StateError(f"the state has no {error}") from None
