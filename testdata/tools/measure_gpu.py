"""All that only a machine with a GPU can show, by one command there and one before.

    python3 testdata/tools/measure_gpu.py pack PHOTOS
    python3 testdata/tools/measure_gpu.py run [--out FOLDER] [--seconds 540] [--only STEP..]

`pack` needs cargo and maturin, and no GPU. It builds tests, examples and a wheel for Linux in release
mode, and puts them into `target/gpu` with photographs of PHOTOS, a folder with a folder of JPEG files
for each class. All of it has 44 MiB at most. Wheels that are put beside it are installed as well: that of
nvJPEG, where the machine lacks it.

`run` needs the checkout with `target/gpu`, Python 3.11 and a C compiler, but no Rust and no network. It
starts the steps below one after the other, each in a process of its own with a limit of time, and
writes `gpu.json` and `gpu.txt` anew after each, with what every step printed: what the end of the time
cuts off is missing, and nothing else. A step that lacks something is left out with its reason. Without a
GPU `run --dry` shows that the steps start: the driver is emulated, and figures mean nothing.
"""

import argparse
import importlib.util
import json
import lzma
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
PACK = ROOT / "target" / "gpu"
SITE = PACK / "site"
# Bytes of photographs, and of everything.
PHOTO_BYTES, MOST_BYTES = 14 << 20, 44 << 20
# The programs have much in common, and are compressed together.
FILTERS = [{"id": lzma.FILTER_X86}, {"id": lzma.FILTER_LZMA2, "preset": 6, "dict_size": 192 << 20}]
EXAMPLES = {"decoding": "tl-pipeline", "device": "tl-pipeline", "nvjpeg_distance": "tl-cuda"}


def built(*arguments):
    """Build with cargo, and return the programs by name."""
    command = ["cargo", *arguments, "--release", "--message-format=json"]
    done = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True)
    messages = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    made = [message for message in messages if message.get("executable")]
    return {message["target"]["name"]: pathlib.Path(message["executable"]) for message in made}


def put(programs):
    """Put programs and the package into one archive."""
    with lzma.open(PACK / "programs.tar.xz", "wb", filters=FILTERS) as packed:
        with tarfile.open(fileobj=packed, mode="w|") as archive:
            for name, program in programs.items():
                stripped = PACK / name
                subprocess.run(["strip", "-o", stripped, program], check=True)
                archive.add(stripped, name)
                stripped.unlink()
            archive.add(SITE, SITE.name)
    shutil.rmtree(SITE)


def pack(options):
    """Put into one folder what `run` needs."""
    shutil.rmtree(PACK, ignore_errors=True)
    PACK.mkdir(parents=True)
    programs = built("test", "--no-run", "-p", "tl-cuda", "--lib")
    programs |= built("test", "--no-run", "-p", "tl-pipeline", "--test", "it")
    programs |= built("build", "-p", "turboloader-cli", "--bin", "tl")
    for example, package in EXAMPLES.items():
        programs |= built("build", "-p", package, "--example", example)
    # That of the checks, or any.
    maturin = ROOT / "target" / "python" / "venv" / "bin" / "maturin"
    wheel = [maturin if maturin.exists() else "maturin", "build", "--compatibility", "linux"]
    manifest = ROOT / "crates" / "tl-python" / "Cargo.toml"
    subprocess.run([*wheel, "-m", manifest, "-o", PACK], check=True)
    for path in PACK.glob("*.whl"):
        shutil.unpack_archive(path, SITE, "zip")
        path.unlink()
    put(programs)
    size = 0
    for path in sorted(options.photos.rglob("*")):
        if path.suffix.lower() in {".jpg", ".jpeg"} and size < PHOTO_BYTES:
            size += path.stat().st_size
            target = PACK / "photos" / path.relative_to(options.photos)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target)
    temporary = next(iter(programs.values())).parents[2] / "tmp"
    # Tests know the folders that they were built in.
    (PACK / "folders.json").write_text(json.dumps([str(ROOT), str(temporary)]))
    total = sum(path.stat().st_size for path in PACK.rglob("*") if path.is_file())
    print(f"{PACK}: {total / 1e6:.0f} MB")
    if total > MOST_BYTES:
        sys.exit(f"{total} bytes, expected {MOST_BYTES} at most: pack fewer photographs")


def unpack():
    """Make programs and the package usable, with the folders that the programs were built in."""
    with tarfile.open(PACK / "programs.tar.xz") as archive:
        archive.extractall(PACK, filter="data")
    root, temporary = map(pathlib.Path, json.loads((PACK / "folders.json").read_text()))
    if not root.exists():
        root.parent.mkdir(parents=True, exist_ok=True)
        root.symlink_to(ROOT)
    temporary.mkdir(parents=True, exist_ok=True)
    # Where tests that were built beside photographs look for them. Elsewhere than on the machine that
    # built them nothing is there.
    photographs = root.parent / "shared" / "data" / "imagenet"
    if root.is_symlink() and not photographs.exists():
        photographs.parent.mkdir(parents=True, exist_ok=True)
        photographs.symlink_to(PACK / "photos")
    wheels = [*PACK.glob("*.whl")]
    if wheels:
        install = [sys.executable, "-m", "pip", "install", "-q", "--no-index", "--no-deps"]
        subprocess.run([*install, "--upgrade", "--target", SITE, *wheels], check=True)


