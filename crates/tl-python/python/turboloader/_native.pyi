# Written by stubs.py.
"""The native classes and functions of the package."""

from collections.abc import Callable, Iterator, Mapping
from os import PathLike
from typing import Any, Final, Generic, Literal, SupportsFloat, SupportsIndex, final, overload

import jax
import numpy.typing as npt
import torch
from _typeshed import SupportsGetItem, SupportsLenAndGetItem
from typing_extensions import TypeVar, disjoint_base

from ._parts import BatchPart
from .settings import Store

__all__ = [
    "DTYPES",
    "HAS_ARROW",
    "HAS_REMOTE",
    "Batch",
    "Dataset",
    "Epoch",
    "IdvFile",
    "ImageInfo",
    "Job",
    "Loader",
    "Recipe",
    "Report",
    "Samples",
    "TbfSegment",
    "TbfWriter",
    "TblReader",
    "TblWriter",
    "Tensor",
    "__version__",
    "box_class_names",
    "coco",
    "coco_mask",
    "convert",
    "convert_table",
    "decode",
    "decode_jpeg",
    "end_uploads",
    "expand",
    "expand_braces",
    "find_tbf",
    "flip_pairs",
    "has_io_uring",
    "in_memory",
    "lerobot",
    "manifest",
    "open_raw_view",
    "pairs",
    "probe",
    "rows",
    "run_shard",
    "signatures",
    "tar_to_tbl",
    "tensor_of",
    "tl",
    "tokenize",
    "tokens",
    "verify",
    "with_classes",
    "with_imagenet_labels",
    "with_labels",
]

Values = TypeVar("Values", covariant=True, default=Any)
TensorField = Literal["image", "label", "soft_label", "index", "valid", "size", "mask"]

DTYPES: Final[list[str]]
"""
The types of numbers in batches.
"""

HAS_ARROW: Final[bool]
"""
Whether this build reads Parquet and Arrow files.
"""

HAS_REMOTE: Final[bool]
"""
Whether this build reads stores and web servers.
"""

__version__: Final[str]

@final
class Batch(Generic[Values]):
    """
    Samples with their labels, in the order of the epoch.

    ``batch["image"]`` or ``batch.image`` is one tensor for all samples, ``batch[0]`` a dict of the
    first sample, ``batch[2:4]`` a `BatchPart`, and iterating gives one sample after the other.
    ``keys()``, ``values()`` and ``items()`` are those of the fields, so that ``dict(batch)`` and
    ``**batch`` work. Pickling and deep copies give a `BatchPart` with its fields.

    Fields are of the library that ``output_format`` of `DataLoader` names; ``Batch[torch.Tensor]``
    is the annotation of a batch with ``output_format="torch"``. The memory belongs to the holders of
    the batch and its parts: it can be written, and the loader uses it again only when all of them
    are gone.

    Attributes
    ----------
    image
        (batch, height, width, channels) of ``uint8``, or (batch, channels, height, width) of floats
        where transforms make them; with `Views`, (batch, views, ...). A list of (height, width,
        channels) if images keep their own sizes.
    bytes
        With ``decode=False`` in place of images: a list of ``bytes`` as they are stored.
    label
        (batch,) of ``int64``, -1 for none.
    tokens
        Of `turboloader.tokens`: (batch, length) of ``int64``; ``targets`` has the token after each, and
        shares the memory. With documents, ``positions`` is (batch, length) of ``int32``, and
        ``cu_seqlens`` a list of ``int32``: where each document begins in its row, and the end.
    `soft_label`
        With ``num_classes`` of `MixUp` or `CutMix`: (batch, classes) of ``float32``.
    index
        (batch,) of ``int64``: the numbers of the samples in the stored data set.
    valid
        (batch,) of ``bool``: False for rows that only complete a batch.
    size
        (batch, 2) of ``int32``: height and width of the image in its row, without padding.
    key
        With ``keys=True``: a list of names.
    mask
        With `Mask`: (batch, height, width) of ``uint8`` or ``int64``, or a list.
    boxes
        With `Boxes`: a list of (boxes, 4) of ``float32``; ``box_labels`` and ``box_index`` are lists
        of (boxes,) of ``int64``.
    masks
        With `InstanceMasks`: a list of (objects, height, width) of ``uint8``.
    number : int
        The number of the batch in its epoch, from 0.

    Further kinds in ``fields``: `Keypoints` of objects gives a list of (objects, points, 2 or 3), that
    of samples (batch, points, 2 or 3); `Array` gives (batch, *shape), `Number` and `Label` (batch,),
    `MultiLabel` (batch, classes), `Image` what ``image`` is, and `Text`, `Json` and `Bytes` lists.
    """

    @classmethod
    def __class_getitem__(cls, /, fields: Any) -> Any:
        """The class for annotations with the type of fields, as in ``Batch[torch.Tensor]``."""
    image: Values
    label: Values
    soft_label: Values
    index: Values
    valid: Values
    size: Values
    mask: Values
    def __contains__(self, name: str, /) -> bool: ...
    def __getattr__(self, name: str, /) -> Any:
        """Field ``name`` as an attribute."""
    @overload
    def __getitem__(self, key: int, /) -> dict[str, Any]: ...
    @overload
    def __getitem__(self, key: slice, /) -> BatchPart[Values]: ...
    @overload
    def __getitem__(self, key: TensorField, /) -> Values: ...
    @overload
    def __getitem__(self, key: str, /) -> Any: ...
    def __iter__(self, /) -> Iterator[dict[str, Any]]:
        """The samples, one after the other."""
    def __len__(self, /) -> int:
        """How many samples it has."""
    def __reduce__(self, /) -> tuple[Any, ...]:
        """Pickles and copies the fields, as a `BatchPart`."""
    def __repr__(self, /) -> str: ...
    def check_views(self, /) -> None:
        """
        Raises `ReadError` or `ChangedWhileOpenError` if the files below a batch of views do not have
        its samples any more, or if a page of them could not be read. Success after the views were
        read means that they had the bytes of the files. Other batches always succeed.
        """
    def get(self, /, name: str, default: Any | None = None) -> Any:
        """Field ``name``, or ``default`` if the batch lacks it."""
    def items(self, /) -> list[tuple[str, Any]]:
        """The fields with their names."""
    def jax(self, /) -> dict[str, Any]:
        """The fields as a dict of ``jax.Array`` that share the batch's memory."""
    def keys(self, /) -> list[str]:
        """The names of the fields."""
    @property
    def number(self, /) -> int:
        """The batch's number in its epoch, from 0."""
    def numpy(self, /) -> dict[str, Any]:
        """The fields as a dict of NumPy arrays that share the batch's memory."""
    def record_stream(self, /, stream: Any) -> None:
        """
        Tells a batch on a device, or in pinned memory, that a stream reads it, so that its memory is used
        again only after what the stream does until the batch and its tensors are gone: a
        ``torch.cuda.Stream``, or the number of a stream. Streams that tensors were taken on are known;
        others have to be told.
        """
    def tensors(self, /) -> dict[str, Any]:
        """The fields as a dict of `Tensor`, and of lists of other values."""
    def tf(self, /) -> dict[str, Any]:
        """The fields as a dict of ``tf.Tensor`` that share the batch's memory."""
    def to(self, /, device: Any, non_blocking: bool = True) -> dict[str, Any]:
        """
        The fields as a dict of ``torch.Tensor`` on a device. A device of CUDA gets them by way of
        pinned memory, so that the copy continues while the caller does.
        """
    def torch(self, /) -> dict[str, Any]:
        """The fields as a dict of ``torch.Tensor`` that share the batch's memory."""
    def values(self, /) -> list[Any]:
        """The fields."""

