"""The interface of the first turboloader: what its own tests say of the parts that are kept.

Each test names the file of turboloader 2.39.0 whose statements it makes; docs/python-compat.md
lists where they differ.
"""

from __future__ import annotations

import inspect
import io
import os
import pickle
import tarfile
import threading
import warnings

import numpy as np
import pytest
import turboloader as tl
from conftest import HEIGHT, WIDTH, bmp, image
from turboloader import compat

COUNT = 20


@pytest.fixture(scope="module")
def archive(tmp_path_factory):
    """20 images; the first turboloader had JPEG only."""
    path = tmp_path_factory.mktemp("compat") / "images.tar"
    with tarfile.open(path, "w") as tar:
        for index in range(COUNT):
            add(tar, f"{index:03d}.bmp", bmp(image(index)))
    return path


def add(tar, name, data):
    member = tarfile.TarInfo(name)
    member.size = len(data)
    tar.addfile(member, io.BytesIO(data))


def make(path, **settings):
    settings = {"image_size": (HEIGHT, WIDTH), "output_format": "pytorch", **settings}
    return compat.DataLoader(path, batch_size=8, **settings)


def epoch(loader):
    return [(images.tobytes(), meta["indices"]) for images, meta in loader]


ARGUMENTS = """
data_path batch_size num_workers shuffle transform image_size output_format modality seq_len
token_dtype arrays dataset collate_fn seed enable_distributed world_rank world_size drop_last
distributed_seed enable_cache cache_l1_mb cache_l2_gb cache_dir auto_smart_batching
enable_smart_batching prefetch_batches cache_decoded antialias pin_memory train_aug hflip_prob
dtype channels_last
"""


def test_arguments_have_their_order(archive):
    """Its documentation of 2.39.0."""
    arguments = [*ARGUMENTS.split(), "store"]
    assert list(inspect.signature(compat.DataLoader).parameters) == arguments
    loader = compat.DataLoader(archive, 8, 2, False, compat.Resize(WIDTH, HEIGHT), None, "pytorch")
    images, _ = next(iter(loader))
    assert images.shape == (8, 3, HEIGHT, WIDTH)


def test_arrays_are_floats_in_their_layout(archive):
    """test_cov_init_paths.py: shapes, range, length, coverage."""
    expected = image(0).astype(np.float32) * np.float32(1 / 255)
    for output_format, shape in (
        ("numpy", (8, HEIGHT, WIDTH, 3)),
        ("pytorch", (8, 3, HEIGHT, WIDTH)),
    ):
        loader = make(archive, output_format=output_format)
        assert len(loader) == 3
        batches = list(loader)
        images, meta = batches[0]
        assert (images.shape, images.dtype) == (shape, np.float32)
        first = images[0] if output_format == "numpy" else images[0].transpose(1, 2, 0)
        np.testing.assert_array_equal(first, expected)
        assert (meta["batch_size"], meta["decode_failures"]) == (8, 0)
        assert [index for _, meta in batches for index in meta["indices"]] == list(range(COUNT))
        assert loader.is_finished()
    assert len(list(make(archive, drop_last=True))) == 2


def test_dicts_have_uint8_images(archive):
    """test_cov_init_paths.py and test_audit_fixes.py: the dict path, over and over."""
    loader = compat.DataLoader(archive, batch_size=8)
    for _ in range(2):
        samples = [sample for batch in loader for sample in batch]
        assert len(samples) == COUNT
        for index, sample in enumerate(samples):
            np.testing.assert_array_equal(sample["image"], image(index))
            assert (sample["filename"], sample["index"]) == (f"{index:03d}.bmp", index)
            assert (sample["width"], sample["height"], sample["channels"]) == (WIDTH, HEIGHT, 3)
    # Its length is known, which it was not.
    assert len(loader) == 3


def test_next_batch_ends_and_begins_anew(archive):
    """test_cov_init_paths.py: next_batch."""
    loader = make(archive)
    for _ in range(2):
        seen = [loader.next_batch()[1]["indices"] for _ in range(3)]
        assert [index for batch in seen for index in batch] == list(range(COUNT))
        with pytest.raises(StopIteration):
            loader.next_batch()


