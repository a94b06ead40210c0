"""Fields of samples: texts, numbers, arrays and further images beside each image."""

from __future__ import annotations

import io
import json
import pathlib
import pickle

import numpy as np
import pytest
import turboloader as tl
from conftest import bmp, image

# What the samples' further images are for is not said everywhere here.
pytestmark = pytest.mark.filterwarnings("ignore:.*samples have several images")

T = tl.transforms

COUNT = 10
TAGS = ["ant", "bee", "cat"]


def document(index: int) -> dict:
    return {"score": index / 4, "tags": TAGS[: index % 4], "who": {"name": f"é{index}"}}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """Samples of several files; every third lacks its text."""
    folder = tmp_path_factory.mktemp("fields")
    for index in range(COUNT):
        key = folder / f"s{index:02d}"
        key.with_suffix(".bmp").write_bytes(bmp(image(index)))
        key.with_suffix(".right.bmp").write_bytes(bmp(image(index)))
        key.with_suffix(".other.bmp").write_bytes(bmp(image(index + 50, 9, 7)))
        key.with_suffix(".json").write_text(json.dumps(document(index)))
        key.with_suffix(".kind").write_text(TAGS[index % 3])
        np.save(key.with_suffix(".npy"), np.full((2, 3), index, np.int16))
        np.savez_compressed(key.with_suffix(".npz"), latent=np.arange(4) + index)
        if index % 3:
            key.with_suffix(".txt").write_text(f"caption {index}")
    return folder


def only(loader: tl.DataLoader, *names: str) -> dict[str, list]:
    """The values of all samples, in their order."""
    values: dict[str, list] = {name: [] for name in names}
    for batch in loader:
        for name in names:
            field = batch[name]
            values[name] += list(field if isinstance(field, list) else field.numpy())
    return values


def test_kinds(folder: pathlib.Path) -> None:
    """Every kind of field gives the values of its files."""
    fields = {
        "caption": tl.Text("txt"),
        "name": tl.Json("json:/who/name"),
        "json": tl.Json(),
        "raw": tl.Bytes("kind"),
        "score": tl.Number("json:/score"),
        "kind": tl.Label(classes=TAGS),
        "tags": tl.MultiLabel("json:/tags", classes=TAGS),
        "array": tl.Array("npy"),
        "latent": tl.Array("npz:latent", dtype="float32", shape=(4,)),
    }
    loader = tl.DataLoader(folder, 4, image_size=8, fields=fields)
    found = only(loader, *fields)
    range_ = range(COUNT)
    assert found["caption"] == [f"caption {i}" if i % 3 else None for i in range_]
    assert found["name"] == [f"é{i}" for i in range_]
    assert found["json"] == [document(i) for i in range_]
    assert found["raw"] == [TAGS[i % 3].encode() for i in range_]
    assert found["score"] == [i / 4 for i in range_]
    assert found["kind"] == [i % 3 for i in range_]
    hot = [[float(place < i % 4) for place in range(3)] for i in range_]
    assert np.array_equal(found["tags"], hot)
    assert np.array_equal(found["array"], [np.full((2, 3), i) for i in range_])
    assert np.array_equal(found["latent"], [np.arange(4) + i for i in range_])
    batch = next(iter(loader))
    dtypes = {name: batch[name].dtype for name in ("score", "kind", "tags", "array", "latent")}
    assert list(dtypes.values()) == ["float32", "int64", "float32", "int16", "float32"]
    assert batch.keys()[:4] == ["image", "label", "index", "valid"]
    sample = batch[1]
    assert (sample["caption"], sample["score"], sample["kind"]) == ("caption 1", 0.25, 1)


