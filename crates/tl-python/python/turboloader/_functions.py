"""User-supplied functions, and transforms of Albumentations, as recipes call them."""

from __future__ import annotations

import inspect
import json
import threading
import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal

from .exceptions import SettingError

# Transforms of Albumentations that cut or resize to the size in their parameters.
_SIZED = (
    "CenterCrop",
    "CropNonEmptyMaskIfExists",
    "RandomCrop",
    "RandomResizedCrop",
    "RandomSizedBBoxSafeCrop",
    "RandomSizedCrop",
    "Resize",
)

# Those whose results have sizes that depend on the image or on what is drawn.
_UNSIZED = (
    "AtLeastOneBBoxRandomCrop",
    "BBoxSafeRandomCrop",
    "Crop",
    "CropAndPad",
    "D4",
    "LongestMaxSize",
    "Mosaic",
    "Pad",
    "PadIfNeeded",
    "RandomCropFromBorders",
    "RandomCropNearBBox",
    "RandomRotate90",
    "RandomScale",
    "SmallestMaxSize",
    "Transpose",
)


def is_of_albumentations(transform: Any) -> bool:
    """Whether it is a transform of that package, or of a class derived from one."""
    return any(kind.__module__.partition(".")[0] == "albumentations" for kind in _mro(transform))


def _mro(transform: Any) -> tuple[type, ...]:
    return type(transform).__mro__


class Albumentation:
    """A function of an image, by a transform of Albumentations with a seed of its own."""

    def __init__(self, transform: Any) -> None:
        self.transform = transform
        # Between seeding and the draws no other thread may seed it.
        self.lock = threading.Lock()

    @property
    def name(self) -> str:
        """The name that recipes have for it, with a checksum of its parameters."""
        kind = type(self.transform)
        try:
            described = json.dumps(self.transform.to_dict(), sort_keys=True, default=repr)
        except NotImplementedError:
            described = repr(self.transform)
        checksum = zlib.crc32(described.encode())
        return f"{kind.__module__}.{kind.__qualname__}.{checksum:08x}"

    @property
    def moves(self) -> bool:
        """Whether any of its transforms moves pixels."""
        return any(not _changes_colours(one) for one in _leaves(self.transform))

    @property
    def size(self) -> tuple[int, int] | Literal["any"] | None:
        """The size of its results, as `Lambda` has it."""
        return _size_of(self.transform)

    def __call__(self, image: Any, seed: int) -> Any:
        return self._run(seed, image=image)["image"]

    def __reduce__(self) -> tuple[Any, ...]:
        return Albumentation, (self.transform,)

    def _run(self, seed: int, **targets: Any) -> Any:
        with self.lock:
            if hasattr(self.transform, "set_random_seed"):
                self.transform.set_random_seed(seed)
            return self.transform(**targets)

    def lacks(self, kind: str) -> str | None:
        """Return the argument that it needs to take fields of this kind, if it has not got it."""
        processors = getattr(self.transform, "processors", {})
        if kind == "boxes" and "bboxes" not in processors:
            return 'bbox_params=A.BboxParams("pascal_voc")'
        if kind == "keypoints" and "keypoints" not in processors:
            return 'keypoint_params=A.KeypointParams("xy")'
        return None

    def annotated(
        self, image: Any, annotations: dict[str, Any], seed: int
    ) -> tuple[Any, dict[str, Any]]:
        """Do the transform to an image and to what moves with it."""
        height, width = image.shape[:2]
        targets: dict[str, Any] = {"image": image}
        boxes = points = None
        if "boxes" in annotations:
            boxes = _Boxes(annotations["boxes"], self.transform.processors["bboxes"].params)
            targets |= boxes.targets(width, height)
        if annotations["keypoints"]:
            params = self.transform.processors["keypoints"].params
            points = _Points(annotations["keypoints"], params)
            targets |= points.targets(width, height)
        targets |= {kind: annotations[kind] for kind in ("mask", "masks") if kind in annotations}
        if "masks" in targets and not len(targets["masks"]):
            del targets["masks"]
        made = self._run(seed, **targets)
        height, width = made["image"].shape[:2]
        left: dict[str, Any] = {"keypoints": [] if points is None else points.left(made)}
        if boxes is not None:
            left["boxes"] = boxes.left(made, width, height)
        if "mask" in annotations:
            left["mask"] = made["mask"]
        if "masks" in annotations:
            left["masks"] = made.get("masks", annotations["masks"])
        return made["image"], left


