"""Data sets from lists, pairs of files and memory have the samples that they say."""

from __future__ import annotations

import gc
import json
import pathlib
import pickle
import random

import numpy as np
import pytest
import turboloader as tl
import turboloader.sources
from conftest import bmp, image, run_examples
from turboloader.exceptions import FormatError, SettingError


def images(root: pathlib.Path, names: list[str]) -> None:
    for number, name in enumerate(names):
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(bmp(image(number)))


def same(ds: tl.Dataset, place: int, number: int) -> bool:
    return np.array_equal(ds[place]["image"], image(number))


def test_the_examples_run(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names = ["a.bmp", "b.bmp", "val2017/1.bmp", "JPEGImages/1.jpg", "JPEGImages/2.jpg"]
    images(tmp_path, [*names, "photos/x.jpg", "photos/y/z.jpg"])
    photos = [f"photos/{number}.jpg" for number in range(3)]
    images(tmp_path, photos)
    (tmp_path / "train.csv").write_text("path,class,caption\na.bmp,dog,a dog\nb.bmp,cat,a cat\n")
    (tmp_path / "instances_val2017.json").write_text(
        json.dumps(
            {
                "images": [{"id": 1, "file_name": "1.bmp"}],
                "annotations": [{"image_id": 1, "category_id": 1}],
                "categories": [{"id": 1, "name": "person"}],
            }
        )
    )
    mask = tmp_path / "SegmentationClass"
    mask.mkdir()
    for number in (1, 2):
        (mask / f"{number}.png").write_bytes(gray_png(np.zeros((6, 10), np.uint8)))
    (tmp_path / "train.txt").write_text("1\n2\n")
    run_examples(turboloader.sources)


def gray_png(pixels: np.ndarray) -> bytes:
    import struct
    import zlib

    height, width = pixels.shape

    def chunk(kind: bytes, data: bytes) -> bytes:
        return (
            struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        )

    pixels = pixels.astype(pixels.dtype.newbyteorder(">"))
    rows = b"".join(b"\0" + row.tobytes() for row in pixels)
    bits = 8 * pixels.dtype.itemsize
    head = struct.pack(">IIBBBBB", width, height, bits, 0, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", head)
        + chunk(b"IDAT", zlib.compress(rows))
        + chunk(b"IEND", b"")
    )


def test_a_manifest_has_labels_and_fields(tmp_path: pathlib.Path) -> None:
    images(tmp_path, ["i/a.bmp", "i/b.bmp"])
    (tmp_path / "m.csv").write_text("file,kind,text\nb.bmp,dog,x\na.bmp,cat,\n")
    ds = tl.manifest(tmp_path / "m.csv", label="kind", root=tmp_path / "i")
    assert ds.labels.tolist() == [1, 0] and ds.classes == ["cat", "dog"]
    assert ds.keys == ["b.bmp", "a.bmp"]
    assert same(ds, 0, 1) and same(ds, 1, 0)
    again = pickle.loads(pickle.dumps(ds))
    assert again.labels.tolist() == [1, 0]
    with tl.DataLoader(ds, 2, fields={"text": tl.Bytes()}) as loader:
        batch = next(iter(loader))
        assert batch["text"] == [b"x", b""] and batch["label"].tolist() == [1, 0]
    copy = tmp_path / "copy.tbl"
    tl.convert(ds, copy)
    stored = tl.open(copy)
    assert stored.classes == ["cat", "dog"] and stored[0]["text"] == ds[0]["text"]
    with pytest.raises(SettingError, match=r"m.csv: no column `nope`, expected one of: file, kind"):
        tl.manifest(tmp_path / "m.csv", label="nope")
    with pytest.raises(FormatError, match=r"line 2, column `file`: 2 named files do not exist"):
        tl.manifest(tmp_path / "m.csv")


def test_a_folder_with_metadata_is_an_imagefolder(tmp_path: pathlib.Path) -> None:
    images(tmp_path, ["a.bmp", "b.bmp"])
    (tmp_path / "metadata.csv").write_text("file_name,text,label\nb.bmp,two,1\na.bmp,one,0\n")
    ds = tl.open(tmp_path, format="imagefolder")
    assert ds.keys == ["b.bmp", "a.bmp"] and ds.labels.tolist() == [1, 0]
    assert ds[0]["text"] == "two"
    with pytest.raises(SettingError, match="format is tar, but the files are manifest"):
        tl.open(tmp_path, format="tar")


def test_images_by_a_pattern_are_one_data_set(tmp_path: pathlib.Path) -> None:
    images(tmp_path, ["p/cat/1.bmp", "p/dog/2.bmp", "p/dog/3.bmp"])
    ds = tl.open(str(tmp_path / "p/*/*.bmp"))
    assert ds.keys == ["cat/1.bmp", "dog/2.bmp", "dog/3.bmp"]
    assert ds.classes == ["cat", "dog"] and ds.labels.tolist() == [0, 1, 1]
    flat = tl.open([tmp_path / "p/dog/3.bmp", tmp_path / "p/dog/2.bmp"])
    assert flat.keys == ["3.bmp", "2.bmp"] and flat.labels.tolist() == [-1, -1]


def test_labels_come_from_lists_dicts_and_files(tmp_path: pathlib.Path) -> None:
    images(tmp_path, ["p/1.bmp", "p/2.bmp", "p/3.bmp"])
    folder = tmp_path / "p"
    table = tmp_path / "l.csv"
    table.write_text("id,breed\n3,pug\n1,boxer\n2,pug\n")
    for labels, expected, classes in [
        ([5, 6, 7], [5, 6, 7], []),
        (np.array([2, 1, 0]), [2, 1, 0], []),
        (["b", "a", "b"], [1, 0, 1], ["a", "b"]),
        ({"1": 4, "2.bmp": 5, "3": 6}, [4, 5, 6], []),
        ({"1": "y", "2": "x", "3": "y"}, [1, 0, 1], ["x", "y"]),
        (table, [0, 1, 1], ["boxer", "pug"]),
    ]:
        ds = tl.open(folder, labels=labels)
        assert ds.labels.tolist() == expected and ds.classes == classes
        assert pickle.loads(pickle.dumps(ds)).labels.tolist() == expected
        with tl.DataLoader(folder, 3, labels=labels) as loader:
            assert next(iter(loader))["label"].tolist() == expected
    with pytest.raises(FormatError, match=r"2 of 3 samples have no label here, first `2\.bmp`"):
        tl.open(folder, labels={"1": 4})
    with pytest.warns(UserWarning, match="samples without a label"):
        ds = tl.open(folder, labels={"1": 4}, allow_unlabelled=True)
    assert ds.labels.tolist() == [4, -1, -1]
    with pytest.raises(SettingError, match="1 labels for 3 samples"):
        tl.open(folder, labels=[1])
    with pytest.raises(SettingError, match="the data set is open already"):
        tl.DataLoader(ds, labels=[1, 2, 3])


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (3, "labels has type int, expected a list or an array of integers or of names"),
        (lambda key: 1, "labels has type function, expected a list"),
        ({3: 4}, "labels: 3 is not the name of a sample"),
        ({0: 4}, "labels: 0 is not the name of a sample"),
        ({"a": None}, "labels: None in place 0, expected integers alone or names of classes"),
        ([1, "a"], "labels: 'a' in place 1, expected integers alone"),
        ([True], "labels: True in place 0"),
        (np.zeros(3), "labels: 0.0 in place 0, .*other values are fields"),
        (np.zeros((3, 2), np.int64), "labels: several labels in place 0, .*MultiLabel"),
    ],
)
def test_labels_of_other_kinds_are_named(
    tmp_path: pathlib.Path, labels: object, message: str
) -> None:
    images(tmp_path, ["1.bmp", "2.bmp", "3.bmp"])
    with pytest.raises(SettingError, match=message):
        tl.open(tmp_path, labels=labels)  # type: ignore[arg-type]
    numbers = tl.open(tmp_path, labels=[np.int64(4), np.uint8(5), 6])
    assert numbers.labels.tolist() == [4, 5, 6]


