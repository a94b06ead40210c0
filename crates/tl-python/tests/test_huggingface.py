"""Data sets of `datasets`: samples, labels and orders are those that it gives."""

from __future__ import annotations

import io
import pathlib
import pickle
import re
import shutil
from typing import Any

import numpy as np
import pytest
import turboloader as tl
from turboloader._advice import OF_DATASETS
from turboloader.exceptions import FormatError, PathNotFoundError, SettingError

TESTDATA = pathlib.Path(__file__).parents[3] / "testdata"

# Its own warnings are those of its version.
pytestmark = pytest.mark.filterwarnings("ignore")

datasets = pytest.importorskip("datasets")
PIL = pytest.importorskip("PIL.Image")
datasets.disable_progress_bars()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """Return a copy of a saved data set, next to which `datasets` writes its caches."""
    copy = tmp_path_factory.mktemp("huggingface") / "saved"
    shutil.copytree(TESTDATA / "arrow" / "saved", copy)
    return copy


@pytest.fixture(scope="module")
def saved(folder: pathlib.Path) -> Any:
    return datasets.load_from_disk(str(folder))


def check(theirs: Any, ours: tl.Dataset | None = None) -> tl.Dataset:
    """Compare pixels, labels and class names, one by one and in batches, here and in a copy."""
    ours = tl.from_hf(theirs) if ours is None else ours
    (image,) = (n for n, kind in theirs.features.items() if isinstance(kind, datasets.Image))
    labels = [n for n, kind in theirs.features.items() if isinstance(kind, datasets.ClassLabel)]
    assert len(ours) == len(theirs)
    expected = [np.asarray(row[image].convert("RGB")) for row in theirs]
    copied = pickle.loads(pickle.dumps(ours))
    for some in (ours, copied):
        found = [x for batch in tl.DataLoader(some, batch_size=5) for x in batch["image"]]
        assert all(np.array_equal(a, b) for a, b in zip(found, expected, strict=True))
    assert all(np.array_equal(ours[n].image, pixels) for n, pixels in enumerate(expected))
    assert copied.keys == ours.keys
    if labels:
        assert list(ours.labels) == theirs[labels[0]][:]
        assert ours.classes == theirs.features[labels[0]].names
    return ours


def test_a_data_set_on_disk_is_read_in_its_files(saved: Any, folder: pathlib.Path) -> None:
    ours = check(saved)
    assert ours.explain() == "2 sources: 12 samples"
    files = [pathlib.Path(name).name for name in ours._native.locations()]
    assert files == ["data-00000-of-00002.arrow", "data-00001-of-00002.arrow"]
    # Files of caches are not of the data set.
    assert saved.map(lambda row: {"n": row["label"]}, batched=False).cache_files
    assert list(folder.glob("cache-*.arrow"))
    check(saved, tl.open(folder, format="arrow"))


def test_folders_of_splits_are_refused(saved: Any, tmp_path: pathlib.Path) -> None:
    datasets.DatasetDict(train=saved, test=saved).save_to_disk(str(tmp_path / "both"))
    with pytest.raises(SettingError, match="has the splits train, test; open the folder of one"):
        tl.open(tmp_path / "both")
    check(saved, tl.open(tmp_path / "both" / "train"))
    datasets.DatasetDict(train=saved).save_to_disk(str(tmp_path / "one"))
    check(saved, tl.open(tmp_path / "one"))


@pytest.mark.parametrize(
    "change",
    [
        lambda ds: ds.shuffle(seed=1),
        lambda ds: ds.select(range(3, 9)),
        lambda ds: ds.select([5, 1, 1, 7]),
        lambda ds: ds.select(range(2, 11)).shuffle(seed=2).select(range(4)),
        lambda ds: ds.filter(lambda row: row["label"] > 2),
        lambda ds: ds.sort("label", reverse=True),
        lambda ds: ds.shard(3, 1),
        lambda ds: ds.train_test_split(0.25, seed=3)["train"],
        lambda ds: ds.rename_column("image", "photo"),
        lambda ds: ds.rename_columns({"image": "label", "label": "image"}),
        lambda ds: ds.remove_columns("caption"),
        lambda ds: ds.select_columns(["label", "image"]),
        lambda ds: ds.with_format("numpy"),
    ],
)
def test_orders_and_columns_stay_what_they_are(saved: Any, change: Any) -> None:
    theirs = change(saved)
    if theirs._format_type is None:
        check(theirs)
    else:
        check(saved, tl.from_hf(theirs))
    # No table is copied.
    assert all(
        name.endswith(".arrow") and "/" in name for name in tl.from_hf(theirs)._native.locations()
    )


