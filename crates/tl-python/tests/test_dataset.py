"""Data sets and their views: the same samples as by hand, in every process."""

from __future__ import annotations

import collections
import io
import json
import multiprocessing
import pathlib
import pickle
import tarfile
from collections.abc import Callable

import numpy as np
import pytest
import turboloader as tl
import turboloader.dataset
from conftest import bmp, image, run_examples
from stored import write_table
from turboloader.exceptions import FormatError, SampleIndexError, SettingError

LABELS = np.arange(100) % 7


@pytest.fixture
def ds(data: pathlib.Path) -> tl.Dataset:
    return tl.open(data)


def epoch(dataset: tl.Dataset, **settings: object) -> list[int]:
    """The numbers of the samples of an epoch."""
    with tl.DataLoader(dataset, batch_size=8, **settings) as loader:
        return [number for batch in loader for number in batch["index"].tolist()]


def archive(path: pathlib.Path, members: dict[str, bytes]) -> pathlib.Path:
    with tarfile.open(path, "w") as file:
        for name, data in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            file.addfile(member, io.BytesIO(data))
    return path


def test_a_data_set_says_what_it_has(ds: tl.Dataset, photos: pathlib.Path) -> None:
    assert len(ds) == 100
    assert ds.labels.dtype == np.int64
    assert np.array_equal(ds.labels, LABELS)
    assert ds.keys[3] == "00003.bmp"
    assert np.array_equal(ds.indices, np.arange(100))
    assert ds.histogram() == dict(collections.Counter(LABELS.tolist()))
    assert repr(ds) == f"Dataset({str(ds._arguments[0][0])!r}, 100 samples)"
    classes = tl.open(photos)
    assert classes.class_to_idx[classes.classes[2]] == 2
    assert classes.histogram()["people"] == 2
    assert "image" in classes.schema and classes.schema["label"] == "one of 6 classes"


def test_samples_are_decoded_fields(tmp_path: pathlib.Path) -> None:
    numbers = io.BytesIO()
    np.save(numbers, np.arange(6).reshape(2, 3))
    members = {
        "a.bmp": bmp(image(0)),
        "a.json": json.dumps({"score": 0.5}).encode(),
        "a.txt": "grün".encode(),
        "a.npy": numbers.getvalue(),
        "a.mask.bmp": bmp(image(1)),
        "a.bin": b"\x00\x01",
        "b.bmp": bmp(image(2)),
        "b.cls": b"3",
    }
    with pytest.warns(UserWarning, match="samples without a label among labelled ones: 1"):
        ds = tl.open(archive(tmp_path / "a.tar", members))
    assert len(ds.notes) == 2 and "several images" in ds.notes[0]
    sample = ds[0]
    assert np.array_equal(sample.image.numpy(), image(0))
    assert sample["json"] == {"score": 0.5} and sample.txt == "grün"
    assert np.array_equal(sample["npy"], [[0, 1, 2], [3, 4, 5]])
    assert np.array_equal(sample["mask.bmp"].numpy(), image(1))
    assert sample["bin"] == b"\x00\x01" and sample.raw("txt") == "grün".encode()
    assert (sample.label, sample.key, sample.index) == (None, "a.bmp", 0)
    assert list(sample) == [
        "image", "json", "txt", "npy", "mask.bmp", "bin", "label", "key", "index"
    ]  # fmt: skip
    assert len(sample) == 9 and "json" in sample and "wav" not in sample
    assert ds[-1].label == 3
    assert ds.schema["json"] == "JSON" and ds.schema["npy"] == "array"
    with pytest.raises(AttributeError, match="a sample has no wav: it has image, json"):
        _ = sample.wav
    with pytest.raises(KeyError, match="wav: the sample has image"):
        sample["wav"]
    assert [one.index for one in ds] == [0, 1]


def test_samples_that_are_no_images_have_data(tmp_path: pathlib.Path) -> None:
    with pytest.warns(UserWarning, match="none of 1 samples is an image by its name"):
        ds = tl.open(archive(tmp_path / "a.tar", {"0.flac": b"fLaC", "0.txt": b"hello"}))
    assert list(ds[0]) == ["data", "txt", "label", "key", "index"]
    assert (ds[0].data, ds[0].txt) == (b"fLaC", "hello")


