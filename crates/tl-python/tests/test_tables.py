from __future__ import annotations

import pickle

import numpy as np
import pytest
import turboloader as tl
from stored import ring, write_segment, write_table

ROWS = 100
DTYPES = {
    "SByte": "int8",
    "Byte": "uint8",
    "Int16": "int16",
    "UInt16": "uint16",
    "Int32": "int32",
    "UInt32": "uint32",
    "Int64": "int64",
    "UInt64": "uint64",
    "Single": "float32",
    "Double": "float64",
    "flag": "bool",
    "maybe": "uint8",
    "Label": "uint32",
}


@pytest.fixture(scope="session")
def table(tmp_path_factory):
    return write_table(tmp_path_factory.mktemp("idv") / "table.idv", ROWS)


def vectors(count=20, dim=5):
    return np.arange(count * dim, dtype=np.float32).reshape(count, dim) % 17 - 8


@pytest.fixture(scope="session", params=["float32", "float16", "bfloat16", "int8"])
def segment(tmp_path_factory, request):
    path = tmp_path_factory.mktemp("tbf") / f"{request.param}.tbf"
    return request.param, write_segment(path, vectors(), ring(20), request.param)


def expected(name, rows):
    values = np.array(rows)
    return {
        "Single": values / 4,
        "Double": values / 8,
        "flag": values % 2,
        "maybe": values % 3,
        "Label": values % 4,
        "dense": (values[:, None] + np.arange(6) / 8).reshape(-1, 2, 3),
        "sparse": np.where(np.arange(50) == values[:, None] % 50, values[:, None] + 1, 0),
    }.get(name, values % 100)


def test_columns_of_numbers_have_their_types(table):
    loader = tl.DataLoader(table, batch_size=16)
    assert loader.recipe is None
    assert "columns" in repr(loader)
    batch = next(iter(loader))
    assert batch.keys() == [*DTYPES, "dense", "sparse", "index", "valid"]
    assert {name: batch[name].dtype for name in DTYPES} == DTYPES
    for name in [*DTYPES, "dense", "sparse"]:
        array = batch[name].numpy()
        np.testing.assert_array_equal(array, expected(name, range(16)), err_msg=name)
        assert array.__array_interface__["data"][0] == batch[name].data_ptr()
        assert batch[name].data_ptr() % 64 == 0, name
    sample = batch[3]
    assert (sample["Int16"], sample["Double"], sample["flag"]) == (3, 0.375, True)
    np.testing.assert_array_equal(sample["dense"], expected("dense", [3])[0])
    row = tl.open(table)[3]
    again = pickle.loads(pickle.dumps(row))
    assert list(again) == list(row) and again["index"] == row["index"] == 3
    np.testing.assert_array_equal(again["dense"], row["dense"])


def test_features_and_labels(table):
    loader = tl.DataLoader(
        table,
        batch_size=100,
        columns=tl.Columns(
            {"Int16": "float32", "text": None},
            features=["Single", "dense", "Label"],
            label="Label",
        ),
        shuffle=True,
        format="idv",
    )
    assert "features Single, dense, Label; label Label" in loader.explain()
    batch = next(iter(loader))
    assert batch.keys() == ["Int16", "features", "text", "label", "index", "valid"]
    rows = batch["index"].numpy()
    assert sorted(rows.tolist()) == list(range(ROWS))
    key = np.where(rows % 4 == 0, np.nan, rows % 4 - 1)
    matrix = np.column_stack([rows / 4, expected("dense", rows).reshape(-1, 6), key])
    np.testing.assert_array_equal(batch["features"].numpy(), matrix.astype(np.float32))
    np.testing.assert_array_equal(batch["label"].numpy(), rows % 4 - 1)
    assert batch["Int16"].dtype == "float32"
    texts = [None if row % 7 == 3 else f"text {row}".encode() for row in rows.tolist()]
    assert [text or None for text in batch["text"]] == texts


def test_tables_go_on_and_are_shared_like_samples(table):
    settings = {"batch_size": 8, "shuffle": True, "columns": ["Int32"], "drop_last": True}
    whole = [batch["Int32"].numpy().tolist() for batch in tl.DataLoader(table, **settings)]
    loader = tl.DataLoader(table, **settings)
    epoch = iter(loader)
    for _ in range(5):
        next(epoch)
    other = tl.DataLoader(table, num_workers=1, **settings)
    other.load_state_dict(loader.state_dict())
    assert [batch["Int32"].numpy().tolist() for batch in other] == whole[5:]
    settings["batch_size"] = 4
    ranks = [
        [batch["Int32"].numpy().tolist() for batch in part]
        for part in (tl.DataLoader(table, ranks=tl.Ranks(r, 2), **settings) for r in (0, 1))
    ]
    assert [left + right for left, right in zip(*ranks, strict=True)] == whole
    with pytest.raises(tl.StateError):
        tl.DataLoader(table, **{**settings, "columns": ["Int64"]}).load_state_dict(
            loader.state_dict()
        )


def test_several_tables_are_one(table):
    loader = tl.DataLoader([table, table], batch_size=200, columns=["Byte"])
    assert loader.num_samples == 2 * ROWS
    twice = np.tile(expected("Byte", range(ROWS)), 2)
    np.testing.assert_array_equal(next(iter(loader))["Byte"].numpy(), twice)


