#!/usr/bin/env python3
"""Writes resample cases with the CRC-32 of what Pillow makes of them.

    python generate.py --seed 1 --count 600 > cases.txt
    python generate.py --seed 3 --count 600 --fractions > boxes.txt
    python generate.py --seed 5 --count 700 --largest 200 --torch > tensors.txt
    python generate.py --seed 7 --count 600 --largest 150 --wide > wide.txt

One case a line: image width, height, channels, kind and seed of the pixels, region x y w h,
resized w h, window x y w h, filter, CRC-32 of the interleaved result of
image.crop(region).resize(resized, filter).crop(window).
With --fractions the region's edges lie at multiples of 1/8 pixel: the crop takes every pixel that
the region touches, and resize gets the region as its box.
With --torch the same is done to uint8 tensors by torchvision's resize; filters are then its
interpolation modes, and "plain-" ones are without antialiasing.
With --wide the channels are a type of pixels: u16 (mode I;16), f32 (mode F; 16-bit numbers less 32768,
divided by 7) or rgba.
tests/it/pillow.rs of tl-simd draws the same pixels from the kind and the seed.
"""
import argparse
import random
import sys
import zlib

import numpy
from PIL import Image, __version__

FILTERS = ["nearest", "box", "bilinear", "hamming", "bicubic", "lanczos"]
TORCH_FILTERS = ["nearest", "nearest-exact", "bilinear", "bicubic", "lanczos", "plain-bilinear", "plain-bicubic"]
# Four channels as CMYK: RGBA would be multiplied by alpha first.
MODES = {1: "L", 3: "RGB", 4: "CMYK", "u16": "I;16", "f32": "F", "rgba": "RGBA"}
BYTES = {1: 1, 3: 3, 4: 4, "u16": 2, "f32": 2, "rgba": 4}


def pixels(kind, seed, size):
    """SplitMix64 in counter mode, little endian; `extreme` keeps only black and white."""
    with numpy.errstate(over="ignore"):
        z = numpy.uint64(seed) + numpy.arange(1, size // 8 + 2, dtype=numpy.uint64) * numpy.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> numpy.uint64(30))) * numpy.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> numpy.uint64(27))) * numpy.uint64(0x94D049BB133111EB)
        z = z ^ (z >> numpy.uint64(31))
    noise = z.astype("<u8").view(numpy.uint8)[:size]
    return noise if kind == "noise" else (noise & 1) * numpy.uint8(255)


def part(rng, size):
    if rng.random() < 0.3:
        return 0, size
    length = rng.randint(1, size)
    return rng.randint(0, size - length), length


def shrink(rng, start, length):
    """Moves the edges inwards by less than a pixel each, and leaves something."""
    while True:
        left, right = rng.randrange(8) / 8, rng.randrange(8) / 8
        if left + right < length:
            return start + left, length - left - right


def target(rng, size, largest):
    choice = rng.random()
    if choice < 0.1:
        return size
    if choice < 0.2:
        return rng.randint(1, 4)
    return rng.randint(1, largest)


def resize_tensor(image, size, name):
    """torchvision's resize of the image as a uint8 tensor in CHW."""
    import torch
    from torchvision.transforms.v2 import functional

    pixels = numpy.asarray(image).reshape(image.height, image.width, -1)
    tensor = torch.from_numpy(pixels.transpose(2, 0, 1).copy())
    mode = name.removeprefix("plain-")
    antialias = not name.startswith("plain-")
    result = functional.resize(tensor, [size[1], size[0]], interpolation=mode, antialias=antialias)
    pixels = numpy.ascontiguousarray(result.numpy().transpose(1, 2, 0))
    return Image.frombytes(image.mode, size, pixels.tobytes())


def versions(args):
    if not args.torch:
        return f"Pillow {__version__}"
    import torch
    import torchvision

    capability = torch.backends.cpu.get_cpu_capability()
    return f"torch {torch.__version__.split('+')[0]} ({capability}), torchvision {torchvision.__version__.split('+')[0]}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--count", type=int, required=True)
    parser.add_argument("--largest", type=int, default=300)
    parser.add_argument("--fractions", action="store_true")
    parser.add_argument("--torch", action="store_true")
    parser.add_argument("--wide", action="store_true")
    args = parser.parse_args()
    rng = random.Random(args.seed)
    options = f"--seed {args.seed} --count {args.count} --largest {args.largest}"
    flags = " --fractions" * args.fractions + " --torch" * args.torch + " --wide" * args.wide
    print(f"# {versions(args)}, {options}{flags}")
    filters = TORCH_FILTERS if args.torch else FILTERS
    for case in range(args.count):
        largest = rng.choice([8, 40, args.largest])
        width, height = rng.randint(1, largest), rng.randint(1, largest)
        if rng.random() < 0.05:
            width, height = rng.choice([(width, 1500), (1500, height)])
        channels, kind = rng.choice([1, 3, 3, 4]), rng.choice(["noise", "extreme"])
        if args.wide:
            channels = rng.choice(["u16", "f32", "rgba"])
        seed = rng.getrandbits(48)
        (x, w), (y, h) = part(rng, width), part(rng, height)
        rw, rh = target(rng, w, largest), target(rng, h, largest)
        (wx, ww), (wy, wh) = part(rng, rw), part(rng, rh)
        name = filters[case % len(filters)]
        data = pixels(kind, seed, width * height * BYTES[channels]).tobytes()
        if channels == "f32":
            data = ((numpy.frombuffer(data, "<u2").astype("<f4") - 32768) / numpy.float32(7)).tobytes()
        image = Image.frombytes(MODES[channels], (width, height), data)
        image = image.crop((x, y, x + w, y + h))
        box = None
        if args.fractions:
            (left, w), (top, h) = shrink(rng, 0, w), shrink(rng, 0, h)
            box = (left, top, left + w, top + h)
            x, y = x + left, y + top
        if args.torch:
            try:
                image = resize_tensor(image, (rw, rh), name)
            except RuntimeError as error:
                # torch 2.15 fails an assertion of its own where a shape fits two memory formats.
                print(error, file=sys.stderr)
                continue
        else:
            image = image.resize((rw, rh), Image.Resampling[name.upper()], box)
        image = image.crop((wx, wy, wx + ww, wy + wh))
        crc = zlib.crc32(image.tobytes())
        print(width, height, channels, kind, seed, x, y, w, h, rw, rh, wx, wy, ww, wh, name, f"{crc:08x}")


main()
