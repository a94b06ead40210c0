"""User-supplied functions, and transforms of Albumentations, as recipes call them."""

from __future__ import annotations

import inspect
import json
import math
import os
import re
import threading
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Literal

from .exceptions import RecipeError, SettingError

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
    "SquareSymmetry",
    "Transpose",
)

# Those whose results have such sizes with an argument.
_UNSIZED_IF = (
    ("Affine", "fit_output", True),
    ("Perspective", "keep_size", False),
    ("Rotate", "crop_border", True),
)

# The parameters by which A.BboxParams drops boxes.
_LIMITS = ("max_accept_ratio", "min_area", "min_height", "min_visibility", "min_width")

# Those that mirror images.
_MIRRORING = ("D4", "HorizontalFlip", "Lambda", "SquareSymmetry", "Transpose", "VerticalFlip")

# Those that return floats or tensors, with the transform that does the same afterwards.
_MAKES_FLOATS = {
    "Normalize": "T.ToTensor() and T.Normalize(mean, std)",
    "ToFloat": "T.ToTensor()",
    "ToTensor3D": "T.ToTensor()",
    "ToTensorV2": "T.ToTensor()",
}

# Between seeding a transform and its draws nothing else may seed it, or one that it shares parts
# with. Forked processes find it free.
_LOCK = threading.RLock()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_LOCK.acquire, after_in_parent=_LOCK.release, after_in_child=_LOCK.release
    )


def is_of_albumentations(transform: Any) -> bool:
    """Whether it is a transform of that package, or of a class derived from one."""
    return any(kind.__module__.partition(".")[0] == "albumentations" for kind in _mro(transform))


def _mro(transform: Any) -> tuple[type, ...]:
    return type(transform).__mro__


def _is_one_of(transform: Any, names: Iterable[str]) -> bool:
    """Whether it, or what it is derived from, has one of these names."""
    return not {kind.__name__ for kind in _mro(transform)}.isdisjoint(names)


class Albumentation:
    """A function of an image, by a transform of Albumentations with a seed of its own."""

    def __init__(self, transform: Any) -> None:
        name = type(transform).__name__
        if not hasattr(transform, "set_random_seed"):
            raise RecipeError(
                f"{name} of Albumentations cannot be seeded: albumentations 1.4.21 or later has "
                "set_random_seed"
            )
        for one in _leaves(transform):
            if other := _MAKES_FLOATS.get(type(one).__name__):
                raise RecipeError(
                    f"{type(one).__name__} of Albumentations makes no uint8 image: leave it out, "
                    f"and put {other} after {'it' if one is transform else name}"
                )
        self.transform = transform

    @property
    def name(self) -> str:
        """The name that recipes have for it, with a checksum of its parameters."""
        kind = type(self.transform)
        try:
            described = json.dumps(self.transform.to_dict(), sort_keys=True, default=repr)
        except NotImplementedError:
            described = repr(self.transform)
        except ValueError as error:
            # Of a Lambda.
            raise RecipeError(
                f"{kind.__name__} of Albumentations has no description: {error}; pass "
                "A.Lambda(..., name='...')"
            ) from None
        # Addresses differ between processes.
        checksum = zlib.crc32(re.sub(" at 0x[0-9a-fA-F]+", "", described).encode())
        return f"{kind.__module__}.{kind.__qualname__}.{checksum:08x}"

    @property
    def moves(self) -> bool:
        """Whether any of its transforms moves pixels, or it drops boxes that are small or flat."""
        processors = getattr(self.transform, "processors", {})
        boxes = processors["bboxes"].params if "bboxes" in processors else None
        if any(getattr(boxes, name, None) for name in _LIMITS):
            return True
        return any(not _changes_colours(one) for one in _leaves(self.transform))

    @property
    def size(self) -> tuple[int, int] | Literal["any"] | None:
        """The size of its results, as `Lambda` has it."""
        return _size_of(self.transform)

    def __call__(self, image: Any, seed: int) -> Any:
        return self._run(seed, image=image)["image"]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Albumentation) and self.transform is other.transform

    def __hash__(self) -> int:
        return id(self.transform)

    def _run(self, seed: int, **targets: Any) -> Any:
        with _LOCK:
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

    @property
    def mirroring(self) -> str | None:
        """The name of the first of its transforms that may mirror images."""
        return next((type(one).__name__ for one in _leaves(self.transform) if _mirrors(one)), None)

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
        moved: dict[str, Any] = {"keypoints": [] if points is None else points.moved(made)}
        if boxes is not None:
            moved["boxes"] = boxes.moved(made, width, height)
        if "mask" in annotations:
            moved["mask"] = made["mask"]
        if "masks" in annotations:
            moved["masks"] = made.get("masks", annotations["masks"])
        return made["image"], moved


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

    def moved(self, made: Mapping[str, Any], width: int, height: int) -> Any:
        """Return the boxes in their first order, those that were dropped as NaN."""
        import numpy as np

        boxes = np.asarray(made["bboxes"], np.float32)
        edges = np.full_like(self.edges, np.nan)
        if len(boxes):
            numbers = _numbers(boxes, "boxes", "box")
            edges[numbers] = _to_edges(boxes[:, :4], self.params.format, width, height)
        return edges