@pytest.mark.parametrize("settings", [{}, {"prefetch_batches": 3}, {"train_aug": True}])
def test_epochs_go_on_where_they_were(archive, settings):
    """test_state_dict_resume.py: the rest of an interrupted epoch, bit by bit."""
    loader = make(archive, shuffle=True, seed=9, **settings)
    loader.set_epoch(2)
    expected = epoch(loader)
    # An iteration is the epoch that was named, until another is.
    assert epoch(loader) == expected
    batches = iter(loader)
    next(batches)
    state = loader.state_dict()
    assert (state["epoch"], state["batches_served"]) == (2, 1)
    other = make(archive, shuffle=True, seed=9, **settings)
    other.load_state_dict(state)
    assert epoch(other) == expected[1:]
    assert epoch(other) == expected
    # It has a state with dicts too, which it had not.
    assert compat.DataLoader(archive, batch_size=8).state_dict()["batches_served"] == 0


def test_epochs_are_shuffled_by_number(archive):
    """test_epoch_shuffle.py."""
    loader = compat.FastDataLoader(archive, 8, 1, "pytorch", HEIGHT, WIDTH, shuffle=True)
    orders = []
    for number in (0, 1, 1):
        loader.set_epoch(number)
        orders.append([index for _, meta in loader for index in meta["indices"]])
    assert sorted(orders[0]) == sorted(orders[1]) == list(range(COUNT))
    assert orders[0] != orders[1] == orders[2]
    # Seed and epoch are two numbers, whose sum it took.
    one, other = make(archive, shuffle=True, seed=42), make(archive, shuffle=True, seed=43)
    one.set_epoch(1)
    assert [i for _, i in epoch(one)] != [i for _, i in epoch(other)]


def test_ranks_share_the_samples(archive):
    """test_cov_init_paths.py, test_audit_fixes.py: disjoint parts that are everything."""
    parts = [
        [
            i
            for _, indices in epoch(
                make(archive, enable_distributed=True, world_rank=r, world_size=2)
            )
            for i in indices
        ]
        for r in (0, 1)
    ]
    assert set(parts[0]) | set(parts[1]) == set(range(COUNT))
    assert len(parts[0]) == len(parts[1])
    # Without enable_distributed the numbers mean nothing.
    assert len(epoch(make(archive, world_rank=1, world_size=2))) == 3


def test_bad_samples_are_counted_and_warned_about(tmp_path):
    """test_decode_failures_observable.py."""
    path = tmp_path / "a.tar"
    with tarfile.open(path, "w") as tar:
        for index in range(7):
            add(tar, f"{index}.bmp", bmp(image(index)))
        add(tar, "7.jpg", b"\xde\xad\xbe\xef" * 64)
    loader = make(path)
    with (
        pytest.warns(UserWarning),
        pytest.warns(RuntimeWarning, match="1 samples failed") as warned,
    ):
        ((images, meta),) = list(loader)
    assert (images.shape[0], meta["decode_failures"], loader.decode_failures) == (8, 1, 1)
    assert not images[7].any()
    assert images[6].any()
    assert [warning.category for warning in warned] == [UserWarning, RuntimeWarning]
    assert "1 samples failed to decode" in str(warned[1].message)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        list(loader)


def threads():
    return len(os.listdir("/proc/self/task"))


def test_loaders_close(archive):
    """test_loader_close.py: context, close twice, use after close, given up in mid-epoch."""
    before = (threads(), threading.active_count())
    with make(archive) as loader:
        assert loader.next_batch()[0].shape[1:] == (3, HEIGHT, WIDTH)
    loader.close()
    loader.close()
    assert len(epoch(loader)) == 3
    for _ in range(40):
        given_up = make(archive)
        given_up.next_batch()
    del given_up, loader
    assert (threads(), threading.active_count()) <= (before[0] + 1, before[1])


def test_normalisation_is_arithmetic(archive):
    """test_cov_init_paths.py, test_fastpath_transforms.py: Normalize composed, bare, ImageNet's."""
    mean, std = np.float32([0.485, 0.456, 0.406]), np.float32([0.229, 0.224, 0.225])
    scaled = image(0).astype(np.float32) * np.float32(1 / 255)
    size = compat.Resize(WIDTH, HEIGHT)
    for transform in (
        size | compat.ImageNetNormalize(),
        compat.Compose([size, compat.ToTensor(), compat.Normalize(list(mean), list(std))]),
    ):
        images, _ = next(
            iter(compat.DataLoader(archive, 8, transform=transform, output_format="numpy"))
        )
        np.testing.assert_allclose(images[0], (scaled - mean) / std, atol=1e-6)
    images, _ = next(iter(make(archive, transform=compat.Normalize([0.5] * 3, [0.5] * 3))))
    assert images.min() >= -1 and images.max() <= 1