def test_a_graph_has_vectors_and_neighbours(segment):
    dtype, path = segment
    loader = tl.DataLoader(
        path,
        batch_size=20,
        format="tbf",
        columns=tl.Columns(neighbors=tl.Neighbors([2, 3], columns={"embedding": "float32"})),
    )
    batch = next(iter(loader))
    assert batch["embedding"].dtype == dtype
    assert batch["id"].numpy().shape == (20, 16)
    assert batch["timestamp"].numpy().tolist() == [1000 - 3 * i for i in range(20)]
    first, second = batch["neighbors_1"].numpy(), batch["neighbors_2"].numpy()
    assert first.tolist() == [[(i + 1) % 20, (i + 2) % 20] for i in range(20)]
    assert second.shape == (20, 2, 3)
    assert second[0].tolist() == [[2, 3, -1], [3, 4, -1]]
    stored = vectors() if dtype != "int8" else 0.5 * (vectors() - 1)
    of_first = batch["neighbors_1_embedding"].numpy()
    np.testing.assert_array_equal(of_first, stored[first])
    of_second = batch["neighbors_2_embedding"].numpy()
    np.testing.assert_array_equal(of_second[0, 0, 0], stored[2])
    assert not of_second[:, :, 2].any()


def test_tables_in_torch(table):
    torch = pytest.importorskip("torch")
    loader = tl.DataLoader(table, batch_size=16, output_format="torch")
    batch = next(iter(loader))
    for name, dtype in DTYPES.items():
        assert batch[name].dtype == getattr(torch, dtype), name
        tensor = tl.DataLoader(table, batch_size=16)
        tensor = next(iter(tensor))[name]
        assert tensor.torch().data_ptr() == tensor.data_ptr()


def test_what_does_not_go_together_is_named(table, data, tmp_path):
    with pytest.raises(tl.SettingError, match="transform, dtype: only supported for images"):
        tl.DataLoader(table, transform=tl.Resize(3), dtype="uint8")
    for name, value in {
        "channels_last": True,
        "decode_margin": 2.0,
        "parity": "tensor",
        "exif": True,
        "decode": False,
        "keys": True,
    }.items():
        with pytest.raises(tl.SettingError, match=f"^{name}: only supported for images"):
            tl.DataLoader(table, **{name: value})
    with pytest.raises(tl.SettingError, match="format is tbf, but the files are idv"):
        tl.DataLoader(table, format="tbf")
    assert tl.DataLoader(table, format="idv").num_samples == ROWS
    with pytest.raises(tl.SettingError, match="columns: only supported for tables"):
        tl.DataLoader(data, columns=tl.Columns(features=["x"]))
    with pytest.raises(tl.SettingError, match="columns: only supported for tables"):
        tl.DataLoader(data, columns=tl.Columns(label="x"))
    with pytest.raises(tl.SettingError, match="no column `None of them`"):
        tl.DataLoader(table, columns=["None of them"])
    with pytest.raises(tl.SettingError, match="`unknown` is not an array of numbers"):
        tl.DataLoader(table, columns=["unknown"])
    with pytest.raises(tl.SettingError, match="expected that type or f32, not u8"):
        tl.DataLoader(table, columns={"Int32": "uint8"})
    with pytest.raises(tl.SettingError, match="text holds bytes"):
        tl.DataLoader(table, columns={"text": "float32"})
    with pytest.raises(tl.SettingError, match="no edges"):
        tl.DataLoader(table, columns=tl.Columns(neighbors=[3]))
    with pytest.raises(tl.SettingError, match="direction is up, expected one of outgoing"):
        tl.Neighbors([3], direction="up")
    with pytest.raises(tl.SettingError, match="fanouts is empty"):
        tl.Neighbors([], columns=["Int32"])
    with pytest.raises(tl.SettingError, match="format is idv, but the files are tbl"):
        tl.DataLoader(data, format="idv")
    with pytest.raises(tl.SettingError, match="expected a list of names"):
        tl.DataLoader(table, columns=tl.Columns(features="Single"))


def test_own_columns_come_before_the_loaders(tmp_path):
    from stored import IDV

    columns = [("index", IDV["INT32"], IDV["NONE"], 4, [9, 8, 7, 6], [])]
    IDV["make"](tmp_path / "a.idv", columns, 4)
    batch = next(iter(tl.DataLoader(tmp_path / "a.idv")))
    assert batch.keys() == ["index", "valid"]
    assert batch["index"].numpy().tolist() == [9, 8, 7, 6]


@pytest.mark.parametrize("kind", ["idv", "tbf"])
def test_damaged_tables_are_format_errors_with_their_file(tmp_path, table, kind):
    whole = table if kind == "idv" else write_segment(tmp_path / "whole", vectors(), ring(20))
    data = whole.read_bytes()
    cut = tmp_path / f"cut.{kind}"
    for length in range(8, len(data) - 1, len(data) // 40):
        cut.write_bytes(data[:length])
        with pytest.raises(tl.FormatError, match=rf"cut\.{kind}: ") as raised:
            next(iter(tl.DataLoader(cut, batch_size=8)))
        assert raised.value.shard == str(cut)


def test_damaged_names_of_classes_are_a_note(tmp_path, table):
    assert tl.DataLoader(table, columns=tl.Columns(label="Label")).notes == []
    data = table.read_bytes()
    names = b"".join(name.encode() for name in ("cat", "dog", "emu"))
    assert data.count(names) == 1
    (tmp_path / "damaged.idv").write_bytes(data.replace(names, b"\xff" * len(names)))
    with pytest.warns(UserWarning, match="names of classes cannot be read") as caught:
        loader = tl.DataLoader(tmp_path / "damaged.idv", columns=tl.Columns(label="Label"))
    assert loader.class_names == []
    assert loader.notes == [str(caught[0].message)]
    assert next(iter(loader))["label"].tolist()[:4] == [-1, 0, 1, 2]
