"""Images of 16 bits, of floats and with alpha, against Pillow."""

import itertools
import json
import pathlib
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import turboloader as tl

pytest.importorskip("PIL")

from PIL import Image, ImageOps

# The second image of a sample that is a mask is found as an image first.
pytestmark = pytest.mark.filterwarnings("ignore:.*samples have several images")

T = tl.transforms

FILTERS = ["nearest", "box", "bilinear", "hamming", "bicubic", "lanczos"]
FORMS = [("I;16", 1, "uint16"), ("F", 1, "float32"), ("RGBA", 4, "uint8"), ("16", 3, "uint16")]

Pair = tuple[T.Transform, Callable[[Image.Image], Image.Image]]


def pixels(rng: np.random.Generator, mode: str, height: int, width: int) -> np.ndarray:
    """Random pixels of a mode; "16" has three channels of 16 bits."""
    if mode == "RGBA":
        return rng.integers(0, 256, (height, width, 4), dtype=np.uint8)
    if mode == "F":
        return rng.normal(0, 1000, (height, width, 1)).astype(np.float32)
    channels = 3 if mode == "16" else 1
    made = rng.integers(0, 65536, (height, width, channels), dtype=np.uint16)
    return np.where(rng.random(made.shape) < 0.2, np.uint16(65535), made)


def write(path: pathlib.Path, made: np.ndarray) -> None:
    """A file of these pixels, TIFF for floats."""
    if made.dtype == np.uint16 and made.shape[2] == 3:
        path.with_suffix(".png").write_bytes(png16(made))
    elif made.dtype == np.float32:
        Image.fromarray(made[..., 0]).save(path.with_suffix(".tif"))
    else:
        Image.fromarray(made.squeeze()).save(path.with_suffix(".png"))


def png16(made: np.ndarray) -> bytes:
    """A PNG file of RGB in 16 bits, which Pillow does not write."""
    import struct
    import zlib

    def chunk(kind: bytes, data: bytes) -> bytes:
        checksum = zlib.crc32(kind + data)
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", checksum)

    height, width, _ = made.shape
    rows = b"".join(b"\0" + row.astype(">u2").tobytes() for row in made)
    header = struct.pack(">IIBBBBB", width, height, 16, 2, 0, 0, 0)
    body = chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + body


def by_pillow(made: np.ndarray, change: Callable[[Image.Image], Image.Image]) -> np.ndarray:
    """The pixels that Pillow makes, channel by channel where it has no mode of all."""
    if made.dtype == np.uint8:
        return np.asarray(change(Image.fromarray(made)))
    channels = [change(Image.fromarray(channel.copy())) for channel in np.moveaxis(made, 2, 0)]
    return np.stack([np.asarray(channel) for channel in channels], axis=2)


def resized(rng: np.random.Generator) -> Pair:
    """A resize to a random size with a random filter."""
    height, width = (int(side) for side in rng.integers(1, 60, 2))
    name = FILTERS[int(rng.integers(len(FILTERS)))]
    method = Image.Resampling[name.upper()]
    resize = T.Resize((height, width), interpolation=name)
    return resize, lambda image: image.resize((width, height), method)


def cropped(rng: np.random.Generator) -> Pair:
    """The middle, with a border where the image is smaller."""
    side = int(rng.integers(1, 50))

    def crop(image: Image.Image) -> Image.Image:
        width, height = image.size
        left, top = max(side - width, 0) // 2, max(side - height, 0) // 2
        right, bottom = (max(side - width, 0) + 1) // 2, (max(side - height, 0) + 1) // 2
        array = np.asarray(image)
        border = [(top, bottom), (left, right)] + [(0, 0)] * (array.ndim - 2)
        array = np.pad(array, border)
        height, width = array.shape[:2]
        top, left = round((height - side) / 2), round((width - side) / 2)
        return Image.fromarray(array[top : top + side, left : left + side].copy())

    return T.CenterCrop(side), crop


