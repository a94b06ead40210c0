"""Data sets from lists of files, from pairs of files, and from memory.

>>> import turboloader as tl
>>> ds = tl.manifest("train.csv", image="path", label="class")
>>> loader = tl.DataLoader(ds, batch_size=2, image_size=224)
"""

from __future__ import annotations

import errno
import json
import os
import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol

from . import _native
from ._advice import advised, refuse_if_advised
from ._checks import names as listed_names
from ._paths import absolute, shown
from ._warnings import warn, warn_of_notes
from .dataset import _OF_EVERY_BATCH, Dataset, _plain, open
from .exceptions import PathNotFoundError, SampleError, SettingError, of_path
from .fields import Boxes, Field, InstanceMasks, Keypoints, Number
from .settings import Store, StoreLike, as_store

if TYPE_CHECKING:
    import numpy as np

    from ._native import Dataset as Native
    from ._native import Tensor

__all__ = ["coco", "coco_mask", "from_arrays", "from_items", "imagenet", "manifest", "pairs"]

PathLike = str | os.PathLike[str]

# A header, rows of bytes, and the bytes of a row; or bytes for each.
_Block = tuple[bytes, bytes, int]
_Items = list[bytes | None] | _Block


@advised
def manifest(
    path: PathLike,
    *,
    image: str | None = None,
    label: str | None = None,
    files: Sequence[str] = (),
    root: PathLike | None = None,
    store: StoreLike = None,
) -> Dataset:
    """Open the samples that a table lists: a CSV or TSV file, or JSON Lines.

    Columns that are not named here are fields of samples: their texts, or in JSON Lines the JSON of
    values that are not strings.

    Parameters
    ----------
    path
        The path or URL of the table.
    image
        The column with the paths of images. By default ``path``, ``image``, ``file_name`` or a
        similar name, if one column has it.
    label
        The column with the labels: integers, or names of classes, which are numbered in sorted
        order. By default ``label``, if there is one. Other numbers and lists stay a field.
    files
        Columns with paths of further files, such as masks, whose bytes are fields.
    root
        The folder that paths are relative to; by default that of the table. Absolute paths must be
        below it, and ``..`` is refused.
    store
        A `Store`: how stores that URLs name are read, and where compressed archives are unpacked.

    Examples
    --------
    >>> ds = manifest("train.csv", label="class")
    >>> ds.classes, ds[0]["caption"]
    (['cat', 'dog'], 'a dog')
    """
    folder = None if root is None else absolute(os.fspath(root))
    columns = {
        "image": image,
        "label": label,
        "files": listed_names("files", files),
        "root": folder,
    }
    return _made(_native.manifest, (_path(path), columns), path, store)


