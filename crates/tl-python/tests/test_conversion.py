"""Presets of torchvision and timm, their orders and arguments, and functions that are seeded."""

from __future__ import annotations

import json
import random
import warnings

import numpy as np
import pytest
import turboloader as tl
from conftest import HEIGHT, WIDTH, image
from turboloader import transforms as T  # noqa: N812


@pytest.fixture(scope="module")
def photo():
    """Pixels with structure, not square."""
    rng = np.random.default_rng(5)
    coarse = rng.integers(0, 256, (30, 41, 3), dtype=np.uint8)
    return coarse.repeat(12, axis=0).repeat(11, axis=1) + rng.integers(0, 9, (360, 451, 3), "uint8")


def of_weights():
    models = pytest.importorskip("torchvision.models")
    return [
        models.ResNet50_Weights.IMAGENET1K_V1,
        models.ResNet50_Weights.IMAGENET1K_V2,
        models.EfficientNet_B3_Weights.IMAGENET1K_V1,
        models.ViT_H_14_Weights.IMAGENET1K_SWAG_E2E_V1,
        models.Swin_V2_T_Weights.IMAGENET1K_V1,
        models.segmentation.FCN_ResNet50_Weights.DEFAULT,
        models.detection.FasterRCNN_ResNet50_FPN_Weights.DEFAULT,
    ]


@pytest.mark.torch
def test_presets_of_models_are_converted(photo):
    torch = pytest.importorskip("torch")
    Image = pytest.importorskip("PIL.Image")  # noqa: N806
    for weights in of_weights():
        theirs = weights.transforms()
        expected = theirs(Image.fromarray(photo))
        ours = T.from_torchvision(theirs)
        made = torch.from_numpy(np.ascontiguousarray(ours(photo).transpose(2, 0, 1)))
        # Theirs divides by 255; the pixels before that are equal in every bit.
        torch.testing.assert_close(made, expected, rtol=0, atol=2e-6)
        pixels = [step for step in ours.transforms if isinstance(step, (T.Resize, T.CenterCrop))]
        deviation = torch.tensor(getattr(theirs, "std", [1.0] * 3))[:, None, None]
        mean = torch.tensor(getattr(theirs, "mean", [0.0] * 3))[:, None, None]
        whole = ((expected * deviation + mean) * 255).round().to(torch.uint8).permute(1, 2, 0)
        made = T.Compose(pixels)(photo) if pixels else photo
        np.testing.assert_array_equal(made, whole.numpy())


@pytest.mark.torch
def test_a_loader_takes_a_preset(photos):
    models = pytest.importorskip("torchvision.models")
    preset = models.ResNet50_Weights.DEFAULT.transforms()
    loader = tl.DataLoader(photos, batch_size=3, transform=preset, fields=("image", "label"))
    for images, labels in loader:
        assert (images.shape, labels.shape) == ((3, 3, 224, 224), (3,))
    optical = models.optical_flow.Raft_Small_Weights.DEFAULT.transforms()
    with pytest.raises(tl.UnsupportedTransformError, match="OpticalFlow"):
        tl.DataLoader(photos, transform=optical)


@pytest.mark.torch
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"interpolation": "bicubic", "crop_pct": 0.95},
        {"crop_mode": "squash", "crop_pct": 1.0},
        {"mean": (0.5,) * 3, "std": (0.5,) * 3},
    ],
    ids=str,
)
def test_evaluation_of_timm_is_converted(photo, settings):
    torch = pytest.importorskip("torch")
    Image = pytest.importorskip("PIL.Image")  # noqa: N806
    data = pytest.importorskip("timm.data")
    theirs = data.create_transform(224, **settings)
    made = T.from_torchvision(theirs)(photo).transpose(2, 0, 1)
    expected = theirs(Image.fromarray(photo))
    torch.testing.assert_close(torch.from_numpy(made.copy()), expected, rtol=0, atol=2e-6)


