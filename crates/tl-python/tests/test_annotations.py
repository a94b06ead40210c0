"""Keypoints and masks of objects, next to the boxes that they follow, and COCO's files of them."""

from __future__ import annotations

import json
import pathlib
import pickle
from typing import Any

import numpy as np
import pytest
import turboloader as tl
from conftest import bmp, image

T = tl.transforms

COUNT = 12
FLIP = [T.RandomHorizontalFlip(1.0)]


def person(index: int, number: int) -> dict:
    """An object of sample ``index``: every third box has no pixel."""
    side = 0 if (index + number) % 3 == 0 else 5
    points = [(number + k, index + k, k % 3) for k in range(4)]
    return {
        "bbox": [number, 2, side, side],
        "category_id": number,
        "keypoints": [one for point in points for one in point],
        "area": side * side,
        "segmentation": [[number, 2, number + 5, 2, number + 5, 9, number, 9]],
    }


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """Images of different sizes with some objects, and with two marks each."""
    folder = tmp_path_factory.mktemp("annotations")
    for index in range(COUNT):
        key = folder / f"s{index:02d}"
        key.with_suffix(".bmp").write_bytes(bmp(image(index, 20 + index, 30 - index)))
        people = [person(index, number) for number in range(index % 4)]
        document = {"annotations": people, "marks": [[index, 1], [2, 3.5]]}
        key.with_suffix(".json").write_text(json.dumps(document))
        np.save(key.with_suffix(".npy"), np.array(document["marks"], np.float64))
    return folder


BOXES = tl.Boxes(
    "json:/annotations/*/bbox", labels="/annotations/*/category_id", format="xywh", output="xywh"
)
KEYPOINTS = tl.Keypoints("json:/annotations/*/keypoints")
MASKS = tl.InstanceMasks("json:/annotations/*/segmentation")
FIELDS = {
    "boxes": BOXES,
    "masks": MASKS,
    "keypoints": KEYPOINTS,
    "marks": tl.Keypoints("json:/marks"),
    "same": tl.Keypoints("npy"),
}


def expected(index: int, swapped: bool) -> np.ndarray:
    """The points of sample ``index`` in a mirrored image of 30 - index columns."""
    people = []
    for number in range(index % 4):
        points = np.array(person(index, number)["keypoints"], np.float32).reshape(4, 3)
        if person(index, number)["area"] == 0:
            continue
        points[:, 0] = 30 - index - 1 - points[:, 0]
        points[points[:, 2] == 0] = 0
        people.append(points[[1, 0, 2, 3]] if swapped else points)
    return np.array(people, np.float32).reshape(-1, 4, 3)


@pytest.mark.parametrize("swapped", [False, True])
def test_keypoints_follow_boxes(folder: pathlib.Path, swapped: bool) -> None:
    """Objects without a box have no points; pairs change places where the field lists them."""
    pairs = [(0, 1)] if swapped else []
    fields = FIELDS | {"keypoints": tl.Keypoints(KEYPOINTS.source, flip_pairs=pairs)}
    seen = 0
    for batch in tl.DataLoader(folder, 4, transform=FLIP, fields=fields, shuffle=True):
        for row, index in enumerate(batch["index"].tolist()):
            found = batch["keypoints"][row].numpy()
            assert found.dtype == np.float32
            assert np.array_equal(found, expected(index, swapped))
            assert len(batch["boxes"][row].numpy()) == len(found) == len(batch["box_index"][row])
            masks = batch["masks"][row].numpy()
            assert masks.shape == (len(found), 20 + index, 30 - index)
            left = 30 - index - 5 - batch["box_labels"][row].numpy()
            for number, mask in zip(left, masks, strict=True):
                drawn = np.zeros_like(mask)
                drawn[2:9, number : number + 5] = 1
                assert np.array_equal(mask, drawn)
            marks = np.float32([[29 - 2 * index, 1], [27 - index, 3.5]])
            assert np.array_equal(batch["marks"].numpy()[row], marks)
            seen += len(found)
        assert batch["marks"].shape == (len(batch), 2, 2)
        assert np.array_equal(batch["marks"], batch["same"])
    assert seen == 12


def same(found: object, other: object) -> bool:
    """Whether two fields are equal: tensors, arrays, and lists of them."""
    if isinstance(found, list):
        return len(found) == len(other) and all(map(same, found, other))
    if isinstance(found, (str, int, float, bool, type(None))):
        return found == other
    return np.array_equal(np.asarray(found), np.asarray(other))


