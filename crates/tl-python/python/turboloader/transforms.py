"""Transforms with torchvision's names, arguments and defaults, as data.

They say what a `DataLoader` does to each sample, and work on their own on NumPy arrays of shape
(height, width, 3) and torch tensors of shape (3, height, width), both of ``uint8``.

>>> from turboloader import transforms as T
>>> train = T.RandomResizedCrop(224) | T.RandomHorizontalFlip() | T.ToTensor() | T.Normalize()
>>> train(np.zeros((300, 400, 3), np.uint8)).shape
(224, 224, 3)
"""

from __future__ import annotations

import enum
import inspect
import json
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, Literal

from . import _draws
from ._advice import refuse_unknown
from ._checks import check_flags, sides
from ._draws import manual_seed
from ._functions import Albumentation, is_of_albumentations
from ._native import Recipe
from ._table import BATCH_TABLE, REQUIRED, TABLE, signature_of
from .exceptions import RecipeError, SettingError

__all__ = [
    "BatchTransform",
    "Compose",
    "ImageNetNormalize",
    "Lambda",
    "ToDtype",
    "ToImage",
    "ToTensor",
    "Transform",
    "Views",
    "from_torchvision",
    "manual_seed",
    "recipe",
    *BATCH_TABLE,
    *TABLE,
]

# Their transforms take tensors or images of Pillow.
_FRAMEWORKS = ("torch", "kornia", "PIL", "transformers")

# Pillow's numbers of filters.
_FILTERS = ("nearest", "lanczos", "bilinear", "bicubic", "box", "hamming")

_FLOATS = ("float16", "bfloat16", "float32")
_MAKE_FLOATS = ("to_float", "normalize")


class Transform:
    """A step of a recipe: a name and parameters.

    Calling it on an image does it once. What is random follows from ``seed``, ``epoch`` and
    ``sample``; each call takes the next sample unless they are given (see `manual_seed`).
    """

    _parameters: ClassVar[Mapping[str, Any]] = {}
    # The name in recipes, also where a user-defined class inherits it.
    _op: ClassVar[str] = "transform"

    def __init__(self, **parameters: Any) -> None:
        self.__dict__.update(parameters)

    @property
    def parameters(self) -> dict[str, Any]:
        """The parameters by name."""
        return {name: self.__dict__[name] for name in self._parameters}

    def to_dict(self) -> dict[str, Any]:
        """Return the operation as recipes in JSON have it."""
        given = ((name, _plain(value)) for name, value in self.parameters.items())
        operation: dict[str, Any] = {"op": self._op}
        operation.update({_OP_NAMES.get(k, k): v for k, v in given if v is not None})
        return operation

    def operations(self) -> list[dict[str, Any]]:
        """Return the operations of this transform, in sequence."""
        return [self.to_dict()]

    def functions(self) -> list[tuple[str, Callable[..., Any]]]:
        """Return its user-supplied functions, with their names in recipes."""
        inner = self.__dict__.get("transforms", ())
        return [function for one in inner for function in one.functions()]

    def _moving(self) -> list[Lambda]:
        """Return its functions that may move pixels."""
        return [one for inner in self.__dict__.get("transforms", ()) for one in inner._moving()]

    def __or__(self, other: Transform | Callable[..., Any]) -> Compose:
        return Compose([self, other])

    def __call__(
        self, image: Any, *, seed: int | None = None, epoch: int = 0, sample: int | None = None
    ) -> Any:
        """Do the transform to an image of ``uint8``, and return one in the same layout."""
        draws = _draws.draws
        if sample is None:
            sample = draws.number()
        draw = (draws.seed if seed is None else seed, epoch, sample)
        return _apply(self, image, draw)

    def __repr__(self) -> str:
        said = ", ".join(f"{name}={value!r}" for name, value in self.parameters.items())
        return f"{type(self).__name__}({said})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Transform):
            return NotImplemented
        return self.operations() == other.operations()

    def __hash__(self) -> int:
        return hash(json.dumps(self.operations()))


