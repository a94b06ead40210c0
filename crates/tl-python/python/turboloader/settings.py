"""Groups of settings: small objects that say together what belongs together.

>>> import turboloader as tl
>>> loader = tl.DataLoader(
...     "train.tar",
...     batch_size=8,
...     image_size=224,
...     cache=tl.Cache(memory="2GB", decoded=True),
...     errors=tl.Errors("skip", at_most=0.01),
...     memory="4GB",
... )

A value in place of a group is its first field: ``memory="4GB"`` is ``tl.Memory("4GB")``. Numbers of
bytes may be text. The objects are frozen, and check their values when they are made. Those with
dicts (`Columns`, `Neighbors` and `Store`) have copies of them and no hash.
"""

from __future__ import annotations

import math
import operator
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, ClassVar, Literal, TypeVar

from ._checks import (
    byte_count,
    check_choice,
    check_flags,
    folder,
    names,
    one_or_more,
    whole,
    wholes,
)
from .exceptions import SettingError

__all__ = [
    "Buckets",
    "Cache",
    "Clips",
    "Columns",
    "Decoder",
    "Device",
    "Errors",
    "Memory",
    "Neighbors",
    "Ranks",
    "Readers",
    "Retry",
    "Store",
]

OnError = Literal["raise", "skip", "replace", "fill"]
Direction = Literal["outgoing", "incoming"]
DeviceDecode = Literal["auto", "coefficients", "row_index", "never"]
Credentials = Literal["auto", "instance"]
ReaderKind = Literal["workers", "planned", "uring"]
PageCache = Literal["used", "bypassed"]
ClipStart = Literal["random", "regular", "center"]
ClipColors = Literal["ffmpeg", "exact"]
ClipPolicy = Literal["repeat_last", "wrap", "error"]

# The library in NVIDIA's wheels.
_NVJPEG = ("cu13/lib/libnvjpeg.so.13", "nvjpeg/lib/libnvjpeg.so.12")

# Names of columns, or a dict from names to types.
Requests = Sequence[str] | Mapping[str, Any]


class Group:
    """A group of settings."""

    def _set(self, **values: Any) -> None:
        """Keep values in their checked form."""
        for name, value in values.items():
            object.__setattr__(self, name, value)


@dataclass(frozen=True)
class Cache(Group):
    """Keeps samples for the next epochs. Batches do not change.

    Parameters
    ----------
    memory
        The most bytes in memory, such as ``"2GB"``; 0 for none.
    disk
        The most bytes on disk, for samples of a slow disk or a store; 0 for none.
    folder
        The folder of the cache on disk, by default ``~/.cache/turboloader``. Jobs may share it.
    decoded
        Whether to keep decoded images instead of stored bytes: no decoding, but several times the
        size.
    blocks
        Whether to keep what is read from a store in blocks on disk: neighbours are fetched and kept
        together, so that later epochs and other processes with the folder fetch only what it lacks.

    Examples
    --------
    >>> Cache(memory="2GB", disk="200GB", folder="/scratch")
    Cache(memory=2000000000, disk=200000000000, folder='/scratch', decoded=False, blocks=False)
    """

    memory: int | str = 0
    disk: int | str = 0
    folder: str | os.PathLike[str] | None = None
    decoded: bool = False
    blocks: bool = False

    def __post_init__(self) -> None:
        check_flags(**{"Cache: decoded": self.decoded, "Cache: blocks": self.blocks})
        memory, disk = (byte_count(f"Cache: {n}", getattr(self, n)) for n in ("memory", "disk"))
        if memory == disk == 0:
            raise SettingError("Cache: neither memory nor disk is set: Cache(memory='2GB')")
        if self.folder is not None and disk == 0:
            raise SettingError("Cache: folder needs disk, the size of the cache there")
        if self.blocks and disk == 0:
            raise SettingError("Cache: blocks needs disk, the size of the cache there")
        if self.blocks and self.decoded:
            raise SettingError("Cache: conflicting settings: decoded and blocks; pass only one")
        home = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
        usual = os.path.join(home, "turboloader") if disk else None
        of_disk = usual if self.folder is None else folder("Cache: folder", self.folder)
        self._set(memory=memory, disk=disk, folder=of_disk)


