# Written by stubs.py.
import enum
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal, Protocol, TypeAlias, overload

import numpy.typing as npt
import torch

from ._native import Recipe

Interpolation: TypeAlias = (
    Literal[
        "nearest",
        "nearest_exact",
        "nearest-exact",
        "box",
        "bilinear",
        "hamming",
        "bicubic",
        "lanczos",
    ]
    | int
    | enum.Enum
)
PaddingMode: TypeAlias = Literal["constant", "edge", "reflect", "symmetric"]
Policy: TypeAlias = Literal["imagenet", "cifar10", "svhn"] | enum.Enum
# An element of a list of transforms: also a function, or one of torchvision or Albumentations.
Function: TypeAlias = Transform | Callable[..., Any]
Dtype: TypeAlias = npt.DTypeLike | _TorchDtype

class _TorchDtype(Protocol):
    is_floating_point: bool
    is_complex: bool

class _Pixels(Protocol):
    @property
    def __array_interface__(self) -> dict[str, Any]: ...

class Transform:
    """A step of a recipe: a name and parameters.

    Calling it on an image does it once. What is random follows from ``seed``, ``epoch`` and
    ``sample``; each call takes the next sample unless they are given (see `manual_seed`).
    """

    def __init__(self, **parameters: Any) -> None: ...
    @property
    def parameters(self) -> dict[str, Any]: ...
    def to_dict(self) -> dict[str, Any]: ...
    def operations(self) -> list[dict[str, Any]]: ...
    def functions(self) -> list[tuple[str, Callable[..., Any]]]: ...
    def __or__(self, other: Function) -> Compose: ...
    @overload
    def __call__(
        self,
        image: _Pixels,
        *,
        seed: int | None = ...,
        epoch: int = ...,
        sample: int | None = ...,
    ) -> npt.NDArray[Any]: ...
    @overload
    def __call__(
        self,
        image: torch.Tensor,
        *,
        seed: int | None = ...,
        epoch: int = ...,
        sample: int | None = ...,
    ) -> torch.Tensor: ...
    def __eq__(self, other: object) -> bool: ...
    def __hash__(self) -> int: ...

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

    count: int
    transform: Function | Sequence[Function] | Recipe | None
    def __init__(
        self, count: int, transform: Function | Sequence[Function] | Recipe | None
    ) -> None: ...

class BatchTransform:
    """A way of mixing the images of a batch, for `DataLoader`'s ``batch_transform``."""

    def __init__(self, **parameters: Any) -> None: ...
    @property
    def parameters(self) -> dict[str, Any]: ...
    def to_dict(self) -> dict[str, Any]: ...

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

    transforms: list[Transform]
    def __init__(self, transforms: Iterable[Function]) -> None: ...

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

    lambd: Callable[..., Any]
    moves: bool
    size: list[int] | Literal["any"] | None
    @property
    def name(self) -> str: ...
    def __init__(
        self,
        lambd: Callable[..., Any],
        *,
        moves: bool = True,
        size: int | tuple[int, int] | Literal["any"] | None = None,
    ) -> None: ...

class ToImage(Transform):
    """Nothing: images are pixels already. For code that was written for torchvision."""

    def __init__(self) -> None: ...

class ToDtype(Transform):
    """Map 0 to 255 to 0 to 1 where ``dtype`` is a float and ``scale`` is true.

    Parameters
    ----------
    dtype
        ``"float32"`` or the like, also of NumPy or torch. The batch's type is `DataLoader`'s.
    scale
        Floats have to be scaled.
    """

    dtype: str
    scale: bool
    def __init__(self, dtype: Dtype, scale: bool = ...) -> None: ...

class RandomResizedCrop(Transform):
    """Crops a random part of random aspect ratio and resizes it.

    After ten tries that do not fit, the part is the largest one in the middle. The result has
    the given size.

    Called directly, it takes an image as a NumPy array of ``uint8`` and shape (height, width,
    3), or as a tensor of torch of shape (3, height, width), and returns the same layout.
    torchvision.transforms.v2 has it as `RandomResizedCrop`.

    Parameters
    ----------
    size : int | Sequence[int]
        The size of the result: one number for both sides, or (height, width), 1 to 65535 pixels
        each.
    scale : Sequence[float], default (0.08, 1.0)
        Bounds of the part's area, as a share of the image's: 0 or more.
    ratio : Sequence[float], default (0.75, 1.33333)
        Bounds of the part's width divided by its height: more than 0.
    interpolation : Interpolation, default 'bilinear'
        The filter of resampling: nearest, nearest_exact, box, bilinear, hamming, bicubic or
        lanczos; also torchvision's `InterpolationMode` or Pillow's number.
    antialias : bool, default True
        Whether shrinking takes all pixels into account, as it always does on Pillow images.
    """

    size: Any
    scale: Any
    ratio: Any
    interpolation: Any
    antialias: bool
    def __init__(
        self,
        size: int | Sequence[int],
        scale: Sequence[float] = ...,
        ratio: Sequence[float] = ...,
        interpolation: Interpolation = ...,
        antialias: bool = ...,
    ) -> None: ...

