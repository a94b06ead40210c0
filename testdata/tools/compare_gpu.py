"""Photographs as batches on a GPU: this loader beside DALI, torchvision and SPDL.

    python3 -m venv venv
    venv/bin/pip install ./crates/tl-python torch torchvision nvidia-dali-cuda130 spdl
    venv/bin/python testdata/tools/compare_gpu.py PHOTOS [--threads 4] [--batch 256] [--seconds 10]

PHOTOS is a folder with a folder of JPEG files for each class, or a TBL file for this loader and such a
folder as --files for the others. The recipe is that of training: a random resized crop to 224 pixels, a
random flip, normalised halves in planes. SPDL resizes whole images instead, into bytes, because it has
no crop for nvJPEG; its row is not the same work.

Everybody reads from the page cache, in this process, with so many threads of the CPU. Every round
measures each contender once, in turn forwards and backwards; the table has the medians of images per
second and of images per second of processor time, of all threads. A contender that is not installed, or
does not work, is left out with its reason. Pixels differ: only this loader's are those of Pillow.
"""

import argparse
import concurrent.futures
import contextlib
import pathlib
import random
import statistics
import time

import torch
import turboloader as tl

MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]
SIZE = 224
T = tl.transforms


def ours(options, **settings):
    """Batches of this loader; those in memory of the host are copied."""
    train = [
        T.RandomResizedCrop(SIZE),
        T.RandomHorizontalFlip(),
        T.ToTensor(),
        T.Normalize(MEAN, STD),
    ]
    loader = tl.DataLoader(
        options.photos,
        options.batch,
        train,
        shuffle=True,
        drop_last=True,
        dtype="float16",
        output_format="torch",
        num_workers=options.threads,
        **settings,
    )
    try:
        while True:
            for batch in loader:
                yield batch["image"].to(options.device, non_blocking=True)
    finally:
        loader.close()


def ours_there(options):
    """Batches that this loader brings to the device."""
    device = tl.Device(options.device, required=True)
    return ours(options, device=device)


def ours_pinned(options):
    """Batches of this loader in pinned memory, copied by torch."""
    return ours(options, pin_memory=tl.Device(options.device, required=True))


def ours_nvjpeg(options):
    """Batches of this loader, decoded by NVIDIA's library."""
    device = tl.Device(options.device, required=True)
    return ours(options, device=device, decode_mode="nvjpeg")


def shuffled(options):
    """Batches of the paths of files, without end."""
    files = list(options.paths)
    while True:
        random.shuffle(files)
        for start in range(0, len(files) - options.batch + 1, options.batch):
            yield files[start : start + options.batch]


def torchvision_there(options):
    """Batches that torchvision decodes on the device, and transforms there."""
    from torchvision.io import ImageReadMode, decode_jpeg, read_file
    from torchvision.transforms import v2

    crop = v2.Compose([v2.RandomResizedCrop(SIZE, antialias=True), v2.RandomHorizontalFlip()])
    finish = v2.Compose([v2.ToDtype(torch.float16, scale=True), v2.Normalize(MEAN, STD)])
    with concurrent.futures.ThreadPoolExecutor(options.threads) as threads:
        # One batch is read while another is decoded.
        ahead = None
        for files in shuffled(options):
            reads = [threads.submit(read_file, str(path)) for path in files]
            if ahead is not None:
                encoded = [read.result() for read in ahead]
                images = decode_jpeg(encoded, ImageReadMode.RGB, device=options.device)
                yield finish(torch.stack([crop(image) for image in images]))
            ahead = reads


def dali(options):
    """Batches of DALI, with nvJPEG."""
    from nvidia.dali import fn, pipeline_def, types
    from nvidia.dali.plugin.pytorch import DALIGenericIterator

    @pipeline_def(
        batch_size=options.batch, num_threads=options.threads, device_id=options.ordinal, seed=7
    )
    def train():
        files = [str(path) for path in options.paths]
        encoded, _ = fn.readers.file(files=files, random_shuffle=True, name="reader")
        images = fn.decoders.image_random_crop(
            encoded, device="mixed", output_type=types.RGB, random_area=[0.08, 1.0]
        )
        images = fn.resize(images, size=[SIZE, SIZE], interp_type=types.INTERP_TRIANGULAR)
        return fn.crop_mirror_normalize(
            images,
            dtype=types.FLOAT16,
            output_layout="CHW",
            mean=[255 * mean for mean in MEAN],
            std=[255 * std for std in STD],
            mirror=fn.random.coin_flip(),
        )

    pipeline = train(prefetch_queue_depth=3)
    pipeline.build()
    for (batch,) in DALIGenericIterator(pipeline, ["image"], auto_reset=True):
        yield batch["image"]


