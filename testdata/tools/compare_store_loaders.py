"""Stored bytes from one slow store, with this loader and with those of others, in one table.

    python3 -m venv venv
    venv/bin/pip install ./crates/tl-python torch boto3 webdataset==1.0.2 s3torchconnector==1.5.0 \
        litdata==0.2.76 mosaicml-streaming==0.13.0
    cargo build --release -p tl-store-server
    venv/bin/python testdata/tools/compare_store_loaders.py PHOTOS WORK

PHOTOS is a folder of files named `*.JPEG`. They are written to WORK eight times over in each loader's
own format, which takes 40 times their size, and stay there for the next call. WebDataset needs curl.

Each run has a store and a process of its own: the store on the second core, the loader with all its
processes on the first, and no cache. The loaders take turns. The first round of a setting compares
the checksum of every sample with that of its photograph, which costs time, so its rates do not
count. The others compare the number of samples and bytes. Epoch 1 begins with the construction of
the loader, after its package was imported.

Results are appended to WORK/results.jsonl, so that rounds, settings and loaders can be measured by
several calls; the table has all of them. Requests and bytes are those that the store counted.
Nothing is asked but the store on this machine.
"""

import argparse
import collections
import concurrent.futures
import contextlib
import functools
import importlib
import io
import itertools
import json
import os
import pathlib
import resource
import shutil
import signal
import statistics
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
import traceback
import urllib.request
import zlib

ROOT = pathlib.Path(__file__).resolve().parents[2]
COPIES = 8
SHARDS = 16
BATCH = 64
CORES = {"loader": 0, "store": 1}
NEAR = ["--first-byte", "30ms", "--per-connection", "55MB"]
SETTINGS = {
    "near": NEAR,
    "far": ["--first-byte", "100ms", "--per-connection", "25MB"],
    "faults": [*NEAR, "--fault", "503:1%,reset:0.5%,stall:0.1%"],
}
KEYS = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_REGION": "us-east-1"}


class Task:
    """The place of the data, and the settings of one run."""

    def __init__(self, endpoint, workers, scratch):
        self.folder = os.environ["STORE_FOLDER"]
        self.endpoint = endpoint
        self.workers = workers
        self.scratch = scratch

    def torch_loader(self, dataset, **settings):
        """Returns torch's loader; its workers stay for the second epoch."""
        from torch.utils.data import DataLoader

        settings = {"batch_size": BATCH, "collate_fn": list, **settings}
        kept = self.workers > 0
        return DataLoader(dataset, num_workers=self.workers, persistent_workers=kept, **settings)


def turboloader(path, share=None, is_local=False, **settings):
    def make(task):
        import turboloader

        if share is not None:
            folder = f"{task.scratch}/cache"
            cache = turboloader.Cache(disk=cache_bytes(share), folder=folder, blocks=True)
            settings["cache"] = cache
        options = {"endpoint": task.endpoint, "region": KEYS["AWS_REGION"]}
        loader = turboloader.DataLoader(
            f"{task.folder}/data/{path}" if is_local else f"s3://data/{path}",
            batch_size=BATCH,
            num_workers=task.workers,
            decode=False,
            store=None if is_local else options,
            **settings,
        )
        return loader, lambda batch: batch["bytes"]

    return make


def blocks(shuffle):
    """Makes loaders with blocks in a cache on disk for a part of the data."""

    def make(task, share):
        return turboloader(TBL, share, shuffle=shuffle)(task)

    return make


def cache_bytes(share):
    """Returns the bytes of a cache for a part of the data; room for all of it is more than that."""
    return 1 << 32 if share == 1 else int(share * sum(len(content) for _, content in samples()))


def webdataset(task):
    import webdataset

    urls = f"{task.endpoint}/data/tar/train-{{00..{SHARDS - 1}}}.tar"
    dataset = webdataset.WebDataset(urls, shardshuffle=SHARDS).shuffle(1000).to_tuple("jpg")
    dataset = dataset.batched(BATCH, collation_fn=None)
    kept = task.workers > 0
    loader = webdataset.WebLoader(
        dataset, batch_size=None, num_workers=task.workers, persistent_workers=kept
    )
    return loader, lambda batch: [sample for (sample,) in batch]


