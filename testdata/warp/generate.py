#!/usr/bin/env python3
"""Writes warps with the CRC-32 of what Pillow and torchvision make of them.

    python generate.py --seed 1 --count 400 > cases.txt

One case a line: image width, height, channels, kind and seed of the pixels, output width and
height, filter, fill (colour, or `none`), map, its numbers, CRC-32 of the interleaved result.
Maps `affine` and `perspective` are Pillow's `Image.transform` with doubles (their bits in hex).
Maps `grid-affine`, `grid-perspective` and `grid-displaced` are torchvision's grids with floats and
`_apply_grid_transform`; displacements are drawn from a seed, scaled by the one number.
tests/it/warp_references.rs of tl-simd draws the same pixels from the kind and the seed.
"""
import argparse
import random
import struct
import zlib

import numpy
import PIL
import torch
import torchvision
from PIL import Image
from torchvision.transforms.v2.functional import _geometry as geometry

FILTERS = {"nearest": Image.NEAREST, "bilinear": Image.BILINEAR, "bicubic": Image.BICUBIC}


def noise(seed, size):
    """SplitMix64 in counter mode, little endian."""
    with numpy.errstate(over="ignore"):
        z = numpy.uint64(seed) + numpy.arange(1, size // 8 + 2, dtype=numpy.uint64) * numpy.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> numpy.uint64(30))) * numpy.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> numpy.uint64(27))) * numpy.uint64(0x94D049BB133111EB)
        z = z ^ (z >> numpy.uint64(31))
    return z.astype("<u8").view(numpy.uint8)[:size]


def pixels(kind, seed, size):
    drawn = noise(seed, size)
    return {"noise": drawn, "extreme": (drawn & 1) * numpy.uint8(255), "flat": drawn * 0 + drawn[0]}[kind]


def displacements(seed, width, height, scale):
    words = noise(seed, 8 * width * height).view("<u4")
    unit = (words >> 8).astype(numpy.float32) * numpy.float32(2.0**-24) - numpy.float32(0.5)
    return (unit * numpy.float32(scale)).reshape(2, height, width)


def matrix(rng, width, height):
    """An affine map as torchvision's ops make them, or one with corners."""
    kind = rng.choice(["rotation", "affine", "affine", "scale", "translation", "exact", "far"])
    centre = [width * 0.5, height * 0.5]
    inverse = geometry._get_inverse_affine_matrix
    if kind == "rotation":
        return inverse(centre, rng.uniform(-180, 180), [0, 0], 1, [0, 0])
    if kind == "affine":
        shift = [rng.randint(-20, 20), rng.randint(-20, 20)]
        shear = [rng.uniform(-40, 40), rng.uniform(-40, 40)]
        return inverse(centre, rng.uniform(-180, 180), shift, rng.uniform(0.3, 3), shear)
    if kind == "scale":
        return [rng.uniform(-3, 3), 0, rng.uniform(-30, 30), 0, rng.uniform(-3, 3), rng.uniform(-30, 30)]
    if kind == "translation":
        return [1, 0, rng.randint(-30, 30), 0, 1, rng.randint(-30, 30)]
    if kind == "exact":
        return inverse(centre, rng.choice([0, 45, 90, 180, 270]), [rng.randint(-2, 2), 0], rng.choice([1, 2, 0.5]), [0, 0])
    return [rng.uniform(-400, 400) for _ in range(2)] + [40000 * rng.uniform(-1, 1)] + [rng.uniform(-400, 400) for _ in range(3)]


def perspective(rng, width, height):
    distortion = rng.choice([0.2, 0.5, 1])
    across, down = int(distortion * (width // 2)) + 1, int(distortion * (height // 2)) + 1
    left, right = lambda: rng.randrange(across), lambda: rng.randrange(width - across, width)
    top, bottom = lambda: rng.randrange(down), lambda: rng.randrange(height - down, height)
    corners = [[0, 0], [width - 1, 0], [width - 1, height - 1], [0, height - 1]]
    moved = [[left(), top()], [right(), top()], [right(), bottom()], [left(), bottom()]]
    try:
        return geometry._get_perspective_coeffs(corners, moved)
    except RuntimeError:
        # torchvision has no coefficients for corners that coincide.
        return [0.9, 0.1, 0.25, -0.1, 1.1, 0.5, 0.01, -0.02]


def pillow(rng, image, fill, filter_name):
    height, width = image.shape[:2]
    size = (width, height) if rng.random() < 0.6 else (rng.randint(1, 90), rng.randint(1, 90))
    if rng.random() < 0.7:
        name, method, numbers = "affine", Image.AFFINE, matrix(rng, width, height)
    else:
        name, method, numbers = "perspective", Image.PERSPECTIVE, perspective(rng, width, height)
    colour = fill[0] if image.ndim == 2 else tuple(fill)
    result = Image.fromarray(image).transform(size, method, numbers, FILTERS[filter_name], fillcolor=colour)
    bits = [struct.pack(">d", number).hex() for number in numbers]
    return size, name, bits, numpy.asarray(result)


def tensor(rng, image, fill, filter_name, seed):
    height, width = image.shape[:2]
    size = (width, height)
    name = rng.choice(["grid-affine", "grid-affine", "grid-perspective", "grid-displaced"])
    if name == "grid-affine":
        size = size if rng.random() < 0.6 else (rng.randint(1, 90), rng.randint(1, 90))
        numbers = matrix(rng, 0, 0)
        theta = torch.tensor(numbers, dtype=torch.float32).reshape(1, 2, 3)
        grid = geometry._affine_grid(theta, w=width, h=height, ow=size[0], oh=size[1])
    elif name == "grid-perspective":
        numbers = perspective(rng, width, height)
        grid = geometry._perspective_grid(numbers, width, height, torch.float32, "cpu")
    else:
        numbers = [rng.choice([0.02, 0.2, 2])]
        moved = torch.from_numpy(displacements(seed, width, height, numbers[0])).permute(1, 2, 0)
        grid = geometry._create_identity_grid((height, width), "cpu", torch.float32).add_(moved[None])
    planes = torch.from_numpy(image.reshape(height, width, -1).copy()).permute(2, 0, 1)
    colour = fill and [float(channel) for channel in fill[: planes.shape[0]]]
    result = geometry._apply_grid_transform(planes, grid, filter_name, colour)
    bits = [struct.pack(">f", number).hex() for number in numbers]
    return size, name, bits, result.permute(1, 2, 0).numpy()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--count", type=int, required=True)
    parser.add_argument("--largest", type=int, default=100)
    args = parser.parse_args()
    torch.set_num_threads(1)
    rng = random.Random(args.seed)
    print(f"# Pillow {PIL.__version__}, torch {torch.__version__}, torchvision {torchvision.__version__}, ", end="")
    print(f"--seed {args.seed} --count {args.count} --largest {args.largest}")
    for case in range(args.count):
        largest = rng.choice([2, 8, args.largest])
        width, height = rng.randint(1, largest), rng.randint(1, largest)
        channels, kind = rng.choice([1, 3, 3]), rng.choice(["noise", "noise", "extreme", "flat"])
        seed = rng.getrandbits(48)
        shape = (height, width, channels) if channels > 1 else (height, width)
        image = pixels(kind, seed, width * height * channels).reshape(shape)
        fill = rng.choice([[0, 0, 0], [rng.randrange(256) for _ in range(3)]])
        if case % 2 == 0:
            filter_name = rng.choice(list(FILTERS))
            size, name, bits, result = pillow(rng, image, fill, filter_name)
        else:
            fill, filter_name = rng.choice([None, fill]), rng.choice(["nearest", "bilinear"])
            size, name, bits, result = tensor(rng, image, fill, filter_name, seed)
        colour = "none" if fill is None else ",".join(map(str, fill))
        crc = zlib.crc32(result.tobytes())
        print(width, height, channels, kind, seed, *size, filter_name, colour, name, ",".join(bits), f"{crc:08x}")


if __name__ == "__main__":
    main()