@advised
def coco(
    images: PathLike | None,
    annotations: PathLike,
    *,
    dense: bool = False,
    fields: Sequence[str] = (),
    flip_pairs: Sequence[tuple[int, int]] | None = None,
    store: StoreLike = None,
) -> Dataset:
    """Open the images of a file of annotations as COCO writes them.

    Each sample has the field ``json``, ``{"image": {...}, "annotations": [...]}``, with the objects
    of the file: boxes, areas, ``iscrowd``, keypoints, captions, polygons and run lengths.
    ``Dataset.box_classes`` has the names of categories. Loaders have the objects as they lie on the
    image in the batch, if ``fields`` names them. `coco_mask` draws the mask of an object.

    Parameters
    ----------
    images
        The folder of the images; None for the usual folders near the annotations.
    annotations
        The path or URL of the JSON file.
    dense
        Whether categories are numbered from 0 on; those of COCO are 80 numbers from 1 to 90.
    fields
        What batches have: ``"boxes"`` with ``box_labels`` and ``box_index``, ``"area"`` and
        ``"iscrowd"`` of each box, ``"masks"`` and ``"keypoints"`` of each object, and
        ``"image_id"``. `Boxes`, `InstanceMasks` and `Keypoints` describe them. With boxes, an
        object of which the crop leaves no box has none of the others. An object without keypoints
        has (0, 0, 0) for each.
    flip_pairs
        Pairs of keypoints that change places in mirrored images; ``()`` for none. By default those
        whose names in the categories differ in left and right, such as ``left_eye`` and
        ``right_eye``, or l and r.
    store
        A `Store`: how stores that URLs name are read, and where compressed archives are unpacked.

    Examples
    --------
    >>> ds = coco("val2017", "instances_val2017.json", dense=True, fields=("boxes", "masks"))
    >>> ds.box_classes[ds[0]["json"]["annotations"][0]["category_id"]]
    'person'
    """
    kinds = _coco_fields(fields)
    if flip_pairs and "keypoints" not in kinds:
        raise SettingError('flip_pairs needs "keypoints" in fields')
    folder = None if images is None else absolute(os.fspath(images))
    arguments = (_path(annotations), folder, dense)
    opened = _made(_native.coco, arguments, annotations, store)
    if "keypoints" in kinds:
        pairs = _native.flip_pairs(opened._native) if flip_pairs is None else flip_pairs
        source = "json:/annotations/*/keypoints"
        kinds["keypoints"] = Keypoints(source, flip_pairs=pairs, missing=0)
    return opened.with_fields(kinds) if kinds else opened


_OF_BOXES: dict[str, tuple[str, Any]] = {
    "area": ("/annotations/*/area", "float32"),
    "iscrowd": ("/annotations/*/iscrowd", "bool"),
}


def _coco_fields(fields: Sequence[str]) -> dict[str, Field]:
    known = ["boxes", *_OF_BOXES, "masks", "keypoints", "image_id"]
    listed = listed_names("fields", fields)
    for name in listed:
        if name not in known:
            raise SettingError(f"fields: {name!r} is not one of {', '.join(known)}")
    kinds: dict[str, Field] = {}
    if {"boxes", *_OF_BOXES} & {*listed}:
        values = {name: value for name, value in _OF_BOXES.items() if name in listed}
        labels = "/annotations/*/category_id"
        source = "json:/annotations/*/bbox"
        kinds["boxes"] = Boxes(source, labels=labels, values=values, format="xywh")
    if "masks" in listed:
        kinds["masks"] = InstanceMasks("json:/annotations/*/segmentation")
    if "keypoints" in listed:
        kinds["keypoints"] = Keypoints("json:/annotations/*/keypoints")
    if "image_id" in listed:
        kinds["image_id"] = Number("json:/image/id", dtype="int64")
    return kinds


@advised
def imagenet(
    root: PathLike,
    split: Literal["train", "val"] = "train",
    *,
    store: StoreLike = None,
) -> Dataset:
    """Open ImageNet (ILSVRC2012) as it is downloaded.

    Parameters
    ----------
    root
        The folder with ``train`` and ``val``, or with ``ILSVRC2012_img_train.tar`` and
        ``ILSVRC2012_img_val.tar``.
    split
        ``"train"``, whose classes are the folders or the archives in the archive; or ``"val"``. The
        labels of validation images that are not in class folders come from the development kit
        (``ILSVRC2012_devkit_t12.tar.gz``, unpacked or not), from ``LOC_val_solution.csv`` or from
        ``imagenet_2012_validation_synset_labels.txt``. Classes are numbered as those of the folder
        ``train``; without that folder, those that occur are numbered in sorted order. If ``train``
        lacks a class, a warning says so.
    store
        A `Store`: how stores that URLs name are read, and where compressed archives are unpacked.
    """
    if split not in ("train", "val"):
        raise SettingError(f"split is {split!r}, expected 'train' or 'val'")
    folder = _path(root)
    names = [os.path.join(folder, split), os.path.join(folder, f"ILSVRC2012_img_{split}.tar")]
    found = [path for path in names if os.path.exists(path)]
    if not found:
        raise of_path(PathNotFoundError, errno.ENOENT, folder, f"neither {' nor '.join(names)}")
    dataset = open(found[0], store=store)
    if split == "train":
        return dataset
    val = dataset if dataset.classes else _imagenet_val(dataset, folder)
    return _numbered_as(val, os.path.join(folder, "train"))


