#!/usr/bin/env python3
"""Makes the images and manifest.toml of this folder: make.py [FORMAT ..] (Pillow 13, numpy, tifffile, imagecodecs).

The pictures are computed, so they have no author but this project. What each file must decode to
comes from Pillow, or from the numbers the file was made of where Pillow cannot read it. The files
are committed and are not regenerated to make a test pass. With names of formats, only their files are
made, and the entries of others stay as they are.
"""

import hashlib
import io
import os
import struct
import sys
import zlib

import imagecodecs
import numpy
import tifffile
from PIL import Image, ImageOps

HERE = os.path.dirname(os.path.abspath(__file__))
WIDTH, HEIGHT = 21, 13
ENTRIES = []


def picture(width=WIDTH, height=HEIGHT):
    y, x = numpy.mgrid[0:height, 0:width]
    red = x * 255 // max(width - 1, 1)
    green = y * 255 // max(height - 1, 1)
    blue = (x * y * 5 + 40) % 256
    return numpy.stack([red, green, blue], axis=2).astype(numpy.uint8)


RGB = picture()
GREY = numpy.asarray(Image.fromarray(RGB).convert("L"))
DEEP = (GREY.astype(numpy.uint16) * 257) ^ 0x00A5
DEEP_RGB = (RGB.astype(numpy.uint16) * 257) ^ 0x003C


def add(name, data, why, rgb=None, tolerance=None, error=None, orientation=None, feature=None):
    path = os.path.join(HERE, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(data)
    lines = [f'file = "{name}"']
    if error:
        lines.append(f'error = "{error}"')
    else:
        if rgb is None:
            rgb = numpy.asarray(Image.open(io.BytesIO(data)).convert("RGB"))
        height, width = rgb.shape[:2]
        lines.append(f"size = [{width}, {height}]")
        if tolerance:
            reference = os.path.splitext(name)[0] + ".reference.png"
            Image.fromarray(rgb).save(os.path.join(HERE, reference), optimize=True)
            lines += [f'reference = "{reference}"', f"tolerance = {tolerance}"]
        else:
            lines.append(f'rgb8_sha256 = "{hashlib.sha256(rgb.tobytes()).hexdigest()}"')
            grey = numpy.asarray(Image.fromarray(rgb).convert("L"))
            lines.append(f'l8_sha256 = "{hashlib.sha256(grey.tobytes()).hexdigest()}"')
    if orientation:
        lines.append(f"orientation = {orientation}")
        upright = numpy.asarray(ImageOps.exif_transpose(Image.open(io.BytesIO(data))).convert("RGB"))
        lines.append(f'upright_sha256 = "{hashlib.sha256(upright.tobytes()).hexdigest()}"')
    if feature:
        lines.append(f'feature = "{feature}"')
    lines.append(f'why = "{why}"')
    ENTRIES.append("[[image]]\n" + "\n".join(lines) + "\n")


def saved(image, format, **options):
    out = io.BytesIO()
    image.save(out, format, **options)
    return out.getvalue()


def grey3(grey):
    return numpy.repeat(grey.astype(numpy.uint8)[:, :, None], 3, axis=2)


def exif(orientation):
    block = Image.Exif()
    block[274] = orientation
    return block.tobytes()


def exif_of(kind, value, order="<"):
    """An EXIF block whose orientation has this TIFF type, without the prefix `Exif\\0\\0`."""
    head = (b"II" if order == "<" else b"MM") + struct.pack(order + "HIH", 42, 8, 1)
    number = struct.pack(order + {3: "H", 4: "I", 9: "i"}[kind], value).ljust(4, b"\0")
    return head + struct.pack(order + "HHI", 274, kind, 1) + number + bytes(4)


XMP_ATTRIBUTE = b'<x:xmpmeta><rdf:Description tiff:Orientation="8"/></x:xmpmeta>'
XMP_ELEMENT = b"<x:xmpmeta><tiff:Orientation>5</tiff:Orientation></x:xmpmeta>"


# PNG, written here because Pillow writes neither all depths nor interlaced files.

def chunk(kind, data):
    body = kind + data
    return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))


def packed(row, depth):
    if depth == 16:
        return row.astype(">u2").tobytes()
    if depth == 8:
        return row.astype(numpy.uint8).tobytes()
    bits = "".join(format(int(v), f"0{depth}b") for v in row.ravel())
    bits += "0" * (-len(bits) % 8)
    return bytes(int(bits[i:i + 8], 2) for i in range(0, len(bits), 8))


ADAM7 = [(0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)]


def png(samples, color, depth, interlaced=False, extra=b"", idats=1, tail=b""):
    height, width = samples.shape[:2]
    passes = [samples]
    if interlaced:
        passes = [samples[y::dy, x::dx] for x, y, dx, dy in ADAM7]
    raw = b"".join(b"\0" + packed(row, depth) for part in passes if part.size for row in part)
    data = zlib.compress(raw, 9)
    step = -(-len(data) // idats)
    header = struct.pack(">IIBBBBB", width, height, depth, color, 0, 0, int(interlaced))
    body = b"".join(chunk(b"IDAT", data[i:i + step]) for i in range(0, len(data), step))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + extra + body + tail + chunk(b"IEND", b"")


def make_png():
    plte = chunk(b"PLTE", bytes((i * 37 + c * 80) % 256 for i in range(16) for c in range(3)))
    colors = numpy.array([[(i * 37 + c * 80) % 256 for c in range(3)] for i in range(16)], numpy.uint8)
    add("png/rgb8.png", png(RGB, 2, 8), "the plain case, decoded in place")
    for depth in (1, 2, 4):
        levels = GREY >> (8 - depth)
        scale = 255 // (2**depth - 1)
        add(f"png/grey{depth}.png", png(levels, 0, depth), f"{depth}-bit grey is stretched to 0..255", grey3(levels * scale))
        index = (GREY >> 3) % (2**depth)
        add(f"png/palette{depth}.png", png(index, 3, depth, extra=plte), "packed palette indexes", colors[index])
    add("png/grey8.png", png(GREY, 0, 8), "grey to RGB, and in place to grey", grey3(GREY))
    add("png/grey16.png", png(DEEP, 0, 16), "the low byte is dropped", grey3(DEEP >> 8))
    add("png/rgb16.png", png(DEEP_RGB, 2, 16), "the low byte is dropped", (DEEP_RGB >> 8).astype(numpy.uint8))
    alpha = (255 - GREY)[:, :, None]
    add("png/rgba8.png", png(numpy.concatenate([RGB, alpha], 2), 6, 8), "alpha is dropped, not blended", RGB)
    add("png/grey_alpha8.png", png(numpy.stack([GREY, 255 - GREY], 2), 4, 8), "alpha is dropped, not blended", grey3(GREY))
    index = (GREY >> 4).astype(numpy.uint8)
    trns = chunk(b"tRNS", bytes(range(0, 160, 10)))
    add("png/palette8_trns.png", png(index, 3, 8, extra=plte + trns), "transparent palette entries keep their colour", colors[index])
    add("png/palette8_short.png", png((GREY >> 3), 3, 8, extra=plte), "indexes beyond the palette are black",
        numpy.concatenate([colors, numpy.zeros((16, 3), numpy.uint8)])[GREY >> 3])
    add("png/rgb8_trns.png", png(RGB, 2, 8, extra=chunk(b"tRNS", bytes(6))), "a transparent colour changes nothing", RGB)
    add("png/rgb8_interlaced.png", png(RGB, 2, 8, True), "Adam7")
    add("png/palette4_interlaced.png", png(index, 3, 4, True, plte), "Adam7 of packed samples", colors[index])
    add("png/rgb16_interlaced.png", png(DEEP_RGB, 2, 16, True), "Adam7 of 16 bits", (DEEP_RGB >> 8).astype(numpy.uint8))
    add("png/one_pixel_interlaced.png", png(RGB[:1, :1], 2, 8, True), "Adam7 with six empty passes")
    add("png/many_idats.png", png(RGB, 2, 8, idats=9), "pixel data over chunk borders")
    tiff = exif(6)[6:]
    add("png/exif6.png", png(RGB, 2, 8, extra=chunk(b"eXIf", tiff)), "orientation from eXIf", RGB, orientation=6)
    block = exif_of(4, 8, ">")
    add("png/exif_long.png", png(RGB, 2, 8, tail=chunk(b"eXIf", block)), "orientation of type LONG, after the pixels", RGB, orientation=8)
    text = b"XML:com.adobe.xmp\0\0\0\0\0" + XMP_ATTRIBUTE
    add("png/xmp.png", png(RGB, 2, 8, extra=chunk(b"iTXt", text)), "orientation from XMP alone", RGB, orientation=8)
    text = b"XML:com.adobe.xmp\0\1\0\0\0" + zlib.compress(XMP_ELEMENT)
    add("png/xmp_compressed.png", png(RGB, 2, 8, extra=chunk(b"iTXt", text)), "orientation from compressed XMP", RGB, orientation=5)
    profile = f"\nexif\n{len(block) + 6:8}\n{(b'Exif' + bytes(2) + block).hex()}\n".encode()
    text = b"Raw profile type exif\0\0" + zlib.compress(profile)
    add("png/exif_profile.png", png(RGB, 2, 8, extra=chunk(b"zTXt", text)), "EXIF as ImageMagick stores it", RGB, orientation=8)
    frame = struct.pack(">IIIIIHHBB", 0, WIDTH, HEIGHT, 0, 0, 1, 1, 0, 0)
    second = struct.pack(">IIIIIHHBB", 1, WIDTH, HEIGHT, 0, 0, 1, 1, 0, 0)
    raw = zlib.compress(b"".join(b"\0" + row.tobytes() for row in 255 - RGB))
    add("png/animated.png", png(RGB, 2, 8, extra=chunk(b"acTL", struct.pack(">II", 2, 0)) + chunk(b"fcTL", frame),
        tail=chunk(b"fcTL", second) + chunk(b"fdAT", struct.pack(">I", 2) + raw)), "the first frame of an animation", RGB)
    good = png(RGB, 2, 8)
    at = good.index(b"IDAT")
    add("png/bad_crc.png", good[:-20] + bytes([good[-20] ^ 1]) + good[-19:], "a flipped bit in the checksum of pixel data", error="Malformed")
    length = struct.unpack(">I", good[at - 4:at])[0]
    data = bytearray(good[at + 4:at + 4 + length])
    data[-1] ^= 1
    add("png/bad_adler.png", good[:at - 4] + chunk(b"IDAT", bytes(data)) + chunk(b"IEND", b""), "wrong Adler-32, right CRC", error="Malformed")
    for kind, size in [(b"cHRM", 32), (b"gAMA", 4), (b"pHYs", 9), (b"sRGB", 1), (b"acTL", 8), (b"tRNS", 6)]:
        name = kind.decode()
        add(f"png/short_{name}.png", png(RGB, 2, 8, extra=chunk(kind, bytes(size - 1))), f"a {name} chunk without its last byte", error="Malformed")
    add("png/no_iend.png", good[:-12], "cut after the pixels", error="Malformed")
    add("png/huge.png", b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 60000, 60000, 8, 2, 0, 0, 0)) + good[33:], "3.6 gigapixels", error="LimitExceeded")
    wide = (numpy.arange(70_000) // 977 % 2)[None, :]
    add("png/wide.png", png(wide, 0, 1), "a side of more than 65 535 pixels")
    add("png/too_wide.png", b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", (1 << 20) + 1, 1, 1, 0, 0, 0, 0)) + good[33:], "a side of more than 1 048 576 pixels", error="LimitExceeded")
    add("png/large_claim.png", b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 13000, 13000, 8, 2, 0, 0, 0)) + good[33:], "500 MB of pixels claimed by 200 bytes", error="Malformed")