def _part(columns: Any) -> tuple[str | None, str | None]:
    """Return the names of the columns with beginning and end of a part."""
    is_pair = isinstance(columns, (list, tuple)) and len(columns) == 2
    if (
        is_pair
        and any(name is not None for name in columns)
        and all(name is None or (isinstance(name, str) and name) for name in columns)
    ):
        return columns[0], columns[1]
    raise SettingError(
        f"Clips: part is {columns!r}, expected the names of two columns, such as ('from', 'to')"
    )


@dataclass(frozen=True)
class Clips(Group):
    """The frames of each video that become its clips: ``batch["video"]``.

    The transform of the loader is drawn once for all frames of a clip. Shapes are ``(batch, frames,
    channels, height, width)``, with the number of clips after the batch if there are several, or
    with channels last.

    Parameters
    ----------
    frames
        The number of frames of a clip.
    clips
        The number of clips of each video.
    stride
        The distance between frames, in frames of the video. By default 1.
    seconds
        The distance between frames in seconds: those on display then. Instead of ``stride``.
    fps
        The frames a second of a clip, whatever the rate of the video. Instead of ``stride``.
    start
        ``"random"``: anywhere, drawn anew in each epoch; ``"regular"``: at equal distances from the
        first to the last possible frame; ``"center"``: in the middle of equal parts of the video;
        or a time in seconds, for one clip.
    at
        The column with the time in seconds of the video at which the clip of a sample begins.
        Instead of ``start``.
    part
        The columns with the times in seconds between which a sample lies in its video, such as
        ``("from", "to")``. With None in place of one of them it begins or ends with the video.
        Columns are those of a manifest or of Parquet files, or files next to the videos.
    policy
        The frames after the end of a video that is too short, in the words of torchcodec:
        ``"repeat_last"``, ``"wrap"`` for the clip again, or ``"error"``.
    colors
        The conversion to RGB: ``"ffmpeg"`` for the bits of FFmpeg, or ``"exact"`` for the nearest
        levels.

    Examples
    --------
    >>> clips = Clips(16, fps=10)
    >>> clips.frames, clips.start, clips.policy
    (16, 'random', 'repeat_last')
    """

    frames: int = 16
    _: KW_ONLY
    clips: int = 1
    stride: int | None = None
    seconds: float | None = None
    fps: float | None = None
    start: ClipStart | float = "random"
    at: str | None = None
    part: tuple[str | None, str | None] | None = None
    policy: ClipPolicy = "repeat_last"
    colors: ClipColors = "ffmpeg"

    def __post_init__(self) -> None:
        for name, most in (("frames", 65536), ("clips", 256)):
            self._set(**{name: one_or_more(f"Clips: {name}", getattr(self, name), most)})
        spacings = {name: getattr(self, name) for name in ("stride", "seconds", "fps")}
        given = [name for name, value in spacings.items() if value is not None]
        if len(given) > 1:
            raise SettingError(f"Clips: conflicting settings: {' and '.join(given)}; pass only one")
        if self.stride is not None:
            self._set(stride=one_or_more("Clips: stride", self.stride, (1 << 32) - 1))
        for name in ("seconds", "fps"):
            if spacings[name] is not None:
                self._set(**{name: number(f"Clips: {name}", spacings[name])})
                if getattr(self, name) <= 0:
                    raise SettingError(
                        f"Clips: {name} is {spacings[name]!r}, expected a positive number"
                    )
        if isinstance(self.start, str):
            check_choice("Clips: start", self.start, ("random", "regular", "center"))
        else:
            self._set(start=number("Clips: start", self.start))
        if self.at is not None:
            if not isinstance(self.at, str) or not self.at:
                raise SettingError(f"Clips: at is {self.at!r}, expected the name of a column")
            if self.start != "random":
                raise SettingError("Clips: conflicting settings: start and at; pass only one")
        if self.part is not None:
            self._set(part=_part(self.part))
        check_choice("Clips: policy", self.policy, ("repeat_last", "wrap", "error"))
        check_choice("Clips: colors", self.colors, ("ffmpeg", "exact"))


def number(setting: str, value: Any) -> float:
    """Return a finite number."""
    try:
        number = math.nan if isinstance(value, (bool, str, bytes)) else float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not math.isfinite(number):
        raise SettingError(f"{setting} is {value!r}, expected a number")
    return number


