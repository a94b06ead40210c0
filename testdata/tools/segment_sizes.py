"""What a graph of nodes, vectors and edges takes as Parquet, Arrow IPC and JSON.

    cargo run --release -p tbf-format --example segment_sizes /tmp/sizes
    python testdata/tools/segment_sizes.py /tmp/sizes

The first command writes the graph as segments and as bare columns, the second reads those columns
and prints a line for each other format. Nodes and edges are two tables, so two files count together.
Needs numpy and pyarrow.
"""

import json
import pathlib
import sys

import numpy as np
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq

FOLDER = pathlib.Path(sys.argv[1])


def column(name, dtype):
    return np.fromfile(FOLDER / f"{name}.bin", dtype)


def tables():
    ids = column("id", "V16")
    vectors = column("vector", "<f4")
    dim = len(vectors) // len(ids)
    nodes = {
        "id": pa.Array.from_buffers(pa.binary(16), len(ids), [None, pa.py_buffer(ids.tobytes())]),
        "timestamp": pa.array(column("timestamp", "<u8")),
        "context_hash": pa.array(column("context_hash", "<u8")),
        "confidence": pa.array(column("confidence", "<f4")),
        "outcome_status": pa.array(column("outcome", "u1")),
        "embedding": pa.FixedSizeListArray.from_arrays(pa.array(vectors), dim),
    }
    edges = {
        "source": pa.array(column("source", "<u4")),
        "target": pa.array(column("target", "<u4")),
        "relation": pa.array(column("relation", "u1")),
        "weight": pa.array(column("weight", "<f4")),
    }
    return {"nodes": pa.table(nodes), "edges": pa.table(edges)}


def report(name, paths):
    print(f"{name} {sum(path.stat().st_size for path in paths)}", flush=True)


def main():
    graph = tables()
    for codec in ["none", "lz4", "zstd"]:
        paths = []
        for name, table in graph.items():
            paths.append(FOLDER / f"{name}_{codec}.parquet")
            pq.write_table(table, paths[-1], compression=codec)
        report(f"Parquet, {codec}", paths)
    paths = []
    for name, table in graph.items():
        paths.append(FOLDER / f"{name}_split.parquet")
        floats = [field.name for field in table.schema if field.type == pa.float32()]
        floats += ["embedding.list.element"] if name == "nodes" else []
        encodings = {column: "BYTE_STREAM_SPLIT" for column in floats}
        pq.write_table(
            table, paths[-1], compression="zstd", use_dictionary=False, column_encoding=encodings
        )
    report("Parquet, zstd, bytes of floats apart", paths)
    for codec in ["uncompressed", "lz4", "zstd"]:
        paths = []
        for name, table in graph.items():
            paths.append(FOLDER / f"{name}_{codec}.arrow")
            feather.write_feather(table, paths[-1], compression=codec)
        report(f"Arrow IPC, {codec}", paths)
    paths = []
    for name, table in graph.items():
        paths.append(FOLDER / f"{name}.jsonl")
        with open(paths[-1], "w") as out:
            for batch in table.to_batches(max_chunksize=1000):
                for row in batch.to_pylist():
                    if "id" in row:
                        row["id"] = row["id"].hex()
                        vector = np.array(row["embedding"], "<f4")
                        # The shortest text that is read as the same number.
                        row["embedding"] = [float(str(component)) for component in vector]
                    out.write(json.dumps(row, separators=(",", ":")) + "\n")
    report("JSON lines", paths)


main()