def s3torchconnector_tar(task):
    import s3torchconnector
    from torch.utils.data import IterableDataset

    class Members(IterableDataset):
        """The files of the archives that a worker reads."""

        def __init__(self):
            self.archives = s3torchconnector.S3IterableDataset.from_objects(
                [f"s3://data/tar/train-{shard:02}.tar" for shard in range(SHARDS)],
                region=KEYS["AWS_REGION"],
                endpoint=task.endpoint,
                s3client_config=s3torchconnector.S3ClientConfig(force_path_style=True),
                enable_sharding=True,
            )

        def __iter__(self):
            for archive in self.archives:
                with tarfile.open(fileobj=archive, mode="r|", bufsize=1 << 20) as members:
                    for member in members:
                        yield members.extractfile(member).read()

    return task.torch_loader(Members()), list


def s3torchconnector_map(task):
    import s3torchconnector

    dataset = s3torchconnector.S3MapDataset.from_prefix(
        "s3://data/objects/",
        region=KEYS["AWS_REGION"],
        endpoint=task.endpoint,
        s3client_config=s3torchconnector.S3ClientConfig(force_path_style=True),
        transform=lambda reader: reader.read(),
    )
    return task.torch_loader(dataset, shuffle=True), list


def boto3(task):
    import boto3
    import botocore.config

    class Objects:
        """Objects that the threads of a worker request."""

        def __init__(self):
            self.keys = [key for key, _ in names()]
            self.client = None

        def __len__(self):
            return len(self.keys)

        def __getitems__(self, rows):
            if self.client is None:
                config = botocore.config.Config(max_pool_connections=16)
                self.client = boto3.client("s3", endpoint_url=task.endpoint, config=config)
                self.threads = concurrent.futures.ThreadPoolExecutor(16)
            return list(self.threads.map(self.read, rows))

        def read(self, row):
            answer = self.client.get_object(Bucket="data", Key=f"objects/{self.keys[row]}.jpg")
            return answer["Body"].read()

    return task.torch_loader(Objects(), shuffle=True), list


def streaming(task, share=None):
    import streaming
    import torch.utils.data

    dataset = streaming.StreamingDataset(
        remote="s3://data/mds",
        local=f"{task.scratch}/mds",
        shuffle=True,
        batch_size=BATCH,
        cache_limit=None if share is None else cache_bytes(share),
    )

    def forget_client(_):
        # Workers that share the connections of the forked client read each other's answers.
        for stream in torch.utils.data.get_worker_info().dataset.streams:
            stream._downloader.clean_up()

    loader = task.torch_loader(dataset, worker_init_fn=forget_client)
    return loader, lambda batch: [sample["image"] for sample in batch]


def litdata(task, share=1):
    import litdata
    import litdata.streaming.downloader

    # No option leads to this setting; without it the store must have a certificate.
    litdata.streaming.downloader._OBSTORE_CLIENT_OPTIONS["allow_http"] = "true"
    dataset = litdata.StreamingDataset(
        "s3://data/litdata",
        cache_dir=f"{task.scratch}/litdata",
        shuffle=True,
        max_cache_size=cache_bytes(share),
        storage_options={"endpoint_url": task.endpoint},
    )
    kept = task.workers > 0
    loader = litdata.StreamingDataLoader(
        dataset,
        batch_size=BATCH,
        num_workers=task.workers,
        persistent_workers=kept,
        collate_fn=lambda batch: [bytes(sample["image"]) for sample in batch],
    )
    return loader, list


class Loader:
    """A loader, with its packages and its setting."""

    def __init__(self, name, make, packages, workers, setting, epochs=2):
        self.name = name
        self.make = make
        self.packages = packages
        self.workers = workers
        self.setting = setting
        self.epochs = epochs