def test_sizes_that_disagree_are_refused(archive):
    """test_cov_init_paths.py and test_cov_init_modality.py: no size for arrays, two sizes."""
    with pytest.raises(ValueError, match="needs a fixed image size"):
        compat.DataLoader(archive, output_format="pytorch")
    with pytest.raises(ValueError, match="Conflicting sizes"):
        make(archive, transform=compat.Resize(3, 3))
    agreed = make(archive, transform=compat.Resize(WIDTH, HEIGHT))
    assert epoch(agreed) == epoch(make(archive))
    with pytest.raises(tl.SettingError, match="train_aug needs image_size"):
        compat.DataLoader(archive, train_aug=True)
    with pytest.raises(ValueError, match="modality must be one of"):
        compat.DataLoader(archive, modality="audio")
    with pytest.raises(ValueError, match="requires seq_len"):
        compat.DataLoader(archive, modality="tokens")


def test_fast_loaders_take_the_first_size(tmp_path):
    """test_v250_features.py and test_v260_features.py: no size is said."""
    path = tmp_path / "a.tar"
    with tarfile.open(path, "w") as tar:
        for index in range(4):
            add(tar, f"{index}.bmp", bmp(image(index, height=HEIGHT + index)))
    for output_format, kind, shape in (
        ("numpy", np.uint8, (4, HEIGHT, WIDTH, 3)),
        ("tensorflow", np.uint8, (4, HEIGHT, WIDTH, 3)),
        ("pytorch", np.float32, (4, 3, HEIGHT, WIDTH)),
    ):
        loader = compat.FastDataLoader(path, 4, 1, output_format)
        ((images, meta),) = list(loader)
        assert (images.shape, images.dtype) == (shape, kind)
        assert (meta["height"], meta["width"], meta["channels"]) == (HEIGHT, WIDTH, 3)
        assert meta["filenames"] == [f"{index}.bmp" for index in range(4)]
    first = next(iter(compat.FastDataLoader(path, 4, 1)))[0][0]
    np.testing.assert_array_equal(first, image(0))
    # A transform that sets a size decides it.
    cropped = compat.FastDataLoader(path, 4, 1, transform=compat.CenterCrop(4, 3))
    assert next(iter(cropped))[0].shape == (4, 3, 4, 3)
    floats = compat.FastDataLoader(path, 4, 1, transform=compat.ImageNetNormalize())
    assert next(iter(floats))[0].dtype == np.float32


def test_a_finished_loader_says_so(archive):
    """test_framework_tensors.py: loops until `is_finished`."""
    loader = compat.FastDataLoader(archive, 8, 1)
    count = 0
    while not loader.is_finished():
        loader.next_batch()
        count += 1
    assert count == 3


def test_caches_are_emptied(archive):
    """test_v270_features.py: cache_populated, cache_size_mb, clear_cache."""
    loader = compat.FastDataLoader(archive, 8, 1, cache_decoded=True)
    assert (loader.cache_populated, loader.cache_size_mb) == (False, 0)
    first = epoch(loader)
    assert loader.cache_populated
    assert loader.cache_size_mb * 2**20 >= COUNT * HEIGHT * WIDTH * 3
    assert epoch(loader) == first
    loader.clear_cache()
    assert (loader.cache_populated, loader.cache_size_mb) == (False, 0)
    assert epoch(loader) == first


