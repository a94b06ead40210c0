"""The random numbers, crops, orders and splits of docs/pipeline/promises.md, docs/order.md and
docs/pipeline/views.md, written a second time from the text.

Prints the constants that the Rust tests compare with:

    python3 testdata/tools/reference.py
    python3 testdata/tools/reference.py --order > testdata/order/vectors.jsonl
    python3 testdata/tools/reference.py --splits > testdata/order/splits.jsonl
"""

import hashlib
import itertools
import json
import math
import sys
from fractions import Fraction

M32, M64 = 2**32 - 1, 2**64 - 1
EPOCH_STREAM = M64


def philox(counter, key):
    c, k = list(counter), list(key)
    for _ in range(10):
        a, b = c[0] * 0xD2511F53, c[2] * 0xCD9E8D57
        c = [b >> 32 ^ c[1] ^ k[0], b & M32, a >> 32 ^ c[3] ^ k[1], a & M32]
        k = [(k[0] + 0x9E3779B9) & M32, (k[1] + 0xBB67AE85) & M32]
    return c


def words(seed, epoch, sample, op):
    block = 0
    while True:
        counter = (op << 24 | block, epoch, sample & M32, sample >> 32)
        yield from philox(counter, (seed & M32, seed >> 32))
        block += 1


class Rng:
    def __init__(self, *stream):
        self.words = words(*stream)

    def u64(self):
        low = next(self.words)
        return low | next(self.words) << 32

    def unit(self):
        return (self.u64() >> 11) / 2.0**53

    def uniform(self, low, high):
        return low + (high - low) * self.unit()

    def below(self, bound):
        surplus = 2**32 % bound
        while True:
            product = next(self.words) * bound
            if product & M32 >= surplus:
                return product >> 32


def mix(z):
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & M64
    z = (z ^ z >> 27) * 0x94D049BB133111EB & M64
    return z ^ z >> 31


def keys_of(seed, epoch, repetition):
    stream = words(seed, epoch, EPOCH_STREAM, 0)
    for _ in range(16 * repetition):
        next(stream)
    return [next(stream) | next(stream) << 32 for _ in range(8)]


def derive(keys, use, number):
    return [mix((mix((key + (use + 1) * 0x9E3779B97F4A7C15) & M64) + number) & M64) for key in keys]


def full(n, keys, place):
    k = 3
    while 1 << 2 * k < n:
        k += 1
    x = place
    while True:
        left, right = x >> k, x & (1 << k) - 1
        for key in keys:
            left, right = right, left ^ mix((right + key) & M64) >> 64 - k
        x = left << k | right
        if x < n:
            return x


def cut(n, s):
    return [list(range(start, min(start + s, n))) for start in range(0, n, s)]


def cut_by_source(samples, ends):
    """The places of samples that follow each other in one block of the source."""
    block_of = [sum(end <= sample for end in ends) for sample in samples]
    return [list(group) for _, group in itertools.groupby(range(len(samples)), lambda place: block_of[place])]


def dealt(blocks, keys):
    return [blocks[full(len(blocks), derive(keys, 0, 0), j)] for j in range(len(blocks))]


def block(blocks, w, keys):
    return windows(dealt(blocks, keys), w, keys)


def windows(blocks, w, keys):
    """All places at once: windows are written out, where the loader computes one place."""
    places = []
    for v, first in enumerate(range(0, len(blocks), w)):
        values = [value for b in blocks[first : first + w] for value in b]
        window_keys = derive(keys, 1, v)
        places += [values[full(len(values), window_keys, x)] for x in range(len(values))]
    return places