def _numbered_as(val: Dataset, train: str) -> Dataset:
    """Return classes with the numbers of the training folder, or warn that it lacks one."""
    if not os.path.isdir(train):
        return val
    with os.scandir(train) as entries:
        classes = sorted(entry.name for entry in entries if entry.is_dir())
    for number, name in enumerate(val.classes):
        if name not in classes:
            warn(
                f"train has no class `{name}`, which is {number} in val: labels of val are not "
                "those of train, whose model cannot be right about this class"
            )
            return val
    return val if val.classes == classes else val.with_classes(classes)


def _imagenet_val(dataset: Dataset, folder: str) -> Dataset:
    made = _native.with_imagenet_labels(dataset._native, folder)
    return Dataset(made, _imagenet_val, (dataset, folder), name=dataset._name)


@advised
def pairs(
    image: PathLike,
    *,
    split: PathLike | None = None,
    unpaired: Literal["error", "keep", "drop"] = "error",
    store: StoreLike = None,
    **patterns: PathLike,
) -> Dataset:
    """Open images and further files that belong to them, such as masks.

    In a pattern ``*`` stands for any part of a name, ``**`` for any number of folders and
    ``{jpg,png}`` for one of several texts. Files belong together if the stars of their patterns
    stand for the same.

    Parameters
    ----------
    image
        The pattern of the images.
    split
        A text file with a line for each image to take, such as ``train.txt`` of Pascal VOC.
    unpaired
        Whether images without a file are an error, are kept without the field, or are left out.
    store
        A `Store`: how stores that URLs name are read, and where compressed archives are unpacked.
    **patterns
        The pattern of the files of each field.

    Examples
    --------
    >>> ds = pairs("JPEGImages/*.jpg", mask="SegmentationClass/*.png", split="train.txt")
    >>> ds[0]["mask"].shape
    (6, 10, 3)
    """
    if not patterns:
        raise SettingError('pairs needs the pattern of a field, such as mask="masks/*.png"')
    _check_names(patterns)
    for name, pattern in patterns.items():
        # A name that is nearly a setting is a field, if its value is a pattern.
        if not (isinstance(pattern, (str, os.PathLike)) and "*" in os.fspath(pattern)):
            refuse_if_advised("pairs", name, pattern, ("image", "split", "unpaired", "store"))
    lines = None if split is None else _path(split)
    fields = [(name, _pattern(name, pattern)) for name, pattern in patterns.items()]
    arguments = (_pattern("image", image), fields, lines, unpaired)
    return _made(_native.pairs, arguments, image, store)


def _check_names(fields: Iterable[str]) -> None:
    """Refuse fields that a sample or a batch would not show."""
    for name in fields:
        if name in _OF_EVERY_BATCH:
            raise SettingError(
                f"field {name}: samples and batches have their own {name}, choose another name"
            )


def _pattern(name: str, pattern: Any) -> str:
    path = os.fspath(pattern) if isinstance(pattern, os.PathLike) else pattern
    if not isinstance(path, str):
        raise SettingError(f"{name} is {pattern!r}, expected a pattern such as 'masks/*.png'")
    return absolute(path)


class _Indexed(Protocol):
    """An object that `from_items` reads."""

    def __len__(self) -> int: ...
    def __getitem__(self, index: int, /) -> Any: ...