@final
class Dataset:
    """Some samples of a data set, in an order, or draws from them."""

    def __len__(self, /) -> int: ...
    def balance(self, /, length: str) -> Dataset: ...
    @property
    def class_names(self, /) -> list[str]:
        """The names of the classes, indexed by label."""
    @staticmethod
    def concat(views: SupportsGetItem[int, Dataset]) -> Dataset:
        """The samples of all, one after the other."""
    def entry(self, /, place: SupportsIndex) -> dict[str, Any]:
        """
        The index entry of the sample at ``place``: a dict of index, key, label, format, width,
        height and bytes.
        """
    def explain(self, /) -> str:
        """The views that it was made by, and what each cost."""
    def fields(self, /, place: SupportsIndex) -> list[tuple[str, bytes]]:
        """The name and the bytes of each further file of the sample at ``place``."""
    def filter(self, /, condition: str) -> Dataset: ...
    def fold(
        self, /, fold: SupportsIndex, of: SupportsIndex, seed: SupportsIndex, stratify: bool
    ) -> tuple[Dataset, Dataset]:
        """The other folds, and this one."""
    def image(self, /, place: SupportsIndex, exif: bool) -> Tensor:
        """The pixels of the sample at ``place``, of shape (height, width, 3); with ``exif`` upright."""
    def index(self, /, place: SupportsIndex) -> int:
        """The number in the stored data set of the sample at ``place``."""
    def indices(self, /) -> Tensor:
        """The numbers of the samples in the stored data set, as ``int64``."""
    def is_plain(self, /) -> bool:
        """Whether the samples are known before an epoch is drawn."""
    def is_whole(self, /) -> bool:
        """Whether it has all samples of the data set, in their order."""
    def keys(self, /) -> list[str | None]:
        """The names of the samples."""
    @property
    def kinds(self, /) -> list[str]:
        """The kinds of its sources, each once."""
    def labels(self, /) -> Tensor:
        """The labels of the samples as ``int64``, -1 for none. One that cannot be read is an error."""
    def locations(self, /) -> list[str]:
        """The path or URL of each source."""
    def mean_std(
        self, /, pixels: str, channels: SupportsIndex
    ) -> tuple[list[float], list[float], int]:
        """
        Mean and standard deviation of each channel over all pixels of this type and as many channels,
        and the number of images.
        """
    @staticmethod
    def mix(
        views: list[tuple[Dataset, int]], length: str, stages: list[tuple[int, list[int]]]
    ) -> Dataset:
        """The samples of all in the proportion of their weights."""
    def notes(self, /, *, usual: bool = True, knows_images: bool = False) -> list[str]:
        """
        Notes on the data set, such as labels that are missing; ``usual`` is as in `Loader.notes`.
        ``knows_images`` leaves out those on samples with several images.
        """
    @staticmethod
    def open(
        paths: list[str],
        stores: Store | None = None,
        label: str | None = None,
        image: str | None = None,
    ) -> Dataset:
        """
        Opens a data set. Rows of tables get the labels of the column ``label``; rows of Parquet files
        also the images of the column ``image``.
        """
    def read(self, /, place: SupportsIndex) -> bytes:
        """The bytes of the sample at ``place``, checked against the checksums that the file has."""
    def repeat(self, /, count: SupportsIndex) -> Dataset: ...
    def select_classes(self, /, names: SupportsGetItem[int, str]) -> Dataset: ...
    def select_labels(self, /, labels: SupportsGetItem[int, SupportsIndex]) -> Dataset: ...
    def shard(self, /, number: SupportsIndex, of: SupportsIndex) -> Dataset: ...
    def sheet(self, /, count: SupportsIndex, side: SupportsIndex, exif: bool) -> bytes:
        """A PNG file of up to ``count`` samples, spread over the data set; with ``exif`` they are upright."""
    def skip(self, /, count: SupportsIndex) -> Dataset: ...
    def slice(self, /, start: SupportsIndex, stop: SupportsIndex) -> Dataset: ...
    def split(
        self,
        /,
        fractions: SupportsGetItem[int, SupportsFloat | SupportsIndex],
        seed: SupportsIndex,
        stratify: bool,
    ) -> list[Dataset]:
        """Random parts of these sizes."""
    def stats(self, /, pixels: tuple[str, SupportsIndex] | None) -> dict[str, Any]:
        """
        Counts of the samples, as a dict of what `Dataset.stats` documents; with a type of pixels and
        their channels also the figures of these.
        """
    def subset(self, /, places: SupportsGetItem[int, SupportsIndex]) -> Dataset: ...
    def take(self, /, count: SupportsIndex) -> Dataset: ...
    def weights(
        self,
        /,
        weights: SupportsGetItem[int, SupportsFloat | SupportsIndex],
        replacement: bool,
        count: SupportsIndex | None,
    ) -> Dataset: ...
    def whole(self, /) -> Dataset:
        """All samples of the data set that this is a view of."""