def test_selections_are_those_of_numpy(ds: tl.Dataset) -> None:
    numbers = np.arange(100)
    rng = np.random.default_rng(0)
    places = rng.integers(-100, 100, 17)
    mask = rng.random(100) < 0.3
    for view, expected in [
        (ds[10:20], numbers[10:20]),
        (ds[::-3], numbers[::-3]),
        (ds[-5:], numbers[-5:]),
        (ds[50:10], numbers[:0]),
        (ds[places], numbers[places]),
        (ds[places.tolist()], numbers[places]),
        (ds[mask], numbers[mask]),
        (ds[ds.labels == 4], numbers[LABELS == 4]),
        (ds.take(7), numbers[:7]),
        (ds.skip(95), numbers[95:]),
        (ds.shard(1, 3), numbers[33:66]),
        (ds.select(label=3), numbers[LABELS == 3]),
        (ds.select(label=[3, 5]), numbers[np.isin(LABELS, [3, 5])]),
        (ds.filter("label == 6 and index >= 50"), numbers[50:][LABELS[50:] == 6]),
        (ds.filter(lambda sample: sample.key.endswith("7.bmp")), numbers[7::10]),
        (ds.filter("width == 10 and height == 6").take(2), [0, 1]),
        (ds[20:][mask[20:]][1:4], numbers[20:][mask[20:]][1:4]),
    ]:
        assert np.array_equal(view.indices, expected)
        assert np.array_equal(view.labels, LABELS[expected])
        assert len(view) == len(expected)
        if len(expected):
            assert epoch(view) == list(expected)
            assert sorted(epoch(view, shuffle=True)) == sorted(expected)
            assert np.array_equal(view[-1].image.numpy(), image(int(expected[-1])))


def test_splits_and_folds_divide(ds: tl.Dataset) -> None:
    train, val = ds.split(0.8, 0.2, seed=3, stratify="label")
    assert (len(train), len(val)) == (80, 20)
    assert sorted([*train.indices, *val.indices]) == list(range(100))
    counts = collections.Counter(val.labels.tolist())
    assert all(count in (2, 3, 4) for count in counts.values()) and len(counts) == 7
    again, _ = ds.split(0.8, 0.2, seed=3, stratify="label")
    assert np.array_equal(train.indices, again.indices)
    assert not np.array_equal(train.indices, ds.split(0.8, seed=4)[0].indices)
    seen = []
    for fold in range(5):
        train, val = ds.fold(fold, of=5, seed=1)
        assert sorted([*train.indices, *val.indices]) == list(range(100))
        seen.extend(val.indices)
    assert sorted(seen) == list(range(100))


def test_draws_have_their_weights(ds: tl.Dataset) -> None:
    weights = np.zeros(100)
    weights[[3, 50]] = [1, 3]
    drawn = epoch(ds.weights(weights, count=400))
    counts = collections.Counter(drawn)
    assert set(counts) == {3, 50} and counts[50] > 2 * counts[3]
    assert sorted(epoch(ds.weights(weights, replacement=False))) == [3, 50]
    some = ds.select([0, 7, 14, 1])
    balanced = collections.Counter(LABELS[epoch(some.balance(length="all-used-up"))])
    assert balanced == {0: 3, 1: 3}
    assert sorted(epoch(some.repeat(2))) == sorted([0, 7, 14, 1] * 2)


