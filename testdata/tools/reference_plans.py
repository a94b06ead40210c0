"""The requests of crates/tl-pipeline/src/reader/plan.rs for three small orders, written a second time
from its comments, without its indexes: every step looks at all rows.

Writes the files that the Rust tests compare with:

    python3 testdata/tools/reference_plans.py
"""

import pathlib

from reference import keys_of, shuffled

GAP = 16 << 10
SAMPLES, OBJECTS, SEED = 64, 2, 2
FIRST_ROWS, BUDGET = 4, 480_000
ORDERS = {"none": "none", "block": "block:4x3", "full": "full"}


def layout():
    """Object, first byte and end of every sample. Gaps before every 16th are larger than GAP."""
    places = []
    for sample in range(SAMPLES):
        number = sample % (SAMPLES // OBJECTS)
        start = (512 if number == 0 else places[-1][2]) + (GAP + 1 if number % 16 == 11 else 512)
        places.append((sample // (SAMPLES // OBJECTS), start, start + 10_000 + sample * 7 % 16 * 1_000))
    return places


def requests(places, rows):
    """Lists of rows, in the order of their bytes. Every 13th row is read by others."""
    own = {row: places[sample] for row, sample in enumerate(rows) if row % 13 != 5}
    size = {row: end - start for row, (_, start, end) in own.items()}
    near = BUDGET // 4
    far = BUDGET - near
    requested, known, first = set(), 0, 0
    while True:
        # Rows are looked at as far as twice the bytes for later rows, the first ones by themselves.
        while known < len(rows):
            ahead = sum(size.get(row, 0) for row in range(first, known))
            if known >= FIRST_ROWS if first < FIRST_ROWS else ahead >= 2 * far:
                break
            known += 1
        open_rows = [row for row in own if row < known and row not in requested]
        if not open_rows:
            if known == len(rows):
                return
            first = known
            continue
        first = min(open_rows)
        is_first = first < FIRST_ROWS
        largest = min(1 << 20 if is_first else 8 << 20, BUDGET // 4)
        request = [first]
        requested.add(first)

        def may_join(row, start, end):
            if end - start > largest:
                return False
            if is_first:
                return row < FIRST_ROWS
            before = sum(size.get(other, 0) for other in range(first, row))
            held = sum(size[other] for other in requested if other >= first)
            return before <= near or held + size[row] <= far

        def neighbour(is_after):
            """The nearest row on one side that is not requested, if it may join."""
            _, start, _ = own[request[0]]
            _, _, end = own[request[-1]]
            gaps = {}
            for row in open_rows:
                other, place, other_end = own[row]
                gap = place - end if is_after else start - other_end
                if row not in requested and other == own[first][0] and 0 <= gap <= GAP:
                    gaps[row] = gap
            if not gaps:
                return None
            row = min(gaps, key=gaps.get)
            _, place, other_end = own[row]
            return row if may_join(row, min(start, place), max(end, other_end)) else None

        for is_after in (True, False):
            while (row := neighbour(is_after)) is not None:
                requested.add(row)
                request.insert(len(request) if is_after else 0, row)
        yield request


def main():
    folder = pathlib.Path(__file__).parents[1] / "plans"
    places = layout()
    for name, shuffle in ORDERS.items():
        rows = shuffled(SAMPLES, shuffle, keys_of(SEED, 0, 0))
        lines = []
        for request in requests(places, rows):
            number, start, _ = places[rows[request[0]]]
            _, _, end = places[rows[request[-1]]]
            pairs = " ".join(f"{row}:{rows[row]}" for row in request)
            lines.append(f"object {number} bytes {start}..{end} row:sample {pairs}\n")
        (folder / f"{name}.txt").write_text("".join(lines))


main()