@final
class Epoch:
    """The batches of one epoch, in order."""

    def __iter__(self, /) -> Epoch: ...
    def __next__(self, /) -> Batch: ...
    def close(self, /, *, is_replaced: bool = False) -> None:
        """Stops the threads; ``is_replaced`` says that another iteration of the loader begins."""
    def next(self, /, timeout: float | None = None) -> Batch:
        """
        The next batch, which is waited for at most ``timeout`` seconds: 0 takes only a batch that is
        ready, None waits for as long as it takes. One thread may take batches at a time: a call waits
        for that of another thread first.

        Raises `StopIteration` after the last batch, and `BatchTimeoutError`, which is a
        ``TimeoutError``, if the time is over. The batch is then that of the next call.
        """
    @property
    def number(self, /) -> int:
        """The epoch's number."""
    def remaining(self, /) -> int:
        """How many batches are still to come."""
    def state(self, /) -> str:
        """The state after the last batch that was received, as JSON."""

@final
class IdvFile:
    """An open IDV file."""

    def __new__(cls, /, path: str | PathLike[str], stores: Store | None = None) -> IdvFile: ...
    def arrow_schema(self, /, time_unit: str) -> Any:
        """The schema of the columns that can be read, by Arrow's C data interface."""
    def arrow_stream(self, /, time_unit: str) -> Any:
        """Their rows, by Arrow's C stream interface."""
    def columns(self, /) -> list[dict[str, Any]]:
        """The entries of the table of contents: a dict for each column."""
    def find(self, /, name: str) -> int | None:
        """The number of the last column of this name."""
    def lend(self, /, column: SupportsIndex) -> Tensor | None:
        """The values of a column where they lie in the file, or nothing where they have to be read."""
    def metadata(self, /, column: SupportsIndex) -> dict[str, dict[str, Any]]:
        """A column's metadata: for each kind its value in parts, or why it cannot be read."""
    def read(self, /, column: SupportsIndex, start: SupportsIndex, end: SupportsIndex) -> Any:
        """The values of some rows of a column, in parts."""
    @property
    def row_count(self, /) -> int: ...

@final
class ImageInfo:
    """The header of an image."""

    def __repr__(self, /) -> str: ...
    @property
    def bit_depth(self, /) -> int:
        """Bits of one stored sample."""
    @property
    def channels(self, /) -> int:
        """Channels, as stored."""
    @property
    def format(self, /) -> str:
        """The file format, as in ``"JPEG"``."""
    @property
    def height(self, /) -> int:
        """Rows, as stored."""
    @property
    def upright_size(self, /) -> tuple[int, int]:
        """Width and height once the image is turned as its EXIF data say."""
    @property
    def width(self, /) -> int:
        """Pixels in a row, as stored."""

@final
class Job:
    """The shards of a job, and the report that their records make. ``task`` is JSON, as records have it."""

    def __len__(self, /) -> int:
        """How many shards there are."""
    def __new__(
        cls,
        /,
        task: str,
        sources: list[str],
        *,
        output: str | None = None,
        records: str | None = None,
        report: str | None = None,
        overwrite: bool = False,
        stores: Store | None = None,
    ) -> Job:
        """Lists the shards, makes local folders for results, and begins the report."""
    def add(self, /, number: SupportsIndex, record: str) -> None:
        """Adds the record of shard ``number`` to the report."""
    def clean_up(self, /) -> None:
        """Removes incomplete results of killed processes of this job."""
    def failure(self, /, number: SupportsIndex, error: str) -> str:
        """The record of shard ``number``, whose task has ended with this error outside of `run_shard`."""
    def finish(self, /) -> str:
        """Completes the report, and returns its totals as JSON."""
    def places(self, /, number: SupportsIndex) -> tuple[str, str | None, str | None, bool]:
        """
        The places of shard ``number``, for `run_shard`: its source, its output, its record, and whether
        to replace an output that has no record.
        """
    def written(self, /) -> int:
        """How many shards the report has: each before the first one whose record has not come."""

