"""The loader, which a training loop iterates over."""

from __future__ import annotations

import atexit
import json
import operator
import os
import weakref
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, Literal, NoReturn, TypeVar, overload

from . import _native, _settings
from ._advice import refuse_unknown
from ._checks import whole
from ._native import Recipe, Report
from ._parts import Batches, Picked, picker
from ._paths import shown
from ._settings import SETTINGS, Settings, of_first_design
from ._warnings import warn_of_notes
from .exceptions import SettingError

if TYPE_CHECKING:
    import numpy.typing as npt
    import torch
    from typing_extensions import Self
    from typing_extensions import TypeVar as DefaultTypeVar

    from ._native import Batch, Tensor, TensorField
    from ._settings import DecodeMode, FileFormat, OutputFormat, Parity, Tail
    from .dataset import Dataset, Labels
    from .fields import Field
    from .settings import (
        Buckets,
        Cache,
        Clips,
        Columns,
        Decoder,
        Device,
        Errors,
        Memory,
        OnError,
        Ranks,
        ReaderKind,
        Readers,
        Requests,
        Retry,
        Store,
    )
    from .transforms import BatchTransform, Dtype, Function, Views

    _PathLike = str | os.PathLike[str]
    Format = DefaultTypeVar("Format", covariant=True, default=Any)
    Names = DefaultTypeVar("Names", covariant=True, default=Any)
    _GivenFormat = DefaultTypeVar("_GivenFormat", bound=OutputFormat, default=Literal["tensor"])
    _GivenFields = DefaultTypeVar(
        "_GivenFields",
        bound=(
            tuple[TensorField, TensorField]
            | Sequence[str]
            | Mapping[str, str]
            | Mapping[str, Field]
            | None
        ),
        default=None,
    )
    _Transforms = Function | Views | Recipe | Sequence[Function] | None

    class _Unknown:
        """The arguments of a loader whose annotation has none."""

    _Tensors = Literal["tensor"]
    _Numpy = Literal["numpy"]
    _Torch = Literal["torch"]
    _Pair = tuple[TensorField, TensorField]
    _Kinds = Mapping[str, Field] | None
else:
    Format = TypeVar("Format", covariant=True)
    Names = TypeVar("Names", covariant=True)

__all__ = ["DataLoader"]


# Loaders that call functions: at the end of the process their threads wait for the interpreter for
# ever, and the end for the threads.
_CALLING: weakref.WeakSet[DataLoader[Any, Any]] = weakref.WeakSet()


@atexit.register
def _close_calling() -> None:
    for loader in list(_CALLING):
        loader.close()


