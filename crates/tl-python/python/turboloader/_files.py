"""Stored data sets and single images: the native functions, with the types that Python has."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from . import _native
from ._advice import advised
from ._checks import names, one_or_more, whole
from ._native import ImageInfo, Tensor, open_raw_view
from ._paths import expand, refuse_url
from ._settings import opened
from .dataset import Dataset
from .exceptions import PathExistsError, SettingError, of_path
from .settings import StoreLike, as_store

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = [
    "TblReader",
    "TblWriter",
    "convert",
    "convert_tar_to_tbl",
    "decode",
    "decode_jpeg",
    "open_raw_view",
    "probe",
    "verify",
]

PathLike = str | os.PathLike[str]
Data = bytes | bytearray | memoryview


def _bytes(data: Data) -> bytes:
    if isinstance(data, bytes):
        return data
    try:
        # By way of a memoryview, because `bytes` of a number are as many zeros.
        return bytes(memoryview(data))
    except TypeError:
        kind = type(data).__name__
        how = "pass its read()" if hasattr(data, "read") else "pass pathlib.Path(..).read_bytes()"
        raise TypeError(f"data has type {kind}, expected the bytes of an image: {how}") from None


def probe(data: Data) -> ImageInfo:
    """Read the header of an image of any format that is decoded.

    Examples
    --------
    >>> probe(pathlib.Path("photo.jpg").read_bytes()).width
    451
    """
    return _native.probe(_bytes(data))


def decode(
    data: Data,
    *,
    region: tuple[int, int, int, int] | None = None,
    gray: bool = False,
    exif: bool = False,
    channels: int | None = None,
    pixels: Any = None,
) -> Tensor:
    """Decode an image of any format to rows of red, green and blue, with Pillow's pixels.

    Grey of 9 to 16 bits keeps its 8 most significant bits, where Pillow clips to 255.

    Parameters
    ----------
    data
        The file's bytes.
    region
        (x, y, width, height) in pixels of the result; all of it if None. Of JPEG and lossy WebP
        files only what the region needs is decoded.
    gray
        Whether to decode to grey instead, of shape (height, width).
    exif
        Whether to turn the image upright by its EXIF or XMP orientation, as Pillow's
        ``exif_transpose`` does. TIFF images are always upright.
    channels, pixels
        As those of `DataLoader`: the shape is (height, width, channels), ``pixels="uint16"`` and
        ``"float32"`` keep the numbers of the file, and ``channels=4`` its transparency.

    Examples
    --------
    >>> decode(pathlib.Path("photo.jpg").read_bytes()).shape
    (300, 451, 3)
    """
    from .transforms import dtype_name

    count = None if channels is None else whole("channels", channels)
    name = "uint8" if pixels is None else dtype_name(pixels)
    return _native.decode(
        _bytes(data), region=region, gray=gray, exif=exif, channels=count, pixels=name
    )


def decode_jpeg(
    data: Data,
    *,
    region: tuple[int, int, int, int] | None = None,
    scale: int = 1,
    eighths: int | None = None,
    gray: bool = False,
) -> Tensor:
    """Decode a part of a JPEG image, or at another scale; what lies outside is passed over.

    Parameters
    ----------
    data
        The file's bytes.
    region
        (x, y, width, height) in pixels of the scaled image; all of it if None.
    scale
        What the sides are divided by: 1, 2, 4 or 8.
    eighths
        The scale in eighths instead, 1 to 16: sides become n/8, rounded up. Every scale has the
        pixels of libjpeg-turbo.
    gray
        Whether to decode to grey.

    Examples
    --------
    >>> data = pathlib.Path("photo.jpg").read_bytes()
    >>> decode_jpeg(data, region=(10, 20, 64, 64), scale=2).shape
    (64, 64, 3)
    >>> decode_jpeg(data, eighths=3).shape
    (113, 170, 3)
    """
    if scale not in (1, 2, 4, 8):
        raise SettingError(f"scale is {scale}, expected 1, 2, 4 or 8: the divisor of the sides")
    if eighths is None:
        eighths = 8 // scale
    elif scale != 1:
        raise SettingError("scale and eighths are the same setting; pass only one")
    return _native.decode_jpeg(
        _bytes(data), region=region, eighths=_checked_eighths(eighths), gray=gray
    )


def _checked_eighths(eighths: int) -> int:
    return one_or_more("eighths", eighths, most=16)


class TblReader(_native.TblReader):
    """An open TBL file, or any other stored data set: numbered samples.

    ``reader[i]`` is the bytes of sample ``i``, ``reader.entry(i)`` what the index knows of it.

    Parameters
    ----------
    path
        A TBL file, a TAR archive or a folder, as a path or a URL.
    worker_id, num_workers
        The part of the samples that the reader has, of so many parts that follow each other: with 0
        and 4 the first quarter, whose samples are numbered from 0. By default all.
    store
        A `Store`: how stores that URLs name are read, and where compressed archives are unpacked.

    Examples
    --------
    >>> TblReader("train.tar").num_samples
    12
    >>> TblReader("train.tar", 0, 4).num_samples
    3
    """

    @advised
    def __new__(
        cls,
        path: PathLike,
        worker_id: int = 0,
        num_workers: int = 1,
        *,
        store: StoreLike = None,
    ) -> Self:
        worker, workers = (
            whole(name, value, (1 << 32) - 1)
            for name, value in (("worker_id", worker_id), ("num_workers", num_workers))
        )
        made = super().__new__(cls, os.fspath(path), as_store(store), worker, workers)
        return cast("Self", made)

    def __iter__(self) -> Iterator[bytes]:
        """Yield the bytes of the samples, one by one."""
        return map(self.__getitem__, range(len(self)))


class TblWriter(_native.TblWriter):
    """Writes a TBL file sample by sample; the file has its name once all is well.

    As a context manager it is finished at the end, and discarded where an exception ended it.

    Parameters
    ----------
    path
        The file, or the URL of an object in S3, Google Cloud Storage or Azure.
    lz4
        The same as ``compression="lz4"``.
    overwrite
        Whether to replace a file of that name.
    sync
        Whether to wait until the data is on the disk.
    class_names
        The names of classes, indexed by label.
    box_class_names
        The names of the classes of boxes, `Dataset.box_classes` of a reader, indexed by their
        numbers in the samples' annotations; a number without a class has an empty name.
    compression
        ``"lz4"``, ``"zstd"`` or ``"zstd:LEVEL"``, for samples that it makes smaller. Zstandard is
        for texts, masks and raw pixels, and the first turboloader cannot read it. `convert` also
        makes a dictionary where that pays.
    sample_count
        The number of samples, if it is known, which must not be exceeded. The samples of an object
        are then sent as they come; otherwise they wait in a temporary file of this machine.
    store
        A `Store`: how the store is reached that a URL names.

    Examples
    --------
    >>> with TblWriter("one.tbl", class_names=["cat", "dog"]) as writer:
    ...     writer.add_sample(pathlib.Path("photo.jpg").read_bytes(), key="a.jpg", label=1)
    """

    @advised
    def __new__(
        cls,
        path: PathLike,
        *,
        lz4: bool = False,
        overwrite: bool = False,
        sync: bool = True,
        class_names: list[str] | None = None,
        box_class_names: list[str] | None = None,
        compression: str | None = None,
        sample_count: int | None = None,
        store: StoreLike = None,
    ) -> Self:
        made = super().__new__(
            cls,
            os.fspath(path),
            lz4=lz4,
            overwrite=overwrite,
            sync=sync,
            class_names=class_names,
            box_class_names=box_class_names,
            compression=compression,
            sample_count=sample_count,
            stores=as_store(store),
        )
        return cast("Self", made)

    def __enter__(self) -> Self:
        """Return the writer."""
        return self


@advised
def verify(
    path: PathLike,
    *,
    decode: bool = False,
    workers: int | None = None,
    store: StoreLike = None,
) -> dict[str, Any]:
    """Read a whole data set and return what is wrong with it.

    Parameters
    ----------
    path
        A TBL file, a TAR archive, a folder or a table, as a path or a URL. A pattern, a name with
        ranges or a shard index stands for several, which are checked as one data set.
    decode
        Whether to decode all images.
    workers
        The number of threads; one for each core by default.
    store
        A `Store`: how stores that URLs name are read, and where compressed archives are unpacked.

    Returns
    -------
    dict
        ``samples``, ``is_good``, ``bad``, a list of (sample, offset, message), ``damage`` and
        ``oddities``, lists of messages, and ``not_verified``. Messages name the shard if there are
        several. For tables, ``samples`` are rows, and all defects are in ``damage``. Encrypted
        regions of a segment are listed as ``not_verified``, and the segment is not good.
    """
    return _native.verify(os.fspath(path), decode=decode, workers=workers, stores=as_store(store))


@advised
def convert(
    sources: Dataset | PathLike | Sequence[PathLike],
    destination: PathLike,
    *,
    to: str | None = None,
    lz4: bool = False,
    compression: str | None = None,
    overwrite: bool = False,
    sync: bool = True,
    columns: Sequence[str] | None = None,
    schema: Mapping[str, str] | None = None,
    time_unit: str = "us",
    progress_callback: Callable[[int, int], Any] | None = None,
    store: StoreLike = None,
) -> int:
    """Copy all samples of one or several data sets into a TBL file, TAR archive or Parquet file.

    Parquet files of samples have the form that `datasets` writes.

    Or a table into another: an IDV file from or to CSV and Parquet, or into another IDV file. Which
    of them a table is, the end of its name says.

    Parameters
    ----------
    sources
        A `Dataset`, whose samples are written; or TAR archives, folders and TBL files; patterns
        such as ``train-*.tar`` and ``train-{000..099}.tar`` are expanded. Paths or URLs. Or one
        table, in a local file.
    destination
        The file, or the URL of an object in S3, Google Cloud Storage or Azure, which has its name
        only when all is well. Tables are written to local files.
    to
        ``"tbl"``, ``"tbl1"``, ``"tar"``, ``"idv"``, ``"csv"``, ``"tbf"`` or ``"parquet"``; by
        default what the name says.
    lz4
        The same as ``compression="lz4"``.
    compression
        ``"lz4"``, ``"zstd"`` or ``"zstd:LEVEL"`` with a level of 1 to 22: compresses the samples
        that become smaller. Zstandard is for texts, masks and raw pixels; the first turboloader
        cannot read files that have it.
    overwrite
        Whether to replace a file of that name.
    sync
        Whether to wait until the data is on the disk.
    columns
        Of tables: the columns to write, in this order; all by default.
    schema
        Of CSV files: types of columns, such as ``{"age": "int32", "city": "key"}``. Others are
        booleans, ``int64``, ``double`` or text, whichever takes all their cells.
    time_unit
        Of Parquet files: ``"us"`` or ``"ns"``.
    progress_callback
        Called with the samples written and those there are; of a table with its rows, or the bytes
        that are read of a CSV file. An exception ends the conversion.
    store
        A `Store`: how stores that URLs name are reached, and where compressed archives are
        unpacked.

    Returns
    -------
    int
        How many samples, or rows, were written.

    Warns
    -----
    UserWarning
        For each remark that ``tl convert`` prints: samples without a label among labelled ones,
        label files that differ from class folders, names that were passed over, images that cannot
        be measured, and what the new file has no place for.
    """
    data = opened(sources, store)
    paths = [] if isinstance(sources, Dataset) else expand(sources)
    if data is None and _is_table(to, destination, paths):
        refuse_url(destination)
        if len(paths) != 1:
            raise SettingError("only one table can be converted at a time")
        if lz4 or compression is not None:
            raise SettingError("compression and lz4 are for TBL files")
        if store is not None:
            raise SettingError("store: not supported for tables, which are local files")
        if not overwrite and os.path.lexists(destination):
            said = "exists already: pass overwrite=True"
            raise of_path(PathExistsError, errno.EEXIST, os.fspath(destination), said)
        return _native.convert_table(
            paths[0],
            os.fspath(destination),
            to=to,
            columns=None if columns is None else names("columns", columns),
            schema=None if schema is None else [f"{name}={kind}" for name, kind in schema.items()],
            time_unit=time_unit,
            overwrite=overwrite,
            sync=sync,
            progress_callback=progress_callback,
        )
    if columns is not None or schema is not None:
        raise SettingError("columns and schema are for tables")
    if to is None:
        ending = os.path.splitext(os.fspath(destination))[1].lower()
        if ending in _OTHER_ENDINGS:
            raise SettingError(
                f"{os.fspath(destination)} ends with {ending}, expected .tbl, .tar or .parquet, "
                "or to='tbl'"
            )
        to = {".tar": "tar", ".parquet": "parquet"}.get(ending, "tbl")
    return _native.convert(
        paths if data is None else data._native,
        os.fspath(destination),
        to=to,
        lz4=lz4,
        compression=compression,
        overwrite=overwrite,
        sync=sync,
        progress_callback=progress_callback,
        stores=as_store(store),
    )


# Tables that hold no samples. A CSV file may be a manifest, and Parquet files may hold samples.
_TABLES = ("idv", "csv", "tbf")

# The ends of names of files that are never written.
_OTHER_ENDINGS = (".zip", ".gz", ".tgz", ".zst", ".h5", ".hdf5", ".tfrecord", ".beton", ".npz")


def _is_table(to: str | None, destination: PathLike, paths: list[str]) -> bool:
    """Return whether a table is to be written, or one is read; the native side knows it better."""

    def ends(path: PathLike, kinds: tuple[str, ...]) -> bool:
        return os.path.splitext(os.fspath(path))[1][1:].lower() in kinds

    if to == "parquet" or (to is None and ends(destination, ("parquet",))):
        return any(ends(path, ("idv", "tbf")) for path in paths)
    writes_table = ends(destination, _TABLES) if to is None else to in _TABLES
    return writes_table or any(ends(path, _TABLES) for path in paths)


def convert_tar_to_tbl(
    source: PathLike,
    destination: PathLike,
    progress_callback: Callable[[int, int], Any] | None = None,
    *,
    overwrite: bool = True,
) -> int:
    """Convert a TAR archive to a TBL file; see `convert`. A file of that name is replaced.

    Examples
    --------
    >>> convert_tar_to_tbl("train.tar", "copy.tbl")
    12
    """
    return convert(
        source,
        destination,
        to="tbl",
        overwrite=overwrite,
        progress_callback=progress_callback,
    )