def _numbers(rows: Any, several: str, one: str) -> Any:
    """Return the numbers of the boxes or points that a transform of Albumentations returns."""
    import numpy as np

    numbers = rows[:, -1].round().astype(int)
    counts = np.bincount(numbers)
    if (counts > 1).any():
        raise ValueError(
            f"Albumentations made several {several} of {one} {counts.argmax()} (reflecting borders "
            "or shuffled tiles): use border_mode=cv2.BORDER_CONSTANT"
        )
    return numbers


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

    def moved(self, made: Mapping[str, Any]) -> list[Any]:
        """Return the points of each field, those that were dropped without a label."""
        import numpy as np

        found = np.asarray(made["keypoints"], np.float32)
        order = [1, 0] if self.params.format == "yx" else [0, 1]
        empty = np.zeros(0, int)
        numbers = _numbers(found, "points", "keypoint") if len(found) else empty
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
    return _is_one_of(transform, ("ImageOnlyTransform", "NoOp"))


def _mirrors(transform: Any) -> bool:
    """Whether it may mirror images; what is not of the package itself is not known."""
    if _changes_colours(transform):
        return False
    if type(transform).__module__.partition(".")[0] != "albumentations":
        return True
    if _is_one_of(transform, ("Affine",)):
        scales = [*transform.scale["x"], *transform.scale["y"]]
        shears = [max(map(abs, transform.shear[axis])) for axis in ("x", "y")]
        # The determinant of a shear is 1 less the product of its tangents.
        return min(scales) < 0 or math.tan(math.radians(min(shears))) >= 1 or max(shears) >= 90
    return _is_one_of(transform, _MIRRORING)


def _size_of(transform: Any) -> tuple[int, int] | Literal["any"] | None:
    """Return (height, width) of all results, ``"any"``, or nothing where images keep their size."""
    if not _is_one_of(transform, ("Compose", "Sequential")):
        if _is_one_of(transform, _SIZED) and getattr(transform, "p", 0) >= 1:
            return _size_in(transform)
        return "any" if any(_changes_size(one) for one in _leaves(transform)) else None
    made: tuple[int, int] | Literal["any"] | None = None
    for one in transform.transforms:
        size = _size_of(one)
        made = made if size is None else size
    return made if made is None or getattr(transform, "p", 1) >= 1 else "any"


def _changes_size(transform: Any) -> bool:
    return _is_one_of(transform, (*_SIZED, *_UNSIZED)) or any(
        _is_one_of(transform, (name,)) and getattr(transform, argument, None) is value
        for name, argument, value in _UNSIZED_IF
    )


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
        self.takes_seed = "seed" in _named(function)

    def __call__(self, image: Any, annotations: dict[str, Any] | None = None, *, seed: int) -> Any:
        given: dict[str, Any] = {"seed": seed} if self.takes_seed else {}
        if annotations is None:
            return self.function(image, **given)
        if "masks" in annotations and not len(annotations["masks"]):
            annotations["masks"] = annotations["masks"].reshape(0, *image.shape[:2])
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
        return made["image"], self._moved(made, shapes)

    def _moved(self, made: Mapping[str, Any], shapes: Mapping[str, Any]) -> dict[str, Any]:
        """Return the fields by their kinds; boxes and keypoints have the shape that they had."""
        import numpy as np

        def field(name: str, expected: tuple[int, ...] | None) -> Any:
            if made.get(name) is None:
                raise TypeError(f"it returned no {name!r}, which moves with the image")
            array = np.asarray(made[name])
            if expected is None or array.shape == expected:
                return array
            if array.size == 0 and 0 in expected:
                return np.zeros(expected, np.uint8)
            raise ValueError(
                f"it returned {name} of shape {array.shape}, expected {expected}: as many as it "
                "got, in the same order"
            )

        sides = np.shape(made["image"])[:2]
        moved = {}
        for kind, name in self.names.items():
            if kind == "boxes":
                moved[kind] = field(name, shapes[name])
            elif kind == "masks":
                # Objects have the image's size, which the native library checks.
                moved[kind] = field(name, None if shapes[name][0] else (0, *sides))
            elif kind == "mask":
                moved[kind] = field(name, None)
        keypoints = self.names.get("keypoints", ())
        moved["keypoints"] = [field(name, shapes[name]) for name, _ in keypoints]
        return moved


