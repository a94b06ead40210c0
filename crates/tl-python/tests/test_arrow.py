"""Arrow files and streams: what other readers find in them is what batches hold."""

from __future__ import annotations

import hashlib
import json
import pathlib
import pickle
from typing import Any

import numpy as np
import pytest
import turboloader as tl
from turboloader.exceptions import FormatError

FOLDER = pathlib.Path(__file__).parents[3] / "testdata" / "arrow"
EXPECTED = json.loads((FOLDER / "expected.json").read_text())
# The others have rows without an image, two columns of images, and no captions.
OTHERS = ("pyarrow_nulls", "pyarrow_types", "pyarrow_nested")
WHOLE = [name for name in EXPECTED if name not in OTHERS]


def path(name: str) -> str:
    return str(FOLDER / f"{name}.arrow")


def sha256(data: Any) -> str:
    return hashlib.sha256(np.ascontiguousarray(data).tobytes()).hexdigest()


@pytest.mark.parametrize("name", WHOLE)
def test_pixels_labels_and_captions_are_those_of_other_readers(name: str) -> None:
    ds = tl.open(path(name), format="arrow")
    expected = EXPECTED[name]
    assert ds.classes == expected["class_names"]
    assert list(ds.labels) == expected["labels"]
    fields = {"caption": tl.Text("caption")}
    loader = tl.DataLoader(ds.with_fields(fields), batch_size=5, shuffle=False)
    pixels: list[str] = []
    captions: list[str | None] = []
    for batch in loader:
        pixels += [sha256(image) for image in batch["image"]]
        captions += batch["caption"]
    assert pixels == expected["pixels"]
    assert captions == expected["captions"]


def test_batches_are_those_of_an_archive_and_of_parquet_files(tmp_path: pathlib.Path) -> None:
    archive = tmp_path / "a.tar"
    # An archive has no place for the names of classes.
    with pytest.warns(UserWarning, match="cannot store 6 class names"):
        assert tl.convert(path("datasets_2_14"), archive) == 12
    train = [tl.RandomResizedCrop(24), tl.RandomHorizontalFlip()]

    def batches(data: Any) -> list[bytes]:
        loader = tl.DataLoader(data, batch_size=4, transform=train, shuffle=True)
        return [np.asarray(batch["image"]).tobytes() for batch in loader]

    expected = batches(str(archive))
    assert batches(str(FOLDER.parent / "parquet" / "datasets_5_2.parquet")) == expected
    for name in ("datasets_2_14", "datasets_5_2", "pyarrow_stream", "polars_lz4"):
        assert batches(path(name)) == expected
    folder = [str(FOLDER / "saved" / f"data-0000{n}-of-00002.arrow") for n in range(2)]
    assert batches(folder) == batches(FOLDER / "saved") == expected


def test_columns_are_named_and_data_sets_are_pickled() -> None:
    with pytest.raises(FormatError, match="photo and mask have images"):
        tl.open(path("pyarrow_types"))
    masks = tl.open(path("pyarrow_types"), image="mask", label="int8")
    again = pickle.loads(pickle.dumps(masks.take(5)))
    assert (len(again), list(again.labels)) == (5, [127, 126, 125, 124, 123])
    assert sha256(again[0].raw("image")) == EXPECTED["pyarrow_types"]["masks"][0]


def test_damage_is_an_error_with_its_place(tmp_path: pathlib.Path) -> None:
    file = tmp_path / "a.arrow"
    data = pathlib.Path(path("datasets_5_2")).read_bytes()
    file.write_bytes(data[:-100])
    with pytest.raises(FormatError, match=r"body of a message of .* ends beyond the file") as error:
        tl.open(file)
    assert error.value.offset > 0
    file.write_bytes(data[:-8])
    with pytest.warns(UserWarning, match="the stream has no end mark"):
        assert len(tl.open(file)) == 12
