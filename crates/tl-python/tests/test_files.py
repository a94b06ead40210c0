from __future__ import annotations

import errno
import pathlib
import re
import signal
import subprocess
import sys
import tarfile

import numpy as np
import pytest
import turboloader as tl
from conftest import HEIGHT, WIDTH, bmp, image


def test_headers_and_pixels(photos):
    stored = bmp(image(5))
    info = tl.probe(stored)
    assert (info.format, info.width, info.height, info.channels) == ("BMP", WIDTH, HEIGHT, 3)
    for data in (stored, bytearray(stored), memoryview(stored)):
        np.testing.assert_array_equal(tl.decode(data).numpy(), image(5))
    red, green, blue = (image(5)[..., channel].astype(int) for channel in range(3))
    grey = (red * 19595 + green * 38470 + blue * 7471 + 0x8000) >> 16
    np.testing.assert_array_equal(tl.decode(stored, gray=True).numpy(), grey)
    with pytest.raises(tl.DecodeError):
        tl.decode(stored[:-3])
    with pytest.raises(tl.DecodeError):
        tl.probe(b"GIF89a")
    # No file of so many zeros.
    with pytest.raises(TypeError, match="expected the bytes of an image"):
        tl.decode(10**10)


def test_a_region_has_the_pixels_of_the_whole(photos):
    data = (photos / "animals" / "chelsea.jpg").read_bytes()
    for scale in (1, 2, 4, 8):
        whole = tl.decode_jpeg(data, scale=scale).numpy()
        part = tl.decode_jpeg(data, scale=scale, region=(3, 5, 20, 10)).numpy()
        np.testing.assert_array_equal(part, whole[5:15, 3:23])
    np.testing.assert_array_equal(tl.decode_jpeg(data).numpy(), tl.decode(data).numpy())
    for path in sorted((photos / "animals").iterdir()):
        whole = tl.decode(path.read_bytes()).numpy()
        part = tl.decode(path.read_bytes(), region=(3, 5, 20, 10)).numpy()
        np.testing.assert_array_equal(part, whole[5:15, 3:23])
    with pytest.raises(tl.DecodeError, match="region"):
        tl.decode(data, region=(0, 0, 100_000, 1))
    with pytest.raises(tl.SettingError, match="scale is 3"):
        tl.decode_jpeg(data, scale=3)
    with pytest.raises(tl.DecodeError):
        tl.decode_jpeg(data, region=(0, 0, 100_000, 1))


def test_what_is_written_is_read(tmp_path):
    path = tmp_path / "a.tbl"
    with tl.TblWriter(path, class_names=["cat", "dog"]) as writer:
        writer.add_sample(bmp(image(0)), key="a.bmp", label=1)
        writer.add_sample(b"bytes")
        assert writer.num_samples == 2
        assert not path.exists()
    reader = tl.TblReader(path)
    assert (len(reader), reader.num_samples, reader.class_names) == (2, 2, ["cat", "dog"])
    assert [reader[0], reader[-1]] == [bmp(image(0)), b"bytes"]
    entry = reader.entry(0)
    assert (entry["key"], entry["label"], entry["width"], entry["height"]) == ("a.bmp", 1, 10, 6)
    with pytest.raises(IndexError):
        reader[2]
    with pytest.raises(tl.SampleIndexError):
        reader.read_sample(2)
    with pytest.raises(tl.ClosedError):
        writer.finish()


def test_a_writer_that_fails_leaves_nothing(tmp_path):
    path = tmp_path / "a.tbl"
    with pytest.raises(RuntimeError, match="mine"), tl.TblWriter(path) as writer:
        writer.add_sample(b"bytes")
        raise RuntimeError("mine")
    assert list(tmp_path.iterdir()) == []
    path.write_bytes(b"there")
    with pytest.raises(tl.StorageError) as raised:
        tl.TblWriter(path)
    assert raised.value.errno == 17


def archive(path: pathlib.Path, count: int) -> pathlib.Path:
    with tarfile.open(path, "w") as tar:
        for index in range(count):
            name = path.with_name("sample.bmp")
            name.write_bytes(bmp(image(index)))
            tar.add(name, f"{index:04d}.bmp")
            name.unlink()
    return path


