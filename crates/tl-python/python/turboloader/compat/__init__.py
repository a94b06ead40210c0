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

from . import _transforms, pytorch_compat, sequence, tbl
from ._devices import CudaPrefetcher, JaxDeviceLoader
from ._features import __version__, features, version
from ._files import (
    MetadataType,
    SampleFormat,
    TblReaderV2,
    TblWriterV2,
    decode_jpeg,
    decode_jpeg_region,
    decode_jpeg_scaled,
    read_files,
)
from ._loaders import (
    DataLoader,
    FastDataLoader,
    Loader,
    MemoryEfficientDataLoader,
    ProgressiveResizeLoader,
    _resize_target_from_transform,  # noqa: F401
    create_loader,
)
from ._logging import (
    LogLevel,
    disable_logging,
    enable_logging,
    set_log_level,
    set_log_output,
)
from ._transforms import *  # noqa: F403
from ._videos import VideoDatasetLoader
from .pytorch_compat import (
    CallableLabelExtractor,
    FilenamePatternExtractor,
    FolderLabelExtractor,
    ImageFolderConverter,
    JSONSidecarExtractor,
    LabelExtractor,
    MetadataLabelExtractor,
    PyTorchCompatibleLoader,
    TransformAdapter,
    convert_imagefolder,
)
from .pytorch_compat import create_loader as create_pytorch_loader
from .sequence import ArrayDataLoader, MapDataLoader, TokenDataLoader, default_collate
from .tbl import (
    TblRawImageLoader,
    crop_resize_normalize_u8_gather,
    normalize_u8_batch,
    normalize_u8_gather,
    preprocess_to_tbl,
)

__all__ = [
    "ArrayDataLoader",
    "CallableLabelExtractor",
    "CudaPrefetcher",
    "DataLoader",
    "FastDataLoader",
    "FilenamePatternExtractor",
    "FolderLabelExtractor",
    "ImageFolderConverter",
    "JSONSidecarExtractor",
    "JaxDeviceLoader",
    "LabelExtractor",
    "Loader",
    "LogLevel",
    "MapDataLoader",
    "MemoryEfficientDataLoader",
    "MetadataLabelExtractor",
    "MetadataType",
    "ProgressiveResizeLoader",
    "PyTorchCompatibleLoader",
    "SampleFormat",
    "TblRawImageLoader",
    "TblReaderV2",
    "TblWriterV2",
    "TokenDataLoader",
    "TransformAdapter",
    "VideoDatasetLoader",
    "__version__",
    "convert_imagefolder",
    "create_loader",
    "create_pytorch_loader",
    "crop_resize_normalize_u8_gather",
    "decode_jpeg",
    "decode_jpeg_region",
    "decode_jpeg_scaled",
    "default_collate",
    "disable_logging",
    "enable_logging",
    "features",
    "normalize_u8_batch",
    "normalize_u8_gather",
    "preprocess_to_tbl",
    "pytorch_compat",
    "read_files",
    "sequence",
    "set_log_level",
    "set_log_output",
    "tbl",
    "version",
]
# In the form that Pyright knows.
__all__ += _transforms.__all__