@dataclass(frozen=True)
class Decoder(Group):
    """A decoder for files that are not read otherwise, or are to be read in another way.

    Transforms apply to its images as to others. The function is called on the threads of the
    loader, one call at a time, as functions among transforms are. Its images must follow from the
    bytes alone. What it raises is the error of the sample.

    Parameters
    ----------
    name
        The name in messages. Name and version stand for the images in states and caches.
    function
        A function of a ``memoryview`` of the file. It returns an array of shape
        ``(height, width)`` or ``(height, width, channels)`` with 1, 3 or 4 channels, of ``uint8``,
        or of ``uint16`` or ``float32`` for loaders with such ``pixels``.
    extensions
        The ends of the names of its files after their last dot, such as ``".dcm"``.
    magic
        The first bytes of its files, whatever their names are.
    version
        To be raised when the images of the same files change.

    Examples
    --------
    >>> import numpy as np
    >>> def tiny(file):
    ...     return np.frombuffer(file, np.uint8, offset=2).reshape(file[1], file[0])
    >>> Decoder("tiny", tiny, extensions=[".tiny"]).extensions
    ('tiny',)
    """

    name: str
    function: Callable[[memoryview], Any]
    _: KW_ONLY
    extensions: Sequence[str] = ()
    magic: bytes = b""
    version: int = 1

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise SettingError(f"Decoder: name is {self.name!r}, expected text")
        if not callable(self.function):
            raise SettingError(f"Decoder: function is {self.function!r}, expected a function")
        if not isinstance(self.magic, bytes):
            raise SettingError(f"Decoder: magic is {self.magic!r}, expected bytes")
        given = names("Decoder: extensions", self.extensions) if self.extensions else ()
        found = tuple(one.removeprefix(".").lower() for one in given)
        for one in found:
            if not one or "." in one or "/" in one:
                raise SettingError(
                    f"Decoder: extensions has {one!r}, expected the end of a name after its last "
                    "dot, such as '.dcm'"
                )
        if not found and not self.magic:
            raise SettingError("Decoder: it takes no file: pass extensions or magic")
        version = whole("Decoder: version", self.version, most=(1 << 32) - 1)
        self._set(extensions=found, version=version)


@dataclass(frozen=True)
class Errors(Group):
    """The policy for bad samples: those that cannot be read, decoded or transformed.

    Parameters
    ----------
    policy
        ``"raise"``; ``"skip"`` makes a batch smaller; ``"replace"`` uses another sample of the
        epoch; ``"fill"`` gives zeros that are not ``valid``. The first bad sample is a warning,
        `DataLoader.audit` lists all. A batch whose samples are all skipped is omitted; with several
        ranks it is an error.
    at_most
        The most bad samples in an epoch: a whole number, or a share of the epoch, from 0.0 to 1.0
        or as text such as ``"1%"``. By default half of it.

    Examples
    --------
    >>> Errors("skip", at_most=0.01)
    Errors(policy='skip', at_most=0.01)
    """

    policy: OnError = "raise"
    _: KW_ONLY
    at_most: int | float | str | None = None

    def __post_init__(self) -> None:
        check_choice("Errors: policy", self.policy, ("raise", "skip", "replace", "fill"))
        if self.at_most is None:
            return
        if self.policy == "raise":
            raise SettingError('Errors: at_most has no effect with policy="raise"')
        self._set(at_most=_count_or_share("Errors: at_most", self.at_most))


@dataclass(frozen=True)
class Retry(Group):
    """The repetition of local reads that fail for a reason that may pass.

    Those are EIO, ESTALE, ETIMEDOUT, EAGAIN and EREMOTEIO, which network file systems give while a
    server is busy or restarts. A sample is bad only after its last attempt. Repeated reads change
    no batch, and `DataLoader.report` counts them. Stores repeat requests by themselves (`Store`).

    Parameters
    ----------
    attempts
        The most attempts at a sample, the first one included; 1 repeats nothing.
    delay
        The longest wait in seconds after the first attempt. Waits double with each further one, up
        to a second, and are shortened at random by up to a half.
    deadline
        The seconds from the first failure after which no further attempt begins, so that a disk
        that fails slowly is not asked again and again.

    Examples
    --------
    >>> Retry(10, deadline=60)
    Retry(attempts=10, delay=0.05, deadline=60.0)
    """

    attempts: int = 4
    _: KW_ONLY
    delay: float = 0.05
    deadline: float = 3.0

    def __post_init__(self) -> None:
        self._set(attempts=one_or_more("Retry: attempts", self.attempts, 100))
        for name in ("delay", "deadline"):
            value = number(f"Retry: {name}", getattr(self, name))
            if not 0 <= value <= 3600:
                raise SettingError(f"Retry: {name} is {value}, expected seconds from 0 to 3600")
            self._set(**{name: value})