def test_archives_become_tbl_files_and_come_back(tmp_path):
    source = archive(tmp_path / "input.tar", 20)
    told = []
    written = tl.convert_tar_to_tbl(
        source, tmp_path / "output.tbl", progress_callback=lambda *now: told.append(now)
    )
    assert written == 20
    assert told == [(samples, 20) for samples in range(1, 21)]
    assert tl.convert(tmp_path / "output.tbl", tmp_path / "back.tar") == 20
    for path in ("input.tar", "output.tbl", "back.tar"):
        reader = tl.TblReader(tmp_path / path)
        assert [reader[index] for index in range(20)] == [bmp(image(index)) for index in range(20)]


def test_an_exception_ends_a_conversion_without_a_file(tmp_path):
    source = archive(tmp_path / "input.tar", 200)

    def stop(current, total):
        if current == 3:
            raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        tl.convert_tar_to_tbl(source, tmp_path / "output.tbl", progress_callback=stop)
    assert [path.name for path in tmp_path.iterdir()] == ["input.tar"]


def test_a_signal_ends_a_check(photos, tmp_path):
    # Seconds of work.
    tl.convert([photos] * 200, tmp_path / "long.tbl", sync=False)

    def enough(*_):
        raise TimeoutError("enough")

    before = signal.signal(signal.SIGALRM, enough)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        with pytest.raises(TimeoutError, match="enough"):
            tl.verify(tmp_path / "long.tbl", decode=True)
    finally:
        signal.signal(signal.SIGALRM, before)


def test_damage_is_found(data, tmp_path):
    assert tl.verify(data, decode=True)["is_good"]
    broken = bytearray(data.read_bytes())
    offset = tl.TblReader(data).entry(40)["offset"]
    broken[offset + 60] ^= 1
    path = tmp_path / "broken.tbl"
    path.write_bytes(broken)
    found = tl.verify(path)
    assert (found["samples"], found["is_good"]) == (100, False)
    assert [(index, at) for index, at, _ in found["bad"]] == [(40, offset)]
    with pytest.raises(tl.FormatError) as raised:
        tl.TblReader(path)[40]
    assert (raised.value.sample, raised.value.offset) == (40, offset)


def test_a_raw_view_is_the_mapped_file(data, tmp_path):
    raw = tmp_path / "raw.tbl"
    command = [sys.executable, "-m", "turboloader", "convert", str(data), "-o", str(raw)]
    subprocess.run([*command, "--to", "raw", "--quiet"], check=True)
    view = tl.open_raw_view(raw)
    array = view.numpy()
    assert array.shape == (100, HEIGHT, WIDTH, 3)
    assert not array.flags.writeable
    assert array.__array_interface__["data"][0] == view.data_ptr()
    np.testing.assert_array_equal(array[17], image(17))
    with pytest.raises(BufferError, match="read-only"):
        view.__dlpack__()
    with pytest.raises(tl.FormatError):
        tl.open_raw_view(data)


@pytest.mark.parametrize(
    ("file", "name", "format"),
    [
        ("jpeg/420.jpg", "00000000.jpg", "JPEG"),
        ("png/exif6.png", "00000000.png", "PNG"),
        ("webp/lossy.webp", "00000000.webp", "WEBP"),
        ("bmp/rgb24.bmp", "00000000.bmp", "BMP"),
        ("tiff/rgb8.tif", "00000000.tif", "TIFF"),
        (None, "00000000.bin", "UNKNOWN"),
    ],
)
def test_a_sample_without_a_name_is_extracted_by_its_format(tmp_path, file, name, format):
    images = pathlib.Path(__file__).parents[2] / "tl-decode" / "testdata"
    data = (images / file).read_bytes() if file else b"bytes"
    path = tmp_path / "a.tbl"
    with tl.TblWriter(path, sync=False) as writer:
        writer.add_sample(data)
    assert tl.TblReader(path).entry(0)["format"] == format
    command = [sys.executable, "-m", "turboloader", "extract", path, "-o", tmp_path / "out"]
    subprocess.run(command, check=True)
    assert [file.name for file in (tmp_path / "out").iterdir()] == [name]
    assert (tmp_path / "out" / name).read_bytes() == data
    assert tl.TblReader(tmp_path / "out").entry(0)["format"] == format