def padded(rng: np.random.Generator) -> Pair:
    """A border of any kind."""
    sides = [int(side) for side in rng.integers(0, 7, 4)]
    fill = int(rng.integers(0, 256))
    mode = ["constant", "edge", "reflect", "symmetric"][int(rng.integers(4))]

    def pad(image: Image.Image) -> Image.Image:
        array = np.asarray(image)
        left, top, right, bottom = sides
        border = [(top, bottom), (left, right)] + [(0, 0)] * (array.ndim - 2)
        if mode == "constant":
            return Image.fromarray(np.pad(array, border, constant_values=fill))
        return Image.fromarray(np.pad(array, border, mode=mode))

    return T.Pad(sides, fill=fill, padding_mode=mode), pad


def flipped(rng: np.random.Generator) -> Pair:
    """Left and right, or top and bottom, change places."""
    if rng.random() < 0.5:
        return T.RandomHorizontalFlip(1.0), ImageOps.mirror
    return T.RandomVerticalFlip(1.0), ImageOps.flip


@pytest.mark.parametrize(("mode", "channels", "dtype"), FORMS)
def test_transforms_of_pillow(tmp_path: pathlib.Path, mode: str, channels: int, dtype: str) -> None:
    """Any sequence of crops, resizes, borders and flips has the bits of Pillow."""
    rng = np.random.default_rng([channels, len(dtype)])
    for case in range(60):
        folder = tmp_path / str(case)
        folder.mkdir()
        made = [pixels(rng, mode, *(int(side) for side in rng.integers(8, 50, 2))) for _ in "ab"]
        for number, one in enumerate(made):
            write(folder / str(number), one)
        makers = [resized, cropped, padded, flipped]
        chosen = [makers[int(which)](rng) for which in rng.integers(4, size=rng.integers(1, 5))]
        chosen.append(resized(rng))
        last = bool(rng.integers(2))
        loader = tl.DataLoader(
            folder,
            2,
            transform=[transform for transform, _ in chosen],
            channels=channels,
            pixels=dtype,
            channels_last=last,
        )
        found = next(iter(loader))["image"].numpy()
        assert found.dtype == dtype
        found = found if last else np.moveaxis(found, 1, 3)
        for one, result in zip(made, found, strict=True):
            for _, change in chosen:
                one = by_pillow(one, change)
            names = [str(transform) for transform, _ in chosen]
            assert np.array_equal(one.reshape(result.shape), result), (case, names)


def warped(rng: np.random.Generator, *, is_grey: bool) -> T.Transform:
    """A random warp."""
    filters = ["nearest", "bilinear", "bicubic"]
    rest: dict[str, Any] = {"interpolation": filters[int(rng.integers(3))]}
    rest["fill"] = [0, 7, 200, None if is_grey else 3][int(rng.integers(4))]
    makers: list[Callable[[], T.Transform]] = [
        lambda: T.RandomRotation(180, expand=bool(rng.integers(2)), **rest),
        lambda: T.RandomRotation((90, 90), expand=True, **rest),
        lambda: T.RandomRotation((180, 180), **rest),
        lambda: T.RandomRotation(40, center=(3, 9), **rest),
        lambda: T.RandomAffine(40, (0.2, 0.3), (0.5, 2.0), (-20, 20, -9, 9), **rest),
        lambda: T.RandomAffine(0, (0.2, 0.3), **rest),
        lambda: T.RandomPerspective(0.6, p=1.0, **rest),
    ]
    return makers[int(rng.integers(len(makers)))]()


def by_torchvision(value: Any, warp: dict[str, Any]) -> Any:
    """An image or a tensor that torchvision warps with the parameters of a plan."""
    from torchvision.transforms import InterpolationMode
    from torchvision.transforms.v2 import functional

    ((kind, said),) = warp.items()
    rest = {"fill": said["fill"], "interpolation": InterpolationMode(said["interpolation"])}
    if kind == "rotate":
        rest |= {"expand": said["expand"] is not None, "center": said["center"]}
        return functional.rotate(value, said["angle"], **rest)
    if kind == "affine":
        names = ("angle", "translate", "scale", "shear", "center")
        return functional.affine(value, **{name: said[name] for name in names}, **rest)
    coefficients = said["coefficients"]
    return functional.perspective(value, None, None, coefficients=coefficients, **rest)


