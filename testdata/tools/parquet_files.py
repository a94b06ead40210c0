#!/usr/bin/env python3
"""Makes the Parquet files of `testdata/parquet`, and `expected.json` with what they hold.

usage: parquet_files.py FOLDER [NAME..]

Each NAME is a file to write; without one, all of those that the installed packages can write: files
called `datasets_VERSION` need that version of `datasets`, the others pyarrow, polars, DuckDB, or
pyspark and a Java runtime: Spark writes with parquet-java. The photographs are those of
`testdata/photos`, made small. Hashes come from the images in memory, and for the files of `datasets`
from what `load_dataset` reads.
"""

import hashlib
import io
import json
import pathlib
import shutil
import sys
import tempfile

import pyarrow
import pyarrow.parquet
from PIL import Image

PHOTOS = pathlib.Path(__file__).parent.parent / "photos"
SIDE = 40
CLASSES = sorted(path.name for path in PHOTOS.iterdir() if path.is_dir())


def photographs():
    """Name, bytes, class and caption of each photograph: ten JPEG, one PNG and one WebP file."""
    rows = []
    for label, folder in enumerate(CLASSES):
        for path in sorted((PHOTOS / folder).iterdir()):
            image = Image.open(path)
            image.thumbnail((SIDE, SIDE))
            buffer = io.BytesIO()
            kind = {".jpg": "JPEG", ".png": "PNG", ".webp": "WEBP"}[path.suffix]
            image.save(buffer, kind, **({"quality": 80} if kind != "PNG" else {}))
            # Every fourth has no caption.
            caption = (
                None if len(rows) % 4 == 3 else f"{path.stem}, a photograph of {folder}"
            )
            rows.append((path.name, buffer.getvalue(), label, caption))
    return rows


ROWS = photographs()
NAMES, IMAGES, LABELS, CAPTIONS = (list(column) for column in zip(*ROWS))
STRUCT = pyarrow.struct([("bytes", pyarrow.binary()), ("path", pyarrow.string())])


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def pixels(image):
    return sha256(image.convert("RGB").tobytes())


def structures(rows=ROWS):
    return pyarrow.array(
        [{"bytes": image, "path": name} for name, image, _, _ in rows], STRUCT
    )


def expected(**others):
    return {
        "images": [sha256(image) for image in IMAGES],
        "pixels": [pixels(Image.open(io.BytesIO(image))) for image in IMAGES],
        "labels": LABELS,
        "class_names": [],
        "captions": CAPTIONS,
        "keys": NAMES,
        **others,
    }


def data_set():
    from datasets import ClassLabel, Dataset, Features, Value
    from datasets import Image as ImageFeature

    features = Features(
        image=ImageFeature(), label=ClassLabel(names=CLASSES), caption=Value("string")
    )
    columns = {"image": [{"bytes": b, "path": n} for n, b, _, _ in ROWS]}
    columns |= {"label": LABELS, "caption": CAPTIONS}
    return Dataset.from_dict(columns, features=features)


def found_in(rows):
    """What `datasets` reads."""
    return expected(
        pixels=[pixels(row["image"]) for row in rows],
        labels=rows["label"][:],
        class_names=rows.features["label"].names,
        captions=rows["caption"][:],
    )


def datasets(path):
    from datasets import load_dataset

    data_set().to_parquet(str(path))
    with tempfile.TemporaryDirectory() as cache:
        return found_in(
            load_dataset(
                "parquet", data_files=str(path), split="train", cache_dir=cache
            )
        )


def write(path, table, **options):
    pyarrow.parquet.write_table(table, path, **options)


def table(**columns):
    return pyarrow.table(columns)


def pyarrow_default(path):
    """Snappy pages with a dictionary first; classes are texts, and no column has metadata."""
    names = pyarrow.array([CLASSES[label] for label in LABELS])
    write(path, table(image=structures(), label=names, caption=CAPTIONS))
    return expected(class_names=CLASSES)