@dataclass(frozen=True)
class Ranks(Group):
    """The place of this process among those that share the data set.

    Each rank gets its part of every global batch.

    Parameters
    ----------
    rank
        The number of this process, from 0.
    world_size
        The number of processes.

    Examples
    --------
    >>> Ranks(0, 8)
    Ranks(rank=0, world_size=8)
    """

    rank: int
    world_size: int

    def __post_init__(self) -> None:
        rank, world = whole("Ranks: rank", self.rank), whole("Ranks: world_size", self.world_size)
        if rank >= world:
            raise SettingError(f"Ranks: rank is {rank}, expected less than world_size ({world})")
        self._set(rank=rank, world_size=world)


@dataclass(frozen=True)
class Memory(Group):
    """Limits of the memory of a loader. They change no batch.

    Parameters
    ----------
    budget
        The most bytes for everything that the loader holds: batches, workers, caches, samples read
        ahead. What cannot fit is an error. None for no limit.
    prefetch
        Batches in flight in addition to those in use; 0 chooses a number.
    prefetch_bytes
        The most bytes of batches in flight. None for no limit.
    read_ahead_bytes
        The bytes of samples that readers may be ahead of the workers, by default 64 MiB; see
        `Readers`. Stores have more, see `Store`, whose ``read_ahead`` is the same setting.

    Examples
    --------
    >>> Memory("4GB", prefetch=8)
    Memory(budget=4000000000, prefetch=8, prefetch_bytes=None, read_ahead_bytes=None)
    """

    budget: int | str | None = None
    _: KW_ONLY
    prefetch: int = 0
    prefetch_bytes: int | str | None = None
    read_ahead_bytes: int | str | None = None

    def __post_init__(self) -> None:
        self._set(prefetch=whole("Memory: prefetch", self.prefetch))
        if self.read_ahead_bytes is not None:
            read_ahead = byte_count("Memory: read_ahead_bytes", self.read_ahead_bytes)
            read_ahead = one_or_more("Memory: read_ahead_bytes", read_ahead, most=1 << 62)
            self._set(read_ahead_bytes=read_ahead)
        for name in ("budget", "prefetch_bytes"):
            if (value := getattr(self, name)) is not None:
                self._set(**{name: byte_count(f"Memory: {name}", value)})


@dataclass(frozen=True)
class Readers(Group):
    """The threads that read samples. They change no batch.

    Parameters
    ----------
    kind
        ``"workers"``: each worker reads when it needs a sample, and the system gets hints about the
        next ones. A number: so many separate threads read ahead of the workers. ``"planned"``: one
        thread requests samples of stores in the background. ``"uring"``: one thread keeps many
        reads in flight through ``io_uring`` of Linux. Where the kernel, a sandbox or a limit
        refuses that, four threads read instead, and `DataLoader.notes` says why. 0, the default of
        `DataLoader`, chooses ``"workers"`` for files and ``"planned"`` for stores.
    depth
        Of ``"uring"``: the number of reads in flight, by default 32.
    page_cache
        Of ``"uring"``: ``"used"``, the default, or ``"bypassed"`` to read with ``O_DIRECT`` where
        the file system permits it: for data sets larger than the memory.

    Examples
    --------
    >>> Readers("uring", depth=64, page_cache="bypassed")
    Readers(kind='uring', depth=64, page_cache='bypassed')
    """

    kind: ReaderKind | int
    _: KW_ONLY
    depth: int | None = None
    page_cache: PageCache | None = None

    def __post_init__(self) -> None:
        if isinstance(self.kind, str):
            check_choice("readers", self.kind, ("workers", "planned", "uring"))
        else:
            self._set(kind=whole("readers", self.kind, _MOST_READERS))
        given = [name for name in ("depth", "page_cache") if getattr(self, name) is not None]
        if given and self.kind != "uring":
            raise SettingError(f"Readers: {given[0]} is for kind='uring' only")
        if self.depth is not None:
            self._set(depth=one_or_more("Readers: depth", self.depth, _MOST_READERS))
        if self.page_cache is not None:
            check_choice("Readers: page_cache", self.page_cache, ("used", "bypassed"))


