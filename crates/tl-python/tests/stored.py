"""Tables for tests, written byte by byte as docs/idv.md and docs/tbf.md say."""

from __future__ import annotations

import pathlib
import runpy
import struct

import numpy as np

TESTDATA = pathlib.Path(__file__).parents[3] / "testdata"

# The writer that the files of testdata/idv are made with, and its codecs.
IDV = runpy.run_path(str(TESTDATA / "tools" / "idv_files.py"))


def crc32c(data: bytes) -> int:
    """Bit by bit: polynomial 1EDC6F41, reflected."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


CODES = {"float32": 0, "float16": 1, "bfloat16": 2, "int8": 3}


def stored_vector(dtype: str, vector: np.ndarray) -> bytes:
    if dtype == "bfloat16":
        return (vector.astype("<f4").view("<u4") >> 16).astype("<u2").tobytes()
    if dtype == "int8":
        return struct.pack("<ff", 0.5, 1.0) + vector.astype("i1").tobytes()
    return vector.astype({"float32": "<f4", "float16": "<f2"}[dtype]).tobytes()


def write_segment(
    path: pathlib.Path,
    vectors: np.ndarray,
    edges: list[list[tuple[int, int, float]]],
    dtype: str = "float32",
) -> pathlib.Path:
    """A segment of the published dialect, without footer; node i has timestamp 1000 - 3 * i."""
    count, dim = vectors.shape
    out = bytearray(128)

    def region(data: bytes) -> int:
        out.extend(bytes(-len(out) % 64))
        start = len(out)
        out.extend(data)
        return start

    rows = range(count)
    nodes = region(b"".join(bytes([i % 256]) * 16 for i in rows))
    region(struct.pack(f"<{count}Q", *(1000 - 3 * i for i in rows)))
    region(struct.pack(f"<{count}Q", *(7 * i for i in rows)))
    region(struct.pack(f"<{count}f", *(i / 8 for i in rows)))
    region(bytes(i % 4 for i in rows))
    stored = [stored_vector(dtype, vector) for vector in vectors]
    embeddings = region(b"".join(one + bytes(-len(one) % 64) for one in stored))
    pointers = np.cumsum([0, *map(len, edges)])
    packed = b"".join(struct.pack("<IBf3x", *edge) for of_node in edges for edge in of_node)
    edge_region = region(pointers.astype("<u8").tobytes() + packed)
    out[:4] = b"TALB"
    struct.pack_into(
        "<HHQQQQIBBH", out, 4, 1, 0, 1, 2, count, int(pointers[-1]), dim, CODES[dtype], 0, 2
    )
    struct.pack_into("<7Q", out, 48, nodes, embeddings, edge_region, 0, 0, 0, 0)
    struct.pack_into("<I", out, 104, crc32c(bytes(out[:104])))
    path.write_bytes(out)
    return path


def ring(count: int) -> list[list[tuple[int, int, float]]]:
    """Each node has edges to the next two; weights tell which."""
    return [
        [((i + 1) % count, i % 5, i + 0.25), ((i + 2) % count, 0, i + 0.5)] for i in range(count)
    ]


def write_table(path: pathlib.Path, rows: int = 100) -> pathlib.Path:
    """An IDV file of numbers of every type, a key, texts, and vectors dense and sparse."""
    none, deflate = IDV["NONE"], IDV["DEFLATE"]
    values = list(range(rows))
    columns = [
        (codec.name, codec, none, 16, [value % 100 for value in values], [])
        for codec in IDV["NUMBERS"]
    ]
    columns += [
        ("Single", IDV["SINGLE"], none, rows, [value / 4 for value in values], []),
        ("Double", IDV["DOUBLE"], deflate, 16, [value / 8 for value in values], []),
        ("flag", IDV["Bits"](), none, rows, [value % 2 for value in values], []),
        ("maybe", IDV["Pairs"](), none, rows, [value % 3 for value in values], []),
        (
            "Label",
            IDV["Key"](IDV["UINT32"], 3),
            none,
            rows,
            [value % 4 for value in values],
            [
                (
                    "KeyValues",
                    IDV["Vector"](IDV["Text"](), [3]),
                    none,
                    (3, None, names("cat", "dog", "emu")),
                )
            ],
        ),
        ("text", IDV["Text"](), deflate, 16, [texts(value) for value in values], []),
        (
            "dense",
            IDV["Vector"](IDV["SINGLE"], [2, 3]),
            none,
            rows,
            [(6, None, [value + slot / 8 for slot in range(6)]) for value in values],
            [("SlotNames", IDV["Vector"](IDV["Text"](), [6]), none, (6, None, names(*"abcdef")))],
        ),
        (
            "sparse",
            IDV["Vector"](IDV["SINGLE"], [50]),
            deflate,
            16,
            [(50, [value % 50], [float(value + 1)]) for value in values],
            [],
        ),
        ("unknown", IDV["Unknown"]("Nobody", b""), none, rows, [0] * rows, []),
    ]
    IDV["make"](path, columns, rows)
    return path


def names(*given: str) -> list[tuple[int, ...]]:
    return [IDV["units"](name) for name in given]


def texts(value: int) -> tuple[int, ...] | None:
    return None if value % 7 == 3 else IDV["units"](f"text {value}")