def test_class_names_are_those_of_the_features(saved: Any) -> None:
    named = saved.cast_column("label", datasets.ClassLabel(names=list("abcdef")))
    assert check(named).classes == list("abcdef")
    wide = saved.cast_column("label", datasets.Value("int32"))
    ours = tl.from_hf(wide)
    assert (ours.classes, list(ours.labels)) == ([], saved["label"][:])


def test_tables_in_memory_and_several_tables_are_read(saved: Any) -> None:
    photos = [
        TESTDATA / "photos" / "animals" / "chelsea.jpg",
        TESTDATA / "photos" / "food" / "coffee.jpg",
    ]
    features = datasets.Features({"image": datasets.Image(), "label": saved.features["label"]})
    images = [{"bytes": photo.read_bytes(), "path": None} for photo in photos]
    memory = datasets.Dataset.from_dict({"image": images, "label": [5, 0]}, features=features)
    assert check(memory).keys == ["memory-0#0.jpg", "memory-0#1.jpg"]
    parts = [saved.remove_columns("caption").shuffle(seed=4), memory, memory.select([1])]
    check(datasets.concatenate_datasets(parts))
    check(saved.add_column("extra", list(range(12))))
    # Paths are not read before the images are, and lead anywhere.
    paths = datasets.Dataset.from_dict({"image": [str(photo) for photo in photos]})
    ours = check(paths.cast_column("image", datasets.Image()))
    assert ours.keys == ["chelsea.jpg", "coffee.jpg"]


def test_other_columns_are_fields(saved: Any) -> None:
    ours = tl.from_hf(saved.rename_column("caption", "text"), fields={"text": tl.Text()})
    assert [ours[n]["text"] for n in range(12)] == saved["caption"][:]
    batch = next(iter(tl.DataLoader(ours, batch_size=12)))
    assert batch["text"] == saved["caption"][:]
    view = ours.select(label="food").take(1)
    assert view[0]["text"] == "coffee, a photograph of food"


def rotated() -> Any:
    """A data set of an image whose EXIF orientation says that it lies on its side."""
    pixels = np.arange(24 * 16 * 3, dtype=np.uint8).reshape(24, 16, 3)
    image = PIL.fromarray(pixels)
    exif = image.getexif()
    exif[0x0112] = 6
    buffer = io.BytesIO()
    image.save(buffer, "PNG", exif=exif)
    features = datasets.Features({"image": datasets.Image()})
    rows = {"image": [{"bytes": buffer.getvalue(), "path": None}]}
    return datasets.Dataset.from_dict(rows, features=features)


def test_images_are_turned_upright_as_datasets_does(tmp_path: pathlib.Path) -> None:
    theirs = rotated()
    assert theirs[0]["image"].size == (24, 16)
    ours = check(theirs)
    assert ours.exif and ours.take(1).exif

    def shape(data: Any, **settings: Any) -> tuple[int, ...]:
        return tuple(next(iter(tl.DataLoader(data, batch_size=1, **settings)))["image"][0].shape)

    assert shape(ours.take(1)) == (16, 24, 3)
    assert shape(ours, exif=False) == (24, 16, 3)
    assert shape(tl.from_hf(theirs, exif=False)) == (24, 16, 3)
    assert shape(tl.from_hf(theirs, exif=False), exif=True) == (16, 24, 3)
    # Stored bytes are what they are, and a copy is opened like any file.
    (data,) = next(iter(tl.DataLoader(ours, batch_size=1, decode=False)))["bytes"]
    assert bytes(data) == theirs.data.column("image")[0].as_py()["bytes"]
    ours.convert(tmp_path / "a.tbl")
    assert shape(str(tmp_path / "a.tbl")) == (24, 16, 3)
    with pytest.raises(SettingError, match="pass exif=False to from_hf"):
        tl.concat(ours, tl.open(tmp_path / "a.tbl"))
    assert len(tl.concat(ours, ours)) == 2 and tl.concat(ours, ours).exif


def test_torch_data_sets_are_turned_too() -> None:
    pytest.importorskip("torch")
    import turboloader.torch

    ours = tl.from_hf(rotated())
    assert turboloader.torch.Dataset(ours, fields=("image",))[0][0].shape == (3, 16, 24)
    assert turboloader.torch.Dataset(ours, fields=("image",), exif=False)[0][0].shape == (3, 24, 16)