def warped_by_pillow(made: np.ndarray, warp: dict[str, Any]) -> np.ndarray:
    """Pixels of Pillow; smooth ones of 16 bits are those of mode ``I``, held within 16 bits."""
    ((_, said),) = warp.items()
    if made.dtype != np.uint16 or said["interpolation"] == "nearest":
        return by_pillow(made, lambda image: by_torchvision(image, warp))
    found = by_pillow(made.astype(np.int32), lambda image: by_torchvision(image, warp))
    return found.clip(0, 65535).astype(np.uint16)


def warped_as_tensor(made: np.ndarray, warp: dict[str, Any]) -> np.ndarray:
    """Pixels of tensors."""
    import torch

    tensor = by_torchvision(torch.from_numpy(np.moveaxis(made, 2, 0).copy()), warp)
    return np.moveaxis(tensor.numpy(), 0, 2)


@pytest.mark.parametrize("parity", ["pil", "tensor"])
@pytest.mark.parametrize(("mode", "channels", "dtype"), FORMS)
def test_warps_of_torchvision(
    tmp_path: pathlib.Path, mode: str, channels: int, dtype: str, parity: Any
) -> None:
    """Rotations, affine maps and perspectives have the bits of torchvision."""
    pytest.importorskip("torchvision")
    rng = np.random.default_rng([channels, len(dtype), len(parity)])
    made = [pixels(rng, mode, *(int(side) for side in rng.integers(8, 50, 2))) for _ in range(4)]
    for number, one in enumerate(made):
        write(tmp_path / str(number), one)
    for case in range(40):
        warp = warped(rng, is_grey=channels == 1)
        recipe = T.recipe(warp, channels=channels, pixels=dtype, parity=parity)
        loader = tl.DataLoader(tmp_path, 4, transform=recipe, seed=case, output_format="numpy")
        found = next(iter(loader))["image"]
        for number, (one, result) in enumerate(zip(made, found, strict=True)):
            height, width, _ = one.shape
            plan = json.loads(recipe.plan(width, height, seed=case, sample=number))
            (step,) = plan["steps"]
            ((_, said),) = step["warp"].items()
            is_tensor = parity == "tensor" and said["interpolation"] != "bicubic"
            apply = warped_as_tensor if is_tensor else warped_by_pillow
            expected = apply(one, step["warp"])
            assert result.dtype == dtype
            assert np.array_equal(expected.reshape(result.shape), result), (case, step)


@pytest.mark.parametrize(("mode", "channels", "dtype"), FORMS)
def test_erasing_is_that_of_torchvision(
    tmp_path: pathlib.Path, mode: str, channels: int, dtype: str
) -> None:
    """Rectangles of pixels, and of the numbers that they become, have the value; others stay."""
    torch = pytest.importorskip("torch")
    v2 = pytest.importorskip("torchvision.transforms.v2.functional")
    rng = np.random.default_rng([channels, len(dtype)])
    made = [pixels(rng, mode, 20, 30 + number) for number in range(3)]
    for number, one in enumerate(made):
        write(tmp_path / str(number), one)
    erased = 0
    for value in (0, 200, (1, 2, 3) if channels == 3 else 7):
        erase = T.RandomErasing(1.0, value=value)
        for transform in ([erase], [T.CenterCrop((18, 30)), erase, T.ToFloat(), erase]):
            recipe = T.recipe(transform, channels=channels, pixels=dtype, channels_last=True)
            loader = tl.DataLoader(tmp_path, 3, transform=recipe, seed=4, output_format="torch")
            batch = next(iter(loader))["image"]
            for number, (one, found) in enumerate(zip(made, batch, strict=True)):
                plan = json.loads(recipe.plan(one.shape[1], 20, seed=4, sample=number))
                expected = torch.from_numpy(np.moveaxis(one, 2, 0).copy())
                if len(transform) > 1:
                    expected = v2.center_crop(expected, [18, 30])

                def erased_by(tensor: Any, step: dict[str, Any]) -> Any:
                    said = step["rectangle"]
                    x, y, width, height = said["rect"]
                    numbers = torch.tensor(said["fill"]["value"])[:channels]
                    filling = torch.cat([numbers, numbers[-1:]])[:channels]
                    return v2.erase(tensor, y, x, height, width, filling[:, None, None])

                for step in plan["steps"]:
                    expected = erased_by(expected, step["erase"])
                if len(transform) > 1:
                    expected = v2.to_dtype(expected, torch.float32, scale=True)
                for erasure in plan["erasures"]:
                    expected = erased_by(expected, erasure)
                    erased += 1
                found = found.permute(2, 0, 1)
                assert torch.equal(found, expected.to(found.dtype)), (value, plan)
    assert erased == 9


