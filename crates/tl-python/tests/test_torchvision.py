"""Every public transform of torchvision.transforms.v2 is converted, or refused by its name."""

from __future__ import annotations

import contextlib
import inspect

import numpy as np
import pytest
import turboloader as tl
from turboloader import transforms as T  # noqa: N812
from turboloader._table import TABLE

torch = pytest.importorskip("torch")
v2 = pytest.importorskip("torchvision.transforms.v2")
from torchvision.transforms import InterpolationMode  # noqa: E402

pytestmark = pytest.mark.torch

NEAREST, BILINEAR = InterpolationMode.NEAREST, InterpolationMode.BILINEAR
BICUBIC = InterpolationMode.BICUBIC

# No argument has its default, so that one that is left out is noticed; None of each kind of image.
ARGUMENTS = {
    "AugMix": {
        "severity": 5,
        "mixture_width": 2,
        "chain_depth": 2,
        "alpha": 0.5,
        "all_ops": False,
        "interpolation": NEAREST,
        "fill": 5,
    },
    "AutoAugment": {"policy": "svhn", "interpolation": BILINEAR, "fill": 5},
    "CenterCrop": {"size": [3, 4]},
    "ColorJitter": {
        "brightness": (0.9, 1.2),
        "contrast": (0.2, 0.9),
        "saturation": (0.7, 1.4),
        "hue": (-0.05, 0.1),
    },
    "ElasticTransform": {
        "alpha": [30.0, 20.0],
        "sigma": [4.0, 3.0],
        "interpolation": NEAREST,
        "fill": 4,
    },
    "FiveCrop": {"size": [3, 4]},
    "GaussianBlur": {"kernel_size": [3, 5], "sigma": (0.5, 1.5)},
    "GaussianNoise": {"mean": 0.1, "sigma": 0.2, "clip": False},
    "Grayscale": {"num_output_channels": 3},
    "Normalize": {"mean": [0.1, 0.2, 0.3], "std": [0.4, 0.5, 0.6]},
    "Pad": {"padding": [1, 2, 3, 4], "fill": 7, "padding_mode": "reflect"},
    "RandAugment": {
        "num_ops": 3,
        "magnitude": 5,
        "num_magnitude_bins": 11,
        "interpolation": BILINEAR,
        "fill": 5,
    },
    "RandomAdjustSharpness": {"sharpness_factor": 2.5, "p": 0.3},
    "RandomAffine": {
        "degrees": (10, 20),
        "translate": (0.1, 0.2),
        "scale": (0.5, 1.5),
        "shear": (1, 2, 3, 4),
        "interpolation": BILINEAR,
        "fill": 5,
        "center": [1, 2],
    },
    "RandomApply": {"transforms": "two", "p": 0.3},
    "RandomAutocontrast": {"p": 0.3},
    "RandomChannelPermutation": {},
    "RandomChoice": {"transforms": "two", "p": [0.25, 0.75]},
    "RandomCrop": {
        "size": [3, 4],
        "padding": [1, 2, 3, 4],
        "pad_if_needed": True,
        "fill": 9,
        "padding_mode": "edge",
    },
    "RandomEqualize": {"p": 0.3},
    "RandomErasing": {"p": 0.3, "scale": (0.1, 0.2), "ratio": (0.5, 2.0), "value": "random"},
    "RandomGrayscale": {"p": 0.3},
    "RandomHorizontalFlip": {"p": 0.3},
    "RandomInvert": {"p": 0.3},
    "RandomOrder": {"transforms": "two"},
    "RandomPerspective": {
        "distortion_scale": 0.3,
        "p": 0.3,
        "interpolation": NEAREST,
        "fill": 4,
    },
    "RandomPhotometricDistort": {
        "brightness": (0.8, 1.1),
        "contrast": (0.7, 1.2),
        "saturation": (0.6, 1.3),
        "hue": (-0.1, 0.1),
        "p": 0.3,
    },
    "RandomPosterize": {"bits": 3, "p": 0.3},
    "RandomResizedCrop": {
        "size": [3, 4],
        "scale": (0.1, 0.9),
        "ratio": (0.5, 1.5),
        "interpolation": NEAREST,
        "antialias": False,
    },
    "RandomRotation": {
        "degrees": (10, 20),
        "interpolation": BILINEAR,
        "expand": True,
        "center": [1, 2],
        "fill": 5,
    },
    "RandomShortestSize": {
        "min_size": [3, 4],
        "max_size": 9,
        "interpolation": BICUBIC,
        "antialias": False,
    },
    "RandomSolarize": {"threshold": 99, "p": 0.3},
    "RandomVerticalFlip": {"p": 0.3},
    "RandomZoomOut": {"fill": 3, "side_range": (1.5, 2.5), "p": 0.3},
    "Resize": {"size": [7], "interpolation": BICUBIC, "max_size": 9, "antialias": False},
    "ScaleJitter": {
        "target_size": (8, 9),
        "scale_range": (0.5, 1.5),
        "interpolation": BICUBIC,
        "antialias": False,
    },
    "TenCrop": {"size": [3, 4], "vertical_flip": True},
    "TrivialAugmentWide": {"num_magnitude_bins": 11, "interpolation": BILINEAR, "fill": 5},
}

