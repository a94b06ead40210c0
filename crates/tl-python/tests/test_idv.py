from __future__ import annotations

import datetime
import gc
import hashlib
import json
import struct

import numpy as np
import pytest
import turboloader as tl
from stored import IDV, TESTDATA, write_table

ROWS = 100


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return write_table(tmp_path_factory.mktemp("idv") / "table.idv", ROWS)


@pytest.fixture(scope="module")
def file(path):
    return tl.IdvFile(path)


def test_the_schema_says_what_columns_are(file):
    assert len(file) == ROWS
    by_name = {column.name: column for column in file.schema}
    assert list(by_name)[:2] == ["SByte", "Byte"]
    assert by_name["unknown"].unreadable == "codec Nobody is unknown"
    assert "unknown" not in file.names
    label = by_name["Label"]
    assert (label.item, label.codec, label.key_count) == ("Key", "Key<UInt32, 3>", 3)
    dense = by_name["dense"]
    assert (dense.item, dense.dimensions, dense.compression) == ("Single", (2, 3), "none")
    assert (by_name["Double"].compression, by_name["Double"].rows_per_block) == ("DEFLATE", 16)


def test_a_file_has_its_readable_columns_by_name(file):
    assert list(file) == file.names
    assert ("Single" in file, "unknown" in file, "absent" in file) == (True, False, False)
    np.testing.assert_array_equal(file[np.int64(1)], file[1])


def test_columns_are_arrays_of_what_is_stored(file):
    rows = np.arange(ROWS)
    expected = {codec.name: rows % 100 for codec in IDV["NUMBERS"]}
    expected |= {"Single": rows / 4, "Double": rows / 8, "flag": rows % 2 == 1, "maybe": rows % 3}
    expected |= {"Label": rows % 4}
    for name, values in expected.items():
        array = file[name]
        np.testing.assert_array_equal(array, values, err_msg=name)
        np.testing.assert_array_equal(file.column(name, 17, 40), values[17:40])
    assert (file["flag"].dtype, file["Label"].dtype) == (np.bool_, np.uint32)
    texts = [None if value % 7 == 3 else f"text {value}" for value in range(ROWS)]
    assert file["text"].tolist() == texts
    dense = rows[:, None] + np.arange(6) / 8
    np.testing.assert_array_equal(file["dense"], dense.reshape(-1, 2, 3))
    sparse = np.where(np.arange(50) == rows[:, None] % 50, rows[:, None] + 1, 0)
    np.testing.assert_array_equal(file["sparse"], sparse)
    np.testing.assert_array_equal(file.column("sparse", 20, 22), sparse[20:22])


def test_numbers_in_one_piece_are_not_copied(tmp_path):
    columns = [
        ("a", IDV["DOUBLE"], IDV["NONE"], 10, [i / 3 for i in range(40)], []),
        (
            "b",
            IDV["Vector"](IDV["DOUBLE"], [3]),
            IDV["NONE"],
            40,
            [(3, None, [i, 2, 3]) for i in range(40)],
            [],
        ),
    ]
    IDV["make"](tmp_path / "a.idv", columns, 40)
    file = tl.IdvFile(tmp_path / "a.idv")
    native = file._native
    lent = native.lend(0)
    assert lent is not None
    array = file["a"]
    assert array.__array_interface__["data"][0] == lent.data_ptr()
    assert not array.flags.writeable
    assert array.tolist() == [i / 3 for i in range(40)]
    assert file["b"].tolist() == [[i, 2, 3] for i in range(40)]
    del file, native, lent
    gc.collect()
    # The file may go, the mapping stays.
    (tmp_path / "a.idv").unlink()
    assert array.tolist() == [i / 3 for i in range(40)]
    assert tl.IdvFile(TESTDATA / "idv" / "types.idv")._native.lend(1) is None


def test_metadata_names_slots_and_keys(file):
    assert file.key_values("Label").tolist() == ["cat", "dog", "emu"]
    assert file.slot_names("dense") == list("abcdef")
    assert file.slot_names("sparse") is None
    assert file.metadata("Single") == {}


def test_sparse_rows_are_compressed(file):
    rows = file.sparse("sparse")
    assert rows.shape == (ROWS, 50)
    assert rows.indices.tolist() == [row % 50 for row in range(ROWS)]
    assert rows.indptr.tolist() == list(range(ROWS + 1))
    assert rows.data.tolist() == [row + 1 for row in range(ROWS)]
    whole = file.sparse("dense")
    assert whole.shape == (ROWS, 6)
    assert whole.data.tolist()[6:8] == [1.0, 1.125]
    with pytest.raises(tl.SettingError, match="does not hold vectors"):
        file.sparse("Label")
    scipy = pytest.importorskip("scipy.sparse")
    matrix = scipy.csr_array((rows.data, rows.indices, rows.indptr), shape=rows.shape)
    np.testing.assert_array_equal(matrix.toarray(), file["sparse"])