def test_pairs_have_masks(tmp_path: pathlib.Path) -> None:
    images(tmp_path, ["i/1.bmp", "i/2.bmp"])
    (tmp_path / "m").mkdir()
    pixels = np.arange(60, dtype=np.uint8).reshape(6, 10)
    (tmp_path / "m/2.png").write_bytes(gray_png(pixels))
    patterns = {"image": tmp_path / "i/*.bmp", "mask": str(tmp_path / "m/*.png")}
    with pytest.raises(FormatError, match=r"1 of 2 files have no partner in .*m/\*.png"):
        tl.pairs(**patterns)
    ds = tl.pairs(**patterns, unpaired="drop")
    assert ds.keys == ["i/2.bmp"] and np.array_equal(ds[0]["mask"][:, :, 0], pixels)
    recipe = tl.Compose([tl.Resize((6, 10)), tl.RandomHorizontalFlip(1.0), tl.ToTensor()])
    with tl.DataLoader(ds, 1, transform=recipe, fields={"mask": tl.Mask()}) as loader:
        masks = next(iter(loader))["mask"].numpy()
        assert np.array_equal(masks[0], pixels[:, ::-1])
    assert len(tl.pairs(**patterns, unpaired="keep")) == 2
    with pytest.raises(SettingError, match="unpaired is"):
        tl.pairs(**patterns, unpaired="no")  # type: ignore[arg-type]