@pytest.mark.torch
def test_training_of_timm_is_converted(photo):
    data = pytest.importorskip("timm.data")
    create = data.create_transform
    made = T.from_torchvision(create(32, is_training=True, re_prob=0.25, scale=(0.2, 0.9)))
    expected = T.Compose(
        [
            T.RandomResizedCrop((32, 32), (0.2, 0.9)),
            T.RandomHorizontalFlip(0.5),
            T.ColorJitter((0.6, 1.4), (0.6, 1.4), (0.6, 1.4)),
            T.ToTensor(),
            T.Normalize(),
            T.RandomErasing(0.25, (0.02, 1 / 3), (0.3, 1 / 0.3), 0.0),
        ]
    )

    def rounded(transform):
        text = json.dumps(transform.operations())
        return json.loads(text, parse_float=lambda number: round(float(number), 5))

    assert rounded(made) == rounded(expected)
    drawn = T.from_torchvision(create(32, is_training=True, interpolation="random"))
    filters = [crop.interpolation for crop in drawn.transforms[0].transforms]
    assert filters == ["bilinear", "bicubic"]
    assert drawn(photo).shape == (32, 32, 3)
    noise = create(32, is_training=True, re_prob=0.5, re_mode="pixel")
    assert T.from_torchvision(noise).transforms[-1].value == "random"
    for settings, name in (
        ({"auto_augment": "rand-m9-mstd0.5"}, "RandAugment"),
        ({"re_prob": 0.5, "re_mode": "rand"}, "RandomErasing"),
        ({"re_prob": 0.5, "re_count": 3}, "RandomErasing"),
        ({"train_crop_mode": "rkrc"}, "ResizeKeepRatio"),
    ):
        with pytest.raises(tl.UnsupportedTransformError, match=name):
            T.from_torchvision(create(32, is_training=True, **settings))


@pytest.mark.torch
def test_the_crop_of_timm_has_torchvisions_pixels(photo):
    """The same rectangle, and both resize by Pillow."""
    Image = pytest.importorskip("PIL.Image")  # noqa: N806
    data = pytest.importorskip("timm.data.transforms")
    theirs = data.RandomResizedCropAndInterpolation(48, interpolation="bicubic")
    for seed in range(20):
        random.seed(seed)
        top, left, height, width = theirs.get_params(
            Image.fromarray(photo), theirs.scale, theirs.ratio
        )
        random.seed(seed)
        expected = np.asarray(theirs(Image.fromarray(photo)))
        part = np.ascontiguousarray(photo[top : top + height, left : left + width])
        np.testing.assert_array_equal(T.Resize((48, 48), "bicubic")(part), expected)


