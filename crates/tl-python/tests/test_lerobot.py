"""Data sets of LeRobot: names, shapes and frames of batches, views, processes, and errors."""

from __future__ import annotations

import hashlib
import json
import pathlib
import pickle
import shutil

import numpy as np
import pytest
import turboloader as tl

ROBOT = pathlib.Path(__file__).parents[3] / "testdata" / "lerobot"
TOP, WRIST = "observation.images.top", "observation.images.wrist"
CROP = [tl.CenterCrop((32, 48))]

pytestmark = pytest.mark.skipif(not ROBOT.exists(), reason="needs testdata/lerobot")


def load(data: tl.Dataset, **settings) -> tl.DataLoader:
    return tl.DataLoader(data, 4, **{"transform": CROP, "num_workers": 2, **settings})


def frames(loader: tl.DataLoader, camera: str) -> dict[int, np.ndarray]:
    """The frames of a camera by row."""
    found = {}
    for batch in loader:
        images = batch[camera].numpy().copy()
        found.update(zip(batch["index"].numpy().tolist(), images, strict=True))
    return found


def digest(frame: np.ndarray) -> str:
    return hashlib.sha256(np.ascontiguousarray(frame).tobytes()).hexdigest()


def test_batches_have_the_names_and_shapes_of_lerobot() -> None:
    deltas = {TOP: [-0.1, 0.0, 0.1], "action": [0.0, 0.1], "observation.state": [0.0]}
    data = tl.LeRobotDataset(ROBOT, delta_timestamps=deltas)
    assert len(data) == 19
    batch = next(iter(load(data)))
    shapes = {
        TOP: (4, 3, 32, 48, 3),
        f"{TOP}_is_pad": (4, 3),
        WRIST: (4, 32, 48, 3),
        "action": (4, 2, 3),
        "action_is_pad": (4, 2),
        "observation.state": (4, 1, 2),
        "next.done": (4,),
        "timestamp": (4,),
        "frame_index": (4,),
        "episode_index": (4,),
        "task_index": (4,),
        "index": (4,),
    }
    for name, shape in shapes.items():
        assert batch[name].shape == shape, name
    assert batch[f"{TOP}_is_pad"].dtype == batch["next.done"].dtype == "bool"
    assert batch["timestamp"].dtype == batch["action"].dtype == "float32"
    assert batch["episode_index"].dtype == "int64"
    assert not {"image", "video", "label"} & set(batch.keys())
    sample = batch[2]
    assert sample[TOP].shape == (3, 32, 48, 3)
    assert np.array_equal(sample[WRIST], batch[WRIST].numpy()[2])
    assert np.array_equal(batch[1:3][TOP].numpy(), batch[TOP].numpy()[1:3])


def test_frames_are_those_of_ffmpeg() -> None:
    expected = json.loads((ROBOT / "expected.json").read_text())
    data = tl.LeRobotDataset(ROBOT)
    for camera in (TOP, WRIST):
        for row, frame in frames(load(data, shuffle=True), camera).items():
            assert digest(frame) == expected[camera][row], (camera, row)


def test_frames_before_an_episode_are_its_first() -> None:
    data = tl.LeRobotDataset(ROBOT, delta_timestamps={WRIST: [-0.3, 0.0]})
    single = frames(load(tl.LeRobotDataset(ROBOT)), WRIST)
    for batch in load(data):
        for row, clip, pads in zip(
            batch["index"].numpy(),
            batch[WRIST].numpy(),
            batch[f"{WRIST}_is_pad"].numpy(),
            strict=True,
        ):
            start = max(start for start in (0, 5, 13) if start <= row)
            assert np.array_equal(clip[0], single[max(start, int(row) - 3)])
            assert np.array_equal(clip[1], single[int(row)])
            assert pads.tolist() == [row - 3 < start, False]


def test_floats_and_torch_have_channels_first() -> None:
    data = tl.LeRobotDataset(ROBOT, delta_timestamps={TOP: [0.0, 0.1]})
    batch = next(iter(load(data, dtype="float32")))
    assert batch[TOP].shape == (4, 2, 3, 32, 48)
    assert batch[WRIST].shape == (4, 3, 32, 48)
    torch = pytest.importorskip("torch")
    batch = next(iter(load(data, dtype="float32", output_format="torch")))
    assert isinstance(batch[TOP], torch.Tensor)
    assert batch[TOP].shape == (4, 2, 3, 32, 48)


