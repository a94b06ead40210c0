"""The random numbers, sample order and crops of docs/pipeline.md, written a second time from the text.

Prints the constants that the Rust tests compare with:

    python3 testdata/tools/reference.py
"""

import math

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


def sample_at(position, n, seed, epoch):
    rng = Rng(seed, epoch, EPOCH_STREAM, 0)
    keys = [rng.u64() for _ in range(8)]
    k = 3
    while 1 << 2 * k < n:
        k += 1
    x = position
    while True:
        left, right = x >> k, x & (1 << k) - 1
        for key in keys:
            left, right = right, left ^ mix((right + key) & M64) >> 64 - k
        x = left << k | right
        if x < n:
            return x


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
    for seed, epoch, sample in [(0, 0, 0), (0, 0, 1), (42, 0, 7), (42, 1, 7), (M64, M32, 2**40)]:
        print("plan of 500x375", seed, epoch, sample, *train_crop(500, 375, seed, epoch, sample))
    for n, seed, epoch in [(10, 0, 0), (10, 42, 0), (10, 42, 1), (10, 43, 0), (2, 1, 0), (17, M64, M32)]:
        print("order", n, seed, epoch, [sample_at(p, n, seed, epoch) for p in range(n)])
    for n in (1_281_167, 2**40, 2**64 - 1):
        print("order", n, 42, 7, [sample_at(p, n, 42, 7) for p in (0, 1, 2, n - 1)])
