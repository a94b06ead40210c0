#!/usr/bin/env python3
"""Makes the clips of `testdata/video` with PyAV, and `expected.json`: what FFmpeg finds in them.

usage: make_videos.py FOLDER [NAME ..]

Without names every clip is written. The pictures are drawn here, so the clips have our own licence.
`expected.json` is always made anew, from all clips of the folder: the packets in the order of the
file, and the frames as FFmpeg shows them, each with the CRC-32 of its planes without padding.
"""

import fractions
import json
import pathlib
import struct
import subprocess
import sys
import tempfile
import zlib

import av
import numpy as np

X264 = {"preset": "medium", "crf": "30", "threads": "1"}
B_PICTURES = {
    **X264,
    "x264-params": "keyint=12:min-keyint=12:bframes=3:b-pyramid=normal:scenecut=0",
}
OPEN_GROUPS = {
    **X264,
    "x264-params": "keyint=10:min-keyint=10:bframes=3:b-adapt=0:open-gop=1:scenecut=0",
}
X265 = {
    "preset": "medium",
    "crf": "34",
    "x265-params": "keyint=10:min-keyint=10:bframes=3:open-gop=1:scenecut=0:pools=1:log-level=none",
}
X265_OPEN = {
    "preset": "medium",
    "crf": "40",
    "x265-params": "keyint=6:min-keyint=6:bframes=3:b-adapt=0:open-gop=1:scenecut=0:pools=1:"
    "info=0:log-level=none",
}
# Closed groups with leading pictures, of which each picture has two slices and wavefronts.
X265_SLICES = {
    "preset": "medium",
    "crf": "36",
    "x265-params": "keyint=8:min-keyint=8:bframes=3:b-adapt=0:open-gop=0:radl=2:scenecut=0:ctu=16:"
    "slices=2:pools=1:info=0:log-level=none",
}
AV1 = {"preset": "10", "crf": "45", "g": "2", "svtav1-params": "lp=1"}
VP9 = {"deadline": "good", "cpu-used": "4", "crf": "45", "b": "0", "g": "12"}
# Pictures that are not shown at first, in superframes, and are shown later.
VP9_HIDDEN = {
    **VP9,
    "g": "60",
    "auto-alt-ref": "6",
    "lag-in-frames": "16",
    "arnr-maxframes": "3",
}
VP8 = {"deadline": "good", "cpu-used": "4", "b": "60000", "g": "12"}

