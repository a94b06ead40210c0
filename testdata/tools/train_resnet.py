"""ResNet-18 forward and backward on CPU, fed by this loader and by PyTorch's, both ways round.

    train_resnet.py PHOTOGRAPHS [--steps 10] [--batch 32] [--cores 2] [--rounds 2]

PHOTOGRAPHS is a folder of JPEG files; they are put into a folder of ten classes, which both loaders
read: ImageFolder through torch.utils.data.DataLoader with one process for each core, and
turboloader.DataLoader with one thread for each core. The recipe is RandomResizedCrop(224),
RandomHorizontalFlip, float, Normalize. The network computes with as many threads as there are cores,
so that it and the loader share them.

Each round runs torch, turboloader, turboloader, torch; the first two steps of a run are not counted.
`none` trains on one batch again and again: what the network alone takes. One line of JSON for each.
"""

import argparse
import json
import os
import pathlib
import shutil
import statistics
import sys
import tempfile
import time

MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]
CLASSES = 10
WARM_UP = 2


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("photographs", type=pathlib.Path)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=2)
    return parser.parse_args()


OPTIONS = arguments()
os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[-OPTIONS.cores :])

import torch
import torchvision
import turboloader as tl
from torchvision.transforms import v2
from turboloader import transforms as T

torch.set_num_threads(OPTIONS.cores)


def folder_of_classes(photographs, folder):
    files = sorted(photographs.rglob("*.JPEG")) + sorted(photographs.rglob("*.jpg"))
    for number, file in enumerate(files):
        place = folder / f"class_{number % CLASSES}"
        place.mkdir(exist_ok=True)
        shutil.copy(file, place)


def torch_batches(folder):
    chain = v2.Compose(
        [
            v2.RandomResizedCrop(224),
            v2.RandomHorizontalFlip(),
            v2.PILToTensor(),
            v2.ToDtype(torch.float32, scale=True),
            v2.Normalize(MEAN, STD),
        ]
    )
    loader = torch.utils.data.DataLoader(
        torchvision.datasets.ImageFolder(folder, chain),
        batch_size=OPTIONS.batch,
        shuffle=True,
        drop_last=True,
        num_workers=OPTIONS.cores,
        persistent_workers=True,
        worker_init_fn=lambda _: torch.set_num_threads(1),
    )
    while True:
        yield from loader


def our_batches(folder):
    chain = [T.RandomResizedCrop(224), T.RandomHorizontalFlip(), T.ToTensor(), T.Normalize()]
    loader = tl.DataLoader(
        folder,
        OPTIONS.batch,
        num_workers=OPTIONS.cores,
        shuffle=True,
        drop_last=True,
        transform=chain,
        output_format="torch",
    )
    while True:
        for batch in loader:
            yield batch["image"], batch["label"]


def same_batch(folder):
    images = torch.rand(OPTIONS.batch, 3, 224, 224)
    labels = torch.arange(OPTIONS.batch) % CLASSES
    while True:
        yield images, labels


FEEDS = {"torch": torch_batches, "turboloader": our_batches, "none": same_batch}


def run(name, folder):
    """Trains, and returns images per second and the share of the time that it waited for them."""
    torch.manual_seed(0)
    model = torchvision.models.resnet18(num_classes=CLASSES)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    batches = FEEDS[name](folder)
    waited = 0.0
    for step in range(WARM_UP + OPTIONS.steps):
        if step == WARM_UP:
            waited, begin = 0.0, time.perf_counter()
        asked = time.perf_counter()
        images, labels = next(batches)
        waited += time.perf_counter() - asked
        loss = torch.nn.functional.cross_entropy(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    took = time.perf_counter() - begin
    batches.close()
    return OPTIONS.steps * OPTIONS.batch / took, waited / took


def main():
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        folder_of_classes(OPTIONS.photographs, folder)
        results = {name: [] for name in FEEDS}
        for _ in range(OPTIONS.rounds):
            for name in ("none", "torch", "turboloader", "turboloader", "torch"):
                results[name].append(run(name, folder))
                rate, wait = results[name][-1]
                print(f"{name}: {rate:.2f} images/s, waited {wait:.1%}", file=sys.stderr, flush=True)
    for name, runs in results.items():
        rates, waits = zip(*runs)
        line = {
            "loader": name,
            "cores": OPTIONS.cores,
            "runs": len(runs),
            "images_per_s": round(statistics.median(rates), 2),
            "min": round(min(rates), 2),
            "max": round(max(rates), 2),
            "waited_percent": round(100 * statistics.median(waits), 1),
        }
        print(json.dumps(line))


if __name__ == "__main__":
    main()
