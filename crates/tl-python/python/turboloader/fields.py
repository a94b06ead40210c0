"""The fields of a sample: what the files next to its image hold, and how batches have them.

A sample is an image and the files that share its name. A field names one of these files by its
extension and says what it is:

>>> import turboloader as tl
>>> fields = {
...     "caption": tl.Text("txt"),
...     "score": tl.Number("json:/score"),
...     "tags": tl.MultiLabel("json:/tags", classes=["cat", "dog", "emu"]),
...     "latent": tl.Array("npy"),
... }
>>> loader = tl.DataLoader("train.tar", 64, image_size=224, fields=fields)

The objects are frozen, and check their values when they are made.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Literal

from ._checks import check_choice, names, one_or_more, whole, wholes
from ._native import DTYPES
from .exceptions import SettingError

__all__ = [
    "Array",
    "Boxes",
    "Bytes",
    "Field",
    "Image",
    "InstanceMasks",
    "Json",
    "Keypoints",
    "Label",
    "Mask",
    "MultiLabel",
    "Number",
    "Text",
]


@dataclass(frozen=True)
class Field:
    """A part of each sample.

    Parameters
    ----------
    source
        The extension of the file that has it, without the leading dot: ``"txt"``, ``"seg.png"``.
        A place in the file may follow: ``"json:/score"`` is a JSON pointer (RFC 6901),
        ``"npz:latent"`` an array by its name. By default the field's own name.
    """

    source: str | None = None

    def __post_init__(self) -> None:
        if self.source is not None and not (isinstance(self.source, str) and self.source):
            raise self._error("source", "expected the extension of a file, such as 'txt'")

    def place(self, name: str) -> tuple[str, str | None]:
        """Return the extension of the file, and the place in it."""
        source = name if self.source is None else self.source
        extension, colon, place = source.partition(":")
        return extension.removeprefix("."), place if colon else None

    def _setting(self, name: str) -> str:
        """Return the name of a parameter as messages have it."""
        return f"{type(self).__name__}: {name}"

    def _error(self, name: str, expected: str) -> SettingError:
        return SettingError(f"{self._setting(name)} is {getattr(self, name)!r}, {expected}")

    def _set(self, **values: Any) -> None:
        """Keep values in their checked form."""
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def _check_missing(self) -> None:
        """Keep the number for samples without the field as Python's own."""
        missing: Any = getattr(self, "missing", None)
        if missing is None:
            return
        is_whole = hasattr(missing, "__index__")
        try:
            number = operator.index(missing) if is_whole else float(missing)
        except (TypeError, ValueError, OverflowError):
            number = None
        if number is None or isinstance(missing, (bool, str, bytes)):
            raise self._error("missing", "expected a number")
        self._set(missing=number)

    def _check_dtype(self, choices: Sequence[str] = ()) -> None:
        """Keep the name of a type, which is one of the choices or a type of batches."""
        from .transforms import dtype_name

        dtype: Any = getattr(self, "dtype", None)
        if dtype is None and not choices:
            return
        try:
            name = dtype_name(dtype)
        except TypeError:
            raise self._error("dtype", "expected a dtype such as 'float32'") from None
        check_choice(self._setting("dtype"), name, choices or DTYPES)
        self._set(dtype=name)

    def _class_names(self, classes: Any) -> list[str]:
        """Return the names of classes, each of them once and in an order."""
        setting = self._setting("classes")
        listed = names(setting, classes)
        if not listed:
            raise SettingError(f"{setting} is {classes!r}, expected a list of names")
        if len({*listed}) < len(listed):
            twice = next(name for place, name in enumerate(listed) if name in listed[:place])
            raise SettingError(f"{setting} has {twice!r} twice, expected each name once")
        return listed


