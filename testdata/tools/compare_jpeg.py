"""Compares JPEG decoding with Pillow's, byte for byte, at every level of instructions.

    python3 testdata/tools/compare_jpeg.py DATA [--sets FOLDER] [--most N] [--regions N]

DATA holds `imagenet/*.JPEG` and `corpora/*/manifest.json`; FOLDER is what `jpeg_sets.py` wrote.
Compared are whole images, random regions with and without a row index, and the three reduced scales (Pillow's `draft`).
Needs Pillow and `cargo build --release --package tl-benches --example jpeg_requests`.
Prints a table and every file that differs; the exit code is 1 when one does.
"""

import argparse
import collections
import json
import pathlib
import random
import sys
import warnings

from jpeg_server import Server
from PIL import Image

SCALES = {"1/2": 2, "1/4": 4, "1/8": 8}


class Comparison:
    """Counts of equal, differing, refused and unsupported images, by what was compared."""

    def __init__(self):
        self.counts = collections.defaultdict(collections.Counter)
        self.notes = collections.Counter()
        self.refused = set()

    def add(self, what, name, ours, expected):
        width, height, pixels, error = ours
        if error is not None:
            outcome = "unsupported" if error.startswith("unsupported") else "refused"
            self.notes[f"{name}: {error}"] += 1
            self.refused.add(name)
        elif (width, height) != expected[:2]:
            outcome = "other size"
            self.notes[f"{what}: {name}: {width}x{height} instead of {expected[0]}x{expected[1]}"] += 1
        elif pixels != expected[2]:
            outcome = "differing"
            differences = [abs(a - b) for a, b in zip(pixels, expected[2]) if a != b]
            text = f"{len(differences)} of {len(pixels)} bytes, by {max(differences)} at most"
            self.notes[f"{what}: {name}: {text}"] += 1
        else:
            outcome = "equal"
        self.counts[what][outcome] += 1
        self.counts[what]["bytes"] += len(pixels or b"")

    def print(self):
        columns = ("equal", "differing", "other size", "refused", "unsupported", "bytes")
        print("| compared | " + " | ".join(columns) + " |\n|---" + "|---" * len(columns) + "|")
        for what, counts in self.counts.items():
            print(f"| {what} | " + " | ".join(str(counts[column]) for column in columns) + " |")
        for note, times in self.notes.most_common(100):
            print(f"{times} times {note}")
        if len(self.notes) > 100:
            print(f"and {len(self.notes) - 100} other differences")

    def failed(self):
        bad = ("differing", "other size", "refused")
        return any(counts[outcome] for counts in self.counts.values() for outcome in bad)


def reference(path, scale=1):
    """Pillow's pixels, None for images so small that its `draft` cannot be asked for the scale."""
    with Image.open(path) as image:
        if scale > min(image.size):
            return None
        if scale > 1:
            image.draft(None, (image.width // scale, image.height // scale))
        converted = image.convert("RGB")
        return *converted.size, converted.tobytes()


def crop(pixels, stride, region):
    x, y, width, height = region
    rows = (pixels[(y + row) * stride + x * 3 :][: width * 3] for row in range(height))
    return width, height, b"".join(rows)


def random_region(rng, width, height):
    x, y = rng.randrange(width), rng.randrange(height)
    return x, y, rng.randint(1, width - x), rng.randint(1, height - y)


def valid_files(corpora):
    for manifest in sorted(corpora.glob("*/manifest.json")):
        for entry in json.loads(manifest.read_text())["files"]:
            if entry.get("format") == "jpeg" and entry.get("class") == "valid":
                yield manifest.parent / entry["file"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=pathlib.Path)
    parser.add_argument("--sets", type=pathlib.Path)
    parser.add_argument("--most", type=int, default=10**9, help="photographs at most")
    parser.add_argument("--regions", type=int, default=200, help="regions of each of 100 photographs")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--program", help="another build of jpeg_requests")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")

    server, comparison = Server(arguments.program), Comparison()
    levels, rng = server.levels(), random.Random(arguments.seed)
    photographs = sorted((arguments.data / "imagenet").glob("*.JPEG"))[: arguments.most]
    sets = {"corpora": sorted(valid_files(arguments.data / "corpora")), "photographs": photographs}
    for name in ("progressive", "q90_420") if arguments.sets else ():
        sets[name] = sorted((arguments.sets / name).iterdir())[: arguments.most]

    for name, files in sets.items():
        for path in files:
            for scale, factor in {"1/1": 1, **SCALES}.items():
                expected = reference(path, factor)
                if expected is None:
                    continue
                for level in levels:
                    what = f"{name}, {scale}, {level}"
                    comparison.add(what, path.name, server.decode(level, path, scale), expected)
    for name, files in sets.items():
        whole = [path for path in files if path.name not in comparison.refused]
        for i, path in enumerate(whole[:100]):
            scale, factor = list({"1/1": 1, **SCALES}.items())[i % 4 if i % 2 else 0]
            expected = reference(path, factor)
            if expected is None:
                continue
            width, height, pixels = expected
            for j in range(arguments.regions):
                region, level = random_region(rng, width, height), levels[j % len(levels)]
                cut = crop(pixels, width * 3, region)
                for way in ("", "+index"):
                    ours = server.decode(level + way, path, scale, region)
                    label = f"{path.name} {scale} {region} {level}"
                    comparison.add(f"{name}, regions{way}", label, ours, cut)
    comparison.print()
    sys.exit(comparison.failed())


if __name__ == "__main__":
    main()
