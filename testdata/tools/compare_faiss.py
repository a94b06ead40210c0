"""Searches for the nearest of many vectors here and with faiss's flat indexes, on one core.

    python3 -m venv venv && venv/bin/pip install faiss-cpu numpy
    cargo build --release --package tl-benches --example vector_search
    venv/bin/python testdata/tools/compare_faiss.py

Every round asks all contenders for the same query, one after the other in an order that rotates,
and a further one only reads the rows. Times are processor times of the searching thread, in
milliseconds, medians of the rounds. Rows are compared first: by the scores in double precision, of
what each contender holds, no row may be missing that is nearer than one that is there.

Cosines are dot products of rows that were made 1 long for faiss, and of the rows as they are here.
Other types of number: faiss has scalar quantizers, which convert to `f32` on the way; its 8 bits
are codes without a sign with a range for each component, here a row has a scale.
"""

import argparse
import os
import pathlib
import statistics
import subprocess
import tempfile
import time

import faiss
import numpy

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = ROOT / "target/release/examples/vector_search"


class Here:
    """The process that searches with tl-simd."""

    def __init__(self, program, rows):
        with tempfile.NamedTemporaryFile(suffix=".f32") as file:
            rows.tofile(file.name)
            pipe = subprocess.PIPE
            command = [program, file.name, str(rows.shape[1])]
            self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True)
            self.ask("f32", "read", "scalar", 0, rows[0])

    def ask(self, element, metric, level, k, query):
        """Returns milliseconds and the rows."""
        numbers = " ".join(map(repr, map(float, query)))
        self.process.stdin.write(f"{element} {metric} {level} {k} {numbers}\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline().split()
        if not answer:
            raise SystemExit(f"the search ended with {self.process.wait()}")
        return int(answer[0]) / 1e6, [int(found.split(":")[0]) for found in answer[1:]]

    def search(self, element, metric, level):
        return lambda query, k: self.ask(element, metric, level, k, query)


def faiss_search(index, prepare):
    def search(query, k):
        query = prepare(query[None])
        start = time.thread_time()
        _, found = index.search(query, k)
        return (time.thread_time() - start) * 1e3, found[0].tolist()

    return search


def unit(rows):
    return rows / numpy.linalg.norm(rows, axis=1, keepdims=True)


def same(rows):
    return rows


def faiss_indexes(rows):
    dim = rows.shape[1]
    quantizer, kind = faiss.IndexScalarQuantizer, faiss.ScalarQuantizer
    dot, distance = faiss.METRIC_INNER_PRODUCT, faiss.METRIC_L2
    return {
        ("f32", "cosine"): (faiss.IndexFlatIP(dim), unit),
        ("f32", "dot"): (faiss.IndexFlatIP(dim), same),
        ("f32", "l2"): (faiss.IndexFlatL2(dim), same),
        ("f16", "cosine"): (quantizer(dim, kind.QT_fp16, dot), unit),
        ("f16", "l2"): (quantizer(dim, kind.QT_fp16, distance), same),
        ("bf16", "cosine"): (quantizer(dim, kind.QT_bf16, dot), unit),
        ("bf16", "l2"): (quantizer(dim, kind.QT_bf16, distance), same),
        ("i8", "cosine"): (quantizer(dim, kind.QT_8bit, dot), unit),
        ("i8", "l2"): (quantizer(dim, kind.QT_8bit, distance), same),
    }


def exact(rows, query, metric):
    """The scores in double precision, the larger the nearer."""
    rows, query = rows.astype(numpy.float64), query.astype(numpy.float64)
    if metric == "l2":
        return -((rows - query) ** 2).sum(1)
    products = rows @ query
    return products if metric == "dot" else products / numpy.linalg.norm(rows, axis=1) / numpy.linalg.norm(query)


def missed(scores, found, k):
    """By how much a row that was left out is nearer than one that was found, at most."""
    if len(set(found)) != k:
        raise SystemExit(f"{len(set(found))} of {k} rows were found")
    left = numpy.delete(scores, found).max()
    return max(0.0, float(left - scores[found].min()))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--dim", type=int, default=384)
    parser.add_argument("-k", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=25)
    parser.add_argument("--core", type=int, default=0)
    parser.add_argument("--level", default="avx512")
    parser.add_argument("--program", default=PROGRAM)
    arguments = parser.parse_args()
    os.sched_setaffinity(0, {arguments.core})
    faiss.omp_set_num_threads(1)
    random = numpy.random.default_rng(1)
    rows = random.standard_normal((arguments.rows, arguments.dim), dtype=numpy.float32)
    queries = random.standard_normal((arguments.rounds, arguments.dim), dtype=numpy.float32)
    here = Here(arguments.program, rows)
    print(f"{arguments.rows} x {arguments.dim}, the nearest {arguments.k}, faiss {faiss.__version__}, {arguments.level}")
    print("| numbers | metric | here, ms | faiss, ms | ratio | reading, ms | share of reading |")
    print("|---|---|---|---|---|---|---|")
    for (element, metric), (index, prepare) in faiss_indexes(rows).items():
        index.train(prepare(rows))
        index.add(prepare(rows))
        contenders = {
            "here": here.search(element, metric, arguments.level),
            "faiss": faiss_search(index, prepare),
            "read": here.search(element, "read", arguments.level),
        }
        compare(contenders, rows, queries[0], element, metric, arguments.k)
        times = {name: [] for name in contenders}
        for turn, query in enumerate(queries):
            names = list(contenders)
            for name in names[turn % 3 :] + names[: turn % 3]:
                times[name].append(contenders[name](query, arguments.k)[0])
        ours, theirs, read = (statistics.median(times[name]) for name in contenders)
        ratio = statistics.median(b / a for a, b in zip(times["here"], times["faiss"]))
        share = statistics.median(b / a for a, b in zip(times["here"], times["read"]))
        print(f"| {element} | {metric} | {ours:.2f} | {theirs:.2f} | {ratio:.2f} | {read:.2f} | {share:.0%} |", flush=True)


# How far the nearest rows may be from the exact ones: what rounding the numbers makes.
TOLERANCE = {"f32": 1e-6, "f16": 1e-3, "bf16": 1e-2, "i8": 2e-2}


def compare(contenders, rows, query, element, metric, k):
    scores = exact(rows, query, metric)
    for name in ("here", "faiss"):
        _, found = contenders[name](query, k)
        error = missed(scores, found, k) / abs(scores).max()
        if error > TOLERANCE[element]:
            raise SystemExit(f"{name}: {element} {metric} misses a row that is nearer by {error:.2g} of the largest score")


if __name__ == "__main__":
    main()