class Views:
    """A transform that every image goes through several times, each time with other random numbers.

    The images of a sample are decoded once. ``batch["image"]`` has one dimension more: (batch,
    views, ...).

    Parameters
    ----------
    count
        The number of views, 1 to 256.
    transform
        The transforms of each view, as `DataLoader` takes them.

    Examples
    --------
    >>> Views(2, RandomResizedCrop(224))
    Views(2, RandomResizedCrop(size=224, ...))
    """

    def __init__(self, count: int, transform: Any) -> None:
        if isinstance(count, bool) or not isinstance(count, int) or not 1 <= count <= 256:
            raise RecipeError(f"Views: count is {count!r}, expected 1 to 256")
        if isinstance(transform, Views):
            raise RecipeError(
                f"Views: transform is Views too: pass Views({count * transform.count}, ...)"
            )
        if type(transform).__module__.partition(".")[0] == "torchvision":
            transform = from_torchvision(transform)
        self.count, self.transform = count, transform

    def __repr__(self) -> str:
        return f"Views({self.count}, {self.transform!r})"


class BatchTransform:
    """A way of mixing the images of a batch, for `DataLoader`'s ``batch_transform``."""

    _parameters: ClassVar[Mapping[str, Any]] = {}
    _op: ClassVar[str] = "batch_transform"
    __init__ = Transform.__init__
    __repr__ = Transform.__repr__
    parameters = Transform.parameters
    to_dict = Transform.to_dict


class Compose(Transform):
    """Transforms in sequence.

    Parameters
    ----------
    transforms
        The transforms, in order.

    Examples
    --------
    >>> Compose([Resize(256), CenterCrop(224), ToTensor()])
    Compose([Resize(size=256, ...), CenterCrop(size=224), ToFloat()])
    """

    def __init__(self, transforms: Iterable[Transform | Callable[..., Any]]) -> None:
        super().__init__()
        self.transforms = _all_checked("Compose", transforms)
        _refuse_narrowing(self)

    def to_dict(self) -> dict[str, Any]:
        """Return the operation as recipes in JSON have it."""
        return {"op": "compose", "ops": self.operations()}

    def operations(self) -> list[dict[str, Any]]:
        """Return the operations of all transforms, in sequence."""
        return [operation for one in self.transforms for operation in one.operations()]

    def __or__(self, other: Transform | Callable[..., Any]) -> Compose:
        return Compose([*self.transforms, other])

    def __repr__(self) -> str:
        return f"Compose({self.transforms!r})"