# More readers, or reads in flight, are probably a mistake.
_MOST_READERS = 1024


@dataclass(frozen=True)
class Device(Group):
    """The device that batches arrive on. They have the bits that they have on the host.

    Copies, JPEG decoding and the conversion to floats run on a stream of the loader's own. Tensors
    of torch and JAX are ordered after them on the stream that is current when they are taken.

    Parameters
    ----------
    name
        ``"cuda"`` or ``"cuda:N"``, or a ``torch.device``. Without a number torch's current device
        if torch uses one, else that of the launcher: ``LOCAL_RANK``, or the variable of Horovod,
        MPI or Slurm. 0 if none is set or the process sees one device.
    required
        Whether a device that cannot be used is an error. By default batches are on the host then,
        and a warning says why.
    decode
        The part of JPEG decoding that the device does; the bits do not depend on it. ``"auto"`` for
        all of it where the file has a row index, stored with it or made when it is decoded first,
        and otherwise all but entropy decoding. With a ``memory_budget`` that is ``"never"``.
        ``"coefficients"`` for all but entropy decoding, ``"row_index"`` for files with stored
        indexes only, and ``"never"`` for none.
    memory
        The most bytes of the device's memory for batches. None for no limit.
    row_indexes
        The most bytes of the host's memory for row indexes that ``"auto"`` makes, about 500 a
        photograph. None for 1 GiB.
    library
        The driver's library, by default ``libcuda.so.1``.
    nvjpeg
        The library for ``decode_mode="nvjpeg"``, by default that of NVIDIA's wheel
        (``pip install 'turboloader-rs[nvjpeg]'``), or the one that the system's loader finds.

    Examples
    --------
    >>> Device("cuda:1", memory="2GB").memory
    2000000000
    """

    name: Any = "cuda"
    _: KW_ONLY
    required: bool = False
    decode: DeviceDecode = "auto"
    memory: int | str | None = None
    row_indexes: int | str | None = None
    library: str | os.PathLike[str] | None = None
    nvjpeg: str | os.PathLike[str] | None = None

    def __post_init__(self) -> None:
        name = str(self.name)
        kind, colon, number = name.partition(":")
        if kind != "cuda" or (colon and not (number.isascii() and number.isdigit())):
            raise SettingError(f"Device: name is {name!r}, expected 'cuda' or 'cuda:N'")
        check_flags(required=self.required)
        check_choice("Device: decode", self.decode, ("auto", "coefficients", "row_index", "never"))
        self._set(name=name)
        if self.memory is not None:
            self._set(memory=byte_count("Device: memory", self.memory))
        if self.row_indexes is not None:
            self._set(row_indexes=byte_count("Device: row_indexes", self.row_indexes))

    @property
    def ordinal(self) -> int | None:
        """The number in the name, or that of torch's current device if torch uses one."""
        _, _, number = str(self.name).partition(":")
        if number:
            return int(number)
        torch: Any = sys.modules.get("torch")
        if torch is None or not torch.cuda.is_initialized():
            return None
        return int(torch.cuda.current_device())

    @property
    def packages(self) -> str | None:
        """The folder of packages with a wheel of NVIDIA's that has nvJPEG; nothing is imported."""
        for place in sys.path:
            if any(os.path.exists(os.path.join(place, "nvidia", one)) for one in _NVJPEG):
                return os.path.abspath(place)
        return None


@dataclass(frozen=True)
class Buckets(Group):
    """Groups images of similar sizes into batches, and pads them to one size.

    Parameters
    ----------
    window
        How many batches are sorted by size together.
    multiple
        The sides of a batch are a multiple of this.

    Examples
    --------
    >>> Buckets(32, multiple=16)
    Buckets(window=32, multiple=16)
    """

    window: int
    _: KW_ONLY
    multiple: int = 1

    def __post_init__(self) -> None:
        for name in ("window", "multiple"):
            self._set(**{name: one_or_more(f"Buckets: {name}", getattr(self, name))})


