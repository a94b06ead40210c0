#!/usr/bin/env python3
"""Writes the CRC-32 of what torchvision makes of all 2^24 colours, on Pillow images and on tensors.

    python generate.py [--seed 1] [--factors 0] > cases.txt

One case a line: operation, `pil` or `tensor`, parameter, and the CRC-32 of the interleaved result.
Colour i has red i >> 16, green i >> 8 & 255 and blue i & 255; the image is 4096 pixels wide.
"""
import argparse
import random
import zlib

import numpy
import PIL
import torch
import torchvision
from PIL import Image
from torchvision.transforms.v2 import functional as F

SIDE = 4096


def colours():
    index = numpy.arange(1 << 24, dtype=numpy.uint32).reshape(SIDE, SIDE)
    return numpy.stack([index >> 16, index >> 8 & 255, index & 255], 2).astype(numpy.uint8)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--factors", type=int, default=0)
    options = parser.parse_args()
    rng = random.Random(options.seed)
    torch.set_num_threads(1)
    pixels = colours()
    pillow = Image.fromarray(pixels)
    tensor = torch.from_numpy(pixels.transpose(2, 0, 1).copy())
    print(f"# torch {torch.__version__}, torchvision {torchvision.__version__}, Pillow {PIL.__version__}, CPU")

    def case(name, parameter, operation):
        for mode, image in (("pil", pillow), ("tensor", tensor)):
            result = operation(image)
            result = numpy.asarray(result) if mode == "pil" else result.numpy().transpose(1, 2, 0)
            print(name, mode, parameter, f"{zlib.crc32(numpy.ascontiguousarray(result)):08x}", flush=True)

    case("grey", 0, lambda image: F.rgb_to_grayscale(image, 3))
    drawn = [rng.uniform(0, 2) for _ in range(options.factors)]
    for factor in [1.3, *drawn]:
        case("saturation", factor, lambda image: F.adjust_saturation(image, factor))
    drawn = [rng.uniform(-0.5, 0.5) for _ in range(options.factors)]
    for factor in [0.0, -0.1, 0.25, *drawn]:
        case("hue", factor, lambda image: F.adjust_hue(image, factor))


main()