def test_the_command_line_comes_along(data):
    def run(*arguments):
        command = [sys.executable, "-m", "turboloader", *arguments]
        return subprocess.run(command, capture_output=True, text=True)

    assert run("--version").stdout.split() == ["tl", tl.__version__]
    assert run("info", str(data)).returncode == 0
    assert run("info", "missing.tbl").returncode == 2
    assert run("verify", str(data)).returncode == 0


SEEDS = """
import turboloader

turboloader.convert_tar_to_tbl('input.tar', 'output.tbl')

def progress(current, total):
    print(f"Progress: {current}/{total} ({100*current/total:.1f}%)")

turboloader.convert_tar_to_tbl(
    'input.tar',
    'output.tbl',
    progress_callback=progress
)
turboloader.convert_tar_to_tbl('output.tbl', 'dataset.tbl')

loader = turboloader.DataLoader(
    'dataset.tbl',  # Automatically detects TBL format
    batch_size=64,
    num_workers=8
)
count = 0
for batch in loader:
    for sample in batch:
        image = sample['image']  # NumPy array
        count += image.shape == (6, 10, 3)
assert count == 20

loader_0 = turboloader.DataLoader(
    'dataset.tbl',
    worker_id=0,
    num_workers=4,
    batch_size=64
)
loader_1 = turboloader.DataLoader(
    'dataset.tbl',
    worker_id=1,
    num_workers=4,
    batch_size=64
)

loader = turboloader.DataLoader('dataset.tbl', batch_size=1, shuffle=True)
for batch in loader:
    sample = batch[0]

import turboloader as tl
loader = tl.DataLoader(
    source="input.tar",
    format="webdataset",
    batch_size=256,
    transforms=[
        tl.RandomResizedCrop(224),
        tl.RandomHorizontalFlip(),
        tl.Normalize(mean=[0.485, 0.456, 0.406], std=[0.229, 0.224, 0.225])
    ],
    num_workers=16,
    prefetch_factor=8
)
for batch in loader:
    images = batch['image']
    labels = batch['label']
assert images.shape == (20, 3, 224, 224)
"""


def test_the_documents_the_package_was_asked_for_in_run(tmp_path, monkeypatch):
    archive(tmp_path / "input.tar", 20)
    monkeypatch.chdir(tmp_path)
    exec(compile(SEEDS, "seeds", "exec"), {})


def test_the_readme_runs(photos, monkeypatch):
    readme = pathlib.Path(__file__).parents[1] / "README.md"
    monkeypatch.chdir(photos.parents[1])
    code = re.search(r"```python\n(.*?)```", readme.read_text(), re.DOTALL)
    scope = {}
    exec(code.group(1), scope)
    assert scope["images"].shape[1:] == (3, 224, 224)


def test_columns_are_a_list_of_names(tmp_path):
    table = tmp_path / "a.csv"
    table.write_text("c,d\n1,2\n")
    with pytest.raises(tl.SettingError, match="columns is the text 'c', expected a list of names"):
        tl.convert(table, tmp_path / "a.idv", columns="c")
    assert tl.convert(table, tmp_path / "a.idv", columns=["c"], sync=False) == 1


def test_keys_are_written_as_they_are_read(tmp_path):
    keys = ["a.jpg", b"caf\xe9.jpg", "caf\udce9.jpg", "ä.jpg"]
    with tl.TblWriter(tmp_path / "keys.tbl") as writer:
        for key in keys:
            writer.add_sample(b"x", key=key)
    reader = tl.TblReader(tmp_path / "keys.tbl")
    read = [reader.entry(index)["key"] for index in range(len(reader))]
    assert read == ["a.jpg", "caf\udce9.jpg", "caf\udce9.jpg", "ä.jpg"]
    with tl.TblWriter(tmp_path / "again.tbl") as writer:
        for key in read:
            writer.add_sample(b"x", key=key)
    assert tl.TblReader(tmp_path / "again.tbl").entry(1)["key"] == read[1]


