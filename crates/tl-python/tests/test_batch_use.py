"""What loops do with batches and tensors: unpack, slice, copy, send, move, and look first."""

from __future__ import annotations

import copy
import pickle
import queue

import numpy as np
import pytest
import turboloader as tl
from conftest import HEIGHT, WIDTH, image


def loader(data, **settings):
    size = {} if "transform" in settings else {"image_size": (HEIGHT, WIDTH)}
    return tl.DataLoader(data, **{"batch_size": 8, "keys": True, **size, **settings})


def test_batches_unpack_where_fields_say_so(data):
    for number, (images, labels) in enumerate(loader(data, fields=("image", "label"))):
        assert images.shape == (min(8, 100 - 8 * number), HEIGHT, WIDTH, 3)
        assert labels.tolist() == [i % 7 for i in range(8 * number, min(100, 8 * number + 8))]
    renamed = loader(data, fields={"pixels": "image", "y": "label"}, output_format="numpy")
    batch = next(iter(renamed))
    assert list(batch) == ["pixels", "y"]
    assert isinstance(batch["pixels"], np.ndarray)
    for fields in ((), "image", 3, (3,)):
        with pytest.raises(tl.SettingError, match="fields"):
            loader(data, fields=fields)
    with pytest.raises(tl.SettingError, match="'pixels', a batch has image, label"):
        loader(data, fields=("pixels",))


def test_epochs_of_pairs_have_states(data):
    pairs = loader(data, fields=("index",), shuffle=True)
    batches = iter(pairs)
    first = next(batches)[0].tolist()
    state = pairs.state_dict()
    rest = [index.tolist() for (index,) in batches]
    again = loader(data, fields=("index",), shuffle=True)
    again.load_state_dict(state)
    assert [index.tolist() for (index,) in again] == rest
    assert first not in rest


@pytest.mark.parametrize("size", [2, 8])
def test_a_batch_does_not_unpack_into_samples(data, size):
    batches = loader(data, batch_size=size)
    with pytest.raises(TypeError, match=r'pass fields=\("image", "label"\) to DataLoader'):
        for _images, _labels in batches:
            pass
    with pytest.raises(TypeError, match="cannot be unpacked"):
        for _number, (_images, _labels) in enumerate(batches):
            pass
    batch = next(iter(batches))
    with pytest.raises(TypeError, match="cannot be unpacked"):
        _first, _second = batch
    with pytest.raises(TypeError, match="cannot be unpacked"):
        _first, _second = batch[:2]
    # Its samples, one after the other.
    first, second = list(batch)[:2]
    assert (first["index"], second["index"]) == (0, 1)
    assert [sample["index"] for sample in batch] == list(range(size))
    assert len({*map(len, batch)}) == 1


def assert_same(made, batch, rows):
    assert made.keys() == batch.keys()
    assert (len(made), made.number) == (len(rows), batch.number)
    for name in batch.keys():  # noqa: SIM118
        ours, all_rows = made.numpy()[name], batch.numpy()[name]
        if isinstance(all_rows, list):
            assert ours == [all_rows[row] for row in rows]
        else:
            np.testing.assert_array_equal(ours, all_rows[rows])
    for place, row in enumerate(rows):
        ours, sample = made[place], batch[row]
        assert list(ours) == list(sample)
        for name, value in sample.items():
            np.testing.assert_array_equal(ours[name], value)
            assert type(ours[name]) is type(value)
    assert [sample["index"] for sample in made] == [batch[row]["index"] for row in rows]


@pytest.mark.parametrize("output_format", ["tensor", "numpy"])
def test_slices_are_batches(data, output_format):
    batch = next(iter(loader(data, output_format=output_format)))
    for rows in (slice(2, 5), slice(None, None, -3), slice(6, 6), slice(-1, None), slice(0, 99)):
        assert_same(batch[rows], batch, list(range(8))[rows])
    part = batch[2:6]
    assert np.shares_memory(np.asarray(part["image"]), np.asarray(batch["image"]))
    assert_same(part[1:3], batch, [3, 4])
    assert part.image.shape == (4, HEIGHT, WIDTH, 3)
    assert type(part["image"]) is type(batch["image"])
    assert part[-1]["index"] == 5
    with pytest.raises(IndexError, match="sample 4 of 4"):
        part[4]
    with pytest.raises(KeyError, match="x: a batch has image"):
        part["x"]
    assert repr(part) == f"BatchPart(number=0, samples=4, fields={batch.keys()})"


def test_batches_are_sent_and_copied(data):
    batch = next(iter(loader(data)))
    assert np.shares_memory(np.asarray(copy.copy(batch)["image"]), np.asarray(batch["image"]))
    for copied in (pickle.loads(pickle.dumps(batch)), copy.deepcopy(batch)):
        assert_same(copied, batch, list(range(8)))
        assert not np.shares_memory(np.asarray(copied["image"]), np.asarray(batch["image"]))
        assert_same(pickle.loads(pickle.dumps(copied)), batch, list(range(8)))
    sent: queue.Queue = queue.Queue()
    sent.put(batch)
    assert sent.get() is batch


def test_images_of_several_sizes_are_sent_too(tmp_path):
    with tl.TblWriter(tmp_path / "a.tbl") as writer:
        for index in range(3):
            writer.add_pixels(image(index, height=4 + index), label=index)
    batch = next(iter(tl.DataLoader(tmp_path / "a.tbl", batch_size=3)))
    copied = pickle.loads(pickle.dumps(batch))
    for one, other in zip(copied["image"], batch["image"], strict=True):
        np.testing.assert_array_equal(one.numpy(), other.numpy())
    assert [image.shape[0] for image in batch[1:]["image"]] == [5, 6]


