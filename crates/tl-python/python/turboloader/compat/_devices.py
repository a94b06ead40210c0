"""Batches of other loaders on a device, a few ahead of the consumer."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sized
from typing import Any, cast

import numpy as np

from .._checks import one_or_more


def _mapped(value: Any, change: Callable[[Any], Any]) -> Any:
    """Return a batch with its arrays and tensors changed."""
    if isinstance(value, Mapping):
        return {key: _mapped(one, change) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(_mapped(one, change) for one in value)
    return change(value)


class _DeviceLoader:
    """A loader whose batches are moved."""

    def __init__(self, loader: Iterable[Any]) -> None:
        self.loader = loader

    def __len__(self) -> int:
        return len(cast("Sized", self.loader))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name == "loader":
            raise AttributeError(name)
        return getattr(self.loader, name)


class CudaPrefetcher(_DeviceLoader):
    """Copies the batches of a loader to a CUDA device, one batch ahead, on a stream of its own.

    Arrays and tensors anywhere in a batch become tensors of torch on the device, which the current
    stream may use at once. `turboloader.DataLoader` with ``device="cuda"`` does more: it copies
    pixels and converts them there.
    """

    def __init__(self, loader: Iterable[Any], device: Any = "cuda") -> None:
        super().__init__(loader)
        self.device = device

    def __iter__(self) -> Iterator[Any]:
        import torch

        device = torch.device(self.device)
        stream = torch.cuda.Stream(device)

        def moved(value: Any) -> Any:
            if isinstance(value, np.ndarray) and value.dtype.kind in "biuf":
                value = torch.from_numpy(np.ascontiguousarray(value))
            if not isinstance(value, torch.Tensor):
                return value
            source = value if value.is_cuda else value.pin_memory()
            return source.to(device, non_blocking=True)

        def handed_over(ahead: tuple[Any, torch.cuda.Event]) -> Any:
            batch, ready = ahead
            current = torch.cuda.current_stream(device)
            current.wait_event(ready)

            def recorded(value: Any) -> Any:
                # Its memory was allocated for the other stream, and is read on this one.
                if isinstance(value, torch.Tensor):
                    value.record_stream(current)
                return value

            return _mapped(batch, recorded)

        ahead: tuple[Any, torch.cuda.Event] | None = None
        for batch in self.loader:
            with torch.cuda.stream(stream):
                following = _mapped(batch, moved)
                ready = torch.cuda.Event()
                ready.record(stream)
            if ahead is not None:
                yield handed_over(ahead)
            ahead = (following, ready)
        if ahead is not None:
            yield handed_over(ahead)


class JaxDeviceLoader(_DeviceLoader):
    """Puts the batches of a loader on devices of JAX, ``prefetch`` batches ahead.

    Batches are pairs of images and metadata, as the loaders of this module return them, and stay
    pairs unless ``with_meta`` is false. Images become arrays on ``device``, or with ``sharding``,
    and of ``dtype``; metadata stays on the host.
    """

    def __init__(
        self,
        loader: Iterable[Any],
        *,
        sharding: Any = None,
        device: Any = None,
        prefetch: int = 2,
        dtype: Any = None,
        with_meta: bool = True,
    ) -> None:
        super().__init__(loader)
        self.target = device if sharding is None else sharding
        self.prefetch = one_or_more("prefetch", prefetch)
        self.dtype, self.with_meta = dtype, with_meta

    def _put(self, batch: Any) -> Any:
        import jax

        images, meta = batch
        images = jax.device_put(images, self.target)
        if self.dtype is not None:
            images = images.astype(self.dtype)
        return (images, meta) if self.with_meta else images

    def __iter__(self) -> Iterator[Any]:
        ahead: deque[Any] = deque()
        for batch in self.loader:
            ahead.append(self._put(batch))
            if len(ahead) > self.prefetch:
                yield ahead.popleft()
        while ahead:
            yield ahead.popleft()
