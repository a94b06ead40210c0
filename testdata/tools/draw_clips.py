"""Draws clips of videos, a row for each: frames of one clip next to each other.

    python draw_clips.py FOLDER sheet.png

The first two epochs of a shuffled loader show that frames and crops change from epoch to epoch, and
that all frames of a clip have the same crop and direction. Needs turboloader, NumPy and Pillow.
"""

from __future__ import annotations

import sys

import numpy as np
import turboloader as tl
from PIL import Image

FRAMES, SIDE, GAP, SCALE = 8, 64, 2, 2


def rows(folder: str) -> list[np.ndarray]:
    """Return the clips of two epochs, those of a video below each other."""
    transform = [tl.RandomResizedCrop(SIDE, scale=(0.4, 1.0)), tl.RandomHorizontalFlip()]
    clips = tl.Clips(FRAMES, stride=3)
    loader = tl.DataLoader(folder, 1, transform=transform, clips=clips, num_workers=1)
    epochs = [[batch["video"].numpy()[0].copy() for batch in loader] for _ in range(2)]
    return [clip for both in zip(*epochs, strict=True) for clip in both]


def main(folder: str, output: str) -> None:
    """Draw the clips of a folder."""
    clips = rows(folder)
    cell = SIDE + GAP
    sheet = np.full((len(clips) * cell + GAP, FRAMES * cell + GAP, 3), 255, np.uint8)
    for row, clip in enumerate(clips):
        for column, frame in enumerate(clip):
            y, x = GAP + row * cell, GAP + column * cell
            sheet[y : y + SIDE, x : x + SIDE] = frame
    image = Image.fromarray(sheet)
    size = (image.width * SCALE, image.height * SCALE)
    image.resize(size, Image.Resampling.NEAREST).quantize(128).save(output, optimize=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
