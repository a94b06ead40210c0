"""Write Parquet files of numbers, and what their writers say is in them.

`python testdata/tools/parquet_tables.py testdata/parquet/tables` writes all of them again, and those
that are named after the folder alone. Spark needs the package pyspark and a Java runtime.
"""

import datetime
import decimal
import json
import pathlib
import random
import sys

import numpy
import pyarrow
import pyarrow.parquet

ROWS = 60


def values(seed, make, nulls=False):
    """Return a value for each row, and None for a fifth of them."""
    draw = random.Random(seed)
    return [None if nulls and draw.random() < 0.2 else make(draw) for _ in range(ROWS)]


def integers(bits, signed):
    low = -(2 ** (bits - 1)) if signed else 0
    return lambda draw: low + draw.randrange(2**bits)


def flat(nulls):
    """Return columns of single numbers."""
    columns = {}
    for bits in (8, 16, 32, 64):
        for signed in (True, False):
            if nulls and bits == 64 and not signed:
                continue
            name = f"{'i' if signed else 'u'}{bits}"
            kind = getattr(pyarrow, name.replace("i", "int").replace("u", "uint"))()
            least = 1 if nulls and signed else 0
            found = values(bits + signed, integers(bits, signed), nulls)
            # The least number stands for nulls.
            columns[name] = pyarrow.array(
                [
                    value if value is None else max(value, least - 2 ** (bits - 1))
                    for value in found
                ],
                kind,
            )
    halves = [
        None if v is None else numpy.float16(v)
        for v in values(1, random.Random.random, nulls)
    ]
    columns["f16"] = pyarrow.array(halves, pyarrow.float16())
    columns["f32"] = pyarrow.array(
        values(2, random.Random.random, nulls), pyarrow.float32()
    )
    columns["f64"] = pyarrow.array(
        values(3, random.Random.random, nulls), pyarrow.float64()
    )
    columns["bool"] = pyarrow.array(values(4, lambda draw: draw.random() < 0.5, nulls))
    day = datetime.date(2026, 1, 1)
    columns["date"] = pyarrow.array(
        values(5, lambda draw: day + datetime.timedelta(draw.randrange(999)), nulls)
    )
    columns["time"] = pyarrow.array(
        values(6, lambda draw: draw.randrange(10**9), nulls), pyarrow.timestamp("us")
    )
    cents = values(
        7,
        lambda draw: decimal.Decimal(draw.randrange(-(10**6), 10**6)).scaleb(-2),
        nulls,
    )
    columns["small_decimal"] = pyarrow.array(cents, pyarrow.decimal128(9, 2))
    large = values(
        8, lambda draw: decimal.Decimal(draw.randrange(10**30)).scaleb(-7), nulls
    )
    columns["large_decimal"] = pyarrow.array(large, pyarrow.decimal128(38, 7))
    return columns


def others():
    """Return columns of bytes."""
    return {
        "text": pyarrow.array(values(9, lambda draw: "ü" * draw.randrange(4), True)),
        "raw": pyarrow.array(values(10, lambda draw: draw.randbytes(3), True)),
        "list": pyarrow.array(
            values(11, lambda draw: list(range(draw.randrange(4))), True)
        ),
    }


def lists():
    """Return columns of lists of one length."""
    vector = values(12, lambda draw: [draw.random() for _ in range(3)])
    holes = values(13, lambda draw: [draw.randrange(9) or None for _ in range(2)], True)
    return {
        "vector": pyarrow.array(vector, pyarrow.list_(pyarrow.float32(), 3)),
        "holes": pyarrow.array(holes, pyarrow.list_(pyarrow.int64(), 2)),
        "matrix": pyarrow.array(
            values(
                14,
                lambda draw: [[draw.randrange(99) for _ in range(3)] for _ in range(2)],
            ),
            pyarrow.list_(pyarrow.list_(pyarrow.int32(), 3), 2),
        ),
    }


def pyarrow_default(path):
    pyarrow.parquet.write_table(
        pyarrow.table({**flat(False), **others(), **lists()}), path
    )


