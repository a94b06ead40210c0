"""Stored data sets and single images: the native functions, with the types that Python has."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from . import _native
from ._native import ImageInfo, TblReader, TblWriter, Tensor, open_raw_view, verify
from ._paths import expand
from .exceptions import PathExistsError, SettingError

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


def probe(data: bytes | bytearray | memoryview) -> ImageInfo:
    """Read the header of an image: JPEG, PNG, WebP, BMP or TIFF.

    Examples
    --------
    >>> probe(open("photo.jpg", "rb").read()).width
    1024
    """
    return _native.probe(bytes(data))


def decode(
    data: bytes | bytearray | memoryview, *, gray: bool = False, exif: bool = False
) -> Tensor:
    """Decode an image of any format to rows of red, green and blue, with Pillow's pixels.

    Parameters
    ----------
    data
        The file's bytes.
    gray
        Whether to decode to grey instead, of shape (height, width).
    exif
        Whether to turn the image as its EXIF data say.

    Examples
    --------
    >>> decode(open("photo.jpg", "rb").read()).shape
    (768, 1024, 3)
    """
    return _native.decode(bytes(data), gray=gray, exif=exif)


def decode_jpeg(
    data: bytes | bytearray | memoryview,
    *,
    region: tuple[int, int, int, int] | None = None,
    scale: int = 1,
    gray: bool = False,
) -> Tensor:
    """Decode a part of a JPEG image, or at a smaller scale; what lies outside is passed over.

    Parameters
    ----------
    data
        The file's bytes.
    region
        (x, y, width, height) in pixels of the scaled image; all of it if None.
    scale
        What the sides are divided by: 1, 2, 4 or 8.
    gray
        Whether to decode to grey.

    Examples
    --------
    >>> decode_jpeg(open("photo.jpg", "rb").read(), region=(10, 20, 64, 64), scale=2).shape
    (64, 64, 3)
    """
    return _native.decode_jpeg(bytes(data), region=region, scale=scale, gray=gray)


def convert(
    sources: PathLike | Sequence[PathLike],
    destination: PathLike,
    *,
    to: str | None = None,
    lz4: bool = False,
    overwrite: bool = False,
    sync: bool = True,
    columns: Sequence[str] | None = None,
    schema: Mapping[str, str] | None = None,
    time_unit: str = "us",
    progress_callback: Callable[[int, int], Any] | None = None,
) -> int:
    """Copy all samples of one or several data sets into a TBL file or a TAR archive.

    Or a table into another: an IDV file from or to CSV and Parquet, or into another IDV file.

    Parameters
    ----------
    sources
        TAR archives, folders and TBL files; patterns such as ``train-*.tar`` and
        ``train-{000..099}.tar`` are expanded. Or one table.
    destination
        The file, which has its name only when all is well.
    to
        ``"tbl"``, ``"tbl1"``, ``"tar"``, ``"idv"``, ``"csv"`` or ``"parquet"``; by default what the
        name says.
    lz4
        Whether to compress samples that become smaller by it.
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
        Called with the samples written and those there are; an exception ends the conversion. For a
        table it is called once, at its end.

    Returns
    -------
    int
        How many samples, or rows, were written.
    """
    paths = expand(sources)
    if _is_table(to, destination, paths):
        if len(paths) != 1:
            raise SettingError("tables are converted one at a time")
        if lz4:
            raise SettingError("lz4 is for TBL files")
        if not overwrite and os.path.lexists(destination):
            path = os.fspath(destination)
            error = PathExistsError(f"{path}: exists already: pass overwrite=True")
            error.errno, error.shard, error.filename = errno.EEXIST, path, path
            raise error
        rows = _native.convert_table(
            paths[0],
            os.fspath(destination),
            to=to,
            columns=None if columns is None else list(columns),
            schema=None if schema is None else [f"{name}={kind}" for name, kind in schema.items()],
            time_unit=time_unit,
            overwrite=overwrite,
            sync=sync,
        )
        if progress_callback is not None:
            progress_callback(rows, rows)
        return rows
    if columns is not None or schema is not None:
        raise SettingError("columns and schema are for tables")
    if to is None:
        to = "tar" if os.fspath(destination).lower().endswith(".tar") else "tbl"
    return _native.convert(
        paths,
        os.fspath(destination),
        to=to,
        lz4=lz4,
        overwrite=overwrite,
        sync=sync,
        progress_callback=progress_callback,
    )


_TABLES = ("idv", "csv", "parquet")


def _is_table(to: str | None, destination: PathLike, paths: list[str]) -> bool:
    """Return whether a table is to be written, or one is read; the native side knows it better."""

    def ends(path: PathLike) -> bool:
        return os.path.splitext(os.fspath(path))[1][1:].lower() in _TABLES

    return (ends(destination) if to is None else to in _TABLES) or any(map(ends, paths))


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
    >>> convert_tar_to_tbl("input.tar", "output.tbl", progress_callback=print)
    """
    return convert(
        source,
        destination,
        to="tbl",
        overwrite=overwrite,
        progress_callback=progress_callback,
    )