def test_samples_are_any_bytes_in_memory(tmp_path):
    data = b"0123456789"
    with tl.TblWriter(tmp_path / "bytes.tbl") as writer:
        array = np.frombuffer(data, np.uint8)
        for buffer in (data, bytearray(data), memoryview(data)[::2], array, array.reshape(2, 5)):
            writer.add_sample(buffer)
        with pytest.raises(TypeError):
            writer.add_sample("text")
    reader = tl.TblReader(tmp_path / "bytes.tbl")
    assert [reader[index] for index in range(5)] == [data, data, data[::2], data, data]


def test_a_writer_names_the_folder_that_is_not_there(tmp_path):
    path = tmp_path / "none" / "new.tbl"
    with pytest.raises(tl.PathNotFoundError) as raised:
        tl.TblWriter(path)
    assert (raised.value.errno, raised.value.filename) == (errno.ENOENT, str(path))


def test_a_photograph_that_is_gone_is_named(tmp_path):
    (tmp_path / "class").mkdir()
    gone = tmp_path / "class" / "b.bmp"
    for path in (tmp_path / "class" / "a.bmp", gone):
        path.write_bytes(bmp(image(0)))
    loader = tl.DataLoader(tmp_path, batch_size=1)
    gone.unlink()
    with pytest.raises(tl.PathNotFoundError) as raised:
        list(loader)
    error = raised.value
    assert (error.filename, error.shard, error.key) == (str(gone), str(tmp_path), "class/b.bmp")


def test_a_reader_has_a_part_of_an_archive(tmp_path):
    source = archive(tmp_path / "input.tar", 10)
    whole = tl.TblReader(source)
    parts = [tl.TblReader(source, worker, 4) for worker in range(4)]
    assert [len(part) for part in parts] == [2, 3, 2, 3]
    assert [sample for part in parts for sample in part] == list(whole)
    assert [part.entry(0)["key"] for part in parts] == [
        whole.entry(index)["key"] for index in (0, 2, 5, 7)
    ]
    assert parts[1][-1] == whole[4]
    assert (parts[1].fields(2), parts[1].metadata(2)) == ({}, [])
    for read in (parts[1].read_sample, parts[1].entry, parts[1].fields, parts[1].get_format):
        with pytest.raises(tl.SampleIndexError, match="sample 3, expected less than 3") as raised:
            read(3)
        assert raised.value.shard == str(source)
    with pytest.raises(tl.SettingError, match=r"worker_id is 4, expected less than num_workers"):
        tl.TblReader(source, 4, 4)
    with pytest.raises(tl.SettingError, match="num_workers"):
        tl.TblReader(source, 0, 0)


def test_a_reader_tells_formats_and_mappings(data, tmp_path):
    reader = tl.TblReader(data)
    assert reader.get_format(3) == reader.entry(3)["format"] == "BMP"
    assert reader.is_memory_mapped()
    with tl.TblWriter(tmp_path / "small.tbl", compression="zstd") as writer:
        writer.add_sample(b"a text" * 1000)
    # What is compressed cannot be lent.
    assert not tl.TblReader(tmp_path / "small.tbl").is_memory_mapped()


def test_the_script_tar_to_tbl_prints_what_the_guide_shows(tmp_path):
    source = archive(tmp_path / "input.tar", 20)
    code = "from turboloader.__main__ import tar_to_tbl; tar_to_tbl()"
    command = [sys.executable, "-c", code, str(source), str(tmp_path / "output.tbl")]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    starts = ["Converting TAR to TBL format...", "Input: ", f"Processing: [{'█' * 20}] 100%"]
    starts += ["Conversion rate: ", "Output: ", "Completed in "]
    lines = run.stdout.splitlines()
    assert len(lines) == 6
    assert all(line.startswith(start) for line, start in zip(lines, starts, strict=True))
    assert list(tl.TblReader(tmp_path / "output.tbl")) == list(tl.TblReader(source))
    scripts = (pathlib.Path(__file__).parents[1] / "pyproject.toml").read_text("utf-8")
    assert 'tar_to_tbl = "turboloader.__main__:tar_to_tbl"' in scripts