# name: encoder, options, and what differs from 30 frames of 96x64 at 25 a second
CLIPS = {
    "h264_b.mp4": ("libx264", B_PICTURES, {"frames": 40}),
    "h264_open.mp4": ("libx264", OPEN_GROUPS, {"flags": "faststart", "frames": 40}),
    "h264_sound.mov": ("libx264", B_PICTURES, {"sound": True, "flags": "faststart"}),
    "h264_rotated.mov": (
        "libx264",
        X264,
        {"rotation": 90, "frames": 12, "color": True},
    ),
    "h264_fragments.mp4": (
        "libx264",
        B_PICTURES,
        {"flags": "frag_keyframe+empty_moov+default_base_moof", "sound": True},
    ),
    "h264_fragments_edit.mp4": (
        "libx264",
        B_PICTURES,
        {"flags": "frag_keyframe+delay_moov"},
    ),
    "h264_negative.mp4": ("libx264", B_PICTURES, {"flags": "negative_cts_offsets"}),
    "h264_rate.mp4": (
        "libx264",
        B_PICTURES,
        {"times": [n * 512 + (n % 5) * 100 for n in range(30)], "base": 12800},
    ),
    "h264_edit.mp4": (
        "libx264",
        B_PICTURES,
        {"edits": [(-1, 300), (3700, 600)], "frames": 40},
    ),
    "h264_edits.mp4": (
        "libx264",
        B_PICTURES,
        {"edits": [(8000, 200), (1024, 400), (14000, 5000)], "frames": 40},
    ),
    "h264_tables.mp4": ("libx264", B_PICTURES, {"wide": True}),
    "h264_10_bits.mp4": (
        "libx264",
        X264,
        {"format": "yuv420p10le", "frames": 12, "sar": (4, 3), "color": True},
    ),
    "h264.mkv": ("libx264", OPEN_GROUPS, {"sound": True, "color": True}),
    "h264.avi": (
        "libx264",
        {**X264, "bf": "0", "g": "6"},
        {"sound": True, "frames": 16},
    ),
    "h264_open.avi": ("libx264", OPEN_GROUPS, {"frames": 40}),
    "h264_opendml.avi": (
        "libx264",
        {**X264, "bf": "0", "g": "6"},
        {"frames": 16, "open_dml": True},
    ),
    "hevc.mp4": ("libx265", X265, {}),
    "hevc_10_bits.mkv": (
        "libx265",
        X265_SLICES,
        {"size": (98, 66), "format": "yuv420p10le", "frames": 18, "color": True},
    ),
    "hevc_open.avi": ("libx265", X265_OPEN, {"frames": 17, "passes": 1, "tag": "HEVC"}),
    "av1.mp4": ("libsvtav1", AV1, {"size": (97, 65), "frames": 12}),
    "av1_10_bits.mkv": ("libsvtav1", AV1, {"format": "yuv420p10le", "frames": 12}),
    "vp9.webm": ("libvpx-vp9", VP9, {"size": (97, 65), "rotation": 270}),
    "vp9.mp4": ("libvpx-vp9", VP9, {"frames": 12}),
    "vp9_hidden.webm": (
        "libvpx-vp9",
        VP9_HIDDEN,
        {"size": (65, 97), "frames": 60, "passes": 2},
    ),
    "vp9_10_bits.webm": (
        "libvpx-vp9",
        VP9,
        {"format": "yuv420p10le", "frames": 14, "passes": 2},
    ),
    "vp9_444.mkv": (
        "libvpx-vp9",
        VP9,
        {"size": (35, 33), "format": "yuv444p", "frames": 14, "passes": 2},
    ),
    "vp8.webm": ("libvpx", VP8, {"frames": 24}),
}