def sha256_of(array, item):
    """The hash that testdata/idv has for the values of numbers."""
    return hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()


@pytest.mark.parametrize("name", ["numbers", "blocks", "types", "legacy", "no_rows", "no_columns"])
def test_numbers_of_stored_files_have_their_hashes(name):
    path = TESTDATA / "idv" / f"{name}.idv"
    file = tl.IdvFile(path)
    expected = json.loads(path.with_suffix(".idv.json").read_text())
    assert len(file) == expected["row_count"]
    seen = 0
    for place, column in enumerate(expected["columns"]):
        plain = {"SByte", "Byte", "Int16", "UInt16", "Int32", "UInt32", "Int64", "UInt64"}
        plain |= {"Single", "Double", "Boolean", "DataViewRowId", "Key2"}
        if column["codec"] in plain and "column_sha256" in column:
            assert sha256_of(file.column(place), column["type"]) == column["column_sha256"]
            seen += 1
        elif column["codec"] == "TextSpan":
            lines = b""
            for text in file.column(place):
                raw = b"" if text is None else text.encode()
                lines += b"\xff" * 4 if text is None else struct.pack("<I", len(raw)) + raw
            assert hashlib.sha256(lines).hexdigest() == column["column_sha256"]
            seen += 1
    assert seen > 0 or name in ("no_rows", "no_columns")