def test_errors_are_runtime_errors(tmp_path):
    """test_cov_init_modality.py: `except RuntimeError` catches what it caught."""
    with pytest.raises(RuntimeError, match="Failed to open TAR") as caught:
        compat.DataLoader(tmp_path / "none.tar")
    assert isinstance(caught.value, tl.PathNotFoundError)
    assert isinstance(caught.value, FileNotFoundError)
    copy = pickle.loads(pickle.dumps(caught.value))
    assert isinstance(copy, RuntimeError)
    assert (str(copy), copy.shard) == (str(caught.value), caught.value.shard)
    bad = tmp_path / "bad.tar"
    with tarfile.open(bad, "w") as tar:
        add(tar, "a.jpg", b"no image")
    with pytest.raises(RuntimeError) as caught:
        list(compat.DataLoader(bad))
    assert isinstance(caught.value, tl.DecodeError)
    with pytest.raises(RuntimeError, match="JPEG"):
        compat.decode_jpeg_scaled(b"not a jpeg", 4, 4)
    with pytest.raises(RuntimeError, match="Failed to open TBL"):
        compat.TblReaderV2(tmp_path / "none.tbl")
    # Those of the package itself stay what they are.
    with pytest.raises(tl.PathNotFoundError) as caught:
        tl.DataLoader(tmp_path / "none.tar")
    assert not isinstance(caught.value, RuntimeError)


def test_logs_go_where_they_are_sent(archive, tmp_path):
    """test_v180_features.py: the functions of logging."""
    path = tmp_path / "loader.log"
    compat.set_log_output(path)
    compat.set_log_level(compat.LogLevel.DEBUG)
    compat.enable_logging()
    try:
        assert len(epoch(make(archive))) == 3
    finally:
        compat.disable_logging()
        compat.set_log_output("")
    lines = path.read_text().splitlines()
    assert [line.split()[2] for line in lines] == ["INFO", "DEBUG", "DEBUG"]
    assert "epoch 0 begins, 3 batches" in lines[1]
    assert len(epoch(make(archive))) == 3
    assert len(path.read_text().splitlines()) == 3


def test_versions_are_those_of_the_interface():
    """test_v190_features.py: version, features."""
    assert compat.__version__ == compat.version() == compat.features()["version"] == "2.39.0"
    assert compat.features()["implementation"] == tl.__version__
    assert compat.features()["png_decode"] is True
    assert compat.features()["s3_support"] is tl._native.HAS_REMOTE


def test_pipelines_have_a_length():
    """test_v190_features.py: len."""
    chain = compat.Resize(4, 4) | compat.RandomHorizontalFlip() | compat.ImageNetNormalize()
    assert len(chain) == 3
    assert [step.name() for step in chain.get_transforms()][1] == "RandomHorizontalFlip"
    assert (compat.Resize(5, 4).width, compat.Resize(5, 4).height) == (5, 4)
    assert compat.Resize(5, 4).apply(PIXELS[..., :1]).shape == (4, 5, 1)


def test_sizes_may_grow(archive):
    """ProgressiveResizeLoader of its documentation."""
    loader = compat.ProgressiveResizeLoader(
        archive, 8, 1, initial_size=4, final_size=8, warmup_epochs=3
    )
    sizes = []
    for number in range(5):
        loader.set_epoch(number)
        sizes.append(next(iter(loader))[0].shape[1])
    assert (sizes, loader.size_schedule) == ([4, 6, 8, 8, 8], [4, 6, 8])


PIXELS = image(3, height=256, width=200)


