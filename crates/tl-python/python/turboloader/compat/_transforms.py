"""Transforms with the argument orders of the first turboloader: width before height."""

from __future__ import annotations

import enum
import itertools
from collections.abc import Callable, Sequence
from typing import Any

from .. import transforms as T  # noqa: N812
from ..exceptions import RecipeError, UnsupportedTransformError

__all__ = [
    "AutoAugment",
    "AutoAugmentPolicy",
    "CenterCrop",
    "ColorJitter",
    "Compose",
    "ComposedTransforms",
    "CutMix",
    "GaussianBlur",
    "Grayscale",
    "GridMask",
    "ImageNetNormalize",
    "InterpolationMode",
    "MixUp",
    "Mosaic",
    "Normalize",
    "Pad",
    "PaddingMode",
    "RandAugment",
    "RandomAffine",
    "RandomCrop",
    "RandomErasing",
    "RandomHorizontalFlip",
    "RandomPerspective",
    "RandomPosterize",
    "RandomRotation",
    "RandomSolarize",
    "RandomVerticalFlip",
    "Resize",
    "TensorFormat",
    "ToTensor",
]


class InterpolationMode(enum.Enum):
    """Filters."""

    NEAREST = "nearest"
    BILINEAR = "bilinear"
    BICUBIC = "bicubic"
    LANCZOS = "lanczos"


class PaddingMode(enum.Enum):
    """The kind of border around an image."""

    CONSTANT = "constant"
    EDGE = "edge"
    REFLECT = "reflect"


class TensorFormat(enum.Enum):
    """The position of the channels."""

    NONE = 0
    PYTORCH_CHW = 1
    TENSORFLOW_HWC = 2


class AutoAugmentPolicy(enum.Enum):
    """The data set that a policy was found on."""

    IMAGENET = "imagenet"
    CIFAR10 = "cifar10"
    SVHN = "svhn"


class _Original(T.Transform):
    """The methods that every transform of the first turboloader had.

    ``seed`` is that of calls on their own; in a loader everything follows from the loader's seed.
    """

    _draws: Any = None

    def _seeded(self, seed: int | None) -> None:
        if seed is not None:
            self._draws = (seed, itertools.count())

    def __or__(self, other: T.Transform | Callable[..., Any]) -> ComposedTransforms:
        return ComposedTransforms([self, other])

    def apply(self, image: Any) -> Any:
        """Do the transform to an image of (height, width, 3), or with 1 channel, and ``uint8``."""
        if image.ndim == 3 and image.shape[2] == 1:
            return self.apply(image.repeat(3, axis=2))[..., :1]
        if self._draws is None:
            return self(image)
        seed, numbers = self._draws
        return self(image, seed=seed, sample=next(numbers))

    def name(self) -> str:
        """Return the transform's name."""
        return type(self).__name__

    def is_deterministic(self) -> bool:
        """Return whether it does the same each time."""
        return not type(self).__name__.startswith("Random") and not isinstance(
            self, (ColorJitter, AutoAugment, RandAugment)
        )


class ComposedTransforms(T.Compose, _Original):
    """Transforms in sequence."""

    def __len__(self) -> int:
        return len(self.transforms)

    def get_transforms(self) -> list[T.Transform]:
        """Return the transforms."""
        return list(self.transforms)

    def __or__(self, other: T.Transform | Callable[..., Any]) -> ComposedTransforms:
        return ComposedTransforms([*self.transforms, other])

    def operations(self) -> list[dict[str, Any]]:
        """Return the operations; what is normalised is floats already where `ToTensor` comes."""
        made: list[dict[str, Any]] = []
        for one in super().operations():
            if one["op"] != "to_float" or not any(other["op"] == "normalize" for other in made):
                made.append(one)
        return made

    def is_deterministic(self) -> bool:
        """Return whether all of them do the same each time."""
        return all(getattr(one, "is_deterministic", lambda: False)() for one in self.transforms)

    def apply(self, image: Any) -> Any:
        """Do the transforms to an image, channels first where `ToTensor` says so."""
        made = super().apply(image)
        return made.transpose(2, 0, 1) if _is_chw(self.transforms) else made


Compose = ComposedTransforms


def _is_chw(transforms: Sequence[Any]) -> bool:
    formats = [one.format for one in transforms if isinstance(one, ToTensor)]
    return bool(formats) and formats[-1] is TensorFormat.PYTORCH_CHW


def _filter(interpolation: Any) -> Any:
    return str(getattr(interpolation, "value", interpolation))