def pyarrow_nulls(path):
    table = pyarrow.table({**flat(True), **others(), **lists()})
    pyarrow.parquet.write_table(
        table,
        path,
        data_page_version="2.0",
        compression="zstd",
        row_group_size=17,
        write_page_index=True,
        use_byte_stream_split=["f32"],
        use_dictionary=["i8", "text"],
    )


def polars_nulls(path):
    import polars

    columns = {
        name: column for name, column in flat(True).items() if "decimal" not in name
    }
    table = pyarrow.table({**columns, **others()})
    frame = polars.from_arrow(table).with_columns(
        vector=polars.Series(
            [[row, 1, 2] for row in range(ROWS)], dtype=polars.Array(polars.Int64, 3)
        )
    )
    frame.write_parquet(path, compression="snappy", row_group_size=25)


def duckdb_flat(path):
    import duckdb

    columns = {name: column for name, column in flat(True).items() if name != "f16"}
    connection = duckdb.connect()
    connection.register("flat", pyarrow.table({**columns, **others()}))
    connection.sql(f"COPY flat TO '{path}' (FORMAT parquet, COMPRESSION snappy)")


def datasets_lists(path):
    import datasets

    features = datasets.Features(
        {
            "vector": datasets.List(datasets.Value("float32"), length=3),
            "matrix": datasets.Array2D((2, 3), "int32"),
            "label": datasets.ClassLabel(names=["a", "b"]),
        }
    )
    rows = {
        "vector": values(15, lambda draw: [draw.random() for _ in range(3)]),
        "matrix": values(
            16, lambda draw: [[draw.randrange(9) for _ in range(3)] for _ in range(2)]
        ),
        "label": values(17, lambda draw: draw.randrange(2)),
    }
    datasets.Dataset.from_dict(rows, features=features).to_parquet(path)


def spark_nulls(path):
    """Pages of version 2 of parquet-java, without the types that Spark has not."""
    from parquet_files import write_spark

    kinds = {
        "i8": "byte",
        "i16": "short",
        "i32": "int",
        "i64": "long",
        "f32": "float",
        "f64": "double",
        "bool": "boolean",
        "date": "date",
        "time": "timestamp_ntz",
        "small_decimal": "decimal(9, 2)",
        "large_decimal": "decimal(38, 7)",
        "text": "string",
        "raw": "binary",
        "list": "array<bigint>",
    }
    columns = {**flat(True), **others()}
    rows = list(zip(*[columns[name].to_pylist() for name in kinds]))
    schema = ", ".join(f"{name} {kind}" for name, kind in kinds.items())
    settings = {"writer.version": "v2", "page.size": 128, "page.size.row.check.min": 1}
    write_spark(path, rows, schema, "snappy", settings)


FILES = {
    "pyarrow_default": pyarrow_default,
    "pyarrow_nulls": pyarrow_nulls,
    "polars_nulls": polars_nulls,
    "duckdb_flat": duckdb_flat,
    "datasets_lists": datasets_lists,
    "spark_nulls": spark_nulls,
}


def plain(value):
    """Return a value as JSON has it: numbers as texts, None for nulls, bytes as numbers."""
    if isinstance(value, (list, numpy.ndarray)):
        return [plain(item) for item in value]
    if isinstance(value, datetime.datetime):
        delta = value.replace(tzinfo=None) - datetime.datetime(1970, 1, 1)
        return str(delta // datetime.timedelta(microseconds=1))
    if isinstance(value, datetime.date):
        return str((value - datetime.date(1970, 1, 1)).days)
    if isinstance(value, decimal.Decimal):
        return repr(float(value))
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, (bytes, bytearray)):
        return {"bytes": list(value)}
    if isinstance(value, str):
        return {"bytes": list(value.encode())}
    return (
        None
        if value is None
        else repr(float(value) if isinstance(value, numpy.floating) else value)
    )


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(exist_ok=True)
    listing = folder / "expected.json"
    found = json.loads(listing.read_text()) if listing.exists() else {}
    for name in sys.argv[2:] or FILES:
        path = folder / f"{name}.parquet"
        FILES[name](str(path))
        table = pyarrow.parquet.read_table(path)
        found[name] = {
            column: [plain(value) for value in table[column].to_pylist()]
            for column in table.column_names
        }
    lines = [f'"{name}": {json.dumps(columns)}' for name, columns in found.items()]
    listing.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