def nvjpeg():
    """Return the path of the library: of a wheel, or of CUDA's toolkit."""
    folders = [pathlib.Path(folder) for folder in sys.path if folder]
    places = [SITE, *folders, *pathlib.Path("/usr/local").glob("cuda*")]
    found = (path for place in places for path in sorted(place.glob("**/libnvjpeg.so.*")))
    return next(found, None)


def steps(dry):
    """Return the steps: name, most seconds, command, settings of the environment, what it lacks."""
    real = {} if dry else {"TURBOLOADER_TEST_DEVICE": "0"}
    in_python = {} if dry else {"TURBOLOADER_TEST_DEVICE": "cuda:0"}
    in_python["PYTHONPATH"] = os.pathsep.join([str(SITE), str(ROOT / "crates/tl-python/tests")])
    library = nvjpeg()
    of_library = {} if library is None else {"TURBOLOADER_TEST_NVJPEG": str(library)}
    no_library = "no libnvjpeg" if library is None else ""
    lacks = lambda name: "" if importlib.util.find_spec(name) else f"no Python package {name}"
    no_device = "no device" if dry else ""
    photos, table = PACK / "photos", PACK / "photos.tbl"
    of_pipeline = ["decoding::", "delivery::", "pictures_ahead::", "nvjpeg::"]
    tests = ROOT / "crates/tl-python/tests/test_device.py"
    sanitizer = shutil.which("compute-sanitizer") or "/usr/local/cuda/bin/compute-sanitizer"
    no_sanitizer = no_device or ("" if os.path.exists(sanitizer) else "no compute-sanitizer")
    this = [sys.executable, __file__]
    consumers = [
        (f"{framework}, {delivery}", 40, [*this, "consume", framework, delivery], in_python,
         no_device or lacks(framework))
        for framework in ("torch", "jax")
        for delivery in ("device", "pinned")
        if (framework, delivery) != ("jax", "pinned")
    ]  # fmt: skip
    # What nobody has seen yet comes first.
    return [
        ("machine", 10, ["nvidia-smi", "-q"], {}, no_device),
        ("row indexes", 30,
         [PACK / "tl", "convert", photos, "-o", table, "--jpeg-index", "--force"], {}, ""),
        ("doctor", 45, [PACK / "tl", "doctor", table], {}, ""),
        *consumers,
        ("nvJPEG, loader", 40, [*this, "consume", "torch", "nvjpeg"],
         in_python | {"NVJPEG": str(library)}, no_device or no_library or lacks("torch")),
        ("nvJPEG, distance", 30, [PACK / "nvjpeg_distance", photos, library or ""], {},
         no_device or no_library),
        ("waits at 12 GB/s", 40, [PACK / "device", "8000", "256"], {}, no_device),
        ("compute-sanitizer", 80, [sanitizer, "--tool=memcheck", "--error-exitcode=3",
         PACK / "tl_cuda", "pictures", "--test-threads=1"], real, no_sanitizer),
        ("compute-sanitizer, races", 60, [sanitizer, "--tool=racecheck", "--error-exitcode=3",
         PACK / "tl_cuda", "pictures::resized", "pictures::blocks", "pictures::pixels"], real,
         no_sanitizer),
        ("tests of tl-cuda, rates", 90, [PACK / "tl_cuda", "--nocapture", "--test-threads=4"],
         real | of_library, ""),
        ("tests of tl-python", 60, [sys.executable, "-m", "pytest", "-q", tests], in_python,
         lacks("pytest")),
        ("tests of tl-pipeline", 90, [PACK / "it", *of_pipeline], real, ""),
        ("decoding, 1 worker", 40, [PACK / "decoding", table, "1", "20", "128"], {}, no_device),
        ("decoding, 8 workers", 40, [PACK / "decoding", table, "8", "60", "128"], {}, no_device),
        ("peers", 100, [sys.executable, ROOT / "testdata/tools/compare_gpu.py", table, "--files",
         photos, "--threads", "8", "--batch", "128", "--seconds", "3", "--rounds", "3"], in_python,
         no_device or lacks("torch")),
    ]  # fmt: skip