def from_items(
    items: _Indexed,
    *,
    labels: Sequence[int] | Sequence[str] | None = None,
) -> Dataset:
    """Return a data set of files of images in memory.

    All items are read here, once and in order, and stay in memory: loaders and views share their
    bytes. Labels, sizes, views and states need them before a batch is made, and the threads of a
    loader do not wait for the interpreter. Items that do not fit are written by `TblWriter`, or
    served by `turboloader.compat.MapDataLoader`, which calls an object for each batch.

    Parameters
    ----------
    items
        The bytes of each file, or a pair of bytes and a label, an integer or the name of a class.
        A sequence, or any object with ``__len__`` and ``__getitem__``.
    labels
        The label of each item, if the items are bytes.

    Raises
    ------
    SampleError
        If an item cannot be read; the object's exception is the cause.

    Examples
    --------
    >>> files = [path.read_bytes() for path in sorted(pathlib.Path("photos").rglob("*.jpg"))]
    >>> len(from_items(files))
    5
    """
    if isinstance(items, (str, bytes, Mapping)):
        raise SettingError(f"items is {type(items).__name__}, expected a sequence of bytes")
    found = [_read(items, index) for index in range(len(items))]
    samples, of_items = [], []
    for place, item in enumerate(found):
        is_pair = isinstance(item, tuple) and len(item) == 2
        data = item[0] if is_pair else item
        if not isinstance(data, (bytes, bytearray, memoryview)):
            raise SettingError(
                f"item {place} is {type(data).__name__}, expected bytes, or a pair of bytes and a "
                "label (from_arrays takes arrays of pixels)"
            )
        samples.append(bytes(data))
        of_items.extend([item[1]] if is_pair else [])
    if of_items and (labels is not None or len(of_items) != len(found)):
        raise SettingError("labels are given for some items, or twice: pass pairs, or labels")
    given = of_items if of_items else labels
    return _in_memory(samples, None, [], given, f"{len(found)} items")


def _read(items: _Indexed, index: int) -> Any:
    try:
        return items[index]
    except Exception as error:
        raise SampleError(f"item {index}: {type(error).__name__}: {error}") from error


def from_arrays(
    image: np.ndarray[Any, Any],
    label: np.ndarray[Any, Any] | Sequence[int] | Sequence[str] | None = None,
    **fields: np.ndarray[Any, Any],
) -> Dataset:
    """Return a data set of arrays in memory, which are copied once.

    Parameters
    ----------
    image
        Pixels of shape (samples, height, width, channels) with 1, 3 or 4 channels, or (samples,
        height, width): ``uint8``, or ``uint16`` with one channel.
    label
        Integers, or names of classes.
    **fields
        Further arrays with one item for each sample: a field is a ``.npy`` file of its item.

    Examples
    --------
    >>> ds = from_arrays(np.zeros((2, 8, 8, 3), np.uint8), [3, 1], depth=np.ones((2, 4)))
    >>> ds.labels, ds[1]["depth"]
    (array([3, 1]), array([1., 1., 1., 1.]))
    """
    import numpy as np

    _check_names(fields)
    pixels = np.ascontiguousarray(image)
    shape = pixels.shape[1:]
    channels = shape[2] if len(shape) == 3 else 1
    is_known = (channels, pixels.dtype.str) in {(1, "|u1"), (3, "|u1"), (4, "|u1"), (1, "<u2")}
    if len(shape) not in (2, 3) or not is_known or 0 in pixels.shape[1:]:
        raise SettingError(
            f"image is {pixels.dtype} of shape {pixels.shape}, expected uint8 of shape (samples, "
            "height, width, channels) with 1, 3 or 4 channels, or uint16 with one channel"
        )
    height, width = shape[:2]
    row_bytes = height * width * channels * pixels.itemsize
    size = (width, height) if channels == 3 else None
    front = b"" if size else _tiff_header(width, height, channels, pixels.itemsize)
    blocks: list[tuple[str, _Items]] = []
    for name, array in fields.items():
        blocks.append((name, _npy_block(np.ascontiguousarray(array), name, len(pixels))))
    samples = (front, pixels.tobytes(), row_bytes)
    return _in_memory(samples, size, blocks, label, f"{len(pixels)} arrays")


