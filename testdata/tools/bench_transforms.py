"""Measures every transform beside torchvision, Pillow, OpenCV and kornia-rs on one core.

    bench_transforms.py [--rounds 7] [--rows REGEX] [--sizes 500x375,224x224] [--core 1] [--milliseconds 8]

Needs the packages of `transform_cases.py`, opencv-python-headless and kornia-rs, the folder that
TURBOLOADER_DATA names, and `cargo build --release --package tl-transform --example
transform_requests`. Everything runs on one core with one thread. Each round measures all
contenders of a row one after the other; the table has the medians of the rounds.

Ours is timed in its own process, on pixels restored before each run, which is not counted: a loader
decodes into the image that is worked on. The others give a new image each time, as their interfaces
do. torchvision's tensors are measured planar and interleaved, and the faster counts; a result that is
only a view of others' pixels in another order is copied, as a batch would.

A library does the *same* as a mode of ours when no sample differs by more than 1; the table names the
fastest of these, and how its pixels differ.
"""

import argparse
import gc
import math
import os
import pathlib
import re
import statistics
import time

os.environ.update(RAYON_NUM_THREADS="1", OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--rows", default="")
    parser.add_argument("--sizes", default="500x375,224x224")
    parser.add_argument("--core", type=int, default=max(os.sched_getaffinity(0)))
    parser.add_argument("--milliseconds", type=float, default=8)
    return parser.parse_args()


OPTIONS = arguments()
# Before the libraries are loaded, so that they count one core.
os.sched_setaffinity(0, {OPTIONS.core})

import numpy
import transform_peers
import transform_steps
from PIL import Image
from transform_cases import ROWS, Draws, apply, photographs, to_pixels, to_tensor
from transform_server import Server

# The operations of RandAugment one by one are the colour operations and the affine map again.
MEASURED = [row for row in ROWS if not re.match("RandAugment (?!two)", row.name)]
# As much as the order of a division and a subtraction may change a normalised number.
FLOAT_STEP = 2e-6
REFERENCE = {"pil": "torchvision, PIL", "tensor": "torchvision, tensor"}


class Contender:
    """A way to do a row's operations: its result and its times."""

    def __init__(self, name, run, repeat_budget):
        self.name, self.run = name, run
        self.pixels = run_pixels(run)
        start = time.perf_counter_ns()
        run()
        once = max(1, time.perf_counter_ns() - start)
        self.repeat = max(1, min(10_000, int(repeat_budget / once)))
        self.times = []

    def measure(self):
        run, repeat = self.run, self.repeat
        start = time.perf_counter_ns()
        for _ in range(repeat):
            run()
        self.times.append((time.perf_counter_ns() - start) / repeat)

    def median(self):
        return statistics.median(self.times)


def run_pixels(run):
    return numpy.ascontiguousarray(to_pixels(run()))


class Ours(Contender):
    """A mode of ours, timed by the server."""

    def __init__(self, server, pixels, request, repeat_budget):
        self.name = self.mode = request["parity"]
        self.server, self.request = server, (pixels, request)
        result = server.run(pixels, request)
        if isinstance(result, str):
            raise ValueError(result)
        self.pixels, self.times = result, []
        once = max(1, server.time(*self.request, 3))
        self.repeat = max(1, min(10_000, int(repeat_budget / once)))

    def measure(self):
        self.times.append(self.server.time(*self.request, self.repeat))


def contenders(server, row, pixels, budget):
    height, width, _ = pixels.shape
    operations = row.case(Draws(), width, height)
    ours, others = [], []
    for mode in row.modes:
        request = transform_steps.request(operations, width, height, mode)
        ours.append(Ours(server, pixels, request, budget))
    filled = transform_steps.fill_in(operations, server, pixels, row.modes[0])
    image, planar = Image.fromarray(pixels), to_tensor(pixels)
    interleaved = to_tensor(pixels).permute(1, 2, 0).contiguous().permute(2, 0, 1)
    candidates = [
        (REFERENCE["pil"], lambda: apply(filled, image)),
        (REFERENCE["tensor"], lambda: settled(apply(filled, planar))),
        (REFERENCE["tensor"], lambda: settled(apply(filled, interleaved))),
        *transform_peers.peers(operations, pixels),
    ]
    for name, run in candidates:
        if transform_peers.attempt(run) is not None:
            others.append(Contender(name, run, budget))
    return ours, others


def settled(tensor):
    """The tensor with its pixels one behind the other, planar or interleaved."""
    if tensor.is_contiguous() or tensor.permute(1, 2, 0).is_contiguous():
        return tensor
    return tensor.contiguous()


def likeness(ours, other):
    """How pixels differ, and whether that counts as the same result."""
    if ours.shape != other.shape:
        return "another size", False
    difference = numpy.abs(ours.astype(numpy.float32) - other)
    largest = float(difference.max())
    step = 1 if other.dtype == numpy.uint8 else FLOAT_STEP
    if largest == 0:
        return "exact", True
    if largest <= step:
        return f"within {step:g}", True
    return f"max {largest:g}, {100 * (difference == 0).mean():.1f} % equal", False


def measure(server, row, pixels):
    ours, others = contenders(server, row, pixels, OPTIONS.milliseconds * 1e6)
    everyone = ours + others
    for number in range(OPTIONS.rounds):
        for contender in everyone[number % len(everyone) :] + everyone[: number % len(everyone)]:
            contender.measure()
    for mode in ours:
        yield mode, best_of_each(others, mode.pixels)


def best_of_each(others, pixels):
    """The fastest of each name as (name, nanoseconds, likeness, same)."""
    best = {}
    for other in others:
        entry = (other.name, other.median(), *likeness(pixels, other.pixels))
        if other.name not in best or entry[1] < best[other.name][1]:
            best[other.name] = entry
    return list(best.values())


def microseconds(nanoseconds):
    value = nanoseconds / 1e3
    return f"{value:.1f}" if value < 100 else f"{value:.0f}"


def table_line(row, mode, size, entries):
    own = mode.median()
    reference = next((entry for entry in entries if entry[0] == REFERENCE[mode.mode]), None)
    same = [entry for entry in entries if entry[3]]
    cells = [row.name, mode.mode, size, microseconds(own)]
    fastest = min(same, key=lambda entry: entry[1], default=None)
    if fastest:
        cells += [f"{fastest[0]} {microseconds(fastest[1])} ({fastest[2]})", f"{fastest[1] / own:.2f}"]
    else:
        cells += ["none", ""]
    cells += [microseconds(reference[1]), f"{reference[1] / own:.2f}"] if reference else ["", ""]
    different = [
        f"{name} {microseconds(time)} ({how})" for name, time, how, is_same in entries if not is_same
    ]
    cells.append("; ".join(different))
    return "| " + " | ".join(cells) + " |"


def geometric_mean(values):
    return math.exp(sum(map(math.log, values)) / len(values)) if values else math.nan


class Summary:
    """What the lines say together."""

    def __init__(self):
        self.ratios = {}
        self.slower = []

    def add(self, row, mode, size, entries):
        own = mode.median()
        for name, nanoseconds, _, same in entries:
            if name == REFERENCE[mode.mode]:
                self.ratios.setdefault((f"{mode.mode} beside {name}", size), []).append(nanoseconds / own)
            elif mode.mode == "pil" and name == REFERENCE["tensor"]:
                self.ratios.setdefault((f"pil beside {name}, whatever its pixels", size), []).append(
                    nanoseconds / own
                )
            if same and nanoseconds < own:
                self.slower.append(
                    (nanoseconds / own, f"{row.name} ({mode.mode}, {size}): {name} {nanoseconds / own:.2f}")
                )
        same_times = [nanoseconds for _, nanoseconds, _, same in entries if same]
        if same_times:
            self.ratios.setdefault((f"{mode.mode} beside the fastest of the same result", size), []).append(
                min(same_times) / own
            )

    def print(self):
        print("\n| geometric mean | size | rows | ratio |\n|---|---|---|---|")
        for (what, size), ratios in sorted(self.ratios.items()):
            print(f"| {what} | {size} | {len(ratios)} | {geometric_mean(ratios):.2f} |")
        self.slower.sort()
        print(f"\n{len(self.slower)} times something that does the same is faster:")
        for _, text in self.slower:
            print(f"- {text}")


def image_of(size):
    """The middle photograph in this size, by Pillow."""
    width, height = map(int, size.split("x"))
    found = list(photographs(pathlib.Path(os.environ["TURBOLOADER_DATA"]), 3))
    image = Image.fromarray(found[1][1])
    return numpy.asarray(image.resize((width, height), Image.Resampling.LANCZOS))


def versions():
    import cv2
    import kornia_rs
    import PIL
    import torch
    import torchvision

    capability = torch.backends.cpu.get_cpu_capability()
    return (
        f"torch {torch.__version__} ({capability}), torchvision {torchvision.__version__}, "
        f"Pillow {PIL.__version__}, OpenCV {cv2.__version__}, kornia-rs {kornia_rs.__version__}"
    )


def main():
    started = time.monotonic()
    server, summary, missing = Server(), Summary(), []
    print(f"{versions()}; one core, {OPTIONS.rounds} rounds, microseconds, ratios above 1: ours is faster\n")
    print("| op | mode | size | here | fastest of the same result | ratio | torchvision | ratio | others |")
    print("|---|---|---|---|---|---|---|---|---|")
    gc.disable()
    for size in OPTIONS.sizes.split(","):
        pixels = image_of(size)
        for row in MEASURED:
            if not re.search(OPTIONS.rows, row.name):
                continue
            try:
                for mode, entries in measure(server, row, pixels):
                    print(table_line(row, mode, size, entries), flush=True)
                    summary.add(row, mode, size, entries)
            except (transform_steps.Missing, ValueError) as error:
                missing.append(f"{row.name}, {size}: {error}")
            gc.collect()
    summary.print()
    for what in missing:
        print(f"\nnot measured: {what}")
    print(f"\n{time.monotonic() - started:.0f} s")


if __name__ == "__main__":
    main()
