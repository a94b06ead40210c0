"""Our row of a comparison of loaders, through Python and through the command line.

It takes part in a harness whose module `common` measures a variant's epochs (`main`), one JSON line
a run: `python ours_peer.py --work W2 --workers 2 --data FOLDER [--variant cli]`. FOLDER has
`train.tar`, and what `--work prepare` makes of it.
"""

import json
import os
import subprocess
import sys
import time

import common
import turboloader as tl
from turboloader import transforms as T  # noqa: N812

TRAIN = [T.RandomResizedCrop(224), T.RandomHorizontalFlip(), T.ToTensor(), T.Normalize()]
EVAL = [T.Resize(256), T.CenterCrop(224), T.ToTensor(), T.Normalize()]
# What `tl bench` decodes at for training: the defaults of imagenet-train.
MARGIN = 2.0

# The data set, the recipe of `tl bench`, and what `DataLoader` is told.
WORKS = {
    "W1": ("train.tar", ["decode"], {}),
    "W2": (
        "train.tar",
        ["imagenet-train", "--size", "224"],
        {"transform": TRAIN, "decode_margin": MARGIN, "shuffle": True},
    ),
    "W2R": (
        "ours_raw256.tbl",
        ["imagenet-train", "--size", "224"],
        {"transform": TRAIN, "decode_margin": MARGIN, "shuffle": True},
    ),
    "W3": ("train.tar", ["imagenet-eval", "--size", "224"], {"transform": EVAL}),
    "W4": ("ours.tbl", ["raw"], {"decode": False, "shuffle": True}),
    "W6P": ("png", ["decode"], {}),
    "W6W": ("webp", ["decode"], {}),
}


def prepare(ctx):
    """Write the TBL files."""
    tar = ctx.path("train.tar")
    command = [sys.executable, "-m", "turboloader", "convert", tar, "-f", "-o"]
    subprocess.run([*command, ctx.path("ours.tbl")], check=True)
    raw = [ctx.path("ours_raw256.tbl"), "--to", "raw", "--size", "256"]
    subprocess.run([*command, *raw], check=True)


def python(ctx):
    """Epochs of a `DataLoader`."""
    name, _, settings = WORKS[ctx.work]
    path = ctx.path(name)
    loader = tl.DataLoader(path, batch_size=common.BATCH, num_workers=ctx.workers, **settings)
    if ctx.work == "W4":
        return lambda: iter(loader)
    return lambda: (batch["image"] for batch in loader)


def conversion(ctx):
    """Conversions of the archive, as one batch of as many samples."""

    def epoch():
        path = ctx.path("w5.tbl")
        count = tl.convert(ctx.path("train.tar"), path, overwrite=True, sync=False)
        os.remove(path)
        yield range(count)

    return epoch


def option(name, default):
    """Return what the command line says, as the harness writes it."""
    return sys.argv[sys.argv.index(name) + 1] if name in sys.argv else default


def command_line():
    """Print the row of `tl bench`."""
    work, workers = option("--work", "W2"), int(option("--workers", "1"))
    data = option("--data", os.environ.get("BENCH_DATA", "data"))
    row = {"peer": "ours", "variant": "cli", "work": work, "workers": workers}
    name, recipe, _ = WORKS[work]
    command = [sys.executable, "-m", "turboloader", "bench", os.path.join(data, name), "--json"]
    command += ["--recipe", *recipe, "--batch-size", str(common.BATCH), "--workers", str(workers)]
    begun = time.perf_counter()
    result = subprocess.run(
        [*command, "--seconds", option("--seconds", "8")], capture_output=True, text=True
    )
    if result.returncode == 0:
        row.update(json.loads(result.stdout.strip().splitlines()[-1]))
    else:
        row["error"] = result.stderr.strip()[:300]
    row["wall_s"] = round(time.perf_counter() - begun, 1)
    print(json.dumps(row))


if __name__ == "__main__":
    if option("--variant", "default") == "cli":
        command_line()
    else:
        epochs = {**dict.fromkeys(WORKS, python), "W5": conversion}
        common.main("ours", {"default": epochs}, prepare)
