"""Labels from names, ``(images, labels)`` for PyTorch, and folders of classes as archives.

Examples
--------
>>> from turboloader.compat import FolderLabelExtractor
>>> labels = FolderLabelExtractor()
>>> [labels.extract(name, {}) for name in ("cat/1.jpg", "dog/1.jpg", "cat/2.jpg")]
[0, 1, 0]
"""

from __future__ import annotations

import abc
import json
import os
import pathlib
import re
import tarfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib.util import find_spec
from typing import Any, ClassVar

from .. import transforms as T  # noqa: N812
from ..exceptions import SettingError, UnsupportedTransformError
from . import _transforms as original
from ._loaders import FastDataLoader

__all__ = [
    "CallableLabelExtractor",
    "FilenamePatternExtractor",
    "FolderLabelExtractor",
    "ImageFolderConverter",
    "JSONSidecarExtractor",
    "LabelExtractor",
    "MetadataLabelExtractor",
    "PyTorchCompatibleLoader",
    "TransformAdapter",
    "convert_imagefolder",
    "create_loader",
]

TORCH_AVAILABLE = find_spec("torch") is not None

Metadata = Mapping[str, Any]


class LabelExtractor(abc.ABC):
    """What gives a sample its label: from its name, or from its metadata."""

    @abc.abstractmethod
    def extract(self, filename: str, metadata: Metadata) -> int:
        """Return the label of a sample."""

    def get_num_classes(self) -> int | None:
        """Return how many classes there are, if that is known."""
        return None

    def get_class_names(self) -> list[str] | None:
        """Return the names of the classes in the order of their labels, if they are known."""
        return None


class FolderLabelExtractor(LabelExtractor):
    """The first folder of a name is its class; classes are numbered as they come.

    Parameters
    ----------
    class_to_idx
        The numbers of classes that are known already.
    """

    def __init__(self, class_to_idx: Mapping[str, int] | None = None) -> None:
        self._classes = dict(class_to_idx or {})

    def extract(self, filename: str, metadata: Metadata) -> int:
        """Return the number of the first folder; names without one are of class "unknown"."""
        folder, has_folder, _ = filename.replace("\\", "/").partition("/")
        following = max(self._classes.values(), default=-1) + 1
        return self._classes.setdefault(folder if has_folder else "unknown", following)

    def get_num_classes(self) -> int:
        """Return how many classes have come so far."""
        return len(self._classes)

    def get_class_names(self) -> list[str]:
        """Return the names of the classes that have come so far, in the order of their labels."""
        return sorted(self._classes, key=self._classes.__getitem__)

    @property
    def class_to_idx(self) -> dict[str, int]:
        """The number of each class."""
        return dict(self._classes)


class FilenamePatternExtractor(LabelExtractor):
    """A group of a regular expression is the label; 0 where the expression is not found.

    Parameters
    ----------
    pattern
        The regular expression, which may match anywhere in the name.
    group
        Its group that is the label.
    """

    def __init__(self, pattern: str, group: int = 1) -> None:
        self._pattern, self._group = re.compile(pattern), group

    def extract(self, filename: str, metadata: Metadata) -> int:
        """Return the group as a number."""
        found = self._pattern.search(filename)
        return 0 if found is None else int(found[self._group])


class MetadataLabelExtractor(LabelExtractor):
    """A value of the metadata is the label.

    Parameters
    ----------
    key
        The name of the value.
    default
        The label of samples without it.
    """

    def __init__(self, key: str = "label", default: int = 0) -> None:
        self._key, self._default = key, default

    def extract(self, filename: str, metadata: Metadata) -> Any:
        """Return the value."""
        return metadata.get(self._key, self._default)


class JSONSidecarExtractor(LabelExtractor):
    """A value of ``metadata["json_data"]`` is the label; 0 if it is missing.

    Parameters
    ----------
    label_key
        The name of the value.
    cache
        Whether the first label of a name is kept for it.
    """

    def __init__(self, label_key: str = "label", cache: bool = True) -> None:
        self._key = label_key
        self._labels: dict[str, Any] | None = {} if cache else None

    def extract(self, filename: str, metadata: Metadata) -> Any:
        """Return the value."""
        label = metadata.get("json_data", {}).get(self._key, 0)
        return label if self._labels is None else self._labels.setdefault(filename, label)


class CallableLabelExtractor(LabelExtractor):
    """A function of name and metadata returns the label.

    Parameters
    ----------
    func
        The function.
    """

    def __init__(self, func: Callable[[str, Metadata], int]) -> None:
        self._func = func

    def extract(self, filename: str, metadata: Metadata) -> int:
        """Return what the function returns."""
        return self._func(filename, metadata)


