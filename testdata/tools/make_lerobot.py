"""Write ``testdata/lerobot``: a data set of LeRobot v3, made without this project's code.

Needs av (with libsvtav1 and libx264), pyarrow and numpy. The pictures are drawn here (CC0).
``expected.json`` has the SHA-256 of each frame as FFmpeg shows it, by camera and row: the middle 48x32
pixels of RGB with 8 bits.

    python testdata/tools/make_lerobot.py
"""

import hashlib
import json
import pathlib

import av
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

ROOT = pathlib.Path(__file__).resolve().parents[1] / "lerobot"
FPS = 10
TOP, WRIST = "observation.images.top", "observation.images.wrist"
# Rows of each episode, with the numbers of its file of rows and of its file of each camera.
EPISODES = [(5, 0, {TOP: 0, WRIST: 0}), (8, 0, {TOP: 0, WRIST: 0}), (6, 1, {TOP: 1, WRIST: 0})]
CAMERAS = {
    TOP: (64, 48, "libsvtav1", {"preset": "8", "crf": "30", "svtav1-params": "keyint=2"}),
    WRIST: (48, 32, "libx264", {"crf": "28", "g": "4", "bf": "2"}),
}
CROP = (48, 32)


def picture(width: int, height: int, row: int, shift: int) -> np.ndarray:
    """Draw slopes, and a square that moves with the row."""
    y, x = np.mgrid[0:height, 0:width]
    image = np.stack([x * 3 + row * 5, y * 4 + shift, (x + y) * 2 + row * 9], axis=2) % 256
    left = (row * 3 + shift) % (width - 12)
    image[height // 3 : height // 3 + 12, left : left + 12] = (250, 240, 30 + 7 * row)
    return image.astype(np.uint8)


def encode(path: pathlib.Path, camera: str, rows: list[int]) -> None:
    width, height, codec, options = CAMERAS[camera]
    path.parent.mkdir(parents=True, exist_ok=True)
    with av.open(str(path), "w") as container:
        stream = container.add_stream(codec, rate=FPS, options=options)
        stream.width, stream.height, stream.pix_fmt = width, height, "yuv420p"
        if codec == "libsvtav1":
            stream.codec_context.gop_size = 2
        for row in rows:
            frame = av.VideoFrame.from_ndarray(picture(width, height, row, len(camera)))
            container.mux(stream.encode(frame))
        container.mux(stream.encode())


def decoded(path: pathlib.Path) -> list[tuple[float, str]]:
    """Return time and hash of each frame."""
    frames = []
    with av.open(str(path)) as container:
        for frame in container.decode(video=0):
            image = frame.to_ndarray(format="rgb24")
            top, left = (image.shape[0] - CROP[1]) // 2, (image.shape[1] - CROP[0]) // 2
            part = np.ascontiguousarray(image[top : top + CROP[1], left : left + CROP[0]])
            frames.append((frame.time, hashlib.sha256(part.tobytes()).hexdigest()))
    return frames


def write_rows() -> None:
    start = 0
    for file in sorted({episode[1] for episode in EPISODES}):
        columns: dict[str, list] = {}
        for number, (count, of_file, _) in enumerate(EPISODES):
            if of_file != file:
                continue
            for frame in range(count):
                row = {
                    "observation.state": [start + frame / 8, -frame],
                    "action": [float(start + frame), number, 0.5],
                    "next.done": frame == count - 1,
                    "timestamp": frame / FPS,
                    "frame_index": frame,
                    "episode_index": number,
                    "index": start + frame,
                    "task_index": number % 2,
                }
                for name, value in row.items():
                    columns.setdefault(name, []).append(value)
            start += count
        types = {
            "observation.state": pa.list_(pa.float32(), 2),
            "action": pa.list_(pa.float32()),
            "next.done": pa.bool_(),
            "timestamp": pa.float32(),
        }
        table = {
            name: pa.array(values, types.get(name, pa.int64())) for name, values in columns.items()
        }
        path = ROOT / f"data/chunk-000/file-{file:03d}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table(table), path)


def write_episodes() -> None:
    rows, start = [], 0
    before: dict[tuple[str, int], int] = {}
    for number, (count, file, videos) in enumerate(EPISODES):
        row = {
            "episode_index": number,
            "tasks": ["lift the cube" if number % 2 == 0 else "push the cube"],
            "length": count,
            "data/chunk_index": 0,
            "data/file_index": file,
            "dataset_from_index": start,
            "dataset_to_index": start + count,
        }
        for camera, video in videos.items():
            first = before.get((camera, video), 0)
            before[camera, video] = first + count
            row[f"videos/{camera}/chunk_index"] = 0
            row[f"videos/{camera}/file_index"] = video
            row[f"videos/{camera}/from_timestamp"] = first / FPS
            row[f"videos/{camera}/to_timestamp"] = (first + count) / FPS
        rows.append(row)
        start += count
    path = ROOT / "meta/episodes/chunk-000/file-000.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(rows), path)


def write_info() -> None:
    numbers = {
        "observation.state": ("float32", [2]),
        "action": ("float32", [3]),
        "next.done": ("bool", [1]),
        "timestamp": ("float32", [1]),
        **{
            name: ("int64", [1]) for name in ("frame_index", "episode_index", "index", "task_index")
        },
    }
    features = {name: {"dtype": dtype, "shape": shape} for name, (dtype, shape) in numbers.items()}
    for name, (width, height, _, _) in CAMERAS.items():
        shape = {"shape": [height, width, 3], "names": ["height", "width", "channels"]}
        features[name] = {"dtype": "video", **shape}
    info = {
        "codebase_version": "v3.0",
        "robot_type": "drawn",
        "total_episodes": len(EPISODES),
        "total_frames": sum(episode[0] for episode in EPISODES),
        "total_tasks": 2,
        "chunks_size": 1000,
        "fps": FPS,
        "splits": {"train": f"0:{len(EPISODES)}"},
        "data_path": "data/chunk-{chunk_index:03d}/file-{file_index:03d}.parquet",
        "video_path": "videos/{video_key}/chunk-{chunk_index:03d}/file-{file_index:03d}.mp4",
        "features": features,
    }
    (ROOT / "meta/info.json").write_text(json.dumps(info, indent=1) + "\n")


def write_videos() -> None:
    expected: dict[str, list[str]] = {}
    for camera in CAMERAS:
        rows: dict[int, list[int]] = {}
        start = 0
        for count, _, videos in EPISODES:
            rows.setdefault(videos[camera], []).extend(range(start, start + count))
            start += count
        for file, numbers in rows.items():
            path = ROOT / f"videos/{camera}/chunk-000/file-{file:03d}.mp4"
            encode(path, camera, numbers)
            frames = decoded(path)
            assert [round(time * FPS) for time, _ in frames] == list(range(len(numbers)))
            expected.setdefault(camera, []).extend(digest for _, digest in frames)
    (ROOT / "expected.json").write_text(json.dumps(expected, indent=1) + "\n")


if __name__ == "__main__":
    write_rows()
    write_episodes()
    write_info()
    write_videos()