@final
class Loader:
    """A data set and what is done with it, open."""

    def __len__(self, /) -> int:
        """How many batches an epoch has for this rank."""
    def __new__(cls, /, dataset: Dataset | list[str], settings: dict[str, Any]) -> Loader: ...
    def audit(self, /) -> list[tuple[int, str, str]]:
        """The bad samples in the batches received so far: the error, and how each was handled."""
    def cache_stats(self, /) -> dict[str, dict[str, int]]:
        """The contents and counters of the caches: of ``"memory"`` and ``"disk"`` a dict each."""
    def check(self, /, state: str) -> int:
        """Refuses a state that `resume` would refuse, and returns its epoch."""
    @property
    def class_names(self, /) -> list[str]:
        """The names of the classes, indexed by label."""
    def close(self, /) -> None:
        """Stops the threads and closes the files, once the last batch is gone."""
    def epoch(self, /, epoch: SupportsIndex) -> Epoch:
        """The batches of this epoch."""
    def explain(self, /) -> str:
        """The plan in words."""
    @property
    def fields(self, /) -> list[str]:
        """The names of the fields of its batches."""
    def is_over(self, /, state: str) -> bool:
        """Whether all ranks have received all batches of the state's epoch."""
    @property
    def kinds(self, /) -> list[str]:
        """
        The kinds of the files, each once: ``"folder"``, ``"files"``, ``"manifest"``, ``"tar"``,
        ``"images"``, ``"tbl"``, ``"idv"`` or ``"tbf"``.
        """
    def notes(self, /, *, usual: bool = True) -> list[str]:
        """
        Notes on the data set, such as files that were passed over, and on the loader.

        ``usual`` is whether to list counts of hidden files and of files without an image, too.
        """
    def remote_stats(self, /) -> dict[str, int]:
        """Requests to stores and bytes of them so far, by name."""
    def report(self, /) -> Report:
        """The counters, read as rates and shares."""
    def resume(self, /, state: str) -> Epoch:
        """The batches that are left of the epoch of this state, as JSON."""
    @property
    def sample_count(self, /) -> int:
        """How many samples the data set has."""
    def state(self, /, epoch: SupportsIndex) -> str:
        """The state at the start of this epoch, as JSON."""

@final
class Recipe:
    """A checked list of transforms and the form of what they make: plain data with a hash."""

    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self, /) -> int: ...
    def __reduce__(self, /) -> tuple[Any, tuple[str]]:
        """Pickles as JSON."""
    def __repr__(self, /) -> str: ...
    def __str__(self, /) -> str: ...
    def apply(
        self,
        /,
        pixels: bytes,
        size: tuple[SupportsIndex, SupportsIndex],
        draw: tuple[SupportsIndex, SupportsIndex, SupportsIndex],
        user_transforms: dict[str, Callable[[Any], Any]] | None = None,
    ) -> Tensor:
        """
        Applies the recipe to one image: `width * height` pixels of red, green and blue, or of its own
        type and channels where these are others than 8-bit RGB or grey.

        Recipes with several views make a tensor with these first. `user_transforms` are the functions
        that the recipe names.
        """
    @staticmethod
    def check_operation(op: str) -> None:
        """Refuses an operation, given as JSON, for its parameters and for what is within it."""
    @staticmethod
    def from_json(text: str) -> Recipe:
        """The recipe of this JSON text, as `tl explain --json` and `Recipe.to_json` write it."""
    @property
    def hash(self, /) -> str:
        """The hash of all that decides what it makes."""
    @staticmethod
    def imagenet_eval(size: SupportsIndex = 224) -> Recipe:
        """The usual ImageNet evaluation recipe."""
    @staticmethod
    def imagenet_train(size: SupportsIndex = 224) -> Recipe:
        """The usual ImageNet training recipe."""
    @staticmethod
    def of_ops(ops: str, batch_ops: str, options: dict[str, Any]) -> Recipe:
        """
        The recipe of these operations, given as JSON lists: a conversion to floats is put in where
        the type or a normalisation takes one.
        """
    @property
    def output_size(self, /) -> tuple[int, int] | None:
        """Width and height of every result, or nothing where they depend on the image."""
    def plan(
        self,
        /,
        width: SupportsIndex,
        height: SupportsIndex,
        *,
        seed: SupportsIndex,
        epoch: SupportsIndex = 0,
        sample: SupportsIndex = 0,
    ) -> str:
        """
        Everything random about one sample, an image of this size, as JSON text: its crop, flips,
        angles and factors. A data set numbers its samples from 0, as ``batch["index"]`` does.
        """
    def to_json(self, /) -> str:
        """The recipe as JSON text, which `from_json` reads."""
    def with_draws(self, /, draws: SupportsIndex) -> Recipe:
        """The same recipe carried out this many times on every image, each with other random numbers."""

@final
class Report:
    """The use of a loader's time, and its limit."""

    def __repr__(self, /) -> str: ...
    def __str__(self, /) -> str: ...
    @property
    def batches(self, /) -> int:
        """Batches received."""
    @property
    def batches_in_use(self, /) -> int:
        """Batches whose memory is in use now: in the making, ready, or with the consumer."""
    @property
    def consumer_wait(self, /) -> float:
        """The part of its time that the consumer waited, 0 to 1."""
    @property
    def copies(self, /) -> dict[str, int]:
        """
        The copies of batches to a device: how many, images decoded there, those of them by nvJPEG, their
        bytes, nanoseconds of the device for copies and conversions, and bytes of its memory. Empty
        without copies.
        """
    @property
    def line(self, /) -> str:
        """
        The rate, the part of the time waited for batches, the limit, and the batches in use, in one line
        of less than 80 columns.
        """
    @property
    def rate(self, /) -> float:
        """Samples received in a second."""
    @property
    def reachable(self, /) -> float:
        """Samples a second if what limits took no time."""
    @property
    def retries(self, /) -> dict[str, int]:
        """
        Local reads that were repeated because their errors may pass: how many, samples that were given
        up, and nanoseconds of waits. Zeros without any.
        """
    @property
    def samples(self, /) -> int:
        """Samples received."""
    def since(self, /, earlier: Report) -> Report:
        """The report on what came after ``earlier``, a report of the same loader."""
    @property
    def verdict(self, /) -> str:
        """The limit of the loader, in one sentence."""
    @property
    def worker_wait(self, /) -> float:
        """The part of their time that the workers waited for the consumer, 0 to 1."""

