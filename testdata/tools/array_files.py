#!/usr/bin/env python3
"""Makes the files of `testdata/arrays`: `.npz` archives of NumPy and Zarr 3 arrays of zarr-python.

usage: array_files.py FOLDER

Every array has its numbers as a `.npy` file too, which `numpy.save` writes: `photo.npy` for the
arrays in folders `photo_*.zarr`, `TYPE.npy` for member `TYPE` of the archives and of `types.zarr`.
"""

import json
import pathlib
import shutil
import sys

import numpy as np
import zarr
from zarr.codecs import (
    BloscCodec,
    BytesCodec,
    Crc32cCodec,
    GzipCodec,
    ShardingCodec,
    TransposeCodec,
    ZstdCodec,
)

ROWS = 11
TYPES = ["bool", "uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64"]
FLOATS = ["float16", "float32", "float64"]


def numbers(name):
    """Return numbers of a type, the extremes among them."""
    rng = np.random.default_rng(TYPES.index(name) if name in TYPES else 9 + FLOATS.index(name))
    if name == "bool":
        return rng.integers(0, 2, (ROWS, 3)).astype(bool)
    if name in FLOATS:
        array = rng.normal(size=(ROWS, 3)).astype(name)
        array[0] = [np.nan, np.inf, -np.inf]
        return array
    info = np.iinfo(name)
    array = rng.integers(info.min, info.max, (ROWS, 3), dtype=name, endpoint=True)
    array[0, :2] = info.min, info.max
    return array


def write(folder, array, codecs, chunks=(4, 3, 2), **options):
    """Write an array with exactly these codecs."""
    shutil.rmtree(folder, ignore_errors=True)
    *first, serializer = [codec for codec in codecs if not is_compressor(codec)]
    stored = zarr.create_array(
        folder,
        shape=array.shape,
        dtype=array.dtype,
        chunks=chunks,
        filters=first or None,
        serializer=serializer,
        compressors=[codec for codec in codecs if is_compressor(codec)] or None,
        **options,
    )
    stored[:] = array
    return stored


def is_compressor(codec):
    """Return whether a codec makes bytes of bytes."""
    return isinstance(codec, (GzipCodec, ZstdCodec, BloscCodec, Crc32cCodec))


def group(folder, arrays):
    """Write a group of arrays with the codecs that zarr chooses, and of an empty group."""
    shutil.rmtree(folder, ignore_errors=True)
    group = zarr.open_group(folder, mode="w")
    for name, array in arrays.items():
        stored = group.create_array(name, shape=array.shape, dtype=array.dtype, chunks=(6, 3))
        stored[:] = array
    group.create_group("more")


def photos(folder, array):
    """Write one array in the forms of storage that are read, and those that are refused."""
    little = BytesCodec(endian="little")
    dots = {"name": "default", "separator": "."}
    v2 = {"name": "v2", "separator": "."}
    slashes = {"name": "v2", "separator": "/"}

    def path(name):
        return folder / f"photo_{name}.zarr"

    write(path("plain"), array, [little])
    write(path("rows"), array, [little], chunks=(4, 5, 3), chunk_key_encoding=dots)
    write(path("big"), array, [BytesCodec(endian="big")], chunk_key_encoding=v2)
    write(path("zstd"), array, [little, ZstdCodec(level=3)], chunk_key_encoding=slashes)
    write(path("gzip"), array, [little, GzipCodec(level=5), Crc32cCodec()], chunks=(3, 5, 3))
    write(path("one"), array, [little, ZstdCodec(checksum=True)], chunks=(16, 8, 4))
    for name, place in [("shards", "end"), ("shards_first", "start")]:
        sharding = ShardingCodec(
            chunk_shape=(2, 3, 2), codecs=[little, ZstdCodec()], index_location=place
        )
        write(path(name), array, [sharding], chunks=(4, 6, 4))
    plain = ShardingCodec(chunk_shape=(2, 5, 3), codecs=[little, Crc32cCodec()])
    write(path("shards_crc"), array, [plain], chunks=(6, 5, 3))
    write(path("blosc"), array, [little, BloscCodec(cname="lz4")], chunks=(11, 5, 3))
    write(path("transposed"), array, [TransposeCodec(order=(2, 1, 0)), little], chunks=(11, 5, 3))


def missing(folder):
    """Write arrays of which most chunks do not exist."""
    for name, fill in [("nan", np.nan), ("inf", -np.inf), ("number", 0.1)]:
        array = np.full((ROWS, 2), fill, "float32")
        path = folder / f"missing_{name}.zarr"
        shutil.rmtree(path, ignore_errors=True)
        stored = zarr.create_array(
            path, shape=array.shape, dtype=array.dtype, chunks=(3, 2), fill_value=fill
        )
        stored[4] = array[4] = [1.5, 2.5]
        np.save(folder / f"missing_{name}.npy", array)


def main():
    """Write everything."""
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(exist_ok=True)
    arrays = {name: numbers(name) for name in [*TYPES, *FLOATS]}
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", array)
    np.savez(folder / "stored.npz", **arrays, version=np.int64(3), words=np.array(["a"] * ROWS))
    np.savez_compressed(folder / "deflated.npz", **arrays)
    big = {name: array.astype(array.dtype.newbyteorder(">")) for name, array in arrays.items()}
    np.savez(folder / "big_endian.npz", **big)
    group(folder / "types.zarr", arrays)
    group(folder / "listed.zarr", {name: arrays[name] for name in ["int16", "float32"]})
    zarr.consolidate_metadata(folder / "listed.zarr")
    photo = np.random.default_rng(50).integers(-999, 999, (ROWS, 5, 3), dtype="int16")
    np.save(folder / "photo.npy", photo)
    photos(folder, photo)
    missing(folder)
    versions = {"numpy": np.__version__, "zarr": zarr.__version__}
    (folder / "versions.json").write_text(json.dumps(versions) + "\n")


if __name__ == "__main__":
    main()
