#!/usr/bin/env python3
"""Makes the files of `testdata/tokens`, and `expected.json` with what their own readers find in them.

usage: token_files.py FOLDER [litdata] [mds] [megatron]

`litdata` needs LitData, `mds` MosaicML Streaming, `megatron` megatron-core with its compiled helpers;
all of them NumPy and torch. Without names all are made.
"""

import json
import pathlib
import shutil
import sys

import numpy as np


def documents(seed, count, longest, most=1 << 16):
    """Tokens of documents, some of which have one token."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, longest, count)
    return [rng.integers(0, most, length).astype(np.uint16) for length in lengths]


def litdata(folder):
    """Chunks as `optimize` writes them, of tensors and of arrays, and the blocks that `TokensLoader` reads."""
    import torch
    from litdata.streaming import StreamingDataset, TokensLoader
    from litdata.streaming.writer import BinaryWriter

    found = {}
    kinds = {
        "tensor": lambda tokens: torch.from_numpy(tokens.astype(np.int32)),
        "array": lambda tokens: tokens,
    }
    for name, convert in kinds.items():
        out = folder / f"litdata_{name}"
        shutil.rmtree(out, ignore_errors=True)
        out.mkdir(parents=True)
        writer = BinaryWriter(str(out), chunk_size=200, item_loader=TokensLoader())
        items = documents(1, 30, 60)
        for number, tokens in enumerate(items):
            writer[number] = convert(tokens)
        writer.done()
        writer.merge()
        loader = TokensLoader(block_size=17)
        blocks = StreamingDataset(str(out), item_loader=loader, shuffle=False, drop_last=False)
        found[out.name] = {
            "documents": [tokens.tolist() for tokens in items],
            "blocks": [np.asarray(blocks[number]).tolist() for number in range(len(blocks))],
        }
    return found


def mds(folder):
    """Shards as `MDSWriter` writes them, and the samples that its reader finds."""
    from streaming import MDSWriter
    from streaming.base.format import reader_from_json

    columns = {
        # As scripts for language models write them: bytes, of the type that the reader must know.
        "bytes": ({"tokens": "bytes"}, lambda tokens: {"tokens": tokens.astype(np.int64).tobytes()}),
        "typed": ({"tokens": "ndarray:uint16"}, lambda tokens: {"tokens": tokens}),
        "untyped": ({"tokens": "ndarray"}, lambda tokens: {"tokens": tokens.astype(np.int32)}),
        "fixed": ({"tokens": "ndarray:uint32:16"}, lambda tokens: {"tokens": np.resize(tokens, 16).astype(np.uint32)}),
        # Columns are stored in the order of their names.
        "several": (
            {"id": "int", "name": "str", "tokens": "ndarray:uint16", "url": "str"},
            lambda tokens: {
                "id": int(tokens[0]),
                "name": "n" * (int(tokens[0]) % 5),
                "tokens": tokens,
                "url": "u" * (int(tokens[0]) % 3),
            },
        ),
        "zstd": ({"tokens": "ndarray:uint16"}, lambda tokens: {"tokens": tokens}),
    }
    found = {}
    for name, (kinds, convert) in columns.items():
        out = folder / f"mds_{name}"
        shutil.rmtree(out, ignore_errors=True)
        compression = "zstd" if name == "zstd" else None
        # One document has more than 256 tokens, for shapes of two bytes.
        items = [*documents(2, 20, 40), *documents(3, 1, 400)]
        with MDSWriter(out=str(out), columns=kinds, compression=compression, size_limit=1 << 10) as writer:
            for tokens in items:
                writer.write(convert(tokens))
        if compression:
            continue
        read = []
        for shard in json.loads((out / "index.json").read_text())["shards"]:
            reader = reader_from_json(str(out), "", shard)
            for number in range(reader.samples):
                tokens = reader.get_item(number)["tokens"]
                is_raw = isinstance(tokens, bytes)
                read.append((np.frombuffer(tokens, np.int64) if is_raw else tokens).tolist())
        found[out.name] = {"documents": read}
    return found


def megatron(folder):
    """A `.bin` and its `.idx`, the order that `GPTDataset` caches, and the samples that it returns."""
    import torch
    from megatron.core.datasets.gpt_dataset import GPTDataset, GPTDatasetConfig
    from megatron.core.datasets.indexed_dataset import IndexedDataset, IndexedDatasetBuilder
    from megatron.core.datasets.utils import Split

    out = folder / "megatron"
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    prefix = str(out / "corpus")
    builder = IndexedDatasetBuilder(prefix + ".bin", dtype=np.uint16)
    for tokens in documents(4, 25, 50):
        builder.add_document(torch.from_numpy(tokens.astype(np.int32)), [len(tokens)])
    builder.finalize(prefix + ".idx")

    class Tokenizer:
        unique_identifiers = {}
        eod, pad, vocab_size = 0, 1, 1 << 16

    found = {}
    # More than two epochs, of which the last is in a shuffle of its own; a validation split; whole rows.
    for name, split, wanted, extra in [("train", Split.train, 60, True), ("valid", Split.valid, 4, True), ("rows", Split.train, 12, False)]:
        config = GPTDatasetConfig(
            random_seed=1234,
            sequence_length=20,
            blend=([prefix], None),
            split="80,20,0",
            path_to_cache=str(out / "cache"),
            tokenizer=Tokenizer(),
            reset_position_ids=False,
            reset_attention_mask=False,
            eod_mask_loss=False,
            create_attention_mask=False,
            add_extra_token_to_sequence=extra,
            mid_level_dataset_surplus=0.005,
        )
        low = IndexedDataset(prefix)
        count = len(low)
        border = round(0.8 * count)
        indices = np.arange(0, border) if split == Split.train else np.arange(border, count)
        dataset = GPTDataset(low, prefix, indices.astype(np.int32), wanted, split, config)
        kind = dataset.unique_description_hash
        for path in (out / "cache").iterdir():
            if path.name.startswith(kind):
                target = out / path.name.replace(f"{kind}-GPTDataset-{split.name}", name)
                path.rename(target)
        for leftover in (out).glob("*description.txt"):
            leftover.unlink()
        read = []
        for number in range(len(dataset)):
            sample = dataset[number]
            last = sample["labels"][-1:].tolist() if extra else []
            read.append(sample["tokens"].tolist() + last)
        found[name] = read
    shutil.rmtree(out / "cache")
    return {"megatron": found}


def main():
    folder = pathlib.Path(sys.argv[1])
    expected = folder / "expected.json"
    found = json.loads(expected.read_text()) if expected.exists() else {}
    for name in sys.argv[2:] or ["litdata", "mds", "megatron"]:
        found |= globals()[name](folder)
    lines = [f"{json.dumps(key)}: {json.dumps(value, separators=(',', ':'))}" for key, value in sorted(found.items())]
    expected.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
