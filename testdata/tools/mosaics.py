"""Makes large JPEG files with the detail of small ones, to measure scaled decoding with.

    mosaics.py PHOTOGRAPHS OUT [--count 210]

Each of the files is 2048x1536: sixteen photographs, each resized and cropped to 512x384. Quality 90;
4:2:0, 4:4:4 and 4:2:2 in turn. Needs Pillow. docs/jpeg.md has the figures of --count 210.
"""

import argparse
import glob
import os
import random

from PIL import Image

TILE = (512, 384)
TILES = 4


def tile(path):
    with Image.open(path) as photograph:
        image = photograph.convert("RGB")
    scale = max(TILE[0] / image.width, TILE[1] / image.height)
    size = [max(side, round(length * scale)) for side, length in zip(TILE, image.size)]
    return image.resize(size, Image.Resampling.LANCZOS).crop((0, 0, *TILE))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("photographs")
    parser.add_argument("out")
    parser.add_argument("--count", type=int, default=210)
    options = parser.parse_args()
    paths = sorted(glob.glob(os.path.join(options.photographs, "**", "*.JPEG"), recursive=True))
    rng = random.Random(7)
    os.makedirs(options.out, exist_ok=True)
    for number in range(options.count):
        mosaic = Image.new("RGB", (TILE[0] * TILES, TILE[1] * TILES))
        for place in range(TILES * TILES):
            corner = (place % TILES * TILE[0], place // TILES * TILE[1])
            mosaic.paste(tile(rng.choice(paths)), corner)
        subsampling = ["4:2:0", "4:4:4", "4:2:2"][number % 3]
        path = os.path.join(options.out, f"{number:04}.jpg")
        mosaic.save(path, quality=90, subsampling=subsampling)


main()