def test_loaders_train_with_transforms_and_resume(saved: Any) -> None:
    train = [tl.RandomResizedCrop(24), tl.RandomHorizontalFlip(), tl.ToTensor()]
    settings = {"batch_size": 3, "transform": train, "shuffle": True, "fields": ("image", "label")}
    ours = tl.from_hf(saved.shuffle(seed=5))
    whole = [images.numpy().tobytes() for images, _ in tl.DataLoader(ours, **settings)]
    assert len(set(whole)) == 4
    loader = tl.DataLoader(ours, **settings)
    batches = iter(loader)
    next(batches)
    state = loader.state_dict()
    again = tl.DataLoader(pickle.loads(pickle.dumps(ours)), **settings)
    again.load_state_dict(state)
    assert [images.numpy().tobytes() for images, _ in again] == whole[1:]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda ds: datasets.DatasetDict(train=ds, test=ds),
            r"takes one split of a DatasetDict, such as dataset\['train'\]; it has train, test",
        ),
        (lambda ds: ds.to_iterable_dataset(), "load it without streaming=True"),
        (lambda ds: ds.with_transform(lambda rows: rows), "pass to DataLoader as transform what"),
        (lambda ds: ds.select([]), "the data set has no rows"),
        (lambda ds: [1], "takes a datasets.Dataset, not list$"),
        (lambda ds: "saved", "not str: turboloader.open takes paths"),
    ],
)
def test_what_cannot_be_read_says_what_to_write(saved: Any, make: Any, message: str) -> None:
    with pytest.raises((SettingError, FormatError), match=message):
        tl.from_hf(make(saved))


def test_functions_of_paths_name_from_hf(saved: Any) -> None:
    for function in (tl.open, tl.DataLoader):
        with pytest.raises(SettingError, match=r"a Dataset of datasets: pass turboloader\.from_hf"):
            function(saved)


def test_names_of_datasets_say_what_takes_their_place(saved: Any) -> None:
    ours = tl.from_hf(saved)
    for name, said in OF_DATASETS.items():
        assert hasattr(saved, name)
        with pytest.raises(AttributeError, match=re.escape(f"attribute '{name}': {said}")):
            getattr(ours, name)
    with pytest.raises(AttributeError, match=r"a Dataset has no attribute 'colour'$"):
        _ = ours.colour
    with pytest.raises(TypeError, match="'split': pass the files of the split"):
        tl.open("train.parquet", split="train")


def test_files_that_were_removed_are_named(saved: Any, tmp_path: pathlib.Path) -> None:
    saved.save_to_disk(tmp_path / "copy")
    copy = datasets.load_from_disk(tmp_path / "copy")
    (tmp_path / "copy").rename(tmp_path / "moved")
    with pytest.raises(PathNotFoundError, match=r"copy.*arrow: the file .* was moved or removed"):
        tl.from_hf(copy)


def test_modes_of_images_are_a_warning(saved: Any) -> None:
    grey = saved.cast_column("image", datasets.Image(mode="L"))
    with pytest.warns(UserWarning, match="converts these images to L, .*channels=1"):
        ours = tl.from_hf(grey)
    (batch,) = tl.DataLoader(ours.take(1), batch_size=1, channels=1)
    assert (batch["image"][0].numpy()[..., 0] == np.asarray(grey[0]["image"])).all()


def test_samples_of_other_formats_say_so() -> None:
    buffer = io.BytesIO()
    PIL.new("L", (4, 4)).save(buffer, "PCX")
    features = datasets.Features({"image": datasets.Image()})
    rows = {"image": [{"bytes": buffer.getvalue(), "path": None}]}
    ours = tl.from_hf(datasets.Dataset.from_dict(rows, features=features))
    with pytest.raises(AttributeError, match="its data is not an image file of a known format"):
        _ = ours[0].image


