"""What a build can do, by the names of the first turboloader."""

from __future__ import annotations

from typing import Any

from .. import _native
from .._table import BATCH_TABLE, TABLE

# The version whose names, arguments and batches this package has.
__version__ = "2.39.0"


def version() -> str:
    """Return the version of the first turboloader whose interface this is."""
    return __version__


def features() -> dict[str, Any]:
    """Return what this build can do; ``implementation`` is the version of the package itself."""
    has = {
        "distributed_training": True,
        "tar_support": True,
        "remote_tar": _native.HAS_REMOTE,
        "http_support": _native.HAS_REMOTE,
        "s3_support": _native.HAS_REMOTE,
        "gcs_support": _native.HAS_REMOTE,
        "azure_support": _native.HAS_REMOTE,
        "jpeg_decode": True,
        "png_decode": True,
        "webp_decode": True,
        "simd_acceleration": True,
        "lock_free_queues": True,
        "num_transforms": len(TABLE) + len(BATCH_TABLE),
        "autoaugment": True,
        "pytorch_tensors": True,
        "tensorflow_tensors": True,
        "lanczos_interpolation": True,
        "smart_batching": False,
        "pipe_operator": True,
        "hdf5_support": False,
        "tfrecord_support": False,
        "zarr_support": True,
        # Pascal VOC's boxes, in XML, are not read; `turboloader.coco` and `pairs` read the rest.
        "coco_voc_support": False,
        "io_uring": _native.has_io_uring(),
        "gpu_transforms": False,
        "nvjpeg_decode": False,
        "metal_gpu_transforms": False,
    }
    return {"version": __version__, "implementation": _native.__version__, **has}
