"""The sets of JPEG files that `cargo xtask bench jpeg` measures beside a folder of photographs.

    python3 testdata/tools/jpeg_sets.py PHOTOGRAPHS OUTPUT

writes below OUTPUT, which must lie outside the repository and is then named by TURBOLOADER_JPEG_SETS:

    q90_420/      every photograph, encoded again by Pillow at quality 90 with 4:2:0
    progressive/  every photograph, transcoded without loss by `jpegtran -progressive`
    large/        40 pictures of 2048 px: two by two photographs, each doubled, at quality 90 with 4:2:0

A single photograph enlarged to 2048 px would have next to no detail per pixel; of a mosaic of doubled ones each
pixel takes about as many bits as in a camera's picture of that size.
Needs Pillow and jpegtran (Debian: libjpeg-turbo-progs).
"""

import io
import pathlib
import subprocess
import sys

from PIL import Image, ImageOps

LARGE = (2048, 1536)
LARGE_COUNT = 40
ENCODING = {"format": "JPEG", "quality": 90, "subsampling": "4:2:0"}


def encode(image):
    file = io.BytesIO()
    image.save(file, **ENCODING)
    return file.getvalue()


def progressive(path):
    command = ["jpegtran", "-copy", "none", "-progressive", str(path)]
    return subprocess.run(command, check=True, capture_output=True).stdout


def mosaic(photographs):
    tile = (LARGE[0] // 2, LARGE[1] // 2)
    picture = Image.new("RGB", LARGE)
    for i, path in enumerate(photographs):
        with Image.open(path) as image:
            fitted = ImageOps.fit(image.convert("RGB"), tile, Image.Resampling.LANCZOS)
        picture.paste(fitted, (i % 2 * tile[0], i // 2 * tile[1]))
    return picture


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    source, output = map(pathlib.Path, sys.argv[1:])
    photographs = sorted(path for path in source.iterdir() if path.suffix.lower() in (".jpg", ".jpeg"))
    if len(photographs) < 4:
        sys.exit(f"{source} holds {len(photographs)} photographs, at least 4 are needed")
    folders = {name: output / name for name in ("q90_420", "progressive", "large")}
    for folder in folders.values():
        folder.mkdir(parents=True, exist_ok=True)
    for path in photographs:
        with Image.open(path) as image:
            (folders["q90_420"] / path.name).write_bytes(encode(image.convert("RGB")))
        (folders["progressive"] / path.name).write_bytes(progressive(path))
    for i in range(min(LARGE_COUNT, len(photographs) // 4)):
        picture = mosaic(photographs[4 * i : 4 * i + 4])
        (folders["large"] / f"{i:02}.jpg").write_bytes(encode(picture))


if __name__ == "__main__":
    main()