@pytest.mark.torch
def test_floats_may_come_first(photo):
    """The order of version 2's documentation: equal bits, or nearly where it resizes."""
    torch = pytest.importorskip("torch")
    v2 = pytest.importorskip("torchvision.transforms.v2")
    scale = v2.ToDtype(torch.float32, scale=True)
    chw = torch.from_numpy(photo).permute(2, 0, 1)
    moved = v2.Compose(
        [
            v2.ToImage(),
            scale,
            v2.CenterCrop((200, 300)),
            v2.RandomHorizontalFlip(1.0),
            v2.Normalize([0.5] * 3, [0.25] * 3),
        ]
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ours = T.from_torchvision(moved)
    assert torch.equal(ours(chw), moved(chw))
    sized = v2.Compose(
        [
            v2.ToImage(),
            scale,
            v2.Resize(120),
            v2.CenterCrop(96),
            v2.Normalize([0.5] * 3, [0.25] * 3),
        ]
    )
    with pytest.warns(UserWarning, match="Resize of floats"):
        ours = T.from_torchvision(sized)
    recipe = T.recipe(ours, parity="tensor", channels_last=False)
    result = recipe.apply(photo.tobytes(), (451, 360), (0, 0, 0), {}).torch()
    assert (result - sized(chw)).abs().max() <= 1 / 255 / 0.25


@pytest.mark.torch
def test_torchvision_may_stand_in_a_list(photo):
    v2 = pytest.importorskip("torchvision.transforms.v2")
    mixed = T.Compose([v2.Resize(64), T.CenterCrop(48), lambda pixels: 255 - pixels, v2.ToImage()])
    expected = 255 - T.Compose([T.Resize(64), T.CenterCrop(48)])(photo)
    np.testing.assert_array_equal(mixed(photo), expected)


def test_filters_have_numbers_and_names():
    names = ("nearest", "lanczos", "bilinear", "bicubic", "box", "hamming")
    for number, name in enumerate(names):
        assert T.Resize(8, number) == T.Resize(8, name)
    assert T.RandomRotation(10, 2) == T.RandomRotation(10, "bilinear")
    with pytest.raises(tl.RecipeError, match="Resize: interpolation"):
        T.Resize(8, 6)


@pytest.mark.torch
def test_enums_of_filters_are_taken():
    Image = pytest.importorskip("PIL.Image")  # noqa: N806
    modes = pytest.importorskip("torchvision.transforms").InterpolationMode
    assert T.Resize(8, Image.Resampling.BICUBIC) == T.Resize(8, "bicubic")
    assert T.Resize(8, modes.LANCZOS) == T.Resize(8, "lanczos")
    assert T.Resize(8, modes.NEAREST_EXACT) == T.Resize(8, "nearest_exact")


def test_one_number_normalises_all_channels():
    expected = T.Normalize([0.5] * 3, [0.25] * 3)
    for mean, std in ((0.5, 0.25), ([0.5], (0.25,)), (np.float32(0.5), np.array([0.25]))):
        assert T.Normalize(mean, std) == expected
    with pytest.raises(tl.RecipeError, match="Normalize: mean"):
        T.Normalize([0.5, 0.5], 0.25)


def noisy(pixels, seed):
    return np.random.default_rng(seed).integers(0, 256, pixels.shape, dtype=np.uint8)


def test_functions_get_seeds(data):
    steps = [T.Resize((HEIGHT, WIDTH)), noisy]

    def epochs(workers, **settings):
        loader = tl.DataLoader(
            data, 8, num_workers=workers, transform=steps, shuffle=True, **settings
        )
        return [[batch["image"].numpy().tobytes() for batch in loader] for _ in range(2)]

    one = epochs(1)
    assert one == epochs(3)
    assert one[0] != one[1]
    assert one != epochs(1, seed=7)
    images = [batch for epoch in one for batch in epoch]
    assert len(set(images)) == len(images)
    draw = {"seed": 1, "epoch": 2, "sample": 3}
    np.testing.assert_array_equal(
        T.Lambda(noisy)(image(0), **draw), T.Lambda(noisy)(image(1), **draw)
    )


def test_albumentations_are_seeded(data):
    A = pytest.importorskip("albumentations")  # noqa: N806

    def epoch(workers, p=0.5):
        chain = A.Compose([A.HorizontalFlip(p=p), A.RandomBrightnessContrast(p=1.0)])
        steps = [T.Resize((HEIGHT, WIDTH)), chain, T.ToTensor()]
        loader = tl.DataLoader(data, 8, num_workers=workers, transform=steps)
        return loader, [batch["image"].numpy().tobytes() for batch in loader]

    one, first = epoch(1)
    two, second = epoch(3)
    assert first == second
    assert one.state_dict()["recipe"] == two.state_dict()["recipe"]
    other, third = epoch(1, p=0.25)
    assert third != first
    assert one.state_dict()["recipe"] != other.state_dict()["recipe"]
    resized = tl.DataLoader(data, 8, transform=[T.Resize((8, 8)), A.Resize(4, 5)])
    assert next(iter(resized))["image"].shape == (8, 4, 5, 3)
    sizes = {
        "image": A.Compose([A.HorizontalFlip(), A.RandomGamma()]),
        "any": A.Compose([A.Resize(4, 5), A.LongestMaxSize(8)]),
        "chance": A.Compose([A.OneOf([A.RandomCrop(4, 5), A.Resize(4, 5)])]),
        "exact": A.Compose([A.PadIfNeeded(9, 9), A.RandomResizedCrop(size=(4, 5)), A.Rotate()]),
    }
    found = {name: T.Lambda(one).size for name, one in sizes.items()}
    assert found == {"image": None, "any": "any", "chance": "any", "exact": [4, 5]}
    assert not T.Lambda(A.Compose([A.RandomGamma(), A.ToGray()])).moves
