"""Trains a tiny model on several processes, and resumes with another number after a kill.

    torchrun --standalone --nproc_per_node 2 torchrun_resume.py train.tbl --folder run
    kill -9 ...
    torchrun --standalone --nproc_per_node 1 torchrun_resume.py train.tbl --folder run

On two machines, with a data set in a store, lanes that give each node its own part of it, and a
cache on a disk of each node (``docs/clusters.md`` has the same for Slurm and Kubernetes):

    torchrun --nnodes 2 --nproc_per_node 8 --rdzv_backend c10d --rdzv_endpoint node0:29400 \
        torchrun_resume.py 's3://bucket/train-*.tbl' --folder /shared/run --global-batch 1024 \
        --shuffle lanes:16/16x256 --cache /local/cache --cache-size 500GB

The global batch stays the same, so that any number of processes continues with the same samples:
each has ``global_batch / world_size`` rows of every step. The checkpoint holds the model, the
optimizer and one loader state for all ranks. It is written to a temporary file and then renamed, so
that a kill leaves the one before.

Every rank writes what it was given into ``FOLDER/rows-*.jsonl``: epoch, step, row of the global
batch, sample and a digest of the pixels. Steps after the last checkpoint are repeated after a
kill, and come out the same.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import pathlib

import torch
import torch.distributed as dist
import turboloader as tl
from turboloader import transforms as T  # noqa: N812

SIDE = 32
CLASSES = 6


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("data", nargs="+", help="TAR archives, TBL files or folders")
    parser.add_argument("--folder", type=pathlib.Path, required=True, help="checkpoint and rows")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--steps-per-checkpoint", type=int, default=3)
    parser.add_argument("--global-batch", type=int, default=8, help="rows of all ranks")
    parser.add_argument("--shuffle", default="full", help="such as lanes:16/16x256")
    parser.add_argument("--cache", help="a folder on this node's disk, for data in a store")
    parser.add_argument("--cache-size", default="10GB", help="the most bytes in it")
    return parser.parse_args()


def loader_of(options: argparse.Namespace) -> tl.DataLoader:
    """Make the loader of this rank."""
    cache = None
    if options.cache is not None:
        cache = tl.Cache(disk=options.cache_size, folder=options.cache, blocks=True)
    return tl.DataLoader(
        options.data,
        batch_size=options.global_batch // dist.get_world_size(),
        shuffle=options.shuffle,
        cache=cache,
        transform=[T.RandomResizedCrop(SIDE), T.RandomHorizontalFlip(), T.ToTensor()],
        drop_last=True,
        ranks="auto",
    )


def rows(batch: tl.Batch, epoch: int, step: int) -> list[str]:
    """Say what this rank has of a step."""
    first = dist.get_rank() * len(batch)
    lines = []
    for row, sample in enumerate(batch, start=first):
        digest = hashlib.sha256(sample["image"].tobytes()).hexdigest()
        lines.append(json.dumps([epoch, step, row, sample["index"], digest]))
    return lines


def save(path: pathlib.Path, checkpoint: dict[str, object]) -> None:
    """Write a checkpoint, complete or not at all."""
    partial = path.with_suffix(".partial")
    torch.save(checkpoint, partial)
    os.replace(partial, path)


def main() -> None:
    """Train."""
    options = arguments()
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    network = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3 * SIDE * SIDE, CLASSES))
    model = torch.nn.parallel.DistributedDataParallel(network)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    loader = loader_of(options)
    options.folder.mkdir(parents=True, exist_ok=True)
    path = options.folder / "checkpoint.pt"
    steps = 0
    if path.exists():
        checkpoint = torch.load(path, weights_only=True)
        network.load_state_dict(checkpoint["model"])
        optimizer.load_state_dict(checkpoint["optimizer"])
        loader.load_state_dict(checkpoint["loader"])
        steps = checkpoint["steps"]
    log = options.folder / f"rows-{os.uname().nodename}-{os.getpid()}.jsonl"
    with log.open("a") as seen:
        while steps < options.epochs * len(loader):
            for batch in loader:
                epoch = steps // len(loader)
                for line in rows(batch, epoch, steps):
                    print(line, file=seen, flush=True)
                images, labels = batch["image"].torch(), batch["label"].torch()
                loss = torch.nn.functional.cross_entropy(model(images), labels)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                steps += 1
                if steps % options.steps_per_checkpoint == 0 and dist.get_rank() == 0:
                    checkpoint = {
                        "model": network.state_dict(),
                        "optimizer": optimizer.state_dict(),
                        # One for all ranks, wherever the others are: it counts what was received.
                        "loader": loader.state_dict(),
                        "steps": steps,
                    }
                    save(path, checkpoint)
                    print(f"checkpoint {steps}", flush=True)
    if dist.get_rank() == 0:
        save(options.folder / "model.pt", network.state_dict())
        print("done", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
