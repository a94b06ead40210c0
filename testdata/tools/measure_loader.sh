#!/usr/bin/env bash
# Measures the loader, in one go of some eight minutes on a quiet machine, and prints a table.
#   testdata/tools/measure_loader.sh [DATA] > measured.md
# DATA is a TAR archive, TBL file or folder of photographs; without it, those of testdata/photos are
# repeated. It is copied until there are SAMPLES of them, into a folder below TMPDIR that is removed
# at the end (four times the data, 200 KB a sample, and 100 MB).
#   ROUNDS   how often everything is measured, all of it in turn in each round (5)
#   SECONDS_EACH   how long each line of a round takes at least (4; 0: one epoch each)
#   SAMPLES  at least so many (3000); INDEX: samples of the large index (1000000)
#   PROFILE  cargo's (release)
# x1 has the whole process on one core, x2 on two.
set -euo pipefail
data=${1:-}
data=${data:+$(realpath -- "$data")}
cd "$(dirname "$0")/../.."
rounds=${ROUNDS:-5} seconds=${SECONDS_EACH:-4} samples=${SAMPLES:-3000} index=${INDEX:-1000000}
profile=${PROFILE:-release}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

cargo build --profile "$profile" --quiet --package turboloader-cli --bin tl
cargo build --profile "$profile" --quiet --package tl-pipeline --example overhead
built=target/${profile/dev/debug}
tl=$built/tl overhead=$built/examples/overhead
last=$(($(nproc) - 1)) before=$(($(nproc) > 1 ? $(nproc) - 2 : 0))

# The first "samples" is the data set's.
count() { "$tl" info "$1" --json | sed 's/"samples":\([0-9]*\).*/\n\1/; s/.*\n//'; }

source=${data:-testdata/photos}
copies=$(((samples + $(count "$source") - 1) / $(count "$source")))
mapfile -t sources < <(yes "$source" | head -n "$copies")
good=$folder/good.tbl bad=$folder/bad.tbl raw=$folder/raw256.tbl
whole=$folder/whole.tbl cut=$folder/cut.tbl
"$tl" convert "${sources[@]}" -o "$good" --quiet
"$tl" convert "$good" -o "$raw" --to raw --size 256 --quiet
# Every 1,000th sample becomes one whose checksum is wrong.
cp "$good" "$bad"
"$tl" ls "$good" --json | sed 's/.*"offset":\([0-9]*\).*/\1/' | awk 'NR % 1000 == 1' |
    while read -r offset; do
        dd if=/dev/zero of="$bad" bs=1 seek="$offset" count=16 conv=notrunc status=none
    done
if "$tl" verify "$bad" > "$folder/said" 2>&1; then
    echo "no sample is damaged" >&2
    exit 1
fi
# Every 1,000th photograph ends in its middle, which only decoding tells: version 1 has no checksums.
"$tl" convert "$good" -o "$whole" --to tbl1 --quiet
cp "$whole" "$cut"
"$tl" ls "$whole" --json | sed 's/.*"offset":\([0-9]*\),"stored_bytes":\([0-9]*\).*/\1 \2/' |
    awk 'NR % 1000 == 1 { print $1 + int($2 / 2) }' | while read -r middle; do
        printf '\xff\xd9' | dd of="$cut" bs=1 seek="$middle" conv=notrunc status=none
    done
cached=$(($(count "$good") < 1000 ? $(count "$good") : 1000))

# NAME CORES COMMAND..: a line of the log with name, unit and value for each figure.
bench() {
    local name=$1 cores=$2 line
    shift 2
    line=$(taskset -c "$cores" "$tl" bench "$@" --batch-size 64 --seconds "$seconds" --json)
    for unit in images_per_s images_per_cpu_s; do
        printf '%s\t%s\t%s\n' "$name" "$unit" "$(sed "s/.*\"$unit\":\([0-9.]*\).*/\1/" <<< "$line")"
    done
    if [[ $name == *"cut, "* ]] && ! grep -Eq '"(skipped|replaced|filled)":[1-9]' <<< "$line"; then
        echo "no photograph is cut" >&2
        return 1
    fi
    grep -q '"quiet":false' <<< "$line" && echo "disturbed: $name" >&2
    return 0
}