@dataclass(frozen=True)
class Neighbors(Group):
    """The neighbours of each node of a graph that are sampled, hop by hop.

    Parameters
    ----------
    fanouts
        How many neighbours of each node: ``[5, 3]`` gives ``batch["neighbors_1"]`` of shape
        (batch, 5) and ``batch["neighbors_2"]`` of (batch, 5, 3), with -1 for none.
    columns
        Columns of the neighbours, as `Columns` has them, such as
        ``batch["neighbors_1_embedding"]``.
    direction
        ``"outgoing"``, or ``"incoming"`` if the file has a reverse index.

    Examples
    --------
    >>> Neighbors([5, 3], columns=["embedding"]).fanouts
    (5, 3)
    """

    fanouts: Sequence[int]
    _: KW_ONLY
    columns: Requests = ()
    direction: Direction = "outgoing"

    # It has a dict.
    __hash__: ClassVar[None] = None  # type: ignore[assignment]

    def __post_init__(self) -> None:
        fanouts = tuple(wholes("Neighbors: fanouts", self.fanouts))
        if not fanouts:
            raise SettingError("Neighbors: fanouts is empty, expected a number for each hop")
        check_choice("Neighbors: direction", self.direction, ("outgoing", "incoming"))
        self._set(fanouts=fanouts, columns=_requests("Neighbors: columns", self.columns))


@dataclass(frozen=True)
class Columns(Group):
    """The columns of a table (IDV, TBF, Parquet, arrays) that batches have.

    Parameters
    ----------
    columns
        These, each by its own name, as they are stored, or a dict from column to type (None or
        ``"float32"``); by default all numeric columns that are neither features nor the label.
    features
        Columns that form one ``float32`` matrix, ``batch["features"]``.
    label
        The column of ``batch["label"]``, in which missing values are -1.
    neighbors
        A `Neighbors`, or its ``fanouts``.
    block_bytes
        The size of the cache of decoded blocks in bytes; 0 chooses one.

    Examples
    --------
    >>> Columns(features=["Age", "Fare"], label="Survived").features
    ('Age', 'Fare')
    """

    columns: Requests = ()
    _: KW_ONLY
    features: Sequence[str] = ()
    label: str | None = None
    neighbors: Neighbors | Sequence[int] | None = None
    block_bytes: int | str = 0

    # It has a dict.
    __hash__: ClassVar[None] = None  # type: ignore[assignment]

    def __post_init__(self) -> None:
        if self.label is not None and not isinstance(self.label, str):
            raise SettingError(f"Columns: label is {self.label!r}, expected the name of a column")
        self._set(
            columns=_requests("Columns: columns", self.columns),
            features=tuple(names("Columns: features", self.features)),
            neighbors=as_group("Columns: neighbors", self.neighbors, Neighbors),
            block_bytes=byte_count("Columns: block_bytes", self.block_bytes),
        )


@dataclass(frozen=True)
class Store(Group):
    """How objects of the stores that URLs name are read; docs/remote.md.

    Parameters
    ----------
    options
        Options by name: ``region``, ``endpoint``, ``access_key_id``, ``anonymous`` and so on. They
        take precedence over the environment. They may be secret, so they are in no message, and
        neither a `Store` with options nor what has one can be pickled.
    credentials
        ``"auto"``: from options, environment and files; ``"instance"``: also from the metadata
        server of the machine.
    connections
        The most requests at once for a bucket, by default 256.
    read_ahead
        The bytes requested before they are used, by default 256 MiB, or two windows of a block
        shuffle.
    deadline
        The seconds after which a read has failed, by default 180.
    hedge
        Whether a late request is sent once more.
    unpack_to
        A folder on this machine: TAR archives that are compressed by gzip or zstd are unpacked into
        it once, and found there later. Without it they are refused.

    Examples
    --------
    >>> Store({"region": "eu-central-1"}, deadline=30)
    Store(credentials='auto', connections=None, read_ahead=None, deadline=30.0, hedge=True, \
unpack_to=None)
    """

    # The values may be secret.
    options: Mapping[str, str | int | bool] | None = field(default=None, repr=False)
    _: KW_ONLY
    credentials: Credentials = "auto"
    connections: int | None = None
    read_ahead: int | str | None = None
    deadline: float | None = None
    hedge: bool = True
    unpack_to: str | os.PathLike[str] | None = None

    # It has a dict.
    __hash__: ClassVar[None] = None  # type: ignore[assignment]

    def __post_init__(self) -> None:
        check_choice("Store: credentials", self.credentials, ("auto", "instance"))
        check_flags(**{"Store: hedge": self.hedge})
        self._set(options=_options(self.options, self.credentials))
        if self.connections is not None:
            self._set(connections=one_or_more("Store: connections", self.connections))
        if self.read_ahead is not None:
            read_ahead = byte_count("Store: read_ahead", self.read_ahead)
            self._set(read_ahead=one_or_more("Store: read_ahead", read_ahead, most=1 << 62))
        if self.deadline is not None:
            self._set(deadline=_seconds("Store: deadline", self.deadline))
        if self.unpack_to is not None:
            self._set(unpack_to=folder("Store: unpack_to", self.unpack_to))

    def __copy__(self) -> Store:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Store:
        return self

    def __getstate__(self) -> dict[str, Any]:
        if self.options:
            raise TypeError(
                "a Store with options cannot be pickled, and neither can what has one, because "
                "they may be secret: set environment variables instead"
            )
        return vars(self)


