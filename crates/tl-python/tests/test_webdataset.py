"""Archives that webdataset writes have the samples that webdataset reads."""

from __future__ import annotations

import itertools
import json
import random

import pytest
import turboloader as tl

wds = pytest.importorskip("webdataset")

# It leaves archives open.
pytestmark = [
    # Archives of any names have notes; those that count are compared.
    pytest.mark.filterwarnings("ignore::UserWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

ARCHIVES = 400

Files = dict[str, bytes]

FIELDS = [
    *["jpg", "png", "cls", "json", "txt", "npy", "flac", "left.jpg", "right.jpg", "mask.png"],
    *["0.jpg", "1.jpg", "0.txt", "1.txt", "seg.png", "tar.gz", "cam0.jpg", "cam1.jpg"],
]
FOLDERS = ["", "", "a/", "b.c/", "./", "a/b/", "ü/"]
IMAGES = (".jpg", ".png")


def write(path: str, draw: random.Random, *, alike: bool) -> None:
    """Write an archive of samples, with most of the same few fields each if they are alike."""
    fields = draw.sample(FIELDS, draw.randint(1, 5))
    with wds.TarWriter(path) as writer:
        for number in range(draw.randint(1, 12)):
            if not alike:
                fields = draw.sample(FIELDS, draw.randint(1, 5))
            chosen = [field for field in fields if draw.random() < 0.9] or fields[:1]
            sample = {field: f"{number} {field}".encode() for field in chosen}
            if "cls" in sample:
                sample["cls"] = str(number % 5).encode()
            if "json" in sample:
                sample["json"] = b"{}"
            dotted = draw.random() < 0.1
            key = draw.choice(FOLDERS) + f"{number}" + (".part" if dotted else "")
            writer.write({"__key__": key, **sample})


def read_theirs(path: str) -> list[tuple[str, Files]]:
    """Read key and fields of each sample with webdataset."""
    samples = wds.WebDataset(path, shardshuffle=False)
    return [
        (sample["__key__"], {name: data for name, data in sample.items() if name[0] != "_"})
        for sample in samples
    ]


def is_image(field: str) -> bool:
    return f".{field}".endswith(IMAGES)


def take_apart(names: list[str]) -> list[tuple[str, list[str]]]:
    """Take numbered images apart: the common part of each sample's names, and the rest of each."""
    images = [name.rpartition(".")[0] for name in names if is_image(name)]
    has_numbers = all(any(map(str.isdigit, image)) for image in images)
    if len(images) < 2 or not has_numbers or not all("." in name for name in names):
        return [("", names)]
    apart = []
    for part, group in itertools.groupby(sorted(names), lambda name: name.partition(".")[0]):
        taken = take_apart([name.removeprefix(f"{part}.") for name in group])
        apart += [(f"{part}.{prefix}", names) for prefix, names in taken]
    return apart


def expect(samples: list[tuple[str, Files]]) -> tuple[list[tuple[str, Files]], str | None]:
    """Apply to webdataset's samples what the guide says about numbers and missing images.

    Returns the samples, and the start of the note on those that are passed over.
    """
    apart = [
        (key, prefix, names, {prefix + name: fields[prefix + name] for name in names})
        for key, fields in samples
        for prefix, names in take_apart(list(fields))
    ]
    known = {name for _, _, names, _ in apart if any(map(is_image, names)) for name in names}
    expected, left_out = [], []
    for key, prefix, names, fields in apart:
        looks_like_a_sample = len(names) > 1 and known >= set(names)
        if not known or any(map(is_image, names)) or looks_like_a_sample:
            expected.append((key, fields))
        elif prefix or len(names) > 1 or known & set(names):
            left_out.append(fields)
    if not left_out:
        return expected, None
    files = sum(map(len, left_out))
    note = f"{len(left_out)} samples without an image are passed over, {files} files in all, "
    return expected, note


def read_ours(path: str, names: list[str]) -> tuple[list[tuple[str, Files]], list[str]]:
    """Read key and fields of each sample with turboloader, and its notes."""
    found, labels = [], []
    fields = dict.fromkeys(names, tl.Bytes())
    loader = tl.DataLoader(path, batch_size=4, decode=False, keys=True, fields=fields)
    for batch in loader:
        for row, path_of_sample in enumerate(batch["key"]):
            folder, slash, base = path_of_sample.rpartition("/")
            key, _, extension = base.partition(".")
            fields = {name: batch[name][row] for name in names if batch[name][row] is not None}
            assert fields[extension] == batch["bytes"][row]
            # The fields of a numbered sample can be named without its number, too.
            own = extension.rpartition(".")[0]
            for name, data in list(fields.items()):
                if any(map(str.isdigit, own)) and fields.get(f"{own}.{name}") == data:
                    del fields[name]
            found.append((folder + slash + key, fields))
            labels.append((int(fields.get("cls", b"-1")), int(batch["label"].numpy()[row])))
    # Otherwise class folders count, and a few labels are strays.
    if 2 * sum(label >= 0 for label, _ in labels) > len(labels):
        assert all(label == ours for label, ours in labels)
    return found, loader.notes


def test_archives_have_the_samples_that_webdataset_reads(tmp_path):
    draw = random.Random(15)
    equal = noted = 0
    for number in range(ARCHIVES):
        path = str(tmp_path / f"{number}.tar")
        write(path, draw, alike=number % 2 == 0)
        theirs = sorted(read_theirs(path), key=str)
        expected, note = expect(theirs)
        names = sorted({name for _, fields in expected for name in fields})
        ours, notes = read_ours(path, names)
        assert sorted(ours, key=str) == sorted(expected, key=str)
        found = [text for text in notes if "samples without an image are passed over" in text]
        assert len(found) == (note is not None)
        assert all(text.startswith(f"{path}: {note}") for text in found)
        equal += sorted(expected, key=str) == theirs
        noted += note is not None
    assert equal > ARCHIVES // 3 and noted > ARCHIVES // 10


def test_a_stereo_pair_is_one_sample(tmp_path):
    path = str(tmp_path / "a.tar")
    files = {"left.jpg": b"left", "right.jpg": b"right", "cls": b"3", "json": b"{}"}
    with wds.TarWriter(path) as writer:
        writer.write({"__key__": "a", **files})
    loader = tl.DataLoader(path, decode=False, keys=True, fields=dict.fromkeys(files, tl.Bytes()))
    assert loader.notes == [
        f"{path}: 1 samples have several images; one is decoded, such as a.left.jpg, "
        "and the others are fields"
    ]
    (batch,) = loader
    assert batch["key"] == ["a.left.jpg"]
    assert {name: batch[name] for name in files} == {name: [data] for name, data in files.items()}
    assert batch["label"].numpy().tolist() == [3]


def test_texts_and_sounds_are_samples(tmp_path):
    path = str(tmp_path / "a.tar")
    with wds.TarWriter(path) as writer:
        for number in range(2):
            sample = {"flac": b"sound", "txt": b"text %d" % number, "cls": b"%d" % number}
            writer.write({"__key__": str(number), **sample})
    loader = tl.DataLoader(path, decode=False, fields={"txt": tl.Bytes(), "flac": tl.Bytes()})
    (batch,) = loader
    assert batch["txt"] == [b"text 0", b"text 1"]
    assert batch["flac"] == [b"sound", b"sound"]
    assert batch["label"].numpy().tolist() == [0, 1]
    with pytest.raises(tl.SettingError, match=r"none of 2 samples is an image, .* 0\.flac"):
        len(tl.DataLoader(path, image_size=8))


def test_an_unknown_column_is_refused(tmp_path):
    path = str(tmp_path / "a.tar")
    with wds.TarWriter(path) as writer:
        writer.write({"__key__": "a", "jpg": b"", "json": b"{}", "cls": b"1"})
    with pytest.raises(tl.SettingError, match="`jsn`; the files are called: cls, jpg, json"):
        len(tl.DataLoader(path, decode=False, fields={"jsn": tl.Bytes()}))


def test_webdataset_reads_keys_labels_and_fields_of_a_converted_file(tmp_path):
    draw = random.Random(1)
    written = []
    with tl.TblWriter(tmp_path / "a.tbl", sync=False, compression="zstd") as writer:
        for number in range(30):
            fields = {"json": b'{"id": %d}' % number, "txt": b"text " * 9, "seg.png": b"mask"}
            chosen = {name: data for name, data in fields.items() if draw.random() < 0.6}
            written.append((f"a b/\u00fc{number}", number % 5, chosen))
            writer.add_sample(
                b"image" * number, key=written[-1][0] + ".jpg", label=number % 5, fields=chosen
            )
    tl.convert(tmp_path / "a.tbl", tmp_path / "a.tar", sync=False)
    found = read_theirs(str(tmp_path / "a.tar"))
    assert len(found) == len(written)
    for number, ((key, files), (name, label, fields)) in enumerate(
        zip(found, written, strict=True)
    ):
        assert key == name
        assert files == {"jpg": b"image" * number, "cls": b"%d" % label, **fields}
    decoded = wds.WebDataset(str(tmp_path / "a.tar"), shardshuffle=False).decode()
    for sample, (_, label, fields) in zip(decoded, written, strict=True):
        assert sample["cls"] == label
        assert "json" not in fields or sample["json"] == json.loads(fields["json"])