def test_episodes_and_views_keep_the_numbers_of_rows() -> None:
    whole = frames(load(tl.LeRobotDataset(ROBOT)), TOP)
    data = tl.LeRobotDataset(ROBOT, episodes=[2, 0])
    assert len(data) == 11
    rows = [*range(13, 19), *range(5)]
    for some in (data, pickle.loads(pickle.dumps(data))):
        found = frames(load(some), TOP)
        assert list(found) == rows
        assert all(np.array_equal(frame, whole[row]) for row, frame in found.items())
    assert list(frames(load(data[2:4]), TOP)) == rows[2:4]
    joined = tl.concat(data, data)
    assert sum(len(batch) for batch in load(joined)) == 22
    other = tl.LeRobotDataset(ROBOT, delta_timestamps={TOP: [0.0, 0.1]})
    with pytest.raises(tl.exceptions.SettingError, match="other cameras, delta_timestamps"):
        tl.concat(data, other)


def test_threads_and_resumption_change_no_byte() -> None:
    settings = {"shuffle": True, "seed": 7, "transform": [tl.RandomResizedCrop(24)]}
    data = tl.LeRobotDataset(ROBOT, delta_timestamps={WRIST: [0.0, 0.1]})
    expected = [batch[WRIST].numpy().copy() for batch in load(data, num_workers=1, **settings)]
    loader = load(data, num_workers=3, **settings)
    iterator = iter(loader)
    assert np.array_equal(next(iterator)[WRIST].numpy(), expected[0])
    state = loader.state_dict()
    resumed = load(data, **settings)
    resumed.load_state_dict(state)
    for batch, before in zip(resumed, expected[1:], strict=True):
        assert np.array_equal(batch[WRIST].numpy(), before)
    other = tl.LeRobotDataset(ROBOT, delta_timestamps={WRIST: [0.0, 0.2]})
    with pytest.raises(tl.exceptions.StateError):
        other = load(other, **settings)
        other.load_state_dict(state)
        next(iter(other))


def test_settings_are_checked(tmp_path: pathlib.Path) -> None:
    error = tl.exceptions.SettingError
    with pytest.raises(error, match=r"1\.5 frames at 10 frames a second"):
        tl.LeRobotDataset(ROBOT, delta_timestamps={"action": [0.15]})
    with pytest.raises(error, match="no feature `motion`, the features are"):
        tl.LeRobotDataset(ROBOT, delta_timestamps={"motion": [0.0]})
    with pytest.raises(error, match=r"action is 0\.1, expected seconds such as"):
        tl.LeRobotDataset(ROBOT, delta_timestamps={"action": 0.1})
    with pytest.raises(error, match="expected a dict from names of features"):
        tl.LeRobotDataset(ROBOT, delta_timestamps=[0.1])
    with pytest.raises(error, match="tolerance_s is '1', expected a number"):
        tl.LeRobotDataset(ROBOT, tolerance_s="1")
    with pytest.raises(error, match="no episode 3, there are 3"):
        tl.LeRobotDataset(ROBOT, episodes=[3])
    data = tl.LeRobotDataset(ROBOT)
    with pytest.raises(error, match="rows of a LeRobotDataset name their frames"):
        load(data, clips=4)
    with pytest.raises(error, match="need one size"):
        load(data, transform=None)
    folder = tmp_path / "robot"
    shutil.copytree(ROBOT, folder)
    video = folder / "videos" / TOP / "chunk-000" / "file-001.mp4"
    video.unlink()
    with pytest.raises(tl.exceptions.LoaderError, match=r"file-001\.mp4: .* does not exist"):
        tl.LeRobotDataset(folder)
    assert len(tl.LeRobotDataset(folder, episodes=[0])) == 5


def test_bad_videos_are_named_or_skipped(tmp_path: pathlib.Path) -> None:
    folder = tmp_path / "robot"
    shutil.copytree(ROBOT, folder)
    video = folder / "videos" / TOP / "chunk-000" / "file-001.mp4"
    video.write_bytes(video.read_bytes()[:900])
    data = tl.LeRobotDataset(folder)
    with pytest.raises(tl.exceptions.DecodeError, match=r"file-001\.mp4: row 13: "):
        list(load(data, num_workers=1))
    with pytest.warns(UserWarning, match="bad samples are skipped"):
        assert list(frames(load(data, errors="skip"), TOP)) == list(range(13))