def test_missing(folder: pathlib.Path) -> None:
    """A missing value is an error, or the number that stands for it."""
    settings = {"image_size": 8, "batch_size": COUNT}
    number = {"x": tl.Array("txt", shape=(), missing=-1)}
    with pytest.raises(tl.SampleError, match="`caption` is not a number"):
        list(tl.DataLoader(folder, fields=number, **settings))
    number = {"x": tl.Number("json:/nothing")}
    with pytest.raises(tl.SampleError, match="no value; pass `missing`, a number for"):
        list(tl.DataLoader(folder, fields=number, **settings))
    number = {"x": tl.Number("json:/nothing", missing=-7)}
    (batch,) = tl.DataLoader(folder, fields=number, **settings)
    assert batch["x"].tolist() == [-7] * COUNT


def test_views_from_one_decode(folder: pathlib.Path) -> None:
    """Views differ, and further images change nothing about the first."""
    view = [T.RandomResizedCrop(8), T.RandomHorizontalFlip()]
    plain = only(tl.DataLoader(folder, 4, shuffle=True, transform=view), "image")["image"]
    two = tl.DataLoader(
        folder, 4, shuffle=True, transform={"weak": view, "strong": T.Views(2, view)}
    )
    found = only(two, "weak", "strong")
    assert np.array_equal(found["weak"], plain)
    assert np.array(found["strong"]).shape == (COUNT, 2, 8, 8, 3)
    views = [found["weak"], *np.array(found["strong"]).swapaxes(0, 1)]
    assert not any(np.array_equal(a, b) for a, b in [views[:2], views[1:], views[::2]])
    assert next(iter(two)).keys()[0] == "weak"
    several = tl.DataLoader(folder, 4, shuffle=True, transform=T.Views(3, view))
    images = np.array(only(several, "image")["image"])
    assert images.shape == (COUNT, 3, 8, 8, 3) and np.array_equal(images[:, 0], plain)
    assert np.array_equal(images[:, 1], views[1])


@pytest.mark.filterwarnings("error")
def test_images_of_files(folder: pathlib.Path) -> None:
    """A further image moves with the first, unless it has a transform of its own."""
    view = [T.RandomResizedCrop(8), T.ColorJitter(0.4, 0.4, 0.4, 0.1)]
    fields = {"right": tl.Image("right.bmp"), "other": tl.Image("other.bmp")}
    transform = {("left", "right"): view, "other": T.Resize((5, 4))}
    loader = tl.DataLoader(folder, 4, shuffle=True, transform=transform, fields=fields)
    found = only(loader, "left", "right", "other", "index")
    assert np.array_equal(found["left"], found["right"])
    for index, other in zip(found["index"], found["other"], strict=True):
        assert np.array_equal(other, T.Resize((5, 4))(image(int(index) + 50, 9, 7)))
    joint = tl.DataLoader(folder, 4, transform=view, fields={"right": tl.Image("right.bmp")})
    found = only(joint, "image", "right")
    assert np.array_equal(found["image"], found["right"])
    settings = {"shuffle": True, "transform": transform, "fields": fields}
    again = pickle.loads(pickle.dumps(tl.DataLoader(folder, 4, **settings)))
    other = only(tl.DataLoader(folder, 4, **settings), "right")
    assert np.array_equal(only(again, "right")["right"], other["right"])


