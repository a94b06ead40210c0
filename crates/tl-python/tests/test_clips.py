"""Clips of videos: shapes, choices of frames, errors, and torch."""

from __future__ import annotations

import dataclasses
import pathlib
import shutil

import numpy as np
import pytest
import turboloader as tl

VIDEOS = pathlib.Path(__file__).parents[3] / "testdata" / "video"
NAMES = ("h264.mkv", "h264_b.mp4", "h264_open.mp4", "h264_opendml.avi", "h264_rotated.mov")
TRAIN = [tl.RandomResizedCrop(24), tl.RandomHorizontalFlip()]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """Videos in two classes."""
    if not VIDEOS.exists():
        pytest.skip("needs testdata/video")
    root = tmp_path_factory.mktemp("videos")
    for number, name in enumerate(NAMES):
        path = root / ("run", "walk")[number % 2] / name
        path.parent.mkdir(exist_ok=True)
        shutil.copy(VIDEOS / name, path)
    return root


def load(folder: pathlib.Path, clips: tl.Clips | int, **settings) -> tl.DataLoader:
    return tl.DataLoader(
        folder, 2, **{"transform": TRAIN, "num_workers": 2, **settings}, clips=clips
    )


def videos(loader: tl.DataLoader) -> dict[int, np.ndarray]:
    """The clips of an epoch by sample."""
    found = {}
    for batch in loader:
        videos = batch["video"].numpy().copy()
        found.update(zip(batch["index"].numpy().tolist(), videos, strict=True))
    return found


def test_batches_have_clips_and_labels(folder: pathlib.Path) -> None:
    loader = load(folder, 8, dtype="float32")
    batches = list(loader)
    shapes = [(rows, 8, 3, 24, 24) for rows in (2, 2, 1)]
    assert [batch["video"].shape for batch in batches] == shapes
    labels = [label for batch in batches for label in batch["label"].numpy().tolist()]
    assert labels == [0, 0, 0, 1, 1]
    assert "image" not in batches[0]
    assert batches[0][0]["video"].shape == (8, 3, 24, 24)
    assert "8 consecutive frames, at random places" in loader.explain()


def test_layouts_types_and_numbers_of_clips(folder: pathlib.Path) -> None:
    shape = next(iter(load(folder, tl.Clips(4, clips=3, stride=2))))["video"].shape
    assert shape == (2, 3, 4, 24, 24, 3)
    batch = next(iter(load(folder, tl.Clips(4, clips=3), channels_last=False, dtype="float16")))
    assert batch["video"].shape == (2, 3, 4, 3, 24, 24)
    assert batch["video"].numpy().dtype == np.float16


def test_threads_and_resumption_change_no_byte(folder: pathlib.Path) -> None:
    settings = {"shuffle": True, "seed": 3}
    alone = load(folder, tl.Clips(4, fps=10), num_workers=1, **settings)
    expected = [batch["video"].numpy().copy() for batch in alone]
    others = load(folder, tl.Clips(4, fps=10), num_workers=3, **settings)
    iterator = iter(others)
    assert np.array_equal(next(iterator)["video"].numpy(), expected[0])
    state = others.state_dict()
    resumed = load(folder, tl.Clips(4, fps=10), num_workers=2, **settings)
    resumed.load_state_dict(state)
    for batch, before in zip(resumed, expected[1:], strict=True):
        assert np.array_equal(batch["video"].numpy(), before)
    other = load(folder, tl.Clips(4, fps=12), **settings)
    with pytest.raises(tl.exceptions.StateError):
        other.load_state_dict(state)
        next(iter(other))


def test_starts_and_distances(folder: pathlib.Path) -> None:
    crop = {"transform": [tl.CenterCrop(24)]}
    # All frames of the clips of 12 to 40 frames, or the first ones.
    whole = videos(load(folder, tl.Clips(12, start=0.0), **crop))
    for clips in (tl.Clips(4, stride=3, start=0), tl.Clips(4, fps=25 / 3, start=0.0)):
        for index, video in videos(load(folder, clips, **crop)).items():
            assert np.array_equal(video, whole[index][::3]), clips
    seconds = tl.Clips(4, seconds=0.12, start=0)
    for index, video in videos(load(folder, seconds, **crop)).items():
        assert np.array_equal(video, whole[index][::3])
    regular = videos(load(folder, tl.Clips(4, clips=2, start="regular"), **crop))
    assert all(np.array_equal(video[0], whole[index][:4]) for index, video in regular.items())
    # The one of 12 frames.
    turned = 2
    assert np.array_equal(regular[turned][1], whole[turned][8:12])
    wrapped = videos(load(folder, tl.Clips(20, start="center", policy="wrap"), **crop))
    assert np.array_equal(wrapped[turned][12:], wrapped[turned][:8])


def test_videos_by_torch(folder: pathlib.Path) -> None:
    torch = pytest.importorskip("torch")
    loader = load(folder, 4, dtype="float32", output_format="torch", fields=("video", "label"))
    for clips, labels in loader:
        assert isinstance(clips, torch.Tensor)
        assert clips.shape[1:] == (4, 3, 24, 24)
        assert len(labels) == len(clips)


