#!/usr/bin/env python3
"""Writes JPEG cases with the CRC-32 of what Pillow, by libjpeg-turbo, decodes from them.

    python generate.py --seed 1 --count 40 > cases.txt

A case draws quantised coefficients, writes a JPEG of them in memory and decodes it. Its line is

    idct KIND SEED ACROSS DOWN CRC CRC CRC CRC     grey, in blocks; scales 1/1, 1/2, 1/4, 1/8
    color KIND SEED WIDTH HEIGHT H V CRC CRC       chroma is H by V times smaller; as YCbCr, as RGB
    pixels SEED CRC                                every pair of Cb and Cr, as RGB

tests/it/jpeg_pillow.rs of tl-simd draws the same coefficients from the kind and the seed.
"""
import argparse
import io
import random
import struct
import zlib

import numpy
from PIL import Image, __version__, features

# How many of 256 coefficients are not zero, whether they get rarer and smaller away from the mean,
# their largest value, the largest quantiser, and the rows that have any.
KINDS = {
    "photo": (400, 1, 160, 16, 8),
    "dense": (256, 0, 1023, 16, 8),
    "extreme": (256, 0, 16383, 65535, 8),
    "sparse": (8, 0, 16383, 65535, 8),
    "flat": (256, 0, 16383, 65535, 1),
}
SAMPLINGS = [(1, 1), (2, 1), (2, 2), (1, 2), (4, 1), (4, 2), (1, 4)]
ZIGZAG = sorted(range(64), key=lambda k: (k // 8 + k % 8, k // 8 if (k // 8 + k % 8) % 2 else k % 8))


def words(seed, first, count):
    """SplitMix64 in counter mode."""
    with numpy.errstate(over="ignore"):
        counters = numpy.arange(first + 1, first + count + 1, dtype=numpy.uint64)
        z = numpy.uint64(seed) + counters * numpy.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> numpy.uint64(30))) * numpy.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> numpy.uint64(27))) * numpy.uint64(0x94D049BB133111EB)
        return [int(word) for word in z ^ (z >> numpy.uint64(31))]