def pyarrow_2(path):
    """Pages of version 2, several row groups, a page index and checksums; labels of 8 bits."""
    labels = pyarrow.array(LABELS, pyarrow.uint8())
    options = {"compression": "zstd", "data_page_version": "2.0", "row_group_size": 5}
    options |= {
        "data_page_size": 512,
        "write_page_index": True,
        "write_page_checksum": True,
    }
    write(path, table(image=structures(), label=labels, caption=CAPTIONS), **options)
    return expected()


def pyarrow_codec(codec):
    def write_codec(path):
        columns = {"image": pyarrow.array(IMAGES, pyarrow.binary()), "label": LABELS}
        options = {
            "use_dictionary": False,
            "data_page_size": 1024,
            "write_batch_size": 1,
        }
        write(path, table(**columns, caption=CAPTIONS), compression=codec, **options)
        return expected(keys=None)

    return write_codec


def pyarrow_plain(path):
    """Uncompressed pages without an index: images in place, found by page headers."""
    options = {
        "compression": "none",
        "use_dictionary": ["caption"],
        "data_page_size": 2048,
    }
    options |= {"write_batch_size": 1, "row_group_size": 7}
    write(path, table(image=structures(), label=LABELS, caption=CAPTIONS), **options)
    return expected()


def rows_with_nulls():
    """Structures and labels, of which some are null or have nulls, and what they are read as."""
    rows = [{"bytes": image, "path": name} for name, image, _, _ in ROWS]
    rows[1] = None
    rows[2] = {"bytes": None, "path": "own/" + NAMES[2]}
    rows[5] = {"bytes": None, "path": "../" + NAMES[5]}
    rows[6] = {"bytes": None, "path": None}
    rows[11] = {"bytes": IMAGES[11], "path": None}
    labels = [None if row in (0, 11) else label for row, label in enumerate(LABELS)]
    hashes = [sha256(image) for image in IMAGES]
    hashes[1] = hashes[5] = hashes[6] = None
    found = [-1 if label is None else label for label in labels]
    return rows, labels, expected(images=hashes, pixels=None, labels=found, keys=None)


def own_image(folder):
    """The image of the row whose bytes are null, as a file."""
    (folder / "own").mkdir(exist_ok=True)
    (folder / "own" / NAMES[2]).write_bytes(IMAGES[2])


def pyarrow_nulls(path):
    """Null structures, null bytes with a path, null labels; pages of version 2 in place."""
    rows, labels, found = rows_with_nulls()
    options = {
        "compression": "none",
        "use_dictionary": False,
        "data_page_version": "2.0",
    }
    options |= {"data_page_size": 2048, "write_batch_size": 3}
    images = pyarrow.array(rows, STRUCT)
    labels = pyarrow.array(labels, pyarrow.int16())
    write(path, table(image=images, label=labels, caption=CAPTIONS), **options)
    own_image(path.parent)
    return found


