from __future__ import annotations

import inspect
import pickle
import sys

import numpy as np
import pytest
import turboloader as tl
from conftest import image
from turboloader import transforms as T  # noqa: N812
from turboloader._table import BATCH_TABLE, TABLE

# Arguments for what has no default.
NEEDED = {
    "CenterCrop": {"size": 4},
    "FiveCrop": {"size": 4},
    "GaussianBlur": {"kernel_size": 3},
    "Pad": {"padding": 2},
    "RandomAdjustSharpness": {"sharpness_factor": 2.0},
    "RandomAffine": {"degrees": 10.0},
    "RandomApply": {"transforms": [T.RandomInvert()]},
    "RandomChoice": {"transforms": [T.RandomInvert()]},
    "RandomCrop": {"size": 4},
    "RandomOrder": {"transforms": [T.RandomInvert()]},
    "RandomPosterize": {"bits": 3},
    "RandomResizedCrop": {"size": 4},
    "RandomRotation": {"degrees": 10.0},
    "RandomShortestSize": {"min_size": [4]},
    "RandomSolarize": {"threshold": 100.0},
    "Resize": {"size": 4},
    "ScaleJitter": {"target_size": (8, 8)},
    "TenCrop": {"size": 4},
}


@pytest.mark.parametrize("name", TABLE)
def test_every_class_works_on_an_image(name):
    transform = getattr(T, name)(**NEEDED.get(name, {}))
    pixels = image(0, height=64, width=80)
    once = transform(pixels, seed=1, sample=2)
    np.testing.assert_array_equal(once, transform(pixels, seed=1, sample=2))
    assert once.dtype == (np.float32 if name in ("ToFloat", "Normalize") else np.uint8)
    assert once.shape[-1] == 3
    assert eval(repr(transform), {**vars(T)}) == transform
    assert pickle.loads(pickle.dumps(transform)) == transform


def test_signatures_are_those_of_the_table():
    signature = inspect.signature(T.RandomResizedCrop)
    assert list(signature.parameters) == ["size", "scale", "ratio", "interpolation", "antialias"]
    assert signature.parameters["size"].default is inspect.Parameter.empty
    assert T.RandomResizedCrop(8, (0.5, 1.0)).parameters["scale"] == (0.5, 1.0)
    with pytest.raises(TypeError, match="RandomResizedCrop: missing a required argument: 'size'"):
        T.RandomResizedCrop()
    with pytest.raises(TypeError, match="sise"):
        T.Resize(3, sise=3)


@pytest.mark.parametrize("name", [*TABLE, *BATCH_TABLE])
def test_docstrings_have_each_parameter_with_its_default(name):
    document = inspect.getdoc(getattr(T, name))
    summary, result, images, *rest = document.split("\n\n")
    assert summary.endswith(".") and "The result " in result.replace("\n", " ")
    assert "shape" in images and "torchvision" in images
    parameters = inspect.signature(getattr(T, name)).parameters.values()
    assert len(rest) == bool(parameters)
    lines = document.splitlines()
    for parameter in parameters:
        place = next(i for i, line in enumerate(lines) if line.startswith(f"{parameter.name} : "))
        assert len(lines[place + 1].strip()) > 12
        assert (", default " in lines[place]) == (parameter.default is not inspect.Parameter.empty)
    assert max(map(len, lines)) <= 96


def test_flips_mirror():
    pixels = image(1)
    np.testing.assert_array_equal(T.RandomHorizontalFlip(p=1)(pixels), pixels[:, ::-1])
    np.testing.assert_array_equal(T.RandomVerticalFlip(p=1)(pixels), pixels[::-1])
    np.testing.assert_array_equal(T.RandomHorizontalFlip(p=0)(pixels), pixels)
    np.testing.assert_array_equal(T.Pad(2)(pixels)[2:-2, 2:-2], pixels)
    np.testing.assert_array_equal(T.RandomInvert(p=1)(pixels), 255 - pixels)


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("RandomCrop", {"size": 8, "padding": 2}),
        ("Pad", {"padding": 2}),
        ("RandomZoomOut", {"p": 1.0}),
        ("RandomRotation", {"degrees": 30}),
        ("RandomAffine", {"degrees": 30}),
        ("RandomPerspective", {"p": 1.0}),
        ("ElasticTransform", {}),
    ],
)
def test_no_fill_is_black(name, parameters):
    # Without zeros, and with a seed: some draws turn an image so little that nothing is filled.
    pixels = np.maximum(image(1), 1)
    filled = (getattr(T, name)(**parameters, fill=fill) for fill in (0, None))
    black, none = (transform(pixels, seed=4, sample=3) for transform in filled)
    assert (black == 0).any()
    np.testing.assert_array_equal(none, black)


