#!/usr/bin/env bash
# Measures the transforms and the augmented recipe, in one go of about six minutes on a quiet machine.
#   PYTHON=venv/bin/python TURBOLOADER_DATA=folder testdata/tools/measure_transforms.sh > measured.md
# PYTHON has torch, torchvision, Pillow, opencv-python-headless and kornia-rs; the folder has imagenet/*.JPEG.
set -euo pipefail
cd "$(dirname "$0")/../.."
python=${PYTHON:-python3}
photographs=$TURBOLOADER_DATA/imagenet
recipe=examples/recipes/imagenet-randaugment.json
# The same with every photograph decoded completely, as torchvision does it.
exact=$(mktemp --suffix .json)
trap 'rm -f "$exact"' EXIT
"$python" -c 'import json, sys; r = json.load(open(sys.argv[1])); r.pop("decode", None); json.dump(r, open(sys.argv[2], "w"))' "$recipe" "$exact"

cargo build --release --quiet --package tl-transform --example transform_requests
cargo build --release --quiet --package turboloader-cli --bin tl
echo "$(grep -m1 'model name' /proc/cpuinfo | cut -d: -f2), $(nproc) cores, $(rustc --version), $(date -u +%F)"
echo
"$python" testdata/tools/bench_transforms.py "$@"
echo
echo "## The recipe $recipe on $(find "$photographs" -name '*.JPEG' | wc -l) photographs, samples per second"
last=$(($(nproc) - 1))
for workers in 1 2; do
    cores=$((last - workers + 1))-$last
    for backend in pil tensor; do
        "$python" testdata/tools/loader_torch.py "$photographs" --workers $workers --backend $backend --epochs 3
    done
    for file in "$exact" "$recipe"; do
        [[ $file == "$exact" ]] && decode=exactly || decode="as the recipe says"
        echo "tl bench, decoding $decode, $workers workers on cores $cores:"
        taskset -c "$cores" target/release/tl bench "$photographs" --recipe "$file" --workers $workers
    done
done