TBL = "tbl/train.tbl"
OURS = ["turboloader"]
LOADERS = {
    "tbl": Loader(
        "turboloader, TBL",
        turboloader(TBL, shuffle="block:16x64"), OURS, 1, "`block:16x64`",
    ),
    "tbl-order": Loader("turboloader, TBL", turboloader(TBL), OURS, 1, "no shuffle"),
    "tbl-full": Loader(
        "turboloader, TBL", turboloader(TBL, shuffle=True), OURS, 1, "full shuffle"
    ),
    "tar-index": Loader(
        "turboloader, TAR with shard index",
        turboloader("tar/train.tlidx", shuffle="block:16x64"), OURS, 1, "`block:16x64`",
    ),
    "objects": Loader(
        "turboloader, objects", turboloader("objects/", shuffle=True), OURS, 1, "full shuffle", 1
    ),
    "webdataset": Loader(
        "WebDataset, TAR", webdataset, ["webdataset", "torch"], 8,
        "`shardshuffle=16`, buffer of 1000",
    ),
    "s3torch-tar": Loader(
        "s3torchconnector, TAR in sequence", s3torchconnector_tar, ["s3torchconnector", "torch"],
        8, "no shuffle",
    ),
    "litdata": Loader("LitData", litdata, ["litdata", "torch"], 1, "shuffle"),
    "streaming": Loader(
        "MosaicML Streaming", streaming, ["streaming", "torch", "boto3"], 8, "`py1e`"
    ),
    "boto3": Loader(
        "boto3 in a DataLoader, objects", boto3, ["boto3", "torch"], 4,
        "16 threads each, full shuffle", 1,
    ),
    "s3torch-map": Loader(
        "s3torchconnector, map style, objects", s3torchconnector_map,
        ["s3torchconnector", "torch"], 8, "full shuffle", 1,
    ),
    "tbl-local": Loader(
        "turboloader, local TBL", turboloader(TBL, is_local=True, shuffle="block:16x64"), OURS, 1,
        "`block:16x64`", 4,
    ),
} | {
    f"{key}-cache-{percent}": Loader(
        f"{name}, cache of {percent} %", functools.partial(make, share=percent / 100), packages,
        workers, setting, 4,
    )
    for percent in (100, 50, 10)
    for key, name, make, packages, workers, setting in (
        ("tbl", "turboloader, TBL", blocks("block:16x64"), OURS, 1, "`block:16x64`"),
        ("tbl-full", "turboloader, TBL", blocks("full"), OURS, 1, "full shuffle"),
        ("litdata", "LitData", litdata, ["litdata", "torch"], 1, "shuffle"),
        ("streaming", "MosaicML Streaming", streaming, ["streaming", "torch", "boto3"], 8, "`py1e`"),
    )
}


def photographs():
    """Returns the photographs' paths."""
    return sorted(pathlib.Path(os.environ["STORE_PHOTOS"]).glob("*.JPEG"))


def samples():
    """Yields the name and the bytes of every sample: a photograph, and after its end the name, so that
    a sample that is read in place of another has another checksum."""
    for copy in range(COPIES):
        for number, path in enumerate(photographs()):
            name = f"{copy}{number:05}"
            yield name, path.read_bytes() + name.encode()