class Lambda(Transform):
    """A function of yours, of one image: a NumPy array of ``uint8`` and (height, width, 3).

    It returns such an array, and may change the one it gets. It is called on the loader's threads,
    one call at a time, for it holds the interpreter: a transform of this package takes a fraction
    of the time. An exception is that sample's error, which ``on_error`` decides about. What it does
    should follow from its arguments alone, so that batches come again; a loader's state knows it by
    its name and not by its code.

    A function with a parameter ``seed`` gets a number below 2**32 by that name, which follows from
    the loader's seed, the epoch and the sample. What is random should follow from it.

    A function that moves pixels takes the fields that move with the image, boxes, keypoints and
    masks, as parameters of the fields' names, and returns a dict of them and ``"image"``:

    - boxes are ``float32`` of (objects, 4): left, top, right, bottom in pixels of the image. A box
      that leaves the image is returned as NaN, and is left out with all that belongs to its object;
    - keypoints of objects are ``float32`` of (objects, points, 2 or 3), those of a sample (points,
      2 or 3): across, down and the visibility;
    - masks of objects are ``uint8`` of (objects, height, width), and the mask of the image
      (height, width) of ``uint8`` or ``uint16``.

    As many objects and points come back as it gets, in the same order. A function that mirrors
    points swaps those that are pairs itself: ``flip_pairs`` of `Keypoints` is for transforms of
    this package.

    In a list of transforms a function may stand by itself, and so may a transform of
    Albumentations: it is seeded, gets the fields that its ``bbox_params`` and ``keypoint_params``
    provide for, and tells its size where its parameters do. Those that mirror are refused next to
    keypoints with ``flip_pairs``, which nothing would swap.

    Parameters
    ----------
    lambd
        The function, or a transform of Albumentations.
    moves
        Whether it moves pixels. ``False`` declares that it changes colours only: boxes, keypoints
        and masks stay where they are, and it need not take them.
    size
        The size of its results where that is not the image's: an integer for both sides, (height,
        width), or ``"any"`` if images differ. With ``"any"`` the function stands in the list
        itself, not within `RandomApply` and its like, and `Resize` or a crop after it makes one
        size of them.

    Examples
    --------
    >>> Compose([Resize(256), Lambda(lambda image: 255 - image), ToTensor()])
    Compose([Resize(size=256, ...), Lambda(...<lambda>), ToFloat()])
    >>> def mirrored(image, boxes):
    ...     left, top, right, bottom = boxes.T
    ...     width = image.shape[1]
    ...     boxes = np.stack([width - right, top, width - left, bottom], axis=1)
    ...     return {"image": image[:, ::-1], "boxes": boxes}
    """

    def __init__(
        self,
        lambd: Callable[..., Any],
        *,
        moves: bool = True,
        size: int | tuple[int, int] | Literal["any"] | None = None,
    ) -> None:
        super().__init__()
        if not callable(lambd) or isinstance(lambd, type):
            raise TypeError(f"{lambd!r} is not a function of an image")
        check_flags(moves=moves)
        if is_of_albumentations(lambd):
            wrapped = Albumentation(lambd)
            moves = moves and wrapped.moves
            size = wrapped.size if size is None else size
            lambd = wrapped
        self.lambd = lambd
        self.moves = bool(moves)
        self.size = _size(size)
        if self.size is not None and not moves:
            raise RecipeError("a function that changes the size moves pixels: moves=False is wrong")

    @property
    def name(self) -> str:
        """The name that recipes have for it: where the function is from, and which one it is."""
        if isinstance(self.lambd, Albumentation):
            return self.lambd.name
        module = getattr(self.lambd, "__module__", None) or type(self.lambd).__module__
        name = getattr(self.lambd, "__qualname__", None) or type(self.lambd).__qualname__
        return f"{module}.{name}"

    def to_dict(self) -> dict[str, Any]:
        """Return the operation as recipes in JSON have it: the function's name, and its size."""
        operation: dict[str, Any] = {"op": "user_transform", "name": self.name}
        if self.size is not None:
            operation["size"] = self.size if self.size == "any" else list(self.size)
        return operation

    def functions(self) -> list[tuple[str, Callable[..., Any]]]:
        """Return the function under its name."""
        return [(self.name, self.lambd)]

    def _moving(self) -> list[Lambda]:
        return [self] if self.moves else []

    def __repr__(self) -> str:
        if isinstance(self.lambd, Albumentation):
            return repr(self.lambd.transform)
        said = [str(getattr(self.lambd, "__qualname__", self.lambd))]
        said += [] if self.moves else ["moves=False"]
        said += [] if self.size is None else [f"size={self.size!r}"]
        return f"Lambda({', '.join(said)})"


def _size(size: Any) -> list[int] | Literal["any"] | None:
    """Return a height and a width, from 1 to what a JPEG can have."""
    if size is None or (isinstance(size, str) and size == "any"):
        return size
    try:
        found = sides("size", size)
    except SettingError:
        found = [0]
    if not all(1 <= side <= 65535 for side in found):
        raise RecipeError(f"size is {size!r}, expected 1 to 65535, (height, width) or 'any'")
    return found


class ToImage(Transform):
    """Nothing: images are pixels already. For code that was written for torchvision."""

    def to_dict(self) -> dict[str, Any]:
        """Return an operation that is never done: one of several has to be something."""
        return next(iter(self.operations()), {"op": "random_invert", "p": 0.0})

    def operations(self) -> list[dict[str, Any]]:
        """Return no operation."""
        return []


class ToDtype(Transform):
    """Map 0 to 255 to 0 to 1 where ``dtype`` is a float and ``scale`` is true.

    Parameters
    ----------
    dtype
        ``"float32"`` or the like, also of NumPy or torch. The batch's type is `DataLoader`'s.
    scale
        Floats have to be scaled.
    """

    _parameters: ClassVar[Mapping[str, Any]] = {"dtype": REQUIRED, "scale": False}

    def __init__(self, dtype: Any, scale: bool = False) -> None:
        super().__init__(dtype=dtype_name(dtype), scale=scale)
        if self.dtype in _FLOATS and not scale:
            raise RecipeError(f"ToDtype({self.dtype}) has to scale: pass scale=True")
        if self.dtype not in (*_FLOATS, "uint8"):
            raise RecipeError(f"ToDtype({self.dtype}): expected uint8 or one of {_FLOATS}")

    to_dict = ToImage.to_dict

    def operations(self) -> list[dict[str, Any]]:
        """Return the conversion, if it is one."""
        return [{"op": "to_float"}] if self.dtype in _FLOATS else []


