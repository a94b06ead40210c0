#!/usr/bin/env python3
"""Makes the images and manifest.toml of this folder: make.py (Pillow 13, NumPy, tifffile).

What each file must decode to are the numbers it was made of, in the channels that are asked for;
the four channels of 8 bits are those of Pillow's convert("RGBA"), and floats of files of 8 bits are
convert("RGB"), convert("L") and convert("RGBA") as floats. The files are committed and are not
regenerated to make a test pass.
"""

import hashlib
import io
import os
import struct
import zlib

import numpy
import tifffile
from PIL import Image

HERE = os.path.dirname(os.path.abspath(__file__))
WIDTH, HEIGHT = 21, 13
ENTRIES = []
CHANNELS = {"grey": 1, "rgb": 3, "rgba": 4}

rng = numpy.random.default_rng(18)
WORDS = rng.integers(0, 65536, (HEIGHT, WIDTH, 4), dtype=numpy.uint16)
WORDS[0, :8] = [[0] * 4, [65535] * 4, [1] * 4, [255] * 4, [256] * 4, [32767] * 4, [32768] * 4, [65280] * 4]
BYTES = (WORDS >> 8).astype(numpy.uint8)


def in_channels(pixels, name, opaque, key=None):
    """The pixels (height, width, samples) in the channels of this name, or None."""
    colors = 1 if pixels.shape[2] <= 2 else 3
    color, alpha = pixels[..., :colors], pixels[..., colors:]
    if name == "grey":
        return color if colors == 1 else None
    color = numpy.broadcast_to(color, pixels.shape[:2] + (3,))
    if name == "rgb":
        return color
    if not alpha.shape[2]:
        alpha = numpy.full(pixels.shape[:2] + (1,), opaque, pixels.dtype)
        if key is not None:
            alpha[(pixels[..., :colors] == key).all(axis=2)] = 0
    return numpy.concatenate([color, alpha[..., :1]], axis=2)


def add(name, data, why, pixels, opaque=65535, key=None):
    """Adds a file of wide samples: `pixels` is what it was made of, or bytes where it has 8 bits."""
    with open(os.path.join(HERE, name), "wb") as file:
        file.write(data)
    lines = [f'file = "{name}"']
    eight = pixels is None
    for channels in CHANNELS:
        image = Image.open(io.BytesIO(data)) if eight else None
        for kind in ("u8", "u16", "f32"):
            if kind == "u8" and (channels != "rgba" or not eight and key is None):
                continue
            if eight:
                mode = {"grey": "L", "rgb": "RGB", "rgba": "RGBA"}[channels]
                made = numpy.asarray(image.convert(mode)) if kind != "u16" else None
            else:
                made = in_channels(pixels, channels, opaque, key)
                # Pillow compares the key's lower bytes with these upper ones.
                made = made >> 8 if kind == "u8" else made
            if made is not None and kind == "u16" and made.dtype != numpy.uint16:
                made = None
            if made is None:
                lines.append(f'{channels}_{kind} = "Unsupported"')
                continue
            dtype = {"u8": "<u1", "u16": "<u2", "f32": "<f4"}[kind]
            digest = hashlib.sha256(numpy.ascontiguousarray(made).astype(dtype).tobytes()).hexdigest()
            lines.append(f'{channels}_{kind} = "{digest}"')
    lines.append(f'why = "{why}"')
    ENTRIES.append("[[image]]\n" + "\n".join(lines) + "\n")


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def packed(row, depth):
    if depth == 16:
        return row.astype(">u2").tobytes()
    if depth == 8:
        return row.astype(numpy.uint8).tobytes()
    bits = "".join(format(int(sample), f"0{depth}b") for sample in row.reshape(-1))
    bits += "0" * (-len(bits) % 8)
    return bytes(int(bits[at : at + 8], 2) for at in range(0, len(bits), 8))


ADAM7 = [(0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)]


def png(samples, color, depth, interlaced=False, extra=b""):
    height, width = samples.shape[:2]
    passes = ADAM7 if interlaced else [(0, 0, 1, 1)]
    rows = b""
    for x, y, across, down in passes:
        for row in samples[y::down, x::across]:
            if row.size:
                rows += b"\0" + packed(row, depth)
    header = struct.pack(">IIBBBBB", width, height, depth, color, 0, 0, int(interlaced))
    body = chunk(b"IHDR", header) + extra + chunk(b"IDAT", zlib.compress(rows, 9)) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + body


def key16(color):
    return chunk(b"tRNS", struct.pack(f">{len(color)}H", *(int(sample) for sample in color)))


def tiff(array, **options):
    file = io.BytesIO()
    tifffile.imwrite(file, array, metadata=None, **options)
    return file.getvalue()