round() {
    local one=$last two=$before,$last
    local train=(--recipe imagenet-train --size 224)
    bench "training from TBL of raw 256 x 256, x1" "$one" "$raw" "${train[@]}" --workers 1
    bench "training from TBL of raw 256 x 256, x2" "$two" "$raw" "${train[@]}" --workers 2
    bench "bytes in random order, checked, x1" "$one" "$good" --recipe raw --workers 1
    bench "bytes in random order, views, x1" "$one" "$good" --recipe raw --views --workers 1
    bench "training, x1" "$one" "$good" "${train[@]}" --workers 1
    bench "training, x2" "$two" "$good" "${train[@]}" --workers 2
    bench "training, skipping none, x1" "$one" "$good" "${train[@]}" --workers 1 --on-error skip
    bench "training, skipping every 1,000th, x1" "$one" "$bad" "${train[@]}" --workers 1 --on-error skip
    bench "training, all whole, x1" "$one" "$whole" "${train[@]}" --workers 1 --on-error skip
    for policy in skip replace fill; do
        bench "training, every 1,000th cut, $policy, x1" "$one" "$cut" "${train[@]}" --workers 1 --on-error $policy
    done
    local exact=("${train[@]}" --decode exact --samples "0..$cached" --workers 1)
    bench "training decoded exactly, x1" "$one" "$good" "${exact[@]}"
    bench "training decoded exactly, from a cache, x1" "$one" "$good" "${exact[@]}" --cache decoded --cache-memory 4G
    taskset -c "$two" "$overhead" "$index" 50 --tsv
}

for ((round = 1; round <= rounds; round++)); do
    # What skipping says of each sample is known beforehand.
    round 2> "$folder/said" >> "$folder/log" || { cat "$folder/said" >&2; exit 1; }
    grep '^disturbed' "$folder/said" >&2 || true
    echo "round $round of $rounds done" >&2
done

echo "$(grep -m1 'model name' /proc/cpuinfo | cut -d: -f2- | xargs), $(nproc) cores, $(rustc --version), $(date -u +%F)"
echo "$(count "$good") samples in $(stat -c %s "$good") bytes, $copies times $(basename -- "$source")"
echo
echo "| what | unit | median | lowest | highest | rounds |"
echo "|---|---|---|---|---|---|"
awk -F '\t' '!seen[$1 FS $2]++ { print $1 FS $2 }' "$folder/log" | while IFS=$'\t' read -r name unit; do
    awk -F '\t' -v name="$name" -v unit="$unit" '$1 == name && $2 == unit { print $3 }' "$folder/log" |
        sort -g | awk -v name="$name" -v unit="$unit" '
            { value[NR] = $1 }
            END {
                middle = int((NR + 1) / 2)
                median = NR % 2 ? value[middle] : (value[middle] + value[middle + 1]) / 2
                printf "| %s | %s | %g | %g | %g | %d |\n", name, unit, median, value[1], value[NR], NR
            }'
done
# Ratios within a round compare like with like where a machine's speed drifts.
echo
echo "| ratio, median of the rounds' | of images_per_s | of images_per_cpu_s |"
echo "|---|---|---|"
ratio() {
    printf '| %s' "$1"
    for unit in images_per_s images_per_cpu_s; do
        paste <(awk -F '\t' -v n="$2" -v u=$unit '$1 == n && $2 == u { print $3 }' "$folder/log") \
            <(awk -F '\t' -v n="$3" -v u=$unit '$1 == n && $2 == u { print $3 }' "$folder/log") |
            awk '{ print $1 / $2 }' | sort -g |
            awk '{ v[NR] = $1 } END { m = int((NR + 1) / 2); printf " | %.4f", NR % 2 ? v[m] : (v[m] + v[m + 1]) / 2 }'
    done
    echo " |"
}
ratio "2 workers / 1 worker, training" "training, x2" "training, x1"
ratio "2 workers / 1 worker, raw 256 x 256" "training from TBL of raw 256 x 256, x2" "training from TBL of raw 256 x 256, x1"
ratio "every 1,000th sample skipped / none" "training, skipping every 1,000th, x1" "training, skipping none, x1"
for policy in skip replace fill; do
    ratio "every 1,000th photograph cut, $policy / none" "training, every 1,000th cut, $policy, x1" "training, all whole, x1"
done
ratio "from a cache of decoded images / decoded" "training decoded exactly, from a cache, x1" "training decoded exactly, x1"
