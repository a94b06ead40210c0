"""The interface of the first turboloader: its names, argument orders and shapes of batches.

For code that was written for it. What it did wrong is not kept: docs/python-compat.md has the list.
New code is better served by `turboloader.DataLoader`, which has labels and tensors.

>>> from turboloader.compat import DataLoader, ImageNetNormalize, Resize
>>> loader = DataLoader("train.tar", 64, 8, True, Resize(224, 224) | ImageNetNormalize(),
...                     output_format="pytorch")
>>> for images, meta in loader:
...     print(images.shape, meta["labels"].shape)
(12, 3, 224, 224) (12,)
"""

from __future__ import annotations

import enum
import os
import warnings
from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from . import _compat_transforms, _files, _native
from . import transforms as T  # noqa: N812
from ._compat_transforms import *  # noqa: F403
from ._files import TblReader
from ._native import TblWriter
from ._settings import StoreSettings, check_choice, stores
from .exceptions import SettingError
from .loader import DataLoader as _Loader

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = [
    "ComposedTransforms",
    "DataLoader",
    "FastDataLoader",
    "Loader",
    "MemoryEfficientDataLoader",
    "MetadataType",
    "TblReaderV2",
    "TblWriterV2",
    "create_loader",
    "decode_jpeg",
    "decode_jpeg_scaled",
    "version",
]
# In the form that Pyright knows.
__all__ += _compat_transforms.__all__

ComposedTransforms = _compat_transforms.Compose

# For each output format: whether it is arrays with their numbers, and whether channels come last.
_FORMATS = {
    "dict": (False, True),
    "numpy": (True, True),
    "tensorflow": (True, True),
    "numpy_chw": (True, False),
    "pytorch": (True, False),
}


Batches = Iterator[Any]


