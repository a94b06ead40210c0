from __future__ import annotations

import gc
import io
import json
import tarfile
import tracemalloc
import weakref
from importlib.util import find_spec

import numpy as np
import pytest
import turboloader as tl
from conftest import HEIGHT, WIDTH, bmp, image
from turboloader import transforms as T  # noqa: N812

FLOATS = T.Compose([T.ToTensor(), T.Normalize()])


def floats(index):
    """What ToTensor and Normalize make of sample `index`, channels first."""
    pixels = image(index).astype(np.float32) * np.float32(1 / 255)
    mean = np.array([0.485, 0.456, 0.406], np.float32)
    std = np.array([0.229, 0.224, 0.225], np.float32)
    return ((pixels - mean) / std).transpose(2, 0, 1)


def fixed(data, **settings):
    return tl.DataLoader(data, batch_size=8, image_size=(HEIGHT, WIDTH), **settings)


def test_fields_hold_what_was_stored(data):
    batch = next(iter(fixed(data, keys=True)))
    assert len(batch) == 8
    assert batch.keys() == ["image", "label", "index", "valid", "size", "key"]
    images = batch["image"].numpy()
    assert images.shape == (8, HEIGHT, WIDTH, 3)
    for row in range(8):
        np.testing.assert_array_equal(images[row], image(row))
    assert batch["label"].numpy().tolist() == [0, 1, 2, 3, 4, 5, 6, 0]
    assert batch["index"].numpy().tolist() == list(range(8))
    assert batch["valid"].numpy().tolist() == [True] * 8
    assert batch["size"].numpy().tolist() == [[HEIGHT, WIDTH]] * 8
    assert batch["key"] == [f"{row:05d}.bmp" for row in range(8)]
    with pytest.raises(KeyError, match="images: a batch has image, label"):
        batch["images"]
    assert batch.get("images") is None
    assert "image" in batch
    assert "images" not in batch


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_floats_are_normalised_channels_first(data, dtype):
    loader = tl.DataLoader(data, batch_size=8, transform=[T.Resize([6, 10]), FLOATS], dtype=dtype)
    images = next(iter(loader))["image"].numpy()
    assert images.dtype == np.dtype(dtype)
    expected = np.stack([floats(row) for row in range(8)])
    np.testing.assert_allclose(
        images, expected.astype(dtype), atol=2e-3 if dtype == "float16" else 0
    )


def test_samples_are_dicts_of_arrays_and_numbers(data):
    batch = next(iter(fixed(data)))
    seen = [sample["label"] for sample in batch]
    assert seen == [0, 1, 2, 3, 4, 5, 6, 0]
    sample = batch[-1]
    assert sample["index"] == 7
    assert isinstance(sample["image"], np.ndarray)
    np.testing.assert_array_equal(sample["image"], image(7))
    with pytest.raises(IndexError, match="row 8 of 8"):
        batch[8]
    fields = dict(batch)
    assert list(fields) == batch.keys()


def test_nothing_is_copied(data):
    batch = next(iter(fixed(data)))
    tensor = batch["image"]
    array = tensor.numpy()
    address = array.__array_interface__["data"][0]
    assert address == tensor.data_ptr() == batch["image"].data_ptr()
    assert np.asarray(tensor).__array_interface__["data"][0] == address
    assert np.from_dlpack(tensor).__array_interface__["data"][0] == address
    assert batch.numpy()["image"].__array_interface__["data"][0] == address
    assert batch[0]["image"].__array_interface__["data"][0] == address
    row = tensor[3].numpy().__array_interface__["data"][0]
    assert row == address + 3 * HEIGHT * WIDTH * 3
    for name in ("image", "label", "index", "valid", "size"):
        assert batch[name].data_ptr() % 64 == 0


def test_arrays_can_be_written_and_share_what_is_written(data):
    tensor = next(iter(fixed(data)))["image"]
    array, other = tensor.numpy(), np.from_dlpack(tensor)
    assert array.flags.writeable
    array[2, 3, 4] = (1, 2, 3)
    assert other[2, 3, 4].tolist() == [1, 2, 3]


