#!/usr/bin/env python3
"""Makes the Arrow files of `testdata/arrow`, and `expected.json` with what they hold.

usage: arrow_files.py FOLDER [NAME..]

Each NAME is a file to write; without one, all of those that the installed packages can write: files
called `datasets_VERSION` need that version of `datasets`, the others pyarrow, polars or DuckDB. The
photographs are those of `parquet_files.py`. Hashes come from the images in memory, and for the files of
`datasets` from what `load_from_disk` reads. `saved` writes a folder of `save_to_disk` alone.
"""

import decimal
import pathlib
import shutil
import sys
import tempfile

import pyarrow
import pyarrow.ipc
from parquet_files import (
    CAPTIONS,
    CLASSES,
    IMAGES,
    LABELS,
    ROWS,
    STRUCT,
    data_set,
    expected,
    found_in,
    main,
    own_image,
    rows_with_nulls,
    sha256,
    structures,
    table,
)

COUNT = len(ROWS)


def saved(path, shards):
    """A data set that `datasets` writes into the folder `path`, and what it reads there."""
    from datasets import load_from_disk

    data_set().save_to_disk(str(path), num_shards=shards)
    return found_in(load_from_disk(str(path)))


def datasets(path):
    with tempfile.TemporaryDirectory() as folder:
        found = saved(pathlib.Path(folder) / "saved", 1)
        (file,) = (pathlib.Path(folder) / "saved").glob("data-*.arrow")
        shutil.copy(file, path)
    return found


def datasets_folder(path):
    """The folder of `save_to_disk`, in two files."""
    shutil.rmtree(path, ignore_errors=True)
    saved(path, 2)


def write(path, table, *, stream=False, rows=5, dictionaries=None, **options):
    kind = pyarrow.ipc.new_stream if stream else pyarrow.ipc.new_file
    settings = pyarrow.ipc.IpcWriteOptions(**options)
    with kind(str(path), table.schema, options=settings) as writer:
        writer.write_table(table, max_chunksize=rows)


def pyarrow_file(path):
    """Three record batches, images in place, labels of 8 bits."""
    labels = pyarrow.array(LABELS, pyarrow.uint8())
    write(path, table(image=structures(), label=labels, caption=CAPTIONS))
    return expected()


def pyarrow_stream(path):
    """A stream of batches of one row; classes are texts, and no column has metadata."""
    names = pyarrow.array([CLASSES[label] for label in LABELS])
    columns = table(image=structures(), label=names, caption=CAPTIONS)
    write(path, columns, stream=True, rows=1)
    return expected(class_names=CLASSES)


def pyarrow_codec(codec, stream):
    def write_codec(path):
        columns = {"image": pyarrow.array(IMAGES, pyarrow.binary()), "label": LABELS}
        columns = table(**columns, caption=CAPTIONS)
        write(path, columns, stream=stream, compression=codec)
        return expected(keys=None)

    return write_codec


def pyarrow_large(path):
    """Offsets of 64 bits, of arrays that are parts of longer ones."""
    images = pyarrow.array([b"before"] * 3 + IMAGES, pyarrow.large_binary()).slice(3)
    texts = pyarrow.array(["x"] * 9 + CAPTIONS, pyarrow.large_string()).slice(9)
    labels = pyarrow.array([-7, None, *LABELS], pyarrow.int32()).slice(2)
    write(path, table(image=images, label=labels, caption=texts), rows=7)
    return expected(keys=None)


def pyarrow_views(path):
    """Views: short values are in them, others in several buffers."""
    parts = [
        pyarrow.array(IMAGES[:5], pyarrow.binary_view()),
        pyarrow.array(IMAGES[5:], pyarrow.binary_view()),
    ]
    images = pyarrow.chunked_array([pyarrow.concat_arrays(parts)])
    texts = [text if row % 2 else "short" for row, text in enumerate(CAPTIONS)]
    captions = pyarrow.array(texts, pyarrow.string_view())
    write(path, table(image=images, label=LABELS, caption=captions), rows=COUNT)
    return expected(keys=None, captions=texts)


