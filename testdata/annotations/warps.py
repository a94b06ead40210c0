#!/usr/bin/env python3
"""Writes boxes and masks with what torchvision's warps make of them.

    python warps.py --seed 1 --count 160 > warps.jsonl

One JSON object a line: the step as tl-transform reads it, size (width, height), format, boxes before
and after, seed of the mask's numbers (SplitMix64), the mask's size and CRC-32 afterwards.
The size of an expanded rotation is that of torchvision's mask.
tests/it/warp_annotations.rs of tl-transform reads them.
"""
import argparse
import json
import random
import zlib

import torch
from generate import FORMATS, noise
from torchvision import tv_tensors
from torchvision.transforms.functional import _get_perspective_coeffs
from torchvision.transforms.v2 import functional as F


def rotate(rng, width, height):
    angle = rng.choice([rng.uniform(-180, 180), 90, 180, -90, 45])
    center = rng.choice([None, None, [rng.uniform(0, width), rng.uniform(0, height)]])
    return {"angle": angle, "expand": rng.random() < 0.5 and center is None, "center": center}


def affine(rng, width, height):
    return {
        "angle": rng.uniform(-180, 180),
        "translate": [rng.randint(-20, 20), rng.randint(-20, 20)],
        "scale": rng.uniform(0.3, 3),
        "shear": [rng.uniform(-40, 40), rng.choice([0.0, rng.uniform(-40, 40)])],
        "center": rng.choice([None, [rng.uniform(0, width), rng.uniform(0, height)]]),
    }


def perspective(rng, width, height):
    across, down = width // 3 + 1, height // 3 + 1
    left, right = lambda: rng.randrange(across), lambda: rng.randrange(width - across, width)
    top, bottom = lambda: rng.randrange(down), lambda: rng.randrange(height - down, height)
    corners = [[0, 0], [width - 1, 0], [width - 1, height - 1], [0, height - 1]]
    moved = [[left(), top()], [right(), top()], [right(), bottom()], [left(), bottom()]]
    return {"coefficients": _get_perspective_coeffs(corners, moved)}


WARPS = {
    "rotate": (rotate, F.rotate),
    "affine": (affine, F.affine),
    "perspective": (perspective, lambda value, **rest: F.perspective(value, None, None, **rest)),
}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--count", type=int, required=True)
    args = parser.parse_args()
    torch.set_num_threads(1)
    rng = random.Random(args.seed)
    for case in range(args.count):
        largest = rng.choice([20, 80, 150])
        width, height = rng.randint(9, largest), rng.randint(9, largest)
        kind = rng.choice(list(WARPS))
        draw, warp = WARPS[kind]
        parameters = draw(rng, width, height)
        fill = rng.choice([None, 0, rng.randint(1, 255)])
        seed, name = rng.getrandbits(40), rng.choice(FORMATS)
        numbers = torch.from_numpy(noise(seed, width * height).copy()).reshape(height, width)
        mask = warp(tv_tensors.Mask(numbers), fill=fill, **parameters)
        before = []
        for _ in range(rng.randint(1, 5)):
            left, top = rng.uniform(-5, width), rng.uniform(-5, height)
            right, bottom = left + rng.uniform(0, width), top + rng.uniform(0, height)
            before.append([left, top, right, bottom] if name == "xyxy" else [left, top, right - left, bottom - top])
        before = torch.tensor(before, dtype=torch.float32)
        boxes = tv_tensors.BoundingBoxes(before, format=name.upper(), canvas_size=(height, width))
        after = warp(boxes, **parameters)
        size = list(mask.shape[::-1])
        if list(after.canvas_size[::-1]) != size:
            # torchvision gives boxes another canvas than masks, by rounding.
            continue
        step = {"interpolation": "bilinear", "fill": fill, **parameters}
        if "expand" in step:
            step["expand"] = size if step["expand"] else None
        print(json.dumps({
            "step": {"warp": {kind: step}},
            "size": [width, height],
            "format": name,
            "boxes": before.tolist(),
            "boxes_after": after.as_subclass(torch.Tensor).tolist(),
            "seed": seed,
            "size_after": size,
            "crc": zlib.crc32(mask.contiguous().numpy().tobytes()),
        }, separators=(",", ":")))


if __name__ == "__main__":
    main()
