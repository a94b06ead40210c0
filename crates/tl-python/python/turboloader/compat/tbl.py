"""Raw images in TBL files: decoded once, and served from the mapped file.

Examples
--------
>>> from turboloader.compat import TblRawImageLoader, preprocess_to_tbl
>>> preprocess_to_tbl("train.tar", "raw.tbl", image_size=64)
12
>>> images, meta = next(iter(TblRawImageLoader("raw.tbl", batch_size=4, shuffle=False)))
>>> images.shape, meta["indices"].tolist()
((4, 3, 64, 64), [0, 1, 2, 3])
"""

from __future__ import annotations

import os
import queue
import threading
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from .. import transforms as T  # noqa: N812
from .._files import TblReader, TblWriter
from .._files import open_raw_view as _open_raw_view
from ..exceptions import SettingError
from ..loader import DataLoader as _Loader
from ._errors import original_errors
from .sequence import _Batches, _position

__all__ = [
    "TblRawImageLoader",
    "crop_resize_normalize_u8_gather",
    "normalize_u8_batch",
    "normalize_u8_gather",
    "open_raw_view",
    "preprocess_to_tbl",
]

_FLOATS = ("float32", "float16")

Pixels = npt.NDArray[np.uint8]
Numbers = npt.NDArray[Any]


def preprocess_to_tbl(
    source: Any,
    dst: str | os.PathLike[str],
    image_size: int | tuple[int, int] = 160,
    *,
    batch_size: int = 64,
    num_workers: int = 8,
    compression: bool = False,
) -> int:
    """Decode and resize every image of a data set, and write the pixels into a TBL file.

    Returns how many there are. Labels and names of classes are kept.
    """
    size = [image_size] * 2 if isinstance(image_size, int) else list(image_size)
    with original_errors(opening="TAR"):
        loader = _Loader(
            source, batch_size, T.Resize(size, antialias=False), num_workers=num_workers
        )
    names = loader.class_names or None
    with (
        original_errors(),
        loader,
        TblWriter(dst, lz4=compression, overwrite=True, class_names=names) as writer,
    ):
        for batch in loader:
            for image, label in zip(batch["image"].numpy(), batch["label"].tolist(), strict=True):
                writer.add_pixels(image, label=None if label < 0 else label)
        count = writer.num_samples
    return count


def open_raw_view(path: str | os.PathLike[str]) -> tuple[Pixels, int, int]:
    """Map the pixels of a TBL file of raw images of one size.

    Returns them as an array of (samples, height, width, 3) that cannot be written, with the height
    and the width.
    """
    with original_errors(opening="TBL"):
        reader = TblReader(path)
        entries = [reader.entry(index) for index in range(len(reader))]
        if not entries:
            raise SettingError(f"{os.fspath(path)} has no samples")
        formats = sorted({str(entry["format"]) for entry in entries} - {"RAW_U8"})
        if formats:
            raise SettingError(
                f"{os.fspath(path)} has samples of {', '.join(formats)}, expected RAW_U8: "
                "preprocess_to_tbl makes them"
            )
        if any(entry["stored_bytes"] != entry["bytes"] for entry in entries):
            raise SettingError(f"{os.fspath(path)} is compressed: write it without compression")
        sizes = sorted({(entry["height"], entry["width"]) for entry in entries})
        if len(sizes) > 1:
            raise SettingError(
                f"{os.fspath(path)} has images of mixed sizes: {sizes[0]}, {sizes[1]} and so on"
            )
        return _open_raw_view(path).numpy(), *sizes[0]


def normalize_u8_batch(
    images: Pixels,
    out: Numbers,
    mean: Sequence[float] | None = None,
    std: Sequence[float] | None = None,
) -> None:
    """Scale pixels to 0 to 1 and normalise them, into ``out``.

    Parameters
    ----------
    images
        Pixels of (samples, height, width, 3).
    out
        A ``float32`` or ``float16`` array of (samples, 3, height, width), or with channels last.
    mean, std
        Three numbers each, or neither for the scale alone. The arithmetic is that of `Normalize`.
    """
    count, height, width, _ = images.shape
    is_last = _checked_out(out, count, (height, width))
    _store(_normalized(images, mean, std), out, is_last)