def test_times_are_those_of_numpy(tmp_path):
    noon = 638_000_000_000_000_000
    moment = np.datetime64("0001-01-01T00:00:00", "us") + np.timedelta64(noon // 10, "us")
    none = IDV["NONE"]
    missing = IDV["MISSING_TICKS"]
    columns = [
        ("span", IDV["TIME_SPAN"], none, 2, [missing, 15], []),
        ("time", IDV["DATE_TIME"], none, 2, [missing, noon + 1], []),
        ("offset", IDV["OffsetTime"](), none, 2, [(60, noon), (-90, noon)], []),
        ("times", IDV["Vector"](IDV["DATE_TIME"], [2]), none, 2, [(2, None, [noon, 0])] * 2, []),
        ("id", IDV["RowId"](), none, 2, [(1, 2), (2**64 - 1, 4)], []),
    ]
    IDV["make"](tmp_path / "a.idv", columns, 2)
    file = tl.IdvFile(tmp_path / "a.idv")
    assert np.isnat(file["span"]).tolist() == [True, False]
    assert file["span"][1] == np.timedelta64(1500, "ns")
    assert np.isnat(file["time"]).tolist() == [True, False]
    assert file["time"][1] - moment == np.timedelta64(100, "ns")
    utc = [moment - np.timedelta64(60, "m"), moment + np.timedelta64(90, "m")]
    assert (file["offset"] == utc).all()
    assert (file["times"] == [[moment, np.datetime64("0001-01-01")]] * 2).all()
    assert file["id"].tolist() == [[1, 2], [2**64 - 1, 4]]
    if _has("pandas"):
        frame = file.to_pandas()
        python = datetime.datetime(1, 1, 1) + datetime.timedelta(microseconds=noon // 10)
        assert frame["time"][1].to_pydatetime() == python
        assert frame["time"].isna().tolist() == [True, False]


def _has(module):
    import importlib.util

    return importlib.util.find_spec(module) is not None


def test_vectors_of_their_own_lengths_are_arrays(tmp_path):
    vectors = [(2, None, [1, 2]), (0, None, []), (4, [1, 3], [5, 6])]
    columns = [("v", IDV["Vector"](IDV["INT32"], []), IDV["NONE"], 3, vectors, [])]
    IDV["make"](tmp_path / "a.idv", columns, 3)
    file = tl.IdvFile(tmp_path / "a.idv")
    assert [vector.tolist() for vector in file["v"]] == [[1, 2], [], [0, 5, 0, 6]]
    rows = file.sparse("v")
    assert (rows.indptr.tolist(), rows.shape) == ([0, 2, 2, 4], (3, 4))


def test_pandas_has_categories_and_missing_values(file):
    pd = pytest.importorskip("pandas")
    frame = file.to_pandas()
    assert list(frame) == file.names
    labels = frame["Label"]
    assert labels.cat.categories.tolist() == ["cat", "dog", "emu"]
    assert labels[:5].tolist()[1:4] == ["cat", "dog", "emu"]
    assert labels[:5].isna().tolist() == [True, False, False, False, True]
    assert frame["maybe"].dtype == "boolean"
    assert frame["maybe"][:3].isna().tolist() == [False, False, True]
    assert frame["text"][:5].isna().tolist() == [False, False, False, True, False]
    assert frame["dense"][1].shape == (2, 3)
    assert file.to_pandas(["Byte"])["Byte"].equals(
        pd.Series(range(ROWS), dtype="uint8", name="Byte")
    )


def test_arrow_takes_the_capsules(file, path):
    pa = pytest.importorskip("pyarrow")
    table = pa.table(file)
    assert table.column_names == file.names
    assert table.num_rows == ROWS
    assert table["Single"].to_pylist() == [row / 4 for row in range(ROWS)]
    assert table["Label"].to_pylist()[:5] == [None, "cat", "dog", "emu", None]
    assert table["maybe"].to_pylist()[:3] == [False, True, None]
    assert table["text"].to_pylist() == file["text"].tolist()
    assert table["sparse"].to_pylist()[3] == file["sparse"][3].tolist()
    assert pa.schema(file) == table.schema
    again = pa.table(tl.IdvFile(path))
    gc.collect()
    assert again.equals(table)
    # A capsule that nobody takes is freed.
    assert "arrow_array_stream" in repr(file.__arrow_c_stream__())


def test_keys_without_names_are_numbers(tmp_path):
    pytest.importorskip("pandas")
    key = IDV["Key"](IDV["UINT32"], 2**32 - 1)
    IDV["make"](tmp_path / "a.idv", [("k", key, IDV["NONE"], 3, [0, 1, 2**32 - 1], [])], 3)
    series = tl.IdvFile(tmp_path / "a.idv").to_pandas()["k"]
    assert series.isna().tolist() == [True, False, False]
    assert series[1:].tolist() == [0, 2**32 - 2]


def test_arrow_has_the_unit_that_is_asked_for(tmp_path):
    pa = pytest.importorskip("pyarrow")
    columns = [("span", IDV["TIME_SPAN"], IDV["NONE"], 2, [10, 15], [])]
    IDV["make"](tmp_path / "a.idv", columns, 2)
    table = pa.table(tl.IdvFile(tmp_path / "a.idv", time_unit="ns"))
    assert table["span"].cast("int64").to_pylist() == [1000, 1500]
    with pytest.raises(pa.ArrowInvalid, match="15 ticks of 100 ns at 1"):
        pa.table(tl.IdvFile(tmp_path / "a.idv"))
    with pytest.raises(tl.SettingError, match="time_unit is s, expected us or ns"):
        tl.IdvFile(tmp_path / "a.idv", time_unit="s")


def test_polars_takes_the_capsules(file):
    pl = pytest.importorskip("polars")
    frame = pl.DataFrame(file)
    assert frame["Int32"].to_list() == list(range(ROWS))


def test_errors_name_the_file_and_the_column(path, tmp_path):
    file = tl.IdvFile(path)
    with pytest.raises(tl.SettingError, match="no column 'nothing'; its columns are 'SByte'"):
        file["nothing"]
    with pytest.raises(tl.SettingError, match="codec Nobody is unknown"):
        file["unknown"]
    with pytest.raises(tl.StorageError) as raised:
        tl.IdvFile(tmp_path / "missing.idv")
    assert raised.value.errno == 2
    (tmp_path / "cut.idv").write_bytes(path.read_bytes()[:300])
    with pytest.raises(tl.FormatError, match=r"cut.idv"):
        tl.IdvFile(tmp_path / "cut.idv")


def test_verify_reads_every_block(path, tmp_path):
    found = tl.verify(path)
    assert (found["samples"], found["is_good"], found["damage"]) == (ROWS, True, [])
    assert "codec Nobody is unknown" in found["oddities"][0]
    described = json.loads(path.with_suffix(".idv.json").read_text())
    place = next(c["lookup_offset"] for c in described["columns"] if c["name"] == "Double")
    stored = bytearray(path.read_bytes())
    offset, size = struct.unpack_from("<qi", stored, place)
    stored[offset : offset + size] = bytes(size)
    (tmp_path / "bad.idv").write_bytes(stored)
    found = tl.verify(tmp_path / "bad.idv")
    assert not found["is_good"]
    assert len(found["damage"]) == 1
    assert "Double" in found["damage"][0]
    with pytest.raises(tl.FormatError, match="block 0"):
        tl.IdvFile(tmp_path / "bad.idv")["Double"]


def test_tables_are_converted(tmp_path):
    (tmp_path / "a.csv").write_text("age,city\n31,Rome\n,Oslo\n7,Rome\n")
    told = []
    rows = tl.convert(
        tmp_path / "a.csv",
        tmp_path / "a.idv",
        schema={"age": "single", "city": "key"},
        progress_callback=lambda *now: told.append(now),
    )
    # It is read twice: categories are numbered first.
    size = (tmp_path / "a.csv").stat().st_size
    assert (rows, told) == (3, [(2 * size, 2 * size)])
    file = tl.IdvFile(tmp_path / "a.idv")
    np.testing.assert_array_equal(file["age"], np.float32([31, np.nan, 7]))
    assert file["city"].tolist() == [1, 2, 1]
    assert file.key_values("city").tolist() == ["Rome", "Oslo"]
    assert tl.convert(tmp_path / "a.idv", tmp_path / "b.csv", columns=["city"]) == 3
    assert (tmp_path / "b.csv").read_text() == "city\nRome\nOslo\nRome\n"
    assert tl.convert(tmp_path / "a.idv", tmp_path / "a.parquet") == 3
    assert tl.convert(tmp_path / "a.parquet", tmp_path / "c.idv") == 3
    np.testing.assert_array_equal(tl.IdvFile(tmp_path / "c.idv")["age"], file["age"])
    with pytest.raises(tl.StorageError) as raised:
        tl.convert(tmp_path / "a.csv", tmp_path / "a.idv")
    assert raised.value.errno == 17
    with pytest.raises(tl.SettingError, match="only one table"):
        tl.convert([tmp_path / "a.csv"] * 2, tmp_path / "d.idv")
    with pytest.raises(tl.SettingError, match="a table converts only to"):
        tl.convert(tmp_path / "a.idv", tmp_path / "d.tbl")
    with pytest.raises(tl.StorageError) as raised:
        tl.convert(tmp_path / "none.csv", tmp_path / "d.idv")
    assert raised.value.errno == 2
    (tmp_path / "bad.csv").write_text("age\nold\n")
    with pytest.raises(tl.FormatError, match="row 0: invalid value `old`"):
        tl.convert(tmp_path / "bad.csv", tmp_path / "d.idv", schema={"age": "int32"})
    with pytest.raises(ZeroDivisionError):
        tl.convert(tmp_path / "a.idv", tmp_path / "d.idv", progress_callback=lambda *_: 1 / 0)
    assert not (tmp_path / "d.idv").exists()


def test_damaged_tables_are_format_errors(tmp_path):
    """Some damage makes the decoder of Parquet files panic, which is such an error as well."""
    (tmp_path / "a.csv").write_text("n,t,c\n1,a,x\n2,b,\n,b,y\n")
    tl.convert(tmp_path / "a.csv", tmp_path / "a.idv", schema={"c": "key"})
    tl.convert(tmp_path / "a.idv", tmp_path / "a.parquet")
    data = (tmp_path / "a.parquet").read_bytes()
    panics = 0
    for place in range(4, len(data)):
        damaged = bytearray(data)
        damaged[place] ^= 1 << (place % 8)
        (tmp_path / "b.parquet").write_bytes(damaged)
        try:
            tl.convert(tmp_path / "b.parquet", tmp_path / "b.idv", overwrite=True, sync=False)
        except (tl.FormatError, tl.SettingError) as error:
            assert "b.parquet: " in str(error)
            if "the Parquet decoder panicked" in str(error):
                assert isinstance(error, tl.FormatError)
                panics += 1
    assert panics > 0
    (tmp_path / "cut.csv").write_text('a,b\n1,"x\n2,y\n')
    with pytest.raises(tl.FormatError, match="line 2, byte 6: the quote that opens this cell"):
        tl.convert(tmp_path / "cut.csv", tmp_path / "c.idv")


def test_a_wrong_schema_is_called_what_it_is(tmp_path):
    (tmp_path / "a.csv").write_text("age\n1\n")
    with pytest.raises(tl.SettingError, match=r'schema: column "age": unknown type') as raised:
        tl.convert(tmp_path / "a.csv", tmp_path / "a.idv", schema={"age": "nothing"})
    assert "--" not in str(raised.value)
