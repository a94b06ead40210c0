"""Makes the `progressive_*` files of testdata/jpeg: part of a photograph, losslessly transcoded by
libjpeg-turbo's jpegtran with scan scripts that encoders seldom write. Prints their entries of the
manifest, with what Pillow decodes.

    python testdata/tools/progressive.py
"""

import hashlib
import pathlib
import subprocess
import tempfile

from PIL import Image

DATA = pathlib.Path(__file__).parent.parent
PHOTO = DATA / "photos" / "animals" / "chelsea.jpg"

BANDS = """0: 0-0, 0, 0; 1: 0-0, 0, 0; 2: 0-0, 0, 0;
0: 1-1, 0, 0; 0: 2-5, 0, 0; 0: 6-14, 0, 0; 0: 15-62, 0, 0; 0: 63-63, 0, 0;
1: 1-63, 0, 0; 2: 1-32, 0, 0; 2: 33-63, 0, 0;"""
DEEP = """0,1,2: 0-0, 0, 3; 0: 1-63, 0, 4; 1: 1-63, 0, 3; 2: 1-10, 0, 3; 2: 11-63, 0, 2;
0,1,2: 0-0, 3, 2; 0: 1-63, 4, 3; 0: 1-20, 3, 2; 0: 21-63, 3, 2; 1: 1-63, 3, 2; 2: 1-10, 3, 2;
0,1: 0-0, 2, 1; 2: 0-0, 2, 1; 0: 1-63, 2, 1; 1: 1-63, 2, 1; 2: 1-63, 2, 1;
0,1,2: 0-0, 1, 0; 2: 1-63, 1, 0; 1: 1-63, 1, 0; 0: 1-63, 1, 0;"""
PAIRS = """0,2: 0-0, 0, 1; 1: 0-0, 0, 0; 0: 1-63, 0, 1; 1: 1-63, 0, 0; 2: 1-63, 0, 0;
0: 0-0, 1, 0; 2: 0-0, 1, 0; 0: 1-63, 1, 0;"""
DC_ONLY = "0,1,2: 0-0, 0, 0;"
UNREFINED = """0,1,2: 0-0, 0, 0; 0: 1-63, 0, 2; 1: 1-63, 0, 3; 2: 1-63, 0, 0; 0: 1-63, 2, 1;"""
GREY_DC_ONLY = "0: 0-0, 0, 0;"
GAPS = "0: 0-0, 0, 0; 1,2: 0-0, 0, 0; 0: 3-63, 0, 0; 1: 1-63, 0, 0;"

CASES = [
    ("bands_restart", (86, 60), 0, BANDS, ["-restart", "5B"], "spectral selection only, restarts"),
    ("deep_420", (75, 51), 2, DEEP, [], "four refinements, bands that differ from scan to scan"),
    ("default_grey", (67, 43), None, None, [], "jpegtran's own script, one component"),
    ("pairs_422", (49, 70), 1, PAIRS, ["-restart", "1"], "DC scans of two and of one component"),
    ("dc_only_420", (67, 49), 2, DC_ONLY, [], "AC estimated from DC alone; the last MCU row is cut"),
    ("dc_only_cut", (40, 18), 2, DC_ONLY, [], "two MCU rows, the last of one block row"),
    ("dc_only_grey_2x2", (40, 21), None, GREY_DC_ONLY, [], "estimates count block rows by factors"),
    ("unrefined", (58, 44), 0, UNREFINED, [], "estimates where AC misses low bits"),
    ("gaps_422", (58, 44), 1, GAPS, [], "estimates of two coefficients, and of one component"),
]


def main():
    photo = Image.open(PHOTO).convert("RGB")
    for name, (width, height), subsampling, script, options, why in CASES:
        path = DATA / "jpeg" / f"progressive_{name}.jpg"
        part = photo.crop((100, 60, 100 + width, 60 + height))
        with tempfile.TemporaryDirectory() as folder:
            source, scans = f"{folder}/source.jpg", f"{folder}/scans.txt"
            if subsampling is None:
                part.convert("L").save(source, quality=92)
            else:
                part.save(source, quality=92, subsampling=subsampling)
            how = ["-progressive"]
            if script is not None:
                pathlib.Path(scans).write_text(script)
                how = ["-scans", scans]
            command = ["jpegtran", "-copy", "none", *how, *options, "-outfile", path, source]
            subprocess.run(command, check=True)
        if name.endswith("_2x2"):
            # The factors of an only component say nothing of its size.
            data = bytearray(path.read_bytes())
            data[data.index(b"\xff\xc2") + 11] = 0x22
            path.write_bytes(data)
        pixels = Image.open(path).convert("RGB").tobytes()
        print("[[file]]")
        print(f'name = "{path.name}"')
        print(f'expect = "rgb sha256 {hashlib.sha256(pixels).hexdigest()}"')
        print(f'why = "{why}"\n')


main()