class Resize(Transform):
    """Resizes the image; one number is the shorter side.

    The longer side keeps the aspect ratio, rounded down. The result has the given size.

    Called directly, it takes an image as a NumPy array of ``uint8`` and shape (height, width,
    3), or as a tensor of torch of shape (3, height, width), and returns the same layout.
    torchvision.transforms.v2 has it as `Resize`.

    Parameters
    ----------
    size : int | Sequence[int] | None
        The size afterwards: one number for the shorter side, or (height, width), 1 to 65535 pixels
        each; None if `max_size` alone decides.
    interpolation : Interpolation, default 'bilinear'
        The filter of resampling: nearest, nearest_exact, box, bilinear, hamming, bicubic or
        lanczos; also torchvision's `InterpolationMode` or Pillow's number.
    max_size : int | None, default None
        The largest longer side, if `size` is one number; more than `size`.
    antialias : bool, default True
        Whether shrinking takes all pixels into account, as it always does on Pillow images.
    """

    size: Any
    interpolation: Any
    max_size: Any
    antialias: bool
    def __init__(
        self,
        size: int | Sequence[int] | None,
        interpolation: Interpolation = ...,
        max_size: int | None = ...,
        antialias: bool = ...,
    ) -> None: ...

class CenterCrop(Transform):
    """Cuts out the middle.

    Smaller images get a black border first. The result has the given size.

    Called directly, it takes an image as a NumPy array of ``uint8`` and shape (height, width,
    3), or as a tensor of torch of shape (3, height, width), and returns the same layout.
    torchvision.transforms.v2 has it as `CenterCrop`.

    Parameters
    ----------
    size : int | Sequence[int]
        The size of the result: one number for both sides, or (height, width), 1 to 65535 pixels
        each.
    """

    size: Any
    def __init__(self, size: int | Sequence[int]) -> None: ...

class RandomCrop(Transform):
    """Cuts out a random part of one size.

    The result has the given size.

    Called directly, it takes an image as a NumPy array of ``uint8`` and shape (height, width,
    3), or as a tensor of torch of shape (3, height, width), and returns the same layout.
    torchvision.transforms.v2 has it as `RandomCrop`.

    Parameters
    ----------
    size : int | Sequence[int]
        The size of the result: one number for both sides, or (height, width), 1 to 65535 pixels
        each.
    padding : int | Sequence[int] | None, default None
        A border that is added first: one width, (left and right, top and bottom), or (left, top,
        right, bottom), 0 to 65535 pixels each.
    pad_if_needed : bool, default False
        Whether images that are still too small are padded on both sides by what is missing.
        Otherwise they are an error.
    fill : float | Sequence[float] | None, default 0
        The colour outside the image: a number for all channels or (red, green, blue), 0 to 255;
        None for black.
    padding_mode : PaddingMode, default 'constant'
        The border: constant for `fill`, edge for the outermost pixels, reflect or symmetric for a
        mirrored image without or with these.
    """

    size: Any
    padding: Any
    pad_if_needed: bool
    fill: Any
    padding_mode: Any
    def __init__(
        self,
        size: int | Sequence[int],
        padding: int | Sequence[int] | None = ...,
        pad_if_needed: bool = ...,
        fill: float | Sequence[float] | None = ...,
        padding_mode: PaddingMode = ...,
    ) -> None: ...

class FiveCrop(Transform):
    """Cuts out the corners and the middle: five images.

    Their order is top left, top right, bottom left, bottom right, middle. The result has an
    axis of five images of the given size in front.

    Called directly, it takes an image as a NumPy array of ``uint8`` and shape (height, width,
    3), or as a tensor of torch of shape (3, height, width), and returns the same layout.
    torchvision.transforms.v2 has it as `FiveCrop`.

    Parameters
    ----------
    size : int | Sequence[int]
        The size of the result: one number for both sides, or (height, width), 1 to 65535 pixels
        each.
    """

    size: Any
    def __init__(self, size: int | Sequence[int]) -> None: ...

class TenCrop(Transform):
    """Cuts out the corners and the middle, of the mirrored image too: ten images.

    The result has an axis of ten images of the given size in front.

    Called directly, it takes an image as a NumPy array of ``uint8`` and shape (height, width,
    3), or as a tensor of torch of shape (3, height, width), and returns the same layout.
    torchvision.transforms.v2 has it as `TenCrop`.

    Parameters
    ----------
    size : int | Sequence[int]
        The size of the result: one number for both sides, or (height, width), 1 to 65535 pixels
        each.
    vertical_flip : bool, default False
        Whether the mirrored image has its top and bottom swapped, not its left and right.
    """

    size: Any
    vertical_flip: bool
    def __init__(self, size: int | Sequence[int], vertical_flip: bool = ...) -> None: ...

class RandomShortestSize(Transform):
    """Resizes so that the shorter side has one of several lengths.

    The result keeps the aspect ratio of the image, so sizes differ.

    Called directly, it takes an image as a NumPy array of ``uint8`` and shape (height, width,
    3), or as a tensor of torch of shape (3, height, width), and returns the same layout.
    torchvision.transforms.v2 has it as `RandomShortestSize`.

    Parameters
    ----------
    min_size : int | Sequence[int]
        The lengths of the shorter side, each equally likely, or one: 1 to 65535 pixels.
    max_size : int | None, default None
        The largest longer side, 1 to 65535 pixels; None for no limit.
    interpolation : Interpolation, default 'bilinear'
        The filter of resampling: nearest, nearest_exact, box, bilinear, hamming, bicubic or
        lanczos; also torchvision's `InterpolationMode` or Pillow's number.
    antialias : bool, default True
        Whether shrinking takes all pixels into account, as it always does on Pillow images.
    """

    min_size: Any
    max_size: Any
    interpolation: Any
    antialias: bool
    def __init__(
        self,
        min_size: int | Sequence[int],
        max_size: int | None = ...,
        interpolation: Interpolation = ...,
        antialias: bool = ...,
    ) -> None: ...

