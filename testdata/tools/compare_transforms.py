"""Compares every transform with torchvision's, on Pillow images and on uint8 tensors.

    compare_transforms.py [--photographs 50] [--sets 3] [--rows REGEX] [--level LEVEL]

The photographs are `imagenet/*.JPEG` of the folder that TURBOLOADER_DATA names, each with other
parameters; small, narrow, constant and extreme images follow, with `--sets` sets each. Needs torch,
torchvision, numpy and Pillow, and `cargo build --release --package tl-transform --example
transform_requests`. Prints a table of op x mode; exits with 1 when one exceeds its bound.
"""

import argparse
import collections
import os
import pathlib
import random
import re
import sys

import numpy
import torch
import torchvision
import transform_steps
from PIL import __version__ as pillow_version
from transform_cases import ROWS, Draws, edge_images, photographs, reference
from transform_server import Server

# The largest difference of a sample, and how many percent may differ. Everything else is equal to
# the last bit; the pages of `docs/transforms.md` say why these are not.
EXACT = (0, 0.0)
BOUNDS: dict[tuple[str, str], tuple[int, float]] = {}


def bound(name, mode):
    """The bound of the first entry whose pattern matches the row's name."""
    for (pattern, bound_mode), value in BOUNDS.items():
        if bound_mode == mode and re.match(pattern, name):
            return value
    return EXACT


class Tally:
    """What was compared in one row and one mode."""

    def __init__(self):
        self.cases = self.samples = self.differing = self.total = self.largest = 0
        self.refusals = collections.Counter()
        self.faults = []

    def add(self, label, expected, ours):
        if isinstance(expected, str):
            # What torchvision refuses has no reference; ours may refuse it too, or define it.
            self.refusals[expected.split(":")[0]] += 1
            return
        self.cases += 1
        if isinstance(ours, str):
            self.faults.append(f"{label}: refused: {ours}")
            return
        if ours.shape != expected.shape:
            self.faults.append(f"{label}: {ours.shape} instead of {expected.shape}")
            return
        difference = numpy.abs(ours.astype(numpy.float32) - expected)
        self.samples += difference.size
        self.differing += int(numpy.count_nonzero(difference))
        self.total += float(difference.sum())
        self.largest = max(self.largest, float(difference.max(initial=0)))

    def differing_percent(self):
        return 100 * self.differing / max(1, self.samples)

    def within(self, limits):
        largest, percent = limits
        return not self.faults and self.largest <= largest and self.differing_percent() <= percent

    def line(self, name, mode, limits):
        exact = 100 - self.differing_percent()
        exact = "100" if self.differing == 0 else f"{min(exact, 99.9999):.4f}"
        allowed = "exact" if limits == EXACT else f"max {limits[0]}, {100 - limits[1]:g} % exact"
        verdict = "" if self.within(limits) else " **EXCEEDED**"
        return (
            f"| {name} | {mode} | {self.cases} | {exact} | {self.largest:g} | "
            f"{self.total / max(1, self.samples):.5f} | {allowed}{verdict} |"
        )


def compare_row(server, row, mode, images, sets):
    tally = Tally()
    for number, (label, pixels, is_edge) in enumerate(images):
        height, width, _ = pixels.shape
        for repetition in range(sets if is_edge else 1):
            rng = random.Random(f"{row.name}, {number}, {repetition}")
            operations = row.case(Draws(rng), width, height)
            ours = server.run(pixels, transform_steps.request(operations, width, height, mode))
            operations = transform_steps.fill_in(operations, server, pixels, mode)
            expected = reference(operations, pixels, mode)
            before = tally.largest
            tally.add(f"{label}: {operations}", expected, ours)
            if tally.largest > max(before, bound(row.name, mode)[0]):
                tally.faults.append(f"{label}: differs by {tally.largest:g}: {operations}")
    return tally


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--photographs", type=int, default=50)
    parser.add_argument("--sets", type=int, default=3)
    parser.add_argument("--rows", default="")
    parser.add_argument("--level")
    options = parser.parse_args()
    images = [(name, pixels, True) for name, pixels in edge_images()]
    data = os.environ.get("TURBOLOADER_DATA")
    if data:
        found = list(photographs(pathlib.Path(data), options.photographs))
        images = [(name, pixels, False) for name, pixels in found] + images
    print(
        f"torch {torch.__version__}, torchvision {torchvision.__version__}, Pillow {pillow_version}; "
        f"{sum(not edge for *_, edge in images)} photographs, "
        f"{sum(edge for *_, edge in images)} small images with {options.sets} sets of parameters each\n"
    )
    print("| op | mode | cases | exact % | max | mean | bound |\n|---|---|---|---|---|---|---|")
    server, failed, missing = Server(options.level), [], []
    refusals = collections.Counter()
    for row in ROWS:
        if not re.search(options.rows, row.name):
            continue
        for mode in row.modes:
            try:
                tally = compare_row(server, row, mode, images, options.sets)
            except transform_steps.Missing as error:
                missing.append(f"{row.name} ({mode}): {error}")
                continue
            limits = bound(row.name, mode)
            print(tally.line(row.name, mode, limits), flush=True)
            refusals.update({f"{row.name} ({mode}): {kind}": n for kind, n in tally.refusals.items()})
            if not tally.within(limits):
                failed.append((f"{row.name} ({mode})", tally.faults[:3]))
    for what, times in refusals.items():
        print(f"\ntorchvision refused {times} cases of {what}", end="")
    for what in missing:
        print(f"\nnot compared: {what}", end="")
    for what, faults in failed:
        print(f"\n{what} exceeds its bound", *(fault[:400] for fault in faults), sep="\n    ", end="")
    print(f"\n\n{len(failed)} rows exceed their bounds, {len(missing)} were not compared")
    sys.exit(1 if failed or missing else 0)


if __name__ == "__main__":
    main()
