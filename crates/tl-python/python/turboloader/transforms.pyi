# Written by stubs.py.
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ._native import Recipe

class Transform:
    def __init__(self, **parameters: Any) -> None: ...
    @property
    def parameters(self) -> dict[str, Any]: ...
    def to_dict(self) -> dict[str, Any]: ...
    def operations(self) -> list[dict[str, Any]]: ...
    def functions(self) -> list[tuple[str, Callable[[Any], Any]]]: ...
    def __or__(self, other: Transform) -> Compose: ...
    def __call__(
        self, image: Any, *, seed: int | None = ..., epoch: int = ..., sample: int | None = ...
    ) -> Any: ...
    def __hash__(self) -> int: ...

class Views:
    count: int
    transform: Any
    def __init__(self, count: int, transform: Any) -> None: ...

class BatchTransform:
    def __init__(self, **parameters: Any) -> None: ...
    @property
    def parameters(self) -> dict[str, Any]: ...
    def to_dict(self) -> dict[str, Any]: ...

class Compose(Transform):
    transforms: list[Transform]
    def __init__(self, transforms: Iterable[Transform | Callable[[Any], Any]]) -> None: ...

class Lambda(Transform):
    lambd: Callable[[Any], Any]
    @property
    def name(self) -> str: ...
    def __init__(self, lambd: Callable[[Any], Any]) -> None: ...

class ToImage(Transform):
    def __init__(self) -> None: ...

class ToDtype(Transform):
    dtype: str
    scale: bool
    def __init__(self, dtype: Any, scale: bool = ...) -> None: ...

class RandomResizedCrop(Transform):
    size: Any
    scale: Any
    ratio: Any
    interpolation: Any
    antialias: bool
    def __init__(
        self,
        size: Any,
        scale: Any = ...,
        ratio: Any = ...,
        interpolation: Any = ...,
        antialias: bool = ...,
    ) -> None: ...

class Resize(Transform):
    size: Any
    interpolation: Any
    max_size: Any
    antialias: bool
    def __init__(
        self,
        size: Any,
        interpolation: Any = ...,
        max_size: Any = ...,
        antialias: bool = ...,
    ) -> None: ...

class CenterCrop(Transform):
    size: Any
    def __init__(self, size: Any) -> None: ...

class RandomCrop(Transform):
    size: Any
    padding: Any
    pad_if_needed: bool
    fill: Any
    padding_mode: Any
    def __init__(
        self,
        size: Any,
        padding: Any = ...,
        pad_if_needed: bool = ...,
        fill: Any = ...,
        padding_mode: Any = ...,
    ) -> None: ...

class FiveCrop(Transform):
    size: Any
    def __init__(self, size: Any) -> None: ...

class TenCrop(Transform):
    size: Any
    vertical_flip: bool
    def __init__(self, size: Any, vertical_flip: bool = ...) -> None: ...

class RandomShortestSize(Transform):
    min_size: Any
    max_size: Any
    interpolation: Any
    antialias: bool
    def __init__(
        self,
        min_size: Any,
        max_size: Any = ...,
        interpolation: Any = ...,
        antialias: bool = ...,
    ) -> None: ...

class ScaleJitter(Transform):
    target_size: Any
    scale_range: Any
    interpolation: Any
    antialias: bool
    def __init__(
        self,
        target_size: Any,
        scale_range: Any = ...,
        interpolation: Any = ...,
        antialias: bool = ...,
    ) -> None: ...

class Pad(Transform):
    padding: Any
    fill: Any
    padding_mode: Any
    def __init__(self, padding: Any, fill: Any = ..., padding_mode: Any = ...) -> None: ...

class RandomZoomOut(Transform):
    fill: Any
    side_range: Any
    p: float
    def __init__(self, fill: Any = ..., side_range: Any = ..., p: float = ...) -> None: ...

class RandomHorizontalFlip(Transform):
    p: float
    def __init__(self, p: float = ...) -> None: ...

class RandomVerticalFlip(Transform):
    p: float
    def __init__(self, p: float = ...) -> None: ...