def normalize_u8_gather(
    images: Pixels,
    indices: npt.NDArray[np.int64],
    out: Numbers,
    mean: Sequence[float] | None = None,
    std: Sequence[float] | None = None,
) -> None:
    """Do `normalize_u8_batch` to some of the images."""
    normalize_u8_batch(images[_checked_indices(images, indices)], out, mean, std)


def crop_resize_normalize_u8_gather(
    images: Pixels,
    indices: npt.NDArray[np.int64],
    crops: Numbers,
    flips: Numbers,
    out: Numbers,
    mean: Sequence[float] | None = None,
    std: Sequence[float] | None = None,
) -> None:
    """Cut a rectangle out of each image, resize it to the size of ``out``, and normalise it.

    Parameters
    ----------
    images, out, mean, std
        As for `normalize_u8_batch`.
    indices
        The images to take.
    crops
        For each, (x, y, width, height) in pixels; between pixels values are interpolated linearly.
    flips
        For each, whether it is mirrored.
    """
    indices = _checked_indices(images, indices)
    count = len(indices)
    for name, array, shape in (("crops", crops, (count, 4)), ("flips", flips, (count,))):
        if np.shape(array) != shape:
            raise SettingError(f"{name} is of shape {np.shape(array)}, expected {shape}")
    is_last = _checked_out(out, count, None)
    height, width = out.shape[1:3] if is_last else out.shape[2:4]
    for row, (index, crop, flip) in enumerate(zip(indices, crops, flips, strict=True)):
        resized = _resized(images[index], crop, height, width)
        pixels = resized[:, ::-1] if flip else resized
        _store(_normalized(pixels[None], mean, std), out[row : row + 1], is_last)


def _resized(image: Pixels, crop: Numbers, height: int, width: int) -> Numbers:
    """Return a rectangle of an image in another size, by linear interpolation without smoothing."""
    x, y, across, down = (float(value) for value in crop)
    upper, lower, of_lower = _weights(y, down, height, image.shape[0])
    left, right, of_right = _weights(x, across, width, image.shape[1])
    rows = image[upper] * (1 - of_lower)[:, None, None] + image[lower] * of_lower[:, None, None]
    of_right = of_right[:, None]
    made: Numbers = rows[:, left] * (1 - of_right) + rows[:, right] * of_right
    return made


def _weights(start: float, length: float, count: int, size: int) -> tuple[Any, Any, Numbers]:
    """Return, for each of ``count`` places, two neighbours and the weight of the second."""
    places = start + (np.arange(count) + 0.5) / count * length - 0.5
    places = places.clip(0, size - 1)
    first = places.astype(np.int64)
    second = np.minimum(first + 1, size - 1)
    return first, second, (places - first).astype(np.float32)


def _normalized(
    pixels: Numbers, mean: Sequence[float] | None, std: Sequence[float] | None
) -> npt.NDArray[np.float32]:
    """Return what `ToTensor` and `Normalize` make of pixels, to the bit."""
    if (mean is None) != (std is None):
        raise SettingError("mean and std: only one is given; pass both, or neither")
    floats = pixels.astype(np.float32)
    floats *= np.float32(1 / 255)
    if mean is not None:
        floats -= np.asarray(mean, np.float32)
        floats /= np.asarray(std, np.float32)
    return floats


def _checked_indices(images: Pixels, indices: Any) -> npt.NDArray[np.int64]:
    checked: npt.NDArray[np.int64] = np.asarray(indices, np.int64)
    bad = checked[(checked < 0) | (checked >= len(images))]
    if bad.size:
        raise SettingError(f"index {bad[0]} is out of range, there are {len(images)} images")
    return checked


def _checked_out(out: Numbers, count: int, size: tuple[int, int] | None) -> bool:
    """Refuse an array that cannot take the images, and return whether its channels come last."""
    if out.dtype.name not in _FLOATS:
        raise SettingError(f"out has {out.dtype}, expected float32 or float16")
    if not out.flags.c_contiguous:
        raise SettingError("out is not contiguous")
    shape = out.shape
    if len(shape) == 4 and shape[0] == count:
        for is_last, sides in ((False, shape[2:]), (True, shape[1:3])):
            channels = shape[3] if is_last else shape[1]
            if channels == 3 and size in (None, sides):
                return is_last
    expected = "(height, width)" if size is None else size
    raise SettingError(f"out is of shape {shape}, expected {count} images of {expected}")


