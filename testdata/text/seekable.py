"""Compresses texts.jsonl with a seek table, in frames of 1,000 plain bytes.

Run with `pyzstd` 0.20: python testdata/text/seekable.py
"""

import pathlib

from pyzstd import SeekableZstdFile

TEXTS = pathlib.Path(__file__).parent / "texts.jsonl"

if __name__ == "__main__":
    path = TEXTS.with_suffix(".jsonl.zst")
    with SeekableZstdFile(path, "w", max_frame_content_size=1000) as file:
        file.write(TEXTS.read_bytes())