def test_several_data_sets_are_joined(
    ds: tl.Dataset, photos: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    tar = tmp_path / "photos.tar"
    tl.convert(photos, tar)
    a, b = tl.open(photos), tl.open(tar)
    both = a.take(2) + b.select(label="people")
    people = ["people/astronaut.jpg", "people/photographer.jpg"]
    assert [sample.key for sample in both] == [*a.keys[:2], *people]
    assert both.classes == a.classes
    assert len(epoch(both, image_size=8)) == 4
    mixed = tl.mix({ds.take(10): 3, ds.skip(90): 1}, length=40)
    counts = collections.Counter(np.array(epoch(mixed)) >= 90)
    assert counts == {False: 30, True: 10}
    assert len(tl.mix([(ds, 1), (ds, 2)])) == 200
    a, b = ds.take(10), ds.skip(90)
    staged = tl.mix({a: 3, b: 0}, length=40, stages={18: [1, 1], 12: {a: 1, b: 3}})
    is_b = np.array(epoch(staged)) >= 90
    assert [is_b[start:end].sum() for start, end in [(0, 12), (12, 20), (20, 40)]] == [0, 6, 10]
    assert "mix of 2 views by 3 : 0, from 12 on by 1 : 3" in staged.explain()


VIEWS: list[Callable[[tl.Dataset], tl.Dataset]] = [
    lambda ds: ds,
    lambda ds: ds[10:40][::2],
    lambda ds: ds.split(0.5, 0.5, stratify="label")[1].take(20),
    lambda ds: ds.filter(lambda sample: sample.label == 2),
    lambda ds: ds.filter("label == 2").skip(1),
    lambda ds: ds.weights(np.arange(100), count=30),
    lambda ds: ds.fold(1, of=3)[0].balance().repeat(2),
    lambda ds: tl.concat(ds.take(3), ds.fold(0, of=2)[1]),
    lambda ds: tl.concat(ds.take(3), tl.open(ds._arguments[0])).filter("index > 50").split(0.5)[0],
    lambda ds: tl.mix([(ds.take(5), 2), (ds.skip(5), 1)]),
    lambda ds: tl.mix([(ds.take(5), 2), (ds.skip(5), 1)], stages={9: [0, 1]}),
]


@pytest.mark.parametrize("view", VIEWS)
def test_pickles_are_equal(ds: tl.Dataset, view: Callable[[tl.Dataset], tl.Dataset]) -> None:
    made = view(ds)
    again = pickle.loads(pickle.dumps(made))
    assert repr(again) == repr(made)
    assert epoch(again, shuffle=True) == epoch(made, shuffle=True)
    twice = pickle.loads(pickle.dumps(again))
    assert epoch(twice, shuffle=True) == epoch(made, shuffle=True)


def test_loaders_of_views_pickle(ds: tl.Dataset) -> None:
    loader = tl.DataLoader(ds.split(0.5)[0], batch_size=8, shuffle=True)
    again = pickle.loads(pickle.dumps(loader))
    assert [b["index"].tolist() for b in again] == [b["index"].tolist() for b in loader]
    assert "Dataset(" in repr(loader)


def _numbers(dataset: tl.Dataset) -> list[int]:
    return dataset.indices.tolist()


def test_processes_share_views(ds: tl.Dataset) -> None:
    view = ds.split(0.3, seed=9)[0]
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.apply(_numbers, (view,)) == view.indices.tolist()


def test_a_state_resumes_over_a_view_made_again(data: pathlib.Path) -> None:
    def loader() -> tl.DataLoader:
        train, _ = tl.open(data).split(0.8, 0.2, seed=1, stratify="label")
        return tl.DataLoader(train, batch_size=8, shuffle=True)

    first = loader()
    batches = iter(first)
    next(batches), next(batches)
    state = first.state_dict()
    rest = [batch["index"].tolist() for batch in batches]
    other = loader()
    other.load_state_dict(state)
    assert [batch["index"].tolist() for batch in other] == rest


@pytest.mark.torch
def test_torch_data_sets_take_views(ds: tl.Dataset) -> None:
    torch = pytest.importorskip("torch")
    from turboloader.torch import Dataset, IterableDataset

    view = ds.split(0.4, seed=2)[0]
    crop = [tl.RandomResizedCrop(8), tl.ToTensor()]
    batches = list(tl.DataLoader(view, batch_size=8, shuffle=True, transform=crop))
    expected = {
        int(number): pixels
        for batch in batches
        for number, pixels in zip(batch["index"].numpy(), batch["image"].numpy(), strict=True)
    }
    samples = Dataset(view, crop, fields=("image", "label", "index"))
    assert len(samples) == 40 and samples.targets == view.labels.tolist()
    for workers in (0, 2):
        samples.set_epoch(0)
        loader = torch.utils.data.DataLoader(samples, batch_size=8, num_workers=workers)
        numbers = []
        for images, labels, index in loader:
            for pixels, label, number in zip(images, labels, index, strict=True):
                assert np.array_equal(pixels.numpy(), expected[int(number)])
                assert label == LABELS[number]
            numbers += index.tolist()
        assert numbers == view.indices.tolist()
    iterable = IterableDataset(view, 8, shuffle=True, transform=crop, fields=("index",))
    for workers in (0, 2):
        iterable.set_epoch(0)
        loader = torch.utils.data.DataLoader(iterable, batch_size=None, num_workers=workers)
        found = [index.tolist() for (index,) in loader]
        assert found == [batch["index"].tolist() for batch in batches]
    # A sample that is in the view twice is drawn twice.
    first, second = Dataset(ds[[3, 3]], crop).__getitems__([0, 1])
    assert not torch.equal(first[0], second[0]) and first[1] == second[1]
    with pytest.raises(SettingError, match="samples of `repeat` have no numbers"):
        Dataset(view.repeat(2), crop)


def test_views_are_written_with_their_fields(tmp_path: pathlib.Path) -> None:
    members = {}
    for number in range(6):
        members[f"{number}.bmp"] = bmp(image(number))
        members[f"{number}.cls"] = str(number % 2).encode()
        members[f"{number}.txt"] = f"text {number}".encode()
    ds = tl.open(archive(tmp_path / "a.tar", members))
    view = ds.select(label=1).filter("txt != 'text 3'")
    for name in ("b.tbl", "b.tar"):
        assert view.convert(tmp_path / name) == 2
        written = tl.open(tmp_path / name)
        assert written.keys == ["1.bmp", "5.bmp"] and written.labels.tolist() == [1, 1]
        assert [sample.txt for sample in written] == ["text 1", "text 5"]
        assert np.array_equal(written[1].image.numpy(), image(5))
    with pytest.raises(SettingError, match="samples of `repeat` have no numbers"):
        ds.repeat(2).convert(tmp_path / "c.tbl")


def test_means_are_those_of_numpy(ds: tl.Dataset) -> None:
    pixels = np.concatenate([image(number).reshape(-1, 3) for number in range(5, 25)]) / 255
    mean, deviation = ds[5:25].mean_std()
    assert np.allclose(mean, pixels.mean(0), rtol=1e-12)
    assert np.allclose(deviation, pixels.std(0), rtol=1e-9)


def test_contact_sheets_show_samples(photos: pathlib.Path, tmp_path: pathlib.Path) -> None:
    ds = tl.open(photos)
    sheet = tmp_path / "sheet.png"
    ds.preview(sheet, count=6, size=64)
    data = sheet.read_bytes()
    assert tl.decode(data).shape == (2 * (64 + 35 + 8) + 8, 3 * (64 + 8) + 8, 3)
    assert ds.select(label="people")._native.sheet(24, 64, False) != data
    with pytest.raises(tl.PathExistsError, match="pass overwrite=True"):
        ds.preview(sheet)
    ds.preview(sheet, overwrite=True)
    shown = ds.show(2, size=32)
    assert bytes(getattr(shown, "data", shown)).startswith(b"\x89PNG")
    assert 'src="data:image/png;base64,iVBOR' in ds._repr_html_()
    assert "<img" not in ds.repeat(2)._repr_html_()
    with pytest.raises(SettingError, match="size is 8, expected 32 to 1024 pixels"):
        ds.show(size=8)
    with pytest.raises(SettingError, match="cells has more than"):
        tl.concat(*[ds] * 1000).show(100_000, size=1024)


def test_rows_of_tables_are_samples(tmp_path: pathlib.Path) -> None:
    path = write_table(tmp_path / "table.idv", 50)
    ds = tl.open(path)
    row = ds[3]
    assert row["Single"].numpy() == 0.75
    assert row.index == 3 and "label" not in row and row.kind("Single") == "column"
    assert ds.schema["Single"] == "column" and ds.schema["index"] == "number"
    labelled = tl.open(path, label="Label")
    # A key of 0 is a missing label.
    expected = np.arange(50) % 4 - 1
    assert np.array_equal(labelled.labels, expected)
    assert labelled.classes == ["cat", "dog", "emu"]
    cats = labelled.select(label="cat")
    assert np.array_equal(cats.indices, np.flatnonzero(expected == 0))
    assert (cats[-1].label, cats[-1].index) == (0, 49)
    again = pickle.loads(pickle.dumps(cats))
    assert epoch(again, shuffle=True) == epoch(cats, shuffle=True)
    with tl.DataLoader(cats, batch_size=4, columns=["Single"]) as loader:
        batch = next(iter(loader))
        assert batch["label"].tolist() == [0] * 4
        assert batch["Single"].tolist() == [0.25, 1.25, 2.25, 3.25]
    assert len(epoch(tl.concat(cats.take(2), labelled.skip(45)).skip(1))) == 6
    with pytest.raises(SettingError, match="rows of a table have index, label and class"):
        ds.filter("width > 3")
    with pytest.raises(SettingError, match="tables have rows, not samples"):
        ds.take(3).convert(tmp_path / "copy.tbl")


def test_files_of_a_data_set_are_verified(ds: tl.Dataset) -> None:
    assert ds.take(3).verify(decode=True)["samples"] == 100
    both = tl.open([ds._arguments[0][0]] * 2)
    assert both.verify()["is_good"] and len(both.verify()["files"]) == 1
    with pytest.raises(SettingError, match="not opened by its path alone"):
        tl.concat(ds, both).verify()


@pytest.mark.parametrize(
    ("mistake", "message"),
    [
        (lambda ds: ds.repeat(2).take(1), "put `take` before `repeat`"),
        (lambda ds: ds.repeat(2).labels, "samples of `repeat` have no numbers"),
        (lambda ds: ds.filter("widht > 3"), "`widht` in a filter: no sample has such a file"),
        (lambda ds: ds.filter("width = 3"), "at byte 6: `=`, expected `==`"),
        (lambda ds: ds.select(label="dog"), "no class is called `dog`; its labels are numbers"),
        (lambda ds: ds.select(label=["dog", 1]), "numbers and names, expected one kind"),
        (lambda ds: ds.select([0], label=1), "pass either places or label"),
        (lambda ds: ds.select([True]), "a mask of 1 booleans for 100 samples"),
        (lambda ds: ds.select(["a"]), "'a' is not a number, expected places or a mask"),
        (lambda ds: ds.select("dog"), "'dog' is text; a class is label='dog'"),
        (lambda ds: ds.select(label=2.5), "label is 2.5, expected an integer, the name of a"),
        (lambda ds: tl.DataLoader(ds, 8, 4), "not num_workers: pass num_workers=4"),
        (lambda ds: ds.split(), "a split needs a fraction for each part"),
        (lambda ds: ds.split(90, 10), "fraction 90 of a split: expected a number from 0 to 1"),
        (lambda ds: ds.split(0.5, stratify="key"), "'key' is not a field to divide by"),
        (lambda ds: ds.fold(5, of=5), "fold 5 of 5"),
        (lambda ds: ds.weights([1.0]), "1 weights for 100 samples"),
        (lambda ds: ds.balance(length="long"), "`long`: expected samples, first-used-up"),
        (lambda ds: ds.take(-1), "count is -1, expected a whole number"),
        (lambda ds: tl.mix({}), "mix needs at least one data set"),
        (lambda ds: tl.mix({ds: 1}, stages=[1]), "stages is a dict of weights by their start"),
        (lambda ds: tl.mix({ds: 1}, stages={3: {}}), "stage 3 needs a weight for each data set"),
        (lambda ds: tl.mix({ds: 1}, stages={3: [1, 2]}), "has 2 weights for 1 parts"),
        (lambda ds: tl.concat(), "concat needs at least one data set"),
        (lambda ds: tl.concat("train.tar"), "expected data sets of turboloader.open, not str"),
        (
            lambda ds: tl.DataLoader(ds, store=tl.Store(deadline=3.0)),
            "the data set is open already",
        ),
        (lambda ds: tl.DataLoader(ds.take(0)), "selects none of 100 samples"),
    ],
)
def test_mistakes_are_named(ds: tl.Dataset, mistake: Callable, message: str) -> None:
    with pytest.raises(SettingError) as error:
        mistake(ds)
    assert message in str(error.value)


def test_places_are_checked(ds: tl.Dataset) -> None:
    with pytest.raises(SampleIndexError, match="no sample 100: the data set has 100"):
        ds[100]
    with pytest.raises(SampleIndexError):
        ds[[0, -101]]
    with pytest.raises(SettingError, match="format is tar, but the files are tbl"):
        tl.open(ds._arguments[0], format="tar")
    assert issubclass(SampleIndexError, IndexError) and issubclass(FormatError, ValueError)


def test_examples_run(photos: pathlib.Path, tmp_path: pathlib.Path, monkeypatch) -> None:
    tl.convert(photos, tmp_path / "train.tar")
    (tmp_path / "photos").symlink_to(photos)
    monkeypatch.chdir(tmp_path)
    run_examples(turboloader.dataset)


def test_joins_keep_labels_that_were_given() -> None:
    """Labels in memory and those of the caller go with their samples."""
    pixels = np.zeros((2, 8, 8, 3), np.uint8)
    both = tl.concat(tl.from_arrays(pixels, [3, 1]), tl.from_arrays(pixels, [7, 5]))
    assert both.labels.tolist() == [3, 1, 7, 5]
    (batch,) = tl.DataLoader(both, batch_size=4, transform=tl.Resize((8, 8)))
    assert batch["label"].tolist() == [3, 1, 7, 5]


def test_stats_count_what_there_is(tmp_path: pathlib.Path) -> None:
    """Formats, sizes, classes and pixels are those of the files; damage is listed."""
    sizes = [(20, 30), (10, 50), (40, 35), (15, 31)]
    pixels = []
    for number, (height, width) in enumerate(sizes):
        folder = tmp_path / "ab"[number % 2]
        folder.mkdir(exist_ok=True)
        pixels.append(image(number, height, width))
        (folder / f"{number}.bmp").write_bytes(bmp(pixels[-1]))
    stats = tl.open(tmp_path).stats()
    assert (stats.samples, stats.classes, stats.formats) == (4, {"a": 2, "b": 2}, {"bmp": 4})
    assert (stats.widths, stats.heights) == ((30, 31, 50), (10, 15, 40))
    assert stats.bytes == sum(file.stat().st_size for file in tmp_path.rglob("*.bmp"))
    assert (stats.mean, stats.damaged, stats.damaged_count) == (None, [], 0)
    # One without a header, and one whose pixels end early.
    (tmp_path / "a" / "9.bmp").write_bytes(b"<html>")
    whole = bmp(image(5))
    (tmp_path / "b" / "9.bmp").write_bytes(whole[: len(whole) // 2])
    dataset = tl.open(tmp_path)
    stats = dataset.stats()
    assert stats.samples == 6 and stats.formats == {"bmp": 5} and stats.damaged_count == 1
    others = [file for file in tmp_path.rglob("*.bmp") if file.read_bytes() != b"<html>"]
    assert stats.bytes == sum(file.stat().st_size for file in others)
    ((number, error),) = stats.damaged
    assert number == 2 and "9.bmp" in error and "not a JPEG" in error
    stats = dataset.stats(pixels=True)
    assert [number for number, _ in stats.damaged] == [2, 5] and stats.damaged_count == 2
    flat = np.concatenate([one.reshape(-1, 3) for one in pixels]) / 255
    np.testing.assert_allclose(stats.mean, flat.mean(0), rtol=1e-12)
    np.testing.assert_allclose(stats.std, flat.std(0), rtol=1e-12)
    part = dataset.select(label="a").take(2).stats()
    assert (part.samples, part.classes, part.widths) == (2, {"a": 2}, (30, 30, 35))
    for pixels in (False, True):
        none = tl.open(tmp_path).take(0).stats(pixels=pixels)
        assert (none.samples, none.bytes, none.formats, none.widths) == (0, 0, {}, None)
        assert (none.classes, none.mean, none.damaged) == ({}, None, [])


def test_stats_of_data_without_images(tmp_path: pathlib.Path) -> None:
    with tl.TblWriter(tmp_path / "mixed.tbl") as writer:
        writer.add_sample(b"some text", key="a.txt", label=3)
        writer.add_pixels(np.zeros((4, 6, 3), np.uint8), label=3)
    stats = tl.open(tmp_path / "mixed.tbl").stats()
    assert stats.formats == {"other": 1, "raw_u8": 1} and stats.widths == (6, 6, 6)
    assert stats.classes == {3: 2} and stats.damaged == []
