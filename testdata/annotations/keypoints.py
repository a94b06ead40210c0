#!/usr/bin/env python3
"""Writes keypoints with what torchvision's kernels make of them.

    python keypoints.py --seed 1 --count 120 > keypoints.jsonl

One JSON object a line: size (width, height) and points before and after, and in between either the
moves of generate.py or a warp as tl-transform reads it.
tests/it/keypoints.rs of tl-transform reads them.
"""
import argparse
import json
import random
import sys

import torch
import torchvision
from generate import apply, draw_move
from torchvision import tv_tensors
from torchvision.transforms.v2 import functional as F
from warps import WARPS


def keypoints(rng, width, height):
    count = rng.choice([1, 5, 17, 51])
    points = [[rng.uniform(-0.2, 1.2) * width, rng.uniform(-0.2, 1.2) * height] for _ in range(count)]
    if rng.random() < 0.5:
        points = [[float(round(number)) for number in point] for point in points]
    data = torch.tensor(points, dtype=torch.float32)
    return tv_tensors.KeyPoints(data, canvas_size=(height, width))


def state(points):
    height, width = points.canvas_size
    return {"size": [width, height], "points": points.as_subclass(torch.Tensor).tolist()}


def moves_case(rng):
    points = keypoints(rng, rng.randint(1, 300), rng.randint(1, 300))
    case = {"before": state(points), "moves": []}
    while len(case["moves"]) < 3:
        height, width = points.canvas_size
        move = draw_move(rng, width, height, False)
        if "clamp" in move or "convert" in move:
            continue
        case["moves"].append(move)
        points = apply(move, points)
    return {**case, "after": state(points)}


def warp_case(rng):
    width, height = rng.randint(9, 150), rng.randint(9, 150)
    points = keypoints(rng, width, height)
    kind = rng.choice(list(WARPS))
    draw, warp = WARPS[kind]
    parameters = draw(rng, width, height)
    after = warp(points, **parameters)
    mask = warp(tv_tensors.Mask(torch.zeros(height, width)), **parameters)
    size = list(mask.shape[::-1])
    if list(after.canvas_size[::-1]) != size:
        # torchvision gives keypoints another canvas than masks, by rounding.
        return None
    step = {"interpolation": "bilinear", "fill": None, **parameters}
    if "expand" in step:
        step["expand"] = size if step["expand"] else None
    return {"before": state(points), "warp": {kind: step}, "after": state(after)}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--count", type=int, required=True)
    args = parser.parse_args()
    torch.set_num_threads(1)
    rng = random.Random(args.seed)
    print(f"torchvision {torchvision.__version__}", file=sys.stderr)
    for number in range(args.count):
        case = warp_case(rng) if number % 3 else moves_case(rng)
        if case is not None:
            print(json.dumps(case, separators=(",", ":")))


if __name__ == "__main__":
    main()