def write(folder):
    """Writes the formats that are not there yet."""
    whole = folder / "whole"
    if whole.exists():
        return
    shutil.rmtree(folder, ignore_errors=True)
    for name in ["tbl", "tar", "objects"]:
        (folder / "data" / name).mkdir(parents=True)
    data = folder / "data"
    for name, content in samples():
        (data / "objects" / f"{name}.jpg").write_bytes(content)
    each = -(-len(photographs()) * COPIES // SHARDS)
    numbered = samples()
    for shard in range(SHARDS):
        with tarfile.open(data / "tar" / f"train-{shard:02}.tar", "w") as archive:
            for name, content in itertools.islice(numbered, each):
                member = tarfile.TarInfo(f"{name}.jpg")
                member.size = len(content)
                archive.addfile(member, io.BytesIO(content))

    import turboloader

    with turboloader.TblWriter(str(data / TBL)) as writer:
        for name, content in samples():
            writer.add_sample(content, key=f"{name}.jpg")

    from streaming import MDSWriter

    with MDSWriter(out=str(data / "mds"), columns={"image": "bytes"}, size_limit=1 << 24) as writer:
        for _, content in samples():
            writer.write({"image": content})

    from litdata.streaming.writer import BinaryWriter

    writer = BinaryWriter(str(data / "litdata"), chunk_bytes="64MB")
    for row, (_, content) in enumerate(samples()):
        writer[row] = {"image": content}
    writer.done()
    writer.merge()
    whole.touch()


def write_shard_index(folder, options):
    """Indexes the archives where they are, because an index holds the versions of a store."""
    if (folder / "data/tar/train.tlidx").exists():
        return
    with Store(folder, options, 1) as store:
        source = f"s3://data/tar/train-{{00..{SHARDS - 1}}}.tar"
        target = folder / "train.tlidx"
        command = [sys.executable, "-m", "turboloader", "index", source, "-o", target]
        subprocess.run(command, check=True, env=environment(store.endpoint))
        target.rename(folder / "data/tar/train.tlidx")


def environment(endpoint):
    """Returns variables that lead every client to the store and to nothing else."""
    return {
        **os.environ,
        **KEYS,
        "AWS_DEFAULT_REGION": KEYS["AWS_REGION"],
        "AWS_ENDPOINT_URL": endpoint,
        "S3_ENDPOINT_URL": endpoint,
        "AWS_ALLOW_HTTP": "true",
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        "LITDATA_DISABLE_VERSION_CHECK": "1",
        "HF_HUB_OFFLINE": "1",
        "NO_PROXY": "*",
    }


class Store:
    """The store in a process of its own."""

    program = None

    def __init__(self, folder, options, seed):
        def prepare():
            os.sched_setaffinity(0, {CORES["store"]})
            most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))

        self.process = subprocess.Popen(
            [Store.program, folder, *options, "--seed", str(seed)],
            stdout=subprocess.PIPE,
            text=True,
            preexec_fn=prepare,
        )
        self.endpoint = self.process.stdout.readline().strip()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()


def counts(endpoint):
    """Returns the store's counts of requests and bytes."""
    with urllib.request.urlopen(f"{endpoint}/_stats") as answer:
        text = answer.read().decode()
    pairs = (pair.split(":") for pair in text.strip().strip("Counts {}").split(","))
    number = {name.strip(): int(value) for name, value in pairs}
    return number["gets"] + number["heads"] + number["lists"], number["bytes"]


def tell(**event):
    print(json.dumps(event), flush=True)


def child(key, endpoint, workers, scratch, checks):
    """Runs the epochs of a loader, and prints what happens."""
    loader = LOADERS[key]
    for package in loader.packages:
        importlib.import_module(package)
    expected = collections.Counter()
    if checks:
        expected.update(zlib.crc32(content) for _, content in samples())
    state = {"epoch": 0, "samples": 0, "begun": time.perf_counter()}

    def report():
        while True:
            time.sleep(1)
            seconds = time.perf_counter() - state["begun"]
            tell(event="progress", epoch=state["epoch"], samples=state["samples"], seconds=seconds)

    threading.Thread(target=report, daemon=True).start()
    before = counts(endpoint)
    begun = time.perf_counter()
    batches, samples_of = loader.make(Task(endpoint, workers, scratch))
    for epoch in range(loader.epochs):
        begun = begun if epoch == 0 else time.perf_counter()
        state.update(epoch=epoch, samples=0, begun=begun)
        found = collections.Counter()
        size = 0
        for batch in batches:
            contents_of_batch = samples_of(batch)
            if epoch == state["samples"] == 0:
                tell(event="first", seconds=time.perf_counter() - begun)
            state["samples"] += len(contents_of_batch)
            size += sum(map(len, contents_of_batch))
            if checks:
                found.update(map(zlib.crc32, contents_of_batch))
        seconds = time.perf_counter() - begun
        after = counts(endpoint)
        contents = None
        if checks:
            contents = {
                "wrong": sum(number for crc, number in found.items() if crc not in expected),
                "lost": (expected - found).total(),
                "repeated": sum((found - expected)[crc] for crc in expected),
            }
        tell(
            event="epoch",
            samples=state["samples"],
            bytes=size,
            seconds=seconds,
            requests=after[0] - before[0],
            received=after[1] - before[1],
            contents=contents,
        )
        before = after
    tell(event="end")
    # Some loaders have threads that outlive them.
    sys.stdout.flush()
    os._exit(0)


