"""The arrangement of windows of docs/pipeline/batches.md, written a second time from the text.

Prints the constants that the Rust tests compare with:

    python3 testdata/tools/reference_buckets.py
"""

from fractions import Fraction

from reference import M64, Rng


def known(size):
    return max(size[0], 1), max(size[1], 1)


DIVISIONS = [
    lambda size: Fraction(known(size)[0], known(size)[1]),
    lambda size: known(size)[0] * known(size)[1],
    lambda size: known(size)[0],
    lambda size: known(size)[1],
]


def padded(places, sizes):
    width = max(sizes[place][0] for place in places)
    height = max(sizes[place][1] for place in places)
    return width * height * len(places)


def divide(places, sizes, batch):
    count = len(places)
    if count <= 1:
        return places
    middle = count // batch // 2 * batch if count > batch else count // 2

    def halves(division):
        ordered = sorted(places, key=lambda place: (division(sizes[place]), place))
        return ordered[:middle], ordered[middle:]

    best = min((halves(division) for division in DIVISIONS),
               key=lambda pair: padded(pair[0], sizes) + padded(pair[1], sizes))
    return divide(best[0], sizes, batch) + divide(best[1], sizes, batch)


def turn(batch, bits):
    half = len(batch) // 2
    if half == 0:
        return batch
    front, back = batch[:half], batch[half:]
    if bits & 1:
        front, back = back, front
    return turn(front, bits >> 1) + turn(back, bits >> 1)


def arrange(sizes, batch, seed, epoch, window):
    places = divide(list(range(len(sizes))), sizes, batch)
    batches = [places[at:at + batch] for at in range(0, len(places), batch)]
    rng = Rng(seed, epoch, M64 - 1 - window, 1)
    for last in range(len(batches) - 1, 0, -1):
        other = rng.below(last + 1)
        batches[last], batches[other] = batches[other], batches[last]
    return [place for batch in batches for place in turn(batch, next(rng.words))]


def spread(count):
    """Sizes of some spread, and a few that are not known."""
    size = lambda i: (0, 0) if i % 19 == 7 else (100 + i * 37 % 151, 90 + i * 53 % 127)
    return [size(i) for i in range(count)]


if __name__ == "__main__":
    sizes = [(4, 3), (3, 4), (8, 6), (4, 3), (6, 8), (3, 4), (8, 6), (6, 8)]
    for epoch in (3, 4):
        print("8 places, batches of 2, seed 42, window 7, epoch", epoch, arrange(sizes, 2, 42, epoch, 7))
    print("60 places, batches of 12", arrange(spread(60), 12, 42, 3, 7))
    print("45 places, batches of 9", arrange(spread(45), 9, 42, 3, 7))