def test_normalising_is_arithmetic():
    pixels = image(2)
    made = (T.ToTensor() | T.Normalize(mean=[0.5, 0.25, 0.0], std=[0.5, 1.0, 2.0]))(pixels)
    scaled = pixels.astype(np.float32) * np.float32(1 / 255)
    expected = (scaled - np.float32([0.5, 0.25, 0])) / np.float32([0.5, 1, 2])
    np.testing.assert_array_equal(made, expected)
    np.testing.assert_array_equal(T.Normalize([0.5, 0.25, 0.0], [0.5, 1.0, 2.0])(pixels), expected)


def test_views_come_first():
    pixels = image(3, height=20, width=30)
    corners = T.FiveCrop(4)(pixels)
    assert corners.shape == (5, 4, 4, 3)
    np.testing.assert_array_equal(corners[0], pixels[:4, :4])
    np.testing.assert_array_equal(corners[3], pixels[-4:, -4:])


def test_draws_follow_the_seed():
    crop = T.RandomCrop(4)
    pixels = image(4, height=50, width=50)
    T.manual_seed(5)
    first = [crop(pixels) for _ in range(3)]
    T.manual_seed(5)
    for before in first:
        np.testing.assert_array_equal(crop(pixels), before)
    assert not np.array_equal(first[0], first[1])
    np.testing.assert_array_equal(crop(pixels, seed=5, sample=1), first[1])
    T.manual_seed(np.int64(-1))
    np.testing.assert_array_equal(crop(pixels), crop(pixels, seed=(1 << 64) - 1, sample=0))
    with pytest.raises(TypeError):
        T.manual_seed("5")


FORKS = """
import json, os, sys
import numpy as np
from turboloader import transforms as T

pixels = np.arange(300_000, dtype=np.uint32).astype(np.uint8).reshape(100, 1000, 3)

def drawn():
    return [int(T.RandomCrop(1)(pixels).sum()) for _ in range(8)]

def forked(work):
    reading, writing = os.pipe()
    if os.fork() == 0:
        os.write(writing, json.dumps(work()).encode())
        os._exit(0)
    os.wait()
    return json.loads(os.read(reading, 1000))

if sys.argv[1]:
    T.manual_seed(int(sys.argv[1]))
else:
    drawn()
children = [forked(drawn), forked(drawn), forked(lambda: forked(drawn))]
print(json.dumps([*children, drawn()]))
"""


@pytest.mark.parametrize(("seed", "is_repeated"), [("5", True), ("", False)])
def test_forked_processes_draw_each_their_own(run, seed, is_repeated):
    first, second = run([[sys.executable, "-c", FORKS, seed]] * 2)
    assert len({tuple(drawn) for drawn in first}) == 4
    assert (first == second) is is_repeated


def test_a_loader_does_what_the_transform_does_alone(data):
    crop = T.RandomResizedCrop(4)
    loader = tl.DataLoader(data, batch_size=100, transform=crop, seed=9)
    loader.set_epoch(2)
    images = next(iter(loader))["image"].numpy()
    for index in (0, 17, 99):
        np.testing.assert_array_equal(
            images[index], crop(image(index), seed=9, epoch=2, sample=index)
        )