def spdl(options):
    """Batches of SPDL: whole images, decoded by nvJPEG and resized by NPP."""
    import spdl.io

    config = spdl.io.cuda_config(device_index=options.ordinal)

    def load(files):
        sources = [str(path) for path in files]
        buffer = spdl.io.load_image_batch_nvjpeg(
            sources, device_config=config, width=SIZE, height=SIZE, pix_fmt="rgb"
        )
        return spdl.io.to_torch(buffer)

    with concurrent.futures.ThreadPoolExecutor(options.threads) as threads:
        ahead = []
        for files in shuffled(options):
            ahead.append(threads.submit(load, files))
            if len(ahead) > options.threads:
                yield ahead.pop(0).result()


CONTENDERS = {
    "turboloader, `device`": ours_there,
    "turboloader, `pin_memory`": ours_pinned,
    "turboloader, nvJPEG": ours_nvjpeg,
    "DALI, nvJPEG": dali,
    "torchvision `decode_jpeg` and v2": torchvision_there,
    "SPDL, nvJPEG, whole images": spdl,
}


def measured(contender, options):
    """Images per second, and images per second of processor time."""
    with contextlib.closing(contender(options)) as batches:
        # Kernels are compiled, caches filled.
        for _ in range(options.warm_up):
            shape = next(batches).shape
        torch.cuda.synchronize()
        start, used, count = time.perf_counter(), time.process_time(), 0
        while time.perf_counter() - start < options.seconds:
            count += len(next(batches))
            # A training step would wait, too: nobody runs ahead without end.
            torch.cuda.synchronize()
        passed, used = time.perf_counter() - start, time.process_time() - used
    if shape[0] != options.batch or SIZE not in shape:
        raise ValueError(f"batches of {tuple(shape)}")
    return count / passed, count / used


def main():
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("photos", type=pathlib.Path)
    parser.add_argument("--files", type=pathlib.Path, help="the folder of the same JPEG files")
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--threads", type=int, default=4)
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--warm-up", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", nargs="*", help="parts of the names of contenders")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    options.ordinal = int(options.device.partition(":")[2] or 0)
    folder = options.files or options.photos
    options.paths = sorted(
        path for path in folder.rglob("*") if path.suffix.lower() in {".jpg", ".jpeg"}
    )
    if len(options.paths) < options.batch:
        parser.error(f"{folder} has {len(options.paths)} JPEG files, a batch {options.batch}")
    names = [
        name for name in CONTENDERS if not options.only or any(one in name for one in options.only)
    ]
    rates = {name: [] for name in names}
    for number in range(options.rounds):
        for name in names if number % 2 == 0 else names[::-1]:
            if name not in rates:
                continue
            try:
                rates[name].append(measured(CONTENDERS[name], options))
            except Exception as error:
                del rates[name]
                reason = str(error).strip().splitlines() or [""]
                print(f"left out: {name}: {type(error).__name__}: {reason[0]}", flush=True)
    if not rates:
        return
    print(f"\n{torch.cuda.get_device_name(options.ordinal)}, {options.threads} threads, ", end="")
    print(f"batches of {options.batch}, {len(options.paths)} files, turboloader {tl.__version__}\n")
    print("| loader | images/s | images per CPU second |\n|---|---|---|")
    for name, of_name in rates.items():
        wall = [rate for rate, _ in of_name]
        cpu = statistics.median(rate for _, rate in of_name)
        spread = f"{min(wall):.0f}-{max(wall):.0f}"
        print(f"| {name} | {statistics.median(wall):.0f} ({spread}) | {cpu:.0f} |")


if __name__ == "__main__":
    main()