class ColorJitter(Transform):
    brightness: Any
    contrast: Any
    saturation: Any
    hue: Any
    def __init__(
        self,
        brightness: Any = ...,
        contrast: Any = ...,
        saturation: Any = ...,
        hue: Any = ...,
    ) -> None: ...

class Grayscale(Transform):
    num_output_channels: int
    def __init__(self, num_output_channels: int = ...) -> None: ...

class RandomGrayscale(Transform):
    p: float
    def __init__(self, p: float = ...) -> None: ...

class RandomInvert(Transform):
    p: float
    def __init__(self, p: float = ...) -> None: ...

class RandomPosterize(Transform):
    bits: Any
    p: float
    def __init__(self, bits: Any, p: float = ...) -> None: ...

class RandomSolarize(Transform):
    threshold: Any
    p: float
    def __init__(self, threshold: Any, p: float = ...) -> None: ...

class RandomAdjustSharpness(Transform):
    sharpness_factor: Any
    p: float
    def __init__(self, sharpness_factor: Any, p: float = ...) -> None: ...

class RandomAutocontrast(Transform):
    p: float
    def __init__(self, p: float = ...) -> None: ...

class RandomEqualize(Transform):
    p: float
    def __init__(self, p: float = ...) -> None: ...

class RandomChannelPermutation(Transform):
    def __init__(self) -> None: ...

class RandomPhotometricDistort(Transform):
    brightness: Any
    contrast: Any
    saturation: Any
    hue: Any
    p: float
    def __init__(
        self,
        brightness: Any = ...,
        contrast: Any = ...,
        saturation: Any = ...,
        hue: Any = ...,
        p: float = ...,
    ) -> None: ...

class GaussianBlur(Transform):
    kernel_size: Any
    sigma: Any
    def __init__(self, kernel_size: Any, sigma: Any = ...) -> None: ...

class GaussianNoise(Transform):
    mean: Any
    sigma: Any
    clip: bool
    def __init__(self, mean: Any = ..., sigma: Any = ..., clip: bool = ...) -> None: ...

class RandomErasing(Transform):
    p: float
    scale: Any
    ratio: Any
    value: Any
    def __init__(
        self,
        p: float = ...,
        scale: Any = ...,
        ratio: Any = ...,
        value: Any = ...,
    ) -> None: ...

class GridMask(Transform):
    p: float
    distance: Any
    ratio: Any
    rotate: int
    mode: int
    value: Any
    def __init__(
        self,
        p: float = ...,
        distance: Any = ...,
        ratio: Any = ...,
        rotate: int = ...,
        mode: int = ...,
        value: Any = ...,
    ) -> None: ...

class RandomApply(Transform):
    transforms: list[Transform]
    p: float
    def __init__(self, transforms: Iterable[Transform], p: float = ...) -> None: ...

class RandomChoice(Transform):
    transforms: list[Transform]
    p: Any
    def __init__(self, transforms: Iterable[Transform], p: Any = ...) -> None: ...

class RandomOrder(Transform):
    transforms: list[Transform]
    def __init__(self, transforms: Iterable[Transform]) -> None: ...

class RandomRotation(Transform):
    degrees: Any
    interpolation: Any
    expand: bool
    center: Any
    fill: Any
    def __init__(
        self,
        degrees: Any,
        interpolation: Any = ...,
        expand: bool = ...,
        center: Any = ...,
        fill: Any = ...,
    ) -> None: ...

class RandomAffine(Transform):
    degrees: Any
    translate: Any
    scale: Any
    shear: Any
    interpolation: Any
    fill: Any
    center: Any
    def __init__(
        self,
        degrees: Any,
        translate: Any = ...,
        scale: Any = ...,
        shear: Any = ...,
        interpolation: Any = ...,
        fill: Any = ...,
        center: Any = ...,
    ) -> None: ...

class RandomPerspective(Transform):
    distortion_scale: Any
    p: float
    interpolation: Any
    fill: Any
    def __init__(
        self,
        distortion_scale: Any = ...,
        p: float = ...,
        interpolation: Any = ...,
        fill: Any = ...,
    ) -> None: ...