def test_coco_boxes_move_with_the_image(tmp_path: pathlib.Path) -> None:
    images(tmp_path, ["i/1.bmp"])
    (tmp_path / "a.json").write_text(
        json.dumps(
            {
                "images": [{"id": 5, "file_name": "1.bmp"}],
                "annotations": [{"image_id": 5, "category_id": 90, "bbox": [1, 2, 3, 4]}],
                "categories": [{"id": 90, "name": "cup"}, {"id": 2, "name": "dog"}],
            }
        )
    )
    ds = tl.coco(tmp_path / "i", tmp_path / "a.json", dense=True)
    assert ds.box_classes == ["dog", "cup"]
    boxes = tl.Boxes("json:/annotations/*/bbox", labels="/annotations/*/category_id", format="xywh")
    recipe = tl.Compose([tl.Resize((6, 10)), tl.RandomHorizontalFlip(1.0), tl.ToTensor()])
    with tl.DataLoader(ds, 1, transform=recipe, fields={"boxes": boxes}) as loader:
        batch = next(iter(loader))
        assert np.asarray(batch["boxes"][0]).tolist() == [[6, 2, 9, 6]]
        assert np.asarray(batch["box_labels"][0]).tolist() == [1]
    with pytest.raises(SettingError, match=r"no sample has a label; its objects have categories"):
        ds.select(label="cup")
    cups = ds.filter(lambda sample: len(sample.field("json")["annotations"]) == 1)
    assert len(cups) == 1
    sparse = tl.coco(tmp_path / "i", tmp_path / "a.json")
    assert sparse.box_classes[90] == "cup"
    assert sparse[0]["json"]["annotations"][0]["category_id"] == 90


def test_names_of_box_classes_are_kept_or_refused(tmp_path: pathlib.Path) -> None:
    stored = tmp_path / "boxes.tbl"
    document = json.dumps({"annotations": [{"category_id": 1, "bbox": [0, 0, 4, 4]}]})
    images(tmp_path, ["1.bmp"])
    with tl.TblWriter(stored, box_class_names=["", "cup"]) as writer:
        writer.add_sample((tmp_path / "1.bmp").read_bytes(), fields={"json": document})
    assert tl.open(stored).box_classes == ["", "cup"]
    assert names_of_boxes(tl.open(stored)) == [["cup"]]
    (tmp_path / "large").mkdir()
    annotations = write_coco(tmp_path / "large", {70_000: "cup", 3: "dog"}, [70_000])
    with pytest.raises(tl.FormatError, match=r"category 70000 .*0 to 65535: .*dense=True"):
        tl.convert(tl.coco(None, annotations), tmp_path / "large.tbl", to="tbl")
    tl.convert(tl.coco(None, annotations, dense=True), tmp_path / "dense.tbl", to="tbl")
    assert names_of_boxes(tl.open(tmp_path / "dense.tbl")) == [["cup"]]


def write_coco(root: pathlib.Path, categories: dict[int, str], numbers: list[int]) -> pathlib.Path:
    images(root, ["1.bmp"])
    objects = [{"image_id": 5, "category_id": number, "bbox": [1, 2, 3, 4]} for number in numbers]
    document = {
        "images": [{"id": 5, "file_name": "1.bmp"}],
        "annotations": objects,
        "categories": [{"id": number, "name": name} for number, name in categories.items()],
    }
    (root / "a.json").write_text(json.dumps(document))
    return root / "a.json"


