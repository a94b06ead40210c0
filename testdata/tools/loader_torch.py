"""The recipe of `examples/recipes/imagenet-randaugment.json` through PyTorch's DataLoader, samples per second.

    loader_torch.py PHOTOGRAPHS [--workers 2] [--backend pil|tensor] [--epochs 5] [--batch 64]

RandomResizedCrop(224), RandomHorizontalFlip, ColorJitter(0.4, 0.4, 0.4, 0.1), RandAugment(2, 9),
float, Normalize: on Pillow images, or on uint8 tensors that torchvision.io decodes. With one worker
the whole process tree stays on one core, with two it has two. The workers persist, the first epoch warms up and
is not counted.
"""

import argparse
import json
import os
import pathlib
import statistics
import time

MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("photographs", type=pathlib.Path)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--backend", choices=("pil", "tensor"), default="pil")
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--batch", type=int, default=64)
    return parser.parse_args()


OPTIONS = arguments()
os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[-OPTIONS.workers :])

import torch
import torchvision
from PIL import Image
from torchvision.transforms import v2

torch.set_num_threads(1)


def chain(backend):
    return v2.Compose(
        [
            v2.RandomResizedCrop(224, antialias=True),
            v2.RandomHorizontalFlip(),
            v2.ColorJitter(0.4, 0.4, 0.4, 0.1),
            v2.RandAugment(2, 9),
            *([v2.PILToTensor()] if backend == "pil" else []),
            v2.ToDtype(torch.float32, scale=True),
            v2.Normalize(MEAN, STD),
        ]
    )


class Photographs(torch.utils.data.Dataset):
    """The files of a folder with numbers for labels, as `ImageFolder` gives them."""

    def __init__(self, folder, backend):
        self.files = sorted(folder.rglob("*.JPEG")) + sorted(folder.rglob("*.jpg"))
        self.backend, self.transform = backend, chain(backend)

    def __len__(self):
        return len(self.files)

    def __getitem__(self, index):
        return self.transform(self.load(self.files[index])), index

    def load(self, file):
        if self.backend == "tensor":
            return torchvision.io.decode_image(str(file), torchvision.io.ImageReadMode.RGB)
        with open(file, "rb") as stream:
            return Image.open(stream).convert("RGB")


def main():
    dataset = Photographs(OPTIONS.photographs, OPTIONS.backend)
    loader = torch.utils.data.DataLoader(
        dataset,
        batch_size=OPTIONS.batch,
        shuffle=True,
        num_workers=OPTIONS.workers,
        persistent_workers=OPTIONS.workers > 0,
        worker_init_fn=lambda _: torch.set_num_threads(1),
    )
    rates = []
    for epoch in range(OPTIONS.epochs + 1):
        start, samples = time.perf_counter(), 0
        for images, _ in loader:
            samples += len(images)
        if epoch:
            rates.append(samples / (time.perf_counter() - start))
    print(
        json.dumps(
            {
                "loader": f"torch {torch.__version__} DataLoader, {OPTIONS.backend}",
                "workers": OPTIONS.workers,
                "images_per_s": round(statistics.median(rates), 1),
                "min": round(min(rates), 1),
                "max": round(max(rates), 1),
            }
        )
    )


if __name__ == "__main__":
    main()
