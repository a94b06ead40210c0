"""Makes the files of testdata/jpeg that `progressive.py` does not make, and the manifest of them all:
what Pillow decodes each one to, whole and at its three smaller scales.

    python testdata/tools/jpeg_kinds.py

Needs Pillow 13 or later and cjpeg (Debian: libjpeg-turbo-progs).
The pixels are part of a photograph in the public domain, `testdata/photos/animals/chelsea.jpg`.
"""

import hashlib
import io
import pathlib
import struct
import subprocess
import sys
import tempfile

from PIL import Image, ImageFile

DATA = pathlib.Path(__file__).parent.parent
FOLDER = DATA / "jpeg"
PHOTO = Image.open(DATA / "photos" / "animals" / "chelsea.jpg").convert("RGB")
SIZE = (35, 29)
SCALES = {"full": 1, "half": 2, "quarter": 4, "eighth": 8}

# Sampling factors of the three components, as cjpeg takes them.
SAMPLING = [
    "1x1,1x1,1x1", "2x1,1x1,1x1", "1x2,1x1,1x1", "2x2,1x1,1x1", "3x1,1x1,1x1", "1x3,1x1,1x1",
    "4x1,1x1,1x1", "1x4,1x1,1x1", "4x2,1x1,1x1", "2x4,1x1,1x1", "3x2,1x1,1x1", "2x3,1x1,1x1",
    "2x2,2x1,1x1", "2x2,1x2,2x1", "4x1,2x1,1x1", "1x4,1x2,1x1", "2x2,2x2,1x1", "2x1,1x1,2x1",
    "1x1,2x2,1x1", "1x2,2x1,2x2", "1x1,4x1,1x2", "4x1,2x1,2x1", "1x1,2x1,2x1", "2x2,1x2,1x2",
]
# More than ten blocks in an MCU: only scans of one component can hold them.
LARGE_SAMPLING = ["3x3,1x1,1x1", "4x3,1x1,1x1", "3x4,1x2,3x1", "4x4,1x1,1x1", "4x4,2x2,1x1", "4x4,2x1,4x2"]
NARROW = [(1, 1), (2, 2), (3, 2), (4, 5), (5, 4), (6, 1), (1, 9), (16, 17), (17, 16)]
SCAN_EACH = "0;1;2;"


def photo(size=SIZE):
    return PHOTO.crop((160, 90, 160 + size[0], 90 + size[1]))


def cjpeg(image, *options, scans=None):
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder) / "source.ppm"
        image.save(source)
        command = ["cjpeg", "-quality", "80", *options]
        if scans is not None:
            script = pathlib.Path(folder) / "scans.txt"
            script.write_text(scans)
            command += ["-scans", script]
        return subprocess.run([*command, source], check=True, capture_output=True).stdout


def pillow(image, **options):
    file = io.BytesIO()
    image.save(file, "JPEG", quality=80, **options)
    return file.getvalue()


def segments(data):
    """The segments in front of the first entropy-coded data, and the rest."""
    at, found = 2, []
    while True:
        length = struct.unpack(">H", data[at + 2 : at + 4])[0]
        found.append(data[at : at + 2 + length])
        at += 2 + length
        if found[-1][1] == 0xDA:
            return found, data[at:]


def rewritten(data, change):
    """The file with `change` applied to each segment: bytes in, bytes out."""
    head, rest = segments(data)
    return data[:2] + b"".join(change(segment) for segment in head) + rest


def without(*markers):
    return lambda segment: b"" if segment[1] in markers else segment


def with_ids(ids):
    def change(segment):
        if segment[1] == 0xC0:
            old = segment[10::3]
            segment = bytearray(segment)
            segment[10::3] = ids
            return bytes(segment)
        if segment[1] == 0xDA:
            segment = bytearray(segment)
            segment[5 : 5 + 2 * len(ids) : 2] = ids
            return bytes(segment)
        return b"" if segment[1] in (0xE0, 0xEE) else segment

    return change


def with_sampling(*factors):
    def change(segment):
        if segment[1] == 0xC0:
            segment = bytearray(segment)
            segment[11::3] = bytes(factors)
        return bytes(segment)

    return change


