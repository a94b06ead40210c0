"""What Python costs: a batch, the import, an epoch beside `tl bench`, and four ranks' memory.

    python testdata/tools/measure_python.py [DATA [RAW]] > measured.md

DATA is a TAR archive, TBL file or folder of photographs, RAW a TBL file of pixels (`tl convert --to
raw --size 256`); without them those of `testdata/photos` are repeated. It needs the package, takes
some four minutes on a quiet machine, and prints tables. SECONDS_EACH and ROUNDS say how long.
"""

from __future__ import annotations

import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

PHOTOS = pathlib.Path(__file__).parents[1] / "photos"
SECONDS = float(os.environ.get("SECONDS_EACH", "4"))
ROUNDS = int(os.environ.get("ROUNDS", "5"))
BATCH = 64
RANKS = 4


def middle(values: list[float], form: str = ".1f") -> str:
    """Return the median with the smallest and the largest."""
    low, high = min(values), max(values)
    return f"{statistics.median(values):{form}} ({low:{form}} to {high:{form}})"


def output(command: list[str]) -> str:
    """Return what a command prints."""
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def child(code: str, *arguments: str) -> str:
    """Return what another interpreter prints."""
    return output([sys.executable, "-c", code, *arguments])


# ------------------------------------------------------------------------------------- a batch

CONSUMERS = {
    "nothing": "pass",
    "`.numpy()` of image and label": "batch['image'].numpy(), batch['label'].numpy()",
    "`.torch()` of image and label": "batch['image'].torch(), batch['label'].torch()",
    "`np.from_dlpack` of the image": "np.from_dlpack(batch['image'])",
    "every sample as a dict, per sample": "for sample in batch: sample['label']",
}

OVERHEAD = """
import sys, time
import numpy as np
import turboloader as tl
from turboloader import transforms as T
settings = dict(batch_size=64, num_workers=1, shuffle=True, transform=[T.CenterCrop(8)])
loader = tl.DataLoader(sys.argv[1], **settings)
def epoch():
    for batch in loader:
        CONSUME
epoch()
begun, batches = time.thread_time(), 0
while batches < 4000:
    epoch()
    batches += len(loader)
print((time.thread_time() - begun) / batches * 1e6)
"""


def overhead(folder: pathlib.Path) -> None:
    """Print the processor time of the consuming thread, which Rust's part of it is in."""
    import turboloader as tl

    path = folder / "tiny.tbl"
    with tl.TblWriter(folder / "tiny-files.tbl", sync=False) as writer:
        for number in range(64 * 64):
            writer.add_sample(bitmap(number), label=number % 10)
    command = [sys.executable, "-m", "turboloader", "convert", str(folder / "tiny-files.tbl")]
    subprocess.run([*command, "--to", "raw", "--size", "8", "-o", str(path), "--quiet"], check=True)
    print("| consumed of each batch of 64 | microseconds of the consumer's processor time |")
    print("|---|---|")
    for name, code in CONSUMERS.items():
        per = BATCH if name.endswith("per sample") else 1
        try:
            times = [
                float(child(OVERHEAD.replace("CONSUME", code), str(path))) / per
                for _ in range(ROUNDS)
            ]
        except subprocess.CalledProcessError:
            print(f"| {name} | not installed |")
            continue
        print(f"| {name} | {middle(times)} |")
    print()


def bitmap(number: int) -> bytes:
    """Return a BMP file of 8x8 pixels."""
    import struct

    head = struct.pack("<2sIHHI", b"BM", 54 + 192, 0, 0, 54)
    info = struct.pack("<IiiHHIIiiII", 40, 8, 8, 1, 24, 0, 192, 0, 0, 0, 0)
    return head + info + bytes((number + i) % 256 for i in range(192))


# ------------------------------------------------------------------------------------ the import

IMPORTS = """
import sys, time
for name in sys.argv[2:]:
    __import__(name)
begun = time.perf_counter()
__import__(sys.argv[1])
print((time.perf_counter() - begun) * 1e3)
"""


def imports() -> None:
    """Print how long imports take in a new interpreter, files in the page cache."""
    rows = {
        "`turboloader`": ["turboloader"],
        "`numpy` alone": ["numpy"],
        "`turboloader` when NumPy is there": ["turboloader", "numpy"],
    }
    print("| import | ms |")
    print("|---|---|")
    for name, arguments in rows.items():
        times = [float(child(IMPORTS, *arguments)) for _ in range(4 * ROUNDS)]
        print(f"| {name} | {middle(times)} |")
    print()


# -------------------------------------------------------------------------------------- an epoch

EPOCHS = """
import sys, time
import turboloader as tl
from turboloader import transforms as T
path, workers, seconds, work = sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), sys.argv[4]
train = [T.RandomResizedCrop(224), T.RandomHorizontalFlip(), T.ToTensor(), T.Normalize()]
settings = {"decode": False} if work == "bytes" else {"transform": train, "decode_margin": 2.0}
loader = tl.DataLoader(path, batch_size=64, num_workers=workers, shuffle=True, **settings)
for batch in loader:
    pass
rates, cpu_rates, begun = [], [], time.perf_counter()
while time.perf_counter() - begun < seconds or len(rates) < 5:
    start, cpu = time.perf_counter(), time.process_time()
    samples = 0
    for batch in loader:
        samples += len(batch)
    rates.append(samples / (time.perf_counter() - start))
    cpu_rates.append(samples / (time.process_time() - cpu))
print(sorted(rates)[len(rates) // 2], sorted(cpu_rates)[len(rates) // 2])
"""


