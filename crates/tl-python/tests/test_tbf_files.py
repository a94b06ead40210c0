"""Segments that are written from arrays, joined, and searched by id."""

from __future__ import annotations

import uuid

import numpy as np
import pytest
import turboloader as tl

IDS = [uuid.UUID(int=number) for number in (5, 3, 9)]
COLUMNS = {
    "id": IDS,
    "timestamp": [10, 2**64 - 1, 0],
    "context_hash": np.array([1, 2, 3], np.uint64),
    "confidence": [0.5, 0.25, 1.0],
    "outcome_status": ["success", "failure", "partial"],
    "embedding": np.arange(6, dtype=np.float64).reshape(3, 2) / 4,
    "text": ["first", None, "dritte ü"],
}
EDGES = {
    "source": [0, 2, 0],
    "target": [1, 0, 2],
    "relation": ["retry", "causal", "branch"],
    "weight": np.array([0.5, 1.5, -2.0]),
}


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("compression", ["none", "lz4", "zstd"])
@pytest.mark.parametrize("key", [None, bytes(range(32))])
def test_a_segment_has_what_was_written(tmp_path, dtype, compression, key):
    path = tmp_path / "a.tbf"
    size = tl.write_tbf(
        path, COLUMNS, edges=EDGES, dtype=dtype, compression=compression, key=key, reverse=True
    )
    assert size == path.stat().st_size
    segment = tl.TbfSegment(path, key=key)
    assert [segment.id(row) for row in range(3)] == IDS
    assert segment["timestamp"].tolist() == [10, 2**64 - 1, 0]
    assert segment["context_hash"].tolist() == [1, 2, 3]
    assert segment["confidence"].tolist() == [0.5, 0.25, 1.0]
    assert segment["outcome_status"].tolist() == [1, 2, 3]
    assert segment.vectors().tolist() == COLUMNS["embedding"].tolist()
    assert [segment.text(row) for row in range(3)] == ["first", "", "dritte ü"]
    edges = segment.edges()
    assert edges.indptr.tolist() == [0, 2, 2, 3]
    assert edges.indices.tolist() == [1, 2, 0]
    assert edges.relations.tolist() == [3, 4, 0]
    assert edges.data.tolist() == [0.5, -2.0, 1.5]
    assert segment.edges(incoming=True).indices.tolist() == [2, 0, 0]
    copy = tmp_path / "b.tbf"
    tl.write_tbf(copy, COLUMNS, edges=edges)
    assert tl.TbfSegment(copy).edges().indices.tolist() == [1, 2, 0]


def test_more_rows_than_are_handed_over_at_once(tmp_path):
    rows = 70_001
    ids = np.zeros((rows, 16), np.uint8)
    ids[:, :8] = np.arange(rows, dtype=">u8").view(np.uint8).reshape(rows, 8)
    vectors = np.arange(rows * 3, dtype=np.float32).reshape(rows, 3)
    tl.write_tbf(tmp_path / "a.tbf", {"id": ids, "embedding": vectors})
    segment = tl.TbfSegment(tmp_path / "a.tbf")
    np.testing.assert_array_equal(segment.vectors(), vectors)
    np.testing.assert_array_equal(segment["id"], ids)
    assert segment["confidence"].min() == 1.0


def test_tables_of_pyarrow(tmp_path):
    pa = pytest.importorskip("pyarrow")
    table = pa.table(
        {
            "id": [str(one) for one in IDS],
            "embedding": pa.FixedSizeListArray.from_arrays(pa.array([1.0, 2, 3, 4, 5, 6]), 2),
            "text": ["a", None, "c"],
        }
    )
    edges = pa.table({"source": [0], "target": [2]})
    tl.write_tbf(tmp_path / "a.tbf", table, edges=edges)
    segment = tl.TbfSegment(tmp_path / "a.tbf")
    assert segment.vectors().tolist() == [[1, 2], [3, 4], [5, 6]]
    assert segment.edges().indices.tolist() == [2]
    assert segment.text(2) == "c"


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({}, "columns has no id"),
        ({"id": ["x"]}, "id of row 0 is 'x', expected a UUID"),
        ({"id": IDS, "label": [1, 2, 3]}, "columns has 'label'"),
        ({"id": IDS, "timestamp": [1]}, r"timestamp has shape \(1,\), expected \(3,\)"),
        (
            {"id": IDS, "timestamp": [1, -2, 3]},
            "timestamp has -2, expected 0 to 18446",
        ),
        ({"id": IDS, "outcome_status": ["success", "x", "x"]}, "outcome_status has 'x'"),
        ({"id": IDS, "embedding": np.zeros((2, 4))}, r"embedding has shape \(2, 4\)"),
        ({"id": IDS, "text": ["a", 1, "b"]}, "text of row 1 is 1"),
        ({"id": IDS, "confidence": [0.0, 1e300, 0.0]}, "confidence has a number that a float"),
    ],
)
def test_wrong_columns_are_named_and_no_file_is_left(tmp_path, columns, message):
    with pytest.raises(tl.SettingError, match=message):
        tl.write_tbf(tmp_path / "a.tbf", columns)
    assert list(tmp_path.iterdir()) == []


def test_what_is_no_segment_leaves_no_file(tmp_path):
    path = tmp_path / "a.tbf"
    with pytest.raises(tl.FormatError, match="nodes 0 and 1 have the same id"):
        tl.write_tbf(path, {"id": [IDS[0], IDS[0]]})
    with pytest.raises(tl.FormatError, match="edge 0 leads from node 0 to 3 of 3"):
        tl.write_tbf(path, COLUMNS, edges={"source": [0], "target": [3]})
    with pytest.raises(tl.FormatError, match="component 1 of node 0"):
        tl.write_tbf(path, {"id": IDS[:1], "embedding": [[0.0, 70_000.0]]}, dtype="float16")
    assert list(tmp_path.iterdir()) == []
    tl.write_tbf(path, COLUMNS)
    with pytest.raises(tl.StorageError, match="exists already"):
        tl.write_tbf(path, COLUMNS)
    tl.write_tbf(path, COLUMNS, overwrite=True)


def test_a_folder_of_segments_is_one_data_set(tmp_path):
    ids = [uuid.UUID(int=number) for number in range(6)]
    for number in range(3):
        some = ids[2 * number : 2 * number + 2]
        vectors = np.full((2, 4), number, np.float32)
        tl.write_tbf(tmp_path / f"{number}.tbf", {"id": some, "embedding": vectors})
    assert len(tl.open(tmp_path)) == 6
    with tl.DataLoader(tmp_path, batch_size=6, columns=["embedding"]) as loader:
        batch = next(iter(loader))
        assert batch["embedding"].numpy()[:, 0].tolist() == [0, 0, 1, 1, 2, 2]
    found = tl.find_tbf(tmp_path, ids[3])
    assert (found.path, found.segment, found.row) == (str(tmp_path / "1.tbf"), 1, 1)
    assert tl.find_tbf(tmp_path, uuid.UUID(int=77)) is None
    # The newest node of an id counts.
    tl.write_tbf(tmp_path / "3.tbf", {"id": [ids[3]], "embedding": np.zeros((1, 4))})
    assert tl.find_tbf([tmp_path], str(ids[3])).segment == 3
    (tmp_path / "empty").mkdir()
    with pytest.raises(tl.SettingError, match="no TBF segments"):
        tl.find_tbf(tmp_path / "empty", ids[0])
