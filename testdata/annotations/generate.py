#!/usr/bin/env python3
"""Writes boxes and masks with what torchvision's kernels make of them.

    python generate.py --seed 1 --count 240 > cases.jsonl

One JSON object a line. Boxes: format, canvas (width, height), boxes, the moves, and afterwards
format, canvas, boxes, and which ones sanitising left. Masks: size, seed of the numbers (SplitMix64,
as testdata/resample), the moves, and afterwards size and CRC-32.
tests/it/annotations.rs of tl-transform reads them.
"""
import argparse
import json
import random
import sys
import zlib

import numpy
import torch
import torchvision
from torchvision import tv_tensors
from torchvision.transforms.v2 import functional as F

FORMATS = ["xyxy", "xywh", "cxcywh"]


def noise(seed, size):
    with numpy.errstate(over="ignore"):
        z = numpy.uint64(seed) + numpy.arange(1, size // 8 + 2, dtype=numpy.uint64) * numpy.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> numpy.uint64(30))) * numpy.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> numpy.uint64(27))) * numpy.uint64(0x94D049BB133111EB)
        z = z ^ (z >> numpy.uint64(31))
    return z.astype("<u8").view(numpy.uint8)[:size]


def draw_move(rng, width, height, mask):
    """A move as JSON for an image of this size."""
    kind = rng.choice(["crop", "resize", "pad", "flip", "flip_vertical", "clamp", "convert"])
    if kind == "crop":
        x, y = rng.randint(-width // 2, width - 1), rng.randint(-height // 2, height - 1)
        # torchvision 0.29 gives another size than asked for where a crop ends before the image.
        w, h = rng.randint(max(1, 1 - x), 2 * width), rng.randint(max(1, 1 - y), 2 * height)
        return {"crop": [x, y, w, h]}
    if kind == "resize":
        return {"resize": [rng.randint(1, 200), rng.randint(1, 200)]}
    if kind == "pad":
        borders = ["constant"]
        if mask and min(width, height) > 9:
            borders = ["constant", "edge", "reflect", "symmetric"]
        return {"pad": [rng.randint(0, 9) for _ in range(4)], "border": rng.choice(borders), "fill": rng.randint(0, 255)}
    if mask and kind in ("clamp", "convert"):
        return {"resize_exact": [rng.randint(1, 200), rng.randint(1, 200)]}
    return {"convert": rng.choice(FORMATS)} if kind == "convert" else {kind: None}


def apply(move, value):
    (kind, what), *_ = move.items()
    if kind == "crop":
        x, y, w, h = what
        return F.crop(value, y, x, h, w)
    if kind == "resize":
        return F.resize(value, [what[1], what[0]], interpolation="bilinear")
    if kind == "resize_exact":
        return F.resize(value, [what[1], what[0]], interpolation="nearest-exact")
    if kind == "pad":
        return F.pad(value, what, fill=move["fill"], padding_mode=move["border"])
    if kind == "flip":
        return F.horizontal_flip(value)
    if kind == "flip_vertical":
        return F.vertical_flip(value)
    if kind == "clamp":
        return F.clamp_bounding_boxes(value)
    return F.convert_bounding_box_format(value, new_format=what.upper())


def state(boxes):
    height, width = boxes.canvas_size
    return {
        "format": boxes.format.value.lower(),
        "canvas": [width, height],
        "boxes": boxes.as_subclass(torch.Tensor).reshape(-1, 4).tolist(),
    }


def boxes_case(rng):
    width, height = rng.randint(1, 300), rng.randint(1, 300)
    corners = []
    for _ in range(rng.randint(0, 5)):
        x, y = rng.uniform(-0.2, 1) * width, rng.uniform(-0.2, 1) * height
        corners.append([x, y, x + rng.uniform(0, 1) * width, y + rng.uniform(0, 1) * height])
    if rng.random() < 0.3:
        corners = [[float(round(c)) for c in box] for box in corners]
    data = torch.tensor(corners, dtype=torch.float32).reshape(-1, 4)
    boxes = tv_tensors.BoundingBoxes(data, format="XYXY", canvas_size=(height, width))
    boxes = F.convert_bounding_box_format(boxes, new_format=rng.choice(FORMATS).upper())
    case = {**state(boxes), "moves": []}
    for _ in range(rng.randint(1, 4)):
        height, width = boxes.canvas_size
        move = draw_move(rng, width, height, False)
        case["moves"].append(move)
        boxes = apply(move, boxes)
    limits = [rng.choice([1.0, 2.5, 20.0]), rng.choice([1.0, 30.0, 500.0])]
    _, stay = F.sanitize_bounding_boxes(boxes, min_size=limits[0], min_area=limits[1])
    return {**case, "after": state(boxes), "sanitize": limits, "stay": stay.tolist()}


def mask_case(rng):
    width, height, seed = rng.randint(1, 80), rng.randint(1, 80), rng.getrandbits(48)
    mask = tv_tensors.Mask(torch.from_numpy(noise(seed, width * height).reshape(height, width).copy()))
    case = {"mask": [width, height], "seed": seed, "moves": []}
    for _ in range(rng.randint(1, 4)):
        height, width = mask.shape
        move = draw_move(rng, width, height, True)
        case["moves"].append(move)
        mask = apply(move, mask)
    height, width = mask.shape
    crc = zlib.crc32(mask.contiguous().numpy().tobytes())
    return {**case, "after": [width, height], "crc": crc}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--count", type=int, required=True)
    args = parser.parse_args()
    rng = random.Random(args.seed)
    print(f"torchvision {torchvision.__version__}", file=sys.stderr)
    for number in range(args.count):
        print(json.dumps(boxes_case(rng) if number % 3 else mask_case(rng), separators=(",", ":")))


if __name__ == "__main__":
    main()
