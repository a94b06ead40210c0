#!/usr/bin/env python3
"""Writes what torch, torchvision and Pillow make of images of noise, as CRC-32.

    python generate.py > cases.txt

One case a line, its kind first:
    blur WIDTH HEIGHT COLUMNS ROWS SIGMA CRC     torchvision's gaussian_blur of a uint8 image
    mix LAMBDA F32 F16 BF16                      MixUp's arithmetic on rows of (byte - 128) / 64
    grid WIDTH HEIGHT DISTANCE LENGTH X Y DEGREES SQUARES CRC
                                                 GridMask as its authors' code draws it, in white
Byte i of the noise is byte i % 8 of SplitMix64(seed 3) at counter i / 8 + 1.
"""
import math
import random
import zlib

import numpy as np
import PIL
import torch
import torchvision
from PIL import Image
from torchvision.transforms.v2 import functional as F


def noise(count, seed=3):
    z = np.uint64(seed) + np.arange(1, count // 8 + 2, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return (z ^ (z >> np.uint64(31))).astype("<u8").view(np.uint8)[:count]


def crc(array):
    return f"{zlib.crc32(np.ascontiguousarray(array).tobytes()):08x}"


def blur(width, height, columns, rows, sigma):
    image = torch.from_numpy(noise(width * height * 3).reshape(height, width, 3)).permute(2, 0, 1)
    out = F.gaussian_blur(image.contiguous(), [columns, rows], [sigma, sigma])
    print("blur", width, height, columns, rows, sigma, crc(out.permute(1, 2, 0)))


def mix(lam):
    crcs = []
    for dtype in (torch.float32, torch.float16, torch.bfloat16):
        rows = ((torch.from_numpy(noise(2000)).float() - 128) / 64).to(dtype).reshape(2, 1000)
        out = rows.roll(1, 0).mul_(1.0 - lam).add_(rows.mul(lam))
        crcs.append(crc(out[0].view(torch.uint8).numpy()))
    print("mix", lam, *crcs)


def grid(width, height, distance, length, x, y, degrees, squares):
    side = math.ceil(math.sqrt(width * width + height * height))
    place = np.arange(side)
    columns, rows = ((place - offset) % distance >= length for offset in (x, y))
    mask = Image.fromarray(np.uint8(columns[None] & rows[:, None])).rotate(degrees)
    top, left = (side - height) // 2, (side - width) // 2
    mask = np.asarray(mask)[top : top + height, left : left + width]
    covered = mask == squares
    print("grid", width, height, distance, length, x, y, degrees, squares, crc(covered * np.uint8(255)))


def main():
    rng = random.Random(1)
    print(f"# torch {torch.__version__}, {torch.backends.cpu.get_cpu_capability()}, torchvision {torchvision.__version__}, Pillow {PIL.__version__}")
    for sigma in (0.1, 0.5, 1.0, 1.7, 2.0):
        for columns, rows, width, height in ((3, 3, 67, 45), (5, 9, 40, 30), (23, 23, 91, 60), (33, 1, 50, 7)):
            blur(width, height, columns, rows, sigma)
    for lam in [0.0, 0.25, 0.5, 1.0] + [rng.random() for _ in range(8)]:
        mix(lam)
    for case in range(40):
        distance = rng.randint(2, 224)
        degrees = case % 4 * 90 if case < 8 else rng.randrange(360)
        grid(rng.randint(1, 150), rng.randint(1, 150), distance, rng.randint(1, distance), rng.randrange(distance), rng.randrange(distance), degrees, case % 2)


main()