class _Boxes:
    """Boxes on the way through a transform of Albumentations, each with its number."""

    def __init__(self, edges: Any, params: Any) -> None:
        self.edges, self.params = edges, params

    def targets(self, width: int, height: int) -> dict[str, Any]:
        """Return the arguments of the transform: the boxes that have an area in the image."""
        import numpy as np

        edges = np.clip(np.nan_to_num(self.edges), 0, [width, height, width, height])
        numbers = np.flatnonzero((edges[:, 2] > edges[:, 0]) & (edges[:, 3] > edges[:, 1]))
        boxes = _from_edges(edges[numbers], self.params.format, width, height)
        numbered = np.column_stack([boxes, numbers]).astype(np.float32)
        labels = dict.fromkeys(self.params.label_fields or (), numbers.tolist())
        return {"bboxes": numbered, **labels}

    def left(self, made: Mapping[str, Any], width: int, height: int) -> Any:
        """Return the boxes in their first order, those that were dropped as NaN."""
        import numpy as np

        boxes = np.asarray(made["bboxes"], np.float32)
        edges = np.full_like(self.edges, np.nan)
        if len(boxes):
            numbers = boxes[:, -1].round().astype(int)
            edges[numbers] = _to_edges(boxes[:, :4], self.params.format, width, height)
        return edges


def _from_edges(edges: Any, form: str, width: int, height: int) -> Any:
    """Return boxes in a format of Albumentations."""
    import numpy as np

    left, top, right, bottom = edges.T
    if form == "coco":
        return np.stack([left, top, right - left, bottom - top], axis=1)
    if form == "albumentations":
        return edges / [width, height, width, height]
    if form == "yolo":
        middles = [(left + right) / 2 / width, (top + bottom) / 2 / height]
        return np.stack([*middles, (right - left) / width, (bottom - top) / height], axis=1)
    return edges


def _to_edges(boxes: Any, form: str, width: int, height: int) -> Any:
    """Return the edges of boxes in a format of Albumentations."""
    import numpy as np

    a, b, c, d = boxes.T
    if form == "coco":
        return np.stack([a, b, a + c, b + d], axis=1)
    if form == "albumentations":
        return boxes * [width, height, width, height]
    if form == "yolo":
        edges = np.stack([a - c / 2, b - d / 2, a + c / 2, b + d / 2], axis=1)
        return edges * [width, height, width, height]
    return boxes