def test_images_as_stored(tmp_path: pathlib.Path) -> None:
    """Without transforms a batch has the numbers of the files, in their own sizes and type."""
    rng = np.random.default_rng(5)
    for mode, channels, dtype in FORMS:
        folder = tmp_path / dtype / str(channels)
        folder.mkdir(parents=True)
        made = [pixels(rng, mode, 5 + number, 9) for number in range(3)]
        for number, one in enumerate(made):
            write(folder / str(number), one)
        loader = tl.DataLoader(folder, 3, channels=channels, pixels=dtype)
        found = [image.numpy() for image in next(iter(loader))["image"]]
        assert [image.dtype for image in found] == [dtype] * 3
        assert all(np.array_equal(a, b) for a, b in zip(made, found, strict=True))
        assert not [note for note in loader.notes if "bits" in note or "transparency" in note]


def test_floats_of_wide_pixels(tmp_path: pathlib.Path) -> None:
    """``ToFloat`` and ``Normalize`` give the numbers of torchvision's ``ToDtype(scale=True)``."""
    torch = pytest.importorskip("torch")
    v2 = pytest.importorskip("torchvision.transforms.v2.functional")
    rng = np.random.default_rng(6)
    mean, std = [0.5, 0.25, 0.125, 0.75], [0.3, 0.5, 0.2, 1.5]
    for mode, channels, dtype in FORMS:
        folder = tmp_path / dtype / str(channels)
        folder.mkdir(parents=True)
        made = pixels(rng, mode, 20, 30)
        write(folder / "0", made)
        count = max(channels, 3)
        normalize = T.Normalize(mean[:count], std[:count])
        for name in ("float32", "float16", "bfloat16"):
            loader = tl.DataLoader(
                folder,
                1,
                transform=[T.Resize((20, 30)), T.ToFloat(), normalize],
                channels=channels,
                pixels=dtype,
                dtype=name,
            )
            found = next(iter(loader))["image"].torch()[0]
            tensor = torch.from_numpy(np.moveaxis(made, 2, 0).copy())
            tensor = v2.to_dtype(tensor, torch.float32, scale=True)
            expected = v2.normalize(tensor, mean[:channels], std[:channels])
            assert torch.equal(found, expected.to(found.dtype)), (mode, name)


def joint_folder(folder: pathlib.Path, count: int) -> None:
    """Images whose red and green are their columns and rows, and depths that say the same."""
    for number in range(count):
        height, width = 40 + number, 60 - number
        y, x = np.mgrid[0:height, 0:width]
        rgb = np.stack([x, y, 0 * x], axis=2).astype(np.uint8)
        Image.fromarray(rgb).save(folder / f"{number}.png")
        depth = (y * 256 + x + 1).astype(np.uint16)
        Image.fromarray(depth).save(folder / f"{number}.depth.png")
        Image.fromarray(depth.astype(np.float32)).save(folder / f"{number}.far.tif")