def dtype_name(dtype: Any) -> str:
    """Return the name of a type: of NumPy, torch, JAX, or a name."""
    if isinstance(dtype, str):
        return dtype
    if str(dtype).startswith("torch."):
        return str(dtype).removeprefix("torch.")
    # NumPy takes longer to import than all of this package, and not everybody needs it.
    import numpy as np

    try:
        return np.dtype(dtype).name
    except TypeError:
        raise TypeError(f"{dtype!r} is not a dtype") from None


def filter_name(interpolation: Any) -> Any:
    """Return the name of a filter: of torchvision's enum, or of Pillow's enum or numbers."""
    value = interpolation.value if isinstance(interpolation, enum.Enum) else interpolation
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < len(_FILTERS):
        return _FILTERS[value]
    return value.replace("-", "_") if isinstance(value, str) else value


def _of_channels(value: Any) -> Any:
    """Return a number for each channel; one number is that of all, as in torchvision."""
    plain = _plain(value)
    numbers = plain if isinstance(plain, list) else [plain]
    return numbers * 3 if len(numbers) == 1 else value


_OP_NAMES = {"transforms": "ops"}


def _plain(value: Any) -> Any:
    """Return what JSON has for a parameter."""
    if isinstance(value, Transform):
        return value.to_dict()
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    # Numbers and arrays of NumPy, and tensors.
    return value.tolist() if callable(getattr(value, "tolist", None)) else value


def _refuse_narrowing(transform: Transform) -> None:
    """Refuse a conversion to ``uint8`` after one to floats: no operation does it."""
    floats = False
    for one in _leaves(transform):
        floats = floats or any(made.get("op") in _MAKE_FLOATS for made in one.operations())
        if floats and isinstance(one, ToDtype) and one.dtype == "uint8":
            raise RecipeError("ToDtype(uint8) after floats: floats cannot become uint8 again")


def _leaves(transform: Transform) -> list[Transform]:
    inner = transform.__dict__.get("transforms")
    return [transform] if inner is None else [leaf for one in inner for leaf in _leaves(one)]


def _checked(transform: Any) -> Transform:
    if isinstance(transform, Transform):
        return transform
    name = type(transform).__qualname__
    package = type(transform).__module__.partition(".")[0]
    if isinstance(transform, type) and issubclass(transform, (Transform, BatchTransform)):
        raise TypeError(
            f"{name_of(transform)} is a class: pass an instance, {name_of(transform)}()"
        )
    if isinstance(transform, type):
        name = f"the class {transform.__qualname__}"
    elif isinstance(transform, BatchTransform):
        raise TypeError(f"{name} mixes the images of a batch: pass it as batch_transform")
    elif isinstance(transform, (list, tuple)):
        raise TypeError(
            "a list within a list of transforms: pass one list, or a dict of lists for several "
            "views of an image, such as {'a': [...], 'b': [...]}"
        )
    elif package in PACKAGES:
        return from_torchvision(transform)
    elif callable(transform) and package not in _FRAMEWORKS:
        return Lambda(transform)
    raise TypeError(
        f"{name} is neither a transform of turboloader nor a function of an image "
        "(see from_torchvision)"
    )


def _check(transform: Transform) -> None:
    """Refuse parameters outside their types and ranges, with the name of the first one."""

    def refused(operation: dict[str, Any]) -> RecipeError | None:
        try:
            Recipe.check_operation(json.dumps(operation))
        except RecipeError as error:
            return error
        return None

    name = type(transform).__name__
    for operation in transform.operations():
        error = refused(operation)
        if error is None:
            continue
        if str(error).startswith((f"{name}:", "operation ")):
            raise error
        # The message is about a value, and does not say whose: it is good without that one.
        given = [key for key in operation if key != "op"]
        without = ({k: v for k, v in operation.items() if k != key} for key in given)
        optional = (key for key, rest in zip(given, without, strict=True) if refused(rest) is None)
        required = [key for key, value in transform._parameters.items() if value is REQUIRED]
        guilty = next(optional, (required or given)[0])
        raise RecipeError(f"{name}: {guilty} is {operation.get(guilty)!r}: {error}")


