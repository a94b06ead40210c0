#!/usr/bin/env python3
"""Measures windows of tokens beside the loops of other libraries, and how soon the first batch is there.

usage: compare_tokens.py FOLDER [ROUNDS]

FOLDER takes 700 MB of files, which are removed at the end. Needs our package, numpy, torch, litdata,
mosaicml-streaming and megatron-core; a library that is missing is left out. Each round measures all of
them one after the other in this process, on one core, and the table has the medians.
"""

import os

os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
os.environ["OMP_NUM_THREADS"] = "1"

import pathlib
import shutil
import statistics
import struct
import sys
import time
import warnings

import numpy as np
import torch
import turboloader as tl

warnings.filterwarnings("ignore")
torch.set_num_threads(1)

LENGTH, BATCH, BATCHES = 2048, 8, 1000
COUNT = 1 << 26
PER_ROUND = LENGTH * BATCH * BATCHES


def corpus(folder):
    """Writes random tokens as a raw file, and as the documents of Megatron-LM."""
    random = np.random.default_rng(0)
    tokens = random.integers(0, 50_257, COUNT).astype(np.uint16)
    tokens.tofile(folder / "raw.bin")
    os.link(folder / "raw.bin", folder / "documents.bin")
    lengths = random.lognormal(6, 1, COUNT // 400).astype(np.int32) + 1
    lengths = lengths[: np.searchsorted(np.cumsum(lengths), COUNT)]
    write_index(folder / "documents.idx", lengths)
    return tokens


def write_index(path, lengths):
    starts = np.concatenate([[0], np.cumsum(lengths[:-1], dtype=np.int64)]) * 2
    with open(path, "wb") as file:
        file.write(
            b"MMIDIDX\0\0" + struct.pack("<QBQQ", 1, 8, len(lengths), len(lengths) + 1)
        )
        file.write(lengths.tobytes())
        file.write(starts.astype(np.int64).tobytes())
        np.arange(len(lengths) + 1, dtype=np.int64).tofile(file)


def ours(folder, dtype, workers):
    ds = tl.tokens(folder / "raw.bin", dtype="uint16", length=LENGTH, offset="random")
    loader = tl.DataLoader(
        ds, BATCH, shuffle=True, tail="drop", dtype=dtype, num_workers=workers
    )

    def batches():
        while True:
            for batch in loader:
                yield batch["tokens"], batch["targets"]

    return batches()


def nanogpt(folder):
    """The loop of nanoGPT's train.py."""
    while True:
        data = np.memmap(folder / "raw.bin", dtype=np.uint16, mode="r")
        ix = torch.randint(len(data) - LENGTH, (BATCH,))
        x = [torch.from_numpy(data[i : i + LENGTH].astype(np.int64)) for i in ix]
        y = [
            torch.from_numpy(data[i + 1 : i + 1 + LENGTH].astype(np.int64)) for i in ix
        ]
        yield torch.stack(x), torch.stack(y)


def litdata(folder):
    from litdata import StreamingDataLoader, StreamingDataset, TokensLoader
    from litdata.streaming.writer import BinaryWriter

    loader = TokensLoader(block_size=LENGTH + 1)
    target = folder / "litdata"
    target.mkdir()
    writer = BinaryWriter(
        str(target), chunk_bytes="64MB", item_loader=TokensLoader(LENGTH + 1)
    )
    data = np.memmap(folder / "raw.bin", dtype=np.uint16, mode="r")
    step = 1 << 16
    for number, start in enumerate(range(0, COUNT, step)):
        writer[number] = torch.from_numpy(data[start : start + step].astype(np.int32))
    writer.done()
    writer.merge()
    ds = StreamingDataset(str(target), item_loader=loader, shuffle=True, drop_last=True)

    def batches():
        while True:
            for batch in StreamingDataLoader(ds, batch_size=BATCH, num_workers=0):
                yield batch[:, :-1].long(), batch[:, 1:].long()

    return batches()


def mosaic(folder):
    from streaming import MDSWriter, StreamingDataset

    data = np.memmap(folder / "raw.bin", dtype=np.uint16, mode="r")
    target = str(folder / "mds")
    with MDSWriter(out=target, columns={"tokens": "ndarray:uint16"}) as writer:
        for start in range(0, COUNT - LENGTH, LENGTH):
            writer.write({"tokens": np.array(data[start : start + LENGTH + 1])})
    ds = StreamingDataset(local=target, shuffle=True, batch_size=BATCH)

    def collate(samples):
        tokens = torch.from_numpy(
            np.stack([sample["tokens"] for sample in samples]).astype(np.int64)
        )
        return tokens[:, :-1], tokens[:, 1:]

    def batches():
        while True:
            yield from torch.utils.data.DataLoader(
                ds, BATCH, num_workers=0, collate_fn=collate
            )

    return batches()


class Tokenizer:
    """What GPTDataset asks of a tokenizer."""

    eod, pad, vocab_size, unique_identifiers = 50_256, 50_256, 50_257, {"class": "none"}


def megatron(folder):
    from megatron.core.datasets.blended_megatron_dataset_builder import (
        BlendedMegatronDatasetBuilder,
    )
    from megatron.core.datasets.gpt_dataset import GPTDataset, GPTDatasetConfig

    config = GPTDatasetConfig(
        random_seed=1234,
        sequence_length=LENGTH,
        blend=([str(folder / "documents")], None),
        split="100,0,0",
        path_to_cache=str(folder / "megatron"),
        tokenizer=Tokenizer(),
        reset_position_ids=False,
        reset_attention_mask=False,
        eod_mask_loss=False,
        create_attention_mask=False,
    )
    sizes = [COUNT // LENGTH, 0, 0]
    ds = BlendedMegatronDatasetBuilder(GPTDataset, sizes, lambda: True, config).build()[
        0
    ]

    def batches():
        while True:
            for batch in torch.utils.data.DataLoader(ds, BATCH, num_workers=0):
                yield batch["tokens"], batch["labels"]

    return batches()


def windows(folder, rounds):
    contenders = {
        "ours, int64": lambda: ours(folder, "int64", 1),
        "ours, stored": lambda: ours(folder, "stored", 1),
        "nanoGPT's loop": lambda: nanogpt(folder),
        "LitData's TokensLoader": lambda: litdata(folder),
        "MosaicML Streaming": lambda: mosaic(folder),
        "Megatron's GPTDataset": lambda: megatron(folder),
    }
    open_ = {}
    for name, make in contenders.items():
        try:
            start = time.perf_counter()
            batches = make()
            x, y = next(batches)
            assert tuple(x.shape) == tuple(y.shape) == (BATCH, LENGTH), (
                x.shape,
                y.shape,
            )
            open_[name] = batches
            print(
                f"{name}: prepared in {time.perf_counter() - start:.2f} s",
                file=sys.stderr,
            )
        except ImportError as error:
            print(f"{name}: {error}", file=sys.stderr)
    rates = {name: [] for name in open_}
    for _ in range(rounds):
        for name, batches in open_.items():
            start = time.perf_counter()
            for _ in range(BATCHES):
                next(batches)
            rates[name].append(PER_ROUND / (time.perf_counter() - start) / 1e6)
    base = statistics.median(rates["ours, int64"])
    for name, values in rates.items():
        middle = statistics.median(values)
        print(
            f"{name:24} {middle:8.0f} ({min(values):.0f}-{max(values):.0f}) M tokens/s {base / middle:6.1f}x"
        )


def milliseconds(work, times=9):
    taken = []
    for _ in range(times):
        start = time.perf_counter()
        work()
        taken.append((time.perf_counter() - start) * 1e3)
    print(
        f"{statistics.median(taken):8.2f} ms ({min(taken):.2f}-{max(taken):.2f})",
        end="  ",
    )


def starts(folder):
    huge = folder / "huge.bin"
    huge.touch()
    os.truncate(huge, 1 << 40)

    def loader(ds):
        return tl.DataLoader(ds, BATCH, shuffle=True, num_workers=1)

    def open_huge():
        return tl.tokens(huge, dtype="uint16", length=LENGTH)

    def first():
        next(iter(loader(open_huge())))

    milliseconds(first)
    print("a terabyte: opened, and the first batch")
    whole = loader(open_huge())
    next(iter(whole))
    state = whole.state_dict()
    place = (len(whole) // 2, len(whole) - 2)

    def resume():
        resumed = loader(open_huge())
        resumed.load_state_dict(state)
        next(iter(resumed))

    milliseconds(resume)
    print("a terabyte: opened and resumed, and the next batch")
    print(f"  of {len(whole)} batches {place}", file=sys.stderr)
    huge.unlink()
    count = 100_000_000
    index, tokens = folder / "many.idx", folder / "many.bin"
    with open(index, "wb") as file:
        file.write(b"MMIDIDX\0\0" + struct.pack("<QBQQ", 1, 8, count, count + 1))
        random = np.random.default_rng(1)
        start = 0
        for _ in range(100):
            lengths = random.lognormal(6, 1, count // 100).astype(np.int32) + 1
            file.write(lengths.tobytes())
            start += int(lengths.sum(dtype=np.int64))
    os.truncate(index, 34 + 20 * count + 8)
    tokens.touch()
    os.truncate(tokens, 2 * start)
    milliseconds(lambda: tl.tokens(index, length=LENGTH))
    print(f"an index of {count} documents: opened as windows")
    milliseconds(lambda: tl.tokens(index, length=LENGTH, documents="pad"))
    print(f"an index of {count} documents: opened as one document a row")
    milliseconds(lambda: tl.tokens(index, length=LENGTH, documents="best_fit"), 1)
    print(f"an index of {count} documents: packed by best fit")
    index.unlink()
    tokens.unlink()


def packing(folder):
    for name, sigma in (
        ("log-normal, median 400", 1.0),
        ("log-normal, median 400, wide", 1.5),
    ):
        lengths = (
            np.random.default_rng(2).lognormal(6, sigma, 1_000_000).astype(np.int32) + 1
        )
        write_index(folder / "pack.idx", lengths)
        (folder / "pack.bin").touch()
        os.truncate(folder / "pack.bin", 2 * int(lengths.sum(dtype=np.int64)))
        rows = [
            len(
                tl.tokens(
                    folder / "pack.idx",
                    length=LENGTH,
                    documents="best_fit",
                    long="split",
                    window=window,
                )
            )
            for window in (100_000, 1_000_000)
        ]
        least = -(-int(lengths.sum(dtype=np.int64)) // LENGTH)
        print(
            f"{name}: {rows[0]} rows, all at once {rows[1]} ({100 * rows[0] / rows[1] - 100:.3f} % more), full rows {least}"
        )


def main():
    folder = pathlib.Path(sys.argv[1]) / "compare_tokens"
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 7
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    try:
        corpus(folder)
        windows(folder, rounds)
        starts(folder)
        packing(folder)
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