@dataclass(frozen=True)
class Image(Field):
    """A further image of each sample, from a file next to it.

    It is cropped, flipped and coloured as the sample's own image is, with the same random numbers,
    and must have its size. A ``transform`` for it alone makes it independent.

    Parameters
    ----------
    channels
        1 for grey, 3 for RGB or 4 for RGB and alpha.
    pixels
        ``"uint8"``, ``"uint16"`` or ``"float32"``, for the numbers that the file stores, such as
        depths. With ``pixels`` or ``channels`` the image is only moved as the sample's own image is
        (crop, resize, border, flip) and keeps their unit: no colours are changed, and nothing is
        normalised. Resizing interpolates; for depths with holes and for numbers of instances, use
        `Mask`, which takes the nearest one.
    """

    _: KW_ONLY
    channels: int | None = None
    pixels: Any = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.channels is not None:
            channels = whole(self._setting("channels"), self.channels)
            if channels not in (1, 3, 4):
                raise self._error("channels", "expected 1, 3 or 4")
            self._set(channels=channels)
        if self.pixels is not None:
            from .transforms import dtype_name

            try:
                pixels = dtype_name(self.pixels)
            except TypeError:
                pixels = repr(self.pixels)
            check_choice(self._setting("pixels"), pixels, ("uint8", "uint16", "float32"))
            self._set(pixels=pixels)


@dataclass(frozen=True)
class Mask(Field):
    """A mask of the size of the image, which moves with it: a PNG file of one channel.

    Parameters
    ----------
    dtype
        ``"uint8"``, or ``"uint16"``, ``"int32"`` or ``"int64"`` (which losses of torch take), whose
        files can have 16 bits, such as numbers of instances or depths with holes.
    padding
        The number of pixels outside the stored mask, 0 to 255: around images that the batch pads,
        and where transforms pad or leave pixels uncovered (``RandomCrop``, ``CenterCrop``, ``Pad``,
        ``RandomZoomOut``, ``RandomRotation`` and others). It replaces their ``fill``. By default
        255 in batches, and after transforms 0 or the number of a grey ``fill``, as in torchvision.
        Where 0 is a class, pass the number that your loss ignores: ``padding=255``.
    """

    _: KW_ONLY
    dtype: Any = "uint8"
    padding: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_dtype(("uint8", "uint16", "int32", "int64"))
        if self.padding is not None:
            self._set(padding=whole(self._setting("padding"), self.padding, most=255))


@dataclass(frozen=True)
class Boxes(Field):
    """Boxes that move with the image, in a JSON file.

    Parameters
    ----------
    source
        The file, and a pointer to lists of four numbers, in which one ``*`` stands for every
        element of a list: ``"json:/annotations/*/bbox"``.
    labels
        A pointer to their labels in the same file; the batch has them as ``box_labels``.
    values
        Further numbers of each box: a dict from names in the batch to pointers, such as
        ``{"area": "/annotations/*/area"}``, or to (pointer, dtype). Boxes of which the crop leaves
        nothing are removed with all that belongs to them; ``box_index`` has the places of the
        others in the file.
    format, output
        The form of the numbers in the file and in the batch: ``"xyxy"``, ``"xywh"`` or
        ``"cxcywh"``.
    """

    _: KW_ONLY
    labels: str | None = None
    values: Mapping[str, str | tuple[str, Any]] | None = None
    format: str = "xyxy"
    output: str = "xyxy"

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("format", "output"):
            check_choice(self._setting(name), getattr(self, name), ("xyxy", "xywh", "cxcywh"))
        if self.labels is not None and not isinstance(self.labels, str):
            raise self._error("labels", "expected a pointer such as '/annotations/*/id'")
        values: Any = {} if self.values is None else self.values
        if not isinstance(values, Mapping):
            raise self._error("values", "expected a dict of pointers")
        for name, value in values.items():
            pair = (value, "float32") if isinstance(value, str) else value
            is_pair = isinstance(pair, (tuple, list)) and len(pair) == 2
            if not isinstance(name, str) or not is_pair or not isinstance(pair[0], str):
                raise SettingError(
                    f"{self._setting('values')} has {name!r}: {value!r}, expected a name and a "
                    "pointer, or (pointer, dtype)"
                )
            _box_dtype(self._setting("values"), name, pair[1])


@dataclass(frozen=True)
class InstanceMasks(Field):
    """A mask of each object, which moves with the image: polygons or run lengths of COCO in JSON.

    Batches have a list of ``uint8`` arrays of shape (objects, height, width), 1 inside and 0
    outside. Masks are in the order of the boxes and are removed with them; without boxes all
    objects stay.

    Parameters
    ----------
    source
        The file, and a pointer to the masks, in which one ``*`` stands for every element of a list:
        ``"json:/annotations/*/segmentation"``.
    """


