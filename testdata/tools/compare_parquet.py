"""Photographs in Parquet: this loader beside `datasets` and torchvision.

    python3 -m venv venv
    venv/bin/pip install ./crates/tl-python torch torchvision pillow datasets
    venv/bin/python testdata/tools/compare_parquet.py PHOTOS WORK

PHOTOS is a folder of JPEG files. They are written to WORK as `datasets` writes them, with the default
settings of pyarrow (Snappy, dictionaries), and as a TBL file.

Everything runs in this process from files that are in memory, each contender with one thread or worker.
Every round measures each contender once, in turn forwards and backwards; the tables have the medians of
the processor time of all threads, as samples per second, and of its ratio to TBL in the same round.
"""

import argparse
import functools
import pathlib
import statistics
import time

import datasets
import pyarrow.parquet as pq
import torch
import turboloader as tl
from torchvision import transforms

MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]
BATCH = 64
T = tl.transforms


def write(photos, work):
    """Write the photographs to three files."""
    work.mkdir(parents=True, exist_ok=True)
    chosen = sorted(path for path in photos.rglob("*") if path.suffix.lower() in {".jpg", ".jpeg"})
    images = [{"bytes": path.read_bytes(), "path": path.name} for path in chosen]
    labels = [index % 10 for index in range(len(images))]
    names = [f"class {label}" for label in range(10)]
    features = {"image": datasets.Image(), "label": datasets.ClassLabel(names=names)}
    rows = {"image": images, "label": labels}
    plain, snappy = work / "plain.parquet", work / "snappy.parquet"
    datasets.Dataset.from_dict(rows, features=datasets.Features(features)).to_parquet(plain)
    pq.write_table(pq.read_table(plain), snappy)
    tl.convert(plain, work / "photos.tbl", overwrite=True)
    return plain, snappy, work / "photos.tbl"


def measured(contenders, rounds):
    """Samples per second of processor time, by contender."""
    rates = {name: [] for name in contenders}
    for epoch in contenders.values():
        epoch()
    for number in range(rounds):
        for name in list(contenders) if number % 2 == 0 else reversed(contenders):
            start = time.process_time()
            count = contenders[name]()
            rates[name].append(count / (time.process_time() - start))
    return rates


def table(title, rates, base):
    """Print the medians, and their ratios to `base` in the same rounds."""
    print(f"| {title} | samples per CPU second | of {base} |\n|---|---|---|")
    for name, of_name in rates.items():
        ratio = statistics.median(a / b for a, b in zip(of_name, rates[base], strict=True))
        low, high = min(of_name), max(of_name)
        print(f"| {name} | {statistics.median(of_name):.0f} ({low:.0f}-{high:.0f}) | {ratio:.3f} |")
    print()


def ours(path, **options):
    """Return a function that goes over an epoch of this loader."""
    loader = tl.DataLoader(tl.open(path), batch_size=BATCH, num_workers=1, **options)
    return lambda: sum(len(batch) for batch in loader)


def peers(plain, work, finish, decode):
    """Return functions that go over an epoch of `datasets`, each sample through `finish`."""
    cache = str(work / "cache")
    files = {"train": str(plain)}
    image = datasets.Image(decode=decode)
    load = functools.partial(
        datasets.load_dataset, "parquet", data_files=files, split="train", cache_dir=cache
    )
    indexed = load().cast_column("image", image)
    streamed = load(streaming=True).cast_column("image", image)

    def of_index():
        order = torch.randperm(len(indexed)).tolist()
        return sum(finish(indexed[index]) for index in order)

    def shuffled():
        return sum(map(finish, indexed.shuffle()))

    def streaming():
        return sum(map(finish, streamed.shuffle(buffer_size=1000)))

    return {
        "`datasets`, `ds[i]`": of_index,
        "`datasets`, shuffled": shuffled,
        "`datasets`, streamed, buffer of 1,000": streaming,
    }


def main():
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("photos", type=pathlib.Path)
    parser.add_argument("work", type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--blocks", help="shuffle of the row of compressed pages", default=None)
    options = parser.parse_args()
    torch.set_num_threads(1)
    datasets.disable_progress_bars()
    plain, snappy, tbl = write(options.photos, options.work)

    files = {"TBL": tbl, "Parquet, plain": plain, "Parquet, Snappy": snappy}
    stored = {name: ours(path, shuffle=True, decode=False) for name, path in files.items()}
    if options.blocks:
        by_blocks = ours(snappy, shuffle=options.blocks, decode=False)
        stored["Parquet, Snappy, by blocks"] = by_blocks
    # The column stays bytes, as our loaders give it.
    stored |= peers(plain, options.work, lambda sample: len(sample["image"]["bytes"]) > 0, False)
    table("stored bytes, random order", measured(stored, options.rounds), "TBL")

    recipe = [
        T.RandomResizedCrop(224),
        T.RandomHorizontalFlip(),
        T.ToTensor(),
        T.Normalize(MEAN, STD),
    ]
    peer = transforms.Compose(
        [
            transforms.RandomResizedCrop(224),
            transforms.RandomHorizontalFlip(),
            transforms.ToTensor(),
            transforms.Normalize(MEAN, STD),
        ]
    )
    trained = {name: ours(path, shuffle=True, transform=recipe) for name, path in files.items()}

    def finish(sample):
        return peer(sample["image"].convert("RGB")).shape[0] == 3

    trained |= peers(plain, options.work, finish, True)
    table("random crops of 224 x 224", measured(trained, options.rounds), "TBL")


if __name__ == "__main__":
    main()