def test_masks_and_boxes_as_fields(tmp_path: pathlib.Path) -> None:
    """They go by the names that they are given."""
    pytest.importorskip("PIL")
    from PIL import Image

    mask = np.arange(60, dtype=np.uint8).reshape(6, 10)
    file = io.BytesIO()
    Image.fromarray(mask).save(file, "png")
    (tmp_path / "a.bmp").write_bytes(bmp(np.repeat(mask[..., None], 3, 2)))
    (tmp_path / "a.seg.png").write_bytes(file.getvalue())
    document = {"b": [[3, 3, 3, 3], [1, 2, 5, 6]], "c": [8, 7], "n": [5, 300], "crowd": [0, 1]}
    (tmp_path / "a.json").write_text(json.dumps(document))
    values = {"area": "/n/*", "iscrowd": ("/crowd/*", "bool")}
    boxes = tl.Boxes("json:/b/*", labels="/c/*", values=values)
    fields = {"seg.png": tl.Mask(dtype="int64"), "found": boxes}
    flip = [T.RandomHorizontalFlip(1.0), T.Resize((6, 10))]
    (batch,) = tl.DataLoader(tmp_path, 1, transform=flip, fields=fields)
    assert np.array_equal(batch["seg.png"].numpy()[0], mask[:, ::-1])
    assert batch["found"][0].tolist() == [[5, 2, 9, 6]]
    assert batch["box_labels"][0].tolist() == [7] and batch["box_index"][0].tolist() == [1]
    assert batch["area"][0].tolist() == [300] and batch["iscrowd"][0].tolist() == [True]
    with pytest.raises(tl.SampleError, match="expected a number that the type has at `/n/1`"):
        boxes = tl.Boxes("json:/b/*", values={"area": ("/n/*", "uint8")})
        next(iter(tl.DataLoader(tmp_path, 1, transform=flip, fields={"boxes": boxes})))
    assert "mask" not in batch and "boxes" not in batch


UNCOVERED = {
    "pad": T.Pad(3, fill=90),
    "crop": T.RandomCrop((19, 20), padding=4),
    "if_needed": T.RandomCrop((14, 15), pad_if_needed=True),
    "center": T.CenterCrop(18),
    "zoom_out": T.RandomZoomOut(p=1.0),
    "rotation": T.RandomRotation((30, 45)),
    "affine": T.RandomAffine(10, translate=(0.3, 0.3)),
    "perspective": T.RandomPerspective(0.6, p=1.0),
}


@pytest.mark.parametrize("case", UNCOVERED)
@pytest.mark.parametrize("number", [7, 700])
def test_padding_of_masks(tmp_path: pathlib.Path, case: str, number: int) -> None:
    """An explicit padding is outside the mask after transforms; else their fill is, or 0."""
    pytest.importorskip("PIL")
    from PIL import Image

    (tmp_path / "a.bmp").write_bytes(bmp(image(0, height=11, width=12)))
    stored = np.full((11, 12), number, np.uint8 if number < 256 else np.uint16)
    Image.fromarray(stored).save(tmp_path / "a.seg.png")
    transform = T.Compose([UNCOVERED[case], T.Resize((30, 30))])

    def mask(**settings: int) -> np.ndarray:
        fields = {"mask": tl.Mask("seg.png", dtype="int64", **settings)}
        (batch,) = tl.DataLoader(tmp_path, 1, transform=transform, fields=fields)
        return batch["mask"].numpy().copy()

    default, explicit = mask(), mask(padding=255)
    fill = 90 if case == "pad" else 0
    assert set(np.unique(default)) == {fill, number}
    np.testing.assert_array_equal(explicit, np.where(default == fill, 255, default))