def names_of_boxes(ds: tl.Dataset) -> list[list[str]]:
    field = tl.Boxes("json:/annotations/*/bbox", labels="/annotations/*/category_id", format="xywh")
    with tl.DataLoader(ds, 1, fields={"boxes": field}, image_size=8) as loader:
        labels = [np.asarray(batch["box_labels"][0]).tolist() for batch in loader]
    return [[ds.box_classes[label] for label in of_image] for of_image in labels]


def test_joined_coco_sets_share_their_categories(tmp_path: pathlib.Path) -> None:
    first = write_coco(tmp_path / "first", {1: "dog", 2: "cat"}, [2, 1])
    second = write_coco(tmp_path / "second", {1: "cat", 2: "ant"}, [1, 2])
    a, b = tl.coco(None, first), tl.coco(None, second)
    joined = [a + b, tl.open([first, second]), tl.concat(b, a).select([1, 0])]
    for ds in joined:
        assert ds.box_classes == ["ant", "cat", "dog"]
        assert names_of_boxes(ds) == [["cat", "dog"], ["cat", "ant"]]
        assert ds[0]["json"]["annotations"][0]["category_id"] == 1
        ds.convert(tmp_path / "joined.tbl", overwrite=True)
        stored = tl.open(tmp_path / "joined.tbl")
        assert stored.box_classes == ["ant", "cat", "dog"]
        assert names_of_boxes(stored) == [["cat", "dog"], ["cat", "ant"]]
    with pytest.warns(UserWarning) as warned:
        joined[0].convert(tmp_path / "joined.tar")
    messages = [str(warning.message) for warning in warned]
    assert any("cannot store 3 names of box classes" in message for message in messages)
    assert any("1 samples renamed: names were taken" in message for message in messages)
    assert tl.open(tmp_path / "joined.tar").keys == ["1.bmp", "1-1.bmp"]
    same_numbers = write_coco(tmp_path / "third", {2: "cat", 7: "bee"}, [7])
    extended = a + tl.coco(None, same_numbers)
    assert extended.box_classes == ["", "dog", "cat", "", "", "", "", "bee"]
    assert names_of_boxes(extended) == [["cat", "dog"], ["bee"]]


def test_categories_never_get_the_names_of_another_data_set(tmp_path: pathlib.Path) -> None:
    named = tl.coco(None, write_coco(tmp_path / "coco", {1: "dog", 3: "cat"}, [3]))
    images(tmp_path / "plain", ["1.bmp"])
    document = {"annotations": [{"category_id": 3, "bbox": [1, 2, 3, 4]}]}
    (tmp_path / "plain" / "1.json").write_text(json.dumps(document))
    plain = tl.open(tmp_path / "plain")
    assert plain[0]["json"] == document
    joined = tl.concat(plain, named)
    assert joined.box_classes == ["", "dog", "", "cat"]
    assert joined[1]["json"]["annotations"][0]["category_id"] == 3
    expected = r"sample 0 \(1.bmp\).*: an annotation has category 3, which has no name because"
    with pytest.raises(tl.LoaderError, match=expected):
        joined[0]["json"]
    with pytest.raises(tl.LoaderError, match=expected):
        names_of_boxes(joined)


def test_imagenet_as_it_is_downloaded(tmp_path: pathlib.Path) -> None:
    images(tmp_path, [f"val/ILSVRC2012_val_{number:08}.JPEG" for number in (1, 2, 3)])
    images(tmp_path, ["train/n01/a.JPEG", "train/n02/b.JPEG"])
    assert tl.imagenet(tmp_path).classes == ["n01", "n02"]
    with pytest.raises(SettingError, match="ILSVRC2012_validation_ground_truth"):
        tl.imagenet(tmp_path, "val")
    labels = tmp_path / "imagenet_2012_validation_synset_labels.txt"
    labels.write_text("n02\nn01\nn02\n")
    val = tl.imagenet(tmp_path, "val")
    assert val.classes == ["n01", "n02"] and val.labels.tolist() == [1, 0, 1]
    assert pickle.loads(pickle.dumps(val)).labels.tolist() == [1, 0, 1]
    with pytest.raises(FileNotFoundError, match="neither"):
        tl.imagenet(tmp_path / "train")


