#!/usr/bin/env python3
"""Makes the IDV files of `testdata/idv`, each with a JSON of what it holds.

usage: idv_files.py FOLDER

The hashes come from the values themselves and not from the file, so that a reader is compared with
something that shares nothing with it. Standard library only; the same bytes every time with the
same zlib.
"""

import hashlib
import json
import pathlib
import struct
import sys
import zlib

NONE, DEFLATE, ZLIB = 0, 1, 2
MISSING_TICKS = -(1 << 63)


def leb128(number):
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def string(text):
    raw = text.encode()
    return leb128(len(raw)) + raw


class Plain:
    """Values that `struct` can pack."""

    def __init__(self, name, form, kind=None):
        self.name, self.form, self.parameters, self.type = name, form, b"", kind or name

    def block(self, values):
        return b"".join(struct.pack("<" + self.form, value) for value in values)

    def canonical(self, value):
        return struct.pack("<" + self.form, value)

    zero = 0


class Key(Plain):
    """A category: Key2, or Key of older files."""

    def __init__(self, number, count, old=None):
        self.name, self.form = "Key2", number.form
        self.parameters = definition(number) + struct.pack("<Q", count)
        self.type = f"Key<{number.name}, 1-{count}>"
        if old is not None:
            contiguous, smallest, stated = old
            self.name = "Key"
            self.parameters = definition(number) + struct.pack("<BQi", contiguous, smallest, stated)
            self.type += f" min={smallest}" if smallest else ""