# What says what images are made of, which they are here anyway.
FORMS = {
    "ConvertImageDtype": lambda: v2.ConvertImageDtype(torch.float32),
    "Identity": lambda: v2.Identity(),
    "PILToTensor": lambda: v2.PILToTensor(),
    "RGB": lambda: v2.RGB(),
    "ToDtype": lambda: v2.ToDtype(torch.float32, scale=True),
    "ToImage": lambda: v2.ToImage(),
    "ToPILImage": lambda: v2.ToPILImage(),
    "ToPureTensor": lambda: v2.ToPureTensor(),
    "ToTensor": lambda: v2.ToTensor(),
}

REFUSED = {
    "ClampBoundingBoxes": lambda: v2.ClampBoundingBoxes(),
    "ClampKeyPoints": lambda: v2.ClampKeyPoints(),
    "ConvertBoundingBoxFormat": lambda: v2.ConvertBoundingBoxFormat("XYWH"),
    "CutMix": lambda: v2.CutMix(num_classes=3),
    "JPEG": lambda: v2.JPEG(50),
    "Lambda": lambda: v2.Lambda(abs),
    "LinearTransformation": lambda: v2.LinearTransformation(torch.eye(3), torch.zeros(3)),
    "MixUp": lambda: v2.MixUp(num_classes=3),
    "RandomIoUCrop": lambda: v2.RandomIoUCrop(),
    "RandomResize": lambda: v2.RandomResize(3, 9),
    "SanitizeBoundingBoxes": lambda: v2.SanitizeBoundingBoxes(),
    "SanitizeKeyPoints": lambda: v2.SanitizeKeyPoints(),
    "SetClampingMode": lambda: v2.SetClampingMode(None),
    "UniformTemporalSubsample": lambda: v2.UniformTemporalSubsample(2),
}

SHAPES = {"Compose", "Transform"}

# What only says where torch puts the result.
PLACES = {"inplace"}


def public():
    found = {name: getattr(v2, name) for name in dir(v2) if not name.startswith("_")}
    return {
        name
        for name, value in found.items()
        if inspect.isclass(value) and issubclass(value, v2.Transform)
    }


def theirs(name, arguments):
    arguments = dict(arguments)
    if name == "AutoAugment":
        arguments["policy"] = v2.AutoAugmentPolicy(arguments["policy"])
    if "transforms" in arguments:
        arguments["transforms"] = [v2.RandomInvert(p=0.2), v2.RandomEqualize(p=0.4)]
    return getattr(v2, name)(**arguments)


def ours(name, arguments):
    arguments = {
        name: value.value if isinstance(value, InterpolationMode) else value
        for name, value in arguments.items()
    }
    if "transforms" in arguments:
        arguments["transforms"] = [T.RandomInvert(p=0.2), T.RandomEqualize(p=0.4)]
    return getattr(T, name)(**arguments)


def test_no_public_transform_is_forgotten():
    listed = [set(ARGUMENTS), set(FORMS), set(REFUSED), SHAPES]
    assert set().union(*listed) == public()
    assert sum(map(len, listed)) == len(public())
    # Ours that torchvision has are all among those that are converted.
    assert set(TABLE) & public() == set(ARGUMENTS)


@pytest.mark.parametrize("name", sorted(ARGUMENTS))
def test_every_parameter_is_converted(name):
    given = ARGUMENTS[name]
    signature = inspect.signature(getattr(v2, name).__init__).parameters
    defaults = {name: parameter.default for name, parameter in signature.items()}
    assert set(given) == set(defaults) - {"self"} - PLACES
    assert not [key for key, value in given.items() if value == defaults[key]]
    if name == "Grayscale":
        assert defaults["num_output_channels"] != given["num_output_channels"]
    converted = T.from_torchvision(theirs(name, given))
    before, after = [T.Resize([20, 20])], [T.Resize([8, 8])]
    if name in ("RandomErasing", "Normalize"):
        before, after = [T.Resize([20, 20]), T.ToTensor()], []
    if name in ("FiveCrop", "TenCrop"):
        after = []
    made = T.recipe([*before, converted, *after])
    assert made == T.recipe([*before, ours(name, given), *after])
    assert made != T.recipe([*before, *after])


@pytest.mark.parametrize("name", sorted(FORMS))
def test_what_says_the_form_of_images_is_done_already(name):
    with pytest.warns(UserWarning) if name == "ToTensor" else contextlib.nullcontext():
        transform = FORMS[name]()
    floats = name in ("ConvertImageDtype", "ToDtype", "ToTensor")
    expected = [{"op": "to_float"}] if floats else []
    assert T.from_torchvision(transform).operations() == expected


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_what_there_is_not_is_refused_by_name(name):
    made = REFUSED[name]()
    for transform in (made, v2.Compose([v2.Resize(8), made]), v2.RandomApply([made])):
        with pytest.raises(tl.UnsupportedTransformError, match=rf"\b{name}\("):
            T.from_torchvision(transform)