def picture(number, width, height, pixel_format):
    """Return planes of a picture: a gradient that moves, a box that turns round, a little noise."""
    rng = np.random.default_rng(number)
    y, x = np.mgrid[0:height, 0:width]
    luma = (x * 2 + y + number * 3) % 256 / 2 + 40
    left = int(width * (0.5 + 0.35 * np.cos(number / 5))) - 8
    top = int(height * (0.5 + 0.35 * np.sin(number / 5))) - 8
    luma[max(top, 0) : top + 16, max(left, 0) : left + 16] = 220
    luma += rng.integers(0, 3, luma.shape)
    deep = "10" in pixel_format
    step = 1 if "444" in pixel_format else 2
    y, x = np.mgrid[0 : (height + step - 1) // step, 0 : (width + step - 1) // step]
    planes = [
        luma,
        128 + 60 * np.sin((x + number) / 9),
        128 + 60 * np.cos((y - number) / 7),
    ]
    return [
        (plane * 4).astype("<u2") if deep else plane.astype(np.uint8)
        for plane in planes
    ]


def frames(count, size, pixel_format):
    """Yield frames with drawn pictures."""
    for number in range(count):
        frame = av.VideoFrame(*size, pixel_format)
        planes = picture(number, *size, pixel_format)
        for plane, values in zip(frame.planes, planes, strict=True):
            row = plane.line_size
            rows = np.zeros((plane.height, row), np.uint8)
            data = values.view(np.uint8).reshape(plane.height, -1)
            rows[:, : data.shape[1]] = data
            plane.update(rows.tobytes())
        yield frame


def encode(path, encoder, options, clip):
    """Write one clip."""
    size = clip.get("size", (96, 64))
    base = fractions.Fraction(1, clip.get("base", 25))
    container_options = {"movflags": clip["flags"]} if "flags" in clip else {}
    pixel_format = clip.get("format", "yuv420p")
    flags = {"fflags": "+bitexact", **container_options}
    with av.open(str(path), "w", options=flags) as output:
        if clip.get("sound"):
            sound = output.add_stream(
                "pcm_s16le" if path.suffix == ".avi" else "aac", rate=8000
            )
            sound.layout = "mono"
        video = output.add_stream(
            encoder, rate=25, options={**options, "flags": "+bitexact"}
        )
        video.width, video.height = size
        video.pix_fmt = pixel_format
        video.codec_context.time_base = base
        video.codec_context.thread_count = 1
        if "sar" in clip:
            video.codec_context.sample_aspect_ratio = fractions.Fraction(*clip["sar"])
        if clip.get("color"):
            video.codec_context.colorspace = 1
            video.codec_context.color_range = 2
            video.codec_context.color_primaries = 1
            video.codec_context.color_trc = 1
        if "rotation" in clip:
            video.set_display_rotation(clip["rotation"])
        times = clip.get("times", range(clip.get("frames", 30)))
        rate = 1 / base
        heard = 0
        for time, frame in zip(
            times, frames(len(times), size, pixel_format), strict=True
        ):
            frame.pts, frame.time_base = time, base
            output.mux(video.encode(frame))
            while clip.get("sound") and heard * rate <= time * 8000:
                samples = np.zeros(
                    (1, 1024), np.float32 if path.suffix != ".avi" else np.int16
                )
                kind = "fltp" if path.suffix != ".avi" else "s16"
                piece = av.AudioFrame.from_ndarray(samples, kind, "mono")
                piece.sample_rate, piece.pts = 8000, heard
                piece.time_base = fractions.Fraction(1, 8000)
                heard += 1024
                output.mux(sound.encode(piece))
        output.mux(video.encode(None))
        if clip.get("sound"):
            output.mux(sound.encode(None))


def encode_in_passes(path, encoder, options, clip):
    """Write one clip with FFmpeg's program, for what PyAV has not: passes, VP9 of 10 bits, tags."""
    size = clip.get("size", (96, 64))
    pixel_format = clip.get("format", "yuv420p")
    planes = [
        plane
        for number in range(clip["frames"])
        for plane in picture(number, *size, pixel_format)
    ]
    pixels = b"".join(plane.tobytes() for plane in planes)
    source = f"-f rawvideo -pix_fmt {pixel_format} -s {size[0]}x{size[1]} -r 25 -i -"
    names = {"b": "b:v"}
    settings = [[f"-{names.get(name, name)}", value] for name, value in options.items()]
    with tempfile.TemporaryDirectory() as folder:
        for number in range(1, clip["passes"] + 1):
            command = ["ffmpeg", "-loglevel", "error", "-y", *source.split()]
            command += ["-c:v", encoder, "-threads", "1", *sum(settings, [])]
            if clip["passes"] > 1:
                command += ["-pass", str(number), "-passlogfile", f"{folder}/log"]
            if "tag" in clip:
                command += ["-tag:v", clip["tag"]]
            command += ["-flags", "+bitexact", "-fflags", "+bitexact", str(path)]
            subprocess.run(command, input=pixels, check=True)


def box(kind, *parts):
    """Return a box of MP4."""
    body = b"".join(parts)
    return struct.pack(">I4s", 8 + len(body), kind) + body


def edited(data, change):
    """Return boxes after `change(kind, body)`, which returns boxes or `None` for the same."""
    out, at = [], 0
    while at < len(data):
        size, kind = struct.unpack_from(">I4s", data, at)
        body = data[at + 8 : at + size]
        new = change(kind, body)
        if new is None and kind in (
            b"moov",
            b"trak",
            b"mdia",
            b"minf",
            b"stbl",
            b"edts",
        ):
            new = box(kind, edited(body, change))
        out.append(data[at : at + size] if new is None else new)
        at += size
    return b"".join(out)


def edit_list(edits):
    """Return a change that writes an edit list: of (media time, duration)."""

    def change(kind, _):
        if kind == b"elst":
            entries = [
                struct.pack(">IiI", length, start, 65536) for start, length in edits
            ]
            return box(kind, struct.pack(">II", 0, len(edits)), *entries)
        return None

    return change


def wide(kind, body):
    """Write the rarer forms of tables: `co64`, `stz2` of 16 bits, signed `ctts`."""
    if kind == b"stco":
        count = struct.unpack_from(">I", body, 4)[0]
        offsets = struct.unpack_from(f">{count}I", body, 8)
        return box(b"co64", body[:8], struct.pack(f">{count}Q", *offsets))
    if kind == b"stsz":
        count = struct.unpack_from(">I", body, 8)[0]
        sizes = struct.unpack_from(f">{count}I", body, 12)
        return box(
            b"stz2",
            struct.pack(">III", 0, 16, count),
            struct.pack(f">{count}H", *sizes),
        )
    if kind == b"ctts":
        return box(kind, b"\x01", body[1:])
    return None


def open_dml(data):
    """Return an AVI file with an index of OpenDML in place of `idx1`, as of files above 1 GB."""
    at = data.index(b"idx1")
    count = struct.unpack_from("<I", data, at + 4)[0] // 16
    base = data.index(b"movi")
    entries = []
    for number in range(count):
        _, flags, place, size = struct.unpack_from("<4sIII", data, at + 8 + number * 16)
        entries.append(
            struct.pack("<II", place + 8, size | (0 if flags & 16 else 1 << 31))
        )
    body = struct.pack("<HBBI4sQI", 2, 0, 1, count, b"00dc", base, 0) + b"".join(
        entries
    )
    chunk = struct.pack("<4sI", b"ix00", len(body)) + body
    body = struct.pack("<HBBI4s12xQII", 4, 0, 0, 1, b"00dc", at, len(chunk), count)
    # The muxer leaves room for it.
    room = data.index(b"JUNK")
    size = struct.unpack_from("<I", data, room + 4)[0]
    index = struct.pack("<4sI", b"indx", size) + body.ljust(size, b"\0")
    return data[:room] + index + data[room + 8 + size : at] + chunk


def patch(path, clip):
    """Change a file whose `moov` is after its `mdat`, as no muxer writes it."""
    data = path.read_bytes()
    if clip.get("open_dml"):
        data = open_dml(data)
    if "edits" in clip:
        data = edited(data, edit_list(clip["edits"]))
    if clip.get("wide"):
        data = edited(data, wide)
        # An empty box of 8 bytes is before `mdat`, for a size of 64 bits.
        at = data.index(b"mdat") - 4
        size = struct.unpack_from(">I", data, at)[0]
        data = (
            data[: at - 8] + struct.pack(">I4sQ", 1, b"mdat", size + 8) + data[at + 8 :]
        )
    path.write_bytes(data)


def checksum(frame):
    """Return the CRC-32 of the planes, without the bytes after each row."""
    crc = 0
    deep = 2 if "10" in frame.format.name else 1
    for plane in frame.planes:
        rows = np.frombuffer(plane, np.uint8).reshape(plane.height, -1)
        crc = zlib.crc32(rows[:, : plane.width * deep].tobytes(), crc)
    return crc


def packets_of(path):
    """Return the packets of the video: time, place, size, key, whether it is not shown, CRC-32."""
    with av.open(str(path)) as file:
        return [
            [
                p.pts,
                p.dts,
                p.pos,
                p.size,
                p.is_keyframe,
                p.is_discard,
                zlib.crc32(bytes(p)),
            ]
            for p in file.demux(video=0)
            if p.size
        ]


def expect(path):
    """Return what FFmpeg finds in a file."""
    with av.open(str(path)) as file:
        video = file.streams.video[0]
        video.codec_context.thread_count = 1
        shown = [
            [f.pts, f.duration, checksum(f), f.rotation] for f in file.decode(video)
        ]
        context = video.codec_context
        ratio = video.sample_aspect_ratio
        return {
            "codec": context.name,
            "width": context.width,
            "height": context.height,
            "pixel_format": context.pix_fmt,
            "sample_aspect_ratio": [ratio.numerator, ratio.denominator]
            if ratio
            else None,
            "matrix": int(context.colorspace),
            "range": int(context.color_range),
            "rotation": shown[0][3],
            "time_base": [video.time_base.numerator, video.time_base.denominator],
            "average_rate": float(video.average_rate),
            "packets": packets_of(path),
            "frames": [frame[:3] for frame in shown],
        }


def main(folder, names):
    """Write clips and their expectations."""
    for name in names or CLIPS:
        encoder, options, clip = CLIPS[name]
        write = encode_in_passes if "passes" in clip else encode
        write(folder / name, encoder, options, clip)
        patch(folder / name, clip)
    clips = {name: expect(folder / name) for name in CLIPS if (folder / name).exists()}
    lines = [f"{json.dumps(name)}: {json.dumps(clip)}" for name, clip in clips.items()]
    (folder / "expected.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]), sys.argv[2:])