class PyTorchCompatibleLoader:
    """Batches as ``(images, labels)``: tensors of torch, as its own loaders have them.

    Images are ``float32`` in 0 to 1, or normalised, of (samples, 3, height, width); labels are
    ``int64``. Every iteration is the epoch that `set_epoch` names.

    Parameters
    ----------
    data_path, batch_size, shuffle, num_workers, drop_last, transform, enable_cache, cache_l1_mb
        As for `DataLoader`.
    pin_memory
        Whether labels and images are in pinned memory, where there is a device to copy them to.
    label_extractor
        What gives samples their labels; a `FolderLabelExtractor` by default.
    target_transform
        A function of the labels of a batch.
    device
        What batches are copied to.
    prefetch_factor
        How many batches are made ahead.
    collate_fn
        A function of a list of one batch.
    sampler
        A ``DistributedSampler``, whose rank and number of ranks are taken. Others are refused: they
        would decide on an order.
    worker_init_fn
        Called with the number of each worker, once and in this thread.
    output_size
        Height and width of the images; 224 for both by default.
    """

    def __init__(
        self,
        data_path: Any,
        batch_size: int = 32,
        shuffle: bool = False,
        num_workers: int = 4,
        pin_memory: bool = True,
        drop_last: bool = False,
        label_extractor: LabelExtractor | None = None,
        transform: Any = None,
        target_transform: Callable[[Any], Any] | None = None,
        device: Any = None,
        prefetch_factor: int = 2,
        collate_fn: Callable[[list[Any]], Any] | None = None,
        sampler: Any = None,
        worker_init_fn: Callable[[int], Any] | None = None,
        enable_cache: bool = False,
        cache_l1_mb: int = 512,
        output_size: tuple[int, int] | None = None,
    ) -> None:
        if not TORCH_AVAILABLE:
            raise ImportError("PyTorchCompatibleLoader needs torch: pip install torch")
        ranks: dict[str, Any] = {}
        if sampler is not None:
            if not hasattr(sampler, "num_replicas"):
                name = type(sampler).__name__
                raise SettingError(f"sampler has type {name}, expected a DistributedSampler")
            ranks = {"world_rank": sampler.rank, "world_size": sampler.num_replicas}
            shuffle = bool(getattr(sampler, "shuffle", shuffle))
        self._batch_size, self._num_workers = batch_size, num_workers
        self._pin_memory, self._drop_last = pin_memory, drop_last
        self._label_extractor = label_extractor or FolderLabelExtractor()
        self._target_transform, self._collate_fn = target_transform, collate_fn
        self._sampler, self._worker_init_fn = sampler, worker_init_fn
        self._device, self._prefetch_factor = device, prefetch_factor
        self._epoch = 0
        self._iterator: Iterator[Any] | None = None
        self._loader = FastDataLoader(
            data_path,
            batch_size,
            num_workers,
            "pytorch",
            *(output_size or (224, 224)),
            transform,
            shuffle,
            drop_last=drop_last,
            enable_cache=enable_cache,
            cache_l1_mb=cache_l1_mb,
            prefetch_batches=prefetch_factor,
            enable_distributed=bool(ranks),
            **ranks,
        )
        for worker in range(num_workers if worker_init_fn is not None else 0):
            assert worker_init_fn is not None
            worker_init_fn(worker)

    def __iter__(self) -> Iterator[Any]:
        """Begin the epoch that `set_epoch` named."""
        import torch

        may_pin = self._pin_memory and torch.cuda.is_available()
        for images, meta in self._loader:
            samples = (dict(zip(meta, values, strict=True)) for values in _rows(meta))
            names = meta["filenames"]
            found = [self._label_extractor.extract(*pair) for pair in zip(names, samples)]  # noqa: B905
            batch = [torch.from_numpy(images), torch.tensor(found, dtype=torch.int64)]
            if may_pin:
                batch = [tensor.pin_memory() for tensor in batch]
            pixels, labels = (tensor.to(self._device, non_blocking=True) for tensor in batch)
            if self._target_transform is not None:
                labels = self._target_transform(labels)
            made = (pixels, labels)
            yield made if self._collate_fn is None else self._collate_fn([made])

    def __next__(self) -> Any:
        """Return the next batch of an iteration that begins with the first call."""
        if self._iterator is None:
            self._iterator = iter(self)
        try:
            return next(self._iterator)
        except StopIteration:
            self._iterator = None
            raise

    def __len__(self) -> int:
        """Return how many batches an epoch has; it is known from the start, which it was not."""
        return len(self._loader)

    def set_epoch(self, epoch: int) -> None:
        """Set the epoch of the next iteration."""
        self._epoch = epoch
        self._loader.set_epoch(epoch)

    @property
    def dataset(self) -> PyTorchCompatibleLoader:
        """The loader itself."""
        return self

    @property
    def batch_size(self) -> int:
        """How many samples a batch has."""
        return self._batch_size

    @property
    def num_workers(self) -> int:
        """How many threads there are."""
        return self._num_workers

    @property
    def pin_memory(self) -> bool:
        """Whether batches are in pinned memory, where that is possible."""
        return self._pin_memory

    @property
    def drop_last(self) -> bool:
        """Whether an incomplete batch is left out."""
        return self._drop_last

    @property
    def sampler(self) -> Any:
        """The sampler that was given."""
        return self._sampler

    @property
    def collate_fn(self) -> Any:
        """The function of batches that was given."""
        return self._collate_fn

    @property
    def worker_init_fn(self) -> Any:
        """The function of workers that was given."""
        return self._worker_init_fn

    @property
    def label_extractor(self) -> LabelExtractor:
        """What gives samples their labels."""
        return self._label_extractor

    @property
    def prefetch_factor(self) -> int:
        """How many batches are made ahead."""
        return self._prefetch_factor

    def close(self) -> None:
        """Stop the threads of the present epoch; another can be begun."""
        self._iterator = None
        self._loader.stop()

    def __enter__(self) -> PyTorchCompatibleLoader:
        return self

    def __exit__(self, *exception: Any) -> None:
        self.close()