@pytest.mark.parametrize("dtype", ["uint8", "float32", "float16", "bfloat16"])
def test_tensors_are_sent_and_copied(data, dtype):
    transform = [] if dtype == "uint8" else [tl.ToTensor()]
    transform = [tl.Resize((4, 4)), *transform]
    tensor = next(iter(loader(data, transform=transform, dtype=dtype)))["image"]
    for copied in (pickle.loads(pickle.dumps(tensor)), copy.deepcopy(tensor)):
        assert (copied.shape, copied.dtype) == (tensor.shape, tensor.dtype)
        assert bytes(view(copied)) == bytes(view(tensor))
        assert copied.data_ptr() != tensor.data_ptr()
    rows = tensor.rows([5, 1])
    assert bytes(view(rows)) == bytes(view(tensor[5])) + bytes(view(tensor[1]))
    assert tensor.rows([1, 2]).data_ptr() == tensor[1].data_ptr()
    assert tensor.rows([]).shape == (0, *tensor.shape[1:])
    with pytest.raises(IndexError, match="row 8 of 8"):
        tensor.rows([8])


def view(tensor):
    """The bytes of a tensor; NumPy has no bfloat16."""
    import ctypes

    return (ctypes.c_ubyte * tensor.nbytes).from_address(tensor.data_ptr())


def test_attributes_of_libraries_are_explained(data):
    batch = next(iter(loader(data)))
    tensor = batch["image"]
    assert batch.label.tolist() == batch["label"].tolist()
    with pytest.raises(AttributeError, match=r"no attribute \"permute\": .*\.torch\(\)\.permute"):
        _ = tensor.permute
    with pytest.raises(AttributeError, match=r"its fields are .*image"):
        _ = batch.pixels
    for operation in (
        lambda: tensor / 255,
        lambda: tensor * 2.0,
        lambda: tensor + tensor,
        lambda: tensor - 1,
    ):
        with pytest.raises(TypeError, match="a Tensor has no arithmetic"):
            operation()
    # Another library's operand decides.
    np.testing.assert_array_equal(tensor + np.uint8(1), tensor.numpy() + np.uint8(1))
    np.testing.assert_array_equal(np.ones(3) * tensor, np.ones(3) * tensor.numpy())
    assert not hasattr(tensor, "_repr_png_")
    assert not hasattr(tensor, "__cuda_array_interface__")
    with pytest.raises(TypeError, match="the name of a field, the number of a sample, or a slice"):
        batch[1.5]


def test_tensors_show_numbers(data):
    batch = next(iter(loader(data)))
    assert repr(batch["label"]) == "Tensor([0, 1, 2, 3, 4, 5, 6, 0], shape=(8,), dtype=int64)"
    first = ", ".join(map(str, batch["image"].numpy().reshape(-1)[:6]))
    shape = f"(8, {HEIGHT}, {WIDTH}, 3)"
    assert repr(batch["image"]) == f"Tensor([{first}, ..], shape={shape}, dtype=uint8)"


@pytest.mark.torch
def test_batches_move_to_a_device(data):
    torch = pytest.importorskip("torch")
    batch = next(iter(loader(data)))
    for source in (batch, batch[:8]):
        moved = source.to("cpu")
        assert torch.equal(moved["image"], batch["image"].torch())
        assert moved["key"] == batch["key"]
        meta = source.to(torch.device("meta"))
        assert (meta["image"].device.type, meta["label"].shape) == ("meta", (8,))


def test_looking_uses_up_nothing(data):
    first, second = loader(data, shuffle=True), loader(data, shuffle=True)
    looked = first.peek()
    np.testing.assert_array_equal(first.peek()["index"], looked["index"])
    assert (first.epoch, first.state_dict()) == (0, second.state_dict())
    batches = list(first)
    np.testing.assert_array_equal(batches[0]["index"], looked["index"])
    assert (batches[0]["image"] == looked["image"]).all()
    # That of the next epoch, of an epoch that was set, of a state.
    expected = first.peek()["index"].tolist()
    first_of_all, *_rest = [batch["index"].tolist() for batch in first]
    assert first_of_all == expected
    first.set_epoch(5)
    looked = first.peek()["index"].tolist()
    second.set_epoch(5)
    iteration = iter(second)
    assert next(iteration)["index"].tolist() == looked
    with pytest.raises(tl.SettingError, match="an iteration is under way"):
        second.peek()
    state = second.state_dict()
    third = loader(data, shuffle=True)
    third.load_state_dict(state)
    assert third.peek()["index"].tolist() == next(iteration)["index"].tolist()
    assert third.state_dict() == state
    pairs = loader(data, fields=("index", "label"))
    index, _labels = pairs.peek()
    assert index.tolist() == list(range(8))
    finished = loader(data)
    for _ in finished:
        pass
    finished.load_state_dict(finished.state_dict())
    finished.set_epoch(0)
    with pytest.raises(tl.SettingError, match="no batch"):
        finished.peek()


def test_nested_loops_are_explained(data):
    batches = loader(data)
    with pytest.raises(tl.ClosedError, match=r"another iteration .* second loader"):
        for _ in batches:
            for _ in batches:
                break
    with pytest.raises(tl.ClosedError, match="nested loops and zip need a second loader"):
        for _ in zip(batches, batches, strict=True):
            pass
    iteration = iter(batches)
    next(iteration)
    batches.close()
    with pytest.raises(tl.ClosedError, match="its loader was closed"):
        next(iteration)
