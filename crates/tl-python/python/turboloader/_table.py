"""The transforms: their parameters in torchvision's order, with its defaults.

Everything else about a transform is in the native library, which refuses what it does not know.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any, Final


class Required:
    """The default of a parameter that has none."""

    def __repr__(self) -> str:
        return "<required>"


REQUIRED: Final = Required()

_FILTERED: Final[dict[str, Any]] = {"interpolation": "bilinear", "antialias": True}
_WARPED: Final[dict[str, Any]] = {"interpolation": "nearest", "fill": 0}

TABLE: Final[dict[str, tuple[str, dict[str, Any]]]] = {
    "RandomResizedCrop": (
        "Crop a random part of random aspect ratio and resize it.",
        {"size": REQUIRED, "scale": (0.08, 1.0), "ratio": (3 / 4, 4 / 3), **_FILTERED},
    ),
    "Resize": (
        "Resize the image; one number is the shorter side.",
        {"size": REQUIRED, "interpolation": "bilinear", "max_size": None, "antialias": True},
    ),
    "CenterCrop": ("Cut out the middle.", {"size": REQUIRED}),
    "RandomCrop": (
        "Cut out a random part of one size.",
        {
            "size": REQUIRED,
            "padding": None,
            "pad_if_needed": False,
            "fill": 0,
            "padding_mode": "constant",
        },
    ),
    "FiveCrop": ("Cut out the corners and the middle: five images.", {"size": REQUIRED}),
    "TenCrop": (
        "Cut out the corners and the middle, of the mirrored image too: ten images.",
        {"size": REQUIRED, "vertical_flip": False},
    ),
    "RandomShortestSize": (
        "Resize so that the shorter side has one of several lengths.",
        {"min_size": REQUIRED, "max_size": None, **_FILTERED},
    ),
    "ScaleJitter": (
        "Resize by a random factor.",
        {"target_size": REQUIRED, "scale_range": (0.1, 2.0), **_FILTERED},
    ),
    "Pad": ("Add a border.", {"padding": REQUIRED, "fill": 0, "padding_mode": "constant"}),
    "RandomZoomOut": (
        "Put the image at a random place on a larger canvas at random.",
        {"fill": 0, "side_range": (1.0, 4.0), "p": 0.5},
    ),
    "RandomHorizontalFlip": ("Mirror left and right at random.", {"p": 0.5}),
    "RandomVerticalFlip": ("Mirror top and bottom at random.", {"p": 0.5}),
    "ColorJitter": (
        "Change brightness, contrast, saturation and hue at random.",
        {"brightness": None, "contrast": None, "saturation": None, "hue": None},
    ),
    "Grayscale": (
        "Make the image grey; it keeps three channels, which torchvision's default does not.",
        {"num_output_channels": 3},
    ),
    "RandomGrayscale": ("Make the image grey at random.", {"p": 0.1}),
    "RandomInvert": ("Invert the pixels at random.", {"p": 0.5}),
    "RandomPosterize": (
        "Keep the upper bits of the pixels at random.",
        {"bits": REQUIRED, "p": 0.5},
    ),
    "RandomSolarize": ("Invert bright pixels at random.", {"threshold": REQUIRED, "p": 0.5}),
    "RandomAdjustSharpness": (
        "Sharpen or blur at random.",
        {"sharpness_factor": REQUIRED, "p": 0.5},
    ),
    "RandomAutocontrast": ("Stretch each channel at random.", {"p": 0.5}),
    "RandomEqualize": ("Make each channel's histogram even at random.", {"p": 0.5}),
    "RandomChannelPermutation": ("Put the channels in any order.", {}),
    "RandomPhotometricDistort": (
        "Change colours as for SSD.",
        {
            "brightness": (0.875, 1.125),
            "contrast": (0.5, 1.5),
            "saturation": (0.5, 1.5),
            "hue": (-0.05, 0.05),
            "p": 0.5,
        },
    ),
    "GaussianBlur": (
        "Blur with a Gaussian of random width.",
        {"kernel_size": REQUIRED, "sigma": (0.1, 2.0)},
    ),
    "GaussianNoise": ("Add normal noise.", {"mean": 0.0, "sigma": 0.1, "clip": True}),
    "RandomErasing": (
        "Replace a random rectangle.",
        {"p": 0.5, "scale": (0.02, 0.33), "ratio": (0.3, 3.3), "value": 0.0},
    ),
    "GridMask": (
        "Erase a grid.",
        {
            "p": 0.8,
            "distance": (96, 224),
            "ratio": 0.6,
            "rotate": 360,
            "mode": 1,
            "value": 0.0,
        },
    ),
    "RandomApply": ("Do transforms with a probability.", {"transforms": REQUIRED, "p": 0.5}),
    "RandomChoice": ("Do one transform of several.", {"transforms": REQUIRED, "p": None}),
    "RandomOrder": ("Do transforms in any order.", {"transforms": REQUIRED}),
    "RandomRotation": (
        "Rotate by a random angle.",
        {
            "degrees": REQUIRED,
            "interpolation": "nearest",
            "expand": False,
            "center": None,
            "fill": 0,
        },
    ),
    "RandomAffine": (
        "Rotate, shift, scale and shear at random.",
        {
            "degrees": REQUIRED,
            "translate": None,
            "scale": None,
            "shear": None,
            **_WARPED,
            "center": None,
        },
    ),
    "RandomPerspective": (
        "Move the corners inwards at random.",
        {"distortion_scale": 0.5, "p": 0.5, "interpolation": "bilinear", "fill": 0},
    ),
    "ElasticTransform": (
        "Move neighbouring pixels by similar random displacements.",
        {"alpha": 50.0, "sigma": 5.0, "interpolation": "bilinear", "fill": 0},
    ),
    "AutoAugment": (
        "Do a pair of transforms that was found by search.",
        {"policy": "imagenet", "interpolation": "nearest", "fill": None},
    ),
    "RandAugment": (
        "Do transforms of one magnitude.",
        {
            "num_ops": 2,
            "magnitude": 9,
            "num_magnitude_bins": 31,
            "interpolation": "nearest",
            "fill": None,
        },
    ),
    "TrivialAugmentWide": (
        "Apply one transform at a random magnitude.",
        {"num_magnitude_bins": 31, "interpolation": "nearest", "fill": None},
    ),
    "AugMix": (
        "Mix the image with the results of chains of transforms.",
        {
            "severity": 3,
            "mixture_width": 3,
            "chain_depth": -1,
            "alpha": 1.0,
            "all_ops": True,
            "interpolation": "bilinear",
            "fill": None,
        },
    ),
    "ToFloat": ("Map 0 to 255 to 0 to 1.", {}),
    "Normalize": (
        "Subtract a mean and divide by a deviation; ImageNet's by default.",
        {"mean": (0.485, 0.456, 0.406), "std": (0.229, 0.224, 0.225)},
    ),
}

BATCH_TABLE: Final[dict[str, tuple[str, dict[str, Any]]]] = {
    "MixUp": ("Blend the images of a batch.", {"alpha": 1.0, "num_classes": None, "p": 1.0}),
    "CutMix": (
        "Put a rectangle of another image into each of a batch.",
        {"alpha": 1.0, "num_classes": None, "p": 1.0},
    ),
    "Mosaic": ("Make each image of a batch of parts of four.", {"num_classes": None, "p": 1.0}),
}


def signature_of(parameters: Mapping[str, Any]) -> inspect.Signature:
    """Return the signature of a row."""
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    empty = inspect.Parameter.empty
    return inspect.Signature(
        [
            inspect.Parameter(name, kind, default=empty if default is REQUIRED else default)
            for name, default in parameters.items()
        ]
    )
