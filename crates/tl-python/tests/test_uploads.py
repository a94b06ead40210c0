"""Files that are written to a store have the bytes of local ones, or are not there."""

from __future__ import annotations

import pathlib
import signal
import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest
import turboloader as tl
from loopback import DUMMY, SECRET, served

PHOTOS = pathlib.Path(__file__).parents[3] / "testdata" / "photos"

# Larger than two parts of an upload.
LARGE = 18 << 20


@pytest.fixture(autouse=True)
def no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_ENDPOINT_URL"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def bucket(tmp_path: pathlib.Path) -> Iterator[tuple[pathlib.Path, dict[str, Any]]]:
    folder = tmp_path / "root" / "bucket"
    folder.mkdir(parents=True)
    with served(tmp_path / "root") as endpoint:
        yield folder, {"store": {**DUMMY, "endpoint": endpoint}}


@pytest.fixture(scope="module")
def moto() -> Iterator[str]:
    server = pytest.importorskip("moto.server").ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


def test_conversions_go_to_a_store(bucket, tmp_path) -> None:
    folder, options = bucket
    for name in ("a.tbl", "a.tar", "a.parquet"):
        url = f"s3://bucket/{name}"
        samples = tl.convert(PHOTOS, url, **options)
        assert samples == tl.convert(PHOTOS, tmp_path / name)
        assert (folder / name).read_bytes() == (tmp_path / name).read_bytes()
        with pytest.raises(tl.PathExistsError):
            tl.convert(PHOTOS, url, **options)
        tl.convert(PHOTOS, url, overwrite=True, **options)
    assert len(tl.open("s3://bucket/a.tbl", **options)) == samples
    wrong = {"store": {**options["store"], "access_key_id": "other"}}
    with pytest.raises(OSError, match="403") as caught:
        tl.convert(PHOTOS, "s3://bucket/b.tbl", **wrong)
    assert SECRET not in str(caught.value)
    assert not (folder / "b.tbl").exists()


def test_a_callback_that_raises_leaves_nothing(bucket) -> None:
    folder, options = bucket

    def fail(current: int, total: int) -> None:
        raise ValueError("enough")

    with pytest.raises(ValueError, match="enough"):
        tl.convert(PHOTOS, "s3://bucket/a.tbl", progress_callback=fail, **options)
    assert not (folder / "a.tbl").exists()


def test_writers_go_to_a_store(bucket, tmp_path) -> None:
    folder, options = bucket
    data = [path.read_bytes() for path in sorted(PHOTOS.rglob("*.jpg"))]

    def fill(writer: tl.TblWriter) -> None:
        with writer:
            for number, sample in enumerate(data):
                writer.add_sample(sample, key=f"{number}.jpg", label=number % 2)

    fill(tl.TblWriter(tmp_path / "a.tbl", class_names=["a", "b"]))
    expected = (tmp_path / "a.tbl").read_bytes()
    for name, count in (("a.tbl", None), ("b.tbl", len(data))):
        url = f"s3://bucket/{name}"
        fill(tl.TblWriter(url, class_names=["a", "b"], sample_count=count, **options))
        assert (folder / name).read_bytes() == expected
    with pytest.raises(KeyError), tl.TblWriter("s3://bucket/c.tbl", **options) as writer:
        writer.add_sample(data[0])
        raise KeyError
    assert not (folder / "c.tbl").exists()
    with pytest.raises(tl.PathExistsError):
        tl.TblWriter("s3://bucket/a.tbl", **options)


def test_an_emulator_takes_parts(moto, tmp_path) -> None:
    boto3 = pytest.importorskip("boto3")
    client = boto3.client(
        "s3",
        endpoint_url=moto,
        region_name="us-east-1",
        aws_access_key_id=DUMMY["access_key_id"],
        aws_secret_access_key=SECRET,
    )
    client.create_bucket(Bucket="bucket")
    options = {"store": {**DUMMY, "endpoint": moto}}
    sample = bytes(range(256)) * (LARGE // 256)

    def write(path: str | pathlib.Path, **settings: Any) -> None:
        with tl.TblWriter(path, sample_count=1, **settings) as writer:
            writer.add_sample(sample, key="a.bin")

    write(tmp_path / "a.tbl")
    expected = (tmp_path / "a.tbl").read_bytes()
    url = "s3://bucket/folder/a 100%.tbl"
    write(url, **options)
    stored = client.get_object(Bucket="bucket", Key="folder/a 100%.tbl")["Body"].read()
    assert stored == expected
    assert tl.TblReader(url, **options)[0] == sample
    with pytest.raises(tl.PathExistsError):
        write(url, **options)
    # It appears while another writer is at work.
    writer = tl.TblWriter("s3://bucket/race.tbl", sample_count=1, **options)
    writer.add_sample(sample, key="a.bin")
    client.put_object(Bucket="bucket", Key="race.tbl", Body=b"theirs")
    try:
        writer.finish()
    except tl.PathExistsError:
        assert client.get_object(Bucket="bucket", Key="race.tbl")["Body"].read() == b"theirs"
    writer = tl.TblWriter("s3://bucket/left.tbl", sample_count=1, **options)
    writer.add_sample(sample, key="a.bin")
    listed = client.list_multipart_uploads(Bucket="bucket")
    assert [one["Key"] for one in listed["Uploads"]] == ["left.tbl"]
    writer.discard()
    assert "Uploads" not in client.list_multipart_uploads(Bucket="bucket")


def test_ctrl_c_ends_a_wait() -> None:
    """A store that does not answer keeps nobody."""

    def press(*_: object) -> None:
        raise KeyboardInterrupt

    handler = signal.signal(signal.SIGALRM, press)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        endpoint = f"http://127.0.0.1:{silent.getsockname()[1]}"
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        try:
            with pytest.raises(KeyboardInterrupt):
                tl.TblWriter("s3://bucket/a.tbl", store={**DUMMY, "endpoint": endpoint})
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, handler)


def test_a_writer_that_waits_keeps_no_other_thread(bucket) -> None:
    """Threads that ask a writer while another one waits for the store do not block it."""
    _, options = bucket
    writer = tl.TblWriter("s3://bucket/t.tbl", sample_count=400, **options)

    def add(start: int) -> None:
        for number in range(start, start + 100):
            writer.add_sample(bytes(10_000), key=f"{number}.bin")
            assert writer.num_samples > 0

    threads = [threading.Thread(target=add, args=(100 * start,)) for start in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    writer.discard()