def draw(kind, seed, blocks):
    """The quantiser and the blocks, row by row each."""
    density, falloff, amplitude, largest, rows = KINDS[kind]
    quantizer = [1 + word % largest for word in words(seed, 0, 64)]
    drawn = words(seed, 64, 64 * blocks)
    coefficients = []
    for k, word in enumerate(drawn):
        distance = 1 + (k % 8 + k // 8 % 8) * falloff
        limit = amplitude // distance
        present = (word & 255) * distance < density and k // 8 % 8 < rows
        coefficients.append((word >> 8) % (2 * limit + 1) - limit if present else 0)
    return quantizer, [coefficients[64 * b : 64 * b + 64] for b in range(blocks)]


def number(value):
    """The size of a coefficient and the bits that follow its code."""
    size = abs(value).bit_length()
    return size, format(value if value > 0 else value + (1 << size) - 1, f"0{size}b") if size else ""


def code(symbol):
    """Of 256 symbols, the first half has eight bits and the others nine."""
    return format(symbol, "08b") if symbol < 128 else format(256 + symbol - 128, "09b")


def entropy(order):
    """Codes the blocks, given with their components in the order of the scan."""
    predictors, out = {}, []
    for component, block in order:
        size, bits = number(block[0] - predictors.get(component, 0))
        predictors[component] = block[0]
        out.append(format(size, "05b") + bits)
        run = 0
        last = max((k for k in range(1, 64) if block[ZIGZAG[k]]), default=0)
        for k in range(1, last + 1):
            value = block[ZIGZAG[k]]
            if value == 0:
                run += 1
                continue
            out.append(code(0xF0) * (run // 16))
            size, bits = number(value)
            out.append(code(run % 16 << 4 | size) + bits)
            run = 0
        if last < 63:
            out.append(code(0))
    bits = "".join(out)
    bits += "1" * (-len(bits) % 8)
    return int(bits, 2).to_bytes(len(bits) // 8, "big").replace(b"\xff", b"\xff\x00")


def jpeg(size, quantizer, samplings, order):
    def segment(marker, body):
        return struct.pack(">BBH", 0xFF, marker, len(body) + 2) + body

    def table(destination, lengths, symbols):
        return bytes([destination, *(lengths.get(n, 0) for n in range(1, 17)), *range(symbols)])

    (width, height), n = size, len(samplings)
    frame = struct.pack(">BHHB", 8, height, width, n)
    frame += b"".join(bytes([1 + i, h << 4 | v, 0]) for i, (h, v) in enumerate(samplings))
    scan = bytes([n, *(b for i in range(n) for b in (1 + i, 0)), 0, 63, 0])
    steps = b"".join(struct.pack(">H", quantizer[k]) for k in ZIGZAG)
    return b"".join([
        b"\xff\xd8", segment(0xDB, b"\x10" + steps), segment(0xC1, frame),
        segment(0xC4, table(0x00, {5: 16}, 16) + table(0x10, {8: 128, 9: 128}, 256)),
        segment(0xDA, scan), entropy(order), b"\xff\xd9",
    ])


def decode(data, mode, scale=1):
    image = Image.open(io.BytesIO(data))
    width, height = image.size
    image.draft(mode, (-(-width // scale), -(-height // scale)))
    image.load()
    assert image.mode == mode and image.size == (-(-width // scale), -(-height // scale))
    return f"{zlib.crc32(image.tobytes()):08x}"


def idct_case(kind, seed, across, down):
    quantizer, blocks = draw(kind, seed, across * down)
    data = jpeg((across * 8, down * 8), quantizer, [(1, 1)], [(0, block) for block in blocks])
    print("idct", kind, seed, across, down, *(decode(data, "L", scale) for scale in [1, 2, 4, 8]))


def color_case(kind, seed, width, height, h, v):
    across, down = -(-width // (8 * h)), -(-height // (8 * v))
    quantizer, luma = draw(kind, seed, across * h * down * v)
    chroma = [draw(kind, seed + c, across * down)[1] for c in (1, 2)]
    order = []
    for y, x in ((y, x) for y in range(down) for x in range(across)):
        order += [(0, luma[(y * v + j) * across * h + x * h + i]) for j in range(v) for i in range(h)]
        order += [(c + 1, chroma[c][y * across + x]) for c in (0, 1)]
    data = jpeg((width, height), quantizer, [(h, v), (1, 1), (1, 1)], order)
    print("color", kind, seed, width, height, h, v, decode(data, "YCbCr"), decode(data, "RGB"))


def pixels_case(seed):
    order = []
    for place, word in enumerate(words(seed, 0, 1 << 16)):
        samples = [word & 255, place & 255, place >> 8]
        order += [(c, [sample - 128] + [0] * 63) for c, sample in enumerate(samples)]
    data = jpeg((2048, 2048), [8] * 64, [(1, 1)] * 3, order)
    print("pixels", seed, decode(data, "RGB", 8))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--count", type=int, required=True)
    args = parser.parse_args()
    rng = random.Random(args.seed)
    turbo = features.version("libjpeg_turbo")
    print(f"# Pillow {__version__}, libjpeg-turbo {turbo}, --seed {args.seed} --count {args.count}")
    for kind in list(KINDS) * args.count:
        idct_case(kind, rng.getrandbits(48), rng.randint(1, 21), rng.randint(1, 6))
    for h, v in SAMPLINGS * args.count:
        kind = rng.choice(["photo", "photo", "dense", "extreme"])
        # Upsampling is fancy from three chroma samples on.
        color_case(kind, rng.getrandbits(48), rng.randint(2 * h + 1, 200), rng.randint(1, 60), h, v)
    pixels_case(rng.getrandbits(48))


main()