def _rows(meta: Metadata) -> Iterator[tuple[Any, ...]]:
    """Yield the metadata of each sample of a batch: its part of lists and arrays."""
    count = meta["batch_size"]
    for row in range(count):
        yield tuple(
            value[row] if hasattr(value, "__len__") and len(value) == count else value
            for value in meta.values()
        )


class ImageFolderConverter:
    """Writes a folder of class folders as a TAR archive.

    Parameters
    ----------
    extensions
        The ends of names of images, with their dots.
    """

    VALID_EXTENSIONS = frozenset(
        {".jpg", ".jpeg", ".png", ".bmp", ".gif", ".webp", ".tiff", ".tif", ".ppm", ".pgm", ".pbm"}
    )

    def __init__(self, extensions: Iterable[str] | None = None) -> None:
        chosen = self.VALID_EXTENSIONS if extensions is None else extensions
        self._extensions = {extension.lower() for extension in chosen}

    def convert(
        self,
        source_dir: str | os.PathLike[str],
        output_path: str | os.PathLike[str],
        show_progress: bool = True,
        compression: str | None = None,
        save_class_mapping: bool = True,
    ) -> dict[str, int]:
        """Write the archive, and next to it the numbers of the classes as ``NAME_classes.json``.

        Members are called ``class/path``. The archive has its name when it is complete. Returns the
        number of each class. ``show_progress`` prints a line at the end; ``compression`` is
        ``"gz"``, ``"bz2"`` or ``"xz"``, which loaders do not read.
        """
        source, output = pathlib.Path(source_dir), os.fspath(output_path)
        if not source.is_dir():
            raise SettingError(f"Source directory not found: {source}")
        classes = sorted(
            entry.name
            for entry in source.iterdir()
            if entry.is_dir() and not entry.name.startswith(".")
        )
        if not classes:
            raise SettingError(f"No class directories found in {source}")
        files = sorted(
            path
            for name in classes
            for path in (source / name).rglob("*")
            if path.suffix.lower() in self._extensions and path.is_file()
        )
        if not files:
            raise SettingError(f"No image files found in {source}")
        partial = f"{output}.partial"
        try:
            mode: Any = f"w:{compression}" if compression else "w"
            with tarfile.open(partial, mode) as archive:
                for path in files:
                    archive.add(path, path.relative_to(source).as_posix())
            os.replace(partial, output)
        finally:
            pathlib.Path(partial).unlink(missing_ok=True)
        class_to_idx = {name: number for number, name in enumerate(classes)}
        if save_class_mapping:
            mapping = {"class_to_idx": class_to_idx, "classes": classes, "num_images": len(files)}
            beside = pathlib.Path(f"{output.rpartition('.')[0] or output}_classes.json")
            beside.write_text(json.dumps(mapping, indent=2))
        if show_progress:
            print(f"{output}: {len(files)} images of {len(classes)} classes")
        return class_to_idx