def pyarrow_dictionaries(path):
    """A stream whose dictionary of classes changes: it is replaced, and values are added to it."""
    names = [CLASSES[label] for label in LABELS]
    texts = ["one" if row % 3 else None for row in range(COUNT)]
    kinds = {"label": pyarrow.int8(), "caption": pyarrow.uint16()}
    schema = pyarrow.schema(
        [("image", STRUCT)]
        + [
            (name, pyarrow.dictionary(kind, pyarrow.string()))
            for name, kind in kinds.items()
        ]
    )
    dictionaries = [CLASSES[:2], CLASSES[:4], CLASSES[:3:-1]]
    options = pyarrow.ipc.IpcWriteOptions(emit_dictionary_deltas=True)
    with pyarrow.ipc.new_stream(str(path), schema, options=options) as writer:
        for part, classes in enumerate(dictionaries):
            rows = range(4 * part, 4 * part + 4)
            indices = [classes.index(names[row]) for row in rows]
            arrays = {"label": (indices, classes)}
            captions = [None if texts[row] is None else 0 for row in rows]
            arrays["caption"] = (captions, ["one"])
            columns = [structures(ROWS[rows.start : rows.stop])]
            columns += [
                pyarrow.DictionaryArray.from_arrays(
                    pyarrow.array(numbers, kinds[name]), pyarrow.array(values)
                )
                for name, (numbers, values) in arrays.items()
            ]
            writer.write_batch(pyarrow.record_batch(columns, schema=schema))
    return expected(class_names=CLASSES, captions=texts)


def pyarrow_nulls(path):
    """Null structures, null bytes with and without a path, null labels."""
    rows, labels, found = rows_with_nulls()
    images = pyarrow.array(rows, STRUCT)
    labels = pyarrow.array(labels, pyarrow.int16())
    write(path, table(image=images, label=labels, caption=CAPTIONS), rows=COUNT)
    own_image(path.parent)
    return found


def pyarrow_types(path):
    """A second image column, and fields of all types."""
    numbers = list(range(COUNT))
    integers = {
        f"{sign}int{bits}": pyarrow.array(
            [2 ** (bits - 1) - 1 - row for row in numbers],
            getattr(pyarrow, f"{sign}int{bits}")(),
        )
        for sign in ("", "u")
        for bits in (8, 16, 32, 64)
    }
    decimals = [decimal.Decimal(row - 3).scaleb(-2) for row in numbers]
    columns = {
        "photo": structures(),
        "mask": structures(ROWS[::-1]),
        **integers,
        "half": pyarrow.array([row / 8 for row in numbers], pyarrow.float16()),
        "float": pyarrow.array([row / 3 for row in numbers], pyarrow.float32()),
        "double": pyarrow.array([row / 7 for row in numbers], pyarrow.float64()),
        "bool": pyarrow.array([row % 3 == 0 for row in numbers]),
        "decimal": pyarrow.array(decimals, pyarrow.decimal128(9, 2)),
        "small": pyarrow.array(decimals, pyarrow.decimal32(9, 2)),
        "huge": pyarrow.array(decimals, pyarrow.decimal256(60, 2)),
        "date": pyarrow.array(numbers, pyarrow.date32()),
        "time": pyarrow.array(numbers, pyarrow.timestamp("us")),
        "fixed": pyarrow.array([b"abc"] * COUNT, pyarrow.binary(3)),
        "nothing": pyarrow.nulls(COUNT),
        "union": pyarrow.UnionArray.from_sparse(
            pyarrow.array([0] * COUNT, pyarrow.int8()), [pyarrow.array(numbers)]
        ),
        "runs": pyarrow.RunEndEncodedArray.from_arrays([COUNT], ["a"]),
        "text": CAPTIONS,
        "label": pyarrow.array([row % 2 == 0 for row in numbers]),
    }
    write(path, table(**columns), rows=COUNT)
    fields = {name: [str(n.as_py()) for n in array] for name, array in integers.items()}
    fields |= {
        "bool": [str(row % 3 == 0).lower() for row in numbers],
        "decimal": [f"{(row - 3) / 100:.2f}" for row in numbers],
        "small": [f"{(row - 3) / 100:.2f}" for row in numbers],
        "date": [str(row) for row in numbers],
        "time": [str(row) for row in numbers],
        "fixed": ["abc"] * COUNT,
        "text": CAPTIONS,
    }
    return expected(
        labels=[int(row % 2 == 0) for row in numbers],
        fields=fields,
        numbers={
            "half": [row / 8 for row in numbers],
            "float": [row / 3 for row in numbers],
            "double": [row / 7 for row in numbers],
        },
        masks=[sha256(image) for image in IMAGES[::-1]],
    )