def make_jpeg():
    image = Image.fromarray(picture(37, 29))
    for name, why, options in [
        ("420", "chroma at half size", dict(subsampling=2)),
        ("422", "chroma at half width", dict(subsampling=1)),
        ("444", "chroma at full size", dict(subsampling=0)),
        ("progressive", "progressive scans", dict(subsampling=2, progressive=True)),
        ("restart", "restart markers", dict(subsampling=2, restart_marker_blocks=1)),
        ("rgb", "stored as RGB, told by the Adobe marker", dict(keep_rgb=True)),
    ]:
        add(f"jpeg/{name}.jpg", saved(image, "JPEG", quality=90, **options), why)
    add("jpeg/grey.jpg", saved(image.convert("L"), "JPEG", quality=90), "one component")
    cmyk = Image.merge("CMYK", [*image.split(), image.convert("L")])
    add("jpeg/cmyk.jpg", saved(cmyk, "JPEG", quality=90), "four inks, inverted by Adobe's convention")
    exif6 = saved(image, "JPEG", quality=90, exif=exif(6))
    add("jpeg/exif6.jpg", exif6, "orientation from APP1", orientation=6)
    good = saved(image, "JPEG", quality=90, subsampling=2)

    def app1(body):
        return good[:2] + b"\xff\xe1" + struct.pack(">H", len(body) + 2) + body + good[2:]

    xmp = b"http://ns.adobe.com/xap/1.0/\0"
    add("jpeg/exif_long.jpg", app1(b"Exif\0\0" + exif_of(4, 6)), "orientation of type LONG", orientation=6)
    add("jpeg/exif_slong.jpg", app1(b"Exif\0\0" + exif_of(9, 7, ">")), "orientation of type SLONG, big endian", orientation=7)
    add("jpeg/xmp_attribute.jpg", app1(xmp + XMP_ATTRIBUTE), "orientation from XMP alone", orientation=8)
    add("jpeg/xmp_element.jpg", app1(xmp + XMP_ELEMENT), "orientation from XMP alone, as an element", orientation=5)
    block = b"Exif\0\0" + exif_of(3, 3)
    add("jpeg/exif_and_xmp.jpg", app1(block)[:-2].replace(block, block + b"\xff\xe1" + struct.pack(">H", len(xmp + XMP_ATTRIBUTE) + 2) + xmp + XMP_ATTRIBUTE) + good[-2:], "EXIF wins over XMP", orientation=3)
    add("jpeg/trailing.jpg", good + b"\0\xff\xd8 more", "bytes behind the end are allowed")
    add("jpeg/no_eoi.jpg", good[:-2], "the end marker is missing", error="Malformed")
    add("jpeg/cut.jpg", good[:len(good) * 2 // 3], "cut in the scan", error="Malformed")
    add("jpeg/cut_with_eoi.jpg", good[:-60].rstrip(b"\xff") + b"\xff\xd9", "a cut scan with an end marker put behind it", error="Malformed")
    add("jpeg/restart_cut.jpg", saved(image, "JPEG", quality=90, restart_marker_blocks=1).replace(b"\xff\xd3", b"", 1)[:-2] + b"\xff\xd9", "one restart marker is gone", error="Malformed")
    short = saved(image, "JPEG", quality=90, restart_marker_blocks=1)
    at = short.index(b"\xff\xd3")
    add("jpeg/restart_short.jpg", short[:at - 9].rstrip(b"\xff") + short[at:], "data is missing before a restart marker", error="Malformed")
    add("jpeg/stray_bytes.jpg", good[:20] + b"\0\0" + good[20:], "bytes between segments", error="Malformed")
    restart = saved(image, "JPEG", quality=90, restart_marker_blocks=1)
    at = restart.index(b"\xff\xd1")
    add("jpeg/restart_out_of_turn.jpg", restart[:at + 1] + b"\xd5" + restart[at + 2:], "RST5 where RST1 belongs", error="Malformed")
    sof = good.index(b"\xff\xc0")
    add("jpeg/arithmetic.jpg", good[:sof + 1] + b"\xc9" + good[sof + 2:], "arithmetic coding", error="Unsupported")
    add("jpeg/twelve_bits.jpg", good[:sof + 4] + b"\x0c" + good[sof + 5:], "12 bits per sample", error="Unsupported")
    add("jpeg/large_claim.jpg", good[:sof + 5] + struct.pack(">HH", 9000, 9000) + good[sof + 9:], "81 megapixels claimed by a few hundred bytes", error="Malformed")
    add("jpeg/scans.jpg", many_scans(), "more scans than the limit, each of which fits those before it", error="LimitExceeded")


def many_scans():
    """A grey block without AC, in 505 scans: each coefficient from its eighth bit on."""
    def segment(marker, body):
        return bytes([0xFF, marker]) + struct.pack(">H", len(body) + 2) + body

    def scan(number, high, low):
        return segment(0xDA, bytes([1, 1, 0, number, number, high << 4 | low])) + b"\x7f"

    one_code = bytes([1] + [0] * 15)
    head = segment(0xDB, bytes([0] + [1] * 64)) + segment(0xC2, struct.pack(">BHHB", 8, 8, 8, 1) + b"\x01\x11\x00")
    tables = segment(0xC4, b"\x00" + one_code + b"\x00") + segment(0xC4, b"\x10" + one_code + b"\x00")
    bits = [(0, 7)] + [(low + 1, low) for low in range(6, -1, -1)]
    scans = b"".join(scan(number, *pair) for number in range(1, 64) for pair in bits)
    return b"\xff\xd8" + head + tables + scan(0, 0, 0) + scans + b"\xff\xd9"


def make_webp():
    image = Image.fromarray(RGB)
    alpha = Image.fromarray(numpy.concatenate([RGB, (255 - GREY)[:, :, None]], 2))
    opaque = Image.fromarray(255 - RGB)
    add("webp/lossy.webp", saved(image, "WEBP", quality=80), "VP8")
    add("webp/lossy_alpha.webp", saved(alpha, "WEBP", quality=80), "VP8 with ALPH", tolerance=1)
    add("webp/lossless.webp", saved(image, "WEBP", lossless=True), "VP8L")
    add("webp/lossless_alpha.webp", saved(alpha, "WEBP", lossless=True, exact=True), "VP8L with alpha", RGB)
    add("webp/animated.webp", saved(image, "WEBP", save_all=True, append_images=[opaque], lossless=True), "the first frame", RGB)
    add("webp/exif6.webp", saved(image, "WEBP", lossless=True, exif=exif(6)), "orientation from the EXIF chunk", orientation=6)
    block = exif_of(9, 4)
    add("webp/exif_slong.webp", saved(image, "WEBP", lossless=True, exif=block), "orientation of type SLONG", orientation=4)
    add("webp/xmp.webp", saved(image, "WEBP", lossless=True, xmp=XMP_ELEMENT), "orientation from XMP alone", orientation=5)
    flagged = saved(image, "WEBP", lossless=True, exif=block)
    add("webp/exif_without_flag.webp", flagged[:20] + b"\0" + flagged[21:], "libwebp finds no EXIF without its flag")
    good = saved(image, "WEBP", quality=80)
    add("webp/cut.webp", good[:-9], "cut in the pixel data", error="Malformed")


def bmp(bits, rows, width=WIDTH, height=HEIGHT, compression=0, palette=b"", colors=0, size=40, masks=b"", offset=None):
    head = struct.pack("<IiiHHIIiiII", size, width, height, 1, bits, compression, len(rows), 0, 0, colors, 0)
    head += masks.ljust(size - 40, b"\0") if size > 40 else b""
    after = masks if size == 40 else b""
    start = 14 + len(head) + len(after) + len(palette)
    start = start if offset is None else offset
    return struct.pack("<2sIHHI", b"BM", start + len(rows), 0, 0, start) + head + after + palette + rows


def bmp_rows(rows, top_down=False):
    order = rows if top_down else rows[::-1]
    return b"".join(row + b"\0" * (-len(row) % 4) for row in order)


def make_bmp():
    colors = numpy.array([[(i * 37 + c * 80) % 256 for c in range(3)] for i in range(256)], numpy.uint8)

    def quads(count):
        return b"".join(bytes([c[2], c[1], c[0], 0]) for c in colors[:count])

    bgr = [row[:, ::-1].tobytes() for row in RGB]
    add("bmp/rgb24.bmp", bmp(24, bmp_rows(bgr)), "bottom up, padded rows")
    add("bmp/rgb24_top_down.bmp", bmp(24, bmp_rows(bgr, True), height=-HEIGHT), "negative height")
    for bits in (1, 2, 4, 8):
        index = (GREY >> 3) % (2**bits) if bits < 8 else GREY
        rows = [packed(row, bits) for row in index]
        add(f"bmp/palette{bits}.bmp", bmp(bits, bmp_rows(rows), palette=quads(2**bits)), f"{bits} bits and a palette", colors[index])
    index = GREY >> 4
    rows = [packed(row, 8) for row in index]
    black = numpy.concatenate([colors[:9], numpy.zeros((247, 3), numpy.uint8)])
    add("bmp/palette8_short.bmp", bmp(8, bmp_rows(rows), palette=quads(9), colors=9), "indexes beyond the palette are black", black[index])
    core = struct.pack("<IHHHH", 12, WIDTH, HEIGHT, 1, 8) + b"".join(bytes(c[::-1]) for c in colors)
    add("bmp/os2_v1.bmp", struct.pack("<2sIHHI", b"BM", 0, 0, 0, 14 + len(core)) + core + bmp_rows([packed(r, 8) for r in GREY]), "the 12-byte header with 3-byte colours", colors[GREY])
    v = RGB.astype(int)
    p555 = ((v[:, :, 0] >> 3) << 10 | (v[:, :, 1] >> 3) << 5 | v[:, :, 2] >> 3).astype("<u2")
    p565 = ((v[:, :, 0] >> 3) << 11 | (v[:, :, 1] >> 2) << 5 | v[:, :, 2] >> 3).astype("<u2")
    p444 = ((v[:, :, 0] >> 4) << 8 | (v[:, :, 1] >> 4) << 4 | v[:, :, 2] >> 4).astype("<u2")
    add("bmp/rgb16_555.bmp", bmp(16, bmp_rows([r.tobytes() for r in p555])), "5 bits each, stretched")
    add("bmp/rgb16_565.bmp", bmp(16, bmp_rows([r.tobytes() for r in p565]), compression=3, masks=struct.pack("<III", 0xF800, 0x7E0, 0x1F)), "bit fields behind the header")
    add("bmp/rgb16_444.bmp", bmp(16, bmp_rows([r.tobytes() for r in p444]), compression=3, size=56, masks=struct.pack("<IIII", 0xF00, 0xF0, 0xF, 0)), "bit fields Pillow does not read", ((v >> 4) * 17).astype(numpy.uint8))
    xrgb = numpy.concatenate([numpy.full((HEIGHT, WIDTH, 1), 7, numpy.uint8), RGB[:, :, ::-1]], 2)
    add("bmp/rgb32_fields.bmp", bmp(32, bmp_rows([r.tobytes() for r in xrgb]), compression=3, size=108, masks=struct.pack("<IIII", 0xFF000000, 0xFF0000, 0xFF00, 0)), "bit fields in a V4 header")
    add("bmp/rgb32.bmp", bmp(32, bmp_rows([numpy.concatenate([r[:, ::-1], r[:, :1]], 1).tobytes() for r in RGB])), "the fourth byte is no alpha")
    rle8 = b"".join(bytes([5, 9, 0, 5, 1, 2, 3, 4, 5, 0]) + bytes([WIDTH - 10, y + 20]) + b"\0\0" for y in range(HEIGHT)) + b"\0\1"
    add("bmp/rle8.bmp", bmp(8, rle8, compression=1, palette=quads(256)), "runs, literals, ends of lines")
    delta = b"\x15\x05\0\0" * 4 + b"\x05\x07\0\x02\x04\x03" + b"\x0c\x09\0\0" + b"\x15\x06\0\0" * (HEIGHT - 8) + b"\0\1"
    add("bmp/rle8_wide.bmp", bmp(8, (b"\xfa\x07\xfa\x09" * 140) + b"\0\0\0\1", width=70_000, height=1, compression=1, palette=quads(256)), "a side of more than 65 535 pixels")
    add("bmp/rle8_delta.bmp", bmp(8, delta, compression=1, palette=quads(256)), "a delta leaves index 0")
    rle4 = (b"\x09\x3a\0\x05\x12\x34\x50\0" + bytes([WIDTH - 14, 0x77]) + b"\0\0") * HEIGHT + b"\0\1"
    add("bmp/rle4.bmp", bmp(4, rle4, compression=2, palette=quads(16)), "two pixels a byte, padded literals")
    add("bmp/rle8_cut.bmp", bmp(8, rle8[:-30], compression=1, palette=quads(256)), "rows are missing", error="Malformed")
    add("bmp/cut.bmp", bmp(24, bmp_rows(bgr)[:-7]), "the last row is short", error="Malformed")
    add("bmp/huffman.bmp", bmp(1, bytes(99), compression=3, size=64), "OS/2 Huffman coding", error="Unsupported")
    add("bmp/large_claim.bmp", bmp(24, bytes(99), width=13000, height=13000), "500 MB of pixels claimed by 200 bytes", error="Malformed")


def tiff(array, **options):
    out = io.BytesIO()
    options.setdefault("metadata", None)
    options.setdefault("software", False)
    tifffile.imwrite(out, array, **options)
    return out.getvalue()


def zstd_claim(frame):
    """A frame of the same size whose window has 1 GiB."""
    return (frame[:4] + b"\0" + bytes([20 << 3])).ljust(len(frame), b"\0")


def lzma_claim(stream):
    """The same stream with a dictionary of 4 GiB."""
    size = (stream[12] + 1) * 4
    header = bytearray(stream[12:12 + size - 4])
    header[header.index(b"\x21\x01") + 2] = 40
    return stream[:12] + bytes(header) + struct.pack("<I", zlib.crc32(header)) + stream[12 + size:]


def make_tiff():
    image, grey = Image.fromarray(RGB), Image.fromarray(GREY)
    bilevel = Image.fromarray(GREY > 120)
    add("tiff/rgb8.tif", tiff(RGB, photometric="rgb"), "one strip", RGB)
    add("tiff/rgb8_strips_big_endian.tif", tiff(RGB, photometric="rgb", rowsperstrip=4, byteorder=">"), "a short last strip", RGB)
    add("tiff/rgb8_tiles_lzw.tif", tiff(RGB, photometric="rgb", tile=(16, 16), compression="lzw", predictor=2), "tiles beyond the image, predictor 2", RGB)
    add("tiff/rgb8_planar_packbits.tif", tiff(RGB.transpose(2, 0, 1).copy(), photometric="rgb", planarconfig="separate", compression="packbits"), "a plane per channel", RGB)
    add("tiff/rgb16_planar_tiles.tif", tiff(DEEP_RGB.transpose(2, 0, 1).copy(), photometric="rgb", planarconfig="separate", tile=(16, 16), compression="deflate"), "the shape the tiff crate panics on", (DEEP_RGB >> 8).astype(numpy.uint8))
    add("tiff/rgb16_predictor_big_endian.tif", tiff(DEEP_RGB, photometric="rgb", compression="lzw", predictor=2, byteorder=">"), "16-bit differences in file order", (DEEP_RGB >> 8).astype(numpy.uint8))
    add("tiff/bigtiff.tif", tiff(RGB, photometric="rgb", bigtiff=True, compression="deflate"), "8-byte offsets", RGB)
    add("tiff/grey16.tif", tiff(DEEP, photometric="minisblack"), "the low byte is dropped", grey3(DEEP >> 8))
    for bits in (10, 12, 14):
        data = tiff(DEEP >> (16 - bits), photometric="minisblack", bitspersample=bits)
        add(f"tiff/grey{bits}.tif", data, f"the 8 most significant of {bits} bits are kept, where Pillow clips", grey3(DEEP >> 8))
    add("tiff/grey8_white_is_zero.tif", tiff(255 - GREY, photometric="miniswhite"), "0 is white", grey3(GREY))
    ramp = numpy.linspace(-20, 300, GREY.size, dtype=numpy.float32).reshape(GREY.shape)
    clipped = grey3(numpy.clip(ramp, 0, 255).astype(numpy.uint8))
    add("tiff/float32_predictor.tif", tiff(ramp, photometric="minisblack", compression="deflate", predictor=3), "floats are clipped", clipped)
    ints = numpy.linspace(-300, 600, GREY.size).astype(numpy.int16).reshape(GREY.shape)
    add("tiff/int16.tif", tiff(ints, photometric="minisblack"), "signed values are clipped", grey3(numpy.clip(ints, 0, 255)))
    for name, options in [("group3", {}), ("group4", {}), ("tiff_ccitt", {}), ("packbits", {}), ("tiff_lzw", {}), ("tiff_adobe_deflate", {})]:
        add(f"tiff/bilevel_{name}.tif", saved(bilevel, "TIFF", compression=name, **options), f"1 bit, {name}")
    add("tiff/bilevel_group3_2d.tif", saved(bilevel, "TIFF", compression="group3", tiffinfo={292: 1}), "two-dimensional Group 3")
    add("tiff/bilevel_raw.tif", saved(bilevel, "TIFF"), "1 bit, uncompressed")
    for predictor in (2, 3):
        data = tiff(GREY > 120, photometric="minisblack", extratags=[(65000, 3, 1, predictor, True)])
        data = data.replace(struct.pack("<HH", 65000, 3), struct.pack("<HH", 317, 3))
        add(f"tiff/predictor{predictor}_without_codec.tif", data, "libtiff ignores the predictor of uncompressed data", grey3((GREY > 120) * 255))
    add("tiff/palette8.tif", saved(image.convert("P", palette=Image.Palette.ADAPTIVE, colors=19), "TIFF", compression="tiff_lzw"), "16-bit colour map")
    add("tiff/rgba8.tif", saved(Image.merge("RGBA", [*image.split(), grey]), "TIFF"), "alpha is dropped", RGB)
    premultiplied = (RGB.astype(int) * GREY[:, :, None] // 255).astype(numpy.uint8)
    data = tiff(numpy.concatenate([premultiplied, GREY[:, :, None]], 2), photometric="rgb", extrasamples=["assocalpha"])
    add("tiff/premultiplied.tif", data, "associated alpha is divided out")
    add("tiff/cmyk8.tif", saved(Image.merge("CMYK", [*image.split(), grey]), "TIFF"), "inks are not inverted")
    dull = [band.point(lambda v: 108 + v // 6) for band in image.split()[:2]]
    add("tiff/lab8.tif", saved(Image.merge("LAB", [grey, *dull]), "TIFF"), "CIE L*a*b* mostly inside the gamut", tolerance=12)
    wide = Image.fromarray(picture(37, 29))
    add("tiff/jpeg_ycc.tif", saved(wide, "TIFF", compression="jpeg", quality=90), "JPEG with tables of its own")
    add("tiff/jpeg_rgb_tiles.tif", tiff(picture(37, 29), photometric="rgb", tile=(16, 16), compression="jpeg", compressionargs={"level": 90}), "JPEG tiles")
    ycc = numpy.asarray(image.convert("YCbCr")).astype(int)
    units, flat = b"", numpy.zeros_like(ycc)
    for y in range(0, HEIGHT, 2):
        for x in range(0, WIDTH, 2):
            block = ycc[y:y + 2, x:x + 2]
            chroma = block[0, 0, 1:]
            luma = [ycc[min(y + j, HEIGHT - 1), min(x + i, WIDTH - 1), 0] for j in (0, 1) for i in (0, 1)]
            units += bytes(luma) + bytes(chroma.tolist())
            flat[y:y + 2, x:x + 2, 0] = block[:, :, 0]
            flat[y:y + 2, x:x + 2, 1:] = chroma
    flat = numpy.asarray(Image.fromarray(flat.astype(numpy.uint8), "YCbCr").convert("RGB"))
    tags = [(256, 3, 1, WIDTH), (257, 3, 1, HEIGHT), (258, 3, 1, 8), (259, 3, 1, 1), (262, 3, 1, 6), (273, 4, 1, 134),
            (277, 3, 1, 3), (278, 3, 1, HEIGHT), (279, 4, 1, len(units)), (530, 3, 2, 2 | 2 << 16)]
    body = struct.pack("<H", len(tags)) + b"".join(struct.pack("<HHII", *entry) for entry in tags) + bytes(4)
    add("tiff/ycc_2x2.tif", (b"II*\0" + struct.pack("<I", 8) + body).ljust(134, b"\0") + units, "YCbCr with shared chroma, no JPEG", flat, tolerance=1)
    for value in range(2, 9):
        data = tiff(RGB, photometric="rgb", extratags=[(274, 3, 1, value, True)])
        add(f"tiff/orientation{value}.tif", data, "turned when it is decoded, as Pillow does", orientation=1)
    data = tiff(RGB, photometric="rgb", compression="lzw", byteorder=">", extratags=[(274, 4, 1, 6, True)])
    add("tiff/orientation_long.tif", data, "orientation of type LONG", orientation=1)
    data = tiff(RGB, photometric="rgb", bigtiff=True, extratags=[(700, 1, len(XMP_ATTRIBUTE), XMP_ATTRIBUTE, True)])
    add("tiff/orientation_xmp.tif", data, "orientation from XMP alone", orientation=1)
    high = (numpy.arange(70_000) // 9_770 * 31).astype(numpy.uint8)[:, None]
    add("tiff/high.tif", tiff(high, photometric="minisblack", compression="deflate"), "a side of more than 65 535 pixels")
    good = tiff(RGB, photometric="rgb", compression="lzw")
    add("tiff/cut.tif", tiff(RGB, photometric="rgb")[:-5], "the strip is short", error="Malformed")
    add("tiff/webp.tif", tiff(RGB, photometric="rgb", compression="webp"), "WebP compression", error="Unsupported")
    for codec in ("lzma", "zstd"):
        feature = f"tiff-{codec}"
        add(f"tiff/{codec}.tif", saved(image, "TIFF", compression=codec), "written by libtiff", RGB, feature=feature)
        for order in "<>":
            data = tiff(DEEP_RGB, photometric="rgb", tile=(16, 16), compression=codec, predictor=2, byteorder=order)
            add(f"tiff/{codec}_predictor_{'little' if order == '<' else 'big'}.tif", data, "tiles of 16 bits with predictor 2", (DEEP_RGB >> 8).astype(numpy.uint8), feature=feature)
        add(f"tiff/{codec}_cut.tif", tiff(RGB, photometric="rgb", compression=codec)[:-30], "the strip is short", error="Malformed", feature=feature)
    for codec, claim in (("lzma", lzma_claim), ("zstd", zstd_claim)):
        data = tiff(RGB, photometric="rgb", compression=codec)
        with tifffile.TiffFile(io.BytesIO(data)) as file:
            page = file.pages[0]
            at, size = page.dataoffsets[0], page.databytecounts[0]
        claimed = data[:at] + claim(data[at:at + size]) + data[at + size:]
        add(f"tiff/{codec}_large_memory.tif", claimed, "1 GiB or more of memory claimed by a few hundred bytes", error="LimitExceeded", feature=f"tiff-{codec}")
    head = bytearray(good)
    for tag in (256, 257):
        at = head.index(struct.pack("<HH", tag, 3)) + 8 if struct.pack("<HH", tag, 3) in head else head.index(struct.pack("<HH", tag, 4)) + 8
        head[at:at + 2] = struct.pack("<H", 13000)
    at = head.index(struct.pack("<H", 278)) + 8
    head[at:at + 2] = struct.pack("<H", 13000)
    add("tiff/large_claim.tif", bytes(head), "500 MB of pixels claimed by a few hundred bytes", error="LimitExceeded")


def numbers(samples):
    """Samples as decimal numbers, at most 70 characters a line."""
    lines = [""]
    for sample in samples.reshape(-1):
        if len(lines[-1]) > 64:
            lines.append("")
        lines[-1] += f"{sample} "
    return "\n".join(lines).encode() + b"\n"


def to_eight(samples, maximum):
    """Pillow's scaling of samples, for which it has no place in images of grey."""
    scaled = numpy.array([round(sample / maximum * 255) for sample in range(maximum + 1)], numpy.uint8)
    return scaled[samples]


def make_pnm():
    bits = (GREY < 120).astype(numpy.uint8)
    add("pnm/plain.pbm", b"P1\n# a comment\n21 13\n" + b"\n".join(b"".join(b"%d" % bit for bit in row) for row in bits) + b"\n", "bits without white space between them")
    add("pnm/plain.pgm", b"P2\n21 # width\n13\n255\n" + numbers(GREY), "numbers of a graymap")
    add("pnm/plain.ppm", b"P3 21 13 255\n# colours\n" + numbers(RGB), "numbers of a pixmap")
    add("pnm/plain5.pgm", b"P2\n21 13\n5\n" + numbers(GREY // 51), "samples up to 5 are scaled")
    add("pnm/plain1000.ppm", b"P3\n21 13\n1000\n" + numbers(RGB.astype(int) * 1000 // 255), "colours up to 1000 are scaled")
    add("pnm/raw.pbm", b"P4\n21 13\n" + b"".join(packed(row, 1) for row in bits), "bits, rows padded to bytes")
    add("pnm/raw.pgm", b"P5\n21 13\n255\n" + GREY.tobytes(), "bytes of a graymap")
    add("pnm/raw.ppm", b"P6\n21 13\n255\n" + RGB.tobytes(), "bytes of a pixmap")
    add("pnm/raw_comment.ppm", b"P6#kind\n#size\n21\r\n13 255\r" + RGB.tobytes(), "comments and carriage returns", RGB)
    add("pnm/raw6.pgm", b"P5 21 13 6 " + (GREY // 40).tobytes(), "halves are rounded to even")
    add("pnm/raw100.ppm", b"P6 21 13 100 " + (RGB // 3).tobytes(), "colours up to 100 are scaled")
    add("pnm/raw16.ppm", b"P6 21 13 65535 " + DEEP_RGB.astype(">u2").tobytes(), "colours of 16 bits are scaled")
    add("pnm/raw12.ppm", b"P6 21 13 4095 " + (DEEP_RGB >> 4).astype(">u2").tobytes(), "colours of 12 bits are scaled")
    add("pnm/raw16.pgm", b"P5 21 13 65535 " + DEEP.astype(">u2").tobytes(), "grey of 16 bits is scaled, where Pillow clips", grey3(to_eight(DEEP, 65535)))
    add("pnm/raw12.pgm", b"P5 21 13 4095 " + (DEEP >> 4).astype(">u2").tobytes(), "grey of 12 bits is scaled, where Pillow clips", grey3(to_eight(DEEP >> 4, 4095)))
    add("pnm/two.pgm", (b"P5 21 13 255 " + GREY.tobytes()) * 2, "the first of two images")
    add("pnm/cut.ppm", b"P6 21 13 255 " + RGB.tobytes()[:-1], "the last sample is missing", error="Malformed")
    add("pnm/above.pgm", b"P5 21 13 99 " + GREY.tobytes(), "samples above the maximum", error="Malformed")
    add("pnm/plain_above.pgm", b"P2 2 1 99 7 100\n", "a number above the maximum", error="Malformed")
    add("pnm/two.pbm", b"P1 2 1 0 2\n", "a bit of 2", error="Malformed")
    add("pnm/letters.ppm", b"P3 1 1 255 1 x 3\n", "not a number", error="Malformed")
    add("pnm/long.pgm", b"P2 99999999999 1 255 1\n", "a width of 11 digits", error="Malformed")
    add("pnm/zero.pgm", b"P5 0 13 255 ", "no pixels", error="Malformed")
    add("pnm/maximum.pgm", b"P5 2 1 65536 ab", "a maximum of 17 bits", error="Malformed")
    add("pnm/large_claim.ppm", b"P6 13000 13000 255 ", "500 MB of pixels claimed by 20 bytes", error="Malformed")
    add("pnm/large_claim_plain.ppm", b"P3 13000 13000 255 1 2 3 ", "500 MB of pixels claimed by 20 bytes", error="Malformed")
    add("pnm/pam.pam", b"P7\nWIDTH 1\nHEIGHT 1\nDEPTH 1\nMAXVAL 255\nENDHDR\n\0", "PAM", error="Unsupported")
    add("pnm/floats.pfm", b"Pf\n1 1\n-1.0\n" + bytes(4), "PFM", error="Unsupported")


def make_qoi():
    alpha = numpy.concatenate([RGB, (GREY // 64 * 64)[:, :, None]], 2)
    add("qoi/rgb.qoi", saved(Image.fromarray(RGB), "QOI"), "three channels")
    add("qoi/rgba.qoi", saved(Image.fromarray(alpha), "QOI"), "alpha is dropped", RGB)
    blocks = numpy.repeat(numpy.repeat(RGB[::4, ::7] // 32 * 32, 4, 0)[:HEIGHT], 7, 1)
    add("qoi/runs.qoi", saved(Image.fromarray(numpy.ascontiguousarray(blocks)), "QOI"), "runs over ends of rows, colours seen before")
    head = b"qoif" + struct.pack(">II", 70, 2)
    end = bytes(7) + b"\1"
    add("qoi/black.qoi", head + b"\3\0" + b"\xfd\xfd\xcf" + end, "runs of the first colour")
    good = saved(Image.fromarray(RGB), "QOI")
    add("qoi/cut.qoi", good[:-20], "cut in the pixels", error="Malformed")
    add("qoi/no_end.qoi", good[:-8], "the end marker is missing", error="Malformed")
    add("qoi/channels.qoi", head + b"\5\0" + b"\xfd\xfd\xcf" + end, "five channels", error="Malformed")
    add("qoi/large_claim.qoi", b"qoif" + struct.pack(">II", 13000, 13000) + b"\3\0\xfd" + end, "500 MB of pixels claimed by 23 bytes", error="Malformed")


def gif_data(data):
    blocks = b"".join(bytes([len(data[at:at + 255])]) + data[at:at + 255] for at in range(0, len(data), 255))
    return blocks + b"\0"


def lzw(indexes, bits):
    """Codes without compression: a clear code before the table grows."""
    codes, size, clear = [], bits + 1, 1 << bits
    for at, index in enumerate(indexes.reshape(-1)):
        if at % (clear - 2 or 1) == 0:
            codes.append(clear)
        codes.append(int(index))
    codes.append(clear + 1)
    text = "".join(reversed([format(code, f"0{size}b") for code in codes]))
    return int(text, 2).to_bytes(-(-len(text) // 8), "little")


def gif(indexes, bits, screen=None, at=(0, 0), colors=b"", local=b"", transparent=None, interlaced=False, code_size=None, tail=b";"):
    height, width = indexes.shape
    def flags(palette):
        return 0x80 | (len(palette) // 3).bit_length() - 2 if palette else 0
    control = b"" if transparent is None else b"!\xf9\4" + bytes([1, 0, 0, transparent]) + b"\0"
    if interlaced:
        indexes = numpy.concatenate([indexes[0::8], indexes[4::8], indexes[2::4], indexes[1::2]])
    head = b"GIF89a" + struct.pack("<HHBBB", *(screen or (width, height)), flags(colors), 0, 0) + colors
    image = b"," + struct.pack("<HHHHB", *at, width, height, flags(local) | interlaced * 0x40) + local
    return head + control + image + bytes([code_size or bits]) + gif_data(lzw(indexes, code_size or bits)) + tail


def make_gif():
    image = Image.fromarray(RGB)
    indexed = image.convert("P", palette=Image.Palette.ADAPTIVE, colors=200)
    colors = bytes((i * 37 + c * 80) % 256 for i in range(16) for c in range(3))
    greys = bytes(i for i in range(16) for _ in range(3))
    index = GREY >> 4
    add("gif/palette.gif", saved(indexed, "GIF", interlace=False), "compressed indexes of 8 bits")
    add("gif/interlaced.gif", saved(indexed, "GIF", interlace=True), "rows in four passes")
    add("gif/grey.gif", saved(Image.fromarray(GREY), "GIF"), "a palette of greys")
    add("gif/bilevel.gif", saved(Image.fromarray(GREY > 120), "GIF"), "two colours")
    opaque = Image.fromarray(255 - RGB)
    add("gif/animated.gif", saved(image, "GIF", save_all=True, append_images=[opaque]), "the first frame of an animation")
    add("gif/local.gif", gif(index, 4, local=colors), "a palette of the frame")
    add("gif/both.gif", gif(index, 4, colors=greys[::-1], local=colors), "the palette of the frame goes before that of the file")
    add("gif/no_palette.gif", gif(index, 4), "no palette: indexes are grey")
    add("gif/greys_in_order.gif", gif(index, 8, local=greys), "indexes beyond greys in order are greys")
    add("gif/short_palette.gif", gif(index, 4, colors=colors[:24]), "indexes beyond the palette are black")
    add("gif/transparent.gif", gif(index, 4, colors=colors, transparent=5), "transparent pixels keep their colour")
    add("gif/small_frame.gif", gif(index[:7, :9], 4, (21, 13), (6, 3), colors), "around the frame is index 0")
    add("gif/small_frame_transparent.gif", gif(index[:7, :9], 4, (21, 13), (6, 3), colors, transparent=9, interlaced=True), "around the frame is the transparent index")
    add("gif/frame_outside.gif", gif(index, 4, (5, 30), (6, 3), colors), "a frame that is not inside the screen")
    add("gif/gif87a.gif", gif(index, 4, colors=colors).replace(b"GIF89a", b"GIF87a"), "the first version")
    comments = b"!\xfe" + gif_data(b"comment" * 90) + b"!\xff\x0bNETSCAPE2.0\3\1\0\0\0"
    good = gif(index, 4, colors=colors)
    add("gif/comments.gif", good[:61] + comments + good[61:-1] + comments + b"\0\0;", "other blocks and zeros between them")
    add("gif/no_trailer.gif", good[:-1], "the trailer is missing", error="Malformed")
    add("gif/short.gif", gif(index[:12], 4, colors=colors).replace(struct.pack("<HHB", 21, 12, 0), struct.pack("<HHB", 21, 13, 0)), "a row is missing", error="Malformed")
    add("gif/cut.gif", good[:-40], "cut in the pixels", error="Malformed")
    add("gif/code_size.gif", good[:71] + b"\x0c" + good[72:], "codes of 13 bits", error="Malformed")
    add("gif/no_image.gif", good[:61] + b";", "no image", error="Malformed")
    add("gif/large_claim.gif", good.replace(struct.pack("<HH", 21, 13), struct.pack("<HH", 13000, 13000)), "170 million pixels claimed by a few hundred bytes", error="Malformed")
    add("gif/huge.gif", good.replace(struct.pack("<HH", 21, 13), struct.pack("<HH", 60000, 60000)), "3.6 gigapixels", error="LimitExceeded")


def make_jpeg2000():
    def put(name, data, why, rgb=None, **options):
        add(f"jpeg2000/{name}", data, why, rgb, feature="jpeg2000", **options)

    def jp2(image, **options):
        return saved(image, "JPEG2000", **options)

    image, grey = Image.fromarray(RGB), Image.fromarray(GREY)
    rgba = Image.fromarray(numpy.concatenate([RGB, (255 - GREY)[:, :, None]], 2))
    put("rgb.jp2", jp2(image), "lossless colours in boxes")
    put("rgb.j2k", jp2(image, no_jp2=True), "a codestream alone")
    put("no_transform.j2k", jp2(image, no_jp2=True, mct=0), "colours that are not transformed")
    put("grey.jp2", jp2(grey), "one channel")
    put("grey_alpha.jp2", jp2(Image.merge("LA", [grey, Image.fromarray(255 - GREY)])), "alpha is dropped", grey3(GREY))
    put("rgba.jp2", jp2(rgba), "alpha is dropped", RGB)
    put("rgba.j2k", jp2(rgba, no_jp2=True), "four channels of a codestream are RGBA", RGB)
    cmyk = Image.merge("CMYK", [*image.split(), grey])
    put("cmyk.jp2", jp2(cmyk), "inks")
    put("grey16.jp2", jp2(Image.fromarray(DEEP)), "the low byte is dropped", grey3(DEEP >> 8))
    wide = picture(37, 29)
    for progression in ("LRCP", "RLCP", "RPCL", "PCRL", "CPRL"):
        data = jp2(Image.fromarray(wide), no_jp2=True, progression=progression, tile_size=(16, 16), precinct_size=(8, 8), codeblock_size=(4, 4), num_resolutions=3)
        put(f"tiles_{progression.lower()}.j2k", data, "tiles, precincts and small code-blocks", wide)
    smooth = numpy.asarray(Image.fromarray(wide).resize((74, 58), Image.Resampling.BICUBIC))
    layers = jp2(Image.fromarray(smooth), irreversible=True, quality_mode="rates", quality_layers=[40, 10, 5])
    put("lossy.jp2", layers, "the other wavelet, three layers", tolerance=1)
    twelve = imagecodecs.jpeg2k_encode(DEEP >> 4, codecformat="j2k", bitspersample=12, reversible=True)
    put("grey12.j2k", twelve, "the 8 most significant of 12 bits are kept", grey3(DEEP >> 8))
    good, boxes = jp2(image, no_jp2=True), jp2(image)
    put("no_end.j2k", good[:-2], "the end marker is missing", error="Malformed")
    put("cut.jp2", boxes[:-40], "cut in the pixels", error="Malformed")
    put("no_stream.jp2", boxes[:boxes.index(b"jp2c") - 4], "boxes without a codestream", error="Malformed")
    size = struct.pack(">IIII", 21, 13, 0, 0)
    claim = good.replace(size, struct.pack(">IIII", 13000, 13000, 0, 0)).replace(struct.pack(">IIII", 21, 13, 0, 0), struct.pack(">IIII", 13000, 13000, 0, 0))
    put("large_claim.j2k", claim, "500 MB of pixels claimed by a few hundred bytes", error="LimitExceeded")
    put("five.j2k", good[:40] + struct.pack(">H", 5) + good[42:], "five channels", error="Unsupported")


def make_jxl():
    def put(name, data, why, rgb=None, **options):
        if rgb is None and "error" not in options:
            # By libjxl, which is not in Pillow.
            decoded = imagecodecs.jpegxl_decode(data)
            rgb = decoded if decoded.ndim == 3 else grey3(decoded)
        add(f"jxl/{name}", data, why, rgb, feature="jxl", **options)

    def jxl(pixels, **options):
        return imagecodecs.jpegxl_encode(pixels, **options)

    rgba = numpy.concatenate([RGB, (255 - GREY)[:, :, None]], 2)
    wide = picture(37, 29)
    smooth = numpy.asarray(Image.fromarray(wide).resize((74, 58), Image.Resampling.BICUBIC))
    put("rgb.jxl", jxl(RGB, lossless=True), "lossless colours", RGB)
    put("grey.jxl", jxl(GREY, lossless=True), "one channel", grey3(GREY))
    put("rgba.jxl", jxl(rgba, lossless=True), "alpha is dropped", RGB)
    put("boxes.jxl", jxl(RGB, lossless=True, usecontainer=True), "a file of boxes", RGB)
    put("squeeze.jxl", jxl(RGB, lossless=True, effort=9), "the slowest encoder", RGB)
    put("lossy.jxl", jxl(smooth, distance=1.0), "transforms of blocks", tolerance=1)
    put("lossy_far.jxl", jxl(smooth, distance=8.0, effort=7), "filters over blocks", tolerance=1)
    put("lossy_grey.jxl", jxl(numpy.ascontiguousarray(smooth[:, :, 1]), distance=1.0), "one channel of blocks", tolerance=1)
    put("animated.jxl", jxl(numpy.stack([RGB, 255 - RGB]), lossless=True), "the first frame of an animation", RGB)
    jpeg = saved(Image.fromarray(smooth), "JPEG", quality=90, subsampling=2)
    put("from_jpeg.jxl", imagecodecs.jpegxl_encode_jpeg(jpeg, usecontainer=True), "a JPEG file, recompressed", tolerance=2)
    good, boxes = jxl(RGB, lossless=True), jxl(RGB, lossless=True, usecontainer=True)
    put("cut.jxl", good[:-20], "cut in the pixels", error="Malformed")
    put("cut_boxes.jxl", boxes[:-20], "cut in the pixels of a file of boxes", error="Malformed")


def box(kind, *parts):
    body = b"".join(parts)
    return struct.pack(">I", 8 + len(body)) + kind + body


def full_box(kind, version, flags, *parts):
    return box(kind, struct.pack(">I", version << 24 | flags), *parts)


def av1_of(data):
    """The AV1 data and the configuration of the first item of a file that Pillow wrote."""
    configuration = data[data.index(b"av1C") + 4:][:4]
    place = data.index(b"iloc") + 4
    # Version 0: sizes of 4, count, number, construction, count of extents, offset, length.
    offset, length = struct.unpack(">II", data[place + 14:place + 22])
    return data[offset:offset + length], configuration


def heif(items, primary, properties, references=b"", idat=b"", brand=b"avif"):
    """A file of items: (kind, data or (offset, length) of idat, property numbers); data may be in pieces."""
    def build(base):
        infe, iloc, ipma, mdat = b"", b"", b"", b""
        for number, (kind, data, of_item) in enumerate(items, 1):
            infe += full_box(b"infe", 2, 0, struct.pack(">HH4sB", number, 0, kind, 0))
            if isinstance(data, tuple):
                iloc += struct.pack(">HHHHII", number, 1, 0, 1, *data)
            else:
                pieces = data if isinstance(data, list) else [data]
                iloc += struct.pack(">HHHH", number, 0, 0, len(pieces))
                for piece in pieces:
                    iloc += struct.pack(">II", base + len(mdat), len(piece))
                    mdat += piece
            ipma += struct.pack(">HB", number, len(of_item)) + bytes(of_item)
        meta = full_box(
            b"meta", 0, 0,
            full_box(b"hdlr", 0, 0, struct.pack(">I4s12sB", 0, b"pict", b"", 0)),
            full_box(b"pitm", 0, 0, struct.pack(">H", primary)),
            full_box(b"iloc", 1, 0, struct.pack(">BBH", 0x44, 0, len(items)), iloc),
            full_box(b"iinf", 0, 0, struct.pack(">H", len(items)), infe),
            box(b"iprp", box(b"ipco", *properties), full_box(b"ipma", 0, 0, struct.pack(">I", len(items)), ipma)),
            full_box(b"iref", 0, 0, references) if references else b"",
            box(b"idat", idat) if idat else b"",
        )
        start = box(b"ftyp", brand, struct.pack(">I", 0), b"avifmif1miaf") + meta
        return start, start + box(b"mdat", mdat) if mdat else start
    return build(len(build(0)[0]) + 8)[1]


def make_avif():
    def put(name, data, why, **options):
        add(f"avif/{name}", data, why, feature="avif", **options)
        if "error" in options:
            return
        image = Image.open(io.BytesIO(data))
        image.load()
        if image.mode == "RGBA":
            lines = ENTRIES[-1].rstrip().split("\n")
            lines.insert(4, f'rgba8_sha256 = "{hashlib.sha256(image.tobytes()).hexdigest()}"')
            ENTRIES[-1] = "\n".join(lines) + "\n"

    def avif(pixels, **options):
        image = pixels if isinstance(pixels, Image.Image) else Image.fromarray(pixels)
        return saved(image, "AVIF", **{"quality": 60, "speed": 0, **options})

    def colors(data, matrix, full):
        at = data.index(b"nclx") + 4
        return data[:at] + struct.pack(">HHHB", 1, 13, matrix, full << 7) + data[at + 7:]

    def deep(pixels, bits, form, **options):
        layout = int(imagecodecs.AVIF.PIXEL_FORMAT[f"YUV{form}"])
        return imagecodecs.avif_encode(pixels >> (16 - bits), 60, speed=0, bitspersample=bits, pixelformat=layout, **options)

    rgba = numpy.concatenate([RGB, (255 - GREY)[:, :, None]], 2)
    deep_rgba = numpy.concatenate([DEEP_RGB, (DEEP ^ 0xFFFF)[:, :, None]], 2)
    for form in ("4:2:0", "4:2:2", "4:4:4"):
        for place in ("full", "limited"):
            name = f"{form.replace(':', '')}_{place}.avif"
            put(name, avif(RGB, subsampling=form, range=place), f"{form}, {place} range, an odd size")
    put("grey.avif", avif(GREY), "one channel")
    put("grey_limited.avif", avif(GREY, range="limited"), "one channel of limited range")
    put("one.avif", avif(RGB[:1, :1]), "one pixel")
    put("even.avif", avif(RGB[:12, :20], quality=90), "an even size")
    good = avif(RGB)
    for matrix, name in ((1, "bt709"), (9, "bt2020")):
        for full in (0, 1):
            put(f"{name}_{('limited', 'full')[full]}.avif", colors(good, matrix, full), f"the file states {name}, the AV1 data BT.601")
    wide = avif(RGB, subsampling="4:4:4")
    put("identity.avif", colors(wide, 0, 1), "green, blue and red as Y, U and V")
    put("ycgco.avif", colors(good, 8, 1), "YCgCo, whose samples libavif interpolates itself")
    put("smpte240_limited.avif", colors(good, 7, 0), "coefficients that libyuv does not have")
    put("without_colr.avif", good.replace(b"colrnclx", b"freenclx"), "colours as the AV1 data states them")
    put("rgba.avif", avif(rgba), "alpha is dropped")
    put("rgba_limited.avif", avif(rgba, range="limited", subsampling="4:2:2"), "the alpha of limited colours")
    put("premultiplied.avif", avif(rgba, alpha_premultiplied=True), "colours are divided by alpha")
    put("grey_alpha.avif", avif(rgba, subsampling="4:0:0"), "grey with alpha, which Pillow shows as RGBA")
    for bits in (10, 12):
        put(f"rgb{bits}.avif", deep(DEEP_RGB, bits, "420"), f"{bits} bits, of which the lowest are dropped")
        put(f"rgba{bits}.avif", deep(deep_rgba, bits, "420"), f"{bits} bits with alpha, converted from all bits")
        put(f"grey{bits}.avif", deep(DEEP, bits, "400"), f"grey of {bits} bits, rounded")
    for tag in (3, 4, 5, 6):
        exif = Image.Exif()
        exif[274] = tag
        put(f"turned{tag}.avif", avif(RGB, exif=exif), "rotated and mirrored by properties", orientation=tag)
    xmp = b'<rdf:Description tiff:Orientation="6"/>'
    put("xmp6.avif", avif(RGB, xmp=xmp), "the orientation of an XMP packet alone", orientation=6)
    exif = Image.Exif()
    exif[274] = 1
    put("xmp_and_exif.avif", avif(RGB, xmp=xmp, exif=exif), "an EXIF block without an orientation", orientation=6)
    frames = [Image.fromarray(pixels) for pixels in (rgba, 255 - rgba)]
    put("avis.avif", avif(frames[0], save_all=True, append_images=frames[1:]), "the first of a sequence")
    make_avif_items(put, avif)
    put("cut.avif", good[:-20], "cut in the pixels", error="Malformed")
    size = struct.pack(">II", WIDTH, HEIGHT)
    put("other_size.avif", good.replace(size, struct.pack(">II", WIDTH + 1, HEIGHT)), "a size unlike that of the picture", error="Malformed")
    put("large_claim.avif", good.replace(size, struct.pack(">II", 60000, 60000)), "3.6 gigapixels claimed by a few hundred bytes", error="LimitExceeded")
    put("matrix14.avif", colors(good, 14, 1), "ICtCp", error="Unsupported")
    put("no_primary.avif", good.replace(b"pitm", b"free"), "no primary item", error="Malformed")


def make_avif_items(put, avif):
    """Files of several items, of which Pillow writes none."""
    def tile(pixels, **options):
        return av1_of(avif(pixels, quality=30, **options))

    whole = numpy.asarray(Image.fromarray(RGB[:4, :4]).resize((118, 90), Image.Resampling.BICUBIC))
    parts = [whole[:64, :64], whole[:64, 54:], whole[26:, :64], whole[26:, 54:]]
    tiles = [tile(part) for part in parts]
    alphas = [tile(part[:, :, 1]) for part in parts]
    ispe = lambda width, height: full_box(b"ispe", 0, 0, struct.pack(">II", width, height))
    pixi = lambda *bits: full_box(b"pixi", 0, 0, bytes([len(bits), *bits]))
    auxc = full_box(b"auxC", 0, 0, b"urn:mpeg:mpegB:cicp:systems:auxiliary:alpha\0")
    colr = box(b"colr", b"nclx", struct.pack(">HHHB", 1, 13, 6, 0x80))
    properties = [ispe(118, 90), ispe(64, 64), box(b"av1C", tiles[0][1]), colr, box(b"av1C", alphas[0][1]), auxc, pixi(8, 8, 8), pixi(8)]
    # Of the grid, its tiles, their alpha.
    of_grid, of_tile, of_alpha = (1, 4, 7), (2, 0x83, 4, 7), (2, 0x85, 6, 8)
    grid = struct.pack(">BBBBHH", 0, 0, 1, 1, 118, 90)
    dimg = lambda number, first: box(b"dimg", struct.pack(">HH4H", number, 4, *range(first, first + 4)))
    colour_items = [(b"av01", data, of_tile) for data, _ in tiles]
    alpha_items = [(b"av01", data, of_alpha) for data, _ in alphas]
    plain = [(b"grid", (0, 8), of_grid), *colour_items]
    put("grid.avif", heif(plain, 1, properties, dimg(1, 2), grid), "four tiles, of which the last ones are cut")
    auxl = b"".join(box(b"auxl", struct.pack(">HHH", 6 + i, 1, 2 + i)) for i in range(4))
    put("grid_alpha_tiles.avif", heif([*plain, *alpha_items], 1, properties, dimg(1, 2) + auxl, grid), "each tile of a grid has its alpha")
    with_grid = [*plain, *alpha_items, (b"grid", (0, 8), (1, 6, 8))]
    auxl = box(b"auxl", struct.pack(">HHH", 10, 1, 1))
    put("grid_alpha_grid.avif", heif(with_grid, 1, properties, dimg(1, 2) + dimg(10, 6) + auxl, grid), "alpha is a grid as well")
    put("grid_short.avif", heif(plain[:-1], 1, properties, dimg(1, 2), grid), "a tile of a grid is missing", error="Malformed")
    data, configuration = tile(RGB)
    single = [ispe(WIDTH, HEIGHT), box(b"av1C", configuration), colr, pixi(8, 8, 8)]
    of_single = (1, 0x82, 3, 4)
    put("idat.avif", heif([(b"av01", (0, len(data)), of_single)], 1, single, idat=data), "AV1 in idat")
    put("pieces.avif", heif([(b"av01", [data[:30], data[30:50], data[50:]], of_single)], 1, single), "AV1 in three pieces")
    put("mif1.avif", heif([(b"av01", data, of_single)], 1, single, brand=b"mif1"), "AVIF is not the first of the brands")
    clap = box(b"clap", struct.pack(">8I", 11, 1, 7, 1, 0, 1, 0, 1))
    put("clap.avif", heif([(b"av01", data, (*of_single, 0x85))], 1, [*single, clap]), "Pillow shows all of it, not the clean aperture")
    put("essential.avif", heif([(b"av01", data, (*of_single, 0x85))], 1, [*single, box(b"abcd")]), "an unknown property that readers must know", error="Unsupported")
    put("hevc.avif", heif([(b"hvc1", data, of_single)], 1, single), "a primary item of HEVC", error="Unsupported")


FORMATS = ("png", "jpeg", "webp", "bmp", "tiff", "pnm", "qoi", "gif", "jpeg2000", "jxl", "avif")


def main():
    path = os.path.join(HERE, "manifest.toml")
    with open(path) as manifest:
        kept = [part.strip() + "\n" for part in manifest.read().split("[[image]]")[1:]]
    entries = []
    for name in FORMATS:
        ENTRIES.clear()
        if name in (sys.argv[1:] or FORMATS):
            globals()[f"make_{name}"]()
            entries += ENTRIES
        else:
            entries += ["[[image]]\n" + part for part in kept if part.startswith(f'file = "{name}/')]
    with open(path, "w") as manifest:
        manifest.write("# Written by make.py; what each file must decode to, and why it exists.\n\n")
        manifest.write("\n".join(entries))


main()