def test_depths_move_with_their_images(tmp_path: pathlib.Path) -> None:
    """A depth gets the crop and flips of its image, and neither its colours nor normalisation."""
    joint_folder(tmp_path, 7)
    fields = {
        "depth": tl.Image("depth.png", channels=1, pixels="uint16"),
        "far": tl.Image("far.tif", channels=1, pixels=np.float32),
    }
    crop = [T.RandomCrop(24), T.RandomHorizontalFlip(), T.RandomVerticalFlip()]
    plain = tl.DataLoader(tmp_path, 3, transform=crop, fields=fields, seed=3)
    colors = [*crop, T.ColorJitter(0.4, 0.4), T.GaussianBlur(3), T.ToFloat(), T.Normalize()]
    colored = tl.DataLoader(
        tmp_path, 3, transform=colors, fields=fields, seed=3, channels_last=True
    )
    turned = 0
    for batch, other in zip(plain, colored, strict=True):
        image = batch["image"].numpy().astype(np.int64)
        expected = image[..., 1] * 256 + image[..., 0] + 1
        turned += int((image[:, 0, 0, 0] > image[:, 0, -1, 0]).sum())
        for one in (batch, other):
            depth = one["depth"].numpy()
            assert depth.dtype == np.uint16 and depth.shape == (len(image), 24, 24, 1)
            assert np.array_equal(depth[..., 0], expected)
            assert one["far"].numpy().dtype == np.float32
            assert np.array_equal(one["far"].numpy()[..., 0], expected)
    assert 0 < turned < 7


def test_depths_are_warped_with_their_images(tmp_path: pathlib.Path) -> None:
    """Rotations and displacements move a depth as its image, with 0 outside."""
    joint_folder(tmp_path, 4)
    fields = {
        "depth": tl.Image("depth.png", channels=1, pixels="uint16"),
        "far": tl.Image("far.tif", channels=1, pixels=np.float32),
    }
    for warp in (
        T.RandomRotation(40, fill=0),
        T.RandomAffine(20, (0.1, 0.1), (0.7, 1.4)),
        T.RandomPerspective(0.5, 1.0, interpolation="nearest"),
        T.ElasticTransform(60.0, 4.0, interpolation="nearest"),
        T.RandAugment(),
    ):
        # Pixels of colours are moved only, so that they say where a pixel comes from.
        colors = isinstance(warp, T.RandAugment)
        transform = [warp, T.RandomCrop(24), T.RandomHorizontalFlip()]
        loader = tl.DataLoader(
            tmp_path, 4, transform=transform, fields=fields, seed=7, parity="tensor"
        )
        batch = next(iter(loader))
        depth, far = batch["depth"].numpy(), batch["far"].numpy()
        assert np.array_equal(depth, far)
        image = batch["image"].numpy().astype(np.int64)
        place = image[..., 1] * 256 + image[..., 0]
        moved = depth[..., 0].astype(np.int64)
        # A black pixel is the first one of the image, or one outside.
        assert colors or np.array_equal(np.maximum(moved, 1), place + 1), warp
        assert moved.max() > 1


@pytest.mark.parametrize("parity", ["pil", "tensor"])
def test_borders_and_filters_of_depths(tmp_path: pathlib.Path, parity: Any) -> None:
    """Borders are 0 and not the photograph's colour; undefined filters are refused in time."""
    joint_folder(tmp_path, 3)
    fields = {"depth": tl.Image("depth.png", channels=1, pixels="uint16")}
    near = [T.Resize((20, 30), interpolation="nearest"), T.Pad(4, fill=128)]
    for batch in tl.DataLoader(tmp_path, 3, transform=near, fields=fields, parity=parity):
        image = batch["image"].numpy()
        depth = batch["depth"].numpy()[..., 0]
        assert (image[:, :4] == 128).all()
        border = np.ones((28, 38), bool)
        border[4:-4, 4:-4] = False
        assert (depth[:, border] == 0).all() and (depth[:, ~border] > 0).all()
    smooth = [T.Resize((20, 30))]
    if parity == "pil":
        loader = tl.DataLoader(tmp_path, 3, transform=smooth, fields=fields)
        assert next(iter(loader))["depth"].shape == (3, 20, 30, 1)
    else:
        with pytest.raises(ValueError, match=r"image `depth`: .*Resize.*nearest_exact alone"):
            tl.DataLoader(tmp_path, 3, transform=smooth, fields=fields, parity=parity)


