"""Compares ways to tokenize JSON Lines: `tl tokenize`, `datasets.map`, and Megatron-LM's preprocess_data.py.

Run with `datasets`, `tokenizers` and `megatron-core`:

    python compare_tokenize.py TL TOKENIZER.json TEXTS.jsonl [--rounds 3] [--workers 2]

Each way runs in a process of its own, one after the other in every round. A line is printed per run: the
seconds of the clock, those of all CPUs, and the bytes of JSON Lines per second of a CPU. Imports are not
counted. `preprocess_data.py` is not in the package; its loop over a pool of processes, and the builder of
the package that it feeds, are what `megatron` runs.
"""

import argparse
import json
import multiprocessing
import pathlib
import resource
import subprocess
import sys
import tempfile
import time


def cpu_seconds():
    """Those of this process and of the ended ones that it started."""
    used = [resource.getrusage(of) for of in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def run_tl(tl, tokenizer, texts, output, workers):
    command = [tl, "tokenize", texts, "-q", "-o", output / "a.bin", "--tokenizer", tokenizer]
    return lambda: subprocess.run([*command, "--end-token", "0", "-j", str(workers)], check=True)


def run_datasets(tl, tokenizer, texts, output, workers):
    from datasets import load_dataset
    from tokenizers import Tokenizer

    def work():
        made = Tokenizer.from_file(tokenizer)
        dataset = load_dataset("json", data_files=texts, cache_dir=str(output), split="train")

        def encode(batch):
            encoded = made.encode_batch_fast(batch["text"], add_special_tokens=False)
            return {"input_ids": [one.ids for one in encoded]}

        dataset.map(encode, batched=True, remove_columns=dataset.column_names)

    return work


class Encoder:
    def __init__(self, tokenizer):
        self.path = tokenizer

    def initializer(self):
        from tokenizers import Tokenizer

        Encoder.tokenizer = Tokenizer.from_file(self.path)

    def encode(self, line):
        ids = Encoder.tokenizer.encode(json.loads(line)["text"], add_special_tokens=False).ids
        return [*ids, 0] if ids else ids


def run_megatron(tl, tokenizer, texts, output, workers):
    from megatron.core.datasets.indexed_dataset import DType, IndexedDatasetBuilder
    from tokenizers import Tokenizer

    def work():
        vocabulary = Tokenizer.from_file(tokenizer).get_vocab_size()
        dtype = DType.optimal_dtype(vocabulary)
        builder = IndexedDatasetBuilder(str(output / "a.bin"), dtype=dtype)
        encoder = Encoder(tokenizer)
        pool = multiprocessing.Pool(workers, initializer=encoder.initializer)
        with open(texts, encoding="utf-8") as lines:
            for document in pool.imap(encoder.encode, lines, 32):
                builder.add_document(document, [len(document)])
        builder.finalize(str(output / "a.idx"))
        pool.close()
        pool.join()

    return work


WAYS = {"tl": run_tl, "datasets": run_datasets, "megatron": run_megatron}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tl")
    parser.add_argument("tokenizer")
    parser.add_argument("texts")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--way", choices=WAYS)
    options = parser.parse_args()
    if options.way is None:
        for _ in range(options.rounds):
            for way in WAYS:
                subprocess.run([sys.executable, *sys.argv, "--way", way], check=True)
        return
    with tempfile.TemporaryDirectory() as folder:
        output = pathlib.Path(folder)
        make = WAYS[options.way]
        work = make(options.tl, options.tokenizer, options.texts, output, options.workers)
        start, used = time.monotonic(), cpu_seconds()
        work()
        clock, cpu = time.monotonic() - start, cpu_seconds() - used
    size = pathlib.Path(options.texts).stat().st_size
    print(f"{options.way:9} {clock:7.2f} s, CPUs {cpu:7.2f} s, {size / cpu / 1e6:6.2f} MB/s a CPU")


if __name__ == "__main__":
    main()