def test_transforms_on_their_own():
    """test_pytorch_transforms.py, test_v180_features.py: sizes, mirrors, channels, layouts."""
    assert compat.Resize(224, 100).apply(PIXELS).shape == (100, 224, 3)
    assert compat.CenterCrop(100, 50).apply(PIXELS).shape == (50, 100, 3)
    assert compat.RandomCrop(64, 32, padding=2).apply(PIXELS).shape == (32, 64, 3)
    mirrored = compat.RandomHorizontalFlip(p=1.0).apply(PIXELS)
    np.testing.assert_array_equal(mirrored, PIXELS[:, ::-1])
    np.testing.assert_array_equal(compat.RandomVerticalFlip(1.0).apply(PIXELS), PIXELS[::-1])
    assert compat.Grayscale(1).apply(PIXELS).shape == (256, 200, 1)
    grey = compat.Grayscale(3).apply(PIXELS)
    np.testing.assert_array_equal(grey[..., 0], grey[..., 2])
    padded = compat.Pad(10, compat.PaddingMode.CONSTANT, 7).apply(PIXELS)
    assert padded.shape == (276, 220, 3)
    assert (padded[0] == 7).all()
    np.testing.assert_array_equal(
        compat.Pad(2, compat.PaddingMode.EDGE).apply(PIXELS)[0, 2:-2], PIXELS[0]
    )
    assert compat.GaussianBlur(5).apply(PIXELS).std() < PIXELS.std()
    for random in (
        compat.ColorJitter(0.2, 0.2, 0.2, 0.1),
        compat.RandomErasing(p=1.0),
        compat.RandomRotation(30),
        compat.RandomAffine(15, 0.1, 0.1, 0.8, 1.2, 5),
        compat.RandomPerspective(0.5, p=1.0),
        compat.RandomPosterize(3),
        compat.RandomSolarize(128),
        compat.AutoAugment(compat.AutoAugmentPolicy.CIFAR10),
        compat.RandAugment(2, 9),
    ):
        made = random.apply(PIXELS)
        assert (made.shape, made.dtype) == (PIXELS.shape, np.uint8)
        assert not random.is_deterministic()
        assert random.name() == type(random).__name__
    assert compat.ToTensor().apply(PIXELS).shape == (3, 256, 200)
    floats = compat.ToTensor(compat.TensorFormat.TENSORFLOW_HWC).apply(PIXELS)
    assert (floats.shape, floats.dtype) == (PIXELS.shape, np.float32)
    chain = compat.Resize(64, 64) | compat.ToTensor() | compat.ImageNetNormalize()
    assert (chain.is_deterministic(), chain.name()) == (True, "ComposedTransforms")
    assert not (compat.RandAugment() | chain).is_deterministic()
    assert chain.apply(PIXELS).shape == (3, 64, 64)
    half = compat.ComposedTransforms([compat.Resize(8, 4)])
    assert (half | compat.RandomCrop(2, 3)).apply(PIXELS).shape == (3, 2, 3)
    normalised = compat.Normalize([0.5] * 3, [0.5] * 3).apply(PIXELS)
    assert -1 <= normalised.min() < normalised.max() <= 1


def test_tensors_come_last(archive):
    """The chain of its documentation; `ToTensor` says where channels are."""
    resize, normalize, tensor = compat.Resize(5, 4), compat.ImageNetNormalize(), compat.ToTensor()
    expected = (resize | normalize).apply(PIXELS)
    made = (resize | normalize | tensor).apply(PIXELS)
    np.testing.assert_array_equal(made, expected.transpose(2, 0, 1))
    first, second = (
        epoch(make(archive, image_size=None, transform=chain))
        for chain in (resize | normalize, resize | normalize | tensor)
    )
    assert first == second


def test_seeds_repeat_draws():
    """test_pytorch_transforms.py: the same seed does the same."""
    one, other = compat.RandomCrop(16, 16, seed=5), compat.RandomCrop(16, 16, seed=5)
    first = [one.apply(PIXELS) for _ in range(3)]
    for expected in first:
        np.testing.assert_array_equal(other.apply(PIXELS), expected)
    assert not np.array_equal(first[0], first[1])


def test_what_is_meant_otherwise_is_refused():
    with pytest.raises(tl.UnsupportedTransformError, match="GridMask"):
        compat.GridMask()
    with pytest.raises(tl.UnsupportedTransformError, match="Mosaic"):
        compat.Mosaic(320)
    with pytest.raises(tl.RecipeError, match="to_float"):
        compat.Normalize([0.5] * 3, [0.5] * 3, to_float=False)


def test_tbl_files_by_their_names(tmp_path):
    """The TblWriterV2 and TblReaderV2 of its documentation."""
    path = tmp_path / "a.tbl"
    with compat.TblWriterV2(path, enable_compression=False) as writer:
        assert [writer.add_sample(bmp(image(i)), "BMP", WIDTH, HEIGHT) for i in range(3)] == [
            0,
            1,
            2,
        ]
        assert writer.add_sample(bmp(image(3, height=50))) == 3
        writer.add_metadata(1, '{"label": "cat"}')
        writer.add_metadata(2, b"\x08\x96", compat.MetadataType.PROTOBUF)
        writer.add_metadata(1, "second", type=compat.MetadataType.MSGPACK)
        with pytest.raises(IndexError, match="4"):
            writer.add_metadata(4, "{}")
    reader = compat.TblReaderV2(path)
    assert reader.has_metadata()
    assert reader.read_metadata(0) == ("", compat.MetadataType.NONE)
    assert reader.read_metadata(1) == ('{"label": "cat"}', compat.MetadataType.JSON)
    assert reader.read_metadata(2) == (b"\x08\x96", compat.MetadataType.PROTOBUF)
    assert (len(reader), reader.num_samples) == (4, 4)
    assert reader.read_sample(2) == bmp(image(2))
    assert reader.get_sample_info(3)["height"] == 50
    assert reader.filter_by_dimensions(min_height=20) == [3]
    assert reader.filter_by_format("BMP") == [0, 1, 2, 3]