def test_damage_is_named_or_skipped(folder: pathlib.Path, tmp_path: pathlib.Path) -> None:
    path = tmp_path / "clips"
    shutil.copytree(folder, path)
    file = path / "walk" / "h264_b.mp4"
    data = bytearray(file.read_bytes())
    data[600 : len(data) - 3000] = bytes(len(data) - 3600)
    file.write_bytes(data)
    clips = tl.Clips(12, clips=2, start="regular")
    message = r"h264_b\.mp4.*frame \d+: packet \d+ at byte"
    with pytest.raises(tl.exceptions.DecodeError, match=message):
        list(load(path, clips))
    loader = load(path, clips, errors="skip")
    with pytest.warns(UserWarning, match="bad samples are skipped"):
        rows = [len(batch["label"].numpy()) for batch in loader]
    assert sum(rows) == 4


def test_a_distance_replaces_the_default_one():
    assert tl.Clips(16).stride is None
    assert dataclasses.replace(tl.Clips(16), fps=8) == tl.Clips(16, fps=8)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: tl.Clips(0), "Clips: frames is 0, expected a whole number from 1"),
        (lambda: tl.Clips(clips=257), "Clips: clips is 257, expected a whole number from 1"),
        (lambda: tl.Clips(stride=0), "Clips: stride is 0, expected a whole number from 1"),
        (lambda: tl.Clips(fps=0), "Clips: fps is 0, expected a positive number"),
        (lambda: tl.Clips(seconds="1"), "Clips: seconds is '1', expected a number"),
        (lambda: tl.Clips(stride=2, fps=3), "conflicting settings: stride and fps"),
        (lambda: tl.Clips(start="middle"), "Clips: start is middle, expected one of random"),
        (lambda: tl.Clips(start=float("nan")), "Clips: start is nan, expected a number"),
        (lambda: tl.Clips(policy="last"), "Clips: policy is last, expected one of repeat_last"),
    ],
)
def test_choices_are_checked(make, message: str) -> None:
    with pytest.raises(tl.exceptions.SettingError, match=message):
        make()


def test_settings_that_make_no_clips_are_refused(folder: pathlib.Path) -> None:
    for settings, message in (
        ({"transform": None}, "clips need one size"),
        ({"decode": False, "transform": None}, "clips: not supported with decode=False"),
        ({"cache": "1MB"}, "caches keep whole samples"),
        ({"transform": {"a": TRAIN, "b": TRAIN}}, "conflicting settings: clips"),
    ):
        with pytest.raises(tl.exceptions.SettingError, match=message):
            load(folder, 4, **settings)


def test_conflicts_are_refused(folder: pathlib.Path) -> None:
    with pytest.raises(tl.exceptions.SettingError, match="conflicting settings: clips and exif"):
        load(folder, 4, exif=True)
    with pytest.raises(tl.exceptions.SettingError, match="3 clips of a video start at one time"):
        load(folder, tl.Clips(4, clips=3, start=0.5))


def test_rows_of_a_table_are_parts_of_videos(tmp_path: pathlib.Path) -> None:
    if not VIDEOS.exists():
        pytest.skip("needs testdata/video")
    whole = shutil.copy(VIDEOS / "h264_b.mp4", tmp_path)
    table = tmp_path / "parts.csv"
    # 25 frames a second.
    lines = ["path,from,to,time", "h264_b.mp4,0.4,0.8,0.6", "h264_b.mp4,0.8,1.2,0.8"]
    table.write_text("\n".join(lines) + "\n")
    still = {"transform": [tl.CenterCrop(24)]}
    expected = [videos(load(whole, tl.Clips(10, start=at), **still))[0] for at in (0.4, 0.8)]
    parts = load(table, tl.Clips(10, start=0.0, part=("from", "to")), **still)
    found = videos(parts)
    assert all((found[row] == expected[row]).all() for row in (0, 1))
    assert "between the times in columns from and to" in parts.explain()
    at = load(table, tl.Clips(5, at="time"), **still)
    found = videos(at)
    assert (found[0] == expected[0][5:]).all()
    assert (found[1] == expected[1][:5]).all()
    assert "from the time in column time on" in at.explain()
    # Random clips of two frames that follow one another within the part, here of ten.
    random = load(table, tl.Clips(2, part=["from", "to"]), num_workers=1, **still)
    starts = {0: set(), 1: set()}
    for epoch in range(20):
        random.set_epoch(epoch)
        for row, clip in videos(random).items():
            pairs = range(len(expected[row]) - 1)
            starts[row] |= {at for at in pairs if (expected[row][at : at + 2] == clip).all()}
            assert any((expected[row][at : at + 2] == clip).all() for at in pairs), (epoch, row)
    assert all(len(drawn) > 3 for drawn in starts.values()), starts
    # The end of the video ends the part if no column does.
    last = videos(load(whole, tl.Clips(60, start=0.4), **still))[0]
    open_ended = videos(load(table, tl.Clips(60, start=0.0, part=["from", None]), **still))
    assert (open_ended[0] == last).all()
    table.write_text("path,from,to\nh264_b.mp4,0.8,0.4\n")
    with pytest.raises(tl.LoaderError, match=r"from 0\.8 s to 0\.4 s"):
        list(load(table, tl.Clips(10, part=("from", "to")), **still))


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"at": ""}, "at is '', expected the name of a column"),
        ({"at": "time", "start": "center"}, "conflicting settings: start and at"),
        ({"part": "from"}, "part is 'from', expected the names of two columns"),
        ({"part": (None, None)}, "expected the names of two columns"),
        ({"part": [None, None]}, "expected the names of two columns"),
        ({"part": ("from", 2)}, "expected the names of two columns"),
    ],
)
def test_columns_of_times_are_checked(settings: dict, expected: str) -> None:
    with pytest.raises(tl.SettingError, match=expected):
        tl.Clips(4, **settings)