def test_imagenet_val_has_the_numbers_of_train(tmp_path: pathlib.Path) -> None:
    images(tmp_path, [f"train/n0{number}/a.JPEG" for number in (1, 2, 3)])
    images(tmp_path, ["val/n02/a.JPEG", "val/n03/b.JPEG"])
    val = tl.imagenet(tmp_path, "val")
    assert (val.labels.tolist(), val.classes) == ([1, 2], ["n01", "n02", "n03"])
    assert pickle.loads(pickle.dumps(val)).labels.tolist() == [1, 2]
    batch = next(iter(tl.DataLoader(val.skip(1), 1, image_size=8)))
    assert batch["label"].tolist() == [2]
    images(tmp_path, ["val/n01/c.JPEG"])
    assert tl.imagenet(tmp_path, "val").classes == ["n01", "n02", "n03"]
    images(tmp_path, ["val/n00/d.JPEG"])
    with pytest.warns(UserWarning, match="train has no class `n00`, which is 0 in val"):
        assert tl.imagenet(tmp_path, "val").classes[0] == "n00"


def test_classes_of_another_data_set(tmp_path: pathlib.Path) -> None:
    images(tmp_path, ["train/cat/a.png", "train/dog/b.png", "train/emu/c.png"])
    images(tmp_path, ["val/dog/a.png", "val/emu/b.png"])
    train, val = tl.open(tmp_path / "train"), tl.open(tmp_path / "val")
    assert val.labels.tolist() == [0, 1]
    same = val.with_classes(train.classes)
    assert (same.labels.tolist(), same.classes) == ([1, 2], train.classes)
    assert same.select(label="emu")[0].label == 2
    tl.convert(same, tmp_path / "val.tbl", to="tbl")
    assert tl.open(tmp_path / "val.tbl").labels.tolist() == [1, 2]
    with pytest.raises(SettingError, match=r"1 samples have other classes .* 2 .* first `cat`"):
        train.with_classes(val.classes)
    with pytest.raises(tl.LoaderError, match=r"class `dog` .*twice"):
        val.with_classes(["dog", "emu", "dog"])
    with pytest.raises(SettingError, match="numbers without class names"):
        tl.from_items([(b"x", 3)]).with_classes(["a"])
    with pytest.raises(SettingError, match="give classes first"):
        val.take(1).with_classes(train.classes)
    with pytest.raises(SettingError, match="classes is the text 'dog'"):
        val.with_classes("dog")


def test_the_ground_truth_of_one_class_has_the_number_of_train(tmp_path: pathlib.Path) -> None:
    images(tmp_path, ["val/ILSVRC2012_val_00000001.JPEG"])
    images(tmp_path, ["train/n01/a.JPEG", "train/n02/b.JPEG"])
    (tmp_path / "imagenet_2012_validation_synset_labels.txt").write_text("n02\n")
    assert tl.imagenet(tmp_path, "val").labels.tolist() == [1]


@pytest.mark.parametrize("name", ["key", "index", "bytes", "valid", "size"])
def test_fields_with_the_names_of_every_sample_are_refused(
    tmp_path: pathlib.Path, name: str
) -> None:
    images(tmp_path, ["a/0.png", "b/0.png"])
    expected = f"field {name}: samples and batches have their own {name}, choose another name"
    with pytest.raises(SettingError, match=expected):
        tl.from_arrays(np.zeros((2, 4, 4, 3), np.uint8), **{name: np.zeros(2)})
    with pytest.raises(SettingError, match=expected):
        tl.pairs(str(tmp_path / "a/*.png"), **{name: str(tmp_path / "b/*.png")})


def test_a_reserved_column_is_read_under_another_name(tmp_path: pathlib.Path) -> None:
    images(tmp_path, ["a/0.png", "b/0.png"])
    table = tmp_path / "m.csv"
    table.write_text("path,index,key\na/0.png,7,x\nb/0.png,8,y\n")
    with pytest.raises(SettingError, match="field key: samples have their own key"):
        tl.manifest(table).with_fields({"key": tl.Text("key")})
    ds = tl.manifest(table).with_fields({"row": tl.Text("index"), "name": tl.Text("key")})
    assert (ds[1]["row"], ds[1]["name"], ds[1].index) == ("8", "y", 1)
    batch = next(iter(tl.DataLoader(ds, batch_size=2, image_size=8)))
    assert (batch["row"], batch["name"]) == (["7", "8"], ["x", "y"])
    assert batch["index"].numpy().tolist() == [0, 1]