class ScaleJitter(Transform):
    """Resizes by a random factor.

    The image is fitted into the target, whose sides are multiplied by the factor. The result
    keeps the aspect ratio of the image, so sizes differ.

    Called directly, it takes an image as a NumPy array of ``uint8`` and shape (height, width,
    3), or as a tensor of torch of shape (3, height, width), and returns the same layout.
    torchvision.transforms.v2 has it as `ScaleJitter`.

    Parameters
    ----------
    target_size : Sequence[int]
        The sides that an image is fitted into: a width and a height, as torchvision computes with
        them, though it documents the reverse.
    scale_range : Sequence[float], default (0.1, 2.0)
        Bounds of the factor: more than 0.
    interpolation : Interpolation, default 'bilinear'
        The filter of resampling: nearest, nearest_exact, box, bilinear, hamming, bicubic or
        lanczos; also torchvision's `InterpolationMode` or Pillow's number.
    antialias : bool, default True
        Whether shrinking takes all pixels into account, as it always does on Pillow images.
    """

    target_size: Any
    scale_range: Any
    interpolation: Any
    antialias: bool
    def __init__(
        self,
        target_size: Sequence[int],
        scale_range: Sequence[float] = ...,
        interpolation: Interpolation = ...,
        antialias: bool = ...,
    ) -> None: ...

class Pad(Transform):
    """Adds a border.

    The result is larger by the border.

    Called directly, it takes an image as a NumPy array of ``uint8`` and shape (height, width,
    3), or as a tensor of torch of shape (3, height, width), and returns the same layout.
    torchvision.transforms.v2 has it as `Pad`.

    Parameters
    ----------
    padding : int | Sequence[int]
        The border: one width, (left and right, top and bottom), or (left, top, right, bottom), 0 to
        65535 pixels each.
    fill : float | Sequence[float] | None, default 0
        The colour outside the image: a number for all channels or (red, green, blue), 0 to 255;
        None for black.
    padding_mode : PaddingMode, default 'constant'
        The border: constant for `fill`, edge for the outermost pixels, reflect or symmetric for a
        mirrored image without or with these.
    """

    padding: Any
    fill: Any
    padding_mode: Any
    def __init__(
        self,
        padding: int | Sequence[int],
        fill: float | Sequence[float] | None = ...,
        padding_mode: PaddingMode = ...,
    ) -> None: ...

class RandomZoomOut(Transform):
    """Puts the image at a random place on a larger canvas at random.

    The result has the size of the canvas, so sizes differ.

    Called directly, it takes an image as a NumPy array of ``uint8`` and shape (height, width,
    3), or as a tensor of torch of shape (3, height, width), and returns the same layout.
    torchvision.transforms.v2 has it as `RandomZoomOut`.

    Parameters
    ----------
    fill : float | Sequence[float] | None, default 0
        The colour outside the image: a number for all channels or (red, green, blue), 0 to 255;
        None for black.
    side_range : Sequence[float], default (1.0, 4.0)
        Bounds of the canvas's sides, as multiples of the image's: 1 or more.
    p : float, default 0.5
        The probability, 0 to 1.
    """

    fill: Any
    side_range: Any
    p: float
    def __init__(
        self,
        fill: float | Sequence[float] | None = ...,
        side_range: Sequence[float] = ...,
        p: float = ...,
    ) -> None: ...

class RandomHorizontalFlip(Transform):
    """Mirrors left and right at random.

    The result keeps the size.

    Called directly, it takes an image as a NumPy array of ``uint8`` and shape (height, width,
    3), or as a tensor of torch of shape (3, height, width), and returns the same layout.
    torchvision.transforms.v2 has it as `RandomHorizontalFlip`.

    Parameters
    ----------
    p : float, default 0.5
        The probability, 0 to 1.
    """

    p: float
    def __init__(self, p: float = ...) -> None: ...

class RandomVerticalFlip(Transform):
    """Mirrors top and bottom at random.

    The result keeps the size.

    Called directly, it takes an image as a NumPy array of ``uint8`` and shape (height, width,
    3), or as a tensor of torch of shape (3, height, width), and returns the same layout.
    torchvision.transforms.v2 has it as `RandomVerticalFlip`.

    Parameters
    ----------
    p : float, default 0.5
        The probability, 0 to 1.
    """

    p: float
    def __init__(self, p: float = ...) -> None: ...

class ColorJitter(Transform):
    """Changes brightness, contrast, saturation and hue at random.

    The order of the changes is random too; None and 0 switch one off. The result keeps the
    size.

    Called directly, it takes an image as a NumPy array of ``uint8`` and shape (height, width,
    3), or as a tensor of torch of shape (3, height, width), and returns the same layout.
    torchvision.transforms.v2 has it as `ColorJitter`.

    Parameters
    ----------
    brightness : float | Sequence[float] | None, default None
        The factor of all pixels: an amount of 0 or more around 1, or bounds of 0 or more.
    contrast : float | Sequence[float] | None, default None
        The factor around the image's mean grey, in the same forms.
    saturation : float | Sequence[float] | None, default None
        The factor around each pixel's grey, in the same forms.
    hue : float | Sequence[float] | None, default None
        The shift of hues in turns: an amount of 0 to 0.5, or bounds from -0.5 to 0.5.
    """

    brightness: Any
    contrast: Any
    saturation: Any
    hue: Any
    def __init__(
        self,
        brightness: float | Sequence[float] | None = ...,
        contrast: float | Sequence[float] | None = ...,
        saturation: float | Sequence[float] | None = ...,
        hue: float | Sequence[float] | None = ...,
    ) -> None: ...