def _store(images: npt.NDArray[np.float32], out: Numbers, is_last: bool) -> None:
    out[...] = images if is_last else images.transpose(0, 3, 1, 2)


# torchvision's RandomResizedCrop.
_ATTEMPTS = 10
# What the draws of an epoch are for.
_CROPS, _FLIPS = 2, 1


class TblRawImageLoader(_Batches):
    """Batches of a TBL file of raw images, ``(images, meta)``, which decodes nothing.

    ``meta`` has ``indices`` and, with ``train_aug``, ``crops`` and ``flips``. Batches depend on
    seed, epoch and rank alone. `turboloader.DataLoader` reads the same files with every transform,
    faster than this, which works in NumPy.

    Parameters
    ----------
    path
        The file, as `preprocess_to_tbl` writes it.
    batch_size, shuffle, seed, drop_last
        As for `DataLoader`.
    mean, std
        The normalisation; ImageNet's by default, None for 0 to 1.
    pin_memory
        Whether images are tensors of torch, in pinned memory where there is a device for it.
    hflip_prob
        The part of the images that is mirrored.
    prefetch_batches
        How many batches a thread makes ahead.
    train_aug, scale, ratio
        Whether a random rectangle is cut out of each image, its share of the image, and its width
        by its height.
    image_size
        The size of the images in batches; that of the file by default.
    dtype
        ``"float32"`` or ``"float16"``.
    channels_last
        Whether channels come last.
    world_rank, world_size
        The rank of this process and the number of ranks. Ranks have equal numbers of samples.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        batch_size: int = 64,
        *,
        mean: Sequence[float] | None = (0.485, 0.456, 0.406),
        std: Sequence[float] | None = (0.229, 0.224, 0.225),
        shuffle: bool = True,
        seed: int = 42,
        drop_last: bool = False,
        pin_memory: bool = False,
        ring: int = 4,
        hflip_prob: float = 0.0,
        prefetch_batches: int = 2,
        train_aug: bool = False,
        scale: tuple[float, float] = (0.08, 1.0),
        ratio: tuple[float, float] = (3 / 4, 4 / 3),
        image_size: int | tuple[int, int] | None = None,
        dtype: str = "float32",
        channels_last: bool = False,
        world_rank: int = 0,
        world_size: int = 1,
    ) -> None:
        if dtype not in _FLOATS:
            raise SettingError(f"dtype is {dtype!r}, expected one of {', '.join(_FLOATS)}")
        if not 0 <= world_rank < world_size:
            raise SettingError(f"world_rank is {world_rank}, expected 0 to {world_size - 1}")
        if (mean is None) != (std is None):
            raise SettingError("mean and std: only one is given; pass both, or neither")
        self._view, *self._sides = open_raw_view(path)
        self.num_samples = len(self._view)
        self.samples_per_rank = self.num_samples // world_size
        if self.samples_per_rank == 0:
            raise SettingError(f"{self.num_samples} samples are fewer than {world_size} ranks")
        super().__init__(self.samples_per_rank, int(batch_size), shuffle, seed, drop_last)
        self.path = os.fspath(path)
        self.mean = None if mean is None else list(mean)
        self.std = None if std is None else list(std)
        self.hflip_prob, self.train_aug = hflip_prob, train_aug
        self.scale, self.ratio = scale, ratio
        self.dtype, self.channels_last = dtype, channels_last
        self.world_rank, self.world_size = world_rank, world_size
        self._is_pinned, self._ahead = pin_memory, max(0, prefetch_batches)
        size = (image_size, image_size) if isinstance(image_size, int) else image_size
        self._size = list(self._sides if size is None else size)
        self._resample = train_aug or self._size != self._sides
        self._served = self._resumed = 0

    def state_dict(self) -> dict[str, int]:
        """Return the epoch and how many of its batches were received."""
        return {"version": 1, "epoch": self._epoch, "batches_served": self._served}

    def load_state_dict(self, state: dict[str, int]) -> None:
        """Continue from ``state`` in the next iteration."""
        self._epoch, self._resumed = _position(state)

    def _drawn(self, purpose: int) -> np.random.Generator:
        return np.random.default_rng((self.seed, self._epoch, purpose, self.world_rank))

    def _order(self) -> npt.NDArray[np.int64]:
        """Return the samples of this rank, in order."""
        order = np.arange(self.num_samples)
        if self.shuffle:
            order = np.random.default_rng((self.seed, self._epoch)).permutation(self.num_samples)
        return order[self.world_rank :: self.world_size][: self.samples_per_rank]

    def _crops(self) -> npt.NDArray[np.float32]:
        """Return the rectangle of each sample of the epoch, as torchvision draws it."""
        height, width = self._sides
        crops = np.tile(np.array([0, 0, width, height], np.float32), (self.samples_per_rank, 1))
        if self.train_aug:
            drawn = self._drawn(_CROPS)
            for crop in crops:
                crop[:] = self._crop(drawn, height, width)
        return crops

    def _crop(self, drawn: np.random.Generator, height: int, width: int) -> tuple[int, ...]:
        smallest, largest = self.scale
        narrowest, widest = self.ratio
        for _ in range(_ATTEMPTS):
            area = height * width * drawn.uniform(smallest, largest)
            ratio = np.exp(drawn.uniform(np.log(narrowest), np.log(widest)))
            across, down = round(np.sqrt(area * ratio)), round(np.sqrt(area / ratio))
            if 0 < across <= width and 0 < down <= height:
                x, y = drawn.integers(0, width - across + 1), drawn.integers(0, height - down + 1)
                return int(x), int(y), across, down
        across = min(width, round(height * widest))
        down = min(height, round(width / narrowest))
        return (width - across) // 2, (height - down) // 2, across, down

    def __iter__(self) -> Iterator[tuple[Any, dict[str, Any]]]:
        order, crops = self._order(), self._crops()
        flips = self._drawn(_FLIPS).random(len(order)) < self.hflip_prob
        first, self._resumed = self._resumed, 0
        made = (self._made(batch, order, crops, flips) for batch in range(first, len(self)))
        self._served = first
        for images, meta in _ahead(made, self._ahead) if self._ahead else made:
            self._served += 1
            yield self._handed_out(images), meta

    def _made(
        self, batch: int, order: npt.NDArray[np.int64], crops: Numbers, flips: Numbers
    ) -> tuple[Numbers, dict[str, Any]]:
        rows = slice(batch * self.batch_size, (batch + 1) * self.batch_size)
        chosen = order[rows]
        height, width = self._size
        sides = (height, width, 3) if self.channels_last else (3, height, width)
        out = np.empty((len(chosen), *sides), self.dtype)
        if self._resample:
            crop_resize_normalize_u8_gather(
                self._view, chosen, crops[rows], flips[rows], out, self.mean, self.std
            )
        else:
            images = self._view[chosen]
            images[flips[rows]] = images[flips[rows], :, ::-1]
            normalize_u8_batch(images, out, self.mean, self.std)
        meta = {"indices": chosen.copy()}
        if self.train_aug:
            meta |= {"crops": crops[rows].copy(), "flips": flips[rows].copy()}
        return out, meta

    def _handed_out(self, images: Numbers) -> Any:
        if not self._is_pinned:
            return images
        import torch

        tensor = torch.from_numpy(images)
        if torch.cuda.is_available():
            tensor = tensor.pin_memory()
        return tensor.permute(0, 3, 1, 2) if self.channels_last else tensor

    def close(self) -> None:
        """Do nothing: the file is unmapped with the loader, and threads end with iterations."""

    def __enter__(self) -> TblRawImageLoader:
        return self

    def __exit__(self, kind: Any, value: Any, traceback: Any) -> None:
        self.close()


def _ahead(items: Iterator[Any], count: int) -> Iterator[Any]:
    """Yield items that a thread makes, at most ``count`` ahead; it ends with the iteration."""
    ready: queue.Queue[tuple[str, Any]] = queue.Queue(count)
    is_over = threading.Event()

    def put(kind: str, item: Any) -> bool:
        while not is_over.is_set():
            try:
                ready.put((kind, item), timeout=0.1)
                return True
            except queue.Full:
                continue
        return False

    def make() -> None:
        try:
            for item in items:
                if not put("item", item):
                    return
            put("end", None)
        except Exception as error:
            put("error", error)

    thread = threading.Thread(target=make, name="tblraw-prefetch", daemon=True)
    thread.start()
    try:
        while True:
            kind, item = ready.get()
            if kind == "error":
                raise item
            if kind == "end":
                return
            yield item
    finally:
        is_over.set()
        thread.join()
