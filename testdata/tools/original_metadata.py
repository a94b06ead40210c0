#!/usr/bin/env python3
"""Checks that metadata of the original's writer (`pip install turboloader==2.39.0 numpy`) survives our commands.

usage: original_metadata.py COMMAND...

Run it with the Python that has the wheel; COMMAND is what starts `tl`, such as `target/release/tl` or `python -m
turboloader`. Writes a file with blocks of JSON, protocol buffers and MessagePack by the original's `add_metadata`, sends
it through convert, merge, split and repair, and has the original's reader return the same text and type for every sample
as before. Exit status 0: all equal.
"""
import pathlib
import subprocess
import sys
import tempfile

import turboloader

SAMPLES = 7
KINDS = turboloader.MetadataType


def write(path):
    writer = turboloader.TblWriterV2(str(path), enable_compression=True)
    for number in range(SAMPLES):
        writer.add_sample(bytes([number]) * 100, turboloader.SampleFormat.JPEG, 4, 3)
    for number in reversed(range(SAMPLES - 1)):
        if number % 3 == 0:
            writer.add_metadata(number, f'{{"label": {number}, "extra": {{"camera": "x"}} }}')
        elif number % 3 == 1:
            writer.add_metadata(number, f"\x08\x01{number}", KINDS.PROTOBUF)
        else:
            writer.add_metadata(number, f"\x01a{number}", KINDS.MSGPACK)
        writer.add_metadata(number, f'{{"second": {number}}}')
    writer.finalize()


def read(path):
    reader = turboloader.TblReaderV2(str(path), verify_checksums=True)
    return [(bytes(reader.read_sample(i)), reader.read_metadata(i)) for i in range(reader.num_samples())]


def main():
    command = sys.argv[1:]
    if not command:
        sys.exit(__doc__)
    with tempfile.TemporaryDirectory() as folder:
        at = pathlib.Path(folder).joinpath

        def tl(*arguments):
            subprocess.run([*command, *map(str, arguments), "--no-sync"], check=True, stdout=subprocess.DEVNULL)

        write(at("original.tbl"))
        expected = read(at("original.tbl"))
        tl("convert", at("original.tbl"), "-o", at("converted.tbl"), "-q")
        tl("convert", at("converted.tbl"), "-o", at("lz4.tbl"), "--lz4", "-q")
        tl("split", at("original.tbl"), "-o", at("part-{}.tbl"), "--shards", 3)
        parts = sorted(pathlib.Path(folder).glob("part-*.tbl"))
        tl("merge", *parts, "-o", at("merged.tbl"))
        tl("repair", at("merged.tbl"), "-o", at("repaired.tbl"))
        different = [
            name
            for name in ["converted.tbl", "lz4.tbl", "merged.tbl", "repaired.tbl"]
            if read(at(name)) != expected
        ]
        if [sample for part in parts for sample in read(part)] != expected:
            different.append("parts")
        for name in different:
            print(f"{name}: other samples or metadata than the original's file")
        print(f"{SAMPLES} samples, {len(different)} of 5 files differ")
        sys.exit(bool(different))


main()