class Grayscale(Transform):
    """Makes the image grey; it keeps three channels, which torchvision's default does not.

    A loader has images of one channel with `channels=1`. The result keeps the size.

    Called directly, it takes an image as a NumPy array of ``uint8`` and shape (height, width,
    3), or as a tensor of torch of shape (3, height, width), and returns the same layout.
    torchvision.transforms.v2 has it as `Grayscale`.

    Parameters
    ----------
    num_output_channels : int, default 3
        The channels of the result: 3.
    """

    num_output_channels: int
    def __init__(self, num_output_channels: int = ...) -> None: ...

class RandomGrayscale(Transform):
    """Makes the image grey at random.

    The result keeps the size and three channels.

    Called directly, it takes an image as a NumPy array of ``uint8`` and shape (height, width,
    3), or as a tensor of torch of shape (3, height, width), and returns the same layout.
    torchvision.transforms.v2 has it as `RandomGrayscale`.

    Parameters
    ----------
    p : float, default 0.1
        The probability, 0 to 1.
    """

    p: float
    def __init__(self, p: float = ...) -> None: ...

class RandomInvert(Transform):
    """Inverts the pixels at random.

    The result keeps the size.

    Called directly, it takes an image as a NumPy array of ``uint8`` and shape (height, width,
    3), or as a tensor of torch of shape (3, height, width), and returns the same layout.
    torchvision.transforms.v2 has it as `RandomInvert`.

    Parameters
    ----------
    p : float, default 0.5
        The probability, 0 to 1.
    """

    p: float
    def __init__(self, p: float = ...) -> None: ...

class RandomPosterize(Transform):
    """Keeps the upper bits of the pixels at random.

    The result keeps the size.

    Called directly, it takes an image as a NumPy array of ``uint8`` and shape (height, width,
    3), or as a tensor of torch of shape (3, height, width), and returns the same layout.
    torchvision.transforms.v2 has it as `RandomPosterize`.

    Parameters
    ----------
    bits : int
        The number of bits to keep, 0 to 8.
    p : float, default 0.5
        The probability, 0 to 1.
    """

    bits: int
    p: float
    def __init__(self, bits: int, p: float = ...) -> None: ...

class RandomSolarize(Transform):
    """Inverts bright pixels at random.

    The result keeps the size.

    Called directly, it takes an image as a NumPy array of ``uint8`` and shape (height, width,
    3), or as a tensor of torch of shape (3, height, width), and returns the same layout.
    torchvision.transforms.v2 has it as `RandomSolarize`.

    Parameters
    ----------
    threshold : float
        The smallest sample that is inverted, in the units of pixels: 0 to 255.
    p : float, default 0.5
        The probability, 0 to 1.
    """

    threshold: float
    p: float
    def __init__(self, threshold: float, p: float = ...) -> None: ...

class RandomAdjustSharpness(Transform):
    """Sharpens or blurs at random.

    The result keeps the size.

    Called directly, it takes an image as a NumPy array of ``uint8`` and shape (height, width,
    3), or as a tensor of torch of shape (3, height, width), and returns the same layout.
    torchvision.transforms.v2 has it as `RandomAdjustSharpness`.

    Parameters
    ----------
    sharpness_factor : float
        The factor, 0 or more: 0 blurs, 1 changes nothing, 2 sharpens.
    p : float, default 0.5
        The probability, 0 to 1.
    """

    sharpness_factor: float
    p: float
    def __init__(self, sharpness_factor: float, p: float = ...) -> None: ...

class RandomAutocontrast(Transform):
    """Stretches each channel at random.

    Its smallest sample becomes 0 and its largest 255. The result keeps the size.

    Called directly, it takes an image as a NumPy array of ``uint8`` and shape (height, width,
    3), or as a tensor of torch of shape (3, height, width), and returns the same layout.
    torchvision.transforms.v2 has it as `RandomAutocontrast`.

    Parameters
    ----------
    p : float, default 0.5
        The probability, 0 to 1.
    """

    p: float
    def __init__(self, p: float = ...) -> None: ...

class RandomEqualize(Transform):
    """Makes each channel's histogram even at random.

    The result keeps the size.

    Called directly, it takes an image as a NumPy array of ``uint8`` and shape (height, width,
    3), or as a tensor of torch of shape (3, height, width), and returns the same layout.
    torchvision.transforms.v2 has it as `RandomEqualize`.

    Parameters
    ----------
    p : float, default 0.5
        The probability, 0 to 1.
    """

    p: float
    def __init__(self, p: float = ...) -> None: ...

class RandomChannelPermutation(Transform):
    """Permutes the channels at random.

    The result keeps the size.

    Called directly, it takes an image as a NumPy array of ``uint8`` and shape (height, width,
    3), or as a tensor of torch of shape (3, height, width), and returns the same layout.
    torchvision.transforms.v2 has it as `RandomChannelPermutation`.
    """

    def __init__(self) -> None: ...