class DataLoader:
    """Batches as the first turboloader had them: ``(images, meta)``, or lists of dicts.

    Arguments and their order are its own. With ``output_format="dict"`` a batch is a list of dicts
    of ``image``, ``filename``, ``index``, ``width``, ``height``, ``channels`` and ``label``.
    Otherwise it is a pair of a float array in 0 to 1, or normalised, and a dict of ``indices``,
    ``batch_size``, ``decode_failures`` and ``labels``. Every iteration is the epoch that
    `set_epoch` names. It also takes ``storage_options``, ``credentials`` and the other settings of
    stores of ``turboloader.DataLoader``.

    Images that do not decode are zeros, counted, and warned about once, as they were.
    """

    _memory_budget: int | None = None

    def __init__(
        self,
        data_path: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | None = None,
        batch_size: int = 32,
        num_workers: int = 4,
        shuffle: bool = False,
        transform: Any = None,
        image_size: int | tuple[int, int] | None = None,
        output_format: str = "dict",
        modality: str = "image",
        seq_len: int | None = None,
        token_dtype: str = "uint16",
        arrays: Any = None,
        dataset: Any = None,
        collate_fn: Any = None,
        seed: int = 42,
        enable_distributed: bool = False,
        world_rank: int = 0,
        world_size: int = 1,
        drop_last: bool = False,
        distributed_seed: int = 42,
        enable_cache: bool = False,
        cache_l1_mb: int = 512,
        cache_l2_gb: int = 0,
        cache_dir: str | os.PathLike[str] | None = None,
        auto_smart_batching: bool = False,
        enable_smart_batching: bool = False,
        prefetch_batches: int = 4,
        cache_decoded: bool = False,
        antialias: bool = False,
        pin_memory: bool = False,
        train_aug: bool = False,
        hflip_prob: float = 0.5,
        dtype: str = "float32",
        channels_last: bool = False,
        **store_settings: Unpack[StoreSettings],
    ) -> None:
        given = {"modality": modality == "image", "seq_len": seq_len is None}
        given |= {"arrays": arrays is None, "dataset": dataset is None}
        given |= {"collate_fn": collate_fn is None}
        for name, is_default in given.items():
            if not is_default:
                raise SettingError(f"{name}: not supported; this loader reads images only")
        # Refuses other names.
        stores(**store_settings)
        check_choice("output_format", output_format, _FORMATS)
        self._is_array, last = _FORMATS[output_format]
        self._transform = transform
        if cache_decoded and enable_distributed:
            warnings.warn(
                "each rank keeps its own part of the images", RuntimeWarning, stacklevel=2
            )
        steps = _steps(transform, image_size, antialias, hflip_prob if train_aug else None)
        if self._is_array:
            steps = steps if _makes_floats(steps) else [*steps, T.ToTensor()]
        self._loader = _Loader(
            data_path,
            batch_size,
            num_workers,
            shuffle,
            ComposedTransforms(steps),
            output_format="numpy",
            seed=seed,
            drop_last=drop_last,
            world_rank=world_rank if enable_distributed else None,
            world_size=world_size if enable_distributed else None,
            prefetch_batches=prefetch_batches,
            dtype=dtype if self._is_array else None,
            channels_last=last or channels_last,
            on_error="fill" if self._is_array else "raise",
            # The first turboloader filled any number of samples.
            max_error_rate=1.0 if self._is_array else None,
            keys=not self._is_array,
            enable_cache=enable_cache,
            cache_l1_mb=cache_l1_mb,
            cache_l2_gb=cache_l2_gb,
            cache_dir=cache_dir,
            cache_decoded=cache_decoded,
            memory_budget=self._memory_budget,
            **store_settings,
        )
        # None where a state says it.
        self._epoch: int | None = 0
        # Of `next_batch`; it does not refer to this loader, which goes when nobody has it.
        self._batches: _native.Epoch | None = None
        self._is_finished = False
        self._has_warned = False

    def __len__(self) -> int:
        """Return how many batches an epoch has, whatever the output format."""
        return len(self._loader)

    def __iter__(self) -> Batches:
        """Begin the epoch that `set_epoch` named, or resume that of a state."""
        self._batches = None
        return self._made(self._begun())

    def _begun(self) -> _native.Epoch:
        if self._epoch is not None:
            self._loader.set_epoch(self._epoch)
        self._is_finished = False
        epoch = iter(self._loader)
        self._epoch = epoch.number
        return epoch

    def _made(self, epoch: _native.Epoch) -> Batches:
        for batch in epoch:
            yield self._one(batch)
        self._is_finished = True

    def _one(self, batch: _native.Batch) -> Any:
        return self._array(batch) if self._is_array else [_sample(one) for one in batch]

    def _array(self, batch: _native.Batch) -> tuple[npt.NDArray[Any], dict[str, Any]]:
        failures = self.decode_failures
        if failures and not self._has_warned:
            self._has_warned = True
            message = f"{failures} samples failed to decode and are zeros; the first: "
            warnings.warn(message + self._loader.audit[0][1], RuntimeWarning, stacklevel=3)
        meta = {
            "indices": batch["index"].tolist(),
            "batch_size": len(batch),
            "decode_failures": failures,
            "labels": batch["label"],
        }
        return batch["image"], meta

    @property
    def decode_failures(self) -> int:
        """How many samples of the batches so far did not decode."""
        return len(self._loader.audit)

    def next_batch(self) -> Any:
        """Return the next batch; ``StopIteration`` at the end, after which it begins anew."""
        if self._batches is None:
            self._batches = self._begun()
        try:
            return self._one(next(self._batches))
        except StopIteration:
            self._batches, self._is_finished = None, True
            raise

    def set_epoch(self, epoch: int) -> None:
        """Set the epoch of the next iteration."""
        self._loader.set_epoch(epoch)
        self._epoch, self._batches = epoch, None

    def state_dict(self) -> dict[str, Any]:
        """Return where the consumer is, with ``batches_served``."""
        state = self._loader.state_dict()
        of_global_batch = max(1, state.get("global_batch", 1))
        return {**state, "batches_served": -(-state["consumed"] // of_global_batch)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Resume from ``state`` at the next iteration, or at the next epoch if one had finished."""
        self._loader.load_state_dict({k: v for k, v in state.items() if k != "batches_served"})
        self._epoch, self._batches = None, None

    def is_finished(self) -> bool:
        """Return whether the last iteration came to its end."""
        return self._is_finished

    def smart_batching_enabled(self) -> bool:
        """Return False: batches are in order (see ``turboloader.DataLoader``'s ``buckets``)."""
        return False

    @property
    def transform(self) -> Any:
        """The transform that was given."""
        return self._transform

    @property
    def num_samples(self) -> int:
        """How many samples the data set has."""
        return self._loader.num_samples

    def close(self) -> None:
        """Stop the threads of the present epoch; another can be begun."""
        self._batches = None
        self._loader._end()

    stop = close

    def __enter__(self) -> DataLoader:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


class FastDataLoader(DataLoader):
    """`DataLoader` with a choice of sizes: ``(images, meta)`` by default."""

    def __init__(
        self,
        data_path: Any,
        batch_size: int = 32,
        num_workers: int = 4,
        output_format: str = "numpy",
        target_height: int = 0,
        target_width: int = 0,
        transform: Any = None,
        shuffle: bool = False,
        **settings: Any,
    ) -> None:
        if bool(target_height) != bool(target_width):
            raise SettingError("target_height and target_width: only one is set; pass both")
        size = (target_height, target_width) if target_height else None
        super().__init__(
            data_path, batch_size, num_workers, shuffle, transform, size, output_format, **settings
        )


class MemoryEfficientDataLoader(FastDataLoader):
    """`FastDataLoader` within ``max_memory_mb``."""

    def __init__(
        self,
        data_path: Any,
        batch_size: int = 32,
        num_workers: int | None = None,
        max_memory_mb: int = 512,
        *arguments: Any,
        **settings: Any,
    ) -> None:
        self._memory_budget = max_memory_mb << 20
        super().__init__(data_path, batch_size, num_workers or 0, *arguments, **settings)


_LOADERS = {
    "fast": FastDataLoader,
    "memory_efficient": MemoryEfficientDataLoader,
    "standard": DataLoader,
}


def create_loader(data_path: Any, loader_type: str = "fast", **settings: Any) -> Any:
    """Return a loader of this type: ``"fast"``, ``"memory_efficient"`` or ``"standard"``."""
    check_choice("loader_type", loader_type, _LOADERS)
    return _LOADERS[loader_type](data_path, **settings)


def Loader(data_path: Any, *arguments: Any, fast: bool = False, **settings: Any) -> Any:  # noqa: N802
    """Return a `FastDataLoader` or a `DataLoader`."""
    return (FastDataLoader if fast else DataLoader)(data_path, *arguments, **settings)


class MetadataType(enum.IntEnum):
    """The encoding of a sample's metadata."""

    NONE = 0
    JSON = 1
    PROTOBUF = 2
    MSGPACK = 3
    CUSTOM = 255


class TblReaderV2:
    """TBL files by the names of the first turboloader. Checksums are always verified.

    Parameters
    ----------
    path
        The file.
    verify_checksums
        Has to be true.
    **store_settings
        As for `DataLoader`.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        verify_checksums: bool = True,
        **store_settings: Unpack[StoreSettings],
    ) -> None:
        if not verify_checksums:
            raise SettingError("verify_checksums=False: samples are always checked")
        self._reader = TblReader(path, **store_settings)

    @property
    def num_samples(self) -> int:
        """How many samples there are."""
        return len(self._reader)

    def __len__(self) -> int:
        return len(self._reader)

    def read_sample(self, index: int) -> bytes:
        """Return the bytes of a sample."""
        return self._reader.read_sample(index)

    def get_sample_info(self, index: int) -> dict[str, Any]:
        """Return what the index knows of a sample."""
        entry = self._reader.entry(index)
        return {**entry, "size": entry["stored_bytes"], "uncompressed_size": entry["bytes"]}

    def has_metadata(self) -> bool:
        """Return whether any sample has metadata."""
        return any(self._reader.metadata(index) for index in range(len(self)))

    def read_metadata(self, index: int) -> tuple[str | bytes, MetadataType]:
        """Return a sample's first metadata and its type; bytes where it is not UTF-8."""
        blocks = self._reader.metadata(index)
        if not blocks:
            return "", MetadataType.NONE
        kind, data = blocks[0]
        try:
            return data.decode(), _metadata_type(kind)
        except UnicodeDecodeError:
            return data, _metadata_type(kind)

    def filter_by_dimensions(
        self, min_width: int = 0, min_height: int = 0, max_width: int = 0, max_height: int = 0
    ) -> list[int]:
        """Return the samples of these sizes; a maximum of 0 means no maximum."""

        def fits(entry: dict[str, Any]) -> bool:
            width, height = int(entry["width"]), int(entry["height"])
            is_wide = min_width <= width <= (max_width or width)
            return is_wide and min_height <= height <= (max_height or height)

        return [i for i in range(len(self)) if fits(self._reader.entry(i))]

    def filter_by_format(self, format: str) -> list[int]:
        """Return the samples of this format, such as ``"JPEG"``."""
        wanted = str(format).rpartition(".")[2].lower()
        return [i for i in range(len(self)) if self._reader.entry(i)["format"].lower() == wanted]


def _metadata_type(kind: str) -> MetadataType:
    known = MetadataType.__members__.get(kind.upper())
    return MetadataType.CUSTOM if known is None else known


class TblWriterV2:
    """Writes TBL files by the names of the first turboloader, sample by sample.

    Parameters
    ----------
    path
        The file, which has its name once it is finalized.
    enable_compression
        Whether to compress samples that become smaller by it.
    """

    def __init__(self, path: str | os.PathLike[str], enable_compression: bool = True) -> None:
        self._writer = TblWriter(path, lz4=enable_compression, overwrite=True)

    def add_sample(self, data: bytes, format: Any = None, width: int = 0, height: int = 0) -> int:
        """Add a sample and return its number. What it is, is read from its bytes."""
        index = self._writer.num_samples
        self._writer.add_sample(data)
        return index

    def add_metadata(
        self,
        sample_index: int,
        metadata: str | bytes,
        type: int = MetadataType.JSON,
    ) -> None:
        """Add metadata to a sample that was added; text is stored as UTF-8."""
        kind = MetadataType(int(type)).name.lower()
        self._writer.add_metadata(sample_index, metadata, kind)

    @property
    def num_samples(self) -> int:
        """How many samples were added."""
        return self._writer.num_samples

    def finalize(self) -> None:
        """Complete the file and give it its name."""
        self._writer.finish()

    def __enter__(self) -> TblWriterV2:
        return self

    def __exit__(self, kind: Any, value: Any, traceback: Any) -> None:
        self._writer.__exit__(kind, value, traceback)


def decode_jpeg(data: bytes) -> npt.NDArray[np.uint8]:
    """Decode a JPEG image to an array of (height, width, 3)."""
    return _files.decode_jpeg(data).numpy()


def decode_jpeg_scaled(data: bytes, width: int, height: int) -> npt.NDArray[np.uint8]:
    """Decode a JPEG image at the smallest of 1, 1/2, 1/4 and 1/8 that covers this size."""
    info = _files.probe(data)
    covers = [
        scale
        for scale in (8, 4, 2, 1)
        if -(-info.width // scale) >= width and -(-info.height // scale) >= height
    ]
    return _files.decode_jpeg(data, scale=covers[0] if covers else 1).numpy()


def version() -> str:
    """Return the version."""
    return _native.__version__


def _sample(sample: dict[str, Any]) -> dict[str, Any]:
    image = sample["image"]
    height, width, channels = image.shape
    sides = {"width": width, "height": height, "channels": channels}
    return {
        "image": image,
        "filename": sample["key"],
        "index": sample["index"],
        "label": sample["label"],
        **sides,
    }


def _steps(
    transform: Any, image_size: Any, antialias: bool, hflip_prob: float | None
) -> list[T.Transform]:
    composed = [] if transform is None else T.Compose([transform]).transforms
    steps = [one for step in composed for one in getattr(step, "transforms", [step])]
    resizes = any(isinstance(step, T.Resize) for step in steps)
    if image_size is None:
        if hflip_prob is not None:
            raise SettingError("train_aug needs image_size")
        return steps
    if resizes:
        raise SettingError("conflicting settings: image_size and a Resize; pass only one")
    size = [image_size] * 2 if isinstance(image_size, int) else list(image_size)
    if hflip_prob is not None:
        return [T.RandomResizedCrop(size), T.RandomHorizontalFlip(p=hflip_prob), *steps]
    return [T.Resize(size, antialias=antialias), *steps]


def _makes_floats(steps: Sequence[T.Transform]) -> bool:
    names = [operation["op"] for step in steps for operation in step.operations()]
    return "to_float" in names or "normalize" in names
