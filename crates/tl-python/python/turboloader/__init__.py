"""Training batches from stored photographs, as zero-copy tensors.

>>> import turboloader as tl
>>> from turboloader import transforms as T
>>> train = T.Compose([T.RandomResizedCrop(224), T.ToTensor(), T.Normalize()])
>>> loader = tl.DataLoader("train.tar", batch_size=64, shuffle=True, transform=train)
>>> for batch in loader:
...     images, labels = batch["image"].torch(), batch["label"].torch()
"""

from __future__ import annotations

from . import exceptions, transforms
from ._files import (
    TblReader,
    TblWriter,
    convert,
    convert_tar_to_tbl,
    decode,
    decode_jpeg,
    open_raw_view,
    probe,
    verify,
)
from ._native import Batch, ImageInfo, Recipe, Report, Tensor, __version__
from .exceptions import *  # noqa: F403
from .loader import DataLoader
from .transforms import *  # noqa: F403

__all__ = [
    "Batch",
    "DataLoader",
    "ImageInfo",
    "Recipe",
    "Report",
    "TblReader",
    "TblWriter",
    "Tensor",
    "__version__",
    "convert",
    "convert_tar_to_tbl",
    "decode",
    "decode_jpeg",
    "exceptions",
    "open_raw_view",
    "probe",
    "transforms",
    "verify",
]
# In the form that Pyright knows.
__all__ += exceptions.__all__
__all__ += transforms.__all__


def _buffer(self: Tensor, flags: int) -> memoryview:
    return memoryview(self.numpy())  # type: ignore[arg-type]


# Python from 3.12 on asks here for a memoryview; before, `numpy()` is the way to one.
Tensor.__buffer__ = _buffer  # type: ignore[method-assign]