class Resize(_Original, T.Resize):
    """Resize to a width and a height, without antialiasing."""

    def __init__(self, width: int, height: int, interpolation: Any = "bilinear") -> None:
        T.Resize.__init__(self, [height, width], _filter(interpolation), antialias=False)

    @property
    def width(self) -> int:
        """The width of the result."""
        return int(self.size[1])

    @property
    def height(self) -> int:
        """The height of the result."""
        return int(self.size[0])


class CenterCrop(_Original, T.CenterCrop):
    """Cut out the middle; what is missing is black."""

    def __init__(self, width: int, height: int) -> None:
        T.CenterCrop.__init__(self, [height, width])


class RandomCrop(_Original, T.RandomCrop):
    """Cut out a random part of one size."""

    def __init__(
        self,
        width: int,
        height: int,
        padding: int = 0,
        pad_mode: Any = PaddingMode.CONSTANT,
        pad_value: int = 0,
        seed: int | None = None,
    ) -> None:
        mode = _filter(pad_mode)
        T.RandomCrop.__init__(self, [height, width], padding or None, False, pad_value, mode)
        self._seeded(seed)


class RandomHorizontalFlip(_Original, T.RandomHorizontalFlip):
    """Mirror left and right at random."""

    def __init__(self, p: float = 0.5, seed: int | None = None) -> None:
        T.RandomHorizontalFlip.__init__(self, p)
        self._seeded(seed)


class RandomVerticalFlip(_Original, T.RandomVerticalFlip):
    """Mirror top and bottom at random."""

    def __init__(self, p: float = 0.5, seed: int | None = None) -> None:
        T.RandomVerticalFlip.__init__(self, p)
        self._seeded(seed)


class ColorJitter(_Original, T.ColorJitter):
    """Change colours at random."""

    def __init__(
        self,
        brightness: float = 0.0,
        contrast: float = 0.0,
        saturation: float = 0.0,
        hue: float = 0.0,
        seed: int | None = None,
    ) -> None:
        changes = (brightness, contrast, saturation, hue)
        T.ColorJitter.__init__(self, *(change or None for change in changes))
        self._seeded(seed)


class GaussianBlur(_Original, T.GaussianBlur):
    """Blur; a ``sigma`` of 0 follows from the size of the kernel, as in OpenCV."""

    def __init__(self, kernel_size: int, sigma: float = 0.0) -> None:
        sigma = sigma or 0.3 * ((kernel_size - 1) * 0.5 - 1) + 0.8
        T.GaussianBlur.__init__(self, kernel_size, (sigma, sigma))


class Grayscale(_Original, T.Grayscale):
    """Make the image grey; batches keep three channels, `apply` returns as many as asked for."""

    def __init__(self, num_output_channels: int = 1) -> None:
        T.Grayscale.__init__(self, 3)
        self._channels = num_output_channels

    def apply(self, image: Any) -> Any:
        """Return the grey image with as many channels as were asked for."""
        return super().apply(image)[..., : self._channels]


class Normalize(_Original, T.Normalize):
    """Map to 0 to 1, subtract a mean and divide by a deviation."""

    def __init__(self, mean: Sequence[float], std: Sequence[float], to_float: bool = True) -> None:
        if not to_float:
            raise RecipeError("Normalize(to_float=False): normalised images are floats")
        T.Normalize.__init__(self, mean, std)


class ImageNetNormalize(_Original, T.Normalize):
    """`Normalize` with ImageNet's numbers."""

    def __init__(self, to_float: bool = True) -> None:
        if not to_float:
            raise RecipeError("ImageNetNormalize(to_float=False): normalised images are floats")
        T.Normalize.__init__(self)


class ToTensor(_Original):
    """Map 0 to 255 to 0 to 1. Where channels are in batches is up to the loader."""

    _op = "to_float"

    def __init__(
        self, format: TensorFormat = TensorFormat.PYTORCH_CHW, normalize: bool = True
    ) -> None:
        super().__init__()
        if not normalize:
            raise RecipeError("ToTensor(normalize=False): leave it out to keep 0 to 255")
        self.format = TensorFormat(format)

    def apply(self, image: Any) -> Any:
        """Return floats, channels first for `TensorFormat.PYTORCH_CHW`."""
        made = super().apply(image)
        return made.transpose(2, 0, 1) if self.format is TensorFormat.PYTORCH_CHW else made