def _all_checked(name: str, transforms: Any) -> list[Transform]:
    if isinstance(transforms, (Transform, str, bytes)) or not isinstance(transforms, Iterable):
        raise TypeError(f"{name}: transforms is {transforms!r}, expected a list of transforms")
    return [_checked(transform) for transform in transforms]


def name_of(transform: type) -> str:
    """Return the name that a class has in torchvision, where it has another one here."""
    return "ToTensor" if transform is ToTensor else transform.__qualname__


def _define(name: str, base: type, document: str, parameters: Mapping[str, Any]) -> type:
    signature = signature_of(parameters)

    def __init__(self: Any, *arguments: Any, **named: Any) -> None:  # noqa: N807
        refuse_unknown(name, named, parameters)
        try:
            bound = signature.bind(*arguments, **named)
        except TypeError as error:
            raise TypeError(f"{name}: {error}") from None
        bound.apply_defaults()
        given = bound.arguments
        if "transforms" in given:
            given["transforms"] = _all_checked(name, given["transforms"])
        if "interpolation" in given:
            given["interpolation"] = filter_name(given["interpolation"])
        if name == "Normalize":
            given.update({key: _of_channels(value) for key, value in given.items()})
        base.__init__(self, **bound.arguments)  # type: ignore[misc]
        if isinstance(self, Transform):
            _check(self)

    receiver = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    listed = [receiver, *signature.parameters.values()]
    __init__.__signature__ = signature.replace(parameters=listed)  # type: ignore[attr-defined]
    body = {
        "__doc__": document,
        "__init__": __init__,
        "__module__": __name__,
        "_parameters": dict(parameters),
        "_op": re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower(),
    }
    return type(name, (base,), body)


for _name, (_document, _row) in TABLE.items():
    globals()[_name] = _define(_name, Transform, _document, _row)
for _name, (_document, _row) in BATCH_TABLE.items():
    globals()[_name] = _define(_name, BatchTransform, _document, _row)

ToTensor = globals()["ToFloat"]
ImageNetNormalize = globals()["Normalize"]


def recipe(
    transform: Transform | Callable[..., Any] | Sequence[Transform | Callable[..., Any]] | None,
    *,
    dtype: Any = None,
    channels_last: bool | None = None,
    decode_margin: float | None = None,
    decode_mode: str | None = None,
    parity: str | None = None,
    channels: int | None = None,
    pixels: Any = None,
    batch_transform: BatchTransform | Sequence[BatchTransform] = (),
) -> Recipe:
    """Check transforms and make a recipe of them: plain data with a hash.

    Parameters
    ----------
    transform
        What is done to each image.
    dtype
        The type of the results; ``float32`` where the transforms make floats, else that of the
        pixels.
    channels_last
        Whether channels come last; by default where pixels stay ``uint8``.
    decode_margin
        Decodes photographs at the smallest scale that is at least this many times the output size
        (1 or more), instead of exactly.
    decode_mode
        ``"exact"``, the default without a margin, ``"fast"`` for a margin of 2, or ``"nvjpeg"``:
        NVIDIA's library decodes baseline JPEG files on the loader's device, with pixels that differ
        a little from the exact ones and depend on its version. Other files are decoded exactly.
    parity
        ``"pil"``, the default, for torchvision's bits on Pillow images, ``"tensor"`` for those on
        tensors.
    channels
        3, the default, for RGB, or 1 for grey, as Pillow's ``convert("L")`` makes it. Transforms do
        to a grey image what they do to one of mode ``L``; functions get three equal channels. 4 is
        RGB and alpha, which transforms can only move: crop, resize, pad and flip.
    pixels
        ``"uint8"``, the default, or ``"uint16"`` or ``"float32"`` for the numbers that files store,
        such as depths. Transforms can only move them; `ToFloat` divides ``uint16`` by 65535 and
        leaves ``float32`` as it is.
    batch_transform
        Ways of mixing the images of a batch, of which each batch takes one.
    """
    count = transform.count if isinstance(transform, Views) else 1
    composed = _composed(transform)
    operations = [] if composed is None else composed.operations()
    mixing = batch_transform if isinstance(batch_transform, (list, tuple)) else [batch_transform]
    for one in mixing:
        if isinstance(one, type) and issubclass(one, BatchTransform):
            raise TypeError(f"batch_transform is a class: pass an instance, {one.__qualname__}()")
        if not isinstance(one, BatchTransform):
            raise TypeError(f"batch_transform: {one!r} does not mix batches, as MixUp or CutMix do")
    if channels_last is not None and not isinstance(channels_last, bool):
        raise TypeError(f"channels_last is {channels_last!r}, expected True, False or None")
    try:
        margin = None if decode_margin is None else float(decode_margin)
    except (TypeError, ValueError):
        raise TypeError(f"decode_margin is {decode_margin!r}, expected a number") from None
    options = {
        "dtype": None if dtype is None else dtype_name(dtype),
        "channels_last": channels_last,
        "decode_margin": margin,
        "decode_mode": decode_mode,
        "parity": parity,
        "channels": channels,
        "pixels": None if pixels is None else dtype_name(pixels),
    }
    batch_operations = [one.to_dict() for one in mixing]
    made = Recipe.of_ops(json.dumps(operations), json.dumps(batch_operations), options)
    return made if count == 1 else made.with_draws(count)