class _Points:
    """Keypoints on the way through a transform of Albumentations, each with its number."""

    def __init__(self, fields: list[Any], params: Any) -> None:
        import numpy as np

        self.fields, self.params = fields, params
        flat = [points.reshape(-1, points.shape[-1]) for points in fields]
        self.places = np.concatenate([points[:, :2] for points in flat])
        labelled = [points[:, 2] > 0 if points.shape[1] == 3 else None for points in flat]
        every = [np.ones(len(points), bool) for points in flat]
        pairs = zip(labelled, every, strict=True)
        self.is_labelled = np.concatenate([one if some is None else some for some, one in pairs])
        # Whether a point without a label can be told.
        self.can_be_hidden = np.concatenate(
            [one & (some is not None) for some, one in zip(labelled, every, strict=True)]
        )

    def targets(self, width: int, height: int) -> dict[str, Any]:
        """Return the arguments of the transform: the points with a label that are in the image."""
        import numpy as np

        across, down = self.places.T
        inside = (across >= 0) & (across < width) & (down >= 0) & (down < height)
        numbers = np.flatnonzero(self.is_labelled & inside)
        order = [1, 0] if self.params.format == "yx" else [0, 1]
        places = self.places[numbers][:, order]
        others = np.zeros((len(numbers), len(self.params.format) - 2), np.float32)
        numbered = np.column_stack([places, others, numbers]).astype(np.float32)
        labels = dict.fromkeys(self.params.label_fields or (), numbers.tolist())
        return {"keypoints": numbered, **labels}

    def left(self, made: Mapping[str, Any]) -> list[Any]:
        """Return the points of each field, those that were dropped without a label."""
        import numpy as np

        found = np.asarray(made["keypoints"], np.float32)
        order = [1, 0] if self.params.format == "yx" else [0, 1]
        numbers = found[:, -1].round().astype(int) if len(found) else np.zeros(0, int)
        gone = np.ones(len(self.places), bool)
        gone[numbers] = False
        if (gone & ~self.can_be_hidden).any():
            raise ValueError(
                "Albumentations dropped a keypoint, or it was outside the image: keypoints of two "
                "numbers cannot tell; give them a visibility as third number"
            )
        places = np.zeros_like(self.places)
        if len(found):
            places[numbers] = found[:, order]
        made_fields, start = [], 0
        for points in self.fields:
            flat = points.reshape(-1, points.shape[-1]).copy()
            part = slice(start, start + len(flat))
            flat[:, :2] = places[part]
            flat[gone[part]] = 0
            made_fields.append(flat.reshape(points.shape))
            start += len(flat)
        return made_fields


def _leaves(transform: Any) -> Iterator[Any]:
    """Yield the transforms within a composition of Albumentations, or the one itself."""
    inner = getattr(transform, "transforms", None)
    if inner is None:
        yield transform
        return
    for one in inner:
        yield from _leaves(one)


def _changes_colours(transform: Any) -> bool:
    return any(kind.__name__ in ("ImageOnlyTransform", "NoOp") for kind in _mro(transform))


def _size_of(transform: Any) -> tuple[int, int] | Literal["any"] | None:
    """Return (height, width) of all results, ``"any"``, or nothing where images keep their size."""
    name = type(transform).__name__
    if name not in ("Compose", "Sequential"):
        names = [type(one).__name__ for one in _leaves(transform)]
        if name in _SIZED and getattr(transform, "p", 0) >= 1:
            return _size_in(transform)
        return "any" if any(one in _SIZED or one in _UNSIZED for one in names) else None
    made: tuple[int, int] | Literal["any"] | None = None
    for one in transform.transforms:
        size = _size_of(one)
        made = made if size is None else size
    return made if made is None or getattr(transform, "p", 1) >= 1 else "any"


def _size_in(transform: Any) -> tuple[int, int] | Literal["any"]:
    size = getattr(transform, "size", None)
    if size is None:
        size = (getattr(transform, "height", None), getattr(transform, "width", None))
    if isinstance(size, (list, tuple)) and all(isinstance(side, int) for side in size):
        return (size[0], size[1])
    return "any"