class Pad(_Original, T.Pad):
    """Add a border."""

    def __init__(self, padding: int, mode: Any = PaddingMode.CONSTANT, value: int = 0) -> None:
        T.Pad.__init__(self, padding, value, _filter(mode))


class RandomRotation(_Original, T.RandomRotation):
    """Rotate by a random angle."""

    def __init__(
        self, degrees: float, expand: bool = False, fill: int = 0, seed: int | None = None
    ) -> None:
        T.RandomRotation.__init__(self, degrees, "bilinear", expand, None, fill)
        self._seeded(seed)


class RandomAffine(_Original, T.RandomAffine):
    """Rotate, shift, scale and shear at random."""

    def __init__(
        self,
        degrees: float = 0.0,
        translate_x: float = 0.0,
        translate_y: float = 0.0,
        scale_min: float = 1.0,
        scale_max: float = 1.0,
        shear: float = 0.0,
        fill: int = 0,
        seed: int | None = None,
    ) -> None:
        shift = (translate_x, translate_y) if translate_x or translate_y else None
        scale = None if (scale_min, scale_max) == (1.0, 1.0) else (scale_min, scale_max)
        T.RandomAffine.__init__(self, degrees, shift, scale, shear or None, "bilinear", fill)
        self._seeded(seed)


class RandomPerspective(_Original, T.RandomPerspective):
    """Move the corners inwards at random."""

    def __init__(
        self, distortion_scale: float, p: float = 0.5, fill: int = 0, seed: int | None = None
    ) -> None:
        T.RandomPerspective.__init__(self, distortion_scale, p, "bilinear", fill)
        self._seeded(seed)


class RandomPosterize(_Original, T.RandomPosterize):
    """Keep the upper bits of the pixels."""

    def __init__(self, bits: int, p: float = 1.0, seed: int | None = None) -> None:
        T.RandomPosterize.__init__(self, bits, p)
        self._seeded(seed)


class RandomSolarize(_Original, T.RandomSolarize):
    """Invert bright pixels."""

    def __init__(self, threshold: float, p: float = 1.0, seed: int | None = None) -> None:
        T.RandomSolarize.__init__(self, threshold, p)
        self._seeded(seed)


class RandomErasing(_Original, T.RandomErasing):
    """Replace a random rectangle."""

    def __init__(
        self,
        p: float = 0.5,
        scale_min: float = 0.02,
        scale_max: float = 0.33,
        ratio_min: float = 0.3,
        ratio_max: float = 3.33,
        value: int = 0,
        seed: int | None = None,
    ) -> None:
        scale, ratio = (scale_min, scale_max), (ratio_min, ratio_max)
        T.RandomErasing.__init__(self, p, scale, ratio, float(value))
        self._seeded(seed)


class AutoAugment(_Original, T.AutoAugment):
    """Do a pair of transforms that was found by search."""

    def __init__(self, policy: Any = AutoAugmentPolicy.IMAGENET, seed: int | None = None) -> None:
        T.AutoAugment.__init__(self, _filter(policy))
        self._seeded(seed)


class RandAugment(_Original, T.RandAugment):
    """Do transforms of one magnitude."""

    def __init__(self, num_ops: int = 2, magnitude: int = 9, seed: int | None = None) -> None:
        T.RandAugment.__init__(self, num_ops, magnitude)
        self._seeded(seed)


class GridMask:
    """Refused: its ``d`` is a part of the image, that of ``turboloader.GridMask`` pixels."""

    def __init__(
        self, d: float = 0.5, ratio: float = 0.6, p: float = 0.5, seed: Any = None
    ) -> None:
        raise UnsupportedTransformError(
            "GridMask(d): use turboloader.GridMask(distance=...), whose distance is in pixels"
        )


class MixUp(T.MixUp):
    """Blend the images of a batch: for ``batch_transform`` of ``turboloader.DataLoader``."""

    def __init__(self, alpha: float = 0.4, seed: int | None = None) -> None:
        T.MixUp.__init__(self, alpha)


class CutMix(T.CutMix):
    """Put a rectangle of another image into each of a batch: for ``batch_transform``."""

    def __init__(self, alpha: float = 1.0, seed: int | None = None) -> None:
        T.CutMix.__init__(self, alpha)


class Mosaic(T.Mosaic):
    """Make each image of a batch of parts of four: for ``batch_transform``."""

    def __init__(self, output_size: int = 640, seed: int | None = None) -> None:
        if output_size != 640:
            raise UnsupportedTransformError("Mosaic(output_size): it has the size of the batch")
        T.Mosaic.__init__(self)