@dataclass(frozen=True)
class Keypoints(Field):
    """Points that move with the image: joints of persons, marks of a face.

    Batches have a list of ``float32`` arrays of shape (objects, points, 2 or 3), or for points of
    samples one array of shape (batch, points, 2 or 3). Points keep their coordinates where they
    come to lie outside the image, as torchvision's ``KeyPoints`` do. A third number is a visibility
    as in COCO's files: points outside lose their label, and points without a label are (0, 0, 0).

    Parameters
    ----------
    source
        The file and the place of the points. A JSON pointer with one ``*`` for the elements of a
        list leads to the points of objects: ``"json:/annotations/*/keypoints"``. They are in the
        order of the boxes and are removed with them; without boxes all objects stay. Everything
        else leads to points of samples: ``"json:/landmarks"``, ``"npy"``, ``"txt"``.
    shape
        The number of points, and 2 or 3 numbers for each; by default those of the first sample that
        has points. A plain list of numbers is one of triples, unless the shape says otherwise.
    flip_pairs
        Pairs of points that change places in mirrored images, such as ``[(1, 2)]`` for the left and
        the right eye; ``Keypoints.COCO_FLIP_PAIRS`` for COCO's persons. By default none, as in
        torchvision.
    missing
        0 gives (0, 0, 0) for each point, which are points without a label, to objects without
        points (no value, null or an empty list) and to samples without a value. By default these
        are errors, as they always are for points of two numbers.

    Examples
    --------
    >>> fields = {"keypoints": Keypoints("json:/annotations/*/keypoints", flip_pairs=[(1, 2)])}
    """

    COCO_FLIP_PAIRS: ClassVar[tuple[tuple[int, int], ...]] = tuple(
        (left, left + 1) for left in range(1, 17, 2)
    )

    _: KW_ONLY
    shape: Sequence[int] | None = None
    flip_pairs: Sequence[tuple[int, int]] = ()
    missing: Literal[0] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.shape is not None:
            shape = tuple(wholes(self._setting("shape"), self.shape))
            if len(shape) != 2 or shape[1] not in (2, 3):
                raise self._error("shape", "expected (points, 2 or 3)")
            self._set(shape=shape)
        pairs: Any = self.flip_pairs
        listed = [_pair(pair) for pair in pairs] if isinstance(pairs, Sequence) else [()]
        if not all(listed):
            raise self._error("flip_pairs", "expected pairs of points: [(1, 2), ...]")
        if self.missing is not None and (isinstance(self.missing, bool) or self.missing != 0):
            raise self._error("missing", "expected 0 or None")


@dataclass(frozen=True)
class Array(Field):
    """Numbers of one shape: an ``.npy`` file, an array of an ``.npz`` file, JSON or text.

    Parameters
    ----------
    dtype
        The type of the numbers in the batch; as stored in arrays, otherwise ``"float32"``.
    shape
        The shape for one sample; by default that of the first one that has the field.
    missing
        The number for samples without the field. By default such a sample is bad.
    """

    _: KW_ONLY
    dtype: Any = None
    shape: Sequence[int] | None = None
    missing: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_dtype()
        if self.shape is not None:
            self._set(shape=tuple(wholes(self._setting("shape"), self.shape)))
        self._check_missing()


@dataclass(frozen=True)
class Number(Field):
    """One number, in a text or JSON file: a target of regression.

    Parameters
    ----------
    dtype
        Its type in the batch. A whole number that the type does not have is an error.
    missing
        The number for samples without the field. By default such a sample is bad.
    """

    _: KW_ONLY
    dtype: Any = "float32"
    missing: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_dtype()
        self._check_missing()


@dataclass(frozen=True)
class Label(Field):
    """One class, as an ``int64``: a number, or one of ``classes`` by name.

    Parameters
    ----------
    classes
        The names of the classes; None if the file has numbers.
    missing
        The number for samples without the field. By default such a sample is bad.
    """

    _: KW_ONLY
    classes: Sequence[str] | None = None
    missing: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.classes is not None:
            self._set(classes=self._class_names(self.classes))
        self._check_missing()
        if isinstance(self.missing, float):
            raise self._error("missing", "expected a whole number")