def _count_or_share(setting: str, value: Any) -> int | float:
    """Return a number of samples as an integer, or a share of them as a float."""
    if isinstance(value, float) or not hasattr(value, "__index__"):
        is_percent = isinstance(value, str) and value.endswith("%")
        try:
            share = float(value[:-1]) / 100 if is_percent else float(value)
        except (TypeError, ValueError):
            share = math.nan
        is_good = 0 <= share <= 1 and (is_percent or not isinstance(value, str))
        number: int | float = share
    else:
        is_good = not isinstance(value, bool) and 0 <= value < 1 << 62
        number = operator.index(value)
    if not is_good:
        raise SettingError(
            f"{setting} is {value!r}, expected a whole number of samples, or a share of them: 0.0 "
            "to 1.0, or text such as '1%'"
        )
    return number


def _seconds(setting: str, value: Any) -> float:
    """Return a time, which is more than nothing."""
    try:
        seconds = math.nan if isinstance(value, (bool, str, bytes)) else float(value)
    except (TypeError, ValueError, OverflowError):
        seconds = math.nan
    if not 0 < seconds < math.inf:
        raise SettingError(f"{setting} is {value!r}, expected seconds, more than 0")
    return seconds


def _options(options: Any, credentials: str) -> dict[str, str]:
    """Return options as text; no message repeats a value."""
    if options is None:
        options = {}
    if not isinstance(options, Mapping):
        name = type(options).__name__
        raise SettingError(f"Store: options has type {name}, expected a dict of names and values")
    made = {}
    for name, value in options.items():
        if not isinstance(name, str) or not isinstance(value, (str, bool, int)):
            raise SettingError(f"Store: options: expected text for {name!r}")
        made[name] = str(value).lower() if isinstance(value, bool) else str(value)
    if credentials != "auto" and "credentials" in options:
        raise SettingError("Store: credentials is also in options; pass only one")
    return made


def _requests(setting: str, columns: Any) -> dict[str, str | None]:
    """Return names with the types that are asked for."""
    from .transforms import dtype_name

    if isinstance(columns, Mapping):
        types = zip(names(setting, columns), columns.values(), strict=True)
        return {name: None if dtype is None else dtype_name(dtype) for name, dtype in types}
    return dict.fromkeys(names(setting, columns))


_Kind = TypeVar("_Kind", bound=Group)


def as_group(setting: str, value: Any, kind: type[_Kind]) -> _Kind | None:
    """Return a group of settings, also of a value that is its first field; None stays."""
    if value is None or isinstance(value, kind):
        return value
    if kind is Buckets and isinstance(value, (tuple, list)) and len(value) == 2:
        window, multiple = value
        form = f"{setting}=tl.Buckets({window!r}, multiple={multiple!r})"
        raise SettingError(f"{setting} is {value!r}: pass {form}")
    name = kind.__name__
    is_dict = isinstance(value, Mapping) and kind not in (Columns, Store)
    if isinstance(value, Group) or is_dict or isinstance(value, bool):
        given = type(value).__name__ if isinstance(value, Group) else repr(value)
        raise SettingError(f"{setting} is {given}, expected a turboloader.{name}")
    return kind(value)  # type: ignore[call-arg]


# The forms in which functions take a store.
StoreLike = Store | Mapping[str, str | int | bool] | None


def as_store(store: StoreLike) -> Store | None:
    """Return the settings of stores; a dict is its options."""
    return as_group("store", store, Store)
