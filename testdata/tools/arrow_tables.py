"""Write Arrow files of numbers, and what pyarrow finds in them.

`python testdata/tools/arrow_tables.py testdata/arrow/tables` writes all of them again.
"""

import json
import pathlib
import shutil
import sys
import tempfile

import datasets
import polars
import pyarrow
import pyarrow.ipc
from parquet_tables import ROWS, flat, lists, others, plain, values


def write(path, table, batch_rows, *, stream, **options):
    """Write a file or a stream, in record batches of so many rows."""
    new = pyarrow.ipc.new_stream if stream else pyarrow.ipc.new_file
    with new(
        path, table.schema, options=pyarrow.ipc.IpcWriteOptions(**options)
    ) as file:
        file.write_table(table, max_chunksize=batch_rows)


def classes():
    """Return a column of texts in a dictionary."""
    texts = values(
        18, lambda draw: draw.choice(["one", "two", "three", "a long name"]), True
    )
    return {"classes": pyarrow.array(texts).dictionary_encode()}


def pyarrow_file(path):
    table = pyarrow.table({**flat(False), **others(), **lists(), **classes()})
    write(path, table, 60, stream=False)


def pyarrow_stream(path):
    table = pyarrow.table({**flat(True), **others(), **lists(), **classes()})
    write(path, table, 17, stream=True, compression="zstd")


def pyarrow_types(path):
    """Write the types that only Arrow has."""
    texts = values(19, lambda draw: "x" * draw.randrange(20), True)
    numbers = values(20, lambda draw: list(range(draw.randrange(4))), True)
    columns = {
        "large_text": pyarrow.array(texts, pyarrow.large_string()),
        "views": pyarrow.array(texts, pyarrow.string_view()),
        "large_list": pyarrow.array(numbers, pyarrow.large_list(pyarrow.int64())),
        "list_view": pyarrow.array(numbers, pyarrow.list_view(pyarrow.int64())),
        "small": pyarrow.array(
            values(21, lambda draw: draw.randrange(9)), pyarrow.decimal32(5, 2)
        ),
        "nothing": pyarrow.nulls(ROWS),
    }
    write(path, pyarrow.table(columns), 25, stream=False, compression="lz4")


def polars_file(path):
    flats = {
        name: column for name, column in flat(True).items() if "decimal" not in name
    }
    frame = polars.from_arrow(pyarrow.table({**flats, **others()})).with_columns(
        vector=polars.Series(
            [[row, 1, 2] for row in range(ROWS)], dtype=polars.Array(polars.Int64, 3)
        )
    )
    frame.write_ipc(path, compression="zstd")


def saved(path, rows, features):
    """Write what `save_to_disk` does."""
    with tempfile.TemporaryDirectory() as folder:
        made = datasets.Dataset.from_dict(rows, features=features)
        made.save_to_disk(folder, num_shards=1)
        (file,) = pathlib.Path(folder).glob("*.arrow")
        shutil.copy(file, path)


def datasets_lists(path):
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
    saved(path, rows, features)


def datasets_tokens(path):
    """Write a data set as tokenizers of Hugging Face make it."""
    ids = values(
        22, lambda draw: [draw.randrange(50257) for _ in range(draw.randrange(30))]
    )
    features = datasets.Features(
        {
            "input_ids": datasets.List(datasets.Value("int32")),
            "attention_mask": datasets.List(datasets.Value("int8")),
        }
    )
    rows = {"input_ids": ids, "attention_mask": [[1] * len(row) for row in ids]}
    saved(path, rows, features)


FILES = {
    "pyarrow_file": pyarrow_file,
    "pyarrow_stream": pyarrow_stream,
    "pyarrow_types": pyarrow_types,
    "polars_file": polars_file,
    "datasets_lists": datasets_lists,
    "datasets_tokens": datasets_tokens,
}


def read(path):
    """Read a file or a stream."""
    data = pathlib.Path(path).read_bytes()
    is_file = data.startswith(b"ARROW1")
    open_any = pyarrow.ipc.open_file if is_file else pyarrow.ipc.open_stream
    return open_any(data).read_all()


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(exist_ok=True)
    found = {}
    for name, make in FILES.items():
        path = folder / f"{name}.arrow"
        make(str(path))
        table = read(path)
        found[name] = {
            column: [plain(value) for value in table[column].to_pylist()]
            for column in table.column_names
        }
    lines = [f'"{name}": {json.dumps(columns)}' for name, columns in found.items()]
    (folder / "expected.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