def _parameters(function: Callable[..., Any]) -> Mapping[str, inspect.Parameter]:
    try:
        return inspect.signature(function).parameters
    except (TypeError, ValueError):
        return {}


def _named(function: Callable[..., Any]) -> Mapping[str, inspect.Parameter]:
    """Return the parameters that take arguments by their names; the first one takes the image."""
    listed = list(_parameters(function).values())
    is_image = listed and listed[0].kind is not inspect.Parameter.KEYWORD_ONLY
    kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return {one.name: one for one in listed[bool(is_image) :] if one.kind in kinds}


def with_annotations(
    functions: Mapping[str, Callable[..., Any]],
    moving: Mapping[str, Callable[..., Any]],
    kinds: Mapping[str, Any],
    paired: Iterable[str] = (),
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
    paired
        The keypoints whose points are swapped where images are mirrored.

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
            _check_name(called, function, name)
            _check_takes(called, function, kind, name)
        check_given(called, function, [name for _, name in names])
        if isinstance(function, Albumentation):
            _check_pairs(function, paired)
        if names:
            made[called] = Annotated(function, kinds)
    return made


def _check_name(called: str, function: Callable[..., Any], name: str) -> None:
    if name in ("image", "seed") and not isinstance(function, Albumentation):
        raise SettingError(
            f"field {name} moves with the image, but function {called} gets something else by "
            "that name; give the field another name"
        )


def _check_takes(called: str, function: Callable[..., Any], kind: str, name: str) -> None:
    if isinstance(function, Albumentation):
        if argument := function.lacks(kind):
            raise SettingError(
                f"field {name} moves with the image, and {type(function.transform).__name__} of "
                f"Albumentations is not set up for it: A.Compose([...], {argument})"
            )
        return
    takes_all = any(one.kind is one.VAR_KEYWORD for one in _parameters(function).values())
    if takes_all or name in _named(function):
        return
    raise SettingError(
        f"field {name} moves with the image, and would stay where it was if function {called} "
        f"moved pixels; give it a parameter {name} and let it return a dict with it, or, if it "
        "changes colours only, pass T.Lambda(function, moves=False)"
    )


def _check_pairs(function: Albumentation, paired: Iterable[str]) -> None:
    """Refuse to mirror points without swapping them: results do not say what was mirrored."""
    mirroring = function.mirroring
    for name in paired if mirroring else ():
        raise SettingError(
            f"field {name} has flip_pairs, which {mirroring} of Albumentations would not swap where"
            " it mirrors; leave it out and put T.RandomHorizontalFlip() after the others, or, if "
            f"nothing shall be swapped, pass tl.Keypoints(..., flip_pairs=()) as {name}"
        )


def check_given(called: str, function: Callable[..., Any], fields: list[str]) -> None:
    """Refuse functions that take more than there is, or take it by place."""
    if isinstance(function, Albumentation):
        return
    given = {"seed", *fields}
    for one in list(_parameters(function).values())[1:]:
        if one.default is not one.empty or one.kind in (one.VAR_POSITIONAL, one.VAR_KEYWORD):
            continue
        if one.kind is one.POSITIONAL_ONLY and one.name in given:
            raise SettingError(
                f"function {called} takes {one.name} by its place, and gets it by name: remove the "
                "/ from its parameters"
            )
        if one.kind is one.POSITIONAL_ONLY or one.name not in given:
            raise SettingError(
                f"function {called} takes {one.name}, which the loader does not give it: "
                "expected the image, seed, or fields that move with the image "
                f"({', '.join(fields) or 'none'})"
            )