def with_adobe(transform):
    return lambda segment: (
        segment[:15] + bytes([transform]) if segment[1] == 0xEE else segment
    )


def requantised(data):
    """Each scan after the first gets another table 0: components keep the one of their first scan."""
    at = data.index(b"\xff\xda", data.index(b"\xff\xda") + 2)
    return data[:at] + b"\xff\xdb\x00\x43\x00" + bytes(range(3, 67)) + data[at:]


def lossless(image):
    """SOF3 with predictor 1: T.81 annex H, with one fixed code of 5 bits for every difference size."""
    width, height = image.size
    bands = len(image.getbands())
    pixels = image.load()
    sizes = list(range(17))
    bits = []
    for y in range(height):
        for x in range(width):
            for band in range(bands):
                value = lambda x, y: pixels[x, y][band] if bands > 1 else pixels[x, y]
                left = value(x - 1, y) if x else value(x, y - 1) if y else 128
                difference = value(x, y) - left
                size = abs(difference).bit_length()
                bits.append(f"{sizes[size]:05b}")
                if size:
                    low = difference if difference > 0 else difference + (1 << size) - 1
                    bits.append(f"{low:0{size}b}")
    bits = "".join(bits)
    bits += "1" * (-len(bits) % 8)
    coded = int(bits, 2).to_bytes(len(bits) // 8, "big").replace(b"\xff", b"\xff\x00")
    ids = range(1, bands + 1)
    segment = lambda marker, body: bytes([0xFF, marker]) + struct.pack(">H", len(body) + 2) + body
    frame = struct.pack(">BHHB", 8, height, width, bands) + b"".join(bytes([i, 0x11, 0]) for i in ids)
    scan = bytes([bands]) + b"".join(bytes([i, 0]) for i in ids) + bytes([1, 0, 0])
    table = bytes([0]) + bytes([0, 0, 0, 0, 17] + [0] * 11) + bytes(range(17))
    head = segment(0xC3, frame) + segment(0xC4, table) + segment(0xDA, scan)
    return b"\xff\xd8" + head + coded + b"\xff\xd9"


def files():
    for sampling in SAMPLING:
        yield f"sampling_{sampling.replace(',', '_')}", cjpeg(photo(), "-sample", sampling)
    for sampling in LARGE_SAMPLING:
        name = f"sampling_{sampling.replace(',', '_')}"
        yield name, cjpeg(photo(), "-sample", sampling, scans=SCAN_EACH)
    for width, height in NARROW:
        part = photo((width, height))
        yield f"size_{width}x{height}_422", cjpeg(part, "-sample", "2x1")
        yield f"size_{width}x{height}_420", cjpeg(part, "-sample", "2x2")
    yield "grey", cjpeg(photo(), "-grayscale")
    yield "grey_2x2", cjpeg(photo(), "-grayscale", "-sample", "2x2")
    yield "rgb", cjpeg(photo(), "-rgb")
    yield "each_scan_420", cjpeg(photo(), "-sample", "2x2", scans=SCAN_EACH)
    yield "each_scan_restart", cjpeg(photo(), "-sample", "2x1", "-restart", "2B", scans=SCAN_EACH)
    yield "chroma_scan", cjpeg(photo(), "-sample", "2x2", scans="0;1 2;")
    yield "chroma_first", cjpeg(photo(), "-sample", "2x1", scans="1 2;0;")
    yield "requantised", requantised(cjpeg(photo(), scans=SCAN_EACH))
    yield "restart_each", cjpeg(photo(), "-sample", "2x2", "-restart", "1B")
    yield "restart_rows", cjpeg(photo((35, 90)), "-sample", "2x1", "-restart", "1")
    yield "restart_two_rows", pillow(photo((35, 90)), subsampling="4:2:0", restart_marker_rows=2)
    yield "quantiser_16", cjpeg(photo(), "-quality", "1", "-sample", "2x2")
    yield "optimised", cjpeg(photo(), "-optimize", "-sample", "2x2")
    yield "tall", cjpeg(photo((9, 150)), "-sample", "2x2")
    yield "wide", cjpeg(photo((150, 9)), "-sample", "2x2")
    each = cjpeg(photo(), "-sample", "1x1", scans=SCAN_EACH)
    yield "fractional_across", rewritten(each, with_sampling(0x31, 0x21, 0x11))
    yield "fractional_down", rewritten(each, with_sampling(0x12, 0x13, 0x11))
    plain = cjpeg(photo(), "-sample", "2x2")
    yield "no_tables", rewritten(plain, without(0xC4))
    yield "no_jfif", rewritten(plain, without(0xE0))
    yield "ids_rgb", rewritten(plain, with_ids(b"RGB"))
    yield "ids_from_0", rewritten(plain, with_ids(bytes([0, 1, 2])))
    yield "ids_equal", rewritten(plain, with_ids(bytes([7, 7, 7])))
    yield "fill_bytes", rewritten(plain, lambda segment: b"\xff\xff\xff" + segment)
    rgb = cjpeg(photo(), "-rgb", "-sample", "1x1")
    yield "adobe_ycc", rewritten(rgb, with_adobe(1))
    yield "adobe_unknown", rewritten(rgb, with_adobe(7))
    cmyk = pillow(photo().convert("CMYK"))
    yield "cmyk", cmyk
    yield "cmyk_no_adobe", rewritten(cmyk, without(0xEE))
    yield "ycck", rewritten(cmyk, with_adobe(2))
    yield "ycck_420", rewritten(pillow(photo().convert("CMYK"), subsampling="4:2:0"), with_adobe(2))
    yield "lossless_rgb", lossless(photo())
    yield "lossless_grey", lossless(photo().convert("L"))


def decoded(path, scale):
    image = Image.open(path)
    if scale > 1:
        codec, _, offset, arguments = image.tile[0]
        image.decoderconfig = (scale, 0)
        image._size = tuple(-(-side // scale) for side in image.size)
        image.tile = [ImageFile._Tile(codec, (0, 0, *image._size), offset, arguments)]
    return image


def digest(path, scale, mode):
    try:
        pixels = decoded(path, scale).convert(mode).tobytes()
    except OSError:
        return None
    return hashlib.sha256(pixels).hexdigest()


def eighths(path):
    """The digest of the pixels at 1/8, 2/8 and so on to 16/8, one after the other: as djpeg has them.

    It has no RGB of four components, and before version 3 it smooths files without AC coefficients in
    another way than Pillow's library; such files have none. Pillow has only 1/8, 2/8, 4/8 and 8/8.
    """
    pixels = hashlib.sha256()
    for n in range(1, 17):
        command = ["djpeg", "-strict", "-rgb", "-pnm", "-scale", f"{n}/8", str(path)]
        done = subprocess.run(command, capture_output=True)
        if done.returncode != 0:
            return None
        scaled = Image.open(io.BytesIO(done.stdout)).tobytes()
        if n == 8 and hashlib.sha256(scaled).hexdigest() != digest(path, 1, "RGB"):
            return None
        pixels.update(scaled)
    return pixels.hexdigest()


def entry(path):
    """What is not named in an entry is refused; `eighths` may also be what djpeg does not have."""
    digests = {name: digest(path, scale, "RGB") for name, scale in SCALES.items()}
    digests["grey"] = digest(path, 1, "L")
    digests["eighths"] = eighths(path)
    lines = [f'{name} = "{text}"' for name, text in digests.items() if text is not None]
    return "\n".join(["[[image]]", f'file = "{path.name}"', *lines]) + "\n"


def main():
    # With --manifest the files stay as they are.
    for name, data in files() if sys.argv[1:] != ["--manifest"] else ():
        (FOLDER / f"{name}.jpg").write_bytes(data)
    entries = [entry(path) for path in sorted(FOLDER.glob("*.jpg"))]
    head = (
        "# Written by testdata/tools/jpeg_kinds.py: SHA-256 of what Pillow decodes each file to,\n"
        "# and `eighths` of what djpeg decodes it to at all of its scales.\n"
        "# A scale without one is refused.\n\n"
    )
    (FOLDER / "manifest.toml").write_text(head + "\n".join(entries))


main()