def measure(key, setting, number, checks, arguments):
    """Returns the record of one run."""
    workers = arguments.workers or LOADERS[key].workers
    folder = arguments.work / "store"
    with Store(folder, SETTINGS[setting], number + 1) as store, tempfile.TemporaryDirectory(
        dir=arguments.work, ignore_cleanup_errors=True
    ) as scratch, tempfile.TemporaryFile("w+") as errors:
        command = [sys.executable, __file__, "--child", key, store.endpoint, str(workers), scratch]
        process = subprocess.Popen(
            [*command, str(int(checks))],
            env={**environment(store.endpoint), "TMPDIR": scratch},
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            start_new_session=True,
            preexec_fn=lambda: os.sched_setaffinity(0, {CORES["loader"]}),
        )
        is_late = threading.Event()

        def end():
            try:
                process.wait(arguments.limit)
            except subprocess.TimeoutExpired:
                is_late.set()
            # Workers and their subprocesses outlive a process that ends with an error.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)

        watch = threading.Thread(target=end)
        watch.start()
        events = [json.loads(line) for line in process.stdout if line.startswith('{"event"')]
        watch.join()
        process.wait()
        errors.seek(0)
        lines = [line.strip() for line in errors.read().splitlines() if line.strip()]
    record = {"loader": key, "setting": setting, "round": number, "workers": workers}
    record |= {"checks": checks, "epochs": [e for e in events if e["event"] == "epoch"]}
    record["first"] = next((e["seconds"] for e in events if e["event"] == "first"), None)
    record["last"] = next((e for e in reversed(events) if e["event"] == "progress"), None)
    has_ended = any(event["event"] == "end" for event in events)
    sizes = [path.stat().st_size + len("000000") for path in photographs()]
    whole = (len(sizes) * COPIES, sum(sizes) * COPIES)
    if any((epoch["samples"], epoch["bytes"]) != whole for epoch in record["epochs"]):
        record["outcome"] = "other samples"
    elif has_ended:
        record["outcome"] = "finished"
    elif is_late.is_set():
        record["outcome"] = f"did not end in {arguments.limit} s"
    else:
        named = [line for line in lines if "Error" in line or "Exception" in line]
        record["outcome"] = (named or lines or ["no message"])[-1][:300]
    record["errors"] = lines[-12:]
    return record


def spread(values, digits):
    """Returns the median with the smallest and the largest."""
    values = [value for value in values if value is not None]
    if not values:
        return ""
    text = f"{statistics.median(values):.{digits}f}"
    if len(values) == 1:
        return f"{text} (1 run)"
    return f"{text} ({min(values):.{digits}f}\u2013{max(values):.{digits}f})"


def of_epoch(records, epoch, value):
    return [value(r["epochs"][epoch]) for r in records if len(r["epochs"]) > epoch]


def rate(epoch):
    return epoch["samples"] / epoch["seconds"]


def partial_rate(record):
    """Returns the rate of a first epoch that was broken off."""
    last = record["last"]
    return last["samples"] / last["seconds"] if last and not record["epochs"] else None


def of_epochs(records, value, digits):
    found = [of_epoch(records, epoch, value) for epoch in range(4)]
    return " / ".join(f"{statistics.median(f):.{digits}f}" for f in found if f)


def contents(records):
    """Returns the wrong, lost and repeated samples of all epochs that ended."""
    checked = [e["contents"] for r in records for e in r["epochs"] if e["contents"]]
    if not checked:
        return "not checked"
    return ", ".join(
        str(sum(found[kind] for found in checked)) for kind in ("wrong", "lost", "repeated")
    )


