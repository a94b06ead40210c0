"""Metadata of TBL files: written, read, and kept by every copy."""

from __future__ import annotations

import json
import os
import pathlib
import struct
import subprocess
import sys
import zlib

import pytest
import turboloader as tl
from conftest import bmp, image

TESTDATA = pathlib.Path(__file__).parents[3] / "testdata"

OF_SAMPLE = b'{"label": "cat", "extra": {"camera": "x"}}'
OF_FILE = b'{"license": "CC0"}'


def described(path: pathlib.Path) -> pathlib.Path:
    """A file with metadata of three types."""
    with tl.TblWriter(path, sync=False) as writer:
        for index in range(3):
            writer.add_sample(bmp(image(index)), key=f"{index}.bmp")
        writer.add_metadata(1, OF_SAMPLE)
        writer.add_metadata(0, bytearray(b"\x08\x96\x01"), "protobuf")
        writer.add_metadata(1, memoryview(b"\x81\xa1a\x01"), kind="msgpack")
        writer.add_metadata(None, OF_FILE.decode())
    return path


def test_metadata_is_read_as_it_was_written(tmp_path):
    reader = tl.TblReader(described(tmp_path / "a.tbl"))
    assert reader.metadata() == [("json", OF_FILE)]
    assert reader.metadata(0) == [("protobuf", b"\x08\x96\x01"), ("json", b'{"key":"0.bmp"}')]
    assert reader.metadata(1)[:2] == [("json", OF_SAMPLE), ("msgpack", b"\x81\xa1a\x01")]
    assert [json.loads(data) for _, data in reader.metadata(index=2)] == [{"key": "2.bmp"}]
    assert [reader.entry(index)["key"] for index in range(3)] == ["0.bmp", "1.bmp", "2.bmp"]
    with pytest.raises(tl.SampleIndexError):
        reader.metadata(3)


def test_metadata_that_cannot_be_stored_is_refused(tmp_path):
    with tl.TblWriter(tmp_path / "a.tbl", sync=False) as writer:
        with pytest.raises(IndexError, match=r"sample 0.*below 0"):
            writer.add_metadata(0, "{}")
        writer.add_sample(b"bytes")
        with pytest.raises(tl.SettingError, match="kind is yaml, expected json, protobuf"):
            writer.add_metadata(0, "a: 1", "yaml")
        with pytest.raises(tl.FormatError, match="must not start with TBLX"):
            writer.add_metadata(None, b"TBLX", "custom")
        with pytest.raises(TypeError):
            writer.add_metadata(0, {"camera": "x"})
    assert tl.TblReader(tmp_path / "a.tbl").metadata(0) == []


def test_copies_keep_metadata_or_warn(tmp_path):
    source = described(tmp_path / "a.tbl")
    expected = tl.TblReader(source)
    with pytest.warns(UserWarning, match="is not an integer and is not used: 1, first") as caught:
        tl.convert(source, tmp_path / "b.tbl", lz4=True, sync=False)
    assert len(caught) == 1
    copy = tl.TblReader(tmp_path / "b.tbl")
    for index in [None, 0, 1, 2]:
        assert copy.metadata(index) == expected.metadata(index)
    with pytest.warns(UserWarning) as caught:
        tl.convert(source, tmp_path / "b.tar", sync=False)
    assert len(caught) == 2 and "cannot store 4 metadata blocks" in str(caught[1].message)
    assert tl.TblReader(tmp_path / "b.tar").metadata(0) == []


def test_fields_of_a_version_1_header_are_metadata(tmp_path):
    path = tmp_path / "a.tbl"
    header = struct.pack("<4sIQQII", b"TBL\1", 1, 1, 1_700_000_000_123, 3, 16)
    path.write_bytes(header + struct.pack("<QIB3x", 48, 5, 0) + b"bytes")
    fields = {"creation_timestamp": 1_700_000_000_123, "dataset_version": 3, "custom_flags": 16}
    tl.convert(path, tmp_path / "b.tbl", sync=False)
    tl.convert(tmp_path / "b.tbl", tmp_path / "c.tbl", to="tbl1", sync=False)
    for name in ["a.tbl", "b.tbl", "c.tbl"]:
        [(kind, data)] = tl.TblReader(tmp_path / name).metadata()
        assert (kind, json.loads(data)) == ("json", fields)
    assert (tmp_path / "c.tbl").read_bytes() == path.read_bytes()


def test_a_changed_width_is_found_without_decoding(tmp_path):
    with tl.TblWriter(tmp_path / "a.tbl", sync=False) as writer:
        writer.add_sample(bmp(image(0)))
    whole = (tmp_path / "a.tbl").read_bytes()
    # As in the original's files: without the blocks that have checksums of the index.
    header = bytearray(whole[:64])
    header[24:40] = bytes(16)
    header[40:44] = struct.pack("<I", 4)
    header[44:48] = bytes(4)
    header[44:48] = struct.pack("<I", zlib.crc32(header))
    plain = bytearray(bytes(header) + whole[64:])
    (tmp_path / "plain.tbl").write_bytes(plain)
    assert tl.verify(tmp_path / "plain.tbl")["is_good"]
    plain[64 + 16] ^= 1
    (tmp_path / "changed.tbl").write_bytes(plain)
    found = tl.verify(tmp_path / "changed.tbl")
    assert not found["is_good"]
    assert "the index says 11x6 pixels, the image has 10x6" in found["bad"][0][2]


def test_an_encrypted_segment_is_not_called_good():
    found = tl.verify(TESTDATA / "tbf" / "encrypted.tbf")
    assert (found["damage"], found["is_good"]) == ([], False)
    assert "node region" in found["not_verified"]
    assert tl.verify(TESTDATA / "tbf" / "lz4.tbf")["not_verified"] == []


def test_metadata_of_the_original_survives():
    """With TURBOLOADER_ORIGINAL, a Python that has turboloader 2.39.0."""
    original = os.environ.get("TURBOLOADER_ORIGINAL")
    if original is None:
        pytest.skip("TURBOLOADER_ORIGINAL is not set")
    script = TESTDATA / "tools" / "original_metadata.py"
    run = subprocess.run([original, str(script), sys.executable, "-m", "turboloader"])
    assert run.returncode == 0