def pyarrow_types(path):
    """A second image column, and fields of many types in many encodings."""
    import decimal

    count = len(ROWS)
    columns = {
        "photo": structures(),
        "mask": structures(ROWS[::-1]),
        "int": pyarrow.array([row * 1000 - 3 for row in range(count)], pyarrow.int64()),
        "small": pyarrow.array(range(count), pyarrow.int8()),
        "unsigned": pyarrow.array(
            [2**64 - 1 - row for row in range(count)], pyarrow.uint64()
        ),
        "float": pyarrow.array([row / 3 for row in range(count)], pyarrow.float32()),
        "double": pyarrow.array([row / 7 for row in range(count)], pyarrow.float64()),
        "bool": pyarrow.array([row % 3 == 0 for row in range(count)]),
        "decimal": pyarrow.array(
            [decimal.Decimal(row - 3).scaleb(-2) for row in range(count)],
            pyarrow.decimal128(9, 2),
        ),
        "text": CAPTIONS,
        "prefixed": [f"photographs/{name}" for name in NAMES],
        "split": pyarrow.array([row * 0.5 for row in range(count)], pyarrow.float64()),
        "boxes": pyarrow.array(
            [[row, 1] for row in range(count)], pyarrow.list_(pyarrow.int32())
        ),
        "label": pyarrow.array([row % 2 == 0 for row in range(count)]),
    }
    encodings = {"int": "DELTA_BINARY_PACKED", "text": "DELTA_LENGTH_BYTE_ARRAY"}
    encodings |= {
        "prefixed": "DELTA_BYTE_ARRAY",
        "split": "BYTE_STREAM_SPLIT",
        "bool": "RLE",
    }
    write(
        path,
        table(**columns),
        use_dictionary=["double", "small"],
        column_encoding=encodings,
        compression={"int": "snappy", "text": "gzip", "photo.bytes": "none"},
    )
    return expected(
        labels=[int(row % 2 == 0) for row in range(count)],
        fields={
            "int": [str(row * 1000 - 3) for row in range(count)],
            "small": [str(row) for row in range(count)],
            "unsigned": [str(2**64 - 1 - row) for row in range(count)],
            "bool": [str(row % 3 == 0).lower() for row in range(count)],
            "decimal": [f"{(row - 3) / 100:.2f}" for row in range(count)],
            "text": CAPTIONS,
            "prefixed": [f"photographs/{name}" for name in NAMES],
            "split": [f"{row * 0.5:g}" for row in range(count)],
        },
        numbers={
            "float": [row / 3 for row in range(count)],
            "double": [row / 7 for row in range(count)],
        },
        masks=[sha256(image) for image in IMAGES[::-1]],
    )


def pyarrow_nested(path):
    """Lists and structures: of objects as `datasets` has them, maps, and lists of lists."""
    count = len(ROWS)
    objects = pyarrow.list_(
        pyarrow.struct(
            [("bbox", pyarrow.list_(pyarrow.float64())), ("category", pyarrow.int64())]
        )
    )
    box = [[0.5, 1.0, 2.25, 3.0], None, []]
    columns = {
        "objects": [
            None
            if row == 4
            else [{"bbox": box[n % 3], "category": n} for n in range(row % 4)]
            for row in range(count)
        ],
        "sequence": [
            {"bbox": [box[0]] * (row % 3), "area": list(range(row % 3))}
            for row in range(count)
        ],
        "map": [[("a", row), ("b", None)][: row % 3] for row in range(count)],
        "plain": [
            {"x": row, "text": None if row % 2 else str(row)} for row in range(count)
        ],
        "deep": [
            None if row == 1 else [[None, []][: row % 3], [[row], [1, None]]]
            for row in range(count)
        ],
    }
    integers = pyarrow.list_(pyarrow.int32())
    types = {
        "objects": objects,
        "sequence": pyarrow.struct(
            [
                ("bbox", pyarrow.list_(pyarrow.list_(pyarrow.float64()))),
                ("area", integers),
            ]
        ),
        "map": pyarrow.map_(pyarrow.string(), pyarrow.int64()),
        "plain": pyarrow.struct([("x", pyarrow.int16()), ("text", pyarrow.string())]),
        "deep": pyarrow.list_(pyarrow.list_(integers)),
    }
    arrays = {name: pyarrow.array(columns[name], kind) for name, kind in types.items()}
    options = {"row_group_size": 5, "write_statistics": False, "store_schema": False}
    write(path, table(image=structures(), label=LABELS, **arrays), **options)
    found = {name: array.to_pylist() for name, array in arrays.items()}
    found["map"] = [
        [{"key": key, "value": value} for key, value in row] for row in found["map"]
    ]
    return expected(captions=[None] * count, json=found)


def polars(path):
    import polars

    frame = polars.DataFrame({"image": IMAGES, "label": LABELS, "caption": CAPTIONS})
    frame.write_parquet(path, row_group_size=5)
    return expected(keys=None)


def duckdb(options):
    def write_duckdb(path):
        import duckdb

        connection = duckdb.connect()
        columns = {"image": pyarrow.array(IMAGES, pyarrow.binary()), "label": LABELS}
        source = table(**columns, caption=CAPTIONS)
        connection.register("source", source)
        connection.execute(f"COPY source TO '{path}' (FORMAT parquet, {options})")
        return expected(keys=None)

    return write_duckdb


