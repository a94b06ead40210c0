"""Image, mask, boxes, keypoints and masks of objects move together as torchvision v2 moves them.

Random recipes run in a loader. What each drew for a sample, `Recipe.plan` tells, and torchvision's
functionals get the same parameters: Pillow's image, and ``tv_tensors`` of the annotations.
"""

from __future__ import annotations

import io
import json
import pathlib
import random
from functools import partial
from typing import Any

import numpy as np
import pytest
import turboloader as tl

torch = pytest.importorskip("torch")
pytest.importorskip("torchvision.transforms.v2")
PIL = pytest.importorskip("PIL.Image")
from torchvision import tv_tensors  # noqa: E402
from torchvision.transforms import InterpolationMode  # noqa: E402
from torchvision.transforms.v2 import functional as F  # noqa: E402, N812

pytestmark = [
    pytest.mark.torch,
    pytest.mark.filterwarnings("ignore:.*samples have several images"),
]

T = tl.transforms

SAMPLES = 6
RECIPES = 70
POINTS = 5

COLORS = {
    "brightness": F.adjust_brightness,
    "contrast": F.adjust_contrast,
    "saturation": F.adjust_saturation,
    "sharpness": F.adjust_sharpness,
}


def sample(index: int) -> dict[str, Any]:
    """An image of sample ``index`` with its annotations: boxes with fractions, also cut ones."""
    rng = np.random.default_rng(index)
    height, width = 40 + 13 * index, 90 - 9 * index
    image = rng.integers(0, 256, (height, width, 3), dtype=np.uint8)
    mask = rng.integers(0, 256, (height, width), dtype=np.uint8)
    corners = rng.uniform(-0.1, 1.1, (4, 2, 2)).astype(np.float32)
    corners = np.sort(corners, axis=1) * np.float32([width, height])
    points = rng.uniform(-0.1, 1.1, (4, POINTS, 2)) * [width, height]
    points = np.round(points) if index % 2 else points
    boxes = corners.reshape(4, 4)
    outlines = [[x, y, u, y, u, v, (x + u) / 2, v + 3] for x, y, u, v in boxes.tolist()]
    return {
        "image": image,
        "mask": mask,
        "boxes": boxes,
        "keypoints": points.astype(np.float32),
        "segmentations": [[outline] for outline in outlines],
    }


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """The samples as files."""
    folder = tmp_path_factory.mktemp("joint")
    for index in range(SAMPLES):
        one = sample(index)
        for name, pixels in (("png", one["image"]), ("seg.png", one["mask"])):
            file = io.BytesIO()
            PIL.fromarray(pixels).save(file, "png")
            (folder / f"{index}.{name}").write_bytes(file.getvalue())
        names = ("boxes", "keypoints")
        document = {name: one[name].tolist() for name in names}
        document["segmentations"] = one["segmentations"]
        (folder / f"{index}.json").write_text(json.dumps(document))
    return folder


def recipe(rng: random.Random) -> list[Any]:
    """A random recipe of geometry, with colours in between."""
    side = rng.randint(20, 70), rng.randint(20, 70)
    ops = [
        lambda: T.Resize(side),
        lambda: T.RandomCrop([rng.randint(9, 40), rng.randint(9, 40)], pad_if_needed=True),
        lambda: T.RandomHorizontalFlip(),
        lambda: T.RandomVerticalFlip(),
        lambda: T.RandomRotation(rng.choice([30, 180, (90, 90)])),
        lambda: T.RandomRotation(45, expand=True),
        lambda: T.RandomAffine(20, (0.1, 0.2), (0.6, 1.4), (-10, 10, -5, 5)),
        lambda: T.RandomPerspective(0.4, 0.8),
        lambda: T.Pad([rng.randint(0, 9) for _ in range(4)], fill=rng.randint(0, 255)),
        lambda: T.ColorJitter(0.4, 0.4, 0.4),
        lambda: T.RandomZoomOut(side_range=(1.0, 1.5)),
        lambda: T.ScaleJitter((60, 60), (0.5, 1.5)),
    ]
    listed = [make() for make in rng.sample(ops, rng.randint(1, 4))]
    last = rng.choice([T.RandomResizedCrop(side), T.Resize(side), T.CenterCrop(side)])
    return [*listed, last, *rng.choice([[], [T.RandomHorizontalFlip()]])]


Joint = dict[str, Any]


def each(value: Joint, image: Any, others: Any = None, objects: Any = None) -> Joint:
    """Apply functions: one to the image, one to the annotations, one to the masks of objects."""
    others = image if others is None else others
    by_name = {"image": image, "masks": others if objects is None else objects}
    return {name: by_name.get(name, others)(one) for name, one in value.items()}


def run_pass(value: Joint, plan: dict[str, Any]) -> Joint:
    """Crop, resize, cut, pad and flip."""
    mode = InterpolationMode(plan["interpolation"].replace("_", "-"))

    def cut(value: Joint, part: list[int]) -> Joint:
        size = list(value["image"].size)
        x, y, w, h = part
        return value if part == [0, 0, *size] else each(value, lambda v: F.crop(v, y, x, h, w))

    value = cut(value, plan["region"])
    w, h = plan["resized"]
    if list(value["image"].size) != [w, h]:
        value = each(value, lambda v: F.resize(v, [h, w], mode, antialias=plan["antialias"]))
    value = cut(value, plan["window"])
    sides = [plan["padding"][side] for side in ("left", "top", "right", "bottom")]
    if any(sides):
        fill = plan["fill"]
        grey = fill[0] if len(set(fill)) == 1 else 0
        padded = [lambda v, fill=fill: F.pad(v, sides, fill) for fill in (fill, grey, 0)]
        value = each(value, *padded)
    if plan["flip"]:
        value = each(value, F.horizontal_flip)
    return each(value, F.vertical_flip) if plan["flip_vertical"] else value


