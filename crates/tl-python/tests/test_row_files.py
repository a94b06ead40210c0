"""Parquet and Arrow files: what other readers find in them is what batches hold."""

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

TESTDATA = pathlib.Path(__file__).parents[3] / "testdata"
EXPECTED = {
    f"{name}.{kind}": expected
    for kind in ("parquet", "arrow")
    for name, expected in json.loads((TESTDATA / kind / "expected.json").read_text()).items()
}
# The others have rows without an image, two columns of images, and no captions.
WHOLE = [file for file in EXPECTED if not file.split(".")[0].endswith(("nulls", "types", "nested"))]

# 3 x 2 grey pixels.
MASK = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAMAAAACCAAAAAC4HznGAAAAEElEQVR4nGNgZGJmYGFlAwAARgAWd/XIfwAAAABJRU5ErkJggg=="
)


def path(file: str) -> str:
    return str(TESTDATA / file.rsplit(".")[-1] / file)


def sha256(data: Any) -> str:
    return hashlib.sha256(np.ascontiguousarray(data).tobytes()).hexdigest()


@pytest.mark.parametrize("file", WHOLE)
def test_pixels_labels_and_captions_are_those_of_other_readers(file: str) -> None:
    ds = tl.open(path(file), format=file.rsplit(".")[-1])
    expected = EXPECTED[file]
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


def test_batches_are_those_of_an_archive(tmp_path: pathlib.Path) -> None:
    archive = tmp_path / "a.tar"
    # An archive has no place for the names of classes.
    with pytest.warns(UserWarning, match="cannot store 6 class names"):
        assert tl.convert(path("datasets_3_6.parquet"), archive) == 12
    train = [tl.RandomResizedCrop(24), tl.RandomHorizontalFlip()]

    def batches(data: Any) -> list[bytes]:
        loader = tl.DataLoader(data, batch_size=4, transform=train, shuffle=True)
        return [np.asarray(batch["image"]).tobytes() for batch in loader]

    expected = batches(str(archive))
    for file in WHOLE:
        assert batches(path(file)) == expected, file
    saved = TESTDATA / "arrow" / "saved"
    shards = [str(saved / f"data-0000{n}-of-00002.arrow") for n in range(2)]
    assert batches(shards) == batches(saved) == expected
    shards = [path("datasets_4_5.parquet"), path("datasets_5_2.parquet")]
    assert len(tl.open(shards)) == 24
    assert len(tl.open(str(TESTDATA / "parquet" / "datasets_*.parquet"))) == 48


def test_columns_are_named_where_there_is_a_choice() -> None:
    with pytest.raises(FormatError, match=r"photo and mask have images; name .*image="):
        tl.open(path("pyarrow_types.parquet"))
    ds = tl.open(path("pyarrow_types.parquet"), image="photo", label="small")
    assert list(ds.labels) == list(range(12))
    fields = {"mask": tl.Bytes("mask"), "int": tl.Number("int", dtype="int64")}
    again = pickle.loads(pickle.dumps(ds))
    for opened in (ds, again):
        assert [sha256(sample.image) for sample in opened] == EXPECTED["pyarrow_types.parquet"][
            "pixels"
        ]
        (batch,) = tl.DataLoader(opened.with_fields(fields), batch_size=12, shuffle=False)
        assert list(batch["int"]) == [row * 1000 - 3 for row in range(12)]
        masks = [hashlib.sha256(mask).hexdigest() for mask in batch["mask"]]
        assert masks == EXPECTED["pyarrow_types.parquet"]["masks"]
    with pytest.raises(FormatError, match="no column nothing, the columns are photo, mask, int"):
        tl.open(path("pyarrow_types.parquet"), image="nothing")


def test_rows_without_an_image_are_errors_of_samples() -> None:
    loader = tl.DataLoader(path("pyarrow_nulls.parquet"), batch_size=12, shuffle=False)
    with pytest.raises(FormatError, match=r"sample 1: .*the value is null, expected the bytes"):
        next(iter(loader))


def test_conversions_from_parquet(tmp_path: pathlib.Path) -> None:
    made = tmp_path / "a.tbl"
    assert tl.convert(path("pyarrow_default.parquet"), made) == 12
    ds = tl.open(made)
    assert ds.classes == EXPECTED["pyarrow_default.parquet"]["class_names"]
    assert list(ds.labels) == EXPECTED["pyarrow_default.parquet"]["labels"]
    assert tl.verify(path("datasets_5_2.parquet"), decode=True)["is_good"]


def test_lists_and_structures_are_json_fields() -> None:
    names = list(EXPECTED["pyarrow_nested.parquet"]["json"])
    ds = tl.open(path("pyarrow_nested.parquet"), fields={name: tl.Json(name) for name in names})
    (batch,) = tl.DataLoader(ds, batch_size=12, shuffle=False)
    for name in names:
        assert batch[name] == EXPECTED["pyarrow_nested.parquet"]["json"][name], name
    boxes = tl.Boxes("sequence:/bbox/*", format="xywh")
    (batch,) = tl.DataLoader(ds.with_fields({"boxes": boxes}), batch_size=12, shuffle=False)
    assert [len(one) for one in batch["boxes"]] == [row % 3 for row in range(12)]


def test_written_files_are_those_of_other_readers(tmp_path: pathlib.Path) -> None:
    pq = pytest.importorskip("pyarrow.parquet")
    tbl, target = tmp_path / "a.tbl", tmp_path / "a.parquet"
    images = [sample.raw("image") for sample in tl.open(path("datasets_5_2.parquet"))]
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
    source = tl.open(path("datasets_3_6.parquet"), fields={"caption": tl.Text()})
    assert source.convert(target) == 12
    theirs = datasets.load_dataset(
        "parquet", data_files=str(target), split="train", cache_dir=str(tmp_path / "cache")
    )
    assert theirs.features["label"].names == source.classes
    assert isinstance(theirs.features["image"], datasets.Image)
    for row, sample in zip(theirs, source, strict=True):
        assert (row["label"], row["caption"]) == (sample.label, sample.caption)
        assert np.array_equal(np.asarray(row["image"].convert("RGB")), sample.image)


def test_columns_of_arrow_files_are_named_and_data_sets_pickled() -> None:
    masks = tl.open(path("pyarrow_types.arrow"), image="mask", label="int8")
    again = pickle.loads(pickle.dumps(masks.take(5)))
    assert (len(again), list(again.labels)) == (5, [127, 126, 125, 124, 123])
    assert sha256(again[0].raw("image")) == EXPECTED["pyarrow_types.arrow"]["masks"][0]


def test_damage_of_a_stream_is_an_error_with_its_place(tmp_path: pathlib.Path) -> None:
    file = tmp_path / "a.arrow"
    data = pathlib.Path(path("datasets_5_2.arrow")).read_bytes()
    file.write_bytes(data[:-100])
    with pytest.raises(FormatError, match=r"body of a message of .* ends beyond the file") as error:
        tl.open(file)
    assert error.value.offset > 0
    file.write_bytes(data[:-8])
    with pytest.warns(UserWarning, match="the stream has no end mark"):
        assert len(tl.open(file)) == 12