@pytest.mark.parametrize(
    ("transform", "message"),
    [
        ("v2.Lambda(abs)", "no counterpart here: pass its function"),
        ("v2.Pad(1, fill={torch.Tensor: 3})", "Pad.* has a fill for each kind"),
        ("v2.ToDtype({torch.Tensor: torch.float32})", "ToDtype.* a type for each kind"),
        ("v2.Grayscale()", "three channels"),
        ("v2.ToDtype(torch.float64, scale=True)", "float64"),
        ("v2.ToDtype(torch.float32)", "pass scale=True"),
        ("v2.ToPILImage('L')", "ToPILImage.* three channels"),
        ("v2.Compose([FLOATS, v2.ToDtype(torch.uint8, scale=True)])", "uint8.* after floats"),
        ("v2.Compose([FLOATS, v2.ConvertImageDtype(torch.uint8)])", "uint8.* after floats"),
    ],
)
def test_parameters_that_cannot_be_had_are_refused(transform, message):
    with pytest.raises(tl.RecipeError, match=message):
        floats = v2.ToDtype(torch.float32, scale=True)
        T.from_torchvision(eval(transform, {"v2": v2, "torch": torch, "FLOATS": floats}))


def test_only_torchvision_has_its_transforms():
    identity = v2.Compose([v2.Resize(4), torch.nn.Identity(), v2.ToPILImage("RGB")])
    assert T.from_torchvision(identity) == T.Compose([T.Resize([4])])
    own = type("ToTensor", (torch.nn.Module,), {})()
    with pytest.raises(tl.UnsupportedTransformError, match=r"ToTensor.* not one of torchvision's"):
        T.from_torchvision(v2.Compose([v2.Resize(4), own]))


def test_normalize_broadcasts_one_number():
    v1 = pytest.importorskip("torchvision.transforms")
    expected = T.Normalize([0.5] * 3, [0.25] * 3)
    for mean, std in ((0.5, 0.25), ((0.5,), [0.25])):
        assert T.from_torchvision(v1.Normalize(mean, std)) == expected


def test_paddings_of_both_versions_are_the_same():
    v1 = pytest.importorskip("torchvision.transforms")
    for padding, whole in ((2, [2, 2, 2, 2]), ([1, 2], [1, 2, 1, 2]), ([1, 2, 3, 4],) * 2):
        said, full = (T.RandomCrop([4, 4], padding=one) for one in (padding, whole))
        assert T.from_torchvision(v1.RandomCrop(4, padding=padding)) == said
        assert T.from_torchvision(v2.RandomCrop(4, padding=padding)) == full


GREY = [
    ("RandomInvert", {"p": 1.0}),
    ("RandomPosterize", {"bits": 3, "p": 1.0}),
    ("RandomSolarize", {"threshold": 100, "p": 1.0}),
    ("RandomAutocontrast", {"p": 1.0}),
    ("RandomEqualize", {"p": 1.0}),
    ("RandomAdjustSharpness", {"sharpness_factor": 2.0, "p": 1.0}),
    ("GaussianBlur", {"kernel_size": 5, "sigma": (1.3, 1.3)}),
    ("Pad", {"padding": 3, "fill": 7}),
    ("CenterCrop", {"size": 20}),
    ("Resize", {"size": (20, 33)}),
    ("RandomRotation", {"degrees": (30, 30)}),
    ("ColorJitter", {"brightness": (1.3, 1.3)}),
    ("ColorJitter", {"contrast": (1.4, 1.4)}),
    ("ColorJitter", {"saturation": (1.7, 1.7)}),
    ("ColorJitter", {"hue": (0.2, 0.2)}),
    ("RandomVerticalFlip", {"p": 1.0}),
]


@pytest.mark.parametrize(("name", "settings"), GREY)
def test_grey_images_are_those_of_mode_l(name: str, settings: dict) -> None:
    """What leaves nothing to chance does to one channel what torchvision does to mode L."""
    from PIL import Image

    slope = (np.add.outer(np.arange(37), np.arange(45)) * 2 % 256).astype(np.uint8)
    noise = np.random.default_rng(1).integers(0, 256, (37, 45), dtype=np.uint8)
    made = T.recipe(getattr(T, name)(**settings), channels=1)
    for grey in (slope, noise):
        pixels = np.repeat(grey[..., None], 3, 2).tobytes()
        found = made.apply(pixels, (45, 37), (0, 0, 0), {}).numpy()
        expected = np.asarray(getattr(v2, name)(**settings)(Image.fromarray(grey)))
        assert np.array_equal(found[..., 0], expected)
