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

The table names the fastest library whose pixels are those of our mode to the last bit, and the fastest
that differs by 1 at most where that is another one; what differs more is listed behind.
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
from transform_cases import ROWS, Draws, apply, drawing, photographs, to_pixels, to_tensor
from transform_server import Server

# The operations of RandAugment one by one are the colour operations and the affine map again.
MEASURED = [row for row in ROWS if not re.match("RandAugment (?!two)", row.name)]
# As much as the order of a division and a subtraction may change a normalised number.
FLOAT_STEP = 2e-6
REFERENCE = {"pil": "torchvision, PIL", "tensor": "torchvision, tensor"}


class Contender:
    """A way to do a row's operations: its result and its times."""

    def __init__(self, name, run, repeat_budget, result=None):
        self.name, self.run = name, run
        self.pixels = run_pixels(result or run)
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
    references = [("pil", image), ("tensor", planar), ("tensor", interleaved)]
    candidates = [reference_of(name, operations, filled, source) for name, source in references]
    candidates += [(name, run, run) for name, run in transform_peers.peers(operations, pixels)]
    for name, run, result in candidates:
        if transform_peers.attempt(run) is not None:
            others.append(Contender(name, run, budget, result))
    return ours, others


def reference_of(mode, operations, filled, source):
    """torchvision's way: what is timed draws like ours, what is compared has our draws."""
    return (
        REFERENCE[mode],
        lambda: settled(drawing(operations, source)),
        lambda: settled(apply(filled, source)),
    )


def settled(tensor):
    """A tensor with its pixels one behind the other, planar or interleaved; Pillow's images are so."""
    if isinstance(tensor, Image.Image):
        return tensor
    if tensor.is_contiguous() or tensor.permute(1, 2, 0).is_contiguous():
        return tensor
    return tensor.contiguous()


EXACT, WITHIN, DIFFERENT = range(3)


def likeness(ours, other):
    """How pixels differ, in words and as a class."""
    if ours.shape != other.shape:
        return "another size", DIFFERENT
    difference = numpy.abs(ours.astype(numpy.float32) - other)
    largest = float(difference.max())
    step = 1 if other.dtype == numpy.uint8 else FLOAT_STEP
    if largest == 0:
        return "exact", EXACT
    if largest <= step:
        return f"within {step:g}", WITHIN
    return f"max {largest:g}, {100 * (difference == 0).mean():.1f} % equal", DIFFERENT


def measure(server, row, pixels):
    random = row.op == "GaussianNoise"
    ours, others = contenders(server, row, pixels, OPTIONS.milliseconds * 1e6)
    everyone = ours + others
    for number in range(OPTIONS.rounds):
        for contender in everyone[number % len(everyone) :] + everyone[: number % len(everyone)]:
            contender.measure()
    for mode in ours:
        entries = best_of_each(others, mode.pixels)
        if random:
            entries = [(name, took, "other deviates", EXACT) for name, took, *_ in entries]
        yield mode, entries


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


HEADER = (
    "| op | mode | size | here | same pixels | ratio | within 1 | ratio | torchvision | ratio | others |\n"
    "|---|---|---|---|---|---|---|---|---|---|---|"
)


def fastest(entries, likeness_class):
    """The fastest whose pixels are at least as like, None when there is none."""
    like = [entry for entry in entries if entry[3] <= likeness_class]
    return min(like, key=lambda entry: entry[1], default=None)


def table_line(row, mode, size, entries):
    own = mode.median()
    cells = [row.name, mode.mode, size, microseconds(own)]
    exact, within = fastest(entries, EXACT), fastest(entries, WITHIN)
    for entry in (exact, within if within != exact else None):
        cells += [f"{entry[0]} {microseconds(entry[1])}", f"{entry[1] / own:.2f}"] if entry else ["", ""]
    reference = next((entry for entry in entries if entry[0] == REFERENCE[mode.mode]), None)
    cells += [microseconds(reference[1]), f"{reference[1] / own:.2f}"] if reference else ["", ""]
    rest = [f"{name} {microseconds(time)} ({how})" for name, time, how, like in entries if like == DIFFERENT]
    return "| " + " | ".join([*cells, "; ".join(rest)]) + " |"


def geometric_mean(values):
    return math.exp(sum(map(math.log, values)) / len(values)) if values else math.nan


class Summary:
    """What the lines say together."""

    def __init__(self):
        self.ratios = {}
        self.slower = []

    def add(self, row, mode, size, entries):
        own = mode.median()

        def ratio(what, nanoseconds):
            self.ratios.setdefault((mode.mode, what, size), []).append(nanoseconds / own)

        for name, nanoseconds, *_ in entries:
            if name == REFERENCE[mode.mode]:
                ratio(name, nanoseconds)
            elif name == REFERENCE["tensor"]:
                ratio(f"{name}, whatever its pixels", nanoseconds)
        for what, like in (("the same pixels", EXACT), ("pixels within 1", WITHIN)):
            entry = fastest(entries, like)
            if entry:
                ratio(f"the fastest with {what}", entry[1])
                if entry[1] < own:
                    text = f"{row.name} ({mode.mode}, {size}): {entry[0]} {microseconds(entry[1])}"
                    text += f", here {microseconds(own)}"
                    self.slower.append((like, entry[1] / own, text))

    def print(self):
        print("\n| mode | geometric mean beside | size | rows | ratio |\n|---|---|---|---|---|")
        for (mode, what, size), ratios in sorted(self.ratios.items()):
            print(f"| {mode} | {what} | {size} | {len(ratios)} | {geometric_mean(ratios):.2f} |")
        for like, what in ((EXACT, "the same pixels"), (WITHIN, "pixels within 1")):
            slower = sorted(entry[1:] for entry in self.slower if entry[0] == like)
            print(f"\n{len(slower)} times the fastest with {what} is not this one:")
            for ratio, text in slower:
                print(f"- {ratio:.2f} {text}")


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
    print(HEADER)
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