def test_batches_with_keypoints_are_used_as_others(folder: pathlib.Path) -> None:
    """Samples, slices, copies and other forms have the points too."""
    (batch,) = tl.DataLoader(folder, COUNT, image_size=8, fields=FIELDS)
    names = ["boxes", "box_labels", "box_index", "masks", "keypoints", "marks", "same"]
    assert [name for name in batch.keys() if name in names] == names  # noqa: SIM118
    assert batch["keypoints"][0].shape == (0, 4, 3) and batch["masks"][0].shape == (0, 8, 8)
    sample = batch[3]
    assert np.array_equal(sample["keypoints"], batch["keypoints"][3])
    assert np.array_equal(sample["marks"], batch["marks"][3])
    again = pickle.loads(pickle.dumps(batch))
    for name in names:
        assert same(again[name], batch[name])
        assert same(batch[2:7][name], list(batch[name][2:7]))
    torch = pytest.importorskip("torch")
    moved = batch.to("cpu")
    assert all(type(one) is torch.Tensor for one in moved["keypoints"])
    assert same(moved["keypoints"], batch["keypoints"]) and same(moved["marks"], batch["marks"])


@pytest.mark.parametrize("settings", [{}, {"buckets": 2}])
def test_keypoints_depend_on_nothing_but_the_recipe(folder: pathlib.Path, settings: dict) -> None:
    """Workers, readers, caches, padding and resumed epochs change no point."""
    size = [T.RandomShortestSize([16, 20])] if settings else [T.RandomResizedCrop(16)]
    data = folder.with_suffix(".tbl")
    if not data.exists():
        tl.open(folder).convert(data)
    transform = [*size, T.RandomHorizontalFlip(), T.RandomVerticalFlip()]

    def loader(**more: object) -> tl.DataLoader:
        given = {"transform": transform, "fields": FIELDS, "shuffle": True, "seed": 5}
        return tl.DataLoader(data, 4, **given, **settings, **more)

    def epochs(**more: object) -> list:
        batches = loader(**more)
        found = []
        for epoch in range(2):
            batches.set_epoch(epoch)
            found += [pickle.loads(pickle.dumps(batch)).tensors() for batch in batches]
        return found

    plain = epochs(num_workers=1)
    for more in (
        {"num_workers": 4},
        {"cache": "64MB"},
        {"cache": tl.Cache(memory="64MB", decoded=True)},
        {"memory": "500MB", "num_workers": 2},
    ):
        other = epochs(**more)
        assert len(other) == len(plain) == 6
        for batch, values in zip(other, plain, strict=True):
            assert all(same(batch[name], values[name]) for name in values), more
    first = loader()
    next(iter(first))
    resumed = loader()
    resumed.load_state_dict(first.state_dict())
    for batch, values in zip(resumed, plain[1:3], strict=True):
        assert all(same(batch[name], values[name]) for name in values)


def test_keypoint_settings_that_are_refused(folder: pathlib.Path) -> None:
    """A setting that cannot be names the field and what was expected."""
    source = KEYPOINTS.source
    for field, message in [
        (tl.Keypoints(source, flip_pairs=[(3, 4)]), "flip_pairs has point 4, expected numbers"),
        (tl.Keypoints("json:/nothing"), "keypoints `people`: they have no shape: no sample has"),
        (tl.Keypoints("json:a/*/b"), "pointer is 'a/*/b', expected one such as '/a/b'"),
        (tl.Keypoints("x.json:marks"), "pointer is 'marks', expected one such as '/a/b'"),
        (tl.Array("json:marks"), "pointer is 'marks', expected one such as '/a/b'"),
        (tl.Keypoints("npz"), "which array?"),
    ]:
        with pytest.raises(tl.LoaderError) as caught:
            tl.DataLoader(folder, 4, image_size=8, fields={"people": field})
        assert "people" in str(caught.value) and message in str(caught.value)
    with pytest.raises(tl.LoaderError, match=r'such as "json:/annotations/\*/segmentation"'):
        tl.DataLoader(folder, 4, image_size=8, fields={"people": tl.InstanceMasks("json")})
    with pytest.raises(tl.LoaderError, match="two fields"):
        tl.DataLoader(folder, 4, image_size=8, fields={"label": tl.Keypoints("json:/marks")})


def test_cocos_pairs_are_left_and_right() -> None:
    """The constant names COCO's points by their left and right."""
    sides = ["eye", "ear", "shoulder", "elbow", "wrist", "hip", "knee", "ankle"]
    names = ["nose", *(f"{side}_{name}" for name in sides for side in ("left", "right"))]
    for left, right in tl.Keypoints.COCO_FLIP_PAIRS:
        assert names[left].replace("left", "right") == names[right]
    assert len(names) == 17 and len(tl.Keypoints.COCO_FLIP_PAIRS) == 8