def test_rows_on_disk_are_not_copied_without_limit(
    saved: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("turboloader._huggingface._MOST_COPIED", 1000)
    with pytest.raises(SettingError, match=r"write them by dataset\.save_to_disk"):
        tl.from_hf(saved.add_column("extra", list(range(12))))
    check(saved)


def test_rows_without_images_are_those_of_a_table(tmp_path: pathlib.Path) -> None:
    features = datasets.Features(
        {
            "x": datasets.Value("int64"),
            "v": datasets.List(datasets.Value("float32"), length=2),
            "text": datasets.Value("string"),
            "label": datasets.ClassLabel(names=["a", "b"]),
        }
    )
    rows = {
        "x": list(range(40)),
        "v": [[n, n / 2] for n in range(40)],
        "text": [f"text {n}" for n in range(40)],
        "label": [n % 2 for n in range(40)],
    }
    memory = datasets.Dataset.from_dict(rows, features=features)
    memory.save_to_disk(str(tmp_path / "saved"), num_shards=3)
    stored = datasets.load_from_disk(str(tmp_path / "saved"))
    for theirs in (memory, stored, stored.shuffle(seed=5), stored.rename_column("x", "y")):
        x = "x" if "x" in theirs.column_names else "y"
        ours = tl.from_hf(theirs)
        loader = tl.DataLoader(ours, batch_size=40, columns=[x, "v", "text"])
        (batch,) = loader
        assert batch[x].numpy().tolist() == theirs[x][:]
        np.testing.assert_array_equal(batch["v"].numpy(), np.float32(theirs["v"][:]))
        assert [bytes(text).decode() for text in batch["text"]] == theirs["text"][:]
    (batch,) = tl.DataLoader(tmp_path / "saved", batch_size=40, columns=["x"])
    assert batch["x"].numpy().tolist() == rows["x"]


def test_tokens_of_a_data_set_are_those_of_its_files(tmp_path: pathlib.Path) -> None:
    ids = [[n % 50 + place for place in range(n % 6)] for n in range(60)]
    rows = {"input_ids": ids, "attention_mask": [[1] * len(row) for row in ids]}
    memory = datasets.Dataset.from_dict(rows)
    memory.save_to_disk(str(tmp_path / "saved"), num_shards=2)
    stored = datasets.load_from_disk(str(tmp_path / "saved"))
    expected = [row + [0] * (6 - len(row)) for row in ids]

    def found(source: Any, **settings: Any) -> list[list[int]]:
        tokens = tl.tokens(source, length=6, documents="pad", targets=False, **settings)
        batches = tl.DataLoader(tokens, batch_size=7)
        return [row for batch in batches for row in batch["tokens"].numpy().tolist()]

    assert found(stored) == found(tmp_path / "saved") == expected
    renamed = stored.rename_column("input_ids", "ids").remove_columns("attention_mask")
    assert found(renamed, column="ids") == expected
    assert found(renamed) == expected
    masks = [row["attention_mask"] + [0] * (6 - len(row["attention_mask"])) for row in stored]
    for chosen in (
        stored.remove_columns("input_ids"),
        stored.select_columns(["attention_mask"]),
        stored.with_format(columns=["attention_mask"]),
        stored.rename_columns({"input_ids": "old", "attention_mask": "input_ids"}),
    ):
        assert found(chosen) == masks
    with pytest.raises(SettingError, match="these are old, attention_mask: name it"):
        found(stored.rename_column("input_ids", "old"))
    windows = tl.tokens(stored, length=8)
    assert [len(row["tokens"]) for row in windows] == [8] * len(windows)
    parts = []
    for name in ("a", "b"):
        datasets.Dataset.from_dict({name: ids}).save_to_disk(str(tmp_path / name))
        parts.append(datasets.load_from_disk(str(tmp_path / name)).rename_column(name, "ids"))
    assert found(parts[1]) == expected
    joined = datasets.concatenate_datasets(parts)
    for other in (memory, stored.shuffle(seed=1), stored.select(range(5)), joined):
        with pytest.raises(SettingError, match=r"save_to_disk\(folder\), and pass the folder"):
            found(other)
    with pytest.raises(SettingError, match="no column 'ids', the columns are"):
        found(stored, column="ids")


def test_contact_sheets_are_upright(tmp_path: pathlib.Path) -> None:
    pixels = np.zeros((16, 32, 3), np.uint8)
    pixels[:, :16] = 255
    picture = PIL.fromarray(pixels)
    exif = PIL.Exif()
    exif[0x0112] = 6
    file = io.BytesIO()
    picture.save(file, "png", exif=exif)
    features = datasets.Features({"image": datasets.Image()})
    rows = {"image": [{"bytes": file.getvalue(), "path": None}]}
    theirs = datasets.Dataset.from_dict(rows, features=features)
    sheets = []
    for turned in (True, False):
        sheet = tmp_path / f"{turned}.png"
        tl.from_hf(theirs, exif=turned).preview(sheet, size=64)
        sheets.append(np.asarray(PIL.open(sheet)))
    assert sheets[0].shape == sheets[1].shape
    assert (sheets[0] != sheets[1]).any()