@final
class Samples:
    """
    The samples of a data set, each transformed by a recipe: the same bytes as in a loader's
    batches.

    It starts no threads, so it keeps working in a forked process.
    """

    def __len__(self, /) -> int: ...
    def __new__(
        cls,
        /,
        dataset: Dataset | list[str],
        recipe: Recipe,
        *,
        seed: SupportsIndex,
        exif: bool = False,
        user_transforms: dict[str, Callable[[Any], Any]] | None = None,
        files: list[str] | None = None,
        stores: Store | None = None,
    ) -> Samples:
        """Opens the data set."""
    @property
    def class_names(self, /) -> list[str]:
        """The names of the classes, indexed by label."""
    def files(self, /, index: SupportsIndex) -> list[bytes | None]:
        """The bytes of each sidecar file of sample ``index`` that is asked for, None where it has none."""
    def image(
        self,
        /,
        index: SupportsIndex,
        epoch: SupportsIndex,
        number: SupportsIndex | None = None,
        seed: SupportsIndex | None = None,
    ) -> Tensor:
        """
        Applies the recipe to sample ``index`` in this epoch; the result has shape (height, width,
        channels) or (channels, height, width). Recipes with several views make a tensor with these first.

        ``number`` is the sample's where this data set is a part of a larger one, whose bytes it has.
        ``seed`` replaces that of the data set.
        """
    def key(self, /, index: SupportsIndex) -> str | None:
        """Sample ``index``'s name, if it has one."""
    def label(self, /, index: SupportsIndex) -> int | None:
        """Sample ``index``'s label, if it has one. One that cannot be read is an error."""
    def labels(self, /) -> list[int | None]:
        """The labels of all samples. One that cannot be read is an error."""
    def nbytes(self, /, start: SupportsIndex, stop: SupportsIndex) -> int:
        """How many bytes these samples have, together."""
    def notes(self, /, *, usual: bool = True) -> list[str]:
        """Notes on the data set, such as labels that are missing; ``usual`` is as in `Loader.notes`."""
    def number(self, /, index: SupportsIndex) -> int:
        """The number in the stored data set of sample ``index``."""
    def read(self, /, index: SupportsIndex) -> bytes:
        """The bytes of sample ``index``, checked against the checksums that the file has."""
    def require_images(self, /) -> None:
        """Refuses a data set without samples, or without an image."""
    def shards(self, /) -> list[tuple[str, int, int]]:
        """The path or URL of each file or folder, its first sample, and the one after its last."""

