from __future__ import annotations

import datetime
import gc
import uuid

import numpy as np
import pytest
import turboloader as tl
from stored import TESTDATA, ring, write_segment

COUNT, DIM = 20, 5
VECTORS = (np.arange(COUNT * DIM, dtype=np.float32).reshape(COUNT, DIM) * 7 % 17 - 8) / 4


@pytest.fixture(scope="module")
def paths(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tbf")
    integers = {"int8": np.round(VECTORS * 4)}
    return {
        dtype: write_segment(
            folder / f"{dtype}.tbf", integers.get(dtype, VECTORS), ring(COUNT), dtype
        )
        for dtype in ("float32", "float16", "bfloat16", "int8")
    }


@pytest.fixture
def segment(paths):
    return tl.TbfSegment(paths["float32"])


def test_columns_lie_in_the_mapped_file(segment):
    assert (len(segment), segment.dim, segment.dtype, segment.edge_count) == (20, 5, "float32", 40)
    expected = {
        "timestamp": [1000 - 3 * i for i in range(COUNT)],
        "context_hash": [7 * i for i in range(COUNT)],
        "confidence": [i / 8 for i in range(COUNT)],
        "outcome_status": [i % 4 for i in range(COUNT)],
        "id": [[i] * 16 for i in range(COUNT)],
    }
    for name, values in expected.items():
        array = segment[name]
        assert array.tolist() == values
        assert not array.flags.writeable
        again = segment.column(name)
        assert again.__array_interface__["data"] == array.__array_interface__["data"]
    assert segment.times[0] == np.datetime64(1000, "ns")
    assert segment.id(3) == uuid.UUID(bytes=bytes([3] * 16))
    with pytest.raises(tl.SettingError, match="no column weight; the columns are id, timestamp"):
        segment["weight"]


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_vectors_are_a_view_of_the_mapping(paths, dtype):
    segment = tl.TbfSegment(paths[dtype])
    tensor = segment.embeddings
    array = tensor.numpy()
    assert (tensor.shape, tensor.dtype, tensor.nbytes) == ((COUNT, DIM), dtype, array.nbytes)
    assert array.strides == (64, np.dtype(dtype).itemsize)
    np.testing.assert_array_equal(array, VECTORS)
    assert array.__array_interface__["data"][0] == tensor.data_ptr()
    assert not array.flags.writeable
    np.testing.assert_array_equal(np.from_dlpack(tensor), VECTORS)
    assert np.from_dlpack(tensor).__array_interface__["data"][0] == tensor.data_ptr()
    np.testing.assert_array_equal(np.from_dlpack(tensor, copy=True), VECTORS)
    np.testing.assert_array_equal(tensor[3].numpy(), VECTORS[3])
    np.testing.assert_array_equal(tensor[2:4], VECTORS[2:4])
    del segment, tensor
    gc.collect()
    paths_gone = array.copy()
    np.testing.assert_array_equal(array, paths_gone)


def test_vectors_of_a_cache_lines_length_have_no_stride(tmp_path):
    vectors = np.arange(32, dtype=np.float32).reshape(2, 16)
    segment = tl.TbfSegment(write_segment(tmp_path / "a.tbf", vectors, [[], []]))
    array = segment.embeddings.numpy()
    assert array.flags.c_contiguous
    np.testing.assert_array_equal(array, vectors)
    (tmp_path / "a.tbf").unlink()
    del segment
    gc.collect()
    np.testing.assert_array_equal(array, vectors)


def test_codes_have_scales(paths):
    segment = tl.TbfSegment(paths["int8"])
    codes = segment.embeddings.numpy()
    assert (codes.dtype, codes.strides) == (np.int8, (64, 1))
    np.testing.assert_array_equal(codes, VECTORS * 4)
    scales, zero_points = segment.quantization
    assert (scales.tolist(), zero_points.tolist()) == ([0.5] * COUNT, [1.0] * COUNT)
    np.testing.assert_array_equal(segment.vectors(), 0.5 * (VECTORS * 4 - 1))
    with pytest.raises(tl.SettingError, match="float32, which have no scales"):
        tl.TbfSegment(paths["float32"]).quantization  # noqa: B018


def test_bfloat16_comes_by_dlpack(paths):
    segment = tl.TbfSegment(paths["bfloat16"])
    np.testing.assert_array_equal(segment.vectors(), VECTORS)
    torch = pytest.importorskip("torch")
    tensor = segment.embeddings
    shared = tensor.torch()
    assert (shared.dtype, shared.data_ptr()) == (torch.bfloat16, tensor.data_ptr())
    np.testing.assert_array_equal(shared.float().numpy(), VECTORS)


def test_edges_are_compressed_rows(segment):
    edges = segment.edges()
    assert edges.indptr.tolist() == list(range(0, 2 * COUNT + 1, 2))
    assert edges.indices[:4].tolist() == [1, 2, 2, 3]
    assert edges.data[:4].tolist() == [0.25, 0.5, 1.25, 1.5]
    assert edges.relations[:4].tolist() == [0, 0, 1, 0]
    assert edges.indptr.dtype == edges.indices.dtype == np.int32
    with pytest.raises(tl.SettingError, match=r"float32\.tbf: no reverse index"):
        segment.edges(incoming=True)
    sparse = pytest.importorskip("scipy.sparse")
    matrix = edges.to_scipy()
    assert isinstance(matrix, sparse.csr_array)
    for ours, theirs in zip(edges, (matrix.indptr, matrix.indices, matrix.data), strict=False):
        assert np.shares_memory(ours, theirs)
    assert matrix[19, 0] == 19.25


def test_nodes_are_found(segment):
    id = bytes([7] * 16)
    for given in (id, uuid.UUID(bytes=id), str(uuid.UUID(bytes=id))):
        assert segment.find(given) == 7
    assert segment.find(bytes(15) + b"x") is None
    # In the order of their timestamps, which fall.
    assert segment.find_time(990, 997).tolist() == [3, 2]
    assert segment.find_time(end=950).tolist() == [19, 18, 17]
    assert segment.find_time(np.datetime64(1000, "ns")).tolist() == [0]
    utc = datetime.datetime(1970, 1, 1, 1, tzinfo=datetime.timezone(datetime.timedelta(hours=1)))
    assert segment.find_time(utc).tolist() == list(range(COUNT))[::-1]


def test_every_time_is_before_or_after(segment):
    everything = list(range(COUNT))[::-1]
    for late in (
        datetime.datetime(2100, 1, 1),
        datetime.datetime(2600, 1, 1),
        datetime.datetime(9999, 12, 31, 23, 59, 59, 999_999),
        np.datetime64("2300-01-01"),
        np.datetime64(30_000, "Y"),
        "2555-01-01",
        1 << 64,
    ):
        assert segment.find_time(0, late).tolist() == everything
        assert segment.find_time(end=late).tolist() == everything
        assert segment.find_time(late).tolist() == []
    for early in (datetime.datetime(1, 1, 1), "1969-12-31T23:59:59.999999999", -5):
        assert segment.find_time(early).tolist() == everything
        assert segment.find_time(early, 0).tolist() == []
        assert segment.find_time(0, early).tolist() == []
    nanosecond = np.datetime64("1970-01-01T00:00:00.000000991")
    assert segment.find_time(nanosecond, "1970-01-01T00:00:00.000001").tolist() == [3, 2, 1]
    with pytest.raises(tl.SettingError, match="invalid time"):
        segment.find_time(np.datetime64("NaT", "ns"))


@pytest.mark.parametrize("metric", ["cosine", "dot", "l2"])
def test_the_nearest_are_those_of_numpy(segment, metric):
    query = VECTORS[4]
    dots = VECTORS @ query
    scores = {
        "dot": dots,
        "cosine": dots / np.linalg.norm(VECTORS, axis=1) / np.linalg.norm(query),
        "l2": ((VECTORS - query) ** 2).sum(1),
    }[metric]
    order = np.argsort(scores if metric == "l2" else -scores, kind="stable")
    found = segment.similar(query, k=6, metric=metric)
    np.testing.assert_allclose(found.scores, scores[order[:6]], rtol=1e-6)
    by_row = segment.similar(4, k=6, metric=metric)
    assert 4 not in by_row.rows
    rest = order[order != 4][:6]
    np.testing.assert_allclose(by_row.scores, scores[rest], rtol=1e-6)
    np.testing.assert_allclose(scores[by_row.rows], by_row.scores, rtol=1e-6)


def test_what_there_is_not_is_named(segment, paths, tmp_path):
    with pytest.raises(tl.SettingError, match="expected one of cosine, dot, l2"):
        segment.similar(0, metric="l1")
    for row in (20, -1, np.int64(20)):
        with pytest.raises(tl.SampleIndexError, match=f"no row {row}: .* 20 rows"):
            segment.similar(row)
    with pytest.raises(tl.SettingError, match="a vector of 3 numbers, those of the segment have 5"):
        segment.similar([1, 2, 3])
    with pytest.raises(tl.SettingError, match="string table"):
        segment.text(0)
    cut = tmp_path / "cut.tbf"
    cut.write_bytes(paths["float32"].read_bytes()[:200])
    with pytest.raises(tl.FormatError, match=r"cut\.tbf"):
        tl.TbfSegment(cut)


# Written by `cargo run -p tbf-format --example pack_segment testdata/tbf`.
PACKED = TESTDATA / "tbf"
KEY = bytes([0x42] * 32)


@pytest.mark.parametrize("name", ["lz4", "zstd", "encrypted"])
def test_packed_segments_are_read_as_others_are(name):
    key = KEY if name == "encrypted" else None
    segment = tl.TbfSegment(PACKED / f"{name}.tbf", key=key)
    rows = np.arange(COUNT)
    np.testing.assert_array_equal(segment["timestamp"], 1000 - 3 * rows)
    np.testing.assert_array_equal(segment["confidence"], rows / 8)
    vectors = rows[:, None] + np.arange(DIM) / 8
    np.testing.assert_array_equal(segment.embeddings.numpy(), vectors)
    assert segment.text(17) == "node 17"
    assert (segment.find(bytes([7] * 16)), segment.find_time(990, 997).tolist()) == (7, [3, 2])
    assert segment.similar(4, k=1, metric="l2").rows.tolist() in ([3], [5])
    outgoing = [edge for row in ring(COUNT) for edge in row]
    edges = segment.edges()
    parts = (part.tolist() for part in (edges.indices, edges.relations, edges.data))
    assert list(zip(*parts, strict=True)) == outgoing
    # By target: the edges of node i come from i - 2 and i - 1.
    incoming = segment.edges(incoming=True)
    assert incoming.indptr.tolist() == list(range(0, 2 * COUNT + 1, 2))
    for row in rows:
        sources = incoming.indices[2 * row : 2 * row + 2].tolist()
        assert sorted(sources) == sorted([(row - 1) % COUNT, (row - 2) % COUNT])
    # Encrypted regions cannot be verified without the key.
    assert tl.verify(PACKED / f"{name}.tbf")["is_good"] == (key is None)


def test_a_segment_is_encrypted_for_others():
    path = PACKED / "encrypted.tbf"
    with pytest.raises(tl.LoaderError, match=r"encrypted\.tbf: .*key"):
        tl.TbfSegment(path)
    with pytest.raises(tl.FormatError, match=r"encrypted\.tbf"):
        tl.TbfSegment(path, key=bytes(32))


def test_verify_looks_at_every_region(paths, tmp_path):
    found = tl.verify(paths["float32"])
    assert (found["samples"], found["is_good"], found["damage"]) == (COUNT, True, [])
    stored = bytearray(paths["float32"].read_bytes())
    # A target that is not there, in the last edge.
    stored[-12:-8] = b"\xff\xff\0\0"
    (tmp_path / "bad.tbf").write_bytes(stored)
    found = tl.verify(tmp_path / "bad.tbf")
    assert not found["is_good"]
    assert "65535" in found["damage"][0]


@pytest.mark.parametrize(
    ("place", "stored", "message"),
    [
        # The second row pointer, below and past what there are, and the first edge's target.
        (8, (2**64 - 1).to_bytes(8, "little"), "of row 0: the segment has 40 edges"),
        (8, (41).to_bytes(8, "little"), "invalid edge range 0..41 of row 0"),
        (16, (1).to_bytes(8, "little"), "invalid edge range 2..1 of row 1"),
        (0, (1).to_bytes(8, "little"), "of row 0: the segment has 40 edges"),
        (8 * (COUNT + 1), COUNT.to_bytes(4, "little"), "edge 0 leads to node 20 of 20"),
        (8 * (COUNT + 1), (2**30).to_bytes(4, "little"), "edge 0 leads to node 1073741824 of 20"),
    ],
)
def test_damaged_edges_are_refused(paths, tmp_path, place, stored, message):
    data = bytearray(paths["float32"].read_bytes())
    start = int(np.frombuffer(data, "<u8", 7, 48)[2]) + place
    data[start : start + len(stored)] = stored
    damaged = tmp_path / "damaged.tbf"
    damaged.write_bytes(data)
    segment = tl.TbfSegment(damaged)
    with pytest.raises(tl.FormatError, match=message) as raised:
        segment.edges()
    assert raised.value.shard == str(damaged)


@pytest.mark.parametrize("row", [-1, COUNT, 2**70])
def test_rows_that_are_not_there_have_nothing_near(segment, row):
    with pytest.raises(tl.SampleIndexError, match=f"row {row}"):
        segment.similar(row)