def convert_imagefolder(source_dir: Any, output_tar: Any, **settings: Any) -> dict[str, int]:
    """Do `ImageFolderConverter.convert`."""
    return ImageFolderConverter().convert(source_dir, output_tar, **settings)


class TransformAdapter:
    """Transforms of torchvision as those of this module.

    Those that have no counterpart are refused, where the first turboloader left them out.
    """

    _SIZED: ClassVar = ("Resize", "CenterCrop", "RandomCrop")
    _SAME: ClassVar = ("RandomHorizontalFlip", "RandomVerticalFlip")

    @classmethod
    def from_torchvision(cls, tv_transforms: Any) -> Any:
        """Convert a ``Compose`` of torchvision; None if nothing is left to do."""
        converted = [made for one in tv_transforms.transforms for made in cls._converted(one)]
        if len(converted) < 2:
            return converted[0] if converted else None
        return original.ComposedTransforms(converted)

    @classmethod
    def _converted(cls, one: Any) -> list[T.Transform]:
        name = type(one).__name__
        if name in ("ToPILImage", "ToImage", "PILToTensor"):
            return []
        if name in cls._SIZED:
            height, width = _pair(one.size)
            return [getattr(original, name)(width, height)]
        if name in cls._SAME:
            return [getattr(original, name)(one.p)]
        if name == "Normalize":
            imagenet = T.Normalize()
            mean, std = ([float(value) for value in values] for values in (one.mean, one.std))
            if (mean, std) == (list(imagenet.mean), list(imagenet.std)):
                return [original.ImageNetNormalize()]
            return [original.Normalize(mean, std)]
        if name == "ToTensor":
            return [original.ToTensor()]
        if name == "Grayscale":
            return [original.Grayscale(one.num_output_channels)]
        if name == "ColorJitter":
            return [cls._jitter(one)]
        if name == "RandomRotation":
            low, high = one.degrees
            if low != -high or one.center is not None:
                raise UnsupportedTransformError(f"{one}: rotates from -degrees to degrees here")
            return [original.RandomRotation(high, bool(one.expand))]
        raise UnsupportedTransformError(
            f"{name} has no counterpart in turboloader.compat: turboloader.from_torchvision has it"
        )

    @staticmethod
    def _jitter(one: Any) -> T.Transform:
        def change(span: Any, centre: float) -> float:
            low, high = (centre, centre) if span is None else span
            if abs((low + high) / 2 - centre) > 1e-6:
                raise UnsupportedTransformError(f"ColorJitter: {span} is not around {centre}")
            return float(high - centre)

        return original.ColorJitter(
            change(one.brightness, 1),
            change(one.contrast, 1),
            change(one.saturation, 1),
            change(one.hue, 0),
        )

    @classmethod
    def imagenet_train(cls) -> Any:
        """Return the transforms that the first turboloader had for training on ImageNet."""
        return original.ComposedTransforms(
            [
                original.Resize(256, 256),
                original.RandomCrop(224, 224),
                original.RandomHorizontalFlip(0.5),
                original.ColorJitter(0.4, 0.4, 0.4, 0.1),
                original.ImageNetNormalize(),
                original.ToTensor(),
            ]
        )

    @classmethod
    def imagenet_val(cls) -> Any:
        """Return those for validation."""
        return original.ComposedTransforms(
            [
                original.Resize(256, 256),
                original.CenterCrop(224, 224),
                original.ImageNetNormalize(),
                original.ToTensor(),
            ]
        )


def _pair(size: Any) -> tuple[int, int]:
    """Return height and width; one number is a square, as it was."""
    numbers = [size] if isinstance(size, int) else list(size)
    return numbers[0], numbers[-1]


def create_loader(
    data_path: Any,
    batch_size: int = 32,
    shuffle: bool = True,
    num_workers: int = 4,
    transform: Any = "imagenet_train",
    device: Any = None,
    **settings: Any,
) -> PyTorchCompatibleLoader:
    """Return a `PyTorchCompatibleLoader`; ``transform`` may name a preset of `TransformAdapter`."""
    presets = {name: getattr(TransformAdapter, name) for name in ("imagenet_train", "imagenet_val")}
    chosen = presets[transform]() if isinstance(transform, str) else transform
    settings = {"transform": chosen, "device": device, **settings}
    return PyTorchCompatibleLoader(data_path, batch_size, shuffle, num_workers, **settings)