class DataLoader(Generic[Format, Names]):
    """Batches of a data set, epoch by epoch.

    Two defaults to know: ``num_workers=0`` uses all cores but an eighth of them, as threads of this
    process. ``seed=42`` makes every run the same; pass another number, or None for a random one.

    Batches depend on the data set, the transforms, the seed and the epoch, not on the number of
    threads. Each iteration runs the next epoch; `set_epoch` selects one. Settings that belong
    together are small objects, such as `Cache`.

    Parameters
    ----------
    data
        A `Dataset`, which `turboloader.open` returns, or a view of one; or what that opens: a TAR
        archive, a TBL, Parquet or Arrow file or a folder of classes; or a table, which is an IDV or
        TBF file; a list of these; or a pattern such as ``"train-*.tar"`` or
        ``"train-{000..099}.tar"``. A file's format is detected from its content, not its name.
    batch_size
        The number of samples in a batch of each rank.
    transform
        The transforms of each image: a `Transform`, a list of them, a `Recipe`, or a ``Compose`` of
        torchvision. A list may contain functions (see `Lambda`). None decodes images and keeps
        their sizes. `Views` applies one several times. A dict from names to transforms gives
        several images, made from one decode, ``{"view1": weak, "view2": strong}``; a tuple of names
        shares random numbers, ``{("left", "right"): train}`` with ``right`` in ``fields``.
    shuffle
        False for the stored order; True to shuffle all samples; ``"block:SAMPLESxWINDOW"`` to
        shuffle blocks of adjacent samples, and the samples of each WINDOW of them, where SAMPLES
        may be ``source`` for the blocks of the data set, such as the pages of Parquet files; or
        ``"lanes:LANES/SAMPLESxWINDOW"``, where each block also belongs to one of LANES equal parts
        of every global batch, so that ranks do not read the same blocks.
    seed
        The seed of the order and of random transforms: 42 unless given. None draws one.
    num_workers
        The number of threads; 0, the default, uses seven eighths of the cores, rounded up.
    fields
        Names, such as ``("image", "label")``: a loop gets tuples of these fields, so that
        ``for images, labels in loader`` works; a dict of names, such as
        ``{"pixel_values": "image", "labels": "label"}``, gives dicts. Or a dict of names and kinds:
        what batches have from files next to images, by name: a dict of `Text`, `Number`, `Array`,
        `Label`, `MultiLabel`, `Json`, `Bytes`, `Image`, `Mask`, `Boxes`, `InstanceMasks` and
        `Keypoints`.
    output_format
        The type of ``batch["image"]`` and the other fields: ``"tensor"`` for `Tensor`, which every
        library accepts without copying, or ``"numpy"``, ``"torch"``, ``"jax"`` or ``"tf"``.
    image_size
        The size of images without a transform: (height, width), or one number for both.
    channels
        3 for RGB, the default, 1 for grey images, as Pillow's ``convert("L")`` makes them, or 4 for
        RGB and alpha.
    pixels
        ``"uint8"``, the default, or ``"uint16"`` or ``"float32"`` for the numbers that files store,
        such as depths; transforms can only move them.
    dtype
        ``"float32"``, ``"float16"``, ``"bfloat16"`` or ``"uint8"``, or the same type of NumPy or
        torch. Of tokens ``"int64"``, the default, ``"int32"``, or ``"stored"`` for the type of the
        files.
    channels_last
        Whether channels come last. By default they do if pixels stay ``uint8``.
    decode
        Whether to decode images. False gives the stored bytes as ``batch["bytes"]``.
    views
        With ``decode=False``: whether ``batch["bytes"]`` has read-only arrays of ``uint8`` in the
        mapped files instead of copies as ``bytes``. No checksum is looked at. A file that is cut
        short later, or a page that cannot be read, reads as zeros: ``batch.check_views()`` raises
        then. What is compressed or in files of its own is copied.
    decode_margin
        Decodes photographs at the smallest scale that is at least this many times the output size,
        which is faster and within a stated distance of exact decoding.
    decode_mode
        ``"exact"``, the default without a margin, ``"fast"`` for a margin of 2, or ``"nvjpeg"``:
        NVIDIA's library decodes baseline JPEG files on ``device``, with pixels that differ a little
        from the exact ones and depend on its version. Other files are decoded exactly.
    parity
        ``"pil"`` or ``"tensor"``: transforms give the bits of torchvision on Pillow images, or on
        tensors.
    exif
        Whether to turn images upright by their EXIF or XMP orientation, as Pillow's
        ``exif_transpose`` does. By default only those of `from_hf`. TIFF images are always upright.
    batch_transform
        _Transforms that mix the images of a batch, such as `MixUp`.
    keys
        Whether batches include the names of samples. They do if ``fields`` has ``"key"``.
    labels
        Labels instead of those of the data set, as `turboloader.open` takes them.
    format
        The expected format of the files, as `turboloader.open` takes it.
    drop_last
        Whether to omit the last batch if it is incomplete.
    tail
        How to treat an incomplete last batch: ``"drop"``; ``"pad"`` adds rows that are not
        ``valid``; ``"uneven"``. By default one process keeps it, and several ranks use ``"pad"``.
    readers
        The threads that read: `Readers`, or ``"uring"`` for ``io_uring``, ``"workers"``,
        ``"planned"``, or the number of threads that read ahead. With 0 the workers read files, and
        one thread requests samples of a store before they are needed.
    buckets
        Groups images of similar sizes and pads them: `Buckets`, or its window in batches.
    cache
        Keeps samples for the next epochs: `Cache`, or its size in memory such as ``"2GB"``.
    clips
        Makes clips of videos, ``batch["video"]``: `Clips`, or their number of frames. Videos are
        MP4, MOV, Matroska, WebM and AVI files with H.264, AV1 or VP9; H.265 in builds with the
        feature ``hevc``.
    columns
        The columns of a table: `Columns`, or a list of names.
    decoders
        Functions that decode files of further formats: a list of `Decoder`, which are asked in
        order, before the formats that are built in.
    errors
        How to treat bad samples: `Errors`, or ``"raise"``, ``"skip"``, ``"replace"`` or ``"fill"``.
    retry
        The repetition of local reads that fail for a reason that may pass, such as ESTALE of a
        network file system: `Retry`, or the most attempts. By default 4 within 3 seconds.
    memory
        Limits of memory: `Memory`, or the limit for everything, such as ``"4GB"``.
    device
        The device that batches arrive on: ``"cuda"``, ``"cuda:N"`` or `Device`. None, the default,
        for memory of the host.
    pin_memory
        Whether to make batches in pinned memory, from which copies with ``non_blocking=True``
        continue while the caller does; or the device that copies, ``"cuda:N"`` or `Device`. The
        memory is used again only after the copies of torch's stream that was current when a tensor
        was taken; tell others by `Batch.record_stream`. With ``device`` batches need no copies.
    ranks
        The part that this process gets: ``"auto"`` for rank and world size of ``torch.distributed``
        or of the variables of a launcher (torchrun, DeepSpeed, Horovod, MPI, Slurm), or `Ranks`.
        None gives all of the data set.
    store
        How stores that URLs name are read: `Store`, or a dict of its options.

    Examples
    --------
    >>> loader = DataLoader("train.tar", batch_size=4, shuffle=True, image_size=224)
    >>> for batch in loader:
    ...     print(batch["image"].shape, [sample["label"] for sample in batch])
    (4, 224, 224, 3) [...]
    (4, 224, 224, 3) [...]
    (4, 224, 224, 3) [...]
    """

    # Whether to warn of notes on the data set.
    _warns = True

    if TYPE_CHECKING:
        # The parameters of `Settings`, with the two that decide on the types of batches.
        def __init__(
            self: DataLoader[_GivenFormat, _GivenFields],
            data: _PathLike | Sequence[_PathLike] | Dataset | None = None,
            batch_size: int = 32,
            transform: _Transforms | Mapping[Any, _Transforms] = None,
            *,
            shuffle: bool | str = False,
            seed: int | None = 42,
            num_workers: int = 0,
            fields: _GivenFields = None,  # type: ignore[assignment]
            output_format: _GivenFormat = "tensor",  # type: ignore[assignment]
            image_size: int | tuple[int, int] | None = None,
            channels: int | None = None,
            pixels: Dtype | None = None,
            dtype: Dtype | None = None,
            channels_last: bool | None = None,
            decode: bool = True,
            views: bool = False,
            decode_margin: float | None = None,
            decode_mode: DecodeMode | None = None,
            parity: Parity | None = None,
            exif: bool | None = None,
            batch_transform: BatchTransform | Sequence[BatchTransform] = (),
            keys: bool = False,
            labels: Labels | None = None,
            format: FileFormat | None = None,
            drop_last: bool = False,
            tail: Tail | None = None,
            readers: Readers | ReaderKind | int = 0,
            buckets: Buckets | int | None = None,
            cache: Cache | int | str | None = None,
            clips: Clips | int | None = None,
            columns: Columns | Requests | None = None,
            decoders: Sequence[Decoder] = (),
            errors: Errors | OnError | None = None,
            retry: Retry | int | None = None,
            memory: Memory | int | str | None = None,
            device: Device | torch.device | str | None = None,
            pin_memory: bool | Device | torch.device | str = False,
            ranks: Ranks | Literal["auto"] | None = None,
            store: Store | Mapping[str, str | int | bool] | None = None,
        ) -> None: ...

    else:

        @_settings.takes(Settings)
        def __init__(self, *arguments, **named):
            self._init(*arguments, **named)

    def _init(self, *arguments: Any, **named: Any) -> None:
        if len(arguments) > 2 and isinstance(arguments[2], int):
            raise SettingError(
                f"the third argument is transform, not num_workers: pass num_workers={arguments[2]}"
            )
        named = of_first_design(arguments, named)
        refuse_unknown("DataLoader", named, SETTINGS)
        given = Settings(*arguments, **named).resolved()
        self._recipe = given.recipe()
        self._settings, self._sharding = given.placed()
        self._paths, self._data = self._settings.paths, self._settings.data_set
        source = self._paths if self._data is None else self._data._native
        settings = self._settings.native(self._recipe)
        self._native = _native.Loader(source, settings)
        try:
            self._rows = self._settings.rows(self._native.kinds)
            self._settings.check_picked(self._native.fields)
        except SettingError:
            self._native.close()
            raise
        if self._rows is not None:
            self._recipe = None
        if self._warns:
            known = () if self._data is None else self._data._warned
            notes = self._native.notes(usual=False)
            warn_of_notes([note for note in notes if note not in known])
        self._next = 0
        self._current: _native.Epoch | None = None
        # How many batches the current iteration had at its start.
        self._left = 0
        self._state: str | None = None
        # Whether `set_epoch` chose the next epoch.
        self._is_chosen = False
        if settings["user_transforms"] or settings["decoders"]:
            _CALLING.add(self)

    def __len__(self) -> int:
        """Return the exact number of batches of an epoch on this rank."""
        return len(self._native)

    @overload
    def __iter__(self: DataLoader[_Unknown, _Unknown]) -> Batches[Any]: ...
    @overload
    def __iter__(self: DataLoader[_Tensors, _Kinds]) -> Batches[Batch[Tensor]]: ...
    @overload
    def __iter__(self: DataLoader[_Numpy, _Kinds]) -> Batches[Batch[npt.NDArray[Any]]]: ...
    @overload
    def __iter__(self: DataLoader[_Torch, _Kinds]) -> Batches[Batch[torch.Tensor]]: ...
    @overload
    def __iter__(self: DataLoader[Any, _Kinds]) -> Batches[Batch[Any]]: ...
    @overload
    def __iter__(self: DataLoader[_Tensors, _Pair]) -> Batches[tuple[Tensor, Tensor]]: ...
    @overload
    def __iter__(
        self: DataLoader[_Numpy, _Pair],
    ) -> Batches[tuple[npt.NDArray[Any], npt.NDArray[Any]]]: ...
    @overload
    def __iter__(
        self: DataLoader[_Torch, _Pair],
    ) -> Batches[tuple[torch.Tensor, torch.Tensor]]: ...
    @overload
    def __iter__(self: DataLoader[Any, Sequence[str]]) -> Batches[tuple[Any, ...]]: ...
    @overload
    def __iter__(self: DataLoader[Any, Mapping[str, str]]) -> Batches[dict[str, Any]]: ...
    def __iter__(self) -> Any:
        """Start the next epoch, or the rest of a loaded state's epoch, and end the current one.

        An epoch from which no batch was requested starts again, because trainers create iterators
        that they do not use. Warns if several ranks each load the whole data set.
        """
        self._sharding.begin()
        if self._current is not None and self._state is None and not self._is_chosen:
            left = self._current.remaining()
            self._state = self._current.state() if left == self._left > 0 else None
        self._end(is_replaced=True)
        epoch = self._opened()
        self._state, self._is_chosen = None, False
        self._current, self._next = epoch, epoch.number + 1
        self._left = epoch.remaining()
        if self._settings.picked is None:
            return epoch
        return Picked(epoch, picker(self._settings.picked))

    def _opened(self) -> _native.Epoch:
        """Return the batches of the next iteration."""
        if self._state is None:
            return self._native.epoch(self._next)
        if not self._is_chosen and self._native.is_over(self._state):
            return self._native.epoch(self._next + 1)
        return self._native.resume(self._state)

    @overload
    def peek(self: DataLoader[_Unknown, _Unknown]) -> Any: ...
    @overload
    def peek(self: DataLoader[_Tensors, _Kinds]) -> Batch[Tensor]: ...
    @overload
    def peek(self: DataLoader[_Numpy, _Kinds]) -> Batch[npt.NDArray[Any]]: ...
    @overload
    def peek(self: DataLoader[_Torch, _Kinds]) -> Batch[torch.Tensor]: ...
    @overload
    def peek(self: DataLoader[Any, _Kinds]) -> Batch[Any]: ...
    @overload
    def peek(self: DataLoader[Any, Sequence[str]]) -> tuple[Any, ...]: ...
    @overload
    def peek(self: DataLoader[Any, Mapping[str, str]]) -> dict[str, Any]: ...
    def peek(self) -> Any:
        """Return the first batch of the next iteration, which still begins with it.

        Looking uses up no epoch and changes no state. It decodes as many batches as are in flight.
        A bad sample of theirs is listed by `audit` each time.

        Raises
        ------
        SettingError
            If an iteration is under way, whose threads have the memory, or an epoch has no batch.
        """
        if self._current is not None and 0 < self._current.remaining() < self._left:
            raise SettingError("peek: an iteration is under way; make a second loader to look at")
        epoch = self._opened()
        try:
            batch = next(epoch, None)
        finally:
            epoch.close()
        if batch is None:
            raise SettingError("peek: the next iteration has no batch")
        return batch if self._settings.picked is None else picker(self._settings.picked)(batch)

    def set_epoch(self, epoch: int) -> None:
        """Set the epoch of the next iteration.

        A loaded state is kept if it belongs to this epoch.
        """
        epoch = whole("epoch", epoch)
        if self._state is not None and json.loads(self._state)["epoch"] != epoch:
            self._state = None
        self._next, self._is_chosen = epoch, True

    def state_dict(self) -> dict[str, Any]:
        """Return the position of the consumer: the batches received, not those prepared.

        It is the same on every rank after the same number of batches, and resumes with any number
        of threads, and of ranks with the same global batch. With ``tail="uneven"``, the state
        of a rank that has one batch less ends before the last global batch. Resumed from it, the
        rank with the last batch gets that batch, and the others get an epoch without batches.
        """
        if self._state is not None:
            text = self._state
        elif self._current is not None and not self._is_chosen:
            text = self._current.state()
        else:
            text = self._native.state(self._next)
        return json.loads(text)  # type: ignore[no-any-return]

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from ``state`` in the next iteration.

        Raises
        ------
        StateError
            If the state has a different data set, transform, order, seed or global batch.
        """
        text = json.dumps(state, default=operator.index)
        # A refused state raises here, and the current epoch continues.
        epoch = self._native.check(text)
        self._end()
        self._next = epoch
        self._state, self._is_chosen = text, False

    @property
    def epoch(self) -> int:
        """The epoch of the next iteration."""
        if self._state is None or self._is_chosen:
            return self._next
        return self._next + int(self._native.is_over(self._state))

    @property
    def recipe(self) -> Recipe | None:
        """The transforms of each image; None if the loader does not decode images."""
        return self._recipe

    @property
    def class_names(self) -> list[str]:
        """The class names, indexed by label."""
        return self._native.class_names

    @property
    def num_samples(self) -> int:
        """The number of samples in the data set."""
        return self._native.sample_count

    @property
    def audit(self) -> list[tuple[int, str, str]]:
        """The bad samples received so far: number, error, and how it was treated."""
        return self._native.audit()

    @property
    def notes(self) -> list[str]:
        """Notes, one line each: missing labels, skipped files, costly requests to a store.

        Those on the data set are also warnings when the loader is created, except counts of hidden
        files and of files without an image.
        """
        return self._native.notes()

    def remote_stats(self) -> dict[str, int]:
        """Return the requests to stores and their bytes since the loader was created.

        ``gets``, ``heads`` and ``others`` are requests, ``retries``, ``resumed`` and ``hedges``
        those among them that repeated another one, ``throttled`` and ``refused`` are answers, and
        ``wasted_bytes`` are those among ``received_bytes`` that came twice. ``connections`` is the
        most requests under way at once, ``saturated`` how often more of them brought no more bytes,
        and ``first_byte_us`` the mean time to the first byte of an answer in microseconds.
        """
        return self._native.remote_stats()

    def cache_stats(self) -> dict[str, dict[str, int]]:
        """Return the contents and counters of the caches: a dict each of ``"memory"``, ``"disk"``.

        ``entries`` and ``bytes`` are what a cache has now, ``hits`` and ``misses`` how often a
        sample was found or not, ``inserted``, ``refused`` and ``evicted`` what became of others.
        ``"disk"`` also has ``bytes_from_blocks``, the bytes of samples that blocks had,
        ``dropped_blocks``, those that the disk was too slow to take, ``large_blocks``, which have
        more than half of ``read_ahead``, ``bad_entries``, which were damaged, and ``faults``, what
        the disk refused.
        """
        return self._native.cache_stats()

    def report(self) -> Report:
        """Return how the loader spent its time, and what limits it."""
        return self._native.report()

    def explain(self) -> str:
        """Return the plan: data, order, threads and memory, and the step of each transform."""
        return self._native.explain()

    def close(self) -> None:
        """Stop the threads. Received batches stay valid."""
        self._end()
        self._native.close()

    def _end(self, *, is_replaced: bool = False) -> None:
        if self._current is not None:
            self._current.close(is_replaced=is_replaced)
            self._current = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def __getitem__(self, index: Any) -> NoReturn:
        raise TypeError(
            "a DataLoader cannot be indexed: turboloader.torch.Dataset has samples by number, and "
            "torch's DataLoader takes a turboloader.torch.IterableDataset"
        )

    def __getstate__(self) -> dict[str, Any]:
        if self._current is not None:
            raise TypeError(
                "a DataLoader cannot be pickled after its first epoch has begun: "
                "pickle it before, and send its state_dict()"
            )
        return {name: value for name, value in self.__dict__.items() if name != "_native"}

    def __setstate__(self, kept: dict[str, Any]) -> None:
        # The process that pickled the loader has warned.
        self._warns = False
        # Subclasses have other arguments, so this calls the method of this class.
        DataLoader.__init__(self, **vars(kept["_settings"]))
        self.__dict__.update(kept)

    def __repr__(self) -> str:
        paths = shown(self._paths[0]) if len(self._paths) == 1 else f"{len(self._paths)} sources"
        paths = paths if self._data is None else repr(self._data)
        rows = self._rows or "stored bytes"
        work = rows if self._recipe is None else self._recipe
        size = self._settings.batch_size
        return f"DataLoader({paths}, {len(self)} batches of {size}: {work})"
