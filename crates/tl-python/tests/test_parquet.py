"""Parquet files: what `datasets` finds in them is what batches hold."""

from __future__ import annotations

import base64
import hashlib
import json
import pathlib
import pickle
from typing import Any

import numpy as np
import pytest
import turboloader as tl
from turboloader.exceptions import FormatError

FOLDER = pathlib.Path(__file__).parents[3] / "testdata" / "parquet"
EXPECTED = json.loads((FOLDER / "expected.json").read_text())
# The others have rows without an image, lists, and two columns of images.
OTHERS = ("pyarrow_nulls", "pyarrow_types", "pyarrow_nested", "spark_nulls")
WHOLE = [name for name in EXPECTED if name not in OTHERS]

# 3 x 2 grey pixels.
MASK = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAMAAAACCAAAAAC4HznGAAAAEElEQVR4nGNgZGJmYGFlAwAARgAWd/XIfwAAAABJRU5ErkJggg=="
)


def path(name: str) -> str:
    return str(FOLDER / f"{name}.parquet")


def sha256(data: Any) -> str:
    return hashlib.sha256(np.ascontiguousarray(data).tobytes()).hexdigest()


@pytest.mark.parametrize("name", WHOLE)
def test_pixels_labels_and_captions_are_those_of_other_readers(name: str) -> None:
    ds = tl.open(path(name), format="parquet")
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


def test_a_loader_takes_the_path_of_a_file_and_of_shards(tmp_path: pathlib.Path) -> None:
    archive = tmp_path / "a.tar"
    # An archive has no place for the names of classes.
    with pytest.warns(UserWarning, match="cannot store 6 class names"):
        assert tl.convert(path("datasets_3_6"), archive) == 12
    train = [tl.RandomResizedCrop(24), tl.RandomHorizontalFlip()]

    def batches(data: Any) -> list[bytes]:
        loader = tl.DataLoader(data, batch_size=4, transform=train, shuffle=True)
        return [np.asarray(batch["image"]).tobytes() for batch in loader]

    expected = batches(str(archive))
    for name in ("datasets_2_14", "datasets_3_6", "datasets_4_5", "datasets_5_2"):
        assert batches(path(name)) == expected
    shards = [path("datasets_4_5"), path("datasets_5_2")]
    assert len(tl.open(shards)) == 24
    assert len(tl.open(str(FOLDER / "datasets_*.parquet"))) == 48


def test_columns_are_named_where_there_is_a_choice() -> None:
    with pytest.raises(FormatError, match=r"photo and mask have images; name .*image="):
        tl.open(path("pyarrow_types"))
    ds = tl.open(path("pyarrow_types"), image="photo", label="small")
    assert list(ds.labels) == list(range(12))
    fields = {"mask": tl.Bytes("mask"), "int": tl.Number("int", dtype="int64")}
    again = pickle.loads(pickle.dumps(ds))
    for opened in (ds, again):
        assert [sha256(sample.image) for sample in opened] == EXPECTED["pyarrow_types"]["pixels"]
        (batch,) = tl.DataLoader(opened.with_fields(fields), batch_size=12, shuffle=False)
        assert list(batch["int"]) == [row * 1000 - 3 for row in range(12)]
        masks = [hashlib.sha256(mask).hexdigest() for mask in batch["mask"]]
        assert masks == EXPECTED["pyarrow_types"]["masks"]
    with pytest.raises(FormatError, match="no column nothing, the columns are photo, mask, int"):
        tl.open(path("pyarrow_types"), image="nothing")


def test_rows_without_an_image_are_errors_of_samples() -> None:
    loader = tl.DataLoader(path("pyarrow_nulls"), batch_size=12, shuffle=False)
    with pytest.raises(FormatError, match=r"sample 1: .*the image is null, expected bytes"):
        next(iter(loader))


def test_conversions_from_parquet(tmp_path: pathlib.Path) -> None:
    made = tmp_path / "a.tbl"
    assert tl.convert(path("pyarrow_default"), made) == 12
    ds = tl.open(made)
    assert ds.classes == EXPECTED["pyarrow_default"]["class_names"]
    assert list(ds.labels) == EXPECTED["pyarrow_default"]["labels"]
    assert tl.verify(path("datasets_5_2"), decode=True)["is_good"]


def test_lists_and_structures_are_json_fields() -> None:
    names = list(EXPECTED["pyarrow_nested"]["json"])
    ds = tl.open(path("pyarrow_nested"), fields={name: tl.Json(name) for name in names})
    (batch,) = tl.DataLoader(ds, batch_size=12, shuffle=False)
    for name in names:
        assert batch[name] == EXPECTED["pyarrow_nested"]["json"][name], name
    boxes = tl.Boxes("sequence:/bbox/*", format="xywh")
    (batch,) = tl.DataLoader(ds.with_fields({"boxes": boxes}), batch_size=12, shuffle=False)
    assert [len(one) for one in batch["boxes"]] == [row % 3 for row in range(12)]


def test_written_files_are_those_of_other_readers(tmp_path: pathlib.Path) -> None:
    pq = pytest.importorskip("pyarrow.parquet")
    tbl, target = tmp_path / "a.tbl", tmp_path / "a.parquet"
    images = [sample.raw("image") for sample in tl.open(path("datasets_5_2"))]
    with tl.TblWriter(tbl) as writer:
        for number, image in enumerate(images):
            fields = {"caption": f"{number}, ü".encode(), "id": str(number * 7).encode()}
            fields["seg.png"] = MASK
            writer.add_sample(image, key=f"a/{number}.jpg", fields=fields)
    assert tl.convert(tbl, target) == 12
    rows = pq.read_table(target, page_checksum_verification=True).to_pylist()
    ours = tl.open(target, fields={"caption": tl.Text(), "seg": tl.Bytes("seg.png")})
    assert len(ours) == len(rows) == 12
    for number, (row, sample) in enumerate(zip(rows, ours, strict=True)):
        assert row["image"] == {"bytes": images[number], "path": f"a/{number}.jpg"}
        assert (row["caption"], row["id"]) == (sample.caption, number * 7)
        assert row["seg.png"] == {"bytes": MASK, "path": None}
        assert sample.seg == MASK
    copy = tmp_path / "b"
    assert tl.open(target).convert(copy, to="parquet") == 12
    assert copy.read_bytes() == target.read_bytes()


@pytest.mark.filterwarnings("ignore")
def test_load_dataset_opens_written_files_with_their_features(tmp_path: pathlib.Path) -> None:
    datasets = pytest.importorskip("datasets")
    datasets.disable_progress_bars()
    target = tmp_path / "a.parquet"
    source = tl.open(path("datasets_3_6"), fields={"caption": tl.Text()})
    assert source.convert(target) == 12
    theirs = datasets.load_dataset(
        "parquet", data_files=str(target), split="train", cache_dir=str(tmp_path / "cache")
    )
    assert theirs.features["label"].names == source.classes
    assert isinstance(theirs.features["image"], datasets.Image)
    for row, sample in zip(theirs, source, strict=True):
        assert (row["label"], row["caption"]) == (sample.label, sample.caption)
        assert np.array_equal(np.asarray(row["image"].convert("RGB")), sample.image)