def pinned(command: list[str], workers: int) -> list[str]:
    """Return the command on as many cores as there are workers."""
    cores = sorted(os.sched_getaffinity(0))[-workers:]
    return ["taskset", "-c", ",".join(map(str, cores)), *command]


def epochs(rows: list[tuple[str, str, str, str]]) -> None:
    """Print samples per second of both, measured in turn, and the medians of the rounds' ratios.

    Seconds of processor time are those of all threads: other processes disturb them less.
    """
    print("| work | cores | `tl bench` | Python | ratio by the clock | of processor time |")
    print("|---|---|---|---|---|---|")
    for name, path, recipe, work in rows:
        for workers in (1, 2):
            bench = [sys.executable, "-m", "turboloader", "bench", path, "--recipe", recipe]
            bench += ["--batch-size", str(BATCH), "--workers", str(workers), "--json"]
            bench = pinned([*bench, "--seconds", str(SECONDS)], workers)
            loop = [sys.executable, "-c", EPOCHS, path, str(workers), str(SECONDS), work]
            loop = pinned(loop, workers)
            theirs, ours = [], []
            for _ in range(ROUNDS):
                said = json.loads(output(bench).strip().splitlines()[-1])
                theirs.append((said["images_per_s"], said["images_per_cpu_s"]))
                rate, cpu_rate = output(loop).split()
                ours.append((float(rate), float(cpu_rate)))
            cells = [middle([rate for rate, _ in side], ".0f") for side in (theirs, ours)]
            for clock in (0, 1):
                ratios = [a[clock] / b[clock] for a, b in zip(ours, theirs, strict=True)]
                cells.append(middle(ratios, ".3f"))
            print(f"| {name} | {workers} | {' | '.join(cells)} |", flush=True)
    print()


# ---------------------------------------------------------------------------------------- ranks

RANK = """
import sys
import turboloader as tl
from turboloader import transforms as T
path, rank, world, work = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
train = [T.RandomResizedCrop(224), T.RandomHorizontalFlip(), T.ToTensor(), T.Normalize()]
settings = {"decode": False} if work == "bytes" else {"transform": train}
loader = tl.DataLoader(path, batch_size=16, num_workers=1, shuffle=True,
                       ranks=tl.Ranks(rank, world), **settings)
epoch = iter(loader)
batches = [next(epoch) for _ in range(8)]
del batches
print("ready", flush=True)
sys.stdin.readline()
"""


def memory(name: str, path: str, work: str) -> None:
    """Print what ranks on one machine have in memory, each alone and all together."""
    for world in (1, RANKS):
        ranks = []
        for rank in range(world):
            command = [sys.executable, "-c", RANK, path, str(rank), str(world), work]
            pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
            ranks.append(subprocess.Popen(command, **pipes))
        for process in ranks:
            process.stdout.readline()
        sums = dict.fromkeys(("Rss", "Pss", "Pss_Anon", "Pss_File"), 0)
        for process in ranks:
            rollup = pathlib.Path(f"/proc/{process.pid}/smaps_rollup").read_text()
            for line in rollup.splitlines():
                key = line.split(":")[0]
                if key in sums:
                    sums[key] += int(line.split()[1])
        for process in ranks:
            process.communicate(b"\n")
        cells = [f"{value / 1024:.0f}" for value in sums.values()]
        print(f"| {name} | {world} | {' | '.join(cells)} |", flush=True)


def main() -> None:
    """Print all tables."""
    import turboloader as tl

    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        data = sys.argv[1] if len(sys.argv) > 1 else str(folder / "photos.tbl")
        if len(sys.argv) < 2:
            tl.convert([PHOTOS] * 60, data, sync=False)
        raw = sys.argv[2] if len(sys.argv) > 2 else str(folder / "raw256.tbl")
        if len(sys.argv) < 3:
            command = [sys.executable, "-m", "turboloader", "convert", data, "--to", "raw"]
            subprocess.run([*command, "--size", "256", "-o", raw, "--quiet"], check=True)
        stored = str(folder / "stored.tbl")
        # Enough of them that an epoch takes a while.
        tl.convert([data] * 8, stored, sync=False)
        begun = time.monotonic()
        imports()
        overhead(folder)
        epochs(
            [
                ("photographs to training batches", data, "imagenet-train", "train"),
                ("pixels of 256 x 256 to training batches", raw, "imagenet-train", "train"),
                ("stored bytes in random order", stored, "raw", "bytes"),
            ]
        )
        large = str(folder / "large.tbl")
        with tl.TblWriter(large, sync=False) as writer:
            for number in range(1_000_000):
                writer.add_sample(b"%08d" % number, key=f"{number:08d}.txt", label=number % 1000)
        print("| data set | ranks | resident, MiB | proportional (PSS) | own | of files |")
        print("|---|---|---|---|---|---|")
        memory("photographs to training batches", stored, "train")
        memory("1 000 000 samples, stored bytes", large, "bytes")
        print(f"\n{time.monotonic() - begun:.0f} s", file=sys.stderr)


if __name__ == "__main__":
    main()
