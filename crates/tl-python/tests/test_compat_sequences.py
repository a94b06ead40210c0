"""Arrays, Python data sets, tokens and raw images by the names of the first turboloader."""

from __future__ import annotations

import threading

import numpy as np
import pytest
import turboloader as tl
from conftest import bmp, image
from turboloader import compat


class Squares:
    def __init__(self, count):
        self.count = count
        self.threads = set()

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        if not 0 <= index < self.count:
            raise IndexError(index)
        self.threads.add(threading.get_ident())
        return {"x": np.full(2, index), "y": index * index}


def test_arrays_stay_aligned():
    first, second = np.arange(25), np.arange(25) * 10
    loader = compat.ArrayDataLoader(first, second, batch_size=8, shuffle=True, seed=3)
    orders = []
    for epoch in (0, 1, 0):
        loader.set_epoch(epoch)
        batches = list(loader)
        assert [len(x) for x, _ in batches] == [8, 8, 8, 1]
        assert all(np.array_equal(y, 10 * x) for x, y in batches)
        orders.append(np.concatenate([x for x, _ in batches]).tolist())
    assert orders[0] == orders[2] != orders[1]
    assert sorted(orders[1]) == list(range(25))
    # Seed and epoch are two numbers.
    other = compat.ArrayDataLoader(first, batch_size=25, shuffle=True, seed=4)
    assert next(iter(other)).tolist() != orders[1]
    assert len(list(compat.ArrayDataLoader(first, batch_size=8, drop_last=True))) == 3
    batch = next(iter(compat.ArrayDataLoader(first, batch_size=4)))
    batch[:] = -1
    assert first[0] == 0
    with pytest.raises(ValueError, match=r"first .*dimension"):
        compat.ArrayDataLoader(first, second[1:])


