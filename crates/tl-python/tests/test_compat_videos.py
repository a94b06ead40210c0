"""Clips of the first turboloader's loader of videos."""

from __future__ import annotations

import pathlib
import re
import shutil
import sys
import tarfile
import types

import numpy as np
import pytest
import turboloader as tl
from turboloader import compat

VIDEOS = pathlib.Path(__file__).parents[3] / "testdata" / "video"
NAMES = ("h264.mkv", "h264_b.mp4", "h264_open.mp4", "av1.mp4", "h264_rotated.mov")


@pytest.fixture
def folder(tmp_path: pathlib.Path) -> pathlib.Path:
    """Videos in two classes, and files that are none."""
    if not VIDEOS.exists():
        pytest.skip("needs testdata/video")
    for number, name in enumerate(NAMES):
        path = tmp_path / ("run", "walk")[number % 2] / name
        path.parent.mkdir(exist_ok=True)
        shutil.copy(VIDEOS / name, path)
        path.with_suffix(".txt").write_text("not a video")
    (tmp_path / "notes.txt").write_text("not a class")
    return tmp_path


@pytest.fixture(autouse=True)
def torch(monkeypatch: pytest.MonkeyPatch) -> None:
    """A module instead of torch, whose tensors are arrays on the host."""
    module = types.ModuleType("torch")
    module.from_dlpack = np.from_dlpack
    module.tensor = lambda values, device: np.array(values)
    monkeypatch.setitem(sys.modules, "torch", module)


def epoch(loader: compat.VideoDatasetLoader, number: int) -> list[tuple]:
    loader.set_epoch(number)
    return [(clips.copy(), labels, meta["paths"]) for clips, labels, meta in loader]


def pixels(batches: list[tuple]) -> np.ndarray:
    return np.stack([clips for clips, _, _ in batches])


def test_an_epoch_has_labelled_clips_of_every_video(folder):
    settings = {"clip_len": 4, "batch_size": 2, "image_size": (24, 32), "frame_step": 2}
    loader = compat.VideoDatasetLoader(
        folder, **settings, train_aug=True, steps_per_epoch=5, device=None
    )
    assert (len(loader), loader.classes) == (5, ["run", "walk"])
    batches = epoch(loader, 0)
    assert [clips.shape for clips, _, _ in batches] == 5 * [(2, 4, 3, 24, 32)]
    seen = [pair for _, labels, paths in batches for pair in zip(paths, labels, strict=True)]
    assert sorted(seen) == sorted(2 * loader.items)
    for path, label in seen:
        assert pathlib.Path(path).parent.name == loader.classes[label]
    again, next_one = epoch(loader, 0), epoch(loader, 1)
    assert np.array_equal(pixels(batches), pixels(again))
    assert not np.array_equal(pixels(batches), pixels(next_one))


def test_clips_without_augmentation_are_whole_frames_in_order(folder):
    pairs = [(folder / "run" / "h264.mkv", 7), (folder / "walk" / "h264_b.mp4", 3)]
    loader = compat.VideoDatasetLoader(
        pairs, 3, 1, 16, shuffle=False, mean=(0, 0, 0), std=(1, 1, 1), device=None
    )
    assert [int(labels[0]) for _, labels, _ in epoch(loader, 0)] == [7, 3]
    steps = [tl.Resize((16, 16), antialias=False), tl.ToTensor()]
    own = tl.DataLoader([path for path, _ in pairs], 1, transform=steps, clips=3, seed=42)
    for (clips, _, _), batch in zip(epoch(loader, 0), own, strict=True):
        assert np.array_equal(clips, batch["video"].numpy())


def test_ranks_have_different_videos(folder):
    settings = {"clip_len": 2, "batch_size": 1, "image_size": 16, "device": None, "world_size": 2}
    ranks = [compat.VideoDatasetLoader(folder, **settings, world_rank=rank) for rank in (0, 1)]
    assert [len(rank) for rank in ranks] == [2, 2]
    paths = [path for rank in ranks for _, _, found in epoch(rank, 0) for path in found]
    assert len(set(paths)) == 4


def test_paths_are_those_of_one_video_each(folder, monkeypatch):
    settings = {"clip_len": 2, "batch_size": 1, "image_size": 16, "device": None}
    first = (folder / "run" / "h264.mkv", 0)
    monkeypatch.chdir(folder)
    for path in (folder / "walk", "walk/*.mp4", "walk/{0..1}.mp4", "walk/h264_[b].mp4"):
        with pytest.raises(tl.SettingError, match=f"{re.escape(str(path))}: expected the file of"):
            compat.VideoDatasetLoader([first, (path, 1)], **settings)
    with pytest.raises(RuntimeError, match=r"missing\.mp4"):
        compat.VideoDatasetLoader([first, ("missing.mp4", 1)], **settings)
    with tarfile.open("two.tar", "w") as archive:
        for name in ("h264_b.mp4", "av1.mp4"):
            archive.add(VIDEOS / name, name)
    message = "root has 2 paths with 3 samples, expected one video in each file"
    with pytest.raises(tl.SettingError, match=message):
        compat.VideoDatasetLoader([first, ("two.tar", 1)], **settings)
    # Names with the signs of patterns, which are files.
    pairs = [("[a]*.mp4", 4), first]
    shutil.copy(VIDEOS / "h264_b.mp4", pairs[0][0])
    loader = compat.VideoDatasetLoader(pairs, **settings)
    found = [(paths[0], int(labels[0])) for _, labels, paths in epoch(loader, 0)]
    assert sorted(found) == sorted(loader.items)


def test_folders_with_names_of_videos_are_passed_over(folder):
    (folder / "run" / "old.mp4").mkdir()
    loader = compat.VideoDatasetLoader(folder, 2, 1, 16, device=None)
    assert sorted(pathlib.Path(path).name for path, _ in loader.items) == sorted(NAMES)


def test_mistakes_are_named(folder, tmp_path_factory):
    empty = tmp_path_factory.mktemp("empty")
    with pytest.raises(tl.SettingError, match="has no folder with videos"):
        compat.VideoDatasetLoader(empty)
    with pytest.raises(tl.SettingError, match="root has no videos"):
        compat.VideoDatasetLoader([])
    with pytest.raises(tl.SettingError, match="steps_per_epoch is 0"):
        compat.VideoDatasetLoader(folder, steps_per_epoch=0)
    with pytest.raises(tl.SettingError, match="clip_len is 0"):
        compat.VideoDatasetLoader(folder, 0)
    damaged = folder / "run" / "damaged.mp4"
    damaged.write_bytes((VIDEOS / "h264_b.mp4").read_bytes()[:2000])
    with pytest.raises(RuntimeError, match=r"damaged\.mp4"):
        epoch(compat.VideoDatasetLoader([(damaged, 0)], 2, 1, 16, device=None), 0)