class RandomPhotometricDistort(Transform):
    """Changes colours as for SSD.

    Brightness, contrast, saturation, hue and the order of channels change independently. The
    result keeps the size.

    Called directly, it takes an image as a NumPy array of ``uint8`` and shape (height, width,
    3), or as a tensor of torch of shape (3, height, width), and returns the same layout.
    torchvision.transforms.v2 has it as `RandomPhotometricDistort`.

    Parameters
    ----------
    brightness : Sequence[float], default (0.875, 1.125)
        Bounds of the factor of all pixels: 0 or more.
    contrast : Sequence[float], default (0.5, 1.5)
        Bounds of the factor around the image's mean grey: 0 or more.
    saturation : Sequence[float], default (0.5, 1.5)
        Bounds of the factor around each pixel's grey: 0 or more.
    hue : Sequence[float], default (-0.05, 0.05)
        Bounds of the shift of hues in turns: -0.5 to 0.5.
    p : float, default 0.5
        The probability of each change, 0 to 1.
    """

    brightness: Any
    contrast: Any
    saturation: Any
    hue: Any
    p: float
    def __init__(
        self,
        brightness: Sequence[float] = ...,
        contrast: Sequence[float] = ...,
        saturation: Sequence[float] = ...,
        hue: Sequence[float] = ...,
        p: float = ...,
    ) -> None: ...

class GaussianBlur(Transform):
    """Blurs with a Gaussian of random width.

    The result keeps the size.

    Called directly, it takes an image as a NumPy array of ``uint8`` and shape (height, width,
    3), or as a tensor of torch of shape (3, height, width), and returns the same layout.
    torchvision.transforms.v2 has it as `GaussianBlur`.

    Parameters
    ----------
    kernel_size : int | Sequence[int]
        The sides of the kernel: one number or (width, height), odd, 1 to 255 pixels.
    sigma : float | Sequence[float], default (0.1, 2.0)
        The standard deviation in pixels: a number or bounds, more than 0.
    """

    kernel_size: Any
    sigma: Any
    def __init__(
        self,
        kernel_size: int | Sequence[int],
        sigma: float | Sequence[float] = ...,
    ) -> None: ...

class GaussianNoise(Transform):
    """Adds normal noise.

    The result keeps the size.

    Called directly, it takes an image as a NumPy array of ``uint8`` and shape (height, width,
    3), or as a tensor of torch of shape (3, height, width), and returns the same layout.
    torchvision.transforms.v2 has it as `GaussianNoise` on `uint8`.

    Parameters
    ----------
    mean : float, default 0.0
        The mean, where 1 is the whole range of samples: -16 to 16.
    sigma : float, default 0.1
        The standard deviation, where 1 is the whole range of samples: 0 to 16.
    clip : bool, default True
        Whether sums stay within the range of samples; otherwise they wrap around.
    """

    mean: float
    sigma: float
    clip: bool
    def __init__(self, mean: float = ..., sigma: float = ..., clip: bool = ...) -> None: ...

class RandomErasing(Transform):
    """Replaces a random rectangle.

    Takes pixels, or numbers after `ToTensor` and `Normalize`. After ten tries that do not fit,
    the image stays as it is. The result keeps the size.

    Called directly, it takes an image as a NumPy array of ``uint8`` and shape (height, width,
    3), or as a tensor of torch of shape (3, height, width), and returns the same layout.
    torchvision.transforms.v2 has it as `RandomErasing`.

    Parameters
    ----------
    p : float, default 0.5
        The probability, 0 to 1.
    scale : Sequence[float], default (0.02, 0.33)
        Bounds of the rectangle's area, as a share of the image's: 0 to 1.
    ratio : Sequence[float], default (0.3, 3.3)
        Bounds of the rectangle's height divided by its width: more than 0.
    value : float | Sequence[float] | Literal["random"], default 0.0
        The value of erased pixels: a number, one for each channel, or `"random"` for normal
        deviates, which must follow `ToTensor`.
    """

    p: float
    scale: Any
    ratio: Any
    value: Any
    def __init__(
        self,
        p: float = ...,
        scale: Sequence[float] = ...,
        ratio: Sequence[float] = ...,
        value: float | Sequence[float] | Literal["random"] = ...,
    ) -> None: ...

class GridMask(Transform):
    """Erases a grid.

    Takes pixels, or numbers after `ToTensor` and `Normalize`. It follows the code of Chen et
    al., "`GridMask` Data Augmentation" (2020). The result keeps the size.

    Called directly, it takes an image as a NumPy array of ``uint8`` and shape (height, width,
    3), or as a tensor of torch of shape (3, height, width), and returns the same layout.
    torchvision does not have it.

    Parameters
    ----------
    p : float, default 0.8
        The probability, 0 to 1.
    distance : Sequence[int], default (96, 224)
        Bounds of the distance between stripes in pixels, 1 to 65535, the upper one excluded.
    ratio : float, default 0.6
        The width of a stripe, as a share of the distance: 0 to 1.
    rotate : int, default 360
        The grid is turned by fewer than this many whole degrees, 1 to 360; 1 keeps it upright.
    mode : int, default 1
        The erased part: 0 for the stripes, 1 for the squares between them.
    value : float | Sequence[float], default 0.0
        The value of erased pixels: a number, or one for each channel.
    """

    p: float
    distance: Any
    ratio: float
    rotate: int
    mode: int
    value: Any
    def __init__(
        self,
        p: float = ...,
        distance: Sequence[int] = ...,
        ratio: float = ...,
        rotate: int = ...,
        mode: int = ...,
        value: float | Sequence[float] = ...,
    ) -> None: ...