def run(options):
    """Run the steps, and write down what they print."""
    options.out.mkdir(parents=True, exist_ok=True)
    start = time.monotonic()
    unpack()
    results = []
    for name, most, command, settings, lacks in steps(options.dry):
        # The others need the table.
        is_wanted = name == "row indexes" or any(part in name for part in options.only or [""])
        if not is_wanted:
            continue
        left = options.seconds - (time.monotonic() - start)
        lacks = lacks or ("no time left" if left < 5 else "")
        result = {"step": name, "left_out": lacks}
        if not lacks:
            result = {"step": name, **finished(command, settings, min(most, left))}
        results.append(result)
        (options.out / "gpu.json").write_text(json.dumps(results, indent=1))
        text = [f"## {one['step']}\n{summary(one)}\n{one.get('output', '')}" for one in results]
        (options.out / "gpu.txt").write_text("\n".join(text))
        print(f"{name}: {summary(result)}", flush=True)


def finished(command, settings, most):
    """Run a command; its status, seconds and the end of what it prints."""
    begun = time.monotonic()
    command = [str(part) for part in command]
    with subprocess.Popen(
        command,
        env=os.environ | settings,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    ) as process:
        try:
            output = process.communicate(timeout=most)[0]
            status = process.returncode
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            output, status = process.communicate()[0], "out of time"
    seconds = round(time.monotonic() - begun, 1)
    return {"status": status, "seconds": seconds, "command": command, "output": output[-20_000:]}


def summary(result):
    """Return what became of a step."""
    if result.get("left_out"):
        return f"left out: {result['left_out']}"
    return f"status {result['status']} after {result['seconds']} s"


def loader(**settings):
    """Return a loader of the photographs."""
    import turboloader as tl

    train = [tl.transforms.RandomResizedCrop(224), tl.transforms.RandomHorizontalFlip()]
    train += [tl.transforms.ToTensor(), tl.transforms.Normalize()]
    common = {"batch_size": 32, "shuffle": True, "seed": 3, "dtype": "float16", "num_workers": 8}
    return tl.DataLoader(PACK / "photos.tbl", transform=train, **common, **settings)


def consume(options):
    """Compare epochs as a framework gets them with those of the host, while its streams are late."""
    import numpy as np
    import turboloader as tl

    device = tl.Device("cuda:0", required=True, nvjpeg=os.environ.get("NVJPEG"))
    wanted = {"pin_memory": device} if options.delivery == "pinned" else {"device": device}
    if options.delivery == "nvjpeg":
        wanted["decode_mode"] = "nvjpeg"
    take = globals()[f"by_{options.framework}"]
    batches, different, start = 0, 0, time.monotonic()
    with loader() as host, loader(**wanted) as there:
        for _ in range(options.epochs):
            found = take(there, options.delivery)
            for batch, one in zip(host, found, strict=True):
                expected = np.asarray(batch["image"])
                different += not np.array_equal(expected.view(np.uint16), one.view(np.uint16))
                batches += 1
        print(there.report())
    seconds = time.monotonic() - start
    print(f"{batches} batches in {seconds:.1f} s, {different} differ from those of the host")
    if different and options.delivery != "nvjpeg":
        sys.exit(1)


def by_torch(batches, delivery):
    """Copies of an epoch's batches, made on two streams that are busy before."""
    import torch

    streams = [torch.cuda.Stream() for _ in range(2)]
    copies = []
    for number, batch in enumerate(batches):
        with torch.cuda.stream(streams[number % 2]):
            torch.cuda._sleep(5_000_000)
            tensor = torch.from_dlpack(batch["image"])
            if delivery == "pinned":
                copies.append(tensor.to("cuda", non_blocking=True))
            else:
                copies.append(tensor.clone())
        del batch, tensor
    torch.cuda.synchronize()
    return [copy.cpu().numpy() for copy in copies]


def by_jax(batches, _):
    """Results of a computation on an epoch's batches."""
    import jax
    import jax.dlpack
    import numpy as np

    double = jax.jit(lambda array: array + array)
    arrays = [double(jax.dlpack.from_dlpack(batch["image"])) for batch in batches]
    # Halving is exact.
    return [np.asarray(array) * np.float16(0.5) for array in arrays]


def main():
    """Pack or run."""
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(required=True)
    packing = commands.add_parser("pack")
    packing.add_argument("photos", type=pathlib.Path)
    packing.set_defaults(call=pack)
    running = commands.add_parser("run")
    running.add_argument("--out", type=pathlib.Path, default=PACK / "results")
    running.add_argument("--seconds", type=float, default=540)
    running.add_argument("--dry", action="store_true")
    running.add_argument("--only", nargs="*", help="parts of the names of steps")
    running.set_defaults(call=run)
    consuming = commands.add_parser("consume")
    consuming.add_argument("framework", choices=["torch", "jax"])
    consuming.add_argument("delivery", choices=["device", "pinned", "nvjpeg"])
    consuming.add_argument("--epochs", type=int, default=3)
    consuming.set_defaults(call=consume)
    options = parser.parse_args()
    options.call(options)


if __name__ == "__main__":
    main()
