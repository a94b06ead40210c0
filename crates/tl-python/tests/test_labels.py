"""Labels of joined containers, labels that cannot be read, samples without one."""

from __future__ import annotations

import pathlib
import pickle
import warnings

import pytest
import turboloader as tl
from conftest import bmp, image


def fill(root: pathlib.Path, files: dict[str, str]) -> pathlib.Path:
    """A folder of these files; those that are bitmaps have some pixels."""
    for number, (name, text) in enumerate(files.items()):
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(bmp(image(number)) if name.endswith(".bmp") else text.encode())
    return root


def classes(loader: tl.DataLoader) -> list[str]:
    """The class of every sample."""
    return [loader.class_names[label] for batch in loader for label in batch["label"].tolist()]


def test_containers_are_joined_by_class_name(tmp_path):
    one = fill(tmp_path / "one", {"ant/1.bmp": "", "dog/2.bmp": ""})
    other = fill(tmp_path / "other", {"bee/3.bmp": "", "dog/4.bmp": ""})
    expected = ["ant", "dog", "bee", "dog"]
    parts = []
    for folder in (one, other):
        tl.convert([str(folder)], f"{folder}.tar", to="tar")
        tl.convert([str(folder)], f"{folder}.tbl")
        parts.append([str(folder), f"{folder}.tar", f"{folder}.tbl"])
    for first in parts[0]:
        for second in parts[1]:
            loader = tl.DataLoader([first, second], batch_size=3, decode=False)
            assert classes(loader) == expected
            assert loader.class_names == ["ant", "bee", "dog"]
            assert loader.notes == []
            tl.convert([first, second], tmp_path / "joined.tbl", overwrite=True)
            assert classes(tl.DataLoader(tmp_path / "joined.tbl", decode=False)) == expected


def test_class_folders_and_numbers_are_not_joined(tmp_path):
    folder = fill(tmp_path / "folder", {"ant/1.bmp": "", "dog/2.bmp": ""})
    numbers = fill(tmp_path / "numbers", {"3.bmp": "", "3.cls": "7"})
    with pytest.raises(tl.LoaderError, match="labels are numbers") as caught:
        tl.DataLoader([str(folder), str(numbers)], decode=False)
    assert str(folder) in str(caught.value) and str(numbers) in str(caught.value)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("2.cls", "dog"),
        ("2.cls", "1.5"),
        ("2.cls", ""),
        ("2.json", '{"label": "cat"}'),
        ("2.json", '{"label": null}'),
        ("2.json", "cat"),
    ],
)
def test_a_label_that_cannot_be_read_is_an_error_of_its_sample(tmp_path, name, text):
    root = fill(tmp_path / "data", {"1.bmp": "", "1.cls": "1", "2.bmp": "", name: text})
    with pytest.raises(tl.LoaderError, match=name) as caught:
        list(tl.DataLoader(root, batch_size=2))
    assert (caught.value.sample, caught.value.key) == (1, "2.bmp")
    loader = tl.DataLoader(root, batch_size=2, errors="skip")
    with pytest.warns(UserWarning, match="bad samples are skipped"):
        assert [label for batch in loader for label in batch["label"].tolist()] == [1]
    assert [(index, outcome) for index, _, outcome in loader.audit] == [(1, "Skipped")]
    report = tl.verify(root)
    assert not report["is_good"] and report["bad"][0][0] == 1
    with pytest.raises(tl.LoaderError, match=name):
        tl.convert([str(root)], tmp_path / "out.tbl")
    assert not (tmp_path / "out.tbl").exists()
    reader = tl.TblReader(root)
    assert (reader.entry(0)["label"], len(reader[1]) > 0) == (1, True)
    with pytest.raises(tl.LoaderError, match=name):
        reader.entry(1)


def test_a_stray_label_file_leaves_class_folders_on(tmp_path):
    files = {"a/1.bmp": "", "a/1.cls": "7", "a/2.bmp": "", "b/3.bmp": ""}
    root = fill(tmp_path / "data", files)
    loader, _ = warned(tl.DataLoader, root, batch_size=3, decode=False)
    assert classes(loader) == ["a", "a", "b"]
    (note,) = loader.notes
    assert "a/1.bmp" in note and "with 7" in note
    report = tl.verify(root)
    assert report["is_good"] and report["oddities"] == [note]


def warned(call, *arguments, **named):
    """The result, and the messages of the warnings, which are all about the line of the call."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = call(*arguments, **named)
    assert {warning.filename for warning in caught} <= {__file__}
    return result, [str(warning.message) for warning in caught]


def test_conversions_warn_of_what_the_loader_notes(tmp_path):
    files = {"1.bmp": "", "1.cls": "1", "2.bmp": "", "3.jpg": "no image", "3.cls": "3"}
    root = fill(tmp_path / "data", files)
    loader, said = warned(tl.DataLoader, root, decode=False)
    assert said == loader.notes and len(said) == 1 and "2.bmp" in said[0]
    target = tmp_path / "out.tbl"
    for convert in (tl.convert, tl.convert_tar_to_tbl):
        samples, (first, second) = warned(convert, root, target, overwrite=True)
        assert (samples, first) == (3, loader.notes[0])
        assert "sample 2 (3.jpg): kept without dimensions" in second
    samples, (first, second) = warned(tl.convert, root, tmp_path / "out.tbl1", to="tbl1")
    assert first == loader.notes[0]
    assert second == f"{tmp_path / 'out.tbl1'}: cannot store 3 names, 2 labels, 2 sidecar fields"
    loader, said = warned(tl.DataLoader, root, decode=False)
    again = pickle.dumps(loader)
    assert warned(pickle.loads, again)[1] == []


def test_hidden_files_are_noted_without_a_warning(tmp_path):
    root = fill(tmp_path / "data", {"1.bmp": "", ".DS_Store": "", "README.md": ""})
    loader, said = warned(tl.DataLoader, root, decode=False)
    assert (len(loader.notes), said) == (1, [])
    assert warned(tl.convert, root, tmp_path / "out.tbl") == (1, [])


def test_of_many_notes_some_are_warnings(tmp_path):
    roots = [
        fill(tmp_path / str(number), {"1.left.bmp": "", "1.right.bmp": ""}) for number in range(10)
    ]
    loader, said = warned(tl.DataLoader, roots, decode=False)
    # One for each folder, and one on folders that may be classes.
    assert len(loader.notes) == 11
    assert said == [*loader.notes[:8], "3 more notes: the attribute notes lists all"]


def test_samples_without_a_label_are_noted(tmp_path):
    root = fill(tmp_path / "data", {"1.bmp": "", "1.cls": "1", "2.bmp": ""})
    loader, _ = warned(tl.DataLoader, root, batch_size=2, decode=False)
    assert next(iter(loader))["label"].tolist() == [1, -1]
    (note,) = loader.notes
    assert "2.bmp" in note
    assert tl.verify(root)["oddities"] == [note]