class RandomApply(Transform):
    """Applies a list with a probability.

    The result is that of the transforms.

    Called directly, it takes an image as a NumPy array of ``uint8`` and shape (height, width,
    3), or as a tensor of torch of shape (3, height, width), and returns the same layout.
    torchvision.transforms.v2 has it as `RandomApply`.

    Parameters
    ----------
    transforms : Iterable[Function]
        Transforms or functions of an image, also those of torchvision; at least one.
    p : float, default 0.5
        The probability, 0 to 1.
    """

    transforms: list[Transform]
    p: float
    def __init__(self, transforms: Iterable[Function], p: float = ...) -> None: ...

class RandomChoice(Transform):
    """Applies one of a list.

    The result is that of the transform.

    Called directly, it takes an image as a NumPy array of ``uint8`` and shape (height, width,
    3), or as a tensor of torch of shape (3, height, width), and returns the same layout.
    torchvision.transforms.v2 has it as `RandomChoice`.

    Parameters
    ----------
    transforms : Iterable[Function]
        Transforms or functions of an image, also those of torchvision; at least one.
    p : Sequence[float] | None, default None
        The weight of each transform, 0 or more; None if all are equally likely.
    """

    transforms: list[Transform]
    p: Any
    def __init__(self, transforms: Iterable[Function], p: Sequence[float] | None = ...) -> None: ...

class RandomOrder(Transform):
    """Applies a list in random order.

    The result is that of the transforms.

    Called directly, it takes an image as a NumPy array of ``uint8`` and shape (height, width,
    3), or as a tensor of torch of shape (3, height, width), and returns the same layout.
    torchvision.transforms.v2 has it as `RandomOrder`.

    Parameters
    ----------
    transforms : Iterable[Function]
        Transforms or functions of an image, also those of torchvision; at least one.
    """

    transforms: list[Transform]
    def __init__(self, transforms: Iterable[Function]) -> None: ...

class RandomRotation(Transform):
    """Rotates by a random angle.

    The result keeps the size, unless `expand` enlarges it.

    Called directly, it takes an image as a NumPy array of ``uint8`` and shape (height, width,
    3), or as a tensor of torch of shape (3, height, width), and returns the same layout.
    torchvision.transforms.v2 has it as `RandomRotation`.

    Parameters
    ----------
    degrees : float | Sequence[float]
        The angle, counter-clockwise: the largest in both directions, or bounds.
    interpolation : Interpolation, default 'nearest'
        The filter: nearest, bilinear or bicubic; also torchvision's `InterpolationMode` or Pillow's
        number.
    expand : bool, default False
        Whether the image is enlarged to hold all of its corners.
    center : Sequence[float] | None, default None
        The point that stays, (x, y) from the upper left corner; None for the middle.
    fill : float | Sequence[float] | None, default 0
        The colour outside the image: a number for all channels or (red, green, blue), 0 to 255;
        None for black.
    """

    degrees: Any
    interpolation: Any
    expand: bool
    center: Any
    fill: Any
    def __init__(
        self,
        degrees: float | Sequence[float],
        interpolation: Interpolation = ...,
        expand: bool = ...,
        center: Sequence[float] | None = ...,
        fill: float | Sequence[float] | None = ...,
    ) -> None: ...

class RandomAffine(Transform):
    """Rotates, shifts, scales and shears at random.

    The result keeps the size.

    Called directly, it takes an image as a NumPy array of ``uint8`` and shape (height, width,
    3), or as a tensor of torch of shape (3, height, width), and returns the same layout.
    torchvision.transforms.v2 has it as `RandomAffine`.

    Parameters
    ----------
    degrees : float | Sequence[float]
        The angle, clockwise: the largest in both directions, or bounds.
    translate : Sequence[float] | None, default None
        The largest shifts, as shares of width and height: 0 to 1; None for no shift.
    scale : Sequence[float] | None, default None
        Bounds of the factor of size, more than 0; None keeps the size.
    shear : float | Sequence[float] | None, default None
        The angle of shear in degrees: the largest along x, bounds along x, or bounds along x and
        along y as four numbers; None for no shear.
    interpolation : Interpolation, default 'nearest'
        The filter: nearest, bilinear or bicubic; also torchvision's `InterpolationMode` or Pillow's
        number.
    fill : float | Sequence[float] | None, default 0
        The colour outside the image: a number for all channels or (red, green, blue), 0 to 255;
        None for black.
    center : Sequence[float] | None, default None
        The point that stays, (x, y) from the upper left corner; None for the middle.
    """

    degrees: Any
    translate: Any
    scale: Any
    shear: Any
    interpolation: Any
    fill: Any
    center: Any
    def __init__(
        self,
        degrees: float | Sequence[float],
        translate: Sequence[float] | None = ...,
        scale: Sequence[float] | None = ...,
        shear: float | Sequence[float] | None = ...,
        interpolation: Interpolation = ...,
        fill: float | Sequence[float] | None = ...,
        center: Sequence[float] | None = ...,
    ) -> None: ...

class RandomPerspective(Transform):
    """Moves the corners inwards at random.

    The result keeps the size.

    Called directly, it takes an image as a NumPy array of ``uint8`` and shape (height, width,
    3), or as a tensor of torch of shape (3, height, width), and returns the same layout.
    torchvision.transforms.v2 has it as `RandomPerspective`.

    Parameters
    ----------
    distortion_scale : float, default 0.5
        The largest move of a corner, as a share of the way to the middle: 0 to 1.
    p : float, default 0.5
        The probability, 0 to 1.
    interpolation : Interpolation, default 'bilinear'
        The filter: nearest, bilinear or bicubic; also torchvision's `InterpolationMode` or Pillow's
        number.
    fill : float | Sequence[float] | None, default 0
        The colour outside the image: a number for all channels or (red, green, blue), 0 to 255;
        None for black.
    """

    distortion_scale: float
    p: float
    interpolation: Any
    fill: Any
    def __init__(
        self,
        distortion_scale: float = ...,
        p: float = ...,
        interpolation: Interpolation = ...,
        fill: float | Sequence[float] | None = ...,
    ) -> None: ...