def _composed(transform: Any) -> Transform | None:
    if isinstance(transform, Views):
        transform = transform.transform
    if transform is None or isinstance(transform, Transform):
        return transform
    return Compose(transform) if isinstance(transform, Sequence) else _checked(transform)


def functions(transform: Any) -> dict[str, Callable[..., Any]]:
    """Return the user-supplied functions among transforms, by their names in recipes.

    Raises
    ------
    RecipeError
        For two functions of one name, which a recipe could not tell apart.
    """
    found: list[tuple[str, Callable[..., Any]]] = []
    for one in transform.values() if isinstance(transform, Mapping) else [transform]:
        inner = one.transform if isinstance(one, Views) else one
        if isinstance(inner, Recipe):
            continue
        composed = _composed(inner)
        found += [] if composed is None else composed.functions()
    named: dict[str, Callable[..., Any]] = {}
    for name, function in found:
        if named.setdefault(name, function) != function:
            raise RecipeError(f"two functions are called {name}: give one another name by def")
    return named


def moving(transform: Any) -> list[Lambda]:
    """Return the user-supplied functions in a transform that may move pixels."""
    inner = transform.transform if isinstance(transform, Views) else transform
    composed = None if isinstance(inner, Recipe) else _composed(inner)
    return [] if composed is None else composed._moving()


def _apply(transform: Transform, image: Any, draw: tuple[int, int, int]) -> Any:
    import numpy as np

    if isinstance(image, (str, bytes, bytearray, os.PathLike)):
        kind = type(image).__name__
        raise TypeError(
            f"image has type {kind}, expected an array: turboloader.decode(data).numpy() makes one "
            "of the bytes of a file"
        )
    is_torch = type(image).__module__.partition(".")[0] == "torch"
    pixels = image.permute(1, 2, 0).contiguous().numpy() if is_torch else np.asarray(image)
    if pixels.dtype != np.uint8 or pixels.ndim != 3 or pixels.shape[2] != 3:
        expected = "(3, height, width)" if is_torch else "(height, width, 3)"
        shape, dtype = tuple(image.shape), pixels.dtype
        is_turned = len(shape) == 3 and (shape[2] if is_torch else shape[0]) == 3
        axes = "permute(2, 0, 1)" if is_torch else "transpose(1, 2, 0)"
        advice = f": turn it by {axes}" if is_turned else ""
        raise TypeError(
            f"image has shape {shape} and dtype {dtype}, expected {expected} and uint8{advice}"
        )
    height, width, _ = pixels.shape
    made = recipe(transform, channels_last=not is_torch)
    result = made.apply(pixels.tobytes(), (width, height), draw, functions(transform))
    return result.torch() if is_torch else result.numpy()


# At the end, because it makes transforms.
from ._conversion import PACKAGES, from_torchvision  # noqa: E402