def test_a_depth_with_its_own_transform(tmp_path: pathlib.Path) -> None:
    """A transform of its own makes a further image independent, with its own pixels."""
    joint_folder(tmp_path, 3)
    fields = {"depth": tl.Image("depth.png", channels=1, pixels="uint16")}
    transform = {"image": T.Resize((8, 8)), "depth": T.Resize((10, 12), interpolation="nearest")}
    loader = tl.DataLoader(tmp_path, 3, transform=transform, fields=fields, dtype="float32")
    batch = next(iter(loader))
    assert batch["image"].numpy().dtype == np.float32
    depth = batch["depth"].numpy()
    assert depth.dtype == np.uint16
    nearest = Image.open(tmp_path / "0.depth.png").resize((12, 10), Image.Resampling.NEAREST)
    assert np.array_equal(depth[0, ..., 0], np.asarray(nearest))


def test_wide_batches_are_the_same(tmp_path: pathlib.Path) -> None:
    """Workers, caches and memory limits change no byte, and each form has its own recipe."""
    rng = np.random.default_rng(9)
    hashes = set()
    for mode, channels, dtype in FORMS:
        folder = tmp_path / dtype / str(channels)
        folder.mkdir(parents=True)
        for number in range(11):
            write(folder / str(number), pixels(rng, mode, 20 + number, 33))
        crop = [T.RandomResizedCrop(16), T.RandomHorizontalFlip()]
        recipe = T.recipe(crop, channels=channels, pixels=dtype)
        hashes.add(recipe.hash)
        caches = [None, "64MB", tl.Cache(memory="64MB", decoded=True)]
        caches.append(tl.Cache(disk="1GB", folder=tmp_path / "cache", decoded=True))
        settings: list[dict[str, Any]] = [
            {"num_workers": workers, "cache": cache}
            for workers, cache in itertools.product((1, 3), caches)
        ]
        settings.append({"memory": "64MB"})
        digests = set()
        for setting in settings:
            loader = tl.DataLoader(folder, 4, transform=recipe, seed=1, shuffle=True, **setting)
            for _ in range(2):
                epoch = [batch["image"].numpy().tobytes() for batch in loader]
            digests.add(b"".join(epoch))
        assert len(digests) == 1, (mode, dtype)
    assert len(hashes) == len(FORMS)
    assert T.recipe(crop, channels=3, pixels="uint8").hash == T.recipe(crop).hash


def test_samples_of_torch_have_these_pixels(tmp_path: pathlib.Path) -> None:
    """Samples by number are those of a loader, with a transform and without one."""
    torch = pytest.importorskip("torch")
    tlt = pytest.importorskip("turboloader.torch")
    rng = np.random.default_rng(3)
    crop = [T.RandomCrop(12), T.RandomHorizontalFlip()]
    for mode, channels, dtype in FORMS:
        folder = tmp_path / dtype / str(channels)
        folder.mkdir(parents=True)
        for number in range(3):
            write(folder / str(number), pixels(rng, mode, 20 + number, 33))
        for transform in (crop, None, {"image": crop}):
            said = {"transform": transform, "channels": channels, "pixels": dtype, "seed": 5}
            dataset = tlt.Dataset(folder, **said)
            loader = tl.DataLoader(folder, 1, output_format="numpy", **said)
            for number, batch in enumerate(loader):
                found, _ = dataset[number]
                assert found.dtype == getattr(torch, dtype)
                expected = np.moveaxis(batch["image"][0], -1, 0)
                assert np.array_equal(found.numpy(), expected), (mode, transform)