def test_copies_have_the_labels_of_their_source(tmp_path: pathlib.Path) -> None:
    images(tmp_path, ["a/0.png", "b/0.png"])
    table = tmp_path / "m.jsonl"
    table.write_text(
        '{"path": "a/0.png", "json": {"label": 3}}\n{"path": "b/0.png", "json": {"label": 4}}\n'
    )
    ds = tl.manifest(table)
    for name, to in [("m.tbl", "tbl"), ("m.tar", "tar")]:
        tl.convert(ds, tmp_path / name, to=to, sync=False)
        copy = tl.open(tmp_path / name)
        assert (copy.labels.tolist(), copy.classes) == ([-1, -1], [])
        assert copy[0]["json"] == {"label": 3} and copy[0].label in (None, -1)


def test_pairs_have_no_field_called_label(tmp_path: pathlib.Path) -> None:
    images(tmp_path, ["a/0.png", "b/0.png"])
    with pytest.raises(SettingError, match="field label: samples and batches have their own"):
        tl.pairs(str(tmp_path / "a/*.png"), label=str(tmp_path / "b/*.png"))


def test_items_in_memory(tmp_path: pathlib.Path) -> None:
    files = [bmp(image(number)) for number in range(4)]
    ds = tl.from_items(files, labels=["b", "a", "b", "a"])
    assert ds.labels.tolist() == [1, 0, 1, 0] and ds.classes == ["a", "b"]
    assert all(same(ds, number, number) for number in range(4))
    assert pickle.loads(pickle.dumps(ds)).labels.tolist() == [1, 0, 1, 0]
    pairs = tl.from_items([(data, number) for number, data in enumerate(files)])
    with tl.DataLoader(pairs, 4, shuffle=True) as loader:
        batch = next(iter(loader))
        for number, label in enumerate(batch["label"].tolist()):
            assert np.array_equal(batch["image"][number].numpy(), image(label))

    class Items:
        def __len__(self) -> int:
            return 4

        def __getitem__(self, index: int) -> bytes:
            if index >= 4:
                raise IndexError(index)
            return files[index]

    assert same(tl.from_items(Items()), 3, 3)

    class Broken(Items):
        def __getitem__(self, index: int) -> bytes:
            return files[index] if index < 2 else files[{}[index]]

    with pytest.raises(tl.SampleError, match="item 2: KeyError: 2") as raised:
        tl.from_items(Broken())
    assert isinstance(raised.value.__cause__, KeyError)
    tl.convert(ds, tmp_path / "a.tbl")
    assert tl.open(tmp_path / "a.tbl").labels.tolist() == [1, 0, 1, 0]
    for wrong, message in [
        (b"abc", "items is bytes, expected a sequence"),
        ([image(1)], "item 0 is ndarray, expected bytes"),
        ([(files[0], 1), files[1]], "labels are given for some items"),
    ]:
        with pytest.raises(SettingError, match=message):
            tl.from_items(wrong)


@pytest.mark.parametrize("shape", [(5, 7, 3), (5, 7), (5, 7, 1), (5, 7, 4)])
def test_arrays_in_memory(shape: tuple[int, ...]) -> None:
    pixels = np.random.default_rng(1).integers(0, 256, (6, *shape), np.uint8)
    scores = np.arange(12, dtype=np.float32).reshape(6, 2)
    ds = tl.from_arrays(pixels, np.arange(6) % 3, score=scores)
    assert ds.labels.tolist() == [0, 1, 2, 0, 1, 2]
    assert np.array_equal(ds[4]["score"], scores[4])
    seen = np.stack([np.asarray(sample["image"]) for sample in ds])
    if shape[2:] == (4,):
        assert np.array_equal(seen, pixels[..., :3])
    else:
        gray = pixels.reshape(6, 5, 7, -1)
        assert np.array_equal(seen, np.broadcast_to(gray, (6, 5, 7, 3)))
    assert len(pickle.loads(pickle.dumps(ds))) == 6


