"""Compares loaded batches with torchvision on Pillow images, bit for bit.

    compare_torchvision.py PHOTOGRAPHS [--count 50] [--size 224] [--epochs 3] [--encoded]

Needs torch, torchvision, numpy and Pillow. Photographs are decoded by Pillow and handed over as
BMP files, so that the JPEG decoder has no part in it; with --encoded they are handed over as they
are, to be decoded exactly. For the training recipe the crop and the flip
that `dump_batch` reports are given to torchvision's functions; the evaluation recipe is torchvision's
own `Compose`. Exits with 1 when one number differs.
"""

import argparse
import glob
import json
import os
import shutil
import subprocess
import sys
import tempfile

import numpy as np
import torch
import torchvision
from PIL import Image
from torchvision.transforms import v2
from torchvision.transforms.v2 import functional as F

MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TO_TENSOR = v2.Compose(
    [v2.PILToTensor(), v2.ToDtype(torch.float32, scale=True), v2.Normalize(MEAN, STD)]
)


def load(folder, recipe, size, epoch):
    """The images and plans of one epoch."""
    out = os.path.join(folder, "out.f32")
    command = ["cargo", "run", "-q", "--release", "-p", "tl-pipeline", "--example", "dump_batch", "--"]
    command += [os.path.join(folder, "images"), recipe, str(size), str(epoch), out]
    lines = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    images = np.fromfile(out, np.float32).reshape(-1, 3, size, size)
    plans = [json.loads(line) for line in lines.splitlines()]
    assert len(plans) == len(images)
    return images, plans


def train(image, plan, size):
    x, y, w, h = plan["region"]
    assert x + w <= image.width and y + h <= image.height, plan
    image = F.resized_crop(image, y, x, h, w, [size, size], antialias=True)
    return F.horizontal_flip(image) if plan["flip"] else image


def evaluate(image, plan, size):
    side = int(round(size * 256 / 224))
    return v2.Compose([v2.Resize(side, antialias=True), v2.CenterCrop(size)])(image)


def compare(images, expected):
    differing = int((images.view(np.uint32) != expected.view(np.uint32)).sum())
    worst = float(np.abs(images - expected).max())
    print(f"  {images.size} numbers, {differing} differ in a bit, largest difference {worst:g}")
    return differing == 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("photographs")
    parser.add_argument("--count", type=int, default=50)
    parser.add_argument("--size", type=int, default=224)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--encoded", action="store_true")
    options = parser.parse_args()
    paths = sorted(
        path
        for path in glob.glob(os.path.join(options.photographs, "**"), recursive=True)
        if path.lower().endswith((".jpg", ".jpeg", ".png"))
    )[: options.count]
    print(f"torch {torch.__version__}, torchvision {torchvision.__version__}, "
          f"Pillow {Image.__version__}, {len(paths)} photographs")
    with tempfile.TemporaryDirectory() as folder:
        os.mkdir(os.path.join(folder, "images"))
        pictures = []
        for number, path in enumerate(paths):
            with Image.open(path) as image:
                pictures.append(image.convert("RGB"))
            name = os.path.join(folder, "images", f"{number:05}")
            if options.encoded:
                shutil.copy(path, name + os.path.splitext(path)[1].lower().replace("jpeg", "jpg"))
            else:
                pictures[-1].save(name + ".bmp")
        equal = True
        works = [("imagenet-train", train, epoch) for epoch in range(options.epochs)]
        for recipe, transform, epoch in [*works, ("imagenet-eval", evaluate, 0)]:
            images, plans = load(folder, recipe, options.size, epoch)
            expected = np.stack(
                [
                    TO_TENSOR(transform(pictures[plan["index"]], plan, options.size)).numpy()
                    for plan in plans
                ]
            )
            flips = sum(plan["flip"] for plan in plans)
            print(f"{recipe} epoch {epoch}: {len(plans)} images, {flips} flipped")
            equal &= compare(images, expected)
    sys.exit(0 if equal else 1)


if __name__ == "__main__":
    main()