@pytest.fixture
def coco(tmp_path: pathlib.Path) -> tuple[pathlib.Path, pathlib.Path]:
    """A folder of images, and the file of their objects: polygons, runs and a crowd."""
    (tmp_path / "i").mkdir()
    annotations, images = [], []
    for index in range(6):
        (tmp_path / "i" / f"{index}.bmp").write_bytes(bmp(image(index, 20 + index, 30 - index)))
        images.append({"id": 100 + index, "file_name": f"{index}.bmp"})
        for number in range(index % 3):
            extra = {"image_id": 100 + index, "category_id": 90, "iscrowd": 0}
            annotations.append(person(2 + 3 * index, number) | extra)
    crowd = {"size": [25, 25], "counts": [100, 50, 475]}
    annotations[-2] |= {"iscrowd": 1, "segmentation": crowd}
    document = {
        "images": images,
        "annotations": annotations,
        "categories": [{"id": 90, "name": "person"}],
    }
    (tmp_path / "a.json").write_text(json.dumps(document))
    return tmp_path / "i", tmp_path / "a.json"


def test_coco_with_one_call(coco: tuple[pathlib.Path, pathlib.Path]) -> None:
    """The fields that are named, of the objects that stay; in loaders of views and pickles too."""
    names = ("boxes", "area", "iscrowd", "masks", "keypoints", "image_id")
    ds = tl.coco(*coco, dense=True, fields=names, flip_pairs=[(0, 1)])
    plain = only(tl.coco(*coco))
    assert "boxes" not in plain.keys()  # noqa: SIM118
    for one in (ds, pickle.loads(pickle.dumps(ds)), ds.take(6)):
        batch = only(one)
        assert batch["image_id"].tolist() == [100, 101, 102, 103, 104, 105]
        counts = [0, 1, 1, 0, 1, 1]
        for name in ("boxes", "box_labels", "area", "iscrowd", "masks", "keypoints"):
            assert [len(values) for values in batch[name]] == counts, name
        assert batch["box_labels"][1].tolist() == [0] and batch["area"][1].tolist() == [25]
        assert [values.tolist() for values in batch["iscrowd"]][-2:] == [[False], [True]]
        crowd = np.zeros((25, 25), np.uint8)
        crowd[:, 4:6] = 1
        assert np.array_equal(batch["masks"][5][0], crowd[:, ::-1])
        assert batch["keypoints"][1].shape == (1, 4, 3)
        shapes = [one[1][name].shape for name in ("boxes", "masks", "keypoints")]
        assert shapes == [(1, 4), (1, 21, 29), (1, 4, 3)]
    only_keypoints = only(tl.coco(*coco, fields=["keypoints"]))
    assert [len(points) for points in only_keypoints["keypoints"]] == [0, 1, 2, 0, 1, 2]


def test_names_of_keypoints_give_the_pairs(coco: tuple[pathlib.Path, pathlib.Path]) -> None:
    """As pairs that are passed; an object without keypoints has points without a label."""
    document = json.loads(coco[1].read_text())
    document["categories"][0]["keypoints"] = ["left_eye", "right_eye", "nose", "tail"]
    del document["annotations"][-1]["keypoints"]
    coco[1].write_text(json.dumps(document))

    def points(**settings: Any) -> list[list[Any]]:
        batch = only(tl.coco(*coco, fields=["keypoints"], **settings))
        return [one.tolist() for one in batch["keypoints"]]

    assert points() == points(flip_pairs=[(0, 1)]) != points(flip_pairs=())
    assert points()[-1][-1] == [[0, 0, 0]] * 4
    ds = tl.coco(*coco, fields=["keypoints"])
    assert ds.fields["keypoints"].flip_pairs == [(0, 1)]
    assert pickle.loads(pickle.dumps(ds)).fields == ds.fields
    with pytest.raises(tl.SampleError, match="expected 4 points of 3 numbers"):
        strict = tl.Keypoints("json:/annotations/*/keypoints")
        only(tl.coco(*coco).with_fields({"keypoints": strict}))


def only(ds: tl.Dataset) -> tl.Batch:
    """The one batch of a data set, mirrored."""
    (batch,) = tl.DataLoader(ds, 8, transform=FLIP)
    return batch


def test_coco_fields_that_are_refused(coco: tuple[pathlib.Path, pathlib.Path]) -> None:
    """Names that are not those of fields, and pairs of points that are not there."""
    with pytest.raises(tl.SettingError, match="'mask' is not one of boxes, area, iscrowd, masks"):
        tl.coco(*coco, fields=("boxes", "mask"))
    with pytest.raises(tl.SettingError, match='flip_pairs needs "keypoints" in fields'):
        tl.coco(*coco, fields=("boxes",), flip_pairs=[(0, 1)])
    with pytest.raises(tl.LoaderError, match="flip_pairs has point 15, expected numbers below 4"):
        pairs = tl.Keypoints.COCO_FLIP_PAIRS[-1:]
        only(tl.coco(*coco, fields=("keypoints",), flip_pairs=pairs))