def write_spark(path, rows, schema, codec, settings):
    """Write rows with parquet-java, which Spark calls with these settings."""
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[1]")
    local = {"ui.enabled": "false", "driver.host": "127.0.0.1"}
    local |= {"driver.bindAddress": "127.0.0.1"}
    for name, value in local.items():
        builder = builder.config(f"spark.{name}", value)
    frame = builder.getOrCreate().createDataFrame(rows, schema).coalesce(1)
    options = {f"parquet.{name}": value for name, value in settings.items()}
    with tempfile.TemporaryDirectory() as folder:
        writer = frame.write.options(compression=codec, **options)
        writer.mode("overwrite").parquet(folder)
        (file,) = pathlib.Path(folder).glob("*.parquet")
        shutil.copy(file, path)


# Pages of a few rows, and several row groups.
SPARK_1 = {"page.size": 2048, "page.size.row.check.min": 1}
SPARK_1 |= {"block.size": 8192, "block.size.row.check.min": 1}
SPARK_2 = SPARK_1 | {"writer.version": "v2"}
SPARK_PLAIN = {"enable.dictionary": "false"}
SPARK_STRUCT = "struct<bytes: binary, path: string>"


def spark(codec, settings):
    def write_structures(path):
        rows = [((image, name), *others) for name, image, *others in ROWS]
        schema = f"image {SPARK_STRUCT}, label int, caption string"
        write_spark(path, rows, schema, codec, settings)
        return expected()

    return write_structures


def spark_binary(codec, settings):
    def write_binary(path):
        rows = list(zip(IMAGES, LABELS, CAPTIONS))
        write_spark(
            path, rows, "image binary, label long, caption string", codec, settings
        )
        return expected(keys=None)

    return write_binary


def spark_nulls(path):
    """Nulls as in `pyarrow_nulls`; images are differences of bytes."""
    images, labels, found = rows_with_nulls()
    images = [row and (row["bytes"], row["path"]) for row in images]
    rows = list(zip(images, labels, CAPTIONS))
    schema = f"image {SPARK_STRUCT}, label short, caption string"
    write_spark(path, rows, schema, "snappy", SPARK_2)
    own_image(path.parent)
    return found


FILES = {
    "datasets_2_14": datasets,
    "datasets_3_6": datasets,
    "datasets_4_5": datasets,
    "datasets_5_2": datasets,
    "pyarrow_default": pyarrow_default,
    "pyarrow_2": pyarrow_2,
    "pyarrow_gzip": pyarrow_codec("gzip"),
    "pyarrow_brotli": pyarrow_codec("brotli"),
    "pyarrow_lz4": pyarrow_codec("lz4"),
    "pyarrow_plain": pyarrow_plain,
    "pyarrow_nulls": pyarrow_nulls,
    "pyarrow_types": pyarrow_types,
    "pyarrow_nested": pyarrow_nested,
    "polars": polars,
    "duckdb_1": duckdb("PARQUET_VERSION v1, COMPRESSION snappy"),
    "duckdb_2": duckdb("PARQUET_VERSION v2, COMPRESSION uncompressed"),
    "spark_default": spark("snappy", {}),
    "spark_plain": spark("uncompressed", SPARK_1 | SPARK_PLAIN),
    "spark_2": spark("zstd", SPARK_2),
    "spark_gzip": spark_binary("gzip", SPARK_1 | SPARK_PLAIN),
    "spark_lz4": spark_binary("lz4_raw", SPARK_2 | SPARK_PLAIN),
    "spark_nulls": spark_nulls,
}


def main(files, extension):
    """Writes the files that the command line names, or all."""
    folder = pathlib.Path(sys.argv[1])
    listing = folder / "expected.json"
    found = json.loads(listing.read_text()) if listing.exists() else {}
    for name in sys.argv[2:] or files:
        path = folder / f"{name}.{extension}"
        found[name] = files[name](path)
        print(name, path.stat().st_size)
    # A line for each file.
    lines = [f'"{name}": {json.dumps(found[name])}' for name in files if name in found]
    listing.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main(FILES, "parquet")
