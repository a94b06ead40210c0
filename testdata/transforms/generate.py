"""Writes what torchvision and Pillow make of small images, for the tests of tl-transform.

`cargo xtask goldens` runs it with the packages of `requirements.txt`. `cases.jsonl` has one case a
line: the row of the tables in `docs/benchmarks.md`, mode, image, steps with all parameters, size of the
result and the CRC-32 of its pixels.
"""

import json
import pathlib
import random
import sys
import zlib

FOLDER = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(FOLDER.parent / "tools"))

import policies
import transform_steps
from transform_cases import ROWS, Draws, noise, reference, smooth

IMAGES = {
    "noise 13x11": noise(1, 13, 11),
    "noise 1x9": noise(2, 1, 9),
    "noise 9x2": noise(3, 9, 2),
    "smooth 21x14": smooth(2, 21, 14),
    "black and white 12x10": noise(4, 12, 10, black_and_white=True),
}
# Results above this are left out: enlarging and borders would outweigh everything else.
MOST_SAMPLES = 3000


def cases():
    for row in ROWS:
        for mode in row.modes:
            for name, pixels in IMAGES.items():
                case = make(row, mode, name, pixels)
                if case is not None:
                    yield case


def make(row, mode, name, pixels):
    """A case; None where torchvision refuses or tl-transform draws by itself."""
    height, width, _ = pixels.shape
    for attempt in range(20):
        operations = row.case(Draws(random.Random(f"{row.name} {name} {attempt}")), width, height)
        try:
            steps = transform_steps.steps(operations, width, height, mode)
        except transform_steps.Missing:
            return None
        if transform_steps.needs_server(operations) or operations[-1][0] == "normalize":
            return None
        result = reference(operations, pixels, mode)
        if not isinstance(result, str) and result.size <= MOST_SAMPLES:
            break
    else:
        return None
    header = {"row": row.name, "mode": mode, "image": name, "steps": steps}
    header["size"] = [result.shape[1], result.shape[0]]
    header["crc32"] = zlib.crc32(result.tobytes())
    return header


def main():
    lines = [json.dumps(case, separators=(",", ":")) for case in cases()]
    (FOLDER / "cases.jsonl").write_text("\n".join(lines) + "\n")
    policies.write(FOLDER)
    print(f"{len(lines)} cases")


if __name__ == "__main__":
    main()