def pyarrow_nested(path):
    """Lists and structures: of objects as `datasets` has them, maps, and lists of lists."""
    box = [[0.5, 1.0, 2.25, 3.0], None, []]
    objects = [
        None
        if row == 4
        else [{"bbox": box[n % 3], "category": n} for n in range(row % 4)]
        for row in range(COUNT)
    ]
    kind = pyarrow.struct(
        [("bbox", pyarrow.list_(pyarrow.float64())), ("category", pyarrow.int64())]
    )
    integers = pyarrow.list_(pyarrow.int32())
    deep = [
        None if row == 1 else [[None, []][: row % 3], [[row], [1, None]]]
        for row in range(COUNT)
    ]
    pairs = [None if row == 2 else [row, row + 1] for row in range(COUNT)]
    names = pyarrow.array([row % 2 for row in range(COUNT)], pyarrow.int8())
    names = pyarrow.DictionaryArray.from_arrays(names, ["even", "odd"])
    arrays = {
        "objects": pyarrow.array(objects, pyarrow.list_(kind)),
        "large": pyarrow.array(objects, pyarrow.large_list(kind)),
        "views": pyarrow.array(objects, pyarrow.list_view(kind)),
        "pairs": pyarrow.array(pairs, pyarrow.list_(pyarrow.int16(), 2)),
        "map": pyarrow.array(
            [[("a", row), ("b", None)][: row % 3] for row in range(COUNT)],
            pyarrow.map_(pyarrow.string(), pyarrow.int64()),
        ),
        "plain": pyarrow.array(
            [{"x": row, "text": None if row % 2 else str(row)} for row in range(COUNT)],
            pyarrow.struct([("x", pyarrow.int16()), ("text", pyarrow.string())]),
        ),
        "names": pyarrow.StructArray.from_arrays([names], ["name"]),
        "deep": pyarrow.array(deep, pyarrow.list_(pyarrow.list_(integers))),
    }
    write(path, table(image=structures(), label=LABELS, **arrays), compression="lz4")
    found = {name: array.to_pylist() for name, array in arrays.items()}
    found["map"] = [
        [{"key": key, "value": value} for key, value in row] for row in found["map"]
    ]
    return expected(captions=[None] * COUNT, json=found)


def polars(kind, **options):
    def write_polars(path):
        import polars

        columns = {"image": IMAGES, "label": LABELS, "caption": CAPTIONS}
        getattr(polars.DataFrame(columns), kind)(path, **options)
        return expected(keys=None)

    return write_polars


def duckdb(**settings):
    """The stream of an export of DuckDB, whose types these settings choose."""

    def write_duckdb(path):
        import duckdb

        connection = duckdb.connect()
        for name, value in settings.items():
            connection.execute(f"SET {name} = '{value}'")
        names = [CLASSES[label] for label in LABELS]
        boxes = [[row] * (row % 3) for row in range(COUNT)]
        source = table(image=structures(), label=names, caption=CAPTIONS, boxes=boxes)
        connection.register("source", source)
        enum = ", ".join(f"'{name}'" for name in CLASSES)
        query = f"SELECT * REPLACE (label::ENUM({enum}) AS label) FROM source"
        reader = connection.sql(query).to_arrow_reader()
        with pyarrow.ipc.new_stream(str(path), reader.schema) as writer:
            for batch in reader:
                writer.write_batch(batch)
        return expected(class_names=CLASSES, json={"boxes": boxes})

    return write_duckdb


FILES = {
    "datasets_2_14": datasets,
    "datasets_5_2": datasets,
    "pyarrow_file": pyarrow_file,
    "pyarrow_stream": pyarrow_stream,
    "pyarrow_lz4": pyarrow_codec("lz4", False),
    "pyarrow_zstd": pyarrow_codec("zstd", True),
    "pyarrow_large": pyarrow_large,
    "pyarrow_views": pyarrow_views,
    "pyarrow_dictionaries": pyarrow_dictionaries,
    "pyarrow_nulls": pyarrow_nulls,
    "pyarrow_types": pyarrow_types,
    "pyarrow_nested": pyarrow_nested,
    "polars_file": polars("write_ipc", record_batch_size=5),
    "polars_lz4": polars("write_ipc", compression="lz4"),
    "polars_stream": polars("write_ipc_stream"),
    "duckdb_offsets": duckdb(arrow_large_buffer_size="true"),
    "duckdb_views": duckdb(
        arrow_output_version="1.5",
        produce_arrow_string_view="true",
        arrow_output_list_view="true",
    ),
}


if __name__ == "__main__":
    if sys.argv[2:] == ["saved"]:
        datasets_folder(pathlib.Path(sys.argv[1]) / "saved")
    else:
        main(FILES, "arrow")
