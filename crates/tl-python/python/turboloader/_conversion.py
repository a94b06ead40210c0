"""Transforms of torchvision and timm, and their presets, as transforms of this package."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from . import transforms as T  # noqa: N812
from ._table import TABLE
from ._warnings import warn
from .exceptions import UnsupportedTransformError

# Whose transforms are converted.
PACKAGES = ("timm", "torchvision")

# Images are pixels of red, green and blue already.
_NOTHING = (
    "Identity",
    "MaybePILToTensor",
    "PILToTensor",
    "RGB",
    "ToImage",
    "ToNumpy",
    "ToPILImage",
    "ToPureTensor",
)

# They work on floats here as well.
_OF_FLOATS = ("GaussianNoise", "Normalize", "RandomErasing", "ToFloat")

# Whether they come before or after the conversion to floats changes no number.
_MOVES = (
    "CenterCrop",
    "FiveCrop",
    "RandomChannelPermutation",
    "RandomCrop",
    "RandomHorizontalFlip",
    "RandomVerticalFlip",
    "TenCrop",
)


def from_torchvision(transform: Any) -> T.Transform:
    """Convert a transform of torchvision, v1 or v2, or of timm; an unsupported one is an error.

    Presets are converted too: ``weights.transforms()`` of torchvision's models for classification,
    detection and segmentation, and what timm's ``create_transform`` returns.

    Where floats are resized or coloured, as after ``ToDtype(torch.float32, scale=True)``, the
    conversion to floats is moved after that, with a warning: pixels are then rounded to 8 bits
    before they are floats, which changes them by less than 1/255.

    Parameters
    ----------
    transform
        The transform, or a ``Compose`` of them.

    Raises
    ------
    UnsupportedTransformError
        With the transform's name: nothing is left out silently.

    Examples
    --------
    >>> from torchvision.transforms import v2
    >>> from_torchvision(v2.Compose([v2.Resize(256), v2.CenterCrop(224)]))
    Compose([Resize(size=[256], ...), CenterCrop(size=(224, 224))])
    """
    name, module = type(transform).__name__, type(transform).__module__
    package = module.partition(".")[0]
    is_identity = name == "Identity" and module.startswith("torch.nn.")
    if not is_identity and package not in PACKAGES:
        raise UnsupportedTransformError(f"{transform!r} is not one of torchvision's")
    if name in ("Compose", "Sequential"):
        return _floats_last([from_torchvision(one) for one in transform.transforms])
    if module == "torchvision.transforms._presets":
        return _preset(name, transform)
    if package == "timm" and name in _TIMM:
        return _TIMM[name](transform)
    if name == "ToPILImage" and transform.mode not in (None, "RGB"):
        raise UnsupportedTransformError(f"{transform!r}: batches have three channels")
    if name in _NOTHING:
        return T.ToImage()
    if name in ("ToTensor", "MaybeToTensor"):
        return T.ToTensor()
    if name in ("ToDtype", "ConvertImageDtype"):
        if isinstance(transform.dtype, Mapping):
            raise UnsupportedTransformError(f"{transform!r} has a type for each kind of input")
        return T.ToDtype(transform.dtype, scale=getattr(transform, "scale", True))
    if name not in TABLE or package == "timm":
        instead = (
            ": pass its function, which then takes an RGB image as an array (see T.Lambda)"
            if name == "Lambda"
            else ""
        )
        raise UnsupportedTransformError(f"{transform!r} has no counterpart here{instead}")
    return _converted(name, transform)


def _preset(name: str, preset: Any) -> T.Transform:
    """Convert what ``weights.transforms()`` returns."""
    if name not in ("ImageClassification", "ObjectDetection", "SemanticSegmentation"):
        raise UnsupportedTransformError(f"{name} has no counterpart here: it is not for images")
    steps: list[T.Transform] = []
    if getattr(preset, "resize_size", None) is not None:
        interpolation, antialias = preset.interpolation, preset.antialias
        steps.append(T.Resize(preset.resize_size, interpolation, antialias=bool(antialias)))
    if hasattr(preset, "crop_size"):
        steps.append(T.CenterCrop(preset.crop_size))
    steps.append(T.ToTensor())
    if hasattr(preset, "mean"):
        steps.append(T.Normalize(preset.mean, preset.std))
    return T.Compose(steps)


def _timm_crop(crop: Any) -> T.Transform:
    """Convert ``RandomResizedCropAndInterpolation``, which may draw its filter."""
    filters = crop.interpolation
    several = filters if isinstance(filters, (list, tuple)) else [filters]
    crops = [T.RandomResizedCrop(crop.size, crop.scale, crop.ratio, one) for one in several]
    return crops[0] if len(crops) == 1 else T.RandomChoice(crops)


def _timm_centre(crop: Any) -> T.Transform:
    """Convert ``CenterCropOrPad``, whose border is black as that of `CenterCrop`."""
    if crop.fill not in (0, (0, 0, 0)) or crop.padding_mode != "constant":
        raise UnsupportedTransformError(f"{crop!r}: a border has to be black")
    return T.CenterCrop(crop.size)


def _timm_erasing(erasing: Any) -> T.Transform:
    """Convert timm's ``RandomErasing`` of one rectangle."""
    if (erasing.min_count, erasing.max_count) != (1, 1) or erasing.num_splits > 1:
        raise UnsupportedTransformError(f"{erasing!r}: expected one rectangle for each image")
    if erasing.rand_color:
        raise UnsupportedTransformError(f"{erasing!r}: expected mode 'const' or 'pixel'")
    low, high = erasing.log_aspect_ratio
    return T.RandomErasing(
        erasing.probability,
        (erasing.min_area, erasing.max_area),
        (math.exp(low), math.exp(high)),
        "random" if erasing.per_pixel else 0.0,
    )


