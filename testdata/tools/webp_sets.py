"""The sets of WebP files that `cargo xtask bench webp` measures.

    python3 testdata/tools/webp_sets.py PHOTOGRAPHS OUTPUT

writes below OUTPUT, which must lie outside the repository and is then named by TURBOLOADER_WEBP_SETS:

    mixed/  every photograph, at qualities 20, 40, 60, 80, 90 and 100 in turn
    q80/    200 photographs at quality 80, Pillow's default
    q90/    the same at quality 90

Needs Pillow with libwebp, whose defaults apply otherwise.
"""

import pathlib
import sys

from PIL import Image

QUALITIES = (20, 40, 60, 80, 90, 100)
COUNT = 200


def write(path, quality, folder):
    with Image.open(path) as image:
        image.convert("RGB").save(folder / f"{path.stem}.webp", quality=quality)


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    source, output = map(pathlib.Path, sys.argv[1:])
    photographs = sorted(path for path in source.iterdir() if path.suffix.lower() in (".jpg", ".jpeg"))
    folders = {name: output / name for name in ("mixed", "q80", "q90")}
    for folder in folders.values():
        folder.mkdir(parents=True, exist_ok=True)
    for i, path in enumerate(photographs):
        write(path, QUALITIES[i % len(QUALITIES)], folders["mixed"])
        if i < COUNT:
            write(path, 80, folders["q80"])
            write(path, 90, folders["q90"])


if __name__ == "__main__":
    main()
