"""The loaders of the first turboloader."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from types import SimpleNamespace, TracebackType
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from .. import _native
from .. import transforms as T  # noqa: N812
from .._checks import check_choice, sides, whole
from .._files import TblReader, probe
from ..exceptions import SettingError
from ..loader import DataLoader as _Loader
from ..settings import Cache, Errors, Memory, Ranks, Store, StoreLike, as_store
from ._errors import original_errors
from ._logging import LOGGER
from ._transforms import ComposedTransforms
from .sequence import ArrayDataLoader, MapDataLoader, TokenDataLoader
from .tbl import TblRawImageLoader

# For each output format: whether it is arrays with their numbers, and whether channels come last.
_FORMATS = {
    "dict": (False, True),
    "numpy": (True, True),
    "tensorflow": (True, True),
    "numpy_chw": (True, False),
    "pytorch": (True, False),
    "torch": (True, False),
}

_TOKENS = ("tokens", "token", "text")
_ARRAYS = ("array", "arrays", "tensor", "tabular")
_MAPS = ("map", "dataset", "python")

_MIB, _GIB = 1 << 20, 1 << 30

# The arguments that mean the same to the loader itself.
_PASSED = ("batch_size", "num_workers", "shuffle", "seed", "drop_last")

Batches = Iterator[Any]


class DataLoader:
    """Batches as the first turboloader had them: ``(images, meta)``, or lists of dicts.

    Arguments and their order are its own. With ``output_format="dict"`` a batch is a list of dicts
    of ``image``, ``filename``, ``index``, ``width``, ``height``, ``channels`` and ``label``.
    Otherwise it is a pair of a float array in 0 to 1, or normalised, and a dict of ``indices``,
    ``filenames``, ``batch_size``, ``height``, ``width``, ``channels``, ``decode_failures`` and
    ``labels``. Every iteration is the epoch that `set_epoch` names. ``store`` is that of
    ``turboloader.DataLoader``.

    ``modality`` makes it a `TokenDataLoader`, an `ArrayDataLoader` or a `MapDataLoader`, and a TBL
    file of raw images that are resized and normalised at most a `TblRawImageLoader`.

    Images that do not decode are zeros, counted, and warned about once, as they were.
    """

    _memory_budget: int | None = None
    # Whether arrays without transforms to floats are floats.
    _scales = True
    _FAST_FORMATS = tuple(name for name, (is_array, _) in _FORMATS.items() if is_array)

    def __init__(
        self,
        data_path: Any = None,
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
        store: StoreLike = None,
    ) -> None:
        given = SimpleNamespace(**locals())
        given.store = as_store(store)
        if not enable_distributed:
            given.world_rank = given.world_size = None
        self._transform = transform
        self._fast = False
        # None where a state says it.
        self._epoch: int | None = 0
        # Of `next_batch`; it does not refer to this loader, which goes when nobody has it.
        self._batches: Any = None
        self._is_finished = self._has_warned = self._is_populated = False
        self._delegate = _sequence(given)
        if self._delegate is not None:
            return
        check_choice("output_format", output_format, _FORMATS)
        is_array, last = _FORMATS[output_format]
        self._channels_last = channels_last or last
        if _is_raw(data_path, transform):
            given.channels_last = channels_last or (is_array and last)
            self._delegate = _raw_images(given)
            return
        self._fast = is_array
        if cache_decoded and enable_distributed:
            warnings.warn(
                "cache_decoded with distributed ranks: each keeps its own part of the images",
                RuntimeWarning,
                stacklevel=2,
            )
        self._is_pinned, self._is_caching = pin_memory, cache_decoded
        steps = self._chosen_steps(given)
        settings = {name: getattr(given, name) for name in _PASSED}
        makes_floats = is_array and _makes_floats(steps)
        settings.update(
            transform=ComposedTransforms(steps),
            output_format="numpy",
            dtype=dtype if makes_floats else None,
            channels_last=self._channels_last,
            # The first turboloader filled any number of samples.
            errors=Errors("fill", at_most=1.0) if is_array else "raise",
            keys=True,
            cache=_cache(given),
            memory=Memory(self._memory_budget, prefetch=prefetch_batches),
            ranks=Ranks(world_rank, world_size) if enable_distributed else None,
            store=given.store,
        )

        def make() -> _Loader:
            with original_errors(opening="TAR"):
                return _Loader(data_path, **settings)

        self._make: Callable[[], _Loader] = make
        self._loader = make()
        LOGGER.info("opened %r", self._loader)

    def _chosen_steps(self, given: SimpleNamespace) -> list[T.Transform]:
        """Return what is done to each image."""
        hflip_prob = given.hflip_prob if given.train_aug else None
        steps = _steps(given.transform, given.image_size, given.antialias, hflip_prob)
        if not self._fast:
            return steps
        if not _sets_size(steps):
            sized = self._sized(given.data_path, given.output_format, given.store)
            steps = [*sized, *steps]
        if (self._scales or not self._channels_last) and not _makes_floats(steps):
            steps = [*steps, T.ToTensor()]
        return steps

    def _sized(self, data_path: Any, output_format: str, store: Store | None) -> list[T.Transform]:
        """Return transforms that give all images one size, where nothing else does."""
        raise SettingError(
            f"output_format={output_format!r} needs a fixed image size: pass image_size, or a "
            "transform that resizes"
        )

    @property
    def _impl(self) -> DataLoader | None:
        return self if self._fast else None

    def __len__(self) -> int:
        """Return how many batches an epoch has, whatever the output format."""
        return len(self._loader if self._delegate is None else self._delegate)

    def __iter__(self) -> Batches:
        """Begin the epoch that `set_epoch` named, or resume that of a state."""
        self._batches = None
        if self._delegate is not None:
            return iter(self._delegate)
        return self._made(self._begun())

    def _begun(self) -> _native.Epoch:
        if self._epoch is not None:
            self._loader.set_epoch(self._epoch)
        self._is_finished = False
        epoch = cast("_native.Epoch", iter(self._loader))
        self._epoch = epoch.number
        LOGGER.debug("epoch %d begins, %d batches", epoch.number, epoch.remaining())
        return epoch

    def _made(self, epoch: _native.Epoch) -> Batches:
        with original_errors():
            for batch in epoch:
                yield self._one(batch)
        self._end()

    def _end(self) -> None:
        self._is_finished, self._is_populated = True, self._is_caching
        LOGGER.debug("epoch %s is over", self._epoch)

    def _one(self, batch: _native.Batch) -> Any:
        return self._array(batch) if self._fast else [_sample(one) for one in batch]

    def _array(self, batch: _native.Batch) -> tuple[Any, dict[str, Any]]:
        failures = self.decode_failures
        if failures and not self._has_warned:
            self._has_warned = True
            message = f"{failures} samples failed to decode and are zeros; the first: "
            message += self._loader.audit[0][1]
            LOGGER.warning(message)
            warnings.warn(message, RuntimeWarning, stacklevel=3)
        images = batch["image"]
        height, width = images.shape[1:3] if self._channels_last else images.shape[2:4]
        meta = {
            "indices": batch["index"].tolist(),
            "filenames": batch["key"],
            "batch_size": len(batch),
            "height": height,
            "width": width,
            "channels": 3,
            "decode_failures": failures,
            "labels": batch["label"],
        }
        return _pinned(images) if self._is_pinned else images, meta

    @property
    def decode_failures(self) -> int:
        """How many samples of the batches so far did not decode."""
        return 0 if self._delegate is not None else len(self._loader.audit)

    def next_batch(self) -> Any:
        """Return the next batch; ``StopIteration`` at the end, after which it begins anew."""
        if self._delegate is not None:
            self._batches = self._batches or iter(self._delegate)
            return self._next(lambda batch: batch)
        self._batches = self._batches or self._begun()
        return self._next(self._one)

    def _next(self, made: Callable[[Any], Any]) -> Any:
        try:
            with original_errors():
                batch = next(self._batches)
            if self._delegate is None and self._batches.remaining() == 0:
                self._end()
            return made(batch)
        except StopIteration:
            self._batches = None
            raise

    def set_epoch(self, epoch: int) -> None:
        """Set the epoch of the next iteration."""
        (self._loader if self._delegate is None else self._delegate).set_epoch(epoch)
        self._epoch, self._batches = epoch, None

    def state_dict(self) -> dict[str, Any]:
        """Return where the consumer is, with ``batches_served``."""
        if self._delegate is not None:
            return cast("dict[str, Any]", self._with_state().state_dict())
        state = self._loader.state_dict()
        of_global_batch = max(1, state.get("global_batch", 1))
        return {**state, "batches_served": -(-state["consumed"] // of_global_batch)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Resume from ``state`` at the next iteration, or at the next epoch if one had finished."""
        if self._delegate is not None:
            self._with_state().load_state_dict(state)
            return
        self._loader.load_state_dict({k: v for k, v in state.items() if k != "batches_served"})
        self._epoch, self._batches = None, None

    def _with_state(self) -> Any:
        if not hasattr(self._delegate, "state_dict"):
            raise NotImplementedError(f"{type(self._delegate).__name__} has no state")
        return self._delegate

    def is_finished(self) -> bool:
        """Return whether the last iteration has no more batches."""
        return self._is_finished

    def smart_batching_enabled(self) -> bool:
        """Return False: batches are in order (see ``turboloader.DataLoader``'s ``buckets``)."""
        return False

    @property
    def cache_populated(self) -> bool:
        """Whether an epoch with ``cache_decoded`` has come to its end."""
        return self._is_populated

    @property
    def cache_size_mb(self) -> float:
        """The size of the cache in memory, in units of 1024 * 1024 bytes."""
        if self._delegate is not None:
            return 0.0
        return self._loader.cache_stats()["memory"]["bytes"] / _MIB

    def clear_cache(self) -> None:
        """Empty the cache in memory, and end the current iteration."""
        if self._delegate is not None:
            return
        self._batches = None
        self._loader.close()
        self._loader, self._is_populated = self._make(), False

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
        if self._delegate is None:
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
    """`DataLoader` with a choice of sizes: ``(images, meta)`` by default.

    Without a size images get that of the first one. With ``"numpy"`` and ``"tensorflow"`` images
    stay ``uint8`` unless a transform makes floats.
    """

    _scales = False

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
        cache_decoded_mb: int | None = None,
        **settings: Any,
    ) -> None:
        if bool(target_height) != bool(target_width):
            raise SettingError("target_height and target_width: only one is set; pass both")
        if cache_decoded_mb is not None:
            settings.setdefault("cache_l1_mb", cache_decoded_mb)
        size = (target_height, target_width) if target_height else None
        # It resized to the target first, and then did all of the transform.
        if size is not None and _size(transform, None) is not None:
            size = None
        super().__init__(
            data_path, batch_size, num_workers, shuffle, transform, size, output_format, **settings
        )

    def _sized(self, data_path: Any, output_format: str, store: Store | None) -> list[T.Transform]:
        return [T.Resize(_first_size(data_path, store), antialias=False)]

    def next_batch_torch(
        self, device: Any = None, non_blocking: bool = True, dtype: Any = None
    ) -> tuple[Any, dict[str, Any]]:
        """Return the next batch with a ``torch.Tensor`` of floats, channels first.

        ``device`` and ``dtype`` are what the tensor is converted to.
        """
        import torch

        images, meta = self.next_batch()
        tensor = torch.as_tensor(images)
        if self._channels_last:
            tensor = tensor.permute(0, 3, 1, 2).contiguous()
        if not tensor.is_floating_point():
            tensor = tensor.to(torch.float32) / 255
        return tensor.to(device=device, dtype=dtype, non_blocking=non_blocking), meta

    def next_batch_tf(self, dtype: Any = None) -> tuple[Any, dict[str, Any]]:
        """Return the next batch with a ``tf.Tensor`` of floats, channels last."""
        import tensorflow as tf

        images, meta = self.next_batch()
        if not self._channels_last:
            images = images.transpose(0, 2, 3, 1)
        tensor = tf.convert_to_tensor(images)
        if not tensor.dtype.is_floating:
            tensor = tf.cast(tensor, tf.float32) / 255.0
        return (tensor if dtype is None else tf.cast(tensor, dtype)), meta