class ElasticTransform(Transform):
    """Moves neighbouring pixels by similar random displacements.

    The result keeps the size.

    Called directly, it takes an image as a NumPy array of ``uint8`` and shape (height, width,
    3), or as a tensor of torch of shape (3, height, width), and returns the same layout.
    torchvision.transforms.v2 has it as `ElasticTransform`.

    Parameters
    ----------
    alpha : float | Sequence[float], default 50.0
        The size of displacements: one number, or one along x and one along y.
    sigma : float | Sequence[float], default 5.0
        The smoothness of displacements: standard deviations in pixels in the same forms, 0.001 to
        1000, or 0 for both.
    interpolation : Interpolation, default 'bilinear'
        The filter: nearest or bilinear.
    fill : float | Sequence[float] | None, default 0
        The colour outside the image: a number for all channels or (red, green, blue), 0 to 255;
        None for black.
    """

    alpha: Any
    sigma: Any
    interpolation: Any
    fill: Any
    def __init__(
        self,
        alpha: float | Sequence[float] = ...,
        sigma: float | Sequence[float] = ...,
        interpolation: Interpolation = ...,
        fill: float | Sequence[float] | None = ...,
    ) -> None: ...

class AutoAugment(Transform):
    """Applies a pair of changes that was found by search.

    One of 25 pairs; each change has a probability and a magnitude. The result keeps the size.

    Called directly, it takes an image as a NumPy array of ``uint8`` and shape (height, width,
    3), or as a tensor of torch of shape (3, height, width), and returns the same layout.
    torchvision.transforms.v2 has it as `AutoAugment`.

    Parameters
    ----------
    policy : Policy, default 'imagenet'
        The data set that the pairs were found on: imagenet, cifar10 or svhn, or torchvision's
        `AutoAugmentPolicy`.
    interpolation : Interpolation, default 'nearest'
        The filter: nearest, bilinear or bicubic; also torchvision's `InterpolationMode` or Pillow's
        number.
    fill : float | Sequence[float] | None, default None
        The colour outside the image: a number for all channels or (red, green, blue), 0 to 255;
        None for black.
    """

    policy: Any
    interpolation: Any
    fill: Any
    def __init__(
        self,
        policy: Policy = ...,
        interpolation: Interpolation = ...,
        fill: float | Sequence[float] | None = ...,
    ) -> None: ...

class RandAugment(Transform):
    """Applies several random changes of one magnitude.

    Each is one of 14. The result keeps the size.

    Called directly, it takes an image as a NumPy array of ``uint8`` and shape (height, width,
    3), or as a tensor of torch of shape (3, height, width), and returns the same layout.
    torchvision.transforms.v2 has it as `RandAugment`.

    Parameters
    ----------
    num_ops : int, default 2
        The number of changes, 0 to 64.
    magnitude : int, default 9
        The number of the magnitude, from 0 to `num_magnitude_bins` - 1.
    num_magnitude_bins : int, default 31
        The number of magnitudes, 2 to 65535.
    interpolation : Interpolation, default 'nearest'
        The filter: nearest, bilinear or bicubic; also torchvision's `InterpolationMode` or Pillow's
        number.
    fill : float | Sequence[float] | None, default None
        The colour outside the image: a number for all channels or (red, green, blue), 0 to 255;
        None for black.
    """

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
        interpolation: Interpolation = ...,
        fill: float | Sequence[float] | None = ...,
    ) -> None: ...

class TrivialAugmentWide(Transform):
    """Applies one random change of a random magnitude.

    It is one of 14, over wider ranges than those of `RandAugment`. The result keeps the size.

    Called directly, it takes an image as a NumPy array of ``uint8`` and shape (height, width,
    3), or as a tensor of torch of shape (3, height, width), and returns the same layout.
    torchvision.transforms.v2 has it as `TrivialAugmentWide`.

    Parameters
    ----------
    num_magnitude_bins : int, default 31
        The number of magnitudes, 2 to 65535.
    interpolation : Interpolation, default 'nearest'
        The filter: nearest, bilinear or bicubic; also torchvision's `InterpolationMode` or Pillow's
        number.
    fill : float | Sequence[float] | None, default None
        The colour outside the image: a number for all channels or (red, green, blue), 0 to 255;
        None for black.
    """

    num_magnitude_bins: int
    interpolation: Any
    fill: Any
    def __init__(
        self,
        num_magnitude_bins: int = ...,
        interpolation: Interpolation = ...,
        fill: float | Sequence[float] | None = ...,
    ) -> None: ...