def test_arrays_of_other_kinds_are_refused() -> None:
    for wrong in [np.zeros((2, 4, 4, 3)), np.zeros((2, 4, 4, 2), np.uint8), np.zeros(3, np.uint8)]:
        with pytest.raises(SettingError, match="expected uint8 of shape"):
            tl.from_arrays(wrong)
    with pytest.raises(SettingError, match="score has shape"):
        tl.from_arrays(np.zeros((2, 4, 4, 3), np.uint8), score=np.zeros(3))


@pytest.mark.filterwarnings("ignore")
def test_masks_are_those_of_pycocotools() -> None:
    masks = pytest.importorskip("pycocotools.mask")
    rng = random.Random(3)
    for _ in range(400):
        height, width = rng.randrange(1, 90), rng.randrange(1, 90)
        polygons = []
        for _ in range(rng.choice([1, 2, 3])):
            corners = rng.choice([3, 4, 7, 20])
            polygons.append(
                [
                    round(rng.uniform(-5, limit + 5), rng.choice([0, 1, 2]))
                    for _ in range(corners)
                    for limit in (width, height)
                ]
            )
        runs = masks.merge(masks.frPyObjects(polygons, height, width))
        expected = masks.decode(runs)
        assert np.array_equal(tl.coco_mask(polygons, height, width).numpy(), expected)
        assert np.array_equal(tl.coco_mask(runs, height, width).numpy(), expected)
    with pytest.raises(SettingError, match="the run lengths cover 3 pixels"):
        tl.coco_mask({"size": [2, 2], "counts": [3]}, 2, 2)


def hf_case(root: pathlib.Path, rng: random.Random) -> None:
    """A folder with metadata files in some folders, as users write them."""
    kind = rng.choice(["csv", "jsonl"])
    columns = rng.sample(["text", "label", "score", "other_file_name"], rng.randrange(4))
    folders = rng.sample(["", "a/", "b/", "b/deep/"], rng.randrange(1, 4))
    every = [f"{folder}{name}.png" for folder in ["", "a/", "b/", "b/deep/"] for name in "xyz"]
    for number, name in enumerate(every):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(gray_png(np.full((2, 2), number, np.uint8)))
    for folder in folders:
        inside = [name[len(folder) :] for name in every if name.startswith(folder)]
        rows = []
        for number in range(rng.randrange(1, 5)):
            row: dict[str, object] = {"file_name": rng.choice(inside)}
            values = {
                "text": f'a "quoted", text {number}\nof two lines é',
                "label": number,
                "score": number + 0.5,
                "other_file_name": rng.choice(inside),
            }
            rows.append(row | {name: values[name] for name in columns})
        path = root / folder / f"metadata.{kind}"
        if kind == "jsonl":
            path.write_text("\n".join(map(json.dumps, rows)))
        else:
            import csv

            with path.open("w", newline="") as file:
                writer = csv.DictWriter(file, ["file_name", *columns])
                writer.writeheader()
                writer.writerows(rows)


@pytest.mark.filterwarnings("ignore")
def test_metadata_files_are_read_as_hugging_face_reads_them(tmp_path: pathlib.Path) -> None:
    datasets = pytest.importorskip("datasets")
    datasets.disable_progress_bars()
    for case in range(12):
        root = tmp_path / str(case)
        root.mkdir()
        hf_case(root, random.Random(case))
        cache = str(tmp_path / "cache")
        theirs = datasets.load_dataset(
            "imagefolder", data_dir=str(root), split="train", cache_dir=cache
        )
        ours = tl.open(root)

        def pixel(value: object) -> int:
            return int(np.asarray(value).ravel()[0])

        def seen(row: object, names: list[str]) -> list[object]:
            assert isinstance(row, (dict, tl.Sample))
            values: list[object] = [pixel(row["image"])]
            for name in names:
                value = row[name]
                value = value.decode() if isinstance(value, bytes) else value
                values.append(pixel(value) if name == "other" else str(value))
            return values

        names = [name for name in ("text", "score", "other", "label") if name in theirs.features]
        # `datasets` keeps the metadata files in a set: their order differs from run to run.
        found = sorted(seen(sample, names) for sample in ours)
        assert found == sorted(seen(row, names) for row in theirs)
    # Files that `datasets` leaves open are closed while their warnings are ignored.
    del theirs
    gc.collect()
