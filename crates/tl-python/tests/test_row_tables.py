"""Parquet files without images, and arrays in files: batches of their columns."""

from __future__ import annotations

import json
import pathlib
import pickle
from typing import Any

import numpy as np
import pytest
import turboloader as tl
from turboloader.exceptions import SettingError

FOLDER = pathlib.Path(__file__).parents[3] / "testdata" / "parquet"
EXPECTED = json.loads((FOLDER / "tables" / "expected.json").read_text())


def path(name: str) -> str:
    return str(FOLDER / "tables" / f"{name}.parquet")


def values(name: str, column: str, dtype: Any) -> np.ndarray[Any, Any]:
    """Return the listed values, with the least number for a null."""
    listed = EXPECTED[name][column]
    if np.issubdtype(dtype, np.floating):
        return np.array([float("nan" if x is None else x) for x in listed]).astype(dtype)
    least = np.iinfo(dtype).min
    return np.array([least if x is None else int(x) for x in listed], dtype)


@pytest.mark.parametrize("name", ["pyarrow_default", "pyarrow_nulls", "polars_nulls"])
def test_shuffled_batches_have_the_values_of_their_rows(name: str) -> None:
    columns = {"i64": np.int64, "i32": np.int32, "f64": np.float64, "f32": np.float32}
    columns |= {"date": np.int32, "time": np.int64}
    loader = tl.DataLoader(path(name), batch_size=7, columns=[*columns, "text"], shuffle=True)
    seen = 0
    for batch in loader:
        index = batch["index"].numpy()
        for column, dtype in columns.items():
            found = batch[column].numpy()
            assert found.dtype == dtype
            np.testing.assert_array_equal(found, values(name, column, dtype)[index])
        for row, text in zip(index, batch["text"], strict=True):
            listed = EXPECTED[name]["text"][row]
            assert text == (None if listed is None else bytes(listed["bytes"]))
        seen += len(index)
    assert seen == 60


def test_a_table_opens_as_other_tables_do() -> None:
    data = tl.open(path("datasets_lists"))
    assert len(data) == 60
    loader = tl.DataLoader(
        data, batch_size=16, columns=tl.Columns(["vector", "matrix"], label="label")
    )
    batch = next(iter(loader))
    assert batch["vector"].shape == (16, 3)
    assert batch["matrix"].shape == (16, 2, 3)
    assert (
        batch["label"].numpy().tolist() == values("datasets_lists", "label", np.int64)[:16].tolist()
    )
    assert len(pickle.loads(pickle.dumps(data))) == 60


def test_files_of_images_are_tables_where_columns_are_asked_for() -> None:
    images = str(FOLDER / "datasets_5_2.parquet")
    samples = tl.open(images)
    loader = tl.DataLoader(images, batch_size=12, columns=tl.Columns(["caption"], label="label"))
    batch = next(iter(loader))
    assert batch["label"].numpy().tolist() == list(samples.labels)
    assert batch["caption"][0] == b"chelsea, a photograph of animals"
    with pytest.raises(SettingError, match="columns: only supported for tables"):
        tl.DataLoader(str(FOLDER.parent / "photos"), columns=["x"])


def test_arrays_in_files_are_tables_of_one_column(tmp_path: pathlib.Path) -> None:
    array = np.random.default_rng(0).normal(size=(23, 4, 5)).astype(np.float32)
    np.save(tmp_path / "a.npy", array)
    np.save(tmp_path / "b.npy", array.astype(">f4"))
    loader = tl.DataLoader([tmp_path / "a.npy", tmp_path / "b.npy"], batch_size=5, shuffle=True)
    rows = np.concatenate([array, array])
    for batch in loader:
        assert np.array_equal(batch["array"].numpy(), rows[batch["index"].numpy()])
    header = {"y": {"dtype": "I64", "shape": [23], "data_offsets": [0, 184]}}
    text = json.dumps(header).encode()
    labels = np.arange(23) * 3
    file = tmp_path / "a.safetensors"
    file.write_bytes(len(text).to_bytes(8, "little") + text + labels.tobytes())
    batch = next(iter(tl.DataLoader(file, batch_size=23)))
    assert batch["y"].numpy().tolist() == labels.tolist()


def test_given_labels_do_not_go_with_columns():
    images = str(FOLDER / "datasets_5_2.parquet")
    ds = tl.open(images)
    given = ds.with_labels([9] * len(ds))
    with pytest.raises(tl.LoaderError, match="labels are given to samples; those of a table"):
        tl.DataLoader(given, columns=tl.Columns(["caption"], label="label"))


def test_booleans_of_arrays_are_zero_or_one(tmp_path):
    path = tmp_path / "flags.npy"
    np.save(path, np.array([True, False, True, True]))
    stored = bytearray(path.read_bytes())
    stored[-1] = 7
    path.write_bytes(stored)
    (batch,) = tl.DataLoader(path, batch_size=4, columns=["array"], shuffle=False)
    assert batch["array"].numpy().tobytes() == b"\1\0\1\1"


ARRAYS = FOLDER.parent / "arrays"
TYPES = ["bool", "uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64"]
TYPES += ["float16", "float32", "float64"]


@pytest.mark.parametrize("name", ["stored.npz", "deflated.npz", "big_endian.npz", "types.zarr"])
def test_batches_of_archives_and_groups_are_slices(name: str) -> None:
    arrays = {column: np.load(ARRAYS / f"{column}.npy") for column in TYPES}
    data = tl.open(ARRAYS / name)
    assert len(data) == 11
    loader = tl.DataLoader(data, batch_size=4, shuffle=True, columns=TYPES)
    for batch in loader:
        index = batch["index"].numpy()
        for column, array in arrays.items():
            found = batch[column].numpy()
            assert found.dtype == array.dtype
            assert found.tobytes() == array[index].tobytes()
    assert len(pickle.loads(pickle.dumps(data))) == 11


def test_saved_archives_are_read_at_once(tmp_path: pathlib.Path) -> None:
    x = np.random.default_rng(1).integers(0, 255, (40, 7, 5), dtype=np.uint8)
    y = np.arange(40)
    np.savez(tmp_path / "a.npz", x=x, y=y)
    np.savez_compressed(tmp_path / "b.npz", x=x, y=y)
    columns = tl.Columns(["x"], label="y")
    loader = tl.DataLoader(
        [tmp_path / "a.npz", tmp_path / "b.npz"], batch_size=9, shuffle=True, columns=columns
    )
    for batch in loader:
        rows = batch["index"].numpy() % 40
        assert np.array_equal(batch["x"].numpy(), x[rows])
        assert np.array_equal(batch["label"].numpy(), y[rows])
    np.savez(tmp_path / "c.npz", x=x, y=y[1:])
    with pytest.raises(tl.FormatError, match="array `y` has 39 rows, array `x` has 40"):
        tl.open(tmp_path / "c.npz")


@pytest.mark.parametrize("form", ["plain", "big", "zstd", "gzip", "shards", "shards_crc"])
def test_a_zarr_array_is_a_table_of_one_column(form: str) -> None:
    photo = np.load(ARRAYS / "photo.npy")
    loader = tl.DataLoader(ARRAYS / f"photo_{form}.zarr", batch_size=3, shuffle=True)
    for batch in loader:
        assert np.array_equal(batch["array"].numpy(), photo[batch["index"].numpy()])


def test_codecs_of_zarr_that_are_not_read_are_named() -> None:
    with pytest.raises(SettingError, match="codec `blosc`, expected gzip, zstd or crc32c"):
        tl.DataLoader(ARRAYS / "photo_blosc.zarr", columns=["array"])
