"""Clips of videos: this loader beside torchcodec, decord2 and PyAV, on one thread.

    python3 -m venv venv
    venv/bin/pip install ./crates/tl-python torch torchcodec decord2 av
    venv/bin/python testdata/tools/compare_video.py PHOTOS [--folder FOLDER] [--rounds 5]

PHOTOS is a folder with JPEG files. Debian's ffmpeg makes videos of them, in which the camera moves over
a photograph for ten seconds: H.264 of 1280x720 as x264 makes it by default, with a key frame at most
every 250, and with one every 16; AV1 of 640x480 with a key frame every second frame, as LeRobot stores
its cameras.

A sample is a clip of random frames of each video, cropped to a random part of it and resized to 224
pixels, in one thread. `RGB` rows stop at whole frames in RGB, a step that this loader does not have.
Every round measures each contender once, in turn forwards and backwards, until no thread works ahead;
the table has the medians of milliseconds of processor time a clip. A contender that is not installed is
left out with its reason.
"""

import argparse
import pathlib
import random
import statistics
import subprocess
import tempfile
import time

SIZE = 224
# Name, ffmpeg's options, size, frames of a clip.
SETS = {
    "H.264 720p, default groups": (["-c:v", "libx264", "-preset", "medium"], "1280x720", 16),
    "H.264 720p, groups of 16": (["-c:v", "libx264", "-g", "16"], "1280x720", 16),
    "AV1 480p, groups of 2": (
        ["-c:v", "libsvtav1", "-preset", "8", "-g", "2", "-crf", "30"],
        "640x480",
        1,
    ),
}


