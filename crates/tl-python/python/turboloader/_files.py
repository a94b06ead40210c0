"""Stored data sets and single images: the native functions, with the types that Python has."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

from . import _native
from ._native import ImageInfo, TblReader, TblWriter, Tensor, open_raw_view, verify
from ._paths import expand

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
    progress_callback: Callable[[int, int], Any] | None = None,
) -> int:
    """Copy all samples of one or several data sets into a TBL file or a TAR archive.

    Parameters
    ----------
    sources
        TAR archives, folders and TBL files; patterns such as ``train-*.tar`` and
        ``train-{000..099}.tar`` are expanded.
    destination
        The file, which has its name only when all is well.
    to
        ``"tbl"``, ``"tbl1"`` or ``"tar"``; by default what the name says.
    lz4
        Whether to compress samples that become smaller by it.
    overwrite
        Whether to replace a file of that name.
    sync
        Whether to wait until the data is on the disk.
    progress_callback
        Called with the samples written and those there are; an exception ends the conversion.

    Returns
    -------
    int
        How many samples were written.
    """
    if to is None:
        to = "tar" if os.fspath(destination).lower().endswith(".tar") else "tbl"
    return _native.convert(
        expand(sources),
        os.fspath(destination),
        to=to,
        lz4=lz4,
        overwrite=overwrite,
        sync=sync,
        progress_callback=progress_callback,
    )


def convert_tar_to_tbl(
    source: PathLike,
    destination: PathLike,
    progress_callback: Callable[[int, int], Any] | None = None,
    *,
    overwrite: bool = False,
) -> int:
    """Convert a TAR archive to a TBL file; see `convert`.

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