def test_mean_and_deviation_of_these_pixels(tmp_path: pathlib.Path) -> None:
    """They are those of the numbers in the files, of as many channels."""
    rng = np.random.default_rng(8)
    for mode, channels, dtype in FORMS:
        folder = tmp_path / dtype / str(channels)
        folder.mkdir(parents=True)
        stored = [pixels(rng, mode, 20 + number, 33) for number in range(19)]
        for number, one in enumerate(stored):
            write(folder / str(number), one)
        flat = np.concatenate([one.reshape(-1, channels) for one in stored]).astype(np.float64)
        flat /= {"uint8": 255, "uint16": 65535, "float32": 1}[dtype]
        mean, deviation = tl.open(folder).mean_std(channels=channels, pixels=dtype)
        np.testing.assert_allclose(mean, flat.mean(0), rtol=1e-12)
        np.testing.assert_allclose(deviation, flat.std(0), rtol=1e-9)
        stats = tl.open(folder).stats(pixels=np.dtype(dtype), channels=channels)
        assert (stats.mean, stats.std, stats.damaged) == (mean, deviation, [])
    with pytest.raises(tl.SettingError, match="channels is 2"):
        tl.open(folder).mean_std(channels=2)
    with pytest.raises(tl.SettingError, match="channels is 2"):
        tl.open(folder).stats(pixels=True, channels=2)
    with pytest.raises(tl.SettingError, match="pixels is int32, expected uint8"):
        tl.open(folder).stats(pixels="int32")
    with pytest.raises(tl.SettingError, match="selects none"):
        tl.open(folder).take(0).mean_std(channels=1)


def test_figures_of_reduced_pixels_come_with_a_warning(tmp_path: pathlib.Path) -> None:
    """Figures of 8 bits are those of loaders, and say that the files have more."""
    stored = np.full((4, 6, 1), 256 * 51 + 7, np.uint16)
    write(tmp_path / "0", stored)
    ds = tl.open(tmp_path)
    reduced = r"images become RGB of 8 bits; .* sample 0, has samples of more than 8 bits"
    with pytest.warns(UserWarning, match=reduced):
        mean, deviation = ds.mean_std()
    assert mean == [0.2] * 3 and deviation == [0.0] * 3
    with pytest.warns(UserWarning, match=reduced):
        assert ds.stats(pixels=True).mean == mean
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mean, _ = ds.mean_std(channels=1, pixels="uint16")
        assert mean == [(256 * 51 + 7) / 65535]
        stats = ds.stats()
        assert (stats.mean, stats.std) == (None, None)
    # Files of 8 bits are refused as 16-bit images: their numbers would be scaled silently.
    Image.fromarray(np.zeros((3, 3), np.uint8)).save(tmp_path / "1.png")
    with pytest.raises(tl.DecodeError, match="pixels of a PNG file of 8-bit"):
        tl.open(tmp_path).mean_std(channels=1, pixels="uint16")
    stats = tl.open(tmp_path).stats(pixels="uint16", channels=1)
    assert stats.mean == mean and [number for number, _ in stats.damaged] == [1]


def test_samples_have_further_images_and_wide_masks(tmp_path: pathlib.Path) -> None:
    """A sample has them as they are stored, in their own sizes."""
    joint_folder(tmp_path, 2)
    small = np.arange(12, dtype=np.uint8).reshape(3, 4)
    Image.fromarray(small).save(tmp_path / "0.small.png")
    fields = {
        "depth": tl.Image("depth.png", channels=1, pixels="uint16"),
        "far": tl.Image("far.tif", channels=1, pixels="float32"),
        "small": tl.Image("small.png"),
        "mask": tl.Mask("depth.png", dtype="int64"),
    }
    ds = tl.open(tmp_path, fields=fields)
    sample = ds[0]
    depth = np.asarray(Image.open(tmp_path / "0.depth.png"))
    assert sample.depth.dtype == "uint16" and sample.far.dtype == "float32"
    assert sample.mask.dtype == "int64"
    for found in (sample.depth.numpy()[..., 0], sample.far.numpy()[..., 0], sample.mask.numpy()):
        assert np.array_equal(found, depth)
    assert np.array_equal(sample.small.numpy(), np.repeat(small[..., None], 3, 2))
    assert np.array_equal(sample.image.numpy(), np.asarray(Image.open(tmp_path / "0.png")))
    with pytest.raises(tl.SampleError, match=r"sample 1 .*small\.png"):
        ds[1].small  # noqa: B018
    only_mask = tl.open(tmp_path, fields={"mask": tl.Mask("depth.png", dtype="int32")})
    assert np.array_equal(only_mask[0].mask.numpy(), depth)