@dataclass(frozen=True)
class MultiLabel(Field):
    """Some of several classes: 1 for those that the file lists, and 0 for the others.

    Parameters
    ----------
    classes
        The number of classes, if the file lists numbers from 0, or their names. Names in a text are
        separated by ``,``, ``;`` or ``|``.
    dtype
        The type of the numbers in the batch.
    missing
        The number for samples without the field. By default such a sample is bad.
    """

    _: KW_ONLY
    classes: int | Sequence[str] = 0
    dtype: Any = "float32"
    missing: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        classes: Any = self.classes
        if isinstance(classes, int) and not isinstance(classes, bool) and classes < 1:
            raise self._error("classes", "expected how many there are, or their names")
        is_count = hasattr(classes, "__index__")
        checked = one_or_more(self._setting("classes"), classes) if is_count else None
        self._set(classes=self._class_names(classes) if checked is None else checked)
        self._check_dtype()
        self._check_missing()


@dataclass(frozen=True)
class Text(Field):
    """A text in UTF-8: ``str``, or None for samples without it. Batches have a list."""


@dataclass(frozen=True)
class Bytes(Field):
    """A file as it is stored: ``bytes``, or None for samples without it. Batches have a list."""


@dataclass(frozen=True)
class Json(Field):
    """A value in a JSON file, such as ``Json("json:/caption")``, or all of it. Batches have a list.

    None for samples without the file or the value.
    """


class Request:
    """The fields that a loader is asked for, in the form of the native library."""

    _STORED: ClassVar[dict[type[Field], str]] = {Text: "text", Bytes: "bytes", Json: "json"}

    def __init__(self, fields: Mapping[str, Field]) -> None:
        self.images: dict[str, tuple[str, Image]] = {}
        self.values: list[dict[str, Any]] = []
        self.keypoints: list[dict[str, Any]] = []
        self.stored: list[tuple[str, str, str, str]] = []
        self.boxes: dict[str, Any] | None = None
        self.masks: tuple[str, str] | None = None
        self.mask: dict[str, Any] | None = None
        self.renamed: dict[str, str] = {}
        self.names = list(fields)
        for name, field in fields.items():
            if not isinstance(name, str) or not name:
                raise SettingError(f"fields: {name!r} is not a name")
            if name == "key":
                raise SettingError("field key: samples have their own key, choose another name")
            if isinstance(field, type) and issubclass(field, Field):
                raise SettingError(
                    f"fields: {name} is the class {field.__name__}; pass an instance"
                )
            if not isinstance(field, Field):
                raise SettingError(
                    f"fields: {name} is {field!r}, expected a kind such as tl.Text()"
                )
            self._add(name, field)

    def _add(self, name: str, field: Field) -> None:
        file, place = field.place(name)
        if kind := self._STORED.get(type(field)):
            if place is not None and kind != "json":
                raise SettingError(f"field {name}: only JSON files have places such as {place!r}")
            _check_pointer(name, place or "")
            self.stored.append((name, file, kind, place or ""))
        elif isinstance(field, Image):
            _refuse_place(name, place)
            self.images[name] = (file, field)
        elif isinstance(field, Mask):
            _refuse_place(name, place)
            self._one("mask", name, self.mask)
            self.mask = {"file": file, "dtype": field.dtype, "padding": field.padding}
        elif isinstance(field, InstanceMasks):
            self._one("masks", name, self.masks)
            self.masks = (file, _pointer(name, file, place, "/annotations/*/segmentation"))
        elif isinstance(field, Boxes):
            place = _pointer(name, file, place, "/boxes/*")
            self._one("boxes", name, self.boxes)
            settings = {"labels": field.labels, "format": field.format, "output": field.output}
            values = _box_values(field.values or {})
            self.boxes = {"file": file, "boxes": place, "values": values, **settings}
        elif isinstance(field, Keypoints):
            self.keypoints.append(_keypoints(name, field, file, place))
        else:
            self.values.append(_values(name, field, file, place))

    @property
    def moving(self) -> dict[str, Any]:
        """The fields that move with the image, by their kinds.

        Of keypoints a list of the names, each with whether the points are those of objects.
        """
        kinds: dict[str, Any] = {}
        for kind in ("boxes", "masks", "mask"):
            if getattr(self, kind) is not None:
                kinds[kind] = self.renamed.get(kind, kind)
        if self.keypoints:
            kinds["keypoints"] = [
                (one["name"], "*" in one["place"].split("/")) for one in self.keypoints
            ]
        return kinds

    @property
    def of_boxes(self) -> list[str]:
        """The names of the fields that belong to boxes."""
        if self.boxes is None:
            return []
        labels = [] if self.boxes["labels"] is None else ["box_labels"]
        return [*labels, "box_index", *(name for name, *_ in self.boxes["values"])]

    @property
    def needs_image(self) -> bool:
        """Whether a field lies on the image, which is then decoded."""
        return bool(self.images or self.keypoints or self.boxes or self.mask)

    def _one(self, kind: str, name: str, other: Any) -> None:
        if other is not None:
            raise SettingError(f"fields: {name} is a second field of {kind}; a batch has one")
        if name != kind:
            self.renamed[kind] = name