def make_png():
    for interlaced in (False, True):
        suffix = "_interlaced" if interlaced else ""
        for color, samples, name in [(0, 1, "grey"), (4, 2, "grey_alpha"), (2, 3, "rgb"), (6, 4, "rgba")]:
            pixels = WORDS[..., :samples]
            data = png(pixels, color, 16, interlaced)
            add(f"{name}16{suffix}.png", data, "samples of 16 bits, big endian", pixels)
    for color, samples, name in [(0, 1, "grey"), (2, 3, "rgb")]:
        pixels = WORDS[..., :samples]
        key = pixels[5, 6]
        data = png(pixels, color, 16, extra=key16(key))
        add(f"{name}16_key.png", data, "one colour of 16 bits is transparent", pixels, key=key)
    add("rgba8.png", png(BYTES, 6, 8), "alpha of 8 bits", None)
    add("grey_alpha8.png", png(BYTES[..., :2], 4, 8), "grey and alpha", None)
    add("rgb8_key.png", png(BYTES[..., :3], 2, 8, extra=key16(BYTES[3, 4, :3])), "a transparent colour", None)
    add("grey8_key.png", png(BYTES[..., :1], 0, 8, extra=key16(BYTES[3, 4, :1])), "a transparent grey", None)
    palette = chunk(b"PLTE", rng.integers(0, 256, 48, dtype=numpy.uint8).tobytes())
    alpha = chunk(b"tRNS", bytes(range(0, 250, 25)))
    for depth in (4, 8):
        data = png(BYTES[..., :1] >> 4, 3, depth, extra=palette + alpha)
        add(f"palette{depth}_alpha.png", data, "a palette, the first colours of which have alpha", None)
    grey = png(BYTES[..., :1] >> 7, 0, 1, extra=key16([1]))
    add("grey1_key.png", grey, "white is transparent", None)


def make_tiff():
    grey, rgb, rgba = WORDS[..., 0], WORDS[..., :3], WORDS
    add("grey16_little.tif", tiff(grey, byteorder="<"), "16 bits, little endian", WORDS[..., :1])
    add("grey16_big.tif", tiff(grey, byteorder=">"), "16 bits, big endian", WORDS[..., :1])
    white = tiff(grey, photometric="miniswhite")
    add("grey16_white_is_zero.tif", white, "numbers stay as they are", WORDS[..., :1])
    predicted = tiff(rgb, photometric="rgb", compression="deflate", predictor=True)
    add("rgb16_predictor.tif", predicted, "differences of colours", rgb)
    planar = tiff(rgb.transpose(2, 0, 1).copy(), photometric="rgb", planarconfig="separate", tile=(16, 16))
    add("rgb16_planar.tif", planar, "planes and tiles", rgb)
    extra = tiff(rgba, photometric="rgb", extrasamples=["unassalpha"])
    add("rgba16.tif", extra, "alpha", rgba)
    extra = tiff(rgba.transpose(2, 0, 1).copy(), photometric="rgb", planarconfig="separate", extrasamples=["unassalpha"])
    add("rgba16_planar.tif", extra, "alpha in a plane", rgba)
    extra = tiff(WORDS[..., :2], photometric="minisblack", planarconfig="contig", extrasamples=["unassalpha"])
    add("grey_alpha16.tif", extra, "grey and alpha", WORDS[..., :2])
    extra = tiff(rgba, photometric="rgb", extrasamples=["unspecified"])
    add("rgbx16.tif", extra, "a sample that is not alpha", rgb)
    signed = WORDS.view(numpy.int16)
    add("int16.tif", tiff(signed[..., 0]), "signed numbers are floats only", signed[..., :1], opaque=32767)
    floats = (WORDS.astype(numpy.float32) - 30000) / 7
    floats[1, :4, 0] = [numpy.inf, -numpy.inf, 1e-40, -0.0]
    add("float32.tif", tiff(floats[..., 0]), "floats", floats[..., :1], opaque=1)
    add("float32_big.tif", tiff(floats[..., 0], byteorder=">"), "floats, big endian", floats[..., :1], opaque=1)
    predicted = tiff(floats[..., :3], photometric="rgb", compression="deflate", predictor=True)
    add("rgb_float32_predictor.tif", predicted, "floats of three channels", floats[..., :3], opaque=1)
    doubles = floats.astype(numpy.float64) + 1e-9
    add("float64.tif", tiff(doubles[..., 0]), "doubles are rounded", doubles.astype(numpy.float32)[..., :1], opaque=1)
    extra = tiff(BYTES, photometric="rgb", extrasamples=["unassalpha"])
    add("rgba8.tif", extra, "alpha of 8 bits", None)


def make_others():
    for kind, samples, name in [(b"P5", 1, "grey"), (b"P6", 3, "rgb")]:
        pixels = WORDS[..., :samples]
        data = kind + b" 21 13 65535\n" + pixels.astype(">u2").tobytes()
        add(f"{name}16.pnm", data, "bytes of 16 bits", pixels)
    twelve = WORDS[..., :1] >> 4
    data = b"P2 21 13 4095\n" + b" ".join(b"%d" % sample for sample in twelve.reshape(-1)) + b"\n"
    add("grey12_plain.pgm", data, "numbers up to 4095, which is opaque", twelve, opaque=4095)
    with open(os.path.join(HERE, "../gif/transparent.gif"), "rb") as file:
        add("transparent.gif", file.read(), "an index is transparent", None)
    file = io.BytesIO()
    Image.fromarray(BYTES).save(file, "QOI")
    add("rgba8.qoi", file.getvalue(), "alpha of 8 bits", None)


def main():
    make_png()
    make_tiff()
    make_others()
    with open(os.path.join(HERE, "manifest.toml"), "w") as file:
        file.write("# Written by make.py; what each file must decode to, and why it exists.\n\n")
        file.write("\n".join(ENTRIES))


main()