class ElasticTransform(Transform):
    alpha: Any
    sigma: Any
    interpolation: Any
    fill: Any
    def __init__(
        self,
        alpha: Any = ...,
        sigma: Any = ...,
        interpolation: Any = ...,
        fill: Any = ...,
    ) -> None: ...

class AutoAugment(Transform):
    policy: Any
    interpolation: Any
    fill: Any
    def __init__(self, policy: Any = ..., interpolation: Any = ..., fill: Any = ...) -> None: ...

class RandAugment(Transform):
    num_ops: int
    magnitude: int
    num_magnitude_bins: int
    interpolation: Any
    fill: Any
    def __init__(
        self,
        num_ops: int = ...,
        magnitude: int = ...,
        num_magnitude_bins: int = ...,
        interpolation: Any = ...,
        fill: Any = ...,
    ) -> None: ...

class TrivialAugmentWide(Transform):
    num_magnitude_bins: int
    interpolation: Any
    fill: Any
    def __init__(
        self,
        num_magnitude_bins: int = ...,
        interpolation: Any = ...,
        fill: Any = ...,
    ) -> None: ...

class AugMix(Transform):
    severity: int
    mixture_width: int
    chain_depth: int
    alpha: Any
    all_ops: bool
    interpolation: Any
    fill: Any
    def __init__(
        self,
        severity: int = ...,
        mixture_width: int = ...,
        chain_depth: int = ...,
        alpha: Any = ...,
        all_ops: bool = ...,
        interpolation: Any = ...,
        fill: Any = ...,
    ) -> None: ...

class ToFloat(Transform):
    def __init__(self) -> None: ...

class Normalize(Transform):
    mean: Any
    std: Any
    def __init__(self, mean: Any = ..., std: Any = ...) -> None: ...

class MixUp(BatchTransform):
    alpha: Any
    num_classes: Any
    p: float
    def __init__(self, alpha: Any = ..., num_classes: Any = ..., p: float = ...) -> None: ...

class CutMix(BatchTransform):
    alpha: Any
    num_classes: Any
    p: float
    def __init__(self, alpha: Any = ..., num_classes: Any = ..., p: float = ...) -> None: ...

class Mosaic(BatchTransform):
    num_classes: Any
    p: float
    def __init__(self, num_classes: Any = ..., p: float = ...) -> None: ...

ToTensor = ToFloat
ImageNetNormalize = Normalize

def manual_seed(seed: int) -> None: ...
def dtype_name(dtype: Any) -> str: ...
def functions(transform: Any) -> dict[str, Callable[[Any], Any]]: ...
def recipe(
    transform: Transform | Callable[[Any], Any] | Sequence[Transform | Callable[[Any], Any]] | None,
    *,
    dtype: Any = ...,
    channels_last: bool | None = ...,
    decode_margin: float | None = ...,
    parity: str | None = ...,
    channels: int | None = ...,
    batch_transform: BatchTransform | Sequence[BatchTransform] = ...,
) -> Recipe: ...
def from_torchvision(transform: Any) -> Transform: ...

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
    "MixUp",
    "CutMix",
    "Mosaic",
    "RandomResizedCrop",
    "Resize",
    "CenterCrop",
    "RandomCrop",
    "FiveCrop",
    "TenCrop",
    "RandomShortestSize",
    "ScaleJitter",
    "Pad",
    "RandomZoomOut",
    "RandomHorizontalFlip",
    "RandomVerticalFlip",
    "ColorJitter",
    "Grayscale",
    "RandomGrayscale",
    "RandomInvert",
    "RandomPosterize",
    "RandomSolarize",
    "RandomAdjustSharpness",
    "RandomAutocontrast",
    "RandomEqualize",
    "RandomChannelPermutation",
    "RandomPhotometricDistort",
    "GaussianBlur",
    "GaussianNoise",
    "RandomErasing",
    "GridMask",
    "RandomApply",
    "RandomChoice",
    "RandomOrder",
    "RandomRotation",
    "RandomAffine",
    "RandomPerspective",
    "ElasticTransform",
    "AutoAugment",
    "RandAugment",
    "TrivialAugmentWide",
    "AugMix",
    "ToFloat",
    "Normalize",
]