def test_single_images_have_these_pixels(tmp_path: pathlib.Path) -> None:
    """``decode`` gives the numbers of a file; images of samples are those of a loader."""
    rng = np.random.default_rng(4)
    for mode, channels, dtype in FORMS:
        folder = tmp_path / dtype / str(channels)
        folder.mkdir(parents=True)
        stored = pixels(rng, mode, 6, 5)
        write(folder / "0", stored)
        sample = tl.open(folder)[0]
        found = tl.decode(sample.raw("image"), channels=channels, pixels=np.dtype(dtype))
        assert found.dtype == dtype and np.array_equal(found.numpy(), stored)
        batch = next(iter(tl.DataLoader(folder, 1, output_format="numpy")))
        assert np.array_equal(sample.image.numpy(), batch["image"][0])
    data = sample.raw("image")
    assert tl.decode(data, gray=False).shape == (6, 5, 3)
    with pytest.raises(tl.SettingError, match="pass channels=1 alone"):
        tl.decode(data, gray=True, channels=1)
    with pytest.raises(tl.SettingError, match="channels is 2, expected"):
        tl.decode(data, channels=2)
    with pytest.raises(tl.SettingError, match="pixels is int8, expected uint8"):
        tl.decode(data, pixels="int8")
    with pytest.raises(tl.DecodeError, match="one channel of a PNG file of colours of 16 bits"):
        tl.decode(data, channels=1, pixels="uint16")


def test_what_is_refused(tmp_path: pathlib.Path) -> None:
    """Operations and files that do not go with the pixels are refused by name."""
    for transform, channels, dtype, message in [
        (T.ColorJitter(0.5), 1, "uint16", "ColorJitter cannot be done to 16-bit grey pixels"),
        (
            T.RandomApply([T.GaussianBlur(3)]),
            4,
            "uint8",
            "GaussianBlur cannot be done to 8-bit RGBA pixels",
        ),
        (T.RandAugment(), 3, "float32", "RandAugment cannot be done to float RGB pixels"),
        (T.RandomRotation(5, fill=0.5), 1, "float32", "RandomRotation .* fill is not a whole"),
        (T.RandomRotation(5, fill=(1, 2, 3)), 4, "uint8", "RandomRotation .* fill is not a whole"),
        (T.Pad(1, fill=0.5), 1, "float32", "Pad .* fill is not a whole number"),
        (T.Pad(1, fill=(1, 2, 3)), 4, "uint8", "Pad .* fill is not a whole number"),
        (
            T.RandomErasing(value=(1, 2, 3)),
            1,
            "uint16",
            "RandomErasing .* value is not one for all",
        ),
        (T.GridMask(value=(1, 2, 3)), 4, "uint8", "GridMask .* value is not one for all"),
        ([T.ToFloat(), T.Normalize()], 4, "uint8", "need a number for each channel"),
        ([T.ToFloat(), T.Normalize([0.5] * 4, [1] * 4)], 3, "uint8", "for each channel"),
    ]:
        with pytest.raises(tl.RecipeError, match=message):
            tl.DataLoader(tmp_path, 4, transform=transform, channels=channels, pixels=dtype)
    with pytest.raises(tl.RecipeError, match="parity `tensor`"):
        T.recipe(T.Resize((4, 4)), pixels="uint16", parity="tensor")
    with pytest.raises(tl.SettingError, match='pass pixels="uint16" too'):
        T.recipe(T.Resize((4, 4)), dtype="uint16")
    with pytest.raises(tl.SettingError, match="pixels is int32, expected uint8"):
        T.recipe(T.Resize((4, 4)), pixels="int32")
    Image.fromarray(np.zeros((4, 5, 3), np.uint8)).save(tmp_path / "0.png")
    loader = tl.DataLoader(tmp_path, 1, pixels="uint16")
    with pytest.raises(tl.LoaderError, match="16-bit pixels of a PNG file of 8-bit unsigned"):
        next(iter(loader))