class AugMix(Transform):
    """Mixes the image with the results of chains of random changes.

    The result keeps the size.

    Called directly, it takes an image as a NumPy array of ``uint8`` and shape (height, width,
    3), or as a tensor of torch of shape (3, height, width), and returns the same layout.
    torchvision.transforms.v2 has it as `AugMix`.

    Parameters
    ----------
    severity : int, default 3
        The magnitudes are the least ones of ten, this many: 1 to 10.
    mixture_width : int, default 3
        The number of chains, 1 to 16.
    chain_depth : int, default -1
        The number of changes in a chain, to 16; 0 or less draws 1 to 3 for each chain.
    alpha : float, default 1.0
        The parameter of the distributions of weights, 0.000001 to 1000000; small ones are less
        even.
    all_ops : bool, default True
        Whether brightness, colour, contrast and sharpness change too.
    interpolation : Interpolation, default 'bilinear'
        The filter: nearest or bilinear.
    fill : float | Sequence[float] | None, default None
        The colour outside the image: a number for all channels or (red, green, blue), 0 to 255;
        None for black.
    """

    severity: int
    mixture_width: int
    chain_depth: int
    alpha: float
    all_ops: bool
    interpolation: Any
    fill: Any
    def __init__(
        self,
        severity: int = ...,
        mixture_width: int = ...,
        chain_depth: int = ...,
        alpha: float = ...,
        all_ops: bool = ...,
        interpolation: Interpolation = ...,
        fill: float | Sequence[float] | None = ...,
    ) -> None: ...

class ToFloat(Transform):
    """Maps 0 to 255 to 0 to 1.

    The result keeps the size and has floats, `float32` by default.

    Called directly, it takes an image as a NumPy array of ``uint8`` and shape (height, width,
    3), or as a tensor of torch of shape (3, height, width), and returns the same layout.
    torchvision.transforms.v2 has it as `ToTensor`, or `ToDtype(torch.float32, scale=True)`.
    """

    def __init__(self) -> None: ...

class Normalize(Transform):
    """Subtracts a mean and divides by a deviation; ImageNet's by default.

    Takes the floats of `ToTensor`, which it adds where it is missing. The result keeps the size
    and has floats, `float32` by default.

    Called directly, it takes an image as a NumPy array of ``uint8`` and shape (height, width,
    3), or as a tensor of torch of shape (3, height, width), and returns the same layout.
    torchvision.transforms.v2 has it as `Normalize`.

    Parameters
    ----------
    mean : float | Sequence[float], default (0.485, 0.456, 0.406)
        The mean of each channel, or one for all, for values from 0 to 1.
    std : float | Sequence[float], default (0.229, 0.224, 0.225)
        The standard deviation of each channel, or one for all: more than 0.
    """

    mean: Any
    std: Any
    def __init__(
        self,
        mean: float | Sequence[float] = ...,
        std: float | Sequence[float] = ...,
    ) -> None: ...

class MixUp(BatchTransform):
    """Blends the images of a batch.

    Each is blended with the one before it, the first with the last. The result keeps the size;
    its floats come after `ToTensor`.

    ``batch['image']`` keeps its shape and type: (batch, channels, height, width), or (batch,
    height, width, channels). torchvision.transforms.v2 has it as `MixUp`.

    Parameters
    ----------
    alpha : float, default 1.0
        Both parameters of the Beta distribution of the weight: more than 0.
    num_classes : int | None, default None
        The number of classes of `batch["soft_label"]`, of shape (batch, classes) and `float32`;
        required where samples have labels.
    p : float, default 1.0
        The probability, 0 to 1.
    """

    alpha: float
    num_classes: Any
    p: float
    def __init__(
        self,
        alpha: float = ...,
        num_classes: int | None = ...,
        p: float = ...,
    ) -> None: ...

class CutMix(BatchTransform):
    """Puts a rectangle of another image into each of a batch.

    The other one is the image before it, for the first the last. The result keeps the size.

    ``batch['image']`` keeps its shape and type: (batch, channels, height, width), or (batch,
    height, width, channels). torchvision.transforms.v2 has it as `CutMix`.

    Parameters
    ----------
    alpha : float, default 1.0
        Both parameters of the Beta distribution of the area that stays: more than 0.
    num_classes : int | None, default None
        The number of classes of `batch["soft_label"]`, of shape (batch, classes) and `float32`;
        required where samples have labels.
    p : float, default 1.0
        The probability, 0 to 1.
    """

    alpha: float
    num_classes: Any
    p: float
    def __init__(
        self,
        alpha: float = ...,
        num_classes: int | None = ...,
        p: float = ...,
    ) -> None: ...

class Mosaic(BatchTransform):
    """Makes each image of a batch of parts of four.

    They meet at a random point in the middle half, as in `YOLOv4` (Bochkovskiy et al., 2020).
    The result keeps the size.

    ``batch['image']`` keeps its shape and type: (batch, channels, height, width), or (batch,
    height, width, channels). torchvision does not have it.

    Parameters
    ----------
    num_classes : int | None, default None
        The number of classes of `batch["soft_label"]`, of shape (batch, classes) and `float32`;
        required where samples have labels.
    p : float, default 1.0
        The probability, 0 to 1.
    """

    num_classes: Any
    p: float
    def __init__(self, num_classes: int | None = ..., p: float = ...) -> None: ...

ToTensor = ToFloat
ImageNetNormalize = Normalize

def manual_seed(seed: int) -> None: ...
def dtype_name(dtype: Dtype) -> str: ...
def functions(transform: Any) -> dict[str, Callable[..., Any]]: ...
def moving(transform: Any) -> list[Lambda]: ...
def recipe(
    transform: Function | Sequence[Function] | Views | None,
    *,
    dtype: Dtype | None = ...,
    channels_last: bool | None = ...,
    decode_margin: float | None = ...,
    decode_mode: Literal["exact", "fast", "nvjpeg"] | None = ...,
    parity: Literal["pil", "tensor"] | None = ...,
    channels: int | None = ...,
    pixels: Dtype | None = ...,
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