class Bits:
    """Booleans of one bit."""

    name, parameters, type, zero = "Boolean", b"", "Boolean", 0

    def block(self, values):
        out = bytearray((len(values) + 7) // 8)
        for i, value in enumerate(values):
            out[i // 8] |= value << (i % 8)
        return bytes(out)

    def canonical(self, value):
        return bytes([value])


class Pairs(Bits):
    """Booleans of two bits; 2 is missing."""

    name, type = "DvBool", "Boolean(NA-able)"

    def block(self, values):
        words = [0] * ((len(values) + 15) // 16)
        for i, value in enumerate(values):
            words[i // 16] |= value << (2 * (i % 16))
        return struct.pack(f"<{len(words)}I", *words)


class OffsetTime:
    """Minutes ahead of UTC, and ticks."""

    parameters, type, zero = b"", "DateTimeOffset", (0, 0)

    def __init__(self, name="DateTimeOffset"):
        self.name = name

    def block(self, values):
        offsets = b"".join(struct.pack("<h", offset) for offset, _ in values)
        return offsets + b"".join(struct.pack("<q", ticks) for _, ticks in values)

    def canonical(self, value):
        return struct.pack("<hq", *value)


class RowId:
    """Two numbers of 64 bits."""

    parameters, type, zero = b"", "DataViewRowId", (0, 0)

    def __init__(self, name="DataViewRowId"):
        self.name = name

    def block(self, values):
        return b"".join(struct.pack("<QQ", *value) for value in values)

    def canonical(self, value):
        return struct.pack("<QQ", *value)


class Text:
    """Text as a list of UTF-16 code units; None is missing."""

    name, parameters, type, zero = "TextSpan", b"", "Text", ()

    def block(self, values):
        ends, units = [], []
        for value in values:
            units += value or ()
            ends.append(len(units) | (1 << 31 if value is None else 0))
        raw = struct.pack(f"<{len(units)}H", *units).decode("utf-16-le")
        return struct.pack(f"<i{len(ends)}I", len(values), *ends) + string(raw)

    def canonical(self, value):
        if value is None:
            return b"\xff" * 4
        raw = struct.pack(f"<{len(value)}H", *value).decode("utf-16-le", "surrogatepass")
        raw = "".join("\ufffd" if 0xD800 <= ord(c) < 0xE000 else c for c in raw).encode()
        return struct.pack("<I", len(raw)) + raw


def units(text):
    """The UTF-16 code units of a text."""
    raw = text.encode("utf-16-le")
    return struct.unpack(f"<{len(raw) // 2}H", raw)


class Vector:
    """Vectors: `(length, None, items)`, or `(length, slots, items)` when sparse."""

    name = "VBuffer"

    def __init__(self, item, dimensions):
        self.item, self.dimensions = item, dimensions
        rank = struct.pack(f"<{len(dimensions) + 1}i", len(dimensions), *dimensions)
        self.parameters = definition(item) + rank
        extents = "x".join(map(str, dimensions or [0]))
        self.type = f"Vector<{item.type}, {extents}>"

    def block(self, values):
        lengths = [length for length, _, _ in values]
        common = lengths[0] if values and len(set(lengths)) == 1 else 0
        head = [len(values), common] + ([] if common else lengths)
        head += [-1 if slots is None else len(slots) for _, slots, _ in values]
        slots = [slot for _, slots, _ in values for slot in slots or ()]
        head += [len(slots)] + slots
        items = [item for _, _, items in values for item in items]
        return struct.pack(f"<{len(head)}i", *head) + self.item.block(items)

    def canonical(self, value):
        length, slots, items = value
        if slots is None:
            dense = list(items)
        else:
            dense = [self.item.zero] * length
            for slot, item in zip(slots, items):
                dense[slot] = item
        return struct.pack("<I", length) + b"".join(map(self.item.canonical, dense))


class Unknown:
    """A codec that no reader knows."""

    type = None

    def __init__(self, name, parameters):
        self.name, self.parameters = name, parameters

    def block(self, values):
        return bytes(values)


def definition(codec):
    return string(codec.name) + leb128(len(codec.parameters)) + codec.parameters


def compress(kind, raw):
    if kind not in (DEFLATE, ZLIB):
        return raw
    stream = zlib.compressobj(9, zlib.DEFLATED, -15 if kind == DEFLATE else 15)
    return stream.compress(raw) + stream.flush()


def no_missing(codec, value, scalar=True):
    """The value as ML.NET returns it."""
    if isinstance(codec, Vector):
        length, slots, items = value
        return length, slots, [no_missing(codec.item, item, False) for item in items]
    if isinstance(codec, Pairs):
        return value & 1
    if isinstance(codec, Text):
        return value or ()
    if isinstance(codec, OffsetTime):
        return tuple(0 if part in (MISSING_TICKS, -(1 << 15)) else part for part in value)
    spans = codec.type == "TimeSpan" and scalar
    if (spans or codec.type == "DateTime") and value == MISSING_TICKS:
        return 0
    return value


def sha256(codec, values):
    return hashlib.sha256(b"".join(map(codec.canonical, values))).hexdigest()


def make(path, columns, rows, version=6, newest=None, shuffled=False):
    """Writes a file of columns `(name, codec, compression, rows per block, values, metadata)`."""
    out = bytearray(256)
    tables = [[] for _ in columns]
    jobs = []
    for number, (_, codec, compression, per_block, values, _) in enumerate(columns):
        for start in range(0, rows, per_block):
            jobs.append((number, start // per_block, codec, compression, values[start:start + per_block]))
    if shuffled:
        jobs.sort(key=lambda job: hashlib.md5(repr(job[:2]).encode()).digest())
    for number, block, codec, compression, values in jobs:
        raw = codec.block(values)
        stored = compress(compression, raw)
        tables[number].append((block, len(out), len(stored), len(raw)))
        out += stored
    lookups = []
    for table in tables:
        lookups.append(len(out))
        for _, offset, stored, raw in sorted(table):
            out += struct.pack("<qii", offset, stored, raw)
    described = []
    toc = bytearray()
    for number, (name, codec, compression, per_block, values, metadata) in enumerate(columns):
        entries, listed = bytearray(), []
        for kind, meta_codec, meta_compression, value in metadata:
            stored = compress(meta_compression, meta_codec.block([value]))
            entries += string(kind) + definition(meta_codec)
            entries += struct.pack("<Bq", meta_compression, len(out)) + leb128(len(stored))
            listed.append({
                "kind": kind, "codec": meta_codec.name,
                "codec_params_hex": meta_codec.parameters.hex(), "type": meta_codec.type,
                "compression": meta_compression, "block_offset": len(out),
                "block_bytes": len(stored), "value_sha256": sha256(meta_codec, [value]),
            })
            out += stored
        metadata_offset = len(out) if metadata else 0
        if metadata:
            out += leb128(len(metadata)) + entries
        toc += string(name) + definition(codec) + bytes([compression]) + leb128(per_block)
        toc += struct.pack("<qq", lookups[number], metadata_offset)
        column = {
            "name": name, "codec": codec.name, "codec_params_hex": codec.parameters.hex(),
            "type": codec.type if compression <= ZLIB else None, "compression": compression,
            "rows_per_block": per_block, "lookup_offset": lookups[number],
            "metadata_toc_offset": metadata_offset, "blocks": len(tables[number]),
            "compressed_bytes": sum(entry[2] for entry in tables[number]),
            "uncompressed_bytes": sum(entry[3] for entry in tables[number]),
            "metadata": listed,
        }
        if column["type"] is not None:
            defaults = [no_missing(codec, value) for value in values]
            column["column_sha256"] = sha256(codec, values)
            column["column_sha256_na_as_default"] = sha256(codec, defaults)
        described.append(column)
    toc_offset = len(out)
    out += toc
    tail_offset = len(out)
    out += b"\0BVD\0LMC"
    versions = [0x0001000100010000 + (newest or version), 0x0001000100010000 + version]
    out[:52] = struct.pack("<8sQQqqqi", b"CML\0DVB\0", *versions, toc_offset, tail_offset, rows, len(columns))
    path.write_bytes(out)
    names = [".".join(str(v >> s & 0xFFFF) for s in (48, 32, 16, 0)) for v in versions]
    expected = {
        "version": names[0], "compatible_version": names[1], "toc_offset": toc_offset,
        "tail_offset": tail_offset, "row_count": rows, "columns": described,
    }
    pathlib.Path(f"{path}.json").write_text(json.dumps(expected, indent=1) + "\n")


NUMBERS = [
    Plain("SByte", "b"), Plain("Byte", "B"), Plain("Int16", "h"), Plain("UInt16", "H"),
    Plain("Int32", "i"), Plain("UInt32", "I"), Plain("Int64", "q"), Plain("UInt64", "Q"),
]
SINGLE, DOUBLE = Plain("Single", "f"), Plain("Double", "d")
TIME_SPAN, DATE_TIME = Plain("TimeSpan", "q"), Plain("DateTime", "q")
BYTE, UINT16, UINT32, UINT64 = NUMBERS[1], NUMBERS[3], NUMBERS[5], NUMBERS[7]
INT32 = NUMBERS[4]
NOON = 638_000_000_000_000_000


def numbers(folder):
    """Every number, uncompressed and at aligned places first, its extreme values among them."""
    rows = 21
    columns = [
        ("double", DOUBLE, NONE, rows, [float("inf"), float("nan"), -0.0] + [i / 7 for i in range(18)], []),
        ("single", SINGLE, NONE, rows, [float("-inf"), float("nan")] + [i * 0.5 for i in range(19)], []),
    ]
    for codec in NUMBERS:
        bits = struct.calcsize(codec.form) * 8
        low, high = (0, 2**bits - 1) if codec.form.isupper() else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
        values = [low, high] + [(i * 0x9E3779B97F4A7C15 >> 7) % (high - low + 1) + low for i in range(19)]
        columns.append((codec.name, codec, NONE, rows, values, []))
    make(folder / "numbers.idv", columns, rows)


def blocks(folder):
    """Several blocks in any order, a last one that is short, other rows per block by column."""
    rows = 100
    columns = [
        ("ids", INT32, DEFLATE, 16, [i * i for i in range(rows)], []),
        ("ids", UINT16, NONE, 7, [i * 3 for i in range(rows)], []),
        ("flags", Bits(), DEFLATE, 13, [i % 3 % 2 for i in range(rows)], []),
        ("text", Text(), DEFLATE, 9, [units(("ab", "", "\u00e9\u00e8", "\u4e16\u754c", "\U0001f600")[i % 5]) for i in range(rows)], []),
        ("old", INT32, ZLIB, 100, [-i for i in range(rows)], []),
        ("sparse", Vector(SINGLE, [4]), DEFLATE, 30, [
            (4, None, [i, i + 1, i + 2, i + 3]) if i % 2 else (4, [i % 4], [i / 2]) for i in range(rows)
        ], []),
    ]
    make(folder / "blocks.idv", columns, rows, shuffled=True, newest=9)


def types(folder):
    """Every codec of version 1.1.1.6, with metadata."""
    rows = 12
    names = Vector(Text(), [3])
    slots = Vector(Text(), [2, 3])
    spans = [0, 1, -1, 864_000_000_000, MISSING_TICKS] + list(range(7))
    columns = [
        ("boolean", Bits(), NONE, rows, [i & 1 for i in range(rows)], [("IsNormalized", Bits(), NONE, 1)]),
        ("span", TIME_SPAN, DEFLATE, rows, spans, []),
        ("time", DATE_TIME, DEFLATE, rows, [NOON + i for i in range(rows)], []),
        ("offset", OffsetTime(), DEFLATE, rows, [(i * 60 - 300, NOON + i) for i in range(rows)], []),
        ("id", RowId(), NONE, rows, [(i, 2**64 - 1 - i) for i in range(rows)], []),
        ("key", Key(UINT32, 3), NONE, rows, [i % 4 for i in range(rows)], [
            ("KeyValues", names, DEFLATE, (3, None, [units("red"), units("green"), units("blue")])),
        ]),
        ("wide key", Key(UINT64, 2**64 - 1), NONE, rows, [2**64 - 1 - i for i in range(rows)], []),
        ("matrix", Vector(SINGLE, [2, 3]), DEFLATE, rows, [(6, None, [i + j / 8 for j in range(6)]) for i in range(rows)], [
            ("SlotNames", slots, NONE, (6, [1, 4], [units("b"), units("e")])),
            ("Note", Text(), NONE, units("\u00fc" * 70)),
        ]),
        ("any", Vector(Bits(), [0]), DEFLATE, rows, [(i % 5, None, [1] * (i % 5)) for i in range(rows)], []),
        ("words", Vector(Text(), [0]), DEFLATE, rows, [
            (3, [2], [units("\U0001d11e")]) if i % 3 == 0 else (i % 2, None, [units(f"w{i}")] * (i % 2)) for i in range(rows)
        ], []),
        ("keys", Vector(Key(BYTE, 5), [3]), NONE, rows, [(3, [], []) if i == 4 else (3, None, [i % 6, 5, 0]) for i in range(rows)], []),
        ("times", Vector(OffsetTime(), [2]), DEFLATE, rows, [(2, [1], [(60, NOON)]) for i in range(rows)], []),
        ("ids", Vector(RowId(), [2]), DEFLATE, rows, [(2, [0], [(i, 1)]) for i in range(rows)], []),
        ("spans", Vector(TIME_SPAN, [0]), DEFLATE, rows, [(2, None, [MISSING_TICKS, i]) for i in range(rows)], []),
    ]
    make(folder / "types.idv", columns, rows)


def legacy(folder):
    """Names and codecs of versions before 1.1.1.6, missing values, and columns that are dead."""
    rows = 40
    halves = units("\U0001d11e")
    text = [None if i % 7 == 3 else units(f"t{i}") for i in range(rows)]
    text[10:12] = [units("a") + halves[:1], halves[1:] + units("b")]
    columns = [
        ("text", Text(), NONE, 24, text, []),
        ("flag", Pairs(), DEFLATE, 24, [i % 3 for i in range(rows)], []),
        ("flags", Vector(Pairs(), [3]), DEFLATE, 24, [(3, [1], [2]) for i in range(rows)], []),
        ("span", Plain("DvTimeSpan", "q", "TimeSpan"), NONE, 24, [MISSING_TICKS if i % 5 == 0 else i for i in range(rows)], []),
        ("time", Plain("DvDateTime", "q", "DateTime"), NONE, 24, [MISSING_TICKS if i % 5 == 1 else i for i in range(rows)], []),
        ("offset", OffsetTime("DvDateTimeZone"), NONE, 24, [(0, MISSING_TICKS) if i % 5 == 2 else (i, i) for i in range(rows)], []),
        ("key", Key(UINT32, 5, old=(1, 2, 5)), NONE, 24, [i % 6 for i in range(rows)], []),
        ("open key", Key(BYTE, 255, old=(0, 0, 0)), NONE, 24, [i for i in range(rows)], []),
        ("id", RowId("UInt128"), NONE, 24, [(i, 0) for i in range(rows)], []),
        ("row id", RowId("RowId"), NONE, 24, [(i, 0) for i in range(rows)], []),
        ("any", Vector(DOUBLE, []), NONE, 24, [(i % 3, None, [0.5] * (i % 3)) for i in range(rows)], []),
        ("dead", Unknown("Complex", b"\1\2\3"), NONE, 24, list(range(rows)), []),
        ("dead item", Vector(Unknown("Complex", b""), [2]), NONE, 24, [(2, None, [0, 0]) for i in range(rows)], []),
        ("dead blocks", INT32, 9, 24, list(range(rows)), []),
    ]
    columns[12][1].type = None
    make(folder / "legacy.idv", columns, rows, version=5)
    make(folder / "no_rows.idv", [(n, c, z, 1, [], m) for n, c, z, _, _, m in columns], 0, version=4)


if __name__ == "__main__":
    target = pathlib.Path(sys.argv[1])
    for maker in (numbers, blocks, types, legacy):
        maker(target)
    make(target / "no_columns.idv", [], 6)
