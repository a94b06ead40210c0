"""TBL files and JPEG images by the names of the first turboloader."""

from __future__ import annotations

import concurrent.futures
import enum
import os
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from .. import _files
from .._files import TblReader
from .._native import TblWriter
from ..exceptions import SettingError
from ..settings import StoreLike
from ._errors import original_errors


class MetadataType(enum.IntEnum):
    """The encoding of a sample's metadata."""

    NONE = 0
    JSON = 1
    PROTOBUF = 2
    MSGPACK = 3
    CUSTOM = 255


class SampleFormat(enum.IntEnum):
    """The kind of a sample's bytes, with the number that TBL files have for it."""

    UNKNOWN = 0
    JPEG = 1
    PNG = 2
    WEBP = 3
    BMP = 4
    TIFF = 5
    VIDEO_MP4 = 6
    VIDEO_AVI = 7
    RAW_U8 = 8
    GIF = 64
    PNM = 65
    QOI = 66
    JPEG2000 = 67
    JXL = 68
    AVIF = 69


class TblReaderV2:
    """TBL files by the names of the first turboloader. Checksums are always verified.

    Parameters
    ----------
    path
        The file.
    verify_checksums
        Has to be true.
    store
        A `Store`: how stores that URLs name are read, and where compressed archives are unpacked.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        verify_checksums: bool = True,
        *,
        store: StoreLike = None,
    ) -> None:
        if not verify_checksums:
            raise SettingError("verify_checksums=False: samples are always checked")
        with original_errors(opening="TBL"):
            self._reader = TblReader(path, store=store)

    @property
    def num_samples(self) -> int:
        """How many samples there are."""
        return len(self._reader)

    def __len__(self) -> int:
        return len(self._reader)

    def read_sample(self, index: int) -> bytes:
        """Return the bytes of a sample."""
        with original_errors():
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

    def filter_by_format(self, format: SampleFormat | str) -> list[int]:
        """Return the samples of this format, such as ``"JPEG"`` or `SampleFormat.JPEG`."""
        name = format.name if isinstance(format, SampleFormat) else str(format)
        wanted = name.rpartition(".")[2].lower()
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
        with original_errors(opening="TBL"):
            self._writer = TblWriter(path, lz4=enable_compression, overwrite=True)

    def add_sample(self, data: bytes, format: Any = None, width: int = 0, height: int = 0) -> int:
        """Add a sample and return its number.

        What it is, is read from its bytes, except for pixels of `SampleFormat.RAW_U8`: rows of red,
        green and blue, of this width and height.
        """
        index = self._writer.num_samples
        if format == SampleFormat.RAW_U8:
            if len(data) != height * width * 3:
                need = f"{width}x{height} pixels have {height * width * 3}"
                raise SettingError(f"RAW_U8: {len(data)} bytes, {need}")
            pixels = np.frombuffer(data, np.uint8).reshape(height, width, 3)
            self._writer.add_pixels(pixels)
        else:
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
        with original_errors():
            self._writer.finish()

    def __enter__(self) -> TblWriterV2:
        return self

    def __exit__(self, kind: Any, value: Any, traceback: Any) -> None:
        self._writer.__exit__(kind, value, traceback)


def decode_jpeg(data: bytes) -> npt.NDArray[np.uint8]:
    """Decode a JPEG image to an array of (height, width, 3)."""
    with original_errors():
        return _files.decode_jpeg(data).numpy()


def _eighths(data: bytes, width: int, height: int) -> tuple[int, int, int]:
    """Return the smallest n of n/8 that covers this size, and the width and height it gives."""
    info = _files.probe(data)
    for n in range(1, 17):
        scaled = -(-info.width * n // 8), -(-info.height * n // 8)
        if scaled[0] >= width and scaled[1] >= height:
            return n, *scaled
    return 8, info.width, info.height


def decode_jpeg_scaled(data: bytes, width: int, height: int) -> npt.NDArray[np.uint8]:
    """Decode a JPEG image at the smallest of 1/8, 2/8 to 16/8 that covers this size.

    At its own size if none does.
    """
    with original_errors():
        eighths, _, _ = _eighths(data, width, height)
        return _files.decode_jpeg(data, eighths=eighths).numpy()


def decode_jpeg_region(
    data: bytes, target_w: int, target_h: int, x: int, y: int, w: int, h: int
) -> tuple[npt.NDArray[np.uint8], int, int, int]:
    """Decode a part of what `decode_jpeg_scaled` gives for the target.

    Returns the rows and columns of the part, its first column, and width and height of the whole.
    No column next to the part is decoded, where the first turboloader had those of whole blocks.
    """
    with original_errors():
        eighths, width, height = _eighths(data, target_w, target_h)
        part = _files.decode_jpeg(data, region=(x, y, w, h), eighths=eighths)
    return part.numpy(), x, width, height


def read_files(paths: Sequence[str | os.PathLike[str]]) -> list[bytes]:
    """Read files with several threads; ``b""`` for one that cannot be read, as it was."""

    def read(path: str | os.PathLike[str]) -> bytes:
        try:
            with open(path, "rb") as file:
                return file.read()
        except OSError:
            return b""

    with concurrent.futures.ThreadPoolExecutor() as pool:
        return list(pool.map(read, paths))