def test_capsules_are_of_the_version_that_is_asked_for(data):
    tensor = next(iter(fixed(data)))["image"]
    assert tensor.__dlpack_device__() == (1, 0)
    assert '"dltensor"' in repr(tensor.__dlpack__())
    assert '"dltensor"' in repr(tensor.__dlpack__(max_version=(0, 8)))
    assert '"dltensor_versioned"' in repr(tensor.__dlpack__(max_version=(1, 1)))
    with pytest.raises(BufferError, match=r"\(2, 0\)"):
        tensor.__dlpack__(dl_device=(2, 0))
    with pytest.raises(BufferError, match="stream is 7"):
        tensor.__dlpack__(stream=7)


def test_a_copy_is_one(data):
    tensor = next(iter(fixed(data)))["image"]
    copied = np.from_dlpack(tensor, copy=True)
    assert copied.__array_interface__["data"][0] != tensor.data_ptr()
    np.testing.assert_array_equal(copied, tensor.numpy())
    as_floats = np.asarray(tensor, dtype=np.float32)
    np.testing.assert_array_equal(as_floats, image_batch(8).astype(np.float32))


def image_batch(count):
    return np.stack([image(index) for index in range(count)])


def test_the_memory_returns_only_when_the_last_view_is_gone(data):
    loader = fixed(data, memory=tl.Memory(prefetch=1), num_workers=1)
    epoch = iter(loader)
    batch = next(epoch)
    capsule = batch["image"].__dlpack__()
    view = batch["image"].numpy()[0, 0]
    taken = batch["image"].data_ptr()
    del batch
    assert taken not in [next(epoch)["image"].data_ptr() for _ in range(5)]
    np.testing.assert_array_equal(view, image(0)[0])
    del view
    assert taken not in [next(epoch)["image"].data_ptr() for _ in range(3)]
    epoch.close()
    gc.collect()
    assert loader.report().batches_in_use == 1
    del capsule
    assert loader.report().batches_in_use == 0


def test_batches_that_are_kept_do_not_change(tmp_path):
    from conftest import write

    count = 1000
    path = write(tmp_path / "many.tbl", count)
    loader = tl.DataLoader(path, batch_size=1, image_size=(HEIGHT, WIDTH), num_workers=2)
    kept = [batch["image"].numpy() for batch in loader]
    assert len({array.__array_interface__["data"][0] for array in kept}) == count
    for index, array in enumerate(kept):
        np.testing.assert_array_equal(array[0], image(index))


def test_batches_outlive_the_loader(data):
    with fixed(data) as loader:
        batch = next(iter(loader))
    died = weakref.ref(loader)
    del loader
    gc.collect()
    assert died() is None
    np.testing.assert_array_equal(batch["image"].numpy(), image_batch(8))


def test_images_of_their_own_sizes_are_a_list(photos):
    loader = tl.DataLoader(photos, batch_size=4)
    batch = next(iter(loader))
    images = batch["image"]
    sizes = batch["size"].numpy().tolist()
    assert [list(image.shape) for image in images] == [[*size, 3] for size in sizes]
    assert all(image.data_ptr() % 64 == 0 for image in images)
    again = batch["image"]
    assert [image.data_ptr() for image in again] == [image.data_ptr() for image in images]
    again.clear()
    assert len(batch["image"]) == len(batch) == len([batch[row]["image"] for row in range(4)])
    decoded = tl.decode(tl.TblReader(photos)[int(batch["index"].numpy()[0])])
    np.testing.assert_array_equal(images[0].numpy(), decoded.numpy())