def test_what_cannot_be_is_named():
    with pytest.raises(tl.RecipeError, match="scale"):
        T.ToDtype("float32")
    with pytest.raises(tl.RecipeError, match="int32"):
        T.ToDtype(np.int32)
    with pytest.raises(tl.RecipeError, match="size"):
        T.recipe(T.Resize(0))
    with pytest.raises(tl.RecipeError):
        T.recipe([T.ToTensor(), T.Resize(4)])
    with pytest.raises(TypeError, match="expected \\(height, width, 3\\) and uint8"):
        T.Resize(4)(np.zeros((4, 4)))
    with pytest.raises(TypeError, match="neither a transform"):
        T.Compose([3])


class Foreign:
    """A class that pretends to be of torchvision."""

    def __init__(self, name, module="torchvision.transforms.v2", **attributes):
        self.__dict__.update(attributes)
        self.__class__ = type(name, (Foreign,), {"__module__": module})


def test_transforms_of_torchvision_are_converted():
    composed = Foreign(
        "Compose",
        transforms=[
            Foreign("ToImage"),
            Foreign("Resize", size=[256], interpolation="bilinear", max_size=None, antialias=True),
            Foreign("ColorJitter", brightness=(0.6, 1.4), contrast=None, saturation=None, hue=None),
            Foreign("ToDtype", dtype="float32", scale=True),
            Foreign("Normalize", mean=[0.5] * 3, std=[0.5] * 3, inplace=False),
        ],
    )
    expected = [
        T.Resize(256),
        T.ColorJitter(brightness=(0.6, 1.4)),
        T.ToTensor(),
        T.Normalize([0.5] * 3, [0.5] * 3),
    ]
    assert T.recipe(T.from_torchvision(composed)) == T.recipe(expected)


NAMED = (*TABLE, "Compose", "ConvertImageDtype", "Identity", "PILToTensor", "RGB", "ToDtype")
NAMED += ("ToImage", "ToPILImage", "ToPureTensor", "ToTensor")


@pytest.mark.parametrize("name", NAMED)
def test_only_torchvision_has_its_transforms(name):
    for module in ("mine", "torchvisionary.transforms", "references.torchvision"):
        with pytest.raises(tl.UnsupportedTransformError, match="not one of torchvision's"):
            T.from_torchvision(Foreign(name, module=module, transforms=[], mode=None))


def test_pixels_do_not_become_uint8_again():
    narrow = T.ToDtype("uint8")
    T.Compose([narrow, T.ToTensor(), T.ToDtype("float32", scale=True)])
    for chain in (
        [T.ToTensor(), narrow],
        [T.Compose([T.Normalize()]), [T.Resize(4), narrow]],
        [T.ToDtype("float16", scale=True), T.RandomApply([narrow])],
    ):
        nested = [T.Compose(one) if isinstance(one, list) else one for one in chain]
        with pytest.raises(tl.RecipeError, match=r"ToDtype\(uint8\) after floats"):
            T.Compose(nested)


def test_what_does_nothing_can_be_chosen():
    pixels = image(5)
    choice = T.RandomChoice([T.ToImage(), T.ToDtype("uint8"), T.RandomInvert(p=1)])
    found = {choice(pixels, seed=1, sample=number).tobytes() for number in range(40)}
    assert found == {pixels.tobytes(), (255 - pixels).tobytes()}
    np.testing.assert_array_equal(T.RandomApply([T.ToImage()], p=1)(pixels), pixels)


class Halved(T.Resize):
    """A user-defined class."""


def test_classes_of_the_users_are_what_they_inherit():
    assert Halved([3, 4]) == T.Resize([3, 4])
    assert T.recipe([Halved([3, 4])]) == T.recipe([T.Resize([3, 4])])


def test_what_torchvision_has_alone_is_named():
    composed = Foreign("Compose", transforms=[Foreign("LinearTransformation")])
    with pytest.raises(tl.UnsupportedTransformError, match="LinearTransformation"):
        T.from_torchvision(composed)
    with pytest.raises(tl.UnsupportedTransformError, match="three channels"):
        T.from_torchvision(Foreign("Grayscale", num_output_channels=1))
    with pytest.raises(tl.UnsupportedTransformError):
        T.from_torchvision(Foreign("Resize", module="mine", size=3))
