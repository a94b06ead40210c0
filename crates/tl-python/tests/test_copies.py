"""Fields and compressed samples survive every copy."""

from __future__ import annotations

import gzip
import io
import json
import os
import pathlib
import random
import struct
import subprocess
import sys
import tarfile
import time

import numpy as np
import pytest
import turboloader as tl
from conftest import bmp, image

Sample = tuple[str, bytes, "int | None", "dict[str, bytes]"]

STEMS = ["0001", "a b", "ü", "x-y_z", "deep/er/1", "v1/2"]


def samples(draw: random.Random, count: int) -> list[Sample]:
    """Draw samples with odd names, some with labels and with fields."""
    made: list[Sample] = []
    for number in range(count):
        fields = {
            "json": json.dumps({"id": number, "text": "ü" * draw.randint(0, 50)}).encode(),
            "txt": b"a caption, a caption" * draw.randint(0, 9),
            "seg.png": bytes(draw.randrange(256) for _ in range(draw.randint(0, 40))),
            "npy": b"\x93NUMPY" + bytes(draw.randint(0, 300)),
        }
        chosen = {name: data for name, data in fields.items() if draw.random() < 0.6}
        key = f"{draw.choice(STEMS)}{number}.bmp"
        made.append((key, bmp(image(number)), draw.randrange(5), chosen))
    return made


def write(path: pathlib.Path, made: list[Sample], compression: str | None = None) -> None:
    with tl.TblWriter(path, sync=False, compression=compression) as writer:
        for key, data, label, fields in made:
            writer.add_sample(data, key=key, label=label, fields=fields)


def read(path: pathlib.Path) -> list[Sample]:
    """Read all samples, with the label as a number and not as a field."""
    reader = tl.TblReader(path)
    found: list[Sample] = []
    for index in range(len(reader)):
        entry = reader.entry(index)
        fields = reader.fields(index)
        fields.pop("cls", None)
        found.append((entry["key"], reader[index], entry["label"], fields))
    return found


def tl_command(*arguments: object) -> None:
    command = [sys.executable, "-m", "turboloader", *map(str, arguments)]
    subprocess.run(command, check=True, capture_output=True)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("seed", range(12))
def test_every_copy_has_the_same_samples(tmp_path, seed):
    made = samples(random.Random(seed), 20)
    compression = [None, "lz4", "zstd", "zstd:19"][seed % 4]
    write(tmp_path / "a.tbl", made, compression)
    assert read(tmp_path / "a.tbl") == made

    tl.convert(tmp_path / "a.tbl", tmp_path / "b.tar", sync=False)
    assert read(tmp_path / "b.tar") == made
    tl.convert(tmp_path / "b.tar", tmp_path / "c.tbl", compression=compression, sync=False)
    assert read(tmp_path / "c.tbl") == made
    tl.convert(tmp_path / "c.tbl", tmp_path / "d.tbl", compression="zstd", sync=False)
    assert read(tmp_path / "d.tbl") == made

    tl_command("split", tmp_path / "d.tbl", "--shards", 3, "-o", tmp_path / "parts")
    parts = sorted((tmp_path / "parts").iterdir())
    assert [sample for part in parts for sample in read(part)] == made
    tl_command("merge", *parts, "-o", tmp_path / "e.tbl")
    assert read(tmp_path / "e.tbl") == made

    tl_command("extract", tmp_path / "e.tbl", "-o", tmp_path / "files")
    tl.convert(tmp_path / "files", tmp_path / "f.tbl", sync=False)
    assert sorted(read(tmp_path / "f.tbl")) == sorted(made)


def test_fields_are_columns_of_batches(tmp_path):
    made = samples(random.Random(2), 8)
    write(tmp_path / "a.tbl", made)
    (batch,) = tl.DataLoader(
        tmp_path / "a.tbl", batch_size=8, decode=False, fields={"txt": tl.Bytes()}
    )
    assert batch["txt"] == [fields.get("txt") for _, _, _, fields in made]