def test_lists_are_of_the_form_that_is_asked_for(photos):
    batch = next(iter(tl.DataLoader(photos, batch_size=3)))
    images = batch["image"]
    arrays = batch.numpy()["image"]
    assert [type(array) for array in arrays] == [np.ndarray] * 3
    for array, tensor in zip(arrays, images, strict=True):
        assert array.__array_interface__["data"][0] == tensor.data_ptr()
    assert isinstance(batch[0]["image"], np.ndarray)
    if find_spec("torch"):
        fields = batch.torch()
        assert type(fields["image"][0]) is type(fields["label"])
        np.testing.assert_array_equal(np.asarray(fields["image"][2]), arrays[2])


def test_boxes_are_of_the_form_that_is_asked_for(tmp_path):
    boxes = json.dumps({"boxes": [[1, 1, 4, 4]], "labels": [2]}).encode()
    with tarfile.open(tmp_path / "boxes.tar", "w") as archive:
        for name, data in (("0.bmp", bmp(image(0))), ("0.json", boxes)):
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    said = {"boxes": tl.Boxes("json:/boxes/*", labels="/labels/*")}
    loader = tl.DataLoader(tmp_path / "boxes.tar", batch_size=1, image_size=6, fields=said)
    batch = next(iter(loader))
    arrays = batch.numpy()
    assert (type(arrays["boxes"][0]), type(arrays["box_labels"][0])) == (np.ndarray, np.ndarray)
    assert arrays["box_labels"][0].tolist() == [2]
    assert type(batch["boxes"][0]) is tl.Tensor


def test_stored_bytes_are_bytes(data):
    batch = next(iter(tl.DataLoader(data, batch_size=3, decode=False)))
    assert batch["bytes"] == [bmp(image(index)) for index in range(3)]
    assert batch.keys() == ["bytes", "label", "index", "valid"]


def test_a_sample_takes_its_own_bytes(data):
    batch = next(iter(tl.DataLoader(data, batch_size=100, decode=False, keys=True)))
    batch[0]
    tracemalloc.start()
    assert [batch[row]["key"] for row in (3, 97)] == ["00003.bmp", "00097.bmp"]
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    # Less than the bytes of all samples.
    assert peak < 50 * len(batch[0]["bytes"])


def test_output_formats_decide_what_fields_are(data):
    batch = next(iter(fixed(data, output_format="numpy")))
    assert isinstance(batch["image"], np.ndarray)
    assert batch["image"].shape == (8, HEIGHT, WIDTH, 3)
    batch = next(iter(fixed(data, output_format="numpy", channels_last=False, dtype="float32")))
    assert (batch["image"].shape, batch["image"].dtype) == ((8, 3, HEIGHT, WIDTH), np.float32)


def test_mixed_batches_have_soft_labels(data):
    mixing = T.CutMix(num_classes=7)
    loader = tl.DataLoader(
        data, batch_size=8, transform=[T.Resize([6, 10]), T.ToTensor()], batch_transform=mixing
    )
    soft = next(iter(loader))["soft_label"].numpy()
    assert soft.shape == (8, 7)
    np.testing.assert_allclose(soft.sum(1), 1, atol=1e-6)


def test_bfloat16_is_handed_out_by_dlpack(data):
    loader = fixed(data, dtype="bfloat16")
    tensor = next(iter(loader))["image"]
    assert tensor.dtype == "bfloat16"
    assert tensor.nbytes == 8 * HEIGHT * WIDTH * 3 * 2
    try:
        import ml_dtypes  # noqa: F401
    except ImportError:
        with pytest.raises(TypeError, match="NumPy has no bfloat16"):
            tensor.numpy()


def test_memoryviews_where_python_has_them(data):
    import sys

    tensor = next(iter(fixed(data)))["image"]
    if sys.version_info < (3, 12):
        with pytest.raises(TypeError):
            memoryview(tensor)
        return
    assert memoryview(tensor).tobytes() == image_batch(8).tobytes()


def test_an_array_is_made_without_going_round(data, monkeypatch):
    tensor = next(iter(fixed(data)))["image"]
    asked = []

    def buffer(self, flags):
        asked.append(flags)
        return memoryview(bytearray())

    # From Python 3.12 on NumPy asks for a memoryview first, which is made of the array.
    monkeypatch.setattr(tl.Tensor, "__buffer__", buffer)
    array = tensor.numpy()
    monkeypatch.undo()
    assert not asked
    assert array.__array_interface__["data"][0] == tensor.data_ptr()
    assert np.asarray(tensor).__array_interface__["data"][0] == tensor.data_ptr()


