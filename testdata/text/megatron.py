"""Writes megatron.bin and megatron.idx of this folder with the builder of Megatron-LM.

Run with `megatron-core` 0.16: python testdata/text/megatron.py
"""

import json
import pathlib

from megatron.core.datasets.indexed_dataset import DType, IndexedDatasetBuilder

FOLDER = pathlib.Path(__file__).parent
VOCABULARY = 600
END = 0

builder = IndexedDatasetBuilder(
    str(FOLDER / "megatron.bin"), dtype=DType.optimal_dtype(VOCABULARY)
)
for line in (FOLDER / "expected.jsonl").read_text().splitlines():
    tokens = json.loads(line)["bpe"]
    # As `preprocess_data.py --append-eod`: only documents with tokens get one.
    document = [*tokens, END] if tokens else []
    builder.add_document(document, [len(document)])
builder.finalize(str(FOLDER / "megatron.idx"))
