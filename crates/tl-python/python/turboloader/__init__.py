"""Training batches from stored photographs, as zero-copy tensors.

>>> import turboloader as tl
>>> from turboloader import transforms as T
>>> train = T.Compose([T.RandomResizedCrop(224), T.ToTensor(), T.Normalize()])
>>> loader = tl.DataLoader("train.tar", batch_size=64, shuffle=True, transform=train)
>>> for batch in loader:
...     images, labels = batch["image"].numpy(), batch["label"].numpy()
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from . import exceptions, fields, settings, transforms
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
from ._huggingface import from_hf
from ._lerobot import LeRobotDataset
from ._native import Batch, ImageInfo, Recipe, Report, Tensor, __version__
from ._tokens import tokenize, tokens
from ._watch import watch
from .dataset import Dataset, Sample, Stats, concat, mix, open
from .exceptions import *  # noqa: F403
from .fields import *  # noqa: F403
from .loader import DataLoader
from .settings import *  # noqa: F403
from .sources import coco, coco_mask, from_arrays, from_items, imagenet, manifest, pairs
from .transforms import *  # noqa: F403

if TYPE_CHECKING:
    from ._idv import IdvColumn, IdvFile, SparseRows
    from ._tbf import Edges, Nearest, TbfSegment
    from ._tbf_files import FoundNode, find_tbf, write_tbf

__all__ = [
    "Batch",
    "DataLoader",
    "Dataset",
    "Edges",
    "FoundNode",
    "IdvColumn",
    "IdvFile",
    "ImageInfo",
    "LeRobotDataset",
    "Nearest",
    "Recipe",
    "Report",
    "Sample",
    "SparseRows",
    "Stats",
    "TbfSegment",
    "TblReader",
    "TblWriter",
    "Tensor",
    "__version__",
    "coco",
    "coco_mask",
    "concat",
    "convert",
    "convert_tar_to_tbl",
    "decode",
    "decode_jpeg",
    "exceptions",
    "fields",
    "find_tbf",
    "from_arrays",
    "from_hf",
    "from_items",
    "imagenet",
    "manifest",
    "mix",
    "open",
    "open_raw_view",
    "pairs",
    "probe",
    "settings",
    "tokenize",
    "tokens",
    "transforms",
    "verify",
    "watch",
    "write_tbf",
]
# In the form that Pyright knows.
__all__ += exceptions.__all__
__all__ += fields.__all__
__all__ += settings.__all__
__all__ += transforms.__all__

# They need NumPy, which is imported when one of them is asked for.
_LATER = dict.fromkeys(("IdvColumn", "IdvFile", "SparseRows"), "._idv")
_LATER |= dict.fromkeys(("Edges", "Nearest", "TbfSegment"), "._tbf")
_LATER |= dict.fromkeys(("FoundNode", "find_tbf", "write_tbf"), "._tbf_files")


def __getattr__(name: str) -> Any:
    if name in _LATER:
        return getattr(importlib.import_module(_LATER[name], __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