def run_warp(value: Joint, warp: dict[str, Any]) -> Joint:
    ((kind, said),) = warp.items()
    rest = {"interpolation": InterpolationMode(said["interpolation"])}
    if kind == "rotate":
        rest |= {"expand": said["expand"] is not None, "center": said["center"]}
        warped = partial(F.rotate, angle=said["angle"], **rest)
    elif kind == "affine":
        names = ("angle", "translate", "scale", "shear", "center")
        warped = partial(F.affine, **{name: said[name] for name in names}, **rest)
    else:
        assert kind == "perspective"
        given = {"startpoints": None, "endpoints": None, "coefficients": said["coefficients"]}
        warped = partial(F.perspective, **given, **rest)
    # Masks of objects are 0 where nothing covers them.
    filled = [partial(warped, fill=fill) for fill in (said["fill"], said["fill"], 0)]
    return each(value, *filled)


def run_step(value: Joint, step: dict[str, Any]) -> Joint:
    ((kind, said),) = step.items()
    if kind == "pass":
        return run_pass(value, said)
    if kind == "pad":
        sides = [said["padding"][side] for side in ("left", "top", "right", "bottom")]
        return each(value, lambda v: F.pad(v, sides, padding_mode=said["mode"]))
    if kind == "warp":
        return run_warp(value, said)
    assert kind == "color"
    ((name, factor),) = said.items()
    return {**value, "image": COLORS[name](value["image"], factor)}


def theirs(index: int, plan: dict[str, Any]) -> Joint | None:
    """The sample that torchvision makes with the parameters of a plan.

    None where it gives the image and its annotations different sizes: it rounds those of expanded
    rotations in other ways for Pillow's images, tensors and boxes.
    """
    one = sample(index)
    height, width = one["mask"].shape
    size = {"canvas_size": (height, width)}
    masks = [tl.coco_mask(one, height, width).numpy() for one in one["segmentations"]]
    points = torch.from_numpy(one["keypoints"])
    value: Joint = {
        "image": PIL.fromarray(one["image"]),
        "mask": tv_tensors.Mask(torch.from_numpy(one["mask"])),
        "masks": tv_tensors.Mask(torch.from_numpy(np.array(masks))),
        "boxes": tv_tensors.BoundingBoxes(torch.from_numpy(one["boxes"]), format="XYXY", **size),
        "keypoints": tv_tensors.KeyPoints(points, **size),
    }
    value = run_pass(value, plan["head"])
    for step in plan["steps"]:
        value = run_step(value, step)
        sizes = {value["image"].size[::-1], tuple(value["mask"].shape)}
        sizes |= {tuple(value[name].canvas_size) for name in ("boxes", "keypoints")}
        if len(sizes) > 1:
            return None
    return run_pass(value, plan["tail"])


def equal(found: Any, expected: Any) -> bool:
    return found.shape == tuple(expected.shape) and np.array_equal(found, np.asarray(expected))


def test_what_torchvision_makes_of_the_same_parameters(folder: pathlib.Path) -> None:
    """Pixels are Pillow's; boxes, points and masks have torchvision's bits."""
    rng = random.Random(18)
    fields = {
        "mask": tl.Mask("seg.png"),
        "boxes": tl.Boxes("json:/boxes/*"),
        "masks": tl.InstanceMasks("json:/segmentations/*"),
        "keypoints": tl.Keypoints("json:/keypoints/*"),
    }
    everything = {"masks": fields["masks"], "keypoints": fields["keypoints"]}
    counts = dict.fromkeys(["samples", "boxes", "dropped", "rounded sizes"], 0)
    for number in range(RECIPES):
        transform = recipe(rng)
        loaders = [
            tl.DataLoader(folder, SAMPLES, transform=transform, seed=number, fields=kinds)
            for kinds in (fields, everything)
        ]
        with_boxes, without = (next(iter(loader)) for loader in loaders)
        for index in range(SAMPLES):
            height, width = sample(index)["mask"].shape
            plan = json.loads(loaders[0].recipe.plan(width, height, seed=number, sample=index))
            expected = theirs(index, plan)
            if expected is None:
                counts["rounded sizes"] += 1
                continue
            case = f"recipe {number}, sample {index}: {plan}"
            assert equal(with_boxes["image"].numpy()[index], np.asarray(expected["image"])), case
            assert equal(with_boxes["mask"].numpy()[index], expected["mask"]), case
            clamped = F.clamp_bounding_boxes(expected["boxes"])
            boxes, stays = F.sanitize_bounding_boxes(clamped)
            stays = stays.numpy()
            assert equal(with_boxes["boxes"][index].numpy(), boxes), case
            assert with_boxes["box_index"][index].tolist() == np.flatnonzero(stays).tolist(), case
            for name in ("masks", "keypoints"):
                assert equal(without[name][index].numpy(), expected[name]), case
                assert equal(with_boxes[name][index].numpy(), np.asarray(expected[name])[stays]), (
                    case
                )
            counts["samples"] += 1
            counts["boxes"] += int(stays.sum())
            counts["dropped"] += int((~stays).sum())
    print(", ".join(f"{count} {name}" for name, count in counts.items()))
    assert counts["samples"] > 300 and counts["rounded sizes"] < 100
    assert counts["boxes"] > 800 and counts["dropped"] > 300
