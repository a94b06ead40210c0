"""Who accepts which JPEG files of the corpora, damaged ones and good ones.

    python3 testdata/tools/jpeg_strictness.py DATA/corpora

Beside our decoder: Pillow, `djpeg -strict` (Debian: libjpeg-turbo-progs), jpeg-decoder and zune-jpeg.
Damaged are the files that the manifests call invalid; of the disputed ones no share is claimed.
Needs Pillow and `cargo build --release --package tl-benches --example jpeg_requests`.
The exit code is 1 when ours accepts more than 2 % of what Pillow and djpeg both refuse, or refuses
a good file of a kind that it supports.
"""

import json
import pathlib
import subprocess
import sys
import warnings

from jpeg_server import Server
from PIL import Image

CLASSES = ("valid", "disputed", "invalid")
MOST_ACCEPTED = 0.02


def pillow(path):
    try:
        with Image.open(path) as image:
            image.convert("RGB")
    except Exception as error:
        return str(error) or type(error).__name__
    return None


def djpeg(path):
    try:
        command = ["djpeg", "-strict", "-outfile", "/dev/null", str(path)]
        done = subprocess.run(command, capture_output=True, timeout=20)
    except subprocess.TimeoutExpired:
        return "20 seconds"
    return done.stderr.decode("utf-8", "replace").strip() or "refused" if done.returncode else None


def files(corpora):
    for manifest in sorted(corpora.glob("*/manifest.json")):
        for entry in json.loads(manifest.read_text())["files"]:
            if entry.get("format") == "jpeg" and entry.get("class") in CLASSES:
                yield manifest.parent / entry["file"], entry["class"]


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    warnings.simplefilter("ignore")
    server = Server()
    ours = server.levels()[-1]
    deciders = {
        "here": lambda path: server.decode(ours, path)[3],
        "Pillow": pillow,
        "djpeg -strict": djpeg,
        "jpeg-decoder 0.3": lambda path: server.decode("jpeg-decoder", path)[3],
        "zune-jpeg 0.5": lambda path: server.decode("zune-jpeg", path)[3],
    }
    rows = []
    for path, kind in files(pathlib.Path(sys.argv[1])):
        rows.append((path, kind, {name: decide(path) for name, decide in deciders.items()}))

    refused_by_both = [row for row in rows if row[2]["Pillow"] and row[2]["djpeg -strict"]]
    counted = {kind: [row for row in rows if row[1] == kind] for kind in CLASSES}
    counted["refused by Pillow and djpeg -strict"] = refused_by_both
    print("| files | " + " | ".join(deciders) + " |\n|---" + "|---" * len(deciders) + "|")
    for name, some in counted.items():
        accepted = [sum(row[2][decider] is None for row in some) for decider in deciders]
        cells = " | ".join(f"{count} ({count / max(len(some), 1):.1%})" for count in accepted)
        print(f"| accepted of {len(some)} {name} | {cells} |")

    refused = [row for row in counted["valid"] if row[2]["here"]]
    supported = [row for row in refused if not row[2]["here"].startswith("unsupported")]
    accepted = [row for row in refused_by_both if row[2]["here"] is None]
    for path, _, verdicts in refused:
        print(f"good, refused: {path.parent.name}/{path.name}: {verdicts['here']}")
    for path, _, verdicts in accepted:
        print(f"damaged, accepted: {path.parent.name}/{path.name}: {verdicts['djpeg -strict'].splitlines()[-1]}")
    sys.exit(bool(supported) or len(accepted) > MOST_ACCEPTED * len(refused_by_both))


if __name__ == "__main__":
    main()