class MemoryEfficientDataLoader(FastDataLoader):
    """`FastDataLoader` within ``max_memory_mb``, which bounds all memory of the loader.

    ``num_workers`` is a thread for each 256 MB, at most four, unless it is given.
    """

    def __init__(
        self,
        data_path: Any,
        batch_size: int = 32,
        num_workers: int | None = None,
        max_memory_mb: int = 512,
        *arguments: Any,
        **settings: Any,
    ) -> None:
        self.max_memory_mb = max_memory_mb
        self.num_workers = num_workers or min(4, max(1, max_memory_mb // 256))
        self.prefetch_batches = settings.setdefault("prefetch_batches", 1)
        self._memory_budget = max_memory_mb * _MIB
        super().__init__(data_path, batch_size, self.num_workers, *arguments, **settings)


class ProgressiveResizeLoader:
    """`FastDataLoader`, whose images grow from epoch to epoch.

    Epoch 0 has images of ``initial_size``, each of the ``warmup_epochs`` larger ones, and the rest
    of the epochs those of ``final_size``.

    Parameters
    ----------
    data_path
        As for `DataLoader`.
    batch_size, num_workers, output_format, transform
        As for `FastDataLoader`; ``transform`` comes after the resizing.
    initial_size, final_size
        The side of the images at the start, and after the warm-up.
    warmup_epochs
        How many epochs it takes.
    **settings
        As for `FastDataLoader`.
    """

    def __init__(
        self,
        data_path: Any,
        batch_size: int = 32,
        num_workers: int = 4,
        initial_size: int = 128,
        final_size: int = 224,
        warmup_epochs: int = 10,
        output_format: str = "numpy",
        transform: Any = None,
        **settings: Any,
    ) -> None:
        sizes = np.linspace(initial_size, final_size, warmup_epochs, dtype=int)
        self.size_schedule: list[int] = sizes.tolist()
        self.current_epoch = 0
        self._final_size = final_size

        def make(side: int) -> FastDataLoader:
            return FastDataLoader(
                data_path, batch_size, num_workers, output_format, side, side, transform, **settings
            )

        self._make = make
        self._loader = make(self.current_size)

    @property
    def current_size(self) -> int:
        """The side of the images of the current epoch."""
        return [*self.size_schedule, self._final_size][
            min(self.current_epoch, len(self.size_schedule))
        ]

    def set_epoch(self, epoch: int) -> None:
        """Set the epoch of the next iteration, and the size of its images."""
        before, self.current_epoch = self.current_size, epoch
        if self.current_size != before:
            self._loader.close()
            self._loader = self._make(self.current_size)
        self._loader.set_epoch(epoch)

    def __len__(self) -> int:
        """Return how many batches an epoch has."""
        return len(self._loader)

    def __iter__(self) -> Batches:
        return iter(self._loader)

    def next_batch(self) -> Any:
        """Return the next batch, as `DataLoader.next_batch` does."""
        return self._loader.next_batch()

    def is_finished(self) -> bool:
        """Return whether the last iteration came to its end."""
        return self._loader.is_finished()

    def close(self) -> None:
        """Stop the threads of the present epoch."""
        self._loader.close()

    stop = close

    def __enter__(self) -> ProgressiveResizeLoader:
        return self

    def __exit__(self, kind: Any, value: Any, traceback: Any) -> None:
        self.close()


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


def _sequence(given: SimpleNamespace) -> Any:
    """Return the loader of another modality than images, or None."""
    common = {name: getattr(given, name) for name in ("batch_size", "shuffle", "seed")}
    if given.dataset is not None or given.modality in _MAPS:
        source = given.data_path if given.dataset is None else given.dataset
        names = ("num_workers", "prefetch_batches", "collate_fn", "drop_last")
        return MapDataLoader(source, **{name: getattr(given, name) for name in names}, **common)
    if given.modality in _ARRAYS:
        several = given.data_path if given.arrays is None else given.arrays
        listed = several if isinstance(several, (list, tuple)) else [several]
        return ArrayDataLoader(*listed, drop_last=given.drop_last, **common)
    if given.modality in _TOKENS:
        if given.seq_len is None:
            raise SettingError("modality='tokens' requires seq_len, the tokens of a window")
        return TokenDataLoader(
            given.data_path,
            given.seq_len,
            dtype=given.token_dtype,
            world_rank=given.world_rank or 0,
            world_size=given.world_size or 1,
            **common,
        )
    if given.modality != "image":
        raise SettingError(
            f"modality must be one of image, tokens, array and map, it is {given.modality!r}"
        )
    return None


def _cache(given: SimpleNamespace) -> Cache | None:
    """Return the caches: decoded images are cached in memory without ``enable_cache`` too."""
    has_memory = given.enable_cache or given.cache_decoded
    memory = whole("cache_l1_mb", given.cache_l1_mb) * _MIB if has_memory else 0
    disk = whole("cache_l2_gb", given.cache_l2_gb) * _GIB
    if given.cache_dir is not None and disk == 0:
        raise SettingError("cache_dir needs cache_l2_gb, the size of the cache on disk")
    if memory == disk == 0:
        return None
    return Cache(memory, disk, given.cache_dir, given.cache_decoded)


def _raw_images(given: SimpleNamespace) -> TblRawImageLoader:
    """Return the loader of a file of raw images."""
    names = ("batch_size", "shuffle", "seed", "drop_last", "pin_memory", "prefetch_batches")
    same = {name: getattr(given, name) for name in (*names, "train_aug", "dtype", "channels_last")}
    return TblRawImageLoader(
        given.data_path,
        **_normalisation(given.transform),
        image_size=_size(given.transform, given.image_size),
        hflip_prob=given.hflip_prob if given.train_aug else 0.0,
        world_rank=given.world_rank or 0,
        world_size=given.world_size or 1,
        **same,
    )


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


def _pinned(images: npt.NDArray[Any]) -> Any:
    """Return a tensor of torch, in pinned memory where there is a device to copy it to."""
    import torch

    tensor = torch.from_numpy(images)
    return tensor.pin_memory() if torch.cuda.is_available() else tensor


def _flat(transform: Any) -> list[Any]:
    composed = [] if transform is None else T.Compose([transform]).transforms
    return [one for step in composed for one in getattr(step, "transforms", [step])]


def _size(transform: Any, image_size: Any) -> tuple[int, int] | None:
    """Return height and width that ``image_size`` and the last Resize agree on."""
    resizes = [step for step in _flat(transform) if isinstance(step, T.Resize)]
    size = None if image_size is None else sides("image_size", image_size)
    if not resizes:
        return None if size is None else (size[0], size[1])
    resized = resizes[-1].size
    if size is not None and size != list(resized):
        raise SettingError(
            f"Conflicting sizes: the transform has {resizes[-1]!r}, image_size is {image_size!r}; "
            "pass one of them"
        )
    return resized[0], resized[1]


def _resize_target_from_transform(transform: Any) -> tuple[int, int] | None:
    return _size(transform, None)


def _steps(
    transform: Any, image_size: Any, antialias: bool, hflip_prob: float | None
) -> list[T.Transform]:
    steps = _flat(transform)
    if image_size is None:
        if hflip_prob is not None:
            raise SettingError("train_aug needs image_size")
        return steps
    size = list(_size(transform, image_size) or ())
    if hflip_prob is not None:
        crop = [T.RandomResizedCrop(size), T.RandomHorizontalFlip(p=hflip_prob)]
        return [*crop, *(step for step in steps if not isinstance(step, T.Resize))]
    resizes = any(isinstance(step, T.Resize) for step in steps)
    return steps if resizes else [T.Resize(size, antialias=antialias), *steps]


# They make images of one size of any.
_SIZING = ("resize", "random_resized_crop", "center_crop", "random_crop")


def _sets_size(steps: Sequence[T.Transform]) -> bool:
    return any(operation["op"] in _SIZING for step in steps for operation in step.operations())


def _makes_floats(steps: Sequence[T.Transform]) -> bool:
    names = [operation["op"] for step in steps for operation in step.operations()]
    return "to_float" in names or "normalize" in names


def _normalisation(transform: Any) -> dict[str, Any]:
    """Return mean and deviation of a transform's Normalize, or None for both."""
    steps = [step for step in _flat(transform) if isinstance(step, T.Normalize)]
    return {name: getattr(steps[-1], name) if steps else None for name in ("mean", "std")}


def _is_raw(data_path: Any, transform: Any) -> bool:
    """Return whether a `TblRawImageLoader` serves this: raw images, resized and normalised."""
    if not isinstance(data_path, (str, os.PathLike)):
        return False
    path = os.fspath(data_path)
    if not str(path).lower().endswith(".tbl") or not os.path.exists(path):
        return False
    fused = (T.Resize, T.Normalize)
    if not all(isinstance(step, fused) for step in _flat(transform)):
        return False
    with original_errors(opening="TBL"):
        reader = TblReader(path)
        return len(reader) > 0 and bool(reader.entry(0)["format"] == "RAW_U8")


def _first_size(data_path: Any, store: Store | None) -> list[int]:
    """Return height and width of the first image of a data set that has a header."""
    first = data_path
    if isinstance(data_path, (list, tuple)) and data_path:
        first = data_path[0]
    with original_errors(opening="TAR"):
        reader = TblReader(first, store=store)
        for index in range(len(reader)):
            entry = reader.entry(index)
            if entry["width"] and entry["height"]:
                return [entry["height"], entry["width"]]
            try:
                info = probe(reader.read_sample(index))
            except ValueError:
                # The loader treats it as `on_error` says; the next one has a size.
                continue
            return [info.height, info.width]
    raise SettingError(f"{os.fspath(first)} has no image whose size could be taken")