def test_arrays_of_a_file_are_those_of_numpy(tmp_path):
    x, y = np.arange(75).reshape(25, 3), np.arange(25) * 10
    np.savez(tmp_path / "a.npz", x=x, y=y)
    loader = compat.ArrayDataLoader(tmp_path / "a.npz", batch_size=8, shuffle=True, seed=3)
    assert len(loader) == 4
    orders = []
    for epoch in (0, 1, 0):
        loader.set_epoch(epoch)
        batches = list(loader)
        assert all(np.array_equal(a, x[b // 10]) for a, b in batches)
        orders.append(np.concatenate([b for _, b in batches]).tolist())
    assert orders[0] == orders[2] != orders[1]
    assert sorted(orders[1]) == y.tolist()
    np.save(tmp_path / "a.npy", x)
    np.savez(tmp_path / "labelled.npz", image=x, label=y)
    ((images, labels),) = compat.ArrayDataLoader(tmp_path / "labelled.npz", batch_size=len(x))
    np.testing.assert_array_equal(images, x)
    np.testing.assert_array_equal(labels, y)
    (rows,) = compat.ArrayDataLoader(str(tmp_path / "a.npy"), batch_size=25)
    assert np.array_equal(rows, x)
    with pytest.raises(ValueError, match="the path of one file"):
        compat.ArrayDataLoader(tmp_path / "a.npy", y)


@pytest.mark.parametrize("workers", [1, 4])
def test_python_data_sets_keep_their_order(workers):
    squares = Squares(21)
    loader = compat.MapDataLoader(squares, batch_size=4, num_workers=workers)
    batches = list(loader)
    assert len(batches) == len(loader) == 6
    assert np.concatenate([batch["y"] for batch in batches]).tolist() == [i * i for i in range(21)]
    assert batches[0]["x"].shape == (4, 2)
    assert len(squares.threads) <= workers
    assert threading.get_ident() not in squares.threads


def test_an_error_of_a_data_set_reaches_the_loop():
    class Broken(Squares):
        def __getitem__(self, index):
            if index == 5:
                raise KeyError("five")
            return index

    before = threading.active_count()
    batches = iter(compat.MapDataLoader(Broken(9), batch_size=2, collate_fn=list))
    assert [next(batches), next(batches)] == [[0, 1], [2, 3]]
    with pytest.raises(KeyError, match="five"):
        next(batches)
    assert threading.active_count() == before
    for other, method in (
        (iter([1]), "__getitem__"),
        (type("Endless", (), {"__getitem__": 1})(), "__len__"),
    ):
        with pytest.raises(TypeError, match=f"without {method}"):
            compat.MapDataLoader(other)


def test_the_loader_takes_other_modalities():
    squares = Squares(10)
    loader = compat.DataLoader(dataset=squares, batch_size=4)
    assert [len(batch["y"]) for batch in loader] == [4, 4, 2]
    assert loader.next_batch()["y"].tolist() == [0, 1, 4, 9]
    arrays = compat.DataLoader(arrays=[np.arange(6), np.arange(6)], modality="array", batch_size=4)
    assert (len(arrays), len(next(iter(arrays)))) == (2, 2)
    tokens = compat.DataLoader(np.arange(50), modality="tokens", seq_len=4, batch_size=3)
    inputs, targets = next(iter(tokens))
    np.testing.assert_array_equal(targets, inputs + 1)


def test_tokens_come_in_windows(tmp_path):
    path = tmp_path / "tokens.bin"
    np.arange(1000, dtype=np.uint16).tofile(path)
    plain = compat.TokenDataLoader(path, 8, 4, shuffle=False, return_targets=False)
    windows = np.concatenate(list(plain))
    assert len(plain) == 31
    np.testing.assert_array_equal(windows.reshape(-1), np.arange(31 * 32))
    whole = list(compat.TokenDataLoader(path, 8, 4, seed=5))
    resumed = compat.TokenDataLoader(path, 8, 4, seed=5)
    batches = iter(resumed)
    np.testing.assert_array_equal(next(batches)[0], whole[0][0])
    other = compat.TokenDataLoader(path, 8, 4, seed=5)
    other.load_state_dict(resumed.state_dict())
    np.testing.assert_array_equal(next(iter(other))[1], whole[1][1])
    parts = [
        list(compat.TokenDataLoader(path, 8, 4, world_rank=rank, world_size=2, steps_per_epoch=5))
        for rank in (0, 1)
    ]
    inputs = [np.concatenate([batch[0] for batch in part]) for part in parts]
    one = list(compat.TokenDataLoader(path, 8, 4, steps_per_epoch=10))
    alone = np.concatenate([batch[0] for batch in one])
    np.testing.assert_array_equal(np.stack(inputs, 1).reshape(-1, 8), alone)
    with pytest.raises(ValueError, match="too short"):
        compat.TokenDataLoader(np.arange(9), 8)


def test_tokens_in_pinned_memory_need_cuda(tmp_path):
    torch = pytest.importorskip("torch")
    tokens = np.arange(1000)
    with pytest.raises(ValueError, match="ring is 1, expected 2 or more"):
        compat.TokenDataLoader(tokens, 8, 4, pin_memory=True, ring=1)
    if not torch.cuda.is_available():
        with pytest.raises(RuntimeError, match="need CUDA"):
            compat.TokenDataLoader(tokens, 8, 4, device="cuda")
        return
    with pytest.raises(ValueError, match="expected one of CUDA"):
        compat.TokenDataLoader(tokens, 8, 4, device="cpu")
    arrays = list(compat.TokenDataLoader(tokens, 8, 4))
    for setting in ({"pin_memory": True}, {"device": "cuda"}):
        batches = compat.TokenDataLoader(tokens, 8, 4, **setting)
        for batch, array in zip(batches, arrays, strict=True):
            for one, other in zip(batch, array, strict=True):
                assert one.is_pinned() if "pin_memory" in setting else one.is_cuda
                np.testing.assert_array_equal(one.cpu().numpy(), other)


SIDE = 12


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """A TBL file of bitmaps, and one of their pixels at one size."""
    folder = tmp_path_factory.mktemp("raw")
    with tl.TblWriter(folder / "a.tbl", class_names=["a", "b"]) as writer:
        for index in range(21):
            writer.add_sample(bmp(image(index, height=20, width=24)), label=index % 2)
    assert compat.preprocess_to_tbl(folder / "a.tbl", folder / "raw.tbl", SIDE) == 21
    return folder / "a.tbl", folder / "raw.tbl"


def test_raw_images_have_the_bits_of_stored_ones(stored):
    source, raw = stored
    expected = compat.DataLoader(
        source, 8, image_size=SIDE, output_format="pytorch", transform=compat.ImageNetNormalize()
    )
    for (images, meta), (floats, raw_meta) in zip(
        expected, compat.TblRawImageLoader(raw, 8, shuffle=False), strict=True
    ):
        assert meta["indices"] == raw_meta["indices"].tolist()
        np.testing.assert_array_equal(floats, images)
    # The file is a data set like others, with its labels.
    loader = tl.DataLoader(raw, batch_size=21)
    assert next(iter(loader))["label"].tolist() == [index % 2 for index in range(21)]
    assert loader.class_names == ["a", "b"]


@pytest.mark.parametrize("channels_last", [False, True])
def test_layouts_and_half_precision_are_conversions(stored, channels_last):
    settings = {"shuffle": False, "hflip_prob": 0.5, "seed": 2}
    plain = next(iter(compat.TblRawImageLoader(stored[1], 8, **settings)))[0]
    half = compat.TblRawImageLoader(
        stored[1], 8, dtype="float16", channels_last=channels_last, **settings
    )
    images = next(iter(half))[0]
    made = images.transpose(0, 3, 1, 2) if channels_last else images
    np.testing.assert_array_equal(made, plain.astype(np.float16))


def test_crops_are_named_and_repeated(stored):
    settings = {"batch_size": 8, "train_aug": True, "hflip_prob": 0.5, "image_size": 9, "seed": 4}
    view, height, width = compat.tbl.open_raw_view(stored[1])
    assert (height, width, view.shape) == (SIDE, SIDE, (21, SIDE, SIDE, 3))
    for ahead in (0, 2):
        loader = compat.TblRawImageLoader(stored[1], prefetch_batches=ahead, **settings)
        batches = list(loader)
        again = list(compat.TblRawImageLoader(stored[1], prefetch_batches=0, **settings))
        for (images, meta), (others, _) in zip(batches, again, strict=True):
            np.testing.assert_array_equal(images, others)
            out = np.empty_like(images)
            compat.crop_resize_normalize_u8_gather(
                view, meta["indices"], meta["crops"], meta["flips"], out, loader.mean, loader.std
            )
            np.testing.assert_array_equal(images, out)
            x, y, across, down = meta["crops"].T
            assert (x >= 0).all() and (x + across <= SIDE).all() and (across > 0).all()
            assert (y >= 0).all() and (y + down <= SIDE).all() and (down > 0).all()
    loader.set_epoch(1)
    assert not np.array_equal(next(iter(loader))[1]["crops"], batches[0][1]["crops"])


def test_a_crop_of_everything_changes_nothing():
    pixels = np.stack([image(index, 6, 7) for index in range(3)])
    expected = np.empty((2, 3, 6, 7), np.float32)
    compat.normalize_u8_gather(pixels, np.array([2, 0]), expected, (0.5,) * 3, (0.25,) * 3)
    made = np.empty_like(expected)
    crops = np.array([[0, 0, 7, 6]] * 2)
    for flips, reference in (([0, 0], expected), ([1, 1], expected[..., ::-1])):
        compat.crop_resize_normalize_u8_gather(
            pixels, [2, 0], crops, flips, made, (0.5,) * 3, (0.25,) * 3
        )
        np.testing.assert_array_equal(made, reference)
    reference = (pixels[[2, 0]].astype(np.float32) / 255 - 0.5) / 0.25
    np.testing.assert_allclose(expected, reference.transpose(0, 3, 1, 2), atol=1e-6)


def test_raw_loaders_refuse_other_files(stored, tmp_path):
    with pytest.raises(ValueError, match="BMP, expected RAW_U8"):
        compat.TblRawImageLoader(stored[0])
    for name, sizes, compressed, message in (
        ("mixed.tbl", (8, 9), False, "mixed sizes"),
        ("packed.tbl", (8, 8), True, "compressed"),
    ):
        with compat.TblWriterV2(tmp_path / name, enable_compression=compressed) as writer:
            for side in sizes:
                zeros = bytes(side * side * 3)
                writer.add_sample(zeros, compat.SampleFormat.RAW_U8, width=side, height=side)
        with pytest.raises(ValueError, match=message):
            compat.TblRawImageLoader(tmp_path / name)
    with pytest.raises(tl.SettingError, match="have 192"):
        compat.TblWriterV2(tmp_path / "b.tbl").add_sample(b"", compat.SampleFormat.RAW_U8, 8, 8)
    out = np.empty((1, 3, 8, 8), np.float32)
    pixels = np.zeros((2, 8, 8, 3), np.uint8)
    for arguments, message in (
        ((pixels, [2], out), "out of range"),
        ((pixels, [0], out[..., :4]), "contiguous"),
        ((pixels, [0], np.empty((1, 4, 8, 8), np.float32)), "shape"),
        ((pixels, [0], out.astype(np.float64)), "float32 or float16"),
        ((pixels, [0], out, (0.5,) * 3), "only one"),
    ):
        with pytest.raises(ValueError, match=message):
            compat.normalize_u8_gather(*arguments)


def test_pixels_are_written_as_they_are(tmp_path):
    path = tmp_path / "a.tbl"
    with tl.TblWriter(path) as writer:
        writer.add_pixels(image(1), key="one", label=3)
        writer.add_pixels(image(2)[::2], label=0)
        with pytest.raises(tl.SettingError, match="of uint8"):
            writer.add_pixels(image(1).astype(np.int16))
        with pytest.raises(tl.SettingError, match=r"expected .height, width, 3."):
            writer.add_pixels(image(1)[..., 0])
    entry = tl.TblReader(path).entry(0)
    assert (entry["key"], entry["label"], entry["format"]) == ("one", 3, "RAW_U8")
    first, second = (batch["image"][0].numpy() for batch in tl.DataLoader(path, batch_size=1))
    np.testing.assert_array_equal(first, image(1))
    np.testing.assert_array_equal(second, image(2)[::2])