def test_fields_can_be_text_and_any_bytes(tmp_path):
    fields = {"txt": "grün", "bin": bytearray(b"1"), "raw": memoryview(b"2"), "\udcff": b"3"}
    with tl.TblWriter(tmp_path / "a.tbl", sync=False) as writer:
        writer.add_sample(b"bytes", fields=fields)
        with pytest.raises(tl.FormatError, match="field extension"):
            writer.add_sample(b"bytes", fields={"a/b": b""})
        with pytest.raises(TypeError):
            writer.add_sample(b"bytes", fields={"json": {"a": 1}})
        with pytest.raises(TypeError):
            writer.add_sample(b"bytes", fields={1: b""})
    expected = {"txt": "grün".encode(), "bin": b"1", "raw": b"2", "\udcff": b"3"}
    assert tl.TblReader(tmp_path / "a.tbl").fields(0) == expected


def test_zstandard_makes_masks_smaller_and_changes_no_byte(tmp_path):
    masks = [np.repeat(image(index, 40, 40) // 128, 20, 1).tobytes() for index in range(20)]
    sizes = {}
    for compression in (None, "lz4", "zstd", "zstd:19"):
        path = tmp_path / f"{compression}.tbl"
        with tl.TblWriter(path, sync=False, compression=compression) as writer:
            for mask in masks:
                writer.add_sample(mask)
        reader = tl.TblReader(path)
        assert [reader[index] for index in range(20)] == masks
        assert tl.verify(path)["is_good"]
        sizes[compression] = path.stat().st_size
    assert sizes["zstd:19"] <= sizes["zstd"] < sizes["lz4"] < sizes[None]


@pytest.mark.parametrize("compression", ["gzip", "zstd:0", "zstd:23", "zstd:x", ""])
def test_an_unknown_compression_is_refused(tmp_path, compression):
    expected = "expected lz4, zstd, or zstd:LEVEL with a level of 1 to 22"
    with pytest.raises(tl.SettingError, match=expected):
        tl.TblWriter(tmp_path / "a.tbl", compression=compression)
    with pytest.raises(tl.SettingError, match="compression and lz4; pass only one"):
        tl.TblWriter(tmp_path / "a.tbl", compression="zstd", lz4=True)
    write(tmp_path / "b.tbl", samples(random.Random(0), 1))
    with pytest.raises(tl.SettingError, match="for to="):
        tl.convert(tmp_path / "b.tbl", tmp_path / "c.tar", compression="zstd")


def test_the_original_refuses_zstandard(tmp_path):
    """With TURBOLOADER_ORIGINAL, a Python that has turboloader 2.39.0."""
    original = os.environ.get("TURBOLOADER_ORIGINAL")
    if original is None:
        pytest.skip("TURBOLOADER_ORIGINAL is not set")
    script = "import sys, turboloader; turboloader.TblReaderV2(sys.argv[1]).read_sample(0)"
    for compression, refused in [(None, False), ("lz4", False), ("zstd", True)]:
        path = tmp_path / f"{compression}.tbl"
        with tl.TblWriter(path, sync=False, compression=compression) as writer:
            writer.add_sample(bytes(1000))
        run = subprocess.run([original, "-c", script, path], capture_output=True, text=True)
        assert (run.returncode != 0) == refused, run.stderr
        assert (
            not refused or f"Invalid TBL v2 header (magic/version mismatch): {path}" in run.stderr
        )


def test_a_compressed_archive_is_unpacked_once(tmp_path):
    made = samples(random.Random(3), 8)
    write(tmp_path / "a.tbl", made)
    tl.convert(tmp_path / "a.tbl", tmp_path / "a.tar", sync=False)
    packed = tmp_path / "a.tar.gz"
    packed.write_bytes(gzip.compress((tmp_path / "a.tar").read_bytes()))
    with pytest.raises(tl.FormatError, match=r"write one with `tl convert .*Store\(unpack_to=DIR"):
        len(tl.DataLoader(packed, decode=False))
    tl.convert(packed, tmp_path / "b.tbl", sync=False)
    assert read(tmp_path / "b.tbl") == made
    # Copies of archives that were changed just now are not kept.
    time.sleep(2.1)
    plain = tl.Store(unpack_to=tmp_path / "plain")
    for _ in range(2):
        loader = tl.DataLoader(packed, batch_size=8, decode=False, store=plain)
        (batch,) = loader
        assert batch["bytes"] == [data for _, data, _, _ in made]
        assert len(list((tmp_path / "plain").iterdir())) == 1
    reader = tl.TblReader(packed, store=plain)
    assert [reader[index] for index in range(8)] == [data for _, data, _, _ in made]
    packed.write_bytes(packed.read_bytes()[:-9])
    with pytest.raises(tl.FormatError, match=r"at byte \d+: gzip: the data ends early"):
        tl.convert(packed, tmp_path / "c.tbl")
    assert not (tmp_path / "c.tbl").exists()


def test_classes_of_an_archive_of_archives(tmp_path):
    for name in ("n01440764", "n01443537"):
        with tarfile.open(tmp_path / f"{name}.tar", "w") as archive:
            for number in range(3):
                data = bmp(image(number))
                info = tarfile.TarInfo(f"{name}_{number}.JPEG")
                info.size = len(data)
                archive.addfile(info, io.BytesIO(data))
    with tarfile.open(tmp_path / "train.tar", "w") as archive:
        for name in ("n01443537", "n01440764"):
            archive.add(tmp_path / f"{name}.tar", f"{name}.tar")
    loader = tl.DataLoader(tmp_path / "train.tar", batch_size=6, image_size=8)
    assert loader.class_names == ["n01440764", "n01443537"] and loader.notes == []
    (batch,) = loader
    assert batch["label"].numpy().tolist() == [1, 1, 1, 0, 0, 0]
    with pytest.warns(UserWarning, match="the classes are the names of 2 archives, first"):
        loader = tl.DataLoader(str(tmp_path / "n*.tar"), batch_size=6, image_size=8)
    (batch,) = loader
    assert batch["label"].numpy().tolist() == [0, 0, 0, 1, 1, 1]


def test_mnist_and_cifar_are_read_as_they_are_downloaded(tmp_path):
    rng = np.random.default_rng(1)
    digits = rng.integers(0, 256, (12, 28, 28), np.uint8)
    labels = rng.integers(0, 10, 12, np.uint8)
    packed = tmp_path / "train-images-idx3-ubyte.gz"
    packed.write_bytes(gzip.compress(struct.pack(">4I", 0x803, 12, 28, 28) + digits.tobytes()))
    (tmp_path / "train-labels-idx1-ubyte.gz").write_bytes(
        gzip.compress(struct.pack(">2I", 0x801, 12) + labels.tobytes())
    )
    loader = tl.DataLoader(packed, batch_size=12, output_format="numpy", image_size=28)
    (batch,) = loader
    assert loader.notes == [] and batch["label"].tolist() == labels.tolist()
    assert (batch["image"] == digits[..., None]).all() and batch["image"].shape[3] == 3

    folder = tmp_path / "cifar-10-batches-bin"
    folder.mkdir()
    names = [
        "airplane",
        "automobile",
        "bird",
        "cat",
        "deer",
        "dog",
        "frog",
        "horse",
        "ship",
        "truck",
    ]
    (folder / "batches.meta.txt").write_text("\n".join(names) + "\n\n")
    planes = rng.integers(0, 256, (20, 3, 32, 32), np.uint8)
    for part in range(2):
        rows = range(part * 10, part * 10 + 10)
        records = b"".join(bytes([row % 10]) + planes[row].tobytes() for row in rows)
        (folder / f"data_batch_{part + 1}.bin").write_bytes(records)
    loader = tl.DataLoader(
        str(folder / "data_batch_*.bin"), batch_size=20, output_format="numpy", image_size=32
    )
    (batch,) = loader
    assert loader.class_names == names
    assert batch["label"].tolist() == [*range(10), *range(10)]
    assert (batch["image"] == planes.transpose(0, 2, 3, 1)).all()