def table(records):
    print(
        "| store | loader | setting | epoch 1, samples/s | epoch 2 | last epoch | first batch, s "
        "| requests per 1000 samples, by epoch | received / used, by epoch | finished "
        "| wrong, lost, repeated samples |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|---|")
    for setting, key in itertools.product(SETTINGS, LOADERS):
        of_loader = [r for r in records if (r["setting"], r["loader"]) == (setting, key)]
        for workers in sorted({record["workers"] for record in of_loader}):
            row(setting, LOADERS[key], [r for r in of_loader if r["workers"] == workers])


def row(setting, loader, records):
    # Rounds that compare checksums are slower.
    timed = [r for r in records if not r["checks"]] or records
    first = spread(of_epoch(timed, 0, rate), 0)
    if not first:
        broken = spread([partial_rate(record) for record in timed], 0)
        first = f"{broken}, broken off" if broken else ""
    ended = sum(record["outcome"] == "finished" for record in records)
    failures = collections.Counter(
        r["outcome"].split(":")[0].rpartition(".")[2]
        for r in records
        if r["outcome"] != "finished"
    )
    finished = [f"{ended} of {len(records)}"]
    finished += [f"{number} {failure}" for failure, number in sorted(failures.items())]
    workers = f"{records[0]['workers']} worker" + "s" * (records[0]["workers"] > 1)
    cells = [
        setting,
        loader.name,
        f"{workers}, {loader.setting}",
        first,
        spread(of_epoch(timed, 1, rate), 0),
        spread(of_epoch(timed, loader.epochs - 1, rate), 0) if loader.epochs > 2 else "",
        spread([record["first"] for record in timed], 2),
        of_epochs(timed, lambda e: e["requests"] * 1000 / e["samples"], 0),
        of_epochs(timed, lambda e: e["received"] / e["bytes"], 2),
        "; ".join(finished).replace("|", "\\|"),
        contents(records),
    ]
    print("| " + " | ".join(cells) + " |")


def main():
    if sys.argv[1:2] == ["--child"]:
        key, endpoint, workers, scratch, checks = sys.argv[2:]
        try:
            return child(key, endpoint, int(workers), scratch, bool(int(checks)))
        except BaseException:
            traceback.print_exc()
            sys.stderr.flush()
            os._exit(1)
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("photos", type=pathlib.Path)
    parser.add_argument("work", type=pathlib.Path)
    parser.add_argument("--store", default=ROOT / "target/release/tl-store-server")
    parser.add_argument("--settings", nargs="+", choices=SETTINGS, default=list(SETTINGS))
    parser.add_argument("--loaders", nargs="+", choices=LOADERS, default=list(LOADERS))
    parser.add_argument("--rounds", type=int, default=3, help="besides the one with checksums")
    parser.add_argument("--from-round", type=int, default=0, help="0 is the one with checksums")
    parser.add_argument("--workers", type=int, help="in place of each loader's number")
    parser.add_argument("--limit", type=int, default=90, help="seconds of one run")
    parser.add_argument("--results", type=pathlib.Path, help="default WORK/results.jsonl")
    arguments = parser.parse_args()
    os.environ["STORE_PHOTOS"] = str(arguments.photos.resolve())
    os.environ["STORE_FOLDER"] = str((arguments.work / "store").resolve())
    Store.program = arguments.store
    arguments.work.mkdir(parents=True, exist_ok=True)
    results = arguments.results or arguments.work / "results.jsonl"
    write(arguments.work / "store")
    write_shard_index(arguments.work / "store", [])
    for setting in arguments.settings:
        for number in range(arguments.from_round, arguments.rounds + 1):
            for key in arguments.loaders:
                record = measure(key, setting, number, number == 0, arguments)
                with results.open("a") as file:
                    file.write(json.dumps(record) + "\n")
                speeds = [round(rate(epoch)) for epoch in record["epochs"]]
                print(setting, number, key, speeds, record["outcome"], file=sys.stderr)
    table([json.loads(line) for line in results.read_text().splitlines()])


if __name__ == "__main__":
    main()