def make(photos, folder, name, count):
    """Make the videos of a set, and return their paths."""
    codec, size, _ = SETS[name]
    width, height = size.split("x")
    place = folder / "".join(letter for letter in name.lower() if letter.isalnum())
    place.mkdir(parents=True, exist_ok=True)
    found = photos.rglob("*")
    files = sorted(path for path in found if path.suffix.lower() in {".jpg", ".jpeg"})
    made = []
    for number in range(count):
        target = place / f"{number}.mp4"
        made.append(target)
        if target.exists():
            continue
        scale = f"scale={4 * int(width)}:{4 * int(height)}:force_original_aspect_ratio=increase"
        zoom = f"zoompan=z='1.3+0.2*sin(on/20)':x='iw/8+6*on':y='ih/8+3*on':d=300:s={size}:fps=30"
        command = ["ffmpeg", "-y", "-v", "error", "-i", files[number * len(files) // count]]
        command += ["-vf", f"{scale},{zoom},noise=alls=3:allf=t,format=yuv420p"]
        command += [*codec, "-an", target]
        subprocess.run(command, check=True)
    return made


def ours(paths, frames, _):
    """Clips of this loader."""
    import turboloader as tl

    transform = [tl.transforms.RandomResizedCrop(SIZE), tl.transforms.ToTensor()]
    loader = tl.DataLoader(
        [str(path) for path in paths],
        batch_size=1,
        shuffle=True,
        transform=transform,
        clips=tl.Clips(frames),
        num_workers=1,
    )
    while True:
        for batch in loader:
            yield batch["video"].shape[1]


def resized(clip):
    """A random part of frames (T, C, H, W) of torch, resized."""
    import torch

    height, width = clip.shape[-2:]
    side = int(min(height, width) * random.uniform(0.4, 1.0))
    top, left = random.randrange(height - side + 1), random.randrange(width - side + 1)
    part = clip[..., top : top + side, left : left + side].to(torch.float32)
    part = torch.nn.functional.interpolate(part, (SIZE, SIZE), mode="bilinear", antialias=True)
    return part / 255


def torchcodec(paths, frames, finish):
    """Clips of torchcodec, with decoders that stay open."""
    from torchcodec.decoders import VideoDecoder

    decoders = [VideoDecoder(str(path), num_ffmpeg_threads=1) for path in paths]
    while True:
        for decoder in random.sample(decoders, len(decoders)):
            start = random.randrange(len(decoder) - frames + 1)
            clip = decoder.get_frames_in_range(start, start + frames).data
            yield len(resized(clip) if finish else clip)


def decord(paths, frames, finish):
    """Clips of decord2, with readers that stay open."""
    import torch
    from decord import VideoReader, cpu

    readers = [VideoReader(str(path), ctx=cpu(0), num_threads=1) for path in paths]
    while True:
        for reader in random.sample(readers, len(readers)):
            start = random.randrange(len(reader) - frames + 1)
            clip = reader.get_batch(range(start, start + frames)).asnumpy()
            if finish:
                clip = resized(torch.from_numpy(clip).permute(0, 3, 1, 2))
            yield len(clip)


def pyav(paths, frames, finish):
    """Clips of PyAV, with containers that stay open."""
    import av
    import numpy as np
    import torch

    containers = []
    for path in paths:
        container = av.open(str(path))
        container.streams.video[0].thread_count = 1
        containers.append(container)
    while True:
        for container in random.sample(containers, len(containers)):
            stream = container.streams.video[0]
            start = random.randrange(stream.frames - frames + 1)
            step = 1 / (stream.average_rate * stream.time_base)
            first = int(start * step) + (stream.start_time or 0)
            container.seek(first, stream=stream)
            clip = []
            for frame in container.decode(stream):
                if frame.pts >= first:
                    clip.append(frame.to_ndarray(format="rgb24"))
                if len(clip) == frames:
                    break
            found = np.stack(clip)
            if finish:
                found = resized(torch.from_numpy(found).permute(0, 3, 1, 2))
            yield len(found)


CONTENDERS = {
    "turboloader, cropped and resized": (ours, True),
    "torchcodec, RGB": (torchcodec, False),
    "torchcodec, cropped and resized": (torchcodec, True),
    "decord2, RGB": (decord, False),
    "decord2, cropped and resized": (decord, True),
    "PyAV, RGB": (pyav, False),
    "PyAV, cropped and resized": (pyav, True),
}


def settled():
    """Wait until no thread works ahead, and return the processor time."""
    used = time.process_time()
    while True:
        time.sleep(0.1)
        used, before = time.process_time(), used
        if used - before < 0.002:
            return used


def measured(clips, count, frames):
    """Return milliseconds of processor time for a clip; as many are ahead before as after."""
    used = settled()
    for _ in range(count):
        if next(clips) != frames:
            raise ValueError("a clip with too few frames")
    return 1e3 * (settled() - used) / count


def main():
    """Make the videos, and measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("photos", type=pathlib.Path)
    parser.add_argument("--folder", type=pathlib.Path, default=pathlib.Path(tempfile.gettempdir()))
    parser.add_argument("--videos", type=int, default=8)
    parser.add_argument("--frames", type=int, default=480, help="of a measurement")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    try:
        import torch

        torch.set_num_threads(1)
    except ImportError:
        pass
    for name, (_, _, frames) in SETS.items():
        paths = make(options.photos, options.folder, name, options.videos)
        running, spent = {}, {}
        for contender, (clips, finish) in CONTENDERS.items():
            try:
                running[contender] = clips(paths, frames, finish)
                measured(running[contender], 4, frames)
                spent[contender] = []
            except Exception as error:
                running.pop(contender)
                print(f"left out: {contender}: {type(error).__name__}: {error}"[:300], flush=True)
        for number in range(options.rounds):
            for contender in list(spent)[:: 1 if number % 2 == 0 else -1]:
                spent[contender].append(
                    measured(running[contender], options.frames // frames, frames)
                )
        print(f"\n{name}, clips of {frames}\n\n| loader | ms of CPU a clip |\n|---|---|")
        for contender, times in spent.items():
            spread = f"{min(times):.1f}-{max(times):.1f}"
            print(f"| {contender} | {statistics.median(times):.1f} ({spread}) |", flush=True)


if __name__ == "__main__":
    main()