_TIMM = {
    "CenterCropOrPad": _timm_centre,
    "RandomErasing": _timm_erasing,
    "RandomResizedCropAndInterpolation": _timm_crop,
}


def _floats_last(steps: list[T.Transform]) -> T.Compose:
    """Return the steps in sequence, the conversion to floats after those that need pixels."""
    flat = T.Compose(steps).transforms
    names = [_name(step) for step in flat]
    if "ToFloat" not in names:
        return T.Compose(steps)
    start = names.index("ToFloat")
    # What follows a normalisation works on its numbers.
    end = names.index("Normalize", start) if "Normalize" in names[start:] else len(flat)
    between = flat[start + 1 : end]
    pixels = [step for step in between if _name(step) not in _OF_FLOATS]
    if not pixels:
        return T.Compose(steps)
    if rounded := [_name(step) for step in pixels if _name(step) not in _MOVES]:
        warn(
            f"{', '.join(rounded)} of floats: done to 8-bit pixels before they are floats, which "
            "changes numbers by less than 1/255"
        )
    floats = [step for step in between if _name(step) in _OF_FLOATS]
    return T.Compose([*flat[:start], *pixels, flat[start], *floats, *flat[end:]])


def _name(step: T.Transform) -> str:
    """Return a transform's name; that of its operation where it is a conversion."""
    made = step.operations()
    is_conversion = len(made) == 1 and made[0].get("op") == "to_float"
    return "ToFloat" if is_conversion else type(step).__name__


def _converted(name: str, transform: Any) -> T.Transform:
    parameters: dict[str, Any] = {}
    for parameter in TABLE[name][1]:
        value: Any = getattr(transform, parameter, None)
        if parameter == "transforms":
            value = [from_torchvision(one) for one in value]
        if callable(getattr(value, "tolist", None)):
            value = value.tolist()
        if isinstance(value, Mapping):
            raise UnsupportedTransformError(
                f"{transform!r} has a {parameter} for each kind of input"
            )
        parameters[parameter] = value
    is_v2 = type(transform).__module__.startswith("torchvision.transforms.v2")
    if name == "RandomCrop" and is_v2 and parameters["padding"] is not None:
        # It keeps left, right, top, bottom of the left, top, right, bottom that it was given.
        left, right, top, bottom = parameters["padding"]
        parameters["padding"] = [left, top, right, bottom]
    if name == "RandomErasing" and parameters["value"] is None:
        # What version 2 keeps of "random".
        parameters["value"] = "random"
    if name == "Grayscale" and parameters["num_output_channels"] != 3:
        raise UnsupportedTransformError(f"{transform!r}: batches have three channels")
    if name == "RandomChoice":
        chances = parameters["p"]
        parameters["p"] = None if len(set(chances or [])) < 2 else chances
    return getattr(T, name)(**parameters)  # type: ignore[no-any-return]