def test_labels_that_there_is_no_memory_for_are_an_error(data):
    # 1.7 TB.
    mixing = T.MixUp(num_classes=2**32 - 1)
    loader = tl.DataLoader(
        data, batch_size=100, image_size=4, dtype="float32", batch_transform=mixing
    )
    with pytest.raises(tl.OutOfMemoryError, match="no memory for a batch of 1717986918000 bytes"):
        next(iter(loader))


@pytest.mark.parametrize("names", [["label"], ["json", "index"], ["image"]])
def test_files_beside_samples_have_names_of_their_own(data, names):
    with pytest.raises(tl.SettingError, match=f"two fields called `{names[-1]}`"):
        fixed(data, fields=dict.fromkeys(names, tl.Bytes()))


def test_files_may_be_called_what_batches_do_not_have(tmp_path):
    (tmp_path / "0.bmp").write_bytes(bmp(image(0)))
    (tmp_path / "1.bmp").write_bytes(bmp(image(1)))
    names = ["mask", "boxes"]
    for name in names:
        (tmp_path / f"0.{name}").write_bytes(name.encode())
    (batch,) = fixed(tmp_path, fields=dict.fromkeys(names, tl.Bytes()))
    assert batch.keys()[-2:] == names
    assert [batch[name] for name in names] == [[name.encode(), None] for name in names]
    with pytest.raises(tl.SettingError, match="no sample has a file `masks`"):
        fixed(tmp_path, fields={"masks": tl.Bytes()})


def test_a_tensor_of_one_number_is_used_as_a_number(data):
    label = next(iter(fixed(data)))["label"][2]
    assert ["a", "b", "c"][label] == "c"
    assert list(range(label)) == [0, 1]
    assert (f"{label:03d}", f"{label}") == ("002", str(label))
    assert {2: "two"}.get(label) == "two"
    assert (hash(label), round(label)) == (hash(2), 2)
    labels = next(iter(fixed(data)))["label"]
    assert f"{labels}" == str(labels)
    with pytest.raises(TypeError):
        ["a", "b"][labels]
    with pytest.raises(ValueError, match="format code"):
        f"{labels:d}"


def test_tensors_are_compared_and_counted_as_arrays_are(data):
    labels = next(iter(fixed(data)))["label"]
    expected = [0, 1, 2, 3, 4, 5, 6, 0]
    assert (labels == np.array(expected)).all()
    assert (np.array(expected) == labels).all()
    assert (labels == labels).tolist() == [True] * 8
    assert (labels != 3).tolist() == [number != 3 for number in expected]
    assert (labels < 2).tolist() == [number < 2 for number in expected]
    assert labels[3] == 3
    assert labels[3] != 4
    assert labels.tolist() == expected
    assert (labels.item(3), type(labels.item(3)), labels[3].item()) == (3, int, 3)
    assert (int(labels[2]), float(labels[2])) == (2, 2.0)
    assert (bool(labels[1]), bool(labels[0])) == (True, False)
    with pytest.raises(ValueError, match="ambiguous"):
        bool(labels)
    with pytest.raises(TypeError, match="scalar"):
        int(labels)
    with pytest.raises(TypeError, match="unhashable"):
        hash(labels)
    assert repr(labels) == f"Tensor({expected}, shape=(8,), dtype=int64)"
    assert repr(labels[2]) == "Tensor(2, shape=(), dtype=int64)"
    images = next(iter(fixed(data)))["image"]
    assert repr(images).endswith(f", ..], shape={images.shape}, dtype={images.dtype})")
    if find_spec("torch"):
        import torch

        assert (torch.tensor(expected) == labels).all()
        assert (labels == torch.tensor(expected)).all()