def test_pictures_are_decoded(photos):
    """test_decode.py, test_crop_decode.py: shape, type, covering scales, bad data."""
    data = (photos / "animals" / "chelsea.jpg").read_bytes()
    info = tl.probe(data)
    whole = compat.decode_jpeg(data)
    assert (whole.shape, whole.dtype) == ((info.height, info.width, 3), np.uint8)
    for eighths in range(1, 17):
        sides = [-(-side * eighths // 8) for side in (info.width, info.height)]
        scaled = compat.decode_jpeg_scaled(data, *sides)
        assert scaled.shape == (sides[1], sides[0], 3)
        np.testing.assert_array_equal(scaled, tl.decode_jpeg(data, eighths=eighths).numpy())
        x, y, width, height = 7, 3, sides[0] - 9, sides[1] - 5
        part, first, *size = compat.decode_jpeg_region(data, *sides, x, y, width, height)
        assert (first, size) == (x, sides)
        np.testing.assert_array_equal(part, scaled[y : y + height, x : x + width])
    # None covers three times the size.
    assert compat.decode_jpeg_scaled(data, 3 * info.width, 1).shape == whole.shape
    assert compat.decode_jpeg_scaled(data, info.width, 1).shape == whole.shape
    with pytest.raises(ValueError, match="JPEG"):
        compat.decode_jpeg(b"not a jpeg")


def test_states_know_the_epoch_that_was_chosen(archive):
    """test_state_dict_resume.py: a loop that calls set_epoch goes on where it was."""
    loader, other = (make(archive, shuffle=True) for _ in range(2))
    loader.set_epoch(5)
    assert loader.state_dict()["epoch"] == 5
    expected = epoch(loader)
    loader.set_epoch(6)
    between = loader.state_dict()
    assert (between["epoch"], between["batches_served"]) == (6, 0)
    other.load_state_dict(between)
    other.set_epoch(6)
    sixth = epoch(other)
    assert sixth == epoch(loader) != expected
    # An epoch that is over is followed by the next, unless it is chosen.
    finished = loader.state_dict()
    other.load_state_dict(finished)
    other.set_epoch(6)
    assert epoch(other) == []
    other.load_state_dict(finished)
    loader.set_epoch(7)
    assert epoch(other) == epoch(other) == epoch(loader)


def test_next_batch_begins_anew_behind_an_iteration(archive):
    loader = make(archive)
    first = loader.next_batch()[1]["indices"]
    assert next(iter(loader))[1]["indices"] == first
    assert loader.next_batch()[1]["indices"] == first
    assert loader.next_batch()[1]["indices"] != first


def test_loaders_by_their_kinds(archive):
    """test_v260_features.py: create_loader."""
    fast = compat.create_loader(archive, "fast", batch_size=4, target_height=6, target_width=10)
    assert isinstance(fast, compat.FastDataLoader)
    assert next(iter(fast))[0].shape == (4, 6, 10, 3)
    size = {"target_height": 6, "target_width": 10}
    thrifty = compat.create_loader(archive, "memory_efficient", batch_size=4, **size)
    assert next(iter(thrifty))[1]["batch_size"] == 4
    sized = compat.MemoryEfficientDataLoader(archive, 4, 1, 256, "pytorch", 6, 10)
    assert next(iter(sized))[0].shape == (4, 3, 6, 10)
    with pytest.raises(tl.SettingError, match="budget"):
        next(iter(compat.MemoryEfficientDataLoader(archive, 4, max_memory_mb=0, **size)))
    with pytest.raises(tl.SettingError, match="only one is set; pass both"):
        compat.FastDataLoader(archive, target_height=4)
    with pytest.raises(tl.SettingError, match="loader_type"):
        compat.create_loader(archive, "magic")