def lanes(blocks, count, w, c, deal, keys):
    """All global batches, one after the other, where the loader computes one position."""
    blocks = dealt(blocks, deal)
    samples = []
    for number in range(count):
        own = blocks[number * len(blocks) // count : (number + 1) * len(blocks) // count]
        own = [own[full(len(own), derive(keys, 2, number), j)] for j in range(len(own))]
        samples.append(windows(own, w, derive(keys, 3, number)))
    places = []
    while all(len(lane) >= c for lane in samples):
        for lane in samples:
            places += lane[:c]
            del lane[:c]
    return places + [value for lane in samples for value in lane]


def numbers_of_lanes(shuffle):
    """Lanes, blocks of a window, and whether blocks are dealt for each epoch."""
    count, blocks, *deal = shuffle.removeprefix("lanes:").split("/")
    return [int(count), numbers_of_blocks(blocks)[1], int(deal == ["epoch"])]


def numbers_of_blocks(shuffle):
    """Samples of a block, None for those of the source, and blocks of a window."""
    s, w = shuffle.removeprefix("block:").rsplit("x", 1)
    return [None if s == "source" else int(s), int(w)]


def shuffled(samples, shuffle, ends, keys):
    n = len(samples)
    if shuffle == "none":
        return list(range(n))
    if shuffle == "full":
        return [full(n, keys, place) for place in range(n)]
    return block(blocks_of(samples, shuffle, ends), numbers_of_blocks(shuffle)[1], keys)


def blocks_of(samples, shuffle, ends):
    s = numbers_of_blocks(shuffle.split("/")[1] if shuffle.startswith("lanes:") else shuffle)[0]
    return cut_by_source(samples, ends) if s is None else cut(len(samples), s)


def pieces_of(subset):
    if "ranges" in subset:
        return [("range", start, end) for start, end in subset["ranges"]]
    return [("list", subset["list"])]


def samples_of(pieces):
    return [s for p in pieces for s in (p[1] if p[0] == "list" else range(p[1], p[2]))]


class Case:
    """A sampler over a data set: its listing, the positions of a repetition, the tail of its fingerprint."""

    def __init__(self, case):
        self.n, self.shuffle, self.repeat = case["n"], case["shuffle"], case.get("repeat", 1)
        self.ends = case.get("ends", [])
        self.kind, self.tail, self.parts = "permuted", [0], None
        self.global_batch = case.get("global_batch", 64)
        self.pieces = [("range", 0, self.n)]
        if "mix" in case:
            self.mixture([pieces_of(part) for part in case["mix"]], [part["weight"] for part in case["mix"]], case.get("stages", []))
        elif "labels" in case:
            of = samples_of(pieces_of(case["of"])) if "of" in case else range(self.n)
            labels = sorted({case["labels"][s] for s in of})
            classes = [[s for s in of if case["labels"][s] == label] for label in labels]
            self.mixture([[("list", c)] for c in classes], [1] * len(classes))
            self.pieces = [("list", [s for c in classes for s in c])]
        elif "weights" in case:
            self.weights = case["weights"]
            self.kind = "drawn" if case["replacement"] else "drawn once"
            self.tail = [2 if case["replacement"] else 3, len(self.weights), *self.weights]
        elif "ranges" in case or "list" in case:
            self.pieces = pieces_of(case)
        self.once = self.positions(case.get("length", "samples"))

    def mixture(self, parts, weights, stages=()):
        divisor = math.gcd(*weights)
        self.kind, self.parts = "mixed", [samples_of(part) for part in parts]
        self.weights = [weight // divisor for weight in weights]
        self.pieces = [piece for part in parts for piece in part]
        sizes = [x for part, weight in zip(self.parts, self.weights) for x in (len(part), weight)]
        self.tail = [1, len(parts), *sizes]
        # Of each stage: its start, the rounds before it, its weights, and each part's turns before it.
        self.stages = [(0, 0, self.weights, [0] * len(parts))]
        for wanted, weights in stages:
            start, before, last, taken = self.stages[-1]
            rounds = -(-(wanted - start) // sum(last))
            taken = [turns + rounds * weight for turns, weight in zip(taken, last)]
            weights = [weight // math.gcd(*weights) for weight in weights]
            self.stages.append((start + rounds * sum(last), before + rounds, weights, taken))
            sizes = [x for part, weight in zip(self.parts, weights) for x in (len(part), weight)]
            self.tail += [4, self.stages[-1][0], *sizes]

    def positions(self, length):
        if not isinstance(length, str):
            return length
        if self.kind == "drawn once":
            return sum(weight > 0 for weight in self.weights)
        if length == "samples":
            return len(samples_of(self.pieces)) if self.n < 2**32 else self.n
        # Round by round, where the loader calculates.
        sizes, seen, end = [len(part) for part in self.parts], [0] * len(self.parts), 0
        while True:
            stage = [stage for stage in self.stages if stage[0] <= end][-1]
            after = [turns + weight for turns, weight in zip(seen, stage[2])]
            used_up = any(a > n for a, n in zip(after, sizes))
            if used_up if length == "first used up" else all(a >= n for a, n in zip(seen, sizes)):
                return end
            seen, end = after, end + sum(stage[2])

    def fingerprint(self):
        shuffle = {"none": [0, 0, 0], "full": [1, 0, 0]}.get(self.shuffle)
        if shuffle is None:
            is_lanes = self.shuffle.startswith("lanes:")
            s, w = numbers_of_blocks(self.shuffle.split("/")[1] if is_lanes else self.shuffle)
            ends = []
            if s is None:
                parts = self.parts or [samples_of(self.pieces)]
                blocks = [cut_by_source(part, self.ends) for part in parts]
                ends = [b[-1] + 1 for part in blocks for b in part]
            shuffle = [(3 if is_lanes else 2) if s else (5 if is_lanes else 4), s or len(ends), w]
            if is_lanes:
                count, _, deal = numbers_of_lanes(self.shuffle)
                shuffle += [count, self.global_batch // count, deal]
            shuffle += ends
        numbers = [self.n, *shuffle, self.once, self.repeat, len(self.pieces)]
        for piece in self.pieces:
            numbers += [0, piece[1], piece[2]] if piece[0] == "range" else [1, len(piece[1]), *piece[1]]
        numbers += self.tail
        content = b"turboloader order 1\n" + b"".join(x.to_bytes(8, "little") for x in numbers)
        return hashlib.sha256(content).hexdigest()

    def order(self, seed, epoch):
        return getattr(self, self.kind.replace(" ", "_"))(seed, epoch, self.once * self.repeat)

    def permuted(self, seed, epoch, _):
        listing = samples_of(self.pieces)
        if self.shuffle.startswith("lanes:"):
            count, w, deal = numbers_of_lanes(self.shuffle)
            keys = keys_of(seed, epoch, 0)
            deal = keys if deal else keys_of(seed, 0, 0)
            c = self.global_batch // count
            blocks = blocks_of(listing, self.shuffle, self.ends)
            return [listing[place] for place in lanes(blocks, count, w, c, deal, keys)]
        keys = [keys_of(seed, epoch, r) for r in range(self.repeat)]
        orders = [shuffled(listing, self.shuffle, self.ends, k) for k in keys]
        return [listing[place] for order in orders for place in order]

    def mixed(self, seed, epoch, count):
        keys = keys_of(seed, epoch, 0)
        samples = []
        for p in range(count):
            start, before, weights, taken = [stage for stage in self.stages if stage[0] <= p][-1]
            turns = [(Fraction(2 * t + 1, 2 * w), i) for i, w in enumerate(weights) for t in range(w)]
            # Turns of one part stay in order; that of the count is how often the part was seen before.
            slots = [i for _, i in sorted(turns)]
            slots = [(i, slots[:x].count(i)) for x, i in enumerate(slots)]
            q, x = divmod(p - start, len(slots))
            if self.shuffle != "none":
                x = full(len(slots), derive(keys, 0, before + q), x)
            i, t = slots[x]
            cycle, place = divmod(taken[i] + q * weights[i] + t, len(self.parts[i]))
            order = shuffled(self.parts[i], self.shuffle, self.ends, derive(keys, 1 + i, cycle))
            samples.append(self.parts[i][order[place]])
        return samples

    def drawn(self, seed, epoch, count):
        key, total = Rng(seed, epoch, EPOCH_STREAM, 1).u64(), sum(self.weights)
        samples = []
        for p in range(count):
            rng = Rng(key, epoch, p, 0)
            while (product := rng.u64() * total) & M64 < 2**64 % total:
                pass
            lot, sample = product >> 64, 0
            while lot >= self.weights[sample]:
                lot, sample = lot - self.weights[sample], sample + 1
            samples.append(sample)
        return samples

    def drawn_once(self, seed, epoch, _):
        key = Rng(seed, epoch, EPOCH_STREAM, 1).u64()
        samples = []
        for repetition in range(self.repeat):
            times = []
            for sample, weight in enumerate(self.weights):
                rng = Rng(key, epoch, sample, 0)
                for _ in range(4 * repetition):
                    next(rng.words)
                if weight:
                    times.append((-math.log(1 - rng.unit()) / weight, sample))
            samples += [sample for _, sample in sorted(times)[: self.once]]
        return samples


def seed_at(seed, position):
    """What takes the seed's place where samples can come more than once."""
    return mix((mix((seed + 0x9E3779B97F4A7C15) & M64) + position) & M64)


FULL = {"shuffle": "full"}
CASES = [
    {"n": 0, **FULL, "seed": 0, "epoch": 0},
    {"n": 1, **FULL, "seed": 5, "epoch": 6},
    {"n": 2, **FULL, "seed": 1, "epoch": 0},
    {"n": 10, **FULL, "seed": 0, "epoch": 0},
    {"n": 10, **FULL, "seed": 42, "epoch": 0},
    {"n": 10, **FULL, "seed": 42, "epoch": 1},
    {"n": 10, **FULL, "seed": 43, "epoch": 0},
    {"n": 17, **FULL, "seed": M64, "epoch": M32},
    {"n": 5, "shuffle": "none", "repeat": 2, "seed": 1, "epoch": 1},
    {"n": 6, **FULL, "repeat": 3, "seed": 42, "epoch": 0},
    {"n": 14, "shuffle": "block:4x1", "seed": 42, "epoch": 0},
    {"n": 14, "shuffle": "block:4x2", "seed": 42, "epoch": 1},
    {"n": 23, "shuffle": "block:5x3", "seed": 7, "epoch": 2},
    {"n": 11, "shuffle": "block:64x9", "seed": 7, "epoch": 2},
    {"n": 11, "shuffle": "block:3x2", "repeat": 2, "seed": M64, "epoch": M32},
    {"n": 30, "shuffle": "lanes:2/4x2", "global_batch": 4, "seed": 42, "epoch": 1},
    {"n": 30, "shuffle": "lanes:2/4x2/epoch", "global_batch": 4, "seed": 42, "epoch": 1},
    {"n": 47, "shuffle": "lanes:3/5x2", "global_batch": 9, "seed": 7, "epoch": 0},
    {"n": 47, "shuffle": "lanes:4/1x3", "global_batch": 4, "seed": M64, "epoch": M32},
    {"n": 11, "shuffle": "lanes:4/4x2", "global_batch": 8, "seed": 42, "epoch": 2},
    {"n": 40, "ranges": [[20, 35], [4, 12]], "shuffle": "lanes:2/3x2", "global_batch": 2, "seed": 42, "epoch": 3},
    {"n": 30, "ranges": [[20, 25], [3, 3], [4, 8]], **FULL, "seed": 42, "epoch": 0},
    {"n": 30, "ranges": [[20, 25], [4, 8]], "shuffle": "none", "seed": 42, "epoch": 0},
    {"n": 30, "list": [9, 2, 9, 29, 0], "shuffle": "none", "seed": 42, "epoch": 0},
    {"n": 30, "list": [9, 2, 29, 0], **FULL, "seed": 42, "epoch": 0},
    {"n": 30, "list": [9, 2, 9, 29, 0], **FULL, "repeat": 2, "seed": 42, "epoch": 0},
]
MIX = [{"ranges": [[0, 7]], "weight": 6}, {"ranges": [[7, 9]], "weight": 2}, {"list": [12, 9, 10], "weight": 4}]
LABELS = [3, -1, 3, 3, 0, 3, 0, 3, -1, 3]
CASES += [
    {"n": 13, "mix": MIX, "shuffle": "none", "seed": 42, "epoch": 0},
    {"n": 13, "mix": MIX, **FULL, "seed": 42, "epoch": 0},
    {"n": 13, "mix": MIX, **FULL, "repeat": 2, "seed": 42, "epoch": 1},
    {"n": 13, "mix": MIX, "shuffle": "block:2x2", "length": 20, "seed": 42, "epoch": 0},
    {"n": 13, "mix": MIX, **FULL, "length": "first used up", "seed": 42, "epoch": 0},
    {"n": 13, "mix": MIX, **FULL, "length": "all used up", "seed": 42, "epoch": 0},
    {"n": 13, "mix": MIX, "stages": [[7, [2, 2, 0]], [14, [1, 2, 4]]], "shuffle": "none", "length": 30, "seed": 42, "epoch": 0},
    {"n": 13, "mix": MIX, "stages": [[7, [2, 2, 0]], [14, [1, 2, 4]]], **FULL, "length": 30, "seed": 42, "epoch": 0},
    {"n": 13, "mix": MIX, "stages": [[6, [1, 0, 0]]], "shuffle": "block:2x2", "length": 9, "repeat": 2, "seed": 7, "epoch": 2},
    {"n": 13, "mix": [{**MIX[0], "weight": 1}, {**MIX[1], "weight": 0}, {**MIX[2], "weight": 1}], "stages": [[3, [0, 1, 0]]], **FULL, "length": "first used up", "seed": 42, "epoch": 0},
    {"n": 13, "mix": MIX, "stages": [[6, [1, 0, 9]], [16, [3, 6, 3]]], **FULL, "length": "all used up", "seed": 42, "epoch": 0},
    {"n": 10, "labels": LABELS, **FULL, "length": "all used up", "seed": 42, "epoch": 3},
    {"n": 10, "labels": LABELS, "shuffle": "none", "seed": 42, "epoch": 3},
    {"n": 10, "labels": LABELS, "of": {"ranges": [[4, 10]]}, **FULL, "seed": 42, "epoch": 3},
]
WEIGHTS = [5, 0, 1, 2**32 - 1, 2**31, 2**30]
ENDS = [3, 4, 9, 14, 17]
CASES += [
    {"n": 17, "ends": ENDS, "shuffle": "block:sourcex1", "seed": 42, "epoch": 0},
    {"n": 17, "ends": ENDS, "shuffle": "block:sourcex2", "seed": 42, "epoch": 1},
    {"n": 17, "ends": ENDS, "shuffle": "block:sourcex2", "repeat": 3, "seed": 7, "epoch": 0},
    {"n": 17, "ends": ENDS, "ranges": [[12, 16], [2, 9]], "shuffle": "block:sourcex2", "seed": 42, "epoch": 0},
    {"n": 17, "ends": ENDS, "list": [0, 2, 1, 16, 5, 6, 3, 8], "shuffle": "block:sourcex2", "seed": 42, "epoch": 0},
    {"n": 17, "ends": ENDS, "mix": MIX, "shuffle": "block:sourcex2", "length": 24, "seed": 42, "epoch": 2},
    {"n": 17, "ends": ENDS, "shuffle": "lanes:2/sourcex2", "global_batch": 4, "seed": 42, "epoch": 1},
    {"n": 17, "ends": ENDS, "shuffle": "lanes:2/sourcex1/epoch", "global_batch": 2, "seed": 42, "epoch": 1},
    {"n": 0, "ends": [], "shuffle": "block:sourcex2", "seed": 42, "epoch": 1},
]
CASES += [
    {"n": 6, "weights": WEIGHTS, "replacement": True, **FULL, "length": 24, "seed": 42, "epoch": 0},
    {"n": 6, "weights": [5, 0, 1, 4, 2, 1], "replacement": True, **FULL, "repeat": 3, "seed": M64, "epoch": 9},
    {"n": 6, "weights": WEIGHTS, "replacement": False, **FULL, "repeat": 3, "seed": 42, "epoch": 0},
    {"n": 9, "weights": [1] * 9, "replacement": False, **FULL, "length": 4, "repeat": 4, "seed": 42, "epoch": 1},
    {"n": 6, "weights": [3, 0, 1, 4, 2, 1], "replacement": False, **FULL, "seed": M64, "epoch": M32},
]


def print_order():
    for case in CASES:
        resolved = Case(case)
        samples = resolved.order(case["seed"], case["epoch"])
        case = {**case, "samples": samples, "fingerprint": resolved.fingerprint()}
        once = resolved.kind in ("permuted", "drawn once") and resolved.repeat == 1
        if not once or len(set(case.get("list", []))) < len(case.get("list", [])):
            case["seeds"] = [seed_at(case["seed"], position) for position in range(3)]
        print(json.dumps(case))
    for n in (1_281_167, 2**40, 2**64 - 1):
        keys = keys_of(42, 7, 0)
        at = [[p, full(n, keys, p)] for p in (0, 1, 2, n - 1)]
        print(json.dumps({"n": n, **FULL, "seed": 42, "epoch": 7, "at": at}))


def split(n, sizes, seed, labels):
    """The part of each place of a view."""
    stream = words(seed, 0, EPOCH_STREAM, 2)
    keys = [next(stream) | next(stream) << 32 for _ in range(8)]
    line = []
    for label in sorted(set(labels)) if labels else [None]:
        places = [p for p in range(n) if label is None or labels[p] == label]
        own = keys if label is None else derive(keys, 0, label & M64)
        line += [places[full(len(places), own, turn)] for turn in range(len(places))]
    had = [0] * len(sizes)
    parts = [0] * n
    for at, place in enumerate(line):
        due = []
        for part, size in enumerate(sizes):
            if had[part] < size and had[part] * n // size <= at:
                due.append((-(-(had[part] + 1) * n // size), part))
        _, parts[place] = min(due)
        had[parts[place]] += 1
    return parts


def split_sizes(n, fractions):
    units = [math.floor(fraction * 1e9 + 0.5) for fraction in fractions]
    if sum(units) + len(units) < 10**9:
        units.append(10**9 - sum(units))
    whole = sum(units)
    sizes = [unit * n // whole for unit in units]
    by_remainder = sorted(range(len(units)), key=lambda part: -(units[part] * n % whole))
    for part in by_remainder[: n - sum(sizes)]:
        sizes[part] += 1
    return sizes


def print_splits():
    classes = [1, -3, 0, 0, 1, 0, 1, 1, 0, 1, -3, -3, 0, 1, 1]
    for n, fractions, seed, labels in [
        (10, [0.9, 0.1], 0, None),
        (10, [0.9, 0.1], 42, None),
        (15, [0.5, 0.2, 0.2], M64, None),
        (15, [0.6, 0.4], 7, classes),
        (15, [1 / 3] * 3, 7, classes),
        (1, [0.5, 0.5], 1, None),
        (0, [1.0], 1, None),
    ]:
        sizes = split_sizes(n, fractions)
        parts = split(n, sizes, seed, labels)
        case = {"n": n, "fractions": fractions, "seed": seed, "labels": labels}
        print(json.dumps({**case, "sizes": sizes, "parts": parts}))


def replacements(n, seed, epoch, position):
    rng = Rng(seed ^ 0x428A2F98D728AE22, epoch, position, 0)
    return [rng.u64() * n >> 64 for _ in range(16)]


def train_crop(width, height, seed, epoch, sample):
    """RandomResizedCrop as operation 0, RandomHorizontalFlip as operation 1."""
    flip = Rng(seed, epoch, sample, 1).unit() < 0.5
    rng = Rng(seed, epoch, sample, 0)
    for _ in range(10):
        area = width * height * rng.uniform(0.08, 1.0)
        ratio = math.exp(rng.uniform(math.log(3 / 4), math.log(4 / 3)))
        w, h = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
        if 0 < w <= width and 0 < h <= height:
            y = rng.below(height - h + 1)
            return (rng.below(width - w + 1), y, w, h), flip
    raise NotImplementedError("the fallback needs no random numbers")


if __name__ == "__main__":
    if sys.argv[1:] == ["--order"]:
        print_order()
        sys.exit()
    if sys.argv[1:] == ["--splits"]:
        print_splits()
        sys.exit()
    for seed, epoch, sample in [(0, 0, 0), (0, 0, 1), (42, 0, 7), (42, 1, 7), (M64, M32, 2**40)]:
        print("plan of 500x375", seed, epoch, sample, *train_crop(500, 375, seed, epoch, sample))
    for n, seed, epoch, position in [(1000, 42, 0, 7), (1000, 0, 3, 999), (2**40, 42, 0, 2**33)]:
        print("replacements", n, seed, epoch, position, *replacements(n, seed, epoch, position)[:4])