def _box_dtype(setting: str, name: str, dtype: Any) -> str:
    """Return the name of the type of the numbers ``name`` of boxes."""
    from .transforms import dtype_name

    try:
        found = dtype_name(dtype)
    except TypeError:
        found = repr(dtype)
    check_choice(f"{setting}: dtype of {name!r}", found, DTYPES)
    return found


def _box_values(values: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """Return names, pointers and types of the numbers of boxes."""
    listed = []
    for key, value in values.items():
        pointer, dtype = (value, "float32") if isinstance(value, str) else value
        listed.append((key, pointer, _box_dtype("Boxes: values", key, dtype)))
    return listed


def _check_pointer(name: str, place: str) -> None:
    if place and not place.startswith("/"):
        raise SettingError(f"field {name}: pointer is {place!r}, expected one such as '/a/b'")


def _pointer(name: str, file: str, place: str | None, example: str) -> str:
    if place is None:
        raise SettingError(
            f"field {name}: source is {file!r}, expected a pointer after it, such as "
            f'"{file}:{example}"'
        )
    return place


def _refuse_place(name: str, place: str | None) -> None:
    if place is not None:
        raise SettingError(f"field {name}: an image is a whole file, without {place!r}")


def _values(name: str, field: Field, file: str, place: str | None) -> dict[str, Any]:
    """Return a field of numbers as the native library reads it."""
    kind, classes, count = "numbers", [], None
    shape: list[int] | None = []
    if isinstance(field, Array):
        shape = None if field.shape is None else list(field.shape)
    elif isinstance(field, MultiLabel):
        kind = "multi_hot"
        classes = [] if isinstance(field.classes, int) else list(field.classes)
        count = field.classes if isinstance(field.classes, int) else len(classes)
    elif isinstance(field, Label) and field.classes is not None:
        kind, classes = "class", list(field.classes)
    missing = getattr(field, "missing", None)
    return {
        "name": name,
        "file": file,
        "format": _format(name, file, place),
        "place": place or "",
        "kind": kind,
        "dtype": getattr(field, "dtype", "int64"),
        "shape": shape,
        "names": classes,
        "count": count,
        "missing": None if missing is None else float(missing),
    }


def _format(name: str, file: str, place: str | None) -> str:
    """Return the format of a file that has numbers."""
    last = file.rpartition(".")[2]
    if place is not None and (last == "json" or place[:1] in ("", "/")):
        _check_pointer(name, place)
        return "json"
    if place is not None or last == "npz":
        if not place:
            raise SettingError(f'field {name}: which array? such as "{file}:latent"')
        return "npz"
    return last if last in ("npy", "json") else "text"


def _keypoints(name: str, field: Keypoints, file: str, place: str | None) -> dict[str, Any]:
    """Return a field of keypoints as the native library reads it."""
    return {
        "name": name,
        "file": file,
        "format": _format(name, file, place),
        "place": place or "",
        "shape": None if field.shape is None else list(field.shape),
        "flip_pairs": [list(pair) for pair in field.flip_pairs],
        "fills_missing": field.missing is not None,
    }


def _pair(values: Any) -> tuple[int, ...]:
    """Return two whole numbers from 0 on, or nothing for anything else."""
    listed = [] if isinstance(values, str) or not isinstance(values, Sequence) else list(values)
    is_whole = all(isinstance(one, int) and one >= 0 for one in listed)
    return tuple(listed) if is_whole and len(listed) == 2 else ()