REFUSED = {
    "class": ({"x": tl.Text}, "x is the class Text; pass an instance"),
    "other": ({"x": 5}, "x is 5, expected a kind such as tl.Text()"),
    "json": ({"x": tl.Json("json:who")}, "pointer is 'who', expected one such as '/a/b'"),
    "place": ({"x": tl.Text("txt:/a")}, "only JSON files have places"),
    "pointer": ({"x": tl.Boxes("json")}, "expected a pointer after it"),
    "member": ({"x": tl.Array("npz")}, 'which array? such as "npz:latent"'),
    "twice": ({"label": tl.Text("txt")}, "a batch would have two fields called `label`"),
    "masks": ({"a": tl.Mask("x"), "b": tl.Mask("y")}, "b is a second field of mask"),
    "unknown": ({"x": tl.Text("text")}, "json, kind, npy, npz"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(folder: pathlib.Path, case: str) -> None:
    """Fields that cannot be are refused with the way to write them."""
    fields, message = REFUSED[case]
    with pytest.raises(tl.LoaderError) as caught:
        tl.DataLoader(folder, 4, image_size=8, fields=fields)
    assert message in str(caught.value)


BAD_KINDS = {
    "source": (lambda: tl.Text(3), "Text: source is 3, expected the extension of a file"),
    "empty": (lambda: tl.Json(""), "Json: source is '', expected the extension"),
    "channels": (lambda: tl.Image(channels=2), "Image: channels is 2, expected 1, 3 or 4"),
    "pixels": (lambda: tl.Image(pixels="int32"), "Image: pixels is int32, expected one of uint8"),
    "no pixels": (lambda: tl.Image(pixels=object), "Image: pixels is object, expected one"),
    "padding": (lambda: tl.Mask(padding=300), "Mask: padding is 300, at most 255"),
    "mask": (lambda: tl.Mask(dtype="int16"), "Mask: dtype is int16, expected one of uint8, uint16"),
    "format": (lambda: tl.Boxes(format="coco"), "Boxes: format is coco, expected one of xyxy"),
    "output": (lambda: tl.Boxes(output="yxyx"), "Boxes: output is yxyx, expected one of xyxy"),
    "labels": (lambda: tl.Boxes(labels=["a"]), "Boxes: labels is ['a'], expected a pointer"),
    "values": (lambda: tl.Boxes(values=["/a"]), "Boxes: values is ['/a'], expected a dict"),
    "value": (lambda: tl.Boxes(values={"a": 3}), "Boxes: values has 'a': 3, expected a name"),
    "points": (lambda: tl.Keypoints(shape=(3,)), "Keypoints: shape is (3,), expected (points"),
    "numbers": (lambda: tl.Keypoints(shape=(3, 4)), "expected (points, 2 or 3)"),
    "pairs": (lambda: tl.Keypoints(flip_pairs=[1, 2]), "flip_pairs is [1, 2], expected pairs"),
    "filling": (lambda: tl.Keypoints(missing=-1), "Keypoints: missing is -1, expected 0 or None"),
    "shape": (lambda: tl.Array(shape="ab"), "Array: shape is 'ab', expected a list of numbers"),
    "dtype": (lambda: tl.Array(dtype=object()), "expected a dtype such as 'float32'"),
    "no dtype": (lambda: tl.Number(dtype="complex64"), "Number: dtype is complex64, expected one"),
    "box dtype": (lambda: tl.Boxes(values={"a": ("/a", "s")}), "values: dtype of 'a' is s, expect"),
    "missing": (lambda: tl.Number(missing="no"), "Number: missing is 'no', expected a number"),
    "names": (lambda: tl.Label(classes="cat"), "Label: classes is the text 'cat', expected a list"),
    "twice": (lambda: tl.Label(classes=["a", "b", "a"]), "Label: classes has 'a' twice"),
    "none": (lambda: tl.MultiLabel(classes=[]), "MultiLabel: classes is [], expected a list"),
    "count": (lambda: tl.MultiLabel("txt"), "MultiLabel: classes is 0, expected how many there"),
    "bool": (lambda: tl.MultiLabel(classes=True), "MultiLabel: classes is True, expected a whole"),
    "set": (lambda: tl.MultiLabel(classes={"cat", "dog"}), "classes is a set, which has no order"),
    "same": (lambda: tl.MultiLabel(classes=["a", "a"]), "MultiLabel: classes has 'a' twice"),
}


@pytest.mark.parametrize("case", BAD_KINDS)
def test_kinds_check_their_values(case: str) -> None:
    """They fail as they are made, before there is a data set."""
    made, message = BAD_KINDS[case]
    with pytest.raises(tl.SettingError) as caught:
        made()
    assert message in str(caught.value)


def test_kinds_keep_values_in_one_form() -> None:
    assert tl.Image(pixels=np.float32) == tl.Image(pixels="float32")
    assert tl.Mask(dtype=np.dtype("int64")) == tl.Mask(dtype="int64")
    assert tl.MultiLabel(classes=np.int64(3)).classes == 3
    assert tl.Label(classes=(name for name in TAGS)).classes == TAGS
    assert tl.Label(missing=np.int64(-1)).missing == -1
    assert tl.Array(shape=[2, 3]) == tl.Array(shape=(2, 3))


def test_transforms_by_name_that_are_refused(folder: pathlib.Path) -> None:
    """So are names of images without a file or a transform."""
    right = {"right": tl.Image("right.bmp")}
    cases = [
        ({("a", "b"): T.Resize((8, 8))}, None, "b would equal a"),
        ({"right": T.Resize((8, 8))}, right, "right is first"),
        (
            {"a": T.Resize((8, 8)), ("right", "b"): T.Resize((8, 8))},
            right,
            "put them into one tuple",
        ),
        ({}, None, "expected names with transforms"),
        ({"a": T.Resize((8, 8)), "b": T.Resize(8)}, None, "leaves the size to the image"),
    ]
    for transform, fields, message in cases:
        with pytest.raises(tl.LoaderError) as caught:
            tl.DataLoader(folder, 4, transform=transform, fields=fields)
        assert message in str(caught.value)


def test_grey(tmp_path: pathlib.Path) -> None:
    """Images of one channel have the pixels of Pillow's mode L."""
    pytest.importorskip("PIL")
    from PIL import Image

    for index in range(3):
        pixels = image(index, 31, 22)
        Image.fromarray(pixels).save(tmp_path / f"c{index}.png")
        Image.fromarray(pixels[..., 0]).save(tmp_path / f"g{index}.png")
    files = sorted(tmp_path.iterdir())
    expected = [
        np.asarray(Image.open(file).convert("L").resize((10, 12), Image.Resampling.BILINEAR))
        for file in files
    ]
    resize = T.Resize((12, 10))
    for last in (True, False):
        loader = tl.DataLoader(tmp_path, 4, transform=resize, channels=1, channels_last=last)
        found = np.array(only(loader, "image")["image"])
        assert found.shape == ((6, 12, 10, 1) if last else (6, 1, 12, 10))
        assert np.array_equal(found.reshape(6, 12, 10), expected)
    whole = only(tl.DataLoader(tmp_path, 4, channels=1), "image")["image"]
    assert [one.shape for one in whole] == [(31, 22, 1)] * 6
    with pytest.raises(tl.SettingError, match="channels is 2, expected 3"):
        tl.DataLoader(tmp_path, 4, channels=2)


def test_fields_of_a_data_set(folder: pathlib.Path) -> None:
    """Its loaders have them, through views, joins, pickles and settings of the loader."""
    fields = {"caption": tl.Text("txt"), "score": tl.Number("json:/score")}
    ds = tl.open(folder, fields=fields)
    assert ds.fields == fields and ds.with_fields({}).fields == fields
    views = [
        ds,
        ds.skip(2),
        ds.filter("index > 3"),
        tl.concat(ds.take(3), ds.skip(3)),
        ds.repeat(2),
    ]
    for view in views:
        for one in (view, pickle.loads(pickle.dumps(view))):
            assert one.fields == fields
            loader = tl.DataLoader(one, 4, image_size=8)
            found = only(loader, "score", "index")
            assert found["score"] == [index / 4 for index in found["index"]]
    picked = tl.DataLoader(ds, COUNT, image_size=8, fields=("image", "score"))
    images, scores = next(iter(picked))
    assert images.shape == (COUNT, 8, 8, 3) and scores.tolist() == [i / 4 for i in range(COUNT)]
    more = tl.DataLoader(
        ds, 4, image_size=8, fields={"score": tl.Array("npy"), "x": tl.Bytes("txt")}
    )
    batch = next(iter(more))
    assert batch["score"].shape == (4, 2, 3) and {"caption", "x"} <= set(batch.keys())
    other = ds.with_fields({"score": tl.Array("npy")})
    with pytest.raises(tl.SettingError, match="field score is Number"):
        tl.concat(ds, other)
    with pytest.raises(tl.SettingError, match="x is the class Text"):
        tl.open(folder, fields={"x": tl.Text})


def test_json_is_as_python_reads_it(tmp_path: pathlib.Path) -> None:
    """Whole numbers of any size are kept, the order of keys too; a bad file names its sample."""
    (tmp_path / "a.bmp").write_bytes(bmp(image(0)))
    (tmp_path / "a.json").write_text('{"z": {"a/b": [5, 1180591620717411303425]}, "a": null}')
    fields = {
        "all": tl.Json("json"),
        "large": tl.Json("json:/z/a~1b/1"),
        "none": tl.Json("json:/a"),
        "missing": tl.Json("json:/z/a~1b/2"),
    }
    (batch,) = tl.DataLoader(tmp_path, 1, image_size=8, fields=fields)
    assert list(batch["all"][0]) == ["z", "a"] and batch["large"] == [2**70 + 1]
    assert batch["none"] == batch["missing"] == [None]
    # With a byte order mark, as some editors write it.
    (tmp_path / "a.meta").write_bytes(b"\xef\xbb\xbf[1]")
    (batch,) = tl.DataLoader(tmp_path, 1, image_size=8, fields={"x": tl.Json("meta")})
    assert batch["x"] == [[1]]


BAD_TEXTS = {
    "json": (tl.Json("meta"), b'{"a": ', "sidecar file `meta`: EOF while parsing"),
    "not a number of JSON": (tl.Json("meta"), b'{"a": NaN}', "sidecar file `meta`: expected value"),
    "nested": (tl.Json("meta:/a"), b"[" * 4000, "sidecar file `meta`: recursion limit exceeded"),
    "utf-16": (tl.Json("meta"), '{"a": 1}'.encode("utf-16"), "sidecar file `meta`: expected value"),
    "text": (tl.Text("meta"), b"caf\xe9", "sidecar file `meta`: incomplete utf-8 byte sequence"),
}


@pytest.mark.parametrize("case", BAD_TEXTS)
def test_bad_texts_are_bad_samples(tmp_path: pathlib.Path, case: str) -> None:
    """The workers find them, so that on_error decides about them."""
    field, data, message = BAD_TEXTS[case]
    for number in range(6):
        (tmp_path / f"{number}.bmp").write_bytes(bmp(image(number)))
        (tmp_path / f"{number}.meta").write_bytes(data if number == 2 else b'{"a": 1}')
    settings = {"image_size": 8, "fields": {"x": field}}
    with pytest.raises(tl.SampleError, match=f"sample 2 .*{message}"):
        list(tl.DataLoader(tmp_path, 3, **settings))
    with pytest.warns(match="sample 2"):
        skipping = tl.DataLoader(tmp_path, 3, errors="skip", **settings)
        batches = list(skipping)
    assert [index for batch in batches for index in batch["index"].tolist()] == [0, 1, 3, 4, 5]
    assert [len(batch["x"]) for batch in batches] == [2, 3]
    assert [number for number, *_ in skipping.audit] == [2]


def test_a_loader_with_labels_and_stores_pickles(tmp_path: pathlib.Path) -> None:
    """The data set that it opened has the settings of its stores."""
    for index in range(3):
        (tmp_path / f"{index}x.bmp").write_bytes(bmp(image(index)))
    store = tl.Store(unpack_to=tmp_path / "u", connections=4)
    loader = tl.DataLoader(tmp_path, 3, image_size=8, labels=[5, 6, 7], store=store)
    again = pickle.loads(pickle.dumps(loader))
    assert only(again, "label")["label"] == only(loader, "label")["label"] == [5, 6, 7]


def test_arrays_in_memory_and_labels_of_an_open_data_set() -> None:
    """Arrays have no extension; labels may be given once a data set is open."""
    images = np.zeros((3, 8, 8, 3), np.uint8)
    ds = tl.from_arrays(images, [0, 1, 2], depth=np.arange(6, dtype=np.float32).reshape(3, 2))
    ds = ds.with_labels([7, 8, 9]).with_fields({"d": tl.Array("depth")})
    for one in (ds, pickle.loads(pickle.dumps(ds)), ds.skip(1)):
        (batch,) = tl.DataLoader(one, 3, transform=T.Resize((8, 8)))
        index = batch["index"].numpy()
        assert np.array_equal(batch["label"], 7 + index)
        assert np.array_equal(batch["d"], np.arange(6).reshape(3, 2)[index])
    with pytest.raises(tl.SettingError, match="give labels first"):
        ds.skip(1).with_labels([1, 2])


def test_samples_have_fields_by_their_kinds(folder: pathlib.Path) -> None:
    """A sample is what a batch of it alone has."""
    fields = {
        "caption": tl.Text("txt"),
        "score": tl.Number("json:/score"),
        "latent": tl.Array("npy"),
        "meta": tl.Json("json"),
    }
    ds = tl.open(folder, fields=fields)
    names = ["image", *fields, "label", "key", "index"]
    for place, view in ((1, ds), (2, ds), (1, ds.skip(3))):
        sample = view[place]
        number = sample.index
        assert [name for name in sample if name in names] == names
        assert not {"txt", "json", "npy"} & set(sample)
        loader = tl.DataLoader(ds[number : number + 1], 1, image_size=8)
        batch = next(iter(loader))
        assert sample.caption == batch["caption"][0] and sample["meta"] == batch["meta"][0]
        assert sample.score == batch["score"].item(0) and isinstance(sample.score, float)
        np.testing.assert_array_equal(sample.latent.numpy(), batch["latent"].numpy()[0])
        assert sample.raw("txt") == sample.caption.encode()
    assert ds.schema["caption"] == "text" and ds.schema["meta"] == "JSON"
    assert ds.schema["score"] == "number" and ds.schema["latent"] == "array"
    with pytest.raises(AttributeError, match="a sample has no txt: it has image, caption"):
        ds[0].txt  # noqa: B018
    assert ds[0].caption is None
    again = pickle.loads(pickle.dumps(ds.skip(3)[1]))
    assert list(again) == list(ds[4]) and again.caption == ds[4].caption == "caption 4"
    np.testing.assert_array_equal(again.image.numpy(), ds[4].image.numpy())
    bad = tl.open(folder).with_fields({"caption": tl.Number("txt")})[1]
    with pytest.raises(tl.SampleError, match=r"sample 1 .*is not a number"):
        bad["caption"]


def test_samples_have_masks_and_boxes(tmp_path: pathlib.Path) -> None:
    pytest.importorskip("PIL")
    from PIL import Image

    (tmp_path / "a.bmp").write_bytes(bmp(image(0, height=6, width=5)))
    numbers = np.arange(30, dtype=np.uint8).reshape(6, 5)
    Image.fromarray(numbers).save(tmp_path / "a.seg.png")
    boxes = {"objects": [{"bbox": [1, 1, 2, 3], "id": 7}, {"bbox": [0, 0, 5, 6], "id": 2}]}
    (tmp_path / "a.json").write_text(json.dumps(boxes))
    fields = {
        "seg": tl.Mask("seg.png", dtype="uint8"),
        "boxes": tl.Boxes("json:/objects/*/bbox", labels="/objects/*/id", format="xywh"),
    }
    sample = tl.open(tmp_path, fields=fields)[0]
    of_boxes = ["boxes", "box_labels", "box_index"]
    assert list(sample) == ["image", "seg", *of_boxes, "label", "key", "index"]
    np.testing.assert_array_equal(sample.seg.numpy(), numbers)
    assert sample.boxes.tolist() == [[1, 1, 3, 4], [0, 0, 5, 6]]
    assert sample["box_labels"].tolist() == [7, 2] and sample["box_index"].tolist() == [0, 1]
    assert sample.kind("seg") == "mask" and sample.kind("boxes") == "boxes"
    assert list(dict(sample)) == list(sample) and len(sample) == 8
