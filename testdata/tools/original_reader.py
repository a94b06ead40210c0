#!/usr/bin/env python3
"""Checks that the original's reader (`pip install turboloader==2.39.0 numpy pillow`) opens our TBL version 2 files.

usage: original_reader.py --tl PATH_TO_TL FILE.tbl...

Run it with the Python that has the wheel. For every sample the original's reader must return the bytes whose SHA-256
`tl ls --json --hash` prints, with the same dimensions, sizes and format code, and its metadata must be the first block
that `tl cat --metadata` prints. Files of equal raw images must also open as one array. Exit status 0: all equal.
"""
import argparse
import hashlib
import json
import subprocess
import sys

import turboloader
from turboloader import tbl

FORMAT_NAMES = ["UNKNOWN", "JPEG", "PNG", "WEBP", "BMP", "TIFF", "VIDEO_MP4", "VIDEO_AVI", "RAW_U8"]


def format_name(code):
    return FORMAT_NAMES[code] if code < len(FORMAT_NAMES) else f"FORMAT_{code}"


def ours(tl, path):
    command = [tl, "ls", path, "--json", "--hash"]
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    return [json.loads(line) for line in lines]


def check(tl, path):
    """Yields one line for each difference; returns what was compared."""
    expected = ours(tl, path)
    reader = turboloader.TblReaderV2(path, verify_checksums=True)
    if reader.num_samples() != len(expected):
        yield f"{reader.num_samples()} samples, tl lists {len(expected)}"
        return
    for index, sample in enumerate(expected):
        data = bytes(reader.read_sample(index))
        info = reader.get_sample_info(index)
        found = {
            "sha256": hashlib.sha256(data).hexdigest(),
            "offset": info["offset"],
            "stored_bytes": info["size"],
            "bytes": info["uncompressed_size"],
            "width": info["width"],
            "height": info["height"],
            "format": format_name(int(info["format"])),
        }
        for name, value in found.items():
            if sample[name] != value:
                yield f"sample {index}: {name} is {value!r}, tl says {sample[name]!r}"
        blocks = [tl, "cat", path, str(index), "--metadata"]
        if subprocess.run(blocks, check=True, capture_output=True).stdout:
            text, kind = reader.read_metadata(index)
            first = subprocess.run([*blocks, "--block", "0"], check=True, capture_output=True).stdout
            if text.encode() != first:
                yield f"sample {index}: metadata is {text} ({kind}), tl says {first!r}"
    if expected and all(sample["format"] == "RAW_U8" for sample in expected):
        view = tbl.open_raw_view(path)
        view = view[0] if isinstance(view, tuple) else view
        first = expected[0]
        shape = (len(expected), first["height"], first["width"], 3)
        if view.shape != shape:
            yield f"raw view has shape {view.shape}, expected {shape}"
        for index, sample in enumerate(expected):
            if hashlib.sha256(view[index].tobytes()).hexdigest() != sample["sha256"]:
                yield f"raw view: image {index} differs"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tl", default="tl", help="the command line to compare with")
    parser.add_argument("files", nargs="+", metavar="FILE.tbl")
    arguments = parser.parse_args()
    failed = False
    for path in arguments.files:
        differences = list(check(arguments.tl, path))
        failed |= bool(differences)
        count = turboloader.TblReaderV2(path).num_samples()
        print(f"{path}: {count} samples {'DIFFER' if differences else 'equal'}")
        for difference in differences:
            print(f"  {difference}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