@final
class TbfSegment:
    """An open segment."""

    def __new__(
        cls,
        /,
        path: str | PathLike[str],
        key: SupportsLenAndGetItem[SupportsIndex] | None = None,
        stores: Store | None = None,
    ) -> TbfSegment: ...
    def column(self, /, name: str) -> Tensor:
        """A column of every node."""
    def decoded(self, /) -> Tensor:
        """All vectors as `float32`."""
    @property
    def dim(self, /) -> int: ...
    @property
    def dtype(self, /) -> str:
        """The type of the stored vectors' components."""
    @property
    def edge_count(self, /) -> int: ...
    def edges(self, /, incoming: bool) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Edges by the node they leave, or reach: row pointers, nodes, weights and relations."""
    def embeddings(self, /) -> Tensor:
        """The components of all vectors as they are stored, one vector a row."""
    def find(self, /, id: SupportsLenAndGetItem[SupportsIndex]) -> int | None:
        """The row of the first node with this id."""
    def find_time(self, /, start: SupportsIndex, end: SupportsIndex | None) -> Tensor:
        """The rows of the nodes from `start` on and before `end`, by their timestamps."""
    @property
    def node_count(self, /) -> int: ...
    def quantization(self, /) -> tuple[Tensor, Tensor]:
        """Scale and zero point of every vector of `int8`: two tensors."""
    @property
    def regions(self, /) -> list[str]:
        """The names of the regions that there are."""
    def similar(
        self, /, query: int | list[float], k: SupportsIndex, metric: str
    ) -> tuple[Tensor, Tensor]:
        """The `k` nearest rows and their scores, the nearest first."""
    def text(self, /, row: SupportsIndex) -> str:
        """The text of a node."""

@final
class TbfWriter:
    """A segment that is being written."""

    def __new__(
        cls, /, path: str | PathLike[str], dim: SupportsIndex, settings: dict[str, Any]
    ) -> TbfWriter: ...
    def finish(self, /) -> int:
        """Gives the file its name. Returns its bytes."""
    def push(self, /, nodes: dict[str, Any]) -> None:
        """Adds nodes."""
    def push_edges(self, /, edges: dict[str, Any]) -> None:
        """Adds edges."""

@disjoint_base
class TblReader:
    """
    An open TBL file, or any other stored data set: numbered samples.

    ``reader[i]`` is the bytes of sample ``i``, ``reader.entry(i)`` what the index knows of it.
    """

    def __getitem__(self, index: SupportsIndex, /) -> bytes: ...
    def __len__(self, /) -> int: ...
    def __new__(
        cls,
        /,
        path: str | PathLike[str],
        stores: Store | None = None,
        worker_id: SupportsIndex = 0,
        num_workers: SupportsIndex = 1,
    ) -> TblReader:
        """Opens a TBL file, a TAR archive or a folder, or one part of its samples."""
    def __repr__(self, /) -> str: ...
    @property
    def class_names(self, /) -> list[str]:
        """The names of the classes, indexed by label."""
    def entry(self, /, index: SupportsIndex) -> dict[str, Any]:
        """
        The index entry of sample ``index``: a dict of key, label, format, width, height, offset,
        `stored_bytes` and bytes.
        """
    def fields(self, /, index: SupportsIndex) -> dict[str, bytes]:
        """The fields of sample ``index``: the bytes of each file next to it, by extension."""
    def get_format(self, /, index: SupportsIndex) -> str:
        """The format of sample ``index``, such as ``"JPEG"``, as `entry` has it."""
    def is_memory_mapped(self, /) -> bool:
        """
        Whether stored bytes of its samples lie in a mapping of the file: `DataLoader` with ``views``
        hands these out without copying them, while `read_sample` copies. Not of samples that are
        compressed or in files of their own, and not of stores.
        """
    def metadata(self, /, index: SupportsIndex | None = None) -> list[tuple[str, bytes]]:
        """
        The metadata blocks of sample ``index`` or, without one, of the whole file: a list of
        ``(kind, data)`` in stored order.

        A kind is ``json``, ``protobuf``, ``msgpack``, ``custom``, ``none`` or ``type_7`` for another
        number; the data is bytes as they are stored. A sample that was written with a key or a label
        and without metadata has them as JSON. The application's fields in the header of a version 1
        file are JSON of ``creation_timestamp``, ``dataset_version`` and ``custom_flags``. TAR
        archives and folders have no metadata.
        """
    @property
    def num_samples(self, /) -> int:
        """How many samples there are."""
    def read_sample(self, /, index: SupportsIndex) -> bytes:
        """The bytes of sample ``index``, checked against the checksums that the file has."""

@disjoint_base
class TblWriter:
    """
    Writes a TBL file sample by sample; the file has its name once all is well.

    As a context manager it is finished at the end, and discarded where an exception ended it.
    """

    def __enter__(self, /) -> TblWriter: ...
    def __exit__(self, /, kind: Any | None, _value: Any | None, _traceback: Any | None) -> bool: ...
    def __new__(
        cls,
        /,
        path: str | PathLike[str],
        *,
        lz4: bool = False,
        overwrite: bool = False,
        sync: bool = True,
        class_names: list[str] | None = None,
        box_class_names: list[str] | None = None,
        compression: str | None = None,
        sample_count: SupportsIndex | None = None,
        stores: Store | None = None,
    ) -> TblWriter:
        """Starts a file that will be called ``path``; the class of Python has the parameters."""
    def add_metadata(
        self,
        /,
        index: SupportsIndex | None,
        data: str | bytes | bytearray | memoryview,
        kind: str = "json",
    ) -> None:
        """
        Adds a metadata block to sample ``index``, which has been added, or with ``None`` to the whole
        file; ``kind`` is as in `TblReader.metadata`.

        The data is stored as it is, text as UTF-8. A sample keeps its blocks in the order in which
        they are added.
        """
    def add_pixels(
        self,
        /,
        pixels: npt.NDArray[Any],
        *,
        key: str | bytes | None = None,
        label: SupportsIndex | None = None,
    ) -> None:
        """
        Adds an image as raw pixels: an array of ``uint8`` and shape (height, width, 3). Reading it
        decodes nothing, but takes many times the bytes of a photograph.
        """
    def add_sample(
        self,
        /,
        data: bytes | bytearray | memoryview,
        *,
        key: str | bytes | None = None,
        label: SupportsIndex | None = None,
        fields: Mapping[str, str | bytes | bytearray | memoryview] | None = None,
    ) -> None:
        """
        Adds a sample. What it is, and its size if it is an image, is read from its bytes.

        ``fields`` has the files next to the sample by their extensions, such as ``json``, ``txt``
        or ``seg.png``: bytes, or text that is stored as UTF-8. They are the fields of batches, and
        members of archives that the file is converted to. The label is that of ``label`` alone.

        A key that is not UTF-8 is passed as it is read, in surrogate escapes, or as bytes. This
        also holds for extensions.
        """
    def discard(self, /) -> None:
        """Gives up what was written."""
    def finish(self, /) -> int:
        """Completes the file and gives it its name; returns its size in bytes."""
    @property
    def num_samples(self, /) -> int:
        """How many samples have been written."""

@final
class Tensor:
    """
    Numbers in C order in memory that the importing libraries share. Rows of a mapped file and of
    tokens may have bytes between them.

    Comparison and conversion to Python scalars follow NumPy.

    ``numpy()``, ``torch()``, ``jax()`` and ``tf()`` copy nothing, and ``numpy.asarray`` and every
    library's ``from_dlpack`` take it. The memory lasts until the last of them is gone.
    """

    def __array__(self, /, dtype: Any | None = None, copy: bool | None = None) -> npt.NDArray[Any]:
        """Converts the tensor for ``numpy.asarray`` where the array interface is not enough."""
    @property
    def __array_interface__(self, /) -> dict[str, Any]:
        """NumPy's array interface, version 3."""
    def __bool__(self, /) -> bool: ...
    def __buffer__(self, /, _flags: SupportsIndex) -> memoryview:
        """A memoryview of the array."""
    @property
    def __cuda_array_interface__(self, /) -> dict[str, Any]:
        """
        The CUDA array interface, version 3, of a tensor on a device. Consumers wait for its stream,
        and name those that read the tensor with ``record_stream``; the legacy stream is
        taken to read it.
        """
    def __dlpack__(
        self,
        /,
        *,
        stream: Any | None = None,
        max_version: tuple[SupportsIndex, SupportsIndex] | None = None,
        dl_device: tuple[SupportsIndex, SupportsIndex] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """The tensor as a DLPack capsule: a versioned one where ``max_version`` is (1, 0) or more."""
    def __dlpack_device__(self, /) -> tuple[int, int]:
        """``(1, 0)``: the CPU; ``(2, N)``: CUDA device N."""
    def __eq__(self, other: object, /) -> Any: ...
    def __float__(self, /) -> Any: ...
    def __format__(self, /, format: str) -> Any:
        """One number formatted as Python formats it; without a format any tensor as ``str`` has it."""
    def __ge__(self, other: object, /) -> Any: ...
    def __iter__(self) -> Iterator[Tensor]: ...
    @overload
    def __getitem__(self, index: int, /) -> Tensor: ...
    @overload
    def __getitem__(self, index: Any, /) -> Any:
        """Row ``index`` as a tensor that shares the memory; anything else as NumPy does it."""
    def __gt__(self, other: object, /) -> Any: ...
    def __hash__(self, /) -> int: ...
    def __index__(self, /) -> Any: ...
    def __int__(self, /) -> Any: ...
    def __le__(self, other: object, /) -> Any: ...
    def __len__(self, /) -> int: ...
    def __lt__(self, other: object, /) -> Any: ...
    def __ne__(self, other: object, /) -> Any: ...
    def __reduce__(self, /) -> tuple[Any, ...]:
        """Pickles and copies the numbers."""
    def __repr__(self, /) -> str: ...
    def __round__(self, /, ndigits: SupportsIndex | None = None) -> Any: ...
    def data_ptr(self, /) -> int:
        """The address of the first number."""
    @property
    def dtype(self, /) -> str:
        """The type of the numbers, as in ``"float32"``."""
    def is_pinned(self, /) -> bool:
        """Whether the memory is pinned, as that of a loader with ``pin_memory``."""
    def item(self, /, *index: int) -> Any:
        """One number as Python has it: the only one, or that at ``index``."""
    def jax(self, /) -> jax.Array:
        """
        The tensor as a ``jax.Array`` that shares the memory, which is not to be written elsewhere
        then; a copy of what lies in a mapped file, of rows with bytes between them, and of 64 bits a
        number where JAX has 32.
        """
    @property
    def nbytes(self, /) -> int:
        """Bytes of all numbers."""
    @property
    def ndim(self, /) -> int:
        """How many dimensions there are."""
    def numpy(self, /) -> npt.NDArray[Any]:
        """The tensor as a NumPy array that shares the memory and can be written."""
    def record_stream(self, /, stream: Any) -> None:
        """
        Tells a tensor on a device, or in pinned memory, that a stream reads it, so that the memory of
        its batch is used again only after what the stream does until the batch and its tensors are
        gone: a ``torch.cuda.Stream``, or the number of a stream. Streams that tensors were taken on are
        known.
        """
    def rows(self, /, rows: SupportsGetItem[int, SupportsIndex]) -> Tensor:
        """Some rows as a tensor, in this order: adjacent ones share the memory, others are copied."""
    @property
    def shape(self, /) -> tuple[int, ...]:
        """The dimensions."""
    def tf(self, /) -> Any:
        """
        The tensor as a ``tf.Tensor`` that shares the memory, or a copy of what lies in a mapped
        file, of rows with bytes between them, and of a row that does not start at a multiple of 64,
        which TensorFlow aborts at.
        """
    def tolist(self, /) -> Any:
        """The numbers as nested lists, or the only one."""
    def torch(self, /) -> torch.Tensor:
        """The tensor as a ``torch.Tensor`` that shares the memory."""

def box_class_names(dataset: Dataset) -> list[str]:
    """The names of the categories of annotated objects, by their numbers."""

def coco(path: str, images: str | None, dense: bool, stores: Store | None = None) -> Dataset:
    """
    Opens the images of a file of annotations as COCO writes them. ``dense`` numbers categories from
    0 on.
    """

def coco_mask(segmentation: str, height: SupportsIndex, width: SupportsIndex) -> Tensor:
    """The mask of an annotation's ``segmentation``, which is JSON: 1 inside, 0 outside."""

def convert(
    sources: Dataset | list[str],
    destination: str | PathLike[str],
    *,
    to: str = "tbl",
    lz4: bool = False,
    overwrite: bool = False,
    sync: bool = True,
    progress_callback: Callable[[int, int], Any] | None = None,
    stores: Store | None = None,
    compression: str | None = None,
) -> int:
    """
    Copies the samples of `sources` into a new TBL file, version 2 or 1, a TAR archive or a Parquet file.

    ``compression`` is ``"lz4"``, ``"zstd"`` or ``"zstd:LEVEL"`` with a level of 1 to 22, for samples that
    it makes smaller; ``lz4=True`` is the same as ``"lz4"``. Zstandard is for texts, masks and raw pixels,
    with a dictionary where that pays; the first turboloader cannot read it.

    ``progress_callback(current, total)`` is called as samples are written; what it raises ends the
    conversion. Returns how many samples were written. Warns of odd labels and names in the sources,
    and of data that the new file cannot store.
    """

def convert_table(
    source: str | PathLike[str],
    destination: str | PathLike[str],
    *,
    to: str | None = None,
    columns: list[str] | None = None,
    schema: list[str] | None = None,
    time_unit: str = "us",
    overwrite: bool = False,
    sync: bool = True,
    progress_callback: Callable[[int, int], Any] | None = None,
) -> int:
    """
    Converts a table: an IDV file from or to CSV and Parquet, or into another IDV file, or a TBF
    segment from or to these. Returns how many rows there are.
    """

def decode(
    data: bytes,
    *,
    region: tuple[SupportsIndex, SupportsIndex, SupportsIndex, SupportsIndex] | None = None,
    gray: bool = False,
    exif: bool = False,
    channels: SupportsIndex | None = None,
    pixels: str = "uint8",
) -> Tensor:
    """
    Decodes an image of any format to rows of red, green and blue, of grey with ``gray``, or of this
    type of pixels and as many channels; ``region`` of it is (x, y, width, height).
    """

def decode_jpeg(
    data: bytes,
    *,
    region: tuple[SupportsIndex, SupportsIndex, SupportsIndex, SupportsIndex] | None = None,
    eighths: SupportsIndex = 8,
    gray: bool = False,
) -> Tensor:
    """
    Decodes a part of a JPEG image, at 1/8 to 16/8 of its size.

    ``region`` is (x, y, width, height) in pixels of the scaled image.
    """

def end_uploads(prefix: str, stores: Store | None = None) -> None:
    """
    Ends the uploads to objects below a prefix of S3 that are neither complete nor ended. None may be
    under way. Other stores do so themselves.
    """

def expand(paths: list[str], stores: Store | None = None) -> list[str]:
    """The paths and URLs, a pattern of a store as the objects that it means."""

def expand_braces(path: str | PathLike[str]) -> list[str]:
    """The names that ranges in braces stand for, as in ``train-{000..127}.tar``."""

def find_tbf(
    paths: list[str],
    id: SupportsLenAndGetItem[SupportsIndex],
    key: SupportsLenAndGetItem[SupportsIndex] | None = None,
) -> tuple[str, int, int] | None:
    """The newest node with an id: the path of its segment, the number of the segment, and the row."""

def flip_pairs(dataset: Dataset) -> list[tuple[int, int]]:
    """Pairs of keypoints that change places in mirrored images, by the names of the categories."""

def has_io_uring() -> bool:
    """
    Whether files can be read through ``io_uring`` here: the build has it, and the kernel, its sandbox
    and its limits permit it.
    """

def in_memory(
    samples: list[bytes] | tuple[bytes, bytes, int],
    size: tuple[int, int] | None,
    fields: list[tuple[str, list[bytes | None] | tuple[bytes, bytes, int]]],
) -> Dataset:
    """Samples in memory with fields: files of images, or rows of pixels of this width and height."""

def lerobot(root: str, settings: dict[str, Any]) -> tuple[Dataset, list[str], int, int]:
    """
    Opens a data set of LeRobot. Returns the rows of its episodes, the names of their fields, and how many
    cameras and frames of each a clip has.
    """

def manifest(path: str, columns: dict[str, Any], stores: Store | None = None) -> Dataset:
    """Opens the samples that a CSV file, a TSV file or JSON Lines list."""

def open_raw_view(path: str | PathLike[str]) -> Tensor:
    """
    The images of a TBL file of raw ones, where they lie in the mapped file: a read-only tensor of
    shape (samples, height, width, 3).

    No checksum is looked at. A file that is cut short while it is mapped reads as zeros from there on.
    """

def pairs(
    image: str,
    fields: SupportsGetItem[int, tuple[str, str]],
    split: str | None,
    unpaired: str,
    stores: Store | None = None,
) -> Dataset:
    """
    Opens images and further files that belong to them by their patterns. ``unpaired`` is
    ``"error"``, ``"keep"`` or ``"drop"``.
    """

def probe(data: bytes) -> ImageInfo:
    """Reads the header of an image of any format that is decoded."""

def rows(tables: list[dict[str, Any]], settings: dict[str, Any]) -> tuple[Dataset, list[int]]:
    """
    Opens the rows of tables, one table after the other, and returns the number of the first row of each
    too. Paths of images may lead anywhere. Rows without images are those of tables here too.
    """

def run_shard(
    task: str,
    source: str,
    output: str | None,
    record: str | None,
    overwrite: bool,
    stores: Store | None = None,
) -> tuple[str, bool]:
    """
    Works on a shard of a job; `Job.places` has its places. Returns its record as JSON, and whether an
    earlier run has made it.
    """

def signatures() -> tuple[str, str]:
    """
    The signatures of the transforms and of those of batches, each a JSON list: names, texts, and
    parameters with their kinds, texts and defaults.
    """

def tar_to_tbl(arguments: list[str]) -> int:
    """Runs the `tar_to_tbl` command: as `tl`."""

def tensor_of(data: bytes, shape: tuple[int, ...], dtype: str) -> Tensor:
    """The tensor of these bytes, which are copied."""

def tl(arguments: list[str]) -> int:
    """
    Runs the `tl` command with these arguments, the program's name first, and returns its exit code.
    Help and version end the process.
    """

def tokenize(
    sources: list[str],
    destination: str | PathLike[str],
    settings: dict[str, Any],
    *,
    progress_callback: Callable[[int, int], Any] | None = None,
    stores: Store | None = None,
) -> dict[str, Any]:
    """
    Tokenizes texts into a file of tokens, and returns a dict of ``documents``, ``tokens``, ``dtype``
    and ``skipped``.
    """

def tokens(paths: list[str], settings: dict[str, Any], stores: Store | None = None) -> Dataset:
    """Opens files of tokens, whose sequences are the samples."""

def verify(
    path: str | PathLike[str],
    *,
    decode: bool = False,
    workers: SupportsIndex | None = None,
    stores: Store | None = None,
) -> dict[str, Any]:
    """
    Reads a whole data set and returns what is wrong with it: a dict of ``samples``, ``bad``, a list
    of (sample, offset, message), ``damage``, a list of messages, and ``oddities``.

    For tables, ``samples`` are rows, and all defects are in ``damage``. Encrypted regions of a
    segment are listed as ``not_verified``, and the segment is not good.
    """

def with_classes(dataset: Dataset, names: list[str]) -> Dataset:
    """The data set with its classes numbered as these names."""

def with_imagenet_labels(dataset: Dataset, root: str, stores: Store | None = None) -> Dataset:
    """The data set of ImageNet's validation images with their labels, from files below ``root``."""

def with_labels(
    dataset: Dataset,
    labels: str | dict[str, int] | dict[str, str] | list[int] | list[str],
    allow_none: bool,
    stores: Store | None = None,
) -> Dataset:
    """The data set with other labels. Samples that have none are an error, unless ``allow_none``."""