def coco_mask(segmentation: Any, height: int, width: int) -> Tensor:
    """Return the mask of an object of COCO, 1 inside and 0 outside, as pycocotools draws it.

    Parameters
    ----------
    segmentation
        The ``segmentation`` of an annotation: polygons, or run lengths as a list or compressed.
    height, width
        The size of the image.

    Examples
    --------
    >>> coco_mask([[1, 1, 3, 1, 3, 3, 1, 3]], 3, 4).numpy()
    array([[0, 0, 0, 0],
           [0, 1, 1, 0],
           [0, 1, 1, 0]], dtype=uint8)
    """
    if isinstance(segmentation, dict) and isinstance(segmentation.get("counts"), bytes):
        segmentation = {**segmentation, "counts": segmentation["counts"].decode("ascii")}
    return _native.coco_mask(json.dumps(segmentation), height, width)


def _tiff_header(width: int, height: int, channels: int, item_bytes: int) -> bytes:
    """Return what precedes the pixels in an uncompressed TIFF file."""
    short, long = 3, 4
    after_tags = 8 + 2 + 10 * 12 + 4
    bits = 8 * item_bytes
    depths = struct.pack(f"<{channels}H", *[bits] * channels) if channels > 2 else b""
    pixels = after_tags + len(depths)
    tags = [
        (256, long, 1, width),
        (257, long, 1, height),
        (258, short, channels, after_tags if depths else bits),
        (259, short, 1, 1),
        (262, short, 1, 2 if channels > 2 else 1),
        (273, long, 1, pixels),
        (277, short, 1, channels),
        (278, long, 1, height),
        (279, long, 1, width * height * channels * item_bytes),
        (338, short, 1, 2) if channels == 4 else (284, short, 1, 1),
    ]
    entries = b"".join(struct.pack("<HHII", *tag) for tag in tags)
    return b"II*\0" + struct.pack("<IH", 8, len(tags)) + entries + bytes(4) + depths


def _npy_block(array: np.ndarray[Any, Any], name: str, count: int) -> _Block:
    """Return the items of an array as `.npy` files: a header, the numbers, and bytes of an item."""
    import io

    import numpy as np

    if array.ndim == 0 or len(array) != count:
        shown_shape = array.shape
        raise SettingError(f"{name} has shape {shown_shape}, expected {count} items")
    head = io.BytesIO()
    about = {"descr": array.dtype.str, "fortran_order": False, "shape": array.shape[1:]}
    np.lib.format.write_array_header_1_0(head, about)
    item_bytes = array.dtype.itemsize * int(np.prod(array.shape[1:]))
    return head.getvalue(), array.tobytes(), item_bytes


def _in_memory(
    samples: list[bytes] | _Block,
    size: tuple[int, int] | None,
    fields: list[tuple[str, _Items]],
    labels: Any,
    name: str,
) -> Dataset:
    made = _native.in_memory(samples, size, fields)
    if labels is not None:
        made = _native.with_labels(made, _plain(labels), allow_none=False)
    return Dataset(made, _in_memory, (samples, size, fields, labels, name), name=name)


def _path(path: PathLike) -> str:
    return absolute(os.fspath(path))


def _made(
    function: Callable[..., Native],
    arguments: tuple[Any, ...],
    path: PathLike,
    store: StoreLike,
) -> Dataset:
    """Open a data set, and warn of the notes on it."""
    dataset = _made_again(function.__name__, arguments, os.fspath(path), as_store(store))
    warn_of_notes(dataset._warned)
    return dataset


def _made_again(
    function: str, arguments: tuple[Any, ...], path: str, store: Store | None
) -> Dataset:
    made = getattr(_native, function)(*arguments, store)
    rebuild = (function, arguments, path, store)
    return Dataset(made, _made_again, rebuild, name=repr(shown(path)))
