#!/usr/bin/env python3
"""Writes the RGB that FFmpeg makes of planes of noise, as checksums, by PyAV on x86.

usage: video_colors.py [--seed N] [--sizes N] > testdata/video_colors/cases.txt

A line is a case: pixel format, width, height, matrix by its code point in H.273, range (1 limited,
2 full), seed, CRC-32 of the pixels. Samples are the bytes, or the low bits of pairs of bytes, of
SplitMix64 in counter mode, plane by plane.
"""

import argparse
import zlib

import av
import numpy as np

# name: bits, halvings of width and height of chroma
FORMATS = {
    "yuv420p": (8, 1, 1),
    "yuv422p": (8, 1, 0),
    "yuv444p": (8, 0, 0),
    "yuv420p10le": (10, 1, 1),
    "yuv422p10le": (10, 1, 0),
    "yuv444p10le": (10, 0, 0),
    "yuv420p12le": (12, 1, 1),
    "yuv444p12le": (12, 0, 0),
    "gray": (8, None, None),
    "gray10le": (10, None, None),
    "gray12le": (12, None, None),
}
MATRICES = [5, 1, 9, 4, 7, 2]
SIZES = [(64, 48), (65, 47), (1, 1), (2, 3), (3, 2), (97, 64), (200, 6), (38, 33)]


def noise(count, seed):
    """Return bytes of SplitMix64 in counter mode."""
    counter = np.arange(1, (count + 7) // 8 + 1, dtype=np.uint64)
    z = np.uint64(seed) + counter * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z = z ^ (z >> np.uint64(31))
    return z.astype("<u8").view(np.uint8)[:count]


def picture(name, width, height, seed):
    """Return a frame of noise."""
    bits, _, _ = FORMATS[name]
    size = 2 if bits > 8 else 1
    frame = av.VideoFrame(width, height, name)
    planes = [(plane.width, plane.height) for plane in frame.planes]
    samples = noise(sum(w * h for w, h in planes) * size, seed)
    for plane, (columns, rows) in zip(frame.planes, planes, strict=True):
        values = samples[: columns * rows * size].reshape(rows, columns * size)
        samples = samples[columns * rows * size :]
        if bits > 8:
            words = values.copy().view("<u2") & ((1 << bits) - 1)
            values = words.astype("<u2").view(np.uint8)
        stored = np.zeros((rows, plane.line_size), np.uint8)
        stored[:, : columns * size] = values
        plane.update(stored.tobytes())
    return frame


def main():
    """Write every case."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--sizes", type=int, default=0, help="so many drawn sizes")
    arguments = parser.parse_args()
    rng = np.random.default_rng(arguments.seed)
    sizes = [tuple(rng.integers(1, 400, 2).tolist()) for _ in range(arguments.sizes)]
    seed = arguments.seed
    for name in FORMATS:
        for width, height in sizes or SIZES:
            for matrix in MATRICES:
                for color_range in (1, 2):
                    frame = picture(name, width, height, seed)
                    frame.colorspace = matrix
                    frame.color_range = color_range
                    pixels = frame.to_ndarray(format="rgb24").tobytes()
                    numbers = (width, height, matrix, color_range, seed)
                    print(name, *numbers, zlib.crc32(pixels))
                    seed += 1


if __name__ == "__main__":
    main()