class Annotated:
    """A function as the loader calls it: with the image, and with what moves with it."""

    # The native library looks for it.
    takes_annotations = True

    def __init__(self, function: Callable[..., Any], names: Mapping[str, Any]) -> None:
        self.function = function
        # The fields by their kinds; of keypoints the name of each, and whether it is of objects.
        self.names = names
        self.takes_seed = "seed" in _parameters(function)

    def __call__(self, image: Any, annotations: dict[str, Any] | None = None, *, seed: int) -> Any:
        given: dict[str, Any] = {"seed": seed} if self.takes_seed else {}
        if annotations is None:
            return self.function(image, **given)
        if isinstance(self.function, Albumentation):
            return self.function.annotated(image, annotations, seed)
        for kind in ("boxes", "masks", "mask"):
            if kind in self.names:
                given[self.names[kind]] = annotations[kind]
        keypoints = self.names.get("keypoints", ())
        for (name, of_objects), points in zip(keypoints, annotations["keypoints"], strict=True):
            given[name] = points if of_objects else points[0]
        shapes = {name: array.shape for name, array in given.items() if name != "seed"}
        made = self.function(image, **given)
        if not isinstance(made, Mapping) or "image" not in made:
            expected = ", ".join(map(repr, ["image", *shapes]))
            raise TypeError(f"it returned no dict with {expected}, though it moves fields")
        return made["image"], self._left(made, shapes)

    def _left(self, made: Mapping[str, Any], shapes: Mapping[str, Any]) -> dict[str, Any]:
        """Return the fields by their kinds; boxes and keypoints have the shape that they had."""
        import numpy as np

        def field(name: str, is_fixed: bool) -> Any:
            if name not in made:
                raise TypeError(f"it returned no {name!r}, which moves with the image")
            array = np.asarray(made[name])
            if is_fixed and array.shape != shapes[name]:
                raise ValueError(
                    f"it returned {name} of shape {array.shape}, expected {shapes[name]}: as many "
                    "as it got, in the same order"
                )
            return array

        left = {
            kind: field(name, kind == "boxes")
            for kind, name in self.names.items()
            if kind != "keypoints"
        }
        left["keypoints"] = [field(name, True) for name, _ in self.names.get("keypoints", ())]
        return left


def _parameters(function: Callable[..., Any]) -> Mapping[str, inspect.Parameter]:
    try:
        return inspect.signature(function).parameters
    except (TypeError, ValueError):
        return {}


def with_annotations(
    functions: Mapping[str, Callable[..., Any]],
    moving: Mapping[str, Callable[..., Any]],
    kinds: Mapping[str, Any],
) -> dict[str, Any]:
    """Return functions for a loader with fields that move, by their names in recipes.

    Parameters
    ----------
    functions
        All functions.
    moving
        Those that may move pixels.
    kinds
        The fields by their kinds, as `Annotated` has them.

    Raises
    ------
    SettingError
        For a function that does not take a field.
    """
    names = [(kind, name) for kind, name in kinds.items() if kind != "keypoints"]
    names += [("keypoints", name) for name, _ in kinds.get("keypoints", ())]
    made = dict(functions)
    for called, function in moving.items():
        for kind, name in names:
            _check_takes(called, function, kind, name)
        _check_given(called, function, [name for _, name in names])
        if names:
            made[called] = Annotated(function, kinds)
    return made


def _check_takes(called: str, function: Callable[..., Any], kind: str, name: str) -> None:
    if isinstance(function, Albumentation):
        if argument := function.lacks(kind):
            raise SettingError(
                f"field {name} moves with the image, and {type(function.transform).__name__} of "
                f"Albumentations is not set up for it: A.Compose([...], {argument})"
            )
        return
    parameters = _parameters(function)
    takes_all = any(one.kind is one.VAR_KEYWORD for one in parameters.values())
    if takes_all or name in parameters:
        return
    raise SettingError(
        f"field {name} moves with the image, and would stay where it was if function {called} "
        f"moved pixels; give it a parameter {name} and let it return a dict with it, or, if it "
        "changes colours only, pass T.Lambda(function, moves=False)"
    )


def _check_given(called: str, function: Callable[..., Any], fields: list[str]) -> None:
    """Refuse functions that take more than there is."""
    given = {"seed", *fields}
    for one in list(_parameters(function).values())[1:]:
        is_named = one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY)
        if is_named and one.default is one.empty and one.name not in given:
            raise SettingError(
                f"function {called} takes {one.name}, which the loader does not give it: "
                "expected the image, seed, or fields that move with the image "
                f"({', '.join(fields) or 'none'})"
            )
